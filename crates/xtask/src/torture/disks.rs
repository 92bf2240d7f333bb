//! Writes to places without room: a file that may not grow, a full device, a small file system. The program says what is
//! wrong, and leaves neither a part of a file nor a damaged older one.

use super::effort::Effort;
use super::kinds::Trained;
use super::model_file::Contents;
use super::random::Random;
use super::runner::{Expected, Runner, say};
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn run(
    runner: &mut Runner,
    all: &[Trained],
    effort: &Effort,
    random: &mut Random,
) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return say("skipped: full disks are simulated on Linux only");
    }
    for trained in all {
        for _ in 0..effort.n_full_disks {
            file_that_may_not_grow(runner, trained, random)?;
        }
        if let Some(command) = trained.uses(&format!("{}.model", trained.kind.name)).next() {
            full_device(runner, &command)?;
        }
    }
    small_file_system(runner, all, random)
}

/// Limits the size of files to less than that of the model. An older file must survive.
fn file_that_may_not_grow(
    runner: &mut Runner,
    trained: &Trained,
    random: &mut Random,
) -> Result<()> {
    let file = "full.model";
    fs::copy(runner.path(&format!("{}.model", trained.kind.name)), runner.path(file))?;
    // The program's messages are files, too, and need some room.
    let n_kilobytes = 4 + random.below(fs::metadata(runner.path(file))?.len() as usize / 1024);
    let args = trained.command(file);
    let command = runner.limited(&format!("trap '' XFSZ; ulimit -f {n_kilobytes}"), &args);
    runner.counts.full_disks += 1;
    runner.check(command, &format!("{args} (files of {n_kilobytes} KiB)"), Expected::Either)?;
    if Contents::read(&runner.path(file))?.difference(&trained.model).is_some() {
        runner.fail(&format!("{args}: the older file is damaged"))?;
    }
    remove_all(runner, file)
}

/// Writes results to a device that is always full.
fn full_device(runner: &mut Runner, args: &str) -> Result<()> {
    let command = runner.limited("exec >/dev/full", args);
    runner.counts.full_disks += 1;
    runner.check(command, &format!("{args} > /dev/full"), Expected::Refusal).map(drop)
}

/// Trains into a file system of a few kilobytes, where the system lets us mount one.
fn small_file_system(runner: &mut Runner, all: &[Trained], random: &mut Random) -> Result<()> {
    let folder = runner.path("small");
    fs::create_dir_all(&folder)?;
    let Some(_mounted) = Mounted::new(folder.clone()) else {
        return say("skipped: a small file system cannot be mounted here");
    };
    for trained in all {
        // Room for the model, or for a part of it.
        let room = random.below(32 << 10);
        fs::write(folder.join("ballast"), vec![0; (64 << 10) - room])?;
        runner.counts.full_disks += 1;
        let args = trained.command("small/model");
        let ran = runner.run(&args, Expected::Either)?;
        match (ran.succeeded, Contents::read(&folder.join("model"))) {
            (true, Ok(model)) if model.difference(&trained.model).is_none() => {}
            (false, Err(_)) => {}
            _ => runner.fail(&format!("{args}: the file does not fit the result"))?,
        }
        let left = names(&folder)?.into_iter().filter(|name| name != "model" && name != "ballast");
        let left: Vec<String> = left.filter(|name| !name.ends_with(".checkpoint")).collect();
        if !left.is_empty() {
            runner.fail(&format!("{args}: leaves {left:?}"))?;
        }
        for name in names(&folder)? {
            fs::remove_file(folder.join(name))?;
        }
    }
    Ok(())
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn remove_all(runner: &Runner, file: &str) -> Result<()> {
    runner.remove(file);
    runner.remove(&format!("{file}.checkpoint"));
    let left: Vec<String> =
        names(runner.folder())?.into_iter().filter(|name| name.ends_with(".part")).collect();
    left.iter().for_each(|name| runner.remove(name));
    Ok(())
}

/// A mounted file system of 64 KiB, which is unmounted in the end.
struct Mounted(PathBuf);

impl Mounted {
    fn new(folder: PathBuf) -> Option<Mounted> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "latens-torture"]).arg(&folder);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Mounted(folder))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}
