//! Element-wise primitives against an oracle in F64 and I128, over dtypes, layouts and awkward shapes.

mod common;

use common::*;
use drivetrain_core::random::Generator;
use drivetrain_core::{BinaryOp, CompareOp, DType, Op, Primitive, Scalar, UnaryOp};

const REAL: [DType; 7] = [
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::U8,
];

fn supported(op: Primitive, dtype: DType) -> bool {
    let meta = hold(dtype, &[1], &[Scalar::I64(1)]).operand.meta();
    cpu().supports(&Op::from(op.clone()), &[meta, meta])
}

/// Two ways to lie: over ops and shapes all have their turn.
fn some_lies(generator: &mut Generator) -> [Lie; 2] {
    [(); 2].map(|()| Lie::ALL[generator.below(6) as usize])
}

fn unary_oracle(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Sign if x.is_nan() => 0.0,
        UnaryOp::Sign => f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Round => x.round_ties_even(),
        UnaryOp::Trunc => x.trunc(),
        UnaryOp::Square => x * x,
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Rsqrt => 1.0 / x.sqrt(),
        UnaryOp::Reciprocal => 1.0 / x,
        UnaryOp::Exp => x.exp(),
        UnaryOp::Expm1 => x.exp_m1(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Log1p => x.ln_1p(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tan => x.tan(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Erf => erf(x),
        UnaryOp::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        UnaryOp::Relu if x.is_nan() => x,
        UnaryOp::Relu => x.max(0.0),
        UnaryOp::LogicalNot => f64::from(u8::from(x == 0.0)),
    }
}

/// By the series of positive terms; by its limit where that is reached.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() >= 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..250 {
        term *= 2.0 * x * x / (2 * n + 1) as f64;
        sum += term;
    }
    sum * (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI
}

#[test]
fn unary() {
    let mut generator = Generator::new(1, 0);
    for &op in UnaryOp::ALL {
        for dtype in DType::ALL {
            if !supported(Primitive::Unary(op), dtype) {
                continue;
            }
            for &dims in SHAPES {
                for lie in some_lies(&mut generator) {
                    let x = scattered(&mut generator, dtype, dims, lie, &mut special(dtype));
                    let out = one(Primitive::Unary(op), &[&x], dtype, dims);
                    let expected: Vec<Scalar> = if dtype.is_float() {
                        let values = x.floats().into_iter();
                        values.map(|x| unary_oracle(op, x).into()).collect()
                    } else {
                        let values = x.integers().into_iter();
                        values.map(|x| integer_unary(op, x, dtype)).collect()
                    };
                    let series = op == UnaryOp::Erf && dtype == DType::F64;
                    let units = if series { 16.0 } else { 4.0 };
                    let what = format!("{} {dtype} {dims:?} {lie:?}", op.name());
                    assert_close(&out, &expected, units, &what);
                }
            }
        }
    }
}

fn integer_unary(op: UnaryOp, x: i64, dtype: DType) -> Scalar {
    let wrapped = match op {
        UnaryOp::Neg => x.wrapping_neg(),
        UnaryOp::Abs if dtype == DType::I32 => (x as i32).wrapping_abs() as i64,
        UnaryOp::Abs => x.wrapping_abs(),
        UnaryOp::Sign => x.signum(),
        UnaryOp::Square => x.wrapping_mul(x),
        UnaryOp::Relu => x.max(0),
        UnaryOp::LogicalNot => 1 - x,
        _ => x,
    };
    cast(Scalar::I64(wrapped), dtype)
}

fn binary_oracle(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Pow => a.powf(b),
        BinaryOp::Maximum | BinaryOp::Minimum if a.is_nan() || b.is_nan() => f64::NAN,
        BinaryOp::Maximum => a.max(b),
        BinaryOp::Minimum => a.min(b),
        BinaryOp::Atan2 => a.atan2(b),
        BinaryOp::Remainder => {
            let rest = a % b;
            let other_sign = rest != 0.0 && (rest < 0.0) != (b < 0.0);
            if other_sign { rest + b } else { rest }
        }
        // As in Python: nothing is known of ∞ ÷ b, and -1 ÷ ∞ is a little below 0.
        BinaryOp::FloorDivide if a.is_infinite() && b != 0.0 => f64::NAN,
        BinaryOp::FloorDivide if b.is_infinite() && a * b < 0.0 => -1.0,
        BinaryOp::FloorDivide => (a / b).floor(),
        BinaryOp::LogicalAnd | BinaryOp::LogicalOr | BinaryOp::LogicalXor => unreachable!(),
    }
}

