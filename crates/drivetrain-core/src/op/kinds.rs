//! The small enums that parametrise ops: which unary, binary, comparison, reduction.

/// Declares a field-less enum whose numbers are part of the plugin ABI.
macro_rules! coded_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum $name { $($(#[$variant_doc])* $variant = $code,)* }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// PyTorch's name of it, as used in messages and conformance cases.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The one with this number.
            pub fn from_code(code: u32) -> Option<$name> {
                $name::ALL.iter().copied().find(|kind| *kind as u32 == code)
            }
        }
    };
}

coded_enum! {
    /// Element-wise functions of one operand; the result has the operand's dtype.
    ///
    /// Integers take `Neg`, `Abs`, `Sign`, `Square` and the rounding ones (which do nothing); Bool takes
    /// `LogicalNot`; the others are for floats. Halves are computed in F32 and rounded once.
    UnaryOp {
        /// -x; wraps for integers.
        Neg = 0, "neg";
        /// |x|.
        Abs = 1, "abs";
        /// -1, 0 or 1; 0 for NaN as in PyTorch.
        Sign = 2, "sign";
        /// Largest integer not above x.
        Floor = 3, "floor";
        /// Smallest integer not below x.
        Ceil = 4, "ceil";
        /// Nearest integer, halves to even.
        Round = 5, "round";
        /// Towards zero.
        Trunc = 6, "trunc";
        /// x².
        Square = 7, "square";
        /// Square root.
        Sqrt = 8, "sqrt";
        /// 1/√x.
        Rsqrt = 9, "rsqrt";
        /// 1/x.
        Reciprocal = 10, "reciprocal";
        /// eˣ.
        Exp = 11, "exp";
        /// eˣ - 1, exact near 0.
        Expm1 = 12, "expm1";
        /// Natural logarithm.
        Log = 13, "log";
        /// ln(1 + x), exact near 0.
        Log1p = 14, "log1p";
        /// Base-2 logarithm.
        Log2 = 15, "log2";
        /// Sine, radians.
        Sin = 16, "sin";
        /// Cosine, radians.
        Cos = 17, "cos";
        /// Tangent, radians.
        Tan = 18, "tan";
        /// Hyperbolic tangent.
        Tanh = 19, "tanh";
        /// Gauss error function.
        Erf = 20, "erf";
        /// 1/(1 + e⁻ˣ), without overflow.
        Sigmoid = 21, "sigmoid";
        /// max(x, 0); NaN stays NaN.
        Relu = 22, "relu";
        /// Not, of Bool.
        LogicalNot = 23, "logical_not";
    }
}

coded_enum! {
    /// Element-wise functions of two operands of one dtype and shape; the result has that dtype.
    BinaryOp {
        /// a + b; integers wrap; Bool: or.
        Add = 0, "add";
        /// a - b.
        Sub = 1, "sub";
        /// a × b; Bool: and.
        Mul = 2, "mul";
        /// a ÷ b, floats only (integers are cast first, as PyTorch's true division).
        Div = 3, "div";
        /// a to the power b: 0⁰ is 1, negative bases with integral exponents are real.
        Pow = 4, "pow";
        /// The larger; NaN if either is.
        Maximum = 5, "maximum";
        /// The smaller; NaN if either is.
        Minimum = 6, "minimum";
        /// Angle of the point (b, a).
        Atan2 = 7, "atan2";
        /// a - b·⌊a/b⌋: the sign of b, as Python's `%`. Integer division by 0 gives 0.
        Remainder = 8, "remainder";
        /// ⌊a/b⌋. Integer division by 0 gives 0.
        FloorDivide = 9, "floor_divide";
        /// Bool only.
        LogicalAnd = 10, "logical_and";
        /// Bool only.
        LogicalOr = 11, "logical_or";
        /// Bool only.
        LogicalXor = 12, "logical_xor";
    }
}

coded_enum! {
    /// Comparisons of two operands of one dtype and shape; the result is Bool. NaN is unequal to all.
    CompareOp {
        /// a = b.
        Eq = 0, "eq";
        /// a ≠ b.
        Ne = 1, "ne";
        /// a < b.
        Lt = 2, "lt";
        /// a ≤ b.
        Le = 3, "le";
        /// a > b.
        Gt = 4, "gt";
        /// a ≥ b.
        Ge = 5, "ge";
    }
}

coded_enum! {
    /// How a reduction joins elements.
    ReduceOp {
        /// Sum, kept in the accumulation type.
        Sum = 0, "sum";
        /// Product, kept in the accumulation type.
        Prod = 1, "prod";
        /// Largest; NaN wins. Bool: any.
        Max = 2, "amax";
        /// Smallest; NaN wins. Bool: all.
        Min = 3, "amin";
    }
}

coded_enum! {
    /// Which extreme an arg-reduction looks for.
    ArgReduceOp {
        /// Index of the largest; the first of equals; NaN counts as the largest.
        Max = 0, "argmax";
        /// Index of the smallest; the first of equals; NaN counts as the smallest.
        Min = 1, "argmin";
    }
}

coded_enum! {
    /// What a cumulative op joins.
    CumulativeOp {
        /// Running sum.
        Sum = 0, "cumsum";
        /// Running product.
        Prod = 1, "cumprod";
    }
}

coded_enum! {
    /// What a scatter does where it lands.
    ScatterMode {
        /// Adds; repeated indices add up in the order of the source.
        Add = 0, "scatter_add";
        /// Overwrites; of repeated indices the last of the source stays.
        Set = 1, "scatter";
    }
}

coded_enum! {
    /// What a random op draws.
    RandomKind {
        /// The raw 32-bit words, as I64 in 0..2³² (one word an element).
        Bits = 0, "random_bits";
        /// Uniform in [0, 1): as many leading bits of the word as the dtype's mantissa holds.
        Uniform = 1, "rand";
        /// Standard normal (Box–Muller in F64 with core's own log and cosine).
        Normal = 2, "randn";
    }
}

coded_enum! {
    /// Activation functions; `alpha` and `beta` as each says, 0 where unused.
    ActivationKind {
        /// x·Φ(x), with erf.
        Gelu = 0, "gelu";
        /// x·Φ(x), tanh approximation.
        GeluTanh = 1, "gelu_tanh";
        /// x·σ(x).
        Silu = 2, "silu";
        /// x·tanh(softplus(x)).
        Mish = 3, "mish";
        /// ln(1 + e^(αx))/α, x itself where αx > β (β is PyTorch's threshold, 20).
        Softplus = 4, "softplus";
        /// x/(1 + |x|).
        Softsign = 5, "softsign";
        /// x where x > 0, else α(eˣ - 1).
        Elu = 6, "elu";
        /// x where x > 0, else αx.
        LeakyRelu = 7, "leaky_relu";
        /// min(max(x, 0), 6).
        Relu6 = 8, "relu6";
        /// min(max(x/6 + 1/2, 0), 1). The gradient inside is PyTorch's: 1/6 rounded to F32 in every dtype.
        HardSigmoid = 9, "hardsigmoid";
        /// x·hardsigmoid(x).
        HardSwish = 10, "hardswish";
        /// ln σ(x).
        LogSigmoid = 11, "logsigmoid";
        /// min(max(x, α), β); on a bound the gradient is 0.
        HardTanh = 12, "hardtanh";
        /// β·(x where x > 0, else α(eˣ - 1)).
        Selu = 13, "selu";
        /// max(0, x) + min(0, α(e^(x/α) - 1)).
        Celu = 14, "celu";
    }
}
