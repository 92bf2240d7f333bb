//! The layout of a mini-batch on the device: indices of tokens, blocks and groups, in one array.

use crate::cuda::plan::listed_plan::{ListedPlan, push};
use crate::recursion::batch::Batch;
use crate::space::kept_states::KeptStates;
use crate::space::state_lists::StateLists;
use crate::space::state_space::StateSpace;
use latens_corpus::WordId;
use latens_cuda::MAX_STATES;
use std::ops::Range;

/// The indices of a batch, and the ranges of the array that hold them.
#[derive(Debug, Default)]
pub(crate) struct BatchPlan {
    ints: Vec<u32>,
    n_sentences: usize,
    /// For a model with a single cluster, which processes all first tokens together, then all second ones: the number of
    /// sentences that have a first token, a second one, and so on. Empty for other models.
    pub(crate) steps: Vec<usize>,
    /// The token before each token from the second step on.
    pub(crate) previous: Range<usize>,
    pub(crate) offsets: Range<usize>,
    pub(crate) clusters: Range<usize>,
    pub(crate) slots: Range<usize>,
    pub(crate) block_of_pair: Range<usize>,
    pub(crate) from: Range<usize>,
    pub(crate) to: Range<usize>,
    /// The block of each pair of clusters, or `u32::MAX`.
    pub(crate) block_of: Range<usize>,
    /// The row of counts of each slot, or `u32::MAX`.
    pub(crate) count_of: Range<usize>,
    pub(crate) pairs: GroupPlan,
    pub(crate) starts: GroupPlan,
    pub(crate) departures: GroupPlan,
    pub(crate) visits: GroupPlan,
    pub(crate) emitted: GroupPlan,
    /// The state lists, if the model has short ones. A cluster is then the group of the tokens of a word.
    pub(crate) listed: Option<ListedPlan>,
}

/// Groups of tokens: the row of each group, the start of its tokens, and all tokens.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupPlan {
    pub(crate) rows: Range<usize>,
    pub(crate) begins: Range<usize>,
    pub(crate) tokens: Range<usize>,
}

impl BatchPlan {
    /// The tokens of a batch and the blocks between them, which is all that scores need. With `kept`, short state lists are
    /// sparse; otherwise they are dense rows.
    pub(crate) fn to_score(
        space: &StateSpace,
        batch: &Batch<'_>,
        kept: Option<&KeptStates>,
    ) -> BatchPlan {
        BatchPlan::new(space, batch, kept, None)
    }

    /// [`BatchPlan::to_score`] with the tokens of each sentence one after the other, also for a single cluster.
    pub(crate) fn to_trace(
        space: &StateSpace,
        batch: &Batch<'_>,
        kept: Option<&KeptStates>,
    ) -> BatchPlan {
        BatchPlan::in_sentences(space, batch, kept.zip(lists(space, batch.n_tokens())), None)
    }

    /// The plan to score a batch. Clusters have the numbers `places`, or else their own.
    fn new(
        space: &StateSpace,
        batch: &Batch<'_>,
        kept: Option<&KeptStates>,
        places: Option<&[u32]>,
    ) -> BatchPlan {
        let lists = kept.zip(lists(space, batch.n_tokens()));
        match space.n_clusters() == 1 && lists.is_none() {
            true => BatchPlan::in_steps(space, batch),
            false => BatchPlan::in_sentences(space, batch, lists, places),
        }
    }

    /// The tokens of a batch, sentence by sentence, with kept states and their lists if these are sparse.
    fn in_sentences(
        space: &StateSpace,
        batch: &Batch<'_>,
        lists: Option<(&KeptStates, &StateLists)>,
        places: Option<&[u32]>,
    ) -> BatchPlan {
        let mut plan = BatchPlan { n_sentences: batch.sentences.len(), ..BatchPlan::default() };
        let (mut offsets, mut clusters, mut slots) = (vec![0], vec![], vec![]);
        for sentence in &batch.sentences {
            for &word in *sentence {
                let cluster = space.cluster(word).expect("the model emits the word");
                clusters.push(places.map_or(cluster as u32, |places| places[cluster]));
                slots.push(space.slot(word).expect("the model emits the word") as u32);
            }
            offsets.push(clusters.len() as u32);
        }
        if let Some((kept, lists)) = lists {
            let (listed, groups) = ListedPlan::new(&mut plan.ints, lists, kept, &slots);
            (plan.listed, clusters) = (Some(listed), groups);
        }
        let pairs = pairs(&offsets, &clusters);
        let mut block_of_pair = vec![0; clusters.len()];
        let (mut from, mut to) = (vec![], vec![]);
        for &(pair, token) in &pairs {
            if (from.last(), to.last()) != (Some(&pair.0), Some(&pair.1)) {
                from.push(pair.0);
                to.push(pair.1);
            }
            block_of_pair[token as usize] = from.len() as u32 - 1;
        }
        plan.offsets = plan.push(&offsets);
        plan.clusters = plan.push(&clusters);
        plan.slots = plan.push(&slots);
        plan.block_of_pair = plan.push(&block_of_pair);
        plan.from = plan.push(&from);
        plan.to = plan.push(&to);
        plan
    }

