//! Inference against golden numbers, enumeration of all paths, and a hidden Markov model.

use crate::distribution::Distribution;
use crate::emission::coupling::{Coupling, WordCoupling};
use crate::emission::partition::PartitionTable;
use crate::inference::fixtures::{BOUNDS, SENTENCE, assert_near, golden, random, with_mean_field};
use crate::inference::joint_chain::JointChain;
use crate::inference::layer_chain::Column;
use crate::inference::mean_field::{Bound, MeanField, Start, chains};
use crate::shape::Shape;
use crate::word_rows::MISSING;
use latens_math::Rng;

/// ln p of a sentence and the posterior of each token, tokens × layers × states, by the sum over all paths.
fn enumerated(distribution: &Distribution<f64>, words: &[u32]) -> (f64, Vec<f64>) {
    let Shape { n_layers, n_states: k, n_words } = distribution.shape;
    let (n_joint, n) = (distribution.shape.n_joint(), words.len());
    let digits = |s: usize| -> Vec<usize> {
        (0..n_layers).map(|m| s / k.pow((n_layers - 1 - m) as u32) % k).collect()
    };
    let score = |y: usize, s: &[usize]| {
        let scores = s.iter().enumerate().map(|(m, &state)| distribution.scores(y)[m * k + state]);
        (distribution.base[y] + scores.sum::<f64>()).exp()
    };
    let emission = |y: u32, s: &[usize]| {
        if y == MISSING {
            return 1.0;
        }
        score(y as usize, s) / (0..n_words).map(|y| score(y, s)).sum::<f64>()
    };
    let (mut total, mut posterior) = (0.0, vec![0.0; n * n_layers * k]);
    for path in 0..n_joint.pow(n as u32) {
        let states: Vec<Vec<usize>> =
            (0..n).map(|t| digits(path / n_joint.pow(t as u32) % n_joint)).collect();
        let mut weight = 1.0;
        for (t, now) in states.iter().enumerate() {
            weight *= emission(words[t], now);
            for (m, &state) in now.iter().enumerate() {
                weight *= match t {
                    0 => distribution.start[m * k + state],
                    _ => distribution.transition[(m * k + states[t - 1][m]) * k + state],
                };
            }
        }
        total += weight;
        for (t, states) in states.iter().enumerate() {
            for (m, &state) in states.iter().enumerate() {
                posterior[(t * n_layers + m) * k + state] += weight;
            }
        }
    }
    posterior.iter_mut().for_each(|p| *p /= total);
    (total.ln(), posterior)
}

#[test]
fn the_golden_model_has_its_golden_numbers() {
    let distribution = golden();
    assert_near(
        distribution.scores(5),
        &[-0.5261748415, 1.4548347163, 0.1998480621, -1.4942469133, 0.0371631382, 1.4859110335],
    );
    assert_near(&distribution.start[3..], &[0.5024826601, 0.1087733467, 0.3887439932]);
    assert_near(&distribution.transition[15..], &[0.2652503932, 0.5296456740, 0.2051039328]);
    let z = [
        25.9538865783,
        20.6279525826,
        22.9270265865,
        20.9724549338,
        18.1641613658,
        24.9960271992,
        12.6502071345,
        7.8518835847,
        16.8756001327,
    ];
    assert_near(&PartitionTable::of(&distribution).values, &z);
}

#[test]
fn joint_inference_agrees_with_the_golden_numbers_and_the_sum_over_all_paths() {
    let distribution = golden();
    let table = PartitionTable::of(&distribution);
    let found = JointChain::new(&distribution, &table).posterior(&SENTENCE);
    assert!((found.log_prob + 9.8663624639).abs() < 1e-9);
    let at_3 = [0.1576189277, 0.7048322632, 0.1375488090, 0.0620758563, 0.1929796722, 0.7449444715];
    assert_near(&found.gamma[18..24], &at_3);
    let (log_prob, gamma) = enumerated(&distribution, &SENTENCE);
    assert!((found.log_prob - log_prob).abs() < 1e-12);
    found.gamma.iter().zip(&gamma).for_each(|(a, b)| assert!((a - b).abs() < 1e-12));
    let path = JointChain::new(&distribution, &table).best_path(&SENTENCE);
    assert_eq!(path, [0, 0, 0, 0, 2, 0, 1, 2, 2, 0]);
}

