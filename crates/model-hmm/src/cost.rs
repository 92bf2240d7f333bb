//! Memory and work of training.

use crate::params::{Constraint, HmmParams, Parameterization, Tying, WordEmbedding};
use crate::recursion::lanes;
use crate::space::clusters::clustering;
use crate::space::state_lists::SHORT;
use latens_corpus::{Corpus, Sentences};
use latens_model::{Cost, Fit, Setup};

/// Tokens per batch of scored text.
const SCORED_TOKENS: f64 = 4096.0;
/// Approximate number of values per batch of Baum–Welch: one per token and state.
const EM_VALUES: f64 = (1 << 21) as f64;
/// Filters of the character network.
const N_FILTERS: f64 = 250.0;

/// The sizes that memory and work depend on.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Z: states, and those that state dropout keeps.
    n_states: f64,
    n_kept: f64,
    /// k: states per word, and those that state dropout keeps.
    per_word: f64,
    kept_per_word: f64,
    /// States per row of a table of emissions.
    emission_row: f64,
    n_clusters: f64,
    n_words: f64,
    n_tags: f64,
    n_tokens: f64,
    batch_tokens: f64,
    dim: f64,
}

/// What is given besides the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    /// Whether the clusters of words are given.
    pub(crate) clusters: bool,
    /// Number of tags, 0 without tags.
    pub(crate) n_tags: usize,
    /// Number of tokens that a teacher draws, 0 without one.
    pub(crate) n_drawn: usize,
    /// How many times an epoch reads the text.
    pub(crate) copies: usize,
}

impl Default for Given {
    fn default() -> Given {
        Given { clusters: false, n_tags: 0, n_drawn: 0, copies: 1 }
    }
}

/// The cost of training, including the clustering of words.
pub(crate) fn cost(
    params: &HmmParams,
    corpus: &Corpus,
    given: Given,
    valid: Option<&Sentences>,
) -> Cost {
    let sizes = Sizes::of(params, corpus, given);
    let own = if params.by_em() {
        baum_welch(params, &sizes, valid.is_some())
    } else {
        gradient(params, &sizes, valid.is_some())
    };
    // Drawn text, and the copies of the text that are joined with it in each epoch.
    let copies = if given.n_drawn > 0 { given.copies * params.epochs } else { 0 };
    let drawn = given.n_drawn as f64 + copies as f64 * corpus.sentences.n_tokens() as f64;
    let own = own.part("drawn text", 4.0 * drawn, Some("n_tokens"));
    let own = sizes.add_scoring(own, params, valid.map_or(0, Sentences::n_tokens));
    if params.constraint != Constraint::Brown || given.clusters {
        return own;
    }
    let brown = clustering(params);
    // The clustering has a text of its own.
    let copy = 4.0 * sizes.n_tokens;
    let clustering = Fit::cost_with(&brown, corpus, &(), &Setup::default());
    own.after(clustering.part("text to cluster", copy, None))
}

impl Sizes {
    fn of(params: &HmmParams, corpus: &Corpus, given: Given) -> Sizes {
        let Given { n_tags, n_drawn, copies, .. } = given;
        let n_tokens = copies * corpus.sentences.n_tokens() + n_drawn / params.epochs.max(1);
        let n_all = copies * corpus.sentences.n_tokens() + n_drawn;
        let keep = 1.0 - params.state_dropout_of(n_all);
        let (n_states, per_word) = (params.n_states as f64, params.states_per_word() as f64);
        let has_clusters = params.constraint == Constraint::Brown;
        Sizes {
            n_states,
            n_kept: n_states * keep,
            per_word,
            kept_per_word: per_word * keep,
            // Lists of states become rows of all states in tables of scalars.
            emission_row: if has_clusters { per_word } else { n_states },
            n_clusters: if has_clusters { params.n_clusters as f64 } else { 1.0 },
            n_words: corpus.lexicon.vocab.len() as f64,
            n_tags: n_tags as f64,
            n_tokens: n_tokens as f64,
            batch_tokens: (params.batch_tokens_of(n_tokens).min(n_tokens)) as f64,
            dim: params.dim as f64,
        }
    }

