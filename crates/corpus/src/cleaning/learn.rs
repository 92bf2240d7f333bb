//! What cleaning learns from the training documents.

use crate::cleaning::frequency::DocumentFrequency;
use crate::cleaning::phrases::{PairCounts, Phrases};
use crate::cleaning::rules::{Cleaning, clean_tokens};
use crate::error::ReadError;
use latens_store::StringTable;
use std::collections::HashMap;

/// Documents of provisional word numbers that can be read several times.
pub(crate) trait NumberedDocuments {
    /// Calls `visit` with each document in order.
    fn each(&mut self, visit: &mut dyn FnMut(&[u32])) -> Result<(), ReadError>;
}

/// Cleaning in terms of provisional numbers.
pub(crate) struct NumberCleaning {
    keeps: Vec<bool>,
    joined: HashMap<(u32, u32), u32>,
    /// Words of too many documents.
    is_frequent: Vec<bool>,
    /// Words of too few documents.
    pub(crate) is_rare: Vec<bool>,
}

impl NumberCleaning {
    /// Calls `visit` with the words of a document that are left.
    pub(crate) fn clean(&self, document: &[u32], mut visit: impl FnMut(u32)) {
        let is_frequent = |word: u32| self.is_frequent.get(word as usize) == Some(&true);
        clean_tokens(
            document,
            |word| self.keeps[word as usize],
            |first, second| self.joined.get(&(first, second)).copied(),
            |word| {
                if !is_frequent(word) {
                    visit(word);
                }
            },
        );
    }
}

impl Cleaning {
    /// Learns phrases and frequent words. Phrases are added to `words`. Returns `None` if there is nothing to
    /// clean.
    pub(crate) fn learn(
        &mut self,
        words: &mut StringTable,
        documents: &mut dyn NumberedDocuments,
    ) -> Result<Option<NumberCleaning>, ReadError> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut found = NumberCleaning {
            keeps: words.iter().map(|word| self.keeps(word)).collect(),
            joined: HashMap::new(),
            is_frequent: Vec::new(),
            is_rare: Vec::new(),
        };
        self.learn_phrases(words, &mut found, documents)?;
        self.learn_frequencies(words, &mut found, documents)?;
        Ok(Some(found))
    }

    fn learn_phrases(
        &mut self,
        words: &mut StringTable,
        found: &mut NumberCleaning,
        documents: &mut dyn NumberedDocuments,
    ) -> Result<(), ReadError> {
        if self.n_phrases == 0 {
            return Ok(());
        }
        let mut counts = PairCounts::default();
        documents.each(&mut |document| counts.add(document, |word| found.keeps[word as usize]))?;
        let best = counts.best(self.n_phrases, words);
        let spelled = |word: u32| words.get(word).to_owned();
        let pairs: Vec<(String, String)> =
            best.iter().map(|&(first, second)| (spelled(first), spelled(second))).collect();
        self.phrases = Phrases::from(pairs.clone());
        for ((first, second), pair) in pairs.iter().zip(best) {
            let joined = self.phrases.joined(first, second).expect("the phrase was added");
            found.joined.insert(pair, words.intern(joined));
        }
        // A phrase may be a word that is in the text, too.
        found.keeps.resize(words.len(), true);
        Ok(())
    }

    fn learn_frequencies(
        &mut self,
        words: &StringTable,
        found: &mut NumberCleaning,
        documents: &mut dyn NumberedDocuments,
    ) -> Result<(), ReadError> {
        if (self.min_df, self.max_df) == (DocumentFrequency::ONE, DocumentFrequency::ALL) {
            return Ok(());
        }
        let mut frequencies = vec![0u64; words.len()];
        let mut last_seen_in = vec![0u64; words.len()];
        let mut n_documents = 0;
        documents.each(&mut |document| {
            n_documents += 1;
            found.clean(document, |word| {
                let word = word as usize;
                if last_seen_in[word] != n_documents {
                    last_seen_in[word] = n_documents;
                    frequencies[word] += 1;
                }
            });
        })?;
        let (min, max) = (self.min_df.of(n_documents), self.max_df.of(n_documents));
        found.is_rare = frequencies.iter().map(|&n| (n as f64) < min).collect();
        found.is_frequent = frequencies.iter().map(|&n| n as f64 > max).collect();
        let frequent = words.iter().zip(&found.is_frequent).filter(|(_, is)| **is);
        self.frequent = frequent.map(|(word, _)| word.to_owned()).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cleaning, DocumentCorpus, DocumentFrequency, Documents, Tokenize};

    fn words(corpus: &DocumentCorpus, documents: &Documents, idx: usize) -> Vec<String> {
        let vocab = &corpus.lexicon.vocab;
        let word = |&id| match documents.extra_word(id) {
            Some(word) => format!("?{word}"),
            None => vocab.word(id).to_owned(),
        };
        documents.get(idx).words.iter().map(word).collect()
    }

    /// Ten documents with the phrase, and words of various frequencies.
    fn corpus(cleaning: Cleaning) -> (Vec<String>, DocumentCorpus) {
        let texts: Vec<String> = (0..10)
            .map(|i| format!("The New York. Report, {i}: always new, York word{}", i / 5))
            .collect();
        let reader = DocumentCorpus::reader().tokenize(Tokenize::Words).lowercase(true);
        (texts.clone(), reader.cleaning(cleaning).read_texts(&texts).unwrap())
    }

    #[test]
    fn stop_words_punctuation_and_numbers_are_left_out() {
        let (texts, corpus) = corpus(Cleaning::topics());
        let expected = ["new", "york", "report", "new", "york", "word0"];
        assert_eq!(words(&corpus, &corpus.documents, 0), expected);
        let again = corpus.lexicon.documents(&texts);
        assert_eq!(words(&corpus, &again, 0), expected);
        assert_eq!(corpus.lexicon.ids(&texts[0]).len(), 6);
        assert_eq!(corpus.lexicon.vocab.get("the"), None);
    }

    #[test]
    fn phrases_are_neighbors_and_new_documents_get_them_too() {
        let cleaning = Cleaning { n_phrases: 1, ..Cleaning::topics() };
        let (texts, corpus) = corpus(cleaning);
        // A comma between two words keeps them apart.
        let expected = ["new_york", "report", "new", "york", "word0"];
        assert_eq!(words(&corpus, &corpus.documents, 0), expected);
        assert_eq!(words(&corpus, &corpus.lexicon.documents(&texts), 0), expected);
        assert_eq!(corpus.lexicon.cleaning.phrases().collect::<Vec<_>>(), [("new", "york")]);
    }

    #[test]
    fn frequent_words_are_left_out_and_rare_words_are_unknown() {
        let cleaning = Cleaning {
            max_df: DocumentFrequency::Share(0.9),
            min_df: DocumentFrequency::Count(6),
            ..Cleaning::topics()
        };
        let (_, frequent) = corpus(cleaning);
        assert_eq!(words(&frequent, &frequent.documents, 0), ["?word0"]);
        let new = frequent.lexicon.documents(["york moon word1"]);
        assert_eq!(words(&frequent, &new, 0), ["?moon", "?word1"]);
    }
}
