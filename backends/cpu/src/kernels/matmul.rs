//! `Matmul` and `Linear` of floats: fixed tiles over all threads, each a sequential product, so that results do
//! not depend on the number of threads; products with vectors are kernels of our own.

use super::matmul_small;
use super::vector::{LANES, Matrix, Real, dense, for_float, vectorised, write};
use crate::element::Stored;
use crate::parallel::Shared;
use crate::view::first;
use crate::walk::Walk;
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{Layout, MAX_DIMS, Operand, Result, Shape};
use std::borrow::Cow;

/// Multiplications that a thread takes at once.
const WORK: usize = 1 << 18;

/// Rows of a tile at most.
const TILE_ROWS: usize = 256;

/// Multiplications of a tile, about.
const TILE_WORK: usize = 1 << 23;

/// a [batch…, M, K] times b [batch…, K, N]; sums are kept in the accumulation type.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn matmul(a: &Operand, b: &Operand, out: &Operand) -> Result<()> {
    if !a.dtype.is_float() {
        // SAFETY: as the caller promises.
        unsafe { matmul_small::matmul(a, b, out) };
        return Ok(());
    }
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!("matmul", a.dtype, batched(a, b, out)) }
}

/// An operand whose last two dimensions are matrices that the kernels take: where they lie, or a copy.
struct Matrices<'a, C: Clone> {
    first: *mut C,
    /// Of batch dimensions, then of row and column.
    strides: [isize; MAX_DIMS],
    /// Keeps the copy alive.
    _copy: Cow<'a, [C]>,
}

/// Whether the kernels take these sizes and strides: one of them dense, none backwards or broadcast.
fn regular([rows, columns]: [usize; 2], [row, column]: [isize; 2]) -> bool {
    let dense = |size: usize, stride: isize| size == 1 || stride == 1;
    let forward = |size: usize, stride: isize| size == 1 || stride > 0;
    (dense(rows, row) && forward(columns, column)) || (dense(columns, column) && forward(rows, row))
}

