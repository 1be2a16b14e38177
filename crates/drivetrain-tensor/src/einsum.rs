//! Einstein summation: products of tensors named by letters, summed over the letters that do not come back.

use crate::Tensor;
use drivetrain_core::{DType, Error, MAX_USER_DIMS, Result};

/// A name of a dimension: a letter, or a place in the ellipsis counted from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    /// Place in the ellipsis from its end.
    Rest(usize),
    /// A letter.
    Letter(char),
}

/// An operand and the names of its dimensions, each once.
struct Term {
    tensor: Tensor,
    labels: Vec<Label>,
}

impl Tensor {
    /// Products of the operands over dimensions named by letters, as `torch.einsum`: `"ij,jk->ik"` is a matrix
    /// product.
    ///
    /// Before the arrow stands one group of letters for each operand, after it the result's. A letter left out of
    /// the result is summed over; twice in one operand it means the diagonal; sizes of one letter are equal or 1.
    /// `...` stands for dimensions that broadcast. Without an arrow the result has the ellipsis and then the
    /// letters that occur once, capitals first. Operands are contracted from left to right.
    ///
    /// ```
    /// # use drivetrain_cpu as _;
    /// use drivetrain_tensor::{Device, Tensor};
    /// let device = Device::open("cpu")?;
    /// let a = Tensor::from_data([[1.0f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(Tensor::einsum("ii", &[&a])?.item::<f32>()?, 5.0);
    /// assert_eq!(Tensor::einsum("ij,kj->ik", &[&a, &a])?.to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok::<(), drivetrain_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// An equation that cannot be read or names another number of operands or dimensions, sizes of one letter that
    /// differ, a letter in the result that no operand has or that stands there twice, Bool operands.
    #[track_caller]
    pub fn einsum(equation: &str, operands: &[&Tensor]) -> Result<Tensor> {
        let compact: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (inputs, output) = match compact.split_once("->") {
            Some((inputs, output)) => (inputs, Some(output)),
            None => (compact.as_str(), None),
        };
        let groups: Vec<&str> = inputs.split(',').collect();
        if operands.is_empty() || groups.len() != operands.len() {
            return Err(refuse(
                equation,
                format!("{} groups for {} operands", groups.len(), operands.len()),
            ));
        }
        let dtype = operands
            .iter()
            .fold(operands[0].dtype(), |dtype, t| dtype.promote(t.dtype()));
        if dtype == DType::Bool {
            return Err(
                Error::dtype("einsum", "Bool has no products").help("to_dtype(DType::F32) first")
            );
        }
        let mut terms = Vec::new();
        let mut counted = Vec::new();
        for (group, operand) in groups.iter().zip(operands) {
            let labels = labels_of(equation, group, Some(operand.rank()))?;
            counted.extend(&labels);
            terms.push(without_repeats(
                equation,
                &operand.to_dtype(dtype)?,
                &labels,
            )?);
        }
        let output = match output {
            Some(output) => explicit_output(equation, output, &counted)?,
            None => implicit_output(&counted),
        };
        check_sizes(equation, &terms)?;
        contract_all(terms, &output)
    }
}

/// An error that names the equation.
#[track_caller]
fn refuse(equation: &str, why: impl std::fmt::Display) -> Error {
    Error::argument("einsum", format!("equation \"{equation}\": {why}"))
}

/// The names in one group of letters; the ellipsis covers what `rank` leaves. Without a rank it is left out, and the
/// place where it stands is returned by [`explicit_output`].
#[track_caller]
fn labels_of(equation: &str, group: &str, rank: Option<usize>) -> Result<Vec<Label>> {
    let (before, after) = match group.split_once("...") {
        Some((before, after)) => (before, Some(after)),
        None => (group, None),
    };
    let letters = |part: &str| -> Result<Vec<Label>> {
        part.chars()
            .map(|c| match c {
                c if c.is_ascii_alphabetic() => Ok(Label::Letter(c)),
                c => Err(refuse(
                    equation,
                    format!("'{c}' in \"{group}\" is neither a letter nor one ellipsis"),
                )),
            })
            .collect()
    };
    let mut labels = letters(before)?;
    let tail = after.map(letters).transpose()?;
    let named = labels.len() + tail.as_ref().map_or(0, Vec::len);
    let Some(rank) = rank else {
        labels.extend(tail.into_iter().flatten());
        return Ok(labels);
    };
    if named > rank || (named < rank && tail.is_none()) {
        return Err(refuse(
            equation,
            format!("\"{group}\" names {named} dimensions of an operand that has {rank}"),
        ));
    }
    if let Some(tail) = tail {
        labels.extend((0..rank - named).rev().map(Label::Rest));
        labels.extend(tail);
    }
    Ok(labels)
}

