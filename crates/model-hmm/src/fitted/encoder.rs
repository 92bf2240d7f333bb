//! Features of words from their states.

use crate::model::Hmm;
use latens_corpus::WordId;
use latens_model::{FeatureRows, TokenEncoder};

/// Which features of a word are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// Its state in the most likely path of states (Viterbi): one column of value 1.
    State,
    /// The cluster of that state; without Brown clusters there is one, of all states.
    Cluster,
    /// The posterior of states, given the whole sentence.
    Posterior,
    /// The posterior of clusters.
    ClusterPosterior,
}

impl Features {
    /// All kinds, each with its name.
    pub const ALL: [(&str, Features); 4] = [
        ("state", Features::State),
        ("cluster", Features::Cluster),
        ("posterior", Features::Posterior),
        ("cluster-posterior", Features::ClusterPosterior),
    ];
}

/// A model as an encoder of one kind of features.
#[derive(Clone, Copy, Debug)]
pub struct HmmEncoder<'a> {
    hmm: &'a Hmm,
    features: Features,
}

impl Hmm {
    /// The model as an encoder.
    pub fn encoder(&self, features: Features) -> HmmEncoder<'_> {
        HmmEncoder { hmm: self, features }
    }
}

/// The states of the most likely path.
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
            Features::State | Features::Posterior => self.hmm.support.n_states(),
            Features::Cluster | Features::ClusterPosterior => self.hmm.support.n_clusters(),
        }
    }

    /// A sentence that the model cannot make has empty rows.
    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        let k = self.hmm.support.k as u32;
        let rows: Option<Vec<Vec<(u32, f32)>>> = match self.features {
            Features::State | Features::Cluster => {
                let one = |state| vec![(state, 1.0)];
                self.hmm.best_states(sentence).map(|path| path.into_iter().map(one).collect())
            }
            Features::Posterior | Features::ClusterPosterior => self.hmm.posterior(sentence),
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
