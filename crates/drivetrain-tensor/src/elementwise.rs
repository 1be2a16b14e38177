//! Element-wise operations: arithmetic with promotion and broadcasting, functions, comparisons, choices.

use crate::run::run_one;
use crate::{Operand, Tensor};
use drivetrain_core::{
    ActivationKind, BinaryOp, CompareOp, Composite, DType, Error, Primitive, Result, Scalar, Shape,
    UnaryOp, ViewOp,
};

/// 0 for Bool, 1 for integers, 2 for floats: PyTorch's categories.
fn category(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        _ if dtype.is_int() => 1,
        _ => 2,
    }
}

/// The dtype of an operation on two tensors: a scalar tensor counts as a number when its category is not higher.
pub(crate) fn result_type(a: &Tensor, b: &Tensor) -> DType {
    let (x, y) = (a.dtype(), b.dtype());
    match (a.rank() == 0, b.rank() == 0) {
        (true, false) if category(x) <= category(y) => y,
        (false, true) if category(y) <= category(x) => x,
        _ => x.promote(y),
    }
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            ///
            /// # Errors
            /// A dtype that the function does not take.
            #[track_caller]
            pub fn $name(&self) -> Result<Tensor> {
                self.unary(UnaryOp::$op)
            })*
        }
    };
}

unary_methods! {
    /// -x.
    neg => Neg;
    /// |x|.
    abs => Abs;
    /// -1, 0 or 1.
    sign => Sign;
    /// Largest integer not above x.
    floor => Floor;
    /// Smallest integer not below x.
    ceil => Ceil;
    /// Nearest integer, halves to even.
    round => Round;
    /// Towards zero.
    trunc => Trunc;
    /// x².
    square => Square;
    /// Square root.
    sqrt => Sqrt;
    /// 1/√x.
    rsqrt => Rsqrt;
    /// 1/x.
    reciprocal => Reciprocal;
    /// eˣ.
    exp => Exp;
    /// eˣ - 1, exact near 0.
    expm1 => Expm1;
    /// Natural logarithm.
    log => Log;
    /// ln(1 + x), exact near 0.
    log1p => Log1p;
    /// Base-2 logarithm.
    log2 => Log2;
    /// Sine of radians.
    sin => Sin;
    /// Cosine of radians.
    cos => Cos;
    /// Tangent of radians.
    tan => Tan;
    /// Hyperbolic tangent.
    tanh => Tanh;
    /// Gauss error function.
    erf => Erf;
    /// 1/(1 + e⁻ˣ).
    sigmoid => Sigmoid;
    /// max(x, 0).
    relu => Relu;
    /// Not, of Bool (other dtypes: x = 0).
    logical_not => LogicalNot;
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            ///
            /// `other` is a tensor or a number; shapes broadcast, dtypes promote.
            ///
            /// # Errors
            /// Shapes that do not broadcast, devices that differ, a dtype that the operation does not take.
            #[track_caller]
            pub fn $name<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                self.binary(BinaryOp::$op, other.into())
            })*
        }
    };
}

binary_methods! {
    /// Sum.
    add => Add;
    /// Difference.
    sub => Sub;
    /// Product.
    mul => Mul;
    /// Quotient; integers divide as floats.
    div => Div;
    /// Power.
    pow => Pow;
    /// The larger of both; NaN if either is.
    maximum => Maximum;
    /// The smaller of both; NaN if either is.
    minimum => Minimum;
    /// Angle of the point (other, self).
    atan2 => Atan2;
    /// Remainder with the divisor's sign, as Python's `%`.
    remainder => Remainder;
    /// ⌊self/other⌋.
    floor_divide => FloorDivide;
    /// Both, of Bool.
    logical_and => LogicalAnd;
    /// Either, of Bool.
    logical_or => LogicalOr;
    /// One but not both, of Bool.
    logical_xor => LogicalXor;
}

macro_rules! compare_methods {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            /// Element by element with a tensor or a number, as Bool.
            ///
            /// # Errors
            /// Shapes that do not broadcast, or devices that differ.
            #[track_caller]
            pub fn $name<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                self.compare(CompareOp::$op, other.into())
            })*
        }
    };
}

compare_methods! {
    /// Equal.
    eq => Eq;
    /// Not equal.
    ne => Ne;
    /// Less.
    lt => Lt;
    /// Less or equal.
    le => Le;
    /// Greater.
    gt => Gt;
    /// Greater or equal.
    ge => Ge;
}

macro_rules! activation_methods {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*) => $kind:ident, $alpha:expr, $beta:expr;)*) => {
        impl Tensor {
            $($(#[$doc])*
            ///
            /// # Errors
            /// A dtype that is not a float.
            #[track_caller]
            pub fn $name(&self $(, $argument: f64)*) -> Result<Tensor> {
                self.activation(ActivationKind::$kind, $alpha, $beta)
            })*
        }
    };
}

