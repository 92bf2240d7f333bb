//! Tags a text, and checks the tags.

use crate::tagging::spans::{Scheme, are_chunk_tags};
use latens_corpus::{MissingColumn, TaggedSentence, TaggedSentences};
use latens_model::{TagError, Tagger};
use rayon::prelude::*;
use thiserror::Error;

/// Why a tagger could not be evaluated.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvaluateError {
    /// The text lacks a column.
    #[error(transparent)]
    Column(#[from] MissingColumn),
    /// A sentence could not be tagged.
    #[error(transparent)]
    Tag(#[from] TagError),
}

/// Returns the name of the tag of each word of a sentence.
pub fn tag_words<'t>(tagger: &'t dyn Tagger, words: &[&str]) -> Result<Vec<&'t str>, TagError> {
    let names = tagger.tags();
    Ok(tagger.tag(words)?.into_iter().map(|tag| names[tag as usize].as_str()).collect())
}

/// Tags a text and returns the names of the tags of each sentence.
pub fn tag_names<'t>(
    tagger: &'t dyn Tagger,
    text: &TaggedSentences,
) -> Result<Vec<Vec<&'t str>>, TagError> {
    let names = tagger.tags();
    let named = |tags: Vec<u32>| tags.into_iter().map(|tag| names[tag as usize].as_str()).collect();
    if tagger.pos_column().is_none() {
        let sentences: Vec<Vec<&str>> = text.iter().map(|sentence| sentence.words()).collect();
        return tagger.tag_all(&sentences).into_iter().map(|tags| Ok(named(tags?))).collect();
    }
    let tag = |i: usize| -> Result<Vec<&'t str>, TagError> {
        let words = text.get(i).words();
        Ok(named(match parts_of_speech(tagger, text.get(i))? {
            None => tagger.tag(&words)?,
            Some(pos) => tagger.tag_with_pos(&words, &pos)?,
        }))
    };
    (0..text.len()).into_par_iter().map(tag).collect()
}

/// The parts of speech of a sentence, if the tagger reads them.
pub fn parts_of_speech<'a>(
    tagger: &dyn Tagger,
    sentence: TaggedSentence<'a>,
) -> Result<Option<Vec<&'a str>>, TagError> {
    let Some(column) = tagger.pos_column() else { return Ok(None) };
    let missing = TagError::NoPartsOfSpeech { column: column + 1 };
    sentence.column(column).ok_or(missing).map(Some)
}

/// Tags a text and returns, for each token, whether the tag is correct. `column` has the true tags, counted from 0.
///
/// Tags of spans are compared in IOB2.
pub fn correct_tokens(
    tagger: &dyn Tagger,
    text: &TaggedSentences,
    column: usize,
) -> Result<Vec<bool>, EvaluateError> {
    text.check_column(column)?;
    Ok(are_correct(&true_tags(text, column), &tag_names(tagger, text)?))
}

/// The tags of each sentence.
///
/// # Panics
/// If a token lacks the column.
pub(crate) fn true_tags(text: &TaggedSentences, column: usize) -> Vec<Vec<&str>> {
    text.iter().map(|sentence| sentence.column(column).expect("the column was checked")).collect()
}

/// Whether each tag is correct. True tags of spans in another scheme are converted to IOB2, which taggers return.
pub(crate) fn are_correct(truth: &[Vec<&str>], found: &[Vec<&str>]) -> Vec<bool> {
    let are_spans = are_chunk_tags(truth.iter().flatten().copied());
    let pairs = truth.iter().zip(found);
    if !are_spans || Scheme::of(truth.iter().map(Vec::as_slice)) == Scheme::Iob2 {
        return pairs.flat_map(|(t, f)| t.iter().zip(f).map(|(t, f)| t == f)).collect();
    }
    let written = pairs.map(|(t, f)| (Scheme::Iob2.write(t), Scheme::Iob2.write(f)));
    written.flat_map(|(t, f)| t.into_iter().zip(f).map(|(t, f)| t == f)).collect()
}
