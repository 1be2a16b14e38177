//! Normalisation: values, gradients, weight or bias alone, messages.
#![allow(missing_docs)]

mod common;

use common::*;
use drivetrain_tensor::{DType, Tensor};

#[test]
fn layer_norm_and_rms_norm_by_hand() {
    // B029, contiguous and strided.
    for twist in [|x: &Tensor| x.clone(), strided] {
        let x = twist(&f64s(&[1.0, 2.0, 2.0], &[3]))
            .requires_grad_()
            .unwrap();
        let y = x.rms_norm([3], None, 0.0).unwrap();
        close(&y, &[0.5773503, 1.1547005, 1.1547005], 1e-7);
        y.select(0, 0).unwrap().backward().unwrap();
        close(
            &x.grad().unwrap(),
            &[0.5132002, -0.1283001, -0.1283001],
            1e-7,
        );
        let x = twist(&f64s(&[1.0, 2.0, 4.0], &[3]))
            .requires_grad_()
            .unwrap();
        let y = x.layer_norm([3], None, None, 1e-5).unwrap();
        close(&y, &[-1.0690414, -0.2672603, 1.3363018], 1e-7);
        y.select(0, 0).unwrap().backward().unwrap();
        close(
            &x.grad().unwrap(),
            &[0.2290823, -0.3436199, 0.1145376],
            1e-7,
        );
    }
}

#[test]
fn a_constant_row_is_zero() {
    // B050.
    for value in [1234.0f32, 0.1] {
        let y = f32s(&[value; 256], &[256])
            .layer_norm([256], None, None, 1e-5)
            .unwrap();
        assert!(y.to_vec::<f32>().unwrap().iter().all(|v| v.abs() < 1e-2));
    }
}

#[test]
fn weight_or_bias_alone() {
    let x = values(1, &[2, 3, 4]);
    let (w, b) = (values(2, &[4]), values(3, &[4]));
    let plain = x.layer_norm([4], None, None, 1e-5).unwrap();
    let scaled = plain.mul(&w).unwrap();
    let list = |t: &Tensor| t.to_vec::<f64>().unwrap();
    close(
        &x.layer_norm([4], Some(&w), None, 1e-5).unwrap(),
        &list(&scaled),
        1e-13,
    );
    let shifted = plain.add(&b).unwrap();
    close(
        &x.layer_norm([4], None, Some(&b), 1e-5).unwrap(),
        &list(&shifted),
        1e-13,
    );
    let both = scaled.add(&b).unwrap();
    close(
        &x.layer_norm([4], Some(&w), Some(&b), 1e-5).unwrap(),
        &list(&both),
        1e-13,
    );
    let (w, b) = (values(2, &[3]), values(3, &[3]));
    let column = |t: &Tensor| t.reshape([1, 3, 1]).unwrap();
    let plain = x.batch_norm_training(None, None, 1e-5).unwrap().output;
    let scaled = x.batch_norm_training(Some(&w), None, 1e-5).unwrap().output;
    close(&scaled, &list(&plain.mul(&column(&w)).unwrap()), 1e-13);
    let shifted = x.batch_norm_training(None, Some(&b), 1e-5).unwrap().output;
    close(&shifted, &list(&plain.add(&column(&b)).unwrap()), 1e-13);
}

#[test]
fn batch_norm_uses_the_biased_variance_and_hands_it_out() {
    // B051, B053.
    let x = f64s(&[1.0, 2.0, 3.0, 6.0], &[4, 1]);
    let out = x.batch_norm_training(None, None, 1e-5).unwrap();
    close(&out.output, &[-1.0690434, -0.5345217, 0.0, 1.6035651], 1e-7);
    equal(&out.mean, &[3.0]);
    equal(&out.variance, &[3.5]);
    assert_eq!(out.count, 4);
    let (mean, var) = (f64s(&[0.3], &[1]), f64s(&[1.3666667], &[1]));
    let y = x.batch_norm(&mean, &var, None, None, 1e-5).unwrap();
    close(&y, &[0.5987771, 1.4541729, 2.3095686, 4.8757563], 1e-7);
    let one = x
        .narrow(0, 1, 1)
        .unwrap()
        .batch_norm(&mean, &var, None, None, 1e-5);
    close(&one.unwrap(), &[1.4541729], 1e-7);
}

