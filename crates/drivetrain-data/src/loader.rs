//! `DataLoader`: batches of a data set, epoch after epoch, in an order that the workers do not change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use drivetrain_core::{Error, Result};

use crate::Dataset;
use crate::collate::{Collate, DefaultCollate};
use crate::prefetch::{Batches, Make, guarded};
use crate::random::sample_generator;
use crate::sampler::{BatchSampler, FixedBatches, RandomSampler, Sampler, SequentialSampler};

/// More workers than this is taken for a mistake.
pub(crate) const MAX_WORKERS: usize = 1024;

/// Batches of a data set. Each `for batch in &loader` is one epoch.
///
/// The order and the random parts of the items come from (seed, epoch, index) alone: neither the number of
/// workers nor a resumed run changes them. An item or a collation that fails or panics ends the epoch with an
/// error that names it. Leaving the loop early stops the workers without waiting for them.
///
/// ```
/// use drivetrain_data::{DataLoader, VecDataset};
///
/// let loader = DataLoader::builder(VecDataset::new((0..10).collect()))
///     .batch_size(4)
///     .shuffle(42)
///     .num_workers(2)
///     .collate(Ok)
///     .build()?;
/// assert_eq!(loader.len(), 3);
/// for epoch in 0..2 {
///     let mut seen = Vec::new();
///     for batch in &loader {
///         seen.extend(batch?);
///     }
///     seen.sort();
///     assert_eq!(seen, (0..10).collect::<Vec<_>>(), "epoch {epoch}");
/// }
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
pub struct DataLoader<D, C = DefaultCollate> {
    dataset: Arc<D>,
    collate: Arc<C>,
    batches: Box<dyn BatchSampler>,
    seed: u64,
    workers: usize,
    window: usize,
    epoch: AtomicU64,
}

/// Options of a [`DataLoader`]; [`build`](DataLoaderBuilder::build) checks them.
pub struct DataLoaderBuilder<D, C = DefaultCollate> {
    dataset: D,
    collate: C,
    batch_size: Option<usize>,
    drop_last: bool,
    shuffle: bool,
    seed: u64,
    sampler: Option<Box<dyn Sampler>>,
    batch_sampler: Option<Box<dyn BatchSampler>>,
    workers: usize,
    prefetch: usize,
}

impl<D> DataLoader<D> {
    /// Starts with PyTorch's defaults: batches of 1, in order, no workers, the default collation.
    pub fn builder(dataset: D) -> DataLoaderBuilder<D>
    where
        D: Dataset + 'static,
    {
        DataLoaderBuilder {
            dataset,
            collate: DefaultCollate,
            batch_size: None,
            drop_last: false,
            shuffle: false,
            seed: 0,
            sampler: None,
            batch_sampler: None,
            workers: 0,
            prefetch: 2,
        }
    }
}

impl<D: Dataset + 'static, C> DataLoaderBuilder<D, C> {
    /// Items in a batch, at least 1; 1 if not said.
    pub fn batch_size(mut self, items: usize) -> Self {
        self.batch_size = Some(items);
        self
    }

    /// Leaves out a last batch that is not full.
    pub fn drop_last(mut self, drop: bool) -> Self {
        self.drop_last = drop;
        self
    }

    /// A new permutation each epoch, made from (seed, epoch).
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.shuffle = true;
        self.seed = seed;
        self
    }

    /// The seed of what is random in the items (0 if neither this nor [`shuffle`](Self::shuffle) says it).
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The order of the items, in place of `shuffle`.
    pub fn sampler(mut self, sampler: impl Sampler + 'static) -> Self {
        self.sampler = Some(Box::new(sampler));
        self
    }

    /// The items of each batch, in place of `batch_size`, `shuffle`, `sampler` and `drop_last`.
    pub fn batch_sampler(mut self, sampler: impl BatchSampler + 'static) -> Self {
        self.batch_sampler = Some(Box::new(sampler));
        self
    }

    /// Threads that make batches ahead; 0 makes each batch when it is asked for. They are not counted among
    /// `DRIVETRAIN_NUM_THREADS`, and items may use tensors, their thread pool and other loaders freely.
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
    pub fn collate<N: Collate<D::Item>>(self, collate: N) -> DataLoaderBuilder<D, N> {
        DataLoaderBuilder {
            dataset: self.dataset,
            collate,
            batch_size: self.batch_size,
            drop_last: self.drop_last,
            shuffle: self.shuffle,
            seed: self.seed,
            sampler: self.sampler,
            batch_sampler: self.batch_sampler,
            workers: self.workers,
            prefetch: self.prefetch,
        }
    }

    /// The loader, or an error for options that contradict each other or are out of range.
    pub fn build(self) -> Result<DataLoader<D, C>>
    where
        C: Collate<D::Item> + 'static,
    {
        check_workers("DataLoader", self.workers, self.prefetch)?;
        if self.shuffle && self.sampler.is_some() {
            return Err(Error::argument(
                "DataLoader",
                "shuffle and sampler both say the order",
            ));
        }
        let fixed = self.shuffle || self.sampler.is_some() || self.drop_last;
        let batches: Box<dyn BatchSampler> = match self.batch_sampler {
            Some(_) if fixed || self.batch_size.is_some() => {
                return Err(Error::argument(
                    "DataLoader",
                    "batch_sampler takes the place of batch_size, shuffle, sampler and drop_last",
                ));
            }
            Some(batches) => batches,
            None => {
                let sampler = match self.sampler {
                    Some(sampler) => sampler,
                    None if self.shuffle => Box::new(RandomSampler::new(self.seed)),
                    None => Box::new(SequentialSampler),
                };
                let size = self.batch_size.unwrap_or(1);
                if size == 0 {
                    return Err(Error::argument(
                        "DataLoader",
                        "batch_size is 0, must be at least 1",
                    ));
                }
                Box::new(FixedBatches::new(sampler, size, self.drop_last)?)
            }
        };
        Ok(DataLoader {
            dataset: Arc::new(self.dataset),
            collate: Arc::new(self.collate),
            batches,
            seed: self.seed,
            workers: self.workers,
            window: self.workers.saturating_mul(self.prefetch),
            epoch: AtomicU64::new(0),
        })
    }
}

