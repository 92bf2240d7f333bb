use super::element::Element;
use super::error::FileError;
use super::header::{Header, is_timing};
use super::sealed::{ArrayEntry, Content, Parts, Whole, write_sealed};
use crate::params::Valid;
use latens_corpus::Lexicon;
use latens_store::{FlatArray, write_atomically};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

/// Collects the parts of a model and writes them as one file. Arrays are borrowed, not copied.
pub struct ModelWriter<'a> {
    header: Header,
    arrays: Vec<ArrayEntry<'a>>,
}

impl<'a> ModelWriter<'a> {
    /// Creates a writer for a model of this kind, with its parameters.
    ///
    /// # Panics
    /// If the parameters cannot be serialized as JSON.
    pub fn new<P: Serialize>(kind: &str, params: &Valid<P>) -> Self {
        ModelWriter { header: Header::new(kind, to_json(params)), arrays: Vec::new() }
    }

    /// Adds the preprocessing and the vocabulary.
    pub fn lexicon(mut self, lexicon: &'a Lexicon) -> Self {
        let Lexicon { preprocessing, limits, vocab, cleaning } = lexicon;
        self.header.preprocessing = Some(*preprocessing);
        self.header.vocab_limits = Some(*limits);
        self.header.cleaning = (!cleaning.is_empty()).then(|| cleaning.clone());
        let letters: String = vocab.words().collect();
        let ends = vocab.words().scan(0u64, |end, word| {
            *end += word.len() as u64;
            Some(*end)
        });
        let ends: Vec<u8> = ends.flat_map(u64::to_le_bytes).collect();
        self.push::<u8>("vocab.letters", &[letters.len()], letters.into_bytes().into());
        self.push::<u64>("vocab.ends", &[vocab.len()], ends.into());
        self.array("vocab.counts", &[vocab.len()], vocab.counts())
    }

    /// Adds a fact about the training run: `tokens`, `seed` … Measurements of time are left out, see
    /// [`is_timing`](super::is_timing).
    ///
    /// # Panics
    /// If the value cannot be serialized as JSON.
    pub fn fact(mut self, name: &str, value: impl Serialize) -> Self {
        self.add_fact(name, to_json(&value));
        self
    }

    /// Adds facts about the training run, except measurements of time.
    pub fn facts(mut self, facts: &serde_json::Map<String, Value>) -> Self {
        facts.iter().for_each(|(name, fact)| self.add_fact(name, fact.clone()));
        self
    }

    fn add_fact(&mut self, name: &str, value: Value) {
        if !is_timing(name) {
            self.header.training.insert(name.to_owned(), value);
        }
    }

    /// Adds a borrowed row-major array.
    ///
    /// # Panics
    /// If the number of values does not match the shape, or the name is taken.
    pub fn array<T: Element>(mut self, name: &str, shape: &[usize], values: &'a [T]) -> Self {
        self.push::<T>(name, shape, bytemuck::cast_slice(values).into());
        self
    }

    /// Adds an owned row-major array.
    ///
    /// # Panics
    /// If the number of values does not match the shape, or the name is taken.
    pub fn owned_array<T: Element>(mut self, name: &str, shape: &[usize], values: Vec<T>) -> Self {
        self.push_content::<T>(name, shape, Content::Owned(Box::new(Whole(values))));
        self
    }

    /// Adds a vector that may be in a mapped file. Parts that are written leave the memory of this process.
    ///
    /// # Panics
    /// If the name is taken.
    pub fn vector<T: Element>(mut self, name: &str, values: &FlatArray<T>) -> Self {
        let parts = Content::Owned(Box::new(Parts::of(values)));
        self.push_content::<T>(name, &[values.len()], parts);
        self
    }

    fn push<T: Element>(&mut self, name: &str, shape: &[usize], bytes: Cow<'a, [u8]>) {
        self.push_content::<T>(name, shape, Content::Piece(bytes));
    }

    fn push_content<T: Element>(&mut self, name: &str, shape: &[usize], content: Content<'a>) {
        let taken = self.arrays.iter().any(|array| array.name == name);
        assert!(!taken, "duplicate array `{name}`");
        self.arrays.push(ArrayEntry::new::<T>(name, shape, content));
    }

    /// Writes the file to a writer.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        write_sealed(out, &self.header, &self.arrays)
    }

    /// Serializes the file into bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).expect("writing to memory cannot fail");
        bytes
    }

    /// Writes the file atomically, through a temporary file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        Ok(write_atomically(path.as_ref(), |out| self.write_to(out))?)
    }
}

pub(crate) fn to_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("parameters, facts and states can be serialized as JSON")
}
