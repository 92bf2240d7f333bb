//! The M-step against golden numbers and finite differences, and properties of EM.

use crate::distribution::Distribution;
use crate::emission::partition::PartitionTable;
use crate::inference::convergence::Stop;
use crate::inference::fixtures::{
    BOUNDS, SENTENCE, assert_near, golden, random, random_posterior, with_mean_field,
};
use crate::inference::mean_field::Bound;
use crate::inference::smoother::{Expected, Smoother};
use crate::params::{FhmmParams, Inference, MStep};
use crate::shape::Shape;
use crate::train::lazy_update::Turn;
use crate::train::lbfgs::{Search, maximize};
use crate::train::m_step::Evidence;
use crate::train::normalizer::Normalizer;
use crate::train::score_update::{WordCounts, objective, update_layers};
use crate::train::statistics::Statistics;
use crate::train::task::Task;
use crate::train::trainer::fit;
use crate::word_rows::WordRows;
use latens_corpus::{Sentences, WordId};
use latens_math::{Rng, sample_index};
use latens_model::{Params, unwatched};

const TIGHT: Stop = Stop { sweeps: 200, gain: 1e-13, change: 0.0 };

/// Expected counts and tokens of a random posterior.
struct RandomCounts {
    statistics: Statistics,
    rows: Vec<Vec<f64>>,
    unigrams: Vec<f64>,
}

impl RandomCounts {
    fn new(shape: Shape, n: usize, seed: u64) -> RandomCounts {
        let mut rng = Rng::new(seed);
        let mut statistics = Statistics::new(shape, Inference::ExactMf);
        let (words, gamma) = random_posterior(shape, n, &mut rng);
        let expected = Expected {
            gamma: gamma.clone(),
            pairs: vec![0.0; shape.row() * shape.n_states],
            ..Expected::default()
        };
        statistics.blend(1.0, &[&words], &expected);
        let rows = gamma.chunks_exact(shape.row()).map(<[f64]>::to_vec).collect();
        let unigrams = vec![1.0 / shape.n_words as f64; shape.n_words];
        RandomCounts { statistics, rows, unigrams }
    }

    fn counts(&self) -> WordCounts<'_> {
        let n_tokens = self.rows.len() as f64;
        let (statistics, unigrams) = (&self.statistics, &self.unigrams[..]);
        WordCounts { statistics, n_tokens, pseudo_tokens: 3.0, unigrams }
    }

    fn normalizers(&self) -> [Normalizer<'_, f64>; 2] {
        let n = self.rows.len() as f64;
        let each = 3.0 / self.statistics.emitting.len() as f64;
        let counts = self.statistics.emitting.iter().map(|count| count * n + each).collect();
        let rows: Vec<&[f64]> = self.rows.iter().map(Vec::as_slice).collect();
        let weights = vec![1.0 + 3.0 / n; rows.len()];
        [Normalizer::Joint { counts }, Normalizer::Tokens { rows, weights }]
    }
}

