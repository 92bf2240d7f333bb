//! Checkpoints: saved trainer states from which training resumes with identical results.

use crate::file::{
    ArrayEntry, ByteRows, CheckpointHeader, Content, Element, ElementType, FileError, Header,
    ModelFile, Whole, to_json, write_sealed,
};
use crate::params::Valid;
use latens_corpus::{Sentences, Vocab};
use latens_store::{FlatArray, write_atomically};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

const KIND: &str = "checkpoint";

/// The state of a training run: a JSON state, arrays, and the parameters and data fingerprint they
/// belong to. Stored in the same format as a model.
pub struct Checkpoint {
    parameters: Value,
    header: CheckpointHeader,
    arrays: BTreeMap<String, StoredArray>,
}

struct StoredArray {
    dtype: ElementType,
    shape: Vec<usize>,
    bytes: Bytes,
}

enum Bytes {
    Memory(Vec<u8>),
    Mapped(FlatArray<u8>),
    Shared(Box<dyn ByteRows>),
}

/// An array that a checkpoint shares with its trainer to avoid copying it.
pub trait SharedRows<T>: Send + Sync {
    /// The row at a zero-based index.
    fn row(&self, row: usize) -> &[T];
}

/// The first rows of a shared array, as bytes.
struct Shared<T, R> {
    n_rows: usize,
    rows: Arc<R>,
    element: PhantomData<fn() -> T>,
}

impl<T: Element, R: SharedRows<T>> ByteRows for Shared<T, R> {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn row(&self, row: usize) -> &[u8] {
        bytemuck::cast_slice(self.rows.row(row))
    }
}

impl StoredArray {
    fn entry(&self, name: &str) -> ArrayEntry<'_> {
        let (name, shape, bytes) = (name.to_owned(), self.shape.clone(), self.bytes.content());
        ArrayEntry { name, dtype: self.dtype, shape, bytes }
    }
}

impl Bytes {
    fn content(&self) -> Content<'_> {
        match self {
            Bytes::Memory(bytes) => Content::Piece(bytes.into()),
            Bytes::Mapped(bytes) => Content::Piece((&**bytes).into()),
            Bytes::Shared(rows) => Content::Rows(&**rows),
        }
    }

    fn to_values<T: Element>(&self) -> Vec<T> {
        match self {
            Bytes::Memory(bytes) => bytemuck::pod_collect_to_vec(bytes),
            Bytes::Mapped(bytes) => bytemuck::pod_collect_to_vec(bytes),
            Bytes::Shared(rows) => {
                let row = |i| bytemuck::pod_collect_to_vec::<u8, T>(rows.row(i));
                (0..rows.n_rows()).flat_map(row).collect()
            }
        }
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameters, header, .. } = self;
        let mut debug = f.debug_struct("Checkpoint");
        debug.field("parameters", parameters).field("header", header).finish_non_exhaustive()
    }
}

/// A checkpoint does not match the parameters, the data or the trainer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The checkpoint belongs to another kind of model.
    #[error("it belongs to a model of kind `{found}`, not `{needed}`")]
    WrongKind {
        /// The expected kind.
        needed: String,
        /// The kind in the checkpoint.
        found: String,
    },
    /// A parameter had a different value.
    #[error("it was created with `{name}` = {then}, but now `{name}` = {now}")]
    OtherParameter {
        /// Name of the parameter.
        name: String,
        /// Its value in the checkpoint, as JSON.
        then: String,
        /// Its value now, as JSON.
        now: String,
    },
    /// The training data differs.
    #[error("it was created from different data")]
    OtherData,
    /// The state cannot be deserialized by this trainer.
    #[error("its state cannot be read")]
    BadState(#[from] serde_json::Error),
    /// An array is missing or has an unexpected type or shape.
    #[error("its array `{name}` is {found}, expected {needed}")]
    WrongArray {
        /// Name of the array.
        name: String,
        /// The expected type and shape.
        needed: String,
        /// The actual type and shape.
        found: String,
    },
    /// The state is inconsistent.
    #[error("it is inconsistent: {problem}")]
    Invalid {
        /// The inconsistency.
        problem: &'static str,
    },
}

impl Checkpoint {
    /// Creates a checkpoint of a model of the kind `of`, with these parameters and the fingerprint of
    /// its data (see [`data_fingerprint`]).
    ///
    /// # Panics
    /// If the state does not survive a round trip through JSON, which cannot represent infinities
    /// and NaN. Store such numbers in an array.
    pub fn new<P: Serialize, S: Serialize + DeserializeOwned>(
        of: &str,
        params: &Valid<P>,
        data_fingerprint: u64,
        state: &S,
    ) -> Checkpoint {
        let state = to_json(state);
        // Detect an unreadable checkpoint now, not when training resumes.
        S::deserialize(&state).expect("the trainer state can be read back from JSON");
        let header = CheckpointHeader { of: of.to_owned(), data_fingerprint, state };
        Checkpoint { parameters: to_json(params), header, arrays: BTreeMap::new() }
    }

    /// Adds a copy of a row-major array.
    ///
    /// # Panics
    /// If the number of values does not match the shape.
    pub fn with_array<T: Element>(self, name: &str, shape: &[usize], values: &[T]) -> Self {
        self.with::<T>(name, shape, Bytes::Memory(bytemuck::cast_slice(values).to_vec()))
    }

