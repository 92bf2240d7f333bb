//! The `latens` command-line program. It parses arguments and prints results; the crate `latens` does the work.
//!
//! The one function is [`main`], which `src/main.rs` and the Python package call.

mod args;
mod cache;
mod choice;
mod commands;
mod data;
mod errors;
mod files;
mod interrupts;
mod output;
mod paths;
mod progress;
mod reading;
mod terminal;
mod train;

use args::Common;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
#[cfg(feature = "explore")]
use commands::explore;
use commands::language::{generate, perplexity, sample, score};
#[cfg(feature = "reproduce")]
use commands::reproduce;
use commands::{convert, count, demo, encode, inspect, manual, nearest, shard, tag, topics, vocab};
use files::Files;
use output::Output;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write;
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
    Distill(Box<train::DistillArgs>),
    Count(count::CountArgs),
    Vocab(vocab::VocabArgs),
    Shard(Box<shard::ShardArgs>),
    Perplexity(perplexity::PerplexityArgs),
    Score(score::ScoreArgs),
    Sample(sample::SampleArgs),
    Generate(generate::GenerateArgs),
    Tag(tag::TagArgs),
    Topics(topics::TopicsArgs),
    Encode(encode::EncodeArgs),
    Nearest(nearest::NearestArgs),
    Inspect(inspect::InspectArgs),
    #[cfg(feature = "explore")]
    Explore(Box<explore::ExploreArgs>),
    #[cfg(feature = "explore")]
    Report(Box<explore::ReportArgs>),
    Export(convert::ExportArgs),
    Import(convert::ImportArgs),
    #[cfg(feature = "reproduce")]
    Reproduce(reproduce::ReproduceArgs),
    Completions(manual::CompletionsArgs),
    Man(manual::ManArgs),
}

/// Runs the program with these arguments, the name of the program first, and returns its exit status. Call it once per
/// process, before other threads are started.
pub fn main(arguments: Vec<OsString>) -> u8 {
    let code = run_command(args::keep(arguments));
    // The standard library does this only at the end of a program in Rust.
    let _ = std::io::stdout().flush();
    // `ExitCode` does not tell its number.
    (0..=u8::MAX).find(|&status| ExitCode::from(status) == code).unwrap_or(u8::MAX)
}

fn run_command(arguments: &[OsString]) -> ExitCode {
    let mut program = Cli::command();
    let parsed = program.try_get_matches_from_mut(arguments).and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, matches))
    });
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return explain(&error.format(&mut program), arguments),
    };
    // `tests/documents` uses this to check that the commands in the documentation parse.
    if std::env::var_os("LATENS_PARSE_ONLY").is_some() {
        return ExitCode::SUCCESS;
    }
    let output = Output::new(cli.common.json, cli.common.quiet);
    let result = run(cli, &Files::of(&program, &matches), &output);
    interrupts::release_locks();
    match result {
        Ok(code) => code,
        Err(error) if errors::is_closed_stdout(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&errors::message(&error));
            ExitCode::from(2)
        }
    }
}

/// Prints help, or an error about the arguments, which may be names of files with control characters.
fn explain(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let mut arguments = arguments.iter();
    if arguments.any(|arg| matches!(terminal::escape(&arg.to_string_lossy()), Cow::Owned(_))) {
        output::complain(&error.render().to_string());
    } else {
        // Nothing can be done about a closed terminal.
        let _ = error.print();
    }
    ExitCode::from(error.exit_code() as u8)
}

fn run(cli: Cli, files: &Files, output: &Output) -> anyhow::Result<ExitCode> {
    // Before any other thread is started.
    interrupts::listen()?;
    files.check()?;
    interrupts::keep_locks(|| files.lock())?;
    let common = cli.common;
    match &cli.command {
        // These compute nothing.
        Command::Completions(_) | Command::Man(_) => execute(cli.command, &common, output),
        // Its server waits for requests as long as it runs, and their work needs all threads of the pool.
        #[cfg(feature = "explore")]
        Command::Explore(_) => {
            start_threads(common.threads)?;
            execute(cli.command, &common, output)
        }
        // A thread of the pool starts parallel work without waking another thread.
        _ => {
            start_threads(common.threads)?;
            rayon::scope(|_| execute(cli.command, &common, output))
        }
    }
}

/// Starts the pool that all parallel work uses.
fn start_threads(n_threads: Option<u16>) -> anyhow::Result<()> {
    // The default size of the stack of the main thread on Linux and macOS: one of these threads does its work.
    const STACK_BYTES: usize = 8 << 20;
    let pool = rayon::ThreadPoolBuilder::new().stack_size(STACK_BYTES);
    pool.num_threads(n_threads.map_or(0, usize::from)).build_global()?;
    Ok(())
}

