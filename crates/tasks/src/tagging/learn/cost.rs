//! Memory and work of training a tagger.

use super::data::TaggerInputs;
use crate::tagging::params::{Kind, Optimizer, Pairs, TaggerParams};
use latens_corpus::TaggedSentences;
use latens_model::Cost;
use std::collections::HashSet;

/// Distinct lexical attributes per token, in texts of 50,000 to 1,000,000 tokens; rare ones included.
const ATTRIBUTES_PER_TOKEN: f64 = 3.0;
/// Pairs of an attribute and a tag that occur, per attribute.
const TAGS_PER_ATTRIBUTE: f64 = 1.3;
/// Attributes of a token.
const ATTRIBUTES_OF_TOKEN: f64 = 40.0;
/// Bytes per attribute: its name, its place, and the tokens and groups that have it.
const ATTRIBUTE_BYTES: f64 = 100.0;
/// Copies of the weights in L-BFGS, in double precision: point, gradient, direction, trial point and its gradient, and
/// six pairs of steps.
const LBFGS_COPIES: f64 = 17.0;

/// The cost of training. The number of attributes is extrapolated from the number of tokens.
pub(crate) fn cost(params: &TaggerParams, text: &TaggedSentences, inputs: &TaggerInputs) -> Cost {
    let n_tokens = text.n_tokens() as f64;
    let n_tags = n_tags(text, inputs.column);
    let n_hidden = params.n_hidden_units() as f64;
    let width = if n_hidden > 0.0 { n_hidden } else { n_tags };
    let n_attributes = if params.has_lexical() { ATTRIBUTES_PER_TOKEN * n_tokens } else { 0.0 };
    let (per_attribute, parameter) = match params.pairs {
        Pairs::Observed => (TAGS_PER_ATTRIBUTE.min(n_tags), "min_count"),
        Pairs::All => (n_tags, "pairs"),
    };
    let parameter = if n_hidden > 0.0 { "n_hidden" } else { parameter };
    let n_positions = 2.0 * params.window as f64 + 1.0;
    let features = inputs.encoders.iter().map(|encoder| encoder.model.n_features() as f64);
    let n_features: f64 = features.sum();
    let n_weights = n_attributes * per_attribute
        + n_tags * n_tags
        + n_features * n_positions * width
        + n_hidden * (n_tags + 1.0);
    let n_copies = match params.optimizer {
        Optimizer::Lbfgs => LBFGS_COPIES,
        // Weights, their sums, and when each was last changed.
        Optimizer::Perceptron => 4.0,
    };
    // Scores are padded to eight numbers.
    let scores = 4.0 * n_tokens * (8.0 * (width / 8.0).ceil());
    // Features of distinct rows, at most one row per token, with their scores per position; rows are often shared.
    let rows = 4.0 * n_tokens * (n_features + inputs.encoders.len() as f64 * n_positions * width);
    Cost::new(match params.optimizer {
        Optimizer::Lbfgs => params.n_iterations,
        Optimizer::Perceptron => params.epochs,
    })
    .part("weights", 8.0 * n_copies * n_weights, Some(parameter))
    .part("attributes", ATTRIBUTE_BYTES * n_attributes, Some("min_count"))
    .part("features of encoders", rows, Some("window"))
    .part("scores of tokens", scores, (n_hidden > 0.0).then_some("n_hidden"))
    .multiply_adds(n_tokens * per_token(params, n_tags, width, n_features * n_positions))
}

/// Multiplications with an addition per token and iteration: scores and their gradient for attributes and features,
/// the network, and three products of all pairs of tags in a chain.
fn per_token(params: &TaggerParams, n_tags: f64, width: f64, n_features: f64) -> f64 {
    let lexical =
        if params.has_lexical() { 2.0 * ATTRIBUTES_OF_TOKEN * TAGS_PER_ATTRIBUTE } else { 0.0 };
    let network = if params.n_hidden_units() > 0 { 3.0 * width * n_tags } else { 0.0 };
    let chain = if params.kind == Kind::Crf { 3.0 * n_tags * n_tags } else { 0.0 };
    lexical + 2.0 * n_features * width + network + chain
}

fn n_tags(text: &TaggedSentences, column: usize) -> f64 {
    let tags = text.iter().flat_map(|sentence| sentence.column(column).unwrap_or_default());
    tags.collect::<HashSet<&str>>().len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_a_chain_without_words_agrees_with_a_count_by_hand() {
        let params = TaggerParams::default().lexical(false);
        // Scores and gradient of 5 features for 3 tags, and forward, backward and pairs of 3 × 3 tags.
        assert_eq!(per_token(&params, 3.0, 3.0, 5.0), 2.0 * 15.0 + 3.0 * 9.0);
        // A network with 4 units instead: 2 × 5 × 4, and forward and two gradients of 4 × 3.
        let network = TaggerParams::default().kind(Kind::Local).n_hidden(4).lexical(false);
        assert_eq!(per_token(&network, 3.0, 4.0, 5.0), 40.0 + 36.0);
    }
}
