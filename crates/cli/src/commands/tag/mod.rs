//! `latens tag`: trains, evaluates, compares and runs taggers.

mod inputs;
mod compare;
mod eval;
mod run;
mod train;
mod written;

use crate::args::Common;
use crate::output::Output;
use anyhow::Result;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Train, evaluate, compare and run taggers
///
/// A tagger is a model trained with `latens tag train` or `latens train hmm --tags 2`.
#[derive(Args)]
pub(crate) struct TagArgs {
    #[command(subcommand)]
    command: TagCommand,
}

#[derive(Subcommand)]
enum TagCommand {
    Train(Box<train::TagTrainArgs>),
    Eval(eval::EvalArgs),
    Run(run::RunArgs),
    Compare(compare::CompareArgs),
}

pub(crate) fn run(args: &TagArgs, common: &Common, output: &Output) -> Result<ExitCode> {
    match &args.command {
        TagCommand::Train(args) => train::run(args, common, output)?,
        TagCommand::Eval(args) => eval::run(args, output)?,
        TagCommand::Run(args) => run::run(args, output)?,
        TagCommand::Compare(args) => return compare::run(args, common, output),
    }
    Ok(ExitCode::SUCCESS)
}
