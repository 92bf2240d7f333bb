use crate::params::BrownParams;
use latens_corpus::{Lexicon, WordId};
use latens_model::{ParamError, Valid, WordClusters};
use latens_store::StringTable;
use serde_json::{Map, Value};
use std::cmp::Reverse;

/// Lengths of the path prefixes that are features of a word, in addition to the whole path.
const PREFIXES: [usize; 4] = [4, 6, 10, 20];

/// A Brown clustering: words in clusters, and clusters in a binary tree.
#[derive(Clone, Debug)]
pub struct Brown {
    params: Valid<BrownParams>,
    lexicon: Lexicon,
    facts: Map<String, Value>,
    clusters: WordClusters,
    /// The feature columns of each cluster.
    pub(crate) columns: Vec<Vec<u32>>,
    pub(crate) n_features: usize,
}

impl Brown {
    /// The kind of this model in model files.
    pub const KIND: &str = "brown";

    /// A model of existing clusters, such as those of a file in the `paths` format.
    ///
    /// # Errors
    /// If there are more clusters than [`BrownParams`] allows.
    pub fn from_clusters(lexicon: Lexicon, clusters: WordClusters) -> Result<Brown, ParamError> {
        let params = BrownParams { n_clusters: clusters.n_clusters(), ..BrownParams::default() };
        let params = latens_model::Params::validate(params)?;
        Ok(Brown::new(params, lexicon, clusters, Map::new()))
    }

    pub(crate) fn new(
        params: Valid<BrownParams>,
        lexicon: Lexicon,
        clusters: WordClusters,
        facts: Map<String, Value>,
    ) -> Brown {
        let mut features = StringTable::default();
        let mut columns = Vec::with_capacity(clusters.n_clusters());
        for path in clusters.paths() {
            let prefixes = PREFIXES.iter().filter_map(|&n| Some((n, path.get(..n)?)));
            let prefixes = prefixes.map(|(n, prefix)| format!("{n} {prefix}"));
            let whole = std::iter::once(format!("path {path}"));
            columns.push(prefixes.chain(whole).map(|name| features.intern(&name)).collect());
        }
        Brown { params, lexicon, facts, clusters, columns, n_features: features.len() }
    }

    /// Adds a fact that is saved with the model.
    pub(crate) fn add_fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Default parameters, to be changed by setters.
    pub fn params() -> BrownParams {
        BrownParams::default()
    }

    /// The parameters that the model was fitted with.
    pub fn fitted_with(&self) -> &Valid<BrownParams> {
        &self.params
    }

    /// The preprocessing and the vocabulary of the model.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// The clusters and their paths.
    pub fn clusters(&self) -> &WordClusters {
        &self.clusters
    }

    /// Facts about the training, which are saved with the model, including `mutual_information` in bits.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// The number of clusters.
    pub fn n_clusters(&self) -> usize {
        self.clusters.n_clusters()
    }

    /// The cluster of a word; `None` if the word is not in the vocabulary or did not occur in the training text.
    ///
    /// The word is preprocessed like the training text.
    pub fn cluster(&self, word: &str) -> Option<u32> {
        let Lexicon { preprocessing, vocab, .. } = &self.lexicon;
        self.clusters.cluster(vocab.get(&preprocessing.normalize_word(word))?)
    }

    /// The path of a word's cluster from the root of the tree, such as `"0110"`; `None` if it has no cluster.
    pub fn path(&self, word: &str) -> Option<&str> {
        Some(self.clusters.path(self.cluster(word)?))
    }

    /// The words of a cluster by descending frequency; empty if there is no such cluster.
    pub fn words(&self, cluster: u32) -> Vec<&str> {
        let vocab = &self.lexicon.vocab;
        let of_word = self.clusters.of_word().iter().enumerate();
        let members = of_word.filter(|&(_, &found)| found == Some(cluster));
        let mut words: Vec<WordId> = members.map(|(word, _)| WordId::from(word)).collect();
        words.sort_by_key(|&word| (Reverse(vocab.count(word)), word));
        words.into_iter().map(|word| vocab.word(word)).collect()
    }
}
