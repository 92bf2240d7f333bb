//! Draws many texts at once.

use crate::learner::DrawWords;
use crate::model::Neural;
use crate::network::batches::Batch;
use crate::network::definition::Scratch;
use latens_corpus::WordId;
use latens_math::linalg::Par;
use latens_math::{Rng, softmax};
use latens_model::{Device, FitError, SampleSize, WatchSample};
use rayon::prelude::*;
use std::borrow::Cow;

/// Draws texts with empty histories on a device.
pub(crate) fn sample_texts(
    model: &Neural,
    size: SampleSize,
    seed: u64,
    device: Device,
    watch: &mut WatchSample<'_>,
) -> Result<Vec<Vec<WordId>>, FitError> {
    let weights: Cow<'_, [f32]> = match size.keep_unk {
        true => Cow::Borrowed(&model.weights),
        false => Cow::Owned(without_unk(model)),
    };
    match device {
        Device::Cpu => run(model, size, &mut CpuDrawer::new(model, &weights, size, seed), watch),
        Device::Cuda => run(model, size, &mut cuda_drawer(model, &weights, size, seed)?, watch),
    }
}

/// The weights with a bias of −∞ for `<unk>`, so that it is never drawn.
fn without_unk(model: &Neural) -> Vec<f32> {
    let mut weights = model.weights.to_vec();
    model.network.bias.of_mut(&mut weights)[WordId::UNK.index()] = f32::NEG_INFINITY;
    weights
}

fn run(
    model: &Neural,
    size: SampleSize,
    drawer: &mut dyn DrawWords,
    watch: &mut WatchSample<'_>,
) -> Result<Vec<Vec<WordId>>, FitError> {
    let n_context = model.network.n_context;
    let mut texts = vec![Vec::new(); size.n_texts];
    let mut contexts = vec![WordId::EOS.0; size.n_texts * n_context];
    for step in 0..size.n_tokens {
        if texts.iter().all(|text| size.is_complete(text)) {
            break;
        }
        let words = drawer.draw(&Batch::of_contexts(&model.params, contexts.clone()), step)?;
        for ((text, context), word) in
            texts.iter_mut().zip(contexts.chunks_exact_mut(n_context)).zip(words)
        {
            if !size.is_complete(text) {
                text.push(WordId(word));
            }
            Batch::append(&model.params, context, word);
        }
        if watch((step + 1) * size.n_texts).is_break() {
            return Err(FitError::Interrupted);
        }
    }
    Ok(texts)
}

#[cfg(feature = "cuda")]
fn cuda_drawer<'a>(
    model: &'a Neural,
    weights: &[f32],
    size: SampleSize,
    seed: u64,
) -> Result<crate::cuda::CudaDrawer<'a>, FitError> {
    crate::cuda::CudaDrawer::new(&model.params, &model.network, weights, size.n_texts, seed)
        .map_err(crate::cuda::device_error)
}

#[cfg(not(feature = "cuda"))]
fn cuda_drawer<'a>(
    _: &'a Neural,
    _: &'a [f32],
    _: SampleSize,
    _: u64,
) -> Result<CpuDrawer<'a>, FitError> {
    let problem = "this program was built without CUDA".to_owned();
    Err(FitError::Device { device: Device::Cuda, problem })
}

/// Draws on the CPU.
struct CpuDrawer<'a> {
    model: &'a Neural,
    weights: &'a [f32],
    memory: Vec<f32>,
    scratch: Scratch<f32>,
    /// Every text has its own random numbers.
    rngs: Vec<Rng>,
}

impl<'a> CpuDrawer<'a> {
    fn new(model: &'a Neural, weights: &'a [f32], size: SampleSize, seed: u64) -> CpuDrawer<'a> {
        let n_texts = size.n_texts;
        CpuDrawer {
            model,
            weights,
            memory: vec![0.0; n_texts * model.network.state_len()],
            scratch: Scratch::default(),
            rngs: (0..n_texts).map(|i| Rng::stream(seed, i as u64)).collect(),
        }
    }
}

impl DrawWords for CpuDrawer<'_> {
    fn draw(&mut self, batch: &Batch, _: usize) -> Result<Vec<u32>, FitError> {
        let CpuDrawer { model: Neural { network, .. }, weights, .. } = *self;
        let (scratch, par) = (&mut self.scratch, Par::rayon(0));
        network.read(weights, batch, &mut self.memory, None, scratch, par);
        let logits = network.logits(weights, scratch, par);
        let rows = logits.par_chunks_exact_mut(network.n_words()).zip(&mut self.rngs);
        Ok(rows.map(|(row, rng)| draw_index(row, rng) as u32).collect())
    }
}

