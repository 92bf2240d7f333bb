use crate::input::columns::Columns;
use crate::input::format::Format;
use crate::token_ids::names::TokenNames;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Files to read, in order, and how to read them.
///
/// The path `-` is the standard input. Files whose names end in `.gz` or `.zst` are decompressed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inputs {
    /// Paths of the files.
    pub paths: Vec<PathBuf>,
    /// Format of all files; `None` infers it from the extension of each file.
    pub format: Option<Format>,
    /// Columns of tables and keys of JSON objects.
    pub columns: Columns,
    /// Names of the tokens of [`Format::Ids`].
    pub token_names: Option<TokenNames>,
    /// Whether a path may be a folder, in which every file is one document. Default: `false`.
    pub folders: bool,
    /// How to handle bytes that are not valid text.
    pub invalid: Invalid,
    /// Maximum length of a record in bytes: of a line, including its line break, or of a sentence in a
    /// format with one token per line. A longer record is an error, so that text without line breaks
    /// cannot exhaust memory. Default: [`DEFAULT_MAX_LINE`].
    pub max_line: usize,
    /// Callback that reports progress.
    pub watch: Option<ReadWatch>,
}

/// Default of [`Inputs::max_line`]: 256 MiB.
pub const DEFAULT_MAX_LINE: usize = 256 << 20;

impl Default for Inputs {
    fn default() -> Inputs {
        Inputs {
            paths: Vec::new(),
            format: None,
            columns: Columns::default(),
            token_names: None,
            folders: false,
            invalid: Invalid::default(),
            max_line: DEFAULT_MAX_LINE,
            watch: None,
        }
    }
}

impl Inputs {
    /// Files whose formats are inferred from their extensions.
    pub fn new(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Inputs {
        Inputs { paths: paths.into_iter().map(Into::into).collect(), ..Inputs::default() }
    }

    /// Sets [`format`](field@Self::format).
    #[must_use]
    pub fn format(self, format: impl Into<Option<Format>>) -> Inputs {
        Inputs { format: format.into(), ..self }
    }

    /// Sets [`columns`](field@Self::columns).
    #[must_use]
    pub fn columns(self, columns: Columns) -> Inputs {
        Inputs { columns, ..self }
    }

    /// Sets [`token_names`](field@Self::token_names).
    #[must_use]
    pub fn token_names(self, token_names: impl Into<Option<TokenNames>>) -> Inputs {
        Inputs { token_names: token_names.into(), ..self }
    }

    /// Sets [`folders`](field@Self::folders).
    #[must_use]
    pub fn folders(self, folders: bool) -> Inputs {
        Inputs { folders, ..self }
    }

    /// Sets [`invalid`](field@Self::invalid).
    #[must_use]
    pub fn invalid(self, invalid: Invalid) -> Inputs {
        Inputs { invalid, ..self }
    }

    /// Sets [`max_line`](field@Self::max_line).
    #[must_use]
    pub fn max_line(self, max_line: usize) -> Inputs {
        Inputs { max_line, ..self }
    }

    /// Sets [`watch`](field@Self::watch).
    #[must_use]
    pub fn watch(self, watch: impl Into<Option<ReadWatch>>) -> Inputs {
        Inputs { watch: watch.into(), ..self }
    }
}

/// How to handle bytes that are not UTF-8, and NUL bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Invalid {
    /// Fail with the line of the first such byte.
    #[default]
    Error,
    /// Replace them with U+FFFD, the replacement character.
    Replace,
}

/// Callback that receives the number of bytes read so far, over all files and after decompression.
#[derive(Clone)]
pub struct ReadWatch(Arc<dyn Fn(u64) + Send + Sync>);

impl ReadWatch {
    /// Calls `watch` every few megabytes.
    pub fn new(watch: impl Fn(u64) + Send + Sync + 'static) -> ReadWatch {
        ReadWatch(Arc::new(watch))
    }

    pub(crate) fn report(&self, n_bytes: u64) {
        (self.0)(n_bytes);
    }
}

impl fmt::Debug for ReadWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadWatch")
    }
}
