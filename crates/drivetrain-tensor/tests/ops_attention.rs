//! Attention, and cross-entropy's second gradient: values, masks, gradients, messages.
#![allow(missing_docs)]

mod common;

use common::*;
use drivetrain_core::Composite;
use drivetrain_tensor::{DType, Result, Tensor, detect_anomaly, run};

const LOW: f64 = f64::NEG_INFINITY;

fn bools(values: &[bool], dims: &[usize]) -> Tensor {
    Tensor::from_slice(values, dims, &device()).unwrap()
}

/// The formula, row by row, on the host: which keys each query sees.
fn by_hand(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    scale: f64,
    sees: &dyn Fn(usize, usize) -> bool,
) -> Vec<f64> {
    let rows = |t: &Tensor| t.to_vec2::<f64>().unwrap();
    let (q, k, v) = (rows(q), rows(k), rows(v));
    let mut out = Vec::new();
    for (i, q) in q.iter().enumerate() {
        let dot = |k: &[f64]| q.iter().zip(k).map(|(a, b)| a * b).sum::<f64>() * scale;
        let weight = |j: usize| if sees(i, j) { dot(&k[j]).exp() } else { 0.0 };
        let total: f64 = (0..k.len()).map(weight).sum();
        out.extend((0..v[0].len()).map(|column| {
            let sum: f64 = v
                .iter()
                .enumerate()
                .map(|(j, v)| weight(j) * v[column])
                .sum();
            if total == 0.0 { 0.0 } else { sum / total }
        }));
    }
    out
}

#[test]
fn values_by_the_formula() {
    let (q, k, v) = (values(1, &[3, 4]), values(2, &[5, 4]), values(3, &[5, 2]));
    let y = q
        .scaled_dot_product_attention(&k, &v, None, false, None)
        .unwrap();
    assert_eq!(y.dims(), [3, 2]);
    close(&y, &by_hand(&q, &k, &v, 0.5, &|_, _| true), 1e-14);
    let y = q
        .scaled_dot_product_attention(&k, &v, None, true, 2.0)
        .unwrap();
    close(&y, &by_hand(&q, &k, &v, 2.0, &|i, j| j <= i), 1e-14);
    let sees = |i: usize, j: usize| (i + j).is_multiple_of(2);
    let flags: Vec<bool> = (0..15).map(|at| sees(at / 5, at % 5)).collect();
    let mask = bools(&flags, &[3, 5]);
    let y = q
        .scaled_dot_product_attention(&k, &v, Some(&mask), false, None)
        .unwrap();
    close(&y, &by_hand(&q, &k, &v, 0.5, &sees), 1e-14);
    let y = q
        .scaled_dot_product_attention(&k, &v, Some(&mask), true, None)
        .unwrap();
    close(
        &y,
        &by_hand(&q, &k, &v, 0.5, &|i, j| sees(i, j) && j <= i),
        1e-14,
    );
    let numbers: Vec<f64> = flags.iter().map(|&s| if s { 0.0 } else { LOW }).collect();
    let mask = f64s(&numbers, &[3, 5]);
    let y = q
        .scaled_dot_product_attention(&k, &v, Some(&mask), false, None)
        .unwrap();
    close(&y, &by_hand(&q, &k, &v, 0.5, &sees), 1e-14);
}

#[test]
fn a_query_that_sees_nothing_gets_zeros_and_touches_nobody() {
    // B046e.
    let leaf = |x: Tensor| x.requires_grad_().unwrap();
    let (q, k, v) = (
        leaf(values(1, &[2, 3, 4])),
        leaf(values(2, &[2, 5, 4])),
        leaf(values(3, &[2, 5, 2])),
    );
    let mut flags = [true; 15];
    flags[..5].fill(false);
    let mask = bools(&flags, &[3, 5]);
    let open = q
        .scaled_dot_product_attention(&k, &v, None, false, None)
        .unwrap();
    let y = q
        .scaled_dot_product_attention(&k, &v, Some(&mask), false, None)
        .unwrap();
    equal(&y.select(1, 0).unwrap(), &[0.0; 4]);
    let rest = |t: &Tensor| t.narrow(1, 1, 2).unwrap();
    equal(&rest(&y), &rest(&open).to_vec::<f64>().unwrap());
    y.square().unwrap().sum(()).unwrap().backward().unwrap();
    for t in [&q, &k, &v] {
        let grad = t.grad().unwrap().to_vec::<f64>().unwrap();
        assert!(grad.iter().all(|g| g.is_finite()), "{grad:?}");
        assert!(grad.iter().any(|g| *g != 0.0));
    }
    equal(&q.grad().unwrap().select(1, 0).unwrap(), &[0.0; 8]);
    let numbers = f64s(&flags.map(|s| if s { 0.0 } else { LOW }), &[3, 5]);
    let added = q
        .scaled_dot_product_attention(&k, &v, Some(&numbers), false, None)
        .unwrap();
    equal(&added, &y.to_vec::<f64>().unwrap());
}

