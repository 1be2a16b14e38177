//! Steps reuse memory. Alone in its program: other tests would move the device's statistics.

use drivetrain_cpu as _;
use drivetrain_optim::{AdamW, Optimizer};
use drivetrain_tensor::{Device, Parameter, Result, Tensor};

#[test]
fn a_step_reuses_the_parameters_memory() -> Result<()> {
    let cpu = Device::open("cpu")?;
    let w = Parameter::new(Tensor::zeros([1000], drivetrain_tensor::DType::F32, &cpu)?)?;
    let mut optimizer = AdamW::new(vec![w.clone()], 0.1);
    let mut step = || -> Result<()> {
        optimizer.zero_grad();
        w.value().sub(1.0)?.square()?.sum(())?.backward()?;
        optimizer.step()
    };
    (0..3).try_for_each(|_| step())?;
    let before = cpu.memory();
    (0..50).try_for_each(|_| step())?;
    let after = cpu.memory();
    assert_eq!(
        (before.in_use, before.reserved, before.peak),
        (after.in_use, after.reserved, after.peak)
    );
    Ok(())
}
