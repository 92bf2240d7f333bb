use super::gaussian::density::Density;
use super::gaussian::prior::Prior;
use super::gaussian::table::Table;
use super::gaussian::topic::Topic;
use super::params::GldaParams;
use super::problem::Problem;
use super::types::Types;
use crate::counts::{TypeCounts, row_total};
use crate::dirichlet::DIRICHLET;
use crate::documents::TypedDocuments;
use crate::draw::padded_alpha;
use crate::infer::{InferenceParams, Known, infer_fixed};
use crate::sparse_counts::SparseCounts;
use crate::top_words::{Ranking, best};
use latens_corpus::{Lexicon, WordId};
use latens_math::get_or_compute;
use latens_model::file::{FileError, ModelFile, ModelWriter};
use latens_model::{Matrix, Model, TopicModel, Valid, WordVectors};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

/// Minimum count of words ranked by density. Otherwise rare words that happen to be close would dominate.
const MIN_COUNT: u64 = 5;

/// Gaussian LDA: topics are Gaussians over word vectors.
pub struct Glda {
    params: Valid<GldaParams>,
    lexicon: Lexicon,
    word_vectors: WordVectors,
    pub(super) types: Types,
    /// Prior and vectors of the topics, without documents.
    pub(super) problem: Problem,
    pub(super) counts: TypeCounts,
    pub(super) topics: Vec<Topic>,
    pub(super) alpha: Vec<f64>,
    facts: Map<String, Value>,
    /// Densities of all types, computed on first use.
    table: OnceLock<Table>,
}

impl fmt::Debug for Glda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Glda").field("params", &self.params).finish_non_exhaustive()
    }
}

impl Glda {
    /// The kind of this model in model files.
    pub const KIND: &str = "glda";

    #[expect(clippy::too_many_arguments, reason = "the parts of a model")]
    pub(super) fn new(
        params: Valid<GldaParams>,
        lexicon: Lexicon,
        word_vectors: WordVectors,
        types: Types,
        problem: Problem,
        counts: TypeCounts,
        alpha: Vec<f64>,
        facts: Map<String, Value>,
    ) -> Glda {
        let topics = problem.topics(&counts);
        let table = OnceLock::new();
        Glda { params, lexicon, word_vectors, types, problem, counts, topics, alpha, facts, table }
    }

    /// The default parameters.
    pub fn params() -> GldaParams {
        GldaParams::default()
    }

    /// The parameters that the model was fitted with.
    pub fn fitted_with(&self) -> &Valid<GldaParams> {
        &self.params
    }

    /// The preprocessing and the vocabulary.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// The word vectors that the model was fitted with.
    pub fn vectors(&self) -> &WordVectors {
        &self.word_vectors
    }

    /// Dirichlet parameter α of each topic.
    pub fn alpha(&self) -> &[f64] {
        &self.alpha
    }

    /// Number of tokens in each topic at the end of training.
    pub fn topic_sizes(&self) -> Vec<u64> {
        self.topics.iter().map(Topic::n).collect()
    }

    /// Posterior mean of a topic.
    ///
    /// # Panics
    /// If `topic` is out of range.
    pub fn mean(&self, topic: usize) -> &[f64] {
        &self.topics[topic].mean
    }

    /// Log predictive density ln t(x) of a topic at a vector.
    ///
    /// # Panics
    /// If `topic` is out of range, or the vector has another dimension.
    pub fn log_density(&self, topic: usize, vector: &[f32]) -> f64 {
        let x: Vec<f64> = vector.iter().map(|&x| f64::from(x)).collect();
        assert_eq!(
            x.len(),
            self.problem.prior.dim(),
            "the vector must have the dimension of the model"
        );
        self.topics[topic].log_density(&self.problem.prior, &x, &mut vec![0.0; x.len()])
    }

    /// Facts about the training run, saved with the model.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Predictive densities of the topics.
    pub(super) fn densities(&self) -> Vec<Density> {
        self.problem.densities(&self.topics)
    }

    /// Densities of all training types.
    pub(super) fn table(&self) -> &Table {
        get_or_compute(&self.table, || {
            let Problem { prior, vectors, weight, .. } = &self.problem;
            let types: Vec<u32> = (0..vectors.len() as u32).collect();
            Table::new(&self.densities(), vectors, &prior.mean, &types, *weight)
        })
    }

