//! Runs the real program in a folder of its own.
#![allow(dead_code, reason = "each test program uses some of it")]

use latens::corpus::embedded::{self, Split};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder that is deleted after the test.
pub(crate) struct Folder(tempfile::TempDir);

/// What the program did.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// The names of all files in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The three parts of the embedded corpus, as `train.txt`, `valid.txt`, `test.txt`.
    pub(crate) fn with_embedded_corpus() -> Folder {
        let folder = Folder::new();
        for split in Split::ALL {
            folder.write(&format!("{}.txt", split.name()), embedded::text(split));
        }
        folder
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latens"));
        command.current_dir(self.path()).env("NO_COLOR", "1");
        command
    }

    /// A command with this disposition of SIGINT and SIGHUP, whatever that of the test is: a shell that starts tests in the
    /// background ignores signals.
    #[cfg(unix)]
    #[allow(unsafe_code, reason = "the disposition of signals is set between fork and exec")]
    pub(crate) fn interruptible(&self, disposition: nix::sys::signal::SigHandler) -> Command {
        use nix::sys::signal::{Signal, signal};
        use std::os::unix::process::CommandExt;
        let mut command = self.command();
        // SAFETY: `signal` may be called between fork and exec, and no handler is installed.
        unsafe {
            command.pre_exec(move || {
                signal(Signal::SIGINT, disposition)?;
                signal(Signal::SIGHUP, disposition)?;
                Ok(())
            });
        }
        command
    }

    /// Runs `latens` with arguments separated by blanks.
    pub(crate) fn run(&self, args: &str) -> Ran {
        Ran::new(self.command().args(args.split_whitespace()).output().unwrap())
    }

    /// Runs a command that must succeed, and gives its JSON.
    pub(crate) fn json(&self, args: &str) -> Value {
        let ran = self.run(&format!("{args} --json"));
        assert_eq!(ran.code, Some(0), "{args}: {}", ran.stderr);
        assert_eq!(ran.stdout.lines().count(), 1, "one JSON object: {}", ran.stdout);
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

impl Ran {
    pub(crate) fn new(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The command could not run, and said so in the way that all commands do.
    #[track_caller]
    pub(crate) fn assert_refused(&self, message: &str) {
        assert_eq!(self.code, Some(2), "{}{}", self.stdout, self.stderr);
        assert!(self.stderr.lines().any(|line| line.starts_with("error: ")), "{}", self.stderr);
        assert!(self.stderr.contains(message), "{message:?} is not in {}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert!(self.stdout.is_empty(), "{}", self.stdout);
    }
}
