//! Models that give features of words, as taggers use them.

use super::lists::Lists;
use foldhash::fast::FixedState;
use latens_corpus::TaggedSentences;
use latens_corpus::storage::FlatArray;
use latens_model::FeatureRows;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use xxhash_rust::xxh3::Xxh3;

/// A model that gives features of words as they were written: it does to them what was done to its own
/// training text.
pub trait WordEncoder: Send + Sync {
    /// How many columns there are.
    fn n_features(&self) -> usize;

    /// Appends one row a word.
    fn encode(&self, words: &[&str], out: &mut FeatureRows);

    /// Whether the model has seen the word.
    fn knows(&self, word: &str) -> bool;
}

/// An encoder with the file that it is from, which becomes part of the tagger's.
pub struct Encoder {
    /// What the user calls it, for messages: the name of its file.
    pub name: String,
    /// The kind of its features: `paths`, `posterior`.
    pub features: String,
    /// The model.
    pub model: Box<dyn WordEncoder>,
    /// Its file, byte for byte.
    pub file: FlatArray<u8>,
}

/// How a tagger reads the rows of an encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Reading {
    pub(super) name: String,
    pub(super) features: String,
    pub(super) n_features: usize,
    pub(super) n_bytes: usize,
    /// Whether every row has a number in every column. Then means are taken off, and what is left is scaled.
    pub(super) is_dense: bool,
    pub(super) scale: f64,
    /// The share of the words of the training text that the encoder knows.
    pub(super) known: f64,
}

/// The rows that an encoder has for a text, each different one once.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rows {
    pub(super) n_features: usize,
    pub(super) values: RowValues,
    /// The row of each token; [`NO_ROW`] for one without features.
    pub(super) of_token: Vec<u32>,
    /// The tokens of each row.
    pub(super) tokens: Lists,
}

/// Where a token has no features: it is as if they were all zero.
pub(super) const NO_ROW: u32 = u32::MAX;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum RowValues {
    /// Row after row.
    Dense(Vec<f32>),
    /// Columns and values of each row, and the same by columns.
    Sparse { rows: Sparse, columns: Sparse },
}

/// Numbers beside indices, list after list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sparse {
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Sparse {
    #[inline(always)]
    pub(super) fn get(&self, list: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let range = self.offsets[list]..self.offsets[list + 1];
        let indices = self.indices[range.clone()].iter().map(|&index| index as usize);
        indices.zip(self.values[range].iter().copied())
    }

    fn of(rows: &FeatureRows) -> Sparse {
        Sparse {
            offsets: rows.offsets().to_vec(),
            indices: rows.columns().to_vec(),
            values: rows.values().to_vec(),
        }
    }

    fn transposed(&self, n: usize) -> Sparse {
        let mut offsets = vec![0; n + 1];
        self.indices.iter().for_each(|&index| offsets[index as usize + 1] += 1);
        (0..n).for_each(|index| offsets[index + 1] += offsets[index]);
        let (mut next, n_values) = (offsets.clone(), self.values.len());
        let (mut indices, mut values) = (vec![0; n_values], vec![0.0; n_values]);
        for list in 0..self.offsets.len() - 1 {
            for (index, value) in self.get(list) {
                indices[next[index]] = list as u32;
                values[next[index]] = value;
                next[index] += 1;
            }
        }
        Sparse { offsets, indices, values }
    }
}

impl Rows {
    pub(super) fn n_rows(&self) -> usize {
        self.tokens.len()
    }
}

