//! Compares samplers with the enumerated posterior of a tiny problem, and with each other.

use crate::documents::TypedDocuments;
use crate::draw::{Mixture, padded_alpha};
use crate::glda::gaussian::prior::{Prior, Scale};
use crate::glda::gaussian::table::Table;
use crate::glda::gaussian::topic::Topic;
use crate::glda::gaussian::vectors::TypeVectors;
use crate::glda::params::Sampler;
use crate::glda::problem::{Problem, State};
use crate::glda::sampler::{Collapsed, Proposals, Sweep, sample_document, sweep};
use latens_math::{Rng, sample_index};

const TYPES: [[f64; 2]; 4] = [[0.5, -0.2], [1.1, 0.4], [-0.9, 0.3], [-1.4, -0.6]];
const N_TOKENS: usize = 6;
const N_STATES: usize = 1 << N_TOKENS;

fn prior() -> Prior {
    Prior::new(0.4, 3.0, vec![0.1, -0.05], Scale::Full(vec![0.7, 0.1, 0.1, 0.5]))
}

fn problem(prior: Prior) -> Problem {
    let documents = TypedDocuments::new([vec![0, 1, 2], vec![2, 3, 0]]);
    let vectors = TypeVectors::new(2, TYPES.iter().flatten().map(|&x| x as f32).collect());
    Problem { prior, vectors, documents, weight: 1.0 }
}

fn state(problem: &Problem, number: usize) -> State {
    let topics = (0..N_TOKENS).map(|i| (number >> (N_TOKENS - 1 - i) & 1) as u16).collect();
    State::new(&problem.documents, topics, TYPES.len(), vec![0.5; 2])
}

fn number(state: &State) -> usize {
    state.topics.iter().fold(0, |number, &topic| 2 * number + usize::from(topic))
}

/// ln p(z, X) of all states.
fn log_joints(problem: &Problem) -> Vec<f64> {
    (0..N_STATES).map(|s| problem.log_likelihood(&state(problem, s))).collect()
}

fn posterior(problem: &Problem) -> Vec<f64> {
    let logs = log_joints(problem);
    let evidence = latens_math::log_sum_exp(&logs);
    logs.iter().map(|log| (log - evidence).exp()).collect()
}

/// The tolerance accounts for vectors in single precision.
#[test]
fn the_joint_probability_of_all_states_agrees_with_numpy() {
    let logs = log_joints(&problem(prior()));
    let close = |ours: f64, expected: f64| assert!((ours - expected).abs() < 2e-7, "{ours}");
    close(latens_math::log_sum_exp(&logs), -15.3928103693);
    for (s, expected) in [
        (0b000000, -18.0079747590),
        (0b001110, -17.2099234059),
        (0b010101, -22.5758235671),
        (0b000111, -19.3569477422),
    ] {
        close(logs[s], expected);
    }
    let posterior = posterior(&problem(prior()));
    let mean = |f: &dyn Fn(usize) -> f64| posterior.iter().zip(0..).map(|(p, s)| p * f(s)).sum();
    close(mean(&|s| (f64::from(N_TOKENS as u32 - s.count_ones())).powi(2)), 11.3309180548);
    close(mean(&|s| f64::from(u8::from((s >> 5) & 1 == (s >> 4) & 1))), 0.8461520793);
}

/// χ² of the states after one sweep from exact posterior samples.
///
/// If the sweep leaves the posterior invariant, χ² has 63 degrees of freedom minus those of pooled rare states.
fn chi_square(problem: &Problem, mut sweep: impl FnMut(&mut State, u64)) -> (f64, usize) {
    let posterior = posterior(problem);
    let n = 12_000;
    let mut rng = Rng::new(11);
    let mut counts = vec![0.0; N_STATES];
    for i in 0..n {
        let mut state = state(problem, sample_index(&posterior, &mut rng));
        sweep(&mut state, i);
        counts[number(&state)] += 1.0;
    }
    // Pool states with an expected count below ten.
    let (mut sum, mut n_cells, mut rest) = (0.0, 0, (0.0, 0.0));
    for (count, p) in counts.iter().zip(&posterior) {
        let expected = p * n as f64;
        if expected < 10.0 {
            rest = (rest.0 + count, rest.1 + expected);
        } else {
            sum += (count - expected).powi(2) / expected;
            n_cells += 1;
        }
    }
    if rest.1 >= 10.0 {
        sum += (rest.0 - rest.1).powi(2) / rest.1;
        n_cells += 1;
    }
    (sum, n_cells - 1)
}

fn assert_invariant(name: &str, problem: &Problem, sweep: impl FnMut(&mut State, u64)) {
    let (sum, freedom) = chi_square(problem, sweep);
    let allowed = freedom as f64 + 4.5 * (2.0 * freedom as f64).sqrt();
    assert!(sum < allowed, "{name} does not leave the posterior as it is: {sum} > {allowed}");
}

