//! Sentences that wait until several need the same block.

use rayon::prelude::*;
use std::collections::BTreeMap;

/// Clusters of two consecutive words.
pub(crate) type Clusters = (usize, usize);

/// Sentences that need the same block, with their places in the text.
struct Group<S> {
    places: Vec<usize>,
    sentences: Vec<S>,
}

impl<S> Group<S> {
    fn members(self) -> impl Iterator<Item = (usize, S)> {
        self.places.into_iter().zip(self.sentences)
    }
}

/// Runs the steps of all sentences and returns them in the same order. `block` prepares the next step of a sentence and
/// says which block it needs, or `None` at the end. `step` runs one step of sentences that need the same block. Which
/// sentences go together depends on the sentences alone, not on the number of threads.
pub(crate) fn step_together<S: Send>(
    sentences: Vec<S>,
    block: impl Fn(&mut S) -> Option<Clusters>,
    step: impl Fn(Clusters, &mut [S]) + Sync,
) -> Vec<S> {
    let mut done: Vec<Option<S>> = sentences.iter().map(|_| None).collect();
    let mut waiting: BTreeMap<Clusters, Group<S>> = BTreeMap::new();
    let mut place = |place: usize, mut sentence: S, waiting: &mut BTreeMap<Clusters, Group<S>>| {
        let Some(clusters) = block(&mut sentence) else {
            done[place] = Some(sentence);
            return;
        };
        let new = || Group { places: Vec::new(), sentences: Vec::new() };
        let group = waiting.entry(clusters).or_insert_with(new);
        group.places.push(place);
        group.sentences.push(sentence);
    };
    for (at, sentence) in sentences.into_iter().enumerate() {
        place(at, sentence, &mut waiting);
    }
    while let Some(largest) = waiting.values().map(|group| group.places.len()).max() {
        // Small groups wait for others that need the same block.
        let is_large = |group: &Group<S>| 2 * group.places.len() >= largest;
        let large = waiting.iter().filter(|(_, group)| is_large(group));
        let large: Vec<Clusters> = large.map(|(&clusters, _)| clusters).collect();
        let mut groups: Vec<(Clusters, Group<S>)> =
            large.iter().filter_map(|clusters| waiting.remove_entry(clusters)).collect();
        groups.par_iter_mut().for_each(|(clusters, group)| step(*clusters, &mut group.sentences));
        for (at, sentence) in groups.into_iter().flat_map(|(_, group)| group.members()) {
            place(at, sentence, &mut waiting);
        }
    }
    done.into_iter().map(|sentence| sentence.expect("every sentence ends")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_sentence_runs_its_steps_in_order_and_shares_blocks() {
        // A sentence is a list of clusters, and the pairs that were run.
        let sentences = [&[0, 1, 0][..], &[1, 0, 1, 0], &[0, 1, 1], &[2], &[], &[0, 1, 0]];
        let new = |clusters: &&[usize]| (clusters.to_vec(), Vec::<Clusters>::new());
        let sizes = Mutex::new(Vec::new());
        let done = step_together(
            sentences.iter().map(new).collect(),
            |(clusters, run)| clusters.windows(2).nth(run.len()).map(|pair| (pair[0], pair[1])),
            |clusters, group| {
                group.iter_mut().for_each(|(_, run)| run.push(clusters));
                sizes.lock().unwrap().push(group.len());
            },
        );
        for ((clusters, run), expected) in done.iter().zip(sentences) {
            assert_eq!(clusters, expected);
            let pairs: Vec<Clusters> = expected.windows(2).map(|pair| (pair[0], pair[1])).collect();
            assert_eq!(run, &pairs);
        }
        // (0, 1) is needed by three sentences at once, 9 steps in all.
        let sizes = sizes.into_inner().unwrap();
        assert_eq!((sizes[0], sizes.iter().sum::<usize>()), (3, 9));
    }
}