    /// Bytes of the buffers of the recursion: at most four values per token and state. In a dense model, every thread has those
    /// of a part of the batch.
    fn workspace(&self, batch_tokens: f64, per_word: f64) -> f64 {
        let scored = SCORED_TOKENS.min(self.n_tokens) * self.per_word;
        let n_parts =
            if self.per_word == self.n_states { n_parts(batch_tokens, per_word) } else { 1.0 };
        let n_threads = rayon::current_num_threads() as f64;
        let at_once = (n_threads / n_parts).min(1.0);
        16.0 * (batch_tokens * per_word * at_once).max(scored)
    }

    /// Bytes of the expected counts of a batch, besides those of its buffers: one block of transitions per pair of clusters
    /// that it contains. A dense model has a copy of its transitions, and a block, emissions and tags per part of a batch
    /// with several; the sums of the emissions are as large again.
    fn expected(&self, batch_tokens: f64, per_word: f64) -> f64 {
        let block = 4.0 * per_word * per_word;
        if self.per_word != self.n_states {
            return batch_tokens.min(self.n_clusters * self.n_clusters) * block;
        }
        let n_parts = n_parts(batch_tokens, per_word);
        let of_parts = match n_parts > 1.0 {
            true => 4.0 * per_word * (2.0 * batch_tokens + n_parts * self.n_tags),
            false => 0.0,
        };
        (1.0 + n_parts) * block + of_parts
    }

    /// Multiplications with an addition to score `n_tokens` tokens.
    fn add_scoring(&self, cost: Cost, params: &HmmParams, n_tokens: usize) -> Cost {
        if n_tokens == 0 {
            return cost;
        }
        let is_scalar = params.parameterization == Parameterization::Scalar;
        let tables =
            self.n_states * self.n_states * self.dim + self.n_words * self.per_word * self.dim;
        let recursion = self.per_word * self.per_word * n_tokens as f64;
        self.add_recursion(cost, recursion).products(if is_scalar { 0.0 } else { tables })
    }

    /// Adds the work of the recursion, which only larger models without clusters do in matrix products.
    fn add_recursion(&self, cost: Cost, work: f64) -> Cost {
        const MIN_STATES: f64 = 64.0;
        let in_products = self.per_word == self.n_states && self.per_word >= MIN_STATES;
        if in_products { cost.products(work) } else { cost.multiply_adds(work) }
    }
}

/// Number of parts of a batch of a dense model.
fn n_parts(batch_tokens: f64, per_word: f64) -> f64 {
    lanes::n_parts(batch_tokens as usize, per_word as usize) as f64
}

fn baum_welch(params: &HmmParams, sizes: &Sizes, has_valid: bool) -> Cost {
    let has_clusters = params.constraint == Constraint::Brown;
    // Long lists of states become rows of all states.
    let has_long_lists =
        params.constraint == Constraint::Uniform && sizes.per_word * SHORT as f64 > sizes.n_states;
    let per_word = if has_long_lists { sizes.n_states } else { sizes.per_word };
    let sizes = &Sizes { per_word, ..*sizes };
    let batch_tokens = match params.constraint {
        _ if sizes.per_word == sizes.n_states => {
            lanes::batch_tokens(sizes.per_word as usize) as f64
        }
        Constraint::Uniform => EM_VALUES / sizes.per_word.max(256.0),
        Constraint::Brown | Constraint::None => EM_VALUES / sizes.per_word.max(32.0),
    };
    let batch_tokens = batch_tokens.min(sizes.n_tokens);
    // Probabilities and expected counts; probabilities of the result and of the best iteration.
    let per_value = 4.0 + 8.0 + 4.0 + if has_valid { 4.0 } else { 0.0 };
    // Transitions in blocks, besides.
    let per_transition = per_value + if has_clusters { 4.0 } else { 0.0 };
    let n_states = sizes.n_states;
    let cost = Cost::new(params.epochs)
        .part("transitions", per_transition * n_states * n_states, Some("n_states"))
        .part("emissions", per_value * sizes.n_words * sizes.emission_row, Some("n_states"))
        .part("tags", per_value * sizes.n_tags * n_states, Some("n_states"))
        .part("batch", sizes.workspace(batch_tokens, per_word), Some("n_states"))
        .part("expected transitions", sizes.expected(batch_tokens, per_word), Some("n_states"));
    sizes.add_recursion(cost, 3.0 * per_word * per_word * sizes.n_tokens)
}

