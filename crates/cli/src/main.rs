//! The program `latens`. Its code is in the library of this crate, which the Python package runs, too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(latens_cli::main(std::env::args_os().collect()))
}
