//! Gradients against finite differences and across precisions.

use super::toy::{batch, params, sentences, space_of, sparse_and_dense, tags};
use crate::params::{Constraint, HmmParams, Parameterization, Tying, WordEmbedding};
use crate::recursion::forward_backward::ForwardBackward;
use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::probability_tables::Tables;
use crate::weights::mapping::TableMapping;
use crate::weights::neural::Neural;
use crate::weights::scalar::Scalar;
use latens_corpus::WordId;
use latens_math::{Real, Rng};
use latens_nn::Dropout;

/// Checks the gradient of Σ ln p of a parameterization, with and without state dropout.
fn check_gradient(
    mapping: &dyn Fn() -> Box<dyn TableMapping<f64>>,
    space: &StateSpace,
    n_tags: usize,
    dropout: Option<Dropout>,
) {
    let sentences = sentences();
    let tags = if n_tags > 0 { tags(&sentences) } else { vec![] };
    let batch = batch(&sentences, &tags);
    for kept in [KeptStates::all(space), KeptStates::draw(space, 0.5, &mut Rng::new(3))] {
        let mut mapping = mapping();
        let mut weights = vec![0.0; mapping.layout().len()];
        mapping.init(&mut weights, &mut Rng::new(1));
        // Smaller logits make the function smoother and finite differences more accurate.
        weights.iter_mut().for_each(|weight| *weight *= 0.7);
        let (mut tables, mut expected) = (Tables::default(), ExpectedCounts::default());
        mapping.forward(&weights, space, &kept, dropout, &mut tables);
        ForwardBackward::default().expected_counts(space, &tables, &batch, &mut expected);
        let mut gradient = vec![0.0; weights.len()];
        mapping.backward(&weights, space, &kept, &mut tables, &expected, &mut gradient);
        let mut log_prob = |weights: &[f64]| -> f64 {
            let mut tables = Tables::default();
            mapping.forward(weights, space, &kept, dropout, &mut tables);
            ForwardBackward::default().log_probs(space, &tables, &batch).iter().sum()
        };
        latens_nn::check::assert_gradient(&mut log_prob, &weights, &gradient, 1e-6);
    }
}

#[test]
fn gradients_of_networks_match_finite_differences() {
    use {Constraint as C, Parameterization as P, WordEmbedding as W};
    for (parameterization, constraint, tying, word_vectors, n_tags) in [
        (P::Neural, C::Brown, Tying::Shared, W::Words, 0),
        (P::Neural, C::Brown, Tying::Separate, W::Words, 3),
        (P::Factored, C::Brown, Tying::Shared, W::Words, 3),
        (P::Neural, C::None, Tying::Shared, W::Words, 0),
        (P::Neural, C::Uniform, Tying::Shared, W::Words, 0),
        (P::Factored, C::Uniform, Tying::Shared, W::Words, 0),
        (P::Neural, C::Brown, Tying::Shared, W::Chars, 0),
        (P::Factored, C::Brown, Tying::Shared, W::Chars, 3),
        (P::Neural, C::None, Tying::Shared, W::Chars, 3),
    ] {
        let params = HmmParams { word_vectors, ..params(parameterization, constraint, tying) };
        let space = space_of(&params);
        let spellings = ["<unk>", "<eos>", "the", "cat", "dogs", "ran", "x"];
        let mapping = || -> Box<dyn TableMapping<f64>> {
            Box::new(Neural::new(&params, &space, &spellings, n_tags))
        };
        for space in sparse_and_dense(&space) {
            check_gradient(&mapping, &space, n_tags, None);
            check_gradient(&mapping, &space, n_tags, Some(Dropout::new(0.2, 4)));
        }
    }
}

#[test]
fn gradients_of_scalar_mapping_match_finite_differences() {
    for (constraint, n_tags) in [
        (Constraint::Brown, 0),
        (Constraint::Brown, 3),
        (Constraint::None, 0),
        (Constraint::Uniform, 3),
    ] {
        let space = space_of(&params(Parameterization::Scalar, constraint, Tying::Shared));
        let mapping = || -> Box<dyn TableMapping<f64>> { Box::new(Scalar::new(&space, n_tags)) };
        for space in sparse_and_dense(&space) {
            check_gradient(&mapping, &space, n_tags, None);
        }
    }
}

/// Σ ln p of random sentences under untrained networks, and its gradient.
fn initial_gradient<T: Real>(
    params: &HmmParams,
    space: &StateSpace,
    n_words: usize,
) -> (f64, Vec<f64>) {
    let spellings = vec!["a"; n_words];
    let mut neural = Neural::<T>::new(params, space, &spellings, 0);
    let mut weights = vec![0.0f64; Neural::<f64>::new(params, space, &spellings, 0).layout().len()];
    Neural::<f64>::new(params, space, &spellings, 0).init(&mut weights, &mut Rng::new(1));
    let weights: Vec<T> = weights.iter().map(|&weight| T::of(weight)).collect();
    let mut rng = Rng::new(2);
    let mut word = || WordId((rng.uniform() * n_words as f64) as u32);
    let sentences: Vec<Vec<WordId>> = (0..40).map(|_| (0..25).map(|_| word()).collect()).collect();
    let (mut tables, mut expected) = (Tables::default(), ExpectedCounts::default());
    let kept = KeptStates::all(space);
    neural.forward(&weights, space, &kept, None, &mut tables);
    let log_probs = ForwardBackward::default().expected_counts(
        space,
        &tables,
        &batch(&sentences, &[]),
        &mut expected,
    );
    let mut gradient = vec![T::zero(); weights.len()];
    neural.backward(&weights, space, &kept, &mut tables, &expected, &mut gradient);
    (log_probs.iter().sum(), gradient.iter().map(|g| g.wide()).collect())
}

#[test]
fn gradients_agree_between_single_and_double_precision() {
    for (n_states, n_clusters) in [(128, 1), (128, 2), (96, 8)] {
        let n_words = 300;
        let params = HmmParams { n_states, n_clusters, dim: 64, ..HmmParams::default() };
        let clusters = (0..n_words).map(|word| (word % n_clusters) as u32).collect();
        let space = StateSpace::new(n_states / n_clusters, n_clusters, clusters);
        let (log_prob, narrow) = initial_gradient::<f32>(&params, &space, n_words);
        let (expected, wide) = initial_gradient::<f64>(&params, &space, n_words);
        assert!((log_prob - expected).abs() < 1e-5 * expected.abs(), "{log_prob} {expected}");
        let norm = wide.iter().map(|g| g * g).sum::<f64>().sqrt();
        let distance = narrow.iter().zip(&wide).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        assert!(distance < 1e-3 * norm, "{distance} of {norm}");
    }
}
