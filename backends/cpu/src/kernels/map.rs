//! Element-wise loops: a function of one or two numbers over operands of any strides into a contiguous output.

use crate::cursor::{BLOCK, Block, Cursor};
use crate::element::Stored;
use crate::parallel;
use crate::simd::{self, Kernel};
use crate::view::{plain, slice_mut, untransposed};
use drivetrain_core::Operand;

/// Elements a thread takes at once.
pub(crate) const PIECE: usize = 32 * BLOCK;

/// A function of one number; `of` is `#[inline(always)]` so that the loop around it becomes vector code.
pub(crate) trait Function1<C, R>: Copy + Sync {
    /// Its value.
    fn of(self, x: C) -> R;
}

/// A function of two numbers, as [`Function1`].
pub(crate) trait Function2<C, R>: Copy + Sync {
    /// Its value.
    fn of(self, a: C, b: C) -> R;
}

/// Declares functions for every number type of a trait: a table of names and expressions.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($x:ident),+): $bound:ident -> $result:ty = $value:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub(crate) struct $name;
            functions!(@one $name($($x),+): $bound -> $result = $value);
        )*
    };
    (@one $name:ident($x:ident): $bound:ident -> $result:ty = $value:expr) => {
        impl<C: $bound> $crate::kernels::map::Function1<C, $result> for $name {
            #[inline(always)]
            fn of(self, $x: C) -> $result { $value }
        }
    };
    (@one $name:ident($a:ident, $b:ident): $bound:ident -> $result:ty = $value:expr) => {
        impl<C: $bound> $crate::kernels::map::Function2<C, $result> for $name {
            #[inline(always)]
            fn of(self, $a: C, $b: C) -> $result { $value }
        }
    };
}
pub(crate) use functions;

/// `out = f(x)`: stored as `T`, computed as `C`, giving an `R` that is stored as `O`.
///
/// # Safety
/// Operands of the running `execute`, of types `T` and `O`; the output is contiguous.
pub(crate) unsafe fn map1<T, C, O, R>(x: &Operand, out: &Operand, f: impl Function1<C, R>)
where
    T: Stored<C>,
    O: Stored<R>,
    C: Copy + Sync,
    R: Copy + Default,
{
    // SAFETY: as the caller promises.
    let out = unsafe { slice_mut::<O>(out) };
    // SAFETY: as the caller promises.
    if let Some(x) = unsafe { plain::<T, C>(x) } {
        return parallel::chunks(out, PIECE, &|start, chunk| {
            let mut sink = Sink::new(chunk);
            for x in x[start..].chunks(BLOCK) {
                let Some(room) = sink.room() else { break };
                let x = Block::Slice(&x[..room]);
                sink.write(room, |out| simd::run(Map1 { f, x, out }));
            }
        });
    }
    let mut room = Vec::new();
    // SAFETY: as the caller promises.
    let x = unsafe { untransposed(x, &mut room) };
    parallel::chunks(out, PIECE, &|start, chunk| {
        // SAFETY: as the caller promises.
        let mut x = unsafe { Cursor::<T, C>::new(&x, start) };
        let mut sink = Sink::new(chunk);
        while let Some(room) = sink.room() {
            let length = room.min(x.available());
            sink.write(length, |out| {
                let x = x.next(length);
                simd::run(Map1 { f, x, out });
            });
        }
    });
}

