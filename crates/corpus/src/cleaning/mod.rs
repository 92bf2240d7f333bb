//! Cleaning of documents for topic models: stop words, punctuation, numbers, words of too many or too
//! few documents, and phrases.
//!
//! Cleaning happens after [`Preprocessing`](crate::Preprocessing) has split text into words. Parts of it
//! are learned from the training documents, and all of it is stored with the model, so that new
//! documents are cleaned in the same way.

pub(crate) mod frequency;
pub(crate) mod learn;
pub(crate) mod phrases;
pub(crate) mod rules;
pub(crate) mod stop_words;
