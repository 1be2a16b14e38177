//! `Dataset`: items by index, and the adapters that map, choose, join and split them.

use std::sync::Arc;

use drivetrain_core::random::Generator;
use drivetrain_core::{Error, Result};

use crate::random::Purpose;
use crate::{Image, Transform};

/// Items that can be asked for by index, from any thread: PyTorch's map-style `Dataset`.
///
/// Only [`len`](Dataset::len) and [`get`](Dataset::get) must be written. A data set whose items are drawn at
/// random (augmentation) writes [`sample`](Dataset::sample) too, or is made by
/// [`map_random`](Dataset::map_random) or [`transform`](Dataset::transform).
///
/// ```
/// use drivetrain_core::{Error, Result};
/// use drivetrain_data::Dataset;
///
/// struct Squares(usize);
///
/// impl Dataset for Squares {
///     type Item = i64;
///     fn len(&self) -> usize {
///         self.0
///     }
///     fn get(&self, index: usize) -> Result<i64> {
///         let root = i64::try_from(index).map_err(|_| Error::argument("Squares::get", "index too large"))?;
///         Ok(root * root)
///     }
/// }
///
/// let even = Squares(10).subset(vec![0, 2, 4])?.map(|square| Ok(square + 1));
/// assert_eq!(even.get(2)?, 17);
/// # Ok::<(), Error>(())
/// ```
pub trait Dataset: Send + Sync {
    /// One item: `(Image, i64)` for the image sets of this crate.
    type Item: Send + 'static;

    /// How many items there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`; an error if `index` is not below [`len`](Dataset::len) or the item cannot be made.
    fn get(&self, index: usize) -> Result<Self::Item>;

    /// The item at `index`, with a generator for what is random in it.
    ///
    /// The loader calls this with a generator made from (seed, epoch, index), so that the items do not depend on
    /// the number of workers. Without random parts it is [`get`](Dataset::get).
    fn sample(&self, index: usize, random: &mut Generator) -> Result<Self::Item> {
        let _ = random;
        self.get(index)
    }

    /// Every item passed through `function` when it is asked for.
    fn map<F, O>(self, function: F) -> Map<Self, F>
    where
        Self: Sized,
        F: Fn(Self::Item) -> Result<O> + Send + Sync,
        O: Send + 'static,
    {
        Map {
            dataset: self,
            function,
        }
    }

    /// Every item passed through `function`, which draws from the generator it is given.
    fn map_random<F, O>(self, function: F) -> MapRandom<Self, F>
    where
        Self: Sized,
        F: Fn(Self::Item, &mut Generator) -> Result<O> + Send + Sync,
        O: Send + 'static,
    {
        MapRandom {
            dataset: self,
            function,
        }
    }

    /// The image of every `(image, label)` item passed through `transform`; the label stays.
    fn transform<T, L>(self, transform: T) -> Transformed<Self, T>
    where
        Self: Sized + Dataset<Item = (Image, L)>,
        T: Transform,
        L: Send + 'static,
    {
        Transformed {
            dataset: self,
            transform,
        }
    }

    /// The items at `indices`, in that order; an error names an index out of range.
    fn subset(self, indices: Vec<usize>) -> Result<Subset<Self>>
    where
        Self: Sized,
    {
        Subset::new(self, indices)
    }
}

/// The error for an index that is not below the length.
#[track_caller]
pub(crate) fn check_index(operation: &'static str, index: usize, len: usize) -> Result<()> {
    if index < len {
        return Ok(());
    }
    Err(Error::argument(
        operation,
        format!("index {index} is out of range for {len} items"),
    ))
}

macro_rules! forward_dataset {
    ($pointer:ident) => {
        impl<D: Dataset + ?Sized> Dataset for $pointer<D> {
            type Item = D::Item;

            fn len(&self) -> usize {
                (**self).len()
            }

            fn get(&self, index: usize) -> Result<Self::Item> {
                (**self).get(index)
            }

            fn sample(&self, index: usize, random: &mut Generator) -> Result<Self::Item> {
                (**self).sample(index, random)
            }
        }
    };
}

