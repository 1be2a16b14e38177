//! The file formats: right content, and an error with file, offset and expectation for what is broken.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use drivetrain_data::{
    Cifar10, Cifar100, CsvReader, Dataset, ImageFolder, Mnist, Pixels, Split, read_image,
};

/// A folder that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "drivetrain-data-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn idx(sizes: &[u32], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, sizes.len() as u8];
    for size in sizes {
        bytes.extend(size.to_be_bytes());
    }
    bytes.extend(data);
    bytes
}

fn bytes_of(pixels: &Pixels) -> &[u8] {
    match pixels {
        Pixels::U8(bytes) => bytes,
        Pixels::F32(_) => panic!("floats"),
    }
}

#[track_caller]
fn assert_says<T>(result: drivetrain_core::Result<T>, parts: &[&str]) {
    let message = result.err().expect("an error").to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[test]
fn mnist_reads_plain_and_packed_files_alike() {
    let folder = Folder::new();
    let images = idx(
        &[2, 2, 3],
        &[0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255],
    );
    folder.write("train-images-idx3-ubyte", &images);
    folder.write("train-labels-idx1-ubyte.gz", gzip(&idx(&[2], &[7, 9])));
    let packed = folder.write("packed.gz", gzip(&images));

    let train = Mnist::open(&folder.0, Split::Train).unwrap();
    assert_eq!((train.len(), train.image_size()), (2, (2, 3)));
    let (image, label) = train.get(1).unwrap();
    assert_eq!((image.shape(), label), ([1, 2, 3], 9));
    assert_eq!(bytes_of(image.pixels()), [250, 251, 252, 253, 254, 255]);
    assert_says(train.get(2), &["index 2", "2 items"]);

    let labels = folder.0.join("train-labels-idx1-ubyte.gz");
    let again = Mnist::from_files(packed, labels).unwrap();
    assert_eq!(again.images(), train.images());
    assert_says(
        Mnist::open(&folder.0, Split::Test),
        &["t10k-images-idx3-ubyte"],
    );
}

#[test]
fn broken_idx_files_are_errors_with_the_place() {
    let folder = Folder::new();
    let labels = folder.write("labels", idx(&[2], &[0, 1]));
    let whole = idx(&[2, 2, 2], &[0; 8]);
    let case = |bytes: &[u8], parts: &[&str]| {
        for (name, bytes) in [("images", bytes.to_vec()), ("images.gz", gzip(bytes))] {
            let path = folder.write(name, bytes);
            assert_says(
                Mnist::from_files(&path, &labels),
                &[&[name], parts].concat(),
            );
        }
    };
    case(&[], &["offset 0", "expected 4 bytes", "found 0"]);
    case(&whole[..10], &["offset 8", "expected 4 bytes", "found 2"]);
    case(
        &whole[..whole.len() - 1],
        &["offset 16", "expected 8 bytes", "found 7"],
    );
    case(
        &idx(&[u32::MAX; 3], &[]),
        &["offset 4", "4294967295, 4294967295, 4294967295"],
    );
    case(
        &idx(&[1 << 20, 1 << 10, 1 << 10], &[0; 5]),
        &["offset 16", "expected 1099511627776 bytes", "found 5"],
    );
    case(
        &[&whole[..], &[1]].concat(),
        &["offset 24", "expected the end after 8 bytes", "found more"],
    );
    case(
        &idx(&[2], &[0, 1]),
        &["0x00000803", "0x00000801", "swapped"],
    );
    case(b"<!DOCTYPE html>", &["offset 0", "magic number"]);
    case(&idx(&[3, 1, 1], &[0; 3]), &["3 images", "2 labels"]);

    let images = folder.write("images", &whole);
    let labels = folder.write("labels", idx(&[2], &[3, 10]));
    assert_says(
        Mnist::from_files(images, labels),
        &["label 1", "offset 9", "is 10", "0 to 9"],
    );
}

#[test]
fn broken_or_endless_gzip_is_an_error() {
    let folder = Folder::new();
    let labels = folder.write("labels", idx(&[2], &[0, 1]));
    let packed = gzip(&idx(&[2, 2, 2], &[3; 8]));
    let cut = folder.write("cut.gz", &packed[..packed.len() - 9]);
    assert_says(
        Mnist::from_files(cut, &labels),
        &["cut.gz", "offset", "gzip stream is broken"],
    );
    let mut wrong = packed.clone();
    let crc = wrong.len() - 8;
    wrong[crc] ^= 1;
    let wrong = folder.write("wrong.gz", wrong);
    assert_says(
        Mnist::from_files(wrong, &labels),
        &["wrong.gz", "gzip stream is broken"],
    );
    // Megabytes behind 8 announced bytes, and a tear far inside: nothing past the ninth byte is unpacked, so the
    // tear is never met.
    let mut bomb = idx(&[2, 2, 2], &[]);
    bomb.resize(8 << 20, 0);
    let bomb = gzip(&bomb);
    let bomb = folder.write("bomb.gz", &bomb[..bomb.len() / 2]);
    assert_says(
        Mnist::from_files(bomb, &labels),
        &["offset 24", "found more"],
    );
}

#[test]
fn cifar10_keeps_planes_rows_and_columns_apart() {
    let folder = Folder::new();
    let mut colours = vec![3u8];
    for value in [255, 128, 0] {
        colours.extend([value; 1024]);
    }
    let mut dots = vec![0u8; 3073];
    dots[1 + 32 + 2] = 255;
    dots[1 + 2 * 1024 + 31 * 32] = 51;
    let path = folder.write("batch.bin", [colours, dots].concat());
    let set = Cifar10::from_files(&[path]).unwrap();
    assert_eq!(set.len(), 2);

    let (image, label) = set.get(0).unwrap();
    assert_eq!((image.shape(), label), ([3, 32, 32], 3));
    let Pixels::F32(floats) = image.to_f32().into_pixels() else {
        panic!("bytes");
    };
    assert!(floats[..1024].iter().all(|&x| x == 1.0));
    assert!(floats[1024..2048].iter().all(|&x| x == 0.501_960_8));
    assert!(floats[2048..].iter().all(|&x| x == 0.0));

    let (image, _) = set.get(1).unwrap();
    let Pixels::F32(floats) = image.to_f32().into_pixels() else {
        panic!("bytes");
    };
    let lit: Vec<_> = (0..3072).filter(|&i| floats[i] != 0.0).collect();
    assert_eq!(lit, [32 + 2, 2 * 1024 + 31 * 32]);
    assert_eq!((floats[lit[0]], floats[lit[1]]), (1.0, 0.2));
}

#[test]
fn cifar_files_of_a_wrong_size_or_label_are_errors() {
    let folder = Folder::new();
    let case = |bytes: usize, parts: &[&str]| {
        let path = folder.write("batch.bin", vec![0; bytes]);
        assert_says(Cifar10::from_files(&[path]), parts);
    };
    case(
        3074 * 3,
        &[
            "9222 bytes",
            "not a multiple of 3073",
            "CIFAR-100",
            "batch.bin",
        ],
    );
    case(
        3073 * 2 + 100,
        &[
            "6246 bytes",
            "not a multiple of 3073",
            "offset 6146",
            "found 100",
        ],
    );
    case(0, &["0 bytes"]);

    let mut bytes = vec![0; 3073 * 3];
    bytes[3073 * 2] = 10;
    let path = folder.write("batch.bin", bytes);
    assert_says(
        Cifar10::from_files(&[path]),
        &["record 2", "offset 6146", "is 10", "below 10"],
    );
    let full = folder.write("test_batch.bin", vec![0; 30_730_000]);
    assert_eq!(Cifar10::open(&folder.0, Split::Test).unwrap().len(), 10_000);
    fs::remove_file(full).unwrap();
    assert_says(Cifar10::open(&folder.0, Split::Test), &["test_batch.bin"]);
}

#[test]
fn cifar100_has_fine_and_coarse_labels() {
    let folder = Folder::new();
    let mut bytes = vec![7u8; 2 * 3074];
    bytes[3074] = 19;
    bytes[3075] = 99;
    folder.write("cifar-100-binary/train.bin", &bytes);
    let set = Cifar100::open(&folder.0, Split::Train).unwrap();
    assert_eq!((set.len(), set.get(1).unwrap().1), (2, 99));
    assert_eq!(set.with_coarse_labels().get(1).unwrap().1, 19);
    bytes[3074] = 20;
    let path = folder.write("bad.bin", &bytes);
    assert_says(
        Cifar100::from_files(&[path]),
        &["coarse label of record 1", "is 20"],
    );
    let path = folder.write("ten.bin", vec![0; 3073]);
    assert_says(Cifar100::from_files(&[path]), &["CIFAR-10?"]);
}

fn save(path: &Path, width: u32, height: u32, pixel: [u8; 3]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut picture = image::RgbImage::from_pixel(width, height, image::Rgb(pixel));
    picture.put_pixel(1, 0, image::Rgb([9, 8, 7]));
    picture.save(path).unwrap();
}

#[test]
fn image_folders_have_a_class_for_each_subfolder() {
    let folder = Folder::new();
    save(&folder.0.join("dog/deep/1.PNG"), 3, 2, [10, 20, 30]);
    save(&folder.0.join("cat/2.jpeg"), 16, 16, [200, 200, 200]);
    save(&folder.0.join("cat/1.png"), 3, 2, [1, 2, 3]);
    folder.write("cat/notes.txt", "no picture");
    let set = ImageFolder::open(&folder.0).unwrap();
    assert_eq!(set.classes(), ["cat", "dog"]);
    assert_eq!(set.len(), 3);
    let (image, label) = set.get(2).unwrap();
    assert_eq!((image.shape(), label), ([3, 2, 3], 1));
    assert_eq!(bytes_of(image.pixels())[..6], [10, 9, 10, 10, 10, 10]);
    assert_eq!(bytes_of(image.pixels())[6..8], [20, 8]);
    let (image, label) = set.get(1).unwrap();
    assert_eq!((image.shape(), label), ([3, 16, 16], 0));
    assert!(bytes_of(image.pixels())[200].abs_diff(200) < 4);

    let torn = folder.write("cat/1.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0DIHDR");
    assert_says(set.get(0), &["1.png"]);
    assert_says(read_image(torn), &["1.png"]);
    folder.write(".ipynb_checkpoints/1.png", "");
    folder.write("cat/._1.png", "");
    assert_eq!(ImageFolder::open(&folder.0).unwrap().len(), 3);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&folder.0, folder.0.join("dog/loop")).unwrap();
        assert_says(ImageFolder::open(&folder.0), &["a link back to"]);
        fs::remove_file(folder.0.join("dog/loop")).unwrap();
    }
    fs::create_dir(folder.0.join("empty")).unwrap();
    assert_says(ImageFolder::open(&folder.0), &["empty", "no .png"]);
    assert_says(ImageFolder::open(folder.0.join("none")), &["none"]);
}

