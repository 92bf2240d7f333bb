//! The covariances of the words of a text, from counts.
//!
//! Let N_k be the counts of pairs k tokens apart, r_k their row sums, l_k their column sums and n_k their total;
//! T' = T + κV, μ_i = (n_i + κ)/T', d = 1/√μ and v = √μ. Centering is a correction of rank two,
//!
//! Ψ_k X = (d·(N_k (d·X)) − v ((d·l_k)ᵀ X) − (d·r_k)(vᵀ X) + n_k v (vᵀ X)) / T',
//!
//! and exact for any pseudo-counts and any ends of the text. Therefore v is an exact null vector.

use crate::learn::moments::covariances::Side;
use crate::linalg::panel::Panel;
use crate::linalg::sums::cross;
use latens_math::{Csr, Real};
use rayon::prelude::*;
use std::ops::Range;

/// Number of parts of about equal work in a parallel pass; fixed, so that sums do not depend on the number of threads.
const N_PARTS: usize = 16;

/// The covariances of a text, implicit in its counts.
#[derive(Clone, Debug)]
pub(crate) struct Moments<T> {
    mu: Vec<f64>,
    v: Vec<T>,
    lags: Vec<Lag<T>>,
    /// v and d·r_k / T' of each lag, side by side; and v and d·l_k / T'.
    margins: [Panel<T>; 2],
    parts: Vec<Range<usize>>,
}

/// The counts of one lag, whitened and divided by T'.
#[derive(Clone, Debug)]
struct Lag<T> {
    /// d·N_k·d / T'; rows are later words.
    later: Csr<T>,
    /// The transpose of `later`.
    earlier: Csr<T>,
    /// n_k / T'.
    n: f64,
}

impl<T: Real> Lag<T> {
    /// The whitened counts of a lag, and their whitened row and column sums.
    fn new(mut later: Csr<T>, d: &[f64], n_tokens: f64) -> (Lag<T>, [Vec<f64>; 2]) {
        assert_eq!(later.n_rows(), d.len(), "the counts must have one row per type");
        let (mut row_sums, mut column_sums) = (vec![0.0; d.len()], vec![0.0; d.len()]);
        for (row, row_sum) in row_sums.iter_mut().enumerate() {
            let (columns, counts) = later.row(row);
            for (&column, count) in columns.iter().zip(counts) {
                *row_sum += count.wide();
                column_sums[column as usize] += count.wide();
            }
        }
        let n = row_sums.iter().sum::<f64>() / n_tokens;
        for sums in [&mut row_sums, &mut column_sums] {
            sums.iter_mut().zip(d).for_each(|(sum, d)| *sum *= d / n_tokens);
        }
        later.replace_values(|i, j, count| T::of(count.wide() * d[i] * d[j] / n_tokens));
        let earlier = later.transpose();
        (Lag { later, earlier, n }, [row_sums, column_sums])
    }
}

