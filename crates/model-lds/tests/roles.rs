//! The checks of the roles of the model, and of invalid input.

use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits, WordId};
use latens_counts::{Boundary, Budget, LagCounts};
use latens_model::{
    Checkpoint, Device, FeatureRows, Fit, FitError, Model, Params, TokenEncoder, Watch,
};
use latens_model_lds::{Features, HiddenState, Lds, LdsInputs, LdsParams};
use latens_testkit::two_class_corpus;
use std::ops::ControlFlow;

fn params() -> LdsParams {
    Lds::params().dim(4).n_iterations(4).pseudo_counts(5.0)
}

fn toy() -> (Lds, Corpus) {
    let corpus = two_class_corpus(400, 1);
    (params().fit(&corpus).unwrap(), corpus)
}

fn fit_from(
    checkpoint: Option<&Checkpoint>,
    corpus: &Corpus,
    valid: Option<&Sentences>,
    watch: &mut Watch,
) -> Result<Lds, FitError> {
    let mut builder = params().watch(|progress| watch(progress));
    if let Some(checkpoint) = checkpoint {
        builder = builder.checkpoint(checkpoint);
    }
    if let Some(valid) = valid {
        builder = builder.valid(valid);
    }
    builder.fit(corpus)
}

/// A corpus of one file with the vocabulary of its words.
fn corpus(sentences: &[&str]) -> Corpus {
    let limits = VocabLimits::default();
    let mut counts = std::collections::BTreeMap::from([("<eos>", sentences.len() as u64)]);
    let words = sentences.iter().flat_map(|sentence| sentence.split_whitespace());
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    let vocab = Vocab::from_counts(counts, &limits);
    let ids = |sentence: &&str| -> Vec<WordId> {
        sentence.split_whitespace().map(|word| vocab.id(word)).collect()
    };
    let sentences = Sentences::from_words(sentences.iter().map(ids));
    Corpus { lexicon: Lexicon::new(Preprocessing::default(), limits, vocab), sentences }
}

/// The message of the error that fitting must fail with.
fn fit_error(params: LdsParams, corpus: &Corpus) -> String {
    params.fit(corpus).unwrap_err().to_string()
}

#[test]
fn every_kind_of_features_is_a_valid_token_encoder() {
    let (lds, corpus) = toy();
    latens_testkit::check_token_encoder(&lds, &corpus.sentences);
    for (_, features) in Features::ALL {
        latens_testkit::check_token_encoder(&lds.encoder(features), &corpus.sentences);
    }
}

#[test]
fn saving_and_opening_is_the_identity_and_damage_is_detected() {
    let (lds, corpus) = toy();
    let same = |a: &Lds, b: &Lds| {
        assert_eq!(a.transition(), b.transition());
        assert_eq!(a.type_vectors(), b.type_vectors());
        let [mut rows, mut others] = [FeatureRows::new(), FeatureRows::new()];
        a.encode(corpus.sentences.get(3), &mut rows);
        b.encode(corpus.sentences.get(3), &mut others);
        assert_eq!(rows, others);
    };
    latens_testkit::check_file_round_trip(
        &lds,
        |m, path| m.save(path),
        |path| Lds::open(path),
        same,
    );
}

#[test]
fn training_resumes_from_any_checkpoint_and_stops_on_request() {
    let (corpus, valid) = (two_class_corpus(400, 1), two_class_corpus(100, 2).sentences);
    for valid in [None, Some(&valid)] {
        latens_testkit::check_resume(
            |watch| fit_from(None, &corpus, valid, watch),
            |checkpoint, watch| fit_from(Some(checkpoint), &corpus, valid, watch),
            |a, b| {
                assert_eq!(a.transition(), b.transition());
                assert_eq!(a.type_vectors(), b.type_vectors());
                assert_eq!(a.facts()["gain"], b.facts()["gain"]);
                assert_eq!(a.facts()["best_iteration"], b.facts()["best_iteration"]);
            },
        );
    }
}

