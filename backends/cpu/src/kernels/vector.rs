//! What composite kernels share: real numbers with operators, loops compiled for each vector level, sums in
//! lanes, and operands as contiguous numbers.

use super::copy;
use super::math::Float;
use crate::cursor::{BLOCK, Cursor};
use crate::element::Stored;
use crate::{parallel, view};
use drivetrain_core::{Layout, Operand, RawBuffer};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};
use std::thread::LocalKey;

/// F32 or F64, with operators.
pub(crate) trait Real:
    Float
    + Stored<Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    /// Rounded.
    fn from_f64(value: f64) -> Self;
    /// Exactly.
    fn to_f64(self) -> f64;
    /// This thread's reusable buffer.
    fn scratch() -> &'static LocalKey<Cell<Vec<Self>>>;
    /// out = a·b, or out += a·b, on this thread, by a library's kernel.
    ///
    /// # Safety
    /// Sizes and strides of each matrix lie within its memory, `out`'s written by nobody else.
    unsafe fn gemm(
        sizes: [usize; 3],
        a: Matrix<Self>,
        b: Matrix<Self>,
        out: Matrix<Self>,
        add: bool,
    );
}

/// A strided matrix: the address of its first element, and elements from row to row and column to column.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<C> {
    /// Of the first element; written only where the matrix is a result.
    pub(crate) first: *mut C,
    /// From row to row.
    pub(crate) row: isize,
    /// From column to column.
    pub(crate) column: isize,
}

impl<C> Matrix<C> {
    /// Row-major numbers that are only read.
    pub(crate) fn of(numbers: &[C], width: usize) -> Matrix<C> {
        Matrix {
            first: numbers.as_ptr().cast_mut(),
            row: width as isize,
            column: 1,
        }
    }

    /// Rows for columns.
    pub(crate) fn transposed(self) -> Matrix<C> {
        Matrix {
            first: self.first,
            row: self.column,
            column: self.row,
        }
    }

    /// The part from a row and a column on, which must be inside.
    pub(crate) fn from(self, row: usize, column: usize) -> Matrix<C> {
        let steps = row as isize * self.row + column as isize * self.column;
        Matrix {
            first: self.first.wrapping_offset(steps),
            ..self
        }
    }
}

macro_rules! real {
    ($type:ty, $scratch:ident) => {
        thread_local! {
            static $scratch: Cell<Vec<$type>> = const { Cell::new(Vec::new()) };
        }
        impl Real for $type {
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn scratch() -> &'static LocalKey<Cell<Vec<Self>>> {
                &$scratch
            }
            // SAFETY: what is asked of callers stands at the trait's declaration.
            unsafe fn gemm(
                [m, n, k]: [usize; 3],
                a: Matrix<Self>,
                b: Matrix<Self>,
                out: Matrix<Self>,
                add: bool,
            ) {
                let accum = if add { Accum::Add } else { Accum::Replace };
                // SAFETY: as the caller promises.
                unsafe {
                    let a = MatRef::from_raw_parts(a.first.cast_const(), m, k, a.row, a.column);
                    let b = MatRef::from_raw_parts(b.first.cast_const(), k, n, b.row, b.column);
                    let out = MatMut::from_raw_parts_mut(out.first, m, n, out.row, out.column);
                    matmul(out, accum, a, b, 1.0, Par::Seq);
                }
            }
        }
    };
}
real!(f32, SCRATCH_F32);
real!(f64, SCRATCH_F64);

