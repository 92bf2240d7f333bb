//! The positions of weights in the parameter vector that learners optimize.

use crate::tagging::features::examples::Examples;
use crate::tagging::features::lexical::NO_ATTRIBUTE;
use crate::tagging::params::{Kind, Pairs};
use std::ops::Range;

/// The weights of attributes, of transitions, of the columns of encoders, and of the network, in this order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    /// Start of the weights of each attribute, and the end of the last one's.
    pub(crate) attributes: Vec<usize>,
    /// Tag of each weight of an attribute.
    pub(crate) tags: Vec<u16>,
    pub(crate) n_tags: usize,
    /// Whether a transition has a weight; row-major, from × to.
    pub(crate) transitions: Vec<bool>,
    /// Number of scores per token: the number of tags, or of hidden units.
    pub(crate) width: usize,
    /// Number of columns of each encoder.
    pub(crate) columns: Vec<usize>,
    /// Number of positions in the window of encoder features.
    pub(crate) n_positions: usize,
    /// Number of hidden units; 0 without a network.
    pub(crate) n_hidden: usize,
}

/// The weights of the hidden layer and of the output layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NetworkWeights {
    /// Bias of each hidden unit.
    pub(crate) hidden_bias: Range<usize>,
    /// Row-major, units × tags.
    pub(crate) output: Range<usize>,
    /// Bias of each tag.
    pub(crate) output_bias: Range<usize>,
}

impl NetworkWeights {
    /// All weights of the network, which are contiguous.
    pub(crate) fn all(&self) -> Range<usize> {
        self.hidden_bias.start..self.output_bias.end
    }
}

impl Layout {
    pub(crate) fn new(examples: &Examples, pairs: Pairs, kind: Kind, n_hidden: usize) -> Layout {
        let n_tags = examples.n_tags;
        let (attributes, tags) = match pairs {
            Pairs::Observed => observed_pairs(examples),
            Pairs::All => {
                let n = examples.lexical.attributes.len();
                let tags = (0..n).flat_map(|_| 0..n_tags as u16).collect();
                ((0..=n).map(|attribute| attribute * n_tags).collect(), tags)
            }
        };
        let transitions = match (kind, pairs) {
            (Kind::Local, _) => vec![false; n_tags * n_tags],
            (Kind::Crf, Pairs::All) => vec![true; n_tags * n_tags],
            (Kind::Crf, Pairs::Observed) => observed_transitions(examples),
        };
        Layout {
            attributes,
            tags,
            n_tags,
            transitions,
            width: if n_hidden > 0 { n_hidden } else { n_tags },
            columns: examples.blocks.iter().map(|rows| rows.n_features).collect(),
            n_positions: 2 * examples.window + 1,
            n_hidden,
        }
    }

    /// Positions of the weights of an attribute.
    #[inline(always)]
    pub(crate) fn attribute(&self, attribute: usize) -> Range<usize> {
        self.attributes[attribute]..self.attributes[attribute + 1]
    }

    /// Positions of the weights of transitions.
    pub(crate) fn transition_weights(&self) -> Range<usize> {
        self.tags.len()..self.tags.len() + self.transitions.len()
    }

    /// Positions of the weights of an encoder at one position of the window; row-major, columns × scores.
    pub(crate) fn block(&self, block: usize, position: usize) -> Range<usize> {
        let size = |columns: usize| columns * self.width;
        let before: usize = self.columns[..block].iter().map(|&n| self.n_positions * size(n)).sum();
        let size = size(self.columns[block]);
        let begin = self.transition_weights().end + before + position * size;
        begin..begin + size
    }

    /// Positions of the weights of the network; empty without one.
    pub(crate) fn network(&self) -> NetworkWeights {
        let n_blocks: usize = self.columns.iter().map(|&n| self.n_positions * n * self.width).sum();
        let begin = self.transition_weights().end + n_blocks;
        let n_biases = if self.n_hidden == 0 { 0 } else { self.n_tags };
        let middle = begin + self.n_hidden;
        let end = middle + self.n_hidden * self.n_tags;
        NetworkWeights {
            hidden_bias: begin..middle,
            output: middle..end,
            output_bias: end..end + n_biases,
        }
    }

    pub(crate) fn n_weights(&self) -> usize {
        self.network().all().end
    }
}

/// The tags that each attribute occurs with: offsets of attributes, and tags.
fn observed_pairs(examples: &Examples) -> (Vec<usize>, Vec<u16>) {
    let lexical = &examples.lexical;
    let mut of_group: Vec<(u32, u16)> = Vec::with_capacity(lexical.of_token.len());
    for (token, &tag) in
        examples.tags.iter().enumerate().filter(|&(token, _)| examples.counts[token])
    {
        of_group.extend(lexical.groups_of(token).iter().map(|&group| (group, tag)));
    }
    of_group.sort_unstable();
    of_group.dedup();
    let of_attribute = of_group.iter().flat_map(|&(group, tag)| {
        lexical.groups.get(group as usize).iter().map(move |&attribute| (attribute, tag))
    });
    let mut pairs: Vec<(u32, u16)> = of_attribute.collect();
    for (token, &tag) in
        examples.tags.iter().enumerate().filter(|&(token, _)| examples.counts[token])
    {
        let singles = lexical.singles_of(token).iter().filter(|&&a| a != NO_ATTRIBUTE);
        pairs.extend(singles.map(|&attribute| (attribute, tag)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut offsets = vec![0; lexical.attributes.len() + 1];
    pairs.iter().for_each(|&(attribute, _)| offsets[attribute as usize + 1] += 1);
    (0..lexical.attributes.len()).for_each(|i| offsets[i + 1] += offsets[i]);
    (offsets, pairs.into_iter().map(|(_, tag)| tag).collect())
}

fn observed_transitions(examples: &Examples) -> Vec<bool> {
    let mut seen = vec![false; examples.n_tags * examples.n_tags];
    for sentence in 0..examples.ends.len() {
        for pair in examples.tags[examples.sentence(sentence)].windows(2) {
            seen[usize::from(pair[0]) * examples.n_tags + usize::from(pair[1])] = true;
        }
    }
    seen
}
