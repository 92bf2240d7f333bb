//! What a thread does with a block of text.

use crate::learner::Learner;
use crate::negatives::below;
use crate::params::Algorithm;
use crate::text::keep_some;
use latens_corpus::WordId;
use latens_math::hogwild::Row;
use latens_math::{Real, Rng};
use pulp::{Simd, WithSimd};
use rand::Rng as _;

/// A thread that learns, with memory of its own.
pub(crate) struct Worker<'a> {
    learner: &'a Learner<'a>,
    rng: Rng,
    rate: f32,
    /// The words of a sentence that are kept.
    kept: Vec<u32>,
    /// A place for the right word of the next guess, then random ones: drawn one guess ahead, so that their vectors
    /// are on the way from memory.
    pub(crate) words: Vec<u32>,
    /// The rows of these words.
    rows: Vec<Row>,
    /// What a word is guessed from.
    pub(crate) hidden: Row,
    /// Minus the gradient of the loss by it, times the learning rate.
    pub(crate) error: Row,
    /// A row on its way.
    row: Row,
    /// u_w · h of the right word and −u_v · h of the others, then σ of that: how likely the truth is.
    scores: Vec<f32>,
    loss: Loss,
}

/// A block to learn from with the vector instructions of this machine. It is no closure, since the compiler does not
/// always inline the call of a closure that it makes a function of.
struct LearnBlock<'w, 'a> {
    worker: &'w mut Worker<'a>,
    tokens: &'w [WordId],
}

impl WithSimd for LearnBlock<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let LearnBlock { worker, tokens } = self;
        for sentence in tokens.split(|&word| word == WordId::EOS) {
            keep_some(sentence, &worker.learner.keep_probs, &mut worker.rng, &mut worker.kept);
            match worker.learner.params.algorithm {
                Algorithm::Cbow => worker.learn_from_means(simd),
                Algorithm::SkipGram => worker.learn_from_each(simd),
            }
        }
    }
}

