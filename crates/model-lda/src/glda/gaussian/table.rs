//! The densities of all topics for many types at once.
//!
//! Tokens of the same word have the same vector, so a sweep needs only a table with one row per type. Blocks of vectors
//! are transposed, so that a register holds one coordinate of 16 vectors. The triangular factors of all topics are then
//! applied to the block: M²/2 multiplications per entry, with operands in registers and the L1 cache.

use super::density::{Density, Form, GROUP, Shape};
use super::vectors::TypeVectors;
use crate::draw::padded;
use latens_math::Real;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

/// Number of vectors per block.
const WORDS: usize = 64;
/// Number of registers per coordinate of a block.
const REGISTERS: usize = 4;
/// Minimum log density relative to the best topic, in nats. Proposal probabilities must not underflow to zero, which
/// would bias the chain; single precision underflows at −87.
const FLOOR: f32 = -69.0;

/// Densities of all topics for some types, relative to the best topic of the type.
pub(crate) struct Table {
    stride: usize,
    rows: Vec<f32>,
    /// Log density of the best topic of each row.
    best: Vec<f32>,
    /// Row of each type, if present.
    row_of: Vec<u32>,
}

impl Table {
    /// Computes the table of these types. `middle` is the origin of the densities, which are raised to the power
    /// `weight`.
    pub(crate) fn new(
        densities: &[Density],
        vectors: &TypeVectors,
        middle: &[f64],
        types: &[u32],
        weight: f64,
    ) -> Table {
        let stride = padded(densities.len());
        let mut rows = vec![0.0; types.len() * stride];
        let mut best = vec![0.0; types.len()];
        let middle: Vec<f32> = middle.iter().map(|&m| m as f32).collect();
        let blocks = types.par_chunks(WORDS).zip(rows.par_chunks_mut(WORDS * stride));
        let blocks = blocks.zip(best.par_chunks_mut(WORDS));
        blocks.for_each_init(
            || Buffers::new(vectors.dim(), densities.len()),
            |buffers, ((types, rows), best)| {
                buffers.turn(types, vectors, &middle);
                let weight = weight as f32;
                let block = BlockOfTable { densities, buffers, rows, best, stride, weight };
                pulp::Arch::new().dispatch(block);
            },
        );
        let mut row_of = vec![u32::MAX; vectors.len()];
        types.iter().zip(0..).for_each(|(&t, row)| row_of[t as usize] = row);
        Table { stride, rows, best, row_of }
    }

    /// The densities of a type, padded with zeros.
    #[inline(always)]
    pub(crate) fn row(&self, token_type: u32) -> &[f32] {
        &self.rows[self.row_of[token_type as usize] as usize * self.stride..][..self.stride]
    }

    /// Log density of the best topic of a type, to which its row is relative.
    pub(crate) fn log_best(&self, token_type: u32) -> f64 {
        f64::from(self.best[self.row_of[token_type as usize] as usize])
    }
}

struct Buffers {
    dim: usize,
    /// Transposed vectors: one row per coordinate.
    turned: Vec<f32>,
    /// Log densities: one row per topic.
    logs: Vec<f32>,
}

impl Buffers {
    fn new(dim: usize, n_topics: usize) -> Buffers {
        Buffers { dim, turned: vec![0.0; dim * WORDS], logs: vec![0.0; n_topics * WORDS] }
    }

    fn turn(&mut self, types: &[u32], vectors: &TypeVectors, middle: &[f32]) {
        for (word, &token_type) in types.iter().enumerate() {
            let row = vectors.row(token_type).iter().zip(middle);
            for (place, (x, m)) in self.turned[word..].iter_mut().step_by(WORDS).zip(row) {
                *place = x - m;
            }
        }
    }
}

struct BlockOfTable<'a> {
    densities: &'a [Density],
    buffers: &'a mut Buffers,
    rows: &'a mut [f32],
    best: &'a mut [f32],
    stride: usize,
    weight: f32,
}

impl WithSimd for BlockOfTable<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Buffers { dim, turned, logs } = self.buffers;
        for (density, logs) in self.densities.iter().zip(logs.chunks_exact_mut(WORDS)) {
            match &density.shape {
                Shape::Triangle { groups, offset } => {
                    for first in (0..WORDS).step_by(REGISTERS * S::F32_LANES) {
                        squared_lengths(simd, groups, offset, turned, *dim, first, logs);
                    }
                    finish(logs, density.form, self.weight);
                }
                Shape::Diagonal { squares, mean } => match density.form {
                    Form::StudentProduct { norm, half, factor } => {
                        logs.fill(0.0);
                        for ((x, s), m) in turned.chunks_exact(WORDS).zip(squares).zip(mean) {
                            for (log, x) in logs.iter_mut().zip(x) {
                                *log += ln_1p(factor * s * (x - m) * (x - m));
                            }
                        }
                        logs.iter_mut().for_each(|log| *log = self.weight * (norm - half * *log));
                    }
                    form => {
                        logs.fill(0.0);
                        for ((x, s), m) in turned.chunks_exact(WORDS).zip(squares).zip(mean) {
                            for (log, x) in logs.iter_mut().zip(x) {
                                *log += s * (x - m) * (x - m);
                            }
                        }
                        finish(logs, form, self.weight);
                    }
                },
            }
        }
        let best = exponentials(logs);
        self.best.copy_from_slice(&best[..self.best.len()]);
        for (word, row) in self.rows.chunks_exact_mut(self.stride).enumerate() {
            let column = logs[word..].iter().step_by(WORDS);
            row.iter_mut().zip(column).for_each(|(s, &value)| *s = value);
        }
    }
}