fn check(sampler: Sampler, n_shards: usize) {
    let simple = [Scale::Diagonal(vec![0.7, 0.5]), Scale::Spherical(0.6)];
    let simple = simple.map(|scale| Prior::new(0.4, 3.0, vec![0.1, -0.05], scale));
    for prior in [prior()].into_iter().chain(simple) {
        let problem = problem(prior);
        let name = format!("{sampler:?} with {n_shards} shards, {:?}", problem.prior.scale);
        assert_invariant(&name, &problem, |state, i| {
            sweep(sampler, &problem, state, n_shards, (1, i));
        });
    }
}

#[test]
fn exact_leaves_the_posterior_invariant() {
    check(Sampler::Exact, 2);
}

#[test]
fn mh_leaves_the_posterior_invariant() {
    check(Sampler::Mh, 2);
}

#[test]
fn alias_leaves_the_posterior_invariant() {
    check(Sampler::Alias, 2);
}

#[test]
fn parallel_leaves_the_posterior_invariant() {
    check(Sampler::Parallel, 2);
}

/// Checks the power of the tests above: proposals from the sampled tokens themselves change the stationary distribution.
#[test]
fn proposals_from_the_current_state_do_not_leave_the_posterior_invariant() {
    let problem = problem(prior());
    let types: Vec<u32> = (0..4).collect();
    let alpha = padded_alpha(&[0.5; 2]);
    let (sum, freedom) = chi_square(&problem, |state, i| {
        let densities = problem.densities(&problem.topics(&state.counts));
        let table = Table::new(&densities, &problem.vectors, &problem.prior.mean, &types, 1.0);
        let mut proposals = Proposals { table: &table, mixture: Mixture::new(&alpha) };
        let mut collapsed = Collapsed::new(&problem, &mut state.counts);
        let mut rng = Rng::stream(5, i);
        for document in 0..2 {
            let range = problem.documents.range(document);
            let (types, topics) =
                (&problem.documents.types[range.clone()], &mut state.topics[range]);
            let sweep = &mut Sweep::default();
            sample_document(types, topics, &mut proposals, &mut collapsed, &mut rng, sweep);
        }
    });
    assert!(sum > freedom as f64 + 10.0 * (2.0 * freedom as f64).sqrt(), "{sum}");
}

/// Documents of two kinds over vectors in `n_topics` clusters.
fn planted(n_topics: usize, dim: usize, distance: f64, seed: u64) -> (Problem, Vec<u16>) {
    let mut rng = Rng::new(seed);
    let n_types = 40 * n_topics;
    let centers: Vec<f64> = (0..n_topics * dim).map(|_| distance * rng.normal()).collect();
    let values = (0..n_types)
        .flat_map(|t| centers[t % n_topics * dim..][..dim].to_vec())
        .map(|c| (c + rng.normal()) as f32)
        .collect();
    let vectors = TypeVectors::new(dim, values);
    let mut truth = Vec::new();
    let mut documents = Vec::new();
    for _ in 0..80 {
        let mixture: Vec<f64> = (0..n_topics).map(|_| rng.gamma(0.3)).collect();
        let document: Vec<u32> = (0..30)
            .map(|_| {
                let topic = sample_index(&mixture, &mut rng);
                truth.push(topic as u16);
                ((rng.uniform() * 40.0) as usize * n_topics + topic) as u32
            })
            .collect();
        documents.push(document);
    }
    let documents = TypedDocuments::new(documents);
    let mut matrix = vec![0.0; dim * dim];
    (0..dim).for_each(|j| matrix[j * dim + j] = dim as f64 + 2.0);
    let prior = Prior::new(0.1, dim as f64 + 2.0, vec![0.0; dim], Scale::Full(matrix));
    (Problem { prior, vectors, documents, weight: 1.0 }, truth)
}

fn random_state(problem: &Problem, n_topics: usize) -> State {
    let mut rng = Rng::new(4);
    let topics = (0..problem.documents.n_tokens())
        .map(|_| (rng.uniform() * n_topics as f64) as u16)
        .collect();
    let alpha = (0..n_topics).map(|k| 0.1 + 0.05 * k as f64).collect();
    State::new(&problem.documents, topics, problem.vectors.len(), alpha)
}

#[test]
fn samplers_with_the_same_conditionals_give_the_same_topics() {
    let (mut problem, _) = planted(3, 3, 0.7, 1);
    problem.documents = TypedDocuments::new(
        (0..12).map(|d| problem.documents.types[problem.documents.range(d)].to_vec()),
    );
    for weight in [1.0, 0.4] {
        problem.weight = weight;
        let run = |sampler| {
            let mut state = random_state(&problem, 3);
            let n: u64 =
                (0..30).map(|i| sweep(sampler, &problem, &mut state, 2, (1, i)).n_changed).sum();
            (state.topics, n)
        };
        let exact = run(Sampler::Exact);
        assert!(exact.1 > 300, "{}", exact.1);
        assert_eq!(exact, run(Sampler::Naive));
        assert_eq!(exact, run(Sampler::Cholesky));
    }
}