fn gradient(params: &HmmParams, sizes: &Sizes, has_valid: bool) -> Cost {
    let Sizes { n_states, n_kept, kept_per_word, n_words, n_tags, dim, .. } = *sizes;
    let is_scalar = params.parameterization == Parameterization::Scalar;
    // Weights, gradient, two moments of AdamW, the result, and the best weights.
    let per_weight = 4.0 * if has_valid { 6.0 } else { 5.0 };
    let n_weights = n_weights(params, sizes);
    // Scoring fills in the transitions of all states if there are few or if they are dense.
    let n_scored = if n_states <= 8192.0 || sizes.per_word == n_states { n_states } else { 0.0 };
    let transitions = 4.0 * n_kept.max(n_scored).powi(2);
    let row = if params.constraint == Constraint::Uniform && is_scalar {
        sizes.emission_row
    } else {
        sizes.per_word
    };
    // Those of training or scoring, and those of the model.
    let emissions = 2.0 * 4.0 * n_words * row;
    let batch_tokens = sizes.batch_tokens;
    let mut cost = Cost::new(params.epochs)
        .part("weights", per_weight * n_weights, Some(if is_scalar { "n_states" } else { "dim" }))
        .part("transitions", transitions, Some("n_states"))
        .part("emissions", emissions, Some("n_states"))
        .part("tags", 8.0 * n_tags * n_kept, Some("n_states"))
        .part("batch", sizes.workspace(batch_tokens, kept_per_word), Some("batch_tokens"))
        .part(
            "expected transitions",
            sizes.expected(batch_tokens, kept_per_word),
            Some("n_states"),
        );
    if is_scalar {
        // The model has the transitions in blocks.
        cost = cost.part("model", 4.0 * n_states * n_states, Some("n_states"));
    } else {
        let n_buffers = n_state_buffers(params, n_tags);
        let n_used = n_kept.max(if has_valid { n_states } else { 0.0 });
        cost = cost.part("activations", 4.0 * n_buffers * n_used * dim, Some("dim"));
    }
    if params.word_vectors == WordEmbedding::Chars {
        let words = 4.0 * n_words * (2.0 * dim + 3.0 * N_FILTERS);
        cost = cost.part("characters", words, Some("dim"));
    }
    add_gradient(cost, params, sizes)
}

/// Number of weights.
fn n_weights(params: &HmmParams, sizes: &Sizes) -> f64 {
    let Sizes { n_states, n_words, n_tags, n_clusters, dim, .. } = *sizes;
    // Two matrices with biases, gain and offset.
    let residual = 2.0 * dim * dim + 4.0 * dim;
    let states = match (params.parameterization, params.tying) {
        (Parameterization::Scalar, _) => {
            let emissions = n_words * sizes.emission_row;
            return n_states + n_states * n_states + emissions + n_tags * n_states;
        }
        (Parameterization::Factored, _) => (n_clusters + n_states) * dim / 2.0 + 4.0 * residual,
        (_, Tying::Shared) => n_states * dim,
        (_, Tying::Separate) => 4.0 * n_states * dim,
    };
    let words = match params.word_vectors {
        WordEmbedding::Words => n_words * (dim + 1.0),
        WordEmbedding::Chars => N_FILTERS * dim + n_words,
    };
    let tags = if n_tags > 0.0 { residual + n_tags * (dim + 1.0) } else { 0.0 };
    states + 3.0 * residual + dim + words + tags
}

/// Number of matrices of states by dimensions that the networks need.
fn n_state_buffers(params: &HmmParams, n_tags: f64) -> f64 {
    let is_factored = params.parameterization == Parameterization::Factored;
    let n_vectors = match params.tying {
        Tying::Shared if !is_factored => 1.0,
        _ => 4.0,
    };
    // Output, its derivative, two hidden layers, the normalized sum, and two derivatives.
    const NETWORK: f64 = 7.0;
    let n_networks = 3.0 + if n_tags > 0.0 { 1.0 } else { 0.0 };
    // The input of the networks of states, its derivative, and their hidden layers.
    let factored = if is_factored { 2.0 + 4.0 * 5.0 } else { 0.0 };
    // Vectors and derivatives, factors of the transitions, and networks.
    2.0 * n_vectors + 2.0 + n_networks * NETWORK + factored
}

