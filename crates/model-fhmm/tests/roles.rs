//! The tests shared by all models, and properties of factorial HMMs.

use latens_corpus::{Corpus, Lexicon, Sentences, Vocab, VocabLimits, WordId};
use latens_model::{FeatureRows, Fit, FitError, Model, Params, TokenEncoder, Valid};
use latens_model_fhmm::{
    BaseMeasure, Features, Fhmm, FhmmParams, Inference, MStep, Unknown, frequent_sentences,
};
use latens_testkit::{
    check_file_round_trip, check_resume, check_token_encoder, two_class_corpus, zipfian_corpus,
};
use std::ops::ControlFlow;

fn small() -> FhmmParams {
    Fhmm::params().n_layers(2).n_states(3).epochs(2).batch_sentences(15).pseudo_tokens(5.0)
}

/// Parameters that cover every kind of inference, M-step and unknown words.
fn kinds() -> Vec<FhmmParams> {
    vec![
        small(),
        small().n_layers(1).unknown(Unknown::Unk),
        small().n_layers(3).inference(Inference::Tilted).restarts(2),
        small().inference(Inference::Jensen).base_measure(BaseMeasure::Uniform),
        small().inference(Inference::Exact).unknown(Unknown::Missing),
        small().m_step(MStep::Layers),
        small().m_step(MStep::Lbfgs).lbfgs_iterations(5),
        // Most batches update their own words only.
        small().batch_sentences(2),
        // More joint states than a table can hold.
        small().n_layers(21).n_states(2).epochs(1),
    ]
}

fn fit(params: &FhmmParams, corpus: &Corpus) -> Fhmm {
    let valid = corpus.sentences.slice(0..corpus.sentences.len() / 3);
    params.clone().valid(&valid).fit(corpus).unwrap()
}

/// Asserts that two models are bitwise equal in everything observable.
fn assert_same(a: &Fhmm, b: &Fhmm) {
    assert_eq!(a.fitted_with(), b.fitted_with());
    assert_eq!(a.n_words(), b.n_words());
    for name in ["train_bound", "valid_bound", "sweeps", "epochs", "tokens", "warnings"] {
        assert_eq!(a.facts().get(name), b.facts().get(name), "{name}");
    }
    let n = a.lexicon().vocab.len() as u32;
    let all: Vec<WordId> = (0..n).map(WordId).collect();
    for sentence in [&all[..], &all[2..5], &[WordId::UNK, WordId::EOS]] {
        assert_eq!(a.viterbi_of(sentence), b.viterbi_of(sentence));
        assert_eq!(a.posterior_of(sentence), b.posterior_of(sentence));
        assert_eq!(a.bound_of(sentence).to_bits(), b.bound_of(sentence).to_bits());
    }
}

#[test]
fn it_is_a_token_encoder_and_saving_and_opening_is_the_identity() {
    let corpus = zipfian_corpus(40, 60, 1);
    for params in kinds() {
        let fhmm = fit(&params, &corpus);
        check_token_encoder(&fhmm, &corpus.sentences);
        for (name, features) in Features::ALL {
            check_token_encoder(&fhmm.encoder(features), &corpus.sentences);
            check_token_encoder(&*Model::encoder(&fhmm, name).unwrap(), &corpus.sentences);
        }
        check_file_round_trip(&fhmm, |m, path| m.save(path), |path| Fhmm::open(path), assert_same);
    }
}

#[test]
fn resuming_from_any_checkpoint_gives_the_same_model() {
    let corpus = zipfian_corpus(40, 60, 2);
    let valid = corpus.sentences.slice(0..20);
    for params in kinds() {
        check_resume(
            |watch| params.clone().valid(&valid).watch(|progress| watch(progress)).fit(&corpus),
            |checkpoint, watch| {
                let builder = params.clone().valid(&valid).checkpoint(checkpoint);
                builder.watch(|progress| watch(progress)).fit(&corpus)
            },
            assert_same,
        );
    }
}

#[test]
fn the_model_does_not_depend_on_the_number_of_threads() {
    let corpus = zipfian_corpus(700, 400, 3);
    for params in kinds() {
        let params = params.epochs(1).batch_sentences(40);
        let with = |n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| fit(&params, &corpus))
        };
        assert_same(&with(1), &with(3));
    }
}

#[test]
fn a_checkpoint_of_other_parameters_or_text_is_rejected() {
    let (corpus, other_corpus) = (zipfian_corpus(20, 40, 1), zipfian_corpus(20, 40, 2));
    let mut kept = None;
    let stopped = small().watch(|progress| {
        kept = progress.checkpoint.map(|checkpoint| checkpoint().unwrap());
        ControlFlow::Break(())
    });
    assert!(matches!(stopped.fit(&corpus), Err(FitError::Interrupted)));
    let kept = kept.unwrap();
    for (params, corpus) in [(small().n_states(4), &corpus), (small(), &other_corpus)] {
        let resumed = params.builder().checkpoint(&kept).fit(corpus);
        assert!(matches!(resumed, Err(FitError::Checkpoint(_))));
    }
}

#[test]
fn some_layer_finds_the_classes_of_words() {
    let corpus = two_class_corpus(1000, 1);
    let params = Fhmm::params().n_layers(2).n_states(2).epochs(20).restarts(3).pseudo_tokens(1.0);
    let fhmm = fit(&params, &corpus);
    let class = |&word: &WordId| corpus.lexicon.vocab.word(word).as_bytes()[0] == b'a';
    let (mut right, mut n) = (vec![0; 2], 0);
    for sentence in corpus.sentences.slice(0..200).iter() {
        let words = &sentence[..sentence.len() - 1];
        for (word, states) in words.iter().zip(fhmm.viterbi_of(sentence).rows()) {
            (0..2).for_each(|m| right[m] += usize::from((states[m] == 0) == class(word)));
            n += 1;
        }
    }
    let purity = right.iter().map(|&r| r.max(n - r)).max().unwrap() as f64 / f64::from(n as u32);
    assert!(purity > 0.95, "{purity}");
    let top = fhmm.top_words(0, 0, 1000);
    assert!(top.is_sorted_by(|a, b| a.1 >= b.1), "{top:?}");
    assert_eq!(fhmm.top_words(0, 0, 3), top[..3]);
}

