use crate::cost::cost;
use crate::fit::{self, Task};
use crate::network::definition::Network;
use crate::network::first_weights::FirstWeights;
use crate::params::{Architecture, NeuralParams};
use latens_corpus::{Corpus, Lexicon, Sentences};
use latens_model::{
    Cost, Device, Fit, FitError, LanguageModel, Model, ModelWriter, Session, Setup, Valid,
    data_fingerprint,
};
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

/// Additional inputs of a neural language model.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct NeuralInputs<'a> {
    /// Initial weights from another model; random if unset.
    pub init: Option<&'a FirstWeights<'a>>,
}

impl<'a> NeuralInputs<'a> {
    /// Sets initial weights from another model.
    #[must_use]
    pub fn init(mut self, init: &'a FirstWeights<'a>) -> Self {
        self.init = Some(init);
        self
    }
}

impl Neural {
    /// Parameters of a feed-forward 4-gram model.
    pub fn ff() -> NeuralParams {
        NeuralParams::ff()
    }

    /// Parameters of a simple recurrent network.
    pub fn rnn() -> NeuralParams {
        NeuralParams::rnn()
    }

    /// Parameters of an LSTM.
    pub fn lstm() -> NeuralParams {
        NeuralParams::lstm()
    }

    /// The parameters that the model was fitted with.
    pub fn fitted_with(&self) -> &Valid<NeuralParams> {
        &self.params
    }

    /// The preprocessing and the vocabulary.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Facts about the training run, saved with the model.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Number of weights.
    pub fn n_weights(&self) -> usize {
        self.weights.len()
    }
}

impl Model for Neural {
    fn kind(&self) -> &'static str {
        self.params.architecture.kind()
    }

    fn description(&self) -> &'static str {
        match self.params.architecture {
            Architecture::Ff => "a feed-forward language model",
            Architecture::Rnn => "a recurrent language model",
            Architecture::Lstm => "an LSTM language model",
        }
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
        let mut writer =
            ModelWriter::new(self.kind(), &self.params).lexicon(&self.lexicon).facts(&self.facts);
        for (name, shape, range) in self.network.layout.entries() {
            writer = writer.array(name, shape, &self.weights[range]);
        }
        writer
    }

    fn as_language_model(&self) -> Option<&dyn LanguageModel> {
        Some(self)
    }
}

/// Returns [`Device::Cuda`] if a GPU is usable, else [`Device::Cpu`].
pub fn usable_device() -> Device {
    #[cfg(feature = "cuda")]
    if latens_cuda::Device::open().is_ok() {
        return Device::Cuda;
    }
    Device::Cpu
}

impl Fit for NeuralParams {
    type Model = Neural;
    type Data = Corpus;
    type Inputs<'a> = NeuralInputs<'a>;
    type Error = FitError;

    fn cost_with(
        params: &NeuralParams,
        corpus: &Corpus,
        _: &NeuralInputs<'_>,
        setup: &Setup<'_>,
    ) -> Cost {
        cost(params, corpus, setup.valid)
    }

    fn fit_with(
        params: &Valid<NeuralParams>,
        corpus: &Corpus,
        inputs: NeuralInputs<'_>,
        session: Session<'_>,
    ) -> Result<Neural, FitError> {
        let Session { valid, device, checkpoint, watch } = session;
        let started = Instant::now();
        let Corpus { lexicon, sentences } = corpus;
        if sentences.is_empty() {
            return Err(FitError::not_enough_data("at least 1 sentence", 0));
        }
        if valid.is_some_and(|valid| valid.n_tokens() == 0) {
            return Err(FitError::not_enough_data("held-out text of at least 1 sentence", 0));
        }
        if let Some(init) = inputs.init {
            init.check(params, &lexicon.vocab)?;
        }
        let network = Network::new(params, lexicon.vocab.len());
        let of_valid = valid.map_or(0, |valid| data_fingerprint(&lexicon.vocab, valid));
        let task = Task {
            params,
            network: &network,
            train: sentences.tokens(),
            valid: valid.map(Sentences::tokens),
            init: inputs.init,
            fingerprint: data_fingerprint(&lexicon.vocab, sentences)
                ^ of_valid.rotate_left(1)
                ^ inputs.init.map_or(0, FirstWeights::fingerprint),
            device,
        };
        let (weights, mut facts) = fit::fit(&task, checkpoint, watch)?;
        // Files with such weights cannot be opened.
        if !network.is_bounded(&weights) {
            return Err(FitError::Diverged { epoch: params.epochs, lower: "learning_rate" });
        }
        facts.insert("tokens".into(), sentences.n_tokens().into());
        facts.insert("sentences".into(), sentences.len().into());
        facts.insert("seconds".into(), started.elapsed().as_secs_f64().into());
        let (params, lexicon) = (params.clone(), lexicon.clone());
        Ok(Neural { params, lexicon, facts, network, weights })
    }
}
