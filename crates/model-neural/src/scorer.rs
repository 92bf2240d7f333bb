//! Scoring word by word.

use crate::batch_scorer::NeuralBatchScorer;
use crate::learner::text_log_prob;
use crate::model::Neural;
use crate::network::batches::Batch;
use crate::network::definition::Scratch;
use crate::params::Memory;
use crate::sampler;
use latens_corpus::{Sentences, WordId};
use latens_math::linalg::Par;
use latens_math::log_sum_exp;
use latens_model::{
    BatchScorer, Device, DeviceError, FitError, LanguageModel, SampleSize, Scorer, WatchSample,
};

impl LanguageModel for Neural {
    fn n_words(&self) -> usize {
        self.network.n_words()
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        let mut scorer = NeuralScorer {
            model: self,
            context: vec![WordId::EOS.0; self.network.n_context],
            memory: vec![0.0; self.network.state_len()],
            scratch: Scratch::default(),
            log_probs: Vec::new(),
        };
        scorer.advance();
        Box::new(scorer)
    }

    fn n_streams(&self) -> usize {
        // A matrix product with this many rows is about as fast per row as with more.
        256
    }

    fn batch_scorer(&self, prompt: &[WordId], n_streams: usize) -> Box<dyn BatchScorer + '_> {
        Box::new(NeuralBatchScorer::new(self, prompt, n_streams))
    }

    fn forgets_sentences(&self) -> bool {
        self.params.memory == Memory::Reset
    }

    fn sample_texts(
        &self,
        size: SampleSize,
        seed: u64,
        device: Device,
        watch: &mut WatchSample<'_>,
    ) -> Result<Vec<Vec<WordId>>, FitError> {
        sampler::sample_texts(self, size, seed, device, watch)
    }

    fn text_log_prob(&self, text: &[WordId]) -> f64 {
        let Neural { params, network, weights, .. } = self;
        let scratch = &mut Scratch::default();
        text_log_prob(params, network, weights, text, scratch, Par::rayon(0))
    }

    #[cfg(feature = "cuda")]
    fn log_prob_on_gpu(&self, text: &Sentences) -> Result<f64, DeviceError> {
        let Neural { params, network, weights, .. } = self;
        let log_prob = crate::cuda::log_prob(params, network, weights, text.tokens());
        log_prob.map_err(DeviceError::cuda)
    }

    #[cfg(not(feature = "cuda"))]
    fn log_prob_on_gpu(&self, _: &Sentences) -> Result<f64, DeviceError> {
        Err(DeviceError::built_without_cuda())
    }
}

/// The state and predictions of a network.
struct NeuralScorer<'a> {
    model: &'a Neural,
    /// The next input words, most recent first: one word, or the context of a feed-forward network.
    context: Vec<u32>,
    memory: Vec<f32>,
    scratch: Scratch<f32>,
    /// ln p of every possible next word; empty until requested.
    log_probs: Vec<f64>,
}

impl NeuralScorer<'_> {
    /// Feeds the context to the network.
    fn advance(&mut self) {
        let Neural { params, network, weights, .. } = self.model;
        let batch = Batch::of_contexts(params, self.context.clone());
        let scratch = &mut self.scratch;
        network.read(weights, &batch, &mut self.memory, None, scratch, Par::Seq);
        self.log_probs.clear();
    }

    fn predict(&mut self) -> &[f64] {
        if self.log_probs.is_empty() {
            let Neural { network, weights, .. } = self.model;
            let logits = network.logits(weights, &mut self.scratch, Par::Seq);
            self.log_probs.extend(logits.iter().map(|&logit| f64::from(logit)));
            let log_sum = log_sum_exp(&self.log_probs);
            self.log_probs.iter_mut().for_each(|log_prob| *log_prob -= log_sum);
        }
        &self.log_probs
    }
}

impl Scorer for NeuralScorer<'_> {
    fn read(&mut self, word: WordId) -> f64 {
        assert!(word.index() < self.model.n_words(), "{word:?} is not in the vocabulary");
        let log_prob = self.predict()[word.index()];
        Batch::append(&self.model.params, &mut self.context, word.0);
        self.advance();
        log_prob
    }

    fn next_log_probs(&mut self, out: &mut [f64]) {
        assert_eq!(out.len(), self.model.n_words(), "`out` must have one entry per word");
        out.copy_from_slice(self.predict());
    }
}
