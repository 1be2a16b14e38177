//! Reductions, arg-reductions and running sums against an oracle, and the traps of sums and ties.

mod common;

use common::*;
use drivetrain_core::random::Generator;
use drivetrain_core::{
    ArgReduceOp, CumulativeOp, DType, DimSet, Layout, Primitive, ReduceOp, Scalar, Shape,
};
use std::cmp::Ordering;

fn reduce(op: ReduceOp, dims: DimSet, dtype: DType) -> Primitive {
    Primitive::Reduce {
        op,
        dims,
        accumulate: dtype.accumulator(),
    }
}

fn result_dtype(op: ReduceOp, dtype: DType) -> DType {
    match op {
        ReduceOp::Max | ReduceOp::Min => dtype,
        _ if dtype.is_float() => dtype,
        _ => DType::I64,
    }
}

fn join(op: ReduceOp, dtype: DType, a: Scalar, b: Scalar) -> Scalar {
    if dtype.is_float() {
        let (a, b) = (a.as_f64(), b.as_f64());
        return Scalar::F64(match op {
            ReduceOp::Sum => a + b,
            ReduceOp::Prod => a * b,
            _ if a.is_nan() || b.is_nan() => f64::NAN,
            ReduceOp::Max => a.max(b),
            ReduceOp::Min => a.min(b),
        });
    }
    let (a, b) = (a.as_i64(), b.as_i64());
    Scalar::I64(match op {
        ReduceOp::Sum => a.wrapping_add(b),
        ReduceOp::Prod => a.wrapping_mul(b),
        ReduceOp::Max => a.max(b),
        ReduceOp::Min => a.min(b),
    })
}

/// The oracle, and how much the joined values weigh (for the tolerance of sums that cancel).
fn reduced(op: ReduceOp, set: DimSet, x: &Held) -> (Vec<usize>, Vec<(Scalar, f64)>) {
    let dims = x.dims();
    let kept: Vec<usize> = (0..dims.len())
        .map(|d| if set.contains(d) { 1 } else { dims[d] })
        .collect();
    let mut results: Vec<Option<(Scalar, f64)>> = vec![None; kept.iter().product()];
    for (index, value) in indices(dims).zip(x.values()) {
        let at: Vec<usize> = (0..dims.len())
            .map(|d| if set.contains(d) { 0 } else { index[d] })
            .collect();
        let slot = &mut results[number(&kept, &at)];
        let weight = value.as_f64().abs();
        *slot = Some(match *slot {
            None => (value, weight),
            Some((sum, weights)) => (join(op, x.operand.dtype, sum, value), weights + weight),
        });
    }
    (kept, results.into_iter().map(Option::unwrap).collect())
}

const BIG: &[&[usize]] = &[
    &[70, 40, 3],
    &[3, 2000],
    &[2000, 20],
    &[40, 1030],
    &[3, 70_000],
];

fn check_reduction(op: ReduceOp, set: DimSet, x: &Held, what: &str) {
    let dtype = x.operand.dtype;
    let (dims, expected) = reduced(op, set, x);
    let result = result_dtype(op, dtype);
    let out = one(reduce(op, set, dtype), &[x], result, &dims);
    for (i, (got, (expected, weight))) in out.values().into_iter().zip(expected).enumerate() {
        let expected = cast(expected, result);
        let slack = match op {
            // The oracle adds one after the other in F64, and errs more than what it judges there.
            ReduceOp::Sum if dtype == DType::F64 => 100.0 * unit(dtype) * weight,
            ReduceOp::Sum => 4.0 * unit(dtype) * weight,
            _ => 0.0,
        };
        let units = if op == ReduceOp::Prod { 2000.0 } else { 4.0 };
        let near = (got.as_f64() - cast(expected, dtype).as_f64()).abs() <= slack;
        assert!(
            close(got, expected, result, units) || (dtype.is_float() && near),
            "{what}: element {i} is {got}, expected {expected}"
        );
    }
}

