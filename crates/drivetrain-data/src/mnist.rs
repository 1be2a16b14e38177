//! MNIST and its drop-in relatives (Fashion-MNIST, KMNIST): IDX files, plain or gzip.

use std::path::{Path, PathBuf};

use drivetrain_core::{Error, Result};
use drivetrain_tensor::Tensor;

use crate::collate::byte_to_f32;
use crate::dataset::{Dataset, check_index};
use crate::idx::read_idx;
use crate::image::Image;

/// Which part of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// For training.
    Train,
    /// For testing.
    Test,
}

/// Handwritten digits: items are an image of bytes [1, height, width] (28 × 28) and a label 0 to 9.
///
/// ```no_run
/// use drivetrain_data::{DataLoader, Mnist, Split};
/// let train = Mnist::open("data/mnist", Split::Train)?;
/// let loader = DataLoader::builder(train).batch_size(64).shuffle(0).build()?;
/// for batch in &loader {
///     let (images, labels) = batch?; // [64, 1, 28, 28] F32 from 0 to 1, [64] I64
/// }
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Mnist {
    height: usize,
    width: usize,
    images: Vec<u8>,
    labels: Vec<u8>,
}

impl Mnist {
    /// Number of classes.
    pub const CLASSES: usize = 10;

    /// Reads `train-images-idx3-ubyte` and `train-labels-idx1-ubyte` (or `t10k-…` for the test set) in `directory`,
    /// each with or without `.gz`.
    pub fn open(directory: impl AsRef<Path>, split: Split) -> Result<Self> {
        let directory = directory.as_ref();
        let part = match split {
            Split::Train => "train",
            Split::Test => "t10k",
        };
        Mnist::from_files(
            find(directory, &format!("{part}-images-idx3-ubyte"))?,
            find(directory, &format!("{part}-labels-idx1-ubyte"))?,
        )
    }

    /// Reads a file of images and a file of labels, each plain or gzip (told by its content, not its name).
    ///
    /// A file that is cut short, too long or not of this format gives an error with its name, the offset, and
    /// what was expected there.
    pub fn from_files(images: impl AsRef<Path>, labels: impl AsRef<Path>) -> Result<Self> {
        let (image_path, label_path) = (images.as_ref(), labels.as_ref());
        let images = read_idx(image_path, 3, "images")?;
        let labels = read_idx(label_path, 1, "labels")?;
        let (count, height, width) = (images.sizes[0], images.sizes[1], images.sizes[2]);
        if count != labels.sizes[0] {
            return Err(Error::format(
                "Mnist",
                format!(
                    "{} has {count} images, {} has {} labels",
                    image_path.display(),
                    label_path.display(),
                    labels.sizes[0]
                ),
            ));
        }
        if let Some(bad) = labels.data.iter().position(|&label| label >= 10) {
            return Err(Error::format(
                "Mnist",
                format!(
                    "{}: label {bad} (offset {} unpacked) is {}, must be 0 to 9",
                    label_path.display(),
                    bad + 8,
                    labels.data[bad]
                ),
            ));
        }
        Ok(Mnist {
            height,
            width,
            images: images.data,
            labels: labels.data,
        })
    }

    /// All images, [len, height, width], one byte a pixel.
    pub fn images(&self) -> &[u8] {
        &self.images
    }

    /// All labels, 0 to 9.
    pub fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// The whole set as tensors on the CPU: images [len, 1, height, width] of F32 from 0 to 1, labels \[len\] of I64.
    pub fn to_tensors(&self) -> Result<(Tensor, Tensor)> {
        let device = Tensor::cpu_device()?;
        let floats: Vec<f32> = self.images.iter().map(|&byte| byte_to_f32(byte)).collect();
        let labels: Vec<i64> = self.labels.iter().map(|&label| i64::from(label)).collect();
        let shape = [labels.len(), 1, self.height, self.width];
        Ok((
            Tensor::from_vec(floats, shape, &device)?,
            Tensor::from_slice(&labels, [labels.len()], &device)?,
        ))
    }

    /// (height, width) of every image: (28, 28) for MNIST.
    pub fn image_size(&self) -> (usize, usize) {
        (self.height, self.width)
    }
}

impl Dataset for Mnist {
    type Item = (Image, i64);

    fn len(&self) -> usize {
        self.labels.len()
    }

    fn get(&self, index: usize) -> Result<(Image, i64)> {
        check_index("Mnist::get", index, self.labels.len())?;
        let size = self.height * self.width;
        let pixels = self.images[index * size..(index + 1) * size].to_vec();
        let image = Image::from_u8(1, self.height, self.width, pixels)?;
        Ok((image, i64::from(self.labels[index])))
    }
}

fn find(directory: &Path, name: &str) -> Result<PathBuf> {
    let plain = directory.join(name);
    let packed = directory.join(format!("{name}.gz"));
    if plain.is_file() {
        return Ok(plain);
    }
    if packed.is_file() {
        return Ok(packed);
    }
    let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
    Err(
        Error::io("Mnist", format!("{} (or .gz)", plain.display()), missing)
            .help("Mnist::download (feature `download`) fetches the files"),
    )
}