#[test]
fn the_objective_and_its_gradient_agree_with_the_golden_numbers() {
    let objectives = [-7.6873740159, 7.2983281701, -7.4873773559];
    let gradients = [
        [
            [0.2863831712, -0.0112089287, -0.0307307428, 0.1521352178, 0.0366206494, 0.0556876326],
            [
                -0.1957947716,
                -0.1539517371,
                -0.0230558393,
                -0.0474450129,
                -0.2450711378,
                -0.0802861973,
            ],
        ],
        [
            [0.3303800187, -0.0005098784, -0.0522166748, 0.1844390866, 0.0289863508, 0.0642280282],
            [
                -0.1945752142,
                -0.1702813679,
                -0.0430371105,
                -0.0430256406,
                -0.2985765903,
                -0.0662914617,
            ],
        ],
        [
            [0.3415452654, -0.0262154503, -0.0553758882, 0.1656113434, 0.0301911727, 0.0641514109],
            [
                -0.1803103695,
                -0.1695452120,
                -0.0495915970,
                -0.0430228685,
                -0.2874030350,
                -0.0690212751,
            ],
        ],
    ];
    let distribution = golden();
    for (i, bound) in BOUNDS.into_iter().enumerate() {
        let (gamma, tilted) = with_mean_field(&distribution, bound, &[&SENTENCE], |field| {
            field.sweep();
            (field.gamma.clone(), field.tilted.clone())
        });
        let expected = Expected { gamma, pairs: vec![0.0; 18], ..Expected::default() };
        let mut statistics = Statistics::new(distribution.shape, Inference::ExactMf);
        statistics.blend(1.0, &[&SENTENCE], &expected);
        let counts = WordCounts {
            statistics: &statistics,
            n_tokens: 5.0,
            pseudo_tokens: 0.0,
            unigrams: &[0.0; 6],
        };
        let normalizer = match bound {
            Bound::Exact => {
                let counts = statistics.emitting.iter().map(|count| count * 5.0).collect();
                Normalizer::Joint { counts }
            }
            _ => {
                Normalizer::Tokens { rows: tilted.chunks_exact(6).collect(), weights: vec![1.0; 5] }
            }
        };
        let mut table = PartitionTable::of(&distribution);
        let (value, gradient) = objective(&distribution, &mut table, &counts, &normalizer);
        assert!((value - objectives[i]).abs() < 1e-9, "{bound:?} {value}");
        assert_near(&gradient[..6], &gradients[i][0]);
        assert_near(&gradient[24..30], &gradients[i][1]);
        if bound != Bound::Exact {
            table.values.clear();
            let (value, over_words) = objective(&distribution, &mut table, &counts, &normalizer);
            assert!((value - objectives[i]).abs() < 1e-9, "{bound:?} {value}");
            assert_near(&over_words, &gradient);
        }
    }
}

#[test]
fn the_gradient_agrees_with_finite_differences() {
    for n_layers in [1, 2, 3, 5] {
        let shape = Shape { n_layers, n_states: 2, n_words: 5 };
        let (made, mut distribution) = (RandomCounts::new(shape, 40, 1), random(shape, 1.0, 2));
        let counts = made.counts();
        for normalizer in made.normalizers() {
            for has_table in [true, false] {
                if !has_table && matches!(normalizer, Normalizer::Joint { .. }) {
                    continue;
                }
                let mut table = PartitionTable::of(&distribution);
                if !has_table {
                    table.values.clear();
                }
                let (_, gradient) = objective(&distribution, &mut table, &counts, &normalizer);
                for at in (0..gradient.len()).step_by(7) {
                    let (theta, h) = (distribution.theta[at], 1e-5);
                    let mut value = |theta: f64| {
                        let before = std::mem::replace(&mut distribution.theta[at], theta);
                        let (value, _) = objective(&distribution, &mut table, &counts, &normalizer);
                        distribution.theta[at] = before;
                        value
                    };
                    let slope = (value(theta + h) - value(theta - h)) / (2.0 * h);
                    assert!((slope - gradient[at]).abs() < 1e-7 * gradient[at].abs().max(1.0));
                }
            }
        }
    }
}

#[test]
fn layer_updates_never_decrease_the_objective_and_converge_to_the_optimum_of_lbfgs() {
    let shape = Shape { n_layers: 3, n_states: 3, n_words: 40 };
    let (made, first) = (RandomCounts::new(shape, 500, 3), random(shape, 1.0, 4));
    let counts = made.counts();
    for normalizer in made.normalizers() {
        let value = |distribution: &Distribution<f64>| {
            objective(distribution, &mut PartitionTable::of(distribution), &counts, &normalizer).0
        };
        let mut distribution = first.clone();
        let mut last = value(&distribution);
        for _ in 0..300 {
            let mut table = PartitionTable::of(&distribution);
            assert!(update_layers(&mut distribution, &mut table, &counts, &normalizer, 1.0));
            let now = value(&distribution);
            assert!(now >= last - 1e-9 * last.abs(), "{last} {now}");
            last = now;
        }
        let mut searched = first.clone();
        let search = Search { iterations: 1000, tau: f64::INFINITY };
        maximize(&mut searched, &mut PartitionTable::of(&first), &counts, &normalizer, search);
        let by_search = value(&searched);
        assert!((by_search - last).abs() < 1e-4 * last.abs(), "{by_search} {last}");
        assert!(last >= by_search - 1e-6 * last.abs(), "{by_search} {last}");
    }
}

