//! The embedded cases on the CPU in every dtype, and on the reference backend, which has no composite of its own: that
//! proves the decompositions.

use drivetrain_conformance::{Options, Report, Suite, reference, run};
use drivetrain_core::{DType, Device};
use drivetrain_cpu as _;

fn report(device: &Device, dtype: DType, only: &[&str]) -> Report {
    let options = Options {
        dtype,
        only: only.iter().map(|op| op.to_string()).collect(),
        ..Options::default()
    };
    run(device, &Suite::embedded().unwrap(), &options)
}

/// Every case passes; halves leave the special ones out.
#[track_caller]
fn all_pass(device: &Device, dtype: DType) {
    let report = report(device, dtype, &[]);
    assert!(report.failures.is_empty(), "{report}");
    let special = if dtype.is_half() { 35 } else { 0 };
    assert_eq!(report.skipped.len(), special, "{report}");
    assert_eq!(report.passed, 346 - special);
}

#[test]
fn cpu_in_f32() {
    all_pass(&Device::open("cpu").unwrap(), DType::F32);
}

#[test]
fn cpu_in_f64() {
    all_pass(&Device::open("cpu").unwrap(), DType::F64);
}

#[test]
fn cpu_in_f16() {
    all_pass(&Device::open("cpu").unwrap(), DType::F16);
}

#[test]
fn cpu_in_bf16() {
    all_pass(&Device::open("cpu").unwrap(), DType::BF16);
}

/// All but one training run, which an interpreter of elements takes long for.
#[test]
fn reference_in_f64() {
    let suite = Suite::embedded().unwrap();
    let ids = suite.cases.iter().map(|case| case.id.as_str());
    let ids: Vec<&str> = ids.filter(|id| *id != "train.1").collect();
    let report = report(&reference::device(), DType::F64, &ids);
    assert!(report.failures.is_empty(), "{report}");
    assert!(report.skipped.is_empty(), "{report}");
    assert_eq!(report.passed, 345);
}

#[test]
fn only_the_cases_asked_for_are_played() {
    let device = Device::open("cpu").unwrap();
    let report = report(&device, DType::F32, &["relu", "add.0"]);
    assert_eq!((report.passed, report.failures.len()), (3, 0), "{report}");
}
