//! `drivetrain conformance`: plays cases on a device and prints the report.

use crate::arguments::Request;
use drivetrain::tensor::{Device, Error, Result};
use drivetrain_conformance::{Options, Suite};
use std::process::ExitCode;

/// Plays the cases asked for: 0 when none failed, 1 when some did, 2 when they could not be played.
pub fn run(request: &Request) -> ExitCode {
    match play(request) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("drivetrain: {error}");
            ExitCode::from(crate::WRONG_USAGE)
        }
    }
}

fn play(request: &Request) -> Result<bool> {
    let suite = match &request.folder {
        Some(folder) => Suite::read(folder)?,
        None => Suite::embedded()?,
    };
    let device = Device::open(&request.device)?;
    let known = |name: &String| suite.cases.iter().any(|c| c.op == *name || c.id == *name);
    if let Some(name) = request.only.iter().find(|name| !known(name)) {
        return Err(Error::argument(
            "conformance",
            format!("no case has the op or id {name:?}"),
        ));
    }
    let options = Options {
        dtype: request.dtype,
        only: request.only.clone(),
        ..Options::default()
    };
    println!("conformance on {device} in {}", request.dtype);
    let report = drivetrain_conformance::run(&device, &suite, &options);
    println!("{report}");
    Ok(report.failures.is_empty())
}
