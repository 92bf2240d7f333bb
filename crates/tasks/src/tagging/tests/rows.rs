//! Rows of encoders.

use super::fixtures::{TEXT, encoders, read};
use crate::tagging::features::encoder::Encoder;
use crate::tagging::features::rows::{RowValues, read_rows};
use crate::tagging::features::word_encoder::WordEncoder;
use latens_model::FeatureRows;

/// Gives every word all columns, in an order that depends on the word.
struct Rotated;

impl WordEncoder for Rotated {
    fn n_features(&self) -> usize {
        3
    }

    fn encode(&self, words: &[&str], out: &mut FeatureRows) {
        for word in words {
            let first = word.len() as u32 % 3;
            out.push_sparse((0..3).map(|i| (first + i) % 3).map(|column| (column, column as f32)));
        }
    }

    fn knows(&self, _: &str) -> bool {
        true
    }
}

#[test]
fn rows_with_all_columns_are_dense_in_any_order() {
    let encoder = Encoder { model: Box::new(Rotated), ..encoders().remove(0) };
    let (info, means, rows) = read_rows(&encoder, &read(TEXT), 1.0);
    assert!(info.is_dense);
    assert_eq!(means, [0.0, 1.0, 2.0]);
    assert_eq!(rows.n_rows(), 1, "all rows are equal");
}

#[test]
fn dense_rows_are_standardized_over_tokens() {
    let text = read(TEXT);
    let (info, means, rows) = read_rows(&encoders()[0], &text, 0.5);
    assert!(info.is_dense && means.len() == 4);
    assert_eq!(info.known, 9.0 / 10.0);
    let RowValues::Dense(values) = &rows.values else { panic!("dense") };
    let of_tokens = rows.of_token.iter().filter(|&&row| row != u32::MAX);
    let of_tokens: Vec<f32> =
        of_tokens.flat_map(|&row| values[row as usize * 4..][..4].to_vec()).collect();
    let n = of_tokens.len() as f32;
    for column in 0..4 {
        let sum: f32 = of_tokens.iter().skip(column).step_by(4).sum();
        assert!(sum.abs() < 1e-5, "{sum}");
    }
    let variance = of_tokens.iter().map(|x| x * x).sum::<f32>() / n;
    assert!((variance.sqrt() - 0.5).abs() < 1e-5, "{variance}");
    // `The`, `barks` and others occur more than once but have one row.
    assert!(rows.n_rows() < 9, "{}", rows.n_rows());
}
