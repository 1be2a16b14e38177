//! The tape's behaviour: leaves, accumulation, freed graphs, hooks, modes, threads, depth.

use drivetrain_cpu as _;
use drivetrain_tensor::autograd::GradOptions;
use drivetrain_tensor::{
    Buffer, DType, Device, ErrorKind, Parameter, Result, Tensor, autograd, detect_anomaly,
    enable_grad, is_grad_enabled, no_grad,
};
use std::sync::{Arc, Mutex};

const RETAIN: GradOptions = GradOptions {
    retain_graph: true,
    create_graph: false,
};
const CREATE: GradOptions = GradOptions {
    retain_graph: true,
    create_graph: true,
};

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

fn leaf<const N: usize>(values: [f64; N]) -> Tensor {
    Tensor::from_data(values, &cpu())
        .and_then(|t| t.requires_grad_())
        .unwrap()
}

fn values(x: &Tensor) -> Vec<f64> {
    x.to_vec::<f64>().unwrap()
}

fn grad_of(x: &Tensor) -> Vec<f64> {
    values(&x.grad().expect("a gradient"))
}

#[test]
fn leaves_and_what_requires_a_gradient() -> Result<()> {
    let plain = Tensor::ones([2], DType::F64, &cpu())?;
    assert!(plain.is_leaf() && !plain.requires_grad() && plain.grad().is_none());
    let x = plain.requires_grad_()?;
    assert!(x.is_leaf() && x.requires_grad());
    // The tensor it was made from is another one.
    assert!(!plain.requires_grad());
    let y = x.mul(2.0)?;
    assert!(!y.is_leaf() && y.requires_grad() && y.grad().is_none());
    assert!(!y.detach().requires_grad() && y.detach().is_leaf());
    assert!(!y.gt(1.0)?.requires_grad() && !x.argmax(0, false)?.requires_grad());
    assert!(!plain.mul(2.0)?.requires_grad());
    // Clones are the same leaf.
    x.clone().mul(3.0)?.sum(())?.backward()?;
    assert_eq!(grad_of(&x), [3.0, 3.0]);
    let error = Tensor::ones([2], DType::I64, &cpu())?
        .requires_grad_()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DType);
    let error = plain.sum(())?.backward().unwrap_err();
    assert!(
        error.to_string().contains("requires no gradient"),
        "{error}"
    );
    Ok(())
}

#[test]
fn gradients_accumulate_until_forgotten() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    x.square()?.sum(())?.backward()?;
    let held = x.grad().unwrap();
    x.square()?.sum(())?.backward()?;
    assert_eq!(grad_of(&x), [4.0, 8.0]);
    // Who holds the first gradient keeps its value.
    assert_eq!(values(&held), [2.0, 4.0]);
    x.zero_grad();
    assert!(x.grad().is_none());
    // One leaf used many times in one graph.
    x.mul(&x)?.mul(&x)?.add(&x)?.sum(())?.backward()?;
    assert_eq!(grad_of(&x), [4.0, 13.0]);
    Ok(())
}

#[test]
fn a_graph_serves_once_unless_retained() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    let y = x.exp()?.sum(())?;
    y.backward()?;
    let error = y.backward().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(
        error.to_string().contains("freed by an earlier backward"),
        "{error}"
    );
    x.zero_grad();
    let y = x.square()?.sum(())?;
    y.backward_with(None, RETAIN)?;
    y.backward_with(None, RETAIN)?;
    y.backward()?;
    assert_eq!(grad_of(&x), [6.0, 12.0]);
    assert!(y.backward().is_err());
    Ok(())
}

#[test]
fn backward_starts_from_one_element_or_a_given_gradient() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    let y = x.mul(3.0)?;
    let error = y.backward().unwrap_err();
    assert!(error.to_string().contains("shape [2]"), "{error}");
    let seed = Tensor::from_data([10.0f64, 100.0], &cpu())?;
    y.backward_with(Some(&seed), GradOptions::default())?;
    assert_eq!(grad_of(&x), [30.0, 300.0]);
    let wrong = Tensor::ones([3], DType::F64, &cpu())?;
    let error = x.mul(3.0)?.backward_with(Some(&wrong), RETAIN).unwrap_err();
    assert!(
        error.to_string().contains("[3]") && error.to_string().contains("[2]"),
        "{error}"
    );
    // A leaf of one element is its own loss.
    let single = leaf([5.0]);
    single.backward()?;
    assert_eq!(grad_of(&single), [1.0]);
    Ok(())
}

