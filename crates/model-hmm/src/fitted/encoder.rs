//! The model as an encoder: features of tokens from their states.

#[cfg(feature = "cuda")]
use crate::fitted::on_gpu::states::{DeviceStates, Sentence};
use crate::fitted::posterior::Posterior;
use crate::model::Hmm;
use latens_corpus::WordId;
use latens_model::{DeviceError, FeatureRows, GpuEncoder, TokenEncoder};
use rayon::prelude::*;

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

    fn encode_all(&self, sentences: &[&[WordId]]) -> Vec<FeatureRows> {
        self.encoder(Features::State).encode_all(sentences)
    }

    fn values_per_token(&self) -> usize {
        self.encoder(Features::State).values_per_token()
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
        if self.is_path() {
            self.push_path(self.hmm.viterbi_of(sentence), sentence.len(), out);
        } else {
            self.push_posterior(self.hmm.sentence_posterior(sentence), sentence.len(), out);
        }
    }

    fn encode_all(&self, sentences: &[&[WordId]]) -> Vec<FeatureRows> {
        let words = sentences.par_iter().map(|sentence| self.hmm.emitters_of(sentence)).collect();
        if self.is_path() {
            self.hmm.map_paths(words, |idx, path| self.rows_of_path(path, sentences[idx].len()))
        } else {
            self.hmm.map_posteriors(words, |idx, posterior| {
                self.rows_of(posterior, sentences[idx].len())
            })
        }
    }

    /// A path has one value per token, and the recursion of sentences that go together limits its memory itself, so that more of
    /// them can share products.
    fn values_per_token(&self) -> usize {
        let n = self.hmm.space.states_per_word();
        if self.is_path() && self.hmm.maps_together() { n.div_ceil(4) } else { n }
    }
}

impl<'a> HmmEncoder<'a> {
    /// The encoder on a GPU. Fails if there is none, or if the model has too many states for it.
    pub fn on_gpu(self) -> Result<Box<dyn GpuEncoder + 'a>, DeviceError> {
        #[cfg(feature = "cuda")]
        return Ok(Box::new(EncoderOnGpu { encoder: self, states: DeviceStates::open(self.hmm)? }));
        #[cfg(not(feature = "cuda"))]
        Err(DeviceError::built_without_cuda())
    }
}

/// An encoder by states that are computed on a GPU.
#[cfg(feature = "cuda")]
struct EncoderOnGpu<'a> {
    encoder: HmmEncoder<'a>,
    states: DeviceStates<'a>,
}

#[cfg(feature = "cuda")]
impl GpuEncoder for EncoderOnGpu<'_> {
    fn encode_all(&mut self, sentences: &[&[WordId]]) -> Result<Vec<FeatureRows>, DeviceError> {
        let encoder = self.encoder;
        let all: Vec<Sentence<'_>> = sentences.iter().map(|words| Sentence::of(words)).collect();
        if encoder.is_path() {
            return self
                .states
                .map_paths(&all, |idx, path| encoder.rows_of_path(path, sentences[idx].len()));
        }
        self.states
            .map_posteriors(&all, |idx, posterior| encoder.rows_of(posterior, sentences[idx].len()))
    }
}

impl HmmEncoder<'_> {
    /// Whether the features are those of the most likely path.
    fn is_path(&self) -> bool {
        matches!(self.features, Features::State | Features::Cluster)
    }

    fn push_path(&self, path: Option<Vec<u32>>, n_tokens: usize, out: &mut FeatureRows) {
        let Some(path) = path else { return push_empty(n_tokens, out) };
        let n = if self.features == Features::Cluster { self.hmm.space.k as u32 } else { 1 };
        path.into_iter().for_each(|state| out.push_sparse([(state / n, 1.0)]));
    }

    /// The rows of a sentence with a path.
    fn rows_of_path(&self, path: Option<Vec<u32>>, n_tokens: usize) -> FeatureRows {
        let mut rows = FeatureRows::new();
        self.push_path(path, n_tokens, &mut rows);
        rows
    }

    /// The rows of a sentence with a posterior.
    fn rows_of(&self, posterior: Option<Posterior<'_>>, n_tokens: usize) -> FeatureRows {
        let mut rows = FeatureRows::new();
        self.push_posterior(posterior, n_tokens, &mut rows);
        rows
    }

    fn push_posterior(
        &self,
        posterior: Option<Posterior<'_>>,
        n_tokens: usize,
        out: &mut FeatureRows,
    ) {
        let Some(posterior) = posterior else { return push_empty(n_tokens, out) };
        let k = self.hmm.space.k as u32;
        for row in (0..n_tokens).map(|at| posterior.row(at)) {
            if self.features == Features::Posterior {
                out.push_sparse(row);
                continue;
            }
            let row: Vec<(u32, f32)> = row.collect();
            let clusters = row.chunk_by(|a, b| a.0 / k == b.0 / k);
            let sum = |states: &[(u32, f32)]| states.iter().map(|&(_, p)| p).sum();
            out.push_sparse(clusters.map(|states| (states[0].0 / k, sum(states))));
        }
    }
}

fn push_empty(n_tokens: usize, out: &mut FeatureRows) {
    (0..n_tokens).for_each(|_| out.push_sparse([]));
}
