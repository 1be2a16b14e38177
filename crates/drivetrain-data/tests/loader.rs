//! The loader: order, epochs, workers, failures, early drops.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use drivetrain_core::{Error, Result};
use drivetrain_data::{
    ConcatDataset, DataLoader, Dataset, Items, IterableDataset, RandomSampler, SequentialSampler,
    StreamLoader, Subset, VecDataset, WeightedRandomSampler, random_split, random_split_fractions,
};

fn list(n: i64) -> Vec<i64> {
    (0..n).collect()
}

fn numbers(n: i64) -> VecDataset<i64> {
    VecDataset::new(list(n))
}

/// Items made by a function.
struct Made<F>(usize, F);

impl<F: Fn(usize) -> Result<i64> + Send + Sync> Dataset for Made<F> {
    type Item = i64;

    fn len(&self) -> usize {
        self.0
    }

    fn get(&self, index: usize) -> Result<i64> {
        (self.1)(index)
    }
}

/// Runs `test` on a thread and fails if it takes longer than `seconds`.
fn within<T: Send + 'static>(seconds: u64, test: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let _ = sender.send(test());
    });
    match receiver.recv_timeout(Duration::from_secs(seconds)) {
        Ok(value) => value,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("hangs"),
        Err(_) => std::panic::resume_unwind(thread.join().unwrap_err()),
    }
}

#[test]
fn sizes_and_epochs_are_complete_whatever_the_workers() {
    for workers in [0, 1, 3] {
        for (drop_last, sizes) in [(false, vec![4, 4, 2]), (true, vec![4, 4])] {
            let loader = DataLoader::builder(numbers(10))
                .batch_size(4)
                .shuffle(5)
                .drop_last(drop_last)
                .num_workers(workers)
                .collate(Ok)
                .build()
                .unwrap();
            assert_eq!(loader.len(), sizes.len());
            let mut orders = Vec::new();
            for _ in 0..3 {
                let batches: Vec<Vec<i64>> = loader.iter().collect::<Result<_>>().unwrap();
                assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
                let order = batches.concat();
                let mut sorted = order.clone();
                sorted.sort();
                sorted.dedup();
                assert_eq!(sorted.len(), order.len());
                orders.push(order);
            }
            assert!(orders[0] != orders[1] && orders[1] != orders[2]);
            assert_eq!(loader.epoch(), 3);
        }
    }
}

#[test]
fn a_large_batch_and_an_empty_data_set() {
    for workers in [0, 3] {
        let batches = |n, size| -> Vec<Vec<i64>> {
            DataLoader::builder(numbers(n))
                .batch_size(size)
                .num_workers(workers)
                .collate(Ok)
                .build()
                .unwrap()
                .iter()
                .collect::<Result<_>>()
                .unwrap()
        };
        assert_eq!(batches(10, 64), [list(10)]);
        assert!(batches(0, 4).is_empty());
    }
}

#[test]
fn order_and_random_parts_do_not_depend_on_workers_or_resuming() {
    let make = |workers| {
        let noisy = numbers(50).map_random(|item, random| Ok((item, random.word())));
        DataLoader::builder(noisy)
            .batch_size(3)
            .shuffle(9)
            .num_workers(workers)
            .collate(Ok)
            .build()
            .unwrap()
    };
    let all = |batches: drivetrain_data::Batches<Vec<(i64, u32)>>| {
        batches.collect::<Result<Vec<_>>>().unwrap().concat()
    };
    let plain = make(0);
    let (first, second) = (all(plain.iter()), all(plain.iter()));
    assert_ne!(first, second);
    let threaded = make(4);
    assert_eq!(all(threaded.iter()), first);
    assert_eq!(all(threaded.iter()), second);
    let resumed = make(2);
    assert_eq!(all(resumed.iter_from(1, 5)), second[15..]);
    resumed.set_epoch(1);
    assert_eq!(all(resumed.iter()), second);
}

#[test]
fn an_index_drawn_twice_gets_new_random_numbers() {
    let noisy = numbers(1).map_random(|_, random| Ok(random.word()));
    let loader = DataLoader::builder(noisy)
        .sampler(RandomSampler::with_replacement(1, 4))
        .batch_size(4)
        .collate(Ok)
        .build()
        .unwrap();
    let mut words = loader.iter().next().unwrap().unwrap();
    words.sort();
    words.dedup();
    assert_eq!(words.len(), 4);
}

