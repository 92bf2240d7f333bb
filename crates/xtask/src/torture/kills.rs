//! Ends trainings at random moments, resumes them, and compares the model with that of an uninterrupted training.

use super::effort::Effort;
use super::kinds::Trained;
use super::model_file::Contents;
use super::random::Random;
use super::runner::{Expected, Runner};
use anyhow::{Context, Result, bail};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The most interruptions of one training. The last run is not interrupted.
const MAX_INTERRUPTIONS: usize = 6;

pub(crate) fn run(
    runner: &mut Runner,
    all: &[Trained],
    effort: &Effort,
    random: &mut Random,
) -> Result<()> {
    for trained in all.iter().filter(|trained| trained.resumes()) {
        for _ in 0..effort.n_interruptions {
            interrupt_and_resume(runner, trained, random)?;
        }
    }
    Ok(())
}

fn interrupt_and_resume(runner: &mut Runner, trained: &Trained, random: &mut Random) -> Result<()> {
    let (name, file) = (trained.kind.name, format!("{}.again", trained.kind.name));
    let checkpoint = format!("{file}.checkpoint");
    runner.remove(&file);
    runner.remove(&checkpoint);
    for _ in 0..MAX_INTERRUPTIONS {
        let command = resuming(runner, trained.command(&file), &checkpoint);
        if interrupt(runner, &command, trained.seconds, random)? {
            break;
        }
        // Each file is absent or complete, whatever the moment.
        for file in [&file, &checkpoint] {
            if runner.path(file).exists() {
                runner.run(&format!("inspect {file}"), Expected::Success)?;
            }
        }
    }
    if !runner.path(&file).exists() {
        let command = resuming(runner, trained.command(&file), &checkpoint);
        runner.run(&command, Expected::Success)?;
    }
    if !runner.path(&file).exists() {
        return Ok(());
    }
    let model = Contents::read(&runner.path(&file))?;
    match model.difference(&trained.model) {
        Some(difference) => runner.fail(&format!("train {name}, interrupted: {difference}")),
        None => Ok(()),
    }
}

/// The command that continues from the checkpoint, if there is one.
fn resuming(runner: &mut Runner, command: String, checkpoint: &str) -> String {
    let resumes = runner.path(checkpoint).exists();
    runner.counts.resumed += usize::from(resumes);
    if resumes { command + " --resume" } else { command }
}

/// Starts a training and ends it at a random moment. Returns whether it was done before.
fn interrupt(
    runner: &mut Runner,
    command: &str,
    seconds: f64,
    random: &mut Random,
) -> Result<bool> {
    let mut child = runner.start(&mut runner.command(command))?;
    let end = Instant::now() + Duration::from_secs_f64(seconds * random.fraction());
    while Instant::now() < end {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        sleep(Duration::from_millis(1));
    }
    // A request leaves a checkpoint; a kill leaves the last one, if it was time for one.
    if random.below(2) == 0 {
        request_end(&mut child)?
    } else {
        child.kill()?
    }
    let status = child.wait()?;
    runner.counts.kills += 1;
    Ok(status.success())
}

/// Asks a training to end, as Ctrl-C does. The signal is another one, since a script may ignore that of Ctrl-C.
fn request_end(child: &mut Child) -> Result<()> {
    let status = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .context("cannot run `kill`")?;
    if !status.success() && child.try_wait()?.is_none() {
        bail!("`kill` fails");
    }
    Ok(())
}