fn integer_binary(op: BinaryOp, a: i64, b: i64) -> i64 {
    match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Pow if b < 0 => match a {
            1 => 1,
            -1 => 1 - 2 * (b & 1),
            _ => 0,
        },
        BinaryOp::Pow => (0..b.min(64)).fold(1i64, |p, _| p.wrapping_mul(a)),
        BinaryOp::Maximum => a.max(b),
        BinaryOp::Minimum => a.min(b),
        BinaryOp::Remainder | BinaryOp::FloorDivide if b == 0 => 0,
        BinaryOp::Remainder => (a as i128 - b as i128 * floor(a, b)) as i64,
        BinaryOp::FloorDivide => floor(a, b) as i64,
        _ => unreachable!(),
    }
}

fn floor(a: i64, b: i64) -> i128 {
    let (a, b) = (a as i128, b as i128);
    a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0)
}

fn boolean(op: BinaryOp, a: bool, b: bool) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Maximum | BinaryOp::LogicalOr => a || b,
        BinaryOp::Mul | BinaryOp::Minimum | BinaryOp::LogicalAnd => a && b,
        BinaryOp::LogicalXor => a != b,
        _ => unreachable!(),
    }
}

#[test]
fn binary() {
    let mut generator = Generator::new(2, 0);
    for &op in BinaryOp::ALL {
        for dtype in DType::ALL {
            if !supported(Primitive::Binary(op), dtype) {
                continue;
            }
            for &dims in SHAPES {
                for [lie, other] in [some_lies(&mut generator), some_lies(&mut generator)] {
                    // Powers of extreme integers wrap with the type; the oracle counts in I64.
                    let plain = op == BinaryOp::Pow && !dtype.is_float();
                    let mut draw = |g: &mut Generator| match plain {
                        true => moderate(dtype)(g),
                        false => special(dtype)(g),
                    };
                    let a = scattered(&mut generator, dtype, dims, lie, &mut draw);
                    let b = scattered(&mut generator, dtype, dims, other, &mut draw);
                    let out = one(Primitive::Binary(op), &[&a, &b], dtype, dims);
                    let pairs = a.values().into_iter().zip(b.values());
                    let expected: Vec<Scalar> = pairs
                        .map(|(a, b)| match dtype {
                            DType::Bool => boolean(op, a.as_bool(), b.as_bool()).into(),
                            _ if dtype.is_float() => {
                                binary_oracle(op, a.as_f64(), b.as_f64()).into()
                            }
                            _ => {
                                let value = integer_binary(op, a.as_i64(), b.as_i64());
                                cast(Scalar::I64(value), dtype)
                            }
                        })
                        .collect();
                    let what = format!("{} {dtype} {dims:?} {lie:?}", op.name());
                    assert_close(&out, &expected, 4.0, &what);
                }
            }
        }
    }
}