activation_methods! {
    /// x·Φ(x), exact (with erf).
    gelu() => Gelu, 0.0, 0.0;
    /// x·Φ(x) in the tanh approximation.
    gelu_tanh() => GeluTanh, 0.0, 0.0;
    /// x·σ(x), also called swish.
    silu() => Silu, 0.0, 0.0;
    /// x·tanh(softplus(x)).
    mish() => Mish, 0.0, 0.0;
    /// ln(1 + e^(βx))/β; x itself where βx > `threshold`.
    softplus(beta, threshold) => Softplus, beta, threshold;
    /// x/(1 + |x|).
    softsign() => Softsign, 0.0, 0.0;
    /// x where positive, else α(eˣ - 1).
    elu(alpha) => Elu, alpha, 0.0;
    /// x where positive, else `negative_slope`·x.
    leaky_relu(negative_slope) => LeakyRelu, negative_slope, 0.0;
    /// min(max(x, 0), 6).
    relu6() => Relu6, 0.0, 0.0;
    /// min(max(x/6 + 1/2, 0), 1).
    hardsigmoid() => HardSigmoid, 0.0, 0.0;
    /// x·hardsigmoid(x).
    hardswish() => HardSwish, 0.0, 0.0;
    /// ln σ(x).
    logsigmoid() => LogSigmoid, 0.0, 0.0;
    /// min(max(x, `low`), `high`).
    hardtanh(low, high) => HardTanh, low, high;
    /// Self-normalising: Klambauer et al. 2017.
    selu() => Selu, 1.673_263_242_354_377_2, 1.050_700_987_355_480_5;
    /// max(0, x) + min(0, α(e^(x/α) - 1)).
    celu(alpha) => Celu, alpha, 0.0;
}

impl Tensor {
    /// An element-wise function; integers are taken as F32 where it needs floats.
    #[track_caller]
    pub(crate) fn unary(&self, op: UnaryOp) -> Result<Tensor> {
        use UnaryOp::*;
        let whole = matches!(
            op,
            Neg | Abs | Sign | Floor | Ceil | Round | Trunc | Square | Relu
        );
        match op {
            LogicalNot if self.dtype() != DType::Bool => self.eq(0),
            LogicalNot => run_one(Primitive::Unary(op), &[self]),
            Floor | Ceil | Round | Trunc if self.dtype().is_int() => Ok(self.clone()),
            _ if self.dtype().is_float() || (whole && self.dtype().is_int()) => {
                run_one(Primitive::Unary(op), &[self])
            }
            _ => run_one(
                Primitive::Unary(op),
                &[&self.to_dtype(if whole { DType::I64 } else { DType::F32 })?],
            ),
        }
    }

    #[track_caller]
    fn activation(&self, kind: ActivationKind, alpha: f64, beta: f64) -> Result<Tensor> {
        run_one(Composite::Activation { kind, alpha, beta }, &[self])
    }

    #[track_caller]
    pub(crate) fn binary(&self, op: BinaryOp, other: Operand<'_>) -> Result<Tensor> {
        match other {
            Operand::Tensor(other) => {
                let dtype = operation_type(op, result_type(self, other));
                let (a, b) = broadcast(op.name(), &self.to_dtype(dtype)?, &other.to_dtype(dtype)?)?;
                run_one(Primitive::Binary(op), &[&a, &b])
            }
            Operand::Scalar(scalar) => self.binary_scalar(op, scalar, false),
        }
    }

    /// `self op scalar`, or `scalar op self` when `reversed`.
    #[track_caller]
    pub(crate) fn binary_scalar(
        &self,
        op: BinaryOp,
        scalar: Scalar,
        reversed: bool,
    ) -> Result<Tensor> {
        let dtype = operation_type(op, self.dtype().promote_scalar(scalar));
        let op = Composite::BinaryScalar {
            op,
            scalar,
            reversed,
        };
        run_one(op, &[&self.to_dtype(dtype)?])
    }

    #[track_caller]
    fn compare(&self, op: CompareOp, other: Operand<'_>) -> Result<Tensor> {
        match other {
            Operand::Tensor(other) => {
                let dtype = result_type(self, other);
                let (a, b) = broadcast(op.name(), &self.to_dtype(dtype)?, &other.to_dtype(dtype)?)?;
                run_one(Primitive::Compare(op), &[&a, &b])
            }
            Operand::Scalar(scalar) => {
                let dtype = self.dtype().promote_scalar(scalar);
                run_one(
                    Composite::CompareScalar { op, scalar },
                    &[&self.to_dtype(dtype)?],
                )
            }
        }
    }

