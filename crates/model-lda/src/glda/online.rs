//! New documents: under topics that stay as they are, or that move with them.

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
use latens_model::{Valid, WordVectors};
use rayon::prelude::*;
use std::collections::HashMap;

/// What becomes of topics when new documents come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topics {
    /// They stay as they are: documents do not concern each other.
    Fixed,
    /// They move with each batch of so many documents, and then go back (Das et al. 2015, section 5.2).
    Online(usize),
    /// They move with each batch of so many documents, and stay there.
    Cumulative(usize),
}

/// Where words that were not in the training text may have vectors.
#[derive(Clone, Copy)]
pub struct MoreVectors<'a> {
    /// Their words.
    pub vocab: &'a Vocab,
    /// Their vectors.
    pub vectors: &'a WordVectors,
}

impl MoreVectors<'_> {
    /// The vector of a word, or of its small letters.
    fn get(&self, word: &str) -> Option<&[f32]> {
        let find = |word: &str| self.vocab.get(word).and_then(|id| self.vectors.get(id));
        find(word).or_else(|| find(&word.to_lowercase()))
    }
}

impl Glda {
    /// The mixtures of documents, which were read with the lexicon of this model
    /// ([`Documents::read_with`]). Words that were not in the training text take part if `more` has a vector for
    /// them; words without one are left out.
    ///
    /// # Panics
    /// If the vectors of `more` are not as long as those of the model, or a batch has no documents.
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
                assert!(n > 0, "a batch has documents");
                let batches = known.par_chunks(n);
                let one = |counts: &mut TypeCounts, batch: &[Known]| {
                    work.online(batch, counts, &mut self.topics.clone(), AfterBatch::Back)
                };
                batches.map_init(|| work.counts.clone(), one).flatten_iter().collect()
            }
            Topics::Cumulative(n) => {
                assert!(n > 0, "a batch has documents");
                let (mut counts, mut topics) = (work.counts.clone(), self.topics.clone());
                let one = |batch| work.online(batch, &mut counts, &mut topics, AfterBatch::Stay);
                known.chunks(n).flat_map(one).collect()
            }
        }
    }
}

/// The types of training, and those that new documents add.
struct NewTypes<'a> {
    model: &'a Glda,
    more: Option<MoreVectors<'a>>,
    vectors: TypeVectors,
    /// Words that came, with their types if they have any.
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
                    // A word of the vocabulary without a vector then may have one now.
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

/// What the inference of all documents shares.
struct Work<'a> {
    model: &'a Glda,
    problem: &'a Problem,
    /// Densities under the topics of training: independent of new documents, so that proposals from it are right.
    table: Table,
    /// Counts of training, with room for new types.
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
        // Documents that are alike must not move alike.
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
        pulp::Arch::new().dispatch(
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