#[test]
fn unknown_words_are_modeled_by_signature_by_unk_or_by_context() {
    let words = ["Walking", "Talking", "running", "old-fashioned", "1999", "house"];
    let counts = words.iter().map(|&word| (word, if word == "house" { 9 } else { 1 }));
    let vocab = Vocab::from_counts(counts.chain([("<eos>", 9)]), &VocabLimits::default());
    let ids: Vec<WordId> = words.iter().map(|word| vocab.id(word)).collect();
    let house = ids[5];
    let sentences = Sentences::from_words(
        (0..9).map(|i| if i < 5 { vec![ids[i], house] } else { vec![house] }),
    );
    let lexicon = Lexicon { vocab, ..zipfian_corpus(5, 5, 1).lexicon };
    let corpus = Corpus { lexicon, sentences };
    let model = |unknown| fit(&small().unknown(unknown).epochs(1).batch_sentences(None), &corpus);
    let by_signature = model(Unknown::Signature);
    // `house`, `<eos>`, and four signatures of five rare words.
    assert_eq!(by_signature.n_words(), 6);
    let (balking, running) = (by_signature.word_id("Balking"), by_signature.word_id("running"));
    assert!(balking.index() >= corpus.lexicon.vocab.len() && running == ids[2]);
    assert_eq!(by_signature.posterior_of(&[balking]), by_signature.posterior_of(&[ids[0]]));
    assert_eq!(by_signature.posterior("Balking"), by_signature.posterior("Walking"));
    assert_ne!(by_signature.posterior_of(&[balking]), by_signature.posterior_of(&[running]));
    assert_eq!(by_signature.word_id("McX"), WordId::UNK);

    let by_unk = model(Unknown::Unk);
    assert_eq!(by_unk.n_words(), 3);
    assert_eq!(by_unk.posterior_of(&[ids[0]]), by_unk.posterior_of(&[WordId::UNK]));

    let missing = model(Unknown::Missing);
    assert_eq!(missing.n_words(), 2);
    assert!(missing.bound_of(&[WordId::UNK, ids[3]]).abs() < 1e-5);
    let mut rows = FeatureRows::new();
    missing.encode(&[WordId::UNK, house], &mut rows);
    assert_eq!(rows.len(), 2);
}

#[test]
fn tiny_texts_are_fitted_or_rejected() {
    let whole = two_class_corpus(10, 1);
    let fit = |sentences: &[&[WordId]], unknown| {
        let sentences = Sentences::from_words(sentences.iter().copied());
        let corpus = Corpus { lexicon: whole.lexicon.clone(), sentences };
        small().unknown(unknown).fit(&corpus)
    };
    let a = WordId(2);
    for (text, reason) in [(&[][..], "at least 1 sentence"), (&[&[][..]], "at least 2 words")] {
        let error = fit(text, Unknown::Signature).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let error = fit(&[&[a]], Unknown::Missing).unwrap_err().to_string();
    assert!(error.contains("at least 2 words that occur 2 times"), "{error}");
    // A text with a single word type.
    let model = fit(&[&[a, a], &[a]], Unknown::Signature).unwrap();
    assert!(model.posterior_of(&[a, a]).as_slice().iter().all(|p| p.is_finite()));
}

#[test]
fn frequent_sentences_have_few_rare_words() {
    let corpus = zipfian_corpus(100, 300, 1);
    let kept = frequent_sentences(&corpus, 100);
    assert_eq!(kept.sentences.len(), 100);
    let rare = |sentences: &Sentences| {
        let counts = corpus.lexicon.vocab.counts();
        let n = sentences.tokens().iter().filter(|word| counts[word.index()] < 5).count();
        n as f64 / sentences.n_tokens() as f64
    };
    assert!(rare(&kept.sentences) < 0.5 * rare(&corpus.sentences));
    let all = frequent_sentences(&corpus, 1000);
    assert_eq!(all.sentences.tokens(), corpus.sentences.tokens());
}

#[test]
fn errors_name_the_parameter_that_is_out_of_range() {
    let default = FhmmParams::default;
    let bad = [
        ("n_layers", default().n_layers(0)),
        ("n_states", default().n_states(1)),
        ("n_states", default().n_layers(7).inference(Inference::ExactMf)),
        ("n_states", default().n_layers(64).n_states(1024).inference(Inference::Exact)),
        ("sweeps", default().sweeps(0)),
        ("prior", default().prior(0.0)),
        ("step_power", default().step_power(1.5)),
        ("pseudo_tokens", default().pseudo_tokens(f64::NAN)),
        ("batch_sentences", default().batch_sentences(0)),
        ("restarts", default().restarts(0)),
    ];
    for (name, params) in bad {
        assert_eq!(params.check().unwrap_err().name, name);
    }
    default().check().unwrap();
    let many = default().n_layers(64).n_states(1024);
    assert_eq!(many.chosen_inference(), Inference::Tilted);
    assert_eq!(default().chosen_inference(), Inference::ExactMf);
    let valid: Valid<FhmmParams> = many.validate().unwrap();
    assert_eq!(valid.batch_size(112_824), 1000);
}
