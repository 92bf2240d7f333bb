//! Error messages: what happened, the causes, and a hint.

use crate::terminal::escape;
use anyhow::Error;
use latens::control::ControlError;
use latens::corpus::{MissingColumn, ReadError};
use latens::hmm::TagsError;
use latens::model::compat::VectorsError;
use latens::model::file::FileError;
use latens::model::{FitError, TagError};
use latens::store::StorageError;
use latens::tasks::tagging::{EvaluateError, TaggerError};
use std::borrow::Cow;
use std::fmt::Write;
use std::io;

/// An error with a hint.
#[derive(Debug)]
pub(crate) struct Hinted {
    message: String,
    hint: String,
}

/// Creates an error with a hint.
pub(crate) fn hinted(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(Hinted { message: message.into(), hint: hint.into() })
}

impl std::fmt::Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}

/// The complete message: the error, one line per cause, and a hint.
pub(crate) fn message(error: &Error) -> String {
    let mut text = format!("error: {}\n", line(&error.to_string()));
    let mut last = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // A transparent error repeats the message of its cause.
        if cause != last {
            writeln!(text, "  Cause: {}", line(&cause)).expect("writing to a string succeeds");
        }
        last = cause;
    }
    if let Some(hint) = error.chain().find_map(hint) {
        writeln!(text, "\nhint: {}", line(&hint)).expect("writing to a string succeeds");
    }
    text
}

/// One line of a message. Words and names of files in it may be of any length and contain line breaks.
fn line(text: &str) -> Cow<'_, str> {
    const MAX_CHARS: usize = 4000;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", escape(&text[..end])).into(),
        None => escape(text),
    }
}

fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(hinted) = error.downcast_ref::<Hinted>() {
        return Some(hinted.hint.clone());
    }
    if let Some(error) = error.downcast_ref::<ReadError>() {
        return match error {
            ReadError::NotUtf8 { .. } => Some(
                "convert the file, e.g., with `iconv -f latin1 -t utf8`, or pass `--invalid replace`".into(),
            ),
            ReadError::Nul { .. } => Some(
                "if the file is UTF-16, convert it with `iconv -f utf16 -t utf8`; otherwise pass `--invalid replace`"
                    .into(),
            ),
            ReadError::TooLong { .. } => Some(
                "check that the text has line breaks and the right `--format`; `--max-line` raises the limit".into(),
            ),
            ReadError::Line { problem, .. } if problem.contains("no column `") => {
                Some("name the column of the text with `--text-column`".into())
            }
            ReadError::Line { problem, .. } if problem.contains("no header") => Some(
                "name the fields, e.g., with `--fields label,split,text`, or add a header to the file".into(),
            ),
            ReadError::Line { .. } => {
                Some("set the format of the file with `--format` and `--fields`".into())
            }
            ReadError::NoTokenNames { .. } => {
                Some("pass the `tokenizer.json` of the tokenizer with `--tokenizer`".into())
            }
            ReadError::NoWordsLeft { .. } => Some(
                "`--keep-all` keeps all words; `--stop-words`, `--min-df` and `--max-df` change what is left out"
                    .into(),
            ),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<VectorsError>() {
        return vectors_hint(error);
    }
    if let Some(hint) = tagging_hint(error) {
        return Some(hint);
    }
    if let Some(error) = error.downcast_ref::<ControlError>() {
        return control_hint(error);
    }
    if let Some(error) = error.downcast_ref::<FileError>() {
        return match error {
            FileError::NotLatens { .. } => Some(
                "train a model with `latens train`, or convert one with `latens import`".into(),
            ),
            FileError::Truncated { .. } | FileError::Corrupt { .. } => {
                Some("copy the file again, or retrain the model".into())
            }
            _ => None,
        };
    }
    if let Some(StorageError { source, .. }) = error.downcast_ref::<StorageError>() {
        return io_hint(source.kind());
    }
    match error.downcast_ref::<FitError>() {
        Some(FitError::Interrupted) => return None,
        Some(FitError::TooLittleMemory { lower, .. }) => return Some(memory_hint(*lower)),
        Some(FitError::Unscorable { .. }) => {
            let hint = "`--min-count 2` replaces words that occur once with `<unk>`, so that unknown words are possible; \
                        Baum–Welch needs a `--prior` above 0";
            return Some(hint.to_owned());
        }
        _ => {}
    }
    error.downcast_ref::<io::Error>().and_then(|error| io_hint(error.kind()))
}

fn memory_hint(parameter: Option<&str>) -> String {
    let change = match parameter {
        Some("min_count") => "raise `--min-count`".to_owned(),
        Some("memory") => "set or lower `--memory`".to_owned(),
        Some("pairs") => "use `--pairs observed`".to_owned(),
        Some(name) => format!("lower `--{}`", name.replace('_', "-")),
        None => "use less text".to_owned(),
    };
    format!("{change}; `--dry-run` lists what needs memory, and `--force` trains anyway")
}

fn control_hint(error: &ControlError) -> Option<String> {
    let hint = match error {
        ControlError::UnknownWord { .. } => {
            "check the spelling; a model can only generate words of its vocabulary"
        }
        ControlError::TooLarge { .. } => {
            "use fewer or shorter phrases, or `--in-order`, which needs fewer states; `--max-states` raises the limit"
        }
        ControlError::Contradiction { .. } => "drop or change one of them",
        ControlError::TooShort { needed, .. } => {
            return Some(format!("raise `--max-words` to {needed} or more"));
        }
        ControlError::Lengths { .. } => "raise `--max-words`, or lower `--min-words`",
        ControlError::ImpossiblePrefix { .. } | ControlError::ImpossibleConstraint { .. } => {
            "train the guide on more text, or with `--prior 0.01`, which leaves no probability at zero"
        }
        ControlError::ImpossibleModel { .. } => {
            "use a language model that gives all words a positive probability"
        }
        ControlError::Vocabulary { .. } => {
            "train the guide on the text of the model, with the same `--min-count`, `--max-vocab` and preprocessing"
        }
        ControlError::TooLittleMemory { .. } => {
            "lower `--max-words`, or use fewer phrases; `--dry-run` lists what needs memory"
        }
        _ => return None,
    };
    Some(hint.into())
}

fn vectors_hint(error: &VectorsError) -> Option<String> {
    let hint = match error {
        VectorsError::NoHeader { .. } => "`--from glove` reads vectors without a header line",
        VectorsError::Entry { unit: "line", number: 2, problem }
            if problem.contains("numbers expected") =>
        {
            "if line 1 is a header with two numbers, use `--from word2vec`"
        }
        VectorsError::Blank { .. } => "use `--to glove` or `--to npy`",
        _ => return None,
    };
    Some(hint.into())
}

fn tagging_hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let evaluating = error.downcast_ref::<EvaluateError>();
    let tagging = match evaluating {
        Some(EvaluateError::Tag(error)) => Some(error),
        _ => error.downcast_ref::<TagError>(),
    };
    let is_column = error.is::<MissingColumn>()
        || matches!(evaluating, Some(EvaluateError::Column(_)))
        || matches!(error.downcast_ref(), Some(TagsError::Column(_)))
        || matches!(error.downcast_ref(), Some(TaggerError::Column(_)));
    if let Some(TagError::NoPartsOfSpeech { .. }) = tagging {
        let hint = "use text with the columns of the training text, or train the tagger without `--pos-column`";
        return Some(hint.into());
    }
    if tagging.is_some() {
        let hint = "train the tagger with `--min-count 2`, which replaces words that occur once with `<unk>`, \
                    or with `--word-vectors chars`, which models unknown words by their characters";
        return Some(hint.into());
    }
    is_column.then(|| "columns are counted from 1, and the word is in column 1".into())
}

fn io_hint(kind: io::ErrorKind) -> Option<String> {
    let hint = match kind {
        io::ErrorKind::StorageFull => "free some space, or choose another path with `-o`",
        io::ErrorKind::ReadOnlyFilesystem => "choose another path with `-o`",
        io::ErrorKind::IsADirectory => "choose a file in this directory",
        _ => return None,
    };
    Some(hint.into())
}

/// Standard output could not be written. Files are complete, because only results are written there.
#[derive(Debug)]
pub(crate) struct StdoutError(pub(crate) io::Error);

impl std::fmt::Display for StdoutError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cannot write to standard output")
    }
}

impl std::error::Error for StdoutError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Whether the reader of standard output closed it, which is not an error. A broken pipe elsewhere is one, because a model
/// that was written to it is lost.
pub(crate) fn is_closed_stdout(error: &Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<StdoutError>());
    causes.any(|StdoutError(error)| error.kind() == io::ErrorKind::BrokenPipe)
}
