//! Guides of every kind of hidden Markov model: with clusters, with lists of states, dense; scalar and neural.

use latens_control::{
    Alphabet, Constraint, Guide, Lengths, Lookahead, LookaheadOptions, NextWords,
};
use latens_corpus::WordId;
use latens_math::log_sum_exp;
use latens_model::{Fit, LanguageModel};
use latens_model_hmm::{Constraint as StateConstraint, Hmm, Parameterization};

#[test]
fn every_kind_of_model_agrees_with_the_sum_over_all_texts() {
    let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 60, /* seed */ 1);
    for constraint in [StateConstraint::Brown, StateConstraint::Uniform, StateConstraint::None] {
        for parameterization in [Parameterization::Scalar, Parameterization::Neural] {
            let params = Hmm::params().n_states(16).n_clusters(4).dim(8).epochs(2).seed(3);
            let params = params.constraint(constraint).parameterization(parameterization);
            check(&params.fit(&corpus).unwrap());
        }
    }
}

fn check(hmm: &Hmm) {
    let alphabet = Alphabet::Words(hmm.lexicon());
    let constraint = Constraint::contains("b0") & Constraint::excludes("a1");
    let automaton = constraint.compile(&alphabet).unwrap().automaton;
    let options = LookaheadOptions::new(Lengths { min: 0, max: 2 });
    let lookahead = Lookahead::new(hmm, automaton, options).unwrap();
    let guide = Guide::new(hmm, &lookahead);
    let words: Vec<WordId> = (2..hmm.n_words()).map(WordId::from).collect();
    let id = |word: &str| hmm.lexicon().vocab.id(word);
    let pairs = words.iter().flat_map(|&a| words.iter().map(move |&b| vec![a, b]));
    let texts = words.iter().map(|&word| vec![word]).chain(pairs);
    let met = texts.filter(|text| text.contains(&id("b0")) && !text.contains(&id("a1")));
    let log_probs: Vec<f64> =
        met.map(|text| hmm.log_prob(&[&text[..], &[WordId::EOS]].concat())).collect();
    let expected = log_sum_exp(&log_probs);
    let found = guide.log_prob(&guide.start());
    assert!((found - expected).abs() < 1e-4, "{found} {expected}");

    // The factors of the joint probability are those of the language model.
    let (mut reading, mut scorer) = (guide.start(), hmm.scorer());
    let (mut next, mut plain) = (NextWords::default(), vec![0.0; hmm.n_words()]);
    for word in ["b0", "a2"] {
        guide.next_words(&reading, &mut next);
        scorer.next_log_probs(&mut plain);
        assert!((log_sum_exp(&next.joint) - guide.log_prob(&reading)).abs() < 1e-5);
        for ((joint, conditional), plain) in next.joint.iter().zip(&next.conditional).zip(&plain) {
            let is_possible = *conditional > f64::NEG_INFINITY;
            assert!(!is_possible || (joint - conditional - plain).abs() < 1e-4);
        }
        let log_prob = guide.read(&mut reading, id(word));
        assert!((log_prob - scorer.read(id(word))).abs() < 1e-4);
    }
}
