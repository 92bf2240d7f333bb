//! The recursion against the sum over all paths, and gradients against finite differences.

mod dropout;
mod fitted;
mod lists;

use crate::params::{Constraint, HmmParams, Parameterization, Tying, WordVectors};
use crate::recursion::expected_counts::{Engine, Expected};
use crate::space::state_space::{NONE, Support};
use crate::tables::probability_tables::{Batch, Kept, Tables};
use crate::weights::mapping::Parameters;
use crate::weights::neural::Neural;
use crate::weights::scalar::Scalar;
use latens_corpus::WordId;
use latens_math::{Real, Rng, softmax, softmax_columns};
use latens_nn::Dropout;

/// Words 0 to 7; word 3 is never emitted.
const CLUSTERS: [u32; 8] = [0, 1, 2, NONE, 0, 1, 2, 0];

fn sentences() -> Vec<Vec<WordId>> {
    let words = [&[2u32, 5, 7, 1][..], &[4], &[6, 6, 0, 5, 2, 1], &[7, 1], &[2, 5, 7, 4, 1], &[]];
    words.iter().map(|words| words.iter().map(|&word| WordId(word)).collect()).collect()
}

fn tags(sentences: &[Vec<WordId>]) -> Vec<Vec<u32>> {
    let tag = |(i, word): (usize, &WordId)| (word.0 + i as u32) % 3;
    let of_words =
        |s: &Vec<WordId>| s.iter().enumerate().map(tag).take(s.len().max(1) - 1).collect();
    sentences.iter().map(of_words).collect()
}

fn batch<'a>(sentences: &'a [Vec<WordId>], tags: &'a [Vec<u32>]) -> Batch<'a> {
    Batch {
        sentences: sentences.iter().map(|sentence| &sentence[..]).collect(),
        tags: tags.iter().map(|tags| &tags[..]).collect(),
    }
}

fn random_tables<T: Real>(support: &Support, n_tags: usize, seed: u64) -> Tables<T> {
    let (mut rng, n) = (Rng::new(seed), support.n_states());
    let mut logits =
        |n: usize| -> Vec<T> { (0..n).map(|_| T::of(rng.normal())).collect::<Vec<T>>() };
    let mut tables = Tables {
        k: support.k,
        start: logits(n),
        transition: logits(n * n),
        emission: logits(support.n_slots() * support.k),
        lists: None,
        tags: logits(n_tags * n),
        factors: None,
    };
    softmax(&mut tables.start);
    tables.transition.chunks_exact_mut(n).for_each(|row| {
        softmax(row);
    });
    for cluster in 0..support.n_clusters() {
        let slots = support.slots(cluster);
        let table = &mut tables.emission[slots.start * support.k..slots.end * support.k];
        softmax_columns(table, &mut vec![T::zero(); support.k]);
    }
    if n_tags > 0 {
        softmax_columns(&mut tables.tags, &mut vec![T::zero(); n]);
    }
    tables
}

/// b(x|z) of any state: zero outside the word's cluster or list.
fn emission<T: Real>(support: &Support, tables: &Tables<T>, word: WordId, state: usize) -> f64 {
    let (Some(cluster), Some(slot)) = (support.cluster(word), support.slot(word)) else {
        return 0.0;
    };
    if let Some(lists) = &tables.lists {
        let at = lists.of(slot).iter().position(|&other| other as usize == state);
        return at.map_or(0.0, |at| tables.emission_of(slot)[at].wide());
    }
    if state / tables.k != cluster {
        0.0
    } else {
        tables.emission[slot * tables.k + state % tables.k].wide()
    }
}

