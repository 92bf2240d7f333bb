use super::arrays::Arrays;
use super::broadcast::Broadcast;
use super::error::{ShardError, in_words};
use super::packing::{check_n_shards, pack, unpack};
use crate::fit::FitError;
use latens_store::{Container, ContainerError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

const KIND: &str = "shard statistics";
const CARRY: &str = "carry";

/// A node of the binary tree over shards: at level l, node i has the shards from i·2ˡ to (i + 1)·2ˡ − 1.
type Node = (u32, usize);

/// The statistics of one or more shards.
///
/// They are sums over the nodes of a fixed binary tree: two nodes merge if they are the halves of a node. Any order of
/// merging therefore gives the same sums, bit for bit.
#[derive(Clone, Debug)]
pub struct Statistics {
    header: Header,
    nodes: BTreeMap<Node, Arrays>,
    /// What the shard needs in the next round; statistics of several shards have none.
    pub(super) carry: Option<Arrays>,
}

/// What the statistics belong to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    kind: String,
    round: u64,
    /// Version of the broadcast.
    version: u64,
    /// Fingerprint of the vocabulary.
    vocab: u64,
    n_shards: usize,
}

#[derive(Serialize, Deserialize)]
struct Meta {
    header: Header,
    nodes: Vec<Node>,
    has_carry: bool,
}

impl Header {
    fn of(broadcast: &Broadcast) -> Header {
        Header {
            kind: broadcast.kind.clone(),
            round: broadcast.round,
            version: broadcast.version,
            vocab: broadcast.lexicon.vocab.fingerprint(),
            n_shards: broadcast.n_shards,
        }
    }

    /// What distinguishes statistics from those that are expected.
    fn difference(&self, expected: &Header) -> Option<String> {
        let Header { kind, round, version, vocab, n_shards } = self;
        if *kind != expected.kind {
            return Some(format!(
                "statistics of a model of kind `{kind}`, not `{}`",
                expected.kind
            ));
        }
        if *vocab != expected.vocab {
            return Some("computed with another vocabulary".to_owned());
        }
        if *n_shards != expected.n_shards {
            return Some(format!("part of {n_shards} shards, not of {}", expected.n_shards));
        }
        if *round != expected.round {
            return Some(format!("computed in round {round}, not in round {}", expected.round));
        }
        (*version != expected.version).then(|| {
            format!(
                "computed from another broadcast ({version:016x}, not {:016x})",
                expected.version
            )
        })
    }
}

impl Statistics {
    /// The statistics of one shard.
    pub(super) fn of_shard(
        broadcast: &Broadcast,
        shard: usize,
        sums: Arrays,
        carry: Option<Arrays>,
    ) -> Statistics {
        let header = Header::of(broadcast);
        Statistics { header, nodes: BTreeMap::from([((0, shard), sums)]), carry }
    }

    /// The shards that the statistics include, counted from 0.
    pub fn shards(&self) -> Vec<usize> {
        let n = self.header.n_shards;
        let mut shards: Vec<usize> =
            self.nodes.keys().flat_map(|&node| shards_of(node, n)).collect();
        shards.sort_unstable();
        shards
    }

    /// The kind of model.
    pub fn kind(&self) -> &str {
        &self.header.kind
    }

    /// Number of shards of the run.
    pub fn n_shards(&self) -> usize {
        self.header.n_shards
    }

    /// Whether the shard needs these statistics in the next round.
    pub fn has_carry(&self) -> bool {
        self.carry.is_some()
    }

    /// Splits off what the shard needs in the next round.
    pub fn take_carry(&mut self) -> Option<Statistics> {
        let carry = self.carry.take()?;
        Some(Statistics { header: self.header.clone(), nodes: BTreeMap::new(), carry: Some(carry) })
    }

    /// What a shard kept in the round before `broadcast`.
    pub(super) fn carry_for(
        &self,
        broadcast: &Broadcast,
        shard: usize,
    ) -> Result<&Arrays, ShardError> {
        let Header { kind, vocab, n_shards, round, .. } = &self.header;
        let expected =
            Header { round: *round, version: self.header.version, ..Header::of(broadcast) };
        let problem = if self.header != expected {
            Some(format!(
                "its previous statistics are from a run of {n_shards} shards of kind `{kind}`, vocabulary {vocab:016x}"
            ))
        } else if round.checked_add(1) != Some(broadcast.round) {
            Some(format!(
                "its previous statistics are from round {round}, expected round {}",
                broadcast.round.wrapping_sub(1)
            ))
        } else if self.nodes.keys().any(|&node| node != (0, shard)) {
            Some(format!("its previous statistics are those of {}", in_words(&self.shards())))
        } else {
            None
        };
        let unlike = |problem: String| ShardError::Unlike {
            shards: in_words(&[shard]),
            n_shards: *n_shards,
            problem,
        };
        match (problem, &self.carry) {
            (None, Some(carry)) => Ok(carry),
            (Some(problem), _) => Err(unlike(problem)),
            (None, None) => Err(unlike("its previous statistics contain no state".to_owned())),
        }
    }

