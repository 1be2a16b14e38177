//! Where MNIST and CIFAR are, with sizes and SHA-256 of the official files.

use std::fs;
use std::path::Path;

use drivetrain_core::{Error, Result};

use super::RemoteFile;
use super::unpack::unpack;
use crate::cifar::{Cifar10, Cifar100};
use crate::mnist::Mnist;

const MNIST_MIRRORS: [&str; 2] = [
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
];
const CIFAR_MIRRORS: [&str; 1] = ["https://www.cs.toronto.edu/~kriz/"];

/// Name, size, SHA-256.
type Known = (&'static str, u64, &'static str);

const MNIST: [Known; 4] = [
    (
        "train-images-idx3-ubyte.gz",
        9_912_422,
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    ),
    (
        "train-labels-idx1-ubyte.gz",
        28_881,
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    ),
    (
        "t10k-images-idx3-ubyte.gz",
        1_648_877,
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    (
        "t10k-labels-idx1-ubyte.gz",
        4_542,
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
];

const CIFAR10: Known = (
    "cifar-10-binary.tar.gz",
    170_052_171,
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
);
const CIFAR10_FILES: [(&str, u64); 6] = [
    ("cifar-10-batches-bin/data_batch_1.bin", 30_730_000),
    ("cifar-10-batches-bin/data_batch_2.bin", 30_730_000),
    ("cifar-10-batches-bin/data_batch_3.bin", 30_730_000),
    ("cifar-10-batches-bin/data_batch_4.bin", 30_730_000),
    ("cifar-10-batches-bin/data_batch_5.bin", 30_730_000),
    ("cifar-10-batches-bin/test_batch.bin", 30_730_000),
];

const CIFAR100: Known = (
    "cifar-100-binary.tar.gz",
    168_513_733,
    "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
);
const CIFAR100_FILES: [(&str, u64); 2] = [
    ("cifar-100-binary/train.bin", 153_700_000),
    ("cifar-100-binary/test.bin", 30_740_000),
];

fn remote((name, bytes, sha256): Known, mirrors: &[&str]) -> RemoteFile {
    RemoteFile {
        name: name.to_string(),
        mirrors: mirrors.iter().map(|mirror| mirror.to_string()).collect(),
        bytes,
        sha256: sha256.to_string(),
    }
}

impl Mnist {
    /// Fetches the four official files (11.6 MB) into `directory`, where [`Mnist::open`] reads them. Files that are
    /// there already are only checked. Needs the feature `download`; see [`RemoteFile::fetch`].
    pub fn download(directory: impl AsRef<Path>) -> Result<()> {
        Mnist::download_from(directory, &MNIST_MIRRORS)
    }

    /// [`Mnist::download`] from these addresses, asked in order; the file names are put behind them.
    pub fn download_from(directory: impl AsRef<Path>, mirrors: &[&str]) -> Result<()> {
        for known in MNIST {
            remote(known, mirrors).fetch(directory.as_ref())?;
        }
        Ok(())
    }
}

impl Cifar10 {
    /// Fetches the official binary archive (170 MB) and unpacks its records into
    /// `directory/cifar-10-batches-bin`, where [`Cifar10::open`] finds them. Does nothing if all files are there in
    /// their full size. Needs the feature `download`; see [`RemoteFile::fetch`].
    pub fn download(directory: impl AsRef<Path>) -> Result<()> {
        Cifar10::download_from(directory, &CIFAR_MIRRORS)
    }

    /// [`Cifar10::download`] from these addresses, asked in order; the archive's name is put behind them.
    pub fn download_from(directory: impl AsRef<Path>, mirrors: &[&str]) -> Result<()> {
        fetch_archive(
            directory.as_ref(),
            &remote(CIFAR10, mirrors),
            &CIFAR10_FILES,
        )
    }
}

impl Cifar100 {
    /// Fetches the official binary archive (169 MB) and unpacks its records into `directory/cifar-100-binary`, where
    /// [`Cifar100::open`] finds them. Does nothing if all files are there in their full size. Needs the feature
    /// `download`; see [`RemoteFile::fetch`].
    pub fn download(directory: impl AsRef<Path>) -> Result<()> {
        Cifar100::download_from(directory, &CIFAR_MIRRORS)
    }

    /// [`Cifar100::download`] from these addresses, asked in order; the archive's name is put behind them.
    pub fn download_from(directory: impl AsRef<Path>, mirrors: &[&str]) -> Result<()> {
        fetch_archive(
            directory.as_ref(),
            &remote(CIFAR100, mirrors),
            &CIFAR100_FILES,
        )
    }
}

/// Fetches an archive, unpacks `files` of it (with their sizes) and removes it.
fn fetch_archive(directory: &Path, archive: &RemoteFile, files: &[(&str, u64)]) -> Result<()> {
    let complete = |&(name, bytes): &(&str, u64)| {
        fs::metadata(directory.join(name)).is_ok_and(|found| found.len() == bytes)
    };
    if files.iter().all(complete) {
        return Ok(());
    }
    let path = archive.fetch(directory)?;
    unpack(&path, directory, files)?;
    fs::remove_file(&path).map_err(|cause| Error::io("download", path.display(), cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_their_length_and_files_whole_records() {
        for (_, bytes, sha256) in MNIST.into_iter().chain([CIFAR10, CIFAR100]) {
            assert!(bytes > 0);
            assert_eq!(sha256.len(), 64);
            assert!(sha256.bytes().all(|b| b"0123456789abcdef".contains(&b)));
        }
        assert!(CIFAR10_FILES.iter().all(|file| file.1 == 10_000 * 3073));
        assert!(CIFAR100_FILES.iter().all(|file| file.1 % 3074 == 0));
    }
}
