//! The inputs of training.

use crate::params::HmmParams;
use crate::space::state_space::StateSpace;
use crate::steps::batches::Data;
use crate::train::teacher::DrawnTexts;
use crate::weights::build;
use crate::weights::mapping::TableMapping;
use latens_model::group::Group;
use latens_model::{Device, Valid};

/// Everything that stays the same during training.
pub(crate) struct Task<'a> {
    pub(crate) params: &'a Valid<HmmParams>,
    pub(crate) space: &'a StateSpace,
    /// The word of every slot.
    pub(crate) spellings: Vec<&'a str>,
    /// The number of tags, 0 without tags.
    pub(crate) n_tags: usize,
    pub(crate) train: Data<'a>,
    /// The text of each epoch, if a teacher draws it.
    pub(crate) drawn: Option<DrawnTexts<'a>>,
    pub(crate) valid: Option<Data<'a>>,
    /// A hash of the data, to check that a checkpoint belongs to it.
    pub(crate) fingerprint: u64,
    pub(crate) device: Device,
    /// Processes that learn the model together.
    pub(crate) group: Option<&'a dyn Group>,
    /// The kind of the model in checkpoints.
    pub(crate) kind: &'static str,
}

impl Task<'_> {
    /// The mapping from weights to probabilities.
    pub(crate) fn mapping(&self) -> Box<dyn TableMapping<f32>> {
        build::mapping(self.params, self.space, &self.spellings, self.n_tags)
    }
}