/// Sentences sampled from a model of three layers with sharp emissions and rare state changes.
fn text(n_sentences: usize, seed: u64) -> Vec<Vec<u32>> {
    let shape = Shape { n_layers: 3, n_states: 3, n_words: 60 };
    let mut distribution = random(shape, 1.5, 77);
    for row in distribution.transition.chunks_exact_mut(9) {
        for i in 0..3 {
            row[i * 3..(i + 1) * 3].fill(0.1);
            row[i * 3 + i] = 0.8;
        }
    }
    let mut rng = Rng::new(seed);
    let mut sentence = || {
        let mut states: Vec<usize> =
            (0..3).map(|m| sample_index(&distribution.start[m * 3..m * 3 + 3], &mut rng)).collect();
        (0..15)
            .map(|t| {
                for (m, state) in states.iter_mut().enumerate().filter(|_| t > 0) {
                    let row = (m * 3 + *state) * 3;
                    *state = sample_index(&distribution.transition[row..row + 3], &mut rng);
                }
                let score = |y: usize| -> f64 {
                    (0..3).map(|m| distribution.scores(y)[m * 3 + states[m]]).sum::<f64>()
                };
                let weights: Vec<f64> =
                    (0..60).map(|y| (distribution.base[y] + score(y)).exp()).collect();
                sample_index(&weights, &mut rng) as u32
            })
            .collect()
    };
    (0..n_sentences).map(|_| sentence()).collect()
}

/// Batch EM. Returns the bound of every iteration and the last model.
fn full_em(
    sentences: &[&[u32]],
    params: &FhmmParams,
    n_iterations: usize,
    seed: u64,
) -> (Vec<f64>, Smoother<f64>) {
    let shape = Shape { n_layers: params.n_layers, n_states: params.n_states, n_words: 60 };
    let mut unigrams = vec![0.0; 60];
    sentences.iter().copied().flatten().for_each(|&word| unigrams[word as usize] += 1.0);
    let n_tokens: f64 = unigrams.iter().sum();
    unigrams.iter_mut().for_each(|count| *count = (*count + 0.5) / (n_tokens + 30.0));
    let base: Vec<f64> = unigrams.iter().map(|p| p.ln()).collect();
    let first = Distribution::random(shape, &base, &mut Rng::new(seed));
    let inference = params.chosen_inference();
    let mut smoother = Smoother::new(first, inference);
    let mut statistics = Statistics::new(shape, inference);
    let mut bounds = vec![];
    for _ in 0..n_iterations {
        let expected = smoother.expect(sentences, TIGHT);
        bounds.push(expected.bound / n_tokens);
        statistics.blend(1.0, sentences, &expected);
        let evidence = Evidence {
            params,
            statistics: &statistics,
            n_tokens,
            unigrams: &unigrams,
            sentences,
            expected: &expected,
            eta: 1.0,
            turn: &Turn::All,
        };
        evidence.advance(&mut smoother);
    }
    (bounds, smoother)
}

#[test]
fn em_increases_the_bound_with_every_kind_of_inference() {
    let sentences = text(60, 1);
    let sentences: Vec<&[u32]> = sentences.iter().map(Vec::as_slice).collect();
    for inference in [Inference::ExactMf, Inference::Tilted, Inference::Jensen, Inference::Exact] {
        for m_step in [MStep::Lazy, MStep::Layers, MStep::Lbfgs] {
            let params = FhmmParams {
                n_layers: 2,
                n_states: 3,
                inference,
                m_step,
                lbfgs_iterations: 10,
                pseudo_tokens: Some(0.0),
                prior: 1e-6,
                ..FhmmParams::default()
            };
            let (bounds, _) = full_em(&sentences, &params, 12, 1);
            for pair in bounds.windows(2) {
                // Mean field may converge to a different local optimum; here it never does.
                assert!(pair[1] >= pair[0] - 1e-6, "{inference:?} {m_step:?} {bounds:?}");
            }
            assert!(bounds[11] > bounds[0] + 0.02, "{inference:?} {m_step:?} {bounds:?}");
        }
    }
}

