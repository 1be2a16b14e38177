//! What happened, epoch by epoch, and its CSV file.

use drivetrain_core::{Error, Result};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// One epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its number, from 1.
    pub epoch: usize,
    /// The rate at its end.
    pub learning_rate: f64,
    /// Wall time in seconds, validation included.
    pub seconds: f64,
    /// Loss and metrics over the training batches.
    pub train: Vec<f64>,
    /// Loss and metrics over the validation batches; empty without any.
    pub valid: Vec<f64>,
}

/// All epochs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// `loss` and the metrics' names.
    pub names: Vec<String>,
    /// The epochs, in order.
    pub rows: Vec<Row>,
}

impl History {
    /// As CSV: epoch, learning_rate, seconds, train_loss, …, valid_loss, …. A value that was not measured is empty.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("epoch,learning_rate,seconds");
        for part in ["train", "valid"] {
            for name in &self.names {
                let _ = write!(text, ",{part}_{name}");
            }
        }
        text.push('\n');
        for row in &self.rows {
            let _ = write!(
                text,
                "{},{},{:.3}",
                row.epoch, row.learning_rate, row.seconds
            );
            for part in [&row.train, &row.valid] {
                for i in 0..self.names.len() {
                    let _ = match part.get(i) {
                        Some(value) => write!(text, ",{value}"),
                        None => write!(text, ","),
                    };
                }
            }
            text.push('\n');
        }
        text
    }

    /// Writes [`History::to_csv`] to a file, whole or not at all.
    ///
    /// # Errors
    /// When the disk fails; an older file is then as it was.
    pub fn save_csv(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        let write = || -> std::io::Result<()> {
            let mut file = std::fs::File::create(&part)?;
            file.write_all(self.to_csv().as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&part, path)
        };
        write().map_err(|cause| {
            let _ = std::fs::remove_file(&part);
            Error::io("history", path.display(), cause)
        })
    }
}
