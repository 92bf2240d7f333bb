//! Errors of constraints and guides.

use latens_model::{AvailableMemory, Bytes, DeviceError};
use thiserror::Error;

/// A constraint cannot be compiled or met.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ControlError {
    /// A part of a constraint contains no words.
    #[error("{part} contains no words")]
    NoWords {
        /// The part of the constraint.
        part: String,
    },
    /// A phrase has a word that the vocabulary lacks.
    #[error("{part}: the word `{word}` is not in the vocabulary of the model")]
    UnknownWord {
        /// The part of the constraint.
        part: String,
        /// The word, after preprocessing.
        word: String,
    },
    /// A pattern has an error.
    #[error("{part}: {problem}")]
    Pattern {
        /// The part of the constraint.
        part: String,
        /// What is wrong, and where.
        problem: String,
    },
    /// A length has a minimum above its maximum.
    #[error("{part}: the minimum {min} is above the maximum {max}")]
    Lengths {
        /// The part of the constraint.
        part: String,
        /// The minimum number of words.
        min: usize,
        /// The maximum number of words.
        max: usize,
    },
    /// An automaton has too many states.
    #[error("the automaton of {part} is too large: more than {max_states} states")]
    TooLarge {
        /// The part of the constraint.
        part: String,
        /// The limit.
        max_states: usize,
    },
    /// No text satisfies a part of a constraint.
    #[error("no text satisfies {part}")]
    Unsatisfiable {
        /// The part of the constraint.
        part: String,
    },
    /// Two parts of a constraint exclude each other.
    #[error("{first} and {second} contradict each other")]
    Contradiction {
        /// The first part of the constraint.
        first: String,
        /// The second part of the constraint.
        second: String,
    },
    /// A given beginning of the text already violates the constraint.
    #[error("no text that begins with `{prefix}` satisfies the constraint")]
    Prefix {
        /// The beginning of the text.
        prefix: String,
    },
    /// The maximum length is too short for the constraint.
    #[error("the constraint needs at least {needed} words, and at most {max} are allowed")]
    TooShort {
        /// The smallest number of words that satisfies the constraint.
        needed: usize,
        /// The maximum number of words.
        max: usize,
    },
    /// The guide gives a beginning of the text the probability zero.
    #[error("the guide gives the word `{word}` probability zero after the words before it")]
    ImpossiblePrefix {
        /// The first word with probability zero.
        word: String,
    },
    /// The guide gives the constraint the probability zero.
    #[error("the guide gives the constraint probability zero after {after}")]
    ImpossibleConstraint {
        /// The text so far.
        after: String,
    },
    /// Every word that keeps the constraint possible has probability zero under the language model.
    #[error(
        "the language model gives probability zero to all words that keep the constraint possible after {after}"
    )]
    ImpossibleModel {
        /// The text so far.
        after: String,
    },
    /// The vocabulary of the guide differs from that of the model.
    #[error(
        "the vocabulary of the guide differs from that of the model: {guide} and {model} words{difference}"
    )]
    Vocabulary {
        /// The number of words of the guide.
        guide: usize,
        /// The number of words of the model.
        model: usize,
        /// The first difference, if it can be named.
        difference: String,
    },
    /// The tables cannot be computed on the chosen device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The tables do not fit into memory.
    #[error(
        "the tables of {n_states} automaton states, {n_hidden} hidden states and {n_words} words need {}, and {} are free {}",
        Bytes(*.needed), Bytes(.available.bytes), .available.limit
    )]
    TooLittleMemory {
        /// States of the automaton.
        n_states: usize,
        /// States of the hidden Markov model.
        n_hidden: usize,
        /// Maximum number of words.
        n_words: usize,
        /// The needed memory in bytes.
        needed: u64,
        /// The free memory.
        available: AvailableMemory,
    },
}
