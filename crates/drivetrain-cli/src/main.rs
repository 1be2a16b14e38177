//! The `drivetrain` program: what is done with backends from a shell.

mod arguments;
mod conformance;

// The backends of the facade's features are linked with it.
use drivetrain as _;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: drivetrain COMMAND

Commands:
  conformance [DIR] [--device NAME] [--dtype f32|f64|f16|bf16] [--only OP[,OP]]
      plays the conformance cases of a folder (by default the built-in ones) on a device and lists what is wrong;
      ends with 1 when something is
  help
  version
";

/// What a command ends with when it cannot do what its arguments say.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match command.as_str() {
        "conformance" => match arguments::parse(&rest) {
            Ok(None) => help(),
            Ok(Some(request)) => conformance::run(&request),
            Err(message) => wrong(&message),
        },
        "help" | "--help" | "-h" => help(),
        "version" | "--version" | "-V" => {
            println!("drivetrain {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        "" => wrong("a command is missing"),
        other => wrong(&format!("there is no command {other:?}")),
    }
}

fn help() -> ExitCode {
    print!("{USAGE}");
    ExitCode::SUCCESS
}

fn wrong(message: &str) -> ExitCode {
    eprint!("drivetrain: {message}\n\n{USAGE}");
    ExitCode::from(WRONG_USAGE)
}
