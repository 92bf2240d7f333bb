//! The expectation and maximization steps of Baum–Welch, on some device.

use crate::recursion::batch::Batch;
use crate::recursion::forward_backward::ForwardBackward;
use crate::recursion::lanes;
use crate::space::kept_lists::KeptLists;
use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::steps::counts::Counts;
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::probability_tables::Tables;
use latens_model::FitError;

/// A model under estimation on some device.
pub(crate) trait Estimator {
    /// Approximate number of tokens per batch.
    fn batch_tokens(&self) -> usize;

    /// Adds the expected counts of a batch under the current model.
    fn expect(&mut self, batch: &Batch<'_>) -> Result<(), FitError>;

    /// Σ ln p of the batches added since the last call of [`Estimator::maximize`].
    fn log_prob(&mut self) -> Result<f64, FitError>;

    /// Replaces the model by the one that maximizes the expected counts, and clears them.
    fn maximize(&mut self, prior: f64) -> Result<(), FitError>;

    /// Σ ln p of held-out sentences.
    fn score(&mut self, batches: &[Batch<'_>]) -> Result<f64, FitError>;

    /// The model, with dense rows of emissions.
    fn tables(&self) -> Result<Tables<f32>, FitError>;
}

/// The estimator on the CPU.
pub(crate) struct CpuEstimator<'a> {
    space: &'a StateSpace,
    tables: Tables<f32>,
    counts: Counts,
    forward_backward: ForwardBackward<f32>,
    expected: ExpectedCounts<f32>,
    log_prob: f64,
}

impl<'a> CpuEstimator<'a> {
    /// Starts from a model with dense rows of emissions.
    pub(crate) fn new(space: &'a StateSpace, n_tags: usize, mut tables: Tables<f32>) -> Self {
        tables.lists = KeptLists::short(space, &KeptStates::all(space));
        if let Some(lists) = &tables.lists {
            tables.emission = lists.gather(&tables.emission, space.k);
        }
        tables.copy_blocks();
        CpuEstimator {
            space,
            counts: Counts::new(space, tables.emission.len(), n_tags),
            tables,
            forward_backward: ForwardBackward::default(),
            expected: ExpectedCounts::default(),
            log_prob: 0.0,
        }
    }

    /// The expected counts since the last maximization, with Σ ln p.
    pub(crate) fn into_counts(self) -> (Counts, f64) {
        (self.counts, self.log_prob)
    }

    /// Replaces the expected counts by those of another estimator of the same model.
    pub(crate) fn set_counts(&mut self, counts: Counts) {
        self.counts = counts;
    }

    /// The number of emission probabilities that expected counts belong to.
    pub(crate) fn n_emissions(&self) -> usize {
        self.tables.emission.len()
    }
}

impl Estimator for CpuEstimator<'_> {
    /// A batch has about 2²¹ to 2²² values, one per token and state of its word, and fewer with few states. In a model with
    /// clusters it has many tokens, as those of a pair of clusters share a product.
    fn batch_tokens(&self) -> usize {
        const VALUES: usize = 1 << 21;
        match &self.tables.lists {
            Some(lists) => VALUES / (lists.n_values() / lists.n_slots().max(1)).max(256),
            None if self.tables.is_dense() => lanes::batch_tokens(self.space.k),
            None => VALUES / self.space.k.max(32),
        }
    }

    fn expect(&mut self, batch: &Batch<'_>) -> Result<(), FitError> {
        let CpuEstimator { space, tables, counts, forward_backward, expected, log_prob, .. } = self;
        *log_prob +=
            forward_backward.expected_counts(space, tables, batch, expected).iter().sum::<f64>();
        counts.add(tables, expected);
        Ok(())
    }

    fn log_prob(&mut self) -> Result<f64, FitError> {
        Ok(self.log_prob)
    }

    fn maximize(&mut self, prior: f64) -> Result<(), FitError> {
        self.counts.maximize(self.space, prior, &mut self.tables);
        self.tables.copy_blocks();
        self.counts.clear();
        self.log_prob = 0.0;
        Ok(())
    }

    fn score(&mut self, batches: &[Batch<'_>]) -> Result<f64, FitError> {
        let CpuEstimator { space, tables, forward_backward, .. } = self;
        Ok(batches.iter().flat_map(|batch| forward_backward.log_probs(space, tables, batch)).sum())
    }

    fn tables(&self) -> Result<Tables<f32>, FitError> {
        let Tables { k, start, transition, emission, lists, tags, .. } = &self.tables;
        let mut tables = Tables {
            k: *k,
            start: start.clone(),
            transition: transition.clone(),
            emission: emission.clone(),
            lists: lists.clone(),
            tags: tags.clone(),
            ..Tables::default()
        };
        tables.expand_lists();
        Ok(tables)
    }
}
