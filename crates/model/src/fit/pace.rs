//! How often a checkpoint is saved.

use crate::fit::progress::Progress;
use std::time::{Duration, Instant};

/// When the next checkpoint is due: at the end of an iteration, but so seldom that checkpoints take a small part of
/// the time; in the middle of a long iteration every ten minutes, or more seldom for the same reason.
#[derive(Debug)]
pub struct CheckpointPace {
    last: Instant,
    wait: Duration,
}

impl CheckpointPace {
    /// How much longer the work goes on than the checkpoint before it took.
    const FACTOR: u32 = 20;
    /// Less work than this is not worth a checkpoint.
    const SHORTEST: Duration = Duration::from_secs(2);
    const LONGEST: Duration = Duration::from_secs(600);

    /// The pace of work that began at this moment.
    pub fn new(began: Instant) -> CheckpointPace {
        CheckpointPace { last: began, wait: Self::SHORTEST }
    }

    /// The same where the first checkpoint replaces one that may be of use: there is time to notice that.
    pub fn late(began: Instant) -> CheckpointPace {
        CheckpointPace { last: began, wait: Self::LONGEST }
    }

    /// Whether a checkpoint should be saved now, if one is offered.
    pub fn is_due(&self, progress: &Progress<'_>) -> bool {
        let ends_iteration = !progress.metrics.is_empty();
        let wait = if ends_iteration { self.wait } else { self.wait.max(Self::LONGEST) };
        self.last.elapsed() >= wait
    }

    /// Saves a checkpoint by `save`, and sees how long that takes. After a failure the next one is not tried soon.
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
    fn an_iteration_that_ends_is_saved_but_no_step_of_it() {
        let step = Progress::default();
        let end = Progress { metrics: METRICS, ..step };
        let pace = CheckpointPace::new(Instant::now());
        assert!(!pace.is_due(&end));
        assert!(after(3, &pace).is_due(&end));
        assert!(!after(3, &pace).is_due(&step));
        assert!(after(601, &pace).is_due(&step));
    }

    #[test]
    fn checkpoints_take_a_small_part_of_the_time() {
        let wait = |milliseconds| CheckpointPace::wait_after(Duration::from_millis(milliseconds));
        assert_eq!(wait(1), Duration::from_secs(2));
        assert_eq!(wait(700), Duration::from_secs(14));
        assert_eq!(wait(90_000), Duration::from_secs(1800));
    }

    #[test]
    fn what_may_be_of_use_is_replaced_late() {
        let end = Progress { metrics: METRICS, ..Progress::default() };
        let pace = CheckpointPace::late(Instant::now());
        assert!(!after(500, &pace).is_due(&end));
        assert!(after(601, &pace).is_due(&end));
    }

    #[test]
    fn a_failure_is_not_repeated_soon() {
        let end = Progress { metrics: METRICS, ..Progress::default() };
        let mut pace = CheckpointPace::new(Instant::now());
        assert_eq!(pace.save(|| Err("full")), Err("full"));
        assert!(!after(500, &pace).is_due(&end));
        assert!(after(601, &pace).is_due(&end));
        assert_eq!(pace.save(|| Ok::<_, ()>(())), Ok(()));
        assert!(after(3, &pace).is_due(&end));
    }
}
