//! Sources without indices: read by one thread at a time, so that no item comes twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drivetrain_core::{Error, Result};

use crate::collate::{Collate, DefaultCollate};
use crate::loader::check_workers;
use crate::prefetch::{Batches, Make, guarded};

/// Items of a source.
pub type Items<T> = Box<dyn Iterator<Item = Result<T>> + Send>;

/// Items that can only be read one after the other (a socket, a compressed archive, a generator): PyTorch's
/// `IterableDataset`.
///
/// A loader reads the source from one thread at a time and deals whole batches out to its workers, so every
/// item comes exactly once, in order, whatever their number; no rule for sharing the source is needed. What is
/// slow (decoding, transforms) belongs into the collation, which the workers run side by side.
///
/// ```
/// use drivetrain_core::Result;
/// use drivetrain_data::{IterableDataset, Items, StreamLoader};
///
/// struct Count(i64);
///
/// impl IterableDataset for Count {
///     type Item = i64;
///     fn iter(&self, _epoch: u64) -> Result<Items<i64>> {
///         Ok(Box::new((0..self.0).map(Ok)))
///     }
/// }
///
/// let loader = StreamLoader::builder(Count(10)).batch_size(2).num_workers(4).collate(Ok).build()?;
/// let batches = loader.iter().collect::<Result<Vec<Vec<i64>>>>()?;
/// assert_eq!(batches.len(), 5);
/// assert_eq!(batches.concat(), (0..10).collect::<Vec<_>>());
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
pub trait IterableDataset: Send + Sync {
    /// One item.
    type Item: Send + 'static;

    /// All items of an epoch.
    fn iter(&self, epoch: u64) -> Result<Items<Self::Item>>;
}

/// Batches of an [`IterableDataset`].
pub struct StreamLoader<S, C = DefaultCollate> {
    source: S,
    collate: Arc<C>,
    batch_size: usize,
    drop_last: bool,
    workers: usize,
    window: usize,
    epoch: AtomicU64,
}

/// Options of a [`StreamLoader`].
pub struct StreamLoaderBuilder<S, C = DefaultCollate> {
    source: S,
    collate: C,
    batch_size: usize,
    drop_last: bool,
    workers: usize,
    prefetch: usize,
}

impl<S: IterableDataset + 'static> StreamLoader<S> {
    /// Starts with batches of 1, no workers and the default collation.
    pub fn builder(source: S) -> StreamLoaderBuilder<S> {
        StreamLoaderBuilder {
            source,
            collate: DefaultCollate,
            batch_size: 1,
            drop_last: false,
            workers: 0,
            prefetch: 2,
        }
    }
}

impl<S: IterableDataset + 'static, C> StreamLoaderBuilder<S, C> {
    /// Items in a batch, at least 1; 1 if not said.
    pub fn batch_size(mut self, items: usize) -> Self {
        self.batch_size = items;
        self
    }

    /// Leaves out a last batch that is not full.
    pub fn drop_last(mut self, drop: bool) -> Self {
        self.drop_last = drop;
        self
    }

    /// Threads that read and collate ahead; 0 does so when a batch is asked for.
    pub fn num_workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Finished batches that may wait for each worker, at least 1; 2 if not said.
    pub fn prefetch_factor(mut self, batches: usize) -> Self {
        self.prefetch = batches;
        self
    }

    /// How items become a batch: a closure `Vec<Item> -> Result<Batch>` or a [`Collate`].
    pub fn collate<N: Collate<S::Item>>(self, collate: N) -> StreamLoaderBuilder<S, N> {
        StreamLoaderBuilder {
            source: self.source,
            collate,
            batch_size: self.batch_size,
            drop_last: self.drop_last,
            workers: self.workers,
            prefetch: self.prefetch,
        }
    }

    /// The loader, or an error for options out of range.
    pub fn build(self) -> Result<StreamLoader<S, C>>
    where
        C: Collate<S::Item> + 'static,
    {
        check_workers("StreamLoader", self.workers, self.prefetch)?;
        if self.batch_size == 0 {
            return Err(Error::argument(
                "StreamLoader",
                "batch_size is 0, must be at least 1",
            ));
        }
        Ok(StreamLoader {
            source: self.source,
            collate: Arc::new(self.collate),
            batch_size: self.batch_size,
            drop_last: self.drop_last,
            workers: self.workers,
            window: self.workers.saturating_mul(self.prefetch),
            epoch: AtomicU64::new(0),
        })
    }
}

impl<S: IterableDataset + 'static, C: Collate<S::Item> + 'static> StreamLoader<S, C> {
    /// The batches of the next epoch. `for batch in &loader` is the same.
    pub fn iter(&self) -> Batches<C::Batch> {
        let epoch = self.epoch.fetch_add(1, Ordering::Relaxed);
        let items = match guarded("the source", || self.source.iter(epoch)) {
            Ok(items) => items,
            Err(error) => return Batches::failed(error.context(format!("epoch {epoch}"))),
        };
        let collate = self.collate.clone();
        let make: Make<Vec<S::Item>, C::Batch> = Arc::new(move |number, items, _| {
            guarded("collate", || collate.collate(items))
                .map_err(|error| error.context(format!("epoch {epoch}, batch {number}")))
        });
        let plans = Cut {
            items: items.fuse(),
            size: self.batch_size,
            drop_last: self.drop_last,
            read: 0,
        };
        Batches::start(Box::new(plans), make, self.workers, self.window, None)
    }
}

impl<S: IterableDataset + 'static, C: Collate<S::Item> + 'static> IntoIterator
    for &StreamLoader<S, C>
{
    type Item = Result<C::Batch>;
    type IntoIter = Batches<C::Batch>;

    fn into_iter(self) -> Batches<C::Batch> {
        self.iter()
    }
}

/// Cuts a stream into lists of `size` items.
struct Cut<T> {
    items: std::iter::Fuse<Items<T>>,
    size: usize,
    drop_last: bool,
    read: u64,
}

impl<T> Iterator for Cut<T> {
    type Item = Result<Vec<T>>;

    fn next(&mut self) -> Option<Result<Vec<T>>> {
        let mut batch = Vec::new();
        while batch.len() < self.size {
            match guarded("the source", || self.items.next().transpose()) {
                Ok(Some(item)) => batch.push(item),
                Ok(None) => break,
                Err(error) => return Some(Err(error.context(format!("item {}", self.read)))),
            }
            self.read += 1;
        }
        let least = if self.drop_last { self.size } else { 1 };
        (batch.len() >= least).then_some(Ok(batch))
    }
}