#[test]
fn csv_columns_become_features_and_labels() {
    let folder = Folder::new();
    let path = folder.write(
        "flowers.csv",
        "\u{FEFF}width,kind,height\n1.5,rose,2\n\n\"3\",tulip,-4e-1\n",
    );
    let reader = CsvReader::new().label("kind");
    let set = reader
        .clone()
        .class_names(["tulip", "rose"])
        .read_classes(&path)
        .unwrap();
    assert_eq!(set.columns(), ["width", "height"]);
    assert_eq!(set.get(0).unwrap(), (vec![1.5, 2.0], 1));
    assert_eq!(set.get(1).unwrap(), (vec![3.0, -0.4], 0));
    assert_says(
        reader.class_names(["tulip"]).read_classes(&path),
        &["line 2", "column 2 (kind)", "\"rose\"", "tulip"],
    );
    let values = CsvReader::new()
        .features(["height"])
        .label("width")
        .read_values(&path)
        .unwrap();
    assert_eq!(values.get(1).unwrap(), (vec![-0.4], 3.0));
    assert_says(
        CsvReader::new().label("color").read_values(&path),
        &["color", "width"],
    );

    let plain = folder.write("plain.csv", "1;2;0\n3;;1\n");
    let reader = CsvReader::new().header(false).delimiter(b';');
    assert_says(
        reader.read_classes(&plain),
        &["plain.csv", "line 2", "column 2", "an empty cell"],
    );
    let set = reader
        .fill_missing(0.5)
        .label(2)
        .read_classes(&plain)
        .unwrap();
    assert_eq!(set.get(1).unwrap(), (vec![3.0, 0.5], 1));
}

#[test]
fn broken_csv_cells_are_errors_with_line_and_column() {
    let folder = Folder::new();
    let case = |text: &[u8], parts: &[&str]| {
        let path = folder.write("table.csv", text);
        assert_says(
            CsvReader::new().read_classes(&path),
            &[&["table.csv"], parts].concat(),
        );
    };
    case(b"a,b\n1,0\nx,1\n", &["line 3", "column 1 (a)", "\"x\""]);
    case(b"a,b\n1,0\ninf,1\n", &["line 3", "finite"]);
    case(b"a,b\n1,-1\n", &["line 2", "column 2 (b)", "\"-1\""]);
    case(b"a,b\n1,0,5\n", &["line 2", "3 cells", "expected 2"]);
    case(b"a,b\n1,\xFF\n", &["line 2"]);
    case(b"", &["line 1"]);
    case(b"a;b\n1;0\n", &["a;b", "delimiter"]);
}
