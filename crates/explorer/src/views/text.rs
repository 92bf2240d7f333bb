//! Typed text as words and ids.

use crate::error::ViewError;
use latens::corpus::WordId;
use latens::model::Model;
use serde_json::{Value, json};

/// Limit on a typed text in bytes, before it is split into words.
pub(crate) const MAX_BYTES: usize = 50_000;

/// The words of a typed text and their ids.
pub(crate) struct Typed {
    pub(crate) words: Vec<String>,
    pub(crate) ids: Vec<WordId>,
}

impl Typed {
    /// Splits a text of at most `max_words` words as the model does, as one sentence.
    pub(crate) fn new(model: &dyn Model, text: &str, max_words: usize) -> Result<Typed, ViewError> {
        check_length(text)?;
        let (mut words, mut ids) = (Vec::new(), Vec::new());
        model.lexicon().preprocessing.words(text, |word| {
            ids.push(model.word_id(word));
            words.push(word.to_owned());
        });
        if words.len() > max_words {
            return Err(ViewError::TooLong { found: words.len(), max: max_words, unit: "words" });
        }
        Ok(Typed { words, ids })
    }

    /// The ids followed by `<eos>`.
    pub(crate) fn sentence(&self) -> Vec<WordId> {
        self.ids.iter().copied().chain([WordId::EOS]).collect()
    }

    /// Whether the model knows a word.
    pub(crate) fn is_known(&self, at: usize) -> bool {
        self.ids[at] != WordId::UNK
    }
}

/// Refuses a text that is too long to be processed while a user waits.
pub(crate) fn check_length(text: &str) -> Result<(), ViewError> {
    match text.len() {
        found if found > MAX_BYTES => {
            Err(ViewError::TooLong { found, max: MAX_BYTES, unit: "bytes" })
        }
        _ => Ok(()),
    }
}

/// Words with numbers, as `[{word, <name>}]`.
pub(crate) fn weighted<'a, T: Into<Value>>(
    name: &str,
    words: impl IntoIterator<Item = (&'a str, T)>,
) -> Vec<Value> {
    words.into_iter().map(|(word, value)| json!({ "word": word, name: value.into() })).collect()
}

/// Indices of the `n` largest values in descending order; ties are in the order of the indices.
pub(crate) fn largest(values: &[f64], n: usize) -> Vec<usize> {
    let by_value = |&a: &usize, &b: &usize| values[b].total_cmp(&values[a]).then(a.cmp(&b));
    let mut order: Vec<usize> = (0..values.len()).collect();
    if n < order.len() {
        order.select_nth_unstable_by(n, by_value);
        order.truncate(n);
    }
    order.sort_unstable_by(by_value);
    order
}
