//! Where each weight is in the one vector that a learner sees.

use crate::tagging::features::examples::{Examples, NO_ATTRIBUTE};
use crate::tagging::params::Pairs;
use std::ops::Range;

/// The weights of attributes, of transitions, of encoders' columns, and of a network, in this order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    /// Where the weights of each attribute begin, and where the last one's end.
    pub(crate) attributes: Vec<usize>,
    /// The tag of each weight of an attribute.
    pub(crate) tags: Vec<u16>,
    pub(crate) n_tags: usize,
    /// Whether a pair of tags has a weight, row after row: from, to.
    pub(crate) transitions: Vec<bool>,
    /// How many numbers each word's features become: tags, or hidden units.
    pub(crate) width: usize,
    /// Columns of each encoder.
    pub(crate) columns: Vec<usize>,
    /// How many places around a word encoders' features are taken from.
    pub(crate) n_places: usize,
    /// Whether a network reads what the features become.
    pub(crate) n_hidden: usize,
}

impl Layout {
    pub(crate) fn new(
        examples: &Examples,
        pairs: Pairs,
        is_chain: bool,
        n_hidden: usize,
    ) -> Layout {
        let n_tags = examples.n_tags;
        let (attributes, tags) = match pairs {
            Pairs::Observed => observed_pairs(examples),
            Pairs::All => {
                let n = examples.lexical.attributes.len();
                let tags = (0..n).flat_map(|_| 0..n_tags as u16).collect();
                ((0..=n).map(|attribute| attribute * n_tags).collect(), tags)
            }
        };
        let transitions = match (is_chain, pairs) {
            (false, _) => vec![false; n_tags * n_tags],
            (true, Pairs::All) => vec![true; n_tags * n_tags],
            (true, Pairs::Observed) => observed_transitions(examples),
        };
        Layout {
            attributes,
            tags,
            n_tags,
            transitions,
            width: if n_hidden > 0 { n_hidden } else { n_tags },
            columns: examples.blocks.iter().map(|rows| rows.n_features).collect(),
            n_places: 2 * examples.window + 1,
            n_hidden,
        }
    }

    /// The weights of an attribute.
    #[inline(always)]
    pub(crate) fn attribute(&self, attribute: usize) -> Range<usize> {
        self.attributes[attribute]..self.attributes[attribute + 1]
    }

    pub(crate) fn transition_weights(&self) -> Range<usize> {
        self.tags.len()..self.tags.len() + self.transitions.len()
    }

    /// The weights of an encoder's columns at one place, row after row.
    pub(crate) fn block(&self, block: usize, place: usize) -> Range<usize> {
        let size = |columns: usize| columns * self.width;
        let before: usize = self.columns[..block].iter().map(|&n| self.n_places * size(n)).sum();
        let size = size(self.columns[block]);
        let begin = self.transition_weights().end + before + place * size;
        begin..begin + size
    }

    /// The weights of the network: what is added to hidden units, those of tags by units, what is added to tags.
    pub(crate) fn network(&self) -> [Range<usize>; 3] {
        let n_blocks: usize = self.columns.iter().map(|&n| self.n_places * n * self.width).sum();
        let begin = self.transition_weights().end + n_blocks;
        if self.n_hidden == 0 {
            return [begin..begin, begin..begin, begin..begin];
        }
        let middle = begin + self.n_hidden;
        let end = middle + self.n_hidden * self.n_tags;
        [begin..middle, middle..end, end..end + self.n_tags]
    }

    pub(crate) fn n_weights(&self) -> usize {
        self.network()[2].end
    }
}

/// The tags that each attribute was seen with.
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