/// |W x − W m|² for several registers of vectors.
#[inline(always)]
fn squared_lengths<S: Simd>(
    simd: S,
    groups: &[f32],
    offset: &[f32],
    turned: &[f32],
    dim: usize,
    first: usize,
    out: &mut [f32],
) {
    let mut sums = [simd.splat_f32s(0.0); REGISTERS];
    let mut begin = 0;
    for (group, offset) in offset.chunks_exact(GROUP).enumerate() {
        let n_columns = (GROUP * (group + 1)).min(dim);
        let mut y = [[simd.splat_f32s(0.0); REGISTERS]; GROUP];
        for (y, &offset) in y.iter_mut().zip(offset) {
            *y = [simd.splat_f32s(-offset); REGISTERS];
        }
        let columns = groups[begin..begin + n_columns * GROUP].chunks_exact(GROUP);
        for (w, x) in columns.zip(turned.chunks_exact(WORDS)) {
            let (x, _) = S::as_simd_f32s(&x[first..first + REGISTERS * S::F32_LANES]);
            for g in 0..GROUP {
                let w = simd.splat_f32s(w[g]);
                for r in 0..REGISTERS {
                    y[g][r] = simd.mul_add_e_f32s(w, x[r], y[g][r]);
                }
            }
        }
        begin += n_columns * GROUP;
        for y in y {
            for r in 0..REGISTERS {
                sums[r] = simd.mul_add_e_f32s(y[r], y[r], sums[r]);
            }
        }
    }
    let (out, _) = S::as_mut_simd_f32s(&mut out[first..first + REGISTERS * S::F32_LANES]);
    out.copy_from_slice(&sums);
}

/// Maps squared norms to log densities.
#[inline(always)]
fn finish(values: &mut [f32], form: Form, weight: f32) {
    match form {
        Form::Student { norm, half, factor } => {
            values.iter_mut().for_each(|q| *q = weight * (norm - half * ln_1p(factor * *q)));
        }
        Form::Normal { norm } => {
            values.iter_mut().for_each(|q| *q = weight * (norm - 0.5 * *q));
        }
        Form::StudentProduct { .. } => {
            unreachable!("product densities are evaluated per coordinate")
        }
    }
}

/// Subtracts the maximum of each column, which is one vector, and exponentiates. Returns the maxima.
#[inline(always)]
fn exponentials(logs: &mut [f32]) -> [f32; WORDS] {
    let mut best = [f32::NEG_INFINITY; WORDS];
    for row in logs.chunks_exact(WORDS) {
        best.iter_mut()
            .zip(row)
            .for_each(|(best, &log)| *best = if log > *best { log } else { *best });
    }
    for row in logs.chunks_exact_mut(WORDS) {
        for (log, best) in row.iter_mut().zip(&best) {
            let gap = *log - best;
            // NaN, if the vector is so far from all topics that its densities underflow, counts as the floor.
            *log = (if gap > FLOOR { gap } else { FLOOR }).exp_of();
        }
    }
    best
}

