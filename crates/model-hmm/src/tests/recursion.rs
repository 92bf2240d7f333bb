//! The recursion against the sum over all paths.

use super::toy::{
    CLUSTERS, assert_close, batch, check_factors_score_like_a_table, emission,
    expected_transitions, for_each_path, params, random_tables, sentences, space_of, tags,
};
use crate::params::{Constraint, Parameterization, Tying};
use crate::recursion::forward_backward::ForwardBackward;
use crate::space::clusters::NO_CLUSTER;
use crate::space::state_space::StateSpace;
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::probability_tables::Tables;
use latens_corpus::WordId;

#[test]
fn expected_counts_agree_with_the_sum_over_all_paths() {
    for (k, n_clusters, n_tags) in [(2, 3, 0), (2, 3, 3), (1, 3, 0), (5, 1, 0), (4, 1, 3)] {
        let clusters =
            CLUSTERS.iter().map(|&c| if c == NO_CLUSTER { c } else { c % n_clusters as u32 });
        let space = StateSpace::new(k, n_clusters, clusters.collect());
        let tables = random_tables::<f64>(&space, n_tags, k as u64);
        let (sentences, n) = (sentences(), space.n_states());
        let tags = if n_tags > 0 { tags(&sentences) } else { vec![] };
        let mut expected = ExpectedCounts::default();
        let log_probs = ForwardBackward::default().expected_counts(
            &space,
            &tables,
            &batch(&sentences, &tags),
            &mut expected,
        );

        let (mut start, mut departures, mut pairs) = (vec![0.0; n], vec![0.0; n], vec![0.0; n * n]);
        let (mut words, mut tagged) = (vec![0.0; space.n_slots() * k], vec![0.0; n_tags * n]);
        for (s, sentence) in sentences.iter().enumerate() {
            let tags = tags.get(s).map_or(&[][..], |tags| &tags[..]);
            let mut total = 0.0;
            for_each_path(&space, &tables, sentence, tags, |_, p| total += p);
            assert!((log_probs[s] - total.ln()).abs() < 1e-10);
            for_each_path(&space, &tables, sentence, tags, |path, p| {
                let share = p / total;
                for (t, &state) in path.iter().enumerate().filter(|_| p > 0.0) {
                    words[space.slot(sentence[t]).unwrap() * k + state % k] += share;
                    if t == 0 {
                        start[state] += share;
                    } else {
                        pairs[path[t - 1] * n + state] += share;
                        departures[path[t - 1]] += share;
                    }
                    tags.get(t).iter().for_each(|&&tag| tagged[tag as usize * n + state] += share);
                }
            });
        }
        assert_close(&expected.start, &start);
        assert_close(&expected.departures, &departures);
        assert_close(&expected_transitions(&tables, &expected), &pairs);
        assert_close(&expected.tags, &tagged);
        let mut emitted = vec![0.0; words.len()];
        for (&slot, counts) in expected.slots.iter().zip(expected.emission.chunks_exact(k)) {
            emitted[slot as usize * k..(slot as usize + 1) * k].copy_from_slice(counts);
        }
        assert_close(&emitted, &words);
        let alone =
            ForwardBackward::default().log_probs(&space, &tables, &batch(&sentences, &tags));
        assert_close(&alone, &log_probs);
    }
}

/// ln p of sentences without tags, and their expected counts.
fn expected_counts(
    space: &StateSpace,
    tables: &Tables<f64>,
    sentences: &[Vec<WordId>],
) -> (Vec<f64>, ExpectedCounts<f64>) {
    let (batch, mut expected) = (batch(sentences, &[]), ExpectedCounts::default());
    let log_probs =
        ForwardBackward::default().expected_counts(space, tables, &batch, &mut expected);
    (log_probs, expected)
}

