//! `CrossEntropy` and its gradient: one pass over a sample's logits at a time, with ignored targets, class
//! weights and label smoothing as PyTorch's.

use super::vector::{
    Real, dense, for_float, largest, rows_of, sum1, sum2, vectorised, with_scratch, write,
};
use crate::element::Stored;
use crate::parallel::Shared;
use crate::view::slice_mut;
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{Error, MAX_DIMS, Operand, Result};

/// Logits a thread takes at once.
const WORK: usize = 16_384;

/// What is the same for all samples.
#[derive(Clone, Copy)]
struct Rule<'a, C> {
    classes: usize,
    /// Samples of one batch element: logits of a sample lie this far apart.
    inner: usize,
    smoothing: f64,
    weight: Option<&'a [C]>,
}

/// What one sample gives.
struct Sample<C> {
    loss: C,
    logsumexp: C,
    weight: C,
}

/// The attributes of the ops.
#[derive(Clone, Copy)]
pub(crate) struct Attributes {
    /// Targets of this value count nothing.
    pub(crate) ignore_index: i64,
    /// Share spread over all classes.
    pub(crate) smoothing: f64,
}

/// Of logits, target, (class weight): loss, logsumexp and sample weight.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn forward(
    attributes: Attributes,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let dtype = inputs[0].dtype;
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        for_float!(
            "cross_entropy",
            dtype,
            forward_typed(attributes, inputs, outputs)
        )
    }
}

