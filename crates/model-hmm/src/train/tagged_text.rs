//! Tagged text to train on.

use crate::tables::tag_table::TagTable;
use latens_corpus::{Corpus, Lexicon, MissingColumn, Sentences, TaggedSentences, WordId};
use latens_model::FitError;
use latens_store::StringTable;
use thiserror::Error;

/// The tags of a text, for a model of words and tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaggedText {
    /// The names of tags.
    pub names: Vec<String>,
    /// For every sentence, the tag of every word except `<eos>`.
    pub tags: Vec<Vec<u32>>,
    /// The counts of words whose count in the vocabulary is missing or belongs to another text.
    pub rare_words: Vec<(String, u64)>,
}

/// An error of reading the tags of a text.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TagsError {
    /// A word does not have this column.
    #[error(transparent)]
    Column(#[from] MissingColumn),
    /// The words of a sentence differ between the text and the tags.
    #[error("sentence {sentence} differs between the text and the tags: {problem}")]
    OtherWords {
        /// The sentence, counted from 1.
        sentence: usize,
        /// The difference.
        problem: String,
    },
}

impl TaggedText {
    /// Reads the tags from a column of the files that a corpus was read from. Columns are counted from 0.
    pub fn of(
        tagged: &TaggedSentences,
        column: usize,
        corpus: &Corpus,
    ) -> Result<TaggedText, TagsError> {
        tagged.check_column(column)?;
        let Corpus { lexicon, sentences } = corpus;
        let (mut names, mut seen) = (StringTable::default(), Seen::default());
        let (mut tags, mut rest) = (Vec::with_capacity(sentences.len()), tagged.iter());
        for (sentence_idx, ids) in sentences.iter().enumerate() {
            let other_words =
                |problem: String| TagsError::OtherWords { sentence: sentence_idx + 1, problem };
            // A sentence without words has no rows in the files.
            let Some((_, ids @ [_, ..])) = ids.split_last() else {
                tags.push(vec![]);
                continue;
            };
            let Some(sentence) = rest.next() else {
                return Err(other_words(format!("only {} sentences have tags", tagged.len())));
            };
            let words = sentence.words();
            if words.len() != ids.len() {
                let problem = format!("{} words and {} tags", ids.len(), words.len());
                return Err(other_words(problem));
            }
            for (word, &id) in words.iter().zip(ids) {
                let normal = lexicon.preprocessing.normalize_word(word);
                if lexicon.vocab.id(&normal) != id {
                    let found = lexicon.vocab.word(id);
                    return Err(other_words(format!(
                        "`{found}` in the text, but `{word}` in the tags"
                    )));
                }
                seen.add(&normal);
            }
            let column = sentence.column(column).expect("every word has the column");
            tags.push(column.iter().map(|tag| names.intern(tag)).collect());
        }
        if rest.next().is_some() {
            let problem = format!("{} sentences have tags", tagged.len());
            return Err(TagsError::OtherWords { sentence: sentences.len() + 1, problem });
        }
        let names = names.iter().map(str::to_owned).collect();
        Ok(TaggedText { names, tags, rare_words: seen.differing(lexicon) })
    }

    /// The tags of a model that was trained on this text, with their emission probabilities.
    pub(crate) fn table(&self, emission: Vec<f32>) -> TagTable {
        TagTable {
            names: self.names.clone(),
            emission: emission.into(),
            rare_words: self.rare_words.iter().map(|(word, _)| word).collect(),
            rare_counts: self.rare_words.iter().map(|&(_, count)| count).collect(),
        }
    }

    /// Checks that every word of the sentences has a tag.
    pub(crate) fn check(&self, sentences: &Sentences) -> Result<(), FitError> {
        let fits = |(sentence, tags): (&[WordId], &Vec<u32>)| {
            let known = tags.iter().all(|&tag| (tag as usize) < self.names.len());
            known && tags.len() + 1 == sentence.len()
        };
        if self.tags.len() == sentences.len() && sentences.iter().zip(&self.tags).all(fits) {
            return Ok(());
        }
        Err(FitError::not_enough_data("a tag for every word", "tags of other sentences"))
    }

    /// A hash that distinguishes tags with high probability.
    pub(crate) fn fingerprint(&self) -> u64 {
        let names = self.names.iter().flat_map(|name| name.bytes().chain([0xFF]).map(u32::from));
        latens_model::fingerprint(names.chain(self.tags.iter().flatten().copied()))
    }
}

/// The counts of the words of a text.
#[derive(Default)]
struct Seen {
    words: StringTable,
    counts: Vec<u64>,
}

impl Seen {
    fn add(&mut self, word: &str) {
        let number = self.words.intern(word) as usize;
        self.counts.resize(self.counts.len().max(number + 1), 0);
        self.counts[number] += 1;
    }

