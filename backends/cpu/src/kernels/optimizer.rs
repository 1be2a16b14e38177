//! `SgdStep` and `AdamStep`: PyTorch's formulas, one pass over parameter, gradient and state.

use super::vector::{Real, dense, for_float, vectorised};
use crate::element::Stored;
use crate::parallel::Shared;
use crate::view::{numbers, slice_mut};
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{Composite, Error, Operand, Result};

/// Elements a thread takes at once.
const PIECE: usize = 16_384;

/// The attributes of a step of plain descent.
#[derive(Clone, Copy)]
struct Sgd<C> {
    rate: C,
    first: bool,
    momentum: C,
    share: C,
    weight_decay: C,
    nesterov: bool,
    maximize: bool,
}

/// The attributes of a step of Adam.
#[derive(Clone, Copy)]
struct Adam<C> {
    /// Rate over 1 - β₁ᵗ.
    length: C,
    correction: C,
    /// What the parameter is multiplied by first.
    keep: C,
    change: C,
    beta2: C,
    share: C,
    eps: C,
    weight_decay: C,
    maximize: bool,
}

/// Updates the in-place operands by a gradient and the numbers of this step.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn step(
    op: &Composite,
    gradient: &Operand,
    hyper: &Operand,
    state: &[Operand],
) -> Result<()> {
    if let Some(strided) = state.iter().find(|s| !s.layout.is_contiguous()) {
        let text = format!(
            "parameters and state must be contiguous, got {:?}",
            strided.layout
        );
        return Err(Error::argument(op.name(), text));
    }
    let dtype = gradient.dtype;
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!(op.name(), dtype, typed(op, gradient, hyper, state)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named; the state is contiguous.
unsafe fn typed<T: Stored<C>, C: Real>(
    op: &Composite,
    gradient: &Operand,
    hyper: &Operand,
    state: &[Operand],
) -> Result<()> {
    // SAFETY: as the caller promises; the numbers are of the type computed with.
    let (gradient, hyper) = unsafe { (dense::<T, C>(gradient), numbers::<C, C>(hyper)) };
    match *op {
        Composite::SgdStep {
            momentum,
            dampening,
            weight_decay,
            nesterov,
            maximize,
        } => {
            let sgd = Sgd {
                rate: hyper[0],
                first: hyper[1] != C::ZERO,
                momentum: C::from_f64(momentum),
                share: C::from_f64(1.0 - dampening),
                weight_decay: C::from_f64(weight_decay),
                nesterov,
                maximize,
            };
            // SAFETY: as the caller promises.
            unsafe { update::<T, C>(state, &gradient, &|state, g| sgd_block(sgd, state, g)) };
            Ok(())
        }
        Composite::AdamStep {
            beta1,
            beta2,
            eps,
            weight_decay,
            decoupled,
            maximize,
            ..
        } => {
            let decay = C::from_f64(weight_decay);
            let keep = if decoupled {
                C::ONE - hyper[0] * decay
            } else {
                C::ONE
            };
            let adam = Adam {
                length: hyper[0] / hyper[1],
                correction: hyper[2],
                keep,
                change: C::from_f64(1.0 - beta1),
                beta2: C::from_f64(beta2),
                share: C::from_f64(1.0 - beta2),
                eps: C::from_f64(eps),
                weight_decay: if decoupled { C::ZERO } else { decay },
                maximize,
            };
            // SAFETY: as the caller promises.
            unsafe { update::<T, C>(state, &gradient, &|state, g| adam_block(adam, state, g)) };
            Ok(())
        }
        _ => Err(Error::unsupported(op.name(), "not an optimizer step")),
    }
}

/// Updates a block of the state, parameter first, by the gradient.
type Update<'a, C> = dyn Fn(&mut [&mut [C]], &[C]) + Sync + 'a;

/// Has every block of the state updated, as numbers; parameter first.
///
/// # Safety
/// `state` are contiguous in-place operands of the running `execute` of type `T`.
unsafe fn update<T: Stored<C>, C: Real>(state: &[Operand], gradient: &[C], block: &Update<C>) {
    // SAFETY: as the caller promises.
    let all: Vec<Shared<T>> = state
        .iter()
        .map(|s| Shared(unsafe { slice_mut::<T>(s) }.as_mut_ptr()))
        .collect();
    parallel_for(gradient.len(), PIECE, &|range| {
        let mut parts: Vec<&mut [T]> = (all.iter())
            // SAFETY: ranges are disjoint and inside each operand, which nobody else touches.
            .map(|s| unsafe {
                std::slice::from_raw_parts_mut(s.get().add(range.start), range.len())
            })
            .collect();
        let gradient = &gradient[range];
        if T::as_numbers(&[]).is_some() {
            let mut parts: Vec<&mut [C]> = parts
                .into_iter()
                .filter_map(|part| T::as_numbers_mut(part))
                .collect();
            return block(&mut parts, gradient);
        }
        let mut wide: Vec<Vec<C>> = (parts.iter())
            .map(|part| {
                let mut numbers = Vec::with_capacity(part.len());
                T::load_all(part, &mut numbers);
                numbers
            })
            .collect();
        let mut slices: Vec<&mut [C]> = wide.iter_mut().map(|w| &mut w[..]).collect();
        block(&mut slices, gradient);
        for (wide, part) in wide.iter().zip(&mut parts) {
            T::store_all(wide, part);
        }
    });
}

#[inline(always)]
fn followed<C: Real>(g: C, p: C, maximize: bool, weight_decay: C) -> C {
    let g = if maximize { -g } else { g };
    // Without decay nothing is added, so that an infinite parameter does no harm.
    if weight_decay == C::ZERO {
        g
    } else {
        g + p * weight_decay
    }
}

vectorised! {
    fn sgd_block<C: Real>(sgd: Sgd<C>, state: &mut [&mut [C]], gradient: &[C]) {
        let (parameter, buffer) = match state {
            [parameter, buffer] => (parameter, buffer),
            [parameter] => {
                for (p, &g) in parameter.iter_mut().zip(gradient) {
                    *p = *p - followed(g, *p, sgd.maximize, sgd.weight_decay) * sgd.rate;
                }
                return;
            }
            _ => return,
        };
        for ((p, b), &g) in parameter.iter_mut().zip(buffer.iter_mut()).zip(gradient) {
            let g = followed(g, *p, sgd.maximize, sgd.weight_decay);
            // The first buffer is the gradient itself, whatever the memory holds.
            *b = if sgd.first { g } else { *b * sgd.momentum + g * sgd.share };
            let step = if sgd.nesterov { g + *b * sgd.momentum } else { *b };
            *p = *p - step * sgd.rate;
        }
    }
}

vectorised! {
    fn adam_block<C: Real>(adam: Adam<C>, state: &mut [&mut [C]], gradient: &[C]) {
        let (parameter, first, second, largest) = match state {
            [parameter, first, second] => (parameter, first, second, None),
            [parameter, first, second, largest] => (parameter, first, second, Some(largest)),
            _ => return,
        };
        let moments = first.iter_mut().zip(second.iter_mut());
        let all = parameter.iter_mut().zip(moments).zip(gradient);
        match largest {
            None => {
                for ((p, (m, v)), &g) in all {
                    adam_one(adam, p, m, v, g, |v| v);
                }
            }
            Some(largest) => {
                for (((p, (m, v)), &g), most) in all.zip(largest.iter_mut()) {
                    adam_one(adam, p, m, v, g, |v| {
                        *most = most.larger(v);
                        *most
                    });
                }
            }
        }
    }
}

#[inline(always)]
fn adam_one<C: Real>(
    adam: Adam<C>,
    p: &mut C,
    m: &mut C,
    v: &mut C,
    g: C,
    scale: impl FnOnce(C) -> C,
) {
    let g = followed(g, *p, adam.maximize, adam.weight_decay);
    *m += (g - *m) * adam.change;
    *v = *v * adam.beta2 + g * g * adam.share;
    let below = scale(*v).sqrt() / adam.correction + adam.eps;
    *p = *p * adam.keep - *m / below * adam.length;
}