/// Asks an encoder for the rows of a text, and learns how to read them: the means of columns come back, too.
pub(super) fn read_rows(
    encoder: &Encoder,
    text: &TaggedSentences,
    scale: f64,
) -> (Reading, Vec<f32>, Rows) {
    let n_features = encoder.model.n_features();
    let (distinct, of_token) = distinct_rows(encode_all(&*encoder.model, text));
    let is_dense =
        !distinct.is_empty() && distinct.iter().all(|(columns, _)| columns.len() == n_features);
    let tokens = of_token.iter().zip(0..).map(|(&row, token)| (row, token));
    let tokens = Lists::by_number(distinct.len(), tokens);
    let words = text.iter().flat_map(|sentence| sentence.words());
    let n_known = words.filter(|word| encoder.model.knows(word)).count();
    let mut reading = Reading {
        name: encoder.name.clone(),
        features: encoder.features.clone(),
        n_features,
        n_bytes: encoder.file.len(),
        is_dense,
        scale: 1.0,
        known: n_known as f64 / text.n_tokens().max(1) as f64,
    };
    if !is_dense {
        let rows = Sparse::of(&distinct);
        let columns = rows.transposed(n_features);
        let values = RowValues::Sparse { rows, columns };
        return (reading, Vec::new(), Rows { n_features, values, of_token, tokens });
    }
    let mut values = dense(&distinct, n_features);
    let (means, deviation) = moments(&values, n_features, &tokens);
    reading.scale = if deviation > 0.0 { scale / deviation } else { 1.0 };
    for row in values.chunks_exact_mut(n_features) {
        standardize(row, &means, reading.scale);
    }
    (reading, means, Rows { n_features, values: RowValues::Dense(values), of_token, tokens })
}

/// (x − mean) · scale.
pub(super) fn standardize(row: &mut [f32], means: &[f32], scale: f64) {
    row.iter_mut().zip(means).for_each(|(x, mean)| *x = (*x - mean) * scale as f32);
}

/// A row with its columns in their places, which need not come in order.
fn dense(rows: &FeatureRows, n_features: usize) -> Vec<f32> {
    let mut values = vec![0.0; rows.len() * n_features];
    for ((columns, numbers), row) in rows.iter().zip(values.chunks_exact_mut(n_features)) {
        columns.iter().zip(numbers).for_each(|(&column, &value)| row[column as usize] = value);
    }
    values
}

/// Rows of all sentences, by all threads, in order.
fn encode_all(model: &dyn WordEncoder, text: &TaggedSentences) -> Vec<FeatureRows> {
    let encode = |i: usize| {
        let mut rows = FeatureRows::new();
        model.encode(&text.get(i).words(), &mut rows);
        rows
    };
    (0..text.len()).into_par_iter().map(encode).collect()
}

/// Each different row once, and which one each token has: most encoders know one vector a word.
fn distinct_rows(sentences: Vec<FeatureRows>) -> (FeatureRows, Vec<u32>) {
    let (mut distinct, mut of_token) = (FeatureRows::new(), Vec::new());
    let mut numbers: HashMap<u64, Vec<u32>, FixedState> = HashMap::default();
    for (columns, values) in sentences.iter().flat_map(FeatureRows::iter) {
        if columns.is_empty() {
            of_token.push(NO_ROW);
            continue;
        }
        let same = |row: &&u32| {
            let other = distinct.row(**row as usize);
            other.0 == columns && bits(other.1).eq(bits(values))
        };
        let mut hash = Xxh3::new();
        columns.iter().for_each(|column| hash.update(&column.to_le_bytes()));
        bits(values).for_each(|value| hash.update(&value.to_le_bytes()));
        let rows = numbers.entry(hash.digest()).or_default();
        if let Some(&row) = rows.iter().find(same) {
            of_token.push(row);
            continue;
        }
        let row = distinct.len() as u32;
        rows.push(row);
        of_token.push(row);
        distinct.push_sparse(columns.iter().copied().zip(values.iter().copied()));
    }
    (distinct, of_token)
}

fn bits(values: &[f32]) -> impl Iterator<Item = u32> + '_ {
    values.iter().map(|value| value.to_bits())
}

/// The mean of each column, and the deviation of all numbers from them, over tokens.
fn moments(values: &[f32], n_features: usize, tokens: &Lists) -> (Vec<f32>, f64) {
    let rows = || values.chunks_exact(n_features).zip(tokens.iter().map(|list| list.len() as f64));
    let n: f64 = rows().map(|(_, n)| n).sum();
    let mut means = vec![0f64; n_features];
    for (row, count) in rows() {
        means.iter_mut().zip(row).for_each(|(mean, &x)| *mean += count * f64::from(x) / n);
    }
    let square = |(row, count): (&[f32], f64)| {
        let squares = row.iter().zip(&means).map(|(&x, mean)| (f64::from(x) - mean).powi(2));
        count * squares.sum::<f64>()
    };
    let variance = rows().map(square).sum::<f64>() / (n * n_features as f64);
    (means.into_iter().map(|mean| mean as f32).collect(), variance.sqrt())
}