    /// The counts that differ from those of the vocabulary, without `<unk>`.
    fn differing(&self, lexicon: &Lexicon) -> Vec<(String, u64)> {
        let vocab = &lexicon.vocab;
        let in_vocab = |word: &str| vocab.get(word).map_or(0, |id| vocab.count(id));
        let seen = self.words.iter().zip(self.counts.iter().copied());
        let seen =
            seen.filter(|&(word, count)| word != latens_corpus::UNK && in_vocab(word) != count);
        let known = (WordId::EOS.index() + 1..vocab.len()).map(WordId::from);
        let unseen = known.filter(|&id| vocab.count(id) > 0).map(|id| (vocab.word(id), 0));
        let unseen = unseen.filter(|(word, _)| self.words.find(word).is_none());
        seen.chain(unseen).map(|(word, count)| (word.to_owned(), count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::{Inputs, Preprocessing, VocabLimits};

    fn read(name: &str, text: &str, min_count: u64) -> (Corpus, TaggedSentences) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let (inputs, limits) = (Inputs::new([path]), VocabLimits { min_count, max_vocab: 0 });
        let how = Preprocessing::default().lowercase(true);
        (Corpus::read(&inputs, &how, &limits).unwrap(), TaggedSentences::read(&inputs).unwrap())
    }

    #[test]
    fn tags_are_aligned_with_words() {
        let (corpus, tagged) = read("a.conll", "The D\ncat N\n\nthe D\nDog N\nBARKS V\n", 2);
        let text = TaggedText::of(&tagged, 1, &corpus).unwrap();
        assert_eq!(text.names, ["D", "N", "V"]);
        assert_eq!(text.tags, [vec![0, 1], vec![0, 1, 2]]);
        let rare = [("cat", 1), ("dog", 1), ("barks", 1)].map(|(word, n)| (word.to_owned(), n));
        assert_eq!(text.rare_words, rare);
        assert!(text.check(&corpus.sentences).is_ok());
        let other = TaggedText { tags: vec![vec![0, 1], vec![0, 1, 1]], ..text.clone() };
        assert_ne!(other.fingerprint(), text.fingerprint());
    }

    #[test]
    fn words_are_read_from_the_column_of_the_format() {
        let row = |id: usize, word: &str, tag: &str| {
            format!("{id}\t{word}\t_\t{tag}{}\n", "\t_".repeat(6))
        };
        let text = row(1, "a", "X") + &row(2, "b", "Y");
        let (corpus, tagged) = read("a.conllu", &text, 1);
        let text = TaggedText::of(&tagged, 3, &corpus).unwrap();
        assert_eq!((text.names, text.rare_words), (vec!["X".into(), "Y".into()], vec![]));
    }

    #[test]
    fn sentences_without_words_have_no_tags() {
        let lines = "{\"text\":[\"a\"],\"tags\":[\"X\"]}\n{\"text\":[]}\n{\"text\":\"b\",\"tags\":[\"Y\"]}\n";
        let (corpus, tagged) = read("a.jsonl", lines, 1);
        let text = TaggedText::of(&tagged, 1, &corpus).unwrap();
        assert_eq!(text.tags, [vec![0], vec![], vec![1]]);
    }

    #[test]
    fn counts_of_another_vocabulary_are_replaced() {
        let (corpus, tagged) = read("a.conll", "a X\nb X\n", 1);
        let (other, _) = read("b.conll", "a X\na X\nc X\n", 1);
        let sentences = Sentences::from_words([[WordId(2), WordId::UNK]]);
        assert_eq!(corpus.sentences.len(), sentences.len());
        let corpus = Corpus { lexicon: other.lexicon, sentences };
        let text = TaggedText::of(&tagged, 1, &corpus).unwrap();
        let rare = [("a", 1), ("b", 1), ("c", 0)].map(|(word, n)| (word.to_owned(), n));
        assert_eq!(text.rare_words, rare);
    }

    #[test]
    fn errors_name_the_sentence_that_differs() {
        let (corpus, tagged) = read("a.conll", "a X\nb Y\n\nc Z\n", 1);
        let message = |tagged: &TaggedSentences, column| {
            TaggedText::of(tagged, column, &corpus).unwrap_err().to_string()
        };
        assert!(message(&tagged, 2).starts_with("there is no column 3: the word `a`"));
        for (text, expected) in [
            ("a X\nb Y\n", "sentence 2 differs between the text and the tags: only 1"),
            ("a X\n\nc Z\n", "sentence 1 differs between the text and the tags: 2 words"),
            ("a X\nc Y\n\nc Z\n", "`b` in the text, but `c` in the tags"),
            ("a X\nb Y\n\nc Z\n\nd Z\n", "sentence 3 differs"),
        ] {
            let (_, other) = read("b.conll", text, 1);
            assert!(message(&other, 1).contains(expected), "{}", message(&other, 1));
        }
    }
}
