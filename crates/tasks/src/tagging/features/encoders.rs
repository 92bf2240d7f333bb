//! Models that give features of words, as taggers use them.

use super::lists::Lists;
use foldhash::fast::FixedState;
use latens_corpus::TaggedSentences;
use latens_model::FeatureRows;
use latens_store::FlatArray;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;
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
pub(crate) struct Reading {
    pub(crate) name: String,
    pub(crate) features: String,
    pub(crate) n_features: usize,
    pub(crate) n_bytes: usize,
    /// Whether every row has a number in every column. Then means are taken off, and what is left is scaled.
    pub(crate) is_dense: bool,
    pub(crate) scale: f64,
    /// The share of the words of the training text that the encoder knows.
    pub(crate) known: f64,
}

/// The rows that an encoder has for a text, each different one once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rows {
    pub(crate) n_features: usize,
    pub(crate) values: RowValues,
    /// The row of each token; [`NO_ROW`] for one without features.
    pub(crate) of_token: Vec<u32>,
    /// The tokens of each row.
    pub(crate) tokens: Lists,
}

/// Where a token has no features: it is as if they were all zero.
pub(crate) const NO_ROW: u32 = u32::MAX;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RowValues {
    /// Row after row.
    Dense(Vec<f32>),
    /// Columns and values of each row, and the same by columns.
    Sparse { rows: Sparse, columns: Sparse },
}

/// Numbers beside indices, list after list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sparse {
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Sparse {
    #[inline(always)]
    pub(crate) fn get(&self, list: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
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
    pub(crate) fn n_rows(&self) -> usize {
        self.tokens.len()
    }
}

/// Asks an encoder for the rows of a text, and learns how to read them: the means of columns come back, too.
pub(crate) fn read_rows(
    encoder: &Encoder,
    text: &TaggedSentences,
    scale: f64,
) -> (Reading, Vec<f32>, Rows) {
    let n_features = encoder.model.n_features();
    let (distinct, of_token) = distinct_rows(&*encoder.model, text);
    let is_dense = matches!(distinct, Distinct::Dense(_));
    let n_rows = distinct.n_rows(n_features);
    let tokens = of_token.iter().zip(0..).map(|(&row, token)| (row, token));
    let tokens = Lists::by_number(n_rows, tokens);
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
    let mut values = match distinct {
        Distinct::Sparse(rows) => {
            let rows = Sparse::of(&rows);
            let columns = rows.transposed(n_features);
            let values = RowValues::Sparse { rows, columns };
            return (reading, Vec::new(), Rows { n_features, values, of_token, tokens });
        }
        Distinct::Dense(values) => values,
    };
    let (means, deviation) = moments(&values, n_features, &tokens);
    reading.scale = if deviation > 0.0 { scale / deviation } else { 1.0 };
    for row in values.chunks_exact_mut(n_features) {
        standardize(row, &means, reading.scale);
    }
    (reading, means, Rows { n_features, values: RowValues::Dense(values), of_token, tokens })
}

/// (x − mean) · scale.
pub(crate) fn standardize(row: &mut [f32], means: &[f32], scale: f64) {
    row.iter_mut().zip(means).for_each(|(x, mean)| *x = (*x - mean) * scale as f32);
}

/// Each different row of an encoder once.
enum Distinct {
    /// Every row has a number in every column, in order.
    Dense(Vec<f32>),
    Sparse(FeatureRows),
}

impl Distinct {
    fn n_rows(&self, n_features: usize) -> usize {
        match self {
            Distinct::Dense(values) => values.len() / n_features.max(1),
            Distinct::Sparse(rows) => rows.len(),
        }
    }

    fn row<'a>(&'a self, row: usize, all_columns: &'a [u32]) -> (&'a [u32], &'a [f32]) {
        match self {
            Distinct::Dense(values) => {
                let n_features = all_columns.len();
                (all_columns, &values[row * n_features..(row + 1) * n_features])
            }
            Distinct::Sparse(rows) => rows.row(row),
        }
    }

    /// Rows stay dense for as long as they are.
    fn push(&mut self, columns: &[u32], values: &[f32], all_columns: &[u32]) {
        match self {
            Distinct::Dense(all) if columns == all_columns => all.extend_from_slice(values),
            Distinct::Dense(all) => {
                let mut rows = FeatureRows::new();
                all.chunks_exact(all_columns.len()).for_each(|row| rows.push_dense(row));
                rows.push_sparse(columns.iter().copied().zip(values.iter().copied()));
                *self = Distinct::Sparse(rows);
            }
            Distinct::Sparse(rows) => {
                rows.push_sparse(columns.iter().copied().zip(values.iter().copied()));
            }
        }
    }
}

