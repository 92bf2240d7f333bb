//! Generates sentences that satisfy constraints: the guide "Generate text under constraints" as a program.
//!
//! `cargo run -p latens --example generate`

#![expect(clippy::print_stdout, reason = "examples print")]

use latens::control::{
    Alphabet, Constraint, Guide, Lengths, Lookahead, LookaheadOptions, Steerer, check_vocabulary,
};
use latens::corpus::embedded::{self, Split};
use latens::math::Rng;
use latens::prelude::*;
use latens::tasks::SampleOptions;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reader = Corpus::reader().lowercase(true).min_count(2);
    let corpus = reader.read_lines(embedded::text(Split::Train).lines())?;
    let ngram = Ngram::params().order(3).fit(&corpus)?;
    let hmm = Hmm::params().n_states(64).n_clusters(8).dim(32).epochs(3).fit(&corpus)?;
    check_vocabulary(&hmm.lexicon().vocab, &ngram.lexicon().vocab)?;

    let constraint = Constraint::contains("of the")
        & Constraint::contains_any(["man", "house"])
        & Constraint::excludes("and");
    let automaton = constraint.compile(&Alphabet::Words(&corpus.lexicon))?.automaton;
    println!("{} automaton states for {constraint}", automaton.n_states());

    let options = LookaheadOptions::new(Lengths { min: 5, max: 15 });
    let lookahead = Lookahead::new(&hmm, automaton, options)?;
    let guide = Guide::new(&hmm, &lookahead);
    println!("probability under the guide: {:.2e}", guide.log_prob(&guide.start()).exp());

    let shown = |words: &[WordId]| {
        let words = words.iter().map(|&word| corpus.lexicon.vocab.word(word));
        words.collect::<Vec<_>>().join(" ")
    };
    let steerer = Steerer::new(&ngram, guide, &[])?;
    let (sampling, mut rng) = (SampleOptions::default(), Rng::new(1));
    for _ in 0..3 {
        println!("sample: {}", shown(&steerer.sample(&sampling, &mut rng)?.words));
    }
    for found in steerer.beam(/* width */ 8, /* n */ 2)? {
        println!("beam: {} ({:.1} nats)", shown(&found.words), found.log_prob);
    }
    let exact = Steerer::alone(guide, &corpus.lexicon.ids("it was"))?;
    println!("from the HMM alone: it was {}", shown(&exact.sample(&sampling, &mut rng)?.words));
    Ok(())
}
