//! What a thread does with a block of text.

use crate::learner::Learner;
use crate::negatives::below;
use crate::params::Algorithm;
use crate::text::keep_some;
use latens_corpus::WordId;
use latens_math::hogwild::Row;
use latens_math::{Real, Rng};
use rand::Rng as _;

/// A thread that learns, with memory of its own.
pub(crate) struct Worker<'a> {
    learner: &'a Learner<'a>,
    rng: Rng,
    rate: f32,
    /// The words of a sentence that are kept.
    kept: Vec<u32>,
    /// What a word is guessed from.
    hidden: Row,
    /// Minus the gradient of the loss by it, times the learning rate.
    error: Row,
    copy: Row,
    loss: Loss,
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
            hidden: row.clone(),
            error: row.clone(),
            copy: row,
            loss: Loss::default(),
        }
    }

    /// The loss of all blocks so far.
    pub(crate) fn loss(&self) -> Loss {
        self.loss
    }

    /// Learns from a block of text with random numbers of its own, so that it is all one which thread does it.
    pub(crate) fn learn_block(&mut self, tokens: &[WordId], rate: f32, rng: Rng) {
        (self.rate, self.rng) = (rate, rng);
        let algorithm = self.learner.params.algorithm;
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for sentence in tokens.split(|&word| word == WordId::EOS) {
                    let probs = &self.learner.keep_probs;
                    keep_some(sentence, probs, &mut self.rng, &mut self.kept);
                    match algorithm {
                        Algorithm::Cbow => self.learn_from_means(),
                        Algorithm::SkipGram => self.learn_from_each(),
                    }
                }
            },
        );
    }

    /// Guesses each word from the mean of the words in its window. As in the original program each of these words
    /// then takes the whole step of the mean, not its share of it.
    #[inline(always)]
    fn learn_from_means(&mut self) {
        let inputs = &self.learner.inputs;
        for place in 0..self.kept.len() {
            let (begin, end) = self.window(place);
            if end - begin < 2 {
                continue;
            }
            self.hidden.clear();
            for other in (begin..end).filter(|&other| other != place) {
                inputs.add_to(self.kept[other] as usize, &mut self.hidden);
            }
            self.hidden.scale(1.0 / (end - begin - 1) as f32);
            self.guess(self.kept[place]);
            for other in (begin..end).filter(|&other| other != place) {
                inputs.add(self.kept[other] as usize, &self.error);
            }
        }
    }

    /// Guesses each word from each of the words in its window.
    #[inline(always)]
    fn learn_from_each(&mut self) {
        let inputs = &self.learner.inputs;
        for place in 0..self.kept.len() {
            let (begin, end) = self.window(place);
            for other in (begin..end).filter(|&other| other != place) {
                let word = self.kept[other] as usize;
                self.hidden.clear();
                inputs.add_to(word, &mut self.hidden);
                self.guess(self.kept[place]);
                inputs.add(word, &self.error);
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
    pub(crate) fn guess(&mut self, word: u32) {
        self.error.clear();
        let mut prob = self.tell(word, 1.0);
        for _ in 0..self.learner.params.n_negatives {
            let negative = self.learner.negatives.draw(&mut self.rng);
            if negative != word {
                prob *= self.tell(negative, 0.0);
            }
        }
        // One logarithm for all. What is added keeps it finite, but for a NaN, which must be seen.
        self.loss.sum -= (prob + f64::MIN_POSITIVE).ln();
        self.loss.n += 1;
    }

    /// The step for one word that is right (y = 1) or not (0), and the probability of saying so.
    #[inline(always)]
    fn tell(&mut self, word: u32, y: f32) -> f64 {
        let (outputs, word) = (&self.learner.outputs, word as usize);
        let score = outputs.dot(word, &self.hidden, &mut self.copy);
        let odds = (-score).exp_of();
        let sigmoid = 1.0 / (1.0 + odds);
        let step = (y - sigmoid) * self.rate;
        outputs.step(word, &self.copy, step, &self.hidden, &mut self.error);
        // σ(−x) = e^−x σ(x), which 1 − σ(x) would round to zero.
        f64::from(if y == 1.0 { sigmoid } else { odds * sigmoid })
    }
}
