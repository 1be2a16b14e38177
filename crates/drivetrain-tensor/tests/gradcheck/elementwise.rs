//! Functions of each element, arithmetic with broadcasting, choices.

use crate::check::{ANY, Checker, Domain, LARGE, POSITIVE, weights};
use drivetrain_tensor::{DType, Result, Tensor};

type Unary = fn(&Tensor) -> Result<Tensor>;

#[test]
fn functions_of_one() {
    let table: &[(&str, Domain, Unary)] = &[
        ("neg", ANY, Tensor::neg),
        ("abs", ANY, Tensor::abs),
        ("sign", ANY, Tensor::sign),
        ("floor", ANY, Tensor::floor),
        ("ceil", ANY, Tensor::ceil),
        ("round", ANY, Tensor::round),
        ("trunc", ANY, Tensor::trunc),
        ("square", ANY, Tensor::square),
        ("sqrt", POSITIVE, Tensor::sqrt),
        ("rsqrt", POSITIVE, Tensor::rsqrt),
        ("reciprocal", ANY, Tensor::reciprocal),
        ("exp", ANY, Tensor::exp),
        ("expm1", ANY, Tensor::expm1),
        ("log", POSITIVE, Tensor::log),
        ("log1p", POSITIVE, Tensor::log1p),
        ("log2", POSITIVE, Tensor::log2),
        ("sin", ANY, Tensor::sin),
        ("cos", ANY, Tensor::cos),
        ("tan", ANY.times(0.5), Tensor::tan),
        ("tanh", ANY, Tensor::tanh),
        ("erf", ANY, Tensor::erf),
        ("sigmoid", ANY, Tensor::sigmoid),
        ("relu", ANY, Tensor::relu),
        ("gelu", ANY, Tensor::gelu),
        ("gelu_tanh", ANY, Tensor::gelu_tanh),
        ("silu", ANY, Tensor::silu),
        ("mish", ANY, Tensor::mish),
        ("softplus", ANY, |x| x.softplus(1.5, 20.0)),
        ("softplus past its threshold", ANY, |x| x.softplus(2.0, 1.0)),
        ("softsign", ANY, Tensor::softsign),
        ("elu", ANY, |x| x.elu(0.7)),
        ("leaky_relu", ANY, |x| x.leaky_relu(0.1)),
        ("relu6", ANY.times(4.0), Tensor::relu6),
        ("hardsigmoid", ANY.times(2.0), Tensor::hardsigmoid),
        ("hardswish", ANY.times(2.0), Tensor::hardswish),
        ("logsigmoid", ANY, Tensor::logsigmoid),
        ("hardtanh", ANY, |x| x.hardtanh(-1.0, 0.5)),
        ("selu", ANY, Tensor::selu),
        ("celu", ANY, |x| x.celu(0.8)),
        ("clamp", ANY, |x| x.clamp(-1.0, 1.0)),
        ("clamp from below", ANY, |x| x.clamp(-0.5, None)),
        ("clamp from above", ANY, |x| x.clamp(None, 0.5)),
        ("clamp crossed", ANY, |x| x.clamp(1.0, 0.5)),
        ("copy", ANY, Tensor::copy),
        ("contiguous", ANY, Tensor::contiguous),
        ("to_dtype", ANY, |x| x.to_dtype(DType::F64)),
    ];
    let mut checker = Checker::default();
    for &(name, domain, f) in table {
        checker.check(name, &[&[3, 4]], domain, &|x| f(&x[0]));
        checker.check(name, &[&[]], domain, &|x| f(&x[0]));
    }
    checker.done();
}