/// A large batch of a dense model has several parts.
#[test]
fn many_copies_of_sentences_have_as_many_times_their_expected_counts() {
    const COPIES: usize = 1500;
    let space = StateSpace::new(5, 1, vec![0; CLUSTERS.len()]);
    let tables = random_tables::<f64>(&space, 3, 5);
    let once = sentences();
    let many: Vec<_> = (0..COPIES).flat_map(|_| once.clone()).collect();
    assert!(many.iter().map(Vec::len).sum::<usize>() > 3 * 3072);
    // Buffers of batches with one part and with several.
    let forward_backward = ForwardBackward::default();
    let counts = |sentences: &[Vec<WordId>]| {
        let (tags, mut expected) = (tags(sentences), ExpectedCounts::default());
        let batch = batch(sentences, &tags);
        let log_probs = forward_backward.expected_counts(&space, &tables, &batch, &mut expected);
        assert_close(&forward_backward.log_probs(&space, &tables, &batch), &log_probs);
        (log_probs, expected)
    };
    let ((log_probs, one), (all_log_probs, all)) = (counts(&once), counts(&many));
    for n_threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let (log_probs, again) = pool.install(|| counts(&many));
        assert_eq!(log_probs, all_log_probs);
        assert_eq!((again.start, again.emission), (all.start.clone(), all.emission.clone()));
        assert_eq!((again.departures, again.tags), (all.departures.clone(), all.tags.clone()));
        assert_eq!(again.ratios[0].values, all.ratios[0].values);
    }
    all_log_probs.chunks_exact(once.len()).for_each(|found| assert_close(found, &log_probs));
    let mean = |sums: &[f64]| sums.iter().map(|sum| sum / COPIES as f64).collect::<Vec<_>>();
    assert_close(&mean(&all.start), &one.start);
    assert_close(&mean(&all.departures), &one.departures);
    assert_close(&mean(&all.emission), &one.emission);
    assert_close(&mean(&all.tags), &one.tags);
    assert_eq!(all.slots, one.slots);
    let transitions = mean(&expected_transitions(&tables, &all));
    assert_close(&transitions, &expected_transitions(&tables, &one));
}

/// Checks a dense model with four states in single precision. Some sentences underflow and share lanes with others that do
/// not.
fn check_underflowing_sentences(tables: &Tables<f64>, once: &[Vec<WordId>]) {
    // Several parts.
    const COPIES: usize = 800;
    let space = StateSpace::new(4, 1, vec![0; CLUSTERS.len()]);
    let many: Vec<_> = (0..COPIES).flat_map(|_| once.to_vec()).collect();
    let narrow = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    let single = Tables {
        k: 4,
        start: narrow(&tables.start),
        transition: narrow(&tables.transition),
        emission: narrow(&tables.emission),
        ..Tables::default()
    };
    let mut counts = ExpectedCounts::default();
    let batch = batch(&many, &[]);
    let log_probs =
        ForwardBackward::default().expected_counts(&space, &single, &batch, &mut counts);
    assert!(!counts.counts.is_empty(), "some sentences underflow");
    let (mut pairs, mut start, mut departures) = (vec![0.0; 16], vec![0.0; 4], vec![0.0; 4]);
    let mut words = vec![0.0; 4 * CLUSTERS.len()];
    for (s, sentence) in once.iter().enumerate() {
        let mut total = 0.0;
        for_each_path(&space, tables, sentence, &[], |_, p| total += p);
        for copy in 0..COPIES {
            let log_prob = log_probs[copy * once.len() + s];
            assert!((log_prob - total.ln()).abs() < 1e-4, "{log_prob} and {}", total.ln());
        }
        for_each_path(&space, tables, sentence, &[], |path, p| {
            start[path[0]] += p / total;
            for pair in path.windows(2) {
                pairs[pair[0] * 4 + pair[1]] += p / total;
                departures[pair[0]] += p / total;
            }
            for (&word, state) in sentence.iter().zip(path) {
                words[space.slot(word).unwrap() * 4 + state] += p / total;
            }
        });
    }
    let mut found = expected_transitions(&single, &counts);
    let sums = counts.start.iter().chain(&counts.departures);
    found.extend(sums.map(|&count| f64::from(count)));
    let mut emitted = vec![0.0; words.len()];
    for (&slot, row) in counts.slots.iter().zip(counts.emission.chunks_exact(4)) {
        let place = slot as usize * 4..(slot as usize + 1) * 4;
        emitted[place].iter_mut().zip(row).for_each(|(sum, &count)| *sum = f64::from(count));
    }
    found.extend(emitted);
    let expected = pairs.iter().chain(&start).chain(&departures).chain(&words);
    for (found, expected) in found.iter().zip(expected) {
        // Sums of equal numbers in single precision are rounded in the same direction.
        let found = found / COPIES as f64;
        assert!((found - expected).abs() < 1e-4, "{found} and {expected}");
    }
}