#[test]
fn a_factorial_model_fits_factorial_text_better_than_a_single_layer() {
    let (train, held_out) = (text(300, 1), text(100, 2));
    let train: Vec<&[u32]> = train.iter().map(Vec::as_slice).collect();
    let held_out: Vec<&[u32]> = held_out.iter().map(Vec::as_slice).collect();
    let best = |n_layers, n_states| {
        let params = FhmmParams {
            n_layers,
            n_states,
            inference: Inference::ExactMf,
            pseudo_tokens: Some(60.0),
            ..FhmmParams::default()
        };
        let bound = |seed| {
            let (_, smoother) = full_em(&train, &params, 25, seed);
            smoother.bounds(&held_out, TIGHT) / 1500.0
        };
        (1..=3).map(bound).fold(f64::NEG_INFINITY, f64::max)
    };
    // Three layers of three states have fewer parameters than one layer of nine.
    let (factorial, flat) = (best(3, 3), best(1, 9));
    assert!(factorial > flat + 0.002, "{factorial} {flat}");
}

/// With one batch of all sentences, the first step is an iteration of batch EM.
#[test]
fn an_epoch_of_one_batch_is_an_iteration_of_em() {
    let sentences = text(40, 3);
    let words =
        |sentence: &Vec<u32>| -> Vec<WordId> { sentence.iter().map(|&y| WordId(y)).collect() };
    // `from_words` appends `<eos>`, which is word 1 here.
    let train = Sentences::from_words(sentences.iter().map(words));
    let n_tokens = train.n_tokens() as f64;
    let mut unigrams = vec![0.5; 60];
    train.tokens().iter().for_each(|word| unigrams[word.index()] += 1.0);
    unigrams.iter_mut().for_each(|count| *count /= n_tokens + 30.0);
    let base: Vec<f64> = unigrams.iter().map(|share| share.ln()).collect();
    for inference in [Inference::ExactMf, Inference::Tilted] {
        let params = FhmmParams {
            n_layers: 2,
            n_states: 3,
            epochs: 1,
            batch_sentences: Some(1000),
            inference,
            ..FhmmParams::default()
        };
        let params = params.validate().unwrap();
        let rows = WordRows { of_word: (0..60).collect(), signatures: vec![], n_rows: 60 };
        let task = Task {
            params: &params,
            shape: Shape { n_layers: 2, n_states: 3, n_words: 60 },
            rows: &rows,
            unigrams: unigrams.clone(),
            base: base.clone(),
            train: &train,
            valid: None,
            fingerprint: 0,
            kind: "fhmm",
        };
        let fitted = fit(&task, None, &mut unwatched).unwrap();
        let mut first = initial_model(&task);
        let sentences: Vec<Vec<u32>> =
            train.iter().map(|sentence| sentence.iter().map(|word| word.0).collect()).collect();
        let sentences: Vec<&[u32]> = sentences.iter().map(Vec::as_slice).collect();
        let expected = first.expect(&sentences, Stop::after(params.sweeps));
        let mut statistics = Statistics::new(task.shape, inference);
        statistics.blend(1.0, &sentences, &expected);
        let evidence = Evidence {
            params: &params,
            statistics: &statistics,
            n_tokens,
            unigrams: &unigrams,
            sentences: &sentences,
            expected: &expected,
            eta: 1.0,
            turn: &Turn::All,
        };
        let moved = first.distribution().theta.clone();
        evidence.advance(&mut first);
        let (theta, by_hand) = (&fitted.smoother.distribution().theta, first.distribution());
        assert_eq!(theta, &by_hand.theta, "{inference:?}");
        assert_eq!(fitted.smoother.distribution().transition, by_hand.transition, "{inference:?}");
        assert!(
            theta.iter().zip(&moved).any(|(a, b)| (a - b).abs() > 0.1),
            "the scores have changed"
        );
    }
}

/// The initial model of a task, by training for no epochs.
fn initial_model(task: &Task<'_>) -> Smoother<f32> {
    let params = FhmmParams { epochs: 0, ..(**task.params).clone() }.validate().unwrap();
    let (unigrams, base) = (task.unigrams.clone(), task.base.clone());
    let Task { shape, rows, train, valid, fingerprint, kind, .. } = *task;
    let none =
        Task { params: &params, shape, rows, unigrams, base, train, valid, fingerprint, kind };
    fit(&none, None, &mut unwatched).unwrap().smoother
}
