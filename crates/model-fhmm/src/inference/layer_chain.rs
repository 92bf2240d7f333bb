//! Posterior of the chain of one layer, given a field at each token.
//!
//! q(S) ∝ π(s_1) Π A(s_{t−1}, s_t) Π exp f_t(s_t). Layers have few states, so rows are padded to the length of SIMD
//! vectors. For more than about 100 states, `latens_math::chain` is the better choice.

use latens_math::Real;

/// Number of SIMD lanes that rows are padded to.
const LANES: usize = 16;

/// Padded π and A of a layer.
#[derive(Clone, Debug)]
pub(crate) struct LayerChain<T> {
    k: usize,
    padded: usize,
    start: Vec<T>,
    /// A in row-major order.
    rows: Vec<T>,
    /// A in column-major order.
    columns: Vec<T>,
}

/// Scratch memory, reused between sentences.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChainScratch<T> {
    local: Vec<T>,
    alpha: Vec<T>,
    beta: Vec<T>,
    next: Vec<T>,
    pairs: Vec<T>,
}

/// Position of a layer in rows of many layers: its first column, and the row length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) first: usize,
    pub(crate) row: usize,
}

impl Column {
    #[inline(always)]
    fn at(self, t: usize, k: usize) -> std::ops::Range<usize> {
        t * self.row + self.first..t * self.row + self.first + k
    }
}

impl<T: Real> LayerChain<T> {
    pub(crate) fn new(start: &[T], transition: &[T]) -> LayerChain<T> {
        let k = start.len();
        let padded = k.div_ceil(LANES) * LANES;
        let mut chain = LayerChain {
            k,
            padded,
            start: vec![T::zero(); padded],
            rows: vec![T::zero(); k * padded],
            columns: vec![T::zero(); k * padded],
        };
        chain.start[..k].copy_from_slice(start);
        for (i, row) in transition.chunks_exact(k).enumerate() {
            chain.rows[i * padded..i * padded + k].copy_from_slice(row);
            for (j, &p) in row.iter().enumerate() {
                chain.columns[j * padded + i] = p;
            }
        }
        chain
    }

    /// Writes γ_t(k) = q(s_t = k) for all tokens of a sentence, and returns the log-sum over all paths.
    ///
    /// `fields` and `gamma` are tokens × layers × states; `column` selects this layer.
    #[inline(always)]
    pub(crate) fn smooth(
        &self,
        fields: &[T],
        gamma: &mut [T],
        column: Column,
        scratch: &mut ChainScratch<T>,
    ) -> f64 {
        self.recursions(fields, gamma, column, scratch, None)
    }

    /// Like [`LayerChain::smooth`], and adds Σ_t q(s_{t−1} = j, s_t = k) to `pairs`: states × states.
    #[inline(always)]
    pub(crate) fn smooth_with_pairs(
        &self,
        fields: &[T],
        gamma: &mut [T],
        column: Column,
        scratch: &mut ChainScratch<T>,
        pairs: &mut [f64],
    ) -> f64 {
        let mut sums = std::mem::take(&mut scratch.pairs);
        sums.clear();
        sums.resize(self.k * self.padded, T::zero());
        let log_sum = self.recursions(fields, gamma, column, scratch, Some(&mut sums));
        for (i, pairs) in pairs.chunks_exact_mut(self.k).enumerate() {
            let row = i * self.padded..i * self.padded + self.k;
            for ((pair, &sum), &p) in pairs.iter_mut().zip(&sums[row.clone()]).zip(&self.rows[row])
            {
                *pair += (sum * p).wide();
            }
        }
        scratch.pairs = sums;
        log_sum
    }

    #[inline(always)]
    fn recursions(
        &self,
        fields: &[T],
        gamma: &mut [T],
        column: Column,
        scratch: &mut ChainScratch<T>,
        mut pairs: Option<&mut [T]>,
    ) -> f64 {
        let (k, padded) = (self.k, self.padded);
        let n = fields.len() / column.row;
        let log_sum = self.forward(fields, n, column, scratch);
        let ChainScratch { local, alpha, beta, next, .. } = scratch;
        beta.clear();
        beta.resize(padded, T::one());
        next.resize(padded, T::zero());
        for t in (0..n).rev() {
            let at = t * padded..(t + 1) * padded;
            let (alpha, local) = (&alpha[at.clone()], &local[at]);
            let total: T = alpha.iter().zip(&*beta).map(|(&a, &b)| a * b).sum();
            let scale = T::one() / total;
            let out = gamma[column.at(t, k)].iter_mut();
            out.zip(alpha.iter().zip(&*beta)).for_each(|(out, (&a, &b))| *out = a * b * scale);
            if let (Some(pairs), true) = (pairs.as_deref_mut(), t + 1 < n) {
                // `next` still is local ∘ β of the following token.
                for (row, &a) in pairs.chunks_exact_mut(padded).zip(alpha) {
                    let factor = a * scale;
                    row.iter_mut().zip(&*next).for_each(|(sum, &v)| *sum += factor * v);
                }
            }
            if t > 0 {
                let mut largest = T::zero();
                for ((next, &l), &b) in next.iter_mut().zip(local).zip(&*beta) {
                    *next = l * b;
                    largest = if *next > largest { *next } else { largest };
                }
                let scale = T::one() / largest;
                next.iter_mut().for_each(|next| *next *= scale);
                combine(&next[..k], &self.columns, beta);
            }
        }
        log_sum
    }