#[test]
fn pair_posteriors_of_joint_inference_sum_to_its_state_posteriors() {
    let distribution = random(Shape { n_layers: 3, n_states: 3, n_words: 7 }, 1.0, 5);
    let table = PartitionTable::of(&distribution);
    let words = [1, 4, MISSING, 6, 0];
    let found = JointChain::new(&distribution, &table).posterior(&words);
    let (log_prob, gamma) =
        enumerated(&random(Shape { n_layers: 2, n_states: 3, n_words: 7 }, 1.0, 5), &words);
    let smaller = random(Shape { n_layers: 2, n_states: 3, n_words: 7 }, 1.0, 5);
    let table = PartitionTable::of(&smaller);
    let exact = JointChain::new(&smaller, &table).posterior(&words);
    assert!((exact.log_prob - log_prob).abs() < 1e-12);
    exact.gamma.iter().zip(&gamma).for_each(|(a, b)| assert!((a - b).abs() < 1e-12));
    for m in 0..3 {
        for j in 0..3 {
            let left: f64 = found.pairs[(m * 3 + j) * 3..(m * 3 + j + 1) * 3].iter().sum();
            let visits: f64 = (0..4).map(|t| found.gamma[t * 9 + m * 3 + j]).sum();
            assert!((left - visits).abs() < 1e-12);
            let entered: f64 = (0..3).map(|i| found.pairs[(m * 3 + i) * 3 + j]).sum();
            let visits: f64 = (1..5).map(|t| found.gamma[t * 9 + m * 3 + j]).sum();
            assert!((entered - visits).abs() < 1e-12);
        }
    }
    let emitted: f64 = found.emitting.iter().sum();
    assert!((emitted - 4.0).abs() < 1e-12);
}

#[test]
fn mean_field_agrees_with_the_golden_numbers() {
    let initial = [-13.2873398836, -13.2873398836, -13.0267549313];
    let sweeps = [
        [-10.0979502813, -10.0936463679, -10.0936404040],
        [-9.9171168722, -9.9066577777, -9.9066526413],
        [-9.8934485912, -9.8867163092, -9.8867161000],
    ];
    let converged = [-10.0936403618, -9.9066526367, -9.8867160999];
    let simultaneous = [-10.0992918154, -9.9265786901, -9.8966362661];
    for (i, bound) in BOUNDS.into_iter().enumerate() {
        with_mean_field(&golden(), bound, &[&SENTENCE], |field| {
            let gamma = [
                0.4147620339,
                0.2110924171,
                0.3741455490,
                0.3447959567,
                0.3110103475,
                0.3441936958,
            ];
            assert_near(&field.gamma[6..12], &gamma);
            assert_near(&[field.bound_by_definition()], &[initial[i]]);
            for expected in sweeps[i] {
                field.sweep();
                assert_near(&field.bounds(), &[expected]);
                assert_near(&[field.bound_by_definition()], &[expected]);
            }
            (0..50).for_each(|_| field.sweep());
            assert_near(&field.bounds(), &[converged[i]]);
        });
        with_mean_field(&golden(), bound, &[&SENTENCE], |field| {
            field.sweep_simultaneously();
            assert_near(&[field.bound_by_definition()], &[simultaneous[i]]);
        });
    }
}

