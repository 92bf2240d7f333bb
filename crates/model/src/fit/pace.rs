//! Checkpoint intervals.

use crate::fit::progress::Progress;
use std::time::{Duration, Instant};

/// Decides when to save the next checkpoint.
///
/// Checkpoints are saved at the end of iterations and every ten minutes within long ones, but rarely enough that they
/// take at most about 5% of the time.
#[derive(Debug)]
pub struct CheckpointPace {
    last: Instant,
    wait: Duration,
}

impl CheckpointPace {
    /// Minimum ratio of training time to the time that the previous checkpoint took.
    const FACTOR: u32 = 20;
    /// Minimum time between checkpoints.
    const SHORTEST: Duration = Duration::from_secs(2);
    /// Minimum time between checkpoints within an iteration.
    const LONGEST: Duration = Duration::from_secs(600);

    /// The pace of training that began at `began`.
    pub fn new(began: Instant) -> CheckpointPace {
        CheckpointPace { last: began, wait: Self::SHORTEST }
    }

    /// Like [`CheckpointPace::new`], but saves the first checkpoint late, because it replaces one that may still be needed.
    pub fn late(began: Instant) -> CheckpointPace {
        CheckpointPace { last: began, wait: Self::LONGEST }
    }

    /// Whether a checkpoint should be saved now, if one is available.
    pub fn is_due(&self, progress: &Progress<'_>) -> bool {
        let ends_iteration = !progress.metrics.is_empty();
        let wait = if ends_iteration { self.wait } else { self.wait.max(Self::LONGEST) };
        self.last.elapsed() >= wait
    }

    /// Saves a checkpoint by calling `save`, and measures its duration. After a failure, the next attempt is delayed.
    pub fn save<E>(&mut self, save: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let began = Instant::now();
        let saved = save();
        self.last = Instant::now();
        self.wait = match saved {
            Ok(()) => Self::wait_after(self.last - began),
            Err(_) => Self::LONGEST,
        };
        saved
    }

    fn wait_after(cost: Duration) -> Duration {
        cost.saturating_mul(Self::FACTOR).max(Self::SHORTEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &[(&str, f64)] = &[("loss", 1.0)];

    fn after(seconds: u64, pace: &CheckpointPace) -> CheckpointPace {
        CheckpointPace { last: pace.last - Duration::from_secs(seconds), wait: pace.wait }
    }

    #[test]
    fn checkpoints_are_due_at_the_end_of_iterations_and_rarely_within_them() {
        let step = Progress::default();
        let end = Progress { metrics: METRICS, ..step };
        let pace = CheckpointPace::new(Instant::now());
        assert!(!pace.is_due(&end));
        assert!(after(3, &pace).is_due(&end));
        assert!(!after(3, &pace).is_due(&step));
        assert!(after(601, &pace).is_due(&step));
    }

    #[test]
    fn checkpoints_take_a_small_fraction_of_the_time() {
        let wait = |milliseconds| CheckpointPace::wait_after(Duration::from_millis(milliseconds));
        assert_eq!(wait(1), Duration::from_secs(2));
        assert_eq!(wait(700), Duration::from_secs(14));
        assert_eq!(wait(90_000), Duration::from_secs(1800));
    }

    #[test]
    fn an_existing_checkpoint_is_replaced_late() {
        let end = Progress { metrics: METRICS, ..Progress::default() };
        let pace = CheckpointPace::late(Instant::now());
        assert!(!after(500, &pace).is_due(&end));
        assert!(after(601, &pace).is_due(&end));
    }

    #[test]
    fn the_next_attempt_after_a_failure_is_delayed() {
        let end = Progress { metrics: METRICS, ..Progress::default() };
        let mut pace = CheckpointPace::new(Instant::now());
        assert_eq!(pace.save(|| Err("full")), Err("full"));
        assert!(!after(500, &pace).is_due(&end));
        assert!(after(601, &pace).is_due(&end));
        assert_eq!(pace.save(|| Ok::<_, ()>(())), Ok(()));
        assert!(after(3, &pace).is_due(&end));
    }
}
