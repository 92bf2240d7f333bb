//! Distances between the topic proportions of original and altered papers (Table 3).

use super::models::{Models, inferences, shares, weights};
use super::synonyms::PPDB;
use crate::corpora::topics::{Document, nips};
use crate::experiment::{Effort, Row};
use anyhow::Result;
use std::path::Path;

const NORMS: [&str; 3] = ["L1", "L2", "Linf"];
/// Figures of the paper, in the order of [`inferences`]. They cannot be distances between proportions, whose L1 norm is at
/// most 2.
const PAPER: [[f64; 3]; 6] = [
    [15.13, 1.81, 0.66],
    [15.71, 1.90, 0.66],
    [15.76, 1.97, 0.66],
    [14.58, 1.66, 0.66],
    [94.95, 7.98, 1.72],
    [94.95, 7.98, 1.72],
];

pub(super) fn run(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let (mut tests, mut train): (Vec<Document>, Vec<Document>) =
        nips(data)?.into_iter().partition(|document| document.is_test);
    if effort.is_quick() {
        train = train.into_iter().step_by(8).collect();
        tests = tests.into_iter().step_by(8).collect();
    }
    let models = Models::fit(data, &train, effort, note)?;
    let altered = PPDB.replace(data, &models, &train, &tests)?;
    note(&format!("NIPS, {}: {}", PPDB.name, altered.about));
    let mut rows = Vec::new();
    for (i, (name, inference)) in inferences(10, tests.len()).into_iter().enumerate() {
        let before = models.infer(&tests, inference)?;
        let after = models.infer(&altered.documents, inference)?;
        let of_shares = distances(&shares(&before), &shares(&after));
        let of_weights = distances(&weights(&before), &weights(&after));
        note(&format!("NIPS, {name}: shares {of_shares:.3?}, counts + alpha {of_weights:.2?}"));
        for (k, norm) in NORMS.into_iter().enumerate() {
            let paper = PAPER.get(i).map(|paper| paper[k]);
            let mut add = |of: &str, paper: Option<f64>, ours: f64| {
                let (row, column) = (name.clone(), format!("NIPS, {norm} of {of}"));
                rows.push(Row::new(row, column, paper, ours));
            };
            add("shares", None, of_shares[k]);
            add("counts + alpha", paper, of_weights[k]);
        }
    }
    Ok(rows)
}

/// Mean L1, L2 and L∞ norms of the differences.
fn distances(a: &[Vec<f32>], b: &[Vec<f32>]) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for (a, b) in a.iter().zip(b) {
        let differences: Vec<f64> =
            a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).collect();
        sums[0] += differences.iter().sum::<f64>();
        sums[1] += differences.iter().map(|x| x * x).sum::<f64>().sqrt();
        sums[2] += differences.iter().copied().fold(0.0, f64::max);
    }
    sums.map(|sum| sum / a.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_means_over_documents() {
        let (a, b) = (vec![vec![0.5, 0.5], vec![1.0, 0.0]], vec![vec![0.5, 0.5], vec![0.0, 1.0]]);
        let [l1, l2, most] = distances(&a, &b);
        assert_eq!((l1, most), (1.0, 0.5));
        assert!((l2 - 0.5 * 2f64.sqrt()).abs() < 1e-12);
    }
}
