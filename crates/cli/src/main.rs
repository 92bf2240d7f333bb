//! The `latens` program: conversion and presentation only. What it can do is in the crate `latens`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod cache;
mod commands;
mod errors;
mod output;
mod progress;
mod train;

use args::{Cli, Command};
use clap::Parser;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(cli.common.json, cli.common.quiet);
    match run(cli, &output) {
        Ok(code) => code,
        Err(error) if errors::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("{}", errors::message(&error));
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli, output: &Output) -> anyhow::Result<ExitCode> {
    let common = cli.common;
    if let Some(threads) = common.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build_global()?;
    }
    match cli.command {
        Command::Demo(args) => commands::demo::run(&args, &common, output)?,
        Command::Train(args) => train::run(&args, &common, output)?,
        Command::Count(args) => commands::count::run(&args, output)?,
        Command::Vocab(args) => commands::vocab::run(&args, output)?,
        Command::Perplexity(args) => commands::perplexity::run(&args, output)?,
        Command::Sample(args) => commands::sample::run(&args, &common, output)?,
        Command::Inspect(args) => commands::inspect::run(&args, output)?,
        Command::Export(args) => commands::convert::export(&args, output)?,
        Command::Import(args) => commands::convert::import(&args, output)?,
        Command::Reproduce(args) => return commands::reproduce::run(&args, output),
        Command::Completions(args) => commands::manual::completions(&args)?,
        Command::Man(args) => commands::manual::man(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}
