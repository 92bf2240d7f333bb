use crate::canonical::{Canonical, turn};
use crate::dense::{NumericError, eigen, product};
use crate::filter::rows;
use crate::learner::Measured;
use crate::likelihood::{Run, TextGain};
use crate::panel::{Panel, times};
use crate::params::LdsParams;
use crate::steady::{Dynamics, Steady};
use latens_corpus::{Lexicon, Sentences, WordId};
use latens_math::Real;
use latens_math::linalg::Mat;
use latens_model::Valid;
use serde_json::{Map, Value};

/// A linear dynamical system of text: a state of a few hundred numbers that moves linearly from word to word,
/// and words that depend on it linearly.
///
/// It is kept in the canonical gauge: the state's stationary covariance is the identity.
#[derive(Clone, Debug)]
pub struct Lds {
    pub(crate) params: Valid<LdsParams>,
    pub(crate) lexicon: Lexicon,
    pub(crate) facts: Map<String, Value>,
    /// The probability of each word, pseudo-counts included.
    pub(crate) mu: Vec<f64>,
    /// How often each word was seen.
    pub(crate) counts: Vec<u64>,
    pub(crate) dynamics: Dynamics,
    pub(crate) steady: Steady,
    /// C: a row a word, whitened.
    pub(crate) words: Panel<f32>,
    /// B u_i, what a word adds to the filtered state; zero for words that were never seen.
    pub(crate) inputs: Panel<f32>,
    /// Second moments of filtered and of smoothed states over the training text.
    pub(crate) filtered_moment: Mat<f64>,
    pub(crate) smoothed_moment: Mat<f64>,
    pub(crate) whitening: Whitening,
    pub(crate) steps: Steps,
}

/// The small matrices that every sentence needs, row after row, in the precision of states.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    /// H and A: what becomes of a filtered state with a word, and without one.
    pub(crate) closed: Vec<f32>,
    pub(crate) open: Vec<f32>,
    /// J and P: what a smoothed state has of the next one, and of the filtered one.
    pub(crate) next: Vec<f32>,
    pub(crate) own: Vec<f32>,
    /// What [`Whitening`] has.
    pub(crate) types: Vec<f32>,
    pub(crate) filtered: Vec<f32>,
    pub(crate) smoothed: Vec<f32>,
}

impl Steps {
    fn of(dynamics: &Dynamics, steady: &Steady, whitening: &Whitening) -> Steps {
        Steps {
            closed: rows(&steady.h),
            open: rows(&dynamics.a),
            next: rows(&steady.j),
            own: rows(&steady.p),
            types: rows(&whitening.types),
            filtered: rows(&whitening.filtered),
            smoothed: rows(&whitening.smoothed),
        }
    }
}

/// What makes each kind of vector have unit covariance: factors on the right.
#[derive(Clone, Debug)]
pub(crate) struct Whitening {
    pub(crate) types: Mat<f64>,
    pub(crate) filtered: Mat<f64>,
    pub(crate) smoothed: Mat<f64>,
}

impl Lds {
    /// What the file calls this model.
    pub const KIND: &str = "lds";

    pub(crate) fn from_learned(
        params: Valid<LdsParams>,
        lexicon: Lexicon,
        facts: Map<String, Value>,
        mu: Vec<f64>,
        counts: Vec<u64>,
        best: Measured,
    ) -> Result<Lds, NumericError> {
        let (model, rotation) = best.model.rotated()?;
        let moments = [&best.moments.filtered, &best.moments.smoothed];
        let moments = moments.map(|moment| turn(moment, &rotation));
        drop(best);
        Lds::new(params, lexicon, facts, (mu, counts), model, moments)
    }

    pub(crate) fn new(
        params: Valid<LdsParams>,
        lexicon: Lexicon,
        facts: Map<String, Value>,
        (mu, counts): (Vec<f64>, Vec<u64>),
        model: Canonical<f32>,
        [filtered_moment, smoothed_moment]: [Mat<f64>; 2],
    ) -> Result<Lds, NumericError> {
        let dynamics = model.dynamics();
        let steady = Steady::of(&dynamics)?;
        let words = model.c;
        let mut inputs = times(words.view(), &steady.b.transpose().to_owned());
        let unseen = (0..mu.len()).filter(|&word| counts[word] == 0);
        unseen.for_each(|word| inputs.row_mut(word).fill(0.0));
        // Σ μ_i (B u_i)(B u_i)ᵀ, as u_i = c_i / √μ_i.
        let type_moment = crate::sums::gram(inputs.view());
        inputs.scale_rows(&mu.iter().map(|mu| (1.0 / mu.sqrt()) as f32).collect::<Vec<_>>());
        let whitening = Whitening {
            types: whitening(&type_moment)?,
            filtered: whitening(&filtered_moment)?,
            smoothed: whitening(&smoothed_moment)?,
        };
        let steps = Steps::of(&dynamics, &steady, &whitening);
        Ok(Lds {
            steps,
            params,
            lexicon,
            facts,
            mu,
            counts,
            dynamics,
            steady,
            words,
            inputs,
            filtered_moment,
            smoothed_moment,
            whitening,
        })
    }

