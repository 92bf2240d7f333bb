//! Runs the program, judges how it ends, and counts.

use anyhow::{Context, Result};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest run that is not a failure.
const PATIENCE: Duration = Duration::from_secs(120);

/// Counts of what was done.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) runs: usize,
    pub(crate) kills: usize,
    pub(crate) resumed: usize,
    pub(crate) damaged_files: usize,
    pub(crate) forged_files: usize,
    pub(crate) inputs: usize,
    pub(crate) full_disks: usize,
    pub(crate) failures: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { runs, kills, resumed, damaged_files, forged_files, inputs, .. } = self;
        let Counts { full_disks, failures, .. } = self;
        writeln!(f, "runs            {runs}")?;
        writeln!(f, "kills           {kills}")?;
        writeln!(f, "resumed         {resumed}")?;
        writeln!(f, "damaged files   {damaged_files}")?;
        writeln!(f, "forged files    {forged_files}")?;
        writeln!(f, "odd inputs      {inputs}")?;
        writeln!(f, "full disks      {full_disks}")?;
        write!(f, "failures        {failures}")
    }
}

/// How a run may end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Success,
    Refusal,
    Either,
}

/// How a run ended.
pub(crate) struct Ran {
    pub(crate) succeeded: bool,
    pub(crate) seconds: f64,
}

/// Runs the program in a folder of its own.
pub(crate) struct Runner {
    program: PathBuf,
    folder: TempDir,
    pub(crate) counts: Counts,
}

impl Runner {
    pub(crate) fn new(program: PathBuf) -> Result<Runner> {
        let program = fs::canonicalize(program)?;
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        Ok(Runner { program, folder, counts: Counts::default() })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Removes a file, if there is one.
    pub(crate) fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.path(name));
    }

    /// The counts; the folder is removed unless something failed.
    pub(crate) fn finish(self) -> Counts {
        let Runner { folder, counts, .. } = self;
        if counts.failures > 0 {
            let _ = say(&format!("files are kept in `{}`", folder.keep().display()));
        }
        counts
    }

    /// A command that runs the program with arguments separated by spaces.
    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args.split(' ')).current_dir(self.folder()).env("NO_COLOR", "1");
        command
    }

    /// The same, run by a shell after `setup`, with which limits are set.
    pub(crate) fn limited(&self, setup: &str, args: &str) -> Command {
        let mut command = Command::new("bash");
        let script = format!("{setup}; exec \"$@\"");
        command.args(["-c", &script, "limited"]).arg(&self.program);
        command.args(args.split(' ')).current_dir(self.folder()).env("NO_COLOR", "1");
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&mut self, args: &str, expected: Expected) -> Result<Ran> {
        let command = self.command(args);
        self.check(command, args, expected)
    }

    /// Runs a prepared command to its end. `what` describes it in messages.
    pub(crate) fn check(
        &mut self,
        mut command: Command,
        what: &str,
        expected: Expected,
    ) -> Result<Ran> {
        let started = Instant::now();
        let mut child = self.start(&mut command)?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if started.elapsed() > PATIENCE {
                child.kill()?;
                child.wait()?;
                break None;
            }
            sleep(Duration::from_millis(2));
        };
        let succeeded = status.is_some_and(|status| status.success());
        if let Some(problem) = self.problem(status.map(|status| status.code()), expected) {
            self.fail(&format!("{what}: {problem}"))?;
        }
        Ok(Ran { succeeded, seconds: started.elapsed().as_secs_f64() })
    }

    /// Starts a command whose output goes to files.
    pub(crate) fn start(&mut self, command: &mut Command) -> Result<Child> {
        self.counts.runs += 1;
        let output =
            |name: &str| Ok::<_, anyhow::Error>(Stdio::from(File::create(self.path(name))?));
        command.stdout(output("stdout")?).stderr(output("stderr")?);
        command.spawn().with_context(|| format!("cannot run `{}`", self.program.display()))
    }

    /// What is wrong with the way in which a run ended: `None` for a run that did not end, `Some(None)` for a signal.
    fn problem(&self, code: Option<Option<i32>>, expected: Expected) -> Option<String> {
        let read = |name: &str| fs::read(self.path(name)).unwrap_or_default();
        let (stdout, stderr) = (read("stdout"), read("stderr"));
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        let first_line = || {
            let mut lines = stderr.lines().filter(|line| !line.starts_with("note:"));
            lines.find(|line| !line.is_empty()).unwrap_or_default().to_owned()
        };
        if stderr.contains("panicked at") {
            return Some(format!("panics: {}", stderr.trim().replace('\n', " ")));
        }
        match (code, expected) {
            (None, _) => Some("does not end".to_owned()),
            (Some(None), _) => Some(format!("is ended by a signal: {}", first_line())),
            (Some(Some(0)), Expected::Refusal) => Some("succeeds".to_owned()),
            (Some(Some(0)), _) if has_nan(&stdout) => Some("prints NaN".to_owned()),
            (Some(Some(0)), _) => None,
            (Some(Some(2)), Expected::Success) => Some(format!("fails: {}", first_line())),
            (Some(Some(2)), _) if !stderr.contains("error: ") => {
                Some("fails without a message".to_owned())
            }
            (Some(Some(2)), _) => None,
            (Some(Some(code)), _) => Some(format!("ends with {code}: {}", first_line())),
        }
    }

    /// Counts and prints a failure.
    pub(crate) fn fail(&mut self, problem: &str) -> Result<()> {
        self.counts.failures += 1;
        say(&format!("FAILURE latens {problem}"))
    }
}

fn has_nan(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).any(|word| word.eq_ignore_ascii_case("nan"))
}

/// Prints a line.
pub(crate) fn say(text: &str) -> Result<()> {
    Ok(writeln!(io::stdout(), "{text}")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_found_as_a_word_only() {
        assert!(has_nan("perplexity NaN") && has_nan("0:nan 1:2"));
        assert!(!has_nan("banana nano perplexity 3"));
    }
}