    /// The tokens of a batch in steps: all first ones, then all second ones, and so on.
    fn in_steps(space: &StateSpace, batch: &Batch<'_>) -> BatchPlan {
        let mut sentences: Vec<_> =
            batch.sentences.iter().filter(|sentence| !sentence.is_empty()).collect();
        sentences.sort_by_key(|sentence| std::cmp::Reverse(sentence.len()));
        let n_steps = sentences.first().map_or(0, |sentence| sentence.len());
        let mut plan = BatchPlan { n_sentences: sentences.len(), ..BatchPlan::default() };
        let (mut slots, mut previous, mut before) = (vec![], vec![], 0);
        for step in 0..n_steps {
            let n = sentences.partition_point(|sentence| sentence.len() > step);
            let slot =
                |words: &&&[WordId]| space.slot(words[step]).expect("the model emits the word");
            if step > 0 {
                previous.extend((0..n).map(|row| (before + row) as u32));
                before += plan.steps[step - 1];
            }
            slots.extend(sentences[..n].iter().map(|words| slot(words) as u32));
            plan.steps.push(n);
        }
        let block: &[u32] = if n_steps > 1 { &[0] } else { &[] };
        plan.clusters = plan.push(&vec![0; slots.len()]);
        plan.slots = plan.push(&slots);
        plan.block_of_pair = plan.push(&vec![0; slots.len()]);
        plan.from = plan.push(block);
        plan.to = plan.push(block);
        plan.previous = plan.push(&previous);
        plan
    }

    /// The tokens, blocks and groups that a training step needs, with the states that it keeps and the place of each cluster
    /// in their order. Without them all states are in their own order, and state lists are dense rows.
    pub(crate) fn to_learn(
        space: &StateSpace,
        batch: &Batch<'_>,
        kept: Option<(&KeptStates, &[u32])>,
    ) -> BatchPlan {
        let (kept, places) = kept.unzip();
        let mut plan = BatchPlan::new(space, batch, kept, places);
        if plan.listed.is_some() {
            plan.learn_listed(space.n_slots());
            return plan;
        }
        let m = space.n_clusters();
        let mut block_of = vec![u32::MAX; m * m];
        for (block, (from, to)) in plan.of(&plan.from).iter().zip(plan.of(&plan.to)).enumerate() {
            block_of[*from as usize * m + *to as usize] = block as u32;
        }
        plan.block_of = plan.push(&block_of);

        let (offsets, clusters) = (plan.of(&plan.offsets), plan.of(&plan.clusters));
        let (slots, blocks) = (plan.of(&plan.slots), plan.of(&plan.block_of_pair));
        let tokens = 0..clusters.len() as u32;
        let (mut is_first, mut is_last) = (vec![false; clusters.len()], vec![true; clusters.len()]);
        if plan.steps.is_empty() {
            is_last.fill(false);
            for ends in offsets.windows(2).filter(|ends| ends[0] < ends[1]) {
                is_first[ends[0] as usize] = true;
                is_last[ends[1] as usize - 1] = true;
            }
        } else {
            is_first[..plan.n_sentences].fill(true);
            plan.of(&plan.previous).iter().for_each(|&token| is_last[token as usize] = false);
        }
        let by_cluster = |token: u32| (clusters[token as usize], token);
        let is_first = |token: u32| is_first[token as usize];
        let is_last = |token: u32| is_last[token as usize];
        let starts: Vec<_> = tokens.clone().filter(|&t| is_first(t)).map(by_cluster).collect();
        let departures: Vec<_> = tokens.clone().filter(|&t| !is_last(t)).map(by_cluster).collect();
        let visits: Vec<_> = tokens.clone().map(by_cluster).collect();
        let emitted: Vec<_> = tokens.clone().map(|t| (slots[t as usize], t)).collect();
        let pairs = tokens.filter(|&t| !is_first(t)).map(|t| (blocks[t as usize], t)).collect();

        plan.pairs = plan.group(pairs);
        plan.starts = plan.group(starts);
        plan.departures = plan.group(departures);
        plan.visits = plan.group(visits);
        plan.emitted = plan.group(emitted);
        // The counts of slots are adjacent, in the order of the groups.
        let mut count_of = vec![u32::MAX; space.n_slots()];
        for (row, slot) in plan.emitted.rows.clone().enumerate() {
            count_of[std::mem::replace(&mut plan.ints[slot], row as u32) as usize] = row as u32;
        }
        plan.count_of = plan.push(&count_of);
        plan
    }