    /// Adds an array without copying it.
    ///
    /// # Panics
    /// If the number of values does not match the shape.
    pub fn with_shared_array<T: Element>(
        self,
        name: &str,
        shape: &[usize],
        values: Arc<Vec<T>>,
    ) -> Self {
        self.with::<T>(name, shape, Bytes::Shared(Box::new(Whole(values))))
    }

    /// Adds rows without copying them. They are read when the checkpoint is saved.
    ///
    /// # Panics
    /// If the number of values does not match the shape, or the shape has no dimensions.
    pub fn with_shared_rows<T: Element, R: SharedRows<T> + 'static>(
        self,
        name: &str,
        shape: &[usize],
        rows: Arc<R>,
    ) -> Self {
        let shared = Shared::<T, R> { n_rows: shape[0], rows, element: PhantomData };
        self.with::<T>(name, shape, Bytes::Shared(Box::new(shared)))
    }

    fn with<T: Element>(mut self, name: &str, shape: &[usize], bytes: Bytes) -> Self {
        let ArrayEntry { name, dtype, shape, .. } =
            ArrayEntry::new::<T>(name, shape, bytes.content());
        self.arrays.insert(name, StoredArray { dtype, shape, bytes });
        self
    }

    /// Writes the checkpoint atomically: to a temporary file, which then replaces an older one.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        let mut header = Header::new(KIND, self.parameters.clone());
        header.checkpoint = Some(self.header.clone());
        let arrays: Vec<_> = self.arrays.iter().map(|(name, array)| array.entry(name)).collect();
        Ok(write_atomically(path.as_ref(), |out| write_sealed(out, &header, &arrays))?)
    }

    /// Opens a checkpoint and verifies its checksums.
    pub fn open(path: impl AsRef<Path>) -> Result<Checkpoint, FileError> {
        let file = ModelFile::open(path)?;
        file.expect_kind(KIND)?;
        let header = file.header();
        let parameters = header.parameters.clone();
        let header = header.checkpoint.clone();
        let header = header.ok_or_else(|| file.invalid("the checkpoint has no state"))?;
        let stored = |(name, dtype, shape, bytes): (&str, ElementType, &[usize], FlatArray<u8>)| {
            let (shape, bytes) = (shape.to_vec(), Bytes::Mapped(bytes));
            (name.to_owned(), StoredArray { dtype, shape, bytes })
        };
        let arrays = file.arrays().map(stored).collect();
        Ok(Checkpoint { parameters, header, arrays })
    }

    /// The kind of model being trained.
    pub fn of(&self) -> &str {
        &self.header.of
    }

    /// Checks that training can resume with these parameters on this data. Parameters named in
    /// `growable`, such as the number of iterations, may differ.
    pub fn check_fits<P: Serialize>(
        &self,
        of: &str,
        params: &Valid<P>,
        data_fingerprint: u64,
        growable: &[&str],
    ) -> Result<(), CheckpointError> {
        if self.header.of != of {
            let (needed, found) = (of.to_owned(), self.header.of.clone());
            return Err(CheckpointError::WrongKind { needed, found });
        }
        check_same(&self.parameters, &to_json(params), growable)?;
        if self.header.data_fingerprint != data_fingerprint {
            return Err(CheckpointError::OtherData);
        }
        Ok(())
    }

    /// Deserializes the trainer state.
    pub fn state<S: DeserializeOwned>(&self) -> Result<S, CheckpointError> {
        Ok(S::deserialize(&self.header.state)?)
    }

    /// Returns a copy of the array `name`, which must have this type and shape.
    pub fn array<T: Element>(
        &self,
        name: &str,
        shape: &[usize],
    ) -> Result<Vec<T>, CheckpointError> {
        let array = self.arrays.get(name);
        match array {
            Some(array) if array.dtype == T::DTYPE && array.shape == shape => {
                Ok(array.bytes.to_values())
            }
            _ => Err(CheckpointError::WrongArray {
                name: name.to_owned(),
                needed: format!("{} {shape:?}", T::DTYPE),
                found: array.map_or("missing".to_owned(), |array| {
                    format!("{} {:?}", array.dtype, array.shape)
                }),
            }),
        }
    }
}

/// Compares the fields of two parameter sets, serialized as JSON objects.
fn check_same(then: &Value, now: &Value, growable: &[&str]) -> Result<(), CheckpointError> {
    let names = |parameters: &Value| -> BTreeSet<String> {
        parameters.as_object().into_iter().flat_map(|all| all.keys().cloned()).collect()
    };
    for name in names(then).union(&names(now)) {
        let (then, now) = (&then[name], &now[name]);
        if then != now && !growable.contains(&name.as_str()) {
            let (then, now) = (then.to_string(), now.to_string());
            return Err(CheckpointError::OtherParameter { name: name.clone(), then, now });
        }
    }
    Ok(())
}

/// Hashes a sequence of numbers.
pub fn fingerprint(numbers: impl IntoIterator<Item = u32>) -> u64 {
    let mut hash = Xxh3::new();
    numbers.into_iter().for_each(|number| hash.update(&number.to_le_bytes()));
    hash.digest()
}

/// Hashes a text: its vocabulary, sentences and file boundaries.
pub fn data_fingerprint(vocab: &Vocab, sentences: &Sentences) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&vocab.fingerprint().to_le_bytes());
    hash.update(bytemuck::cast_slice(sentences.tokens()));
    hash.update(bytemuck::cast_slice(sentences.segment_bounds()));
    hash.digest()
}
