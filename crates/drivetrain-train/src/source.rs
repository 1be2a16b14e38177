//! Where batches come from: a loader, or a list.

use drivetrain_core::Result;
use drivetrain_data::{Collate, DataLoader, Dataset};
use drivetrain_tensor::Tensor;

/// Gives the batches of an epoch: inputs and targets.
pub trait BatchSource {
    /// How many batches an epoch has.
    fn batches(&self) -> usize;

    /// The batches of the next epoch.
    fn epoch(&self) -> Box<dyn Iterator<Item = Result<(Tensor, Tensor)>> + '_>;
}

impl<D, C> BatchSource for DataLoader<D, C>
where
    D: Dataset + 'static,
    C: Collate<D::Item, Batch = (Tensor, Tensor)> + 'static,
{
    fn batches(&self) -> usize {
        self.len()
    }

    fn epoch(&self) -> Box<dyn Iterator<Item = Result<(Tensor, Tensor)>> + '_> {
        Box::new(self.iter())
    }
}

/// Batches that are made already, in this order every epoch.
impl BatchSource for Vec<(Tensor, Tensor)> {
    fn batches(&self) -> usize {
        self.len()
    }

    fn epoch(&self) -> Box<dyn Iterator<Item = Result<(Tensor, Tensor)>> + '_> {
        Box::new(self.iter().cloned().map(Ok))
    }
}
