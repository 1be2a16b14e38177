//! Every differentiable operation against finite differences: first and second order, contiguous and strided.
#![allow(missing_docs)]

mod common;

use common::*;
use drivetrain_tensor::{Result, Tensor};

/// Numbers in 0.3..2.3.
fn positive(seed: u64, dims: &[usize]) -> Tensor {
    values(seed, dims).add(1.3).unwrap()
}

fn one(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) {
    check_gradients(std::slice::from_ref(x), |t| f(&t[0]));
}

#[test]
fn functions_of_one_number() {
    let x = values(1, &[2, 3]);
    let functions: [fn(&Tensor) -> Result<Tensor>; 13] = [
        Tensor::neg,
        Tensor::abs,
        Tensor::square,
        Tensor::exp,
        Tensor::expm1,
        Tensor::sin,
        Tensor::cos,
        Tensor::tan,
        Tensor::tanh,
        Tensor::erf,
        Tensor::sigmoid,
        Tensor::relu,
        Tensor::sign,
    ];
    for f in functions {
        one(&x, f);
    }
    let x = positive(2, &[3, 2]);
    let functions: [fn(&Tensor) -> Result<Tensor>; 8] = [
        Tensor::sqrt,
        Tensor::rsqrt,
        Tensor::reciprocal,
        Tensor::log,
        Tensor::log1p,
        Tensor::log2,
        |x| x.pow(2.5),
        |x| x.clamp(0.5, 2.0),
    ];
    for f in functions {
        one(&x, f);
    }
}

#[test]
fn activations() {
    let x = values(3, &[3, 3]).mul(4.0).unwrap();
    let functions: [fn(&Tensor) -> Result<Tensor>; 15] = [
        Tensor::gelu,
        Tensor::gelu_tanh,
        Tensor::silu,
        Tensor::mish,
        Tensor::softsign,
        Tensor::relu6,
        Tensor::hardsigmoid,
        Tensor::hardswish,
        Tensor::logsigmoid,
        Tensor::selu,
        |x| x.softplus(1.5, 20.0),
        |x| x.elu(0.7),
        |x| x.leaky_relu(0.1),
        |x| x.hardtanh(-0.9, 1.2),
        |x| x.celu(1.3),
    ];
    for f in functions {
        one(&x, f);
    }
    one(&x, |x| x.softmax(1));
    one(&x, |x| x.log_softmax(0));
}

#[test]
fn functions_of_two_with_broadcasting() {
    let inputs = [positive(4, &[2, 1, 3]), positive(5, &[2, 1])];
    let functions: [fn(&Tensor, &Tensor) -> Result<Tensor>; 9] = [
        |a, b| a.add(b),
        |a, b| a.sub(b),
        |a, b| a.mul(b),
        |a, b| a.div(b),
        |a, b| a.pow(b),
        |a, b| a.maximum(b),
        |a, b| a.minimum(b),
        |a, b| a.atan2(b),
        |a, b| a.remainder(b),
    ];
    for f in functions {
        check_gradients(&inputs, |t| f(&t[0], &t[1]));
    }
    let x = positive(6, &[4]);
    let functions: [fn(&Tensor) -> Result<Tensor>; 11] = [
        |x| 2.0 - x,
        |x| 3.0 / x,
        |x| x.mul(0.5),
        |x| x.pow(2.0),
        |x| x.pow(-1.5),
        |x| x.pow(0.0),
        |x| x.atan2(0.7),
        |x| x.maximum(1.0),
        |x| x.minimum(1.0),
        |x| x.remainder(0.7),
        |x| x.floor_divide(0.7),
    ];
    for f in functions {
        one(&x, f);
    }
}

#[test]
fn choices() {
    let mask = values(7, &[2, 3]).gt(0.0).unwrap();
    let inputs = [values(8, &[2, 3]), values(9, &[3])];
    check_gradients(&inputs, |t| t[0].square()?.where_(&mask, &t[1].square()?));
    check_gradients(&inputs, |t| t[0].mul(&t[1])?.masked_fill(&mask, 0.5));
}

#[test]
fn reductions() {
    let x = positive(10, &[2, 3, 2]);
    let functions: [fn(&Tensor) -> Result<Tensor>; 15] = [
        |x| x.sum([0, 2]),
        |x| x.mean(1),
        |x| x.prod(()),
        |x| x.prod_keepdim(-1),
        |x| x.amax(1),
        |x| x.amin([0, 1]),
        |x| x.logsumexp(2),
        |x| x.var([0, 1], 1.0, false),
        |x| x.std(1, 0.0, true),
        |x| x.norm(2.0, (), false),
        |x| x.norm(1.0, 1, true),
        |x| x.norm(3.0, [0, 2], false),
        |x| x.norm(f64::INFINITY, 1, false),
        |x| x.cumsum(1),
        |x| x.cumprod(1),
    ];
    for f in functions {
        one(&x, |x| f(x)?.square());
    }
    one(&x, |x| x.max(1, false)?.0.square());
    one(&x, |x| x.min(-1, true)?.0.square());
    one(&x, |x| x.sort(1, true)?.0.square());
    one(&x, |x| x.topk(2, 1, true)?.0.square());
}

