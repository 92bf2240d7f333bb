//! Neural networks: number formats, layers, losses and optimizers.

mod formats;
mod layers;
mod norms;
mod recurrent;
mod words;
mod optimizer;

pub use formats::Derivative;
pub use layers::{Columns, PickedColumns, RowGroups};
pub use norms::{NormKept, NormWeights};
pub use optimizer::{AdamWStep, StepResult};
pub use recurrent::{Fresh, Squash, TimeStep};
pub use words::{Dropout, Purpose, WordGroups};
