//! Words in classes with a hierarchy, in which models meet: one makes them, another uses them.

use latens_corpus::{EOS, Lexicon, Preprocessing, UNK, Vocab, VocabLimits, WordId};
use latens_store::StringTable;
use std::io::{self, BufRead, Write};
use thiserror::Error;

/// Clusters of the words of a vocabulary, each with its path from the root of a binary tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordClusters {
    /// The cluster of each word; a word that was never seen has none.
    of_word: Vec<Option<u32>>,
    /// The path of each cluster, of the letters `0` and `1`.
    paths: Vec<String>,
}

/// Clusters and words that contradict each other, or a text that is no list of them.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClustersError {
    /// The text cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line that is not as the format has it.
    #[error("line {line}: {problem}")]
    Line {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// There are no clusters, or words of clusters that are not there, or paths that are none.
    #[error("the clusters contradict each other: {problem}")]
    Contradiction {
        /// What is wrong.
        problem: &'static str,
    },
}

impl WordClusters {
    /// Clusters from the cluster of each word and the path of each cluster.
    pub fn new(
        of_word: Vec<Option<u32>>,
        paths: Vec<String>,
    ) -> Result<WordClusters, ClustersError> {
        let problem = if paths.is_empty() {
            "there are none"
        } else if of_word.iter().flatten().any(|&cluster| cluster as usize >= paths.len()) {
            "a word is in a cluster that is not there"
        } else if !paths.iter().all(|path| path.bytes().all(|bit| bit == b'0' || bit == b'1')) {
            "a path has other letters than `0` and `1`"
        } else if StringTable::from_iter(&paths).len() != paths.len() {
            "two clusters have the same path"
        } else {
            return Ok(WordClusters { of_word, paths });
        };
        Err(ClustersError::Contradiction { problem })
    }

    /// The same clusters for the words of another vocabulary; a word that had none has none.
    pub fn for_words(&self, own: &Vocab, other: &Vocab) -> WordClusters {
        let cluster = |word: WordId| {
            let id = own.id(other.word(word));
            if id == WordId::UNK && word != WordId::UNK { None } else { self.cluster(id) }
        };
        let of_word = (0..other.len()).map(WordId::from).map(cluster).collect();
        WordClusters { of_word, paths: self.paths.clone() }
    }

    /// How many clusters there are.
    pub fn n_clusters(&self) -> usize {
        self.paths.len()
    }

    /// The cluster of a word, if it has one.
    pub fn cluster(&self, word: WordId) -> Option<u32> {
        self.of_word[word.index()]
    }

    /// The cluster of each word, in the order of the ids.
    pub fn of_word(&self) -> &[Option<u32>] {
        &self.of_word
    }

    /// The path of a cluster.
    ///
    /// # Panics
    /// If there is no such cluster.
    pub fn path(&self, cluster: u32) -> &str {
        &self.paths[cluster as usize]
    }

    /// The paths of all clusters, in the order of their numbers.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Writes the format of the classic program (`paths`): path, word and count of every word that has a
    /// cluster, tab-separated, sorted by path and then by falling count.
    pub fn write_paths(&self, vocab: &Vocab, out: &mut dyn Write) -> io::Result<()> {
        let mut words: Vec<(&str, WordId)> = Vec::new();
        for (word, cluster) in self.of_word.iter().enumerate() {
            words.extend(cluster.map(|cluster| (self.path(cluster), WordId::from(word))));
        }
        words.sort_by_key(|&(path, word)| (path, std::cmp::Reverse(vocab.count(word)), word));
        words.iter().try_for_each(|&(path, word)| {
            writeln!(out, "{path}\t{}\t{}", vocab.word(word), vocab.count(word))
        })
    }

    /// Reads the format that [`WordClusters::write_paths`] writes, with the vocabulary of its words.
    pub fn read_paths(
        input: &mut dyn BufRead,
        preprocessing: &Preprocessing,
    ) -> Result<(Lexicon, WordClusters), ClustersError> {
        let (mut words, mut paths) = (StringTable::from_iter([UNK, EOS]), StringTable::default());
        let (mut counts, mut of_word) = (vec![0; 2], vec![None; 2]);
        for (line, number) in input.lines().zip(1..) {
            let line = line?;
            let problem =
                |problem: &str| ClustersError::Line { line: number, problem: problem.into() };
            let mut fields = line.split('\t');
            let (path, word, count) = (fields.next(), fields.next(), fields.next());
            let count = count.map_or(Some(0), |count| count.trim().parse().ok());
            let (Some(path), Some(word), Some(count)) = (path, word, count) else {
                return Err(problem("path, word and count expected, tab-separated"));
            };
            let id = words.intern(word) as usize;
            if id == counts.len() {
                counts.push(0);
                of_word.push(None);
            }
            if of_word[id].is_some() || id == WordId::EOS.index() {
                return Err(problem(&format!("the word `{word}` comes twice, or is `{EOS}`")));
            }
            of_word[id] = Some(paths.intern(path));
            counts[id] = count;
        }
        let clusters = WordClusters::new(of_word, paths.iter().map(str::to_owned).collect())?;
        let vocab = Vocab::from_parts(words.iter(), counts)
            .expect("the words are different, and begin with the special ones");
        let limits = VocabLimits::default();
        Ok((Lexicon { preprocessing: *preprocessing, limits, vocab }, clusters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|&path| path.to_owned()).collect()
    }

    #[test]
    fn clusters_that_contradict_each_other_are_refused() {
        let words = vec![None, None, Some(0), Some(1)];
        assert!(WordClusters::new(words.clone(), paths(&["0", "1"])).is_ok());
        assert!(WordClusters::new(words.clone(), paths(&["0"])).is_err());
        assert!(WordClusters::new(words.clone(), paths(&["0", "2"])).is_err());
        assert!(WordClusters::new(words, paths(&["0", "0"])).is_err());
        assert!(WordClusters::new(vec![None; 2], vec![]).is_err());
    }

    #[test]
    fn the_paths_format_gives_the_clusters_back() {
        let text = "00\tthe\t9\n00\ta\t4\n01\t<unk>\t2\n1\tcat\t3\n";
        let read =
            |text: &str| WordClusters::read_paths(&mut text.as_bytes(), &Preprocessing::default());
        let (lexicon, clusters) = read(text).unwrap();
        assert_eq!(clusters.n_clusters(), 3);
        assert_eq!(
            clusters.cluster(lexicon.vocab.id("a")),
            clusters.cluster(lexicon.vocab.id("the"))
        );
        assert_eq!(clusters.path(clusters.cluster(WordId::UNK).unwrap()), "01");
        assert_eq!(clusters.cluster(WordId::EOS), None);
        let mut again = Vec::new();
        clusters.write_paths(&lexicon.vocab, &mut again).unwrap();
        assert_eq!(String::from_utf8(again).unwrap(), text);
        for bad in ["", "0\n", "0\ta\tx\n", "0\ta\t1\n1\ta\t1\n", "0\t<eos>\t1\n", "2\ta\t1\n"] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
