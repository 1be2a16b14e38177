//! Inputs on which other frameworks were reported to go wrong: values, gradients and errors of tensor operations.
#![allow(missing_docs)]

mod common;

use common::*;
use drivetrain_tensor::{DType, Operand, Result, Tensor};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn leaf(values: &[f64], dims: &[usize]) -> Tensor {
    f64s(values, dims).requires_grad_().unwrap()
}

#[track_caller]
fn gradient(y: &Tensor, x: &Tensor) -> Tensor {
    y.sum(()).unwrap().backward().unwrap();
    x.grad().unwrap()
}

#[test]
fn products_of_views() {
    // B001: a row picked out of a 3-D tensor.
    let x = count(0, &[2, 3, 4]).select(1, 2).unwrap();
    assert_eq!(x.strides(), [12, 1]);
    let w = count(0, &[3, 4]).t().unwrap();
    equal(
        &x.matmul(&w).unwrap(),
        &[62.0, 214.0, 366.0, 134.0, 478.0, 822.0],
    );
    // B002: broadcast views.
    let a = f64s(&[1.0, 2.0, 3.0], &[1, 3]).expand([2, 3]).unwrap();
    let b = f64s(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], &[3, 2]);
    equal(&a.matmul(&b).unwrap(), &[4.0, 5.0, 4.0, 5.0]);
    // B003: batches of any rank.
    let a = count(0, &[2, 3]).expand([1, 2, 1, 2, 3]).unwrap();
    let b = count(0, &[1, 2, 1, 3, 2]);
    let y = a.matmul(&b).unwrap();
    assert_eq!(y.dims(), [1, 2, 1, 2, 2]);
    equal(&y, &[10.0, 13.0, 28.0, 40.0, 28.0, 31.0, 100.0, 112.0]);
    // B006: a cast of a broadcast view.
    let b = f64s(&[1.5, 2.5, -3.7], &[3, 1]).expand([3, 3]).unwrap();
    let whole = b.to_dtype(DType::I64).unwrap();
    equal(&whole, &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, -3.0, -3.0, -3.0]);
    let turned = b.t().unwrap().to_dtype(DType::I64).unwrap();
    equal(&turned, &[1.0, 2.0, -3.0, 1.0, 2.0, -3.0, 1.0, 2.0, -3.0]);
}

#[test]
fn repeated_indices_add_up() {
    // B030.
    let index = Tensor::from_slice(&[2i64, 0, 2, 2], [4], &device()).unwrap();
    let weights = f64s(&[1.0, 2.0, 4.0, 8.0], &[4]);
    let x = leaf(&[10.0, 20.0, 30.0], &[3]);
    let y = x.index_select(0, &index).unwrap().mul(&weights).unwrap();
    equal(&gradient(&y, &x), &[2.0, 0.0, 13.0]);
    let x = leaf(&[10.0, 20.0, 30.0], &[3]);
    let y = x.gather(0, &index).unwrap().mul(&weights).unwrap();
    equal(&gradient(&y, &x), &[2.0, 0.0, 13.0]);
    let x = leaf(&[10.0, 20.0, 30.0], &[3, 1]);
    let y = x
        .embedding(&index)
        .unwrap()
        .squeeze(1)
        .unwrap()
        .mul(&weights)
        .unwrap();
    equal(&gradient(&y, &x), &[2.0, 0.0, 13.0]);
}

#[test]
fn gradients_at_special_places() {
    // B034.
    let x = leaf(&[-2.0, 0.0, 3.0], &[3]);
    close(
        &gradient(&x.silu().unwrap(), &x),
        &[-0.0907842, 0.5, 1.0881041],
        1e-6,
    );
    // B035.
    let (x, a) = (leaf(&[1.0, 2.0, 3.0], &[3]), leaf(&[INF, NAN, -INF], &[3]));
    let chosen = Tensor::from_slice(&[true, false, true], [3], &device()).unwrap();
    let y = x.where_(&chosen, &a).unwrap();
    equal(&gradient(&y, &x), &[1.0, 0.0, 1.0]);
    equal(&a.grad().unwrap(), &[0.0, 1.0, 0.0]);
    // B036.
    let x = leaf(&[INF, 0.5, -INF, 2.0, -2.0], &[5]);
    let y = x.clamp(0.0, 1.0).unwrap();
    equal(&y, &[1.0, 0.5, 0.0, 1.0, 0.0]);
    equal(&gradient(&y, &x), &[0.0, 1.0, 0.0, 0.0, 0.0]);
    // B037.
    let x = leaf(&[0.0; 3], &[3]);
    equal(&gradient(&x.norm(2.0, (), false).unwrap(), &x), &[0.0; 3]);
    let x = leaf(&[2.0; 4], &[4]);
    equal(&gradient(&x.std((), 1.0, false).unwrap(), &x), &[0.0; 4]);
    let x = leaf(&[0.0], &[1]);
    equal(&gradient(&x.sqrt().unwrap(), &x), &[INF]);
}