/// Visits every path of states through a sentence with its probability, by the definition.
fn for_each_path<T: Real>(
    support: &Support,
    tables: &Tables<T>,
    sentence: &[WordId],
    tags: &[u32],
    mut visit: impl FnMut(&[usize], f64),
) {
    let n = tables.n_states();
    for code in 0..n.pow(sentence.len() as u32) {
        let path: Vec<usize> = (0..sentence.len()).map(|t| code / n.pow(t as u32) % n).collect();
        let mut p = 1.0;
        for (t, (&state, &word)) in path.iter().zip(sentence).enumerate() {
            p *= match t {
                0 => tables.start[state].wide(),
                _ => tables.transition[path[t - 1] * n + state].wide(),
            };
            p *= emission(support, tables, word, state);
            p *= tags.get(t).map_or(1.0, |&tag| tables.tags[tag as usize * n + state].wide());
        }
        visit(&path, p);
    }
}

fn transitions(tables: &Tables<f64>, expected: &Expected<f64>) -> Vec<f64> {
    let (k, n) = (tables.k, tables.n_states());
    let mut counts = vec![0.0; n * n];
    let mut add = |block: &crate::recursion::expected_counts::Block<f64>, divided: bool| {
        for (i, &value) in block.values.iter().enumerate() {
            let at = (block.from as usize * k + i / k) * n + block.to as usize * k + i % k;
            counts[at] += if divided { value * tables.transition[at] } else { value };
        }
    };
    expected.ratios.iter().for_each(|block| add(block, true));
    expected.counts.iter().for_each(|block| add(block, false));
    for (state, counts) in counts.chunks_exact_mut(n).enumerate() {
        let Some(lists) = &tables.lists else { continue };
        let mut ratios = vec![0.0; n];
        expected.listed.add_row(lists, state, &mut ratios);
        let a = &tables.transition[state * n..(state + 1) * n];
        counts.iter_mut().zip(ratios).zip(a).for_each(|((count, ratio), a)| *count += ratio * a);
    }
    counts
}

fn assert_close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < 1e-10, "{i}: {a} {b}");
    }
}

#[test]
fn expected_counts_agree_with_the_sum_over_all_paths() {
    for (k, n_clusters, n_tags) in [(2, 3, 0), (2, 3, 3), (1, 3, 0), (5, 1, 0), (4, 1, 3)] {
        let clusters = CLUSTERS.iter().map(|&c| if c == NONE { c } else { c % n_clusters as u32 });
        let support = Support::new(k, n_clusters, clusters.collect());
        let tables = random_tables::<f64>(&support, n_tags, k as u64);
        let (sentences, n) = (sentences(), support.n_states());
        let tags = if n_tags > 0 { tags(&sentences) } else { vec![] };
        let mut expected = Expected::default();
        let log_probs = Engine::default().expectations(
            &support,
            &tables,
            &batch(&sentences, &tags),
            &mut expected,
        );

        let (mut start, mut left, mut pairs) = (vec![0.0; n], vec![0.0; n], vec![0.0; n * n]);
        let (mut words, mut tagged) = (vec![0.0; support.n_slots() * k], vec![0.0; n_tags * n]);
        for (s, sentence) in sentences.iter().enumerate() {
            let tags = tags.get(s).map_or(&[][..], |tags| &tags[..]);
            let mut total = 0.0;
            for_each_path(&support, &tables, sentence, tags, |_, p| total += p);
            assert!((log_probs[s] - total.ln()).abs() < 1e-10);
            for_each_path(&support, &tables, sentence, tags, |path, p| {
                let share = p / total;
                for (t, &state) in path.iter().enumerate().filter(|_| p > 0.0) {
                    words[support.slot(sentence[t]).unwrap() * k + state % k] += share;
                    if t == 0 {
                        start[state] += share;
                    } else {
                        pairs[path[t - 1] * n + state] += share;
                        left[path[t - 1]] += share;
                    }
                    tags.get(t).iter().for_each(|&&tag| tagged[tag as usize * n + state] += share);
                }
            });
        }
        assert_close(&expected.start, &start);
        assert_close(&expected.left, &left);
        assert_close(&transitions(&tables, &expected), &pairs);
        assert_close(&expected.tags, &tagged);
        let mut emitted = vec![0.0; words.len()];
        for (&slot, counts) in expected.slots.iter().zip(expected.emission.chunks_exact(k)) {
            emitted[slot as usize * k..(slot as usize + 1) * k].copy_from_slice(counts);
        }
        assert_close(&emitted, &words);
        let alone = Engine::default().log_probs(&support, &tables, &batch(&sentences, &tags));
        assert_close(&alone, &log_probs);
    }
}

