use crate::model::Brown;
use latens_corpus::{Lexicon, WordId};
use latens_model::{FeatureRows, Model, ModelWriter, TokenEncoder};
use serde_json::{Map, Value};

/// The name of the only kind of features.
const FEATURES: &str = "paths";

impl TokenEncoder for Brown {
    fn n_features(&self) -> usize {
        self.n_features
    }

    /// Appends one row per token, with a column of value 1 for each of the first 4, 6, 10 and 20 bits of the path of
    /// the word's cluster, if the path is that long, and for the whole path.
    ///
    /// A word without a cluster gets the features of `<unk>`, or an empty row if `<unk>` has no cluster.
    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        let clusters = self.clusters();
        for &word in sentence {
            let cluster = clusters.cluster(word).or(clusters.cluster(WordId::UNK));
            let columns = cluster.map_or(&[][..], |cluster| &self.columns[cluster as usize]);
            let mut columns = columns.to_vec();
            columns.sort_unstable();
            out.push_sparse(columns.into_iter().map(|column| (column, 1.0)));
        }
    }
}

impl Model for Brown {
    fn kind(&self) -> &'static str {
        Brown::KIND
    }

    fn description(&self) -> &'static str {
        "a Brown clustering"
    }

    fn lexicon(&self) -> &Lexicon {
        self.lexicon()
    }

    fn params_json(&self) -> Value {
        self.fitted_with().to_json()
    }

    fn facts(&self) -> &Map<String, Value> {
        self.facts()
    }

    fn writer(&self) -> ModelWriter<'_> {
        self.file_contents()
    }

    fn as_token_encoder(&self) -> Option<&dyn TokenEncoder> {
        Some(self)
    }

    fn feature_kinds(&self) -> Vec<&'static str> {
        vec![FEATURES]
    }

    fn encoder(&self, kind: &str) -> Option<Box<dyn TokenEncoder + '_>> {
        (kind == FEATURES).then(|| Box::new(self) as Box<dyn TokenEncoder>)
    }
}
