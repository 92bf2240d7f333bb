//! Project automation.
//!
//! `cargo run -p xtask -- docs` generates the tables of results in `docs/results/` and the models table in
//! `README.md` from `results/*.jsonl`; `docs --check` fails if one of them is stale.
//!
//! `cargo run -p xtask -- torture` injects faults: it kills training runs, damages files, passes
//! malformed inputs and fills disks; `torture --short` takes less than a minute.

mod numbers;
mod record;
mod table;
mod pages;
mod models_table;
mod docs;
mod torture;

use anyhow::{Result, bail};
use std::io::{self, Write};
use std::process::ExitCode;

const USAGE: &str =
    "usage: cargo run -p xtask -- docs [--check] | torture [--short] [--seed N] [--program PATH]";

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done if the standard error is closed.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["docs"] => docs::write(docs::repository()),
        ["docs", "--check"] => docs::check(docs::repository()),
        ["torture", ref args @ ..] => torture::run(args),
        _ => bail!("{USAGE}"),
    }
}