/// `out = f(a, b)`, as [`map1`].
///
/// # Safety
/// As [`map1`]; `a` and `b` are of type `T`.
pub(crate) unsafe fn map2<T, C, O, R>(
    a: &Operand,
    b: &Operand,
    out: &Operand,
    f: impl Function2<C, R>,
) where
    T: Stored<C>,
    O: Stored<R>,
    C: Copy + Sync,
    R: Copy + Default,
{
    // SAFETY: as the caller promises.
    let out = unsafe { slice_mut::<O>(out) };
    // SAFETY: as the caller promises.
    if let (Some(a), Some(b)) = unsafe { (plain::<T, C>(a), plain::<T, C>(b)) } {
        return parallel::chunks(out, PIECE, &|start, chunk| {
            let mut sink = Sink::new(chunk);
            for (a, b) in a[start..].chunks(BLOCK).zip(b[start..].chunks(BLOCK)) {
                let Some(room) = sink.room() else { break };
                let (a, b) = (Block::Slice(&a[..room]), Block::Slice(&b[..room]));
                sink.write(room, |out| simd::run(Map2 { f, a, b, out }));
            }
        });
    }
    let mut rooms = [Vec::new(), Vec::new()];
    let [room_a, room_b] = &mut rooms;
    // SAFETY: as the caller promises.
    let (a, b) = unsafe { (untransposed(a, room_a), untransposed(b, room_b)) };
    parallel::chunks(out, PIECE, &|start, chunk| {
        // SAFETY: as the caller promises.
        let mut a = unsafe { Cursor::<T, C>::new(&a, start) };
        // SAFETY: as the caller promises.
        let mut b = unsafe { Cursor::<T, C>::new(&b, start) };
        let mut sink = Sink::new(chunk);
        while let Some(room) = sink.room() {
            let length = room.min(a.available()).min(b.available());
            sink.write(length, |out| {
                let (a, b) = (a.next(length), b.next(length));
                simd::run(Map2 { f, a, b, out });
            });
        }
    });
}

/// Takes blocks of numbers into a slice of stored elements, front to back.
pub(crate) struct Sink<'a, O, R> {
    rest: &'a mut [O],
    buffer: Vec<R>,
}

impl<'a, O: Stored<R>, R: Copy + Default> Sink<'a, O, R> {
    /// Into all of `chunk`.
    pub(crate) fn new(chunk: &'a mut [O]) -> Self {
        Sink {
            rest: chunk,
            buffer: Vec::new(),
        }
    }

    /// How many elements fit, at most a block; `None` at the end.
    pub(crate) fn room(&self) -> Option<usize> {
        (!self.rest.is_empty()).then_some(self.rest.len().min(BLOCK))
    }

    /// Has the next `length` numbers written, in place where the stored type allows it.
    pub(crate) fn write(&mut self, length: usize, fill: impl FnOnce(&mut [R])) {
        let (block, rest) = std::mem::take(&mut self.rest).split_at_mut(length);
        self.rest = rest;
        if let Some(numbers) = O::as_numbers_mut(block) {
            return fill(numbers);
        }
        self.buffer.resize(length, R::default());
        fill(&mut self.buffer);
        O::store_all(&self.buffer, block);
    }
}

struct Map1<'a, F, C, R> {
    f: F,
    x: Block<'a, C>,
    out: &'a mut [R],
}

impl<F: Function1<C, R>, C: Copy, R: Copy> Kernel for Map1<'_, F, C, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match self.x {
            Block::Slice(x) => {
                for (out, &x) in self.out.iter_mut().zip(x) {
                    *out = self.f.of(x);
                }
            }
            Block::Scalar(x) => self.out.fill(self.f.of(x)),
        }
    }
}

struct Map2<'a, F, C, R> {
    f: F,
    a: Block<'a, C>,
    b: Block<'a, C>,
    out: &'a mut [R],
}

impl<F: Function2<C, R>, C: Copy, R: Copy> Kernel for Map2<'_, F, C, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Map2 { f, a, b, out } = self;
        match (a, b) {
            (Block::Slice(a), Block::Slice(b)) => {
                for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                    *out = f.of(a, b);
                }
            }
            (Block::Slice(a), Block::Scalar(b)) => {
                for (out, &a) in out.iter_mut().zip(a) {
                    *out = f.of(a, b);
                }
            }
            (Block::Scalar(a), Block::Slice(b)) => {
                for (out, &b) in out.iter_mut().zip(b) {
                    *out = f.of(a, b);
                }
            }
            (Block::Scalar(a), Block::Scalar(b)) => out.fill(f.of(a, b)),
        }
    }
}
