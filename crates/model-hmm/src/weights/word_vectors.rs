//! The vectors of words, one row for each slot.

use crate::params::{HmmParams, WordVectors};
use crate::weights::letters::Letters;
use faer::Par;
use latens_math::{Real, Rng};
use latens_nn::{
    Activation, Buffer, CharCnn, CharCnnParams, CharCnnScratch, Layout, WeightId, fill_uniform,
};

/// Where vectors of words come from. Every word has a bias of its own besides.
pub(crate) struct Words {
    vectors: Source,
    dim: usize,
    bias: WeightId,
    silent: Option<usize>,
}

/// The bias of a word that is never emitted: its probability is zero in any precision, and so is its gradient.
const SILENT: f64 = -1e30;

enum Source {
    /// A row of numbers for each slot.
    Table(WeightId),
    /// A network that reads the letters of each slot's word.
    Network { cnn: CharCnn, letters: Letters },
}

/// Vectors that are made anew for each mini-batch, and their derivatives.
#[derive(Default)]
pub(crate) struct WordScratch<T> {
    vectors: Buffer<T>,
    pub(crate) d_vectors: Buffer<T>,
    cnn: CharCnnScratch<T>,
}

/// The network of letters: 30 numbers a letter and tanh after the maximum, as Ma and Hovy (2016) have it, and the
/// first filters of Kim et al. (2016), 25 for each letter of a window: capitals and digits show in one letter,
/// endings in two to four. Wider windows know whole words, which rare words do not share.
fn network(dim: usize) -> CharCnnParams {
    let filters = vec![(1, 25), (2, 50), (3, 75), (4, 100)];
    CharCnnParams { char_dim: 30, filters, activation: Activation::Tanh, dim }
}

impl Words {
    /// Vectors of the words of all slots; the word of slot `silent` is never emitted.
    pub(crate) fn new(
        layout: &mut Layout,
        params: &HmmParams,
        spellings: &[&str],
        silent: Option<usize>,
    ) -> Words {
        let (dim, n_slots) = (params.dim, spellings.len());
        let vectors = match params.word_vectors {
            WordVectors::Words => Source::Table(layout.add("words.weight", &[n_slots, dim])),
            WordVectors::Chars => {
                let letters = Letters::of(spellings);
                let cnn = CharCnn::new(layout, "words", letters.n_symbols(), &network(dim));
                Source::Network { cnn, letters }
            }
        };
        Words { vectors, dim, bias: layout.add("words.bias", &[n_slots]), silent }
    }

    /// Draws a table and the biases evenly from ±1/√`dim`, a network as [`CharCnn::init`] does.
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

    /// Makes the vectors, if they are made of something.
    pub(crate) fn forward<T: Real>(&self, weights: &[T], scratch: &mut WordScratch<T>, par: Par) {
        if let Source::Network { cnn, letters } = &self.vectors {
            scratch.vectors.resize(letters.n_words(), self.dim);
            let out = scratch.vectors.view_mut();
            cnn.forward(weights, letters.spellings(), &mut scratch.cnn, out, par);
        }
    }

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

    pub(crate) fn bias<'a, T>(&self, weights: &'a [T]) -> &'a [T] {
        self.bias.of(weights)
    }

    /// Where the derivatives of vectors and biases are added.
    pub(crate) fn gradients<'a, T: Real>(
        &self,
        gradient: &'a mut [T],
        d_vectors: &'a mut Buffer<T>,
    ) -> (&'a mut [T], &'a mut [T]) {
        match &self.vectors {
            Source::Table(table) => {
                let (table, bias) = (table.range(), self.bias.range());
                assert_eq!(table.end, bias.start, "the bias comes after the vectors");
                gradient[table.start..bias.end].split_at_mut(table.len())
            }
            Source::Network { letters, .. } => {
                d_vectors.resize_zeroed(letters.n_words(), self.dim);
                (d_vectors.values_mut(), self.bias.of_mut(gradient))
            }
        }
    }

    /// Takes the derivatives of vectors back to those of the weights that they were made of.
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

    /// The vector of a word that has no slot, if vectors are read off letters.
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
