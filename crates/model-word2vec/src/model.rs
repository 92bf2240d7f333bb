//! The fitted model and its file.

use crate::params::Word2vecParams;
use latens_corpus::{Lexicon, WordId};
use latens_model::{
    FeatureRows, FileError, Matrix, Model, ModelFile, ModelWriter, TokenEncoder, Valid, WordVectors,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
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

    /// Default parameters, to be changed by setters.
    pub fn params() -> Word2vecParams {
        Word2vecParams::default()
    }

    /// Parameters the model was fitted with.
    pub fn fitted_with(&self) -> &Valid<Word2vecParams> {
        &self.params
    }

    /// Preprocessing and vocabulary of the training text.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Facts about the training, saved with the model. `loss` is the mean loss of the last epoch.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Number of dimensions of a vector.
    pub fn dim(&self) -> usize {
        self.vectors.dim()
    }

    /// Vectors of all words, as a row-major matrix in the order of word ids.
    ///
    /// `<eos>` and words that do not occur in the training text have no vector.
    pub fn vectors(&self) -> &WordVectors {
        &self.vectors
    }

    /// Vector of a word, if it has one. The word is preprocessed like the training text.
    pub fn vector(&self, word: &str) -> Option<&[f32]> {
        self.vectors.get(self.find(word)?)
    }

    /// The `n` words most similar to `word`, by descending cosine similarity of their vectors.
    ///
    /// `None` if the word has no vector. The word itself, `<unk>` and `<eos>` are left out.
    pub fn nearest(&self, word: &str, n: usize) -> Option<Vec<(&str, f32)>> {
        let word = self.find(word)?;
        let nearest = self.vectors.nearest(self.vectors.get(word)?, n, &[word]).into_iter();
        Some(nearest.map(|(word, cosine)| (self.lexicon.vocab.word(word), cosine)).collect())
    }

    /// Vectors of the tokens of a text: one row per token.
    ///
    /// A word without a vector gets that of `<unk>`, or zeros if `<unk>` has none.
    pub fn embed(&self, text: &str) -> Matrix<f32> {
        let words = self.lexicon.ids(text);
        let zeros = vec![0.0; self.dim()];
        let vector = |&word: &WordId| {
            let vector = self.vectors.get(word).or_else(|| self.vectors.get(WordId::UNK));
            vector.unwrap_or(&zeros).iter().copied()
        };
        Matrix::from_vec(words.len(), self.dim(), words.iter().flat_map(vector).collect())
    }

    /// Id of a word of the vocabulary. A text of several tokens is not a word.
    fn find(&self, word: &str) -> Option<WordId> {
        let mut ids = vec![];
        self.lexicon.preprocessing.words(word, |token| ids.push(self.lexicon.vocab.get(token)));
        match ids[..] {
            [id] => id,
            _ => None,
        }
    }

    /// Saves the model to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.writer().save(path)
    }

    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Word2vec, FileError> {
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

/// Name of the features of word vectors.
const VECTOR_FEATURES: &str = "vectors";

impl Model for Word2vec {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn description(&self) -> &'static str {
        "a word2vec model"
    }

    fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    fn params_json(&self) -> Value {
        self.fitted_with().to_json()
    }

    fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    fn writer(&self) -> ModelWriter<'_> {
        self.vectors
            .write_to(ModelWriter::new(Self::KIND, &self.params))
            .lexicon(&self.lexicon)
            .facts(&self.facts)
    }

    fn as_token_encoder(&self) -> Option<&dyn TokenEncoder> {
        Some(self)
    }

    fn word_vectors(&self) -> Option<Cow<'_, WordVectors>> {
        Some(Cow::Borrowed(&self.vectors))
    }

    fn feature_kinds(&self) -> Vec<&'static str> {
        vec![VECTOR_FEATURES]
    }

    fn encoder(&self, kind: &str) -> Option<Box<dyn TokenEncoder + '_>> {
        (kind == VECTOR_FEATURES).then(|| Box::new(self) as Box<dyn TokenEncoder>)
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