#[test]
fn blocks_are_a_dense_model_with_zeros() {
    let support = Support::new(3, 3, CLUSTERS.to_vec());
    let tables = random_tables::<f64>(&support, 0, 5);
    let dense =
        Support::new(9, 1, CLUSTERS.iter().map(|&c| if c == NONE { c } else { 0 }).collect());
    let rows = dense.words().iter().flat_map(|&word| {
        (0..9).map(|state| emission(&support, &tables, word, state)).collect::<Vec<_>>()
    });
    let dense_tables = Tables { k: 9, emission: rows.collect(), ..tables.clone() };
    let (sentences, mut a, mut b) = (sentences(), Expected::default(), Expected::default());
    let batch = batch(&sentences, &[]);
    let log_probs = Engine::default().expectations(&support, &tables, &batch, &mut a);
    let dense_log_probs = Engine::default().expectations(&dense, &dense_tables, &batch, &mut b);
    assert_close(&log_probs, &dense_log_probs);
    assert_close(&a.start, &b.start);
    assert_close(&a.left, &b.left);
    assert_close(&transitions(&tables, &a), &transitions(&dense_tables, &b));
}

#[test]
fn sentences_too_unlikely_for_scales_count_the_same() {
    let support = Support::new(2, 3, CLUSTERS.to_vec());
    let tables = random_tables::<f64>(&support, 0, 6);
    let mut unlikely = tables.clone();
    // All paths of a sentence enter the states of a cluster equally often, so that the same factor for all
    // transitions into them changes no posterior.
    for row in unlikely.transition.chunks_exact_mut(6) {
        row[2..4].iter_mut().for_each(|a| *a *= 1e-40);
    }
    let (sentences, mut easy, mut hard) = (sentences(), Expected::default(), Expected::default());
    let batch = batch(&sentences, &[]);
    Engine::default().expectations(&support, &tables, &batch, &mut easy);
    let log_probs = Engine::default().expectations(&support, &unlikely, &batch, &mut hard);
    assert!(log_probs.iter().all(|log_prob| log_prob.is_finite()));
    assert!(!hard.counts.is_empty());
    assert_close(&easy.start, &hard.start);
    assert_close(&easy.emission, &hard.emission);
    assert_close(&transitions(&tables, &easy), &transitions(&unlikely, &hard));
}

#[test]
fn an_impossible_sentence_counts_nothing() {
    let support = Support::new(2, 3, CLUSTERS.to_vec());
    let tables = random_tables::<f32>(&support, 0, 7);
    let sentences = [vec![WordId(2), WordId(3), WordId(1)]];
    let mut expected = Expected::default();
    let batch = batch(&sentences, &[]);
    let log_probs = Engine::default().expectations(&support, &tables, &batch, &mut expected);
    assert_eq!(log_probs, [f64::NEG_INFINITY]);
    assert!(expected.slots.is_empty());
    assert!(expected.start.iter().chain(&expected.left).all(|&count| count == 0.0));
    assert!(expected.ratios.is_empty() && expected.counts.is_empty());
}

fn params(parameterization: Parameterization, constraint: Constraint, tying: Tying) -> HmmParams {
    let (n_states, n_clusters, dim) = (12, 3, 6);
    HmmParams {
        n_states,
        n_clusters,
        dim,
        parameterization,
        constraint,
        tying,
        ..HmmParams::default()
    }
}

fn support(params: &HmmParams) -> Support {
    match params.constraint {
        Constraint::Brown => Support::new(4, 3, CLUSTERS.to_vec()),
        _ => {
            let all = CLUSTERS.iter().map(|&c| if c == NONE { c } else { 0 }).collect();
            let mut support = Support::new(12, 1, all);
            if params.constraint == Constraint::Uniform {
                support.lists =
                    Some(crate::space::state_space::Lists::draw(params, support.n_slots()));
            }
            support
        }
    }
}

