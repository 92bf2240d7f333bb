//! Word vectors from characters (Kim et al. 2016; Ma and Hovy 2016).

use super::conv::Conv;
use super::spellings::Spellings;
use super::symbols::SymbolScratch;
use crate::layers::{Activation, Embedding, Linear};
use crate::tensors::{Buffer, Layout, fill_uniform};
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_math::{Real, Rng};
use serde::{Deserialize, Serialize};

/// The shape of a [`CharCnn`].
///
/// Exhaustive, as this crate is internal: the parameters of models are the stable interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CharCnnParams {
    /// Length of a character vector.
    pub char_dim: usize,
    /// Window width and number of filters of each convolution.
    pub filters: Vec<(usize, usize)>,
    /// Activation after the maximum over time.
    pub activation: Activation,
    /// Length of the vector of a word.
    pub dim: usize,
}

impl Default for CharCnnParams {
    /// The filters of Ma and Hovy (2016) and word vectors of length 256.
    fn default() -> CharCnnParams {
        CharCnnParams {
            char_dim: 30,
            filters: vec![(3, 30)],
            activation: Activation::Tanh,
            dim: 256,
        }
    }
}

/// Characters ─▶ vectors ─▶ filters of one or more widths ─▶ maximum over time ─▶ linear layer.
#[derive(Clone, Debug)]
pub struct CharCnn {
    chars: Embedding,
    convs: Vec<Conv>,
    output: Linear,
}

/// Intermediate results of [`CharCnn::forward`] and buffers of both passes.
#[derive(Clone, Debug, Default)]
pub struct CharCnnScratch<T> {
    /// Outputs of all filters, one row per word.
    features: Buffer<T>,
    convs: Vec<SymbolScratch<T>>,
    d_features: Buffer<T>,
}

impl CharCnn {
    /// Adds a network for `n_chars` different characters. Its weights are named `name.chars`, `name.conv0.filters`,
    /// `name.conv0.bias` and so on, `name.output.weight` and `name.output.bias`.
    pub fn new(layout: &mut Layout, name: &str, n_chars: usize, params: &CharCnnParams) -> CharCnn {
        let (char_dim, activation) = (params.char_dim, params.activation);
        let chars = Embedding::new(layout, &format!("{name}.chars"), n_chars, char_dim);
        let conv = |(i, &(width, n_filters)): (usize, &(usize, usize))| {
            Conv::new(layout, &format!("{name}.conv{i}"), char_dim, width, n_filters, activation)
        };
        let convs: Vec<Conv> = params.filters.iter().enumerate().map(conv).collect();
        let n_features = convs.iter().map(Conv::n_filters).sum();
        let output = Linear::new(layout, &format!("{name}.output"), n_features, params.dim);
        CharCnn { chars, convs, output }
    }

    /// Length of the vector of a word.
    pub fn dim(&self) -> usize {
        self.output.n_out()
    }

    /// Draws the character vectors uniformly from ±√(3/`char_dim`), as Ma and Hovy do, and the other weights as
    /// [`Conv::init`] and [`Linear::init`] do.
    pub fn init<T: Real>(&self, weights: &mut [T], rng: &mut Rng) {
        let bound = (3.0 / self.chars.dim() as f64).sqrt();
        fill_uniform(self.chars.table().of_mut(weights), bound, rng);
        self.convs.iter().for_each(|conv| conv.init(weights, rng));
        self.output.init(weights, rng);
    }

    /// Writes the vector of each word to a row of `out`.
    pub fn forward<T: Real>(
        &self,
        weights: &[T],
        words: Spellings<'_>,
        scratch: &mut CharCnnScratch<T>,
        out: MatMut<'_, T>,
        par: Par,
    ) {
        let CharCnnScratch { features, convs, .. } = scratch;
        features.resize(words.len(), self.output.n_in());
        convs.resize_with(self.convs.len(), SymbolScratch::default);
        let mut rest = features.view_mut();
        for (conv, scratch) in self.convs.iter().zip(convs) {
            let (columns, others) = rest.split_at_col_mut(conv.n_filters());
            conv.forward_symbols(weights, self.chars.table(), words, scratch, columns, par);
            rest = others;
        }
        self.output.forward(weights, features.view(), out, par);
    }