fn words(ids: &[u32]) -> Vec<WordId> {
    ids.iter().map(|&id| WordId(id)).collect()
}

/// Sentences that switch between two languages underflow in single precision.
#[test]
fn sentences_of_a_dense_model_that_underflow_do_not_affect_others() {
    let space = StateSpace::new(4, 1, vec![0; CLUSTERS.len()]);
    let mut tables = random_tables::<f64>(&space, 0, 9);
    for (state, row) in tables.transition.chunks_exact_mut(4).enumerate() {
        let others = row.iter_mut().enumerate().filter(|(to, _)| to / 2 != state / 2);
        others.for_each(|(_, a)| *a *= 1e-25);
    }
    for (slot, row) in tables.emission.chunks_exact_mut(4).enumerate() {
        let others = row.iter_mut().enumerate().filter(|(state, _)| state / 2 != slot % 2);
        others.for_each(|(_, b)| *b = 0.0);
    }
    let once = [words(&[0, 2, 4]), words(&[1, 3, 0, 2]), words(&[5, 7, 1, 3, 1]), words(&[6, 3])];
    check_underflowing_sentences(&tables, &once);
}

/// Every word of the first sentence is likely enough after those before it, but the words after the first one contradict it.
#[test]
fn sentences_of_a_dense_model_that_underflow_on_the_way_back_are_counted_once() {
    let space = StateSpace::new(4, 1, vec![0; CLUSTERS.len()]);
    let mut tables = random_tables::<f64>(&space, 0, 9);
    for (state, row) in tables.transition.chunks_exact_mut(4).enumerate() {
        let others = row.iter_mut().enumerate().filter(|(to, _)| *to != state);
        others.for_each(|(_, a)| *a = 0.0);
    }
    let rows = [[1.0, 1e-16, 0.0, 0.0], [1e-8, 1.0, 0.0, 0.0], [1e-10, 1.0, 0.0, 0.0]];
    tables.emission[..12].copy_from_slice(rows.as_flattened());
    let once = [words(&[0, 1, 2]), words(&[4, 5, 6, 2]), words(&[0, 7]), words(&[0, 1, 2, 6])];
    check_underflowing_sentences(&tables, &once);
}

/// A dense model that does not emit word 3.
fn dense_space(k: usize) -> StateSpace {
    let clusters = CLUSTERS.iter().map(|&c| if c == NO_CLUSTER { c } else { 0 });
    StateSpace::new(k, 1, clusters.collect())
}

#[test]
fn a_sentence_that_a_dense_model_cannot_emit_does_not_affect_others() {
    let space = dense_space(5);
    let tables = random_tables::<f64>(&space, 0, 8);
    let counts = |sentences: &[Vec<WordId>]| expected_counts(&space, &tables, sentences);
    let mut sentences = sentences();
    let (log_probs, without) = counts(&sentences);
    for impossible in [&[3][..], &[0, 3, 1], &[3, 2, 2, 2, 2, 2, 2], &[1, 1, 1, 3]] {
        sentences.insert(1, impossible.iter().map(|&word| WordId(word)).collect());
    }
    let (mut all_log_probs, with) = counts(&sentences);
    assert_eq!(all_log_probs.drain(1..5).collect::<Vec<_>>(), [f64::NEG_INFINITY; 4]);
    assert_close(&all_log_probs, &log_probs);
    assert_close(&with.start, &without.start);
    assert_close(&with.departures, &without.departures);
    assert_close(&with.emission, &without.emission);
    assert_close(&expected_transitions(&tables, &with), &expected_transitions(&tables, &without));
}

#[test]
fn a_model_with_clusters_agrees_with_a_dense_model_with_zeros() {
    // Rows in groups of eight, of five and of one, with a transposed copy of the transitions and without; models with up to
    // 512 states have a limit of lanes.
    [3, 30, 200].into_iter().for_each(check_clusters_agree_with_a_dense_model);
}

