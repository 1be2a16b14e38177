//! The facade links its backends, and the prelude is enough for a program.

use drivetrain::prelude::*;

#[cfg(feature = "cpu")]
#[test]
fn the_registry_is_not_empty() {
    let names = drivetrain::core::Registry::global().names();
    assert!(names.iter().any(|name| name == "cpu"), "{names:?}");
    assert_eq!(Device::open("cpu").unwrap().to_string(), "cpu");
    assert!(!Device::all().is_empty());
    assert!(Device::best().is_ok());
}

/// The README's model: an inherent `forward`, the derive through the facade alone.
#[derive(Module)]
struct SimpleNet {
    fc: Linear,
}

impl SimpleNet {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.fc.forward(input)
    }
}

#[cfg(feature = "cpu")]
#[test]
fn the_prelude_is_enough_to_train() -> Result<()> {
    with_seed(0, || {
        let device = Device::best()?;
        let model = SimpleNet {
            fc: Linear::new(10, 1, &device)?,
        };
        let mut optimizer = Sgd::new(model.parameters(), 0.01);
        let mut scheduler = Scheduler::new(Schedule::Exponential { gamma: 0.99 }, &mut optimizer)?;
        let input = Tensor::randn([5, 10], DType::F32, &device)?;
        let target = Tensor::randn([5, 1], DType::F32, &device)?;
        let mut losses = Vec::new();
        for _ in 0..50 {
            let loss = mse_loss(&model.forward(&input)?, &target, Reduction::Mean)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            scheduler.step(&mut optimizer);
            losses.push(loss.item::<f32>()?);
        }
        assert!(losses[49] < 0.7 * losses[0], "{losses:?}");
        Ok(())
    })
}