/// How many sentences are encoded before their rows go to where they stay: rows of contexts are many, and an
/// encoder's own form of them takes twice the memory.
const SENTENCES_AT_ONCE: usize = 256;

/// Each different row once, and which one each token has: most encoders know one vector a word.
fn distinct_rows(model: &dyn WordEncoder, text: &TaggedSentences) -> (Distinct, Vec<u32>) {
    let all_columns: Vec<u32> = (0..model.n_features() as u32).collect();
    let mut distinct = Distinct::Dense(Vec::new());
    let mut of_token = Vec::with_capacity(text.n_tokens());
    let mut numbers: HashMap<u64, Vec<u32>, FixedState> = HashMap::default();
    let mut placed = vec![0.0; all_columns.len()];
    for begin in (0..text.len()).step_by(SENTENCES_AT_ONCE) {
        let end = (begin + SENTENCES_AT_ONCE).min(text.len());
        let sentences = encode_some(model, text, begin..end);
        for (columns, values) in sentences.iter().flat_map(FeatureRows::iter) {
            if columns.is_empty() {
                of_token.push(NO_ROW);
                continue;
            }
            let (columns, values) = in_place(columns, values, &all_columns, &mut placed);
            let rows = numbers.entry(hash(columns, values)).or_default();
            let same = |row: &&u32| {
                let other = distinct.row(**row as usize, &all_columns);
                other.0 == columns && bits(other.1).eq(bits(values))
            };
            let row = rows.iter().find(same).copied();
            of_token.push(row.unwrap_or_else(|| {
                let row = distinct.n_rows(all_columns.len()) as u32;
                rows.push(row);
                distinct.push(columns, values, &all_columns);
                row
            }));
        }
    }
    // Nothing at all is nothing sparse: there is no column to take a mean of.
    if distinct.n_rows(all_columns.len()) == 0 {
        distinct = Distinct::Sparse(FeatureRows::new());
    }
    (distinct, of_token)
}

/// Rows of some sentences, by all threads, in order.
fn encode_some(
    model: &dyn WordEncoder,
    text: &TaggedSentences,
    sentences: Range<usize>,
) -> Vec<FeatureRows> {
    let encode = |i: usize| {
        let mut rows = FeatureRows::new();
        model.encode(&text.get(i).words(), &mut rows);
        rows
    };
    sentences.into_par_iter().map(encode).collect()
}

/// A row that has all columns, which need not come in order, with each in its place.
fn in_place<'a>(
    columns: &'a [u32],
    values: &'a [f32],
    all_columns: &'a [u32],
    placed: &'a mut [f32],
) -> (&'a [u32], &'a [f32]) {
    if columns.len() != all_columns.len() || columns == all_columns {
        return (columns, values);
    }
    columns.iter().zip(values).for_each(|(&column, &value)| placed[column as usize] = value);
    (all_columns, placed)
}

fn hash(columns: &[u32], values: &[f32]) -> u64 {
    let mut hash = Xxh3::new();
    columns.iter().for_each(|column| hash.update(&column.to_le_bytes()));
    bits(values).for_each(|value| hash.update(&value.to_le_bytes()));
    hash.digest()
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
