//! An encoder of a fitted tagger.

use crate::tagging::features::encoder::{Encoder, EncoderInfo, standardize};
use latens_model::FeatureRows;

/// An encoder and the weights of its features.
pub(crate) struct FittedEncoder {
    pub(crate) encoder: Encoder,
    pub(crate) info: EncoderInfo,
    /// Means of the columns of a dense encoder.
    pub(crate) means: Vec<f32>,
    /// Row-major: positions of the window × columns × tags or hidden units.
    pub(crate) weights: Vec<f32>,
}

impl FittedEncoder {
    /// The rows of the words of a sentence.
    pub(crate) fn rows(&self, words: &[&str]) -> FeatureRows {
        let mut rows = FeatureRows::new();
        self.encoder.model.encode(words, &mut rows);
        rows
    }

    /// Adds the scores of the features of each word of a sentence.
    pub(crate) fn add(&self, rows: &FeatureRows, window: usize, width: usize, scores: &mut [f32]) {
        let n_columns = self.info.n_features;
        let mut dense = vec![0.0; n_columns];
        for (at, (columns, values)) in rows.iter().enumerate().filter(|(_, row)| !row.0.is_empty())
        {
            let mut values = values;
            if self.info.is_dense {
                dense.fill(0.0);
                columns.iter().zip(values).for_each(|(&column, &x)| dense[column as usize] = x);
                standardize(&mut dense, &self.means, self.info.scale);
                values = &dense;
            }
            for position in 0..=2 * window {
                // The word that has this one at this position of its window.
                let Some(seen_by) = (at + window).checked_sub(position) else { continue };
                let Some(scores) = scores.get_mut(seen_by * width..(seen_by + 1) * width) else {
                    continue;
                };
                let weights = &self.weights[position * n_columns * width..][..n_columns * width];
                for (i, &value) in values.iter().enumerate() {
                    let column = if self.info.is_dense { i } else { columns[i] as usize };
                    let weights = &weights[column * width..][..width];
                    scores.iter_mut().zip(weights).for_each(|(score, w)| *score += value * w);
                }
            }
        }
    }
}
