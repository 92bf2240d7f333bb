//! Inference of topic mixtures with fixed topics, shared by both models.

use crate::draw::Mixture;
use crate::sharing::sample_document;
use crate::sparse_infer::SparseDocument;
use latens_math::Rng;
use latens_model::{ParamError, Params, check_range, fingerprint};
use serde::{Deserialize, Serialize};

/// Number of topics from which on only those of the document are weighed.
const MANY_TOPICS: usize = 128;

/// Parameters of topic inference for new documents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct InferenceParams {
    /// Number of sweeps over all tokens. Mixtures are averaged over the second half.
    pub n_sweeps: usize,
    /// Random seed.
    pub seed: u64,
}

latens_model::setters!(InferenceParams { n_sweeps: usize, seed: u64 });

impl Default for InferenceParams {
    fn default() -> Self {
        InferenceParams { n_sweeps: 40, seed: 1 }
    }
}

impl Params for InferenceParams {
    fn check(&self) -> Result<(), ParamError> {
        check_range("n_sweeps", self.n_sweeps, 1..=1_000_000)
    }
}

/// The inferred topics of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred {
    /// Topic proportions θ: one entry per topic. They sum to one.
    pub mixture: Vec<f32>,
    /// Last sampled topic of each token, or `None` for unknown words.
    pub topics: Vec<Option<u16>>,
    /// Number of tokens without a topic. If no token has one, the mixture is that of an empty document.
    pub n_skipped: usize,
}

/// The known tokens of a document and their positions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) types: Vec<u32>,
    pub(crate) is_known: Vec<bool>,
}

impl Known {
    pub(crate) fn new(types: impl Iterator<Item = Option<u32>>) -> Known {
        let mut known = Known::default();
        for token_type in types {
            known.is_known.push(token_type.is_some());
            known.types.extend(token_type);
        }
        known
    }

    /// The random stream of this document. It does not depend on the rest of the batch. Types from `n_trained` on are
    /// numbered by order of appearance, so they are treated as one type.
    pub(crate) fn rng(&self, seed: u64, n_trained: usize) -> Rng {
        let types = self.types.iter().map(|&t| t.min(n_trained as u32));
        Rng::stream(seed, fingerprint(types))
    }

    pub(crate) fn finish(&self, mixture: Vec<f32>, topics: &[u16]) -> Inferred {
        let mut topics = topics.iter().copied();
        let topics: Vec<Option<u16>> =
            self.is_known.iter().map(|&known| known.then(|| topics.next()).flatten()).collect();
        Inferred { mixture, topics, n_skipped: self.is_known.len() - self.types.len() }
    }
}

/// The mean mixture over sweeps.
pub(crate) struct MeanMixture {
    sums: Vec<f64>,
    n: f64,
}

impl MeanMixture {
    pub(crate) fn new(n_topics: usize) -> MeanMixture {
        MeanMixture { sums: vec![0.0; n_topics], n: 0.0 }
    }

    /// Adds (n_dk + α_k) / (N_d + A) of the current sample.
    pub(crate) fn add(&mut self, topics: &[u16], alpha: &[f64]) {
        let total = topics.len() as f64 + alpha.iter().sum::<f64>();
        self.sums.iter_mut().zip(alpha).for_each(|(sum, a)| *sum += a / total);
        topics.iter().for_each(|&k| self.sums[usize::from(k)] += 1.0 / total);
        self.n += 1.0;
    }

    pub(crate) fn mean(&self) -> Vec<f32> {
        self.sums.iter().map(|sum| (sum / self.n) as f32).collect()
    }
}

/// Samples the tokens of one document with the likelihood rows of its types. `padded` is the padded `alpha`.
pub(crate) fn infer_fixed<'t>(
    document: &Known,
    row: &impl Fn(u32) -> &'t [f32],
    alpha: &[f64],
    padded: &[f32],
    params: &InferenceParams,
    n_trained: usize,
) -> Inferred {
    let mut rng = document.rng(params.seed, n_trained);
    let mut mixture = Mixture::new(padded);
    let mut topics = first_topics(document, row, &mut mixture, &mut rng);
    let mut mean = MeanMixture::new(alpha.len());
    let types = &document.types;
    let mut sparse =
        (alpha.len() >= MANY_TOPICS).then(|| SparseDocument::new(types, &topics, row, padded));
    latens_math::vectorized(
        #[inline(always)]
        || {
            for sweep in 0..params.n_sweeps {
                match &mut sparse {
                    Some(sparse) => sparse.sample(types, &mut topics, row, &mut rng),
                    None => sample_document(
                        types,
                        &mut topics,
                        &mut mixture,
                        row,
                        &mut rng,
                        &mut |_| (),
                    ),
                }
                if sweep >= params.n_sweeps / 2 {
                    mean.add(&topics, alpha);
                }
            }
        },
    );
    document.finish(mean.mean(), &topics)
}

/// Draws the initial topic of each token given the preceding ones.
pub(crate) fn first_topics<'t>(
    document: &Known,
    row: &impl Fn(u32) -> &'t [f32],
    mixture: &mut Mixture<'_>,
    rng: &mut Rng,
) -> Vec<u16> {
    mixture.reset(&[]);
    let draw = |&token_type: &u32| {
        let topic = mixture.draw(row(token_type), rng);
        mixture.add(topic);
        topic as u16
    };
    document.types.iter().map(draw).collect()
}
