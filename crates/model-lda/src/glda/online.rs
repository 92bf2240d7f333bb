//! Inference for new documents, with fixed or updated topics.

use super::gaussian::prior::check_components;
use super::gaussian::table::Table;
use super::gaussian::topic::Topic;
use super::gaussian::vectors::TypeVectors;
use super::model::Glda;
use super::problem::Problem;
use super::sampler::{Collapsed, Proposals, Sweep, sample_document};
use crate::counts::TypeCounts;
use crate::draw::{Mixture, padded_alpha};
use crate::infer::{InferenceParams, Inferred, Known, MeanMixture, first_topics, infer_fixed};
use latens_corpus::{Documents, Vocab, WordId};
use latens_model::{ParamError, Valid, WordVectors, check_that};
use rayon::prelude::*;
use std::collections::HashMap;

/// How inference for new documents updates the topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topics {
    /// Topics are fixed, and documents are independent.
    Fixed,
    /// Each batch of this many documents updates the topics temporarily (Das et al. 2015, section 5.2).
    Online(usize),
    /// Each batch of this many documents updates the topics permanently.
    Cumulative(usize),
}

/// Additional word vectors for words outside the training text.
#[derive(Clone, Copy)]
pub struct MoreVectors<'a> {
    /// The words.
    pub vocab: &'a Vocab,
    /// The vectors of the words.
    pub vectors: &'a WordVectors,
}

impl MoreVectors<'_> {
    /// The vector of a word or of its lowercase form.
    fn get(&self, word: &str) -> Option<&[f32]> {
        let find = |word: &str| self.vocab.get(word).and_then(|id| self.vectors.get(id));
        find(word).or_else(|| find(&word.to_lowercase()))
    }
}

impl Glda {
    /// Checks that additional vectors have the dimension of the model, and that their squares do not overflow.
    pub fn check_vectors(&self, vectors: &WordVectors) -> Result<(), ParamError> {
        let dim = self.vectors().dim();
        let must = format!("of {dim} dimensions, as in the model");
        check_that(vectors.dim() == dim, "vectors", must, vectors.dim())?;
        vectors.iter().try_for_each(|(_, vector)| check_components(vector))
    }

    /// Infers the topic mixtures of documents, which must be read with the lexicon of this model
    /// ([`Documents::read_with`]). Words outside the training text are used if `more` has vectors for them; words
    /// without a vector are ignored.
    ///
    /// # Panics
    /// If the vectors of `more` have another dimension than those of the model (see [`Glda::check_vectors`]), or the
    /// batch size is 0.
    pub fn infer_documents(
        &self,
        documents: &Documents,
        more: Option<MoreVectors<'_>>,
        topics: Topics,
        params: &Valid<InferenceParams>,
    ) -> Vec<Inferred> {
        let mut types = NewTypes::new(self, more);
        let known: Vec<Known> = documents
            .iter()
            .map(|d| Known::new(d.words.iter().map(|&word| types.of(word, documents))))
            .collect();
        let NewTypes { vectors, .. } = types;
        let problem = Problem { vectors, ..self.problem.clone() };
        let work = Work::new(self, &problem, params);
        match topics {
            Topics::Fixed => known.par_iter().map(|document| work.fixed(document)).collect(),
            Topics::Online(n) => {
                assert!(n > 0, "the batch size must be at least 1");
                let batches = known.par_chunks(n);
                let one = |counts: &mut TypeCounts, batch: &[Known]| {
                    work.online(batch, counts, &mut self.topics.clone(), AfterBatch::Back)
                };
                batches.map_init(|| work.counts.clone(), one).flatten_iter().collect()
            }
            Topics::Cumulative(n) => {
                assert!(n > 0, "the batch size must be at least 1");
                let (mut counts, mut topics) = (work.counts.clone(), self.topics.clone());
                let one = |batch| work.online(batch, &mut counts, &mut topics, AfterBatch::Stay);
                known.chunks(n).flat_map(one).collect()
            }
        }
    }
}

/// The training types, extended by those of new documents.
struct NewTypes<'a> {
    model: &'a Glda,
    more: Option<MoreVectors<'a>>,
    vectors: TypeVectors,
    /// New words with their types, if they have vectors.
    new: HashMap<WordId, Option<u32>>,
}

