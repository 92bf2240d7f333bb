//! Memory and work of counting and estimating n-grams.

use crate::params::NgramParams;
use crate::streamed::{HISTORY_BYTES, MAX_BUCKETS};
use latens_corpus::Corpus;
use latens_counts::spool::BUFFER;
use latens_counts::{Budget, distinct_ngrams};
use latens_model::Cost;

/// Bytes per n-gram while it is estimated: word, count, adjusted count and children, in vectors that grow by doubling.
const ESTIMATED: f64 = 1.4 * (4.0 + 8.0 + 8.0 + 8.0);
/// Bytes per n-gram of the model: word, probability, back-off weight and children.
const STORED: f64 = 4.0 + 4.0 + 4.0 + 8.0;
/// Bytes per counted n-gram: its packed context, its last word and its count.
const COUNTED: f64 = 16.0 + 4.0 + 4.0;

/// Bytes per word of the vocabulary while n-grams are counted and estimated within a memory limit: counts, probabilities
/// and masses of words, and the indices of the text per thread.
const PER_WORD: usize = 64;
/// Buffers of temporary files: two of each bucket, and those of all orders.
const BUFFERS: usize = 3 * MAX_BUCKETS as usize * BUFFER;

/// The smallest memory limit for a text. The largest order may have as many n-grams as there are tokens; a bucket of each
/// thread must fit.
pub(crate) fn least_memory(corpus: &Corpus) -> usize {
    let n_words = corpus.lexicon.vocab.len();
    let bucket = corpus.sentences.n_tokens() / MAX_BUCKETS as usize * HISTORY_BYTES;
    let n_threads = rayon::current_num_threads();
    BUFFERS + PER_WORD * n_words * (1 + n_threads) + bucket * n_threads
}

/// The cost of a model. N-grams of all orders are distinct suffixes of those of the highest order.
pub(crate) fn cost(params: &NgramParams, corpus: &Corpus, budget: Option<&Budget>) -> Cost {
    let n_words = corpus.lexicon.vocab.len() as f64;
    let longer = (2..=params.order).map(|order| distinct_ngrams(&corpus.sentences, order));
    let longer: Vec<f64> = longer.collect();
    let n_ngrams = n_words + longer.iter().sum::<f64>();
    let highest = longer.last().copied().unwrap_or(n_words);
    // Counting sorts the n-grams of a shard, and moves to the disk beyond its budget.
    let n_tokens = corpus.sentences.n_tokens() as f64;
    let counting = (COUNTED * (highest + n_tokens)).min(Budget::default().bytes as f64);
    if let Some(budget) = budget {
        // A small text does not use all of a large limit.
        let most = (least_memory(corpus) as f64).max(counting + ESTIMATED * n_ngrams);
        let bytes = most.min(budget.bytes as f64);
        return Cost::new(1).part("memory limit", bytes, Some("memory")).multiply_adds(n_ngrams);
    }
    Cost::new(1)
        .part("counts", counting, Some("memory"))
        .part("n-grams", (ESTIMATED + STORED) * n_ngrams, Some("memory"))
        // p(w | h) = discounted share + γ(h) p(w | h′) of every n-gram.
        .multiply_adds(n_ngrams)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_multiplication_per_ngram_of_the_model() {
        let corpus = Corpus::from_lines(["a b", "a b a"]).unwrap();
        let work = |order: usize| {
            let params = NgramParams { order, ..NgramParams::default() };
            cost(&params, &corpus, None).multiply_adds_per_iteration()
        };
        // `<unk>`, `<eos>`, a, b.
        assert_eq!(work(1), 4.0);
        // `<s> a`, `a b`, `b <eos>`, `b a`, `a <eos>`.
        assert_eq!(work(2), 9.0);
    }
}