fn check_clusters_agree_with_a_dense_model(k: usize) {
    let space = StateSpace::new(k, 3, CLUSTERS.to_vec());
    let tables = random_tables::<f64>(&space, 0, 5);
    let dense = dense_space(3 * k);
    let rows = dense.words().iter().flat_map(|&word| {
        (0..3 * k).map(|state| emission(&space, &tables, word, state)).collect::<Vec<_>>()
    });
    let dense_tables = Tables { k: 3 * k, emission: rows.collect(), ..tables.clone() };
    let (sentences, mut a, mut b) =
        (sentences(), ExpectedCounts::default(), ExpectedCounts::default());
    let batch = batch(&sentences, &[]);
    let log_probs = ForwardBackward::default().expected_counts(&space, &tables, &batch, &mut a);
    let dense_log_probs =
        ForwardBackward::default().expected_counts(&dense, &dense_tables, &batch, &mut b);
    assert_close(&log_probs, &dense_log_probs);
    assert_close(&a.start, &b.start);
    assert_close(&a.departures, &b.departures);
    assert_close(&expected_transitions(&tables, &a), &expected_transitions(&dense_tables, &b));
}

#[test]
fn sentences_that_underflow_have_the_same_expected_counts() {
    let space = StateSpace::new(2, 3, CLUSTERS.to_vec());
    let tables = random_tables::<f64>(&space, 0, 6);
    let mut underflowing = tables.clone();
    // All paths of a sentence enter the states of a cluster equally often, so a common factor of all transitions into
    // them does not change the posterior.
    for row in underflowing.transition.chunks_exact_mut(6) {
        row[2..4].iter_mut().for_each(|a| *a *= 1e-40);
    }
    let (sentences, mut scaled, mut in_log_space) =
        (sentences(), ExpectedCounts::default(), ExpectedCounts::default());
    let batch = batch(&sentences, &[]);
    ForwardBackward::default().expected_counts(&space, &tables, &batch, &mut scaled);
    let log_probs = ForwardBackward::default().expected_counts(
        &space,
        &underflowing,
        &batch,
        &mut in_log_space,
    );
    assert!(log_probs.iter().all(|log_prob| log_prob.is_finite()));
    assert!(!in_log_space.counts.is_empty());
    assert_close(&scaled.start, &in_log_space.start);
    assert_close(&scaled.emission, &in_log_space.emission);
    assert_close(
        &expected_transitions(&tables, &scaled),
        &expected_transitions(&underflowing, &in_log_space),
    );
}

#[test]
fn products_of_emissions_and_tags_do_not_underflow() {
    let space = StateSpace::new(2, 3, CLUSTERS.to_vec());
    let mut tables = random_tables::<f32>(&space, 3, 6);
    let (sentences, n_tags) = (sentences(), 3);
    let tags = tags(&sentences);
    tables.emission.iter_mut().chain(&mut tables.tags).for_each(|p| *p *= 1e-30);
    let batch = batch(&sentences, &tags);
    let log_probs = ForwardBackward::default().log_probs(&space, &tables, &batch);
    tables.emission.iter_mut().chain(&mut tables.tags).for_each(|p| *p *= 1e30);
    let usual = ForwardBackward::default().log_probs(&space, &tables, &batch);
    for ((tiny, usual), (words, tags)) in
        log_probs.iter().zip(usual).zip(sentences.iter().zip(&tags))
    {
        let expected = usual + 1e-30f64.ln() * (words.len() + tags.len()) as f64;
        assert!((tiny - expected).abs() < 1e-4 * expected.abs().max(1.0), "{tiny} {expected}");
    }
    assert_eq!(tables.tags.len(), n_tags * space.n_states());
}

