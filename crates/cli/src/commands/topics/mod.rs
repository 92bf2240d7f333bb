//! `latens topics`: shows, names, infers, evaluates, compares and plots topics.

mod top_words;
mod eval;
mod infer;
mod label;
mod map;
mod select;
mod show;
pub(crate) mod trend;

use crate::args::Common;
use crate::output::Output;
use anyhow::Result;
use clap::{Args, Subcommand};

/// Show, infer, evaluate, compare and plot topics
#[derive(Args)]
pub(crate) struct TopicsArgs {
    #[command(subcommand)]
    command: TopicsCommand,
}

#[derive(Subcommand)]
enum TopicsCommand {
    Show(show::ShowArgs),
    Label(Box<label::LabelArgs>),
    Infer(Box<infer::InferArgs>),
    Eval(Box<eval::EvalArgs>),
    Select(Box<select::SelectArgs>),
    Trend(Box<trend::TrendArgs>),
    Map(map::MapArgs),
}

pub(crate) fn run(args: &TopicsArgs, common: &Common, output: &Output) -> Result<()> {
    match &args.command {
        TopicsCommand::Show(args) => show::run(args, output),
        TopicsCommand::Label(args) => label::run(args, output),
        TopicsCommand::Infer(args) => infer::run(args, common, output),
        TopicsCommand::Eval(args) => eval::run(args, output),
        TopicsCommand::Select(args) => select::run(args, common, output),
        TopicsCommand::Trend(args) => trend::run(args, common, output),
        TopicsCommand::Map(args) => map::run(args, output),
    }
}
