//! Random streams of sweeps, documents and topics.

use latens_math::Rng;

/// The seed of one sweep.
pub(super) fn sweep_seed(seed: u64, iteration: u64) -> u64 {
    let bits: [u64; 4] = Rng::stream(seed, iteration).into();
    bits[0] ^ bits[2].rotate_left(32)
}

/// The random stream of a document in a sweep.
pub(crate) fn document_rng(sweep_seed: u64, document: usize) -> Rng {
    Rng::stream(sweep_seed, document as u64)
}

/// The random stream of a topic in a sweep, distinct from those of documents.
pub(super) fn topic_rng(sweep_seed: u64, topic: usize) -> Rng {
    Rng::stream(!sweep_seed, topic as u64)
}