/// The result's names as written: the ellipsis stands for all of its dimensions.
#[track_caller]
fn explicit_output(equation: &str, output: &str, counted: &[Label]) -> Result<Vec<Label>> {
    let rest = counted
        .iter()
        .filter_map(|label| match label {
            Label::Rest(place) => Some(place + 1),
            Label::Letter(_) => None,
        })
        .max()
        .unwrap_or(0);
    let named = labels_of(equation, output, None)?.len();
    let rank = if output.contains("...") {
        named + rest
    } else {
        named
    };
    let labels = labels_of(equation, output, Some(rank))?;
    for (i, label) in labels.iter().enumerate() {
        if labels[..i].contains(label) {
            return Err(refuse(
                equation,
                format!("{} stands twice in the result", show(*label)),
            ));
        }
        if !counted.contains(label) {
            return Err(refuse(
                equation,
                format!("{} is in the result but in no operand", show(*label)),
            ));
        }
    }
    if labels.len() > MAX_USER_DIMS {
        return Err(refuse(
            equation,
            format!(
                "a result of {} dimensions, at most {MAX_USER_DIMS}",
                labels.len()
            ),
        ));
    }
    Ok(labels)
}

/// The ellipsis, then the letters that occur once, in the order of their codes.
fn implicit_output(counted: &[Label]) -> Vec<Label> {
    let mut labels: Vec<Label> = counted
        .iter()
        .copied()
        .filter(|label| match label {
            Label::Rest(_) => true,
            Label::Letter(_) => counted.iter().filter(|other| *other == label).count() == 1,
        })
        .collect();
    // The ellipsis counts from its end, so that its dimensions go backwards.
    labels.sort_by_key(|label| match label {
        Label::Rest(place) => (0, usize::MAX - place, ' '),
        Label::Letter(c) => (1, 0, *c),
    });
    labels.dedup();
    labels
}

fn show(label: Label) -> String {
    match label {
        Label::Letter(c) => format!("'{c}'"),
        Label::Rest(place) => format!("dimension {place} from the end of the ellipsis"),
    }
}

/// A name that stands twice in one operand takes the diagonal of its dimensions.
#[track_caller]
fn without_repeats(equation: &str, operand: &Tensor, labels: &[Label]) -> Result<Term> {
    let (mut tensor, mut labels) = (operand.clone(), labels.to_vec());
    while let Some((first, second)) = repeated(&labels) {
        let (a, b) = (tensor.dims()[first], tensor.dims()[second]);
        if a != b {
            return Err(refuse(
                equation,
                format!(
                    "{} stands for sizes {a} and {b} of operand {}",
                    show(labels[first]),
                    operand.shape()
                ),
            ));
        }
        tensor = tensor.diagonal(first as isize, second as isize)?;
        let label = labels[first];
        labels.remove(second);
        labels.remove(first);
        labels.push(label);
    }
    Ok(Term { tensor, labels })
}

fn repeated(labels: &[Label]) -> Option<(usize, usize)> {
    labels.iter().enumerate().find_map(|(second, label)| {
        let first = labels[..second].iter().position(|other| other == label)?;
        Some((first, second))
    })
}

