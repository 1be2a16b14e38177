//! One benchmark a family of ops, forward and where it has one backward.

use criterion::{Criterion, criterion_group, criterion_main};
use drivetrain::nn::loss::{CrossEntropyOptions, cross_entropy};
use drivetrain::tensor::{ConvOptions, Device, MaxPoolOptions, Result, Tensor, no_grad};
use drivetrain_benches::{device, randn};
use std::hint::black_box;

type Run = Box<dyn FnMut() -> Result<()>>;

/// An op by itself; waits for the device, so that queued work counts.
fn forward(device: &Device, op: impl Fn() -> Result<Tensor> + 'static) -> Run {
    let device = device.clone();
    Box::new(move || {
        let _ = black_box(no_grad(&op)?);
        device.synchronize()
    })
}

/// An op and its gradient.
fn with_backward(
    device: &Device,
    inputs: &[&Tensor],
    op: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
) -> Result<Run> {
    let leaves = inputs
        .iter()
        .map(|t| t.requires_grad_())
        .collect::<Result<Vec<_>>>()?;
    let device = device.clone();
    Ok(Box::new(move || {
        op(&leaves)?.sum(())?.backward()?;
        leaves.iter().for_each(Tensor::zero_grad);
        device.synchronize()
    }))
}

fn families(device: &Device) -> Result<Vec<(&'static str, Run)>> {
    let small = randn(&[64], device)?;
    let row = randn(&[1 << 22], device)?;
    let matrix = randn(&[256, 256], device)?;
    let wide = randn(&[4096, 512], device)?;
    let logits = randn(&[4096, 1000], device)?;
    let target = Tensor::randint(0, 1000, [4096], device)?;
    let images = randn(&[16, 64, 32, 32], device)?;
    let kernels = randn(&[128, 64, 3, 3], device)?;
    let (weight, bias) = (randn(&[512], device)?, randn(&[512], device)?);
    let (a, b, c, d, e) = (
        small.clone(),
        row.clone(),
        row.clone(),
        matrix.clone(),
        wide.clone(),
    );
    Ok(vec![
        ("add_small_64", forward(device, move || a.add(&small))),
        ("exp_4m", forward(device, move || b.exp())),
        ("sum_4m", forward(device, move || c.sum(()))),
        ("matmul_256", forward(device, move || d.matmul(&matrix))),
        (
            "transpose_copy",
            forward(device, move || e.t()?.contiguous()),
        ),
        (
            "softmax",
            with_backward(device, &[&wide], |x| x[0].softmax(-1))?,
        ),
        (
            "layer_norm",
            with_backward(device, &[&wide, &weight, &bias], |x| {
                x[0].layer_norm([512], Some(&x[1]), Some(&x[2]), 1e-5)
            })?,
        ),
        (
            "cross_entropy",
            with_backward(device, &[&logits], move |x| {
                cross_entropy(&x[0], &target, &CrossEntropyOptions::default())
            })?,
        ),
        (
            "max_pool2d",
            with_backward(device, &[&images], |x| {
                x[0].max_pool2d(&MaxPoolOptions::new(2))
            })?,
        ),
        (
            "conv2d",
            with_backward(device, &[&images, &kernels], |x| {
                x[0].conv2d(&x[1], None, &ConvOptions::default().padding(1))
            })?,
        ),
    ])
}

fn ops(criterion: &mut Criterion) {
    let device = device().expect("a device that works");
    for (name, mut run) in families(&device).expect("inputs are made") {
        criterion.bench_function(name, |bencher| bencher.iter(|| run().expect("the op runs")));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = ops
}
criterion_main!(benches);
