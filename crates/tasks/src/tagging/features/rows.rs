//! The rows of an encoder for the tokens of a text.

use super::encoder::{Encoder, EncoderInfo, standardize};
use super::lists::{Lists, SparseMatrix};
use super::word_encoder::WordEncoder;
use foldhash::fast::FixedState;
use latens_corpus::TaggedSentences;
use latens_model::FeatureRows;
use std::collections::HashMap;
use xxhash_rust::xxh3::Xxh3;

/// The distinct rows of an encoder for a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rows {
    pub(crate) n_features: usize,
    pub(crate) values: RowValues,
    /// Index of the row of each token; [`NO_ROW`] for a token without features.
    pub(crate) of_token: Vec<u32>,
    /// The tokens of each row.
    pub(crate) tokens: Lists,
}

/// Marks a token without features. Its features are all zero.
pub(crate) const NO_ROW: u32 = u32::MAX;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RowValues {
    /// Row-major values.
    Dense(Vec<f32>),
    /// The matrix, and its transpose.
    Sparse { rows: SparseMatrix, columns: SparseMatrix },
}

impl Rows {
    pub(crate) fn n_rows(&self) -> usize {
        self.tokens.len()
    }
}

/// Encodes a text. Returns facts about the encoder, the column means of dense rows, and the rows, standardized to the
/// standard deviation `scale` if they are dense.
pub(crate) fn read_rows(
    encoder: &Encoder,
    text: &TaggedSentences,
    scale: f64,
) -> (EncoderInfo, Vec<f32>, Rows) {
    let n_features = encoder.model.n_features();
    let (distinct, of_token) = distinct_rows(&*encoder.model, text);
    let is_dense = matches!(distinct, Distinct::Dense(_));
    let n_rows = distinct.n_rows(n_features);
    let tokens = of_token.iter().zip(0..).map(|(&row, token)| (row, token));
    let tokens = Lists::by_key(n_rows, tokens);
    let words = text.iter().flat_map(|sentence| sentence.words());
    let n_known = words.filter(|word| encoder.model.knows(word)).count();
    let mut info = EncoderInfo {
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
            let rows = SparseMatrix::of(&rows);
            let columns = rows.transposed(n_features);
            let values = RowValues::Sparse { rows, columns };
            return (info, Vec::new(), Rows { n_features, values, of_token, tokens });
        }
        Distinct::Dense(values) => values,
    };
    let (means, deviation) = moments(&values, n_features, &tokens);
    info.scale = if deviation > 0.0 { scale / deviation } else { 1.0 };
    for row in values.chunks_exact_mut(n_features) {
        standardize(row, &means, info.scale);
    }
    (info, means, Rows { n_features, values: RowValues::Dense(values), of_token, tokens })
}

/// Distinct rows of an encoder.
enum Distinct {
    /// Every row has a value in every column, in order.
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

    /// Appends a row. The first row that is not dense turns all rows into sparse ones.
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

/// Number of sentences encoded at a time. Contextual rows are many, and the sparse form in which an encoder returns them
/// takes twice the memory of dense rows.
const SENTENCES_AT_ONCE: usize = 256;

/// The distinct rows, and the index of the row of each token. Most encoders have one row per word.
fn distinct_rows(model: &dyn WordEncoder, text: &TaggedSentences) -> (Distinct, Vec<u32>) {
    let all_columns: Vec<u32> = (0..model.n_features() as u32).collect();
    let mut distinct = Distinct::Dense(Vec::new());
    let mut of_token = Vec::with_capacity(text.n_tokens());
    let mut row_of_hash: HashMap<u64, Vec<u32>, FixedState> = HashMap::default();
    let mut placed = vec![0.0; all_columns.len()];
    for begin in (0..text.len()).step_by(SENTENCES_AT_ONCE) {
        let end = (begin + SENTENCES_AT_ONCE).min(text.len());
        let words: Vec<Vec<&str>> = (begin..end).map(|i| text.get(i).words()).collect();
        let sentences = model.encode_all(&words);
        for (columns, values) in sentences.iter().flat_map(FeatureRows::iter) {
            if columns.is_empty() {
                of_token.push(NO_ROW);
                continue;
            }
            let (columns, values) = in_place(columns, values, &all_columns, &mut placed);
            let rows = row_of_hash.entry(hash(columns, values)).or_default();
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
    // Without rows there are no column means, so the rows count as sparse.
    if distinct.n_rows(all_columns.len()) == 0 {
        distinct = Distinct::Sparse(FeatureRows::new());
    }
    (distinct, of_token)
}

/// Sorts the columns of a dense row into `placed`; other rows are returned unchanged.
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

/// The mean of each column over tokens, and the standard deviation of all values from these means.
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