#[test]
fn powers_of_zero_and_of_negatives() {
    // B038.
    let base = leaf(&[0.0, 0.0, -2.0, -2.0, 0.0], &[5]);
    let exponent = leaf(&[0.0, 2.0, 3.0, 2.0, 1.0], &[5]);
    let y = base.pow(Operand::from(&exponent)).unwrap();
    equal(&y, &[1.0, 0.0, -8.0, 4.0, 0.0]);
    equal(&gradient(&y, &base), &[0.0, 0.0, 12.0, -4.0, 1.0]);
    equal(&exponent.grad().unwrap(), &[0.0, 0.0, NAN, NAN, 0.0]);
}

#[test]
fn ties_share_or_the_first_wins() {
    // B039.
    let x = leaf(&[1.0, 3.0, 3.0], &[3]);
    equal(&gradient(&x.amax(()).unwrap(), &x), &[0.0, 0.5, 0.5]);
    let x = leaf(&[1.0, 3.0, 3.0], &[3]);
    let (y, at) = x.max(0, false).unwrap();
    equal(&at, &[1.0]);
    equal(&gradient(&y, &x), &[0.0, 1.0, 0.0]);
}

#[test]
fn what_was_broadcast_is_summed() {
    // B043.
    let (a, b) = (
        leaf(&[1.0, 2.0, 3.0], &[3, 1]),
        leaf(&[1.0, 10.0, 100.0, 1000.0], &[1, 4]),
    );
    let y = a.mul(&b).unwrap();
    let da = gradient(&y, &a);
    assert_eq!(da.dims(), [3, 1]);
    equal(&da, &[1111.0; 3]);
    equal(&b.grad().unwrap(), &[6.0; 4]);
    let s = leaf(&[2.0], &[]);
    let y = count(1, &[2, 3]).mul(&s).unwrap();
    let ds = gradient(&y, &s);
    assert_eq!(ds.rank(), 0);
    equal(&ds, &[21.0]);
    let v = leaf(&[1.0, 2.0, 3.0], &[3]);
    let y = count(1, &[2, 1, 3]).mul(&v).unwrap();
    equal(&gradient(&y, &v), &[5.0, 7.0, 9.0]);
}

#[test]
fn softmax_of_large_and_of_masked_logits() {
    // B045.
    let x = f32s(&[-1e7, -1e7 + 1.0, -1e7 + 2.0], &[3]);
    close(
        &x.log_softmax(0).unwrap(),
        &[-2.4076059, -1.4076059, -0.4076059],
        1e-6,
    );
    let x = f32s(&[0.0, 1000.0, -1000.0], &[3]);
    equal(&x.log_softmax(0).unwrap(), &[-1000.0, 0.0, -2000.0]);
    // B046.
    equal(&f64s(&[-INF, -INF], &[2]).logsumexp(0).unwrap(), &[-INF]);
    equal(
        &f64s(&[0.0, -INF, -INF], &[3]).softmax(0).unwrap(),
        &[1.0, 0.0, 0.0],
    );
    let x = leaf(&[0.5, -INF, 1.5], &[3]);
    let y = x.softmax(0).unwrap();
    close(&y, &[0.2689414, 0.0, 0.7310586], 1e-7);
    let dx = gradient(&y.select(0, 0).unwrap(), &x);
    close(&dx, &[0.1966119, 0.0, -0.1966119], 1e-7);
    equal(&f64s(&[-INF, -INF], &[2]).softmax(0).unwrap(), &[NAN, NAN]);
    let x = leaf(&[INF, 1.0], &[2]);
    equal(&x.logsumexp(0).unwrap(), &[INF]);
}

