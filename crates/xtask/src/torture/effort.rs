//! How much a campaign does.

use std::time::Duration;

/// How much is done.
pub(crate) struct Effort {
    /// Interrupted trainings per kind of model.
    pub(crate) n_interruptions: usize,
    /// Time that a training should take. Checkpoints are written after two seconds at the earliest.
    pub(crate) training: Duration,
    /// Damaged and forged files per kind of model.
    pub(crate) n_damages: usize,
    /// Commands per odd input.
    pub(crate) n_commands: usize,
    /// Size of the largest odd input in bytes.
    pub(crate) max_input: usize,
    /// Folders with little room per kind of model.
    pub(crate) n_full_disks: usize,
}

impl Effort {
    /// A minute on two cores.
    pub(super) fn short() -> Effort {
        Effort {
            n_interruptions: 1,
            training: Duration::from_millis(300),
            n_damages: 6,
            n_commands: 6,
            max_input: 1 << 20,
            n_full_disks: 1,
        }
    }

    /// All of it.
    pub(super) fn long() -> Effort {
        Effort {
            n_interruptions: 10,
            training: Duration::from_secs(8),
            n_damages: 300,
            n_commands: 60,
            max_input: 64 << 20,
            n_full_disks: 5,
        }
    }
}
