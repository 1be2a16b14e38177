//! `IndexSelect` and its gradient, `Concat` and `Pad`: rows moved and added whole.

use super::math::Number;
use super::vector::{Real, dense, for_float, rows_of, vectorised, write};
use super::{copy, fill, gather};
use crate::element::Stored;
use crate::parallel;
use crate::view::{numbers, slice_mut};
use drivetrain_core::{DType, Error, Layout, MAX_DIMS, Operand, PadSpec, Result};

/// Elements of a destination that a thread takes at once.
const WORK: usize = 65_536;

/// Checks that all indices lie in `0..size`.
///
/// # Safety
/// `index` is an I64 input of the running `execute`.
unsafe fn check(name: &'static str, index: &Operand, dim: usize, size: usize) -> Result<Vec<i64>> {
    // SAFETY: as the caller promises.
    let indices = unsafe { numbers::<i64, i64>(index) };
    match indices.iter().position(|&i| !(0..size as i64).contains(&i)) {
        None => Ok(indices.into_owned()),
        Some(at) => Err(Error::value(
            name,
            format!(
                "index {} at {at} of the index is out of range for dimension {dim} of size {size}",
                indices[at]
            ),
        )
        .help(format!("indices are 0 to {}", size.saturating_sub(1)))),
    }
}

/// `out` is x's slices along `dim` in the order of the index.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn select(dim: usize, x: &Operand, index: &Operand, out: &Operand) -> Result<()> {
    let size = x.layout.dims()[dim];
    // SAFETY: as the caller promises.
    unsafe { check("index_select", index, dim, size)? };
    // The index repeated along all other dimensions, by strides of 0.
    let mut strides = [0; MAX_DIMS];
    strides[dim] = index.layout.strides()[0];
    let mut spread = *index;
    let shape = *out.layout.shape();
    spread.layout = Layout::new(shape, &strides[..shape.rank()], index.layout.offset())?;
    // SAFETY: as the caller promises; the spread index reads elements of the index only.
    unsafe { gather::gather(dim, x, &spread, out) }
}

/// dx of `size` along `dim`: zero, plus dy's slices at their indices, in the order of the index.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn select_gradient(
    dim: usize,
    size: usize,
    dy: &Operand,
    index: &Operand,
    out: &Operand,
) -> Result<()> {
    // SAFETY: as the caller promises.
    let indices = unsafe { check("index_select_backward", index, dim, size)? };
    let inner = out.layout.dims()[dim + 1..].iter().product();
    let name = "index_select_backward";
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match dy.dtype {
            DType::I64 => integers::<i64>(&indices, size, inner, dy, out),
            DType::I32 => integers::<i32>(&indices, size, inner, dy, out),
            DType::U8 => integers::<u8>(&indices, size, inner, dy, out),
            _ => for_float!(name, dy.dtype, floats(&indices, size, inner, dy, out)),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn integers<C: Number + Stored<C>>(
    indices: &[i64],
    size: usize,
    inner: usize,
    dy: &Operand,
    out: &Operand,
) -> Result<()> {
    // SAFETY: as the caller promises.
    let dy = unsafe { numbers::<C, C>(dy) };
    // SAFETY: as the caller promises.
    add_slices(indices, size, inner, &dy, unsafe { slice_mut(out) });
    Ok(())
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn floats<T: Stored<C>, C: Real>(
    indices: &[i64],
    size: usize,
    inner: usize,
    dy: &Operand,
    out: &Operand,
) -> Result<()> {
    // SAFETY: as the caller promises.
    let dy = unsafe { dense::<T, C>(dy) };
    // SAFETY: as the caller promises.
    unsafe { write::<T, C, _>(out, |out| add_slices(indices, size, inner, &dy, out)) };
    Ok(())
}

/// A piece of the destination looks through all indices for its own, so that sums have one order.
fn add_slices<C: Number>(indices: &[i64], size: usize, inner: usize, dy: &[C], out: &mut [C]) {
    let per_outer = size * inner;
    // Few pieces for many indices: each looks at all of them.
    let work = WORK.max(indices.len());
    parallel::chunks(out, rows_of(work, inner) * inner, &|start, chunk| {
        chunk.fill(C::ZERO);
        let end = start + chunk.len();
        for outer in start / per_outer..end.div_ceil(per_outer) {
            for (i, &index) in indices.iter().enumerate() {
                let to = outer * per_outer + index as usize * inner;
                if (start..end).contains(&to) {
                    let from = (outer * indices.len() + i) * inner;
                    add(&dy[from..][..inner], &mut chunk[to - start..][..inner]);
                }
            }
        }
    });
}

vectorised! {
    fn add<C: Number>(from: &[C], to: &mut [C]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = to.add(from);
        }
    }
}

/// The inputs end to end along `dim`.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn concat(dim: usize, inputs: &[Operand], out: &Operand) -> Result<()> {
    let mut start = 0;
    for part in inputs {
        let length = part.layout.dims()[dim];
        if part.layout.elements() > 0 {
            let mut window = *out;
            window.layout = out.layout.slice(dim, start, 1, length)?;
            // SAFETY: as the caller promises; the window has the part's shape.
            unsafe { copy::copy(part, &window) };
        }
        start += length;
    }
    Ok(())
}

/// A tensor filled with a value that holds x in a strided window.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn pad(spec: &PadSpec, x: &Operand, out: &Operand) -> Result<()> {
    let mut window = *out;
    for (dim, &length) in x.layout.dims().iter().enumerate() {
        window.layout = window
            .layout
            .slice(dim, spec.start[dim], spec.step[dim], length)?;
    }
    // SAFETY: as the caller promises; the window has x's shape.
    unsafe {
        if window.layout.elements() < out.layout.elements() {
            fill::fill(spec.value, out);
        }
        if x.layout.elements() > 0 {
            copy::copy(x, &window);
        }
    }
    Ok(())
}