impl<'a, C: Real> Matrices<'a, C> {
    /// # Safety
    /// An input of the running `execute` of type `T`.
    unsafe fn of<T: Stored<C>>(x: &'a Operand) -> Matrices<'a, C> {
        let dims = x.layout.dims();
        let inner = dims.len().saturating_sub(2);
        let mut strides = [0; MAX_DIMS];
        strides[..dims.len()].copy_from_slice(x.layout.strides());
        let fits = match (dims, x.layout.strides()) {
            ([.., r, c], [.., row, column]) => regular([*r, *c], [*row, *column]),
            _ => false,
        };
        if fits && T::as_numbers(&[]).is_some() {
            // A size of 1 may have any stride; the kernels like a plausible one.
            for d in inner..dims.len() {
                if dims[d] == 1 {
                    strides[d] = if d == inner { dims[d + 1] as isize } else { 1 };
                }
            }
            return Matrices {
                first: first(x),
                strides,
                _copy: Cow::Borrowed(&[]),
            };
        }
        // SAFETY: as the caller promises.
        let copy = unsafe { dense::<T, C>(x) };
        Matrices {
            first: copy.as_ptr().cast_mut(),
            strides: x.layout.shape().strides(),
            _copy: copy,
        }
    }

    fn matrix(&self, rank: usize) -> Matrix<C> {
        Matrix {
            first: self.first,
            row: self.strides[rank - 2],
            column: self.strides[rank - 1],
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn batched<T: Stored<C>, C: Real>(a: &Operand, b: &Operand, out: &Operand) -> Result<()> {
    let rank = a.layout.dims().len();
    let (dims, m, k) = (
        a.layout.dims(),
        a.layout.dims()[rank - 2],
        a.layout.dims()[rank - 1],
    );
    let n = b.layout.dims()[rank - 1];
    let batches: usize = dims[..rank - 2].iter().product();
    let shared = b.layout.strides()[..rank - 2]
        .iter()
        .zip(dims)
        .all(|(&s, &d)| s == 0 || d == 1);
    if batches > 1 && shared {
        // One matrix b for all: the batch is only more rows.
        let rows = Shape::new(&[batches * m, k])?;
        let mut folded = *a;
        if let Some(layout) = a.layout.reshape(&rows) {
            folded.layout = layout;
            let inner = [dims.len() - 2, dims.len() - 1];
            let size = |d: usize| b.layout.dims()[d];
            let stride = |d: usize| b.layout.strides()[d];
            let mut single = *b;
            single.layout = Layout::new(
                Shape::new(&inner.map(size))?,
                &inner.map(stride),
                b.layout.offset(),
            )?;
            // SAFETY: views of the same elements.
            return unsafe { one::<T, C>(&folded, &single, out, None) };
        }
    }
    if batches == 1 {
        let (a2, b2) = (last_two(a)?, last_two(b)?);
        // SAFETY: views of the same elements.
        return unsafe { one::<T, C>(&a2, &b2, out, None) };
    }
    // SAFETY: as the caller promises.
    let (a, b) = unsafe { (Matrices::<C>::of::<T>(a), Matrices::<C>::of::<T>(b)) };
    let walk = Walk::new(
        &dims[..rank - 2],
        [&a.strides[..rank - 2], &b.strides[..rank - 2]],
    );
    let (left, right) = (Shared(a.matrix(rank).first), Shared(b.matrix(rank).first));
    let (left_strides, right_strides) = (a.matrix(rank), b.matrix(rank));
    let strides = [
        left_strides.row,
        left_strides.column,
        right_strides.row,
        right_strides.column,
    ];
    // SAFETY: as the caller promises.
    unsafe {
        write::<T, C, _>(out, |out| {
            let target = Shared(out.as_mut_ptr());
            let piece = (WORK / (m * n * k)).max(1);
            parallel_for(batches, piece, &|range| {
                for i in range {
                    let [at_a, at_b] = walk.place(i).offsets;
                    let [row, column, b_row, b_column] = strides;
                    let a = Matrix {
                        first: left.get().wrapping_offset(at_a),
                        row,
                        column,
                    };
                    let b = Matrix {
                        first: right.get().wrapping_offset(at_b),
                        row: b_row,
                        column: b_column,
                    };
                    let out = Matrix {
                        first: target.get().wrapping_add(i * m * n),
                        row: n as isize,
                        column: 1,
                    };
                    // SAFETY: matrix i of each operand; no other thread has this one of the output.
                    product([m, n, k], a, b, out, None);
                }
            });
        });
    }
    Ok(())
}

/// The last two dimensions, the others being of size 1.
fn last_two(x: &Operand) -> Result<Operand> {
    let rank = x.layout.dims().len();
    let shape = Shape::new(&x.layout.dims()[rank - 2..])?;
    let strides = &x.layout.strides()[rank - 2..];
    let mut view = *x;
    view.layout = Layout::new(shape, strides, x.layout.offset())?;
    Ok(view)
}

/// y […, out] = x […, in] times weight [out, in] turned round, plus bias [out].
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn linear(
    x: &Operand,
    weight: &Operand,
    bias: Option<&Operand>,
    out: &Operand,
) -> Result<()> {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!("linear", x.dtype, linear_typed(x, weight, bias, out)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn linear_typed<T: Stored<C>, C: Real>(
    x: &Operand,
    weight: &Operand,
    bias: Option<&Operand>,
    out: &Operand,
) -> Result<()> {
    let dims = x.layout.dims();
    let features = dims[dims.len() - 1];
    let shape = Shape::new(&[x.layout.elements() / features, features])?;
    let mut turned = *weight;
    turned.layout = weight.layout.permute(&[1, 0]);
    // SAFETY: as the caller promises.
    let bias = bias.map(|bias| unsafe { dense::<T, C>(bias) });
    let mut rows = *x;
    if let Some(layout) = x.layout.reshape(&shape) {
        rows.layout = layout;
        // SAFETY: views of the same elements.
        return unsafe { one::<T, C>(&rows, &turned, out, bias.as_deref()) };
    }
    // SAFETY: as the caller promises.
    let copy = unsafe { dense::<T, C>(x) };
    // SAFETY: as the caller promises.
    let weight = unsafe { Matrices::<C>::of::<T>(&turned) };
    let a = Matrix::of(&copy, features);
    let sizes = [shape[0], out.layout.elements() / shape[0], features];
    // SAFETY: as the caller promises.
    unsafe {
        write::<T, C, _>(out, |out| {
            tiles(sizes, a, weight.matrix(2), out, bias.as_deref())
        })
    };
    Ok(())
}

/// One product of matrices.
///
/// # Safety
/// Operands of the running `execute`, of the types named, of rank 2 but for the output.
unsafe fn one<T: Stored<C>, C: Real>(
    a: &Operand,
    b: &Operand,
    out: &Operand,
    bias: Option<&[C]>,
) -> Result<()> {
    let sizes = [a.layout.dims()[0], b.layout.dims()[1], a.layout.dims()[1]];
    // SAFETY: as the caller promises.
    unsafe {
        let (a, b) = (Matrices::<C>::of::<T>(a), Matrices::<C>::of::<T>(b));
        write::<T, C, _>(out, |out| tiles(sizes, a.matrix(2), b.matrix(2), out, bias));
    }
    Ok(())
}

/// a times b into a row-major output, its tiles spread over the threads.
///
/// # Safety
/// The matrices are in bounds for these sizes.
unsafe fn tiles<C: Real>(
    [m, n, k]: [usize; 3],
    a: Matrix<C>,
    b: Matrix<C>,
    out: &mut [C],
    bias: Option<&[C]>,
) {
    let whole = m * n * k <= 4 * WORK;
    let rows = if whole { m } else { m.min(TILE_ROWS) };
    // Products with a vector read each number once: small pieces do.
    let work = if m == 1 { WORK } else { TILE_WORK };
    let fitting = (work / (rows * k)).next_multiple_of(16).max(128);
    let columns = if whole { n } else { n.min(fitting) };
    let (down, across) = (m.div_ceil(rows), n.div_ceil(columns));
    let (a_first, b_first) = (Shared(a.first), Shared(b.first));
    let (a_steps, b_steps) = ([a.row, a.column], [b.row, b.column]);
    let target = Shared(out.as_mut_ptr());
    parallel_for(down * across, 1, &|range| {
        for tile in range {
            let (i, j) = (tile / across * rows, tile % across * columns);
            let (height, width) = (rows.min(m - i), columns.min(n - j));
            let a = Matrix {
                first: a_first.get(),
                row: a_steps[0],
                column: a_steps[1],
            };
            let b = Matrix {
                first: b_first.get(),
                row: b_steps[0],
                column: b_steps[1],
            };
            let out = Matrix {
                first: target.get(),
                row: n as isize,
                column: 1,
            };
            let bias = bias.map(|bias| &bias[j..][..width]);
            // SAFETY: a tile of matrices that the caller vouches for; tiles of the output are disjoint.
            unsafe {
                product(
                    [height, width, k],
                    a.from(i, 0),
                    b.from(0, j),
                    out.from(i, j),
                    bias,
                );
            }
        }
    });
}

/// a times b plus a bias for each column, on this thread.
///
/// # Safety
/// The matrices are in bounds for these sizes; the output's rows are dense and nobody else's.
pub(super) unsafe fn product<C: Real>(
    [m, n, k]: [usize; 3],
    a: Matrix<C>,
    b: Matrix<C>,
    out: Matrix<C>,
    bias: Option<&[C]>,
) {
    // SAFETY: as the caller promises.
    unsafe {
        if m == 1 {
            vector(n, k, a.first, a.column, b, out.first, out.column);
        } else if n == 1 {
            vector(m, k, b.first, b.row, a.transposed(), out.first, out.row);
        } else {
            C::gemm([m, n, k], a, b, out, false);
        }
        if let Some(bias) = bias {
            for i in 0..m {
                let row = std::slice::from_raw_parts_mut(out.from(i, 0).first, n);
                for (y, &bias) in row.iter_mut().zip(bias) {
                    *y += bias;
                }
            }
        }
    }
}

/// A row times a matrix b [k, n], into `n` elements `step` apart.
///
/// # Safety
/// In bounds for these sizes.
unsafe fn vector<C: Real>(
    n: usize,
    k: usize,
    x: *const C,
    x_step: isize,
    b: Matrix<C>,
    out: *mut C,
    step: isize,
) {
    // SAFETY: as the caller promises.
    let x: Cow<'_, [C]> = unsafe {
        match x_step {
            1 => Cow::Borrowed(std::slice::from_raw_parts(x, k)),
            _ => Cow::Owned((0..k as isize).map(|i| *x.offset(i * x_step)).collect()),
        }
    };
    let put = |j: usize, value: C| {
        // SAFETY: as the caller promises.
        unsafe { *out.offset(j as isize * step) = value }
    };
    if b.row == 1 || (k == 1 && b.column != 1) {
        for j in 0..n {
            // SAFETY: as the caller promises: a column of b is dense.
            let column = unsafe { std::slice::from_raw_parts(b.from(0, j).first, k) };
            put(j, dot(&x, column));
        }
        return;
    }
    const BAND: usize = 16 * LANES;
    let mut sums = [C::ZERO; BAND];
    for first in (0..n).step_by(BAND) {
        let width = BAND.min(n - first);
        let sums = &mut sums[..width];
        sums.fill(C::ZERO);
        // SAFETY: as the caller promises: rows of b are dense.
        let from = unsafe {
            std::slice::from_raw_parts(b.from(0, first).first, (k - 1) * b.row as usize + width)
        };
        rows(&x, from, b.row as usize, sums);
        for (j, &sum) in sums.iter().enumerate() {
            put(first + j, sum);
        }
    }
}

vectorised! {
    fn dot<C: Real>(a: &[C], b: &[C]) -> C {
        C::from_f64(super::vector::sum2(a, b, |a, b| a * b))
    }
}

vectorised! {
    /// Adds multiples of rows of `b`, `step` apart, to sums as wide.
    fn rows<C: Real>(x: &[C], b: &[C], step: usize, sums: &mut [C]) {
        let width = sums.len();
        for (i, &x) in x.iter().enumerate() {
            for (sum, &b) in sums.iter_mut().zip(&b[i * step..][..width]) {
                *sum += x * b;
            }
        }
    }
}
