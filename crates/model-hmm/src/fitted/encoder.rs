//! The model as an encoder: features of tokens from their states.

use crate::fitted::posterior::SparsePosterior;
use crate::model::Hmm;
use latens_corpus::WordId;
use latens_model::{FeatureRows, TokenEncoder};

/// The kind of features of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// Its state in the most likely path of states (Viterbi), one-hot.
    State,
    /// The cluster of that state, one-hot. A model without Brown clusters has a single cluster.
    Cluster,
    /// The posterior of its states, given the whole sentence.
    Posterior,
    /// The posterior of its clusters, given the whole sentence.
    ClusterPosterior,
}

impl Features {
    /// All kinds of features with their names.
    pub const ALL: [(&str, Features); 4] = [
        ("state", Features::State),
        ("cluster", Features::Cluster),
        ("posterior", Features::Posterior),
        ("cluster-posterior", Features::ClusterPosterior),
    ];
}

/// An encoder for one kind of features.
#[derive(Clone, Copy, Debug)]
pub struct HmmEncoder<'a> {
    hmm: &'a Hmm,
    features: Features,
}

impl Hmm {
    /// The encoder for a kind of features.
    pub fn encoder(&self, features: Features) -> HmmEncoder<'_> {
        HmmEncoder { hmm: self, features }
    }
}

/// Encodes tokens by [`Features::State`].
impl TokenEncoder for Hmm {
    fn n_features(&self) -> usize {
        self.encoder(Features::State).n_features()
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        self.encoder(Features::State).encode(sentence, out);
    }
}

impl TokenEncoder for HmmEncoder<'_> {
    fn n_features(&self) -> usize {
        match self.features {
            Features::State | Features::Posterior => self.hmm.space.n_states(),
            Features::Cluster | Features::ClusterPosterior => self.hmm.space.n_clusters(),
        }
    }

    /// An impossible sentence has empty rows.
    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        let k = self.hmm.space.k as u32;
        let rows: Option<SparsePosterior> = match self.features {
            Features::State | Features::Cluster => {
                let one = |state| vec![(state, 1.0)];
                self.hmm.viterbi_of(sentence).map(|path| path.into_iter().map(one).collect())
            }
            Features::Posterior | Features::ClusterPosterior => self.hmm.sparse_posterior(sentence),
        };
        for row in rows.unwrap_or_else(|| vec![vec![]; sentence.len()]) {
            match self.features {
                Features::State | Features::Posterior => out.push_sparse(row),
                Features::Cluster | Features::ClusterPosterior => {
                    let clusters = row.chunk_by(|a, b| a.0 / k == b.0 / k);
                    out.push_sparse(
                        clusters
                            .map(|states| (states[0].0 / k, states.iter().map(|&(_, p)| p).sum())),
                    );
                }
            }
        }
    }
}
