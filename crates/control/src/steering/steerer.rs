//! The distribution of the next word of a steered language model.

use crate::error::ControlError;
use crate::guide::{Guide, NextWords, Reading};
use latens_corpus::{Vocab, WordId};
use latens_model::{LanguageModel, Scorer};

/// Generates text with a language model under a constraint:
///
/// p(x | text) ∝ p_LM(x | text) · p_HMM(α | text, x)^ρ
///
/// Every generated text satisfies the constraint α (Zhang et al., Tractable control for autoregressive language generation,
/// 2023). Without a language model the hidden Markov model generates text itself; then w = 1 gives exact samples of texts
/// that satisfy the constraint.
#[derive(Clone)]
pub struct Steerer<'a> {
    pub(super) model: Option<&'a dyn LanguageModel>,
    pub(super) guide: Guide<'a>,
    pub(super) prefix: Vec<WordId>,
    pub(super) start: Reading,
    pub(super) weight: f64,
}

/// A generated text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Generated {
    /// The words after the given beginning, without `<eos>`.
    pub words: Vec<WordId>,
    /// ln p of these words and of `<eos>` under the language model, given the beginning.
    pub log_prob: f64,
}

impl<'a> Steerer<'a> {
    /// Generates text with the guide itself.
    pub fn alone(guide: Guide<'a>, prefix: &[WordId]) -> Result<Steerer<'a>, ControlError> {
        let (start, prefix) = (guide.start_with(prefix)?, prefix.to_vec());
        Ok(Steerer { model: None, guide, prefix, start, weight: 1.0 })
    }

    /// Steers a language model.
    ///
    /// # Panics
    /// If the model has another number of words than the guide; see [`check_vocabulary`].
    pub fn new(
        model: &'a dyn LanguageModel,
        guide: Guide<'a>,
        prefix: &[WordId],
    ) -> Result<Steerer<'a>, ControlError> {
        assert_eq!(model.n_words(), guide.hmm().n_words(), "one vocabulary");
        Ok(Steerer { model: Some(model), ..Steerer::alone(guide, prefix)? })
    }

    /// Sets w, the strength of the guide. 0 only excludes words after which the constraint cannot be met.
    ///
    /// # Panics
    /// If the weight is negative or not finite.
    #[must_use]
    pub fn weight(mut self, weight: f64) -> Steerer<'a> {
        assert!(weight >= 0.0 && weight.is_finite(), "a weight of at least 0, got {weight}");
        self.weight = weight;
        self
    }

    /// ln p(α | beginning) under the guide.
    pub fn log_prob(&self) -> f64 {
        self.guide.log_prob(&self.start)
    }

    /// The language model after the given beginning.
    pub(super) fn scorer(&self, words: &[WordId]) -> Option<Box<dyn Scorer + 'a>> {
        let mut scorer = self.model?.scorer();
        self.prefix.iter().chain(words).for_each(|&word| _ = scorer.read(word));
        Some(scorer)
    }

    /// Computes ln p_LM(x | text) and ln p_LM(x | text) + ρ ln p_HMM(α | text, x) for all words x.
    pub(super) fn next_words(
        &self,
        reading: &Reading,
        scorer: &mut Option<Box<dyn Scorer + 'a>>,
        buffers: &mut Buffers,
    ) {
        let Buffers { next, model, steered } = buffers;
        self.guide.next_words(reading, next);
        model.resize(next.joint.len(), 0.0);
        match scorer {
            Some(scorer) => scorer.next_log_probs(model),
            None => {
                // p(x | text) = p(x, α | text) / p(α | text, x), where it matters.
                let logs = next.joint.iter().zip(&next.conditional);
                model.iter_mut().zip(logs).for_each(|(model, (joint, conditional))| {
                    let is_possible = *conditional > f64::NEG_INFINITY;
                    *model = if is_possible { joint - conditional } else { f64::NEG_INFINITY };
                });
            }
        }
        steered.clear();
        steered.extend(model.iter().zip(&next.conditional).map(|(model, conditional)| {
            match *conditional {
                f64::NEG_INFINITY => f64::NEG_INFINITY,
                conditional => model + self.weight * conditional,
            }
        }));
    }

    /// Why no word is left after a text.
    pub(super) fn dead_end(&self, words: &[WordId], next: &NextWords) -> ControlError {
        let vocab = &self.guide.hmm().lexicon().vocab;
        let text = self.prefix.iter().chain(words).map(|&word| vocab.word(word));
        let after = format!("`{}`", text.collect::<Vec<_>>().join(" "));
        if next.joint.iter().all(|&log_prob| log_prob == f64::NEG_INFINITY) {
            return ControlError::ImpossibleConstraint { after };
        }
        ControlError::ImpossibleModel { after }
    }
}

/// Arrays with one entry per word.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) next: NextWords,
    /// ln p_LM(x | text).
    pub(super) model: Vec<f64>,
    /// Log-probabilities of the steered model, not normalized.
    pub(super) steered: Vec<f64>,
}

/// Checks that a guide and a model have the same words with the same ids.
pub fn check_vocabulary(guide: &Vocab, model: &Vocab) -> Result<(), ControlError> {
    if guide.len() == model.len() && guide.fingerprint() == model.fingerprint() {
        return Ok(());
    }
    let differs = guide.words().zip(model.words()).enumerate().find(|(_, (a, b))| a != b);
    let difference = differs.map(|(id, (in_guide, in_model))| {
        format!("; word {id} is `{in_guide}` in the guide and `{in_model}` in the model")
    });
    let difference = difference.unwrap_or_default();
    Err(ControlError::Vocabulary { guide: guide.len(), model: model.len(), difference })
}
