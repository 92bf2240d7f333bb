//! Mini-batches of text.

use crate::params::{Architecture, Mask, Memory, NeuralParams};
use latens_corpus::WordId;
use latens_math::Rng;
use latens_nn::Streams;

/// Target words with their input words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Batch {
    pub(crate) n_streams: usize,
    /// Input words of each row, most recent first: one word, or the context of a feed-forward network.
    pub(crate) inputs: Vec<u32>,
    /// Target word of each row.
    pub(crate) targets: Vec<u32>,
    /// Whether the state is reset before each row; empty if it never is.
    pub(crate) fresh: Vec<bool>,
}

impl Batch {
    /// One row per context of the next word, of which nothing is scored.
    pub(crate) fn of_contexts(params: &NeuralParams, contexts: Vec<u32>) -> Batch {
        let n_streams = contexts.len() / params.n_context();
        let resets = params.memory == Memory::Reset && params.architecture != Architecture::Ff;
        let fresh = contexts.iter().filter(|_| resets).map(|&word| word == WordId::EOS.0).collect();
        Batch { n_streams, inputs: contexts, targets: vec![WordId::EOS.0; n_streams], fresh }
    }

    /// Appends a word to the context of the next word.
    pub(crate) fn append(params: &NeuralParams, context: &mut [u32], word: u32) {
        context.rotate_right(1);
        context[0] = word;
        if params.memory == Memory::Reset && word == WordId::EOS.0 {
            context.fill(word);
        }
    }

    pub(crate) fn streams(&self) -> Streams<'_> {
        Streams { n: self.n_streams, fresh: &self.fresh }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.targets.len()
    }
}

/// Divides a text into mini-batches.
pub(crate) struct Reader<'a> {
    tokens: &'a [WordId],
    n_context: usize,
    is_recurrent: bool,
    memory: Memory,
    n_streams: usize,
    n_steps: usize,
    /// Number of steps of the first mini-batch, which may be shorter.
    first_steps: usize,
    /// Whether it is drawn for every epoch, so that gradients are not always cut at the same words.
    draws_first: bool,
}

impl<'a> Reader<'a> {
    /// A reader for training. The number of streams is at most the number of tokens.
    pub(crate) fn new(params: &NeuralParams, tokens: &'a [WordId]) -> Reader<'a> {
        let n_streams = params.batch_size.min(tokens.len()).max(1);
        let is_recurrent = params.architecture != Architecture::Ff;
        Reader {
            tokens,
            n_context: params.n_context(),
            is_recurrent,
            memory: params.memory,
            n_streams,
            n_steps: if is_recurrent { params.bptt } else { 1 },
            first_steps: if is_recurrent { params.bptt } else { 1 },
            draws_first: is_recurrent && params.mask == Mask::Sequence,
        }
    }

    /// Draws the length of the first mini-batch of an epoch, for networks with masks of sequences.
    pub(crate) fn draw_first_steps(&mut self, rng: &mut Rng) {
        if self.draws_first {
            self.first_steps = 1 + (rng.uniform() * self.n_steps as f64) as usize;
        }
    }

    /// A reader for scoring, with a single stream, so that every word is predicted from all preceding words.
    pub(crate) fn to_score(params: &NeuralParams, tokens: &'a [WordId]) -> Reader<'a> {
        /// Number of words per batch.
        const ROWS: usize = 256;
        let reader = Reader::new(params, tokens);
        if reader.is_recurrent {
            Reader { n_streams: 1, n_steps: ROWS, first_steps: ROWS, ..reader }
        } else {
            Reader { n_streams: ROWS.min(tokens.len()).max(1), ..reader }
        }
    }

    pub(crate) fn n_streams(&self) -> usize {
        self.n_streams
    }

    /// Number of tokens in a full mini-batch.
    pub(crate) fn full_size(&self) -> usize {
        (self.n_streams * self.n_steps).min(self.tokens.len()).max(1)
    }

    /// Minimum number of tokens per stream. The first streams have one more if tokens do not divide evenly.
    fn stream_len(&self) -> usize {
        self.tokens.len() / self.n_streams
    }

    /// Number of mini-batches.
    pub(crate) fn len(&self) -> usize {
        if !self.is_recurrent {
            return self.tokens.len().div_ceil(self.n_streams);
        }
        let odd = !self.tokens.len().is_multiple_of(self.n_streams);
        let n_later = self.stream_len().saturating_sub(self.first_steps);
        let n_first = usize::from(self.stream_len() > 0);
        n_first + n_later.div_ceil(self.n_steps) + usize::from(odd)
    }

    /// A random order of the words for a feed-forward network; empty for recurrent networks.
    pub(crate) fn order(&self, rng: &mut Rng) -> Vec<u32> {
        if self.is_recurrent {
            return vec![];
        }
        let mut order: Vec<u32> = (0..self.tokens.len() as u32).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, (rng.uniform() * (i + 1) as f64) as usize);
        }
        order
    }

