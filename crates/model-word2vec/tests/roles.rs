//! The tests shared by all models, and properties of word2vec.

use latens_corpus::{Corpus, Lexicon, Sentences, WordId};
use latens_model::{FeatureRows, FitError, Params, TokenEncoder, Valid, unwatched};
use latens_model_word2vec::{Algorithm, Word2vec, Word2vecParams};
use latens_testkit::{
    check_file_round_trip, check_resume, check_token_encoder, two_class_corpus, zipfian_corpus,
};

const ALGORITHMS: [Algorithm; 2] = [Algorithm::Cbow, Algorithm::SkipGram];

fn params(algorithm: Algorithm) -> Valid<Word2vecParams> {
    let params = Word2vecParams {
        algorithm,
        dim: 10,
        window: 2,
        subsample: 0.0,
        ..Word2vecParams::default()
    };
    params.validate().unwrap()
}

/// Runs `work` with one thread.
fn single_threaded<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(work)
}

fn assert_same(a: &Word2vec, b: &Word2vec) {
    assert_eq!(a.vectors().values(), b.vectors().values());
    assert_eq!(a.facts()["loss"], b.facts()["loss"]);
}

#[test]
fn it_is_a_token_encoder_and_saving_and_opening_is_the_identity() {
    let corpus = zipfian_corpus(40, 100, 1);
    for algorithm in ALGORITHMS {
        let model = Word2vec::fit(&params(algorithm), &corpus, &mut unwatched).unwrap();
        check_token_encoder(&model, &corpus.sentences);
        check_file_round_trip(&model, Word2vec::save, Word2vec::open, assert_same);
    }
}

#[test]
fn one_thread_gives_the_same_vectors_for_the_same_seed_even_when_resumed() {
    let corpus = two_class_corpus(2000, 1);
    for algorithm in ALGORITHMS {
        let params = params(algorithm);
        single_threaded(|| {
            check_resume(
                |watch| Word2vec::fit(&params, &corpus, watch),
                |checkpoint, watch| Word2vec::resume(&params, &corpus, checkpoint, watch),
                assert_same,
            );
            let other = Word2vecParams { seed: 2, ..params.clone().into_inner() };
            let other = Word2vec::fit(&other.validate().unwrap(), &corpus, &mut unwatched).unwrap();
            let same = Word2vec::fit(&params, &corpus, &mut unwatched).unwrap();
            assert_ne!(same.vectors().values(), other.vectors().values());
        });
    }
}

#[test]
fn a_checkpoint_of_other_parameters_or_text_is_rejected() {
    let corpus = two_class_corpus(300, 1);
    let mut kept = None;
    let stop = &mut |progress: &latens_model::Progress<'_>| {
        kept = progress.checkpoint.map(|checkpoint| checkpoint().unwrap());
        std::ops::ControlFlow::Break(())
    };
    let params = params(Algorithm::Cbow);
    assert!(matches!(Word2vec::fit(&params, &corpus, stop), Err(FitError::Interrupted)));
    let kept = kept.unwrap();
    let other = Word2vecParams { epochs: 9, ..params.clone().into_inner() }.validate().unwrap();
    for (params, corpus) in [(&other, &corpus), (&params, &two_class_corpus(300, 2))] {
        let refused = Word2vec::resume(params, corpus, &kept, &mut unwatched);
        assert!(matches!(refused, Err(FitError::Checkpoint(_))));
    }
}

/// In the toy grammar only the class of a word decides what follows, so words of one class have the same contexts.
#[test]
fn words_of_one_class_are_nearest_to_each_other() {
    let corpus = two_class_corpus(6000, 1);
    let vocab = &corpus.lexicon.vocab;
    for algorithm in ALGORITHMS {
        let params = Word2vecParams { window: 1, epochs: 10, ..params(algorithm).into_inner() };
        let model = Word2vec::fit(&params.validate().unwrap(), &corpus, &mut unwatched).unwrap();
        let (mut n_right, mut n) = (0, 0);
        for word in (2..vocab.len()).map(WordId::from) {
            let vector = model.vectors().get(word).unwrap();
            for (other, _) in model.vectors().nearest(vector, 5, &[word]) {
                n += 1;
                n_right +=
                    usize::from(vocab.word(word).as_bytes()[0] == vocab.word(other).as_bytes()[0]);
            }
        }
        // Chance level is 9 of 19.
        assert!(n_right as f64 > 0.95 * f64::from(n), "{algorithm:?}: {n_right} of {n}");
    }
}

#[test]
fn words_not_in_the_text_have_no_vector() {
    let whole = two_class_corpus(300, 1);
    let absent = whole.lexicon.vocab.id("a9");
    let without = whole.sentences.iter().filter(|sentence| !sentence.contains(&absent));
    let sentences = Sentences::from_words(without.map(|sentence| &sentence[..sentence.len() - 1]));
    let lexicon = Lexicon { ..whole.lexicon.clone() };
    let corpus = Corpus { lexicon, sentences };
    let model = Word2vec::fit(&params(Algorithm::SkipGram), &corpus, &mut unwatched).unwrap();
    for word in [absent, WordId::UNK, WordId::EOS] {
        assert_eq!(model.vectors().get(word), None);
    }
    let mut rows = FeatureRows::new();
    model.encode(&[absent, WordId(2)], &mut rows);
    assert_eq!((rows.row(0).0.len(), rows.row(1).0.len()), (0, 10));
}

#[test]
fn text_without_a_context_or_a_negative_sample_is_rejected() {
    let whole = two_class_corpus(10, 1);
    let fit = |sentences: &[&[WordId]]| {
        let corpus = Corpus {
            lexicon: whole.lexicon.clone(),
            sentences: Sentences::from_words(sentences.iter().copied()),
        };
        Word2vec::fit(&params(Algorithm::Cbow), &corpus, &mut unwatched).map(drop)
    };
    let (a, b) = (WordId(2), WordId(3));
    for (text, reason) in [
        (&[&[][..], &[]][..], "a sentence of at least 2 words, has 0"),
        (&[&[a], &[b]], "a sentence of at least 2 words, has 1"),
        (&[&[a, a, a]], "at least 2 different words, has 1"),
    ] {
        let error = fit(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    fit(&[&[a, b]]).unwrap();
}

#[test]
fn a_learning_rate_that_is_too_large_is_reported_as_divergence() {
    let corpus = two_class_corpus(300, 1);
    let params = Word2vecParams { learning_rate: 1e30, ..params(Algorithm::SkipGram).into_inner() };
    let error = Word2vec::fit(&params.validate().unwrap(), &corpus, &mut unwatched).unwrap_err();
    assert!(matches!(error, FitError::Diverged { lower: "learning_rate", .. }), "{error}");
}

#[test]
fn errors_name_the_parameter_that_is_out_of_range() {
    let default = Word2vecParams::default;
    let bad = [
        ("dim", Word2vecParams { dim: 0, ..default() }),
        ("window", Word2vecParams { window: 0, ..default() }),
        ("n_negatives", Word2vecParams { n_negatives: 0, ..default() }),
        ("noise_power", Word2vecParams { noise_power: f64::NAN, ..default() }),
        ("subsample", Word2vecParams { subsample: -1.0, ..default() }),
        ("epochs", Word2vecParams { epochs: 0, ..default() }),
        ("learning_rate", Word2vecParams { learning_rate: 0.0, ..default() }),
    ];
    for (name, params) in bad {
        assert_eq!(params.check().unwrap_err().name, name);
    }
    default().check().unwrap();
}
