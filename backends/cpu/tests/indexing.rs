//! Gather, scatter and sort against an oracle, their errors, and long and many rows.

mod common;

use common::*;
use drivetrain_core::random::Generator;
use drivetrain_core::{DType, ErrorKind, Primitive, Scalar, ScatterMode};
use std::cmp::Ordering;
use std::time::{Duration, Instant};

/// An index for `x`'s shape: no larger off `dim`, of some length along it, lying so.
fn index_for(generator: &mut Generator, dims: &[usize], dim: usize, lie: Lie) -> Held {
    let mut sizes: Vec<usize> = dims
        .iter()
        .map(|&size| 1 + generator.below(size as u64) as usize)
        .collect();
    sizes[dim] = 1 + generator.below(2 * dims[dim] as u64) as usize;
    let size = dims[dim] as u64;
    let mut draw = |g: &mut Generator| Scalar::I64(g.below(size) as i64);
    scattered(generator, DType::I64, &sizes, lie, &mut draw)
}

#[test]
fn gather() {
    let mut generator = Generator::new(1, 0);
    for dtype in DType::ALL {
        for &dims in SHAPES.iter().filter(|dims| !dims.is_empty()) {
            for dim in 0..dims.len() {
                for (lie, other) in Lie::ALL.into_iter().zip(Lie::ALL.into_iter().rev()) {
                    let x = scattered(&mut generator, dtype, dims, lie, &mut special(dtype));
                    let index = index_for(&mut generator, dims, dim, other);
                    let sizes = index.dims().to_vec();
                    let values = x.values();
                    let expected: Vec<Scalar> = indices(&sizes)
                        .zip(index.integers())
                        .map(|(mut at, i)| {
                            at[dim] = i as usize;
                            values[number(dims, &at)]
                        })
                        .collect();
                    let op = Primitive::Gather { dim: dim as u8 };
                    let out = one(op, &[&x, &index], dtype, &sizes);
                    let what = format!("gather {dtype} {dims:?} {dim} {lie:?} {other:?}");
                    assert_close(&out, &expected, 0.0, &what);
                }
            }
        }
    }
}

