//! The exchange algorithm (Kneser & Ney 1993; Martin, Liermann & Ney 1998, §3): every word moves to the class that
//! maximizes the mutual information, until no word moves.
//!
//! The most frequent words start with one class each. The first pass puts every other word where it gains most, given
//! the words before it. All threads together find the best classes for a batch of words, given the classes before the
//! batch. Then the words move one after the other, if the move is still a gain. Therefore the mutual information never
//! decreases once all words have a class, and the result does not depend on the number of threads.

use crate::algorithms::classes::Classes;
use crate::algorithms::hierarchy::Hierarchy;
use crate::algorithms::loss_table::LossTable;
use crate::algorithms::task::Task;
use crate::algorithms::word_context::WordContext;
use crate::counts::cluster_counts::NONE;
use latens_model::{Checkpoint, CheckpointError, FitError, MakeCheckpoint, Progress, Watch};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

/// Number of words between two progress reports.
const STEP: usize = 256;

pub(crate) fn cluster(
    task: &Task,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Hierarchy, FitError> {
    let (mut classes, mut position) = match checkpoint {
        Some(checkpoint) => from_checkpoint(task, checkpoint)?,
        None => (first_classes(task), Position::default()),
    };
    let mut context = classes.context();
    let batch_len = batch_len(task.words.len());
    while !position.is_last && position.n_iterations < task.params.n_iterations {
        let words = &task.words[position.n_words..];
        let step = &words[..words.len().min(STEP)];
        let batches = step.chunks(batch_len);
        let n_moved = batches.map(|batch| move_batch(&mut classes, batch, &mut context)).sum();
        position.advance(step.len(), n_moved, task.words.len());
        report(task, &classes, &position, watch)?;
    }
    let table = LossTable::of(classes.counts());
    Hierarchy::of(table, classes.class_of(), classes.mutual_information(), watch)
}

/// The number of words per batch: large enough to keep threads busy if there are many words, but small otherwise,
/// since on small texts large batches end in worse optima.
fn batch_len(n_words: usize) -> usize {
    (n_words / 4096).clamp(1, STEP)
}

/// Moves words to their best classes, and returns the number of words that moved.
fn move_batch(classes: &mut Classes, words: &[u32], context: &mut WordContext) -> usize {
    let best: Vec<u32> = if let &[word] = words {
        vec![classes.best_class(word, context)]
    } else {
        let best_class = |context: &mut WordContext, &word: &u32| classes.best_class(word, context);
        words.par_iter().map_init(|| classes.context(), best_class).collect()
    };
    let moves = words.iter().zip(best);
    moves.filter(|&(&word, class)| classes.move_to(word, class, context)).count()
}

/// The position of the algorithm; a checkpoint holds it and the class of each word.
#[derive(Default, Serialize, Deserialize)]
struct Position {
    /// Number of completed passes over all words.
    n_iterations: usize,
    /// Number of words processed in the current pass.
    n_words: usize,
    /// Number of words that moved in the current pass.
    n_moved: usize,
    /// Whether no word moved in the last pass.
    is_last: bool,
}

impl Position {
    fn advance(&mut self, n_words: usize, n_moved: usize, n_words_in_all: usize) {
        self.n_words += n_words;
        self.n_moved += n_moved;
        if self.n_words == n_words_in_all {
            let (n_iterations, is_last) = (self.n_iterations + 1, self.n_moved == 0);
            *self = Position { n_iterations, is_last, ..Position::default() };
        }
    }
}

fn report(
    task: &Task,
    classes: &Classes,
    position: &Position,
    watch: &mut Watch,
) -> Result<(), FitError> {
    let checkpoint = || {
        let class_of = classes.class_of();
        Ok(task.checkpoint(position).with_array("classes", &[class_of.len()], class_of))
    };
    let checkpoint: Option<&MakeCheckpoint<'_>> = Some(&checkpoint);
    if position.n_words > 0 {
        let (done, total) = (position.n_words as u64, Some(task.words.len() as u64));
        let (phase, unit) = ("move words", "words");
        return Progress { phase, done, total, unit, checkpoint, ..Progress::default() }
            .report(watch);
    }
    let metrics = [("mutual_information", classes.mutual_information())];
    Progress {
        phase: "exchange",
        done: position.n_iterations as u64,
        total: Some(task.params.n_iterations as u64),
        unit: "iterations",
        metrics: &metrics,
        checkpoint,
        ..Progress::default()
    }
    .report(watch)
}

/// One class for each of the most frequent words, none for the others.
fn first_classes<'a>(task: &'a Task) -> Classes<'a> {
    let mut class_of = vec![NONE; task.bigrams.frequency.len()];
    for (class, &word) in task.words.iter().take(task.params.n_clusters).enumerate() {
        class_of[word as usize] = class as u32;
    }
    Classes::new(&task.bigrams, class_of, task.params.n_clusters)
}

