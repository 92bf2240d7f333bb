//! The program `latens`. The library of this crate has everything: the Python package runs it, too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(latens_cli::main(std::env::args_os().collect()))
}
