//! Shell completions and manual pages.

use crate::output::print;
use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;
use std::fs;
use std::path::PathBuf;

/// Print completions for a shell
///
/// For example, `latens completions bash > ~/.local/share/bash-completion/completions/latens`.
#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page, or write the pages of all commands
#[derive(Args)]
pub(crate) struct ManArgs {
    /// Write `latens.1`, `latens-train.1` … into this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn completions(args: &CompletionsArgs, mut program: Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut program, "latens", &mut text);
    print(|out| out.write_all(&text))
}

pub(crate) fn man(args: &ManArgs, program: Command) -> Result<()> {
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        clap_mangen::Man::new(program).render(&mut page)?;
        return print(|out| out.write_all(&page));
    };
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(program, folder))
        .with_context(|| format!("cannot write manual pages into `{}`", folder.display()))
}