/// The targets, each the ignored one or a class.
///
/// # Safety
/// `target` is an I64 input of the running `execute`.
unsafe fn classes_of(target: &Operand, classes: usize, ignore: i64) -> Result<Vec<i64>> {
    // SAFETY: as the caller promises.
    let targets = unsafe { crate::view::numbers::<i64, i64>(target) };
    let wrong = |&t: &i64| t != ignore && !(0..classes as i64).contains(&t);
    let Some(number) = targets.iter().position(wrong) else {
        return Ok(targets.into_owned());
    };
    let dims = target.layout.dims();
    let (mut place, mut rest) = ([0; MAX_DIMS], number);
    for d in (0..dims.len()).rev() {
        place[d] = rest % dims[d];
        rest /= dims[d];
    }
    let text = format!(
        "target {} at {:?} is out of range for {classes} classes",
        targets[number],
        &place[..dims.len()]
    );
    Err(Error::value("cross_entropy", text).help(format!(
        "classes are 0 to {}, ignored targets {ignore}",
        classes - 1
    )))
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn forward_typed<T: Stored<C>, C: Real>(
    attributes: Attributes,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let dims = inputs[0].layout.dims();
    // SAFETY: as the caller promises.
    let logits = unsafe { dense::<T, C>(&inputs[0]) };
    // SAFETY: as the caller promises.
    let targets = unsafe { classes_of(&inputs[1], dims[1], attributes.ignore_index)? };
    // SAFETY: as the caller promises.
    let weight = inputs.get(2).map(|w| unsafe { dense::<T, C>(w) });
    let rule = Rule {
        classes: dims[1],
        inner: dims[2..].iter().product(),
        smoothing: attributes.smoothing,
        weight: weight.as_deref(),
    };
    let total = weight_sum(&rule);
    // SAFETY: as the caller promises; logsumexp is stored as the type computed with.
    let (loss, logsumexp, weights) = unsafe {
        (
            Shared(slice_mut::<T>(&outputs[0]).as_mut_ptr()),
            Shared(slice_mut::<C>(&outputs[1]).as_mut_ptr()),
            Shared(slice_mut::<T>(&outputs[2]).as_mut_ptr()),
        )
    };
    parallel_for(targets.len(), rows_of(WORK, rule.classes), &|range| {
        for i in range {
            let class = (targets[i] != attributes.ignore_index).then_some(targets[i] as usize);
            let sample = with_row(&logits, i, rule, |row| sample(row, class, rule, total));
            // SAFETY: a place of the sample's own in each output.
            unsafe {
                *loss.get().add(i) = T::store(sample.loss);
                *logsumexp.get().add(i) = sample.logsumexp;
                *weights.get().add(i) = T::store(sample.weight);
            }
        }
    });
    Ok(())
}

/// The sum of the class weights.
fn weight_sum<C: Real>(rule: &Rule<C>) -> f64 {
    let sum = |w: &[C]| w.iter().map(|w| w.to_f64()).sum();
    rule.weight.map_or(rule.classes as f64, sum)
}

/// Where the logits of sample `i` start.
fn start<C>(i: usize, rule: Rule<C>) -> usize {
    i / rule.inner * rule.classes * rule.inner + i % rule.inner
}

/// Shows the logits of sample `i` as a slice.
fn with_row<C: Real, R>(logits: &[C], i: usize, rule: Rule<C>, look: impl FnOnce(&[C]) -> R) -> R {
    let from = &logits[start(i, rule)..];
    if rule.inner == 1 {
        return look(&from[..rule.classes]);
    }
    with_scratch::<C, _>(rule.classes, |row| {
        for (slot, &x) in row.iter_mut().zip(from.iter().step_by(rule.inner)) {
            *slot = x;
        }
        look(row)
    })
}

vectorised! {
    fn sample<C: Real>(row: &[C], class: Option<usize>, rule: Rule<C>, total: f64) -> Sample<C> {
        let top = largest(row);
        let log_sum = C::from_f64(sum1(row, |x| (x - top).exp())).log();
        let logsumexp = top + log_sum;
        let Some(class) = class else {
            return Sample { loss: C::ZERO, logsumexp, weight: C::ZERO };
        };
        let weight = rule.weight.map_or(C::ONE, |w| w[class]);
        let own = (row[class] - top) - log_sum;
        let mut loss = own * weight * C::from_f64(rule.smoothing - 1.0);
        if rule.smoothing > 0.0 {
            // Σ w·(x - top - log_sum), the constant taken out.
            let shifted = match rule.weight {
                Some(w) => sum2(row, w, |x, w| (x - top) * w),
                None => sum1(row, |x| x - top),
            };
            let all = shifted - log_sum.to_f64() * total;
            loss += C::from_f64(all * (-rule.smoothing / rule.classes as f64));
        }
        Sample { loss, logsumexp, weight }
    }
}

/// Of dloss, logits, logsumexp, target, (class weight): dlogits.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn gradient(
    attributes: Attributes,
    inputs: &[Operand],
    out: &Operand,
) -> Result<()> {
    let (name, dtype) = ("cross_entropy_backward", inputs[0].dtype);
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!(name, dtype, gradient_typed(attributes, inputs, out)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn gradient_typed<T: Stored<C>, C: Real>(
    attributes: Attributes,
    inputs: &[Operand],
    out: &Operand,
) -> Result<()> {
    let dims = inputs[1].layout.dims();
    // SAFETY: as the caller promises.
    let (dloss, logits) = unsafe { (dense::<T, C>(&inputs[0]), dense::<T, C>(&inputs[1])) };
    // SAFETY: as the caller promises.
    let targets = unsafe { classes_of(&inputs[3], dims[1], attributes.ignore_index)? };
    // SAFETY: as the caller promises.
    let weight = inputs.get(4).map(|w| unsafe { dense::<T, C>(w) });
    let rule = Rule {
        classes: dims[1],
        inner: dims[2..].iter().product(),
        smoothing: attributes.smoothing,
        weight: weight.as_deref(),
    };
    let total = C::from_f64(weight_sum(&rule) * rule.smoothing / rule.classes as f64);
    // SAFETY: as the caller promises.
    unsafe {
        write::<T, C, _>(out, |out| {
            let out = Shared(out.as_mut_ptr());
            parallel_for(targets.len(), rows_of(WORK, rule.classes), &|range| {
                with_scratch::<C, _>(2 * rule.classes, |buffer| {
                    let (row, result) = buffer.split_at_mut(rule.classes);
                    for i in range {
                        let from = start(i, rule);
                        let at = |c: usize| from + c * rule.inner;
                        let class = targets[i];
                        if class == attributes.ignore_index {
                            result.fill(C::ZERO);
                        } else {
                            for (c, slot) in row.iter_mut().enumerate() {
                                *slot = logits[at(c)];
                            }
                            slopes(row, class as usize, dloss[i], rule, total, result);
                        }
                        for (c, &value) in result.iter().enumerate() {
                            // SAFETY: logits of sample i, which is in this piece only.
                            *out.get().add(at(c)) = value;
                        }
                    }
                });
            });
        });
    }
    Ok(())
}

vectorised! {
    /// g·(p·((1-s)·w_t + s/C Σw) - (1-s)·w_t·[c = t] - s/C·w_c). The softmax is made anew: logits minus logsumexp
    /// would lose the digits of large logits.
    fn slopes<C: Real>(row: &[C], class: usize, g: C, rule: Rule<C>, total: C, out: &mut [C]) {
        let top = largest(row);
        for (out, &x) in out.iter_mut().zip(row) {
            *out = (x - top).exp();
        }
        let sum = C::from_f64(sum1(out, |e| e));
        let own = rule.weight.map_or(C::ONE, |w| w[class]) * C::from_f64(1.0 - rule.smoothing);
        let share = C::from_f64(rule.smoothing / rule.classes as f64);
        let scale = own + total;
        match rule.weight {
            Some(w) if rule.smoothing > 0.0 => {
                for (out, &w) in out.iter_mut().zip(w) {
                    *out = (*out / sum * scale - share * w) * g;
                }
            }
            _ => {
                for out in out.iter_mut() {
                    *out = (*out / sum * scale - share) * g;
                }
            }
        }
        out[class] = out[class] - own * g;
    }
}
