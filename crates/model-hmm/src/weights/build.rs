//! Chooses the mapping that the parameters ask for.

use crate::params::{HmmParams, Parameterization};
use crate::space::state_space::StateSpace;
use crate::weights::mapping::TableMapping;
use crate::weights::neural::Neural;
use crate::weights::scalar::Scalar;

/// The mapping for some parameters; `spellings` has the word of every slot, `n_tags` is 0 without tags.
pub(crate) fn mapping(
    params: &HmmParams,
    space: &StateSpace,
    spellings: &[&str],
    n_tags: usize,
) -> Box<dyn TableMapping<f32>> {
    match params.parameterization {
        Parameterization::Scalar => Box::new(Scalar::new(space, n_tags)),
        Parameterization::Neural | Parameterization::Factored => {
            Box::new(Neural::new(params, space, spellings, n_tags))
        }
    }
}
