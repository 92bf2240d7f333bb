//! Gradients by finite differences, marginals by brute force, files and checkpoints.

use super::{FeatureTagger, TaggedTraining, TaggerError, evaluate};
use crate::tagging::features::encoders::{Encoder, WordEncoder, read_rows};
use crate::tagging::features::examples::{Examples, Lexical};
use crate::tagging::learn::objective::Problem;
use crate::tagging::params::{Kind, Optimizer, Pairs, TaggerParams};
use crate::tagging::spans::Scheme;
use crate::tagging::weights::layout::Layout;
use latens_corpus::embedded::{self, Split};
use latens_corpus::{Inputs, Preprocessing, TaggedSentences};
use latens_math::{Real, Rng};
use latens_model::file::{ModelFile, ModelWriter};
use latens_model::{FeatureRows, FitError, ParamError, Params, TagError, Tagger, unwatched};
use latens_testkit::{check_damaged_file, check_file_round_trip, check_resume};
use serde::{Deserialize, Serialize};
use std::path::Path;

const TEXT: &str = "The P B-X\ndog Q I-X\nbarks R O\n\na P B-Y\ncat Q B-X\n\nThe P O\ncat-2 Q B-Y\n, R I-Y\nsleeps R O\n\n\
                    barks R B-X\n";

fn read(text: &str) -> TaggedSentences {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.conll");
    std::fs::write(&path, text).unwrap();
    TaggedSentences::read(&Inputs::new([path])).unwrap()
}

fn training(text: &TaggedSentences, column: usize) -> TaggedTraining<'_> {
    TaggedTraining { text, column, preprocessing: Preprocessing::default() }
}

fn fit(params: &TaggerParams, text: &TaggedSentences, encoders: Vec<Encoder>) -> FeatureTagger {
    let params = params.clone().validate().unwrap();
    FeatureTagger::fit(&params, &training(text, 2), encoders, &mut unwatched).unwrap()
}

/// Numbers that are made of letters, of either sign; no word that begins with `s` has any. A dense one has a number
/// in every column.
struct Letters {
    is_dense: bool,
}

impl WordEncoder for Letters {
    fn n_features(&self) -> usize {
        4
    }

    fn encode(&self, words: &[&str], out: &mut FeatureRows) {
        for word in words {
            let letter = |i: usize| f32::from(word.as_bytes()[i % word.len()] % 7) - 3.0;
            match (word.starts_with('s'), self.is_dense) {
                (true, _) => out.push_sparse([]),
                (false, true) => out.push_dense(&[letter(0), letter(1), letter(2), letter(3)]),
                (false, false) => {
                    out.push_sparse([(3, letter(0)), (u32::from(word.len() > 3), 1.0)])
                }
            }
        }
    }

    fn knows(&self, word: &str) -> bool {
        !word.starts_with('s')
    }
}

#[derive(Default, Serialize, Deserialize)]
struct NoParams {}

impl Params for NoParams {
    fn check(&self) -> Result<(), ParamError> {
        Ok(())
    }
}

/// Encoders with files in which there is nothing but their kind.
fn encoders() -> Vec<Encoder> {
    let encoder = |is_dense: bool| {
        let mut file = Vec::new();
        let params = NoParams {}.validate().unwrap();
        ModelWriter::new(if is_dense { "dense" } else { "sparse" }, &params)
            .write_to(&mut file)
            .unwrap();
        let model = Box::new(Letters { is_dense });
        Encoder { name: "letters".into(), features: "letters".into(), model, file: file.into() }
    };
    vec![encoder(true), encoder(false)]
}

fn open(path: &Path) -> Result<FeatureTagger, latens_model::FileError> {
    FeatureTagger::from_file(&ModelFile::open(path)?, &|file, _| {
        Ok(Box::new(Letters { is_dense: file.kind() == "dense" }))
    })
}

