//! Datasets, loaders, samplers and transforms of Drivetrain.
//!
//! A [`Dataset`] gives items by index; a [`DataLoader`] makes batches of them, epoch after epoch, with
//! [`Sampler`]s for the order, worker threads, and a [`Collate`] that turns items into a batch. The data sets
//! ([`Mnist`], [`Cifar10`], [`Cifar100`], [`ImageFolder`], [`CsvReader`], [`TensorDataset`]) give light host
//! items; [`Transform`]s change images. Sources without indices are [`IterableDataset`]s.
//!
//! ```
//! # use drivetrain_cpu as _;
//! use drivetrain_data::{DataLoader, Dataset, Image, Normalize, ToTensor, VecDataset};
//!
//! // In place of `Mnist::open("data/mnist", Split::Train)?`: ten grey pictures of 2 × 2 with their labels.
//! let pictures = (0..10)
//!     .map(|label| Ok((Image::from_u8(1, 2, 2, vec![25 * label; 4])?, i64::from(label))))
//!     .collect::<Result<Vec<_>, drivetrain_core::Error>>()?;
//! let train = VecDataset::new(pictures)
//!     .transform(ToTensor)
//!     .transform(Normalize::new(&[0.5], &[0.5])?);
//! let loader = DataLoader::builder(train).batch_size(4).shuffle(42).num_workers(2).build()?;
//! for epoch in 1..=3 {
//!     for batch in &loader {
//!         let (images, labels) = batch?;
//!         // images.to(&device)?, labels.to(&device)?, …
//!         assert_eq!(images.dims(), [labels.len(), 1, 2, 2]);
//!     }
//! }
//! # Ok::<(), drivetrain_core::Error>(())
//! ```

mod cifar;
mod collate;
mod csv_file;
mod dataset;
#[cfg(feature = "download")]
mod download;
mod idx;
mod image;
mod image_folder;
mod loader;
mod mnist;
mod prefetch;
mod random;
mod resize;
mod sampler;
mod stream;
mod tensor_dataset;
mod transform;

pub use cifar::{Cifar10, Cifar100};
pub use collate::{Collate, DefaultCollate, Stack};
pub use csv_file::{Column, CsvDataset, CsvReader};
pub use dataset::{
    ConcatDataset, Dataset, Map, MapRandom, Subset, Transformed, VecDataset, random_split,
    random_split_fractions,
};
#[cfg(feature = "download")]
pub use download::RemoteFile;
pub use drivetrain_core::random::Generator;
pub use image::{Image, Pixels};
pub use image_folder::{ImageFolder, read_image};
pub use loader::{DataLoader, DataLoaderBuilder};
pub use mnist::{Mnist, Split};
pub use prefetch::Batches;
pub use resize::Resize;
pub use sampler::{
    BatchSampler, FixedBatches, RandomSampler, Sampler, SequentialSampler, WeightedRandomSampler,
};
pub use stream::{Items, IterableDataset, StreamLoader, StreamLoaderBuilder};
pub use tensor_dataset::TensorDataset;
pub use transform::{
    CenterCrop, Compose, Normalize, RandomCrop, RandomHorizontalFlip, ToTensor, Transform,
};
