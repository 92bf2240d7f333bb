//! The vectors of words, one row per slot.

use crate::params::{HmmParams, WordEmbedding};
use crate::weights::letters::Letters;
use latens_math::linalg::Par;
use latens_math::{Real, Rng};
use latens_nn::{
    Activation, Buffer, CharCnn, CharCnnParams, CharCnnScratch, Layout, WeightId, fill_uniform,
};

/// Word vectors and one bias per word.
pub(crate) struct WordTable {
    vectors: Source,
    dim: usize,
    bias: WeightId,
    /// The slot of the word that is never emitted.
    silent: Option<usize>,
}

/// The bias of a word that is never emitted: its probability and its gradient are zero in any precision.
const SILENT: f64 = -1e30;

enum Source {
    /// An embedding.
    Table(WeightId),
    /// A convolutional network over the characters of the word.
    Network { cnn: CharCnn, letters: Letters },
}

/// The vectors that a network computes in every mini-batch, and their derivatives.
#[derive(Default)]
pub(crate) struct WordScratch<T> {
    vectors: Buffer<T>,
    pub(crate) d_vectors: Buffer<T>,
    cnn: CharCnnScratch<T>,
}

/// The character network: 30 numbers per character and tanh after max pooling (Ma and Hovy 2016), with the narrow
/// filters of Kim et al. (2016), 25 per character of window width. Capitals and digits show in one character, endings
/// in two to four. Wider filters memorize whole words, which rare words do not share.
fn character_network(dim: usize) -> CharCnnParams {
    let filters = vec![(1, 25), (2, 50), (3, 75), (4, 100)];
    CharCnnParams { char_dim: 30, filters, activation: Activation::Tanh, dim }
}

impl WordTable {
    /// The vectors for all slots. The word of slot `silent` is never emitted.
    pub(crate) fn new(
        layout: &mut Layout,
        params: &HmmParams,
        spellings: &[&str],
        silent: Option<usize>,
    ) -> WordTable {
        let (dim, n_slots) = (params.dim, spellings.len());
        let vectors = match params.word_vectors {
            WordEmbedding::Words => Source::Table(layout.add("words.weight", &[n_slots, dim])),
            WordEmbedding::Chars => {
                let letters = Letters::new(spellings);
                let cnn =
                    CharCnn::new(layout, "words", letters.n_symbols(), &character_network(dim));
                Source::Network { cnn, letters }
            }
        };
        WordTable { vectors, dim, bias: layout.add("words.bias", &[n_slots]), silent }
    }

    /// Draws an embedding and the biases from U(±1/√`dim`), a network as in [`CharCnn::init`].
    pub(crate) fn init<T: Real>(&self, weights: &mut [T], rng: &mut Rng) {
        let bound = 1.0 / (self.dim as f64).sqrt();
        match &self.vectors {
            Source::Table(table) => fill_uniform(table.of_mut(weights), bound, rng),
            Source::Network { cnn, .. } => cnn.init(weights, rng),
        }
        let bias = self.bias.of_mut(weights);
        fill_uniform(bias, bound, rng);
        self.silent.iter().for_each(|&slot| bias[slot] = T::of(SILENT));
    }

    /// Computes the vectors, if they come from a network.
    pub(crate) fn forward<T: Real>(&self, weights: &[T], scratch: &mut WordScratch<T>, par: Par) {
        if let Source::Network { cnn, letters } = &self.vectors {
            scratch.vectors.resize(letters.n_words(), self.dim);
            let out = scratch.vectors.view_mut();
            cnn.forward(weights, letters.spellings(), &mut scratch.cnn, out, par);
        }
    }

    /// U: one row per slot.
    pub(crate) fn vectors<'a, T: Real>(
        &self,
        weights: &'a [T],
        scratch: &'a WordScratch<T>,
    ) -> &'a [T] {
        match &self.vectors {
            Source::Table(table) => table.of(weights),
            Source::Network { .. } => scratch.vectors.values(),
        }
    }

    /// One bias per slot.
    pub(crate) fn bias<'a, T>(&self, weights: &'a [T]) -> &'a [T] {
        self.bias.of(weights)
    }

    /// The sums of the derivatives of vectors and biases.
    pub(crate) fn gradients<'a, T: Real>(
        &self,
        gradient: &'a mut [T],
        d_vectors: &'a mut Buffer<T>,
    ) -> (&'a mut [T], &'a mut [T]) {
        match &self.vectors {
            Source::Table(table) => {
                let (table, bias) = (table.range(), self.bias.range());
                assert_eq!(table.end, bias.start, "the bias follows the vectors in the layout");
                gradient[table.start..bias.end].split_at_mut(table.len())
            }
            Source::Network { letters, .. } => {
                d_vectors.resize_zeroed(letters.n_words(), self.dim);
                (d_vectors.values_mut(), self.bias.of_mut(gradient))
            }
        }
    }

    /// Backpropagates the derivatives of the vectors, if these come from a network.
    pub(crate) fn backward<T: Real>(
        &self,
        weights: &[T],
        scratch: &mut WordScratch<T>,
        gradient: &mut [T],
        par: Par,
    ) {
        if let Source::Network { cnn, letters } = &self.vectors {
            let d_vectors = scratch.d_vectors.view();
            let words = letters.spellings();
            cnn.backward(weights, words, &mut scratch.cnn, d_vectors, gradient, par);
        }
    }

    /// The vector of a word without a slot, if vectors come from a network.
    pub(crate) fn read<T: Real>(&self, weights: &[T], word: &str) -> Option<Vec<T>> {
        let Source::Network { cnn, letters } = &self.vectors else { return None };
        let symbols = letters.symbols_of(word);
        let offsets = [0, symbols.len()];
        let words = latens_nn::Spellings { chars: &symbols, offsets: &offsets };
        let mut out = Buffer::new();
        out.resize(1, self.dim);
        cnn.forward(weights, words, &mut CharCnnScratch::default(), out.view_mut(), Par::Seq);
        Some(out.values().to_vec())
    }
}