#[test]
fn fields_and_posteriors_agree_with_the_golden_numbers() {
    let fields = [
        [-1.7590104910, 0.3235098818, -0.4357402076, -2.5274985823, -0.8226073723, 0.2991681177],
        [-3.6504047277, -1.5834676137, -2.2618606019, -1.5280961932, 0.2038542342, 1.2982799909],
        [-3.6458506224, -1.5744960621, -2.2085469612, -4.4917413165, -2.7561797634, -1.6635872356],
    ];
    let gammas = [
        [0.1423720805, 0.7178184004, 0.1398095191, 0.0646794980, 0.1866923522, 0.7486281497],
        [0.1381477146, 0.7175315444, 0.1443207410, 0.0626479574, 0.1900367855, 0.7473152572],
        [0.1337002710, 0.7195079724, 0.1467917566, 0.0623580213, 0.1914499503, 0.7461920284],
    ];
    let converged = [
        [0.1631511465, 0.7118065974, 0.1250422561, 0.0640292199, 0.1807827335, 0.7551880467],
        [0.1566134945, 0.7098246989, 0.1335618066, 0.0620192635, 0.1879906845, 0.7499900520],
        [0.1573460740, 0.7073845108, 0.1352694152, 0.0620908121, 0.1903896261, 0.7475195617],
    ];
    for (i, bound) in BOUNDS.into_iter().enumerate() {
        with_mean_field(&golden(), bound, &[&SENTENCE], |field| {
            field.sweep();
            assert_near(&field.fields[18..24], &fields[i]);
            assert_near(&field.gamma[18..24], &gammas[i]);
            (0..50).for_each(|_| field.sweep());
            assert_near(&field.gamma[18..24], &converged[i]);
            let chains = chains(&golden());
            let path = |m: usize| {
                let column = Column { first: 3 * m, row: 6 };
                chains[m].best_path(&field.fields, column)
            };
            assert_eq!((path(0), path(1)), (vec![0, 0, 2, 1, 2], vec![0, 0, 0, 2, 0]));
        });
    }
}

#[test]
fn sweeps_never_decrease_the_bound_and_never_exceed_the_likelihood() {
    for seed in 0..8 {
        for deviation in [0.5, 1.5, 3.0] {
            let distribution =
                random(Shape { n_layers: 4, n_states: 3, n_words: 20 }, deviation, seed);
            let words: Vec<u32> =
                (0..12).map(|t| if t == 5 { MISSING } else { (t * 7 + 3) % 20 }).collect();
            let exact = JointChain::new(&distribution, &PartitionTable::of(&distribution))
                .posterior(&words)
                .log_prob;
            let mut optima = vec![];
            for bound in BOUNDS {
                with_mean_field(&distribution, bound, &[&words], |field| {
                    let mut last = f64::NEG_INFINITY;
                    for _ in 0..60 {
                        field.sweep();
                        let now = field.bounds()[0];
                        assert!(now >= last - 1e-9, "{bound:?} {deviation}: {last} {now}");
                        assert!(now <= exact + 1e-9);
                        last = now;
                    }
                    optima.push(last);
                });
            }
            // Jensen ≤ tilted ≤ exact holds for the same posterior. The optima keep this order unless they are different
            // local optima, which happens with sharp emissions.
            if deviation < 1.0 {
                assert!(optima[0] <= optima[1] + 1e-9 && optima[1] <= optima[2] + 1e-9);
            }
        }
    }
}

#[test]
fn one_layer_is_a_hidden_markov_model() {
    let distribution = random(Shape { n_layers: 1, n_states: 5, n_words: 9 }, 2.0, 3);
    let words = [1, 8, 3, 3, 0, 2, 7];
    let table = PartitionTable::of(&distribution);
    let chain = HmmChain::new(&distribution, &words);
    let mut smoothed = latens_math::chain::Smoothed::default();
    let log_prob = latens_math::chain::smooth(&chain, &mut smoothed).unwrap();
    let joint = JointChain::new(&distribution, &table).posterior(&words);
    assert!((joint.log_prob - log_prob).abs() < 1e-10);
    for bound in [Bound::Exact, Bound::Tilted] {
        with_mean_field(&distribution, bound, &[&words], |field| {
            field.sweep();
            assert!((field.bounds()[0] - log_prob).abs() < 1e-10);
            for t in 0..words.len() {
                let pairs = field.gamma[t * 5..(t + 1) * 5].iter().zip(smoothed.nodes(t));
                pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-10));
            }
        });
    }
    with_mean_field(&distribution, Bound::Jensen, &[&words], |field| {
        (0..50).for_each(|_| field.sweep());
        assert!(field.bounds()[0] < log_prob - 0.01, "Jensen's bound is not tight");
    });
}