/// A function whose loops are compiled for each vector level; which one runs is decided when called.
macro_rules! vectorised {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<$C:ident: $bound:ident>($($arg:ident: $type:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name<$C: $bound>($($arg: $type),*) $(-> $ret)? {
            #[inline(always)]
            fn plain<$C: $bound>($($arg: $type),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn avx2<$C: $bound>($($arg: $type),*) $(-> $ret)? {
                plain($($arg),*)
            }
            match $crate::simd::level() {
                $crate::simd::Level::Baseline => plain($($arg),*),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the processor has these features, as just found.
                $crate::simd::Level::Avx2 => unsafe { avx2($($arg),*) },
            }
        }
    };
}
pub(crate) use vectorised;

/// Calls a function of the stored type and the type computed with, by a float dtype.
macro_rules! for_float {
    ($op:expr, $dtype:expr, $function:ident($($arg:expr),* $(,)?)) => {
        match $dtype {
            drivetrain_core::DType::F32 => $function::<f32, f32>($($arg),*),
            drivetrain_core::DType::F64 => $function::<f64, f64>($($arg),*),
            drivetrain_core::DType::F16 => $function::<drivetrain_core::half::f16, f32>($($arg),*),
            drivetrain_core::DType::BF16 => $function::<drivetrain_core::half::bf16, f32>($($arg),*),
            other => Err(drivetrain_core::Error::dtype($op, format!("not defined for {other}"))),
        }
    };
}
pub(crate) use for_float;

/// Sums run in this many lanes, whatever the vector level, so that it does not change them.
pub(crate) const LANES: usize = 16;

/// The sum of `f` over positions of two slices as long, in lanes; blocks are joined in F64.
#[inline(always)]
pub(crate) fn sum2<C: Real>(a: &[C], b: &[C], f: impl Fn(C, C) -> C) -> f64 {
    let mut total = 0.0;
    for (a, b) in a.chunks(2048).zip(b.chunks(2048)) {
        let mut lanes = [C::ZERO; LANES];
        let (a_lanes, a_rest) = a.as_chunks::<LANES>();
        let (b_lanes, b_rest) = b.as_chunks::<LANES>();
        for (a, b) in a_lanes.iter().zip(b_lanes) {
            for i in 0..LANES {
                lanes[i] += f(a[i], b[i]);
            }
        }
        for (i, (&a, &b)) in a_rest.iter().zip(b_rest).enumerate() {
            lanes[i] += f(a, b);
        }
        total += fold(lanes, |a, b| a + b).to_f64();
    }
    total
}

/// The sum of `f` over a slice, as [`sum2`].
#[inline(always)]
pub(crate) fn sum1<C: Real>(a: &[C], f: impl Fn(C) -> C) -> f64 {
    sum2(a, a, |x, _| f(x))
}

/// The largest; NaN wins; negative infinity for none.
#[inline(always)]
pub(crate) fn largest<C: Real>(x: &[C]) -> C {
    let mut lanes = [C::LOWEST; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        for i in 0..LANES {
            lanes[i] = lanes[i].larger(x[i]);
        }
    }
    for (i, &x) in rest.iter().enumerate() {
        lanes[i] = lanes[i].larger(x);
    }
    fold(lanes, |a, b| a.larger(b))
}

/// Lanes joined pairwise.
#[inline(always)]
fn fold<C: Real>(mut lanes: [C; LANES], join: impl Fn(C, C) -> C) -> C {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = join(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// An operand's elements as contiguous numbers: borrowed when they lie so, else copied by all threads.
///
/// # Safety
/// An input of the running `execute` of type `T`.
pub(crate) unsafe fn dense<T: Stored<C>, C: Real>(x: &Operand) -> Cow<'_, [C]> {
    let same = T::as_numbers(&[]).is_some();
    if same && x.layout.is_contiguous() {
        // SAFETY: as the caller promises.
        if let Some(numbers) = T::as_numbers(unsafe { view::slice(x) }) {
            return Cow::Borrowed(numbers);
        }
    }
    let mut numbers = vec![C::ZERO; x.layout.elements()];
    if same {
        let out = contiguous(&mut numbers, x);
        // SAFETY: the output is memory of ours with x's dtype and shape.
        unsafe { copy::copy(x, &out) };
        return Cow::Owned(numbers);
    }
    parallel::chunks(&mut numbers, 32 * BLOCK, &|start, chunk| {
        // SAFETY: as the caller promises.
        let mut cursor = unsafe { Cursor::<T, C>::new(x, start) };
        for block in chunk.chunks_mut(BLOCK) {
            block.copy_from_slice(cursor.next_slice(block.len()));
        }
    });
    Cow::Owned(numbers)
}

/// Memory of ours as an operand of x's dtype and shape, row-major.
fn contiguous<C>(numbers: &mut [C], x: &Operand) -> Operand {
    Operand {
        buffer: RawBuffer {
            handle: numbers.as_mut_ptr() as u64,
            bytes: size_of_val(numbers),
        },
        layout: Layout::contiguous(*x.layout.shape()),
        ..*x
    }
}

/// Has an output's numbers written: in place where the stored type allows it, else through a buffer.
///
/// # Safety
/// An output of the running `execute` of type `T`; no other slice of it is alive.
pub(crate) unsafe fn write<T: Stored<C>, C: Real, R>(
    out: &Operand,
    fill: impl FnOnce(&mut [C]) -> R,
) -> R {
    // SAFETY: as the caller promises.
    let out = unsafe { view::slice_mut::<T>(out) };
    if let Some(numbers) = T::as_numbers_mut(out) {
        return fill(numbers);
    }
    let mut numbers = vec![C::ZERO; out.len()];
    let result = fill(&mut numbers);
    parallel::chunks(out, 32 * BLOCK, &|start, chunk| {
        T::store_all(&numbers[start..][..chunk.len()], chunk);
    });
    result
}

/// Lends this thread's buffer, of undefined content, for a while.
pub(crate) fn with_scratch<C: Real, R>(length: usize, body: impl FnOnce(&mut [C]) -> R) -> R {
    // Taken out, so that work of this thread that runs meanwhile finds none and makes its own.
    let mut buffer = C::scratch().take();
    if buffer.len() < length {
        buffer.resize(length, C::ZERO);
    }
    let result = body(&mut buffer[..length]);
    C::scratch().set(buffer);
    result
}

/// Rows of `width` elements so that a piece of work holds about `work` of them.
pub(crate) fn rows_of(work: usize, width: usize) -> usize {
    (work / width.max(1)).max(1)
}