#[test]
fn functions_of_two_broadcast() {
    type Binary = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let table: &[(&str, Domain, Binary)] = &[
        ("add", ANY, |a, b| a.add(b)),
        ("sub", ANY, |a, b| a.sub(b)),
        ("mul", ANY, |a, b| a.mul(b)),
        ("div", ANY, |a, b| a.div(b)),
        ("pow", POSITIVE, |a, b| a.pow(b)),
        ("maximum", ANY, |a, b| a.maximum(b)),
        ("minimum", ANY, |a, b| a.minimum(b)),
        ("atan2", ANY, |a, b| a.atan2(b)),
        ("remainder", LARGE, |a, b| a.mul(3.0)?.remainder(b)),
        ("floor_divide", LARGE, |a, b| a.mul(3.0)?.floor_divide(b)),
    ];
    let mut checker = Checker::default();
    let shapes: [[&[usize]; 2]; 5] = [
        [&[2, 3], &[2, 3]],
        [&[3, 1], &[1, 4]],
        [&[], &[2, 3]],
        [&[3], &[2, 1, 3]],
        [&[2, 3], &[3]],
    ];
    for &(name, domain, f) in table {
        for pair in shapes {
            checker.check(&format!("{name} {pair:?}"), &pair, domain, &|x| {
                f(&x[0], &x[1])
            });
        }
        // The same tensor on both sides gets both gradients.
        checker.check(&format!("{name} with itself"), &[&[3]], domain, &|x| {
            f(&x[0], &x[0].mul(1.01)?)
        });
    }
    checker.done();
}

#[test]
fn functions_with_a_number() {
    let table: &[(&str, Domain, Unary)] = &[
        ("x + 2", ANY, |x| x + 2.0),
        ("2 - x", ANY, |x| 2.0 - x),
        ("x - 2", ANY, |x| x - 2.0),
        ("x * 3", ANY, |x| x * 3.0),
        ("x / 3", ANY, |x| x / 3.0),
        ("3 / x", ANY, |x| 3.0 / x),
        ("x ^ 0", ANY, |x| x.pow(0.0)),
        ("x ^ 1", ANY, |x| x.pow(1.0)),
        ("x ^ 2", ANY, |x| x.pow(2.0)),
        ("x ^ 3", ANY, |x| x.pow(3.0)),
        ("x ^ -1.5", POSITIVE, |x| x.pow(-1.5)),
        ("x ^ 0.5", POSITIVE, |x| x.pow(0.5)),
        ("max(x, 0.5)", ANY, |x| x.maximum(0.5)),
        ("min(x, 0.5)", ANY, |x| x.minimum(0.5)),
        ("atan2(x, 1.5)", ANY, |x| x.atan2(1.5)),
        ("x % 0.7", LARGE, |x| x.mul(1.3)?.remainder(7.0)),
        ("x // 0.7", LARGE, |x| x.floor_divide(7.0)),
        ("masked_fill", ANY, |x| x.masked_fill(&x.gt(0.5)?, 3.0)),
        ("where with a number", ANY, |x| x.where_(&x.gt(0.5)?, 3.0)),
    ];
    let mut checker = Checker::default();
    for &(name, domain, f) in table {
        checker.check(name, &[&[3, 4]], domain, &|x| f(&x[0]));
    }
    checker.done();
}

#[test]
fn numbers_on_the_left() {
    use drivetrain_core::{BinaryOp, Composite, Scalar};
    let mut checker = Checker::default();
    for (op, number, domain) in [
        (BinaryOp::Pow, 1.7, ANY),
        (BinaryOp::Atan2, 1.5, ANY),
        (BinaryOp::Maximum, 0.5, ANY),
        (BinaryOp::Minimum, 0.5, ANY),
        (BinaryOp::Div, -2.0, ANY),
        (BinaryOp::Remainder, 3.3, LARGE),
        (BinaryOp::FloorDivide, 3.3, LARGE),
    ] {
        checker.check(&format!("{number} {op:?} x"), &[&[3, 4]], domain, &|x| {
            let op = Composite::BinaryScalar {
                op,
                scalar: Scalar::F64(number),
                reversed: true,
            };
            Ok(drivetrain_tensor::run(op, &[&x[0]])?.remove(0))
        });
    }
    checker.done();
}

#[test]
fn choices() {
    let mut checker = Checker::default();
    let mask = weights(&[3, 4]).gt(0.3).unwrap();
    checker.check("where", &[&[3, 4], &[3, 4]], ANY, &|x| {
        x[0].where_(&mask, &x[1])
    });
    checker.check("where broadcast", &[&[4], &[3, 1]], ANY, &|x| {
        x[0].where_(&mask, &x[1])
    });
    checker.check("where scalar", &[&[], &[3, 4]], ANY, &|x| {
        x[0].where_(&mask, &x[1])
    });
    checker.done();
}
