//! Whether the words of a topic belong together: coherence by how often they are in the same documents of a
//! reference corpus (Newman et al. 2010).

use latens_corpus::{EOS, Lexicon, Preprocessing, Sentences, UNK, Vocab, VocabLimits, WordId};
use latens_store::StorageError;
use latens_store::{Container, ContainerError, write_container};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// In how many documents words are, and pairs of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cooccurrences {
    words: Vec<String>,
    number_of: HashMap<String, usize>,
    n_documents: u64,
    /// A row a word, of which the entries after the diagonal are used; on the diagonal, documents with the word.
    counts: Vec<u32>,
}

const KIND: &str = "co-occurrence";

#[derive(Serialize, Deserialize)]
struct Meta {
    words: Vec<String>,
    n_documents: u64,
}

impl Cooccurrences {
    /// How to read a reference corpus: all words but these are unknown. They are as they are after preprocessing.
    pub fn lexicon(words: &[String], preprocessing: Preprocessing) -> Lexicon {
        let different: BTreeSet<&str> =
            words.iter().map(String::as_str).filter(|word| ![UNK, EOS].contains(word)).collect();
        let counts = vec![0; different.len() + 2];
        let all = [UNK, EOS].into_iter().chain(different);
        let vocab = Vocab::from_parts(all, counts).expect("the words are different");
        Lexicon { preprocessing, limits: VocabLimits::default(), vocab }
    }

    /// Counts the documents of a corpus that was read with [`Cooccurrences::lexicon`], where each record is one
    /// document.
    pub fn count(lexicon: &Lexicon, documents: &Sentences) -> Cooccurrences {
        let words: Vec<String> = lexicon.vocab.words().skip(2).map(str::to_owned).collect();
        let n = words.len();
        let mut counts = vec![0u32; n * n];
        let mut present = Vec::new();
        for document in documents.iter() {
            present.clear();
            present.extend(document.iter().filter(|&&w| w > WordId::EOS).map(|w| w.index() - 2));
            present.sort_unstable();
            present.dedup();
            for (i, &a) in present.iter().enumerate() {
                present[i..].iter().for_each(|&b| counts[a * n + b] += 1);
            }
        }
        Cooccurrences::new(words, documents.len() as u64, counts)
    }

    fn new(words: Vec<String>, n_documents: u64, counts: Vec<u32>) -> Cooccurrences {
        let number_of = words.iter().cloned().zip(0..).collect();
        Cooccurrences { words, number_of, n_documents, counts }
    }

    /// Writes the counts to a file.
    pub fn save(&self, path: &Path) -> Result<(), StorageError> {
        let meta = Meta { words: self.words.clone(), n_documents: self.n_documents };
        let n_bytes = size_of_val(&self.counts[..]) as u64;
        write_container(path, KIND, &meta, &[("counts", n_bytes)], |out| out.array(&self.counts))
    }

    /// Opens a file of counts.
    pub fn open(path: &Path) -> Result<Cooccurrences, ContainerError> {
        let file = Container::open(path, KIND)?;
        let Meta { words, n_documents } = file.meta()?;
        let counts = file.array::<u32>("counts")?.to_vec();
        if counts.len() != words.len() * words.len() {
            return Err(file.problem("it has not a count for each pair of words".to_owned()));
        }
        Ok(Cooccurrences::new(words, n_documents, counts))
    }

    /// Whether all of these words were counted.
    pub fn has_all(&self, words: &[String]) -> bool {
        words.iter().all(|word| self.number_of.contains_key(word))
    }

    /// How many documents there were.
    pub fn n_documents(&self) -> u64 {
        self.n_documents
    }

    fn documents_with(&self, a: usize, b: usize) -> f64 {
        f64::from(self.counts[a.min(b) * self.words.len() + a.max(b)])
    }

    /// The coherence of some words, most important first.
    pub fn coherence(&self, words: &[String]) -> Coherence {
        let known = words.iter().filter_map(|word| self.number_of.get(word).copied());
        let known: Vec<usize> = known.filter(|&a| self.documents_with(a, a) > 0.0).collect();
        let (mut pmi, mut npmi, mut n_pairs) = (0.0, 0.0, 0.0);
        for (i, &a) in known.iter().enumerate() {
            for &b in &known[..i] {
                pmi += self.pmi(a, b);
                npmi += self.npmi(a, b);
                n_pairs += 1.0;
            }
        }
        let n_absent = words.len() - known.len();
        let mean = |sum: f64| if n_pairs > 0.0 { Some(sum / n_pairs) } else { None };
        Coherence { pmi: mean(pmi), npmi: mean(npmi), n_absent }
    }

