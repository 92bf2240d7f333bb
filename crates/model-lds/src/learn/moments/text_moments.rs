//! Covariances of the words of a text, from counts.
//!
//! Centring is of rank two, and exact whatever the edges and pseudo-counts: with d = 1/√μ and v = √μ,
//!
//! Ψ_k X = (d·(N_k (d·X)) − v ((d·l_k)ᵀ X) − (d·r_k)(vᵀ X) + n_k v (vᵀ X)) / T'
//!
//! for counts N_k with the row sums r_k, the column sums l_k and the sum n_k; T' = T + κV, and
//! μ_i = (n_i + κ)/T'. So v is an exact null vector.

use crate::learn::moments::covariances::{Covariances, Pass, Side, Weights};
use crate::learn::moments::hankel::{hankel_block, hankel_product};
use crate::learn::moments::lag_pass::LagPass;
use crate::linalg::compact_panel::Packed;
use crate::linalg::panel::Panel;
use crate::linalg::quantization::Packing;
use crate::linalg::sums::cross;
use latens_math::{Csr, Real, Strip};
use rayon::prelude::*;
use std::ops::Range;

/// Into so many parts of about equal work a pass is shared out; fixed, so that sums are the same for any
/// number of threads.
const N_PARTS: usize = 16;

/// The covariances of a text, implicit in its counts.
#[derive(Clone, Debug)]
pub(crate) struct Moments<T> {
    mu: Vec<f64>,
    v: Vec<T>,
    lags: Vec<Lag<T>>,
    /// v and d·r_k / T' of each lag, side by side; and v and d·l_k / T'.
    edges: [Panel<T>; 2],
    parts: Vec<Range<usize>>,
}

/// The counts of a lag, all of them whitened and divided by T'.
#[derive(Clone, Debug)]
struct Lag<T> {
    /// d·N_k·d / T': rows are later words.
    later: Csr<T>,
    /// Its transpose.
    earlier: Csr<T>,
    /// n_k / T'.
    n: f64,
}

impl<T: Real> Lag<T> {
    /// The counts of a lag, and their sums over rows and over columns, whitened too.
    fn new(mut later: Csr<T>, d: &[f64], n_tokens: f64) -> (Lag<T>, [Vec<f64>; 2]) {
        assert_eq!(later.n_rows(), d.len(), "counts of these types");
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

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Later => Side::Earlier,
            Side::Earlier => Side::Later,
        }
    }
}

impl<T: Real> Moments<T> {
    /// The covariances of types with these counts, of which `pseudo_counts` more were seen alone.
    ///
    /// # Panics
    /// If a type has no probability at all, or the counts have other sizes.
    pub(crate) fn new(
        unigrams: &[u64],
        lags: impl IntoIterator<Item = Csr<T>>,
        pseudo_counts: f64,
    ) -> Moments<T> {
        let seen: f64 = unigrams.iter().map(|&count| count as f64).sum();
        let n_tokens = seen + pseudo_counts * unigrams.len() as f64;
        let mu: Vec<f64> =
            unigrams.iter().map(|&count| (count as f64 + pseudo_counts) / n_tokens).collect();
        assert!(mu.iter().all(|&mu| mu > 0.0), "every type has a probability");
        let d: Vec<f64> = mu.iter().map(|mu| 1.0 / mu.sqrt()).collect();
        let lags: Vec<Csr<T>> = lags.into_iter().collect();
        let (lags, sums): (Vec<Lag<T>>, Vec<[Vec<f64>; 2]>) =
            lags.into_par_iter().map(|counts| Lag::new(counts, &d, n_tokens)).unzip();
        let parts = parts(mu.len(), |row| {
            let n_pairs = |csr: &Csr<T>| csr.offsets()[row + 1] - csr.offsets()[row];
            let pairs = lags.iter().map(|lag| n_pairs(&lag.later) + n_pairs(&lag.earlier));
            // Besides its pairs a row costs products with small matrices.
            pairs.sum::<u64>() + 80 * lags.len() as u64
        });
        let v: Vec<T> = mu.iter().map(|mu| T::of(mu.sqrt())).collect();
        let edges = [0, 1].map(|side| {
            let mut edges = Panel::compact(v.len(), 1 + sums.len());
            for (row, &v) in v.iter().enumerate() {
                let (own, of_lags) = edges.row_mut(row).split_at_mut(1);
                own[0] = v;
                let sums = sums.iter().map(|sums| T::of(sums[side][row]));
                of_lags.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum);
            }
            edges
        });
        Moments { v, mu, lags, edges, parts }
    }

    /// The probability of each type, pseudo-counts included.
    pub(crate) fn mu(&self) -> &[f64] {
        &self.mu
    }

    /// Ranges of rows of about equal work.
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

    /// Column 0 is v, column k the sums over the rows of lag k.
    pub(crate) fn edges(&self, side: Side) -> &Panel<T> {
        match side {
            Side::Later => &self.edges[0],
            Side::Earlier => &self.edges[1],
        }
    }

    /// The sum of all counts of a lag, as a share of the tokens.
    pub(crate) fn n(&self, lag: usize) -> f64 {
        self.lags[lag - 1].n
    }

    /// What centring subtracts from products with X: v times the one row and the sums of a lag times the other.
    pub(crate) fn centres(&self, lags: Range<usize>, side: Side, x: &Panel<T>) -> Vec<Centre<T>> {
        let centres = cross(self.edges(side.other()).view(), x.view());
        let by_sums: Vec<T> = (0..x.n_cols()).map(|j| T::of(centres[(0, j)])).collect();
        let centre = |lag: usize| {
            let by_v = |j: usize| centres[(lag, j)] - self.n(lag) * centres[(0, j)];
            let by_v = (0..x.n_cols()).map(|j| T::of(by_v(j))).collect();
            Centre { by_v, by_sums: by_sums.clone() }
        };
        lags.map(centre).collect()
    }
}