impl<T: Real> Moments<T> {
    /// The covariances from counts of types and of pairs, where `pseudo_counts` are added to the count of every type
    /// but not to pairs.
    ///
    /// # Panics
    /// If a type has probability zero, or if the sizes do not match.
    pub(crate) fn new(
        unigrams: &[u64],
        lags: impl IntoIterator<Item = Csr<T>>,
        pseudo_counts: f64,
    ) -> Moments<T> {
        let seen: f64 = unigrams.iter().map(|&count| count as f64).sum();
        let n_tokens = seen + pseudo_counts * unigrams.len() as f64;
        let mu: Vec<f64> =
            unigrams.iter().map(|&count| (count as f64 + pseudo_counts) / n_tokens).collect();
        assert!(mu.iter().all(|&mu| mu > 0.0), "every type must have a positive probability");
        let d: Vec<f64> = mu.iter().map(|mu| 1.0 / mu.sqrt()).collect();
        let lags: Vec<Csr<T>> = lags.into_iter().collect();
        let (lags, sums): (Vec<Lag<T>>, Vec<[Vec<f64>; 2]>) =
            lags.into_par_iter().map(|counts| Lag::new(counts, &d, n_tokens)).unzip();
        let parts = parts(mu.len(), |row| {
            let n_pairs = |csr: &Csr<T>| csr.offsets()[row + 1] - csr.offsets()[row];
            let pairs = lags.iter().map(|lag| n_pairs(&lag.later) + n_pairs(&lag.earlier));
            // The constant accounts for a row's products with small matrices.
            pairs.sum::<u64>() + 80 * lags.len() as u64
        });
        let v: Vec<T> = mu.iter().map(|mu| T::of(mu.sqrt())).collect();
        let margins = [0, 1].map(|side| {
            let mut margins = Panel::unpadded(v.len(), 1 + sums.len());
            for (row, &v) in v.iter().enumerate() {
                let (own, of_lags) = margins.row_mut(row).split_at_mut(1);
                own[0] = v;
                let sums = sums.iter().map(|sums| T::of(sums[side][row]));
                of_lags.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum);
            }
            margins
        });
        Moments { v, mu, lags, margins, parts }
    }

    /// The probability of each type, including pseudo-counts.
    pub(crate) fn mu(&self) -> &[f64] {
        &self.mu
    }

    /// √μ, the exact null vector of all covariances.
    pub(crate) fn v(&self) -> &[T] {
        &self.v
    }

    /// Ranges of rows with about equal work.
    pub(crate) fn parts(&self) -> &[Range<usize>] {
        &self.parts
    }

    /// The whitened counts of a lag, or their transpose.
    pub(crate) fn counts(&self, lag: usize, side: Side) -> &Csr<T> {
        match side {
            Side::Later => &self.lags[lag - 1].later,
            Side::Earlier => &self.lags[lag - 1].earlier,
        }
    }

    /// A matrix with v as column 0 and the row sums of lag k as column k.
    pub(crate) fn margins(&self, side: Side) -> &Panel<T> {
        match side {
            Side::Later => &self.margins[0],
            Side::Earlier => &self.margins[1],
        }
    }

    /// The sum of all counts of a lag, divided by T'.
    pub(crate) fn n(&self, lag: usize) -> f64 {
        self.lags[lag - 1].n
    }

    /// The terms that centering subtracts from the products of several lags with X.
    pub(crate) fn centers(&self, lags: Range<usize>, side: Side, x: &Panel<T>) -> Vec<Center<T>> {
        let centers = cross(self.margins(side.other()).view(), x.view());
        let by_sums: Vec<T> = (0..x.n_cols()).map(|j| T::of(centers[(0, j)])).collect();
        let center = |lag: usize| {
            let by_v = |j: usize| centers[(lag, j)] - self.n(lag) * centers[(0, j)];
            let by_v = (0..x.n_cols()).map(|j| T::of(by_v(j))).collect();
            Center { by_v, by_sums: by_sums.clone() }
        };
        lags.map(center).collect()
    }
}

/// The terms that centering subtracts from a product: v times one row, and the sums of the lag times the other.
pub(crate) struct Center<T> {
    /// l_kᵀ X − n_k vᵀ X.
    pub(crate) by_v: Vec<T>,
    /// vᵀ X.
    pub(crate) by_sums: Vec<T>,
}

impl<T: Real> Center<T> {
    /// Initializes some columns of a row with the centering terms.
    pub(crate) fn start(&self, columns: Range<usize>, [v, sum]: [T; 2], out: &mut [T]) {
        let columns = columns.start.min(self.by_v.len())..columns.end.min(self.by_v.len());
        let (out, between) = out.split_at_mut(columns.len());
        let centers = self.by_v[columns.clone()].iter().zip(&self.by_sums[columns]);
        for (out, (&by_v, &by_sums)) in out.iter_mut().zip(centers) {
            *out = -(v * by_v + sum * by_sums);
        }
        between.fill(T::zero());
    }
}

/// Ranges of rows with about equal cost.
fn parts(n_rows: usize, cost: impl Fn(usize) -> u64) -> Vec<Range<usize>> {
    let total: u64 = (0..n_rows).map(&cost).sum();
    let target = total.div_ceil(N_PARTS as u64).max(1);
    let (mut parts, mut first, mut sum) = (Vec::new(), 0, 0);
    for row in 0..n_rows {
        sum += cost(row);
        if sum >= target {
            parts.push(first..row + 1);
            (first, sum) = (row + 1, 0);
        }
    }
    if first < n_rows {
        parts.push(first..n_rows);
    }
    parts
}
