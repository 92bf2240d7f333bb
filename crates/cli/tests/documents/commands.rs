//! The program's own argument parser accepts every command in the documents.
//!
//! - A command of a fenced `sh` block must parse as it stands.
//! - A code span in prose may be incomplete, as in "`latens encode` writes features". Its subcommands, flags and values
//!   must exist, but required arguments may be missing: it is parsed with `--help` appended, which clap checks last.
//!   A span with a placeholder in capital letters (`MODEL`, `N`) or with an ellipsis is cut before it.

use crate::markdown::{Part, code_spans, parts};
use crate::{assert_none, documents, shown};
use std::collections::BTreeMap;
use std::process::Command;

/// The arguments of each `latens` command in the lines of a shell script.
fn shell_commands(lines: &[&str]) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut logical = String::new();
    for line in lines {
        if let Some(start) = line.strip_suffix('\\') {
            logical.push_str(start);
            continue;
        }
        logical.push_str(line);
        for words in simple_commands(&logical) {
            commands.extend(latens_arguments(&words));
        }
        logical.clear();
    }
    commands
}

/// Splits a line into simple commands and their words: at blanks outside of quotes, and at `;`, `&`, `|`. A comment and
/// the targets of redirections are left out.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let commands = with_redirections(line).into_iter().map(without_redirections);
    commands.filter(|words| !words.is_empty()).collect()
}

/// The same, but keeps redirections: `>` and `<` are words.
pub(crate) fn with_redirections(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | ';' | '&' | '|' | '>' | '<') => {
                let command = commands.last_mut().expect("there is one at least");
                // The `2` of `2>` is a file descriptor.
                word.take_if(|word| c == '>' && matches!(word.as_str(), "1" | "2"));
                command.extend(word.take());
                match c {
                    '>' | '<' => command.push(c.to_string()),
                    ';' | '&' | '|' => commands.push(Vec::new()),
                    _ => {}
                }
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    commands
}

fn without_redirections(words: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == ">" || word == "<" {
            // `>>` is two of them.
            while words.next().is_some_and(|target| target == ">") {}
        } else {
            kept.push(word);
        }
    }
    kept
}

/// The arguments, if the words are a call of the program. Variables become 1, which is a number and a file name.
fn latens_arguments(words: &[String]) -> Option<Vec<String>> {
    let is_prefix = |word: &&String| {
        let is_assignment = word.split_once('=').is_some_and(|(name, _)| !name.starts_with('-'));
        matches!(word.as_str(), "do" | "then" | "time" | "!" | "$") || is_assignment
    };
    let n_prefix = words.iter().take_while(is_prefix).count();
    let words = &words[n_prefix..];
    let cargo_run = words.iter().position(|word| word == "--").filter(|_| {
        let is_other =
            words.iter().any(|word| word == "-p" || word == "--package" || word == "--example");
        words.starts_with(&["cargo".to_owned(), "run".to_owned()]) && !is_other
    });
    let start = match words.first()?.rsplit('/').next()? {
        "latens" => 1,
        _ => cargo_run? + 1,
    };
    let value = |word: &String| if word.starts_with('$') { "1".to_owned() } else { word.clone() };
    Some(words[start..].iter().map(value).collect())
}

/// The arguments of a code span of prose, with `--help` appended; `None` if it is not a command.
fn span_command(span: &str) -> Option<Vec<String>> {
    let words = simple_commands(span).into_iter().next()?;
    let mut arguments = latens_arguments(&words).filter(|_| span.starts_with("latens "))?;
    let is_placeholder = |word: &String| {
        let has_letter = word.chars().any(|c| c.is_ascii_uppercase());
        let is_capital = has_letter && word.chars().all(|c| !c.is_ascii_lowercase());
        is_capital || word.contains('…') || word.contains("...")
    };
    if let Some(cut) = arguments.iter().position(is_placeholder) {
        arguments.truncate(cut);
        arguments.pop_if(|last| last.starts_with('-'));
    }
    // `latens help train hmm` prints help by itself, and takes no flags.
    if arguments.first().is_none_or(|first| first != "help") {
        arguments.push("--help".to_owned());
    }
    Some(arguments)
}

/// What the parser says about arguments that it does not accept.
fn rejection(arguments: &[String]) -> Option<String> {
    let program = env!("CARGO_BIN_EXE_latens");
    let output = Command::new(program)
        .args(arguments)
        .env("LATENS_PARSE_ONLY", "1")
        .output()
        .expect("the program starts");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn every_command_in_the_documents_parses() {
    // The same command is on many pages: each is parsed once.
    let mut commands: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for (path, text) in documents() {
        for part in parts(&text) {
            let found = match part {
                Part::Block { language: "sh", lines } => shell_commands(&lines),
                Part::Block { .. } => Vec::new(),
                Part::Prose(lines) => {
                    code_spans(&lines).iter().filter_map(|span| span_command(span)).collect()
                }
            };
            commands.extend(found.into_iter().map(|arguments| (arguments, shown(&path))));
        }
    }
    if cfg!(not(feature = "reproduce")) {
        commands.retain(|arguments, _| arguments.first().is_none_or(|first| first != "reproduce"));
    }
    assert!(commands.len() > 100, "only {} commands were found", commands.len());
    let complaint = |(arguments, path): (&Vec<String>, &String)| {
        rejection(arguments)
            .map(|why| format!("{path}: `latens {}`\n  {}", arguments.join(" "), why.trim()))
    };
    assert_none(&commands.iter().filter_map(complaint).collect::<Vec<_>>());
}

#[test]
fn the_parser_rejects_unknown_flags_and_values() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rejection(&words("train ngram a.txt --order 3 -o a.ngram")), None);
    assert!(rejection(&words("train ngram a.txt --no-such-flag 3 -o a.ngram")).is_some());
    assert!(rejection(&words("train ngram a.txt --order three --help")).is_some());
    assert!(rejection(&words("no-such-command --help")).is_some());
}

#[test]
fn shell_syntax_around_commands_is_left_out() {
    let script = [
        "latens vocab a.txt \\",
        "-o a.vocab   # a comment",
        "cargo run --release -- demo",
        "cargo run -p xtask -- docs",
        "latens encode a.hmm 'b c.txt' | head > d && latens sample a.hmm -n 5 2>> log",
        "for s in 1 2; do latens demo --seed $s; done",
    ];
    let expected: [&[&str]; 5] = [
        &["vocab", "a.txt", "-o", "a.vocab"],
        &["demo"],
        &["encode", "a.hmm", "b c.txt"],
        &["sample", "a.hmm", "-n", "5"],
        &["demo", "--seed", "1"],
    ];
    assert_eq!(shell_commands(&script), expected);
}

#[test]
fn placeholders_in_prose_end_a_command() {
    assert_eq!(span_command("latens encode --features KIND").unwrap(), ["encode", "--help"]);
    assert_eq!(span_command("latens train … -o x").unwrap(), ["train", "--help"]);
    assert_eq!(span_command("latens help COMMAND").unwrap(), ["help"]);
    assert_eq!(span_command("latens tag train").unwrap(), ["tag", "train", "--help"]);
    assert_eq!(span_command("latens::open"), None);
}
