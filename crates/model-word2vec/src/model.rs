//! The fitted model and its file.

use crate::params::Word2vecParams;
use latens_corpus::{Lexicon, WordId};
use latens_model::file::{FileError, ModelFile, ModelWriter};
use latens_model::{FeatureRows, TokenEncoder, Valid, WordVectors};
use serde_json::{Map, Value};
use std::path::Path;

/// Word vectors learned by word2vec.
#[derive(Clone, Debug)]
pub struct Word2vec {
    params: Valid<Word2vecParams>,
    lexicon: Lexicon,
    vectors: WordVectors,
    facts: Map<String, Value>,
}

impl Word2vec {
    /// Kind of this model in the header of its file.
    pub const KIND: &str = "word2vec";

    pub(crate) fn new(
        params: Valid<Word2vecParams>,
        lexicon: Lexicon,
        vectors: WordVectors,
        facts: Map<String, Value>,
    ) -> Word2vec {
        Word2vec { params, lexicon, vectors, facts }
    }

    /// Hyperparameters the model was fitted with.
    pub fn params(&self) -> &Valid<Word2vecParams> {
        &self.params
    }

    /// Preprocessing and vocabulary of the training text.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// The word vectors. `<eos>` and words that do not occur in the training text have none.
    pub fn vectors(&self) -> &WordVectors {
        &self.vectors
    }

    /// Facts about the training, saved with the model. `loss` is the mean loss of the last epoch.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Saves the model to a file.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        self.vectors
            .write_to(ModelWriter::new(Self::KIND, &self.params))
            .lexicon(&self.lexicon)
            .facts(&self.facts)
            .save(path)
    }

    /// Opens a model file.
    pub fn open(path: &Path) -> Result<Word2vec, FileError> {
        Word2vec::from_file(&ModelFile::open(path)?)
    }

    /// Reads the model from an open file.
    pub fn from_file(file: &ModelFile) -> Result<Word2vec, FileError> {
        file.expect_kind(Self::KIND)?;
        let (params, lexicon) = (file.parameters::<Word2vecParams>()?, file.lexicon()?);
        let vectors = WordVectors::from_file(file, lexicon.vocab.len())?;
        if vectors.dim() != params.dim {
            return Err(file.invalid("the vectors do not have `dim` dimensions"));
        }
        Ok(Word2vec { params, lexicon, vectors, facts: file.header().training.clone() })
    }
}

/// Encodes each token as its word vector, as [`WordVectors`] does.
impl TokenEncoder for Word2vec {
    fn n_features(&self) -> usize {
        self.vectors.n_features()
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        self.vectors.encode(sentence, out);
    }
}
