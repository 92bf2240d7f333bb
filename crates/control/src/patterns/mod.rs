//! Automata of single constraints: phrases, lengths, regular expressions over words and over characters.

pub(crate) mod phrases;
pub(crate) mod lengths;
mod nfa;
mod word_syntax;
pub(crate) mod word_regex;
pub(crate) mod char_regex;
pub(crate) mod lift;