#[test]
fn products_and_look_ups() {
    let (a, b) = (values(11, &[2, 3, 2]), values(12, &[2, 2]));
    check_gradients(&[a.clone(), b.clone()], |t| t[0].matmul(&t[1]));
    check_gradients(&[a.clone(), values(13, &[2, 2, 3])], |t| t[0].matmul(&t[1]));
    check_gradients(&[b.clone(), values(13, &[3, 2, 1])], |t| t[0].matmul(&t[1]));
    check_gradients(&[a.clone(), values(14, &[2])], |t| t[0].matmul(&t[1]));
    check_gradients(&[values(15, &[2]), b.clone()], |t| t[0].matmul(&t[1]));
    check_gradients(&[a.clone(), values(16, &[4, 2]), values(17, &[4])], |t| {
        t[0].linear(&t[1], Some(&t[2]))
    });
    let index =
        |values: &[i64], dims: &[usize]| Tensor::from_slice(values, dims, &device()).unwrap();
    let picks = index(&[2, 0, 2, 2], &[4]);
    one(&a, |x| x.index_select(1, &picks)?.square());
    one(&b, |x| x.embedding(&index(&[1, 1, 0], &[3]))?.square());
    let at = index(&[1, 0, 1, 1], &[2, 2]);
    one(&b, |x| x.gather(1, &at)?.square());
    check_gradients(&[values(18, &[2, 3]), b.clone()], |t| {
        t[0].scatter_add(1, &at, &t[1])?.square()
    });
    let once = index(&[1, 0, 2, 1], &[2, 2]);
    check_gradients(&[values(19, &[2, 3]), b.clone()], |t| {
        t[0].scatter(1, &once, &t[1])?.square()
    });
    check_gradients(&[values(20, &[3, 2]), values(21, &[4, 2])], |t| {
        t[0].index_add(0, &picks, &t[1])?.square()
    });
}

#[test]
fn shapes_and_pieces() {
    let x = values(22, &[2, 3, 4]);
    let functions: [fn(&Tensor) -> Result<Tensor>; 16] = [
        |x| x.reshape([4, 6]),
        |x| x.permute(&[2, 0, 1]),
        |x| x.transpose(0, 2)?.flatten(0, 1),
        |x| x.unsqueeze(1)?.expand([2, 5, 3, 4]),
        |x| x.narrow(2, 1, 2),
        |x| x.slice(2, None, None, -2),
        |x| x.slice(1, Some(1), None, 2),
        |x| x.select(1, -1),
        |x| x.flip(&[0, 2]),
        |x| x.unfold(2, 3, 1),
        |x| x.unfold(1, 2, 2),
        |x| x.diagonal(1, 2),
        |x| x.diagonal(2, 0),
        |x| x.repeat(&[2, 1, 1, 2]),
        |x| x.roll(3, 2),
        |x| x.pad_constant(&[(1, 0), (0, 2), (1, 1)], 0.5),
    ];
    for f in functions {
        one(&x, |x| f(x)?.square());
    }
    one(&x, |x| {
        let pieces = x.split(3, 2)?;
        Tensor::cat(&[&pieces[1], &pieces[0], &x.square()?], -1)?.square()
    });
    let two = [values(23, &[2, 2]), values(24, &[2, 2])];
    check_gradients(&two, |t| Tensor::stack(&[&t[0], &t[1], &t[0]], 1)?.square());
    one(&x, |x| x.contiguous()?.copy()?.square());
}

#[test]
fn a_gradient_adds_to_that_of_other_uses() {
    // B031: each operation beside 3·Σx, in both orders.
    let x = positive(25, &[1, 2, 4, 4]);
    let functions: [fn(&Tensor) -> Result<Tensor>; 10] = [
        |x| x.upsample_nearest(&[8, 8]),
        |x| x.avg_pool2d(&drivetrain_tensor::AvgPoolOptions::new(2)),
        |x| x.max_pool2d(&drivetrain_tensor::MaxPoolOptions::new(2)),
        |x| x.layer_norm([4], None, None, 1e-5),
        |x| x.softmax(-1),
        |x| x.gelu(),
        |x| x.transpose(2, 3)?.narrow(2, 0, 2),
        |x| x.pad(&[1, 1], drivetrain_tensor::PadMode::Reflect),
        |x| x.cumsum(3),
        |x| x.unfold2d(&drivetrain_tensor::FoldOptions::new(2)),
    ];
    for f in functions {
        let alone = x.requires_grad_().unwrap();
        let loss = |x: &Tensor| f(x).unwrap().square().unwrap().sum(()).unwrap();
        loss(&alone).backward().unwrap();
        let want = alone
            .grad()
            .unwrap()
            .add(3.0)
            .unwrap()
            .to_vec::<f64>()
            .unwrap();
        for first in [true, false] {
            let x = x.requires_grad_().unwrap();
            let linear = || x.sum(()).unwrap().mul(3.0).unwrap();
            let total = if first {
                loss(&x).add(&linear())
            } else {
                linear().add(&loss(&x))
            };
            total.unwrap().backward().unwrap();
            close(&x.grad().unwrap(), &want, 1e-13);
        }
    }
}
