use crate::first_weights::FirstWeights;
use crate::fit::{self, Task};
use crate::network::Network;
use crate::params::NeuralParams;
use latens_corpus::{Corpus, Lexicon, Sentences};
use latens_model::{Checkpoint, Device, FitError, Valid, Watch, data_fingerprint};
use serde_json::{Map, Value};
use std::time::Instant;

/// A neural language model.
#[derive(Debug)]
pub struct Neural {
    pub(crate) params: Valid<NeuralParams>,
    pub(crate) lexicon: Lexicon,
    pub(crate) facts: Map<String, Value>,
    pub(crate) network: Network,
    pub(crate) weights: Vec<f32>,
}

/// What a model is fitted to.
#[derive(Clone, Copy, Debug)]
pub struct Training<'a> {
    /// The text.
    pub corpus: &'a Corpus,
    /// Text that tells which epoch's model is the best, and how the learning rate falls.
    pub valid: Option<&'a Sentences>,
    /// What the weights are first, if they are not drawn.
    pub init: Option<&'a FirstWeights<'a>>,
    /// Where it is learned.
    pub device: Device,
}

impl Neural {
    /// Learns a model from text.
    pub fn fit(
        params: &Valid<NeuralParams>,
        training: &Training<'_>,
        watch: &mut Watch,
    ) -> Result<Neural, FitError> {
        fit_from(params, training, None, watch)
    }

    /// Goes on from a checkpoint of [`Neural::fit`] with the same parameters and text.
    pub fn resume(
        params: &Valid<NeuralParams>,
        training: &Training<'_>,
        checkpoint: &Checkpoint,
        watch: &mut Watch,
    ) -> Result<Neural, FitError> {
        fit_from(params, training, Some(checkpoint), watch)
    }

    /// What the file calls this model: `ff`, `rnn` or `lstm`.
    pub fn kind(&self) -> &'static str {
        self.params.architecture.kind()
    }

    /// The parameters it was fitted with.
    pub fn params(&self) -> &Valid<NeuralParams> {
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

    /// How many numbers were learned.
    pub fn n_weights(&self) -> usize {
        self.weights.len()
    }
}

/// A graphics card if this program can use one, else the processor.
pub fn usable_device() -> Device {
    #[cfg(feature = "cuda")]
    if latens_cuda::Device::open().is_ok() {
        return Device::Cuda;
    }
    Device::Cpu
}

fn fit_from(
    params: &Valid<NeuralParams>,
    training: &Training<'_>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Neural, FitError> {
    let started = Instant::now();
    let Corpus { lexicon, sentences } = training.corpus;
    if sentences.is_empty() {
        return Err(FitError::not_enough_data("at least 1 sentence", 0));
    }
    if training.valid.is_some_and(|valid| valid.n_tokens() == 0) {
        return Err(FitError::not_enough_data("held-out text of at least 1 sentence", 0));
    }
    if let Some(init) = training.init {
        init.check(params, &lexicon.vocab)?;
    }
    let network = Network::new(params, lexicon.vocab.len());
    let of_valid = training.valid.map_or(0, |valid| data_fingerprint(&lexicon.vocab, valid));
    let task = Task {
        params,
        network: &network,
        train: sentences.tokens(),
        valid: training.valid.map(Sentences::tokens),
        init: training.init,
        fingerprint: data_fingerprint(&lexicon.vocab, sentences)
            ^ of_valid.rotate_left(1)
            ^ training.init.map_or(0, FirstWeights::fingerprint),
        device: training.device,
    };
    let (weights, mut facts) = fit::fit(&task, checkpoint, watch)?;
    facts.insert("tokens".into(), sentences.n_tokens().into());
    facts.insert("sentences".into(), sentences.len().into());
    facts.insert("seconds".into(), started.elapsed().as_secs_f64().into());
    let (params, lexicon) = (params.clone(), lexicon.clone());
    Ok(Neural { params, lexicon, facts, network, weights })
}