/// ln(1 + z) for z ≥ 0 without branches and calls, so that the compiler vectorizes it: the polynomial of the Cephes
/// library for the rounded 1 + z, plus a correction for the rounding error.
#[inline(always)]
fn ln_1p(z: f32) -> f32 {
    const SQRT_HALF: f32 = std::f32::consts::FRAC_1_SQRT_2;
    let u = 1.0 + z;
    let lost = (z - (u - 1.0)) / u;
    // u = 2^e m with m in [√½, √2).
    let bits = u.to_bits();
    let e = (bits >> 23) as i32 - 126;
    let m = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
    let is_small = m < SQRT_HALF;
    let e = (if is_small { e - 1 } else { e }) as f32;
    let x = if is_small { m + m - 1.0 } else { m - 1.0 };
    let x2 = x * x;
    let mut p = 7.037_683_6e-2_f32;
    p = p * x - 1.151_461e-1;
    p = p * x + 1.167_699_9e-1;
    p = p * x - 1.242_014_1e-1;
    p = p * x + 1.424_932_3e-1;
    p = p * x - 1.666_805_8e-1;
    p = p * x + 2.000_071_5e-1;
    p = p * x - 2.499_999_4e-1;
    p = p * x + 3.333_333e-1;
    let y = p * x2 * x - 2.121_944_4e-4 * e - 0.5 * x2;
    x + y + 0.693_359_4 * e + lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glda::gaussian::prior::{Prior, Scale};
    use crate::glda::gaussian::topic::Topic;
    use latens_math::Rng;

    #[test]
    fn the_logarithm_is_accurate_to_single_precision() {
        let mut z = 1e-9f64;
        while z < 1e30 {
            let (ours, exact) = (f64::from(ln_1p(z as f32)), f64::from(z as f32).ln_1p());
            assert!((ours - exact).abs() <= 3e-7 * exact, "{z}: {ours} {exact}");
            z *= 1.37;
        }
        assert_eq!(ln_1p(0.0), 0.0);
    }

    /// Random vectors, and topics that contain some of them.
    fn topics(dim: usize, scale: Scale) -> (Prior, TypeVectors, Vec<Topic>) {
        let mut rng = Rng::new(dim as u64);
        let n_types = 150;
        let values = (0..n_types * dim).map(|_| (3.0 + rng.normal()) as f32).collect();
        let vectors = TypeVectors::new(dim, values);
        let prior = Prior::new(0.1, dim as f64 + 2.0, vec![2.9; dim], scale);
        let members =
            |k: u32| (0..30 * k).map(|i| ((7 * i + k) % 150, 1 + i % 3)).collect::<Vec<_>>();
        let topics = (0..5).map(|k| Topic::new(&prior, &members(k), &vectors)).collect();
        (prior, vectors, topics)
    }

    #[test]
    fn entries_equal_the_densities_relative_to_the_best_topic() {
        for dim in [1, 3, 4, 10, 50] {
            let mut identity = vec![0.0; dim * dim];
            (0..dim).for_each(|j| identity[j * dim + j] = 2.0);
            for scale in
                [Scale::Full(identity), Scale::Diagonal(vec![2.0; dim]), Scale::Spherical(2.0)]
            {
                let (prior, vectors, topics) = topics(dim, scale);
                let types: Vec<u32> = (0..150).filter(|t| t % 7 != 3).collect();
                let densities: Vec<Density> =
                    topics.iter().map(|topic| Density::predictive(topic, &prior)).collect();
                let weight = 0.5;
                let table = Table::new(&densities, &vectors, &prior.mean, &types, weight);
                let mut scratch = vec![0.0; dim];
                for &t in &types {
                    let x: Vec<f64> = vectors.get(t).collect();
                    let logs: Vec<f64> = topics
                        .iter()
                        .map(|topic| weight * topic.log_density(&prior, &x, &mut scratch))
                        .collect();
                    let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    for (s, log) in table.row(t).iter().zip(&logs) {
                        let gap = (log - best).max(f64::from(FLOOR));
                        // Single precision has an error of about 5e-4 nats.
                        assert!((f64::from(s.ln()) - gap).abs() < 1e-3, "{dim}: {s} {gap}");
                    }
                    assert!(table.row(t)[5..].iter().all(|&s| s == 0.0));
                }
            }
        }
    }

    #[test]
    fn normal_densities_agree_with_their_definition() {
        use crate::glda::gaussian::density::Gaussian;
        let dim = 6;
        let mut identity = vec![0.0; dim * dim];
        (0..dim).for_each(|j| identity[j * dim + j] = 2.0);
        for scale in [Scale::Full(identity), Scale::Diagonal(vec![2.0; dim]), Scale::Spherical(2.0)]
        {
            let (prior, vectors, topics) = topics(dim, scale);
            let mut rng = Rng::new(1);
            let gaussians: Vec<Gaussian> =
                topics.iter().map(|topic| Gaussian::draw(topic, &prior, &mut rng)).collect();
            let densities: Vec<Density> =
                gaussians.iter().map(|gaussian| Density::normal(gaussian, &prior)).collect();
            let types: Vec<u32> = (0..150).collect();
            let table = Table::new(&densities, &vectors, &prior.mean, &types, 1.0);
            for &t in &types {
                let x: Vec<f64> = vectors.get(t).collect();
                let logs: Vec<f64> = gaussians.iter().map(|g| log_normal(g, &x)).collect();
                let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                for (s, log) in table.row(t).iter().zip(&logs) {
                    let gap = (log - best).max(f64::from(FLOOR));
                    assert!((f64::from(s.ln()) - gap).abs() < 1e-3, "{s} {gap}");
                }
            }
        }
    }

    /// ln N(x; m, (WᵀW)⁻¹) up to a constant.
    fn log_normal(gaussian: &crate::glda::gaussian::density::Gaussian, x: &[f64]) -> f64 {
        use crate::glda::gaussian::density::Whitener;
        let dim = x.len();
        let d: Vec<f64> = x.iter().zip(&gaussian.mean).map(|(x, m)| x - m).collect();
        match &gaussian.whitener {
            Whitener::Triangle(w) => {
                let y = (0..dim).map(|i| (0..=i).map(|j| w[j * dim + i] * d[j]).sum::<f64>());
                let log_det: f64 = (0..dim).map(|j| w[j * dim + j].ln()).sum();
                log_det - 0.5 * y.map(|y| y * y).sum::<f64>()
            }
            Whitener::Diagonal(w) => {
                w.iter().zip(&d).map(|(w, d)| w.ln() - 0.5 * (w * d).powi(2)).sum()
            }
        }
    }
}
