//! `cargo run -p xtask -- torture` injects faults: it kills training runs, damages files, passes
//! malformed inputs and fills disks, always through the program, as users do.
//!
//! The same seed gives the same runs, except for the times at which signals arrive.

mod random;
mod effort;
mod runner;
mod corpus;
mod kinds;
mod model_file;
mod kills;
mod damage;
mod inputs;
mod disks;

use anyhow::{Context, Result, bail, ensure};
use effort::Effort;
use random::Random;
use runner::{Runner, say};
use std::path::PathBuf;

/// Runs the whole campaign with `--short`, `--seed N` and `--program PATH`, in any order.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let (mut effort, mut seed, mut program) = (Effort::long(), 1, default_program()?);
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("`{arg}` needs a value"));
        match arg {
            "--short" => effort = Effort::short(),
            "--seed" => seed = value()?.parse().context("`--seed` must be a number")?,
            "--program" => program = PathBuf::from(value()?),
            _ => bail!("unknown argument `{arg}`: expected --short, --seed N or --program PATH"),
        }
    }
    ensure!(
        program.is_file(),
        "`{}` does not exist: run `cargo build` first, or pass `--program PATH`",
        program.display()
    );
    campaign(Runner::new(program)?, &effort, &mut Random::new(seed))
}

fn campaign(mut runner: Runner, effort: &Effort, random: &mut Random) -> Result<()> {
    corpus::write(runner.folder(), random)?;
    say("training one model of each kind")?;
    let trained = kinds::train_all(&mut runner, effort)?;
    say("killing trainings")?;
    kills::run(&mut runner, &trained, effort, random)?;
    say("damaging files")?;
    damage::run(&mut runner, &trained, effort, random)?;
    say("odd inputs")?;
    inputs::run(&mut runner, effort, random)?;
    say("full disks")?;
    disks::run(&mut runner, &trained, effort, random)?;
    let counts = runner.finish();
    say(&counts.to_string())?;
    ensure!(counts.failures == 0, "{} of {} runs failed", counts.failures, counts.runs);
    Ok(())
}

/// The debug program beside this one, which `cargo build` and `cargo test` make.
fn default_program() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(format!("latens{}", std::env::consts::EXE_SUFFIX)))
}