/// Every kind of tagger.
fn kinds() -> Vec<TaggerParams> {
    let crf = TaggerParams { l2: 0.1, n_iterations: 30, window: 1, ..TaggerParams::default() };
    let local = TaggerParams { kind: Kind::Local, n_hidden: 0, ..crf.clone() };
    vec![
        crf.clone(),
        TaggerParams {
            pairs: Pairs::All,
            spans: Scheme::Bioes,
            pos_column: Some(1),
            ..crf.clone()
        },
        TaggerParams { lexical: false, window: 2, ..crf.clone() },
        TaggerParams { l1: 0.2, min_count: 2, ..crf.clone() },
        TaggerParams { optimizer: Optimizer::Perceptron, epochs: 8, ..crf },
        TaggerParams { direct_words: vec!["The".into()], ..local.clone() },
        TaggerParams { n_hidden: 3, ..local },
    ]
}

fn examples(text: &TaggedSentences, params: &TaggerParams) -> Examples {
    let tags: Vec<u16> = (0..text.n_tokens()).map(|token| (token * token % 3) as u16).collect();
    let ends = text.iter().scan(0, |end, sentence| {
        *end += sentence.len();
        Some(*end)
    });
    let lexical = match params.has_lexical() {
        true => Lexical::read(text, params.pos_column, params.min_count),
        false => Lexical::default(),
    };
    let blocks = encoders().iter().map(|encoder| read_rows(encoder, text, 0.5).2).collect();
    let counts = (0..tags.len()).map(|token| params.kind == Kind::Crf || token != 2).collect();
    Examples {
        n_tags: 3,
        ends: ends.collect(),
        tags,
        counts,
        lexical,
        blocks,
        window: params.window,
    }
}

#[test]
fn gradients_are_finite_differences() {
    let text = read(TEXT);
    for params in kinds() {
        let examples = examples(&text, &params);
        let n_hidden = if params.has_network() { params.n_hidden } else { 0 };
        let is_chain = params.kind == Kind::Crf;
        let layout = Layout::new(&examples, params.pairs, is_chain, n_hidden);
        let mut problem: Problem<'_, f64> = Problem::new(&examples, &layout, is_chain, 0.3);
        let mut rng = Rng::new(4);
        let mut weights: Vec<f64> = (0..layout.n_weights()).map(|_| rng.normal()).collect();
        for (w, has) in weights[layout.transition_weights()].iter_mut().zip(&layout.transitions) {
            *w = if *has { *w } else { 0.0 };
        }
        let mut gradient = vec![0.0; weights.len()];
        problem.evaluate(&weights, &mut gradient);
        let (step, mut scratch) = (1e-5, gradient.clone());
        for i in 0..weights.len() {
            if layout.transition_weights().contains(&i)
                && !layout.transitions[i - layout.transition_weights().start]
            {
                assert_eq!(gradient[i], 0.0);
                continue;
            }
            let w = weights[i];
            let mut at = |w: f64| {
                weights[i] = w;
                problem.evaluate(&weights, &mut scratch)
            };
            let difference = (at(w + step) - at(w - step)) / (2.0 * step);
            at(w);
            assert!(
                (difference - gradient[i]).abs() < 1e-7,
                "{params:?} {i}: {difference} {}",
                gradient[i]
            );
        }
    }
}

/// The loss by its definition: every path of tags, one by one.
#[test]
fn the_loss_is_that_of_all_paths() {
    let text = read(TEXT);
    let params = TaggerParams { window: 1, pairs: Pairs::All, ..TaggerParams::default() };
    let examples = examples(&text, &params);
    let layout = Layout::new(&examples, params.pairs, true, 0);
    for size in [1.0, 60.0] {
        // Weights of this size leave single precision, and must be summed as logarithms.
        let mut rng = Rng::new(9);
        let weights: Vec<f64> = (0..layout.n_weights()).map(|_| size * rng.normal()).collect();
        let mut expected = 0.0;
        for sentence in 0..examples.ends.len() {
            let tokens = examples.sentence(sentence);
            let n = tokens.len();
            let score = |path: &[u16]| -> f64 {
                let own = tokens
                    .clone()
                    .zip(path)
                    .map(|(t, &tag)| score_of(&examples, &layout, &weights, t, tag));
                let transitions = &weights[layout.transition_weights()];
                let pairs =
                    path.windows(2).map(|p| transitions[usize::from(p[0]) * 3 + usize::from(p[1])]);
                own.sum::<f64>() + pairs.sum::<f64>()
            };
            let paths = (0..3usize.pow(n as u32)).map(|code| {
                (0..n).map(|t| (code / 3usize.pow(t as u32) % 3) as u16).collect::<Vec<u16>>()
            });
            let scores: Vec<f64> = paths.map(|path| score(&path)).collect();
            expected += latens_math::log_sum_exp(&scores) - score(&examples.tags[tokens.clone()]);
        }
        fn loss<T: Real>(examples: &Examples, layout: &Layout, weights: &[f64]) -> f64 {
            let mut gradient = vec![0.0; weights.len()];
            Problem::<T>::new(examples, layout, true, 0.0).evaluate(weights, &mut gradient)
        }
        let wide = loss::<f64>(&examples, &layout, &weights);
        let narrow = loss::<f32>(&examples, &layout, &weights);
        assert!((wide - expected).abs() < 1e-9 * expected.abs().max(1.0), "{wide} {expected}");
        assert!((narrow - expected).abs() < 1e-5 * expected.abs().max(1.0), "{narrow} {expected}");
    }
}

