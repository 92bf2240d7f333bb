//! A process that is killed while it writes a file leaves nothing.

#![cfg(target_os = "linux")]

use latens_store::write_atomically;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The file that a child process of the test writes.
const PATH: &str = "LATENS_TEST_WRITE";

#[test]
fn a_killed_writer_leaves_the_old_file_and_nothing_else() {
    if let Some(path) = std::env::var_os(PATH) {
        return write_forever(path.into());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for old in [None, Some(b"old".as_slice())] {
        old.into_iter().for_each(|old| fs::write(&path, old).unwrap());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "a_killed_writer_leaves_the_old_file_and_nothing_else",
                "--exact",
                "--nocapture",
            ])
            .env(PATH, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("half is written")));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(fs::read(&path).ok().as_deref(), old);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), old.iter().len());
    }
}

fn write_forever(path: PathBuf) {
    let written = write_atomically(path, |out| {
        out.write_all(b"half of the file")?;
        out.flush()?;
        writeln!(std::io::stdout(), "half is written")?;
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    unreachable!("{written:?}");
}
