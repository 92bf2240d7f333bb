use crate::params::BrownParams;
use latens_corpus::{Lexicon, WordId};
use latens_model::{FeatureRows, ParamError, TokenEncoder, Valid, WordClusters};
use latens_store::StringTable;
use serde_json::{Map, Value};

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
    columns: Vec<Vec<u32>>,
    n_features: usize,
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

    /// The parameters that the model was fitted with.
    pub fn params(&self) -> &Valid<BrownParams> {
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
}

impl TokenEncoder for Brown {
    fn n_features(&self) -> usize {
        self.n_features
    }

    /// Appends one row per token, with a column of value 1 for each of the first 4, 6, 10 and 20 bits of the path of
    /// the word's cluster, if the path is that long, and for the whole path.
    ///
    /// A word without a cluster gets the features of `<unk>`, or an empty row if `<unk>` has no cluster.
    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        for &word in sentence {
            let cluster = self.clusters.cluster(word).or(self.clusters.cluster(WordId::UNK));
            let columns = cluster.map_or(&[][..], |cluster| &self.columns[cluster as usize]);
            let mut columns = columns.to_vec();
            columns.sort_unstable();
            out.push_sparse(columns.into_iter().map(|column| (column, 1.0)));
        }
    }
}