/// Checks the gradient of Σ ln p of a parameterization, with and without state dropout.
fn check_gradient(
    make: &dyn Fn() -> Box<dyn Parameters<f64>>,
    support: &Support,
    n_tags: usize,
    dropout: Option<Dropout>,
) {
    let sentences = sentences();
    let tags = if n_tags > 0 { tags(&sentences) } else { vec![] };
    let batch = batch(&sentences, &tags);
    for kept in [Kept::all(support), Kept::draw(support, 0.5, &mut Rng::new(3))] {
        let mut parameters = make();
        let mut weights = vec![0.0; parameters.layout().len()];
        parameters.init(&mut weights, &mut Rng::new(1));
        // Smaller logits make smoother functions, of which differences are better.
        weights.iter_mut().for_each(|weight| *weight *= 0.7);
        let (mut tables, mut expected) = (Tables::default(), Expected::default());
        parameters.forward(&weights, support, &kept, dropout, &mut tables);
        Engine::default().expectations(support, &tables, &batch, &mut expected);
        let mut gradient = vec![0.0; weights.len()];
        parameters.backward(&weights, support, &kept, &mut tables, &expected, &mut gradient);
        let mut log_prob = |weights: &[f64]| -> f64 {
            let mut tables = Tables::default();
            parameters.forward(weights, support, &kept, dropout, &mut tables);
            Engine::default().log_probs(support, &tables, &batch).iter().sum()
        };
        latens_nn::check::assert_gradient(&mut log_prob, &weights, &gradient, 1e-6);
    }
}

#[test]
fn gradients_of_networks_are_finite_differences() {
    use {Constraint as C, Parameterization as P, WordVectors as W};
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
        let support = support(&params);
        let spellings = ["<unk>", "<eos>", "the", "cat", "dogs", "ran", "x"];
        let make = || -> Box<dyn Parameters<f64>> {
            Box::new(Neural::new(&params, &support, &spellings, n_tags))
        };
        for support in both(&support) {
            check_gradient(&make, &support, n_tags, None);
            check_gradient(&make, &support, n_tags, Some(Dropout::new(0.2, 4)));
        }
    }
}

/// A support whose lists are gone through, and one where rows of all states are; one alone if it has no lists.
fn both(support: &Support) -> Vec<Support> {
    let with = |are_short: bool| {
        let mut support = support.clone();
        support.lists.iter_mut().for_each(|lists| lists.are_short = are_short);
        support
    };
    if support.lists.is_some() { vec![with(true), with(false)] } else { vec![support.clone()] }
}

#[test]
fn gradients_of_scalars_are_finite_differences() {
    for (constraint, n_tags) in [
        (Constraint::Brown, 0),
        (Constraint::Brown, 3),
        (Constraint::None, 0),
        (Constraint::Uniform, 3),
    ] {
        let support = support(&params(Parameterization::Scalar, constraint, Tying::Shared));
        let make = || -> Box<dyn Parameters<f64>> { Box::new(Scalar::new(&support, n_tags)) };
        for support in both(&support) {
            check_gradient(&make, &support, n_tags, None);
        }
    }
}

