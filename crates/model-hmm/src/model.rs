//! The fitted model, and how it is trained.

use crate::params::{HmmParams, Memory, Parameterization};
use crate::space::kept_lists::KeptLists;
use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::tables::block_cache::TransitionBlocks;
use crate::tables::probability_tables::Tables;
use crate::tables::tag_table::TagTable;
use crate::tables::unknown_words::reserve_unknown_share;
use crate::train::batches::Data;
use crate::train::device::check_device;
use crate::train::tagged_text::TaggedText;
use crate::train::task::Task;
use crate::train::{baum_welch, gradient};
use crate::weights::neural::Neural;
use latens_corpus::{Corpus, Lexicon, Sentences, Vocab, WordId};
use latens_model::{
    Checkpoint, Device, FitError, Valid, Watch, WordClusters, check_that, data_fingerprint,
};
use latens_store::FlatArray;
use serde_json::{Map, Value};
use std::time::Instant;

/// A hidden Markov model of sentences.
#[derive(Debug)]
pub struct Hmm {
    pub(crate) params: Valid<HmmParams>,
    pub(crate) lexicon: Lexicon,
    pub(crate) facts: Map<String, Value>,
    pub(crate) space: StateSpace,
    /// The weights of the networks, if the probabilities come from networks.
    pub(crate) weights: Option<Vec<f32>>,
    pub(crate) start: FlatArray<f32>,
    pub(crate) blocks: TransitionBlocks,
    /// For every slot, the states that may emit it.
    pub(crate) emission: FlatArray<f32>,
    pub(crate) tags: Option<TagTable>,
}

/// The training data of a model.
#[derive(Clone, Copy, Debug)]
pub struct Training<'a> {
    /// The training text.
    pub corpus: &'a Corpus,
    /// The validation set, which selects the best epoch.
    pub valid: Option<&'a Sentences>,
    /// The clusters of words, for [`Constraint::Brown`](crate::Constraint::Brown).
    pub clusters: Option<&'a WordClusters>,
    /// The tags, for a model of words and tags.
    pub tags: Option<&'a TaggedText>,
    /// The device to train on.
    pub device: Device,
}

impl Hmm {
    /// The kind of this model in model files.
    pub const KIND: &str = "hmm";

    /// Fits a model to sentences, which are independent unless the parameters say otherwise.
    pub fn fit(
        params: &Valid<HmmParams>,
        training: &Training<'_>,
        watch: &mut Watch,
    ) -> Result<Hmm, FitError> {
        fit_from(params, training, None, watch)
    }

    /// Resumes from a checkpoint of [`Hmm::fit`] with the same parameters and data.
    pub fn resume(
        params: &Valid<HmmParams>,
        training: &Training<'_>,
        checkpoint: &Checkpoint,
        watch: &mut Watch,
    ) -> Result<Hmm, FitError> {
        fit_from(params, training, Some(checkpoint), watch)
    }

    /// The parameters it was fitted with.
    pub fn params(&self) -> &Valid<HmmParams> {
        &self.params
    }

    /// The preprocessing and the vocabulary.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Facts about the training, which are saved with the model.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Adds a fact that is saved with the model.
    pub fn add_fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// The number of trained weights or probabilities.
    pub fn n_weights(&self) -> usize {
        match &self.weights {
            Some(weights) => weights.len(),
            None => {
                let n = self.space.n_states();
                n + n * n
                    + self.emission.len()
                    + self.tags.as_ref().map_or(0, |tags| tags.len() * n)
            }
        }
    }

    /// Whether any state can emit a word.
    pub fn can_emit(&self, word: WordId) -> bool {
        self.space.slot(word).is_some()
    }
}

