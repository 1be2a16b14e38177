//! `Matmul` for every dtype, row by row: integers, and floats where the fast kernels do not pay.

use crate::element::Stored;
use crate::kernels::math::Number;
use crate::simd::{self, Kernel};
use crate::{parallel, view};
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{DType, Operand};

/// a [batch…, M, K] times b [batch…, K, N]; sums are kept in the accumulation type. Inference
/// has refused Bool.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn matmul(a: &Operand, b: &Operand, out: &Operand) {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match a.dtype {
            DType::F32 => product::<f32, f32, f32>(a, b, out),
            DType::F64 => product::<f64, f64, f64>(a, b, out),
            DType::F16 => product::<f16, f32, f16>(a, b, out),
            DType::BF16 => product::<bf16, f32, bf16>(a, b, out),
            DType::I64 => product::<i64, i64, i64>(a, b, out),
            DType::I32 if out.dtype == DType::I64 => product::<i32, i64, i64>(a, b, out),
            DType::I32 => product::<i32, i64, i32>(a, b, out),
            DType::U8 | DType::Bool if out.dtype == DType::I64 => {
                product::<u8, i64, i64>(a, b, out)
            }
            DType::U8 | DType::Bool => product::<u8, i64, u8>(a, b, out),
        }
    }
}

/// Sizes and numbers of a product.
struct Product<'a, C> {
    a: &'a [C],
    b: &'a [C],
    m: usize,
    n: usize,
    k: usize,
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn product<T: Stored<C>, C: Number, O: Stored<C>>(a: &Operand, b: &Operand, out: &Operand) {
    let [.., m, k] = *a.layout.dims() else { return };
    let [.., n] = *b.layout.dims() else { return };
    // SAFETY: as the caller promises.
    let (a, b) = unsafe { (view::numbers::<T, C>(a), view::numbers::<T, C>(b)) };
    // SAFETY: as the caller promises.
    let out = unsafe { view::slice_mut::<O>(out) };
    let product = Product {
        a: &a,
        b: &b,
        m,
        n,
        k,
    };
    // Whole rows, about 2¹⁶ multiplications a piece.
    let rows = (65_536 / (n * k)).max(1);
    parallel::chunks(out, rows * n, &|start, chunk| {
        let mut sums = vec![C::ZERO; n];
        for (i, row) in chunk.chunks_exact_mut(n).enumerate() {
            simd::run(Row {
                product: &product,
                row: start / n + i,
                sums: &mut sums,
            });
            for (slot, &sum) in row.iter_mut().zip(&sums) {
                *slot = O::store(sum);
            }
        }
    });
}

/// One row of the result: multiples of b's rows are added up.
struct Row<'a, C> {
    product: &'a Product<'a, C>,
    row: usize,
    sums: &'a mut [C],
}

impl<C: Number> Kernel for Row<'_, C> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Product { a, b, m, n, k } = *self.product;
        let (batch, row) = (self.row / m, self.row % m);
        let a = &a[(batch * m + row) * k..][..k];
        let b = &b[batch * k * n..][..k * n];
        self.sums.fill(C::ZERO);
        for (&a, b) in a.iter().zip(b.chunks_exact(n)) {
            for (sum, &b) in self.sums.iter_mut().zip(b) {
                *sum = sum.add(a.mul(b));
            }
        }
    }
}
