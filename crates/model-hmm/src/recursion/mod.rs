//! The exact forward–backward recursion over a batch of sentences: probabilities in, expected counts out.
//!
//! With C_t the states that may emit word t (Chiu and Rush 2020, §3):
//!
//! ```text
//! α_1 = π[C_1] ∘ b(x_1)      α_t = (α_{t−1} · A[C_{t−1}, C_t]) ∘ b(x_t)      p(x) = Σ α_T
//! ```
//!
//! C_t are the k states of the word's cluster, or the states of its list. Sentences that have the same two
//! clusters at the same position share a block of A, which turns products of vectors and matrices into products
//! of matrices. In a dense model all sentences share A; they are arranged in lanes. The expected counts of a block
//! are (Σ_t α_t/κ_t ⊗ v_{t+1}) ∘ A with v = b ∘ β, one matrix product for the whole batch or, in a dense model, for
//! a part of it. The scaling is that of `latens_math::chain`; sentences whose scaled recursion underflows are
//! processed in log space.

pub(crate) mod batch;
pub(crate) mod lanes;
pub(crate) mod products;
pub(crate) mod dense_lanes;
pub(crate) mod workspace;
pub(crate) mod scaled;
pub(crate) mod dense;
pub(crate) mod log_space;
pub(crate) mod forward_backward;
