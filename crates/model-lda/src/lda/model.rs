use super::params::LdaParams;
use super::types::type_of;
use crate::counts::{TypeCounts, row_total};
use crate::dirichlet::DIRICHLET;
use crate::draw::{padded, padded_alpha};
use crate::infer::{InferenceParams, Inferred, Known, infer_fixed};
use crate::sparse_counts::SparseCounts;
use crate::top_words::{Ranking, best};
use latens_corpus::{Documents, Lexicon, WordId};
use latens_model::file::{FileError, ModelFile, ModelWriter};
use latens_model::{Matrix, Model, TopicModel, Valid};
use rayon::prelude::*;
use serde_json::{Map, Value};
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

/// Latent Dirichlet allocation: topics are distributions over words.
pub struct Lda {
    params: Valid<LdaParams>,
    lexicon: Lexicon,
    counts: TypeCounts,
    totals: Vec<u64>,
    alpha: Vec<f64>,
    facts: Map<String, Value>,
    /// Probability of each word in each topic, padded; computed on first use.
    table: OnceLock<Vec<f32>>,
}

impl fmt::Debug for Lda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lda").field("params", &self.params).finish_non_exhaustive()
    }
}

impl Lda {
    /// The kind of this model in model files.
    pub const KIND: &str = "lda";

    pub(super) fn new(
        params: Valid<LdaParams>,
        lexicon: Lexicon,
        counts: TypeCounts,
        alpha: Vec<f64>,
        facts: Map<String, Value>,
    ) -> Lda {
        let totals = counts.totals();
        Lda { params, lexicon, counts, totals, alpha, facts, table: OnceLock::new() }
    }

    /// The default parameters.
    pub fn params() -> LdaParams {
        LdaParams::default()
    }

    /// The parameters that the model was fitted with.
    pub fn fitted_with(&self) -> &Valid<LdaParams> {
        &self.params
    }

    /// The preprocessing and the vocabulary.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Dirichlet parameter α of each topic.
    pub fn alpha(&self) -> &[f64] {
        &self.alpha
    }

    /// Number of tokens in each topic at the end of training.
    pub fn topic_sizes(&self) -> Vec<u64> {
        self.totals.clone()
    }

    /// Facts about the training run, saved with the model.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Number of training tokens of each word in each topic, row-major with one row per word in the order of the ids. The rows
    /// of `<unk>` and `<eos>` are zero.
    pub fn word_counts(&self) -> &[u32] {
        self.counts.values()
    }

    /// Probability φ of a word in a topic.
    ///
    /// # Panics
    /// If `topic` is out of range.
    pub fn prob(&self, topic: usize, word: WordId) -> f64 {
        let n_words = self.lexicon.vocab.len();
        let Some(t) = type_of(word, n_words) else { return 0.0 };
        let all_beta = (n_words - 2) as f64 * self.params.beta;
        let n = f64::from(self.counts.row(t)[topic]);
        (n + self.params.beta) / (self.totals[topic] as f64 + all_beta)
    }

    /// Whether a word has tokens in the training documents.
    pub(super) fn has_tokens(&self, word: WordId) -> bool {
        let known = type_of(word, self.lexicon.vocab.len());
        known.is_some_and(|token_type| row_total(self.counts.row(token_type)) > 0)
    }

    pub(super) fn row(&self, token_type: u32) -> &[f32] {
        let stride = padded(self.params.n_topics);
        let table = self.table.get_or_init(|| self.probs(stride));
        &table[token_type as usize * stride..][..stride]
    }

    fn probs(&self, stride: usize) -> Vec<f32> {
        let mut table = vec![0.0; self.counts.n_types() * stride];
        for (t, row) in table.chunks_exact_mut(stride).enumerate() {
            for (topic, p) in row[..self.params.n_topics].iter_mut().enumerate() {
                *p = self.prob(topic, WordId::from(t)) as f32;
            }
        }
        table
    }

    /// Infers the topic mixtures of documents, which must be read with the lexicon of this model
    /// ([`Documents::read_with`]). Unknown words are ignored.
    pub fn infer_documents(
        &self,
        documents: &Documents,
        params: &Valid<InferenceParams>,
    ) -> Vec<Inferred> {
        let documents: Vec<&[WordId]> = documents.iter().map(|d| d.words).collect();
        documents.into_par_iter().map(|words| self.infer_words(words, params)).collect()
    }

