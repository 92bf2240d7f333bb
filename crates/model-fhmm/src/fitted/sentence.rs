//! Posteriors and most likely states of a sentence, given as text or as word ids.

use crate::fitted::model::Fhmm;
use crate::inference::convergence::Stop;
use crate::inference::layer_chain::Column;
use crate::params::Inference;
use latens_corpus::WordId;
use latens_model::Matrix;

impl Fhmm {
    /// Posterior of the states given the whole text: one row per token, one column per state of each layer.
    ///
    /// The columns of layer m are `m * n_states()..(m + 1) * n_states()`, and sum to one. The text is one sentence.
    pub fn posterior(&self, text: &str) -> Matrix<f32> {
        without_last_row(self.posterior_of(&self.sentence(text)))
    }

    /// Like [`Fhmm::posterior`], for word ids: one row per id. A sentence should end with `<eos>`.
    pub fn posterior_of(&self, sentence: &[WordId]) -> Matrix<f32> {
        let words = self.rows_of(sentence);
        let n_columns = self.smoother.distribution().shape.row();
        let gamma = match words.is_empty() {
            true => vec![],
            false => self.smoother.expect(&[&words], Stop::accurate()).gamma,
        };
        Matrix::from_vec(words.len(), n_columns, gamma)
    }

    /// Most likely states of a text (Viterbi): one row per token, one column per layer.
    ///
    /// The path is the most likely one of each layer by itself, or the joint one of all layers for [`Inference::Exact`].
    /// The text is one sentence.
    pub fn viterbi(&self, text: &str) -> Matrix<u32> {
        without_last_row(self.viterbi_of(&self.sentence(text)))
    }

    /// Like [`Fhmm::viterbi`], for word ids: one row per id. A sentence should end with `<eos>`.
    pub fn viterbi_of(&self, sentence: &[WordId]) -> Matrix<u32> {
        let (words, shape) = (self.rows_of(sentence), self.smoother.distribution().shape);
        if words.is_empty() {
            return Matrix::zeros(0, shape.n_layers);
        }
        if self.smoother.inference() == Inference::Exact {
            let path = self.smoother.joint().best_path(&words);
            return Matrix::from_vec(words.len(), shape.n_layers, path);
        }
        let mut states = Matrix::zeros(words.len(), shape.n_layers);
        self.smoother.infer(&[&words], Stop::accurate(), &mut |result| {
            for (layer, chain) in self.smoother.chains().iter().enumerate() {
                let column = Column { first: layer * shape.n_states, row: shape.row() };
                let path = chain.best_path(result.fields, column);
                path.iter().enumerate().for_each(|(t, &state)| states[(t, layer)] = state);
            }
        });
        states
    }

    /// Lower bound on the log-likelihood of a text in nats, including `<eos>`. It is exact for [`Inference::Exact`].
    ///
    /// The text is one sentence.
    pub fn bound(&self, text: &str) -> f64 {
        self.bound_of(&self.sentence(text))
    }

    /// Like [`Fhmm::bound`], for word ids. A sentence should end with `<eos>`.
    pub fn bound_of(&self, sentence: &[WordId]) -> f64 {
        self.smoother.bounds(&[&self.rows_of(sentence)], Stop::accurate())
    }

    /// Ids of the words of a text, and `<eos>`.
    fn sentence(&self, text: &str) -> Vec<WordId> {
        let mut ids = vec![];
        self.lexicon.preprocessing.words(text, |word| ids.push(self.word_id(word)));
        ids.push(WordId::EOS);
        ids
    }

    fn rows_of(&self, sentence: &[WordId]) -> Vec<u32> {
        sentence.iter().map(|&word| self.rows.row(word)).collect()
    }
}

/// Removes the row of `<eos>`.
fn without_last_row<T>(matrix: Matrix<T>) -> Matrix<T> {
    let (n_rows, n_columns) = (matrix.n_rows() - 1, matrix.n_columns());
    let mut values = matrix.into_vec();
    values.truncate(n_rows * n_columns);
    Matrix::from_vec(n_rows, n_columns, values)
}
