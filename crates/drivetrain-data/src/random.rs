//! Generators derived from (seed, epoch, item), so that no result depends on the number of workers.

use drivetrain_core::random::{Generator, philox};

/// What a sequence is for; sequences of different purposes never meet.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// Augmentation of one item.
    Sample = 1,
    /// The order of an epoch.
    Order = 2,
    /// Cutting a data set into parts.
    Split = 3,
}

impl Purpose {
    /// A key of its own for (seed, epoch, purpose, repeat): one Philox block.
    fn key(self, seed: u64, epoch: u64, repeat: u32) -> u64 {
        // The last word sets these blocks apart from those of the ops, whose streams are small numbers.
        let counter = [
            epoch as u32,
            (epoch >> 32) as u32,
            repeat,
            0xDA7A_0000 | self as u32,
        ];
        let words = philox(counter, [seed as u32, (seed >> 32) as u32]);
        u64::from(words[0]) | u64::from(words[1]) << 32
    }

    /// The generator of an epoch.
    pub(crate) fn generator(self, seed: u64, epoch: u64) -> Generator {
        Generator::new(self.key(seed, epoch, 0), 0)
    }
}

/// The generator of one item. `repeat` counts how often the epoch has drawn the same index before, so that a
/// sampler with replacement does not see the same crop twice.
pub(crate) fn sample_generator(seed: u64, epoch: u64, index: usize, repeat: u32) -> Generator {
    Generator::new(Purpose::Sample.key(seed, epoch, repeat), index as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_item_epoch_seed_and_repeat_has_its_own_sequence() {
        let mut seen = HashSet::new();
        for seed in 0..4 {
            for epoch in 0..4 {
                for index in 0..4 {
                    for repeat in 0..4 {
                        let mut generator = sample_generator(seed, epoch, index, repeat);
                        seen.insert((generator.word(), generator.word()));
                    }
                }
                seen.insert({
                    let mut generator = Purpose::Order.generator(seed, epoch);
                    (generator.word(), generator.word())
                });
            }
        }
        assert_eq!(seen.len(), 4 * 4 * (16 + 1));
    }
}