/// What all features say of one tag of one token, by the definition.
fn score_of(examples: &Examples, layout: &Layout, weights: &[f64], token: usize, tag: u16) -> f64 {
    let mut score = 0.0;
    for attribute in examples.lexical.attributes_of(token) {
        let range = layout.attribute(attribute);
        let place = layout.tags[range.clone()].iter().position(|&other| other == tag);
        score += place.map_or(0.0, |place| weights[range.start + place]);
    }
    let sentence = examples.ends.partition_point(|&end| end <= token);
    for (block, rows) in examples.blocks.iter().enumerate() {
        for place in 0..layout.n_places {
            let Some(at) = (token + place).checked_sub(examples.window) else { continue };
            if !examples.sentence(sentence).contains(&at) || rows.of_token[at] == u32::MAX {
                continue;
            }
            let (begin, row) = (layout.block(block, place).start, rows.of_token[at] as usize);
            for column in 0..rows.n_features {
                let value = match &rows.values {
                    crate::tagging::features::encoders::RowValues::Dense(values) => {
                        values[row * rows.n_features + column]
                    }
                    crate::tagging::features::encoders::RowValues::Sparse { rows, .. } => {
                        rows.get(row).filter(|&(c, _)| c == column).map(|(_, value)| value).sum()
                    }
                };
                score +=
                    f64::from(value) * weights[begin + column * layout.n_tags + usize::from(tag)];
            }
        }
    }
    score
}

#[test]
fn marginals_are_sums_over_paths_and_the_best_path_is_found() {
    let text = read(TEXT);
    for params in kinds() {
        let tagger = fit(&params, &text, encoders());
        let words = ["The", "cat", "barks", "zebra"];
        let pos = params.pos_column.map(|_| &["P", "Q", "R", "P"][..]);
        let n = tagger.own_tags().len();
        let scores = tagger.scores(&words, pos).unwrap();
        let score = |path: &[usize]| -> f64 {
            let own: f64 =
                path.iter().enumerate().map(|(t, tag)| f64::from(scores[t * n + tag])).sum();
            let pairs =
                path.windows(2).map(|p| f64::from(tagger.weights.transitions[p[0] * n + p[1]]));
            own + pairs.sum::<f64>()
        };
        let paths: Vec<Vec<usize>> =
            (0..n.pow(4)).map(|code| (0..4).map(|t| code / n.pow(t) % n).collect()).collect();
        let total: f64 = paths.iter().map(|path| score(path).exp()).sum();
        let marginals = tagger.marginals(&words, pos).unwrap();
        for (t, marginals) in marginals.iter().enumerate() {
            for (tag, &marginal) in marginals.iter().enumerate() {
                let with = paths.iter().filter(|path| path[t] == tag).map(|path| score(path).exp());
                let expected = with.sum::<f64>() / total;
                assert!((f64::from(marginal) - expected).abs() < 1e-5, "{params:?}");
            }
        }
        // Of paths that are as good any will do.
        let best = paths.iter().map(|path| score(path)).fold(f64::NEG_INFINITY, f64::max);
        let best = paths.iter().filter(|path| score(path) > best - 1e-5).map(|path| {
            let names: Vec<&str> = path.iter().map(|&tag| &*tagger.own_tags()[tag]).collect();
            Scheme::Iob2.write(&names)
        });
        let found = match pos {
            Some(pos) => tagger.tag_with_pos(&words, pos),
            None => tagger.tag(&words),
        };
        let found: Vec<&str> =
            found.unwrap().iter().map(|&tag| &*tagger.tags()[tag as usize]).collect();
        // A word that is tagged directly is not looked at.
        let skip = usize::from(params.direct_words == ["The"]);
        assert!(best.clone().any(|best| best[skip..] == found[skip..]), "{params:?}: {found:?}");
    }
}