forward_dataset!(Arc);
forward_dataset!(Box);

/// Items in a `Vec`, cloned when they are asked for. (`Vec` itself is no data set, or `get` would have two meanings.)
///
/// ```
/// use drivetrain_data::{Dataset, VecDataset};
/// let doubled = VecDataset::new(vec![1, 2, 3]).map(|item| Ok(item * 2));
/// assert_eq!(doubled.get(2)?, 6);
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct VecDataset<T>(Vec<T>);

impl<T> VecDataset<T> {
    /// These items, in this order.
    pub fn new(items: Vec<T>) -> Self {
        VecDataset(items)
    }
}

impl<T: Clone + Send + Sync + 'static> Dataset for VecDataset<T> {
    type Item = T;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<T> {
        check_index("VecDataset::get", index, self.0.len())?;
        Ok(self.0[index].clone())
    }
}

/// [`Dataset::map`].
#[derive(Clone, Debug)]
pub struct Map<D, F> {
    dataset: D,
    function: F,
}

impl<D, F, O> Dataset for Map<D, F>
where
    D: Dataset,
    F: Fn(D::Item) -> Result<O> + Send + Sync,
    O: Send + 'static,
{
    type Item = O;

    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn get(&self, index: usize) -> Result<O> {
        (self.function)(self.dataset.get(index)?)
    }

    fn sample(&self, index: usize, random: &mut Generator) -> Result<O> {
        (self.function)(self.dataset.sample(index, random)?)
    }
}

/// [`Dataset::map_random`]. A plain `get` draws as epoch 0 of seed 0 does.
#[derive(Clone, Debug)]
pub struct MapRandom<D, F> {
    dataset: D,
    function: F,
}

impl<D, F, O> Dataset for MapRandom<D, F>
where
    D: Dataset,
    F: Fn(D::Item, &mut Generator) -> Result<O> + Send + Sync,
    O: Send + 'static,
{
    type Item = O;

    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn get(&self, index: usize) -> Result<O> {
        self.sample(index, &mut crate::random::sample_generator(0, 0, index, 0))
    }

    fn sample(&self, index: usize, random: &mut Generator) -> Result<O> {
        let item = self.dataset.sample(index, random)?;
        (self.function)(item, random)
    }
}

/// [`Dataset::transform`]. A plain `get` draws as epoch 0 of seed 0 does.
#[derive(Clone, Debug)]
pub struct Transformed<D, T> {
    dataset: D,
    transform: T,
}

impl<D, T, L> Dataset for Transformed<D, T>
where
    D: Dataset<Item = (Image, L)>,
    T: Transform,
    L: Send + 'static,
{
    type Item = (Image, L);

    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn get(&self, index: usize) -> Result<(Image, L)> {
        self.sample(index, &mut crate::random::sample_generator(0, 0, index, 0))
    }

    fn sample(&self, index: usize, random: &mut Generator) -> Result<(Image, L)> {
        let (image, label) = self.dataset.sample(index, random)?;
        Ok((self.transform.apply(image, random)?, label))
    }
}

/// Chosen items of a data set, in a chosen order.
#[derive(Clone, Debug)]
pub struct Subset<D> {
    dataset: D,
    indices: Vec<usize>,
}

impl<D: Dataset> Subset<D> {
    /// The items of `dataset` at `indices`; an error names an index out of range.
    pub fn new(dataset: D, indices: Vec<usize>) -> Result<Self> {
        let len = dataset.len();
        for &index in &indices {
            check_index("Subset::new", index, len)?;
        }
        Ok(Subset { dataset, indices })
    }

    /// The positions in the whole data set.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    type Item = D::Item;

    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, index: usize) -> Result<Self::Item> {
        check_index("Subset::get", index, self.indices.len())?;
        self.dataset.get(self.indices[index])
    }

    fn sample(&self, index: usize, random: &mut Generator) -> Result<Self::Item> {
        check_index("Subset::get", index, self.indices.len())?;
        self.dataset.sample(self.indices[index], random)
    }
}

