//! Predictions of fitted taggers, against brute force.

use super::fixtures::{TEXT, encoders, fit, kinds, read};
use crate::tagging::params::TaggerParams;
use crate::tagging::spans::Scheme;
use latens_model::Tagger;

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
