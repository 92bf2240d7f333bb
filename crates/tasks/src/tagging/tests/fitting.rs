//! Training of taggers.

use super::fixtures::{TEXT, assert_same, encoders, fit, inputs, kinds, read};
use crate::tagging::evaluation::scores::evaluate;
use crate::tagging::learn::error::TaggerError;
use crate::tagging::params::{Kind, Pairs, TaggerParams};
use crate::tagging::spans::Scheme;
use latens_corpus::embedded::{self, Split};
use latens_model::{Fit, FitError, Params, TagError, Tagger};
use latens_testkit::check_resume;

#[test]
fn every_kind_of_tagger_learns_its_training_text() {
    let text = read(TEXT);
    for params in kinds().into_iter().filter(|params| params.lexical && params.l1 == 0.0) {
        let params = TaggerParams { l2: 1e-3, n_iterations: 200, ..params };
        let tagger = fit(&params, &text, encoders());
        let scores = evaluate(&tagger, &text, 2).unwrap();
        // `The` has two tags in the text, but a single one as a direct word.
        let expected = if params.direct_words.is_empty() { 1.0 } else { 9.0 / 10.0 };
        assert_eq!(scores.accuracy, expected, "{params:?}");
        assert_eq!(tagger.tag_with_pos(&[], &[]), Ok(vec![]));
    }
}

#[test]
fn resumed_training_gives_the_same_tagger() {
    let text = read(TEXT);
    for params in kinds() {
        let params = TaggerParams { n_iterations: 7, epochs: 4, ..params };
        let fit_error = |error: TaggerError| match error {
            TaggerError::Fit(error) => error,
            error => panic!("{error}"),
        };
        check_resume(
            |watch| {
                let builder = params.clone().with(inputs(2, encoders()));
                builder.watch(|progress| watch(progress)).fit(&text).map_err(fit_error)
            },
            |checkpoint, watch| {
                let builder = params.clone().with(inputs(2, encoders())).checkpoint(checkpoint);
                builder.watch(|progress| watch(progress)).fit(&text).map_err(fit_error)
            },
            assert_same,
        );
    }
}

#[test]
fn the_number_of_threads_does_not_change_the_tagger() {
    let text = read(&embedded::tagged(Split::Train));
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let params = TaggerParams { n_iterations: 10, ..TaggerParams::default() };
        pool.install(|| fit(&params, &text, encoders()))
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one.weights.values, three.weights.values);
    assert_eq!(one.facts().get("loss"), three.facts().get("loss"));
}

#[test]
fn invalid_parameters_and_texts_are_errors() {
    let text = read(TEXT);
    let params = TaggerParams::default();
    let fit =
        |params: &TaggerParams, column| params.clone().with(inputs(column, vec![])).fit(&text);
    assert!(fit(&params, 3).unwrap_err().to_string().contains("no column 4"));
    let pos = TaggerParams { pos_column: Some(5), ..TaggerParams::default() };
    assert!(fit(&pos, 2).unwrap_err().to_string().contains("no column 6"));
    let nothing = TaggerParams { lexical: false, ..TaggerParams::default() };
    assert!(matches!(fit(&nothing, 2).unwrap_err(), TaggerError::NoFeatures));
    let many: String = (0..3000).map(|i| format!("a {i}\n")).collect();
    let many = read(&many);
    let error = params.clone().with(inputs(1, vec![])).fit(&many).unwrap_err();
    assert!(error.to_string().contains("column 2 has 3000 distinct tags"), "{error}");
    let builder = params.clone().with(inputs(2, vec![]));
    let stopped = builder.watch(|_| std::ops::ControlFlow::Break(())).fit(&text);
    assert!(matches!(stopped, Err(TaggerError::Fit(FitError::Interrupted))));

    let direct = TaggerParams { direct_words: vec!["the".into()], ..TaggerParams::default() };
    let error = direct.clone().validate().unwrap_err().to_string();
    assert!(error.contains("`direct_words` must be empty with `kind` = crf"), "{error}");
    assert!(TaggerParams { kind: Kind::Local, ..direct }.validate().is_ok());

    let with_pos =
        TaggerParams { pos_column: Some(1), ..TaggerParams::default() }.validate().unwrap();
    let tagger = fit(&with_pos, 2).unwrap();
    assert_eq!(tagger.tag(&["a"]), Err(TagError::NoPartsOfSpeech { column: 2 }));
}

#[test]
fn spans_of_every_scheme_are_learned_and_returned_in_iob2() {
    let iob2 = read(TEXT);
    for scheme in [Scheme::Iob1, Scheme::Iob2, Scheme::Bioes] {
        let mut text = String::new();
        for sentence in iob2.iter() {
            let tags = scheme.write(&sentence.column(2).unwrap());
            for (word, tag) in sentence.words().iter().zip(tags) {
                text += &format!("{word} _ {tag}\n");
            }
            text += "\n";
        }
        let text = read(&text);
        for spans in [Scheme::Iob2, Scheme::Bioes] {
            let params = TaggerParams { spans, l2: 1e-3, ..TaggerParams::default() };
            let tagger = fit(&params, &text, vec![]);
            assert_eq!(tagger.tags(), ["O", "B-X", "I-X", "B-Y", "I-Y"]);
            for measured in [&text, &iob2] {
                let scores = evaluate(&tagger, measured, 2).unwrap();
                assert_eq!((scores.accuracy, scores.spans.unwrap().f1), (1.0, 1.0), "{scheme:?}");
                assert_eq!(scores.unknown_tags, [""; 0]);
            }
        }
    }
}

#[test]
fn the_literal_word_unk_is_a_word_like_any_other() {
    let tagger = |text: &str| fit(&TaggerParams::default(), &read(text), vec![]);
    let seen = tagger("<unk> X Y\nb Y Y\n\n<unk> X Y\n");
    let counts = ["<unk>", "b", "never", "<eos>"].map(|word| seen.n_seen(word));
    assert_eq!(counts, [2, 1, 0, 0]);
    assert_eq!(tagger("a X Y\nb Y Y\n").n_seen("<unk>"), 0);
}

/// Reference: python-crfsuite 0.9.12 with the same attributes (`examples/attributes.rs`) and regularization (`c2` 1,
/// `epsilon` 1e-7, `delta` 1e-9; for all pairs `feature.possible_states` and `feature.possible_transitions`).
#[test]
fn the_optimum_agrees_with_crfsuite() {
    let text = read(include_str!("../../../../corpus/embedded/music.conll"));
    for (pairs, expected) in [(Pairs::All, 296.674_922), (Pairs::Observed, 343.007_203)] {
        let params = TaggerParams { pairs, l2: 1.0, n_iterations: 1000, ..TaggerParams::default() };
        let tagger = params.with(inputs(1, vec![])).fit(&text);
        let loss = tagger.unwrap().facts()["loss"].as_f64().unwrap();
        assert!((loss - expected).abs() < 1e-6 * expected, "{loss} {expected}");
    }
}
