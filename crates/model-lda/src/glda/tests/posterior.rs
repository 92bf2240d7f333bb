//! Compares topic posteriors with NumPy and SciPy, and with their definitions.

use crate::counts::TypeCounts;
use crate::documents::TypedDocuments;
use crate::glda::gaussian::cholesky;
use crate::glda::gaussian::prior::{Prior, Scale};
use crate::glda::gaussian::topic::Topic;
use crate::glda::gaussian::vectors::TypeVectors;
use crate::glda::problem::{Problem, State};
use latens_math::Rng;

const TYPES: [[f64; 3]; 5] = [
    [0.5, -1.0, 0.25],
    [1.5, 0.5, -0.75],
    [-0.25, 0.75, 1.25],
    [2.0, -0.5, 0.0],
    [-1.0, 0.25, 0.5],
];
const UNSEEN: [f64; 3] = [0.3, 0.3, -0.4];
const MEAN: [f64; 3] = [0.1, -0.2, 0.3];

fn full_prior() -> Prior {
    let psi = vec![3.0, 0.5, 0.5, 0.5, 3.0, 0.5, 0.5, 0.5, 3.0];
    Prior::new(0.1, 5.0, MEAN.to_vec(), Scale::Full(psi))
}

fn types() -> TypeVectors {
    TypeVectors::new(3, TYPES.iter().flatten().map(|&x| x as f32).collect())
}

/// Tokens of documents [0, 1, 0, 3] and [2, 4, 1] with topics [0, 0, 1, 0] and [1, 1, 0].
fn problem(prior: Prior) -> (Problem, State) {
    let documents = TypedDocuments::new([vec![0, 1, 0, 3], vec![2, 4, 1]]);
    let state = State::new(&documents, vec![0, 0, 1, 0, 1, 1, 0], 5, vec![0.5; 2]);
    (Problem { prior, vectors: types(), documents, weight: 1.0 }, state)
}

fn assert_close(ours: f64, expected: f64, tolerance: f64) {
    assert!((ours - expected).abs() <= tolerance, "{ours} is not {expected}");
}

#[test]
fn posteriors_and_densities_agree_with_numpy_and_scipy() {
    let (problem, state) = problem(full_prior());
    let prior = &problem.prior;
    let topics = problem.topics(&state.counts);
    let (nine, mut scratch) = (5e-10, vec![0.0; 3]);
    let expected_means = [
        [1.3439024390, -0.1268292683, -0.2975609756],
        [-0.2387096774, -0.0064516129, 0.6548387097],
    ];
    let expected_factors = [
        [2.0847296134, 0.5740932832, 2.0876938671, 0.0084236227, -0.3188051960, 1.9317784292],
        [2.0339259669, -0.2184318411, 2.1403641042, 0.1475376440, 0.6315858553, 1.7703133537],
    ];
    let expected_logs = [
        [-3.3190465214, -2.6544644875, -6.6825293165, -2.8767686860, -6.5922587110],
        [-3.4086666589, -6.2790990207, -2.9589945272, -5.6693087821, -2.9137853589],
    ];
    let log_dets = [4.2582805068, 4.0842008456];
    let marginals = [-18.2712411242, -15.0698994939];
    let unseen = [-3.4918300429, -4.0059895933];
    for (k, topic) in topics.iter().enumerate() {
        assert_eq!(topic.kappa(prior), [4.1, 3.1][k]);
        assert_eq!(topic.nu(prior), [9.0, 8.0][k]);
        for (m, expected) in topic.mean.iter().zip(expected_means[k]) {
            assert_close(*m, expected, nine);
        }
        let Scale::Full(l) = &topic.scale else { panic!("a full scale") };
        let places = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)];
        for ((i, j), expected) in places.into_iter().zip(expected_factors[k]) {
            assert_close(l[j * 3 + i], expected, nine);
        }
        assert_close(2.0 * topic.half_log_det, log_dets[k], nine);
        assert_close(topic.log_marginal(prior), marginals[k], nine);
        for (x, expected) in TYPES.iter().zip(expected_logs[k]) {
            assert_close(topic.log_density(prior, x, &mut scratch), expected, nine);
        }
        assert_close(topic.log_density(prior, &UNSEEN, &mut scratch), unseen[k], nine);
    }
    let empty = Topic::new(prior, &[], &problem.vectors);
    assert_close(empty.log_density(prior, &UNSEEN, &mut scratch), -6.1933527413, nine);
    assert_close(problem.log_likelihood(&state), -39.3563216918, 5e-9);
}