#[test]
fn every_kind_of_tagger_learns_its_text() {
    let text = read(TEXT);
    for params in kinds().into_iter().filter(|params| params.lexical && params.l1 == 0.0) {
        let params = TaggerParams { l2: 1e-3, n_iterations: 200, ..params };
        let tagger = fit(&params, &text, encoders());
        let scores = evaluate(&tagger, &text, 2).unwrap();
        // `The` has two tags, and is tagged without a look where it is named.
        let expected = if params.direct_words.is_empty() { 1.0 } else { 9.0 / 10.0 };
        assert_eq!(scores.accuracy, expected, "{params:?}");
        assert_eq!(tagger.tag_with_pos(&[], &[]), Ok(vec![]));
    }
}

#[test]
fn files_give_every_kind_of_tagger_back() {
    let text = read(TEXT);
    for params in kinds() {
        let tagger = fit(&params, &text, encoders());
        check_file_round_trip(&tagger, FeatureTagger::save, open, assert_same);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tagger");
        tagger.save(&path).unwrap();
        check_damaged_file(&path, open);
    }
}

fn assert_same(a: &FeatureTagger, b: &FeatureTagger) {
    assert_eq!(
        (a.tags(), a.own_tags(), a.facts().get("loss")),
        (b.tags(), b.own_tags(), b.facts().get("loss"))
    );
    let pos = ["P", "Q", "P", "R"];
    let words = ["The", "zebra", "sleeps", ","];
    assert_eq!(a.marginals(&words, Some(&pos)), b.marginals(&words, Some(&pos)));
    assert_eq!(a.tag_with_pos(&words, &pos), b.tag_with_pos(&words, &pos));
    words.iter().for_each(|word| assert_eq!(a.n_seen(word), b.n_seen(word)));
}

#[test]
fn an_interrupted_training_learns_the_same_tagger() {
    let text = read(TEXT);
    for params in kinds() {
        let params = TaggerParams { n_iterations: 7, epochs: 4, ..params }.validate().unwrap();
        let fit_error = |error: TaggerError| match error {
            TaggerError::Fit(error) => error,
            error => panic!("{error}"),
        };
        check_resume(
            |watch| {
                FeatureTagger::fit(&params, &training(&text, 2), encoders(), watch)
                    .map_err(fit_error)
            },
            |checkpoint, watch| {
                FeatureTagger::resume(&params, &training(&text, 2), encoders(), checkpoint, watch)
                    .map_err(fit_error)
            },
            assert_same,
        );
    }
}