/// The gradient of Σ ln p of random sentences under fresh networks.
fn fresh_gradient<T: Real>(
    params: &HmmParams,
    support: &Support,
    n_words: usize,
) -> (f64, Vec<f64>) {
    let spellings = vec!["a"; n_words];
    let mut neural = Neural::<T>::new(params, support, &spellings, 0);
    let mut weights =
        vec![0.0f64; Neural::<f64>::new(params, support, &spellings, 0).layout().len()];
    Neural::<f64>::new(params, support, &spellings, 0).init(&mut weights, &mut Rng::new(1));
    let weights: Vec<T> = weights.iter().map(|&weight| T::of(weight)).collect();
    let mut rng = Rng::new(2);
    let mut word = || WordId((rng.uniform() * n_words as f64) as u32);
    let sentences: Vec<Vec<WordId>> = (0..40).map(|_| (0..25).map(|_| word()).collect()).collect();
    let (mut tables, mut expected) = (Tables::default(), Expected::default());
    let kept = Kept::all(support);
    neural.forward(&weights, support, &kept, None, &mut tables);
    let log_probs =
        Engine::default().expectations(support, &tables, &batch(&sentences, &[]), &mut expected);
    let mut gradient = vec![T::zero(); weights.len()];
    neural.backward(&weights, support, &kept, &mut tables, &expected, &mut gradient);
    (log_probs.iter().sum(), gradient.iter().map(|g| g.wide()).collect())
}

#[test]
fn single_precision_gives_the_gradient_of_double_precision() {
    for (n_states, n_clusters) in [(128, 1), (128, 2), (96, 8)] {
        let n_words = 300;
        let params = HmmParams { n_states, n_clusters, dim: 64, ..HmmParams::default() };
        let clusters = (0..n_words).map(|word| (word % n_clusters) as u32).collect();
        let support = Support::new(n_states / n_clusters, n_clusters, clusters);
        let (log_prob, narrow) = fresh_gradient::<f32>(&params, &support, n_words);
        let (expected, wide) = fresh_gradient::<f64>(&params, &support, n_words);
        assert!((log_prob - expected).abs() < 1e-5 * expected.abs(), "{log_prob} {expected}");
        let norm = wide.iter().map(|g| g * g).sum::<f64>().sqrt();
        let distance = narrow.iter().zip(&wide).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        assert!(distance < 1e-3 * norm, "{distance} of {norm}");
    }
}

#[test]
fn an_impossible_sentence_is_none_in_vectors_either() {
    // As many states as vectors are wide, and two clusters: a long way round, and no way.
    let support = Support::new(40, 2, vec![0, 1, 0, 1]);
    let mut tables = random_tables::<f32>(&support, 0, 8);
    for row in tables.transition.chunks_exact_mut(80).skip(40) {
        row[..40].fill(0.0);
    }
    let sentences = [vec![WordId(0), WordId(1)], vec![WordId(0), WordId(1), WordId(2)]];
    let log_probs = Engine::default().log_probs(&support, &tables, &batch(&sentences, &[]));
    assert!(log_probs[0].is_finite());
    assert_eq!(log_probs[1], f64::NEG_INFINITY);
    let mut expected = Expected::default();
    let again =
        Engine::default().expectations(&support, &tables, &batch(&sentences, &[]), &mut expected);
    assert_eq!(again[1], f64::NEG_INFINITY);
    assert_eq!(expected.slots.len(), 2);
}

#[test]
fn scores_need_no_table_of_transitions() {
    let params = params(Parameterization::Neural, Constraint::Brown, Tying::Shared);
    let factors = factors_score_as_a_table(&params, &support(&params));
    assert!(factors.lists.is_none());
}

/// Compares the probabilities of sentences; what they were made of comes back.
fn factors_score_as_a_table(params: &HmmParams, support: &Support) -> Tables<f64> {
    let mut neural = Neural::<f64>::new(params, support, &["a", "b", "c", "d", "e", "f", "g"], 0);
    let mut weights = vec![0.0; neural.layout().len()];
    neural.init(&mut weights, &mut Rng::new(1));
    let (mut table, mut factors) = (Tables::default(), Tables::default());
    neural.forward(&weights, support, &Kept::all(support), None, &mut table);
    neural.forward_to_factors(&weights, support, &Kept::all(support), None, &mut factors);
    factors.factors.as_mut().unwrap().sum_up();
    assert!(factors.transition.is_empty());
    let sentences = sentences();
    let log_probs = |tables| Engine::default().log_probs(support, tables, &batch(&sentences, &[]));
    assert_close(&log_probs(&factors), &log_probs(&table));
    factors
}
