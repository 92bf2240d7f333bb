use super::contents::{Contents, Extent};
use super::element::{Element, ElementType};
use super::error::FileError;
use super::header::Header;
use super::sealed::check_data;
use crate::params::{Params, Valid};
use latens_corpus::{Lexicon, Preprocessing, Vocab, VocabLimits};
use latens_store::{FlatArray, MappedFile, StorageError, map_bytes, map_file};
use serde::de::DeserializeOwned;
use std::fmt;
use std::path::{Path, PathBuf};

/// An open model file. The file is memory-mapped, and arrays are not copied.
pub struct ModelFile {
    path: PathBuf,
    map: MappedFile,
    contents: Contents,
}

impl fmt::Debug for ModelFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, header) = (&self.path, self.header());
        f.debug_struct("ModelFile")
            .field("path", path)
            .field("header", header)
            .finish_non_exhaustive()
    }
}

impl ModelFile {
    /// Opens a file and verifies its checksums.
    pub fn open(path: impl AsRef<Path>) -> Result<ModelFile, FileError> {
        let path = path.as_ref();
        let map = map_file(path)?;
        let contents = Contents::read(&map, path)?;
        check_data(&map[contents.data.clone()], &contents.data_checksum, path)?;
        Ok(ModelFile { path: path.to_owned(), map, contents })
    }

    /// Opens the bytes of a model file, such as those of a pickled model, and verifies their checksums. Messages call
    /// the file `<bytes>`.
    pub fn from_bytes(bytes: &[u8]) -> Result<ModelFile, FileError> {
        let path = PathBuf::from("<bytes>");
        let map = map_bytes(bytes).map_err(StorageError::new("read", &path))?;
        let contents = Contents::read(&map, &path)?;
        check_data(&map[contents.data.clone()], &contents.data_checksum, &path)?;
        Ok(ModelFile { path, map, contents })
    }

