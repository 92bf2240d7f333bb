use crate::params::Word2vecParams;
use latens_corpus::{Lexicon, WordId};
use latens_model::file::{FileError, ModelFile, ModelWriter};
use latens_model::{FeatureRows, TokenEncoder, Valid, WordVectors};
use serde_json::{Map, Value};
use std::path::Path;

/// Vectors of words, learned by word2vec.
#[derive(Clone, Debug)]
pub struct Word2vec {
    params: Valid<Word2vecParams>,
    lexicon: Lexicon,
    vectors: WordVectors,
    facts: Map<String, Value>,
}

impl Word2vec {
    /// What the file calls this model.
    pub const KIND: &str = "word2vec";

    pub(crate) fn new(
        params: Valid<Word2vecParams>,
        lexicon: Lexicon,
        vectors: WordVectors,
        facts: Map<String, Value>,
    ) -> Word2vec {
        Word2vec { params, lexicon, vectors, facts }
    }

    /// The parameters it was fitted with.
    pub fn params(&self) -> &Valid<Word2vecParams> {
        &self.params
    }

    /// How it reads text.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// The vectors. Words that were not in the text have none, and `<eos>` never has one.
    pub fn vectors(&self) -> &WordVectors {
        &self.vectors
    }

    /// Facts about its training, which are saved with it: `loss`, the mean of the last epoch, among them.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Writes the model to a file.
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

    /// The model in an open file.
    pub fn from_file(file: &ModelFile) -> Result<Word2vec, FileError> {
        file.expect_kind(Self::KIND)?;
        let (params, lexicon) = (file.parameters::<Word2vecParams>()?, file.lexicon()?);
        let vectors = WordVectors::from_file(file, lexicon.vocab.len())?;
        if vectors.dim() != params.dim {
            return Err(file.invalid("its vectors are not as long as `dim` says"));
        }
        Ok(Word2vec { params, lexicon, vectors, facts: file.header().training.clone() })
    }
}

/// What [`WordVectors`] do.
impl TokenEncoder for Word2vec {
    fn n_features(&self) -> usize {
        self.vectors.n_features()
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        self.vectors.encode(sentence, out);
    }
}
