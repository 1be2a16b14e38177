//! Samplers: in which order, and in which batches, an epoch visits the items.

use drivetrain_core::{Error, Result};

use crate::random::Purpose;

/// The order in which an epoch visits items. The same (length, epoch) must give the same indices.
///
/// ```
/// use drivetrain_data::{RandomSampler, Sampler};
/// let sampler = RandomSampler::new(7);
/// let mut order = sampler.indices(10, 0)?;
/// assert_ne!(order, sampler.indices(10, 1)?);
/// order.sort();
/// assert_eq!(order, (0..10).collect::<Vec<_>>());
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
pub trait Sampler: Send + Sync {
    /// How many indices an epoch over a data set of `length` items has.
    fn count(&self, length: usize) -> usize;

    /// The indices of `epoch` over a data set of `length` items.
    fn indices(&self, length: usize, epoch: u64) -> Result<Vec<usize>>;
}

/// `0, 1, 2, …`
#[derive(Clone, Copy, Debug, Default)]
pub struct SequentialSampler;

impl Sampler for SequentialSampler {
    fn count(&self, length: usize) -> usize {
        length
    }

    fn indices(&self, length: usize, _epoch: u64) -> Result<Vec<usize>> {
        Ok((0..length).collect())
    }
}

/// A new permutation each epoch, or draws with replacement.
#[derive(Clone, Copy, Debug)]
pub struct RandomSampler {
    seed: u64,
    draws: Option<usize>,
}

impl RandomSampler {
    /// A new permutation each epoch, made from (seed, epoch).
    pub fn new(seed: u64) -> Self {
        RandomSampler { seed, draws: None }
    }

    /// `draws` independent uniform draws each epoch; an index may come more than once.
    pub fn with_replacement(seed: u64, draws: usize) -> Self {
        RandomSampler {
            seed,
            draws: Some(draws),
        }
    }
}

impl Sampler for RandomSampler {
    fn count(&self, length: usize) -> usize {
        match self.draws {
            Some(_) if length == 0 => 0,
            Some(draws) => draws,
            None => length,
        }
    }

    fn indices(&self, length: usize, epoch: u64) -> Result<Vec<usize>> {
        let mut generator = Purpose::Order.generator(self.seed, epoch);
        Ok(match self.draws {
            None => generator.permutation(length),
            Some(_) => draw("RandomSampler", self.count(length), || {
                generator.below(length as u64) as usize
            })?,
        })
    }
}

/// Draws each index with a chance proportional to its weight: for classes of unequal size.
#[derive(Clone, Debug)]
pub struct WeightedRandomSampler {
    weights: Vec<f64>,
    draws: usize,
    replacement: bool,
    seed: u64,
}

impl WeightedRandomSampler {
    /// `draws` indices an epoch. Weights must be finite, not negative, and one of them above 0; without
    /// replacement there must be at least `draws` weights above 0.
    pub fn new(weights: Vec<f64>, draws: usize, replacement: bool, seed: u64) -> Result<Self> {
        const NAME: &str = "WeightedRandomSampler::new";
        if let Some(bad) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
            return Err(Error::argument(
                NAME,
                format!(
                    "weight {bad} is {}, must be finite and not negative",
                    weights[bad]
                ),
            ));
        }
        let positive = weights.iter().filter(|w| **w > 0.0).count();
        if draws > 0 && (positive == 0 || !weights.iter().sum::<f64>().is_finite()) {
            return Err(Error::argument(
                NAME,
                format!(
                    "the sum of the {} weights must be above 0 and finite",
                    weights.len()
                ),
            ));
        }
        if !replacement && draws > positive {
            return Err(Error::argument(
                NAME,
                format!("{draws} draws without replacement, but only {positive} weights above 0"),
            ));
        }
        Ok(WeightedRandomSampler {
            weights,
            draws,
            replacement,
            seed,
        })
    }
}

impl Sampler for WeightedRandomSampler {
    fn count(&self, _length: usize) -> usize {
        self.draws
    }

    fn indices(&self, length: usize, epoch: u64) -> Result<Vec<usize>> {
        if self.weights.len() != length {
            return Err(Error::argument(
                "WeightedRandomSampler",
                format!("{} weights for {length} items", self.weights.len()),
            ));
        }
        let mut generator = Purpose::Order.generator(self.seed, epoch);
        if self.replacement {
            let mut sums = Vec::with_capacity(length);
            let mut sum = 0.0;
            for weight in &self.weights {
                sum += weight;
                sums.push(sum);
            }
            let last = self.weights.iter().rposition(|w| *w > 0.0).unwrap_or(0);
            return draw("WeightedRandomSampler", self.draws, || {
                let at = generator.uniform() * sum;
                sums.partition_point(|&s| s <= at).min(last)
            });
        }
        // Efraimidis and Spirakis 2006: the items with the smallest exponential waiting times.
        let mut waits: Vec<(f64, usize)> = Vec::with_capacity(length);
        for (index, &weight) in self.weights.iter().enumerate() {
            let wait = -(1.0 - generator.uniform()).ln() / weight;
            if weight > 0.0 {
                waits.push((wait, index));
            }
        }
        waits.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Ok(waits.iter().take(self.draws).map(|w| w.1).collect())
    }
}

