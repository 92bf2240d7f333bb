use crate::budget::Budget;
use crate::counting::batches::{Batches, count_in_batches, count_runs};
use crate::counting::occurrences::{Occurrences, Text};
use crate::counting::rows::Part;
use crate::error::CountError;
use crate::limits::MAX_ORDER;
use crate::ngrams::context::{Context, Packing};
use crate::table::count_table::CountTable;
use latens_corpus::{Sentences, Vocab, WordId};
use std::ops::{ControlFlow, Range};

/// Callback that receives an n-gram, reversed, and its count, and can stop with an error.
pub type Visit<'a> = dyn FnMut(&[WordId], u64) -> Result<(), CountError> + 'a;

/// Counts of all n-grams of one order.
///
/// Every token, including end-of-sentence tokens, ends exactly one n-gram. Positions before the start
/// of a sentence hold the id [`NgramCounts::n_words`], which no word has. The first words of a sentence
/// therefore end n-grams too, and no n-gram crosses a sentence boundary.
///
/// N-grams are stored reversed, with the last word first, and sorted by the reversed words. N-grams
/// with a common suffix are therefore adjacent.
#[derive(Clone, Debug)]
pub struct NgramCounts {
    pub(crate) order: usize,
    pub(crate) n_tokens: u64,
    /// Fingerprint of the vocabulary; `None` for a file that does not store it.
    pub(crate) vocab: Option<u64>,
    pub(crate) packing: Packing,
    pub(crate) ngrams: Ngrams,
}

/// The last word is the row. The words before it are packed into 64 bits if they fit, else into 128.
#[derive(Clone, Debug)]
pub(crate) enum Ngrams {
    Narrow(CountTable<u64>),
    Wide(CountTable<[u64; 2]>),
}

/// Runs the same code on either width of a table.
macro_rules! with_table {
    ($ngrams:expr, $table:ident => $code:expr) => {
        match $ngrams {
            Ngrams::Narrow($table) => $code,
            Ngrams::Wide($table) => $code,
        }
    };
}
pub(crate) use with_table;