#[test]
fn sums_are_wide_enough() {
    // B047, B048, B066.
    for dtype in [DType::F16, DType::BF16] {
        let ones = Tensor::ones([100_000], dtype, &device()).unwrap();
        equal(&ones.mean(()).unwrap(), &[1.0]);
        let ones = Tensor::ones([2, 70_000], dtype, &device()).unwrap();
        equal(&ones.mean(1).unwrap(), &[1.0, 1.0]);
    }
    let big = Tensor::full([3], 40000.0, DType::F16, &device()).unwrap();
    equal(&big.mean(()).unwrap(), &[40000.0]);
    let ones = Tensor::ones([33_554_432], DType::F32, &device()).unwrap();
    equal(&ones.sum(()).unwrap(), &[33_554_432.0]);
    let bytes = Tensor::full([1000], 255, DType::U8, &device()).unwrap();
    equal(&bytes.sum(()).unwrap(), &[255_000.0]);
    equal(&bytes.mean(()).unwrap(), &[255.0]);
    let flags = Tensor::full([300], true, DType::Bool, &device()).unwrap();
    equal(&flags.sum(()).unwrap(), &[300.0]);
}

#[test]
fn extremes_of_ties_and_nan() {
    // B059, B060.
    let first = |values: &[f64], dims: &[usize]| f64s(values, dims).argmax(-1, false).unwrap();
    equal(&first(&[1.0, 3.0, 3.0, 3.0], &[4]), &[1.0]);
    equal(&first(&vec![2.0; 100_000], &[100_000]), &[0.0]);
    equal(&first(&[1.0, NAN, 3.0], &[3]), &[1.0]);
    equal(
        &first(&[1.0, 2.0, 2.0, 5.0, 5.0, 0.0], &[2, 3]),
        &[1.0, 0.0],
    );
    let one = Tensor::zeros([40, 900, 1], DType::F32, &device()).unwrap();
    let at = one.argmax(2, false).unwrap().to_vec::<i64>().unwrap();
    assert!(at.len() == 36_000 && at.iter().all(|i| *i == 0));
    let x = f64s(&[2.0, NAN, -INF, 1.0], &[4]);
    equal(&x.sort(0, false).unwrap().0, &[-INF, 1.0, 2.0, NAN]);
    equal(&x.sort(0, true).unwrap().0, &[NAN, 2.0, 1.0, -INF]);
}

#[test]
fn mistakes_are_errors_with_their_numbers() {
    // B064a, B063, B111.
    refused(
        Tensor::zeros([1usize << 33, 1 << 33], DType::F32, &device()),
        &["size overflow"],
    );
    let x = count(1, &[2, 3]);
    refused(x.reshape([4usize, 2]), &["reshape", "[2, 3]", "4"]);
    refused(x.matmul(&x), &["matmul", "[2, 3]"]);
    refused(x.select(0, 5), &["index 5", "size 2"]);
    refused(x.sum(7), &["sum", "dimension 7", "rank 2"]);
    refused(x.item::<f64>(), &["item", "6 elements"]);
    let y = x.requires_grad_().unwrap().mul(2.0).unwrap();
    refused(y.backward(), &["backward", "[2, 3]"]);
    let loss = y.square().unwrap().sum(()).unwrap();
    loss.backward().unwrap();
    refused(loss.backward(), &["backward"]);
    let at = |values: &[i64]| Tensor::from_slice(values, [values.len()], &device()).unwrap();
    let read = |y: Result<Tensor>| y.and_then(|y| y.to_vec::<f64>());
    let table = count(1, &[3, 2]);
    refused(read(table.index_select(0, &at(&[0, 3]))), &["3", "size 3"]);
    refused(read(table.index_select(0, &at(&[-1]))), &["-1"]);
    refused(read(table.embedding(&at(&[3]))), &["3"]);
    let wide = Tensor::from_slice(&[2i64], [1, 1], &device()).unwrap();
    refused(read(table.gather(1, &wide)), &["2"]);
    refused(
        read(table.scatter_add(1, &wide, &count(1, &[1, 1]))),
        &["2"],
    );
    equal(
        &Tensor::zeros([2], DType::F32, &device())
            .unwrap()
            .add(1.0)
            .unwrap(),
        &[1.0, 1.0],
    );
}

#[test]
fn tensors_cross_threads() {
    // B107.
    fn shared<T: Send + Sync>() {}
    shared::<Tensor>();
    shared::<drivetrain_tensor::Parameter>();
    shared::<drivetrain_tensor::Device>();
    let x = values(1, &[4, 4]);
    let want = x.matmul(&x).unwrap().to_vec::<f64>().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    equal(&x.matmul(&x).unwrap(), &want);
                }
            });
        }
    });
}