#[test]
fn compare_and_where() {
    let mut generator = Generator::new(3, 0);
    for dtype in DType::ALL {
        for &dims in SHAPES {
            for lie in Lie::ALL {
                let a = scattered(&mut generator, dtype, dims, lie, &mut special(dtype));
                let b = scattered(&mut generator, dtype, dims, Lie::Mixed, &mut special(dtype));
                let mut last = None;
                for &op in CompareOp::ALL {
                    let out = one(Primitive::Compare(op), &[&a, &b], DType::Bool, dims);
                    let holds = |a: Scalar, b: Scalar| {
                        let order = match dtype.is_float() {
                            true => a.as_f64().partial_cmp(&b.as_f64()),
                            false => Some(a.as_i64().cmp(&b.as_i64())),
                        };
                        match op {
                            CompareOp::Eq => order.is_some_and(|o| o.is_eq()),
                            CompareOp::Ne => order.is_none_or(|o| o.is_ne()),
                            CompareOp::Lt => order.is_some_and(|o| o.is_lt()),
                            CompareOp::Le => order.is_some_and(|o| o.is_le()),
                            CompareOp::Gt => order.is_some_and(|o| o.is_gt()),
                            CompareOp::Ge => order.is_some_and(|o| o.is_ge()),
                        }
                    };
                    let pairs = a.values().into_iter().zip(b.values());
                    let expected: Vec<Scalar> = pairs.map(|(a, b)| holds(a, b).into()).collect();
                    let what = format!("{} {dtype} {dims:?} {lie:?}", op.name());
                    assert_close(&out, &expected, 0.0, &what);
                    last = Some(out);
                }
                let condition = last.unwrap();
                let out = one(Primitive::Where, &[&condition, &a, &b], dtype, dims);
                let triples = condition
                    .values()
                    .into_iter()
                    .zip(a.values().into_iter().zip(b.values()));
                let expected: Vec<Scalar> = triples
                    .map(|(c, (a, b))| if c.as_bool() { a } else { b })
                    .collect();
                assert_close(
                    &out,
                    &expected,
                    0.0,
                    &format!("where {dtype} {dims:?} {lie:?}"),
                );
            }
        }
    }
}

#[test]
fn casts_and_copies() {
    let mut generator = Generator::new(4, 0);
    for from in DType::ALL {
        for &dims in SHAPES {
            for lie in Lie::ALL {
                let mut draw = |g: &mut Generator| match (special(from)(g), g.below(3)) {
                    (Scalar::F64(v), 0) => Scalar::F64(v * 200.0),
                    (v, _) => v,
                };
                let x = scattered(&mut generator, from, dims, lie, &mut draw);
                for to in DType::ALL {
                    let out = one(Primitive::Cast { to }, &[&x], to, dims);
                    let values = x.values().into_iter();
                    let expected: Vec<Scalar> = values.map(|v| cast(v, to)).collect();
                    let what = format!("cast {from} to {to} {dims:?} {lie:?}");
                    assert_close(&out, &expected, 0.0, &what);
                }
                let out = one(Primitive::Copy, &[&x], from, dims);
                let what = format!("copy {from} {dims:?} {lie:?}");
                assert_close(&out, &x.values(), 0.0, &what);
            }
        }
    }
}

/// B065: one rule on the vector path and off it.
#[test]
fn float_to_u8_saturates() {
    let inputs = [
        -2.0,
        -0.5,
        0.9,
        255.9,
        256.0,
        300.0,
        1e10,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];
    let expected = [0, 0, 0, 255, 255, 255, 255, 0, 255, 0];
    for (&x, &e) in inputs.iter().zip(&expected) {
        let got = one(
            Primitive::Cast { to: DType::U8 },
            &[&hold_f32(&[1], &[x])],
            DType::U8,
            &[1],
        );
        assert_eq!(got.integers(), [e], "{x}");
        let x = hold_f32(&[1000], &vec![x; 1000]);
        let got = one(Primitive::Cast { to: DType::U8 }, &[&x], DType::U8, &[1000]);
        assert_eq!(got.integers(), vec![e; 1000]);
    }
}

#[test]
fn copies_and_fills_into_windows() {
    let mut generator = Generator::new(5, 0);
    for dtype in DType::ALL {
        for &dims in SHAPES
            .iter()
            .chain(&[&[70usize, 90][..], &[3, 40, 50], &[40, 3, 50]])
        {
            for lie in [
                Lie::Contiguous,
                Lie::Transposed,
                Lie::Stepped,
                Lie::Reversed,
            ] {
                for from in Lie::ALL {
                    let x = scattered(&mut generator, dtype, dims, from, &mut moderate(dtype));
                    let target = scattered(&mut generator, dtype, dims, lie, &mut moderate(dtype));
                    let before = target.buffer_values();
                    let device = cpu();
                    let copy = Op::from(Primitive::Copy);
                    device
                        .execute(&copy, &[x.operand], &[], &[target.operand])
                        .unwrap();
                    assert_close(
                        &target,
                        &x.values(),
                        0.0,
                        &format!("{dtype} {dims:?} {lie:?} {from:?}"),
                    );
                    assert_eq!(target.outside(&before), 0, "{dtype} {dims:?} {lie:?}");
                    let fill = Op::from(Primitive::Fill {
                        value: Scalar::F64(1.0),
                    });
                    device.execute(&fill, &[], &[], &[target.operand]).unwrap();
                    let ones = vec![cast(Scalar::I64(1), dtype); x.values().len()];
                    assert_close(&target, &ones, 0.0, &format!("{dtype} {dims:?} {lie:?}"));
                    assert_eq!(target.outside(&before), 0, "{dtype} {dims:?} {lie:?}");
                }
            }
        }
    }
}