#[test]
fn a_topic_without_one_of_its_tokens_agrees_with_numpy() {
    let (problem, state) = problem(full_prior());
    let prior = &problem.prior;
    let mut topic = problem.topics(&state.counts).remove(1);
    let mut scratch = vec![0.0; 3];
    let closed_form = topic.log_density_without(prior, &TYPES[0], &mut scratch);
    assert_close(closed_form, -5.1304813770, 5e-10);
    assert!(topic.remove(prior, &TYPES[0], &mut scratch));
    assert_close(topic.log_density(prior, &TYPES[0], &mut scratch), closed_form, 1e-10);
    for (m, expected) in topic.mean.iter().zip([-0.5904761905, 0.4666666667, 0.8476190476]) {
        assert_close(*m, expected, 5e-10);
    }
    let Scale::Full(l) = &topic.scale else { panic!("a full scale") };
    let psi = |i: usize, j: usize| (0..=i.min(j)).map(|k| l[k * 3 + i] * l[k * 3 + j]).sum::<f64>();
    for ((i, j), expected) in [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)].into_iter().zip([
        3.3313095238,
        0.6391666667,
        3.1716666667,
        0.7415476190,
        0.7258333333,
        3.3127380952,
    ]) {
        assert_close(psi(i, j), expected, 1e-9);
    }
    // The full conditional of the token, whose document has more tokens of topic 0 than of topic 1.
    let other = problem.topics(&state.counts)[0].log_density(prior, &TYPES[0], &mut scratch);
    let (a, b) = (3.5 * other.exp(), 0.5 * closed_form.exp());
    assert_close(a / (a + b), 0.9771869447, 5e-10);
}

#[test]
fn diagonal_and_spherical_covariances_agree_with_numpy() {
    let mut scratch = vec![0.0; 3];
    let prior = Prior::new(0.1, 2.0, MEAN.to_vec(), Scale::Diagonal(vec![3.0; 3]));
    let (problem_1, state) = problem(prior);
    let topic = &problem_1.topics(&state.counts)[0];
    let Scale::Diagonal(psi) = &topic.scale else { panic!("a diagonal scale") };
    for (psi, expected) in psi.iter().zip([4.3460975610, 4.6880487805, 3.8334756098]) {
        assert_close(*psi, expected, 5e-10);
    }
    let log = topic.log_density(&problem_1.prior, &TYPES[2], &mut scratch);
    assert_close(log, -5.9061176527, 5e-10);
    let (problem_2, state) = problem(Prior::new(0.1, 2.0, MEAN.to_vec(), Scale::Spherical(3.0)));
    let topic = &problem_2.topics(&state.counts)[0];
    let Scale::Spherical(psi) = topic.scale else { panic!("a spherical scale") };
    assert_close(psi, 6.8676219512, 5e-10);
    let log = topic.log_density(&problem_2.prior, &TYPES[2], &mut scratch);
    assert_close(log, -6.3121934871, 5e-10);
}

/// One prior per form of covariance, in `dim` dimensions.
fn priors(dim: usize, psi: f64) -> [Prior; 3] {
    let mut matrix = vec![0.0; dim * dim];
    (0..dim).for_each(|j| matrix[j * dim + j] = psi);
    let mean = vec![0.2; dim];
    [Scale::Full(matrix), Scale::Diagonal(vec![psi; dim]), Scale::Spherical(psi)]
        .map(|scale| Prior::new(0.3, dim as f64 + 1.5, mean.clone(), scale))
}

#[test]
fn predictive_densities_multiply_to_the_marginal_in_any_order() {
    let (dim, n) = (4, 12);
    let mut rng = Rng::new(1);
    let xs: Vec<Vec<f64>> = (0..n).map(|_| (0..dim).map(|_| rng.normal()).collect()).collect();
    let vectors = TypeVectors::new(dim, vec![]);
    for prior in priors(dim, 1.7) {
        let mut scratch = vec![0.0; dim];
        let mut run = |order: &mut dyn Iterator<Item = usize>| {
            let mut topic = Topic::new(&prior, &[], &vectors);
            let mut sum = 0.0;
            for i in order {
                let log = topic.log_density(&prior, &xs[i], &mut scratch);
                let before = topic.log_marginal(&prior);
                topic.add(&prior, &xs[i], &mut scratch);
                assert_close(topic.log_marginal(&prior) - before, log, 1e-12 * log.abs().max(10.0));
                let without = topic.log_density_without(&prior, &xs[i], &mut scratch);
                assert_close(without, log, 1e-10);
                sum += log;
            }
            (sum, topic)
        };
        let (forward, topic) = run(&mut (0..n));
        let (backward, other) = run(&mut (0..n).rev());
        assert_close(forward, backward, 1e-10);
        assert_close(forward, topic.log_marginal(&prior), 1e-10);
        for (a, b) in topic.mean.iter().zip(&other.mean) {
            assert_close(*a, *b, 1e-10);
        }
    }
}