/// A model of one layer as a chain of `latens_math`.
struct HmmChain {
    local: Vec<Vec<f64>>,
    transition: Vec<f64>,
}

impl HmmChain {
    fn new(distribution: &Distribution<f64>, words: &[u32]) -> HmmChain {
        let k = distribution.shape.n_states;
        let score = |y: usize, s: usize| (distribution.base[y] + distribution.scores(y)[s]).exp();
        let z = |s| (0..distribution.shape.n_words).map(|y| score(y, s)).sum::<f64>();
        let mut local: Vec<Vec<f64>> =
            words.iter().map(|&y| (0..k).map(|s| score(y as usize, s) / z(s)).collect()).collect();
        local[0].iter_mut().zip(&distribution.start).for_each(|(local, start)| *local *= start);
        HmmChain { local, transition: distribution.transition.clone() }
    }
}

impl latens_math::chain::Chain<f64> for HmmChain {
    fn n_steps(&self) -> usize {
        self.local.len()
    }

    fn local(&self, step: usize) -> &[f64] {
        &self.local[step]
    }

    fn pairs(&self, _: usize) -> &[f64] {
        &self.transition
    }
}

#[test]
fn only_jensens_bound_depends_on_the_gauge() {
    let distribution = golden();
    let mut shifted = distribution.clone();
    let mut rng = Rng::new(3);
    let shifts: Vec<f64> = (0..6).map(|_| rng.normal()).collect();
    for scores in shifted.theta.chunks_exact_mut(6) {
        scores.iter_mut().zip(&shifts).for_each(|(score, shift)| *score += shift);
    }
    let bound = |distribution: &Distribution<f64>, bound| {
        with_mean_field(distribution, bound, &[&SENTENCE], |field| {
            (0..100).for_each(|_| field.sweep());
            field.bounds()[0]
        })
    };
    for kept in [Bound::Exact, Bound::Tilted] {
        assert!((bound(&distribution, kept) - bound(&shifted, kept)).abs() < 1e-9);
    }
    assert!((bound(&distribution, Bound::Jensen) - bound(&shifted, Bound::Jensen)).abs() > 0.01);
}

#[test]
fn sums_over_words_give_the_same_bounds_as_the_table() {
    let distribution = random(Shape { n_layers: 3, n_states: 4, n_words: 30 }, 1.5, 9);
    let words: Vec<u32> = (0..10).map(|t| (t * 11) % 30).collect();
    let (table, chains) = (PartitionTable::of(&distribution), chains(&distribution));
    for bound in [Bound::Tilted, Bound::Jensen] {
        let coupling = WordCoupling::new(distribution.shape, &table.exps, &table.base);
        let mut field =
            MeanField::new(&distribution, &chains, coupling, bound, &[&words], Start::Prior);
        let by_words = bounds_of_sweeps(&mut field);
        let by_table =
            with_mean_field(&distribution, bound, &[&words], |field| bounds_of_sweeps(&mut *field));
        assert_near(&by_words, &by_table);
    }
}

fn bounds_of_sweeps<C: Coupling<f64>>(field: &mut MeanField<'_, f64, C>) -> Vec<f64> {
    (0..4)
        .map(|_| {
            field.sweep();
            field.bounds()[0]
        })
        .collect()
}