/// Refuses numbers of workers and of waiting batches that cannot be meant.
pub(crate) fn check_workers(
    operation: &'static str,
    workers: usize,
    prefetch: usize,
) -> Result<()> {
    if workers > MAX_WORKERS {
        return Err(Error::argument(
            operation,
            format!("num_workers {workers} is more than {MAX_WORKERS}"),
        ));
    }
    if prefetch == 0 {
        return Err(Error::argument(
            operation,
            "prefetch_factor is 0, must be at least 1",
        ));
    }
    Ok(())
}

/// One item of a batch: its index, and how often the epoch has drawn it before.
struct Pick {
    index: usize,
    repeat: u32,
}

impl<D: Dataset + 'static, C: Collate<D::Item> + 'static> DataLoader<D, C> {
    /// Batches in an epoch.
    pub fn len(&self) -> usize {
        self.batches.count(self.dataset.len())
    }

    /// Whether an epoch has no batch.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data set.
    pub fn dataset(&self) -> &D {
        &self.dataset
    }

    /// The epoch that the next [`iter`](Self::iter) gives; the first is 0.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Sets the epoch that the next [`iter`](Self::iter) gives, for a resumed run.
    pub fn set_epoch(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    /// The batches of the next epoch. `for batch in &loader` is the same.
    pub fn iter(&self) -> Batches<C::Batch> {
        self.iter_from(self.epoch.fetch_add(1, Ordering::Relaxed), 0)
    }

    /// The batches of `epoch` from batch `first` on, for a run resumed within an epoch; leaves
    /// [`epoch`](Self::epoch) as it is.
    pub fn iter_from(&self, epoch: u64, first: usize) -> Batches<C::Batch> {
        let plans = match self.plans(epoch) {
            Ok(plans) => plans,
            Err(error) => return Batches::failed(error.context(format!("epoch {epoch}"))),
        };
        let left = plans.len().saturating_sub(first);
        let plans = plans.into_iter().skip(first).map(Ok);
        let (dataset, collate, seed) = (self.dataset.clone(), self.collate.clone(), self.seed);
        let make: Make<Vec<Pick>, C::Batch> = Arc::new(move |number, picks, stop| {
            make_batch(&*dataset, &*collate, (seed, epoch), &picks, stop)
                .map_err(|error| error.context(format!("epoch {epoch}, batch {}", first + number)))
        });
        Batches::start(Box::new(plans), make, self.workers, self.window, Some(left))
    }

    /// Every batch's items, checked against the length.
    fn plans(&self, epoch: u64) -> Result<Vec<Vec<Pick>>> {
        let len = self.dataset.len();
        let batches = guarded("the sampler", || self.batches.batches(len, epoch))?;
        let mut repeats = vec![0u32; len];
        let mut plan = |batch: Vec<usize>| {
            if batch.is_empty() {
                return Err(Error::value(
                    "DataLoader",
                    "the sampler gave an empty batch",
                ));
            }
            batch
                .into_iter()
                .map(|index| {
                    let repeat = repeats.get_mut(index).ok_or_else(|| {
                        Error::value(
                            "DataLoader",
                            format!("the sampler gave index {index} for {len} items"),
                        )
                    })?;
                    let pick = Pick {
                        index,
                        repeat: *repeat,
                    };
                    *repeat = repeat.wrapping_add(1);
                    Ok(pick)
                })
                .collect()
        };
        batches.into_iter().map(&mut plan).collect()
    }
}

fn make_batch<D: Dataset, C: Collate<D::Item>>(
    dataset: &D,
    collate: &C,
    (seed, epoch): (u64, u64),
    picks: &[Pick],
    stop: &AtomicBool,
) -> Result<C::Batch> {
    let mut items = Vec::with_capacity(picks.len());
    for &Pick { index, repeat } in picks {
        if stop.load(Ordering::Relaxed) {
            // Nobody reads this: the epoch was dropped.
            return Err(Error::state("DataLoader", "stopped"));
        }
        let mut random = sample_generator(seed, epoch, index, repeat);
        let item = guarded("get", || dataset.sample(index, &mut random))
            .map_err(|error| error.context(format!("item {index}")))?;
        items.push(item);
    }
    guarded("collate", || collate.collate(items)).map_err(|error| {
        let indices: Vec<usize> = picks.iter().take(8).map(|pick| pick.index).collect();
        let more = if picks.len() > 8 { ", …" } else { "" };
        let list = format!("{indices:?}").replace(']', &format!("{more}]"));
        error.context(format!("collate of items {list}"))
    })
}

impl<D: Dataset + 'static, C: Collate<D::Item> + 'static> IntoIterator for &DataLoader<D, C> {
    type Item = Result<C::Batch>;
    type IntoIter = Batches<C::Batch>;

    fn into_iter(self) -> Batches<C::Batch> {
        self.iter()
    }
}
