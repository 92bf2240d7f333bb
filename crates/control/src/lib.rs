//! Constraints on generated text, and language models that meet them.
//!
//! A [`Constraint`] is compiled to an [`Automaton`] over the vocabulary of a model. A hidden Markov model computes exactly
//! how probable it is that a text satisfies it ([`Lookahead`], [`Guide`]), and steers any language model ([`Steerer`]).
//!
//! ```
//! use latens_control::{Alphabet, Constraint, Guide, Lengths, Lookahead, LookaheadOptions, Steerer};
//! use latens_math::Rng;
//! use latens_model::Fit;
//! use latens_model_hmm::Hmm;
//! use latens_tasks::SampleOptions;
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 50, /* seed */ 1);
//! let hmm = Hmm::params().n_states(4).n_clusters(1).dim(8).epochs(3).fit(&corpus)?;
//!
//! let constraint = Constraint::contains("b0 a1") & Constraint::excludes("a0");
//! let automaton = constraint.compile(&Alphabet::Words(hmm.lexicon()))?.automaton;
//! let options = LookaheadOptions::new(Lengths { min: 0, max: 8 });
//! let lookahead = Lookahead::new(&hmm, automaton, options)?;
//! let guide = Guide::new(&hmm, &lookahead);
//! println!("p = {}", guide.log_prob(&guide.start()).exp());
//!
//! let steerer = Steerer::alone(guide, &[])?;
//! let text = steerer.sample(&SampleOptions::default(), &mut Rng::new(1))?;
//! let words: Vec<&str> = text.words.iter().map(|&word| hmm.lexicon().vocab.word(word)).collect();
//! assert!(words.join(" ").contains("b0 a1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod automaton;
mod patterns;
mod constraint;
mod compile;
mod guide;
mod steering;

pub use automaton::Automaton;
pub use compile::{Alphabet, Compiled, MAX_STATES};
pub use constraint::Constraint;
pub use error::ControlError;
pub use guide::{Guide, Lengths, Lookahead, LookaheadOptions, MostProbable, NextWords, Reading};
pub use steering::{Generated, Steerer, check_vocabulary};