/// `draws` indices; an error, not an abort, when there is no memory for so many.
fn draw(
    operation: &'static str,
    draws: usize,
    mut next: impl FnMut() -> usize,
) -> Result<Vec<usize>> {
    let mut indices = Vec::new();
    indices
        .try_reserve_exact(draws)
        .map_err(|_| Error::argument(operation, format!("no memory for {draws} draws")))?;
    indices.extend((0..draws).map(|_| next()));
    Ok(indices)
}

/// The indices of each batch of an epoch, for batches that are not a plain cut of one order (by length, by class).
pub trait BatchSampler: Send + Sync {
    /// How many batches an epoch over a data set of `length` items has.
    fn count(&self, length: usize) -> usize;

    /// The batches of `epoch`; none may be empty.
    fn batches(&self, length: usize, epoch: u64) -> Result<Vec<Vec<usize>>>;
}

/// Cuts the order of a sampler into batches of equal size; the last one may be smaller, or is dropped.
#[derive(Clone, Copy, Debug)]
pub struct FixedBatches<S> {
    sampler: S,
    batch_size: usize,
    drop_last: bool,
}

impl<S: Sampler> FixedBatches<S> {
    /// Batches of `batch_size` (at least 1) indices.
    pub fn new(sampler: S, batch_size: usize, drop_last: bool) -> Result<Self> {
        if batch_size == 0 {
            return Err(Error::argument(
                "FixedBatches::new",
                "batch_size is 0, must be at least 1",
            ));
        }
        Ok(FixedBatches {
            sampler,
            batch_size,
            drop_last,
        })
    }
}

impl<S: Sampler> BatchSampler for FixedBatches<S> {
    fn count(&self, length: usize) -> usize {
        let indices = self.sampler.count(length);
        match self.drop_last {
            true => indices / self.batch_size,
            false => indices.div_ceil(self.batch_size),
        }
    }

    fn batches(&self, length: usize, epoch: u64) -> Result<Vec<Vec<usize>>> {
        let order = self.sampler.indices(length, epoch)?;
        Ok(order
            .chunks(self.batch_size)
            .filter(|batch| !self.drop_last || batch.len() == self.batch_size)
            .map(<[usize]>::to_vec)
            .collect())
    }
}

impl Sampler for Box<dyn Sampler> {
    fn count(&self, length: usize) -> usize {
        (**self).count(length)
    }

    fn indices(&self, length: usize, epoch: u64) -> Result<Vec<usize>> {
        (**self).indices(length, epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighted_draws_follow_the_weights() {
        let sampler = WeightedRandomSampler::new(vec![1.0, 0.0, 3.0], 40_000, true, 1).unwrap();
        let order = sampler.indices(3, 0).unwrap();
        let count = |i| order.iter().filter(|&&x| x == i).count() as f64 / 40_000.0;
        assert!((count(0) - 0.25).abs() < 0.01, "{}", count(0));
        assert_eq!(count(1), 0.0);
        assert!(sampler.indices(4, 0).is_err());
    }

    #[test]
    fn weighted_draws_without_replacement_differ() {
        let mut first_is_heavy = 0;
        for seed in 0..400 {
            let sampler =
                WeightedRandomSampler::new(vec![9.0, 1.0, 0.0, 1.0], 2, false, seed).unwrap();
            let order = sampler.indices(4, 0).unwrap();
            assert!(order[0] != order[1] && !order.contains(&2));
            first_is_heavy += usize::from(order[0] == 0);
        }
        // 9 of 11: 327 of 400, five standard deviations either way.
        assert!((288..=366).contains(&first_is_heavy), "{first_is_heavy}");
        assert!(WeightedRandomSampler::new(vec![1.0, 0.0], 2, false, 0).is_err());
        assert!(WeightedRandomSampler::new(vec![f64::NAN], 1, true, 0).is_err());
        assert!(WeightedRandomSampler::new(vec![0.0], 1, true, 0).is_err());
    }

    #[test]
    fn replacement_covers_the_range() {
        let order = RandomSampler::with_replacement(3, 1000)
            .indices(10, 0)
            .unwrap();
        assert_eq!(order.len(), 1000);
        assert!((0..10).all(|i| order.contains(&i)));
        let endless = RandomSampler::with_replacement(3, usize::MAX);
        assert!(endless.indices(10, 0).is_err());
        assert_eq!(
            RandomSampler::with_replacement(3, 5).indices(0, 0).unwrap(),
            Vec::<usize>::new()
        );
    }
}
