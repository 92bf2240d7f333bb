//! `latens topics`: shows, infers, evaluates and draws topics.

mod top_words;
mod eval;
mod infer;
mod map;

use self::top_words::TopWordArgs;
use crate::args::Common;
use crate::output::Output;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::PathBuf;

/// Show, infer, evaluate and draw topics
#[derive(Args)]
pub(crate) struct TopicsArgs {
    #[command(subcommand)]
    command: TopicsCommand,
}

#[derive(Subcommand)]
enum TopicsCommand {
    Show(ShowArgs),
    Infer(Box<infer::InferArgs>),
    Eval(Box<eval::EvalArgs>),
    Map(map::MapArgs),
}

/// Show the words of each topic
///
/// Reads a topic model and prints one line per topic with its top words.
#[derive(Args)]
struct ShowArgs {
    /// Topic model
    model: PathBuf,
    #[command(flatten)]
    words: TopWordArgs,
}

pub(crate) fn run(args: &TopicsArgs, common: &Common, output: &Output) -> Result<()> {
    match &args.command {
        TopicsCommand::Show(args) => show(args, output),
        TopicsCommand::Infer(args) => infer::run(args, common, output),
        TopicsCommand::Eval(args) => eval::run(args, output),
        TopicsCommand::Map(args) => map::run(args, output),
    }
}

fn show(args: &ShowArgs, output: &Output) -> Result<()> {
    let model = &*latens::open(&args.model)?;
    let topics = args.words.topics(model, &args.model)?;
    output.result(&json!({ "topics": topics }), |out| {
        topics.iter().try_for_each(|t| writeln!(out, "{:3}  {}", t.topic, t.line()))
    })
}