/// Draws an index from the softmax of logits, which become probabilities.
fn draw_index(logits: &mut [f32], rng: &mut Rng) -> usize {
    softmax(logits);
    // Rounding may leave a rest, which belongs to the last index that can be drawn.
    let mut rest = rng.uniform() * logits.iter().map(|&p| f64::from(p)).sum::<f64>();
    let is_drawn = |&p: &f32| {
        rest -= f64::from(p);
        rest < 0.0
    };
    let last = || logits.iter().rposition(|&p| p > 0.0).unwrap_or(0);
    logits.iter().position(is_drawn).unwrap_or_else(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Memory;
    use latens_model::{Fit, LanguageModel};
    use std::ops::ControlFlow;

    fn draw(model: &Neural, size: SampleSize, device: Device) -> Vec<Vec<WordId>> {
        let mut watch = |_| ControlFlow::Continue(());
        model.sample_texts(size, 3, device, &mut watch).unwrap()
    }

    /// The CPU, and the GPU if there is one.
    fn devices() -> Vec<Device> {
        match crate::usable_device() {
            Device::Cpu => vec![Device::Cpu],
            device @ Device::Cuda => vec![Device::Cpu, device],
        }
    }

    /// Follows the texts with a scorer: words that it predicts from the same history must be drawn as often.
    #[test]
    fn drawn_words_have_the_probabilities_that_the_model_gives_them() {
        let corpus = latens_testkit::two_class_corpus(60, 1);
        for params in [
            Neural::ff().order(3).memory(Memory::Reset),
            Neural::rnn(),
            Neural::lstm().hidden_dim(7).n_layers(2),
            Neural::lstm().memory(Memory::Reset),
        ] {
            let model = params.dim(6).epochs(3).batch_size(4).fit(&corpus).unwrap();
            for device in devices() {
                check(&model, &draw(&model, SampleSize::of_tokens(4000, 40), device));
            }
        }
    }

    fn check(model: &Neural, texts: &[Vec<WordId>]) {
        let mut log_probs = vec![0.0; model.n_words()];
        let (mut expected, mut variance) = (vec![0.0; model.n_words()], vec![0.0; model.n_words()]);
        let mut drawn = vec![0.0; model.n_words()];
        for text in texts {
            let mut scorer = model.scorer();
            for &word in text {
                scorer.next_log_probs(&mut log_probs);
                for (w, log_prob) in log_probs.iter().enumerate() {
                    let p = log_prob.exp();
                    expected[w] += p;
                    variance[w] += p * (1.0 - p);
                }
                drawn[word.index()] += 1.0;
                scorer.read(word);
            }
        }
        for w in 0..model.n_words() {
            let difference: f64 = drawn[w] - expected[w];
            // The sum of differences is a martingale with this variance.
            let bound = 5.0 * f64::sqrt(variance[w]) + 1e-6;
            assert!(difference.abs() < bound, "word {w}: {} and {}", drawn[w], expected[w]);
        }
    }

    /// Sentences are the beginnings of the texts that are drawn with the same random numbers, up to their first end.
    #[test]
    fn sentences_end_after_their_first_end_and_leave_out_unknown_words() {
        let corpus = latens_testkit::two_class_corpus(60, 1);
        for params in [Neural::ff().order(3), Neural::lstm().memory(Memory::Reset)] {
            let model = params.dim(6).epochs(2).fit(&corpus).unwrap();
            for device in devices() {
                for keep_unk in [true, false] {
                    let texts = SampleSize::of_tokens(300 * 30, 300).keep_unk(keep_unk);
                    let sentences = SampleSize::of_sentences(300, 30).keep_unk(keep_unk);
                    let texts = draw(&model, texts, device);
                    let is_unk = |word: &WordId| *word == WordId::UNK;
                    assert_eq!(texts.iter().flatten().any(is_unk), keep_unk);
                    for (sentence, text) in draw(&model, sentences, device).iter().zip(&texts) {
                        let end = text.iter().position(|&word| word == WordId::EOS);
                        assert_eq!(sentence, &text[..end.map_or(text.len(), |end| end + 1)]);
                    }
                }
            }
        }
    }

    #[test]
    fn the_seed_determines_the_texts() {
        let corpus = latens_testkit::two_class_corpus(60, 1);
        let model = Neural::lstm().dim(6).epochs(1).fit(&corpus).unwrap();
        let size = SampleSize::of_tokens(60, 5);
        for device in devices() {
            let texts = draw(&model, size, device);
            assert_eq!(texts, draw(&model, size, device));
            assert_ne!(texts[0], texts[1]);
        }
        let mut stop = |_| ControlFlow::Break(());
        let stopped = model.sample_texts(size, 3, Device::Cpu, &mut stop);
        assert!(matches!(stopped, Err(FitError::Interrupted)));
    }
}