    /// The parameters it was fitted with.
    pub fn params(&self) -> &Valid<LdsParams> {
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

    /// What a user should know of its training, in words; usually nothing.
    pub fn warnings(&self) -> Vec<&str> {
        let warnings = self.facts.get("warnings").and_then(Value::as_array);
        warnings.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// How many numbers the state has.
    pub fn dim(&self) -> usize {
        self.dynamics.dim()
    }

    /// A: the state's transition, row after row.
    pub fn transition(&self) -> Vec<f64> {
        crate::learner::to_rows(&self.dynamics.a)
    }

    /// How often a word was seen in training.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn count(&self, word: WordId) -> u64 {
        self.counts[word.index()]
    }

    /// A vector for each word, whitened and of unit length, row after row; a row has [`Lds::dim`] numbers.
    /// Words that were never seen have zeros.
    pub fn type_vectors(&self) -> Vec<f32> {
        let mut vectors = times(self.inputs.view(), &self.whitening.types);
        (0..vectors.n_rows()).for_each(|row| normalise(vectors.row_mut(row)));
        vectors.to_rows()
    }

    /// The mean log-likelihood of a text's tokens in nats, less that of independent words of a Gaussian with the
    /// same covariance. Rare words dominate it; it compares models of one vocabulary and one `pseudo_counts`.
    pub fn gain(&self, text: &Sentences) -> f64 {
        let gain = TextGain::new(&self.dynamics, &self.steady, &self.words, &self.mu);
        let runs = Run::all(text, self.params.boundary);
        gain.of(text.tokens(), &runs) / text.n_tokens().max(1) as f64
    }

    /// How likely each word is next, after words that left the filtered state x: μ_i max(1 + u_i · A x, 0.02),
    /// normalised. Without the bound these are the linear expectations themselves.
    pub fn next_word_probs(&self, words: &[WordId]) -> Vec<f64> {
        let linear = self.linear_read_out(words);
        let mut probs: Vec<f64> = linear.iter().map(|ratio| ratio.max(LEAST_RATIO)).collect();
        probs.iter_mut().zip(&self.mu).for_each(|(prob, mu)| *prob *= mu);
        let sum: f64 = probs.iter().sum();
        probs.iter_mut().for_each(|prob| *prob /= sum);
        probs
    }

    /// 1 + u_i · A x: how much likelier than usual each word is to come next.
    pub(crate) fn linear_read_out(&self, words: &[WordId]) -> Vec<f64> {
        let states = self.filter(words, None);
        let dim = self.dim();
        let last = states.len().checked_sub(dim).map(|at| &states[at..]);
        let x = Mat::from_fn(dim, 1, |i, _| last.map_or(0.0, |x| f64::from(x[i])));
        let p = product([self.dynamics.a.as_ref(), x.as_ref()]);
        let ratio = |word: usize| {
            let row = self.words.row(word).iter().enumerate();
            1.0 + row.map(|(i, c)| c.wide() * p[(i, 0)]).sum::<f64>() / self.mu[word].sqrt()
        };
        (0..self.mu.len()).map(ratio).collect()
    }
}

/// No word becomes less likely than by this factor.
const LEAST_RATIO: f64 = 0.02;

/// M^{−½}, so that x M^{−½} has unit covariance if x has M. What has no variance stays nothing.
fn whitening(moment: &Mat<f64>) -> Result<Mat<f64>, NumericError> {
    let eigen = eigen(&crate::dense::symmetric(moment), "the moments of the states")?;
    let least = 1e-9 * eigen.greatest();
    Ok(eigen.map(|value| if value > least && value > 0.0 { 1.0 / value.sqrt() } else { 0.0 }))
}

/// Puts a vector on the unit sphere; zero stays zero.
pub(crate) fn normalise(x: &mut [f32]) {
    let norm = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    if norm > 1e-20 && norm.is_finite() {
        x.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
    } else {
        x.fill(0.0);
    }
}
