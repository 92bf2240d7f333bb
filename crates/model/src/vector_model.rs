//! Imported word vectors as a model.

use crate::features::FeatureRows;
use crate::file::{FileError, ModelFile, ModelWriter};
use crate::model::Model;
use crate::params::{ParamError, Params};
use crate::roles::TokenEncoder;
use crate::words::WordVectors;
use latens_corpus::{Lexicon, WordId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::path::Path;

/// Word vectors from another program, with their vocabulary and preprocessing.
#[derive(Clone, Debug)]
pub struct Vectors {
    lexicon: Lexicon,
    vectors: WordVectors,
    facts: Map<String, Value>,
}

/// Imported vectors have no parameters.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParams {}

impl Params for NoParams {
    fn check(&self) -> Result<(), ParamError> {
        Ok(())
    }
}

impl Vectors {
    /// The kind of this model in model files.
    pub const KIND: &str = "vectors";

    /// Creates a model from vectors.
    ///
    /// # Panics
    /// If the number of vectors differs from the vocabulary size.
    pub fn new(lexicon: Lexicon, vectors: WordVectors) -> Vectors {
        assert_eq!(
            lexicon.vocab.len(),
            vectors.n_words(),
            "the number of vectors must equal the vocabulary size"
        );
        Vectors { lexicon, vectors, facts: Map::new() }
    }

    /// The same words with the vectors of [`WordVectors::centered_and_normalized`].
    #[must_use]
    pub fn center_and_normalize(mut self) -> Vectors {
        self.vectors = self.vectors.centered_and_normalized();
        self.add_fact("centered_and_normalized", true);
        self
    }

    /// The preprocessing and the vocabulary.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// The word vectors.
    pub fn vectors(&self) -> &WordVectors {
        &self.vectors
    }

    /// Facts about their origin.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Adds a fact, which is saved with the model.
    pub fn add_fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Writes the model to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.writer().save(path)
    }

    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Vectors, FileError> {
        Vectors::from_file(&ModelFile::open(path)?)
    }

    /// Reads the model from an open file.
    pub fn from_file(file: &ModelFile) -> Result<Vectors, FileError> {
        file.expect_kind(Self::KIND)?;
        file.parameters::<NoParams>()?;
        let lexicon = file.lexicon()?;
        let vectors = WordVectors::from_file(file, lexicon.vocab.len())?;
        Ok(Vectors { lexicon, vectors, facts: file.header().training.clone() })
    }
}

impl Model for Vectors {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn description(&self) -> &'static str {
        "a list of word vectors"
    }

    fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    fn params_json(&self) -> Value {
        Value::Object(Map::new())
    }

    fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    fn writer(&self) -> ModelWriter<'_> {
        let params = NoParams {}.validate().expect("there is nothing to check");
        self.vectors
            .write_to(ModelWriter::new(Self::KIND, &params))
            .lexicon(&self.lexicon)
            .facts(&self.facts)
    }

    fn as_token_encoder(&self) -> Option<&dyn TokenEncoder> {
        Some(&self.vectors)
    }

    fn word_vectors(&self) -> Option<Cow<'_, WordVectors>> {
        Some(Cow::Borrowed(&self.vectors))
    }

    fn feature_kinds(&self) -> Vec<&'static str> {
        vec![WordVectors::FEATURES]
    }

    fn encoder(&self, kind: &str) -> Option<Box<dyn TokenEncoder + '_>> {
        (kind == WordVectors::FEATURES).then(|| Box::new(&self.vectors) as Box<dyn TokenEncoder>)
    }
}

/// Name of the array with the vectors.
const ARRAY: &str = "vectors";

impl WordVectors {
    /// Name of this kind of token features.
    pub const FEATURES: &str = "vectors";

    /// Adds the vectors to a model file, as the array `vectors`.
    pub fn write_to<'a>(&'a self, writer: ModelWriter<'a>) -> ModelWriter<'a> {
        writer.array(ARRAY, &[self.n_words(), self.dim()], self.values())
    }

    /// Reads the vectors of `n_words` words from an open model file.
    pub fn from_file(file: &ModelFile, n_words: usize) -> Result<WordVectors, FileError> {
        let dim = file.shape(ARRAY)?.last().copied().unwrap_or(0);
        let values = file.array::<f32>(ARRAY, &[n_words, dim])?;
        WordVectors::new(dim, values).map_err(|error| file.invalid(error))
    }
}

/// Encodes each word by its vector, regardless of context. A word without a vector gets that of `<unk>`, or an empty row
/// if `<unk>` has none.
impl TokenEncoder for WordVectors {
    fn n_features(&self) -> usize {
        self.dim()
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        for &word in sentence {
            match self.get(word).or_else(|| self.get(WordId::UNK)) {
                Some(vector) => out.push_dense(vector),
                None => out.push_sparse([]),
            }
        }
    }
}
