//! A mini-batch as the device sees it: numbers of tokens, blocks and groups, in one array.

use crate::support::Support;
use crate::tables::Batch;
use latens_corpus::WordId;
use latens_cuda::{Array, Blocks, CudaError, Device, Groups, Precision, Sequences, Steps};
use std::ops::Range;

/// Where the numbers of a batch lie.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    ints: Vec<u32>,
    n_sentences: usize,
    /// Where all words have the same states, tokens come in steps: how many sentences have a first token, a second one,
    /// …; else it is empty.
    pub(super) steps: Vec<usize>,
    /// The token before each from the second step on.
    pub(super) previous: Range<usize>,
    offsets: Range<usize>,
    clusters: Range<usize>,
    slots: Range<usize>,
    block_of_pair: Range<usize>,
    from: Range<usize>,
    to: Range<usize>,
    /// The block of each pair of clusters, or `u32::MAX`.
    pub(super) block_of: Range<usize>,
    /// The row of counts of each slot, or `u32::MAX`.
    pub(super) count_of: Range<usize>,
    pairs: GroupPlan,
    starts: GroupPlan,
    left: GroupPlan,
    visits: GroupPlan,
    emitted: GroupPlan,
}

#[derive(Clone, Debug, Default)]
struct GroupPlan {
    rows: Range<usize>,
    begins: Range<usize>,
    tokens: Range<usize>,
}

/// A plan on the device.
pub(super) struct Planned<'a> {
    pub(super) plan: &'a Plan,
    pub(super) ints: &'a Array<u32>,
}

