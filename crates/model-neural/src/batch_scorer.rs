//! Scoring many texts at once, word by word.

use crate::model::Neural;
use crate::network::batches::Batch;
use crate::network::definition::Scratch;
use latens_corpus::WordId;
use latens_math::linalg::Par;
use latens_math::softmax;
use latens_model::{BatchScorer, StreamStep};
use rayon::prelude::*;

/// The states of many texts, which a network reads in one batch.
pub(crate) struct NeuralBatchScorer<'a> {
    model: &'a Neural,
    n_streams: usize,
    /// All streams begin with this one.
    first: Streams,
    /// A multiple of `ROWS` streams, the last of which may be unused: products with few rows add up in another order, and what
    /// a stream predicts should not depend on the number of streams.
    streams: Streams,
    scratch: Scratch<f32>,
}

/// Rows of the smallest product.
const ROWS: usize = 8;

/// The next input words of streams, and their states before they read them.
#[derive(Clone)]
struct Streams {
    /// One context per stream.
    contexts: Vec<u32>,
    memory: Vec<f32>,
}

impl NeuralBatchScorer<'_> {
    pub(crate) fn new<'a>(
        model: &'a Neural,
        prompt: &[WordId],
        n_streams: usize,
    ) -> NeuralBatchScorer<'a> {
        let Neural { params, network, .. } = model;
        let mut first = Streams {
            contexts: vec![WordId::EOS.0; network.n_context],
            memory: vec![0.0; network.state_len()],
        };
        let scratch = &mut Scratch::default();
        for &word in prompt {
            assert!(word.index() < network.n_words(), "{word:?} is not in the vocabulary");
            first.read(model, scratch, Par::Seq);
            Batch::append(params, &mut first.contexts, word.0);
        }
        let (streams, scratch) = (first.clone(), Scratch::default());
        let mut scorer = NeuralBatchScorer { model, n_streams, first, streams, scratch };
        scorer.replace(vec![None; n_streams]);
        scorer.read();
        scorer
    }

    /// Replaces the streams by copies of those with the given indices, or of the first one.
    fn replace(&mut self, mut sources: Vec<Option<usize>>) {
        self.n_streams = sources.len();
        sources.resize(self.n_streams.next_multiple_of(ROWS), None);
        let network = &self.model.network;
        self.streams.replace(network.n_context, &network.state_dims(), &self.first, &sources);
    }

    /// Feeds the contexts to the network.
    fn read(&mut self) {
        if self.n_streams > 0 {
            self.streams.read(self.model, &mut self.scratch, Par::rayon(0));
        }
    }
}

impl Streams {
    fn read(&mut self, model: &Neural, scratch: &mut Scratch<f32>, par: Par) {
        let Neural { params, network, weights, .. } = model;
        let batch = Batch::of_contexts(params, self.contexts.clone());
        network.read(weights, &batch, &mut self.memory, None, scratch, par);
    }

    /// Makes each stream a copy of the one that its source names, or of `first`.
    fn replace(
        &mut self,
        n_context: usize,
        state_dims: &[usize],
        first: &Streams,
        sources: &[Option<usize>],
    ) {
        let n_old = self.contexts.len() / n_context;
        let contexts = sources.iter().flat_map(|source| match source {
            Some(old) => &self.contexts[old * n_context..][..n_context],
            None => &first.contexts,
        });
        let contexts = contexts.copied().collect();
        let mut memory = Vec::with_capacity(sources.len() * first.memory.len());
        let mut at = 0;
        for &dim in state_dims {
            for source in sources {
                memory.extend_from_slice(match source {
                    Some(old) => &self.memory[n_old * at + old * dim..][..dim],
                    None => &first.memory[at..][..dim],
                });
            }
            at += dim;
        }
        *self = Streams { contexts, memory };
    }
}

