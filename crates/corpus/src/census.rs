use crate::encode::{EncodedRecord, Sink, count_words, encode_new_words, settle};
use crate::error::ReadError;
use crate::input::inputs::Inputs;
use crate::input::source::Files;
use crate::lexicon::Lexicon;
use crate::words::preprocessing::Preprocessing;
use crate::words::vocab::{Vocab, VocabLimits};

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

impl Census {
    /// Adds up the counts of the parts of a text, which must have been preprocessed in the same way. Without limits on
    /// the parts, this is the census of the whole text; `limits` apply to the sums.
    ///
    /// # Panics
    /// If there are no parts, or their preprocessing differs.
    pub fn merge(parts: &[Census], limits: &VocabLimits) -> Census {
        let preprocessing = parts.first().expect("at least one part").lexicon.preprocessing;
        let is_same = |part: &Census| part.lexicon.preprocessing == preprocessing;
        assert!(parts.iter().all(is_same), "the parts must be preprocessed in the same way");
        let vocabs = parts.iter().map(|part| &part.lexicon.vocab);
        let words = vocabs.flat_map(|vocab| vocab.words().zip(vocab.counts().iter().copied()));
        Census {
            lexicon: Lexicon::new(preprocessing, *limits, Vocab::from_counts(words, limits)),
            n_tokens: parts.iter().map(|part| part.n_tokens).sum(),
            n_sentences: parts.iter().map(|part| part.n_sentences).sum(),
        }
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
