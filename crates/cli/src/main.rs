//! The `latens` command-line program. It parses arguments and prints results; the crate `latens` does the work.

mod args;
mod cache;
mod choice;
mod commands;
mod errors;
mod output;
mod paths;
mod progress;
mod reading;
mod terminal;
mod word_vectors;
mod train;

use args::Common;
use clap::{CommandFactory, Parser, Subcommand};
#[cfg(feature = "reproduce")]
use commands::reproduce;
use commands::{
    convert, count, demo, encode, inspect, manual, nearest, perplexity, sample, tag, topics, vocab,
};
use output::Output;
use std::borrow::Cow;
use std::process::ExitCode;

/// Train and use latent-variable models of text.
///
/// Results are written to standard output, progress and messages to standard error. The exit status is 0 on success,
/// 1 if a comparison finds no significant difference, and 2 on errors.
#[derive(Parser)]
#[command(name = "latens", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Train(train::TrainArgs),
    Count(count::CountArgs),
    Vocab(vocab::VocabArgs),
    Perplexity(perplexity::PerplexityArgs),
    Sample(sample::SampleArgs),
    Tag(tag::TagArgs),
    Topics(topics::TopicsArgs),
    Encode(encode::EncodeArgs),
    Nearest(nearest::NearestArgs),
    Inspect(inspect::InspectArgs),
    Export(convert::ExportArgs),
    Import(convert::ImportArgs),
    #[cfg(feature = "reproduce")]
    Reproduce(reproduce::ReproduceArgs),
    Completions(manual::CompletionsArgs),
    Man(manual::ManArgs),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    // `tests/documents` uses this to check that the commands in the documentation parse.
    if std::env::var_os("LATENS_PARSE_ONLY").is_some() {
        return ExitCode::SUCCESS;
    }
    let output = Output::new(cli.common.json, cli.common.quiet);
    match run(cli, &output) {
        Ok(code) => code,
        Err(error) if errors::is_closed_stdout(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&errors::message(&error));
            ExitCode::from(2)
        }
    }
}

/// Prints help, or an error about the arguments, which may be names of files with control characters.
fn explain(error: &clap::Error) -> ExitCode {
    let mut args = std::env::args_os();
    if args.any(|arg| matches!(terminal::escape(&arg.to_string_lossy()), Cow::Owned(_))) {
        output::complain(&error.render().to_string());
    } else {
        // Nothing can be done about a closed terminal.
        let _ = error.print();
    }
    ExitCode::from(error.exit_code() as u8)
}

fn run(cli: Cli, output: &Output) -> anyhow::Result<ExitCode> {
    let common = cli.common;
    if let Some(threads) = common.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    match cli.command {
        Command::Demo(args) => demo::run(&args, &common, output)?,
        Command::Train(args) => train::run(&args, &common, output)?,
        Command::Count(args) => count::run(&args, output)?,
        Command::Vocab(args) => vocab::run(&args, output)?,
        Command::Perplexity(args) => perplexity::run(&args, output)?,
        Command::Sample(args) => sample::run(&args, &common, output)?,
        Command::Tag(args) => return tag::run(&args, &common, output),
        Command::Topics(args) => topics::run(&args, &common, output)?,
        Command::Encode(args) => encode::run(&args, output)?,
        Command::Nearest(args) => nearest::run(&args, output)?,
        Command::Inspect(args) => inspect::run(&args, output)?,
        Command::Export(args) => convert::export(&args, output)?,
        Command::Import(args) => convert::import(&args, output)?,
        #[cfg(feature = "reproduce")]
        Command::Reproduce(args) => return reproduce::run(&args, output),
        Command::Completions(args) => manual::completions(&args, Cli::command())?,
        Command::Man(args) => manual::man(&args, Cli::command())?,
    }
    Ok(ExitCode::SUCCESS)
}
