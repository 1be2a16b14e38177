//! Kinds of wrong gradients that other frameworks had: each must be right here. Numbers from PyTorch or by hand.

use drivetrain_cpu as _;
use drivetrain_tensor::{DType, Device, IntoData, Result, Tensor};

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

fn leaf(data: impl IntoData) -> Tensor {
    Tensor::from_data(data, &cpu())
        .and_then(|t| t.requires_grad_())
        .unwrap()
}

#[track_caller]
fn close(got: &Tensor, want: &[f64]) {
    let got = got.to_f64_vec().unwrap();
    let same = |(a, b): (&f64, &f64)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 * (1.0 + b.abs())
    };
    assert!(
        got.len() == want.len() && got.iter().zip(want).all(same),
        "{got:?}, not {want:?}"
    );
}

#[track_caller]
fn grad_is(x: &Tensor, want: &[f64]) {
    close(&x.grad().expect("a gradient"), want);
}

/// x as it is, and through two transpositions with a copy between.
fn both_layouts(data: [f32; 3]) -> Vec<(Tensor, Tensor)> {
    let (a, b) = (leaf([data]), leaf([data]));
    let turned = b.t().and_then(|t| t.copy()).and_then(|t| t.t()).unwrap();
    vec![(a.clone(), a), (b, turned)]
}

#[test]
fn fused_paths_stay_in_the_graph() -> Result<()> {
    let one = Tensor::ones([3], DType::F32, &cpu())?;
    for (x, used) in both_layouts([1.0, 2.0, 2.0]) {
        let y = used.rms_norm([3], Some(&one), 0.0)?;
        close(&y, &[0.5773503, 1.1547005, 1.1547005]);
        y.index((0, 0))?.backward()?;
        grad_is(&x, &[0.5132002, -0.1283001, -0.1283001]);
    }
    for (x, used) in both_layouts([1.0, 2.0, 4.0]) {
        let y = used.layer_norm([3], None, None, 1e-5)?;
        close(&y, &[-1.0690414, -0.2672603, 1.3363018]);
        y.index((0, 0))?.backward()?;
        grad_is(&x, &[0.2290823, -0.3436199, 0.1145376]);
    }
    for (x, used) in both_layouts([0.0, 1.0, 2.0]) {
        used.softmax(-1)?.square()?.sum(())?.backward()?;
        grad_is(&x, &[-0.0757180, -0.1301048, 0.2058228]);
    }
    Ok(())
}

#[test]
fn repeated_indices_add_up() -> Result<()> {
    let index = Tensor::from_data([2i64, 0, 2, 2], &cpu())?;
    let dy = Tensor::from_data([1.0f32, 2.0, 4.0, 8.0], &cpu())?;
    let x = leaf([10.0f32, 20.0, 30.0]);
    x.index_select(0, &index)?.mul(&dy)?.sum(())?.backward()?;
    grad_is(&x, &[2.0, 0.0, 13.0]);
    x.zero_grad();
    x.gather(0, &index)?.mul(&dy)?.sum(())?.backward()?;
    grad_is(&x, &[2.0, 0.0, 13.0]);
    x.zero_grad();
    x.index(&index)?.mul(&dy)?.sum(())?.backward()?;
    grad_is(&x, &[2.0, 0.0, 13.0]);
    let table = leaf([[10.0f32], [20.0], [30.0]]);
    let rows = table.embedding(&index)?;
    rows.mul(&dy.unsqueeze(1)?)?.sum(())?.backward()?;
    grad_is(&table, &[2.0, 0.0, 13.0]);
    Ok(())
}

#[test]
fn a_gradient_adds_to_what_is_there() -> Result<()> {
    for op_first in [true, false] {
        let x = Tensor::ones([1, 1, 2, 2], DType::F32, &cpu())?.requires_grad_()?;
        let up = || x.upsample_nearest(&[4, 4])?.sum(());
        let beside = || x.sum(())?.mul(3.0);
        let loss = match op_first {
            true => up()?.add(&beside()?)?,
            false => beside()?.add(&up()?)?,
        };
        loss.backward()?;
        grad_is(&x, &[7.0; 4]);
    }
    Ok(())
}

#[test]
fn silu_at_zero() -> Result<()> {
    let x = leaf([-2.0f32, 0.0, 3.0]);
    x.silu()?.sum(())?.backward()?;
    grad_is(&x, &[-0.0907842, 0.5, 1.0881041]);
    Ok(())
}

#[test]
fn the_branch_not_taken_does_not_matter() -> Result<()> {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let (x, a) = (leaf([1.0f32, 2.0, 3.0]), leaf([inf, nan, -inf]));
    let condition = Tensor::from_data([true, false, true], &cpu())?;
    x.where_(&condition, &a)?.sum(())?.backward()?;
    grad_is(&x, &[1.0, 0.0, 1.0]);
    grad_is(&a, &[0.0, 1.0, 0.0]);
    a.zero_grad();
    a.masked_fill(&condition, 0.0)?.sum(())?.backward()?;
    grad_is(&a, &[0.0, 1.0, 0.0]);
    // √ of a negative number inside the branch not taken: 0·NaN is NaN in √'s own backward, as in PyTorch.
    let x = leaf([-1.0f32, -4.0]);
    x.sqrt()?.where_(&x.gt(0.0)?, &x)?.sum(())?.backward()?;
    grad_is(&x, &[f64::NAN, f64::NAN]);
    Ok(())
}

