//! Printing: the same text as PyTorch's for the same values.

use drivetrain_cpu as _;
use drivetrain_tensor::{DType, Device, Result, Tensor, detect_anomaly};

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

/// 0, 1, 2, … in a shape.
fn count(shape: &[usize], dtype: DType) -> Tensor {
    let n: usize = shape.iter().product();
    let values: Vec<f64> = (0..n).map(|i| i as f64).collect();
    Tensor::from_slice(&values, shape, &cpu())
        .and_then(|t| t.to_dtype(dtype))
        .unwrap()
}

fn floats<const N: usize>(values: [f32; N]) -> Tensor {
    Tensor::from_data(values, &cpu()).unwrap()
}

#[test]
fn numbers_as_pytorch_writes_them() -> Result<()> {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let d = cpu();
    let cases = [
        (
            floats([0.1, -2.5, 1000.25]),
            "tensor([ 1.0000e-01, -2.5000e+00,  1.0002e+03])",
        ),
        (floats([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
        (floats([1.0, 2000.0]), "tensor([1.0000e+00, 2.0000e+03])"),
        (floats([1.0, 1000.0]), "tensor([   1., 1000.])"),
        (
            floats([nan, inf, -inf, 1.0]),
            "tensor([nan, inf, -inf, 1.])",
        ),
        (floats([nan, 0.5, -inf]), "tensor([   nan, 0.5000,   -inf])"),
        (floats([0.0, -0.0, inf]), "tensor([0., -0., inf])"),
        (floats([]), "tensor([])"),
        (
            Tensor::from_data([true, false], &d)?,
            "tensor([ True, False])",
        ),
        (
            Tensor::from_data([1i64, -20, 300], &d)?,
            "tensor([  1, -20, 300])",
        ),
        (
            Tensor::from_data([i64::MAX, i64::MIN], &d)?,
            "tensor([ 9223372036854775807, -9223372036854775808])",
        ),
        (
            Tensor::from_data([1.5f64], &d)?,
            "tensor([1.5000], dtype=float64)",
        ),
        (Tensor::from_data(3.25f32, &d)?, "tensor(3.2500)"),
        (Tensor::from_data(7i64, &d)?, "tensor(7)"),
        (
            Tensor::zeros([0, 3], DType::F32, &d)?,
            "tensor([], size=(0, 3))",
        ),
        (
            Tensor::zeros([0], DType::I64, &d)?,
            "tensor([], dtype=int64)",
        ),
        (
            Tensor::zeros([2, 0, 4], DType::I32, &d)?,
            "tensor([], size=(2, 0, 4), dtype=int32)",
        ),
        (
            floats([1.5, 2.0]).to_dtype(DType::BF16)?,
            "tensor([1.5000, 2.0000], dtype=bfloat16)",
        ),
        (
            Tensor::from_data([1e10f64, 0.0, f64::NAN], &d)?,
            "tensor([1.0000e+10, 0.0000e+00,        nan], dtype=float64)",
        ),
    ];
    for (tensor, text) in cases {
        assert_eq!(tensor.to_string(), text);
        assert_eq!(format!("{tensor:?}"), text);
    }
    assert_eq!(
        format!("{:.2}", floats([0.5, 0.125])),
        "tensor([0.50, 0.12])"
    );
    Ok(())
}

#[test]
fn nested_brackets_and_long_lines() -> Result<()> {
    let cube = "\
tensor([[[ 0.,  1.,  2.,  3.],
         [ 4.,  5.,  6.,  7.],
         [ 8.,  9., 10., 11.]],

        [[12., 13., 14., 15.],
         [16., 17., 18., 19.],
         [20., 21., 22., 23.]]])";
    assert_eq!(count(&[2, 3, 4], DType::F32).to_string(), cube);
    let four = "\
tensor([[[[ 0,  1],
          [ 2,  3]],

         [[ 4,  5],
          [ 6,  7]]],


        [[[ 8,  9],
          [10, 11]],

         [[12, 13],
          [14, 15]]]], dtype=uint8)";
    assert_eq!(count(&[2, 2, 2, 2], DType::U8).to_string(), four);
    let sevenths = "\
tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,
        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,
        2.5714, 2.7143, 2.8571, 3.0000, 3.1429, 3.2857, 3.4286, 3.5714, 3.7143,
        3.8571, 4.0000, 4.1429])";
    assert_eq!(count(&[30], DType::F32).div(7.0)?.to_string(), sevenths);
    let suffixes = "\
tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000, 2.3333, 2.6667,
        3.0000, 3.3333, 3.6667, 4.0000, 4.3333, 4.6667, 5.0000, 5.3333, 5.6667],
       dtype=float64, requires_grad=True)";
    let x = count(&[18], DType::F64).div(3.0)?.requires_grad_()?;
    assert_eq!(x.to_string(), suffixes);
    Ok(())
}

