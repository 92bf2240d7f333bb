//! Training steps of one thread, and the parallel loop over blocks of text.

use crate::learner::Learner;
use crate::negatives::below;
use crate::params::Algorithm;
use crate::text::keep_some;
use latens_corpus::WordId;
use latens_math::hogwild::Row;
use latens_math::{Real, Rng};
use pulp::{Simd, WithSimd};
use rand::Rng as _;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Trains on some blocks of an epoch with all threads, without locks.
pub(crate) fn learn_blocks(learner: &Learner<'_>, epoch: usize, blocks: Range<usize>) -> Loss {
    let next = AtomicUsize::new(blocks.start);
    let losses = rayon::broadcast(|_| {
        let mut worker = Worker::new(learner);
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= blocks.end {
                return worker.loss();
            }
            let (rate, rng) = (learner.rate(epoch, block), learner.rng(epoch, block));
            worker.learn_block(learner.tokens(block), rate, rng);
        }
    });
    let add = |a: Loss, b: Loss| Loss { sum: a.sum + b.sum, n: a.n + b.n };
    losses.into_iter().fold(Loss::default(), add)
}

/// State of one training thread.
pub(crate) struct Worker<'a> {
    learner: &'a Learner<'a>,
    rng: Rng,
    rate: f32,
    /// Words of the current sentence that subsampling keeps.
    kept: Vec<u32>,
    /// Target word of the next prediction, then its negative samples. They are drawn one prediction ahead, so that
    /// their vectors can be prefetched.
    pub(crate) words: Vec<u32>,
    /// Output vectors of `words`.
    rows: Vec<Row>,
    /// The vector h that a word is predicted from.
    pub(crate) hidden: Row,
    /// −∂L/∂h times the learning rate.
    pub(crate) error: Row,
    /// Scratch row.
    row: Row,
    /// u_w · h of the target and −u_v · h of the negative samples, then σ of these: probabilities of the true labels.
    scores: Vec<f32>,
    loss: Loss,
}

/// A block to train on with the SIMD instructions of this machine. It is not a closure, since the compiler does not
/// always inline closures here.
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
                Algorithm::Cbow => worker.learn_cbow(simd),
                Algorithm::SkipGram => worker.learn_skip_gram(simd),
            }
        }
    }
}

/// Sum of losses, and the number of predictions.
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

    /// Loss of all blocks so far.
    pub(crate) fn loss(&self) -> Loss {
        self.loss
    }

    /// Trains on a block of text. Each block has its own random stream, so that it does not matter which thread
    /// processes it.
    pub(crate) fn learn_block(&mut self, tokens: &[WordId], rate: f32, rng: Rng) {
        self.begin(rate, rng);
        pulp::Arch::new().dispatch(LearnBlock { worker: self, tokens });
    }

    pub(crate) fn begin(&mut self, rate: f32, rng: Rng) {
        (self.rate, self.rng) = (rate, rng);
        self.draw_negatives();
    }

    /// CBOW: predicts each word from the mean of the words in its window. As in the original program, each context word
    /// takes the whole step of the mean, not its share.
    #[inline(always)]
    fn learn_cbow<S: Simd>(&mut self, simd: S) {
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
            self.predict(simd, self.kept[place]);
            for other in (begin..end).filter(|&other| other != place) {
                let word = self.kept[other] as usize;
                inputs.load(word, &mut self.row);
                self.row.add_scaled(simd, 1.0, &self.error);
                inputs.store(word, &self.row);
            }
        }
    }

    /// Skip-gram: predicts each word from each of the words in its window.
    #[inline(always)]
    fn learn_skip_gram<S: Simd>(&mut self, simd: S) {
        let inputs = &self.learner.inputs;
        for place in 0..self.kept.len() {
            let (begin, end) = self.window(place);
            for other in (begin..end).filter(|&other| other != place) {
                let word = self.kept[other] as usize;
                inputs.load(word, &mut self.hidden);
                self.predict(simd, self.kept[place]);
                self.hidden.add_scaled(simd, 1.0, &self.error);
                inputs.store(word, &self.hidden);
            }
        }
    }

    /// Window around `place`, of random size.
    #[inline(always)]
    fn window(&mut self, place: usize) -> (usize, usize) {
        let reach = 1 + below(self.learner.params.window as u32, self.rng.next_u64()) as usize;
        (place.saturating_sub(reach), (place + reach + 1).min(self.kept.len()))
    }

    /// One gradient step on the negative-sampling loss of `word` with negative samples v (Mikolov et al. 2013b, eq. 4):
    ///
    /// L = −ln σ(u_w · h) − Σ_v ln σ(−u_v · h)
    ///
    /// with h = `hidden` and output vectors u. With y = 1 for the target and 0 for negative samples,
    ///
    /// ∂L/∂u_v = (σ(u_v · h) − y) h,   ∂L/∂h = Σ_v (σ(u_v · h) − y) u_v.
    ///
    /// Updates the outputs, and leaves the step of h in `error`.
    #[inline(always)]
    pub(crate) fn predict<S: Simd>(&mut self, simd: S, word: u32) {
        let outputs = &self.learner.outputs;
        self.words[0] = word;
        // The target must not be its own negative sample.
        if let Some(i) = self.words[1..].iter().position(|&negative| negative == word) {
            self.words.swap_remove(1 + i);
        }
        let n = self.words.len();
        // All rows first, then all products, then all sigmoids, to avoid dependencies between iterations.
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
        // One logarithm for all. The added constant avoids ln 0; NaN still propagates.
        self.loss.sum -= (prob + f64::MIN_POSITIVE).ln();
        self.loss.n += 1;
        self.draw_negatives();
    }

    /// Draws distinct negative samples for the next prediction.
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

/// Number of scores per SIMD step.
const LANES: usize = 8;

/// σ(x) = 1 / (1 + e^−x).
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp_of())
}
