//! The files that a command reads and writes. A command that would destroy one of its own files is refused before any
//! work.

use crate::args::EncoderArg;
use crate::errors::hinted;
use crate::paths::{check_appendable, checkpoint_path, is_stdin, same_file};
use anyhow::{Result, ensure};
use clap::{ArgMatches, Command};
use latens::store::{LockError, OutputLock, check_writable, lock_path};
use std::fmt;
use std::path::{Path, PathBuf};

/// How a command uses the path in one of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Read,
    /// Replaced by a new file.
    Write,
    /// Replaced by a new file, at the end of a training that keeps a checkpoint next to it.
    Model,
    /// Exists while a model is trained: its checkpoint or its lock file.
    Companion,
    /// Written line by line.
    Append,
    /// A folder, in which the command chooses the names of files.
    Folder,
}

/// How `command`, e.g., `train hmm`, uses the path in its argument `argument`. `None` if it is not declared.
///
/// A test fails on paths that are not declared here.
pub(crate) fn role(command: &str, argument: &str) -> Option<Role> {
    let trains = command.starts_with("train ") || ["tag train", "distill"].contains(&command);
    let role = match (command, argument) {
        ("demo" | "man", "output") | (_, "cache" | "data") => Role::Folder,
        (_, "output") if trains => Role::Model,
        ("topics show", "mixtures") => Role::Read,
        (_, "mixtures" | "plot") => Role::Write,
        (_, "stop_words") => Role::Read,
        (_, "output") | ("export", "words") => Role::Write,
        (_, "log" | "record" | "keep_samples") => Role::Append,
        (
            _,
            "file" | "files" | "text" | "reference" | "questions" | "vocab" | "words" | "tokenizer",
        ) => Role::Read,
        (_, "models" | "documents") => Role::Read,
        (_, "broadcast" | "statistics" | "previous") => Role::Read,
        (
            _,
            "model" | "guide" | "tagger" | "first" | "second" | "encoders" | "init" | "teacher",
        ) => Role::Read,
        (_, "valid" | "dev" | "clusters" | "vectors" | "vectors_words") => Role::Read,
        _ => return None,
    };
    Some(role)
}

/// All files of a command.
#[derive(Default)]
pub(crate) struct Files {
    reads: Vec<NamedFile>,
    writes: Vec<NamedFile>,
}

struct NamedFile {
    path: PathBuf,
    /// The argument that names it: `--vectors`, or `the checkpoint of -o`.
    source: String,
    role: Role,
}

impl fmt::Display for NamedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.path.display(), self.source)
    }
}

impl Files {
    /// The files in the arguments of a command.
    pub(crate) fn of(program: &Command, matches: &ArgMatches) -> Files {
        let (mut command, mut matches, mut name) = (program, matches, Vec::new());
        while let Some((subcommand, its_matches)) = matches.subcommand() {
            let Some(found) = command.find_subcommand(subcommand) else { break };
            (command, matches) = (found, its_matches);
            name.push(subcommand);
        }
        let (name, mut files) = (name.join(" "), Files::default());
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            // What is not declared is most likely an input.
            let role = role(&name, id).unwrap_or(Role::Read);
            let source = match (argument.get_short(), argument.get_long()) {
                (Some(short), _) => format!("-{short}"),
                (_, Some(long)) => format!("--{long}"),
                _ => argument.get_value_names().map_or(id.to_uppercase(), |names| names.join(" ")),
            };
            paths(matches, id).into_iter().for_each(|path| files.add(path, role, source.clone()));
        }
        files
    }

    fn add(&mut self, path: PathBuf, role: Role, source: String) {
        match role {
            Role::Folder => return,
            Role::Read => return self.reads.push(NamedFile { path, source, role }),
            Role::Model => {
                let companion = |what: &str| format!("the {what} of {source}");
                if let Some(checkpoint) = checkpoint_path(&path) {
                    self.add(checkpoint, Role::Companion, companion("checkpoint"));
                    self.add(lock_path(&path), Role::Companion, companion("lock file"));
                }
            }
            Role::Write | Role::Companion | Role::Append => {}
        }
        self.writes.push(NamedFile { path, source, role });
    }

    /// Rejects files that are both input and output, two outputs with the same path, and outputs that cannot be
    /// written.
    pub(crate) fn check(&self) -> Result<()> {
        let n_stdin = self.reads.iter().filter(|input| is_stdin(&input.path)).count();
        ensure!(n_stdin <= 1, "`-` (standard input) can be given only once");
        for (idx, output) in self.writes.iter().enumerate() {
            refuse_dash(&output.path)?;
            let same = |other: &&NamedFile| same_file(&output.path, &other.path);
            if let Some(input) = self.reads.iter().find(same) {
                return Err(hinted(
                    format!("`{}` is both input and output", output.path.display()),
                    format!("{input} and {output} are the same file: choose another path for one"),
                ));
            }
            if let Some(other) = self.writes[..idx].iter().find(same) {
                return Err(hinted(
                    format!("`{}` would be written twice", output.path.display()),
                    format!("{other} and {output} are the same file: choose another path for one"),
                ));
            }
        }
        self.writes.iter().try_for_each(|output| match output.role {
            Role::Append => check_appendable(&output.path),
            // They are next to the model.
            Role::Companion => Ok(()),
            _ => Ok(check_writable(&output.path)?),
        })
    }

    /// Locks the models that are trained, so that no other process trains them at the same time.
    pub(crate) fn lock(&self) -> Result<Vec<OutputLock>> {
        let models = self.writes.iter().filter(|output| output.role == Role::Model);
        let locks = models.filter_map(|output| OutputLock::acquire(&output.path).transpose());
        locks.map(|lock| lock.map_err(lock_error)).collect()
    }
}

fn lock_error(error: LockError) -> anyhow::Error {
    let hint = match &error {
        LockError::Held { lock, .. } => {
            format!(
                "wait for it, or choose another path with `-o`; it holds the lock `{}`",
                lock.display()
            )
        }
        LockError::Foreign { .. } => "move it, or choose another path with `-o`".to_owned(),
        _ => return error.into(),
    };
    hinted(error.to_string(), hint)
}

fn refuse_dash(output: &Path) -> Result<()> {
    if output == Path::new("-") {
        return Err(hinted(
            "`-` cannot be an output",
            "use `/dev/stdout` for standard output, or `./-` for a file named `-`",
        ));
    }
    Ok(())
}

/// The paths in an argument: none if it is not given or contains something else.
fn paths(matches: &ArgMatches, id: &str) -> Vec<PathBuf> {
    if let Ok(Some(paths)) = matches.try_get_many::<PathBuf>(id) {
        return paths.cloned().collect();
    }
    match matches.try_get_many::<EncoderArg>(id) {
        Ok(Some(encoders)) => encoders.map(|encoder| encoder.path.clone()).collect(),
        _ => Vec::new(),
    }
}
