//! Parallel sampling of conditionally independent documents.

use crate::counts::Change;
use crate::documents::TypedDocuments;
use crate::draw::Mixture;
use latens_math::Rng;
use rayon::prelude::*;

/// Minimum number of tokens per work item; small in tests, so that small corpora are split, too.
const TOKENS: usize = if cfg!(test) { 256 } else { 8192 };

/// Samples every token of every document once, with probability proportional to (n_dk + α_k) row_k for the row of
/// its type. Returns the changes. `alpha` and rows are padded.
pub(crate) fn sample_documents<'t>(
    documents: &TypedDocuments,
    topics: &mut [u16],
    alpha: &[f32],
    row: &(impl Fn(u32) -> &'t [f32] + Sync),
    rng: &(dyn Fn(usize) -> Rng + Sync),
) -> Vec<Vec<Change>> {
    let parts = parts(documents, topics);
    let sample = |(first, topics): (std::ops::Range<usize>, &mut [u16])| {
        let mut changes = Vec::new();
        let mut mixture = Mixture::new(alpha);
        latens_math::vectorized(
            #[inline(always)]
            || {
                let mut rest = &mut *topics;
                for document in first.clone() {
                    let types = &documents.types[documents.range(document)];
                    let (topics, others) = std::mem::take(&mut rest).split_at_mut(types.len());
                    rest = others;
                    let mut rng = rng(document);
                    sample_document(types, topics, &mut mixture, row, &mut rng, &mut |change| {
                        changes.push(change);
                    });
                }
            },
        );
        changes
    };
    parts.into_par_iter().map(sample).collect()
}

/// Samples every token of one document once.
#[inline(always)]
pub(crate) fn sample_document<'t>(
    types: &[u32],
    topics: &mut [u16],
    mixture: &mut Mixture<'_>,
    row: &impl Fn(u32) -> &'t [f32],
    rng: &mut Rng,
    changed: &mut impl FnMut(Change),
) {
    mixture.reset(topics);
    for (&token_type, topic) in types.iter().zip(topics) {
        let old = usize::from(*topic);
        mixture.remove(old);
        let new = mixture.draw(row(token_type), rng);
        mixture.add(new);
        if new != old {
            changed(Change { token_type, from: *topic, to: new as u16 });
            *topic = new as u16;
        }
    }
}

/// Splits documents into consecutive runs with the topics of their tokens.
fn parts<'a>(
    documents: &TypedDocuments,
    topics: &'a mut [u16],
) -> Vec<(std::ops::Range<usize>, &'a mut [u16])> {
    let (mut parts, mut rest) = (Vec::new(), topics);
    let mut first = 0;
    for document in 0..documents.len() {
        let n_tokens = documents.offsets[document + 1] - documents.offsets[first];
        if n_tokens >= TOKENS || document + 1 == documents.len() {
            let (part, others) = std::mem::take(&mut rest).split_at_mut(n_tokens);
            rest = others;
            parts.push((first..document + 1, part));
            first = document + 1;
        }
    }
    parts
}
