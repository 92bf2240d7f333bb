//! Tags a text, and checks the tags.

use crate::tagging::spans::{Scheme, are_chunk_tags};
use latens_corpus::{MissingColumn, TaggedSentence, TaggedSentences};
use latens_model::{Device, DeviceError, TagError, TagInput, TagOutputs, Tagged, Tagger};
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

/// Why a text could not be tagged on a device.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TagTextError {
    /// A sentence could not be tagged.
    #[error(transparent)]
    Tag(#[from] TagError),
    /// The device could not be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
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
    let found = tag_text(tagger, text, TagOutputs::default())?;
    Ok(found.into_iter().map(|tagged| named(tagged.tags)).collect())
}

/// Tags a text, with other outputs.
pub fn tag_text(
    tagger: &dyn Tagger,
    text: &TaggedSentences,
    outputs: TagOutputs,
) -> Result<Vec<Tagged>, TagError> {
    with_inputs(tagger, text, |inputs| tagger.tag_all_with(inputs, outputs).into_iter().collect())
}

/// [`tag_text`] on a device. A GPU computes the states of hidden Markov models, which are taggers or encoders of
/// a tagger.
pub fn tag_text_on(
    device: Device,
    tagger: &dyn Tagger,
    text: &TaggedSentences,
    outputs: TagOutputs,
) -> Result<Vec<Tagged>, TagTextError> {
    if device == Device::Cpu {
        return Ok(tag_text(tagger, text, outputs)?);
    }
    let cpu_only = || Err(DeviceError::cuda("this tagger uses no hidden Markov model"));
    let mut on_gpu = tagger.on_gpu().unwrap_or_else(cpu_only)?;
    with_inputs(tagger, text, |inputs| {
        let tagged = on_gpu.tag_all_with(inputs, outputs)?.into_iter();
        Ok(tagged.collect::<Result<_, TagError>>()?)
    })
}

/// Applies a function to the sentences of a text, with parts of speech if the tagger reads them.
fn with_inputs<T, E: From<TagError>>(
    tagger: &dyn Tagger,
    text: &TaggedSentences,
    function: impl FnOnce(&[TagInput<'_>]) -> Result<T, E>,
) -> Result<T, E> {
    let words: Vec<Vec<&str>> = text.iter().map(|sentence| sentence.words()).collect();
    let pos: Vec<Option<Vec<&str>>> =
        text.iter().map(|sentence| parts_of_speech(tagger, sentence)).collect::<Result<_, _>>()?;
    let inputs: Vec<TagInput<'_>> = words
        .iter()
        .zip(&pos)
        .map(|(words, pos)| TagInput { words, pos: pos.as_deref() })
        .collect();
    function(&inputs)
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