#[test]
fn scatter() {
    let mut generator = Generator::new(2, 0);
    for dtype in DType::ALL {
        for &dims in SHAPES
            .iter()
            .filter(|dims| !dims.is_empty())
            .chain(&[&[9usize, 700][..], &[700, 90]])
        {
            for dim in 0..dims.len() {
                let lies = [
                    Lie::Contiguous,
                    Lie::Transposed,
                    Lie::Stepped,
                    Lie::Reversed,
                ];
                for (lie, other) in lies.into_iter().zip(Lie::ALL.into_iter().rev()) {
                    for &mode in ScatterMode::ALL {
                        if mode == ScatterMode::Add && dtype == DType::Bool {
                            continue;
                        }
                        let target =
                            scattered(&mut generator, dtype, dims, lie, &mut moderate(dtype));
                        let index = index_for(&mut generator, dims, dim, other);
                        let sizes = index.dims().to_vec();
                        let source =
                            scattered(&mut generator, dtype, &sizes, other, &mut moderate(dtype));
                        let mut expected = target.values();
                        let mut weights: Vec<f64> =
                            target.floats().iter().map(|v| v.abs()).collect();
                        for ((mut at, i), value) in
                            indices(&sizes).zip(index.integers()).zip(source.values())
                        {
                            at[dim] = i as usize;
                            weights[number(dims, &at)] += value.as_f64().abs();
                            let slot = &mut expected[number(dims, &at)];
                            *slot = match (mode, dtype.is_float()) {
                                (ScatterMode::Set, _) => value,
                                (ScatterMode::Add, true) => {
                                    Scalar::F64(slot.as_f64() + value.as_f64())
                                }
                                (ScatterMode::Add, false) => cast(
                                    Scalar::I64(slot.as_i64().wrapping_add(value.as_i64())),
                                    dtype,
                                ),
                            };
                        }
                        let op = Primitive::Scatter {
                            dim: dim as u8,
                            mode,
                        };
                        run_in_place(op, &[&index, &source], &[&target], &[]).unwrap();
                        let what =
                            format!("{} {dtype} {dims:?} {dim} {lie:?} {other:?}", mode.name());
                        for (i, (got, e)) in target.values().into_iter().zip(expected).enumerate() {
                            // Hundreds of equal numbers may have been added one by one.
                            let near = (got.as_f64() - e.as_f64()).abs()
                                <= 200.0 * unit(dtype) * weights[i];
                            let near = near && dtype.is_float();
                            assert!(
                                near || close(got, e, dtype, 2.0),
                                "{what}: element {i} is {got}, expected {e}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// Row look-ups: the index is expanded along the row.
#[test]
fn rows() {
    let mut generator = Generator::new(3, 0);
    let x = scattered(
        &mut generator,
        DType::F32,
        &[50, 700],
        Lie::Contiguous,
        &mut moderate(DType::F32),
    );
    let chosen: Vec<i64> = (0..90).map(|i| i * 7 % 50).collect();
    let index = hold_i64(&[90, 1], &chosen);
    let layout = index
        .operand
        .layout
        .expand(&drivetrain_core::Shape::new(&[90, 700]).unwrap());
    let operand = index.buffer.operand(DType::I64, layout.unwrap());
    let index = Held {
        buffer: index.buffer,
        operand,
    };
    let out = one(
        Primitive::Gather { dim: 0 },
        &[&x, &index],
        DType::F32,
        &[90, 700],
    );
    let values = x.values();
    let rows = chosen
        .iter()
        .flat_map(|&i| values[i as usize * 700..][..700].to_vec());
    assert_close(&out, &rows.collect::<Vec<_>>(), 0.0, "rows");
    // And the way back: each row counts how often it was chosen.
    let ones = hold_f32(&[90, 700], &vec![1.0; 90 * 700]);
    let sums = hold_f32(&[50, 700], &vec![0.0; 50 * 700]);
    let add = Primitive::Scatter {
        dim: 0,
        mode: ScatterMode::Add,
    };
    run_in_place(add, &[&index, &ones], &[&sums], &[]).unwrap();
    for (row, sums) in sums.floats().chunks(700).enumerate() {
        let count = chosen.iter().filter(|&&i| i == row as i64).count();
        assert!(sums.iter().all(|&s| s == count as f64), "{row}");
    }
}

/// B063: an index out of range is an error that names it, and nothing is written.
#[test]
fn indices_out_of_range() {
    let x = hold_f32(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    for (dim, bad, size) in [(0u8, 3, 3), (0, -1, 3), (1, 2, 2), (1, i64::MIN, 2)] {
        let index = hold_i64(&[2, 2], &[0, 0, 1, bad]);
        let gather = Primitive::Gather { dim };
        let error = run(gather, &[&x, &index], &[(DType::F32, &[2, 2])])
            .err()
            .unwrap();
        let text =
            format!("index {bad} out of range for dimension {dim} of size {size}, at [1, 1]");
        assert!(error.to_string().contains(&text), "{error}");
        assert_eq!(error.kind(), ErrorKind::Value);
        for &mode in ScatterMode::ALL {
            let source = hold_f32(&[2, 2], &[9.0; 4]);
            let scatter = Primitive::Scatter { dim, mode };
            let error = run_in_place(scatter, &[&index, &source], &[&x], &[])
                .err()
                .unwrap();
            assert!(error.to_string().contains(&text), "{error}");
            assert_eq!(x.floats(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        }
    }
}

/// Numbers in order, NaN largest.
fn order(a: Scalar, b: Scalar, float: bool) -> Ordering {
    if !float {
        return a.as_i64().cmp(&b.as_i64());
    }
    let (a, b) = (a.as_f64(), b.as_f64());
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

#[test]
fn sort() {
    let mut generator = Generator::new(4, 0);
    for dtype in DType::ALL {
        for &dims in SHAPES.iter().filter(|dims| !dims.is_empty()) {
            for dim in 0..dims.len() {
                for lie in Lie::ALL {
                    for descending in [false, true] {
                        let x = scattered(&mut generator, dtype, dims, lie, &mut special(dtype));
                        let op = Primitive::Sort {
                            dim: dim as u8,
                            descending,
                        };
                        let out = run(op, &[&x], &[(dtype, dims), (DType::I64, dims)]).unwrap();
                        let values = x.values();
                        let (mut sorted, mut places) =
                            (values.clone(), vec![Scalar::I64(0); values.len()]);
                        for start in indices(dims).filter(|index| index[dim] == 0) {
                            let at = |i: usize| {
                                let mut index = start.clone();
                                index[dim] = i;
                                number(dims, &index)
                            };
                            let mut line: Vec<usize> = (0..dims[dim]).collect();
                            line.sort_by(|&a, &b| {
                                let order = order(values[at(a)], values[at(b)], dtype.is_float());
                                if descending { order.reverse() } else { order }
                            });
                            for (i, &from) in line.iter().enumerate() {
                                sorted[at(i)] = values[at(from)];
                                places[at(i)] = Scalar::I64(from as i64);
                            }
                        }
                        let what = format!("sort {dtype} {dims:?} {dim} {lie:?} {descending}");
                        assert_close(&out[1], &places, 0.0, &what);
                        assert_close(&out[0], &sorted, 0.0, &what);
                    }
                }
            }
        }
    }
}

fn argsort(values: &[f32], dims: &[usize], descending: bool) -> (Vec<f64>, Vec<i64>) {
    let dim = dims.len() as u8 - 1;
    let x = hold_f32(dims, values);
    let out = run(
        Primitive::Sort { dim, descending },
        &[&x],
        &[(DType::F32, dims), (DType::I64, dims)],
    )
    .unwrap();
    (out[0].floats(), out[1].integers())
}

/// B061: rows longer than any block, and NaN.
#[test]
fn long_rows() {
    let n = 32_003;
    let values: Vec<f32> = (0..n).map(|i| (i * 7919 % n) as f32).collect();
    let (sorted, places) = argsort(&values, &[n], false);
    assert!(sorted.iter().enumerate().all(|(i, &v)| v == i as f64));
    assert_eq!(places[..4], [0, 14_876, 29_752, 12_625]);
    assert_eq!(places[n - 1], 17_127);
    for n in [1024, 1025, 2048, 8193, 100_000] {
        let values: Vec<f32> = (0..n).map(|i| (n - i) as f32).collect();
        let (_, places) = argsort(&values, &[n], false);
        assert!(
            places
                .iter()
                .enumerate()
                .all(|(i, &p)| p as usize == n - 1 - i)
        );
    }
    let values = [2.0, f32::NAN, f32::NEG_INFINITY, 1.0];
    let (up, _) = argsort(&values, &[4], false);
    assert!(up[..3] == [f64::NEG_INFINITY, 1.0, 2.0] && up[3].is_nan());
    let (down, _) = argsort(&values, &[4], true);
    assert!(down[0].is_nan() && down[1..] == [2.0, 1.0, f64::NEG_INFINITY]);
}

/// B062: more rows than 16 bits count.
#[test]
fn many_rows() {
    let values: Vec<f32> = (0..70_000)
        .flat_map(|r| [3.0, 1.0, 2.0, 0.0].map(|v| v + r as f32))
        .collect();
    let (sorted, places) = argsort(&values, &[70_000, 4], false);
    for r in [0, 65_534, 65_535, 65_536, 69_999] {
        let row = [0.0, 1.0, 2.0, 3.0].map(|v| v + r as f64);
        assert_eq!(sorted[4 * r..][..4], row);
        assert_eq!(places[4 * r..][..4], [3, 1, 2, 0]);
    }
}

/// B106: twice the length takes less than three times the time, whatever the order.
#[test]
fn sorting_is_not_quadratic() {
    let mut generator = Generator::new(5, 0);
    let mut time = |n: usize, kind: usize| {
        let values: Vec<f32> = (0..n)
            .map(|i| [(n - i) as f32, generator.uniform() as f32, 1.0][kind])
            .collect();
        let x = hold_f32(&[n], &values);
        let op = Primitive::Sort {
            dim: 0,
            descending: false,
        };
        let outputs: [(DType, &[usize]); 2] = [(DType::F32, &[n]), (DType::I64, &[n])];
        let once = || {
            let start = Instant::now();
            run(op.clone(), &[&x], &outputs).unwrap();
            start.elapsed()
        };
        (0..4).map(|_| once()).min().unwrap()
    };
    for kind in 0..3 {
        let (short, long) = (time(100_000, kind), time(200_000, kind));
        assert!(long < Duration::from_millis(500), "{long:?}");
        // A floor under the times keeps noise out of the ratio.
        assert!(
            long < 3 * short.max(Duration::from_millis(40)),
            "{short:?} {long:?}"
        );
    }
}