#[test]
fn heads_and_masks_broadcast() {
    let (q, k, v) = (
        values(1, &[2, 3, 4, 8]),
        values(2, &[2, 3, 5, 8]),
        values(3, &[2, 3, 5, 8]),
    );
    let mask = bools(
        &[true, true, false, true, false, true, true, true, true, true],
        &[2, 1, 1, 5],
    );
    let y = q
        .scaled_dot_product_attention(&k, &v, Some(&mask), false, None)
        .unwrap();
    assert_eq!(y.dims(), [2, 3, 4, 8]);
    let pick = |t: &Tensor| t.select(0, 0).unwrap().select(0, 2).unwrap();
    let want = by_hand(
        &pick(&q),
        &pick(&k),
        &pick(&v),
        8f64.sqrt().recip(),
        &|_, j| j != 2 && j != 4,
    );
    close(&pick(&y), &want, 1e-14);
    let weights = q.attention_weights(&k, Some(&mask), false, None).unwrap();
    close(&weights.sum(-1).unwrap(), &[1.0; 24], 1e-14);
    // One set of keys for all heads.
    let y = q
        .scaled_dot_product_attention(&pick(&k), &pick(&v), None, false, None)
        .unwrap();
    assert_eq!(y.dims(), [2, 3, 4, 8]);
}

#[test]
fn gradients_of_attention() {
    let three = [
        values(1, &[2, 3, 2]),
        values(2, &[2, 4, 2]),
        values(3, &[2, 4, 3]),
    ];
    check_gradients(&three, |t| {
        t[0].scaled_dot_product_attention(&t[1], &t[2], None, true, None)
    });
    let mut flags = [true, true, false, true].repeat(3);
    flags[4..8].fill(false);
    let mask = bools(&flags, &[3, 4]);
    check_gradients(&three, |t| {
        t[0].scaled_dot_product_attention(&t[1], &t[2], Some(&mask), false, 0.7)
    });
    let [q, k, v] = three;
    check_gradients(&[q, k, v, values(4, &[3, 4])], |t| {
        t[0].scaled_dot_product_attention(&t[1], &t[2], Some(&t[3]), false, None)
    });
}

#[test]
fn layouts_and_dtypes_of_attention() {
    let three = [
        values(1, &[2, 3, 4]),
        values(2, &[2, 5, 4]),
        values(3, &[2, 5, 3]),
    ];
    check_layouts_and_dtypes(&three, |t| {
        t[0].scaled_dot_product_attention(&t[1], &t[2], None, true, None)
    });
}

#[test]
fn nothing_to_see() {
    let (q, k, v) = (values(1, &[2, 3]), values(2, &[0, 3]), values(3, &[0, 4]));
    let y = q
        .scaled_dot_product_attention(&k, &v, None, false, None)
        .unwrap();
    equal(&y, &[0.0; 8]);
    let none = q.narrow(0, 0, 0).unwrap();
    let (k, v) = (values(2, &[5, 3]), values(3, &[5, 4]));
    let y = none
        .scaled_dot_product_attention(&k, &v, None, true, None)
        .unwrap();
    assert_eq!(y.dims(), [0, 4]);
}

#[test]
fn mistakes_are_named() {
    let (q, k, v) = (values(1, &[3, 4]), values(2, &[5, 4]), values(3, &[5, 2]));
    let run = |k: &Tensor, v: &Tensor, mask: Option<&Tensor>| {
        q.scaled_dot_product_attention(k, v, mask, false, None)
    };
    refused(
        run(&values(2, &[5, 3]), &v, None),
        &["query [3, 4]", "key [5, 3]"],
    );
    refused(
        run(&k, &values(3, &[4, 2]), None),
        &["key [5, 4]", "value [4, 2]"],
    );
    refused(
        run(&k, &v, Some(&values(4, &[5, 3]))),
        &["mask [5, 3]", "scores [3, 5]"],
    );
    refused(
        run(&k, &v, Some(&values(4, &[2, 3, 5]))),
        &["mask [2, 3, 5]"],
    );
    let whole = Tensor::ones([3, 5], DType::I64, &device()).unwrap();
    refused(run(&k, &v, Some(&whole)), &["mask is I64"]);
    refused(run(&values(2, &[4]), &v, None), &["key [4]"]);
}

#[test]
fn cross_entropy_is_differentiable_twice() {
    let target = Tensor::from_slice(&[2i64, 0, -100], [3], &device()).unwrap();
    let weight = f64s(&[0.5, 1.0, 2.0, 1.5], &[4]);
    check_gradients(&[values(1, &[3, 4])], |t| -> Result<Tensor> {
        let op = Composite::CrossEntropy {
            ignore_index: -100,
            label_smoothing: 0.1,
            weighted: true,
        };
        Ok(run(op, &[&t[0], &target, &weight])?.swap_remove(0))
    });
}

#[test]
fn masks_are_no_anomaly_but_what_goes_wrong_behind_them_is() {
    let q = values(1, &[3, 4]).requires_grad_().unwrap();
    let mask = bools(
        &[false, false, false, true, false, true, true, true, true],
        &[3, 3],
    );
    detect_anomaly(|| {
        let y = q.scaled_dot_product_attention(&q, &q, Some(&mask), true, None)?;
        y.square()?.sum(())?.backward()
    })
    .unwrap();
    let low = f64s(&[LOW, LOW, 0.0, LOW], &[2, 2]);
    refused(detect_anomaly(|| low.softmax(1)), &["softmax", "NaN"]);
    let zero = f64s(&[1.0, 0.0], &[2]);
    refused(detect_anomaly(|| zero.log()), &["log", "element 1", "-inf"]);
    refused(
        detect_anomaly(|| zero.exp()?.mul(1e308)?.mul(10.0)),
        &["mul", "inf"],
    );
}
