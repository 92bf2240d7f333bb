//! Draws from a fixed distribution in constant time.

use latens_math::Rng;

/// Walker's alias method (Vose 1991): a column for each thing, shared by two at most.
#[derive(Clone, Debug)]
pub(crate) struct AliasTable {
    /// The share of its column that a thing keeps, and who has the rest.
    columns: Vec<(f64, u32)>,
}

impl AliasTable {
    /// # Panics
    /// If a weight is negative, or their sum is not a positive number.
    pub(crate) fn new(weights: &[f64]) -> AliasTable {
        let total: f64 = weights.iter().sum();
        assert!(total > 0.0 && total.is_finite(), "weights have a positive sum, not {total}");
        let n = weights.len();
        let mut columns: Vec<(f64, u32)> =
            weights.iter().zip(0..).map(|(&w, i)| (w * n as f64 / total, i)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|&i| columns[i].0 < 1.0);
        while let (Some(&lesser), Some(&greater)) = (small.last(), large.last()) {
            small.pop();
            columns[lesser].1 = greater as u32;
            columns[greater].0 -= 1.0 - columns[lesser].0;
            if columns[greater].0 < 1.0 {
                large.pop();
                small.push(greater);
            }
        }
        // What is left is one but for rounding; a thing without weight must not be among it.
        for i in small.into_iter().chain(large) {
            columns[i] = if weights[i] > 0.0 { (1.0, i as u32) } else { columns[i] };
        }
        AliasTable { columns }
    }

    /// Draws one thing.
    #[inline(always)]
    pub(crate) fn draw(&self, rng: &mut Rng) -> usize {
        let place = rng.uniform() * self.columns.len() as f64;
        let column = (place as usize).min(self.columns.len() - 1);
        let (share, other) = self.columns[column];
        if place - (column as f64) < share { column } else { other as usize }
    }

    #[cfg(test)]
    fn probs(&self) -> Vec<f64> {
        let n = self.columns.len();
        let mut probs = vec![0.0; n];
        for (i, &(share, other)) in self.columns.iter().enumerate() {
            probs[i] += share / n as f64;
            probs[other as usize] += (1.0 - share) / n as f64;
        }
        probs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_have_the_weights() {
        let mut rng = Rng::new(1);
        let cases: Vec<Vec<f64>> = vec![
            vec![2.0],
            vec![0.0, 3.0, 0.0],
            vec![1.0; 7],
            (0..100).map(|_| rng.uniform().powi(8)).collect(),
            vec![1e-30, 1.0, 1e-30],
        ];
        for weights in cases {
            let total: f64 = weights.iter().sum();
            let probs = AliasTable::new(&weights).probs();
            for (p, w) in probs.iter().zip(&weights) {
                assert!((p - w / total).abs() < 1e-12, "{weights:?}: {probs:?}");
                assert!(*w > 0.0 || *p == 0.0, "{weights:?}: {probs:?}");
            }
        }
    }

    #[test]
    fn draws_are_those_of_the_columns() {
        let (table, mut rng) = (AliasTable::new(&[1.0, 3.0]), Rng::new(2));
        let n = 100_000;
        let ones = (0..n).filter(|_| table.draw(&mut rng) == 1).count() as f64;
        // Four standard deviations of a binomial.
        assert!((ones - 0.75 * f64::from(n)).abs() < 4.0 * (f64::from(n) * 0.1875).sqrt());
    }
}