#[test]
fn one_value_a_channel_is_refused_in_training() {
    // B052.
    let words = ["more than one value per channel"];
    refused(
        values(1, &[1, 3]).batch_norm_training(None, None, 1e-5),
        &words,
    );
    refused(
        values(1, &[1, 3, 1, 1]).batch_norm_training(None, None, 1e-5),
        &words,
    );
    assert!(
        values(1, &[1, 3, 2, 2])
            .batch_norm_training(None, None, 1e-5)
            .is_ok()
    );
}

#[test]
fn the_statistics_carry_no_gradient() {
    let x = values(1, &[4, 2]).requires_grad_().unwrap();
    let out = x.batch_norm_training(None, None, 1e-5).unwrap();
    assert!(out.output.requires_grad());
    assert!(!out.mean.requires_grad() && !out.variance.requires_grad());
}

#[test]
fn groups_and_instances_by_hand() {
    // Two groups of two channels with two values each; each group is 0, 1, 2, 3 moved.
    let x = count(0, &[1, 4, 2]);
    let y = x.group_norm(2, None, None, 0.0).unwrap();
    let half = [-1.5, -0.5, 0.5, 1.5].map(|v| v / 1.25f64.sqrt());
    close(&y, &[half, half].concat(), 1e-14);
    let w = f64s(&[1.0, 2.0, 1.0, 2.0], &[4]);
    let b = f64s(&[0.0, 0.0, 10.0, 0.0], &[4]);
    let y = x.group_norm(2, Some(&w), Some(&b), 0.0).unwrap();
    let [p, q, r, s] = half;
    close(
        &y,
        &[p, q, 2.0 * r, 2.0 * s, p + 10.0, q + 10.0, 2.0 * r, 2.0 * s],
        1e-14,
    );
    let y = x.instance_norm(None, None, 0.0).unwrap();
    close(&y, &[-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0], 1e-14);
    // One group is layer norm over all but the batch.
    let x = values(1, &[3, 4, 5]);
    let all = x.layer_norm([4, 5], None, None, 1e-5).unwrap();
    let one = x.group_norm(1, None, None, 1e-5).unwrap();
    close(&one, &all.to_vec::<f64>().unwrap(), 1e-13);
}

#[test]
fn rms_norm_without_eps_takes_the_epsilon_of_the_dtype() {
    let x = f32s(&[1e-4, 1e-4], &[2]);
    let want = 1e-4 / (1e-8f64 + f64::from(f32::EPSILON)).sqrt();
    close(&x.rms_norm([2], None, None).unwrap(), &[want, want], 1e-5);
}

#[test]
fn gradients_of_norms() {
    let (x, w, b) = (
        values(1, &[2, 3, 4]),
        values(2, &[3, 4]),
        values(3, &[3, 4]),
    );
    check_gradients(&[x.clone(), w.clone(), b.clone()], |t| {
        t[0].layer_norm([3, 4], Some(&t[1]), Some(&t[2]), 1e-3)
    });
    check_gradients(&[x.clone(), w.clone()], |t| {
        t[0].layer_norm([3, 4], Some(&t[1]), None, 1e-3)
    });
    check_gradients(&[x.clone(), w], |t| {
        t[0].rms_norm([3, 4], Some(&t[1]), 1e-3)
    });
    check_gradients(&[x.clone(), b], |t| {
        t[0].layer_norm([3, 4], None, Some(&t[1]), 1e-3)
    });
    let (w, b) = (values(2, &[3]), values(3, &[3]));
    let three = [x.clone(), w.clone(), b.clone()];
    check_gradients(&three, |t| {
        Ok(t[0]
            .batch_norm_training(Some(&t[1]), Some(&t[2]), 1e-3)?
            .output)
    });
    check_gradients(&three, |t| {
        t[0].group_norm(3, Some(&t[1]), Some(&t[2]), 1e-3)
    });
    check_gradients(&three, |t| {
        t[0].instance_norm(Some(&t[1]), Some(&t[2]), 1e-3)
    });
    let (mean, var) = (
        values(4, &[3]),
        values(5, &[3]).square().unwrap().add(0.5).unwrap(),
    );
    check_gradients(&three, |t| {
        t[0].batch_norm(&mean, &var, Some(&t[1]), Some(&t[2]), 1e-3)
    });
}