#[test]
fn densities_integrate_to_one() {
    let vectors = TypeVectors::new(1, vec![0.5, -1.5]);
    for prior in priors(1, 0.8) {
        let topic = Topic::new(&prior, &[(0, 2), (1, 1)], &vectors);
        let mut scratch = [0.0];
        // The substitution x = tan u makes the range finite.
        let n = 20_000;
        let step = std::f64::consts::PI / f64::from(n);
        let total: f64 = (0..n)
            .map(|i| {
                let u = (f64::from(i) + 0.5) * step - std::f64::consts::FRAC_PI_2;
                let density = topic.log_density(&prior, &[u.tan()], &mut scratch).exp();
                density * step / u.cos().powi(2)
            })
            .sum();
        assert_close(total, 1.0, 1e-6);
    }
    let vectors = TypeVectors::new(2, vec![0.5, -1.5, 1.0, 0.25]);
    for prior in priors(2, 0.8) {
        let topic = Topic::new(&prior, &[(0, 2), (1, 1)], &vectors);
        let mut scratch = [0.0; 2];
        let n = 600;
        let step = std::f64::consts::PI / f64::from(n);
        let point = |i: i32| (f64::from(i) + 0.5) * step - std::f64::consts::FRAC_PI_2;
        let mut total = 0.0;
        for (u, v) in (0..n).flat_map(|i| (0..n).map(move |j| (point(i), point(j)))) {
            let density = topic.log_density(&prior, &[u.tan(), v.tan()], &mut scratch).exp();
            total += density * step * step / (u.cos() * v.cos()).powi(2);
        }
        // In two dimensions, the tails are truncated at the last grid point of tan u.
        assert_close(total, 1.0, 1e-4);
    }
}

/// Adds vectors to a topic and removes them, and compares it with one computed from scratch.
fn churn(prior: &Prior, vectors: &TypeVectors, n_members: usize, n_steps: usize) -> (Topic, Topic) {
    let (mut rng, n_types) = (Rng::new(7), vectors.len());
    let mut counts = TypeCounts::new(n_types, 1);
    let mut draw = |n: usize| (rng.uniform() * n as f64) as usize;
    let mut members: Vec<u32> = (0..n_members).map(|_| draw(n_types) as u32).collect();
    members.iter().for_each(|&t| counts.add(t, 0));
    let mut topic = Topic::new(prior, &counts.members()[0], vectors);
    let mut scratch = vec![0.0; vectors.dim()];
    for _ in 0..n_steps / 2 {
        let (place, new) = (draw(n_members), draw(n_types) as u32);
        let old = std::mem::replace(&mut members[place], new);
        let (old_x, new_x): (Vec<f64>, Vec<f64>) =
            (vectors.get(old).collect(), vectors.get(new).collect());
        assert!(topic.remove(prior, &old_x, &mut scratch));
        topic.add(prior, &new_x, &mut scratch);
        counts.remove(old, 0);
        counts.add(new, 0);
    }
    (topic, Topic::new(prior, &counts.members()[0], vectors))
}

#[test]
fn a_topic_after_100_000_changes_agrees_with_recomputation() {
    let dim = 12;
    let mut rng = Rng::new(3);
    let vectors = TypeVectors::new(dim, (0..300 * dim).map(|_| rng.normal() as f32).collect());
    // One percent of the variance of the vectors.
    for prior in priors(dim, 0.01) {
        let (topic, scratch) = churn(&prior, &vectors, 20, 100_000);
        let largest = scratch.mean.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        for (a, b) in topic.mean.iter().zip(&scratch.mean) {
            assert_close(*a, *b, 1e-8 * largest);
        }
        assert_close(topic.half_log_det, scratch.half_log_det, 1e-8 * scratch.half_log_det.abs());
        if let (Scale::Full(a), Scale::Full(b)) = (&topic.scale, &scratch.scale) {
            let lower = |l: &[f64]| {
                (0..dim).flat_map(|j| l[j * dim + j..(j + 1) * dim].to_vec()).collect::<Vec<_>>()
            };
            let (a, b) = (lower(a), lower(b));
            let largest = b.iter().fold(0.0f64, |a, b| a.max(b.abs()));
            a.iter().zip(&b).for_each(|(a, b)| assert_close(*a, *b, 1e-8 * largest));
        }
    }
}

