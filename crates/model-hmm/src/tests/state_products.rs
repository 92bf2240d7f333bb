//! Products with transitions against sums over the rows of the model.

use super::toy_models::{assert_near, blocks, dense, hmm, listed};
use crate::fitted::expectations::Expectations;
use crate::model::Hmm;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use latens_math::Rng;
use latens_model::Device;
use std::io::Write;

fn models() -> Vec<Hmm> {
    let (space, tables) = blocks(4, 3, 7);
    let (dense_space, dense_tables) = dense(&space, &tables);
    let (listed_space, listed_tables) = listed(&space, &tables);
    vec![hmm(&space, &tables), hmm(&dense_space, &dense_tables), hmm(&listed_space, &listed_tables)]
}

#[test]
fn products_with_transitions_agree_with_their_definitions() {
    for hmm in models() {
        let n = hmm.n_states();
        let mut rng = Rng::new(3);
        let mut random = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.uniform()).collect() };
        let rows: Vec<Vec<f32>> = (0..n).map(|state| hmm.transition(state)).collect();
        let a = |from: usize, to: usize| f64::from(rows[from][to]);

        // All states, those of one cluster, and a single state.
        for kept in [0..n, 4..8, 6..7] {
            let mut states = random(n);
            (0..n).filter(|z| !kept.contains(z)).for_each(|z| states[z] = 0.0);
            let next = |to: usize| (0..n).map(|from| states[from] * a(from, to)).sum();
            assert_near(&hmm.next_states(&states), &(0..n).map(next).collect::<Vec<f64>>());
        }

        let vectors = random(5 * n);
        let terms = |i: usize, z: usize| {
            let vectors = &vectors;
            let rows = &rows;
            (0..n).map(move |to| f64::from(rows[z][to]) * vectors[i * n + to])
        };
        let each = (0..5).flat_map(|i| (0..n).map(move |z| (i, z)));
        let sums: Vec<f64> = each.clone().map(|(i, z)| terms(i, z).sum()).collect();
        let largest: Vec<f64> = each.map(|(i, z)| terms(i, z).fold(0.0, f64::max)).collect();
        let mut out = vec![f64::NAN; 5 * n];
        hmm.expectations(&vectors, &mut out);
        assert_near(&out, &sums);
        hmm.maxima(&vectors, &mut out);
        assert_near(&out, &largest);
        let single: Vec<f32> = vectors.iter().map(|&v| v as f32).collect();
        let mut out = vec![f32::NAN; 5 * n];
        hmm.expectations(&single, &mut out);
        assert_near(&out.iter().map(|&v| f64::from(v)).collect::<Vec<_>>(), &sums);
    }
}

#[test]
fn emitting_states_have_the_emission_probabilities() {
    for hmm in models() {
        for word in (0..hmm.n_words()).map(WordId::from) {
            let mut by_state = vec![0.0; hmm.n_states()];
            if let Some((states, probabilities)) = hmm.emitting_states(word) {
                assert_eq!(states.iter().count(), probabilities.len());
                states.iter().zip(probabilities).for_each(|(state, &p)| by_state[state] = p);
            }
            for (state, &p) in by_state.iter().enumerate() {
                assert_eq!(p, hmm.emission(state)[word.index()]);
            }
        }
    }
}

#[test]
fn rows_of_transitions_are_those_of_the_states() {
    for hmm in models() {
        let (k, n) = (hmm.space.k, hmm.n_states());
        let mut rows = vec![f32::NAN; k * n];
        for cluster in 0..hmm.space.n_clusters() {
            hmm.transition_rows(StateSet::Cluster(cluster), &mut rows);
            let states = cluster * k..(cluster + 1) * k;
            let expected: Vec<f32> = states.flat_map(|state| hmm.transition(state)).collect();
            assert_eq!(rows, expected);
        }
    }
}

#[test]
fn expectations_on_a_device_are_those_of_the_cpu() {
    for hmm in models() {
        let n = hmm.n_states();
        let mut rng = Rng::new(5);
        for n_vectors in [3, 1] {
            let vectors: Vec<f32> = (0..n_vectors * n).map(|_| rng.uniform() as f32).collect();
            let (mut expected, mut out) = (vec![0.0; n_vectors * n], vec![f32::NAN; n_vectors * n]);
            hmm.expectations(&vectors, &mut expected);
            Expectations::new(&hmm).of(&vectors, &mut out).unwrap();
            assert_eq!(out, expected);
            match Expectations::on(&hmm, Device::Cuda) {
                Ok(on_device) => {
                    on_device.of(&vectors, &mut out).unwrap();
                    let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect();
                    let (out, expected): (Vec<f64>, Vec<f64>) = (wide(&out), wide(&expected));
                    assert_near(&out, &expected);
                }
                Err(error) if cfg!(feature = "cuda") => {
                    // Past the test harness, so that it is seen.
                    let _ =
                        writeln!(std::io::stderr(), "skipping the tests on a CUDA device: {error}");
                }
                Err(error) => assert_eq!(error.problem, "this program was built without CUDA"),
            }
        }
    }
}