#[test]
fn every_sampler_keeps_counts_consistent() {
    let (problem, _) = planted(3, 2, 1.0, 2);
    for sampler in SAMPLERS {
        let mut state = random_state(&problem, 4);
        for i in 0..2 {
            sweep(sampler, &problem, &mut state, 3, (1, i));
        }
        let again = State::new(
            &problem.documents,
            state.topics.clone(),
            problem.vectors.len(),
            state.alpha.clone(),
        );
        assert_eq!(state.counts, again.counts, "{sampler:?}");
    }
}

const SAMPLERS: [Sampler; 6] = [
    Sampler::Exact,
    Sampler::Cholesky,
    Sampler::Naive,
    Sampler::Alias,
    Sampler::Mh,
    Sampler::Parallel,
];

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (problem, _) = planted(4, 5, 1.0, 3);
    for sampler in SAMPLERS.into_iter().filter(|&sampler| sampler != Sampler::Naive) {
        let run = |n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| {
                let mut state = random_state(&problem, 5);
                for i in 0..3 {
                    sweep(sampler, &problem, &mut state, 3, (1, i));
                }
                (state.topics.clone(), problem.log_likelihood(&state).to_bits())
            })
        };
        let one = run(1);
        assert!(one == run(2) && one == run(7), "{sampler:?}");
    }
}

/// Normalized mutual information of two labelings: relative to their mean entropy.
fn agreement(a: &[u16], b: &[u16], n: usize) -> f64 {
    let total = a.len() as f64;
    let mut joint = vec![0.0; n * n];
    a.iter().zip(b).for_each(|(&a, &b)| joint[usize::from(a) * n + usize::from(b)] += 1.0 / total);
    let row = |i: usize| joint[i * n..(i + 1) * n].iter().sum::<f64>();
    let column = |j: usize| (0..n).map(|i| joint[i * n + j]).sum::<f64>();
    let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    let of_joint: f64 = joint.iter().map(|&p| entropy(p)).sum();
    let of_rows: f64 = (0..n).map(|i| entropy(row(i))).sum();
    let of_columns: f64 = (0..n).map(|j| entropy(column(j))).sum();
    2.0 * (of_rows + of_columns - of_joint) / (of_rows + of_columns)
}

#[test]
fn well_separated_topics_are_found() {
    let (problem, truth) = planted(5, 4, 8.0, 4);
    let weights = vec![1.0; problem.vectors.len()];
    for sampler in [Sampler::Exact, Sampler::Mh, Sampler::Parallel, Sampler::Alias] {
        let clusters = crate::glda::kmeans::kmeans(&problem.vectors, &weights, 5, &mut Rng::new(2));
        let topics = problem.documents.types.iter().map(|&t| clusters[t as usize]).collect();
        let mut state = State::new(&problem.documents, topics, problem.vectors.len(), vec![0.2; 5]);
        for i in 0..10 {
            sweep(sampler, &problem, &mut state, 4, (1, i));
        }
        let agreement = agreement(&state.topics, &truth, 5);
        assert!(agreement > 0.95, "{sampler:?}: {agreement}");
    }
}

#[test]
fn topics_with_failed_removals_are_recomputed() {
    let (mut problem, _) = planted(3, 6, 1.0, 5);
    let mut matrix = vec![0.0; 36];
    (0..6).for_each(|j| matrix[j * 7] = 1e-9);
    problem.prior = Prior::new(0.1, 8.0, vec![0.0; 6], Scale::Full(matrix));
    problem.documents = TypedDocuments::new(
        (0..4).map(|d| problem.documents.types[problem.documents.range(d)].to_vec()),
    );
    // So many topics that most have fewer than 6 tokens.
    let mut state = random_state(&problem, 40);
    let mut n_rebuilt = 0;
    for i in 0..20 {
        n_rebuilt += sweep(Sampler::Cholesky, &problem, &mut state, 2, (1, i)).n_rebuilt;
        assert!(problem.log_likelihood(&state).is_finite());
    }
    assert!(n_rebuilt > 0);
}

#[test]
fn a_single_topic_and_empty_topics_are_valid() {
    let (problem, _) = planted(2, 2, 1.0, 6);
    for sampler in SAMPLERS {
        let mut state = random_state(&problem, 1);
        let before = problem.log_likelihood(&state);
        let changes = sweep(sampler, &problem, &mut state, 2, (1, 0));
        assert_eq!((changes.n_changed, problem.log_likelihood(&state)), (0, before));
        let marginal = Topic::new(&problem.prior, &state.counts.members()[0], &problem.vectors);
        let marginal = marginal.log_marginal(&problem.prior);
        assert!((before - marginal).abs() < 1e-8 * marginal.abs());
        // All tokens are in the first of nine topics.
        let topics = vec![0; problem.documents.n_tokens()];
        let mut state = State::new(&problem.documents, topics, problem.vectors.len(), vec![0.1; 9]);
        sweep(sampler, &problem, &mut state, 2, (1, 0));
    }
}
