//! Functions with parameters given from outside, where [`Tensor`] has no method for them. Losses: [`crate::loss`].

use drivetrain_core::{Error, Result};
use drivetrain_tensor::Tensor;

/// Rows of `weight` at `ids`; the row `padding_idx` is looked up but gets no gradient.
///
/// # Errors
/// A padding row outside the table, or an id out of range (perhaps at the next call that waits).
#[track_caller]
pub fn embedding(ids: &Tensor, weight: &Tensor, padding_idx: Option<usize>) -> Result<Tensor> {
    let Some(row) = padding_idx else {
        return weight.embedding(ids);
    };
    if row >= weight.len() {
        return Err(Error::argument(
            "embedding",
            format!("padding_idx {row} of a table {}", weight.shape()),
        ));
    }
    let padding = Tensor::index_along([weight.len(), 1], 0, weight.device())?.eq(row as i64)?;
    // The row's value comes from outside the graph.
    weight.detach().where_(&padding, weight)?.embedding(ids)
}

/// [`Tensor::dropout`] while training, else x itself.
///
/// # Errors
/// A probability outside 0..=1.
#[track_caller]
pub fn dropout(x: &Tensor, p: f64, training: bool) -> Result<Tensor> {
    if training {
        x.dropout(p)
    } else {
        Ok(x.clone())
    }
}
