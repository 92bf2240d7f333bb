//! A folder with one document per file.

use crate::compression::open_input;
use crate::error::ReadError;
use crate::input::inputs::Invalid;
use crate::input::rows::{BLOCK_BYTES, Row, text_of};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The files of a folder and of its subfolders, sorted by path. Hidden files and folders are left out.
pub fn folder_files(folder: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    add_files(folder.as_ref(), &mut files)?;
    files.sort();
    Ok(files)
}

fn add_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // Links to files are followed, but not links to folders, which may form circles.
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            add_files(&path, files)?;
        } else if fs::metadata(&path)?.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads the documents of a folder. The identifier of a document is its path inside the folder, and its
/// label is the name of the subfolder that it is in.
pub(crate) struct FolderReader {
    folder: PathBuf,
    files: std::vec::IntoIter<PathBuf>,
    invalid: Invalid,
    max_line: usize,
}

impl FolderReader {
    pub(crate) fn open(
        folder: &Path,
        invalid: Invalid,
        max_line: usize,
    ) -> Result<FolderReader, ReadError> {
        let file = || folder.display().to_string();
        let files =
            folder_files(folder).map_err(|source| ReadError::Io { file: file(), source })?;
        if files.is_empty() {
            return Err(ReadError::Empty { file: file() });
        }
        Ok(FolderReader { folder: folder.to_owned(), files: files.into_iter(), invalid, max_line })
    }

    /// Reads about one block of documents; none at the end.
    pub(crate) fn rows(&mut self) -> Result<(Vec<Row>, usize), ReadError> {
        let (mut rows, mut n_bytes) = (Vec::new(), 0);
        while n_bytes < BLOCK_BYTES {
            let Some(path) = self.files.next() else { break };
            let row = self.row(&path)?;
            n_bytes += row.text.len();
            rows.push(row);
        }
        Ok((rows, n_bytes))
    }

    fn row(&self, path: &Path) -> Result<Row, ReadError> {
        let (file, limit) = (path.display().to_string(), self.max_line);
        let mut bytes = Vec::new();
        let read = open_input(path)
            .and_then(|input| input.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes));
        read.map_err(|source| ReadError::Io { file: file.clone(), source })?;
        if bytes.len() > limit {
            return Err(ReadError::TooLong { file, line: 1, record: "document", limit });
        }
        if bytes.starts_with(b"\xEF\xBB\xBF") {
            bytes.drain(..3);
        }
        let inside = path.strip_prefix(&self.folder).unwrap_or(path);
        let label = inside.parent().and_then(Path::file_name).unwrap_or_default();
        Ok(Row {
            text: text_of(bytes, &file, 1, self.invalid)?,
            id: inside.to_string_lossy().into_owned(),
            label: label.to_string_lossy().into_owned(),
            kept: Vec::new(),
            line: 1,
        })
    }
}