#[test]
fn failures_come_after_the_batches_before_them_and_name_the_item() {
    for workers in [0, 1, 4] {
        for panics in [false, true] {
            let fails = Made(20, move |index| match index {
                13 if panics => panic!("the {index}th picture is torn"),
                13 => Err(Error::value("Made", "the 13th picture is torn")),
                _ => Ok(index as i64),
            });
            let loader = DataLoader::builder(fails)
                .batch_size(4)
                .num_workers(workers)
                .collate(Ok)
                .build()
                .unwrap();
            let mut batches = loader.iter();
            for first in [0, 4, 8] {
                assert_eq!(batches.next().unwrap().unwrap()[0], first);
            }
            let message = batches.next().unwrap().unwrap_err().to_string();
            for part in ["item 13", "batch 3", "epoch 0", "the 13th picture is torn"] {
                assert!(message.contains(part), "{message}");
            }
            assert!(batches.next().is_none());
        }
    }
}

#[test]
fn a_failing_collation_names_its_items() {
    for workers in [0, 2] {
        for panics in [false, true] {
            let loader = DataLoader::builder(numbers(6))
                .batch_size(2)
                .num_workers(workers)
                .collate(move |items: Vec<i64>| match items[0] {
                    2 if panics => panic!("cannot stack"),
                    2 => Err(Error::shape("stack", "cannot stack")),
                    _ => Ok(items),
                })
                .build()
                .unwrap();
            let results: Vec<_> = loader.iter().collect();
            assert_eq!(results.len(), 2);
            let message = results[1].as_ref().unwrap_err().to_string();
            assert!(message.contains("collate of items [2, 3]"), "{message}");
            assert!(message.contains("cannot stack"), "{message}");
        }
    }
}

#[test]
fn dropping_early_stops_the_workers_without_waiting() {
    within(20, || {
        let made = Arc::new(AtomicUsize::new(0));
        let counter = made.clone();
        let slow = Made(10_000, move |index| {
            counter.fetch_add(1, Ordering::SeqCst);
            if index >= 8 {
                std::thread::sleep(Duration::from_millis(300));
            }
            Ok(index as i64)
        });
        let loader = DataLoader::builder(slow)
            .batch_size(8)
            .num_workers(3)
            .collate(Ok)
            .build()
            .unwrap();
        let mut batches = loader.iter();
        batches.next().unwrap().unwrap();
        let start = Instant::now();
        drop(batches);
        drop(loader);
        assert!(start.elapsed() < Duration::from_millis(250));
        std::thread::sleep(Duration::from_millis(400));
        let stopped_at = made.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(400));
        assert_eq!(made.load(Ordering::SeqCst), stopped_at);
    });
}

#[test]
fn waiting_batches_are_bounded() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let items = Made(1000, move |index| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(index as i64)
    });
    let loader = DataLoader::builder(items)
        .num_workers(2)
        .prefetch_factor(3)
        .collate(Ok)
        .build()
        .unwrap();
    let mut batches = loader.iter();
    batches.next().unwrap().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(made.load(Ordering::SeqCst) <= 1 + 6);
    assert_eq!(batches.count(), 999);
}

#[test]
fn a_batch_past_two_gibibytes_arrives() {
    // Untouched pages of zeros cost no memory.
    const BYTES: usize = 2_211_840_000;
    let loader = DataLoader::builder(numbers(1800))
        .batch_size(1800)
        .num_workers(1)
        .prefetch_factor(1)
        .collate(|items: Vec<i64>| {
            let mut batch = vec![0u8; BYTES];
            batch[0] = items[1] as u8;
            batch[BYTES - 1] = items.len().to_le_bytes()[0];
            Ok(batch)
        })
        .build()
        .unwrap();
    let batch = loader.iter().next().unwrap().unwrap();
    assert_eq!((batch.len(), batch[0], batch[BYTES - 1]), (BYTES, 1, 8));
}

#[test]
fn items_may_iterate_another_loader() {
    within(60, || {
        let nested = Made(40, |index| {
            let inner = DataLoader::builder(numbers(index as i64))
                .batch_size(3)
                .num_workers(2)
                .collate(Ok)
                .build()?;
            let mut sum = 0;
            for batch in &inner {
                sum += batch?.iter().sum::<i64>();
            }
            Ok(sum)
        });
        let loader = DataLoader::builder(nested)
            .batch_size(4)
            .num_workers(8)
            .collate(Ok)
            .build()
            .unwrap();
        let sums = loader.iter().collect::<Result<Vec<_>>>().unwrap().concat();
        assert!(sums.into_iter().eq((0..40).map(|n| n * (n - 1) / 2)));
    });
}

