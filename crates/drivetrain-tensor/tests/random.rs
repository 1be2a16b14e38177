//! Random numbers follow the process's seed: one test, alone in its process, since the seed belongs to all.

use drivetrain_cpu as _;
use drivetrain_tensor::{DType, Device, Result, Tensor, manual_seed};

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

fn values(x: &Tensor) -> Vec<f32> {
    x.to_vec::<f32>().unwrap()
}

#[test]
fn random_numbers_follow_the_seed() -> Result<()> {
    let draw = || values(&Tensor::randn([1000], DType::F32, &cpu()).unwrap());
    manual_seed(42);
    let (a, b) = (draw(), draw());
    manual_seed(42);
    let c = draw();
    assert_eq!(a, c);
    assert_ne!(a, b);
    let mean = a.iter().sum::<f32>() / 1000.0;
    assert!(mean.abs() < 0.15, "{mean}");
    let mask = || {
        values(
            &Tensor::ones([100], DType::F32, &cpu())
                .unwrap()
                .dropout(0.5)
                .unwrap(),
        )
    };
    manual_seed(7);
    let first = mask();
    manual_seed(7);
    assert_eq!(first, mask());
    assert_ne!(first, mask());
    Ok(())
}