impl<'a> NewTypes<'a> {
    fn new(model: &'a Glda, more: Option<MoreVectors<'a>>) -> NewTypes<'a> {
        NewTypes { model, more, vectors: model.problem.vectors.clone(), new: HashMap::new() }
    }

    fn of(&mut self, word: WordId, documents: &Documents) -> Option<u32> {
        let NewTypes { model, more, vectors, new } = self;
        model.types.of(word).or_else(|| {
            *new.entry(word).or_insert_with(|| {
                let vocab = &model.lexicon().vocab;
                let letters = documents.extra_word(word).or_else(|| {
                    // `more` may have a vector for a vocabulary word that had none in training.
                    (word > WordId::EOS && word.index() < vocab.len()).then(|| vocab.word(word))
                })?;
                let vector = more.as_ref()?.get(letters)?;
                vectors.push(vector);
                Some(vectors.len() as u32 - 1)
            })
        })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum AfterBatch {
    Back,
    Stay,
}

/// Shared data of inference.
struct Work<'a> {
    model: &'a Glda,
    problem: &'a Problem,
    /// Densities under the training topics. Valid for proposals because they do not depend on new documents.
    table: Table,
    /// Training counts, extended by new types.
    counts: TypeCounts,
    padded: Vec<f32>,
    params: &'a InferenceParams,
}

impl<'a> Work<'a> {
    fn new(model: &'a Glda, problem: &'a Problem, params: &'a InferenceParams) -> Work<'a> {
        let Problem { prior, vectors, weight, .. } = problem;
        let types: Vec<u32> = (0..vectors.len() as u32).collect();
        let table = Table::new(&model.densities(), vectors, &prior.mean, &types, *weight);
        let mut counts = model.counts.clone();
        counts.grow(vectors.len());
        Work { model, problem, table, counts, padded: padded_alpha(&model.alpha), params }
    }

    fn fixed(&self, document: &Known) -> Inferred {
        let (alpha, row) = (&self.model.alpha, |t| self.table.row(t));
        infer_fixed(document, &row, alpha, &self.padded, self.params, self.model.types.len())
    }

    fn online(
        &self,
        batch: &[Known],
        counts: &mut TypeCounts,
        topics: &mut Vec<Topic>,
        after: AfterBatch,
    ) -> Vec<Inferred> {
        let n_trained = self.model.types.len();
        let mut mixture = Mixture::new(&self.padded);
        // Identical documents in a batch need different random streams.
        let seeds = (self.params.seed..).take(batch.len());
        let mut rngs: Vec<_> =
            batch.iter().zip(seeds).map(|(d, seed)| d.rng(seed, n_trained)).collect();
        let row = |t| self.table.row(t);
        let firsts = batch.iter().zip(&mut rngs);
        let mut assigned: Vec<Vec<u16>> =
            firsts.map(|(d, rng)| first_topics(d, &row, &mut mixture, rng)).collect();
        let moved = std::mem::take(topics);
        let mut collapsed = Collapsed::with_topics(self.problem, counts, moved);
        for (document, topics) in batch.iter().zip(&assigned) {
            for (&t, &k) in document.types.iter().zip(topics) {
                collapsed.look_at(t);
                collapsed.add(t, usize::from(k));
            }
        }
        let alpha = &self.model.alpha;
        let mut means: Vec<MeanMixture> =
            batch.iter().map(|_| MeanMixture::new(alpha.len())).collect();
        let mut proposals = Proposals { table: &self.table, mixture };
        latens_math::vectorized(
            #[inline(always)]
            || {
                for sweep in 0..self.params.n_sweeps {
                    let documents = batch.iter().zip(&mut assigned).zip(&mut rngs).zip(&mut means);
                    for (((document, topics), rng), mean) in documents {
                        let (types, seen) = (&document.types, &mut Sweep::default());
                        sample_document(types, topics, &mut proposals, &mut collapsed, rng, seen);
                        if sweep >= self.params.n_sweeps / 2 {
                            mean.add(topics, alpha);
                        }
                    }
                }
            },
        );
        *topics = collapsed.topics;
        if after == AfterBatch::Back {
            for (document, topics) in batch.iter().zip(&assigned) {
                document.types.iter().zip(topics).for_each(|(&t, &k)| counts.remove(t, k));
            }
        }
        let parts = batch.iter().zip(means).zip(&assigned);
        parts.map(|((document, mean), topics)| document.finish(mean.mean(), topics)).collect()
    }
}
