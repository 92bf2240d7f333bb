//! Probabilities near and at zero.

use crate::toy::{cases, compiled, lexicon, random_hmm};
use latens_control::{
    Constraint, ControlError, Guide, Lengths, Lookahead, LookaheadOptions, NextWords,
};
use latens_corpus::WordId;
use latens_model_hmm::Hmm;

fn lookahead(hmm: &Hmm, constraint: &Constraint, max: usize) -> Lookahead {
    let options = LookaheadOptions::new(Lengths { min: 0, max });
    Lookahead::new(hmm, compiled(constraint), options).unwrap()
}

#[test]
fn extreme_probabilities_give_no_nan_and_nothing_above_one() {
    for (seed, power) in [(1, 8.0), (2, 12.0), (3, 14.0)] {
        let hmm = random_hmm(4, power, seed);
        for (constraint, _) in cases() {
            let lookahead = lookahead(&hmm, &constraint, 30);
            let guide = Guide::new(&hmm, &lookahead);
            let (mut reading, mut next) = (guide.start(), NextWords::default());
            for word in [2, 5, 3, 3, 4, 2, 2, 5] {
                let log_prob = guide.log_prob(&reading);
                assert!(log_prob <= 0.0, "{constraint}: {log_prob}");
                guide.next_words(&reading, &mut next);
                let all = next.joint.iter().chain(&next.conditional);
                all.for_each(|&log_prob| assert!(log_prob <= 0.0, "{constraint}: {log_prob}"));
                guide.read(&mut reading, WordId(word));
            }
        }
    }
}

/// A model that repeats a cycle of words: state i emits word i, and the last one `<eos>`.
fn cycle(leak: f32) -> Hmm {
    let transition: Vec<f32> = (0..3)
        .flat_map(|from| (0..3).map(move |to| (from, to)))
        .map(|(from, to)| if to == (from + 1) % 3 { 1.0 - leak } else { leak / 2.0 })
        .collect();
    // `ab`, `b` and `<eos>`.
    let mut emission = vec![0.0; 3 * 6];
    (emission[2], emission[6 + 3], emission[12 + 1]) = (1.0, 1.0, 1.0);
    Hmm::from_probabilities(lexicon(), vec![1.0, 0.0, 0.0], &transition, &emission).unwrap()
}

#[test]
fn tiny_probabilities_are_kept() {
    // `ab ab ab ab ab` needs four transitions of probability 5·10⁻²⁶.
    let (leak, n) = (1e-25f32, 4.0);
    let hmm = cycle(leak);
    let constraint = Constraint::regex("ab ab ab ab ab b");
    let lookahead = lookahead(&hmm, &constraint, 8);
    let guide = Guide::new(&hmm, &lookahead);
    let expected = n * f64::from(leak / 2.0).ln();
    assert!((guide.log_prob(&guide.start()) - expected).abs() < 1e-6 * expected.abs());
}

#[test]
fn a_guide_that_makes_the_constraint_impossible_says_so() {
    let hmm = cycle(0.0);
    let impossible = lookahead(&hmm, &Constraint::contains("b b"), 8);
    let guide = Guide::new(&hmm, &impossible);
    let error = guide.start_with(&[]).unwrap_err();
    assert!(matches!(error, ControlError::ImpossibleConstraint { .. }), "{error}");
    let possible = lookahead(&hmm, &Constraint::contains("b"), 8);
    let guide = Guide::new(&hmm, &possible);
    assert_eq!(guide.log_prob(&guide.start()), 0.0);
    let error = guide.start_with(&[WordId(3)]).unwrap_err();
    assert_eq!(error, ControlError::ImpossiblePrefix { word: "b".into() });
    // Reading an impossible word leaves zeros, not NaN.
    let (mut reading, mut next) = (guide.start(), NextWords::default());
    assert_eq!(guide.read(&mut reading, WordId(5)), f64::NEG_INFINITY);
    guide.next_words(&reading, &mut next);
    assert!(next.joint.iter().all(|&log_prob| log_prob == f64::NEG_INFINITY));
    assert_eq!(guide.log_prob(&reading), f64::NEG_INFINITY);
    assert_eq!(guide.most_probable(&reading).unwrap(), None);
}
