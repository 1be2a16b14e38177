//! Progress: a bar on a terminal, a plain line an epoch elsewhere, or nothing.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// A bar where standard error is a terminal, and a line after each epoch.
    #[default]
    Auto,
    /// A line after each epoch.
    Lines,
    /// Nothing.
    Silent,
}

/// The bar of one epoch.
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    pub(crate) fn new(progress: Progress, label: String, steps: usize) -> Bar {
        if progress != Progress::Auto || !std::io::stderr().is_terminal() {
            return Bar(None);
        }
        let bar = ProgressBar::new(steps as u64);
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {msg} {eta}");
        bar.set_style(
            style
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> "),
        );
        bar.set_prefix(label);
        Bar(Some(bar))
    }

    /// Whether anybody looks: numbers for nobody are not read off the device.
    pub(crate) fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn step(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
        }
    }

    pub(crate) fn message(&self, message: String) {
        if let Some(bar) = &self.0 {
            bar.set_message(message);
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// The line after an epoch.
pub(crate) fn line(progress: Progress, text: &str) {
    if progress != Progress::Silent {
        println!("{text}");
    }
}
