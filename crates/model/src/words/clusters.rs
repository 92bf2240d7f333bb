//! Hierarchical word clusters, produced by one model and used by others.

use latens_corpus::{
    EOS, Lexicon, LineError, LineReader, Preprocessing, UNK, Vocab, VocabLimits, WordId,
};
use latens_store::StringTable;
use std::io::{self, BufRead, Write};
use thiserror::Error;

/// A clustering of a vocabulary, with the path of each cluster from the root of a binary tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordClusters {
    /// The cluster of each word, or `None` for unseen words.
    of_word: Vec<Option<u32>>,
    /// The path of each cluster, a string of `0` and `1`.
    paths: Vec<String>,
}

/// A clustering is inconsistent or cannot be parsed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClustersError {
    /// The input cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is malformed.
    #[error("line {line}: {problem}")]
    Line {
        /// One-based line number.
        line: u64,
        /// What is wrong with the line.
        problem: String,
    },
    /// Clusters are missing, or their words or paths are invalid.
    #[error("invalid clusters: {problem}")]
    Contradiction {
        /// What is wrong.
        problem: &'static str,
    },
}

impl From<LineError> for ClustersError {
    fn from(error: LineError) -> ClustersError {
        match error {
            LineError::Io(error) => ClustersError::Io(error),
            LineError::Line { line, problem } => ClustersError::Line { line, problem },
        }
    }
}

impl WordClusters {
    /// Creates a clustering from the cluster of each word and the path of each cluster.
    pub fn new(
        of_word: Vec<Option<u32>>,
        paths: Vec<String>,
    ) -> Result<WordClusters, ClustersError> {
        let problem = if paths.is_empty() {
            "there are no clusters"
        } else if of_word.iter().flatten().any(|&cluster| cluster as usize >= paths.len()) {
            "a word has a cluster index out of range"
        } else if !paths.iter().all(|path| path.bytes().all(|bit| bit == b'0' || bit == b'1')) {
            "a path has characters other than `0` and `1`"
        } else if StringTable::from_iter(&paths).len() != paths.len() {
            "two clusters have the same path"
        } else {
            return Ok(WordClusters { of_word, paths });
        };
        Err(ClustersError::Contradiction { problem })
    }

    /// Maps the clustering to another vocabulary. Words without a cluster remain without one.
    pub fn for_words(&self, own: &Vocab, other: &Vocab) -> WordClusters {
        let cluster = |word: WordId| {
            let id = own.id(other.word(word));
            if id == WordId::UNK && word != WordId::UNK { None } else { self.cluster(id) }
        };
        let of_word = (0..other.len()).map(WordId::from).map(cluster).collect();
        WordClusters { of_word, paths: self.paths.clone() }
    }

    /// The clustering with all words in a cluster: those without one join the cluster of `<unk>`, or else the smallest.
    #[must_use]
    pub fn with_all_words(&self) -> WordClusters {
        let mut sizes = vec![0; self.n_clusters()];
        self.of_word.iter().flatten().for_each(|&cluster| sizes[cluster as usize] += 1);
        let smallest = (0..sizes.len()).min_by_key(|&cluster| sizes[cluster]).unwrap_or(0) as u32;
        let other = self.of_word.first().copied().flatten().unwrap_or(smallest);
        let of_word = self.of_word.iter().map(|cluster| Some(cluster.unwrap_or(other))).collect();
        WordClusters { of_word, paths: self.paths.clone() }
    }

    /// Number of clusters.
    pub fn n_clusters(&self) -> usize {
        self.paths.len()
    }

    /// The cluster of a word, if it has one.
    pub fn cluster(&self, word: WordId) -> Option<u32> {
        self.of_word[word.index()]
    }

    /// The cluster of each word, in the order of the word ids.
    pub fn of_word(&self) -> &[Option<u32>] {
        &self.of_word
    }

    /// The path of a cluster.
    ///
    /// # Panics
    /// If `cluster` is out of range.
    pub fn path(&self, cluster: u32) -> &str {
        &self.paths[cluster as usize]
    }

    /// The paths of all clusters, in the order of their indices.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Writes the `paths` format of Liang's `wcluster`: tab-separated path, word and count of every word that
    /// has a cluster, sorted by path and then by descending count.
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

    /// Reads the format of [`WordClusters::write_paths`]. Also returns the vocabulary.
    pub fn read_paths(
        input: &mut dyn BufRead,
        preprocessing: &Preprocessing,
    ) -> Result<(Lexicon, WordClusters), ClustersError> {
        let (mut words, mut paths) = (StringTable::from_iter([UNK, EOS]), StringTable::default());
        let (mut counts, mut of_word) = (vec![0; 2], vec![None; 2]);
        let mut lines = LineReader::new(input);
        loop {
            let number = lines.number() + 1;
            let Some(line) = lines.next_str()? else { break };
            let problem =
                |problem: &str| ClustersError::Line { line: number, problem: problem.into() };
            let mut fields = line.split('\t');
            let (path, word, count) = (fields.next(), fields.next(), fields.next());
            let count = count.map_or(Some(0), |count| count.trim().parse().ok());
            let (Some(path), Some(word), Some(count)) = (path, word, count) else {
                return Err(problem("expected tab-separated path, word and count"));
            };
            let id = words.intern(word) as usize;
            if id == counts.len() {
                counts.push(0);
                of_word.push(None);
            }
            if of_word[id].is_some() || id == WordId::EOS.index() {
                return Err(problem(&format!("the word `{word}` is a duplicate or is `{EOS}`")));
            }
            of_word[id] = Some(paths.intern(path));
            counts[id] = count;
        }
        let clusters = WordClusters::new(of_word, paths.iter().map(str::to_owned).collect())?;
        let vocab = Vocab::from_parts(words.iter(), counts)
            .expect("the words are unique and begin with the special words");
        let limits = VocabLimits::default();
        Ok((Lexicon::new(*preprocessing, limits, vocab), clusters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|&path| path.to_owned()).collect()
    }

    #[test]
    fn invalid_clusters_are_rejected() {
        let words = vec![None, None, Some(0), Some(1)];
        assert!(WordClusters::new(words.clone(), paths(&["0", "1"])).is_ok());
        assert!(WordClusters::new(words.clone(), paths(&["0"])).is_err());
        assert!(WordClusters::new(words.clone(), paths(&["0", "2"])).is_err());
        assert!(WordClusters::new(words, paths(&["0", "0"])).is_err());
        assert!(WordClusters::new(vec![None; 2], vec![]).is_err());
    }

    #[test]
    fn the_paths_format_round_trips() {
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