#[test]
fn layouts_and_dtypes_of_norms() {
    let three = [values(1, &[3, 4, 5]), values(2, &[4]), values(3, &[4])];
    check_layouts_and_dtypes(&three, |t| {
        t[0].group_norm(2, Some(&t[1]), Some(&t[2]), 1e-3)
    });
    check_layouts_and_dtypes(&three, |t| {
        Ok(t[0]
            .batch_norm_training(Some(&t[1]), Some(&t[2]), 1e-3)?
            .output)
    });
    check_layouts_and_dtypes(&three, |t| {
        let variance = t[2].to_dtype(DType::F32)?.square()?.add(1.0)?;
        t[0].batch_norm(&t[1], &variance, Some(&t[1]), Some(&t[2]), 1e-3)
    });
    let two = [values(1, &[3, 4, 5]), values(2, &[5])];
    check_layouts_and_dtypes(&two, |t| {
        t[0].layer_norm([5], Some(&t[1]), Some(&t[1]), 1e-3)
    });
    check_layouts_and_dtypes(&two, |t| t[0].rms_norm([5], Some(&t[1]), 1e-3));
}

#[test]
fn half_precision_inputs_do_not_overflow() {
    let x = Tensor::full([2, 4, 64], 300.0, DType::F16, &device()).unwrap();
    let ramp = Tensor::linspace(0.0, 60000.0, 64, DType::F16, &device()).unwrap();
    let x = x.add(&ramp).unwrap();
    for y in [
        x.layer_norm([64], None, None, 1e-5).unwrap(),
        x.rms_norm([64], None, 1e-5).unwrap(),
        x.group_norm(2, None, None, 1e-5).unwrap(),
        x.batch_norm_training(None, None, 1e-5).unwrap().output,
    ] {
        assert!(
            y.to_f64_vec()
                .unwrap()
                .iter()
                .all(|v| v.is_finite() && v.abs() < 3.0)
        );
    }
}

#[test]
fn empty_batches() {
    let x = values(1, &[0, 4, 3]);
    assert_eq!(
        x.layer_norm([3], None, None, 1e-5).unwrap().dims(),
        [0, 4, 3]
    );
    assert_eq!(x.rms_norm([3], None, 1e-5).unwrap().dims(), [0, 4, 3]);
    assert_eq!(x.group_norm(2, None, None, 1e-5).unwrap().dims(), [0, 4, 3]);
    let s = values(2, &[4]);
    assert_eq!(
        x.batch_norm(&s, &s, None, None, 2.0).unwrap().dims(),
        [0, 4, 3]
    );
}

#[test]
fn mistakes_are_named() {
    let x = values(1, &[2, 6, 4]);
    refused(
        x.layer_norm([6], None, None, 1e-5),
        &["layer_norm", "[2, 6, 4]", "[6]"],
    );
    refused(x.layer_norm((), None, None, 1e-5), &["layer_norm", "tail"]);
    refused(
        x.layer_norm([4], Some(&values(2, &[6])), None, 1e-5),
        &["weight [6]", "[4] expected"],
    );
    refused(x.layer_norm([4], None, None, -1.0), &["eps -1"]);
    refused(
        x.group_norm(4, None, None, 1e-5),
        &["6 channels", "4 groups"],
    );
    refused(x.group_norm(0, None, None, 1e-5), &["0 groups"]);
    refused(
        x.group_norm(2, Some(&values(2, &[4])), None, 1e-5),
        &["weight [4]", "[6] expected"],
    );
    refused(
        values(1, &[1, 2]).group_norm(2, None, None, 1e-5),
        &["more than one value"],
    );
    refused(
        values(1, &[2, 6]).instance_norm(None, None, 1e-5),
        &["instance_norm", "spatial"],
    );
    refused(
        values(1, &[2, 6, 1]).instance_norm(None, None, 1e-5),
        &["more than one value"],
    );
    refused(
        values(1, &[6]).batch_norm_training(None, None, 1e-5),
        &["batch_norm", "[6]"],
    );
    let (good, bad) = (values(2, &[6]), values(2, &[5]));
    refused(
        x.batch_norm(&good, &bad, None, None, 1e-5),
        &["running_var [5]", "[6] expected"],
    );
    let whole = x.to_dtype(DType::I64).unwrap();
    refused(whole.group_norm(2, None, None, 1e-5), &["I64"]);
    refused(whole.layer_norm([4], None, None, 1e-5), &["I64"]);
}