    /// The mini-batch with index `at`. Words are in the given `order`, or in text order if it is empty.
    pub(crate) fn batch(&self, at: usize, order: &[u32]) -> Batch {
        let mut batch = Batch::default();
        if self.is_recurrent {
            self.recurrent_batch(at, &mut batch);
        } else {
            let begin = at * self.n_streams;
            let end = (begin + self.n_streams).min(self.tokens.len());
            batch.n_streams = end - begin;
            for i in begin..end {
                self.push(order.get(i).map_or(i, |&place| place as usize), &mut batch);
            }
        }
        batch
    }

    fn recurrent_batch(&self, at: usize, batch: &mut Batch) {
        let (len, rest) = (self.stream_len(), self.tokens.len() % self.n_streams);
        let start = |at: usize| match at.checked_sub(1) {
            None => 0,
            Some(earlier) => (self.first_steps + earlier * self.n_steps).min(len),
        };
        let begin = start(at);
        // The last batch has the extra tokens of the longer streams.
        let (end, n) = if begin < len { (start(at + 1), self.n_streams) } else { (len + 1, rest) };
        batch.n_streams = n;
        for step in begin..end {
            for stream in 0..n {
                self.push(stream * len + stream.min(rest) + step, batch);
            }
        }
    }

    /// Adds the token at `place` as a target.
    fn push(&self, place: usize, batch: &mut Batch) {
        let mut has_begun = false;
        for back in 1..=self.n_context {
            // The context before the text, and before a sentence after a reset, is filled with `<eos>`.
            let word = match place.checked_sub(back) {
                Some(place) if !has_begun => self.tokens[place],
                _ => WordId::EOS,
            };
            has_begun |= self.memory == Memory::Reset && word == WordId::EOS;
            batch.inputs.push(word.0);
        }
        if self.is_recurrent && self.memory == Memory::Reset {
            batch.fresh.push(has_begun);
        }
        batch.targets.push(self.tokens[place].0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: [u32; 11] = [2, 3, 1, 4, 1, 5, 6, 7, 1, 8, 1];

    fn tokens() -> Vec<WordId> {
        TEXT.map(WordId).to_vec()
    }

    #[test]
    fn every_token_is_a_target_once_with_its_predecessor_as_input() {
        let tokens = tokens();
        for architecture in [Architecture::Rnn, Architecture::Ff] {
            for (batch_size, bptt) in [(1, 3), (3, 2), (4, 100), (20, 1), (11, 5)] {
                let params = NeuralParams { architecture, batch_size, bptt, ..NeuralParams::rnn() };
                let mut reader = Reader::new(&params, &tokens);
                reader.draws_first = architecture == Architecture::Rnn && bptt != 3;
                reader.draw_first_steps(&mut Rng::new(2));
                let order = reader.order(&mut Rng::new(1));
                let n_context = params.n_context();
                let mut pairs = Vec::new();
                for batch in (0..reader.len()).map(|at| reader.batch(at, &order)) {
                    assert!(batch.n_rows() > 0 && batch.n_rows() <= reader.full_size());
                    assert_eq!(batch.n_rows() % batch.n_streams, 0);
                    let inputs = batch.inputs.chunks(n_context);
                    pairs.extend(inputs.zip(batch.targets.clone()).map(|(input, y)| (input[0], y)));
                }
                pairs.sort_unstable();
                let before = [1].into_iter().chain(TEXT);
                let mut expected: Vec<(u32, u32)> = before.zip(TEXT).collect();
                expected.sort_unstable();
                assert_eq!(pairs, expected, "{batch_size} {bptt}");
            }
        }
    }

    #[test]
    fn streams_continue_in_the_next_batch() {
        let tokens = tokens();
        let params = NeuralParams { batch_size: 3, bptt: 2, ..NeuralParams::rnn() };
        let reader = Reader::new(&params, &tokens);
        assert_eq!(reader.len(), 3);
        // The streams are 2 3 1 4, 1 5 6 7 and 1 8 1.
        assert_eq!(reader.batch(0, &[]).targets, [2, 1, 1, 3, 5, 8]);
        assert_eq!(reader.batch(0, &[]).inputs, [1, 4, 7, 2, 1, 1]);
        assert_eq!(reader.batch(1, &[]).targets, [1, 6, 1]);
        let last = reader.batch(2, &[]);
        assert_eq!((last.n_streams, &last.targets[..]), (2, &[4, 7][..]));
    }

    #[test]
    fn reset_marks_the_beginning_of_each_sentence() {
        let tokens = tokens();
        let reset = |architecture| {
            let memory = Memory::Reset;
            let params = NeuralParams { architecture, memory, order: 3, ..NeuralParams::rnn() };
            Reader::to_score(&params, &tokens).batch(0, &[])
        };
        let fresh = reset(Architecture::Rnn).fresh;
        let begins = |i: usize| i == 0 || TEXT[i - 1] == 1;
        assert_eq!(fresh, (0..11).map(begins).collect::<Vec<_>>());
        let contexts = reset(Architecture::Ff).inputs;
        assert_eq!(contexts[..12], [1, 1, 2, 1, 3, 2, 1, 1, 4, 1, 1, 1]);
    }

    #[test]
    fn orders_are_permutations() {
        let tokens = tokens();
        let mut order = Reader::new(&NeuralParams::ff(), &tokens).order(&mut Rng::new(3));
        assert_ne!(order, (0..11).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..11).collect::<Vec<_>>());
    }
}