    /// Merges statistics with `add`, which adds up the sums of two nodes.
    pub(super) fn merge(
        parts: Vec<Statistics>,
        add: &dyn Fn(Arrays, Arrays) -> Result<Arrays, FitError>,
    ) -> Result<Statistics, ShardError> {
        let mut parts = parts.into_iter();
        let mut all = parts.next().ok_or(ShardError::Nothing)?;
        all.carry = None;
        let n = all.header.n_shards;
        for part in parts {
            let unlike = |shards: &[usize], problem: String| ShardError::Unlike {
                shards: in_words(shards),
                n_shards: n,
                problem,
            };
            if let Some(problem) = part.header.difference(&all.header) {
                return Err(unlike(&part.shards(), problem));
            }
            let (ours, theirs) = (all.shards(), part.shards());
            if let Some(&twice) = theirs.iter().find(|shard| ours.binary_search(shard).is_ok()) {
                return Err(unlike(&[twice], "its statistics were given twice".to_owned()));
            }
            all.nodes.extend(part.nodes);
        }
        all.join_halves(add)?;
        Ok(all)
    }

    /// Joins the halves of nodes, from the leaves to the root.
    fn join_halves(
        &mut self,
        add: &dyn Fn(Arrays, Arrays) -> Result<Arrays, FitError>,
    ) -> Result<(), ShardError> {
        let n = self.header.n_shards;
        for level in 0..root(n).0 {
            let lefts: Vec<Node> =
                self.nodes.range((level, 0)..(level + 1, 0)).map(|(&node, _)| node).collect();
            for (_, left) in lefts.into_iter().filter(|(_, index)| index % 2 == 0) {
                let right = (level, left + 1);
                // At the end of the shards, a left half may have no right one.
                let is_alone = shards_of(right, n).is_empty();
                if !is_alone && !self.nodes.contains_key(&right) {
                    continue;
                }
                let mut sums = self.nodes.remove(&(level, left)).expect("the node was listed");
                if let Some(others) = self.nodes.remove(&right) {
                    sums = add(sums, others)?;
                }
                self.nodes.insert((level + 1, left / 2), sums);
            }
        }
        Ok(())
    }

    /// The sums over all shards of a broadcast.
    pub(super) fn total(mut self, broadcast: &Broadcast) -> Result<Arrays, ShardError> {
        let n_shards = broadcast.n_shards;
        if let Some(problem) = self.header.difference(&Header::of(broadcast)) {
            return Err(ShardError::Unlike { shards: in_words(&self.shards()), n_shards, problem });
        }
        if let Some(total) = self.nodes.remove(&root(n_shards)) {
            return Ok(total);
        }
        let shards = self.shards();
        let missing: Vec<usize> =
            (0..n_shards).filter(|shard| shards.binary_search(shard).is_err()).collect();
        Err(ShardError::Missing { shards: in_words(&missing), n_shards })
    }

    /// The bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let meta = Meta {
            header: self.header.clone(),
            nodes: self.nodes.keys().copied().collect(),
            has_carry: self.carry.is_some(),
        };
        let groups =
            self.nodes.iter().map(|((level, index), sums)| (format!("{level}.{index}"), sums));
        let carry = self.carry.iter().map(|carry| (CARRY.to_owned(), carry));
        pack(KIND, &meta, None, &groups.chain(carry).collect::<Vec<_>>())
    }

    /// Reads the bytes of a file, which messages call `name`.
    pub fn from_bytes(bytes: &[u8], name: impl AsRef<Path>) -> Result<Statistics, ContainerError> {
        Statistics::from_container(&Container::from_bytes(bytes, name, KIND)?)
    }

    /// Maps a file into memory.
    pub fn open(path: impl AsRef<Path>) -> Result<Statistics, ContainerError> {
        Statistics::from_container(&Container::open(path, KIND)?)
    }

    fn from_container(file: &Container) -> Result<Statistics, ContainerError> {
        let (Meta { header, nodes, has_carry }, groups) = unpack::<Meta>(file)?;
        let n = header.n_shards;
        check_n_shards(file, n)?;
        let mut groups: BTreeMap<String, Arrays> = groups.into_iter().collect();
        let mut found: BTreeMap<Node, Arrays> = BTreeMap::new();
        for node in nodes {
            let is_node = node.0 <= root(n).0 && !shards_of(node, n).is_empty();
            let overlaps = |&other: &Node| {
                let (a, b) = (shards_of(node, n), shards_of(other, n));
                a.start < b.end && b.start < a.end
            };
            if !is_node || found.keys().any(overlaps) {
                return Err(file.problem(format!("its shards are inconsistent: {node:?}")));
            }
            let sums = groups.remove(&format!("{}.{}", node.0, node.1)).unwrap_or_default();
            found.insert(node, sums);
        }
        let carry = has_carry.then(|| groups.remove(CARRY).unwrap_or_default());
        Ok(Statistics { header, nodes: found, carry })
    }
}

/// The root of the tree over `n` shards.
fn root(n: usize) -> Node {
    (n.max(1).next_power_of_two().trailing_zeros(), 0)
}

/// The shards of a node.
fn shards_of((level, index): Node, n: usize) -> Range<usize> {
    let begin = index.checked_shl(level).filter(|begin| begin >> level == index).unwrap_or(n);
    begin.min(n)..begin.saturating_add(1 << level.min(62)).min(n)
}
