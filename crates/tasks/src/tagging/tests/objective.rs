//! The objective and its gradient, against brute force and finite differences.

use super::fixtures::{TEXT, examples, kinds, read};
use crate::tagging::features::examples::Examples;
use crate::tagging::features::rows::RowValues;
use crate::tagging::learn::objective::Objective;
use crate::tagging::params::{Kind, Pairs, TaggerParams};
use crate::tagging::weights::layout::Layout;
use latens_math::{Real, Rng};
use std::sync::Arc;

#[test]
fn gradients_agree_with_finite_differences() {
    let text = read(TEXT);
    for params in kinds() {
        let examples = examples(&text, &params);
        let layout = Layout::new(&examples, params.pairs, params.kind, params.n_hidden_units());
        let (examples, layout) = (Arc::new(examples), Arc::new(layout));
        let mut objective: Objective<f64> = Objective::new(&examples, &layout, params.kind, 0.3);
        let mut rng = Rng::new(4);
        let mut weights: Vec<f64> = (0..layout.n_weights()).map(|_| rng.normal()).collect();
        for (w, has) in weights[layout.transition_weights()].iter_mut().zip(&layout.transitions) {
            *w = if *has { *w } else { 0.0 };
        }
        let mut gradient = vec![0.0; weights.len()];
        objective.evaluate(&weights, &mut gradient);
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
                objective.evaluate(&weights, &mut scratch)
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

#[test]
fn the_loss_agrees_with_the_sum_over_all_paths() {
    let text = read(TEXT);
    let params = TaggerParams { window: 1, pairs: Pairs::All, ..TaggerParams::default() };
    let examples = examples(&text, &params);
    let layout = Arc::new(Layout::new(&examples, params.pairs, Kind::Crf, 0));
    let examples = Arc::new(examples);
    for size in [1.0, 60.0] {
        // Products of the larger weights underflow in single precision, which forces log space.
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
        fn loss<T: Real>(examples: &Arc<Examples>, layout: &Arc<Layout>, weights: &[f64]) -> f64 {
            let mut gradient = vec![0.0; weights.len()];
            Objective::<T>::new(examples, layout, Kind::Crf, 0.0).evaluate(weights, &mut gradient)
        }
        let wide = loss::<f64>(&examples, &layout, &weights);
        let narrow = loss::<f32>(&examples, &layout, &weights);
        assert!((wide - expected).abs() < 1e-9 * expected.abs().max(1.0), "{wide} {expected}");
        assert!((narrow - expected).abs() < 1e-5 * expected.abs().max(1.0), "{narrow} {expected}");
    }
}

/// The score of one tag of one token, by the definition.
fn score_of(examples: &Examples, layout: &Layout, weights: &[f64], token: usize, tag: u16) -> f64 {
    let mut score = 0.0;
    for attribute in examples.lexical.attributes_of(token) {
        let range = layout.attribute(attribute);
        let index = layout.tags[range.clone()].iter().position(|&other| other == tag);
        score += index.map_or(0.0, |index| weights[range.start + index]);
    }
    let sentence = examples.ends.partition_point(|&end| end <= token);
    for (block, rows) in examples.blocks.iter().enumerate() {
        for position in 0..layout.n_positions {
            let Some(at) = (token + position).checked_sub(examples.window) else { continue };
            if !examples.sentence(sentence).contains(&at) || rows.of_token[at] == u32::MAX {
                continue;
            }
            let (begin, row) = (layout.block(block, position).start, rows.of_token[at] as usize);
            for column in 0..rows.n_features {
                let value = match &rows.values {
                    RowValues::Dense(values) => values[row * rows.n_features + column],
                    RowValues::Sparse { rows, .. } => {
                        rows.row(row).filter(|&(c, _)| c == column).map(|(_, value)| value).sum()
                    }
                };
                score +=
                    f64::from(value) * weights[begin + column * layout.n_tags + usize::from(tag)];
            }
        }
    }
    score
}
