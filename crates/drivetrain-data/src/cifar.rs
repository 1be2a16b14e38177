//! CIFAR-10 and CIFAR-100 in their official binary layout.
//!
//! A file is a sequence of records: the label bytes (1 for CIFAR-10; coarse and fine for CIFAR-100), then
//! 1,024 bytes of red, 1,024 of green, 1,024 of blue, each 32 rows of 32. <https://www.cs.toronto.edu/~kriz/cifar.html>

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use drivetrain_core::{Error, Result};

use crate::dataset::{Dataset, check_index};
use crate::image::Image;
use crate::mnist::Split;

const SIDE: usize = 32;
const PIXELS: usize = 3 * SIDE * SIDE;

/// Ten classes of colour pictures: items are an image of bytes [3, 32, 32] and a label 0 to 9.
///
/// ```no_run
/// use drivetrain_data::{Cifar10, Compose, DataLoader, Dataset, Normalize, Split, ToTensor};
/// let transform = Compose::new()
///     .then(ToTensor)
///     .then(Normalize::new(&[0.5, 0.5, 0.5], &[0.5, 0.5, 0.5])?);
/// let train = Cifar10::open("data", Split::Train)?.transform(transform);
/// let loader = DataLoader::builder(train).batch_size(4).shuffle(0).num_workers(2).build()?;
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Cifar10(Records);

/// A hundred classes in twenty groups: items are an image of bytes [3, 32, 32] and a fine label 0 to 99.
#[derive(Clone)]
pub struct Cifar100 {
    records: Records,
    coarse: bool,
}

impl Cifar10 {
    /// Names of the classes, by label.
    pub const CLASSES: [&'static str; 10] = [
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ];

    /// Reads `data_batch_1.bin` to `data_batch_5.bin`, or `test_batch.bin`, in `directory` or in its
    /// `cifar-10-batches-bin`.
    pub fn open(directory: impl AsRef<Path>, split: Split) -> Result<Self> {
        let names: &[&str] = match split {
            Split::Train => &[
                "data_batch_1.bin",
                "data_batch_2.bin",
                "data_batch_3.bin",
                "data_batch_4.bin",
                "data_batch_5.bin",
            ],
            Split::Test => &["test_batch.bin"],
        };
        let directory = home(directory.as_ref(), "cifar-10-batches-bin", names[0]);
        let paths: Vec<_> = names.iter().map(|name| directory.join(name)).collect();
        Cifar10::from_files(&paths)
    }

    /// Reads the records of these files, one file after the other.
    ///
    /// A file whose size is not a multiple of 3073, or a label past 9, gives an error with the place.
    pub fn from_files<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        read_records("Cifar10", paths, &[("label", 10)]).map(Cifar10)
    }
}

impl Cifar100 {
    /// Reads `train.bin` or `test.bin` in `directory` or in its `cifar-100-binary`.
    pub fn open(directory: impl AsRef<Path>, split: Split) -> Result<Self> {
        let name = match split {
            Split::Train => "train.bin",
            Split::Test => "test.bin",
        };
        let directory = home(directory.as_ref(), "cifar-100-binary", name);
        Cifar100::from_files(&[directory.join(name)])
    }

    /// Reads the records of these files, one file after the other.
    ///
    /// A file whose size is not a multiple of 3074, or a label out of range, gives an error with the place.
    pub fn from_files<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let labels = [("coarse label", 20), ("fine label", 100)];
        Ok(Cifar100 {
            records: read_records("Cifar100", paths, &labels)?,
            coarse: false,
        })
    }

    /// The same pictures with the 20 coarse labels.
    #[must_use]
    pub fn with_coarse_labels(mut self) -> Self {
        self.coarse = true;
        self
    }
}

impl Dataset for Cifar10 {
    type Item = (Image, i64);

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<(Image, i64)> {
        self.0.get("Cifar10::get", index, 0)
    }
}

impl Dataset for Cifar100 {
    type Item = (Image, i64);

    fn len(&self) -> usize {
        self.records.len()
    }

    fn get(&self, index: usize) -> Result<(Image, i64)> {
        let label = if self.coarse { 0 } else { 1 };
        self.records.get("Cifar100::get", index, label)
    }
}

/// Whole records in one block.
#[derive(Clone)]
struct Records {
    bytes: Vec<u8>,
    /// Label bytes before the pixels.
    labels: usize,
}

impl Records {
    fn len(&self) -> usize {
        self.bytes.len() / (self.labels + PIXELS)
    }

    fn get(&self, operation: &'static str, index: usize, label: usize) -> Result<(Image, i64)> {
        check_index(operation, index, self.len())?;
        let size = self.labels + PIXELS;
        let record = &self.bytes[index * size..(index + 1) * size];
        let image = Image::from_u8(3, SIDE, SIDE, record[self.labels..].to_vec())?;
        Ok((image, i64::from(record[label])))
    }
}

/// The subdirectory that the official archive makes, if the file is there and not in `directory` itself.
fn home(directory: &Path, inner: &str, name: &str) -> PathBuf {
    let inside = directory.join(inner);
    match !directory.join(name).exists() && inside.join(name).exists() {
        true => inside,
        false => directory.to_path_buf(),
    }
}

/// Reads files of records whose label bytes have these names and numbers of classes.
fn read_records<P: AsRef<Path>>(
    operation: &'static str,
    paths: &[P],
    labels: &[(&str, u8)],
) -> Result<Records> {
    let size = labels.len() + PIXELS;
    let mut bytes = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let file_error = |cause| {
            Error::io(operation, path.display(), cause)
                .help("`download` (feature `download`) fetches the files")
        };
        let file = File::open(path).map_err(file_error)?;
        let length = file.metadata().map_err(file_error)?.len();
        check_length(operation, path, length, size)?;
        let start = bytes.len();
        // One byte more than the size said, to notice a file that grows.
        let read = file
            .take(length + 1)
            .read_to_end(&mut bytes)
            .map_err(file_error)?;
        check_length(operation, path, read as u64, size)?;
        for (record, content) in bytes[start..].chunks_exact(size).enumerate() {
            for (at, (&label, (name, classes))) in content.iter().zip(labels).enumerate() {
                if label >= *classes {
                    return Err(Error::format(
                        operation,
                        format!(
                            "{}: {name} of record {record} (offset {}) is {label}, must be below {classes}",
                            path.display(),
                            record * size + at
                        ),
                    ));
                }
            }
        }
    }
    Ok(Records {
        bytes,
        labels: labels.len(),
    })
}

fn check_length(operation: &'static str, path: &Path, length: u64, size: usize) -> Result<()> {
    if length > 0 && length.is_multiple_of(size as u64) {
        return Ok(());
    }
    let whole = length / size as u64;
    let message = format!(
        "{}: the size of {length} bytes is not a multiple of {size}; after {whole} records, at offset {}, \
         expected {size} bytes, found {}",
        path.display(),
        whole * size as u64,
        length % size as u64
    );
    let error = Error::format(operation, message);
    let other = if size == 1 + PIXELS {
        size + 1
    } else {
        size - 1
    };
    Err(match length > 0 && length.is_multiple_of(other as u64) {
        true if other > size => error.help("it is a multiple of 3074: a file of CIFAR-100?"),
        true => error.help("it is a multiple of 3073: a file of CIFAR-10?"),
        false => error,
    })
}
