//! Matrix products of every dtype against an oracle.

mod common;

use common::*;
use drivetrain_core::random::Generator;
use drivetrain_core::{DType, Primitive, Scalar};

/// [batch…, m, n] of a [batch…, m, k] and b [batch…, k, n], and the sums of magnitudes.
fn oracle(a: &Held, b: &Held) -> (Vec<usize>, Vec<Scalar>, Vec<f64>) {
    let rank = a.dims().len();
    let (m, k, n) = (a.dims()[rank - 2], a.dims()[rank - 1], b.dims()[rank - 1]);
    let mut dims = a.dims().to_vec();
    dims[rank - 1] = n;
    let float = a.operand.dtype.is_float();
    let (mut sums, mut weights) = (Vec::new(), Vec::new());
    let (a_values, b_values) = (a.values(), b.values());
    for number in 0..dims.iter().product() {
        let (batch, i, j) = (number / (m * n), number / n % m, number % n);
        let pairs = (0..k).map(|l| {
            (
                a_values[(batch * m + i) * k + l],
                b_values[(batch * k + l) * n + j],
            )
        });
        weights.push(
            pairs
                .clone()
                .map(|(a, b)| (a.as_f64() * b.as_f64()).abs())
                .sum(),
        );
        sums.push(if float {
            Scalar::F64(pairs.map(|(a, b)| a.as_f64() * b.as_f64()).sum())
        } else {
            let products = pairs.map(|(a, b)| a.as_i64().wrapping_mul(b.as_i64()));
            Scalar::I64(products.fold(0, i64::wrapping_add))
        });
    }
    (dims, sums, weights)
}

fn check(
    generator: &mut Generator,
    dtype: DType,
    sizes: (&[usize], usize, usize, usize),
    lies: [Lie; 2],
) {
    let (batch, m, k, n) = sizes;
    let dims = |last: [usize; 2]| [batch, &last[..]].concat();
    let a = scattered(
        generator,
        dtype,
        &dims([m, k]),
        lies[0],
        &mut moderate(dtype),
    );
    let b = scattered(
        generator,
        dtype,
        &dims([k, n]),
        lies[1],
        &mut moderate(dtype),
    );
    let (dims, expected, weights) = oracle(&a, &b);
    let op = Primitive::Matmul {
        accumulate: dtype.accumulator(),
    };
    let out = one(op, &[&a, &b], dtype, &dims);
    let expected = expected.into_iter().map(|v| cast(v, dtype));
    for (i, ((got, expected), weight)) in out
        .values()
        .into_iter()
        .zip(expected)
        .zip(weights)
        .enumerate()
    {
        let near = (got.as_f64() - expected.as_f64()).abs()
            <= (8.0 + k as f64 / 4.0) * unit(dtype) * weight;
        assert!(
            close(got, expected, dtype, 1.0) || (dtype.is_float() && near),
            "{dtype} {sizes:?} {lies:?}: element {i} is {got}, expected {expected}"
        );
    }
}

#[test]
fn products_of_every_dtype_and_layout() {
    let mut generator = Generator::new(1, 0);
    let sizes: [(&[usize], usize, usize, usize); 10] = [
        (&[], 1, 1, 1),
        (&[], 1, 7, 1),
        (&[], 3, 1, 5),
        (&[], 1, 33, 17),
        (&[], 17, 33, 1),
        (&[], 31, 29, 37),
        (&[3], 5, 4, 6),
        (&[2, 3], 1, 9, 4),
        (&[2, 1], 20, 70, 9),
        (&[], 130, 65, 67),
    ];
    for dtype in DType::ALL.into_iter().filter(|&d| d != DType::Bool) {
        for size in sizes {
            for (a, b) in Lie::ALL
                .into_iter()
                .zip(Lie::ALL.into_iter().cycle().skip(1))
            {
                check(&mut generator, dtype, size, [a, b]);
                check(&mut generator, dtype, size, [b, a]);
            }
        }
    }
}

/// Sums of bytes pass through I64 and wrap only at the end.
#[test]
fn integers_wrap_at_the_end() {
    let op = |dtype: DType| Primitive::Matmul {
        accumulate: dtype.accumulator(),
    };
    let a = hold(DType::U8, &[1, 300], &vec![Scalar::I64(255); 300]);
    let b = hold(DType::U8, &[300, 1], &vec![Scalar::I64(1); 300]);
    let out = one(op(DType::U8), &[&a, &b], DType::U8, &[1, 1]);
    assert_eq!(out.integers(), [300 * 255 % 256]);
    let a = hold(
        DType::I64,
        &[1, 2],
        &[Scalar::I64(i64::MAX), Scalar::I64(1)],
    );
    let b = hold(DType::I64, &[2, 1], &[Scalar::I64(1), Scalar::I64(1)]);
    assert_eq!(
        one(op(DType::I64), &[&a, &b], DType::I64, &[1, 1]).integers(),
        [i64::MIN]
    );
}
