//! Sampling with weights that are products of two rows: the inner loop of the fast samplers.

use latens_math::Rng;

/// Block size of sums; rows are padded with zeros to a multiple of it. One vector register of the widest kind. The order
/// of additions is fixed, so that results agree on all machines.
pub(crate) const BLOCK: usize = 16;

/// Padded length of a row of `n` numbers.
pub(crate) fn padded(n: usize) -> usize {
    n.next_multiple_of(BLOCK)
}

/// Draws k with probability proportional to aₖ bₖ. `sums` is scratch space with one entry per block.
///
/// Rows are padded and non-negative, and at least one product is positive. If all products underflow to zero, returns 0.
#[inline(always)]
pub(crate) fn draw_product(a: &[f32], b: &[f32], sums: &mut [f32], uniform: f64) -> usize {
    let mut total = 0.0;
    for ((a, b), sum) in a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)).zip(&mut *sums) {
        total += block_sum(a, b);
        *sum = total;
    }
    let target = uniform as f32 * total;
    let mut block = 0;
    while block + 1 < sums.len() && sums[block] <= target {
        block += 1;
    }
    let mut rest = if block > 0 { target - sums[block - 1] } else { target };
    let begin = block * BLOCK;
    for (k, (a, b)) in a[begin..begin + BLOCK].iter().zip(&b[begin..begin + BLOCK]).enumerate() {
        let weight = a * b;
        if rest < weight {
            return begin + k;
        }
        rest -= weight;
    }
    // Because of rounding, the target may exceed the sum of this block.
    last_positive(a, b, begin + BLOCK)
}

#[cold]
fn last_positive(a: &[f32], b: &[f32], end: usize) -> usize {
    let is_positive = |&k: &usize| a[k] * b[k] > 0.0;
    (0..end).rev().find(is_positive).or_else(|| (end..a.len()).find(is_positive)).unwrap_or(0)
}

#[inline(always)]
fn block_sum(a: &[f32], b: &[f32]) -> f32 {
    let mut p = [0.0f32; BLOCK];
    for k in 0..BLOCK {
        p[k] = a[k] * b[k];
    }
    let mut half = BLOCK / 2;
    while half > 0 {
        for k in 0..half {
            p[k] += p[k + half];
        }
        half /= 2;
    }
    p[0]
}

/// The topic counts of one document, and the counts plus α as sampling weights.
pub(crate) struct Mixture<'a> {
    alpha: &'a [f32],
    counts: Vec<u32>,
    /// n_dk + α_k, padded.
    pub(crate) weights: Vec<f32>,
    sums: Vec<f32>,
}

impl<'a> Mixture<'a> {
    /// `alpha` is padded.
    pub(crate) fn new(alpha: &'a [f32]) -> Mixture<'a> {
        let n = alpha.len();
        let (counts, sums) = (vec![0; n], vec![0.0; n / BLOCK]);
        Mixture { alpha, counts, weights: alpha.to_vec(), sums }
    }

    /// Starts a new document.
    #[inline(always)]
    pub(crate) fn reset(&mut self, topics: &[u16]) {
        self.counts.fill(0);
        topics.iter().for_each(|&topic| self.counts[usize::from(topic)] += 1);
        for ((weight, &n), &alpha) in self.weights.iter_mut().zip(&self.counts).zip(self.alpha) {
            *weight = n as f32 + alpha;
        }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, topic: usize) {
        self.counts[topic] += 1;
        self.weights[topic] = self.counts[topic] as f32 + self.alpha[topic];
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, topic: usize) {
        self.counts[topic] -= 1;
        self.weights[topic] = self.counts[topic] as f32 + self.alpha[topic];
    }

    /// Draws a topic with probability proportional to (n_dk + α_k) row_k.
    #[inline(always)]
    pub(crate) fn draw(&mut self, row: &[f32], rng: &mut Rng) -> usize {
        draw_product(&self.weights, row, &mut self.sums, rng.uniform())
    }
}

/// `alpha` in single precision, padded with zeros.
pub(crate) fn padded_alpha(alpha: &[f64]) -> Vec<f32> {
    let mut row: Vec<f32> = alpha.iter().map(|&a| a as f32).collect();
    row.resize(padded(alpha.len()), 0.0);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_drawn_in_proportion_to_their_products() {
        let n_topics = 37;
        let mut rng = Rng::new(1);
        let mut a: Vec<f32> = (0..n_topics).map(|_| rng.uniform() as f32).collect();
        let mut b: Vec<f32> = (0..n_topics).map(|_| rng.uniform() as f32).collect();
        a[3] = 0.0;
        a.resize(padded(n_topics), 0.0);
        b.resize(padded(n_topics), 0.0);
        let total: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(a * b)).sum();
        let n = 200_000;
        let mut counts = vec![0; a.len()];
        let mut sums = vec![0.0; a.len() / BLOCK];
        for _ in 0..n {
            counts[draw_product(&a, &b, &mut sums, rng.uniform())] += 1;
        }
        for k in 0..a.len() {
            let p = f64::from(a[k] * b[k]) / total;
            let allowed = 5.0 * (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((f64::from(counts[k]) - p * f64::from(n)).abs() <= allowed, "{k}: {counts:?}");
        }
    }

    #[test]
    fn the_largest_uniform_number_draws_a_positive_weight() {
        let (mut a, b) = (vec![0.0f32; 32], vec![1.0f32; 32]);
        a[5] = 1e-30;
        let mut sums = [0.0; 2];
        assert_eq!(draw_product(&a, &b, &mut sums, 1.0 - f64::EPSILON / 2.0), 5);
        assert_eq!(draw_product(&a, &b, &mut sums, 0.0), 5);
        a[5] = 0.0;
        assert_eq!(draw_product(&a, &b, &mut sums, 0.5), 0);
    }
}
