//! Predictions of fitted taggers, against brute force.

use super::fixtures::{TEXT, encoders, fit, kinds, read};
use crate::tagging::fitted::tagger::FeatureTagger;
use crate::tagging::params::TaggerParams;
use crate::tagging::spans::Scheme;
use latens_model::Tagger;
use std::collections::HashSet;

#[test]
fn marginals_and_the_best_path_agree_with_enumeration() {
    let text = read(TEXT);
    for params in kinds() {
        let tagger = fit(&params, &text, encoders());
        let words = ["The", "cat", "barks", "zebra"];
        let pos = params.pos_column.map(|_| &["P", "Q", "R", "P"][..]);
        let n = tagger.internal_tags().len();
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
        for (t, marginals) in marginals.rows().enumerate() {
            for (tag, &marginal) in marginals.iter().enumerate() {
                let with = paths.iter().filter(|path| path[t] == tag).map(|path| score(path).exp());
                let expected = with.sum::<f64>() / total;
                assert!((f64::from(marginal) - expected).abs() < 1e-5, "{params:?}");
            }
        }
        check_returned_posterior(&tagger, &words, pos, &paths, &score);
        // Any of several equally good paths will do.
        let best = paths.iter().map(|path| score(path)).fold(f64::NEG_INFINITY, f64::max);
        let best = paths.iter().filter(|path| score(path) > best - 1e-5).map(|path| {
            let names: Vec<&str> = path.iter().map(|&tag| &*tagger.internal_tags()[tag]).collect();
            Scheme::Iob2.write(&names)
        });
        let found = match pos {
            Some(pos) => tagger.tag_with_pos(&words, pos),
            None => tagger.tag(&words),
        };
        let found: Vec<&str> =
            found.unwrap().iter().map(|&tag| &*tagger.tags()[tag as usize]).collect();
        // A direct word has a fixed tag.
        let skip = usize::from(params.direct_words == ["The"]);
        assert!(best.clone().any(|best| best[skip..] == found[skip..]), "{params:?}: {found:?}");
    }
}

/// Checks marginals and the best sequences in the tags that the tagger returns.
fn check_returned_posterior(
    tagger: &FeatureTagger,
    words: &[&str],
    pos: Option<&[&str]>,
    paths: &[Vec<usize>],
    score: &dyn Fn(&[usize]) -> f64,
) {
    // A direct word has a fixed tag, whatever its scores.
    let direct: Vec<Option<usize>> =
        words.iter().map(|word| tagger.direct.tag(word).map(|tag| tag as usize)).collect();
    let is_possible = |path: &&Vec<usize>| {
        path.iter().zip(&direct).all(|(&tag, direct)| direct.is_none_or(|direct| direct == tag))
    };
    let written = |path: &Vec<usize>| {
        let names: Vec<&str> = path.iter().map(|&tag| &*tagger.internal_tags()[tag]).collect();
        Scheme::Iob2.write(&names)
    };
    let mut paths: Vec<(Vec<String>, f64)> =
        paths.iter().filter(is_possible).map(|path| (written(path), score(path))).collect();
    let total: f64 = paths.iter().map(|(_, score)| score.exp()).sum();
    let marginals = tagger.tag_marginals(words, pos).unwrap();
    for (t, row) in marginals.rows().enumerate() {
        for (name, &marginal) in tagger.tags().iter().zip(row) {
            let with = paths.iter().filter(|path| path.0[t] == *name).map(|path| path.1.exp());
            let expected = with.sum::<f64>() / total;
            assert!((f64::from(marginal) - expected).abs() < 1e-5, "{name}");
        }
    }
    // The best of several paths that are written alike counts.
    paths.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut distinct: Vec<(Vec<String>, f64)> = Vec::new();
    for path in paths {
        if !distinct.iter().any(|other| other.0 == path.0) {
            distinct.push(path);
        }
    }
    for n in [1, 5, 10_000] {
        let found = tagger.tag_n_best(words, pos, n).unwrap();
        assert_eq!(found.len(), n.min(distinct.len()));
        let mut seen = HashSet::new();
        for ((tags, log_prob), (_, score)) in found.iter().zip(&distinct) {
            assert!((log_prob - (score - total.ln())).abs() < 1e-5, "{log_prob}");
            let names: Vec<String> =
                tags.iter().map(|&tag| tagger.tags()[tag as usize].clone()).collect();
            let own = distinct.iter().find(|path| path.0 == names).expect("a possible sequence");
            // Ties may be in any order.
            assert!((own.1 - score).abs() < 1e-5, "{names:?}");
            assert!(seen.insert(names), "each sequence is given once");
        }
    }
}

#[test]
fn a_sentence_of_12_000_words_is_tagged() {
    let text = read(TEXT);
    let tagger = fit(&TaggerParams::default(), &text, encoders());
    let words = ["The", "cat", "barks"].repeat(4000);
    assert_eq!(tagger.tag(&words).unwrap().len(), 12_000);
    for row in tagger.marginals(&words, None).unwrap().rows() {
        let sum: f32 = row.iter().sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
    }
}
