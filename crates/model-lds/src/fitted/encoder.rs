//! Features of tokens from their states.

use crate::model::{Lds, normalize};
use latens_corpus::WordId;
use latens_counts::Boundary;
use latens_math::BlockRef;
use latens_model::{FeatureRows, Matrix, TokenEncoder};

/// A kind of features. All kinds are whitened and scaled to unit length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// The word vector and the smoothed state, side by side.
    TypeAndSmoothed,
    /// The word vector, which does not depend on the context.
    Type,
    /// The expected state given the words so far.
    Filtered,
    /// The expected state given the whole sentence.
    Smoothed,
}

impl Features {
    /// All kinds with their names, the default first.
    pub const ALL: [(&str, Features); 4] = [
        ("type+smoothed", Features::TypeAndSmoothed),
        ("type", Features::Type),
        ("filtered", Features::Filtered),
        ("smoothed", Features::Smoothed),
    ];
}

/// An encoder of one kind of features.
#[derive(Clone, Debug)]
pub struct LdsEncoder<'a> {
    lds: &'a Lds,
    features: Features,
}

impl Lds {
    /// An encoder of the given features.
    pub fn encoder(&self, features: Features) -> LdsEncoder<'_> {
        LdsEncoder { lds: self, features }
    }
}

impl Lds {
    /// The default features of a sentence, [`Features::TypeAndSmoothed`]: one row per token, 2 · [`Lds::dim`] columns.
    ///
    /// The end of sentence is appended for the smoother, and gets no row. Unknown words are read as `<unk>`.
    pub fn embed(&self, text: &str) -> Matrix<f32> {
        let mut words = self.lexicon.ids(text);
        let n_tokens = words.len();
        words.push(WordId::EOS);
        let mut rows = FeatureRows::new();
        self.encode(&words, &mut rows);
        let values = rows.iter().take(n_tokens).flat_map(|(_, values)| values).copied();
        Matrix::from_vec(n_tokens, self.n_features(), values.collect())
    }
}

/// Encodes [`Features::TypeAndSmoothed`].
impl TokenEncoder for Lds {
    fn n_features(&self) -> usize {
        2 * self.dim()
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        self.encoder(Features::TypeAndSmoothed).encode(sentence, out);
    }
}

impl LdsEncoder<'_> {
    fn types(&self, sentence: &[WordId]) -> Vec<f32> {
        let mut rows = Vec::with_capacity(sentence.len() * self.lds.dim());
        sentence.iter().for_each(|word| rows.extend_from_slice(self.lds.inputs.row(word.index())));
        self.whitened(&self.lds.step_matrices.whiten_types, &rows)
    }

    fn states(&self, sentence: &[WordId]) -> Vec<f32> {
        // In a stream, a sentence follows the end of another one.
        let start = match self.lds.fitted_with().boundary {
            Boundary::Stream => Some(self.lds.inputs.row(WordId::EOS.index())),
            Boundary::Sentence => None,
        };
        let mut states = self.lds.filter(sentence, start);
        if self.features == Features::Filtered {
            return self.whitened(&self.lds.step_matrices.whiten_filtered, states.as_slice());
        }
        self.lds.smooth(&mut states);
        self.whitened(&self.lds.step_matrices.whiten_smoothed, states.as_slice())
    }

    fn whitened(&self, whitening: &[f32], rows: &[f32]) -> Vec<f32> {
        let dim = self.lds.dim();
        let mut out = vec![0.0; rows.len()];
        BlockRef::new(whitening, dim, 0..dim, 0..dim).times_rows(rows, &mut out);
        out.chunks_exact_mut(dim).for_each(normalize);
        out
    }
}

impl TokenEncoder for LdsEncoder<'_> {
    fn n_features(&self) -> usize {
        match self.features {
            Features::TypeAndSmoothed => 2 * self.lds.dim(),
            Features::Type | Features::Filtered | Features::Smoothed => self.lds.dim(),
        }
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        let dim = self.lds.dim();
        match self.features {
            Features::Type => {
                self.types(sentence).chunks_exact(dim).for_each(|row| out.push_dense(row));
            }
            Features::Filtered | Features::Smoothed => {
                self.states(sentence).chunks_exact(dim).for_each(|row| out.push_dense(row));
            }
            Features::TypeAndSmoothed => {
                let (types, states) = (self.types(sentence), self.states(sentence));
                for (word, state) in types.chunks_exact(dim).zip(states.chunks_exact(dim)) {
                    out.push_dense(&[word, state].concat());
                }
            }
        }
    }
}
