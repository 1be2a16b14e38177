//! Result dtypes: the table of PyTorch's `result_type`, with its rules for scalar tensors and plain numbers.

use drivetrain_cpu as _;
use drivetrain_tensor::{DType, Device, Result, Tensor};

use DType::{BF16, Bool, F16, F32, F64, I32, I64, U8};

const ORDER: [DType; 8] = [Bool, U8, I32, I64, F16, BF16, F32, F64];

fn ones(shape: &[usize], dtype: DType) -> Tensor {
    Tensor::ones(shape, dtype, &Device::open("cpu").unwrap()).unwrap()
}

/// torch.result_type of two tensors with dimensions, both in `ORDER`.
#[rustfmt::skip]
const TENSORS: [[DType; 8]; 8] = [
    [Bool, U8,   I32,  I64,  F16,  BF16, F32, F64],
    [U8,   U8,   I32,  I64,  F16,  BF16, F32, F64],
    [I32,  I32,  I32,  I64,  F16,  BF16, F32, F64],
    [I64,  I64,  I64,  I64,  F16,  BF16, F32, F64],
    [F16,  F16,  F16,  F16,  F16,  F32,  F32, F64],
    [BF16, BF16, BF16, BF16, F32,  BF16, F32, F64],
    [F32,  F32,  F32,  F32,  F32,  F32,  F32, F64],
    [F64,  F64,  F64,  F64,  F64,  F64,  F64, F64],
];

/// The same with the second one a tensor without dimensions: within a category it does not widen.
#[rustfmt::skip]
const SCALAR_TENSOR: [[DType; 8]; 8] = [
    [Bool, U8,   I32,  I64,  F16,  BF16, F32,  F64],
    [U8,   U8,   U8,   U8,   F16,  BF16, F32,  F64],
    [I32,  I32,  I32,  I32,  F16,  BF16, F32,  F64],
    [I64,  I64,  I64,  I64,  F16,  BF16, F32,  F64],
    [F16,  F16,  F16,  F16,  F16,  F16,  F16,  F16],
    [BF16, BF16, BF16, BF16, BF16, BF16, BF16, BF16],
    [F32,  F32,  F32,  F32,  F32,  F32,  F32,  F32],
    [F64,  F64,  F64,  F64,  F64,  F64,  F64,  F64],
];

#[test]
fn two_tensors() -> Result<()> {
    for (i, a) in ORDER.into_iter().enumerate() {
        for (j, b) in ORDER.into_iter().enumerate() {
            let (x, y) = (ones(&[2], a), ones(&[2], b));
            let (x0, y0) = (ones(&[], a), ones(&[], b));
            assert_eq!(x.add(&y)?.dtype(), TENSORS[i][j], "{a} + {b}");
            assert_eq!(x.mul(&y0)?.dtype(), SCALAR_TENSOR[i][j], "{a} · {b} scalar");
            assert_eq!(y0.mul(&x)?.dtype(), SCALAR_TENSOR[i][j], "{b} scalar · {a}");
            assert_eq!(
                x0.add(&y0)?.dtype(),
                TENSORS[i][j],
                "{a} scalar + {b} scalar"
            );
            assert_eq!(x.eq(&y)?.dtype(), Bool);
            assert_eq!(
                x.where_(&x.eq(&y)?, &y)?.dtype(),
                TENSORS[i][j],
                "where {a} {b}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_tensor_and_a_number() -> Result<()> {
    for a in ORDER {
        for shape in [&[2usize][..], &[]] {
            let x = ones(shape, a);
            let float = if a.is_float() { a } else { F32 };
            let int = if a == Bool { I64 } else { a };
            assert_eq!(x.mul(2.5)?.dtype(), float, "{a} · 2.5");
            assert_eq!(x.add(2i64)?.dtype(), int, "{a} + 2");
            assert_eq!(x.mul(true)?.dtype(), a, "{a} · true");
            assert_eq!(
                (1.5 - &x.add(0i64)?)?.dtype(),
                if a == Bool { F32 } else { float }
            );
            assert_eq!(x.div(2i64)?.dtype(), float, "{a} / 2");
            assert_eq!(x.div(&x)?.dtype(), float, "{a} / {a}");
            assert_eq!(x.gt(0.5)?.dtype(), Bool);
        }
    }
    Ok(())
}

#[test]
fn results_of_one_tensor() -> Result<()> {
    for a in ORDER {
        let x = ones(&[2, 2], a);
        let (float, wide) = (
            if a.is_float() { a } else { F32 },
            if a.is_float() { a } else { I64 },
        );
        assert_eq!(x.sum(())?.dtype(), wide, "sum of {a}");
        assert_eq!(x.prod(0)?.dtype(), wide, "prod of {a}");
        assert_eq!(x.cumsum(0)?.dtype(), wide, "cumsum of {a}");
        assert_eq!(x.mean(())?.dtype(), float, "mean of {a}");
        assert_eq!(x.exp()?.dtype(), float, "exp of {a}");
        assert_eq!(x.sqrt()?.dtype(), float, "sqrt of {a}");
        assert_eq!(x.amax(())?.dtype(), a, "amax of {a}");
        assert_eq!(x.argmax(0, false)?.dtype(), I64);
        assert_eq!(x.logical_and(&x)?.dtype(), Bool);
    }
    Ok(())
}