impl NgramCounts {
    /// Counts the n-grams of `order` words of a text that `vocab` encodes.
    ///
    /// `watch` receives the number of tokens processed so far and can stop the count.
    ///
    /// # Panics
    /// If the sentences contain word ids outside the vocabulary.
    pub fn of(
        sentences: &Sentences,
        vocab: &Vocab,
        order: usize,
        budget: &Budget,
        watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<NgramCounts, CountError> {
        let n_words = vocab.len();
        let packing = packing(order, n_words)?;
        let text = Text::in_sentences(sentences, order as u8 - 1, n_words);
        let ngrams = if packing.n_bits() <= u64::BITS {
            Ngrams::Narrow(count(&text, packing, budget, watch)?)
        } else {
            Ngrams::Wide(count(&text, packing, budget, watch)?)
        };
        let (n_tokens, vocab) = (sentences.n_tokens() as u64, Some(vocab.fingerprint()));
        Ok(NgramCounts { order, n_tokens, vocab, packing, ngrams })
    }

    /// Counts like [`NgramCounts::of`], and calls `visit` with every n-gram and its count, like
    /// [`NgramCounts::for_each`]. The n-grams of the whole text are never in memory at once.
    ///
    /// # Panics
    /// If the sentences contain word ids outside the vocabulary.
    pub fn visit(
        sentences: &Sentences,
        n_words: usize,
        order: usize,
        budget: &Budget,
        watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
        visit: &mut Visit<'_>,
    ) -> Result<(), CountError> {
        let packing = packing(order, n_words)?;
        let text = Text::in_sentences(sentences, order as u8 - 1, n_words);
        if packing.n_bits() <= u64::BITS {
            count_and_visit::<u64>(&text, order, packing, budget, watch, visit)
        } else {
            count_and_visit::<[u64; 2]>(&text, order, packing, budget, watch, visit)
        }
    }

    /// Adds up counts of different texts. The order of the parts does not matter.
    ///
    /// All parts must have the same order and vocabulary.
    pub fn merge(parts: &[NgramCounts], budget: &Budget) -> Result<NgramCounts, CountError> {
        let Some(first) = parts.first() else { return Err(CountError::NothingToMerge) };
        // A file may not store its vocabulary, so the first one that is known decides.
        let known = parts.iter().find(|part| part.vocab.is_some()).unwrap_or(first);
        let mut n_tokens = 0_u64;
        for (i, part) in parts.iter().enumerate() {
            first
                .check_like(part)
                .and_then(|()| known.check_vocab(part))
                .map_err(|difference| CountError::Unlike { part: i + 1, difference })?;
            n_tokens = n_tokens.checked_add(part.n_tokens).ok_or(CountError::Overflow)?;
        }
        let ngrams = match &first.ngrams {
            Ngrams::Narrow(_) => Ngrams::Narrow(first.merge_tables(parts, budget, narrow)?),
            Ngrams::Wide(_) => Ngrams::Wide(first.merge_tables(parts, budget, wide)?),
        };
        let vocab = parts.iter().find_map(|part| part.vocab);
        Ok(NgramCounts { n_tokens, vocab, ngrams, ..*first })
    }

    fn check_like(&self, other: &NgramCounts) -> Result<(), String> {
        if other.order != self.order {
            return Err(format!("has {}-grams, part 1 has {}-grams", other.order, self.order));
        }
        if other.n_words() != self.n_words() {
            let (others, ours) = (other.n_words(), self.n_words());
            return Err(format!("has {others} distinct words, part 1 has {ours}"));
        }
        Ok(())
    }

    fn check_vocab(&self, other: &NgramCounts) -> Result<(), String> {
        match (self.vocab, other.vocab) {
            (Some(ours), Some(theirs)) if ours != theirs => {
                Err("has a different vocabulary from the previous parts".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Whether the counts can be those of a text that `vocab` encodes.
    pub fn fits(&self, vocab: &Vocab) -> bool {
        self.n_words() == vocab.len()
            && self.vocab.is_none_or(|fingerprint| fingerprint == vocab.fingerprint())
    }

    fn merge_tables<C: Context>(
        &self,
        parts: &[NgramCounts],
        budget: &Budget,
        table: fn(&NgramCounts) -> Option<&CountTable<C>>,
    ) -> Result<CountTable<C>, CountError> {
        let tables: Option<Vec<_>> = parts.iter().map(table).collect();
        let tables = tables.expect("order and number of words determine the width of a table");
        CountTable::merge(self.n_words(), &tables, budget)
    }

    /// Number of words per n-gram.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Number of distinct words, which is also the id of positions before the start of a sentence.
    pub fn n_words(&self) -> usize {
        with_table!(&self.ngrams, table => table.n_rows())
    }

    /// Number of tokens, which is the sum of all counts.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens
    }

    /// Number of distinct n-grams.
    pub fn len(&self) -> usize {
        with_table!(&self.ngrams, table => table.len())
    }

    /// Whether there are no n-grams.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Index of the first n-gram that ends in each word, in the order of word ids, then the number of
    /// n-grams. Useful for distributing n-grams to threads.
    pub fn offsets(&self) -> &[u64] {
        with_table!(&self.ngrams, table => table.offsets())
    }

    /// Calls `visit` with every n-gram and its count. N-grams are reversed, with the last word first,
    /// and sorted.
    pub fn for_each(&self, visit: impl FnMut(&[WordId], u64)) {
        self.for_each_ending_in(0..self.n_words(), visit);
    }

    /// Calls `visit` with every n-gram whose last word has an id in `last_words`; see
    /// [`NgramCounts::for_each`].
    ///
    /// # Panics
    /// If the range exceeds the number of words.
    pub fn for_each_ending_in(
        &self,
        last_words: Range<usize>,
        mut visit: impl FnMut(&[WordId], u64),
    ) {
        let mut buffer = [WordId::default(); MAX_ORDER];
        let ngram = &mut buffer[..self.order];
        with_table!(&self.ngrams, table => for last_word in last_words {
            ngram[0] = last_word.into();
            for (context, count) in table.row(last_word) {
                self.packing.unpack(context, &mut ngram[1..]);
                visit(ngram, count);
            }
        });
    }
}

pub(crate) fn packing(order: usize, n_words: usize) -> Result<Packing, CountError> {
    if !(1..=MAX_ORDER).contains(&order) {
        return Err(CountError::Order { order });
    }
    let limit = Packing::max_words(order);
    Packing::new(order, n_words).ok_or(CountError::TooManyWords { order, n_words, limit })
}

fn narrow(counts: &NgramCounts) -> Option<&CountTable<u64>> {
    if let Ngrams::Narrow(table) = &counts.ngrams { Some(table) } else { None }
}

fn wide(counts: &NgramCounts) -> Option<&CountTable<[u64; 2]>> {
    if let Ngrams::Wide(table) = &counts.ngrams { Some(table) } else { None }
}

fn count<C: Context>(
    text: &Text<'_>,
    packing: Packing,
    budget: &Budget,
    watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<CountTable<C>, CountError> {
    let mut tables = count_in_batches(text, 1, budget, watch, |occurrences, words, parts| {
        count_words(occurrences, words, packing, &mut parts[0]);
    })?;
    Ok(tables.remove(0))
}

fn count_and_visit<C: Context>(
    text: &Text<'_>,
    order: usize,
    packing: Packing,
    budget: &Budget,
    watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
    visit: &mut Visit<'_>,
) -> Result<(), CountError> {
    let batches = count_runs::<C>(text, 1, budget, watch, |occurrences, words, parts| {
        count_words(occurrences, words, packing, &mut parts[0]);
    })?;
    let mut buffer = [WordId::default(); MAX_ORDER];
    let ngram = &mut buffer[..order];
    let mut visit = |row: u32, context: C, count: u64| {
        ngram[0] = WordId(row);
        packing.unpack(context, &mut ngram[1..]);
        visit(ngram, count)
    };
    match batches {
        Batches::One(mut tables) => {
            let table = tables.remove(0).into_table();
            for row in 0..table.n_rows() {
                table
                    .row(row)
                    .try_for_each(|(context, count)| visit(row as u32, context, count))?;
            }
            Ok(())
        }
        Batches::Many(mut runs) => {
            for entry in runs.remove(0).finish()? {
                let (key, count) = entry?;
                let (row, context) = C::split(key);
                visit(row, context, count)?;
            }
            Ok(())
        }
    }
}

/// Counts the n-grams that end in a range of words.
fn count_words<C: Context>(
    occurrences: &Occurrences<'_>,
    words: Range<usize>,
    packing: Packing,
    part: &mut Part<'_, C>,
) {
    let mut contexts = Vec::new();
    for word_idx in words {
        contexts.clear();
        occurrences.for_each_past(word_idx, |past| contexts.push(packing.pack(past)));
        part.push_row(&mut contexts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_limits_the_size_of_the_vocabulary() {
        assert!(matches!(packing(6, 1 << 25), Err(CountError::TooManyWords { .. })));
        assert!(packing(6, 1 << 24).is_ok() && packing(5, 1 << 25).is_ok());
    }
}