#[test]
fn clamp_at_infinite_inputs() -> Result<()> {
    let inf = f32::INFINITY;
    let x = leaf([inf, 0.5, -inf, 2.0, -2.0]);
    let y = x.clamp(0.0, 1.0)?;
    close(&y, &[1.0, 0.5, 0.0, 1.0, 0.0]);
    y.sum(())?.backward()?;
    grad_is(&x, &[0.0, 1.0, 0.0, 0.0, 0.0]);
    // On a bound the gradient is 0, with one bound as with two.
    for bounds in [(Some(0.0), Some(1.0)), (Some(0.0), None), (None, Some(0.0))] {
        let x = leaf([0.0f32]);
        x.clamp(bounds.0, bounds.1)?.backward()?;
        grad_is(&x, &[0.0]);
    }
    Ok(())
}

#[test]
fn norm_and_spread_of_nothing() -> Result<()> {
    let x = Tensor::zeros([3], DType::F32, &cpu())?.requires_grad_()?;
    x.norm(2.0, (), false)?.backward()?;
    grad_is(&x, &[0.0; 3]);
    let x = leaf([2.0f32; 4]);
    x.std((), 1.0, false)?.backward()?;
    grad_is(&x, &[0.0; 4]);
    let x = leaf(0.0f32);
    x.sqrt()?.backward()?;
    grad_is(&x, &[f64::INFINITY]);
    Ok(())
}

#[test]
fn powers_of_zero_and_of_negative_bases() -> Result<()> {
    let base = leaf([0.0f32, 0.0, -2.0, -2.0, 0.0]);
    let exponent = leaf([0.0f32, 2.0, 3.0, 2.0, 1.0]);
    let y = base.pow(&exponent)?;
    close(&y, &[1.0, 0.0, -8.0, 4.0, 0.0]);
    y.sum(())?.backward()?;
    grad_is(&base, &[0.0, 0.0, 12.0, -4.0, 1.0]);
    let of_exponent = exponent.grad().unwrap().to_f64_vec()?;
    assert_eq!((of_exponent[1], of_exponent[4]), (0.0, 0.0));
    assert!(of_exponent[2].is_nan() && of_exponent[3].is_nan());
    // The same with numbers for exponents.
    for (b, e, value, slope) in [
        (0.0f32, 0.0, 1.0, 0.0),
        (0.0, 2.0, 0.0, 0.0),
        (-2.0, 3.0, -8.0, 12.0),
        (0.0, 1.0, 0.0, 1.0),
    ] {
        let b = leaf(b);
        let y = b.pow(e)?;
        close(&y, &[value]);
        y.backward()?;
        grad_is(&b, &[slope]);
    }
    Ok(())
}

#[test]
fn tied_extremes_share_or_choose() -> Result<()> {
    let x = leaf([1.0f32, 3.0, 3.0]);
    x.amax(())?.backward()?;
    grad_is(&x, &[0.0, 0.5, 0.5]);
    x.zero_grad();
    let (value, index) = x.max(0, false)?;
    assert_eq!(index.item::<i64>()?, 1);
    value.backward()?;
    grad_is(&x, &[0.0, 1.0, 0.0]);
    let (a, b) = (leaf([1.0f32, 2.0]), leaf([1.0f32, 0.0]));
    a.maximum(&b)?.sum(())?.backward()?;
    grad_is(&a, &[0.5, 1.0]);
    grad_is(&b, &[0.5, 0.0]);
    Ok(())
}

#[test]
fn broadcast_operands_get_their_own_shape_back() -> Result<()> {
    let a = leaf([[1.0f32], [2.0], [3.0]]);
    let b = leaf([[1.0f32, 10.0, 100.0, 1000.0]]);
    a.mul(&b)?.sum(())?.backward()?;
    grad_is(&a, &[1111.0; 3]);
    grad_is(&b, &[6.0; 4]);
    assert_eq!(a.grad().unwrap().dims(), [3, 1]);
    assert_eq!(b.grad().unwrap().dims(), [1, 4]);
    let (scalar, matrix) = (leaf(2.0f32), leaf([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]));
    scalar.mul(&matrix)?.sum(())?.backward()?;
    grad_is(&scalar, &[21.0]);
    assert_eq!(scalar.grad().unwrap().rank(), 0);
    grad_is(&matrix, &[2.0; 6]);
    let (vector, cube) = (
        leaf([1.0f32, 2.0, 3.0]),
        leaf([[[1.0f32, 1.0, 1.0]], [[2.0, 2.0, 2.0]]]),
    );
    vector.mul(&cube)?.sum(())?.backward()?;
    grad_is(&vector, &[3.0; 3]);
    grad_is(&cube, &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    Ok(())
}