#[test]
fn every_set_of_dimensions() {
    let mut generator = Generator::new(1, 0);
    for dtype in DType::ALL {
        for &dims in SHAPES {
            for bits in 0..1u16 << dims.len() {
                for (i, lie) in Lie::ALL.into_iter().enumerate() {
                    // Ops take turns: every shape sees all, with other layouts.
                    let op = ReduceOp::ALL[(i + bits as usize + dims.len()) % 4];
                    let mut draw = |g: &mut Generator| match op {
                        ReduceOp::Max | ReduceOp::Min => special(dtype)(g),
                        // Long products neither overflow nor vanish.
                        ReduceOp::Prod if dtype.is_float() => (1.0 + 0.01 * g.normal()).into(),
                        _ => moderate(dtype)(g),
                    };
                    let x = scattered(&mut generator, dtype, dims, lie, &mut draw);
                    let what = format!("{} {dtype} {dims:?} {bits:b} {lie:?}", op.name());
                    check_reduction(op, DimSet::from_bits(bits), &x, &what);
                }
            }
        }
    }
}

#[test]
fn segments_and_wide_rows() {
    let mut generator = Generator::new(2, 0);
    for dtype in [DType::F32, DType::F16, DType::I64, DType::U8] {
        for &dims in BIG {
            for bits in 1..1u16 << dims.len() {
                for lie in [Lie::Contiguous, Lie::Transposed, Lie::Mixed] {
                    for op in [ReduceOp::Sum, ReduceOp::Max] {
                        let mut draw = moderate(dtype);
                        let x = scattered(&mut generator, dtype, dims, lie, &mut draw);
                        let what = format!("{} {dtype} {dims:?} {bits:b} {lie:?}", op.name());
                        check_reduction(op, DimSet::from_bits(bits), &x, &what);
                    }
                }
            }
        }
    }
}

fn sum_of(dtype: DType, dims: &[usize], set: DimSet, out: &[usize], value: f64) -> Vec<f64> {
    let n: usize = dims.iter().product();
    let bytes = encode(&[Scalar::F64(value)], dtype).repeat(n);
    let buffer = cpu().allocate(bytes.len()).unwrap();
    buffer.upload(&bytes, 0).unwrap();
    let layout = Layout::contiguous(Shape::new(dims).unwrap());
    let operand = buffer.operand(dtype, layout);
    let x = Held { buffer, operand };
    one(
        reduce(ReduceOp::Sum, set, dtype),
        &[&x],
        result_dtype(ReduceOp::Sum, dtype),
        out,
    )
    .floats()
}

/// B048: a serial F32 loop stops at 2²⁴.
#[test]
fn long_sums_are_exact() {
    let all = DimSet::of(&[0, 1]);
    let n = 33_554_432;
    assert_eq!(
        sum_of(DType::F32, &[n], DimSet::of(&[0]), &[1], 1.0),
        [n as f64]
    );
    // The same through rows: 2 columns at a time, and 64.
    assert_eq!(
        sum_of(DType::F32, &[n / 64, 64], all, &[1, 1], 1.0),
        [n as f64]
    );
    let rows = DimSet::of(&[0]);
    assert_eq!(
        sum_of(DType::F32, &[n / 2, 2], rows, &[1, 2], 1.0),
        [n as f64 / 2.0; 2]
    );
    let sum = sum_of(DType::F32, &[20_000_000], rows, &[1], 0.1);
    assert!((sum[0] / 2e7 - 0.1).abs() < 1e-6 * 0.1, "{sum:?}");
}

/// B047: halves are summed in F32. (A mean divides before it rounds; its sum fits where the result does.)
#[test]
fn sums_of_halves_do_not_stall() {
    for dtype in [DType::F16, DType::BF16] {
        let sums = sum_of(dtype, &[2, 30_000], DimSet::of(&[1]), &[2, 1], 1.0);
        assert!(
            sums.iter().all(|s| (s - 30_000.0).abs() <= 64.0),
            "{sums:?}"
        );
        let sums = sum_of(dtype, &[30_000, 20], DimSet::of(&[0]), &[1, 20], 1.0);
        assert!(
            sums.iter().all(|s| (s - 30_000.0).abs() <= 64.0),
            "{sums:?}"
        );
    }
}

/// B066: small integers are summed in I64.
#[test]
fn sums_of_bytes_do_not_wrap() {
    assert_eq!(
        sum_of(DType::U8, &[1000], DimSet::of(&[0]), &[1], 255.0),
        [255_000.0]
    );
    assert_eq!(
        sum_of(DType::Bool, &[300], DimSet::of(&[0]), &[1], 1.0),
        [300.0]
    );
    assert_eq!(sum_of(DType::I32, &[4], DimSet::of(&[0]), &[1], 2e9), [8e9]);
}

