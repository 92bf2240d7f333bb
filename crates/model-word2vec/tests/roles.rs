//! The tests shared by all models, and properties of word2vec.

use latens_corpus::{Corpus, Lexicon, Sentences, WordId};
use latens_model::{FeatureRows, Fit, FitError, Model, Params, TokenEncoder};
use latens_model_word2vec::{Algorithm, Word2vec, Word2vecParams};
use latens_testkit::{
    check_file_round_trip, check_resume, check_token_encoder, two_class_corpus, zipfian_corpus,
};
use std::ops::ControlFlow;

const ALGORITHMS: [Algorithm; 2] = [Algorithm::Cbow, Algorithm::SkipGram];

fn params(algorithm: Algorithm) -> Word2vecParams {
    Word2vec::params().algorithm(algorithm).dim(10).window(2).subsample(0.0)
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
        let model = params(algorithm).fit(&corpus).unwrap();
        check_token_encoder(&model, &corpus.sentences);
        for kind in model.feature_kinds() {
            check_token_encoder(&*model.encoder(kind).unwrap(), &corpus.sentences);
        }
        check_file_round_trip(
            &model,
            |m, path| m.save(path),
            |path| Word2vec::open(path),
            assert_same,
        );
    }
}

#[test]
fn one_thread_gives_the_same_vectors_for_the_same_seed_even_when_resumed() {
    let corpus = two_class_corpus(2000, 1);
    for algorithm in ALGORITHMS {
        let params = params(algorithm);
        single_threaded(|| {
            check_resume(
                |watch| params.clone().watch(|progress| watch(progress)).fit(&corpus),
                |checkpoint, watch| {
                    let builder = params.clone().builder().checkpoint(checkpoint);
                    builder.watch(|progress| watch(progress)).fit(&corpus)
                },
                assert_same,
            );
            let other = params.clone().seed(2).fit(&corpus).unwrap();
            let same = params.clone().fit(&corpus).unwrap();
            assert_ne!(same.vectors().values(), other.vectors().values());
        });
    }
}

#[test]
fn a_checkpoint_of_other_parameters_or_text_is_rejected() {
    let corpus = two_class_corpus(300, 1);
    let mut kept = None;
    let params = || params(Algorithm::Cbow);
    let stopped = params().watch(|progress| {
        kept = progress.checkpoint.map(|checkpoint| checkpoint().unwrap());
        ControlFlow::Break(())
    });
    assert!(matches!(stopped.fit(&corpus), Err(FitError::Interrupted)));
    let kept = kept.unwrap();
    for (params, corpus) in [(params().epochs(9), &corpus), (params(), &two_class_corpus(300, 2))] {
        let resumed = params.builder().checkpoint(&kept).fit(corpus);
        assert!(matches!(resumed, Err(FitError::Checkpoint(_))));
    }
}

/// In the toy grammar only the class of a word decides what follows, so words of one class have the same contexts.
#[test]
fn words_of_one_class_are_nearest_to_each_other() {
    let corpus = two_class_corpus(6000, 1);
    let vocab = &corpus.lexicon.vocab;
    for algorithm in ALGORITHMS {
        let model = params(algorithm).window(1).epochs(10).fit(&corpus).unwrap();
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
    let model = params(Algorithm::SkipGram).fit(&corpus).unwrap();
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
        params(Algorithm::Cbow).fit(&corpus).map(drop)
    };
    let (a, b) = (WordId(2), WordId(3));
    for (text, reason) in [
        (&[&[][..], &[]][..], "a sentence of at least 2 words, has 0"),
        (&[&[a], &[b]], "a sentence of at least 2 words, has 1"),
        (&[&[a, a, a]], "at least 2 distinct words, has 1"),
    ] {
        let error = fit(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    fit(&[&[a, b]]).unwrap();
}

#[test]
fn a_learning_rate_that_is_too_large_is_reported_as_divergence() {
    let corpus = two_class_corpus(300, 1);
    let error = params(Algorithm::SkipGram).learning_rate(1e30).fit(&corpus).unwrap_err();
    assert!(matches!(error, FitError::Diverged { lower: "learning_rate", .. }), "{error}");
}

#[test]
fn errors_name_the_parameter_that_is_out_of_range() {
    let default = Word2vecParams::default;
    let bad = [
        ("dim", default().dim(0)),
        ("window", default().window(0)),
        ("n_negatives", default().n_negatives(0)),
        ("noise_power", default().noise_power(f64::NAN)),
        ("subsample", default().subsample(-1.0)),
        ("epochs", default().epochs(0)),
        ("learning_rate", default().learning_rate(0.0)),
    ];
    for (name, params) in bad {
        assert_eq!(params.check().unwrap_err().name, name);
    }
    default().check().unwrap();
}

#[test]
fn vectors_nearest_words_and_embeddings_agree_with_their_definition() {
    let corpus = two_class_corpus(500, 1);
    let vocab = &corpus.lexicon.vocab;
    let model = params(Algorithm::SkipGram).fit(&corpus).unwrap();
    let vectors = model.vectors();
    assert_eq!((model.dim(), vectors.dim(), vectors.n_words()), (10, 10, vocab.len()));
    let row = |word: &str| &vectors.values()[vocab.id(word).index() * 10..][..10];
    assert_eq!(model.vector("a3"), Some(row("a3")));
    for absent in ["zzz", "<eos>", "a3 a4", ""] {
        assert_eq!(model.vector(absent), None);
        assert_eq!(model.nearest(absent, 3), None);
    }
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    };
    let cosine = |a: &str, b: &str| {
        let (a, b) = (row(a), row(b));
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let nearest = model.nearest("a3", 100).unwrap();
    // All words but `a3` itself, `<unk>` and `<eos>`.
    assert_eq!(nearest.len(), vocab.len() - 3);
    assert!(nearest.is_sorted_by(|a, b| a.1 >= b.1));
    for &(word, found) in &nearest {
        assert!((f64::from(found) - cosine("a3", word)).abs() < 1e-6, "{word}");
    }
    assert_eq!(model.nearest("a3", 2).unwrap(), nearest[..2]);
    let embedded = model.embed("a3 zzz b0");
    assert_eq!((embedded.n_rows(), embedded.n_columns()), (3, 10));
    assert_eq!((embedded.row(0), embedded.row(2)), (row("a3"), row("b0")));
    // `<unk>` does not occur in the text.
    assert_eq!(embedded.row(1), [0.0; 10]);
    assert_eq!(model.embed("").n_rows(), 0);
}