struct Count(i64);

impl IterableDataset for Count {
    type Item = i64;

    fn iter(&self, epoch: u64) -> Result<Items<i64>> {
        let n = self.0;
        let fails = epoch == 1;
        Ok(Box::new((0..n).map(move |i| match i {
            5 if fails => Err(Error::value("Count", "broken pipe")),
            7 if epoch == 2 => panic!("no more"),
            _ => Ok(i),
        })))
    }
}

#[test]
fn an_iterable_source_is_read_once_whatever_the_workers() {
    for workers in [0, 1, 4] {
        for drop_last in [false, true] {
            let loader = StreamLoader::builder(Count(11))
                .batch_size(2)
                .drop_last(drop_last)
                .num_workers(workers)
                .collate(Ok)
                .build()
                .unwrap();
            let batches: Vec<Vec<i64>> = loader.iter().collect::<Result<_>>().unwrap();
            assert_eq!(batches.len(), if drop_last { 5 } else { 6 });
            assert_eq!(batches.concat(), list(if drop_last { 10 } else { 11 }));
            for (item, words) in [(5, "broken pipe"), (7, "no more")] {
                let results: Vec<_> = loader.iter().collect();
                assert_eq!(results.len(), item / 2 + 1);
                let message = results[item / 2].as_ref().unwrap_err().to_string();
                assert!(message.contains(&format!("item {item}")), "{message}");
                assert!(message.contains(words), "{message}");
            }
        }
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let builder = || DataLoader::builder(numbers(3)).collate(Ok);
    assert!(builder().batch_size(0).build().is_err());
    assert!(builder().prefetch_factor(0).build().is_err());
    assert!(builder().num_workers(1_000_000).build().is_err());
    let both = builder().shuffle(1).sampler(SequentialSampler).build();
    assert!(both.err().unwrap().to_string().contains("shuffle"));
    let beyond = Subset::new(numbers(3), vec![0, 3]).unwrap_err();
    assert!(beyond.to_string().contains("index 3"), "{beyond}");
}

#[test]
fn a_sampler_that_does_not_fit_is_an_error_of_the_epoch() {
    let sampler = WeightedRandomSampler::new(vec![1.0; 4], 4, true, 0).unwrap();
    let loader = DataLoader::builder(numbers(3))
        .sampler(sampler)
        .num_workers(2)
        .collate(Ok)
        .build()
        .unwrap();
    let results: Vec<_> = loader.iter().collect();
    assert_eq!(results.len(), 1);
    let message = results[0].as_ref().unwrap_err().to_string();
    assert!(message.contains("4 weights for 3 items"), "{message}");
}

#[test]
fn joined_and_split_sets_hold_every_item_once() {
    let joined = ConcatDataset::new(vec![numbers(3), numbers(0), numbers(2)]).unwrap();
    let items: Vec<i64> = (0..joined.len()).map(|i| joined.get(i).unwrap()).collect();
    assert_eq!(items, [0, 1, 2, 0, 1]);
    assert!(joined.get(5).is_err());

    let parts = random_split_fractions(numbers(11), &[0.5, 0.5], 3).unwrap();
    assert_eq!((parts[0].len(), parts[1].len()), (6, 5));
    let mut all: Vec<usize> = parts.iter().flat_map(|p| p.indices().to_vec()).collect();
    assert!(!all.is_sorted());
    all.sort();
    assert!(all.into_iter().eq(0..11));
    let again = random_split_fractions(numbers(11), &[0.5, 0.5], 3).unwrap();
    assert_eq!(parts[0].indices(), again[0].indices());
    assert!(random_split(numbers(11), &[5, 5], 3).is_err());
    assert!(random_split_fractions(numbers(11), &[0.5, 0.4], 3).is_err());

    let boxed: Vec<Box<dyn Dataset<Item = i64>>> = vec![
        Box::new(numbers(2)),
        Box::new(numbers(2).map(|x| Ok(x * 10))),
    ];
    let loader = DataLoader::builder(ConcatDataset::new(boxed).unwrap())
        .batch_size(4)
        .collate(Ok)
        .build()
        .unwrap();
    assert_eq!(loader.iter().next().unwrap().unwrap(), [0, 1, 0, 10]);
}
