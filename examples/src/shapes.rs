//! Ten classes of drawn shapes in the file layout of CIFAR-10, for machines without the real files.
//!
//! Every picture has its own colours, place, size and noise; only the shape tells its class.

use drivetrain::data::Generator;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Names of the classes, by label.
pub const CLASSES: [&str; 10] = [
    "disc", "ring", "square", "frame", "triangle", "plus", "cross", "rows", "columns", "checks",
];

const SIDE: usize = 32;
const RECORD: usize = 1 + 3 * SIDE * SIDE;

/// A folder with the files `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`, removed when dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// Draws `train` pictures (a multiple of 5 is best: they are dealt to five files) and `test` more into a new
    /// folder of the system's temporary folder. The same seed gives the same bytes.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn draw(seed: u64, train: usize, test: usize) -> io::Result<Folder> {
        let unique = Generator::new(seed, std::process::id().into()).word();
        let name = format!("drivetrain-shapes-{}-{unique:08x}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0)?;
        for file in 0..5 {
            let count = train / 5 + usize::from(file < train % 5);
            let path = folder.0.join(format!("data_batch_{}.bin", file + 1));
            fs::write(path, records(seed, file as u64, count))?;
        }
        fs::write(folder.0.join("test_batch.bin"), records(seed, 5, test))?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A temporary folder that stays behind harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The bytes of one file: for each picture its label, then red, green and blue, each 32 rows of 32.
fn records(seed: u64, file: u64, count: usize) -> Vec<u8> {
    let mut random = Generator::new(seed, 0x5AFE_0000 + file);
    let mut bytes = Vec::with_capacity(count * RECORD);
    for index in 0..count {
        let class = index % CLASSES.len();
        bytes.push(class as u8);
        picture(class, &mut random, &mut bytes);
    }
    bytes
}

fn picture(class: usize, random: &mut Generator, bytes: &mut Vec<u8>) {
    let mut between = |low: f64, high: f64| low + (high - low) * random.uniform();
    let (x, y, radius) = (between(13.0, 19.0), between(13.0, 19.0), between(8.0, 12.0));
    // Paper and ink differ by at least a third of the range in every colour.
    let colours = [(); 3].map(|()| {
        let (paper, step) = (between(0.0, 160.0), between(85.0, 95.0));
        (paper, paper + step)
    });
    let swapped = between(0.0, 1.0) < 0.5;
    for (paper, ink) in colours {
        for row in 0..SIDE {
            for column in 0..SIDE {
                let place = ((column as f64 - x) / radius, (row as f64 - y) / radius);
                let level = if covers(class, place) != swapped {
                    ink
                } else {
                    paper
                };
                let noise = between(-12.0, 12.0);
                bytes.push((level + noise).clamp(0.0, 255.0) as u8);
            }
        }
    }
}

/// Whether a shape of radius 1 around the origin covers this point.
fn covers(class: usize, (x, y): (f64, f64)) -> bool {
    let (across, down) = (x.abs(), y.abs());
    let square = across.max(down);
    let stripe = |place: f64| ((place + 1.0) * 2.5).rem_euclid(2.0) < 1.0;
    match class {
        0 => x.hypot(y) < 1.0,
        1 => (0.6..1.0).contains(&x.hypot(y)),
        2 => square < 1.0,
        3 => (0.65..1.0).contains(&square),
        4 => down < 1.0 && across < (y + 1.0) / 2.0,
        5 => square < 1.0 && across.min(down) < 0.28,
        6 => square < 1.0 && (across - down).abs() < 0.35,
        7 => square < 1.0 && stripe(y),
        8 => square < 1.0 && stripe(x),
        _ => square < 1.0 && stripe(x) != stripe(y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drivetrain::prelude::{Cifar10, Dataset, Split};

    #[test]
    fn the_reader_of_the_official_files_takes_them() {
        let folder = Folder::draw(3, 52, 20).unwrap();
        let path = folder.path().to_path_buf();
        let train = Cifar10::open(&path, Split::Train).unwrap();
        assert_eq!(train.len(), 52);
        let test = Cifar10::open(&path, Split::Test).unwrap();
        let labels: Vec<i64> = (0..20).map(|i| test.get(i).unwrap().1).collect();
        assert_eq!(labels[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_seed_gives_its_own_bytes_every_time() {
        assert_eq!(records(1, 0, 12), records(1, 0, 12));
        assert_ne!(records(1, 0, 12), records(2, 0, 12));
        assert_ne!(records(1, 0, 12), records(1, 5, 12));
    }

    #[test]
    fn classes_look_different() {
        let drawn = |class| {
            let points = (0..400).map(|i| {
                (
                    f64::from(i % 20) / 10.0 - 0.95,
                    f64::from(i / 20) / 10.0 - 0.95,
                )
            });
            points.map(|place| covers(class, place)).collect::<Vec<_>>()
        };
        for (a, first) in CLASSES.iter().enumerate() {
            for (b, second) in CLASSES.iter().enumerate().take(a) {
                let (one, other) = (drawn(a), drawn(b));
                let differ = one.iter().zip(&other).filter(|(x, y)| x != y).count();
                assert!(differ >= 60, "{first} and {second}: {differ}");
            }
        }
    }
}