/// The sum of losses, and of how many guesses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Loss {
    pub(crate) sum: f64,
    pub(crate) n: u64,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(learner: &'a Learner<'a>) -> Worker<'a> {
        let row = learner.inputs.zeros();
        Worker {
            learner,
            rng: Rng::new(0),
            rate: 0.0,
            kept: Vec::new(),
            words: vec![0],
            rows: vec![row.clone(); 1 + learner.params.n_negatives],
            hidden: row.clone(),
            error: row.clone(),
            row,
            scores: Vec::new(),
            loss: Loss::default(),
        }
    }

    /// The loss of all blocks so far.
    pub(crate) fn loss(&self) -> Loss {
        self.loss
    }

    /// Learns from a block of text with random numbers of its own, so that it is all one which thread does it.
    pub(crate) fn learn_block(&mut self, tokens: &[WordId], rate: f32, rng: Rng) {
        self.begin(rate, rng);
        pulp::Arch::new().dispatch(LearnBlock { worker: self, tokens });
    }

    pub(crate) fn begin(&mut self, rate: f32, rng: Rng) {
        (self.rate, self.rng) = (rate, rng);
        self.draw_negatives();
    }

    /// Guesses each word from the mean of the words in its window. As in the original program each of these words
    /// then takes the whole step of the mean, not its share of it.
    #[inline(always)]
    fn learn_from_means<S: Simd>(&mut self, simd: S) {
        let inputs = &self.learner.inputs;
        for place in 0..self.kept.len() {
            let (begin, end) = self.window(place);
            if end - begin < 2 {
                continue;
            }
            let share = 1.0 / (end - begin - 1) as f32;
            self.hidden.clear();
            for other in (begin..end).filter(|&other| other != place) {
                inputs.load(self.kept[other] as usize, &mut self.row);
                self.hidden.add_scaled(simd, share, &self.row);
            }
            self.guess(simd, self.kept[place]);
            for other in (begin..end).filter(|&other| other != place) {
                let word = self.kept[other] as usize;
                inputs.load(word, &mut self.row);
                self.row.add_scaled(simd, 1.0, &self.error);
                inputs.store(word, &self.row);
            }
        }
    }

    /// Guesses each word from each of the words in its window.
    #[inline(always)]
    fn learn_from_each<S: Simd>(&mut self, simd: S) {
        let inputs = &self.learner.inputs;
        for place in 0..self.kept.len() {
            let (begin, end) = self.window(place);
            for other in (begin..end).filter(|&other| other != place) {
                let word = self.kept[other] as usize;
                inputs.load(word, &mut self.hidden);
                self.guess(simd, self.kept[place]);
                self.hidden.add_scaled(simd, 1.0, &self.error);
                inputs.store(word, &self.hidden);
            }
        }
    }

    /// The places around `place` that are looked at: up to a number that is drawn anew for each.
    #[inline(always)]
    fn window(&mut self, place: usize) -> (usize, usize) {
        let reach = 1 + below(self.learner.params.window as u32, self.rng.next_u64()) as usize;
        (place.saturating_sub(reach), (place + reach + 1).min(self.kept.len()))
    }

    /// A step down the loss of telling `word` from words v that are drawn at random (Mikolov et al. 2013b, eq. 4):
    ///
    /// L = −ln σ(u_w · h) − Σ_v ln σ(−u_v · h)
    ///
    /// with h = `hidden` and the rows u of the outputs. With y = 1 for the right word and 0 for the others,
    ///
    /// ∂L/∂u_v = (σ(u_v · h) − y) h,   ∂L/∂h = Σ_v (σ(u_v · h) − y) u_v.
    ///
    /// The outputs take their steps at once; that of h is left in `error`.
    #[inline(always)]
    pub(crate) fn guess<S: Simd>(&mut self, simd: S, word: u32) {
        let outputs = &self.learner.outputs;
        self.words[0] = word;
        // The right word is the first; it is no wrong one.
        if let Some(i) = self.words[1..].iter().position(|&negative| negative == word) {
            self.words.swap_remove(1 + i);
        }
        let n = self.words.len();
        // All rows first, then all products, then all sigmoids: so none has to wait for the one before.
        for (&word, row) in self.words.iter().zip(&mut self.rows) {
            outputs.load(word as usize, row);
        }
        self.scores.resize(n.next_multiple_of(LANES), 0.0);
        for (score, row) in self.scores.iter_mut().zip(&self.rows[..n]) {
            *score = row.dot(simd, &self.hidden);
        }
        self.scores[0] = -self.scores[0];
        for lanes in self.scores.as_chunks_mut::<LANES>().0 {
            lanes.iter_mut().for_each(|score| *score = sigmoid(-*score));
        }
        self.error.clear();
        for i in 0..n {
            let step = self.rate * (1.0 - self.scores[i]) * if i == 0 { 1.0 } else { -1.0 };
            self.error.add_scaled(simd, step, &self.rows[i]);
            self.rows[i].add_scaled(simd, step, &self.hidden);
            outputs.store(self.words[i] as usize, &self.rows[i]);
        }
        let prob: f64 = self.scores[..n].iter().map(|&prob| f64::from(prob)).product();
        // One logarithm for all. What is added keeps it finite, but for a NaN, which must be seen.
        self.loss.sum -= (prob + f64::MIN_POSITIVE).ln();
        self.loss.n += 1;
        self.draw_negatives();
    }

    /// Draws words for the next guess. One that is drawn twice is there once only.
    #[inline(always)]
    fn draw_negatives(&mut self) {
        let Learner { negatives, outputs, params, .. } = self.learner;
        self.words.truncate(1);
        for _ in 0..params.n_negatives {
            let negative = negatives.draw(&mut self.rng);
            if !self.words[1..].contains(&negative) {
                outputs.prefetch(negative as usize);
                self.words.push(negative);
            }
        }
    }
}

/// How many scores are worked on at once.
const LANES: usize = 8;

/// σ(x) = 1 / (1 + e^−x).
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp_of())
}
