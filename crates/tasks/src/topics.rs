//! Coherence and diversity of topics.
//!
//! The coherence of a topic is the mean pointwise mutual information of its top words, estimated from the documents of
//! a reference corpus (Newman et al. 2010).

use latens_corpus::{EOS, Lexicon, Sentences, UNK, Vocab, VocabLimits, WordId};
use latens_store::StorageError;
use latens_store::{Container, ContainerError, write_container};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Document frequencies of words and of pairs of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cooccurrences {
    words: Vec<String>,
    index_of: HashMap<String, usize>,
    n_documents: u64,
    /// One row per word. Entry (a, b) with a ≤ b is the number of documents that contain both words.
    counts: Vec<u32>,
}

const KIND: &str = "co-occurrence";

#[derive(Serialize, Deserialize)]
struct Meta {
    words: Vec<String>,
    n_documents: u64,
}

impl Cooccurrences {
    /// Lexicon to read a reference corpus with: only `words`, given as they are after preprocessing, are known. Texts are
    /// preprocessed and cleaned as by the lexicon `like`.
    pub fn lexicon(words: &[String], like: &Lexicon) -> Lexicon {
        let distinct: BTreeSet<&str> =
            words.iter().map(String::as_str).filter(|word| ![UNK, EOS].contains(word)).collect();
        let counts = vec![0; distinct.len() + 2];
        let all = [UNK, EOS].into_iter().chain(distinct);
        let vocab = Vocab::from_parts(all, counts).expect("a set has no duplicates");
        let (preprocessing, cleaning) = (like.preprocessing, like.cleaning.clone());
        Lexicon { preprocessing, limits: VocabLimits::default(), vocab, cleaning }
    }

    /// Counts the documents of a corpus read with [`Cooccurrences::lexicon`]. Each record of `documents` is one document.
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
        let index_of = words.iter().cloned().zip(0..).collect();
        Cooccurrences { words, index_of, n_documents, counts }
    }

    /// Saves the counts to a file.
    pub fn save(&self, path: &Path) -> Result<(), StorageError> {
        let meta = Meta { words: self.words.clone(), n_documents: self.n_documents };
        let n_bytes = size_of_val(&self.counts[..]) as u64;
        write_container(path, KIND, &meta, &[("counts", n_bytes)], |out| out.array(&self.counts))
    }

    /// Opens a file written by [`Cooccurrences::save`].
    pub fn open(path: &Path) -> Result<Cooccurrences, ContainerError> {
        let file = Container::open(path, KIND)?;
        let Meta { words, n_documents } = file.meta()?;
        let counts = file.array::<u32>("counts")?.to_vec();
        if counts.len() != words.len() * words.len() {
            return Err(
                file.problem("the number of counts does not match the number of words".to_owned())
            );
        }
        Ok(Cooccurrences::new(words, n_documents, counts))
    }

    /// Whether all of these words were counted.
    pub fn has_all(&self, words: &[String]) -> bool {
        words.iter().all(|word| self.index_of.contains_key(word))
    }

    /// Number of documents counted.
    pub fn n_documents(&self) -> u64 {
        self.n_documents
    }

    fn documents_with(&self, a: usize, b: usize) -> f64 {
        f64::from(self.counts[a.min(b) * self.words.len() + a.max(b)])
    }

    /// Coherence of a list of words.
    pub fn coherence(&self, words: &[String]) -> Coherence {
        let known = words.iter().filter_map(|word| self.index_of.get(word).copied());
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

    /// ln(p(a, b) / (p(a) p(b))), with one document added to the pair, so that it is finite.
    fn pmi(&self, a: usize, b: usize) -> f64 {
        let n = self.n_documents as f64;
        let [of_a, of_b] = [a, b].map(|word| self.documents_with(word, word));
        ((self.documents_with(a, b) + 1.0) * n / (of_a * of_b)).ln()
    }

    /// ln(p(a, b) / (p(a) p(b))) / −ln p(a, b): −1 for words that never co-occur, 1 for words that always do.
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

/// Coherence of a list of words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Coherence {
    /// Mean over pairs of ln(p(a, b) / (p(a) p(b))), with one document added to every pair; `None` for fewer than two
    /// words.
    pub pmi: Option<f64>,
    /// Mean over pairs of ln(p(a, b) / (p(a) p(b))) / −ln p(a, b), without the added document.
    pub npmi: Option<f64>,
    /// Number of words left out because no reference document contains them.
    pub n_absent: usize,
}

/// Fraction of distinct words among the words of all topics; low if topics are similar.
pub fn diversity(topics: &[Vec<String>]) -> f64 {
    let n_words: usize = topics.iter().map(Vec::len).sum();
    let distinct: BTreeSet<&String> = topics.iter().flatten().collect();
    if n_words == 0 { 0.0 } else { distinct.len() as f64 / n_words as f64 }
}

/// The relevance λ ln p(word | topic) + (1 − λ) ln (p(word | topic) / p(word)) of a word to a topic (Sievert & Shirley 2014):
/// λ = 1 ranks words by probability, λ = 0 by lift.
pub fn relevance(prob_in_topic: f64, prob: f64, lambda: f64) -> f64 {
    lambda * prob_in_topic.ln() + (1.0 - lambda) * (prob_in_topic / prob).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::Preprocessing;

    fn counted(lines: &[&str], words: &[&str]) -> (Cooccurrences, Vec<String>) {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let limits = VocabLimits::default();
        let empty = Vocab::from_counts([], &limits);
        let like = Lexicon::new(Preprocessing::default(), limits, empty);
        let lexicon = Cooccurrences::lexicon(&words, &like);
        let documents = Sentences::from_words(lines.iter().map(|line| lexicon.ids(line)));
        (Cooccurrences::count(&lexicon, &documents), words)
    }

    #[test]
    fn coherence_agrees_with_the_definition() {
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
    fn words_that_always_co_occur_have_npmi_1() {
        let (counts, words) = counted(&["a b", "c", "a b"], &["a", "b"]);
        assert!((counts.coherence(&words).npmi.unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn saved_counts_open_unchanged() {
        let (counts, words) = counted(&["a b", "b c"], &["c", "a", "b", "a"]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts");
        counts.save(&path).unwrap();
        let opened = Cooccurrences::open(&path).unwrap();
        assert_eq!(opened, counts);
        assert!(opened.has_all(&words) && !opened.has_all(&["d".to_owned()]));
    }

    #[test]
    fn relevance_is_between_log_probability_and_log_lift() {
        assert_eq!(relevance(0.5, 0.25, 1.0), 0.5f64.ln());
        assert_eq!(relevance(0.5, 0.25, 0.0), 2f64.ln());
        let half = (0.5f64.ln() + 2f64.ln()) / 2.0;
        assert!((relevance(0.5, 0.25, 0.5) - half).abs() < 1e-12);
    }

    #[test]
    fn diversity_is_the_fraction_of_distinct_words() {
        let topics = [vec!["a".to_owned(), "b".to_owned()], vec!["a".to_owned(), "c".to_owned()]];
        assert_eq!(diversity(&topics), 0.75);
        assert_eq!(diversity(&[]), 0.0);
    }
}