fn execute(command: Command, common: &Common, output: &Output) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(&args, common, output)?,
        Command::Train(args) => train::run(&args, common, output)?,
        Command::Distill(args) => train::run_distill(&args, common, output)?,
        Command::Count(args) => count::run(&args, output)?,
        Command::Vocab(args) => vocab::run(&args, output)?,
        Command::Shard(args) => shard::run(&args, common, output)?,
        Command::Perplexity(args) => perplexity::run(&args, output)?,
        Command::Score(args) => score::run(&args, output)?,
        Command::Sample(args) => sample::run(&args, common, output)?,
        Command::Generate(args) => generate::run(&args, common, output)?,
        Command::Tag(args) => return tag::run(&args, common, output),
        Command::Topics(args) => topics::run(&args, common, output)?,
        Command::Encode(args) => encode::run(&args, output)?,
        Command::Nearest(args) => nearest::run(&args, output)?,
        Command::Inspect(args) => inspect::run(&args, output)?,
        #[cfg(feature = "explore")]
        Command::Explore(args) => explore::run(&args, output)?,
        #[cfg(feature = "explore")]
        Command::Report(args) => explore::run_report(&args, output)?,
        Command::Export(args) => convert::export(&args, output)?,
        Command::Import(args) => convert::import(&args, output)?,
        #[cfg(feature = "reproduce")]
        Command::Reproduce(args) => return reproduce::run(&args, output),
        Command::Completions(args) => manual::completions(&args, Cli::command())?,
        Command::Man(args) => manual::man(&args, Cli::command())?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};
    use files::{Role, role};
    use std::any::TypeId;
    use std::ffi::OsString;
    use std::fs;
    use std::path::PathBuf;

    /// All commands without subcommands, with their full names.
    fn commands(command: &Command, name: &str) -> Vec<(String, Command)> {
        if !command.has_subcommands() {
            return vec![(name.to_owned(), command.clone())];
        }
        let full = |sub: &Command| format!("{name} {}", sub.get_name()).trim().to_owned();
        command.get_subcommands().flat_map(|sub| commands(sub, &full(sub))).collect()
    }

    /// The arguments of a command that are paths, with their roles.
    fn paths<'c>(name: &str, command: &'c Command) -> Vec<(&'c Arg, Role)> {
        let has_paths = |argument: &&Arg| {
            let found = argument.get_value_parser().type_id();
            found == TypeId::of::<PathBuf>() || found == TypeId::of::<args::EncoderArg>()
        };
        let declared = |argument: &'c Arg| {
            let id = argument.get_id();
            let role = role(name, id.as_str());
            (
                argument,
                role.unwrap_or_else(|| panic!("declare `{id}` of `{name}` in `files::role`")),
            )
        };
        command.get_arguments().filter(has_paths).map(declared).collect()
    }

    /// A command line with the required arguments, and those that have a path in `value`.
    fn command_line(
        name: &str,
        command: &Command,
        value: &dyn Fn(&Arg) -> Option<PathBuf>,
    ) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec!["latens".into()];
        line.extend(name.split(' ').map(Into::into));
        // Clap does not tell arguments that are required under conditions.
        line.extend((name == "count").then(|| "--lags=1".into()));
        line.extend((name == "reproduce").then(|| "--data=.".into()));
        let is_positional = |argument: &&Arg| argument.is_positional();
        let options = command.get_arguments().filter(|argument| !argument.is_positional());
        for argument in options.chain(command.get_arguments().filter(is_positional)) {
            let trains = name.starts_with("train ") || ["tag train", "distill"].contains(&name);
            let needed = argument.is_required_set()
                || name == "reproduce" && argument.is_positional()
                || trains && argument.get_id() == "output";
            let value = match value(argument) {
                Some(path) => path.into_os_string(),
                None if !needed => continue,
                None => match argument.get_possible_values().first() {
                    Some(first) => first.get_name().into(),
                    None if argument.get_value_parser().type_id() == TypeId::of::<PathBuf>() => {
                        format!("needed-{}", argument.get_id()).into()
                    }
                    None => "1".into(),
                },
            };
            line.extend(argument.get_long().map(|long| format!("--{long}").into()));
            line.push(value);
        }
        line
    }

    fn check(line: &[OsString]) -> anyhow::Result<()> {
        let program = Cli::command();
        let matches = program.clone().try_get_matches_from(line);
        Files::of(&program, &matches.unwrap_or_else(|error| panic!("{line:?}: {error}"))).check()
    }

    #[test]
    fn no_command_destroys_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "content").unwrap();
        fs::hard_link(at("file"), at("link")).unwrap();
        fs::hard_link(at("file"), at("model.checkpoint")).unwrap();
        let mut n_refused = 0;
        for (name, command) in commands(&Cli::command(), "") {
            let paths = paths(&name, &command);
            let outputs =
                paths.iter().filter(|(_, role)| !matches!(role, Role::Read | Role::Folder));
            for &(output, role) in outputs {
                let others = paths.iter().filter(|&&(other, role)| {
                    other.get_id() != output.get_id() && role != Role::Folder
                });
                for &(other, other_role) in others {
                    let reads = other_role == Role::Read;
                    let problem = if reads { "both input and output" } else { "written twice" };
                    // The checkpoint of the last one is the other file.
                    let names = ["file", "link", "model"];
                    for output_name in &names[..if role == Role::Model { 3 } else { 2 }] {
                        let line = command_line(&name, &command, &|argument| {
                            let is = |this: &Arg| argument.get_id() == this.get_id();
                            is(output).then(|| at(output_name)).or(is(other).then(|| at("file")))
                        });
                        let message = check(&line).unwrap_err().to_string();
                        assert!(message.contains(problem), "{line:?}: {message}");
                        n_refused += 1;
                    }
                }
            }
        }
        assert!(n_refused > 200, "{n_refused}");
        assert_eq!(fs::read(at("file")).unwrap(), b"content");
    }
}