    pub(super) fn infer_words(&self, words: &[WordId], params: &InferenceParams) -> Inferred {
        let n_words = self.lexicon.vocab.len();
        let known = Known::new(words.iter().map(|&word| type_of(word, n_words)));
        let padded = padded_alpha(&self.alpha);
        infer_fixed(&known, &|t| self.row(t), &self.alpha, &padded, params, n_words)
    }

    /// Infers the topic mixtures of texts: one row per text, one column per topic. Unknown words are ignored.
    pub fn infer<S: AsRef<str>>(&self, texts: impl IntoIterator<Item = S>) -> Matrix<f32> {
        let documents: Vec<Vec<WordId>> =
            texts.into_iter().map(|text| self.lexicon.ids(text.as_ref())).collect();
        self.mixtures(&documents.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// The `n` most probable words of a topic with their probabilities, in descending order.
    ///
    /// # Panics
    /// If `topic` is out of range.
    pub fn top_words(&self, topic: usize, n: usize) -> Vec<(&str, f32)> {
        let words = self.top_word_ids(topic, n).into_iter();
        words.map(|(word, score)| (self.lexicon.vocab.word(word), score)).collect()
    }

    /// The `n` words of a topic with the highest scores, in descending order; see [`Ranking`].
    ///
    /// # Panics
    /// If `topic` is out of range.
    pub fn ranked_words(&self, topic: usize, n: usize, by: Ranking) -> Vec<(WordId, f32)> {
        assert!(
            topic < self.params.n_topics,
            "topic {topic} is out of range: there are {} topics",
            self.params.n_topics
        );
        let words = (2..self.lexicon.vocab.len()).map(WordId::from);
        let count = |word: WordId| self.counts.row(word.0)[topic] as f32;
        let total = |word: WordId| row_total(self.counts.row(word.0)).max(1) as f32;
        let score = |word: WordId| match by {
            Ranking::Density => self.prob(topic, word) as f32,
            Ranking::Count => count(word),
            Ranking::Distinctive => count(word) * count(word) / total(word),
        };
        // Words without tokens in the topic are ranked by probability only.
        let is_in = |&word: &WordId| by == Ranking::Density || count(word) > 0.0;
        best(words.filter(is_in).map(|word| (word, score(word))), n)
    }

    /// Writes the model to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.writer().save(path)
    }

    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Lda, FileError> {
        Lda::from_file(&ModelFile::open(path)?)
    }

    /// Reads the model from an open file.
    pub fn from_file(file: &ModelFile) -> Result<Lda, FileError> {
        file.expect_kind(Self::KIND)?;
        let (params, lexicon) = (file.parameters::<LdaParams>()?, file.lexicon()?);
        let alpha = file.finite_array::<f64>("alpha", &[params.n_topics])?.to_vec();
        if !alpha.iter().all(|a| DIRICHLET.contains(a)) {
            return Err(file.invalid("`alpha` contains values outside [1e-12, 1e9]"));
        }
        let counts = SparseCounts::read(file, lexicon.vocab.len(), params.n_topics)?;
        Ok(Lda::new(params, lexicon, counts, alpha, file.header().training.clone()))
    }
}

impl Model for Lda {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn description(&self) -> &'static str {
        "a topic model"
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
        SparseCounts::new(&self.counts)
            .write_to(ModelWriter::new(Self::KIND, &self.params).lexicon(&self.lexicon))
            .array("alpha", &[self.alpha.len()], &self.alpha)
            .facts(&self.facts)
    }

    fn as_topic_model(&self) -> Option<&dyn TopicModel> {
        Some(self)
    }
}

impl TopicModel for Lda {
    fn n_topics(&self) -> usize {
        self.params.n_topics
    }

    fn mixture(&self, document: &[WordId]) -> Vec<f32> {
        self.infer_words(document, &InferenceParams::default()).mixture
    }

    /// The ids of the words with the highest probability.
    fn top_word_ids(&self, topic: usize, n: usize) -> Vec<(WordId, f32)> {
        self.ranked_words(topic, n, Ranking::Density)
    }
}