#[test]
fn adding_and_removing_restores_a_topic() {
    let (problem, state) = problem(full_prior());
    let prior = &problem.prior;
    let topic = &problem.topics(&state.counts)[0];
    let mut changed = topic.clone();
    let mut scratch = vec![0.0; 3];
    changed.add(prior, &UNSEEN, &mut scratch);
    assert!(changed.remove(prior, &UNSEEN, &mut scratch));
    let (Scale::Full(a), Scale::Full(b)) = (&topic.scale, &changed.scale) else { panic!("full") };
    for (j, i) in [(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)] {
        assert_close(a[j * 3 + i], b[j * 3 + i], 1e-12);
    }
    topic.mean.iter().zip(&changed.mean).for_each(|(a, b)| assert_close(*a, *b, 1e-12));
}

#[test]
fn a_failed_removal_is_reported() {
    let dim = 6;
    let mut rng = Rng::new(3);
    let vectors = TypeVectors::new(dim, (0..40 * dim).map(|_| rng.normal() as f32).collect());
    let [prior, ..] = priors(dim, 1e-13);
    let mut topic = Topic::new(&prior, &[(0, 1), (1, 1), (2, 1)], &vectors);
    let x: Vec<f64> = vectors.get(1).collect();
    assert!(!topic.remove(&prior, &x, &mut vec![0.0; dim]));
    // The density of a token given the others is still finite.
    let topic = Topic::new(&prior, &[(0, 1), (1, 1), (2, 1)], &vectors);
    assert!(topic.log_density_without(&prior, &x, &mut vec![0.0; dim]).is_finite());
}

#[test]
fn only_diagonal_densities_depend_on_rotations() {
    let (c, s) = (0.6f64, 0.8f64);
    let rotate = |x: &[f64]| vec![c * x[0] - s * x[1], s * x[0] + c * x[1]];
    let mut rng = Rng::new(5);
    let xs: Vec<Vec<f64>> = (0..6).map(|_| vec![2.0 * rng.normal(), rng.normal()]).collect();
    let mut differs = Vec::new();
    for prior in priors(2, 1.3) {
        let turned = Prior { mean: rotate(&prior.mean), ..prior.clone() };
        let empty = TypeVectors::new(2, vec![]);
        let mut scratch = [0.0; 2];
        let mut a = Topic::new(&prior, &[], &empty);
        let mut b = Topic::new(&turned, &[], &empty);
        for x in &xs[1..] {
            a.add(&prior, x, &mut scratch);
            b.add(&turned, &rotate(x), &mut scratch);
        }
        let gap = a.log_density(&prior, &xs[0], &mut scratch)
            - b.log_density(&turned, &rotate(&xs[0]), &mut scratch);
        differs.push(gap.abs() > 1e-9);
    }
    assert_eq!(differs, [false, true, false]);
}

#[test]
fn sampled_covariances_have_the_mean_of_the_inverse_wishart_distribution() {
    use crate::glda::gaussian::density::{Gaussian, Whitener};
    let (prior, dim) = (full_prior(), 3);
    let (problem, state) = problem(full_prior());
    let topic = &problem.topics(&state.counts)[0];
    let Scale::Full(l) = &topic.scale else { panic!("a full scale") };
    let (mut rng, n) = (Rng::new(1), 40_000);
    let mut sums = vec![[0.0f64; 2]; dim * dim + dim];
    for _ in 0..n {
        let gaussian = Gaussian::draw(topic, &prior, &mut rng);
        let Whitener::Triangle(w) = &gaussian.whitener else { panic!("a full covariance") };
        // Σ = W⁻¹ W⁻ᵀ.
        let inverse = cholesky::inverse(w, dim);
        let entry = |i: usize, j: usize| {
            (0..dim).map(|k| inverse[k * dim + i] * inverse[k * dim + j]).sum::<f64>()
        };
        let values = (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j))).map(|(i, j)| entry(i, j));
        for (sum, value) in sums.iter_mut().zip(values.chain(gaussian.mean.iter().copied())) {
            sum[0] += value;
            sum[1] += value * value;
        }
    }
    let psi =
        |i: usize, j: usize| (0..=i.min(j)).map(|k| l[k * dim + i] * l[k * dim + j]).sum::<f64>();
    let factor = topic.nu(&prior) - dim as f64 - 1.0;
    let expected = (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j)));
    let expected = expected.map(|(i, j)| psi(i, j) / factor).chain(topic.mean.iter().copied());
    for ([sum, square], expected) in sums.iter().zip(expected) {
        let (mean, n) = (sum / f64::from(n), f64::from(n));
        let error = ((square / n - mean * mean) / n).sqrt();
        assert!((mean - expected).abs() < 5.0 * error, "{mean} is not {expected} ± {error}");
    }
}
