//! The cross-entropy loss.

use latens_math::linalg::{MatMut, Par};
use latens_math::rows::{row_mut, rows_per_chunk, sum_chunks};
use latens_math::{Real, softmax};

/// Returns L = −Σ_i ln p_i(targets(i)) and replaces row i of `logits` by `scale` times ∂L/∂x_i, where
/// p_i = softmax(x_i).
///
/// With ln p(k) = x_k − ln Σ_j exp x_j: ∂(−ln p(k))/∂x_j = p(j) − ⟦j = k⟧.
///
/// Set `scale` to 1/n for the gradient of the mean over n examples. The loss is not scaled.
///
/// # Panics
/// If there is not one target per row, or a target is not a column.
pub fn cross_entropy<T: Real>(logits: MatMut<'_, T>, targets: &[u32], scale: f64, par: Par) -> f64 {
    biased_cross_entropy(logits, &[], targets, scale, par)
}

/// Adds a bias to every row of `logits`, then does the same as [`cross_entropy`].
///
/// This saves one pass over a large matrix compared with adding the bias in a layer. An empty bias adds nothing.
///
/// # Panics
/// If there is not one target per row, or a target is not a column.
pub fn biased_cross_entropy<T: Real>(
    logits: MatMut<'_, T>,
    bias: &[T],
    targets: &[u32],
    scale: f64,
    par: Par,
) -> f64 {
    assert_eq!(logits.nrows(), targets.len(), "there must be one target per row");
    assert!(bias.is_empty() || bias.len() == logits.ncols(), "there must be one bias per column");
    let size = rows_per_chunk(logits.ncols());
    sum_chunks(
        (logits, targets),
        size,
        par,
        #[inline(always)]
        |(mut logits, targets): (MatMut<'_, T>, &[u32])| {
            let mut loss = 0.0;
            for (i, &target) in targets.iter().enumerate() {
                let row = row_mut(&mut logits, i);
                row.iter_mut().zip(bias).for_each(|(logit, &b)| *logit += b);
                loss += row_cross_entropy(row, target as usize, T::of(scale));
            }
            loss
        },
    )
}

fn row_cross_entropy<T: Real>(row: &mut [T], target: usize, scale: T) -> f64 {
    let logit = row[target].wide();
    let log_sum = softmax(row).wide();
    row[target] -= T::one();
    row.iter_mut().for_each(|x| *x *= scale);
    log_sum - logit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::assert_gradient;
    use crate::tensors::fill_uniform;
    use crate::testing::{buffer, in_pools};
    use latens_math::Rng;

    fn draw(n: usize) -> Vec<f64> {
        let mut logits = vec![0.0; n];
        fill_uniform(&mut logits, 3.0, &mut Rng::new(1));
        logits
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (targets, n_classes) in
            [(vec![0], 1), (vec![2, 0, 2], 3), (vec![40, 7], 50), (vec![], 3)]
        {
            let n_rows = targets.len();
            let run = |logits: &[f64], scale| {
                let mut logits = buffer(logits, n_rows, n_classes);
                let loss = cross_entropy(logits.view_mut(), &targets, scale, Par::Seq);
                (loss, logits.values().to_vec())
            };
            let logits = draw(n_rows * n_classes);
            assert_gradient(&mut |x| 0.5 * run(x, 1.0).0, &logits, &run(&logits, 0.5).1, 1e-7);
        }
    }

    #[test]
    fn a_bias_is_added_to_every_row() {
        let (logits, bias) = (draw(15), [0.5, -1.0, 2.0, 0.0, 0.25]);
        let mut apart = buffer(&logits, 3, 5);
        let loss = biased_cross_entropy(apart.view_mut(), &bias, &[0, 4, 2], 0.5, Par::Seq);
        let added: Vec<f64> = logits.iter().zip(bias.iter().cycle()).map(|(x, b)| x + b).collect();
        let mut added = buffer(&added, 3, 5);
        assert_eq!(cross_entropy(added.view_mut(), &[0, 4, 2], 0.5, Par::Seq), loss);
        assert_eq!(apart.values(), added.values());
    }

    #[test]
    fn the_loss_of_equal_logits_is_the_logarithm_of_their_number() {
        let mut logits = buffer(&[2.5f32; 20], 2, 10);
        let loss = cross_entropy(logits.view_mut(), &[3, 4], 1.0, Par::Seq);
        assert!((loss - 2.0 * 10f64.ln()).abs() < 1e-5);
        assert!((logits.values()[3] + 0.9).abs() < 1e-6);
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let targets: Vec<u32> = (0..500).map(|i| i % 100).collect();
        let logits: Vec<f32> = draw(50_000).iter().map(|&x| x as f32).collect();
        in_pools(|par| {
            let mut logits = buffer(&logits, 500, 100);
            let loss = cross_entropy(logits.view_mut(), &targets, 1.0, par);
            (loss, logits.values().to_vec())
        });
    }
}
