//! How a failure is told: what happened, why, and what to do about it.

use anyhow::Error;
use latens::corpus::{MissingColumn, ReadError};
use latens::hmm::TagsError;
use latens::model::compat::VectorsError;
use latens::model::file::FileError;
use latens::model::{FitError, TagError};
use latens::store::StorageError;
use latens::tasks::tagging::{EvaluateError, TaggerError};
use std::fmt::Write;
use std::io;

/// A failure that comes with advice.
#[derive(Debug)]
pub(crate) struct Hinted {
    message: String,
    hint: String,
}

/// An error with a hint, for `return Err(...)`.
pub(crate) fn hinted(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(Hinted { message: message.into(), hint: hint.into() })
}

impl std::fmt::Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}

/// The whole message: the failure, its causes a line each, then a hint.
pub(crate) fn message(error: &Error) -> String {
    let mut text = format!("error: {error}\n");
    let mut last = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // A transparent error says the same twice.
        if cause != last {
            writeln!(text, "  Cause: {cause}").expect("a string takes all");
        }
        last = cause;
    }
    if let Some(hint) = error.chain().find_map(hint) {
        writeln!(text, "\nhint: {hint}").expect("a string takes all");
    }
    text
}

fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(hinted) = error.downcast_ref::<Hinted>() {
        return Some(hinted.hint.clone());
    }
    if let Some(error) = error.downcast_ref::<ReadError>() {
        return match error {
            ReadError::NotUtf8 { .. } => Some(
                "convert it, e.g., `iconv -f latin1 -t utf8`, or use `--invalid replace`".into(),
            ),
            ReadError::Nul { .. } => Some(
                "UTF-16 is converted with `iconv -f utf16 -t utf8`; `--invalid replace` reads on"
                    .into(),
            ),
            ReadError::Line { .. } => {
                Some("`--format` and `--fields` say how the file is written".into())
            }
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<VectorsError>() {
        return vectors_hint(error);
    }
    if let Some(hint) = tagging_hint(error) {
        return Some(hint);
    }
    if let Some(error) = error.downcast_ref::<FileError>() {
        return match error {
            FileError::NotLatens { .. } => Some(
                "models are made with `latens train`, or from other formats with `latens import`"
                    .into(),
            ),
            FileError::Truncated { .. } | FileError::Corrupt { .. } => {
                Some("copy the file again, or train the model again".into())
            }
            _ => None,
        };
    }
    if let Some(StorageError { source, .. }) = error.downcast_ref::<StorageError>() {
        return io_hint(source.kind());
    }
    if let Some(FitError::Interrupted) = error.downcast_ref::<FitError>() {
        return None;
    }
    error.downcast_ref::<io::Error>().and_then(|error| io_hint(error.kind()))
}

fn vectors_hint(error: &VectorsError) -> Option<String> {
    let hint = match error {
        VectorsError::NoHeader { .. } => "`--from glove` reads vectors without such a line",
        VectorsError::Entry { unit: "line", number: 2, problem }
            if problem.contains("numbers expected") =>
        {
            "if line 1 has two numbers and no word, it is `--from word2vec`"
        }
        VectorsError::Blank { .. } => "`--to glove` or `--to npy` has a place for it",
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
        let hint = "give it text in columns like those of its training text, or train it without `--pos-column`";
        return Some(hint.into());
    }
    if tagging.is_some() {
        let hint = "train the tagger with `--min-count 2`, so that it learns what unknown words do, \
                    or with `--word-vectors chars`, so that it reads them";
        return Some(hint.into());
    }
    is_column.then(|| "columns are counted from 1, the word's own among them".into())
}

fn io_hint(kind: io::ErrorKind) -> Option<String> {
    let hint = match kind {
        io::ErrorKind::StorageFull => "free some space, or choose another place with `-o`",
        io::ErrorKind::ReadOnlyFilesystem => "choose another place with `-o`",
        io::ErrorKind::IsADirectory => "name a file in it",
        _ => return None,
    };
    Some(hint.into())
}

/// The standard output could not be written. Only results go there, so files are whole.
#[derive(Debug)]
pub(crate) struct StdoutError(pub(crate) io::Error);

impl std::fmt::Display for StdoutError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cannot write to the standard output")
    }
}

impl std::error::Error for StdoutError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Whether the reader of the standard output went away, which is no failure of ours. A broken pipe
/// elsewhere is one: a model that went into it is lost.
pub(crate) fn is_closed_stdout(error: &Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<StdoutError>());
    causes.any(|StdoutError(error)| error.kind() == io::ErrorKind::BrokenPipe)
}