#[test]
fn functional_gradients_leave_the_leaves_alone() -> Result<()> {
    let (x, unused) = (leaf([1.0, 2.0]), leaf([1.0]));
    let middle = x.square()?;
    let loss = middle.mul(3.0)?.sum(())?;
    let found = autograd::grad_with(&[&loss], &[], &[&x, &middle, &unused, &loss], RETAIN)?;
    let found: Vec<Option<Vec<f64>>> = found.iter().map(|g| g.as_ref().map(values)).collect();
    assert_eq!(
        found,
        [
            Some(vec![6.0, 12.0]),
            Some(vec![3.0, 3.0]),
            None,
            Some(vec![1.0])
        ]
    );
    assert!(x.grad().is_none() && unused.grad().is_none());
    // The same input twice, several outputs, given gradients.
    let (a, b) = (x.mul(2.0)?, x.exp()?.sum(())?);
    let seed = Tensor::from_data([1.0f64, 10.0], &cpu())?;
    let found = autograd::grad_with(&[&a, &b], &[Some(&seed), None], &[&x, &x], RETAIN)?;
    let want = [2.0 + 1f64.exp(), 20.0 + 2f64.exp()];
    for g in found.iter().flatten() {
        assert!(
            values(g)
                .iter()
                .zip(want)
                .all(|(g, w)| (g - w).abs() < 1e-12)
        );
    }
    assert_eq!(found.len(), 2);
    let error = drivetrain_tensor::grad(&[&loss], &[&x.detach()]).unwrap_err();
    assert!(error.to_string().contains("input 0"), "{error}");
    Ok(())
}

#[test]
fn gradients_of_gradients_of_gradients() -> Result<()> {
    let x = leaf([0.5]);
    // x⁴: 4x³, 12x², 24x, 24.
    let mut y = x.pow(4.0)?;
    for want in [0.5, 3.0, 12.0, 24.0] {
        let g = autograd::grad_with(&[&y], &[], &[&x], CREATE)?
            .remove(0)
            .unwrap();
        assert_eq!(values(&g), [want]);
        y = g;
    }
    // Through backward: the gradient is part of the graph.
    x.square()?.backward_with(None, CREATE)?;
    let g = x.grad().unwrap();
    assert!(g.requires_grad());
    x.zero_grad();
    g.mul(5.0)?.backward()?;
    assert_eq!(grad_of(&x), [10.0]);
    Ok(())
}

#[test]
fn an_update_between_forward_and_backward_changes_nothing() -> Result<()> {
    let parameter = Parameter::new(Tensor::from_data([3.0f64], &cpu())?)?;
    let loss = parameter.value().square()?.sum(())?;
    parameter.set(&Tensor::from_data([100.0f64], &cpu())?)?;
    loss.backward()?;
    assert_eq!(values(&parameter.grad().unwrap()), [6.0]);
    assert_eq!(values(&parameter.value()), [100.0]);
    // The same with an optimizer step that works in place.
    parameter.zero_grad();
    let loss = parameter.value().square()?.sum(())?;
    let step = drivetrain_core::Composite::SgdStep {
        momentum: 0.0,
        dampening: 0.0,
        weight_decay: 0.0,
        nesterov: false,
        maximize: false,
    };
    let hyper = Tensor::from_data([0.5f64, 1.0], &cpu())?;
    let one = Tensor::ones([1], DType::F64, &cpu())?;
    parameter.run_in_place(step, &[&one, &hyper], &mut [])?;
    assert_eq!(values(&parameter.value()), [99.5]);
    loss.backward()?;
    assert_eq!(values(&parameter.grad().unwrap()), [200.0]);
    // Buffers too: what was taken keeps its value.
    let buffer = Buffer::new(one.clone());
    let taken = buffer.value();
    buffer.set(&one.mul(7.0)?)?;
    assert_eq!(
        (values(&taken), values(&buffer.value())),
        (vec![1.0], vec![7.0])
    );
    Ok(())
}

#[test]
fn no_grad_concerns_its_thread_only() -> Result<()> {
    let x = leaf([1.0]);
    no_grad(|| {
        assert!(!is_grad_enabled());
        assert!(!x.mul(2.0).unwrap().requires_grad());
        assert!(enable_grad(|| x.mul(2.0).unwrap().requires_grad()));
        assert!(!is_grad_enabled());
        let other = std::thread::scope(|s| s.spawn(|| x.mul(2.0).unwrap().requires_grad()).join());
        assert!(other.unwrap());
    });
    assert!(is_grad_enabled());
    // A panic inside leaves the mode as it was.
    let unwound = std::panic::catch_unwind(|| no_grad(|| panic!("on purpose")));
    assert!(unwound.is_err() && is_grad_enabled());
    Ok(())
}

