use crate::fitted::block_cache::Transitions;
use crate::fitted::tags::Tags;
use crate::params::{HmmParams, Memory, Parameterization};
use crate::space::state_space::Support;
use crate::tables::probability_tables::{Kept, Tables};
use crate::train::batches::Data;
use crate::train::baum_welch;
use crate::train::device::check_device;
use crate::train::gradient::{self, Task, parameters};
use crate::train::tagged_text::TaggedText;
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
    pub(crate) support: Support,
    /// The weights that the probabilities are made of, if they are made of something.
    pub(crate) weights: Option<Vec<f32>>,
    pub(crate) start: FlatArray<f32>,
    pub(crate) transitions: Transitions,
    /// For each slot the states that may emit it.
    pub(crate) emission: FlatArray<f32>,
    pub(crate) tags: Option<Tags>,
}

/// What a model is fitted to.
#[derive(Clone, Copy, Debug)]
pub struct Training<'a> {
    /// The text.
    pub corpus: &'a Corpus,
    /// Text that tells which epoch's model is the best.
    pub valid: Option<&'a Sentences>,
    /// The clusters of words, for the constraint that needs them.
    pub clusters: Option<&'a WordClusters>,
    /// A tag for each word, for a model of words and tags.
    pub tags: Option<&'a TaggedText>,
    /// Where it is learned.
    pub device: Device,
}

impl Hmm {
    /// What the file calls this model.
    pub const KIND: &str = "hmm";

    /// Learns a model from sentences, each on its own unless the parameters say that they follow each other.
    pub fn fit(
        params: &Valid<HmmParams>,
        training: &Training<'_>,
        watch: &mut Watch,
    ) -> Result<Hmm, FitError> {
        fit_from(params, training, None, watch)
    }

    /// Goes on from a checkpoint of [`Hmm::fit`] with the same parameters and text.
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

    /// How it reads text.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Facts about its training, which are saved with it.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Adds a fact to be saved with the model.
    pub fn add_fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// How many numbers were learned.
    pub fn n_weights(&self) -> usize {
        match &self.weights {
            Some(weights) => weights.len(),
            None => {
                let n = self.support.n_states();
                n + n * n
                    + self.emission.len()
                    + self.tags.as_ref().map_or(0, |tags| tags.len() * n)
            }
        }
    }

    /// Whether some state can emit a word.
    pub fn can_emit(&self, word: WordId) -> bool {
        self.support.slot(word).is_some()
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
        return Err(FitError::not_enough_data("held-out text of at least 1 sentence", 0));
    }
    let vocab = recounted(&lexicon.vocab, sentences);
    let support = Support::of_params(params, &vocab, training.clusters)?;
    let tags = training.tags;
    if let Some(tags) = tags {
        tags.check(sentences)?;
        let resets = params.memory == Memory::Reset;
        check_that(resets, "memory", "`reset` for a model of tags", "carry")?;
    }
    let run_tokens = (params.memory == Memory::Carry).then_some(params.run_tokens);
    let task = Task {
        params,
        support: &support,
        spellings: support.words().iter().map(|&word| lexicon.vocab.word(word)).collect(),
        n_tags: tags.map_or(0, |tags| tags.names.len()),
        train: Data { sentences, tags: tags.map(|tags| &tags.tags[..]), run_tokens },
        valid: training.valid.map(|sentences| Data { sentences, tags: None, run_tokens }),
        fingerprint: data_fingerprint(&lexicon.vocab, sentences)
            ^ tags.map_or(0, TaggedText::fingerprint)
            ^ support.fingerprint()
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
    let tags = tags.map(|tags| Tags::new(tags, tables.tags.clone().into()));
    drop(task);
    let (params, lexicon) = (params.clone(), lexicon.clone());
    Ok(Hmm::new(params, lexicon, facts, support, weights, tables, tags))
}

/// The words of a vocabulary, counted in a text that may be another than the vocabulary was learned from.
fn recounted(vocab: &Vocab, sentences: &Sentences) -> Vocab {
    let mut counts = vec![0; vocab.len()];
    sentences.tokens().iter().for_each(|word| counts[word.index()] += 1);
    Vocab::from_parts(vocab.words(), counts).expect("these are the words of a vocabulary")
}

/// The probabilities of weights. Scalar weights have done their work then; networks are kept, since their
/// transitions are smaller than the probabilities.
fn probabilities(task: &Task<'_>, weights: Vec<f32>) -> (Option<Vec<f32>>, Tables<f32>) {
    let (mut tables, kept) = (Tables::default(), Kept::all(task.support));
    if task.params.parameterization == Parameterization::Scalar {
        parameters(task).forward(&weights, task.support, &kept, None, &mut tables);
        return (None, tables);
    }
    let mut neural = Neural::new(task.params, task.support, &task.spellings, task.n_tags);
    neural.forward_to_factors(&weights, task.support, &kept, None, &mut tables);
    (Some(weights), tables)
}

impl Hmm {
    pub(crate) fn new(
        params: Valid<HmmParams>,
        lexicon: Lexicon,
        facts: Map<String, Value>,
        support: Support,
        weights: Option<Vec<f32>>,
        mut tables: Tables<f32>,
        tags: Option<Tags>,
    ) -> Hmm {
        support.make_room_for_unknown_words(&mut tables);
        if let Some(lists) = support.all_lists().filter(|_| tables.lists.is_none()) {
            tables.emission = lists.gather(&tables.emission, support.k);
        }
        let transitions = match tables.factors {
            Some(factors) => Transitions::of_factors(factors, &support),
            None => Transitions::of_rows(&tables.transition, &support),
        };
        let (start, emission) = (tables.start.into(), tables.emission.into());
        Hmm { params, lexicon, facts, support, weights, start, transitions, emission, tags }
    }
}
