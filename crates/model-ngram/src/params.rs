//! Hyperparameters of n-gram models.

use latens_model::{ParamError, Params, check_range, check_that};
use serde::{Deserialize, Serialize};

/// Maximum order.
pub const MAX_ORDER: usize = 6;

/// Parameters of an n-gram language model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct NgramParams {
    /// Number of words per n-gram, including the predicted one: 1 to 6.
    pub order: usize,
    /// Minimum count of the n-grams that are kept, one entry per order from 1 on.
    ///
    /// The last entry applies to all higher orders. Entries must not decrease, and the first must be 1.
    pub min_counts: Vec<u64>,
    /// Interpolation weight of the unigram cache; 0 disables the cache.
    pub cache_weight: f64,
    /// Number of recent words in the cache, across sentences.
    pub cache_size: usize,
}

latens_model::setters!(NgramParams {
    order: usize,
    min_counts: Vec<u64>,
    cache_weight: f64,
    cache_size: usize
});

impl Default for NgramParams {
    fn default() -> Self {
        NgramParams { order: 5, min_counts: vec![1], cache_weight: 0.0, cache_size: 500 }
    }
}

impl NgramParams {
    /// Minimum count of the n-grams of `order` words that are kept.
    pub fn min_count(&self, order: usize) -> u64 {
        let last = self.min_counts.len().saturating_sub(1);
        self.min_counts.get((order - 1).min(last)).copied().unwrap_or(1)
    }
}

impl Params for NgramParams {
    fn check(&self) -> Result<(), ParamError> {
        let Self { order, min_counts, cache_weight, cache_size } = self;
        check_range("order", *order, 1..=MAX_ORDER)?;
        let fine = min_counts.first().is_none_or(|&first| first <= 1) && min_counts.is_sorted();
        let must = "a list that starts with 1 and does not decrease";
        check_that(fine, "min_counts", must, format!("{min_counts:?}"))?;
        check_range("cache_weight", *cache_weight, 0.0..1.0)?;
        check_range("cache_size", *cache_size, 1..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_parameter_that_is_out_of_range() {
        let wrong = |params: NgramParams| params.check().unwrap_err().name;
        assert_eq!(wrong(NgramParams { order: 0, ..Default::default() }), "order");
        assert_eq!(wrong(NgramParams { order: 7, ..Default::default() }), "order");
        assert_eq!(
            wrong(NgramParams { min_counts: vec![1, 3, 2], ..Default::default() }),
            "min_counts"
        );
        assert_eq!(wrong(NgramParams { min_counts: vec![2], ..Default::default() }), "min_counts");
        assert_eq!(wrong(NgramParams { cache_weight: 1.0, ..Default::default() }), "cache_weight");
        assert_eq!(
            wrong(NgramParams { cache_weight: f64::NAN, ..Default::default() }),
            "cache_weight"
        );
        assert_eq!(wrong(NgramParams { cache_size: 0, ..Default::default() }), "cache_size");
        assert!(NgramParams::default().check().is_ok());
    }

    #[test]
    fn the_last_entry_applies_to_all_higher_orders() {
        let params = NgramParams { min_counts: vec![1, 1, 2], ..Default::default() };
        assert_eq!([1, 2, 3, 4, 5].map(|order| params.min_count(order)), [1, 1, 2, 2, 2]);
        let params = NgramParams { min_counts: vec![], ..Default::default() };
        assert_eq!(params.min_count(3), 1);
    }
}