/// Sizes of one name are equal or 1.
#[track_caller]
fn check_sizes(equation: &str, terms: &[Term]) -> Result<()> {
    let mut known: Vec<(Label, usize, usize)> = Vec::new();
    for (operand, term) in terms.iter().enumerate() {
        for (&label, &size) in term.labels.iter().zip(term.tensor.dims()) {
            match known.iter_mut().find(|(other, ..)| *other == label) {
                None => known.push((label, size, operand)),
                Some((_, known, from)) if *known == 1 => (*known, *from) = (size, operand),
                Some((_, known, _)) if *known == size || size == 1 => {}
                Some((_, known, from)) => {
                    return Err(Error::shape(
                        "einsum",
                        format!(
                            "equation \"{equation}\": {} has size {known} in operand {from} and {size} in operand {operand}",
                            show(label)
                        ),
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The terms multiplied from left to right; each name is summed over as soon as nobody needs it any more.
fn contract_all(terms: Vec<Term>, output: &[Label]) -> Result<Tensor> {
    let mut waiting = terms.into_iter().rev().collect::<Vec<_>>();
    let mut result: Option<Term> = None;
    while let Some(term) = waiting.pop() {
        let needed = |label: &Label| {
            output.contains(label) || waiting.iter().any(|term| term.labels.contains(label))
        };
        result = Some(match result {
            None => sum_out(term, needed)?,
            Some(before) => {
                let term = sum_out(term, |label| needed(label) || before.labels.contains(label))?;
                contract(before, term, needed)?
            }
        });
    }
    let Some(term) = result else {
        return Err(Error::argument("einsum", "no operands"));
    };
    // What was broadcast from 1 all along is of size 1 still: every name of the result is in the term.
    let order: Vec<isize> = output
        .iter()
        .filter_map(|label| term.labels.iter().position(|other| other == label))
        .map(|at| at as isize)
        .collect();
    term.tensor.permute(&order)
}

/// Sums over the names that are not kept.
fn sum_out(term: Term, keep: impl Fn(&Label) -> bool) -> Result<Term> {
    let gone: Vec<isize> = (0..term.labels.len())
        .filter(|&i| !keep(&term.labels[i]))
        .map(|i| i as isize)
        .collect();
    if gone.is_empty() {
        return Ok(term);
    }
    let dtype = term.tensor.dtype();
    Ok(Term {
        tensor: term.tensor.sum(gone.as_slice())?.to_dtype(dtype)?,
        labels: term.labels.into_iter().filter(keep).collect(),
    })
}

/// The product of two terms, summed over the names that both have and nobody needs: one batched matrix product.
fn contract(a: Term, b: Term, needed: impl Fn(&Label) -> bool) -> Result<Term> {
    let shared = |label: &Label| a.labels.contains(label) && b.labels.contains(label);
    let summed: Vec<Label> = a
        .labels
        .iter()
        .copied()
        .filter(|label| shared(label) && !needed(label))
        .collect();
    let batch: Vec<Label> = a
        .labels
        .iter()
        .copied()
        .filter(|label| shared(label) && needed(label))
        .collect();
    let only = |term: &Term| -> Vec<Label> {
        let alone = |label: &Label| !shared(label);
        term.labels.iter().copied().filter(alone).collect()
    };
    let (rows, columns) = (only(&a), only(&b));
    let size = |label: &Label| match (size_in(&a, label), size_in(&b, label)) {
        (Some(1) | None, Some(size)) | (Some(size), _) => size,
        (None, None) => 1,
    };
    let sizes = |labels: &[Label]| -> Vec<usize> { labels.iter().map(size).collect() };
    // [batch…, rows, summed]·[batch…, summed, columns]; sizes of 1 are stretched where the other's is larger.
    let arrange = |term: &Term, groups: [&[Label]; 3], flat: [usize; 3]| -> Result<Tensor> {
        let wanted: Vec<Label> = groups.concat();
        let order: Vec<isize> = wanted
            .iter()
            .filter_map(|label| term.labels.iter().position(|other| other == label))
            .map(|at| at as isize)
            .collect();
        let stretched: Vec<usize> = wanted.iter().map(size).collect();
        term.tensor
            .permute(&order)?
            .expand(stretched)?
            .reshape(flat)
    };
    // Products that overflow are refused when the terms are stretched.
    let count = |labels: &[Label]| labels.iter().map(size).fold(1, usize::saturating_mul);
    let (n, m, k, p) = (count(&batch), count(&rows), count(&summed), count(&columns));
    let left = arrange(&a, [&batch, &rows, &summed], [n, m, k])?;
    let right = arrange(&b, [&batch, &summed, &columns], [n, k, p])?;
    // Without a sum it is a product element by element.
    let product = if summed.is_empty() {
        left.mul(&right)?
    } else {
        left.matmul(&right)?
    };
    let labels = [batch, rows, columns].concat();
    Ok(Term {
        tensor: product.reshape(sizes(&labels))?,
        labels,
    })
}

/// The size that a term has for a name.
fn size_in(term: &Term, label: &Label) -> Option<usize> {
    let at = term.labels.iter().position(|other| other == label)?;
    term.tensor.dims().get(at).copied()
}