    /// x limited to `min`..`max`; either may be left out. NaN stays; where it was limited the gradient is 0.
    ///
    /// # Errors
    /// When both are left out.
    #[track_caller]
    pub fn clamp(
        &self,
        min: impl Into<Option<f64>>,
        max: impl Into<Option<f64>>,
    ) -> Result<Tensor> {
        match (min.into(), max.into()) {
            (None, None) => Err(Error::argument("clamp", "neither min nor max is given")),
            // With min above max everything becomes max, as in PyTorch.
            (Some(min), Some(max)) if self.dtype().is_float() && min <= max => {
                self.hardtanh(min, max)
            }
            (min, max) => {
                let number = |v: f64| {
                    if self.dtype().is_float() {
                        Scalar::F64(v)
                    } else {
                        Scalar::I64(v as i64)
                    }
                };
                let mut x = self.clone();
                if let Some(min) = min {
                    x = x.maximum(Operand::Scalar(number(min)))?;
                }
                if let Some(max) = max {
                    x = x.minimum(Operand::Scalar(number(max)))?;
                }
                Ok(x)
            }
        }
    }

    /// x where `condition` (Bool) holds, else `other`; all three broadcast. The branch not taken gets a gradient
    /// of 0, whatever its value.
    ///
    /// # Errors
    /// Shapes that do not broadcast, or a condition that is not Bool.
    #[track_caller]
    pub fn where_<'a>(&self, condition: &Tensor, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        let number;
        let other = match other.into() {
            Operand::Tensor(other) => other,
            Operand::Scalar(scalar) => {
                let dtype = self.dtype().promote_scalar(scalar);
                number = Tensor::full((), scalar, dtype, self.device())?;
                &number
            }
        };
        let dtype = result_type(self, other);
        let condition = match condition.dtype() {
            DType::U8 => condition.to_dtype(DType::Bool)?,
            _ => condition.clone(),
        };
        let shape = self.shape().broadcast(other.shape(), "where")?;
        let shape = condition.shape().broadcast(&shape, "where")?;
        let condition = condition.expand(shape)?;
        let (a, b) = (
            self.to_dtype(dtype)?.expand(shape)?,
            other.to_dtype(dtype)?.expand(shape)?,
        );
        run_one(Primitive::Where, &[&condition, &a, &b])
    }

    /// `value` where `mask` (Bool) holds, else x. The mask broadcasts to x.
    ///
    /// # Errors
    /// A mask that does not broadcast to x.
    #[track_caller]
    pub fn masked_fill(&self, mask: &Tensor, value: impl Into<Scalar>) -> Result<Tensor> {
        let value = Tensor::full((), value, self.dtype(), self.device())?;
        let mask = match mask.dtype() {
            DType::Bool => mask.clone(),
            _ => mask.to_dtype(DType::Bool)?,
        };
        let result = value.where_(&mask, self)?;
        if result.shape() != self.shape() {
            return Err(Error::shape(
                "masked_fill",
                format!("a mask {} for a tensor {}", mask.shape(), self.shape()),
            ));
        }
        Ok(result)
    }

    /// x in another dtype; itself when it has it. Floats become integers by truncation, saturating; NaN gives 0.
    #[track_caller]
    #[allow(clippy::missing_errors_doc)]
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        run_one(Primitive::Cast { to: dtype }, &[self])
    }

    /// Whether each element is NaN, as Bool.
    #[track_caller]
    #[allow(clippy::missing_errors_doc)]
    pub fn isnan(&self) -> Result<Tensor> {
        self.ne(self)
    }

    /// Whether each element is neither NaN nor infinite, as Bool.
    #[track_caller]
    #[allow(clippy::missing_errors_doc)]
    pub fn isfinite(&self) -> Result<Tensor> {
        if !self.dtype().is_float() {
            return self.eq(self);
        }
        // x - x is 0 for finite x and NaN otherwise.
        self.detach().sub(&self.detach())?.eq(0.0)
    }
}

/// The dtype that an operation runs in when its operands promote to `dtype`.
fn operation_type(op: BinaryOp, dtype: DType) -> DType {
    match op {
        BinaryOp::Div | BinaryOp::Atan2 if !dtype.is_float() => DType::F32,
        BinaryOp::LogicalAnd | BinaryOp::LogicalOr | BinaryOp::LogicalXor => DType::Bool,
        BinaryOp::Sub | BinaryOp::Pow | BinaryOp::Remainder | BinaryOp::FloorDivide
            if dtype == DType::Bool =>
        {
            DType::I64
        }
        _ => dtype,
    }
}

/// Both operands expanded to their common shape.
#[track_caller]
pub(crate) fn broadcast(
    operation: &'static str,
    a: &Tensor,
    b: &Tensor,
) -> Result<(Tensor, Tensor)> {
    if a.shape() == b.shape() {
        return Ok((a.clone(), b.clone()));
    }
    let shape = a
        .shape()
        .broadcast(b.shape(), operation)
        .map_err(|e| e.on(a.device()))?;
    Ok((expanded(a, shape)?, expanded(b, shape)?))
}

fn expanded(x: &Tensor, shape: Shape) -> Result<Tensor> {
    if *x.shape() == shape {
        return Ok(x.clone());
    }
    crate::run::run_view(ViewOp::Expand(shape), x)
}