    /// Adds what a training step needs for state lists.
    fn learn_listed(&mut self, n_slots: usize) {
        let Some(mut listed) = self.listed.take() else { return };
        let (offsets, groups) = (self.of(&self.offsets).to_vec(), self.of(&self.clusters).to_vec());
        listed.add_state_tokens(&mut self.ints, &offsets, &groups);
        let visits = groups.iter().enumerate().map(|(t, &group)| (group, t as u32)).collect();
        self.visits = self.group(visits);
        // The counts of a slot are those of its group.
        let mut count_of = vec![u32::MAX; n_slots];
        for (&slot, &group) in self.of(&self.slots).iter().zip(&groups) {
            count_of[slot as usize] = group;
        }
        self.count_of = self.push(&count_of);
        self.listed = Some(listed);
    }

    /// The number of values per token, with `k` states per cluster.
    pub(crate) fn states_of_token(&self, k: usize) -> usize {
        self.listed.as_ref().map_or(k, |listed| listed.k)
    }

    pub(crate) fn ints(&self) -> &[u32] {
        &self.ints
    }

    pub(crate) fn n_tokens(&self) -> usize {
        self.clusters.len()
    }

    pub(crate) fn n_sentences(&self) -> usize {
        self.n_sentences
    }

    pub(crate) fn n_blocks(&self) -> usize {
        self.from.len()
    }

    pub(crate) fn n_emitted(&self) -> usize {
        self.listed.as_ref().map_or(self.emitted.rows.len(), |listed| listed.n_groups)
    }

    /// The indices of the blocks that start in some clusters.
    pub(crate) fn blocks_from(&self, clusters: Range<usize>) -> Range<usize> {
        let from = self.of(&self.from);
        let at = |cluster: usize| from.partition_point(|&from| (from as usize) < cluster);
        at(clusters.start)..at(clusters.end)
    }

    fn of(&self, range: &Range<usize>) -> &[u32] {
        &self.ints[range.clone()]
    }

    fn push(&mut self, values: &[u32]) -> Range<usize> {
        push(&mut self.ints, values)
    }

    /// Groups tokens, given pairs of a group and a token.
    fn group(&mut self, mut members: Vec<(u32, u32)>) -> GroupPlan {
        members.sort_unstable();
        let (mut rows, mut begins) = (vec![], vec![]);
        for (at, &(row, _)) in members.iter().enumerate() {
            if rows.last() != Some(&row) {
                rows.push(row);
                begins.push(at as u32);
            }
        }
        begins.push(members.len() as u32);
        let tokens: Vec<u32> = members.iter().map(|&(_, token)| token).collect();
        GroupPlan { rows: self.push(&rows), begins: self.push(&begins), tokens: self.push(&tokens) }
    }
}

/// The state lists, if they are short enough to be sparse for this number of tokens; otherwise they are dense rows.
pub(crate) fn lists(space: &StateSpace, n_tokens: usize) -> Option<&StateLists> {
    /// Approximate number of tokens per batch for scoring.
    const SCORED: usize = 4096;
    let is_room = |lists: &&StateLists| n_tokens.max(SCORED) <= max_listed_tokens(space, lists);
    space.short_lists().filter(|lists| lists.n <= MAX_STATES).filter(is_room)
}

/// The largest number of tokens per batch with sparse state lists. Every token may need its own block, with the pairs of
/// states of two lists; all blocks together have at most as many values as there are pairs of states, or 1 GiB.
pub(crate) fn max_listed_tokens(space: &StateSpace, lists: &StateLists) -> usize {
    const ROOM: usize = 1 << 28;
    space.n_states().pow(2).max(ROOM) / lists.n.pow(2)
}

/// The clusters of each token and of the one before it, sorted.
fn pairs(offsets: &[u32], clusters: &[u32]) -> Vec<((u32, u32), u32)> {
    let sentences = offsets.windows(2).map(|ends| ends[0] as usize..ends[1] as usize);
    let tokens = sentences.flat_map(|tokens| tokens.skip(1));
    let mut pairs: Vec<_> =
        tokens.map(|at| ((clusters[at - 1], clusters[at]), at as u32)).collect();
    pairs.sort_unstable();
    pairs
}
