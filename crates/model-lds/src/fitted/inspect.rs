//! A look inside: the words of a dimension, and samples of the state.

use crate::linalg::dense::{eigen, to_row_major};
use crate::linalg::error::NumericError;
use crate::model::Lds;
use latens_corpus::WordId;
use latens_math::{Rng, dot_wide};
use latens_model::Matrix;

impl Lds {
    /// The `n` words with the greatest weights in a dimension of the state, greatest first, with their weights.
    ///
    /// The weight of a word is its entry of [`Lds::observation`]. Weights are compared by absolute value, because the
    /// sign of a dimension is arbitrary: words with weights of opposite sign are at opposite ends. `<unk>` and `<eos>`
    /// are left out.
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn top_words(&self, dimension: usize, n: usize) -> Vec<(&str, f32)> {
        let words = self.top_word_ids(dimension, n).into_iter();
        words.map(|(word, weight)| (self.lexicon.vocab.word(word), weight)).collect()
    }

    /// The ids of [`Lds::top_words`].
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn top_word_ids(&self, dimension: usize, n: usize) -> Vec<(WordId, f32)> {
        let n_dims = self.dim();
        assert!(dimension < n_dims, "dimension {dimension} is out of range: there are {n_dims}");
        let ids = (WordId::EOS.index() + 1..self.words.n_rows()).map(WordId::from);
        let mut words: Vec<_> =
            ids.map(|word| (word, self.words.row(word.index())[dimension])).collect();
        words.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
        words.truncate(n);
        words
    }

    /// Draws a path of the state x_{t+1} = A x_t + η, η ~ N(0, I − A Aᵀ): one row per token, one column per dimension.
    ///
    /// There is no start state. The first row is drawn from the stationary distribution N(0, I), so that every row has
    /// this distribution. Words are not drawn: the model describes their covariances, and is not a distribution over
    /// words.
    pub fn sample_states(&self, n_tokens: usize, seed: u64) -> Result<Matrix<f64>, NumericError> {
        let dim = self.dim();
        let noise = eigen(&self.dynamics.q, "the noise covariance of the state")?;
        // Rounding can make an eigenvalue of a direction without noise negative.
        let root: Vec<f64> = to_row_major(&noise.map(|value| value.max(0.0).sqrt()));
        let transition: Vec<f64> = to_row_major(&self.dynamics.a);
        let mut rng = Rng::new(seed);
        let mut path: Vec<f64> = Vec::with_capacity(n_tokens * dim);
        for t in 0..n_tokens {
            let drawn: Vec<f64> = (0..dim).map(|_| rng.normal()).collect();
            if t == 0 {
                path.extend(drawn);
                continue;
            }
            let state = path[(t - 1) * dim..].to_vec();
            let rows = transition.chunks(dim).zip(root.chunks(dim));
            path.extend(rows.map(|(a, root)| dot_wide(a, &state) + dot_wide(root, &drawn)));
        }
        Ok(Matrix::from_vec(n_tokens, dim, path))
    }
}