    /// Adds the gradients of all weights to the flat `gradient`, given `d_out` = ∂L/∂`out` and the `words` and `scratch`
    /// of the forward pass.
    ///
    /// Each layer contributes its own backward pass; a character vector gets the sum over all filters and positions.
    pub fn backward<T: Real>(
        &self,
        weights: &[T],
        words: Spellings<'_>,
        scratch: &mut CharCnnScratch<T>,
        d_out: MatRef<'_, T>,
        gradient: &mut [T],
        par: Par,
    ) {
        let CharCnnScratch { features, convs, d_features } = scratch;
        d_features.resize(features.n_rows(), features.n_cols());
        let replaced = Some((d_features.view_mut(), Accum::Replace));
        self.output.backward(weights, features.view(), d_out, gradient, replaced, par);
        let (mut rest, vectors) = (d_features.view(), self.chars.table());
        for (conv, scratch) in self.convs.iter().zip(convs) {
            let (d_out, others) = rest.split_at_col(conv.n_filters());
            conv.backward_symbols(weights, vectors, words, scratch, d_out, gradient, par);
            rest = others;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LayerCase, Outcome, buffer, check_layer, check_threads};

    struct Case {
        chars: Vec<u32>,
        offsets: Vec<usize>,
        params: CharCnnParams,
    }

    const N_CHARS: usize = 5;

    impl LayerCase for Case {
        fn sizes(&self) -> [usize; 3] {
            let mut layout = Layout::new();
            let cnn = CharCnn::new(&mut layout, "words", N_CHARS, &self.params);
            [layout.len(), 0, (self.offsets.len() - 1) * cnn.dim()]
        }

        fn run<T: Real>(&self, weights: &[T], _: &[T], d_out: &[T], par: Par) -> Outcome<T> {
            let cnn = CharCnn::new(&mut Layout::new(), "words", N_CHARS, &self.params);
            let mut scratch = CharCnnScratch::default();
            let words = Spellings { chars: &self.chars, offsets: &self.offsets };
            let d_out = buffer(d_out, self.offsets.len() - 1, cnn.dim());
            let mut out = d_out.clone();
            cnn.forward(weights, words, &mut scratch, out.view_mut(), par);
            let mut outcome = Outcome::new(self, out.values());
            cnn.backward(weights, words, &mut scratch, d_out.view(), &mut outcome.gradient, par);
            outcome
        }
    }

    fn params(activation: Activation) -> CharCnnParams {
        CharCnnParams { char_dim: 3, filters: vec![(1, 2), (2, 4), (3, 3)], activation, dim: 6 }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for activation in [Activation::Tanh, Activation::Relu] {
            let (chars, offsets) = (vec![0, 3, 1, 1, 4, 2, 0], vec![0, 3, 3, 4, 7]);
            check_layer(&Case { chars, offsets, params: params(activation) });
        }
        check_layer(&Case { chars: vec![], offsets: vec![0], params: params(Activation::Tanh) });
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let offsets: Vec<usize> = (0..2000).map(|i| i * 5 + i % 4).collect();
        let chars = (0..*offsets.last().unwrap() as u32).map(|i| i * i % 5).collect();
        check_threads(&Case { chars, offsets, params: params(Activation::Tanh) });
    }

    #[test]
    fn convolving_symbols_agrees_with_convolving_their_vectors() {
        use crate::chars::{ConvScratch, Sequences};
        let (chars, offsets) = ([0, 3, 1, 1, 4, 2, 0], [0, 3, 3, 4, 7]);
        let words = Spellings { chars: &chars, offsets: &offsets };
        let mut layout = Layout::new();
        let cnn = CharCnn::new(&mut layout, "words", N_CHARS, &params(Activation::Tanh));
        let mut weights = vec![0f64; layout.len()];
        cnn.init(&mut weights, &mut Rng::new(1));
        let mut vectors = Buffer::new();
        vectors.resize(chars.len(), cnn.chars.dim());
        cnn.chars.forward(&weights, &chars, vectors.view_mut(), Par::Seq);
        let x = Sequences { values: vectors.values(), dim: vectors.n_cols(), offsets: &offsets };
        for conv in &cnn.convs {
            let (mut found, mut expected) = (Buffer::new(), Buffer::new());
            found.resize(4, conv.n_filters());
            expected.resize(4, conv.n_filters());
            let (scratch, vectors) = (&mut SymbolScratch::default(), cnn.chars.table());
            conv.forward_symbols(&weights, vectors, words, scratch, found.view_mut(), Par::Seq);
            let scratch = &mut ConvScratch::default();
            conv.forward(&weights, x, scratch, expected.view_mut(), Par::Seq);
            for (a, b) in found.values().iter().zip(expected.values()) {
                assert!((a - b).abs() < 1e-12, "{a} {b}");
            }
        }
    }

    #[test]
    fn words_of_equal_spelling_have_equal_vectors() {
        let (chars, offsets) = (vec![0, 3, 1, 2, 0, 3, 1], vec![0, 3, 4, 7]);
        let case = Case { chars, offsets, params: params(Activation::Tanh) };
        let cnn = CharCnn::new(&mut Layout::new(), "words", N_CHARS, &case.params);
        let mut weights = vec![0f32; case.sizes()[0]];
        cnn.init(&mut weights, &mut Rng::new(1));
        let out = case.run(&weights, &[], &[0.0; 18], Par::Seq).out;
        assert_eq!(out[..6], out[12..]);
        assert_ne!(out[..6], out[6..12]);
    }
}