#[test]
fn iota_counts() {
    for dtype in DType::ALL.into_iter().filter(|&d| d != DType::Bool) {
        for &dims in SHAPES.iter().filter(|dims| !dims.is_empty()) {
            for dim in 0..dims.len() {
                let out = one(Primitive::Iota { dim: dim as u8 }, &[], dtype, dims);
                let expected: Vec<Scalar> = indices(dims)
                    .map(|index| Scalar::I64(index[dim] as i64))
                    .map(|v| {
                        if dtype == DType::U8 {
                            Scalar::I64(v.as_i64() & 255)
                        } else {
                            cast(v, dtype)
                        }
                    })
                    .collect();
                assert_close(
                    &out,
                    &expected,
                    0.0,
                    &format!("iota {dtype} {dims:?} {dim}"),
                );
            }
        }
    }
}

#[test]
fn rules_at_the_edges() {
    let pair = |op, a: f32, b: f32| {
        let (a, b) = (hold_f32(&[1], &[a]), hold_f32(&[1], &[b]));
        one(Primitive::Binary(op), &[&a, &b], DType::F32, &[1]).floats()[0]
    };
    assert_eq!(pair(BinaryOp::Pow, 0.0, 0.0), 1.0);
    assert_eq!(pair(BinaryOp::Pow, -2.0, 3.0), -8.0);
    assert!(pair(BinaryOp::Pow, -2.0, 0.5).is_nan());
    assert_eq!(pair(BinaryOp::Remainder, -7.0, 3.0), 2.0);
    assert_eq!(pair(BinaryOp::Remainder, 7.0, -3.0), -2.0);
    assert_eq!(pair(BinaryOp::FloorDivide, -7.0, 2.0), -4.0);
    // 0.1 is a little more than a tenth, so it fits 9 times, as in Python.
    assert_eq!(pair(BinaryOp::FloorDivide, 1.0, 0.1), 9.0);
    for dtype in REAL {
        let values: Vec<Scalar> = [7, 0, 3].map(Scalar::I64).to_vec();
        let a = hold(dtype, &[3], &values);
        let b = hold(
            dtype,
            &[3],
            &[Scalar::I64(0), Scalar::I64(0), Scalar::I64(2)],
        );
        for op in [BinaryOp::Remainder, BinaryOp::FloorDivide] {
            let got = one(Primitive::Binary(op), &[&a, &b], dtype, &[3]);
            if dtype.is_int() {
                assert_eq!(got.integers(), [0, 0, 1], "{dtype} {}", op.name());
            } else {
                assert_eq!(got.floats()[2], 1.0);
            }
        }
    }
}

impl Held {
    fn buffer_values(&self) -> Vec<u8> {
        read(&self.buffer)
    }

    /// How many bytes outside the operand's elements differ from before.
    fn outside(&self, before: &[u8]) -> usize {
        let (layout, size) = (&self.operand.layout, self.operand.dtype.size());
        let mut inside = vec![false; before.len()];
        for index in indices(layout.dims()) {
            let steps = index.iter().zip(layout.strides());
            let at = steps.fold(layout.offset() as isize, |at, (&i, &s)| at + i as isize * s);
            inside[at as usize * size..][..size].fill(true);
        }
        let after = read(&self.buffer);
        let pairs = before.iter().zip(&after).zip(inside);
        pairs.filter(|((a, b), inside)| !inside && a != b).count()
    }
}