#[test]
fn threads_change_nothing() {
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
fn what_is_wrong_is_told() {
    let text = read(TEXT);
    let params = TaggerParams::default().validate().unwrap();
    let fit = |params, column| {
        FeatureTagger::fit(params, &training(&text, column), vec![], &mut unwatched)
    };
    assert!(fit(&params, 3).unwrap_err().to_string().contains("no column 4"));
    let pos = TaggerParams { pos_column: Some(5), ..TaggerParams::default() }.validate().unwrap();
    assert!(fit(&pos, 2).unwrap_err().to_string().contains("no column 6"));
    let nothing = TaggerParams { lexical: false, ..TaggerParams::default() }.validate().unwrap();
    assert!(matches!(fit(&nothing, 2).unwrap_err(), TaggerError::NoFeatures));
    let many: String = (0..3000).map(|i| format!("a {i}\n")).collect();
    let many = read(&many);
    let error =
        FeatureTagger::fit(&params, &training(&many, 1), vec![], &mut unwatched).unwrap_err();
    assert!(error.to_string().contains("column 2 has 3000 different tags"), "{error}");
    let stopped = FeatureTagger::fit(&params, &training(&text, 2), vec![], &mut |_| {
        std::ops::ControlFlow::Break(())
    });
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
fn a_very_long_sentence_is_tagged() {
    let text = read(TEXT);
    let tagger = fit(&TaggerParams::default(), &text, encoders());
    let words = ["The", "cat", "barks"].repeat(4000);
    assert_eq!(tagger.tag(&words).unwrap().len(), 12_000);
    let sums =
        tagger.marginals(&words, None).unwrap().into_iter().map(|row| row.iter().sum::<f32>());
    sums.for_each(|sum| assert!((sum - 1.0).abs() < 1e-3, "{sum}"));
}

#[test]
fn spans_of_every_scheme_are_learned_and_answered_in_iob2() {
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
fn the_letters_unk_are_a_word_like_others() {
    let tagger = |text: &str| fit(&TaggerParams::default(), &read(text), vec![]);
    let seen = tagger("<unk> X Y\nb Y Y\n\n<unk> X Y\n");
    let counts = ["<unk>", "b", "never", "<eos>"].map(|word| seen.n_seen(word));
    assert_eq!(counts, [2, 1, 0, 0]);
    assert_eq!(tagger("a X Y\nb Y Y\n").n_seen("<unk>"), 0);
}

/// Gives every word a row of all columns, in an order that depends on the word.
struct Turned;

impl WordEncoder for Turned {
    fn n_features(&self) -> usize {
        3
    }

    fn encode(&self, words: &[&str], out: &mut FeatureRows) {
        for word in words {
            let first = word.len() as u32 % 3;
            out.push_sparse((0..3).map(|i| (first + i) % 3).map(|column| (column, column as f32)));
        }
    }

    fn knows(&self, _: &str) -> bool {
        true
    }
}

#[test]
fn rows_of_all_columns_are_dense_in_any_order() {
    let encoder = Encoder { model: Box::new(Turned), ..encoders().remove(0) };
    let (reading, means, rows) = read_rows(&encoder, &read(TEXT), 1.0);
    assert!(reading.is_dense);
    assert_eq!(means, [0.0, 1.0, 2.0]);
    assert_eq!(rows.n_rows(), 1, "all rows are the same one");
}

#[test]
fn dense_rows_are_centred_and_scaled_over_tokens() {
    let text = read(TEXT);
    let (reading, means, rows) = read_rows(&encoders()[0], &text, 0.5);
    assert!(reading.is_dense && means.len() == 4);
    assert_eq!(reading.known, 9.0 / 10.0);
    let crate::tagging::features::encoders::RowValues::Dense(values) = &rows.values else {
        panic!("dense")
    };
    let of_tokens = rows.of_token.iter().filter(|&&row| row != u32::MAX);
    let of_tokens: Vec<f32> =
        of_tokens.flat_map(|&row| values[row as usize * 4..][..4].to_vec()).collect();
    let n = of_tokens.len() as f32;
    for column in 0..4 {
        let sum: f32 = of_tokens.iter().skip(column).step_by(4).sum();
        assert!(sum.abs() < 1e-5, "{sum}");
    }
    let variance = of_tokens.iter().map(|x| x * x).sum::<f32>() / n;
    assert!((variance.sqrt() - 0.5).abs() < 1e-5, "{variance}");
    // `The`, `barks` and others come more than once, and have one row.
    assert!(rows.n_rows() < 9, "{}", rows.n_rows());
}

/// The same attributes (`examples/attributes.rs`) and regularisation in python-crfsuite 0.9.12 (`c2` 1, `epsilon`
/// 1e-7, `delta` 1e-9; for all pairs `feature.possible_states` and `feature.possible_transitions`).
#[test]
fn the_optimum_is_that_of_crfsuite() {
    let text = read(include_str!("../../../../corpus/embedded/music.conll"));
    for (pairs, expected) in [(Pairs::All, 296.674_922), (Pairs::Observed, 343.007_203)] {
        let params = TaggerParams { pairs, l2: 1.0, n_iterations: 1000, ..TaggerParams::default() };
        let params = params.validate().unwrap();
        let tagger = FeatureTagger::fit(&params, &training(&text, 1), vec![], &mut unwatched);
        let loss = tagger.unwrap().facts()["loss"].as_f64().unwrap();
        assert!((loss - expected).abs() < 1e-6 * expected, "{loss} {expected}");
    }
}