fn from_checkpoint<'a>(
    task: &'a Task,
    checkpoint: &Checkpoint,
) -> Result<(Classes<'a>, Position), CheckpointError> {
    let position: Position = checkpoint.state()?;
    let class_of = checkpoint.array("classes", &[task.bigrams.frequency.len()])?;
    let n_clusters = task.params.n_clusters;
    let n_words = match position.n_iterations {
        0 => position.n_words.max(n_clusters),
        _ => task.words.len(),
    };
    let members = task.members(&class_of, n_words, n_clusters)?;
    if position.n_words >= task.words.len() || members.iter().any(Vec::is_empty) {
        let problem = "a class is empty, or the position is past the last word";
        return Err(CheckpointError::Invalid { problem });
    }
    if position.n_moved > position.n_words {
        let problem = "more words have moved than were processed";
        return Err(CheckpointError::Invalid { problem });
    }
    Ok((Classes::new(&task.bigrams, class_of, n_clusters), position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Algorithm, BrownParams};
    use latens_model::Params;

    #[test]
    fn a_checkpoint_with_more_moves_than_words_is_refused() {
        let corpus = latens_testkit::zipfian_corpus(50, 200, 2);
        let params = BrownParams { n_clusters: 3, algorithm: Algorithm::Exchange, n_iterations: 3 };
        let params = params.validate().unwrap();
        let task = Task::new(&params, &corpus).unwrap();
        let class_of = first_classes(&task).class_of().to_vec();
        let restored = |n_moved| {
            let position = Position { n_words: 5, n_moved, ..Position::default() };
            let checkpoint = task.checkpoint(&position);
            // Words without a class are those that were not processed.
            let mut class_of = class_of.clone();
            task.words[..5].iter().for_each(|&word| class_of[word as usize] = word % 3);
            let n = class_of.len();
            let first = task.words[..3].iter().zip(0..);
            first.for_each(|(&word, class)| class_of[word as usize] = class);
            from_checkpoint(&task, &checkpoint.with_array("classes", &[n], &class_of)).err()
        };
        assert!(restored(5).is_none());
        for n_moved in [6, usize::MAX] {
            let error = restored(n_moved).unwrap();
            assert!(matches!(error, CheckpointError::Invalid { .. }), "{error}");
        }
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let corpus = latens_testkit::zipfian_corpus(1_000, 2_000, 2);
        let params =
            BrownParams { n_clusters: 20, algorithm: Algorithm::Exchange, n_iterations: 1 };
        let params = params.validate().unwrap();
        let task = Task::new(&params, &corpus).unwrap();
        let classes = |n_threads| {
            let mut classes = first_classes(&task);
            let mut context = classes.context();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| {
                for batch in task.words.chunks(50).chain(task.words.chunks(70)) {
                    move_batch(&mut classes, batch, &mut context);
                }
            });
            classes.class_of().to_vec()
        };
        assert_eq!(classes(1), classes(3));
    }

    #[test]
    fn an_inconsistent_checkpoint_is_rejected() {
        let corpus = latens_testkit::zipfian_corpus(50, 50, 1);
        let params = BrownParams { n_clusters: 3, algorithm: Algorithm::Exchange, n_iterations: 1 };
        let params = params.validate().unwrap();
        let task = Task::new(&params, &corpus).unwrap();
        let rejected = |position: Position, class: fn(usize) -> u32| {
            let mut class_of = vec![NONE; task.bigrams.frequency.len()];
            for (rank, &word) in task.words.iter().enumerate() {
                class_of[word as usize] = class(rank);
            }
            let checkpoint = task.checkpoint(&position);
            let checkpoint = checkpoint.with_array("classes", &[class_of.len()], &class_of);
            matches!(from_checkpoint(&task, &checkpoint), Err(CheckpointError::Invalid { .. }))
        };
        let after_one = |n_words| Position { n_iterations: 1, n_words, ..Position::default() };
        assert!(!rejected(after_one(0), |rank| rank as u32 % 3));
        assert!(rejected(after_one(0), |rank| rank as u32 % 2));
        assert!(rejected(after_one(0), |rank| rank as u32 % 4));
        assert!(rejected(after_one(0), |rank| if rank < 9 { rank as u32 % 3 } else { NONE }));
        assert!(rejected(after_one(usize::MAX), |rank| rank as u32 % 3));
        let first = |n_words| Position { n_words, ..Position::default() };
        assert!(!rejected(first(9), |rank| if rank < 9 { rank as u32 % 3 } else { NONE }));
        assert!(rejected(first(8), |rank| if rank < 9 { rank as u32 % 3 } else { NONE }));
        assert!(rejected(first(9), |rank| if rank < 9 { 0 } else { NONE }));
    }
}