    /// Infers the topic mixtures of texts: one row per text, one column per topic. Unknown words are ignored.
    pub fn infer<S: AsRef<str>>(&self, texts: impl IntoIterator<Item = S>) -> Matrix<f32> {
        let documents: Vec<Vec<WordId>> =
            texts.into_iter().map(|text| self.lexicon.ids(text.as_ref())).collect();
        self.mixtures(&documents.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// The `n` most frequent words of a topic with their counts, in descending order.
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
        let types = self.types.words.iter().zip(0..);
        let row = |t: u32| self.counts.row(t);
        let count = |t: u32| row(t)[topic] as f32;
        match by {
            Ranking::Density => {
                let total = |t: u32| row_total(row(t));
                // Do not filter a vocabulary without frequent words.
                let has_frequent = (0..self.types.len() as u32).any(|t| total(t) >= MIN_COUNT);
                let least = if has_frequent { MIN_COUNT } else { 0 };
                let frequent = types.filter(|&(_, t)| total(t) >= least);
                let density = |t: u32| self.log_density(topic, self.problem.vectors.row(t)) as f32;
                best(frequent.map(|(&word, t)| (word, density(t))), n)
            }
            Ranking::Count => {
                let seen = types.filter(|&(_, t)| count(t) > 0.0);
                best(seen.map(|(&word, t)| (word, count(t))), n)
            }
            Ranking::Distinctive => {
                let total = |t: u32| row_total(row(t)) as f32;
                let seen = types.filter(|&(_, t)| count(t) > 0.0);
                best(seen.map(|(&word, t)| (word, count(t) * count(t) / total(t))), n)
            }
        }
    }

    /// Writes the model to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.writer().save(path)
    }

    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Glda, FileError> {
        Glda::from_file(&ModelFile::open(path)?)
    }

    /// Reads the model from an open file.
    pub fn from_file(file: &ModelFile) -> Result<Glda, FileError> {
        file.expect_kind(Self::KIND)?;
        let (params, lexicon) = (file.parameters::<GldaParams>()?, file.lexicon()?);
        let word_vectors = WordVectors::from_file(file, lexicon.vocab.len())?;
        let (types, vectors) = Types::new(&word_vectors);
        let prior = Prior::of(&params, &vectors).map_err(|error| file.invalid(error))?;
        let alpha = file.finite_array::<f64>("alpha", &[params.n_topics])?.to_vec();
        if !alpha.iter().all(|a| DIRICHLET.contains(a)) {
            return Err(file.invalid("`alpha` contains values outside [1e-12, 1e9]"));
        }
        let counts = SparseCounts::read(file, types.len(), params.n_topics)?;
        let documents = TypedDocuments::default();
        let problem = Problem { prior, vectors, documents, weight: params.likelihood_weight };
        let facts = file.header().training.clone();
        Ok(Glda::new(params, lexicon, word_vectors, types, problem, counts, alpha, facts))
    }
}

impl Model for Glda {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn description(&self) -> &'static str {
        "a Gaussian topic model"
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
        let writer = ModelWriter::new(Self::KIND, &self.params).lexicon(&self.lexicon);
        SparseCounts::new(&self.counts)
            .write_to(self.word_vectors.write_to(writer))
            .array("alpha", &[self.alpha.len()], &self.alpha)
            .facts(&self.facts)
    }

    fn as_topic_model(&self) -> Option<&dyn TopicModel> {
        Some(self)
    }

    fn word_vectors(&self) -> Option<Cow<'_, WordVectors>> {
        Some(Cow::Borrowed(&self.word_vectors))
    }
}

impl TopicModel for Glda {
    fn n_topics(&self) -> usize {
        self.params.n_topics
    }

    fn mixture(&self, document: &[WordId]) -> Vec<f32> {
        let known = Known::new(document.iter().map(|&word| self.types.of(word)));
        let (table, padded) = (self.table(), padded_alpha(&self.alpha));
        let params = InferenceParams::default();
        let row = |t| table.row(t);
        infer_fixed(&known, &row, &self.alpha, &padded, &params, self.types.len()).mixture
    }

    fn prepare(&self) {
        self.table();
    }

    /// The ids of the words with the highest count ([`Ranking::Count`]).
    fn top_word_ids(&self, topic: usize, n: usize) -> Vec<(WordId, f32)> {
        self.ranked_words(topic, n, Ranking::Count)
    }
}