#[test]
fn hooks_see_complete_gradients_in_order() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for (name, factor) in [("first", 10.0), ("second", 0.5)] {
        let seen = seen.clone();
        x.register_hook(move |g| {
            seen.lock().unwrap().push((name, values(g)));
            g.mul(factor)
        })?;
    }
    // Two uses: one call, with the sum.
    x.mul(2.0)?.add(&x.square()?)?.sum(())?.backward()?;
    assert_eq!(
        *seen.lock().unwrap(),
        [("first", vec![4.0, 6.0]), ("second", vec![40.0, 60.0])]
    );
    assert_eq!(grad_of(&x), [20.0, 30.0]);
    assert!(x.mul(2.0)?.register_hook(|g| Ok(g.clone())).is_err());
    // An error in a hook is the error of backward.
    let y = leaf([1.0]);
    y.register_hook(|g| g.reshape([7usize]))?;
    let error = y.square()?.backward().unwrap_err();
    assert!(error.to_string().contains("reshape"), "{error}");
    Ok(())
}

#[test]
fn anomaly_mode_names_the_op() -> Result<()> {
    let x = leaf([0.0, 4.0]);
    let error = detect_anomaly(|| x.add(1.0)?.log()?.reciprocal()?.sum(())).unwrap_err();
    assert!(
        error.to_string().starts_with("reciprocal: element 0"),
        "{error}"
    );
    // Forward is finite, backward is not: √ at 0 has an infinite slope.
    let error = detect_anomaly(|| x.sqrt()?.sum(())?.backward()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("backward of sqrt") && text.contains("inf"),
        "{text}"
    );
    // Without the mode both pass.
    assert!(x.sqrt()?.sum(())?.backward().is_ok());
    x.zero_grad();
    detect_anomaly(|| x.exp()?.sum(())?.backward())
}

/// On a thread whose stack is small enough that recursion over the graph would overflow it.
fn with_small_stack(body: impl FnOnce() -> Result<()> + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(body)
        .unwrap();
    thread.join().unwrap().unwrap();
}

#[test]
fn a_chain_of_100_000_ops() {
    const N: usize = 100_000;
    with_small_stack(|| {
        let w = leaf([1.0]);
        let mut y = w.clone();
        for _ in 1..N {
            y = y.mul(&w)?;
        }
        y.backward()?;
        // d/dw wⁿ at 1.
        assert_eq!(grad_of(&w), [N as f64]);
        Ok(())
    });
    // Never walked: dropped as it is, also on another thread.
    with_small_stack(|| {
        let w = leaf([1.0]);
        let mut y = w.clone();
        for _ in 1..N {
            y = y.mul(&w)?.exp()?.sub(1.5)?;
        }
        drop(y);
        Ok(())
    });
}

#[test]
fn a_deep_chain_twice_differentiated() {
    // Each step's gradient is recorded as several: the graph of the second pass has more than 100,000 ops.
    const N: usize = 30_000;
    with_small_stack(|| {
        let w = leaf([1.0]);
        let mut y = w.clone();
        for _ in 1..N {
            y = y.mul(&w)?;
        }
        let first = autograd::grad_with(&[&y], &[], &[&w], CREATE)?
            .remove(0)
            .unwrap();
        let second = autograd::grad_with(&[&first], &[], &[&w], RETAIN)?
            .remove(0)
            .unwrap();
        let n = N as f64;
        assert_eq!(
            (values(&first), values(&second)),
            (vec![n], vec![n * (n - 1.0)])
        );
        Ok(())
    });
}

#[test]
fn more_inputs_than_a_mask_has_bits() -> Result<()> {
    let parts: Vec<Tensor> = (0..100).map(|i| leaf([i as f64])).collect();
    let joined = Tensor::cat(&parts.iter().collect::<Vec<_>>(), 0)?;
    joined.square()?.sum(())?.backward()?;
    for (i, part) in parts.iter().enumerate() {
        assert_eq!(grad_of(part), [2.0 * i as f64]);
    }
    Ok(())
}

#[test]
fn tensors_cross_threads() -> Result<()> {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Tensor>();
    shared::<Parameter>();
    shared::<Buffer>();
    shared::<Device>();
    // Forward here, backward there.
    let x = leaf([2.0]);
    let y = x.square()?.sum(())?;
    std::thread::spawn(move || y.backward()).join().unwrap()?;
    assert_eq!(grad_of(&x), [4.0]);
    Ok(())
}
