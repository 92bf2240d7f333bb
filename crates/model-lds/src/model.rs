use crate::linalg::dense::{eigen, symmetric, to_row_major};
use crate::linalg::error::NumericError;
use crate::linalg::panel::{Panel, times};
use crate::linalg::sums::gram;
use crate::params::LdsParams;
use crate::system::canonical::Canonical;
use crate::system::steady_state::{Dynamics, SteadyState};
use latens_corpus::{Lexicon, WordId};
use latens_math::linalg::Mat;
use latens_model::{Matrix, Valid};
use serde_json::{Map, Value};

/// A linear dynamical system of text: a state vector that moves linearly from word to word, and words that depend on
/// it linearly.
///
/// The state is in the canonical gauge: its stationary covariance is the identity. Sequences have no start state: the
/// state is stationary from the first token on.
#[derive(Clone, Debug)]
pub struct Lds {
    pub(crate) params: Valid<LdsParams>,
    pub(crate) lexicon: Lexicon,
    pub(crate) facts: Map<String, Value>,
    /// The probability of each word, including pseudo-counts.
    pub(crate) mu: Vec<f64>,
    /// The number of occurrences of each word in the training text.
    pub(crate) counts: Vec<u64>,
    pub(crate) dynamics: Dynamics,
    pub(crate) steady: SteadyState,
    /// C: one row per word, whitened.
    pub(crate) words: Panel<f32>,
    /// B u_i, the contribution of a word to the filtered state; zero for words that were never seen.
    pub(crate) inputs: Panel<f32>,
    /// Second moment of filtered states over the training text.
    pub(crate) filtered_moment: Mat<f64>,
    /// Second moment of smoothed states over the training text.
    pub(crate) smoothed_moment: Mat<f64>,
    pub(crate) whitening: Whitening,
    pub(crate) step_matrices: StepMatrices,
}

/// The parts of a fitted model, from which everything else follows.
pub(crate) struct LdsParts {
    pub(crate) params: Valid<LdsParams>,
    pub(crate) lexicon: Lexicon,
    pub(crate) facts: Map<String, Value>,
    pub(crate) mu: Vec<f64>,
    pub(crate) counts: Vec<u64>,
    pub(crate) system: Canonical<f32>,
    pub(crate) filtered_moment: Mat<f64>,
    pub(crate) smoothed_moment: Mat<f64>,
}

/// The small matrices of the filter, the smoother and the encoder, row-major in single precision.
#[derive(Clone, Debug)]
pub(crate) struct StepMatrices {
    /// H, which advances a filtered state over a known word.
    pub(crate) known_word: Vec<f32>,
    /// A, which advances a filtered state over a word that was never seen.
    pub(crate) unseen_word: Vec<f32>,
    /// J, the weight of the next smoothed state in a smoothed state.
    pub(crate) from_next: Vec<f32>,
    /// P, the weight of the filtered state in a smoothed state.
    pub(crate) from_filtered: Vec<f32>,
    /// The matrices of [`Whitening`].
    pub(crate) whiten_types: Vec<f32>,
    pub(crate) whiten_filtered: Vec<f32>,
    pub(crate) whiten_smoothed: Vec<f32>,
}

impl StepMatrices {
    fn of(dynamics: &Dynamics, steady: &SteadyState, whitening: &Whitening) -> StepMatrices {
        StepMatrices {
            known_word: to_row_major(&steady.h),
            unseen_word: to_row_major(&dynamics.a),
            from_next: to_row_major(&steady.j),
            from_filtered: to_row_major(&steady.p),
            whiten_types: to_row_major(&whitening.types),
            whiten_filtered: to_row_major(&whitening.filtered),
            whiten_smoothed: to_row_major(&whitening.smoothed),
        }
    }
}

impl StepMatrices {
    /// Whether products of the matrices with states cannot overflow.
    pub(crate) fn are_moderate(&self) -> bool {
        let StepMatrices { known_word, unseen_word, from_next, from_filtered, .. } = self;
        let StepMatrices { whiten_types, whiten_filtered, whiten_smoothed, .. } = self;
        let steps = [known_word, unseen_word, from_next, from_filtered];
        let all = steps.into_iter().chain([whiten_types, whiten_filtered, whiten_smoothed]);
        all.flatten().all(|x| x.abs() <= 1e18)
    }
}