/// All paths have the same tiny factor, which does not change the posterior.
#[test]
fn tagged_sentences_that_underflow_have_the_same_expected_counts() {
    let sentences = sentences();
    let tags = tags(&sentences);
    let batch = batch(&sentences, &tags);
    // Buffers of models with other numbers of states.
    let forward_backward = ForwardBackward::default();
    for space in [dense_space(5), StateSpace::new(2, 3, CLUSTERS.to_vec()), dense_space(3)] {
        let mut tables = random_tables::<f32>(&space, 3, 6);
        let counts = |tables: &Tables<f32>| {
            let mut counts = ExpectedCounts::default();
            forward_backward.expected_counts(&space, tables, &batch, &mut counts);
            counts
        };
        let usual = counts(&tables);
        assert!(usual.counts.is_empty());
        tables.emission.iter_mut().chain(&mut tables.tags).for_each(|p| *p *= 1e-30);
        let tiny = counts(&tables);
        assert!(!tiny.counts.is_empty());
        assert_eq!(usual.slots, tiny.slots);
        let sums = |counts: &ExpectedCounts<f32>| {
            let sums = [&counts.start, &counts.departures, &counts.emission, &counts.tags];
            sums.map(|sums| sums.clone()).concat()
        };
        for (usual, tiny) in sums(&usual).iter().zip(sums(&tiny)) {
            assert!((usual - tiny).abs() < 1e-4, "{usual} and {tiny}");
        }
    }
}

/// The reciprocal of 10⁻³⁹ is infinite in single precision.
#[test]
fn a_single_word_with_a_tiny_probability_has_finite_counts() {
    for space in [dense_space(2), StateSpace::new(2, 3, CLUSTERS.to_vec())] {
        let mut tables = random_tables::<f32>(&space, 0, 6);
        tables.emission.iter_mut().for_each(|p| *p *= 1e-39);
        let (sentences, mut counts) = ([words(&[0]), words(&[1])], ExpectedCounts::default());
        let batch = batch(&sentences, &[]);
        ForwardBackward::default().expected_counts(&space, &tables, &batch, &mut counts);
        for sums in [&counts.start, &counts.emission] {
            let sum: f32 = sums.iter().sum();
            assert!((sum - 2.0).abs() < 1e-5, "{sum}");
        }
    }
}

#[test]
fn an_impossible_sentence_has_no_expected_counts() {
    let space = StateSpace::new(2, 3, CLUSTERS.to_vec());
    let tables = random_tables::<f32>(&space, 0, 7);
    let sentences = [vec![WordId(2), WordId(3), WordId(1)]];
    let mut expected = ExpectedCounts::default();
    let batch = batch(&sentences, &[]);
    let log_probs =
        ForwardBackward::default().expected_counts(&space, &tables, &batch, &mut expected);
    assert_eq!(log_probs, [f64::NEG_INFINITY]);
    assert!(expected.slots.is_empty());
    assert!(expected.start.iter().chain(&expected.departures).all(|&count| count == 0.0));
    assert!(expected.ratios.is_empty() && expected.counts.is_empty());
}

#[test]
fn a_sentence_without_a_path_is_impossible_in_wide_models() {
    // More states than SIMD lanes; no transition leads from cluster 1 to cluster 0.
    let space = StateSpace::new(40, 2, vec![0, 1, 0, 1]);
    let mut tables = random_tables::<f32>(&space, 0, 8);
    for row in tables.transition.chunks_exact_mut(80).skip(40) {
        row[..40].fill(0.0);
    }
    let sentences = [vec![WordId(0), WordId(1)], vec![WordId(0), WordId(1), WordId(2)]];
    let log_probs = ForwardBackward::default().log_probs(&space, &tables, &batch(&sentences, &[]));
    assert!(log_probs[0].is_finite());
    assert_eq!(log_probs[1], f64::NEG_INFINITY);
    let mut expected = ExpectedCounts::default();
    let again = ForwardBackward::default().expected_counts(
        &space,
        &tables,
        &batch(&sentences, &[]),
        &mut expected,
    );
    assert_eq!(again[1], f64::NEG_INFINITY);
    assert_eq!(expected.slots.len(), 2);
}

#[test]
fn factors_score_like_a_table_of_transitions() {
    for constraint in [Constraint::Brown, Constraint::None] {
        let params = params(Parameterization::Neural, constraint, Tying::Shared);
        let factors = check_factors_score_like_a_table(&params, &space_of(&params));
        assert!(factors.lists.is_none());
    }
}
