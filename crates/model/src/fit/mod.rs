//! Fitting models: the builder, progress callbacks, checkpoints and the training loop.

mod setters;
mod device;
mod memory;
mod error;
mod cost;
mod checkpoint;
mod progress;
mod pace;
mod builder;
mod epochs;
mod trainer;

pub use builder::{Fit, FitBuilder, Session, Setup};
pub use checkpoint::{Checkpoint, CheckpointError, SharedRows, data_fingerprint, fingerprint};
pub use cost::{Cost, CostPart};
pub use device::{Device, DeviceError};
pub use epochs::Epochs;
pub use error::FitError;
pub use memory::{AvailableMemory, Bytes, MemoryLimit, resident_memory};
pub use pace::CheckpointPace;
pub use progress::{MakeCheckpoint, Progress, Watch, unwatched};
pub use trainer::{EpochResult, Learner, Outcome, Trainer, TrainingState};
