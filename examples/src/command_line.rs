//! The command line of the examples: `--device NAME`, `--seed N`, `--quick`, and `--data`, `--save` where they mean
//! something.

use drivetrain::prelude::{Device, Result, manual_seed};
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// What an example's `run` gives back.
pub type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

/// An example: what it is called, what it is for, and which options it has besides the common ones.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// As in `cargo run --example NAME`.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// What `--data DIR` reads, where the example takes it.
    pub data: Option<&'static str>,
    /// What `--save PATH` writes, where the example takes it.
    pub save: Option<&'static str>,
}

/// The options that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// `--device NAME`: `cpu`, `cuda:1`, …; none means the best device.
    pub device: Option<String>,
    /// `--seed N`; 0 if not given.
    pub seed: u64,
    /// `--quick`: less data and fewer epochs, to see that it runs.
    pub quick: bool,
    /// `--data DIR`.
    pub data: Option<PathBuf>,
    /// `--save PATH`.
    pub save: Option<PathBuf>,
    /// `--help`.
    pub help: bool,
}

/// What is wrong with a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

impl Args {
    /// Opens the device, starts the random numbers from the seed, and says which device it is.
    ///
    /// # Errors
    /// A device that is not there; output that cannot be written.
    pub fn begin(
        &self,
        out: &mut dyn Write,
    ) -> std::result::Result<Device, Box<dyn std::error::Error>> {
        let device = self.open()?;
        manual_seed(self.seed);
        writeln!(out, "Using device: {device}")?;
        Ok(device)
    }

    fn open(&self) -> Result<Device> {
        match &self.device {
            Some(name) => Device::open(name),
            None => Device::best(),
        }
    }
}

impl Program {
    /// Reads options as `--seed 3` or `--seed=3`.
    ///
    /// # Errors
    /// An option that is unknown, incomplete, given twice, or not a number where one is due.
    pub fn parse(
        &self,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> std::result::Result<Args, UsageError> {
        let mut args = Args::default();
        let mut seen = Vec::new();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let (name, mut given) = split(argument);
            if seen.contains(&name) {
                return Err(UsageError(format!("{name} is given twice")));
            }
            let mut value = |what: &str| {
                given
                    .take()
                    .or_else(|| arguments.next())
                    .filter(|value| !value.is_empty())
                    .ok_or_else(|| UsageError(format!("{name} needs {what}")))
            };
            match name.as_str() {
                "--help" | "-h" => args.help = true,
                "--quick" => args.quick = true,
                "--device" => args.device = Some(text(value("a name")?)?),
                "--seed" => args.seed = number(&text(value("a number")?)?)?,
                "--data" if self.data.is_some() => args.data = Some(value("a folder")?.into()),
                "--save" if self.save.is_some() => args.save = Some(value("a path")?.into()),
                _ => return Err(UsageError(format!("{} does not know {name}", self.name))),
            }
            if let Some(extra) = given {
                return Err(UsageError(format!(
                    "{name} takes no value, got {}",
                    extra.display()
                )));
            }
            seen.push(name);
        }
        Ok(args)
    }

    /// The text of `--help`.
    pub fn usage(&self) -> String {
        let mut text = format!(
            "{}\n\nusage: cargo run --release --example {} -- [OPTIONS]\n",
            self.about, self.name
        );
        let mut option = |name: &str, what: &str| text += &format!("\n  {name:<15} {what}");
        option(
            "--device NAME",
            "where it runs: cpu, cuda, cuda:1, auto (the best; the default)",
        );
        option("--seed N", "start of the random numbers (0)");
        option("--quick", "less work, to see that it runs");
        for (name, what) in [("--data DIR", self.data), ("--save PATH", self.save)] {
            if let Some(what) = what {
                option(name, what);
            }
        }
        option("--help", "this text");
        text
    }

    /// The example's `main`: exit code 2 for a wrong command line, 1 when it fails.
    pub fn main(&self, run: fn(&Args, &mut dyn Write) -> Outcome) -> ExitCode {
        let args = match self.parse(std::env::args_os().skip(1)) {
            Ok(args) => args,
            Err(error) => {
                eprintln!("error: {error}\n\n{}", self.usage());
                return ExitCode::from(2);
            }
        };
        let mut out = std::io::stdout();
        let outcome = match args.help {
            true => writeln!(out, "{}", self.usage()).map_err(Into::into),
            false => run(&args, &mut out),
        };
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

/// `--seed=3` into its parts. What is not an option, or not text, stays whole.
fn split(argument: OsString) -> (String, Option<OsString>) {
    match argument.to_str().and_then(|text| text.split_once('=')) {
        Some((name, value)) => (name.to_string(), Some(value.into())),
        None => (argument.to_string_lossy().into_owned(), None),
    }
}

fn text(value: OsString) -> std::result::Result<String, UsageError> {
    value
        .into_string()
        .map_err(|value| UsageError(format!("{} is not text", value.display())))
}

fn number(text: &str) -> std::result::Result<u64, UsageError> {
    text.parse()
        .map_err(|_| UsageError(format!("--seed {text}: a whole number from 0 on is due")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Program = Program {
        name: "demo",
        about: "Shows.",
        data: Some("a folder of pictures"),
        save: None,
    };

    fn parse(line: &str) -> std::result::Result<Args, String> {
        let arguments = line.split_whitespace().map(OsString::from);
        PROGRAM.parse(arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read_in_both_forms() {
        let args = parse("--device cuda:1 --seed=7 --quick --data=a/b").unwrap();
        assert_eq!(args.device.as_deref(), Some("cuda:1"));
        assert_eq!((args.seed, args.quick), (7, true));
        assert_eq!(args.data, Some("a/b".into()));
        assert_eq!(parse("").unwrap(), Args::default());
        assert!(parse("-h").unwrap().help);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, says) in [
            ("--sed 3", "demo does not know --sed"),
            ("--save x", "demo does not know --save"),
            ("digits", "demo does not know digits"),
            ("--seed", "--seed needs a number"),
            ("--data=", "--data needs a folder"),
            ("--seed -1", "--seed -1: a whole number"),
            ("--seed x", "--seed x: a whole number"),
            ("--quick=yes", "--quick takes no value, got yes"),
            ("--quick --quick", "--quick is given twice"),
        ] {
            let message = parse(line).unwrap_err();
            assert!(message.starts_with(says), "{line}: {message}");
        }
    }

    #[test]
    fn usage_lists_what_the_program_takes() {
        let usage = PROGRAM.usage();
        assert!(
            usage.contains("--data DIR      a folder of pictures"),
            "{usage}"
        );
        assert!(!usage.contains("--save"));
    }
}