#[test]
fn a_checkpoint_of_other_counts_is_rejected() {
    let mut checkpoint = None;
    let stopped = params()
        .watch(|progress| {
            checkpoint = progress.checkpoint.map(|make| make().unwrap());
            if checkpoint.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .fit(&two_class_corpus(400, 1));
    assert!(matches!(stopped, Err(FitError::Interrupted)));
    let checkpoint = checkpoint.unwrap();
    let rejected = params().builder().checkpoint(&checkpoint).fit(&two_class_corpus(400, 2));
    assert!(matches!(rejected, Err(FitError::Checkpoint(_))));
}

#[test]
fn the_order_of_merged_counts_does_not_matter() {
    let corpus = two_class_corpus(400, 1);
    let part = |range| {
        let part =
            Corpus { lexicon: corpus.lexicon.clone(), sentences: corpus.sentences.slice(range) };
        let go_on = &mut |_| ControlFlow::Continue(());
        LagCounts::of(&part, 7, Boundary::Stream, &Budget::default(), go_on).unwrap()
    };
    let merged = |parts: [LagCounts; 2]| LagCounts::merge(&parts, &Budget::default()).unwrap();
    let fit = |counts| {
        let inputs = LdsInputs::default().take_counts(counts);
        params().with(inputs).fit(&corpus).unwrap().transition()
    };
    let [a, b] = [0..150, 150..400].map(part);
    assert_eq!(fit(merged([a.clone(), b.clone()])), fit(merged([b, a])));
}

#[test]
fn features_have_unit_length_and_depend_on_the_right_context() {
    let (lds, corpus) = toy();
    let vocab = &corpus.lexicon.vocab;
    let [a, b] = ["a0", "b0"].map(|word| vocab.id(word));
    let row = |features, sentence: &[WordId], at: usize| {
        let mut rows = FeatureRows::new();
        lds.encoder(features).encode(sentence, &mut rows);
        rows.row(at).1.to_vec()
    };
    for (_, features) in Features::ALL {
        let row = row(features, &[a, b, a], 1);
        let norm: f32 = row.iter().map(|x| x * x).sum::<f32>();
        let expected = if features == Features::TypeAndSmoothed { 2.0 } else { 1.0 };
        assert!((norm - expected).abs() < 1e-5, "{norm}");
    }
    let [alone, after_a] =
        [&[b][..], &[a, b]].map(|words| row(Features::Type, words, words.len() - 1));
    assert_eq!(alone, after_a, "a word vector must not depend on the context");
    assert_ne!(row(Features::Filtered, &[a, b], 1), row(Features::Filtered, &[b, b], 1));
    assert_eq!(row(Features::Filtered, &[a, b], 0), row(Features::Filtered, &[a, a], 0));
    assert_ne!(row(Features::Smoothed, &[a, b], 0), row(Features::Smoothed, &[a, a], 0));
}

#[test]
fn words_of_the_same_class_have_similar_vectors() {
    let (lds, corpus) = toy();
    let (vectors, vocab) = (lds.type_vectors(), &corpus.lexicon.vocab);
    let vector = |word: &str| vectors.row(vocab.id(word).index());
    let cosine =
        |a: &str, b: &str| -> f32 { vector(a).iter().zip(vector(b)).map(|(a, b)| a * b).sum() };
    assert!(cosine("a0", "a1") > cosine("a0", "b1") && cosine("b0", "b1") > cosine("b0", "a1"));
    assert!(vector("<unk>").iter().all(|&x| x == 0.0), "`<unk>` was never seen");
}

#[test]
fn words_of_the_other_class_become_more_likely_to_follow() {
    let (lds, corpus) = toy();
    let vocab = &corpus.lexicon.vocab;
    let probs = lds.next_word_probs(&[vocab.id("a0")]);
    assert!((probs.iter().sum::<f64>() - 1.0).abs() < 1e-12 && probs.iter().all(|&p| p > 0.0));
    let usual = lds.next_word_probs(&[]);
    let change = |word: &str| probs[vocab.id(word).index()] / usual[vocab.id(word).index()];
    assert!(change("b0") > 1.0 && change("a1") < 1.0, "{} {}", change("b0"), change("a1"));
}

#[test]
fn both_kinds_of_recurrent_networks_have_the_same_output() {
    let (lds, corpus) = toy();
    let sentence = &corpus.sentences.iter().find(|sentence| sentence.len() > 6).unwrap()[..6];
    // Linear units: h ← R h + input(w).
    let hidden = |state| {
        let weights = lds.rnn_weights(state);
        let dim = weights.dim;
        let mut h = vec![0.0; dim];
        for word in sentence {
            let input = &weights.input[word.index() * dim..][..dim];
            let row =
                |i: usize| weights.recurrent[i * dim..][..dim].iter().zip(&h).map(|(r, h)| r * h);
            h = (0..dim).map(|i| row(i).sum::<f32>() + input[i]).collect();
        }
        let output = |word: usize| {
            weights.output[word * dim..][..dim].iter().zip(&h).map(|(o, h)| o * h).sum::<f32>()
        };
        (0..weights.bias.len()).map(output).collect::<Vec<f32>>()
    };
    let (predicted, filtered) = (hidden(HiddenState::Predicted), hidden(HiddenState::Filtered));
    for (a, b) in predicted.iter().zip(filtered) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
    let bias: f64 =
        lds.rnn_weights(HiddenState::Filtered).bias.iter().map(|b| f64::from(*b).exp()).sum();
    assert!((bias - 1.0).abs() < 1e-5);
}

#[test]
fn singular_pairs_lead_from_each_class_to_the_next() {
    // Words of three classes in turn: a, b, c, a, …. The transition rotates every direction of the state by one class,
    // so the words of a right singular vector are of one class and those of the left singular vector of the next one.
    let mut rng = latens_math::Rng::new(1);
    let mut word = |class: char| format!("{class}{}", (rng.uniform() * 4.0) as usize);
    let sentences: Vec<String> = (0..200)
        .map(|_| "abc".repeat(10).chars().map(&mut word).collect::<Vec<_>>().join(" "))
        .collect();
    let corpus = corpus(&sentences.iter().map(String::as_str).collect::<Vec<_>>());
    let lds = params().dim(2).fit(&corpus).unwrap();
    let pairs = lds.singular_pairs(4, 3, 1).unwrap();
    assert_eq!(pairs.len(), 2);
    assert_eq!(lds.singular_values().unwrap(), [pairs[0].strength, pairs[1].strength]);
    assert!(pairs[0].strength >= pairs[1].strength && pairs[0].strength < 1.0);
    let class = |words: &[(WordId, f64)]| -> Vec<char> {
        let letter = |&(word, _): &(WordId, f64)| corpus.lexicon.vocab.word(word).chars().next();
        words.iter().filter_map(letter).collect()
    };
    for pair in &pairs {
        assert!(pair.strength > 0.8, "{}", pair.strength);
        let (from, to) = (class(&pair.from), class(&pair.to));
        let next = [('a', 'b'), ('b', 'c'), ('c', 'a')].into_iter().find(|next| next.0 == from[0]);
        assert_eq!(from, [from[0]; 3], "expected words of one class");
        assert_eq!(to, [next.unwrap().1; 3], "expected words of the next class");
    }
}

#[test]
fn top_words_are_the_greatest_entries_of_the_observation_matrix() {
    let (lds, corpus) = toy();
    let (words, vocab) = (lds.observation(), &corpus.lexicon.vocab);
    for dimension in 0..4 {
        let weight = |word: &str| words.row(vocab.id(word).index())[dimension];
        let all = lds.top_words(dimension, usize::MAX);
        assert_eq!(all.len(), vocab.len() - 2, "all words but `<unk>` and `<eos>`");
        assert!(all.iter().all(|&(word, found)| found == weight(word)));
        assert!(all.is_sorted_by(|a, b| a.1.abs() >= b.1.abs()));
        assert_eq!(lds.top_words(dimension, 3), all[..3]);
    }
    // The first dimension separates the classes: its words of one class have the same sign.
    for (word, weight) in lds.top_words(0, 4) {
        let other = lds.top_words(0, 4).into_iter().find(|other| other.0[..1] == word[..1]);
        assert!(other.unwrap().1 * weight > 0.0, "{word}");
    }
}

#[test]
fn sampled_states_have_the_covariances_of_the_model() {
    const N: usize = 200_000;
    let (lds, _) = toy();
    let (dim, path, a) = (lds.dim(), lds.sample_states(N, 1).unwrap(), lds.transition());
    assert_eq!((path.n_rows(), path.n_columns()), (N, dim));
    // Cov(x_t, x_t) = I and Cov(x_{t+1}, x_t) = A. Successive states are correlated, which widens the sampling error.
    for i in 0..dim {
        for j in 0..dim {
            let mean = |lag: usize| {
                let products = (lag..N).map(|t| path.row(t)[i] * path.row(t - lag)[j]);
                products.sum::<f64>() / (N - lag) as f64
            };
            assert!((mean(0) - f64::from(u8::from(i == j))).abs() < 0.03, "{i} {j}: {}", mean(0));
            assert!((mean(1) - a.row(i)[j]).abs() < 0.03, "{i} {j}: {}", mean(1));
        }
    }
    // The first state is drawn from the same distribution.
    let first = (0..20_000).map(|seed| lds.sample_states(1, seed).unwrap().row(0)[0]);
    let variance = first.map(|x| x * x).sum::<f64>() / 20_000.0;
    assert!((variance - 1.0).abs() < 0.05, "{variance}");
}

#[test]
fn the_same_seed_gives_the_same_states_and_a_shorter_path_is_a_prefix() {
    let (lds, _) = toy();
    let path = lds.sample_states(50, 7).unwrap();
    assert_eq!(path, lds.sample_states(50, 7).unwrap());
    assert_ne!(path, lds.sample_states(50, 8).unwrap());
    let prefix = lds.sample_states(20, 7).unwrap();
    assert!((0..20).all(|t| prefix.row(t) == path.row(t)));
    assert_eq!(lds.sample_states(0, 7).unwrap().n_rows(), 0);
}

#[test]
#[should_panic(expected = "dimension 4 is out of range: there are 4")]
fn top_words_of_a_dimension_that_does_not_exist_panic() {
    toy().0.top_words(4, 1);
}

#[test]
fn held_out_text_decides_when_to_stop() {
    // Little text and many iterations: the gain on the training text keeps growing, but not on held-out text.
    let (corpus, valid) = (two_class_corpus(40, 1), two_class_corpus(400, 2).sentences);
    let mut seen = Vec::new();
    let params = params().dim(12).n_iterations(40).pseudo_counts(1.0);
    let fitted = params.valid(&valid).watch(|progress| {
        seen.extend(progress.metrics.iter().find(|(name, _)| *name == "valid_gain").map(|m| m.1));
        ControlFlow::Continue(())
    });
    let lds = fitted.fit(&corpus).unwrap();
    let best = seen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert!(seen.len() < 41, "{seen:?}");
    assert_eq!(lds.facts()["valid_gain"].as_f64(), Some(best));
    assert!((lds.gain(&valid) - best).abs() < 1e-4 * best.abs(), "rotation changed the model");
    let at = lds.facts()["best_iteration"].as_u64().unwrap() as usize;
    assert_eq!(seen[at], best);
    assert_eq!(seen.len(), at + 3, "training stops two iterations after the best one");
}

#[test]
fn too_little_text_is_rejected() {
    let one_type = corpus(&["a a a a a a a a a a a a"]);
    let message = fit_error(params(), &one_type);
    assert!(message.contains("at least 3 distinct words, has 2"), "{message}");
    let short = corpus(&["a b c d e"]);
    let message = fit_error(params(), &short);
    assert!(message.contains("pairs of words 7 tokens apart, has none"), "{message}");
}

#[test]
fn more_dimensions_than_words_are_rejected() {
    let corpus = two_class_corpus(100, 1);
    let message = fit_error(params().dim(400), &corpus);
    assert!(message.contains("`dim` must be at most 20, one less than"), "{message}");
}

/// The text contains only two words and the end of sentence, of a vocabulary of 30. The unseen words are all alike, and
/// centering removes one dimension, which leaves rank 3 per lag, times four blocks in the initial model.
#[test]
fn more_dimensions_than_the_rank_of_the_covariances_are_rejected() {
    let mut rng = latens_math::Rng::new(3);
    let sentence = |_| (0..9).map(|_| WordId(if rng.uniform() < 0.4 { 2 } else { 3 })).collect();
    let sentences = Sentences::from_words((0..300).map(sentence).collect::<Vec<Vec<WordId>>>());
    let names: Vec<String> = (0..28).map(|i| format!("w{i}")).collect();
    let words = ["<unk>", "<eos>"].into_iter().chain(names.iter().map(String::as_str));
    let mut counts = vec![0; 30];
    sentences.tokens().iter().for_each(|word| counts[word.index()] += 1);
    let vocab = Vocab::from_parts(words, counts).unwrap();
    let lexicon = Lexicon::new(Preprocessing::default(), VocabLimits::default(), vocab);
    let message = fit_error(params().dim(16), &Corpus { lexicon, sentences });
    let rank = message.split("at most ").nth(1).and_then(|rest| rest.split(',').next());
    let rank: usize = rank.and_then(|rank| rank.parse().ok()).unwrap_or(usize::MAX);
    assert!(rank <= 4 * 3, "{message}");
}

#[test]
fn zero_pseudo_counts_are_raised_with_a_warning_and_give_finite_results() {
    let corpus = two_class_corpus(60, 1);
    let lds = params().pseudo_counts(0.0).n_iterations(10).fit(&corpus).unwrap();
    assert!(lds.warnings()[0].contains("1 was used"), "{:?}", lds.warnings());
    assert_eq!(lds.facts()["pseudo_counts"].as_f64(), Some(1.0));
    assert!(lds.facts()["gain"].as_f64().unwrap().is_finite());
    assert!(lds.type_vectors().as_slice().iter().all(|x| x.is_finite()));
}

#[test]
fn a_deterministic_text_gives_a_warning() {
    // Each word determines the next one; only the pseudo-counts add uncertainty.
    let sentences = vec!["a b c d e f g h i j"; 200];
    let params = params().dim(3).n_iterations(30).pseudo_counts(1.0);
    let lds = params.fit(&corpus(&sentences)).unwrap();
    assert!(
        lds.warnings().iter().any(|warning| warning.contains("which the model overfits")),
        "{:?}",
        lds.warnings()
    );
    assert!(lds.type_vectors().as_slice().iter().all(|x| x.is_finite()));
}

#[test]
fn counts_that_do_not_match_the_parameters_are_rejected() {
    let corpus = two_class_corpus(100, 1);
    let counts = |n_lags, boundary| {
        LagCounts::of(&corpus, n_lags, boundary, &Budget::default(), &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap()
    };
    let fit_error = |counts: &LagCounts, corpus: &Corpus| {
        let rejected = params().with(LdsInputs::default().counts(counts)).fit(corpus);
        rejected.unwrap_err().to_string()
    };
    let message = fit_error(&counts(7, Boundary::Sentence), &corpus);
    assert!(message.contains("`boundary` must be sentence"), "{message}");
    let message = fit_error(&counts(3, Boundary::Stream), &corpus);
    assert!(message.contains("`lags` must be at most 3"), "{message}");
    let message = fit_error(&counts(7, Boundary::Stream), &self::corpus(&["other words"]));
    assert!(message.contains("`counts` must be counts with the vocabulary"), "{message}");
}

#[test]
fn given_counts_give_the_model_of_the_text() {
    let (lds, corpus) = toy();
    let go_on = &mut |_| ControlFlow::Continue(());
    let counts = LagCounts::of(&corpus, 7, Boundary::Stream, &Budget::default(), go_on).unwrap();
    let without_text = Corpus {
        lexicon: corpus.lexicon.clone(),
        sentences: Sentences::from_words(Vec::<Vec<WordId>>::new()),
    };
    let borrowed = params().with(LdsInputs::default().counts(&counts)).fit(&without_text).unwrap();
    assert_eq!(borrowed.transition(), lds.transition());
    let taken = params().with(LdsInputs::default().take_counts(counts)).fit(&without_text).unwrap();
    assert_eq!(taken.transition(), lds.transition());
}

#[test]
fn training_on_a_gpu_is_rejected() {
    let rejected = params().device(Device::Cuda).fit(&two_class_corpus(100, 1));
    assert!(matches!(rejected, Err(FitError::Device { .. })));
}

#[test]
fn embed_agrees_with_the_default_encoder() {
    let (lds, corpus) = toy();
    let mut words = corpus.lexicon.ids("a0 b1 unseen a2");
    words.push(WordId::EOS);
    let mut rows = FeatureRows::new();
    Model::encoder(&lds, "type+smoothed").unwrap().encode(&words, &mut rows);
    let embedded = lds.embed("a0 b1 unseen a2");
    assert_eq!((embedded.n_rows(), embedded.n_columns()), (4, 2 * lds.dim()));
    assert!(embedded.rows().enumerate().all(|(i, row)| row == rows.row(i).1));
    assert_eq!(lds.embed("").n_rows(), 0);
}

#[test]
fn the_observation_matrix_reproduces_the_covariances_of_adjacent_words() {
    // In the canonical gauge, the model's covariance of two adjacent words is C A Cᵀ.
    let (lds, corpus) = toy();
    let (a, c, vocab) = (lds.transition(), lds.observation(), &corpus.lexicon.vocab);
    assert_eq!((c.n_rows(), c.n_columns()), (vocab.len(), lds.dim()));
    let [later, same] = ["b0", "a1"].map(|word| c.row(vocab.id(word).index()).to_vec());
    let earlier = c.row(vocab.id("a0").index());
    let covariance = |word: &[f32]| -> f64 {
        let term = |i: usize, j: usize| f64::from(word[i]) * a[(i, j)] * f64::from(earlier[j]);
        (0..4).flat_map(|i| (0..4).map(move |j| (i, j))).map(|(i, j)| term(i, j)).sum()
    };
    assert!(covariance(&later) > 0.0 && covariance(&same) < 0.0);
}

#[test]
fn parameters_out_of_range_are_rejected() {
    let bad = [
        params().dim(0),
        params().lags(0),
        params().ssid_lags(1),
        params().pseudo_counts(-1.0),
        params().pseudo_counts(f64::NAN),
    ];
    assert!(bad.into_iter().all(|params| params.validate().is_err()));
}

#[test]
fn the_model_offers_encoders_and_word_vectors() {
    let (lds, corpus) = toy();
    assert_eq!((lds.kind(), lds.description()), ("lds", "a linear dynamical system"));
    assert_eq!(lds.feature_kinds(), ["type+smoothed", "type", "filtered", "smoothed"]);
    for kind in lds.feature_kinds() {
        let encoder = Model::encoder(&lds, kind).unwrap();
        latens_testkit::check_token_encoder(&encoder.as_ref(), &corpus.sentences);
    }
    assert!(Model::encoder(&lds, "paths").is_none());
    let vectors = Model::word_vectors(&lds).unwrap();
    assert_eq!((vectors.n_words(), vectors.dim()), (corpus.lexicon.vocab.len(), lds.dim()));
}