impl BatchScorer for NeuralBatchScorer<'_> {
    fn next_log_probs(&mut self, out: &mut [f64]) {
        let Neural { network, weights, .. } = self.model;
        let n_words = network.n_words();
        assert_eq!(out.len(), self.n_streams * n_words, "`out` must have one row per stream");
        if out.is_empty() {
            return;
        }
        let logits = network.logits(weights, &mut self.scratch, Par::rayon(0));
        let rows = out.par_chunks_exact_mut(n_words).zip(logits.par_chunks_exact_mut(n_words));
        rows.for_each(|(out, logits)| {
            out.iter_mut().zip(&*logits).for_each(|(out, &logit)| *out = f64::from(logit));
            let log_sum = f64::from(softmax(logits));
            out.iter_mut().for_each(|log_prob| *log_prob -= log_sum);
        });
    }

    fn advance(&mut self, steps: &[StreamStep]) {
        assert_eq!(steps.len(), self.n_streams, "there must be one step per stream");
        let Neural { params, network, .. } = self.model;
        let contexts = self.streams.contexts.chunks_exact_mut(network.n_context);
        for (context, step) in contexts.zip(steps) {
            if let StreamStep::Read(word) = step {
                assert!(word.index() < network.n_words(), "{word:?} is not in the vocabulary");
                Batch::append(params, context, word.0);
            }
        }
        if steps.iter().any(|step| !matches!(step, StreamStep::Read(_))) {
            let remaining = steps.iter().enumerate().filter(|(_, step)| **step != StreamStep::End);
            let source = |(i, step): (_, &StreamStep)| (*step != StreamStep::Restart).then_some(i);
            self.replace(remaining.map(source).collect());
        }
        self.read();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Memory, NeuralParams};
    use latens_corpus::Corpus;
    use latens_math::Rng;
    use latens_model::{Fit, LanguageModel, Scorer};

    fn kinds() -> Vec<NeuralParams> {
        let memories = [Memory::Carry, Memory::Reset];
        let of_memory = |memory| {
            [
                Neural::ff().order(4).memory(memory),
                Neural::rnn().memory(memory),
                Neural::lstm().hidden_dim(7).n_layers(3).memory(memory),
            ]
        };
        memories.into_iter().flat_map(of_memory).map(|params| params.dim(6).epochs(2)).collect()
    }

    fn words(ids: &[u32]) -> Vec<WordId> {
        ids.iter().copied().map(WordId).collect()
    }

    /// Random steps of many streams, each of which is followed by a scorer.
    #[test]
    fn every_stream_predicts_what_a_scorer_predicts() {
        const N: usize = 9;
        let corpus = latens_testkit::two_class_corpus(60, 1);
        for params in kinds() {
            let model = params.batch_size(4).fit(&corpus).unwrap();
            let n_words = model.n_words();
            for prompt in [words(&[]), words(&[3]), words(&[4, 1, 2, 5, 3]), words(&[2, 1])] {
                let begin = || {
                    let mut scorer = model.scorer();
                    prompt.iter().for_each(|&word| _ = scorer.read(word));
                    scorer
                };
                let mut rng = Rng::new(5);
                let mut batch = model.batch_scorer(&prompt, N);
                let mut scorers: Vec<Box<dyn Scorer + '_>> = (0..N).map(|_| begin()).collect();
                for step in 0.. {
                    let mut found = vec![0.0; scorers.len() * n_words];
                    batch.next_log_probs(&mut found);
                    let mut expected = vec![0.0; n_words];
                    for (row, scorer) in found.chunks_exact(n_words).zip(&mut scorers) {
                        scorer.next_log_probs(&mut expected);
                        for (found, expected) in row.iter().zip(&expected) {
                            assert!(
                                (found - expected).abs() < 1e-5,
                                "step {step}: {:?}",
                                model.params
                            );
                        }
                    }
                    if scorers.is_empty() {
                        break;
                    }
                    let draw = |_| match rng.uniform() {
                        x if x < 0.1 => StreamStep::Restart,
                        x if x < 0.15 => StreamStep::End,
                        x if x < 0.3 => StreamStep::Read(WordId::EOS),
                        _ => StreamStep::Read(WordId((rng.uniform() * n_words as f64) as u32)),
                    };
                    let steps: Vec<StreamStep> = (0..scorers.len()).map(draw).collect();
                    batch.advance(&steps);
                    for (scorer, step) in scorers.iter_mut().zip(&steps) {
                        match *step {
                            StreamStep::Read(word) => _ = scorer.read(word),
                            StreamStep::Restart => *scorer = begin(),
                            StreamStep::End => {}
                        }
                    }
                    let mut remain = steps.iter().map(|&step| step != StreamStep::End);
                    scorers.retain(|_| remain.next().unwrap());
                }
            }
        }
    }

    /// Otherwise a sample would depend on the number of sentences.
    #[test]
    fn the_number_of_streams_does_not_change_a_bit() {
        let few = latens_testkit::two_class_corpus(60, 1);
        // 130 words, two more than a tile of a matrix product has.
        let line = |i: usize| (0..8).map(|j| format!("w{}", (8 * i + j) % 128)).collect::<Vec<_>>();
        let many = Corpus::from_lines((0..32).map(|i| line(i).join(" "))).unwrap();
        let kinds = [(Neural::lstm(), 200, &few), (Neural::rnn(), 200, &few)];
        // Products add up 512 numbers at a time.
        let wide = [(Neural::ff(), 200, &few), (Neural::lstm(), 520, &many)];
        for (params, dim, corpus) in kinds.into_iter().chain(wide) {
            let model = params.dim(dim).epochs(1).fit(corpus).unwrap();
            let bits = |n: usize, at: usize| {
                let mut batch = model.batch_scorer(&words(&[3, 4]), n);
                let mut rows = vec![0.0; n * model.n_words()];
                for step in 0..4 {
                    let read = |i: usize| {
                        // The other streams read other words.
                        let word = if i == at { 2 + step } else { (i as u32 + step) % 7 };
                        StreamStep::Read(WordId(word))
                    };
                    batch.advance(&(0..n).map(read).collect::<Vec<_>>());
                }
                batch.next_log_probs(&mut rows);
                let row = &rows[at * model.n_words()..][..model.n_words()];
                row.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            let expected = bits(256, 17);
            let sizes = (1..=18).chain([31, 32, 33, 40, 63, 64, 65, 127, 128, 129, 255]);
            let others: Vec<(usize, usize)> = sizes
                .flat_map(|n| [0, n / 2, n - 1].map(|at| (n, at)))
                .filter(|&(n, at)| bits(n, at) != expected)
                .collect();
            assert!(others.is_empty(), "{others:?} of {:?}", model.params.architecture);
        }
    }
}
