//! Fitted models on the device against the CPU. Without a device the tests are skipped.

use super::batches::{batch, in_batches, is_sound};
use super::log_probs::masses;
use super::of_batch::OfBatch;
use super::on_device::OnDevice;
use super::paths::Traced;
use super::posteriors::Smoothed;
use crate::cuda::tests::{sentences, skip};
use crate::fitted::encoder::Features;
use crate::model::Hmm;
use crate::params::{Constraint, HmmParams, Memory, Parameterization, Tying, WordEmbedding};
use crate::space::clusters::NO_CLUSTER;
use crate::space::kept_states::KeptStates;
use crate::space::state_lists::StateLists;
use crate::space::state_set::StateSet;
use crate::space::state_space::StateSpace;
use crate::tables::probability_tables::Tables;
use crate::weights::mapping::TableMapping;
use crate::weights::scalar::Scalar;
use latens_corpus::{Lexicon, Preprocessing, Sentences, Vocab, VocabLimits, WordId};
use latens_cuda::Device;
use latens_math::Rng;
use latens_model::{FeatureRows, LanguageModel, Params, TokenEncoder};
use serde_json::Map;

/// The number of words. No state emits the last one.
const N_WORDS: usize = 61;

/// Whether there is a device.
fn has_device() -> bool {
    match Device::open() {
        Ok(_) => true,
        Err(error) if error.is_unavailable() => {
            skip(&error);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn lexicon() -> Lexicon {
    let special = ["<unk>", "<eos>"].map(str::to_owned).into_iter();
    let words: Vec<String> = special.chain((2..N_WORDS).map(|word| format!("w{word}"))).collect();
    let vocab = Vocab::from_parts(words, vec![1; N_WORDS]).unwrap();
    Lexicon::new(Preprocessing::default(), VocabLimits::default(), vocab)
}

/// A model with initial weights, those of probabilities times 3, so that posteriors differ.
fn hmm(params: &HmmParams, rng: &mut Rng) -> Hmm {
    let n_clusters = if params.constraint == Constraint::Brown { params.n_clusters } else { 1 };
    let mut clusters: Vec<u32> = (0..N_WORDS).map(|word| (word % n_clusters) as u32).collect();
    clusters[N_WORDS - 1] = NO_CLUSTER;
    let mut space = StateSpace::new(params.n_states / n_clusters, n_clusters, clusters);
    if params.constraint == Constraint::Uniform {
        space.lists = Some(StateLists::draw(params, space.n_slots()));
    }
    let (lexicon, kept) = (lexicon(), KeptStates::all(&space));
    let (params, mut tables) = (params.clone().validate().unwrap(), Tables::default());
    let weights = if params.parameterization == Parameterization::Scalar {
        let mut scalar: Scalar = Scalar::new(&space, 0);
        let mut weights = vec![0.0; TableMapping::<f32>::layout(&scalar).len()];
        TableMapping::<f32>::init(&scalar, &mut weights, rng);
        weights.iter_mut().for_each(|weight| *weight = *weight * 3.0 + rng.normal() as f32);
        scalar.forward(&weights, &space, &kept, None, &mut tables);
        None
    } else {
        let mut neural = Hmm::network_of(&params, &space, &lexicon, 0);
        let mut weights = vec![0.0; neural.layout().len()];
        neural.init(&mut weights, rng);
        neural.forward_to_factors(&weights, &space, &kept, None, &mut tables);
        Some(weights)
    };
    Hmm::new(params, lexicon, Map::new(), space, weights, tables, None)
}

/// Models of all kinds. Some have words with few of many states, which the device lists.
fn models() -> Vec<HmmParams> {
    use Constraint::{Brown, None, Uniform};
    use Parameterization::{Factored, Neural, Scalar};
    let mut models = vec![];
    for (parameterization, constraint, n_states, n_clusters) in [
        (Neural, Brown, 24, 3),
        (Neural, Brown, 256, 4),
        (Neural, Brown, 70, 7),
        (Neural, Brown, 1024, 2),
        (Neural, None, 64, 4),
        (Neural, Uniform, 64, 2),
        (Neural, Uniform, 64, 8),
        (Neural, Uniform, 64, 16),
        (Factored, Brown, 288, 6),
        (Factored, Uniform, 64, 2),
        (Factored, Uniform, 64, 8),
        (Scalar, Brown, 48, 3),
        (Scalar, None, 33, 3),
        (Scalar, Uniform, 60, 2),
        (Scalar, Uniform, 64, 16),
    ] {
        let params = HmmParams {
            parameterization,
            constraint,
            n_states,
            n_clusters,
            dim: 32,
            ..HmmParams::default()
        };
        models.push(params);
    }
    let base = models[0].clone();
    models.push(HmmParams { tying: Tying::Separate, ..base.clone() });
    models.push(HmmParams { word_vectors: WordEmbedding::Chars, ..base });
    models
}

/// Random sentences that end with `<eos>`, one of them longer than a batch, none with the word that no state emits.
fn text(rng: &mut Rng) -> Vec<Vec<WordId>> {
    let mut text = sentences(N_WORDS - 1, 40, rng);
    text.insert(7, (0..250).map(|word| WordId::from(word % (N_WORDS - 1))).collect());
    for sentence in &mut text {
        sentence.retain(|&word| word != WordId::EOS);
        sentence.push(WordId::EOS);
    }
    text
}

/// The same with words that no state emits, at all places.
fn text_with_gaps(rng: &mut Rng) -> Vec<Vec<WordId>> {
    let (mut text, gap) = (text(rng), WordId::from(N_WORDS - 1));
    for (idx, sentence) in text.iter_mut().enumerate().skip(3).step_by(3) {
        sentence.insert(idx % sentence.len(), gap);
    }
    text[0] = vec![gap, gap, WordId::EOS];
    text
}

fn slices(text: &[Vec<WordId>]) -> Vec<&[WordId]> {
    text.iter().map(Vec::as_slice).collect()
}

fn as_sentences(text: &[Vec<WordId>]) -> Sentences {
    Sentences::from_words(text.iter().map(|words| words[..words.len() - 1].to_vec()))
}

fn assert_near_all(what: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (&a, &b)) in got.iter().zip(expected).enumerate() {
        let is_near = a == b || (a - b).abs() <= tolerance * b.abs().max(1.0);
        assert!(is_near, "{what}: {a} and {b} at {i}");
    }
}

fn compare_rows(what: &str, got: &[FeatureRows], expected: &[FeatureRows]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let wide = |rows: &FeatureRows| rows.values().iter().map(|&p| p.into()).collect::<Vec<f64>>();
    for (got, expected) in got.iter().zip(expected) {
        assert_eq!(got.offsets(), expected.offsets(), "{what}");
        assert_eq!(got.columns(), expected.columns(), "{what}");
        assert_near_all(what, &wide(got), &wide(expected), 1e-4);
    }
}

/// Compares posteriors, and those of clusters, with the CPU.
fn compare_posteriors(hmm: &Hmm, sentences: &[&[WordId]]) {
    for features in [Features::Posterior, Features::ClusterPosterior] {
        let encoder = hmm.encoder(features);
        let mut on_gpu = encoder.on_gpu().unwrap();
        let what = format!("{features:?}, {:?}", hmm.params);
        let (got, expected) =
            (on_gpu.encode_all(sentences).unwrap(), encoder.encode_all(sentences));
        compare_rows(&what, &got, &expected);
        // The same again, with what the first call has left on the device.
        let again = on_gpu.encode_all(&sentences[..sentences.len() / 2]).unwrap();
        compare_rows(&what, &again, &expected[..sentences.len() / 2]);
    }
}

#[test]
fn posteriors_agree_with_the_cpu() {
    if !has_device() {
        return;
    }
    for (seed, params) in models().iter().enumerate() {
        let mut rng = Rng::new(100 + seed as u64);
        let hmm = hmm(params, &mut rng);
        let mut text = text_with_gaps(&mut rng);
        text.insert(5, vec![]);
        compare_posteriors(&hmm, &slices(&text));
        compare_posteriors(&hmm, &[]);
    }
}

/// ln of the probability of a sentence together with a path.
fn log_weight(hmm: &Hmm, words: &[WordId], path: &[u32]) -> f64 {
    let mut before: Option<u32> = None;
    let of_token = |(&word, &state): (&WordId, &u32)| {
        let (states, local) = hmm.emitters(word).unwrap();
        let place = states.list(hmm.space.k).iter().position(|&other| other == state).unwrap();
        let p = match before.replace(state) {
            None => hmm.start[state as usize],
            Some(from) => {
                let set = |state| StateSet::List(std::slice::from_ref(state));
                hmm.blocks.pairs(&hmm.space, set(&from), set(&state))[0]
            }
        };
        f64::from(p).ln() + f64::from(local[place]).ln()
    };
    words.iter().zip(path).map(of_token).sum()
}

/// Compares most likely paths, and their clusters, with the CPU. Paths may differ where both are equally likely.
fn compare_paths(hmm: &Hmm, sentences: &[&[WordId]]) {
    let what = format!("{:?}", hmm.params);
    let [got, expected] = [Features::State, Features::Cluster].map(|features| {
        let encoder = hmm.encoder(features);
        let mut on_gpu = encoder.on_gpu().unwrap();
        let got = on_gpu.encode_all(sentences).unwrap();
        // The same again, with what the first call has left on the device.
        let half = sentences.len() / 2;
        assert_eq!(on_gpu.encode_all(&sentences[..half]).unwrap(), got[..half], "{what}");
        (got, encoder.encode_all(sentences))
    });
    let ((states, on_cpu), (clusters, clusters_on_cpu)) = (got, expected);
    let mut n_equal = 0;
    for (at, words) in sentences.iter().enumerate() {
        let (path, expected) = (states[at].columns(), on_cpu[at].columns());
        assert_eq!(states[at].offsets(), on_cpu[at].offsets(), "{what}");
        assert_eq!(states[at].values(), on_cpu[at].values(), "{what}");
        let of_path: Vec<u32> = path.iter().map(|state| state / hmm.space.k as u32).collect();
        assert_eq!(clusters[at].columns(), of_path, "{what}");
        if path == expected {
            assert_eq!(clusters[at], clusters_on_cpu[at], "{what}");
            n_equal += 1;
            continue;
        }
        let (a, b) = (log_weight(hmm, words, path), log_weight(hmm, words, expected));
        assert!((a - b).abs() <= 1e-5 * b.abs(), "{what}: {a} and {b}");
    }
    assert!(10 * n_equal >= 9 * sentences.len(), "{what}: {n_equal} equal paths");
}

#[test]
fn paths_agree_with_the_cpu() {
    if !has_device() {
        return;
    }
    for (seed, params) in models().iter().enumerate() {
        let mut rng = Rng::new(400 + seed as u64);
        let hmm = hmm(params, &mut rng);
        let mut text = text_with_gaps(&mut rng);
        text.insert(5, vec![]);
        compare_paths(&hmm, &slices(&text));
        compare_paths(&hmm, &[]);
    }
}

/// The device raises the start in state 1, which is impossible, and then finds it the most likely one.
#[test]
fn a_path_of_raised_probabilities_is_left_to_the_cpu() {
    let words = ["<unk>", "<eos>", "a", "b"];
    let vocab = Vocab::from_parts(words, vec![1; words.len()]).unwrap();
    let lexicon = Lexicon::new(Preprocessing::default(), VocabLimits::default(), vocab);
    let emission = [0.0, 0.5, 1e-6, 0.5 - 1e-6, 0.0, 0.5, 0.5, 0.0];
    let (start, transition) = (vec![1.0, 0.0], [1.0, 0.0, 0.0, 1.0]);
    let hmm = Hmm::from_probabilities(lexicon, start, &transition, &emission).unwrap();
    let mut words = vec![WordId::from(2usize); 6];
    words.push(WordId::EOS);
    let encoder = hmm.encoder(Features::State);
    let on_cpu = encoder.encode_all(&[&words]);
    assert_eq!(on_cpu[0].columns(), [0; 7]);
    if !has_device() {
        return;
    }
    assert_eq!(encoder.on_gpu().unwrap().encode_all(&[&words]).unwrap(), on_cpu);
}

#[test]
fn log_probs_agree_with_the_cpu() {
    if !has_device() {
        return;
    }
    for (seed, params) in models().iter().enumerate() {
        for memory in [Memory::Reset, Memory::Carry] {
            let mut rng = Rng::new(200 + seed as u64);
            let hmm = hmm(&HmmParams { memory, ..params.clone() }, &mut rng);
            let what = format!("{:?}", hmm.params);
            let (possible, gaps) = (text(&mut rng), text_with_gaps(&mut rng));
            for text in [&possible, &gaps].map(|text| as_sentences(text)) {
                let expected = hmm.token_log_probs(text.tokens());
                let got = hmm.token_log_probs_on_gpu(&text).unwrap();
                assert_near_all(&what, &got, &expected, 1e-4);
            }
        }
    }
}

/// Otherwise the CPU would compute what the device gets wrong.
#[test]
fn the_device_computes_ordinary_sentences_itself() {
    if !has_device() {
        return;
    }
    for (seed, params) in models().iter().enumerate() {
        let mut rng = Rng::new(300 + seed as u64);
        let hmm = hmm(params, &mut rng);
        let text = text(&mut rng);
        let sentences = slices(&text);
        let mut scored = OnDevice::open(&hmm).unwrap();
        let max_tokens = scored.max_tokens();
        let batches = in_batches((0..sentences.len() as u32).collect(), &sentences, max_tokens);
        assert!(batches.len() > 1, "{max_tokens} tokens at a time, {params:?}");
        for idxs in batches {
            let batch = batch(&idxs, &sentences);
            let (of_forward, _) = masses(&mut scored, &batch).unwrap();
            let of_both = Smoothed::compute(&mut scored, &batch, &[]).unwrap().masses;
            let of_paths = Traced::compute(&mut scored, &batch, &[]).unwrap().scales;
            assert_eq!(of_paths.len(), batch.n_tokens());
            assert!(of_paths.iter().all(|&scale| is_sound(scale.into())), "{params:?}");
            assert_eq!((of_forward.len(), of_both.len()), (batch.n_tokens(), batch.n_tokens()));
            for mass in of_forward.iter().chain(&of_both) {
                assert!(is_sound(*mass) && *mass < 1.0 + 1e-5, "{mass}, {params:?}");
            }
        }
    }
}

/// The device raises zeros to its lower bounds, and such sentences are left to the CPU.
#[test]
fn impossible_sentences_are_found() {
    let words = ["<unk>", "<eos>", "a", "b", "c"];
    let vocab = Vocab::from_parts(words, vec![1; words.len()]).unwrap();
    let lexicon = Lexicon::new(Preprocessing::default(), VocabLimits::default(), vocab);
    // State 0 emits `a` and leads to states 1 and 2; only state 2 leads to the end, which state 3 emits.
    let transition =
        [0.0, 0.5, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5, 0.25, 0.25, 0.25, 0.25];
    let emission = [
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 0.5, 0.5],
        [0.0, 1.0, 0.0, 0.0, 0.0],
    ]
    .concat();
    let start = vec![0.5, 0.25, 0.25, 0.0];
    let hmm = Hmm::from_probabilities(lexicon, start, &transition, &emission).unwrap();
    let (unk, eos, [a, b, c]) = (WordId::UNK, WordId::EOS, [2usize, 3, 4].map(WordId::from));
    let text = [
        vec![a, b, eos],
        vec![a, a, eos],
        vec![c, a, c, eos],
        vec![a, unk, eos],
        vec![b, b, eos],
        vec![eos],
        vec![b, eos],
    ];
    let scored = as_sentences(&text);
    let expected = hmm.token_log_probs(scored.tokens());
    assert!(expected.contains(&f64::NEG_INFINITY));
    let rows = hmm.encoder(Features::Posterior).encode_all(&slices(&text));
    let is_empty = |rows: &FeatureRows| rows.values().is_empty();
    assert_eq!(rows.iter().filter(|rows| is_empty(rows)).count(), 4);
    if !has_device() {
        return;
    }
    assert_near_all("ln p", &hmm.token_log_probs_on_gpu(&scored).unwrap(), &expected, 1e-4);
    compare_posteriors(&hmm, &slices(&text));
    compare_paths(&hmm, &slices(&text));
}