fn arg_oracle(op: ArgReduceOp, dim: usize, x: &Held) -> (Vec<usize>, Vec<Scalar>) {
    let mut kept = x.dims().to_vec();
    kept[dim] = 1;
    let mut best: Vec<Option<(Scalar, i64)>> = vec![None; kept.iter().product()];
    let float = x.operand.dtype.is_float();
    let beats = |new: Scalar, old: Scalar| {
        let order = match float {
            true if old.as_f64().is_nan() => return false,
            true if new.as_f64().is_nan() => return true,
            true => new.as_f64().partial_cmp(&old.as_f64()).unwrap(),
            false => new.as_i64().cmp(&old.as_i64()),
        };
        match op {
            ArgReduceOp::Max => order == Ordering::Greater,
            ArgReduceOp::Min => order == Ordering::Less,
        }
    };
    for (mut index, value) in indices(x.dims()).zip(x.values()) {
        let at = std::mem::take(&mut index[dim]) as i64;
        let slot = &mut best[number(&kept, &index)];
        if slot.is_none_or(|(old, _)| beats(value, old)) {
            *slot = Some((value, at));
        }
    }
    let found = best.into_iter().map(|b| Scalar::I64(b.unwrap().1));
    (kept, found.collect())
}

#[test]
fn arg_reductions() {
    let mut generator = Generator::new(3, 0);
    for dtype in DType::ALL {
        for &dims in SHAPES.iter().chain(&[&[3usize, 40, 21][..]]) {
            for dim in 0..dims.len() {
                for (lie, &op) in Lie::ALL.into_iter().zip(ArgReduceOp::ALL.iter().cycle()) {
                    let x = scattered(&mut generator, dtype, dims, lie, &mut special(dtype));
                    let (kept, expected) = arg_oracle(op, dim, &x);
                    let op = Primitive::ArgReduce { op, dim: dim as u8 };
                    let out = one(op.clone(), &[&x], DType::I64, &kept);
                    assert_close(
                        &out,
                        &expected,
                        0.0,
                        &format!("{op:?} {dtype} {dims:?} {lie:?}"),
                    );
                }
            }
        }
    }
}

/// B059 and B060.
#[test]
fn ties_and_sizes_of_one() {
    let argmax = |dims: &[usize], dim: usize, values: &[f32]| {
        let mut kept = dims.to_vec();
        kept[dim] = 1;
        let op = Primitive::ArgReduce {
            op: ArgReduceOp::Max,
            dim: dim as u8,
        };
        one(op, &[&hold_f32(dims, values)], DType::I64, &kept).integers()
    };
    assert_eq!(argmax(&[4], 0, &[1.0, 3.0, 3.0, 3.0]), [1]);
    assert_eq!(argmax(&[100_000], 0, &vec![2.0; 100_000]), [0]);
    assert_eq!(argmax(&[3], 0, &[1.0, f32::NAN, 3.0]), [1]);
    let rows = [1.0, 5.0, 5.0, 0.0, 7.0, 7.0, 1.0, 7.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(argmax(&[3, 4], 1, &rows), [1, 0, 0]);
    assert_eq!(
        argmax(&[40, 900, 1], 2, &vec![0.0; 36_000]),
        vec![0; 36_000]
    );
}

#[test]
fn running_sums_and_products() {
    let mut generator = Generator::new(4, 0);
    for dtype in DType::ALL {
        for &dims in SHAPES {
            for dim in 0..dims.len() {
                for (lie, &op) in Lie::ALL.into_iter().zip(CumulativeOp::ALL.iter().cycle()) {
                    let x = scattered(&mut generator, dtype, dims, lie, &mut moderate(dtype));
                    let result = if dtype.is_float() { dtype } else { DType::I64 };
                    let join_op = match op {
                        CumulativeOp::Sum => ReduceOp::Sum,
                        CumulativeOp::Prod => ReduceOp::Prod,
                    };
                    let mut expected = x.values();
                    for index in indices(dims).filter(|index| index[dim] > 0) {
                        let mut before = index.clone();
                        before[dim] -= 1;
                        let (at, before) = (number(dims, &index), number(dims, &before));
                        expected[at] = join(join_op, dtype, expected[before], expected[at]);
                    }
                    let expected: Vec<Scalar> =
                        expected.into_iter().map(|v| cast(v, result)).collect();
                    let out = one(
                        Primitive::Cumulative { op, dim: dim as u8 },
                        &[&x],
                        result,
                        dims,
                    );
                    assert_close(
                        &out,
                        &expected,
                        4.0,
                        &format!("{op:?} {dtype} {dims:?} {lie:?}"),
                    );
                }
            }
        }
    }
}