    /// Computes α, scaled to a sum of one at every token.
    #[inline(always)]
    fn forward(
        &self,
        fields: &[T],
        n: usize,
        column: Column,
        scratch: &mut ChainScratch<T>,
    ) -> f64 {
        let (k, padded) = (self.k, self.padded);
        let ChainScratch { local, alpha, .. } = scratch;
        for values in [&mut *local, &mut *alpha] {
            values.resize((n * padded).max(values.len()), T::zero());
        }
        let mut log_sum = 0.0;
        // One logarithm of a product is cheaper than a logarithm per token.
        let mut product = 1.0;
        for t in 0..n {
            let at = t * padded..(t + 1) * padded;
            let local = &mut local[at.clone()];
            log_sum += exponentials(&fields[column.at(t, k)], local);
            let (before, alpha) = alpha[..at.end].split_at_mut(at.start);
            if t == 0 {
                alpha.copy_from_slice(&self.start);
            } else {
                combine(&before[before.len() - padded..][..k], &self.rows, alpha);
            }
            let mut sum = T::zero();
            for (a, &l) in alpha.iter_mut().zip(&*local) {
                *a *= l;
                sum += *a;
            }
            let scale = T::one() / sum;
            alpha.iter_mut().for_each(|a| *a *= scale);
            product *= sum.wide();
            if !(1e-200..1e200).contains(&product) {
                log_sum += product.ln();
                product = 1.0;
            }
        }
        log_sum + product.ln()
    }

    /// Most likely path (Viterbi). Ties go to the lowest states.
    pub(crate) fn best_path(&self, fields: &[T], column: Column) -> Vec<u32> {
        let k = self.k;
        let n = fields.len() / column.row;
        let (mut best, mut origins) = (vec![0.0; k], Vec::with_capacity(n));
        for t in 0..n {
            let mut next = vec![f64::NEG_INFINITY; k];
            let mut origin = vec![0u32; k];
            for j in 0..k {
                if t == 0 {
                    next[j] = self.start[j].wide().ln();
                } else {
                    for (i, best) in best.iter().enumerate() {
                        let score = best + self.rows[i * self.padded + j].wide().ln();
                        if score > next[j] {
                            (next[j], origin[j]) = (score, i as u32);
                        }
                    }
                }
                next[j] += fields[column.at(t, k)][j].wide();
            }
            best = next;
            origins.push(origin);
        }
        let largest = best.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut state = best.iter().position(|&score| score == largest).unwrap_or(0) as u32;
        let mut path = vec![0; n];
        for t in (0..n).rev() {
            path[t] = state;
            state = origins[t][state as usize];
        }
        path
    }
}

/// Writes e^(x − max) and returns max. Padding beyond `x` is set to zero.
#[inline(always)]
fn exponentials<T: Real>(x: &[T], out: &mut [T]) -> f64 {
    let mut max = x[0];
    x.iter().for_each(|&x| max = if x > max { x } else { max });
    out[..x.len()].copy_from_slice(x);
    out[..x.len()].iter_mut().for_each(|x| *x = (*x - max).exp_of());
    out[x.len()..].fill(T::zero());
    max.wide()
}

/// out = Σ_i factors[i] · row i.
#[inline(always)]
fn combine<T: Real>(factors: &[T], rows: &[T], out: &mut [T]) {
    let padded = out.len();
    for (chunk, out) in out.chunks_exact_mut(LANES).enumerate() {
        let mut sums = [T::zero(); LANES];
        for (&factor, row) in factors.iter().zip(rows.chunks_exact(padded)) {
            let row = &row[chunk * LANES..(chunk + 1) * LANES];
            for lane in 0..LANES {
                sums[lane] += factor * row[lane];
            }
        }
        out.copy_from_slice(&sums);
    }
}