/// Data sets one after the other. For sets of different types with equal items, box them:
/// `ConcatDataset::new(vec![Box::new(a) as Box<dyn Dataset<Item = T>>, Box::new(b)])`.
#[derive(Clone, Debug)]
pub struct ConcatDataset<D> {
    datasets: Vec<D>,
    /// Where each data set ends.
    ends: Vec<usize>,
}

impl<D: Dataset> ConcatDataset<D> {
    /// All items of the first, then all of the second, …; an error if their number overflows.
    pub fn new(datasets: Vec<D>) -> Result<Self> {
        let mut ends = Vec::with_capacity(datasets.len());
        let mut end = 0usize;
        for dataset in &datasets {
            end = end.checked_add(dataset.len()).ok_or_else(|| {
                Error::argument("ConcatDataset::new", "the lengths add up past usize::MAX")
            })?;
            ends.push(end);
        }
        Ok(ConcatDataset { datasets, ends })
    }

    fn find(&self, index: usize) -> Result<(&D, usize)> {
        check_index("ConcatDataset::get", index, self.len())?;
        let which = self.ends.partition_point(|&end| end <= index);
        let start = if which == 0 { 0 } else { self.ends[which - 1] };
        Ok((&self.datasets[which], index - start))
    }
}

impl<D: Dataset> Dataset for ConcatDataset<D> {
    type Item = D::Item;

    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn get(&self, index: usize) -> Result<Self::Item> {
        let (dataset, index) = self.find(index)?;
        dataset.get(index)
    }

    fn sample(&self, index: usize, random: &mut Generator) -> Result<Self::Item> {
        let (dataset, index) = self.find(index)?;
        dataset.sample(index, random)
    }
}

/// Cuts a data set at random into parts of the given lengths, which must add up to its length.
/// The same seed gives the same parts.
///
/// ```
/// use drivetrain_data::{Dataset, VecDataset, random_split};
/// let parts = random_split(VecDataset::new((0..10).collect()), &[8, 2], 42)?;
/// assert_eq!((parts[0].len(), parts[1].len()), (8, 2));
/// # let _: i64 = parts[0].get(0)?;
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
pub fn random_split<D: Dataset>(
    dataset: D,
    lengths: &[usize],
    seed: u64,
) -> Result<Vec<Subset<Arc<D>>>> {
    let len = dataset.len();
    let sum = lengths.iter().try_fold(0usize, |a, &b| a.checked_add(b));
    if sum != Some(len) {
        return Err(Error::argument(
            "random_split",
            format!("lengths {lengths:?} do not add up to the {len} items"),
        )
        .help("random_split_fractions takes shares such as [0.8, 0.2]"));
    }
    let order = Purpose::Split.generator(seed, 0).permutation(len);
    let dataset = Arc::new(dataset);
    let mut start = 0;
    lengths
        .iter()
        .map(|&length| {
            let indices = order[start..start + length].to_vec();
            start += length;
            Subset::new(dataset.clone(), indices)
        })
        .collect()
}

/// Cuts a data set at random into parts by their shares, which must add up to 1. Each part gets
/// `floor(share · len)` items; those left over go to the first parts, one each (as in PyTorch).
pub fn random_split_fractions<D: Dataset>(
    dataset: D,
    fractions: &[f64],
    seed: u64,
) -> Result<Vec<Subset<Arc<D>>>> {
    let fine = fractions.iter().all(|f| (0.0..=1.0).contains(f))
        && (fractions.iter().sum::<f64>() - 1.0).abs() < 1e-6;
    if !fine {
        return Err(Error::argument(
            "random_split_fractions",
            format!("shares {fractions:?} must each be in 0..=1 and add up to 1"),
        ));
    }
    let len = dataset.len();
    let mut lengths: Vec<usize> = fractions
        .iter()
        .map(|f| ((f * len as f64) as usize).min(len))
        .collect();
    let given: usize = lengths.iter().sum();
    let parts = lengths.len();
    for i in 0..len.saturating_sub(given) {
        lengths[i % parts] += 1;
    }
    random_split(dataset, &lengths, seed)
}