/// Adds the multiplications with an addition per epoch.
///
/// Every mini-batch computes the transitions of all Z kept states: Z² h forward, and the same for each of two
/// gradients. The networks and the emissions have two gradients, too. The recursion takes 3 k² per token.
fn add_gradient(cost: Cost, params: &HmmParams, sizes: &Sizes) -> Cost {
    let Sizes { n_kept, kept_per_word, n_words, n_tags, dim, .. } = *sizes;
    let n_batches = (sizes.n_tokens / sizes.batch_tokens.max(1.0)).ceil();
    let recursion = 3.0 * kept_per_word * kept_per_word * sizes.n_tokens;
    let cost = sizes.add_recursion(cost, recursion);
    if params.parameterization == Parameterization::Scalar {
        return cost.multiply_adds(n_batches * (sizes.n_states * sizes.n_states));
    }
    let is_factored = params.parameterization == Parameterization::Factored;
    let n_networks =
        3.0 + if is_factored { 4.0 } else { 0.0 } + if n_tags > 0.0 { 1.0 } else { 0.0 };
    let transitions = n_kept * n_kept * dim;
    let networks = n_networks * 2.0 * n_kept * dim * dim;
    let emissions = n_words * kept_per_word * dim + n_kept * n_tags * dim;
    cost.products(n_batches * 3.0 * (transitions + networks + emissions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::state_space::StateSpace;
    use crate::weights::build;
    use latens_model::Params;

    fn of(params: &HmmParams, corpus: &Corpus) -> Sizes {
        Sizes::of(params, corpus, Given::default())
    }

    #[test]
    fn the_number_of_weights_is_that_of_the_mapping() {
        let corpus = latens_testkit::zipfian_corpus(30, 200, 1);
        let params = HmmParams::default().n_states(12).n_clusters(3).dim(4);
        let uniform = params.clone().constraint(Constraint::Uniform);
        let dense = params.clone().constraint(Constraint::None);
        let variants = [
            uniform.clone(),
            dense.clone().tying(Tying::Separate),
            dense.clone().parameterization(Parameterization::Factored),
            dense.parameterization(Parameterization::Scalar),
            uniform.parameterization(Parameterization::Scalar),
        ];
        for params in variants {
            let params = params.validate().unwrap();
            let space = StateSpace::from_params(&params, &corpus.lexicon.vocab, None).unwrap();
            let words: Vec<&str> =
                space.words().iter().map(|&word| corpus.lexicon.vocab.word(word)).collect();
            let expected = build::mapping(&params, &space, &words, 0).layout().len();
            let mut sizes = of(&params, &corpus);
            sizes.n_words = words.len() as f64;
            assert_eq!(n_weights(&params, &sizes), expected as f64, "{params:?}");
        }
    }

    /// The design of the model computes for one update with 16,384 kept states and 256 dimensions, in 10⁹
    /// floating-point operations: 412 for the transitions, 39 for the networks and 2 for the emissions of 10,000 words
    /// in 128 clusters. A multiplication with an addition is two operations.
    #[test]
    fn work_per_update_agrees_with_the_design() {
        let params = HmmParams::default().n_states(32_768).n_clusters(128).state_dropout(0.5);
        let mut sizes = of(&params, &latens_testkit::zipfian_corpus(30, 20, 1));
        (sizes.n_words, sizes.n_tokens, sizes.batch_tokens) = (10_000.0, 512.0, 512.0);
        let cost = add_gradient(Cost::new(1), &params, &sizes);
        let operations = 2.0 * cost.multiply_adds_per_iteration() / 1e9;
        assert!((operations - (412.0 + 39.0 + 2.0)).abs() < 1.0, "{operations}");
    }

    #[test]
    fn work_of_baum_welch_agrees_with_a_count_by_hand() {
        let corpus = latens_testkit::zipfian_corpus(30, 20, 1);
        let n_tokens = corpus.sentences.n_tokens() as f64;
        // Subsets of 4 of 64 states are lists, those of 4 of 8 become rows of all states.
        for (n_states, n_clusters, per_word) in [(64, 16, 4.0), (8, 2, 8.0)] {
            let params = HmmParams::default()
                .parameterization(Parameterization::Scalar)
                .constraint(Constraint::Uniform)
                .n_states(n_states)
                .n_clusters(n_clusters);
            let cost = cost(&params, &corpus, Given::default(), None);
            // Forward, backward and expected transitions of all pairs of states of two words, per token.
            let work = 3.0 * per_word * per_word * n_tokens;
            assert_eq!(cost.multiply_adds_per_iteration(), work);
        }
    }
}