    /// Opens a model file embedded in the first `n_bytes` of an array of this file. It is verified like any other;
    /// error messages name the enclosing file.
    pub fn part(&self, name: &str, n_bytes: usize) -> Result<ModelFile, FileError> {
        let array = self.extent(name)?.range.clone();
        let begin = array.start;
        // The embedded arrays are aligned only if the embedded file is.
        let is_aligned = begin.is_multiple_of(align_of::<u64>());
        if n_bytes > array.len() || !is_aligned {
            return Err(
                self.invalid(format!("the array `{name}` is too short or misaligned for a model"))
            );
        }
        let bytes = &self.map[begin..begin + n_bytes];
        let mut contents = Contents::read(bytes, &self.path)?;
        check_data(&bytes[contents.data.clone()], &contents.data_checksum, &self.path)?;
        for extent in contents.arrays.values_mut() {
            extent.range = extent.range.start + begin..extent.range.end + begin;
        }
        contents.data = contents.data.start + begin..contents.data.end + begin;
        Ok(ModelFile { path: self.path.clone(), map: self.map.clone(), contents })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header of the file.
    pub fn header(&self) -> &Header {
        &self.contents.header
    }

    /// The kind of model: `ngram`, `hmm` …
    pub fn kind(&self) -> &str {
        &self.header().kind
    }

    /// Returns an error unless the model is of this kind.
    pub fn expect_kind(&self, needed: &str) -> Result<(), FileError> {
        if self.kind() == needed {
            return Ok(());
        }
        let (needed, found) = (needed.to_owned(), self.kind().to_owned());
        Err(FileError::WrongKind { path: self.path.clone(), needed, found })
    }

    /// Reads and validates the parameters of the model.
    pub fn parameters<P: Params + DeserializeOwned>(&self) -> Result<Valid<P>, FileError> {
        let path = || self.path.clone();
        P::deserialize(&self.header().parameters)
            .map_err(|source| FileError::BadHeader { path: path(), source })?
            .validate()
            .map_err(|source| FileError::Params { path: path(), source })
    }

    /// Reads the preprocessing and the vocabulary.
    pub fn lexicon(&self) -> Result<Lexicon, FileError> {
        let lexicon = Lexicon::new(self.preprocessing()?, self.vocab_limits()?, self.vocab()?);
        Ok(Lexicon { cleaning: self.header().cleaning.clone().unwrap_or_default(), ..lexicon })
    }

    /// The preprocessing of the model.
    pub fn preprocessing(&self) -> Result<Preprocessing, FileError> {
        self.header().preprocessing.ok_or_else(|| self.invalid("the header has no preprocessing"))
    }

    /// The limits on the vocabulary.
    pub fn vocab_limits(&self) -> Result<VocabLimits, FileError> {
        self.header()
            .vocab_limits
            .ok_or_else(|| self.invalid("the header has no vocabulary limits"))
    }

    /// Reads the vocabulary.
    pub fn vocab(&self) -> Result<Vocab, FileError> {
        let letters = self.vector::<u8>("vocab.letters")?;
        let ends = self.vector::<u64>("vocab.ends")?;
        let counts = self.vector::<u64>("vocab.counts")?;
        Vocab::from_arrays(&letters, &ends, counts.to_vec())
            .map_err(|source| FileError::Vocab { path: self.path.clone(), source })
    }

    /// Whether the file has an array of this name.
    pub fn has_array(&self, name: &str) -> bool {
        self.shape(name).is_ok()
    }

    /// The shape of an array.
    pub fn shape(&self, name: &str) -> Result<&[usize], FileError> {
        Ok(&self.extent(name)?.shape)
    }

    /// Returns the array `name`, which must have this type and shape.
    pub fn array<T: Element>(
        &self,
        name: &str,
        shape: &[usize],
    ) -> Result<FlatArray<T>, FileError> {
        let extent = self.extent(name)?;
        if extent.dtype != T::DTYPE || extent.shape != shape {
            return Err(self.wrong_array(name, extent, format!("{} {shape:?}", T::DTYPE)));
        }
        let array = FlatArray::mapped(self.map.clone(), extent.range.clone());
        // Only files written by other programs can have misaligned arrays.
        array.ok_or_else(|| self.invalid(format!("the array `{name}` is not aligned")))
    }

    /// Returns the array `name`, which must have this type and shape and only finite values.
    pub fn finite_array<T: Element>(
        &self,
        name: &str,
        shape: &[usize],
    ) -> Result<FlatArray<T>, FileError> {
        let array = self.array::<T>(name, shape)?;
        if array.iter().all(T::is_finite) {
            return Ok(array);
        }
        Err(FileError::NotFinite { path: self.path.clone(), name: name.to_owned() })
    }

    /// Returns the one-dimensional array `name`, which must have this type.
    pub fn vector<T: Element>(&self, name: &str) -> Result<FlatArray<T>, FileError> {
        let extent = self.extent(name)?;
        let [length] = extent.shape[..] else {
            return Err(self.wrong_array(name, extent, format!("{} [any length]", T::DTYPE)));
        };
        self.array(name, &[length])
    }

    /// An error for inconsistent contents. `problem` describes them: "its rows do not sum to one".
    pub fn invalid(&self, problem: impl ToString) -> FileError {
        FileError::Invalid { path: self.path.clone(), problem: problem.to_string() }
    }

    /// Iterates over the arrays as bytes, sorted by name.
    pub(crate) fn arrays(
        &self,
    ) -> impl Iterator<Item = (&str, ElementType, &[usize], FlatArray<u8>)> {
        self.contents.arrays.iter().map(|(name, Extent { dtype, shape, range })| {
            let bytes = FlatArray::mapped(self.map.clone(), range.clone());
            (name.as_str(), *dtype, &shape[..], bytes.expect("the header was checked"))
        })
    }

    fn extent(&self, name: &str) -> Result<&Extent, FileError> {
        let missing = || FileError::MissingArray { path: self.path.clone(), name: name.to_owned() };
        self.contents.arrays.get(name).ok_or_else(missing)
    }

    fn wrong_array(&self, name: &str, extent: &Extent, needed: String) -> FileError {
        let found = format!("{} {:?}", extent.dtype, extent.shape);
        FileError::WrongArray { path: self.path.clone(), name: name.to_owned(), needed, found }
    }
}
