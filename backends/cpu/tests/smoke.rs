//! The device is registered, opens, computes and refuses what cannot be had.

use drivetrain_core::{Device, ErrorKind};
use drivetrain_cpu as _;

#[test]
fn registered_and_working() {
    let device = Device::open("cpu").unwrap();
    device.self_test().unwrap();
    assert_eq!(device.label(), "cpu");
    assert!(device.info().host_memory && device.info().score == 100);
    assert!(!device.info().description.is_empty());
    let error = Device::open("cpu:1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[test]
fn a_tebibyte_is_an_error_and_costs_nothing() {
    // The engine with an allocator of its own: the other test moves the statistics of the shared one.
    let device = Device::new(Device::open("cpu").unwrap().raw().clone());
    let held = device.memory().in_use;
    for _ in 0..20 {
        for bytes in [1 << 40, isize::MAX as usize, usize::MAX] {
            let error = device.allocate(bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
            let text = error.to_string();
            assert!(text.contains("cpu") && text.contains("bytes"), "{text}");
        }
        drop(device.allocate(1 << 20).unwrap());
    }
    assert_eq!(device.memory().in_use, held);
}