    /// ln p(a, b) / (p(a) p(b)), with one document more for the pair, so that it is finite.
    fn pmi(&self, a: usize, b: usize) -> f64 {
        let n = self.n_documents as f64;
        let [of_a, of_b] = [a, b].map(|word| self.documents_with(word, word));
        ((self.documents_with(a, b) + 1.0) * n / (of_a * of_b)).ln()
    }

    /// ln p(a, b) / (p(a) p(b)), over −ln p(a, b): −1 for words that are never together, 1 for words that are never
    /// apart.
    fn npmi(&self, a: usize, b: usize) -> f64 {
        let n = self.n_documents as f64;
        let [of_a, of_b] = [a, b].map(|word| self.documents_with(word, word));
        let both = self.documents_with(a, b);
        if both == 0.0 {
            return -1.0;
        }
        if both == n {
            return 0.0;
        }
        (both * n / (of_a * of_b)).ln() / -(both / n).ln()
    }
}

/// How well some words go together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Coherence {
    /// The mean over pairs of ln p(a, b) / (p(a) p(b)), with one document more for every pair; none for fewer than
    /// two words.
    pub pmi: Option<f64>,
    /// The mean of the same over −ln p(a, b), without the one document.
    pub npmi: Option<f64>,
    /// Words that are in no document of the reference, which were left out.
    pub n_absent: usize,
}

/// The share of different words among the words of all topics: low if topics are alike.
pub fn diversity(topics: &[Vec<String>]) -> f64 {
    let n_words: usize = topics.iter().map(Vec::len).sum();
    let different: BTreeSet<&String> = topics.iter().flatten().collect();
    if n_words == 0 { 0.0 } else { different.len() as f64 / n_words as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &[&str], words: &[&str]) -> (Cooccurrences, Vec<String>) {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let lexicon = Cooccurrences::lexicon(&words, Preprocessing::default());
        let documents = Sentences::from_words(lines.iter().map(|line| lexicon.ids(line)));
        (Cooccurrences::count(&lexicon, &documents), words)
    }

    #[test]
    fn coherence_is_that_of_the_definition() {
        let lines = ["a b b x", "a b", "a c", "x", "<unk> y"];
        let (counts, words) = counted(&lines, &["a", "b", "c", "gone"]);
        let found = counts.coherence(&words);
        // Documents: a 3, b 2, c 1, (a, b) 2, (a, c) 1, (b, c) 0, of 5.
        let pmi = [3.0 * 5.0 / 6.0, 2.0 * 5.0 / 3.0, 1.0 * 5.0 / 2.0f64].map(f64::ln);
        let npmi =
            [(10.0 / 6.0f64).ln() / -(0.4f64).ln(), (5.0 / 3.0f64).ln() / -(0.2f64).ln(), -1.0];
        let mean = |values: [f64; 3]| values.iter().sum::<f64>() / 3.0;
        assert!((found.pmi.unwrap() - mean(pmi)).abs() < 1e-12);
        assert!((found.npmi.unwrap() - mean(npmi)).abs() < 1e-12);
        assert_eq!(found.n_absent, 1);
        let alone = counts.coherence(&words[..1]);
        assert_eq!((alone.pmi, alone.npmi, alone.n_absent), (None, None, 0));
    }

    #[test]
    fn words_that_are_never_apart_have_the_highest_npmi() {
        let (counts, words) = counted(&["a b", "c", "a b"], &["a", "b"]);
        assert!((counts.coherence(&words).npmi.unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn counts_come_back_from_their_file() {
        let (counts, words) = counted(&["a b", "b c"], &["c", "a", "b", "a"]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts");
        counts.save(&path).unwrap();
        let opened = Cooccurrences::open(&path).unwrap();
        assert_eq!(opened, counts);
        assert!(opened.has_all(&words) && !opened.has_all(&["d".to_owned()]));
    }

    #[test]
    fn diversity_is_the_share_of_different_words() {
        let topics = [vec!["a".to_owned(), "b".to_owned()], vec!["a".to_owned(), "c".to_owned()]];
        assert_eq!(diversity(&topics), 0.75);
        assert_eq!(diversity(&[]), 0.0);
    }
}
