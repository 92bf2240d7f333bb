//! Text files, compressed or not, cut into blocks of whole records that threads can share.

use crate::error::ReadError;
use crate::format::Format;
use memchr::{memchr, memchr_iter};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files to read, in order, and how. `-` is the standard input; names that end in `.gz` or `.zst`
/// are decompressed.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The files.
    pub paths: Vec<PathBuf>,
    /// How records are written in them; `None` goes by each file's extension.
    pub format: Option<Format>,
    /// What to do with bytes that are no UTF-8.
    pub invalid: Invalid,
    /// Who is told how far reading has come.
    pub watch: Option<ReadWatch>,
}

/// Is called with the number of bytes read so far, of all files and after decompression.
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

impl std::fmt::Debug for ReadWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadWatch")
    }
}

/// What to do with bytes that are no text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Invalid {
    /// Refuse the file, and say where they are.
    #[default]
    Error,
    /// Read U+FFFD, the replacement character, in their place.
    Replace,
}

/// Blocks are about this large: enough that a thread is busy for milliseconds, small enough that
/// some for every thread fit in the cache.
const BLOCK_BYTES: usize = 1 << 20;

impl Inputs {
    /// Files in the default format, chosen by their extensions.
    pub fn new(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Inputs {
        Inputs { paths: paths.into_iter().map(Into::into).collect(), ..Inputs::default() }
    }

    /// Opens the file number `file_idx`.
    pub(crate) fn open(&self, file_idx: usize) -> Result<Blocks, ReadError> {
        let path = &self.paths[file_idx];
        let file = path.display().to_string();
        let format = self.format.clone().unwrap_or_else(|| Format::of_path(path));
        let reader =
            open_input(path).map_err(|source| ReadError::Io { file: file.clone(), source })?;
        Ok(Blocks {
            reader,
            format,
            file,
            invalid: self.invalid,
            rest: Vec::new(),
            line: 1,
            at_start: true,
        })
    }

    /// The files' names in backticks, for messages.
    pub(crate) fn names(&self) -> String {
        let names: Vec<String> =
            self.paths.iter().map(|path| format!("`{}`", path.display())).collect();
        names.join(", ")
    }
}

/// Opens a file to read: `-` is the standard input, and `.gz` and `.zst` are decompressed.
pub fn open_input(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    Ok(match extension.to_str() {
        Some("gz") => Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::new(file))),
        Some("zst") => Box::new(zstd::stream::read::Decoder::new(file)?),
        _ => Box::new(file),
    })
}

/// The blocks of one file.
pub(crate) struct Blocks {
    reader: Box<dyn Read + Send>,
    format: Format,
    file: String,
    invalid: Invalid,
    /// Bytes read that belong to the next block.
    rest: Vec<u8>,
    /// The line the next block begins with.
    line: u64,
    at_start: bool,
}

/// Some whole records of one file.
pub(crate) struct Block {
    bytes: Vec<u8>,
    pub(crate) file: String,
    pub(crate) format: Format,
    pub(crate) first_line: u64,
    invalid: Invalid,
}

impl Blocks {
    /// The next block, `None` at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<Block>, ReadError> {
        let mut bytes = std::mem::take(&mut self.rest);
        let cut = loop {
            let wanted = BLOCK_BYTES.max(bytes.len());
            let searched = bytes.len();
            let read = (&mut self.reader).take(wanted as u64).read_to_end(&mut bytes);
            let n_read =
                read.map_err(|source| ReadError::Io { file: self.file.clone(), source })?;
            if self.at_start {
                self.start_file(&mut bytes)?;
            }
            if n_read < wanted {
                break bytes.len();
            }
            if let Some(end) = self.format.last_record_end(&bytes, searched) {
                break end;
            }
        };
        self.rest = bytes.split_off(cut);
        if bytes.is_empty() {
            return Ok(None);
        }
        let first_line = self.line;
        self.line += memchr_iter(b'\n', &bytes).count() as u64;
        let (file, format) = (self.file.clone(), self.format.clone());
        Ok(Some(Block { bytes, file, format, first_line, invalid: self.invalid }))
    }

    fn start_file(&mut self, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.at_start = false;
        if bytes.is_empty() {
            return Err(ReadError::Empty { file: self.file.clone() });
        }
        // The byte-order mark that some editors write says nothing in UTF-8, and is no word.
        if bytes.starts_with(b"\xEF\xBB\xBF") {
            bytes.drain(..3);
        }
        Ok(())
    }
}

impl Block {
    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The block's text; an error, or replacement characters, where it is none.
    pub(crate) fn text(&self) -> Result<Cow<'_, str>, ReadError> {
        if self.invalid == Invalid::Replace {
            let text = String::from_utf8_lossy(&self.bytes);
            return Ok(if memchr(0, &self.bytes).is_some() {
                Cow::Owned(text.replace('\0', "\u{FFFD}"))
            } else {
                text
            });
        }
        if let Some(at) = memchr(0, &self.bytes) {
            return Err(ReadError::Nul { file: self.file.clone(), line: self.line_at(at) });
        }
        std::str::from_utf8(&self.bytes).map(Cow::Borrowed).map_err(|error| ReadError::NotUtf8 {
            file: self.file.clone(),
            line: self.line_at(error.valid_up_to()),
        })
    }

    fn line_at(&self, byte: usize) -> u64 {
        self.first_line + memchr_iter(b'\n', &self.bytes[..byte]).count() as u64
    }
}
