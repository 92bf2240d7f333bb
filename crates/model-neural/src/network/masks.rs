//! What a training step drops.

use crate::params::{Mask, NeuralParams};
use latens_nn::Dropout;

/// The dropout of one training step: which units, words and recurrent weights it leaves out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Masks {
    seed: u64,
    input: f64,
    layers: f64,
    output: f64,
    words: f64,
    weights: f64,
    mask: Mask,
}

/// Where masks of words and of recurrent weights begin among the parts of a seed, far behind those of the layers.
pub(crate) const WORDS: u64 = 1 << 20;
pub(crate) const WEIGHTS: u64 = 1 << 21;

impl Masks {
    /// The masks of a step with this seed, or `None` if nothing is ever dropped.
    pub(crate) fn new(params: &NeuralParams, seed: u64) -> Option<Masks> {
        let masks = Masks {
            seed,
            input: params.input_dropout.unwrap_or(params.dropout),
            layers: params.layer_dropout.unwrap_or(params.dropout),
            output: params.dropout,
            words: params.word_dropout,
            weights: params.weight_dropout,
            mask: params.mask,
        };
        let rates = [masks.input, masks.layers, masks.output, masks.words, masks.weights];
        rates.iter().any(|&rate| rate > 0.0).then_some(masks)
    }

    /// Seed of all masks. Devices derive masks of their own from it.
    #[cfg(feature = "cuda")]
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The mask of the word vectors (place 0), or of the output of layer `place` of `n_layers`.
    pub(crate) fn units(&self, place: usize, n_layers: usize) -> Option<Dropout> {
        let rate = match place {
            0 => self.input,
            _ if place == n_layers => self.output,
            _ => self.layers,
        };
        self.part(rate, place as u64)
    }

    /// The mask of whole words.
    pub(crate) fn words(&self) -> Option<Dropout> {
        self.part(self.words, WORDS)
    }

    /// The mask of the recurrent weights of a layer.
    pub(crate) fn weights(&self, layer: usize) -> Option<Dropout> {
        self.part(self.weights, WEIGHTS + layer as u64)
    }

    /// Number of rows after which the masks of units repeat.
    pub(crate) fn period(&self, n_streams: usize) -> usize {
        match self.mask {
            Mask::Token => usize::MAX,
            Mask::Sequence => n_streams.max(1),
        }
    }

    fn part(&self, rate: f64, index: u64) -> Option<Dropout> {
        (rate > 0.0).then(|| Dropout::new(rate, self.seed).part(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_rates_are_that_of_the_output() {
        let params = NeuralParams { dropout: 0.3, n_layers: 2, ..NeuralParams::lstm() };
        let masks = Masks::new(&params, 5).unwrap();
        for place in 0..=2 {
            let expected = Dropout::new(0.3, 5).part(place as u64);
            assert_eq!(masks.units(place, 2), Some(expected));
        }
        assert_eq!((masks.words(), masks.weights(0)), (None, None));
        assert_eq!(masks.period(7), usize::MAX);
        let none = NeuralParams { dropout: 0.0, ..params };
        assert_eq!(Masks::new(&none, 5), None);
        let weights = NeuralParams { weight_dropout: 0.5, mask: Mask::Sequence, ..none };
        let masks = Masks::new(&weights, 5).unwrap();
        assert_eq!((masks.units(0, 2), masks.period(7)), (None, 7));
        assert_ne!(masks.weights(0), masks.weights(1));
    }
}