/// What centring subtracts from all rows of a product, times their own numbers.
pub(crate) struct Centre<T> {
    /// l_kᵀ X − n_k vᵀ X.
    pub(crate) by_v: Vec<T>,
    /// vᵀ X.
    pub(crate) by_sums: Vec<T>,
}

impl<T: Real> Centre<T> {
    /// What a row begins with, in some of its columns.
    pub(crate) fn start(&self, columns: Range<usize>, [v, sum]: [T; 2], out: &mut [T]) {
        let columns = columns.start.min(self.by_v.len())..columns.end.min(self.by_v.len());
        let (out, between) = out.split_at_mut(columns.len());
        let centres = self.by_v[columns.clone()].iter().zip(&self.by_sums[columns]);
        for (out, (&by_v, &by_sums)) in out.iter_mut().zip(centres) {
            *out = -(v * by_v + sum * by_sums);
        }
        between.fill(T::zero());
    }
}

/// Ranges of rows of about equal cost.
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

impl<T: Packing> Covariances<T> for Moments<T> {
    fn n_types(&self) -> usize {
        self.mu.len()
    }

    fn null_vector(&self) -> &[T] {
        &self.v
    }

    fn hankel(&self, side: Side, x: &mut [Packed<T>]) {
        hankel_product(self, side, x);
    }

    fn hankel_block(&self, side: Side, x: &[Packed<T>], block: usize) -> Packed<T> {
        hankel_block(self, side, x, block)
    }

    fn product(&self, lag: usize, side: Side, x: &Panel<T>) -> Panel<T> {
        let centre = self.centres(lag..lag + 1, side, x).remove(0);
        let mut out = Panel::zeros(x.n_rows(), x.n_cols());
        let (n_cols, stride) = (out.n_cols(), out.stride());
        let mut strip = Strip::zeros(x.n_rows(), stride);
        strip.copy_columns(x.values(), stride, 0..stride);
        out.par_parts(&self.parts).for_each(|(rows, out)| {
            for (row, out) in rows.clone().zip(out.chunks_exact_mut(stride)) {
                let edges = self.edges(side).row(row);
                centre.start(0..n_cols, [edges[0], edges[lag]], out);
            }
            strip.add_product((self.counts(lag, side), rows), out, stride);
        });
        out
    }

    fn pass(&self, c: &Panel<T>, n_lags: usize, weights: Option<&Weights>) -> Pass<T> {
        LagPass::new(self, c, n_lags, weights).run()
    }
}