#[test]
fn large_tensors_are_summarised() -> Result<()> {
    let line = "tensor([   0,    1,    2,  ...,  998,  999, 1000])";
    assert_eq!(count(&[1001], DType::I64).to_string(), line);
    assert!(!count(&[1000], DType::I64).to_string().contains("..."));
    let matrix = "\
tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 4.7000e+01, 4.8000e+01,
         4.9000e+01],
        [5.0000e+01, 5.1000e+01, 5.2000e+01,  ..., 9.7000e+01, 9.8000e+01,
         9.9000e+01],
        [1.0000e+02, 1.0100e+02, 1.0200e+02,  ..., 1.4700e+02, 1.4800e+02,
         1.4900e+02],
        ...,
        [1.8500e+03, 1.8510e+03, 1.8520e+03,  ..., 1.8970e+03, 1.8980e+03,
         1.8990e+03],
        [1.9000e+03, 1.9010e+03, 1.9020e+03,  ..., 1.9470e+03, 1.9480e+03,
         1.9490e+03],
        [1.9500e+03, 1.9510e+03, 1.9520e+03,  ..., 1.9970e+03, 1.9980e+03,
         1.9990e+03]])";
    let x = count(&[40, 50], DType::F32);
    assert_eq!(x.to_string(), matrix);
    // A view prints as what it shows: the transposed transposed.
    let turned = x.t()?.contiguous()?.t()?;
    assert!(!turned.is_contiguous());
    assert_eq!(turned.to_string(), matrix);
    let bools = "\
tensor([[ True, False, False,  ..., False,  True, False],
        [False, False, False,  ..., False, False, False]])";
    let sevens = count(&[2, 1500], DType::I64).remainder(7i64)?.eq(0)?;
    assert_eq!(sevens.to_string(), bools);
    let cube = count(&[20, 20, 20], DType::I64).to_string();
    assert_eq!(cube.lines().count(), 6 * 7 + 6 + 1 + 1 - 1);
    assert!(cube.contains("\n         ...,\n         [ 340,  341,"));
    assert!(cube.contains("]],\n\n        ...,\n\n        [[6800,"));
    Ok(())
}

#[test]
fn what_backward_will_do_is_shown() -> Result<()> {
    let x = floats([1.0, 2.0]).requires_grad_()?;
    assert_eq!(x.to_string(), "tensor([1., 2.], requires_grad=True)");
    assert_eq!(
        (&x * 2.0)?.to_string(),
        "tensor([2., 4.], grad_fn=<MulBackward>)"
    );
    let y = x.log_softmax(0)?;
    assert!(y.to_string().ends_with("grad_fn=<LogSoftmaxBackward>)"));
    assert_eq!(x.detach().to_string(), "tensor([1., 2.])");
    Ok(())
}

#[test]
fn a_nan_is_printed_also_while_searching_for_it() {
    let x = count(&[1200], DType::F64).mul(f64::INFINITY).unwrap();
    let text = detect_anomaly(|| x.to_string());
    assert!(text.starts_with("tensor([nan, inf, inf,"), "{text}");
}
