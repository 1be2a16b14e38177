//! A folder of images with one subfolder for each class.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use drivetrain_core::{Error, Result};
use image::{ImageReader, Limits};

use crate::dataset::{Dataset, check_index};
use crate::image::Image;

/// No picture may need more memory than this to decode.
const MAX_DECODED_BYTES: u64 = 512 << 20;

/// PNG and JPEG files under `root/CLASS/…`: items are an RGB image of bytes [3, height, width] and the number of
/// the class, the classes being the subfolders in the order of their names.
///
/// Names that begin with a dot are passed over. Files are decoded when they are asked for, by the worker that asks. Images of one batch must have one size:
/// put a [`Resize`](crate::Resize) or a crop into the transform.
///
/// ```no_run
/// use drivetrain_data::{Dataset, ImageFolder, Resize};
/// let pets = ImageFolder::open("pets")?; // pets/cat/1.jpg, pets/dog/7.png, …
/// assert_eq!(pets.classes(), ["cat", "dog"]);
/// let pets = pets.transform(Resize::new(64, 64));
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ImageFolder {
    classes: Vec<String>,
    files: Vec<(PathBuf, usize)>,
}

impl ImageFolder {
    /// Lists the classes and files; an error if there are none, or a class has none.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        let mut classes = Vec::new();
        let mut files = Vec::new();
        for path in sorted(root)? {
            if !path.is_dir() {
                continue;
            }
            let before = files.len();
            collect(&path, classes.len(), &mut Vec::new(), &mut files)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if files.len() == before {
                return Err(Error::format(
                    "ImageFolder",
                    format!(
                        "{}: no .png, .jpg or .jpeg file in this class",
                        path.display()
                    ),
                ));
            }
            classes.push(name.into_owned());
        }
        if classes.is_empty() {
            return Err(
                Error::format("ImageFolder", format!("{}: no subfolder", root.display()))
                    .help("the layout is ROOT/CLASS/FILE.png"),
            );
        }
        Ok(ImageFolder { classes, files })
    }

    /// Names of the classes, by label.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The file of item `index`, if there is one.
    pub fn path(&self, index: usize) -> Option<&Path> {
        self.files.get(index).map(|(path, _)| path.as_path())
    }
}

impl Dataset for ImageFolder {
    type Item = (Image, i64);

    fn len(&self) -> usize {
        self.files.len()
    }

    fn get(&self, index: usize) -> Result<(Image, i64)> {
        check_index("ImageFolder::get", index, self.files.len())?;
        let (path, class) = &self.files[index];
        Ok((read_image(path)?, *class as i64))
    }
}

/// Reads a PNG or JPEG file (told by its content) as an RGB image [3, height, width] of bytes.
pub fn read_image(path: impl AsRef<Path>) -> Result<Image> {
    let path = path.as_ref();
    let file_error = |cause| Error::io("read image", path.display(), cause);
    let file = fs::File::open(path).map_err(file_error)?;
    let mut reader = ImageReader::new(BufReader::new(file))
        .with_guessed_format()
        .map_err(file_error)?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    reader.limits(limits);
    let decoded = reader.decode().map_err(|cause| {
        Error::format("read image", format!("{}: {cause}", path.display())).caused_by(cause)
    })?;
    let decoded = decoded.into_rgb8();
    let (width, height) = (decoded.width() as usize, decoded.height() as usize);
    Image::from_interleaved(3, height, width, decoded.as_raw())
}

fn sorted(directory: &Path) -> Result<Vec<PathBuf>> {
    let error = |cause| Error::io("ImageFolder", directory.display(), cause);
    let mut paths = fs::read_dir(directory)
        .map_err(error)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(error)?;
    // `.ipynb_checkpoints` is no class, `._1.png` no picture.
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default();
        !name.as_encoded_bytes().starts_with(b".")
    });
    paths.sort();
    Ok(paths)
}

/// Adds the pictures below `directory`; `above` holds the real paths of the folders on the way down.
fn collect(
    directory: &Path,
    class: usize,
    above: &mut Vec<PathBuf>,
    files: &mut Vec<(PathBuf, usize)>,
) -> Result<()> {
    let real = fs::canonicalize(directory)
        .map_err(|cause| Error::io("ImageFolder", directory.display(), cause))?;
    if above.contains(&real) {
        return Err(Error::format(
            "ImageFolder",
            format!("{}: a link back to {}", directory.display(), real.display()),
        ));
    }
    above.push(real);
    for path in sorted(directory)? {
        if path.is_dir() {
            collect(&path, class, above, files)?;
            continue;
        }
        let extension = path.extension().map(|e| e.to_ascii_lowercase());
        let known = extension.is_some_and(|e| e == "png" || e == "jpg" || e == "jpeg");
        if known {
            files.push((path, class));
        }
    }
    above.pop();
    Ok(())
}
