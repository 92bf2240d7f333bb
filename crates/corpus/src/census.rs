use crate::encode::{EncodedRecord, Sink, count_words, encode_new_words, settle};
use crate::error::ReadError;
use crate::input::inputs::Inputs;
use crate::input::source::Files;
use crate::words::lexicon::Lexicon;
use crate::words::preprocessing::Preprocessing;
use crate::words::vocab::VocabLimits;

/// The lexicon and the size of a text, without the text itself.
#[derive(Clone, Debug)]
pub struct Census {
    /// The words of the text.
    pub lexicon: Lexicon,
    /// Number of tokens, including one end-of-sentence token per sentence.
    pub n_tokens: u64,
    /// Number of sentences.
    pub n_sentences: u64,
}

impl Lexicon {
    /// Learns the vocabulary of a text of any size.
    ///
    /// Memory holds the vocabulary and a few blocks of text.
    pub fn learn(
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<Census, ReadError> {
        let mut tally = Tally::default();
        let seen = encode_new_words(&mut Files::new(inputs), preprocessing, &mut tally)?;
        let Tally { counts, n_sentences } = tally;
        let n_tokens = counts.iter().sum::<u64>() + n_sentences;
        let (vocab, _) = settle(&seen, &counts, n_sentences, limits, |_| true);
        let lexicon = Lexicon::new(*preprocessing, *limits, vocab);
        Ok(Census { lexicon, n_tokens, n_sentences })
    }
}

/// Counts of the provisional word numbers.
#[derive(Default)]
struct Tally {
    counts: Vec<u64>,
    n_sentences: u64,
}

impl Sink for Tally {
    fn record(&mut self, record: EncodedRecord<'_>) -> Result<(), ReadError> {
        count_words(&mut self.counts, record.words);
        self.n_sentences += 1;
        Ok(())
    }

    fn end_of_file(&mut self) -> Result<(), ReadError> {
        Ok(())
    }
}
