//! Draws from a fixed distribution in constant time (alias method, Walker 1977; Vose 1991).

use super::Rng;

/// A discrete distribution as columns of equal probability, each shared by at most two indices.
#[derive(Clone, Debug)]
pub struct AliasTable {
    columns: Vec<(f64, u32)>,
}

impl AliasTable {
    /// Builds the table of a distribution proportional to `weights`. An index of weight zero is never drawn.
    ///
    /// # Panics
    /// If the sum of the weights is not positive and finite.
    pub fn new(weights: &[f64]) -> AliasTable {
        let total: f64 = weights.iter().sum();
        assert!(
            total > 0.0 && total.is_finite(),
            "the sum of weights must be positive, got {total}"
        );
        let n = weights.len();
        let mut columns: Vec<(f64, u32)> =
            weights.iter().zip(0..).map(|(&w, i)| (w / total * n as f64, i)).collect();
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
        // The shares that are left are 1 up to rounding, except for weights of zero.
        for i in small.into_iter().chain(large) {
            if weights[i] > 0.0 {
                columns[i] = (1.0, i as u32);
            } else {
                let heaviest = (0..n).max_by(|&a, &b| weights[a].total_cmp(&weights[b]));
                columns[i] = (0.0, heaviest.expect("at least one weight") as u32);
            }
        }
        AliasTable { columns }
    }

    /// For each index, the share of its column that belongs to it, and the index that owns the rest.
    pub fn columns(&self) -> &[(f64, u32)] {
        &self.columns
    }

    /// Draws an index.
    #[inline(always)]
    pub fn draw(&self, rng: &mut Rng) -> usize {
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
    fn columns_add_up_to_the_weights() {
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
    fn indices_are_drawn_in_proportion_to_their_weights() {
        let (table, mut rng) = (AliasTable::new(&[1.0, 3.0]), Rng::new(2));
        let n = 100_000;
        let ones = (0..n).filter(|_| table.draw(&mut rng) == 1).count() as f64;
        // Four standard deviations of a binomial.
        assert!((ones - 0.75 * f64::from(n)).abs() < 4.0 * (f64::from(n) * 0.1875).sqrt());
    }
}