fn fit_from(
    params: &Valid<HmmParams>,
    training: &Training<'_>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Hmm, FitError> {
    let started = Instant::now();
    let Corpus { lexicon, sentences } = training.corpus;
    if sentences.is_empty() {
        return Err(FitError::not_enough_data("at least 1 sentence", 0));
    }
    if training.valid.is_some_and(|valid| valid.n_tokens() == 0) {
        return Err(FitError::not_enough_data("at least 1 sentence of validation text", 0));
    }
    let vocab = recounted(&lexicon.vocab, sentences);
    let space = StateSpace::from_params(params, &vocab, training.clusters)?;
    let tags = training.tags;
    if let Some(tags) = tags {
        tags.check(sentences)?;
        let resets = params.memory == Memory::Reset;
        check_that(resets, "memory", "`reset` for a model with tags", "carry")?;
    }
    let run_tokens = (params.memory == Memory::Carry).then_some(params.run_tokens);
    let task = Task {
        params,
        space: &space,
        spellings: space.words().iter().map(|&word| lexicon.vocab.word(word)).collect(),
        n_tags: tags.map_or(0, |tags| tags.names.len()),
        train: Data { sentences, tags: tags.map(|tags| &tags.tags[..]), run_tokens },
        valid: training.valid.map(|sentences| Data { sentences, tags: None, run_tokens }),
        fingerprint: data_fingerprint(&lexicon.vocab, sentences)
            ^ tags.map_or(0, TaggedText::fingerprint)
            ^ space.fingerprint()
            ^ training
                .valid
                .map_or(0, |valid| data_fingerprint(&lexicon.vocab, valid))
                .rotate_left(1),
        device: training.device,
        kind: Hmm::KIND,
    };
    check_device(&task)?;
    let (weights, tables, mut facts) = if params.by_em() {
        let fitted = baum_welch::fit(&task, &vocab, checkpoint, watch)?;
        (None, fitted.tables, fitted.facts)
    } else {
        let fitted = gradient::fit(&task, checkpoint, watch)?;
        let (weights, tables) = probabilities(&task, fitted.weights);
        (weights, tables, fitted.facts)
    };
    facts.insert("tokens".into(), sentences.n_tokens().into());
    facts.insert("sentences".into(), sentences.len().into());
    facts.insert("seconds".into(), started.elapsed().as_secs_f64().into());
    let tags = tags.map(|tags| tags.table(tables.tags.clone()));
    drop(task);
    let (params, lexicon) = (params.clone(), lexicon.clone());
    Ok(Hmm::new(params, lexicon, facts, space, weights, tables, tags))
}

/// The vocabulary with the counts of this text, which may differ from the text that the vocabulary was built from.
fn recounted(vocab: &Vocab, sentences: &Sentences) -> Vocab {
    let mut counts = vec![0; vocab.len()];
    sentences.tokens().iter().for_each(|word| counts[word.index()] += 1);
    Vocab::from_parts(vocab.words(), counts).expect("the words of a vocabulary are distinct")
}

/// Computes probabilities from weights. Keeps the weights of networks, because the factors of their transitions are
/// smaller than the probabilities.
fn probabilities(task: &Task<'_>, weights: Vec<f32>) -> (Option<Vec<f32>>, Tables<f32>) {
    let (mut tables, kept) = (Tables::default(), KeptStates::all(task.space));
    if task.params.parameterization == Parameterization::Scalar {
        task.mapping().forward(&weights, task.space, &kept, None, &mut tables);
        return (None, tables);
    }
    let mut neural = Neural::new(task.params, task.space, &task.spellings, task.n_tags);
    neural.forward_to_factors(&weights, task.space, &kept, None, &mut tables);
    (Some(weights), tables)
}

impl Hmm {
    /// The model of some probabilities; `weights` are those of networks.
    pub(crate) fn new(
        params: Valid<HmmParams>,
        lexicon: Lexicon,
        facts: Map<String, Value>,
        space: StateSpace,
        weights: Option<Vec<f32>>,
        mut tables: Tables<f32>,
        tags: Option<TagTable>,
    ) -> Hmm {
        reserve_unknown_share(&space, &mut tables);
        if let Some(lists) = KeptLists::all(&space).filter(|_| tables.lists.is_none()) {
            tables.emission = lists.gather(&tables.emission, space.k);
        }
        let blocks = match tables.factors {
            Some(factors) => TransitionBlocks::from_factors(factors, &space),
            None => TransitionBlocks::from_rows(&tables.transition, &space),
        };
        let (start, emission) = (tables.start.into(), tables.emission.into());
        Hmm { params, lexicon, facts, space, weights, start, blocks, emission, tags }
    }

    /// The networks that compute the probabilities from the weights.
    pub(crate) fn network(&self) -> Neural<f32> {
        let n_tags = self.tags.as_ref().map_or(0, TagTable::len);
        Hmm::network_of(&self.params, &self.space, &self.lexicon, n_tags)
    }

    /// The networks of a model with some parameters.
    pub(crate) fn network_of(
        params: &HmmParams,
        space: &StateSpace,
        lexicon: &Lexicon,
        n_tags: usize,
    ) -> Neural<f32> {
        let words = space.words().iter();
        let spellings: Vec<&str> = words.map(|&word| lexicon.vocab.word(word)).collect();
        Neural::new(params, space, &spellings, n_tags)
    }
}