impl Plan {
    /// The tokens of a batch and the blocks between them; only what scores need.
    pub(super) fn to_score(support: &Support, batch: &Batch<'_>) -> Plan {
        if support.n_clusters() == 1 {
            return Plan::in_steps(support, batch);
        }
        let mut plan = Plan { n_sentences: batch.sentences.len(), ..Plan::default() };
        let (mut offsets, mut clusters, mut slots) = (vec![0], vec![], vec![]);
        for sentence in &batch.sentences {
            for &word in *sentence {
                clusters.push(support.cluster(word).expect("a word of the model") as u32);
                slots.push(support.slot(word).expect("a word of the model") as u32);
            }
            offsets.push(clusters.len() as u32);
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

    /// The tokens of a batch, all first ones, then all second ones, ….
    fn in_steps(support: &Support, batch: &Batch<'_>) -> Plan {
        let mut sentences: Vec<_> =
            batch.sentences.iter().filter(|sentence| !sentence.is_empty()).collect();
        sentences.sort_by_key(|sentence| std::cmp::Reverse(sentence.len()));
        let n_steps = sentences.first().map_or(0, |sentence| sentence.len());
        let mut plan = Plan { n_sentences: sentences.len(), ..Plan::default() };
        let (mut slots, mut previous, mut before) = (vec![], vec![], 0);
        for step in 0..n_steps {
            let n = sentences.partition_point(|sentence| sentence.len() > step);
            let slot = |words: &&&[WordId]| support.slot(words[step]).expect("a word of the model");
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

    /// All that a step of learning needs.
    pub(super) fn to_learn(support: &Support, batch: &Batch<'_>) -> Plan {
        let mut plan = Plan::to_score(support, batch);
        let m = support.n_clusters();
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
        let left: Vec<_> = tokens.clone().filter(|&t| !is_last(t)).map(by_cluster).collect();
        let visits: Vec<_> = tokens.clone().map(by_cluster).collect();
        let emitted: Vec<_> = tokens.clone().map(|t| (slots[t as usize], t)).collect();
        let pairs = tokens.filter(|&t| !is_first(t)).map(|t| (blocks[t as usize], t)).collect();

        plan.pairs = plan.group(pairs);
        plan.starts = plan.group(starts);
        plan.left = plan.group(left);
        plan.visits = plan.group(visits);
        plan.emitted = plan.group(emitted);
        // Counts of slots are written one after the other.
        let mut count_of = vec![u32::MAX; support.n_slots()];
        for (row, slot) in plan.emitted.rows.clone().enumerate() {
            count_of[std::mem::replace(&mut plan.ints[slot], row as u32) as usize] = row as u32;
        }
        plan.count_of = plan.push(&count_of);
        plan
    }

    pub(super) fn ints(&self) -> &[u32] {
        &self.ints
    }

    pub(super) fn n_tokens(&self) -> usize {
        self.clusters.len()
    }

    pub(super) fn n_sentences(&self) -> usize {
        self.n_sentences
    }

    pub(super) fn n_blocks(&self) -> usize {
        self.from.len()
    }

    pub(super) fn n_emitted(&self) -> usize {
        self.emitted.rows.len()
    }

    /// The blocks that lead from some clusters: which of the plan's.
    pub(super) fn blocks_from(&self, clusters: Range<usize>) -> Range<usize> {
        let from = self.of(&self.from);
        let at = |cluster: usize| from.partition_point(|&from| (from as usize) < cluster);
        at(clusters.start)..at(clusters.end)
    }

    fn of(&self, range: &Range<usize>) -> &[u32] {
        &self.ints[range.clone()]
    }

    fn push(&mut self, values: &[u32]) -> Range<usize> {
        let begin = self.ints.len();
        self.ints.extend_from_slice(values);
        begin..self.ints.len()
    }

    /// Tokens with the number of their group, in the order of groups.
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

/// The clusters of each token and the one before it, in order.
fn pairs(offsets: &[u32], clusters: &[u32]) -> Vec<((u32, u32), u32)> {
    let sentences = offsets.windows(2).map(|ends| ends[0] as usize..ends[1] as usize);
    let tokens = sentences.flat_map(|tokens| tokens.skip(1));
    let mut pairs: Vec<_> =
        tokens.map(|at| ((clusters[at - 1], clusters[at]), at as u32)).collect();
    pairs.sort_unstable();
    pairs
}

impl<'a> Planned<'a> {
    /// Copies a plan to the device, into an array that grows as needed.
    pub(super) fn new(
        device: &Device,
        plan: &'a Plan,
        ints: &'a mut Array<u32>,
    ) -> Result<Planned<'a>, CudaError> {
        device.reserve(ints, plan.ints.len().next_power_of_two())?;
        device.write(plan.ints(), ints)?;
        Ok(Planned { plan, ints })
    }

    /// The steps of tokens, if they come in such.
    pub(super) fn steps(&self, k: usize, precision: Precision) -> Option<Steps<'a>> {
        let sizes = &self.plan.steps[..];
        (!sizes.is_empty()).then_some(Steps { sizes, k, precision })
    }

    pub(super) fn previous(&self) -> (&'a Array<u32>, Range<usize>) {
        (self.ints, self.plan.previous.clone())
    }

    pub(super) fn sequences(&self) -> Sequences<'a> {
        let Plan { offsets, clusters, slots, block_of_pair, .. } = self.plan;
        Sequences {
            ints: self.ints,
            offsets: offsets.clone(),
            clusters: clusters.clone(),
            slots: slots.clone(),
            block_of_pair: block_of_pair.clone(),
        }
    }

    /// Some of the blocks.
    pub(super) fn blocks(&self, which: Range<usize>) -> Blocks<'a> {
        let part = |all: &Range<usize>| all.start + which.start..all.start + which.end;
        Blocks { ints: self.ints, from: part(&self.plan.from), to: part(&self.plan.to) }
    }

    pub(super) fn pairs(&self) -> Groups<'a> {
        self.groups(&self.plan.pairs)
    }

    pub(super) fn starts(&self) -> Groups<'a> {
        self.groups(&self.plan.starts)
    }

    pub(super) fn left(&self) -> Groups<'a> {
        self.groups(&self.plan.left)
    }

    pub(super) fn visits(&self) -> Groups<'a> {
        self.groups(&self.plan.visits)
    }

    pub(super) fn emitted(&self) -> Groups<'a> {
        self.groups(&self.plan.emitted)
    }

    fn groups(&self, groups: &GroupPlan) -> Groups<'a> {
        let GroupPlan { rows, begins, tokens } = groups.clone();
        Groups { ints: self.ints, rows, begins, tokens }
    }
}