/// Right factors that give each kind of vector unit covariance.
#[derive(Clone, Debug)]
pub(crate) struct Whitening {
    pub(crate) types: Mat<f64>,
    pub(crate) filtered: Mat<f64>,
    pub(crate) smoothed: Mat<f64>,
}

impl Lds {
    /// The kind of this model in model files.
    pub const KIND: &str = "lds";

    pub(crate) fn new(parts: LdsParts) -> Result<Lds, NumericError> {
        let LdsParts {
            params,
            lexicon,
            facts,
            mu,
            counts,
            system,
            filtered_moment,
            smoothed_moment,
        } = parts;
        let dynamics = system.dynamics();
        let steady = SteadyState::of(&dynamics)?;
        let words = system.c;
        let mut inputs = times(words.view(), &steady.b.transpose().to_owned());
        let unseen = (0..mu.len()).filter(|&word| counts[word] == 0);
        unseen.for_each(|word| inputs.row_mut(word).fill(0.0));
        // Σ μ_i (B u_i)(B u_i)ᵀ, as u_i = c_i / √μ_i.
        let type_moment = gram(inputs.view());
        inputs.scale_rows(&mu.iter().map(|mu| (1.0 / mu.sqrt()) as f32).collect::<Vec<_>>());
        let whitening = Whitening {
            types: inverse_root(&type_moment)?,
            filtered: inverse_root(&filtered_moment)?,
            smoothed: inverse_root(&smoothed_moment)?,
        };
        let step_matrices = StepMatrices::of(&dynamics, &steady, &whitening);
        Ok(Lds {
            step_matrices,
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

    /// Default parameters, to be changed by setters.
    pub fn params() -> LdsParams {
        LdsParams::default()
    }

    /// The parameters that the model was fitted with.
    pub fn fitted_with(&self) -> &Valid<LdsParams> {
        &self.params
    }

    /// The preprocessing and the vocabulary of the model.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Facts about the training, which are saved with the model.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Warnings about the training; usually none.
    pub fn warnings(&self) -> Vec<&str> {
        let warnings = self.facts.get("warnings").and_then(Value::as_array);
        warnings.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The dimension of the state.
    pub fn dim(&self) -> usize {
        self.dynamics.dim()
    }

    /// The transition matrix A of the state.
    pub fn transition(&self) -> Matrix<f64> {
        Matrix::from_vec(self.dim(), self.dim(), to_row_major(&self.dynamics.a))
    }

    /// The observation matrix C, which maps a state to whitened words: one row per word.
    pub fn observation(&self) -> Matrix<f32> {
        Matrix::from_vec(self.words.n_rows(), self.dim(), self.words.to_rows())
    }

    /// The number of occurrences of a word in the training text.
    ///
    /// # Panics
    /// If the word is not in the vocabulary.
    pub fn count(&self, word: WordId) -> u64 {
        self.counts[word.index()]
    }

    /// One vector per word, whitened and of unit length: the contribution of the word to the filtered state.
    ///
    /// The vectors of words that were never seen are zero.
    pub fn type_vectors(&self) -> Matrix<f32> {
        let mut vectors = times(self.inputs.view(), &self.whitening.types);
        (0..vectors.n_rows()).for_each(|row| normalize(vectors.row_mut(row)));
        Matrix::from_vec(vectors.n_rows(), self.dim(), vectors.to_rows())
    }
}

/// M^{−½} of a second moment M, which whitens vectors with this moment; zero in directions without variance.
fn inverse_root(moment: &Mat<f64>) -> Result<Mat<f64>, NumericError> {
    let eigen = eigen(&symmetric(moment), "the second moment of the states")?;
    let least = 1e-9 * eigen.greatest();
    Ok(eigen.map(|value| if value > least && value > 0.0 { 1.0 / value.sqrt() } else { 0.0 }))
}

/// Scales a vector to unit length; a zero vector stays zero.
pub(crate) fn normalize(x: &mut [f32]) {
    let norm = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    if norm > 1e-20 && norm.is_finite() {
        x.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
    } else {
        x.fill(0.0);
    }
}
