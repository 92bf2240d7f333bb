//! The weights of a fitted tagger.

use super::layout::Layout;
use latens_store::StringTable;

/// The learned weights, without those of encoders.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    pub(crate) attributes: StringTable,
    /// Start of the weights of each attribute, and the end of the last one's.
    pub(crate) offsets: Vec<u64>,
    /// Tag and value of each weight of an attribute.
    pub(crate) tags: Vec<u16>,
    pub(crate) values: Vec<f32>,
    /// Row-major, from × to.
    pub(crate) transitions: Vec<f32>,
    /// Hidden bias, output weights and output bias of the network; empty without one.
    pub(crate) network: Vec<f32>,
}

impl Weights {
    /// Adds the weights of an attribute to the scores of tags.
    #[inline]
    pub(crate) fn add(&self, attribute: &str, scores: &mut [f32]) {
        let Some(attribute) = self.attributes.find(attribute) else { return };
        let begin = self.offsets[attribute as usize] as usize;
        let end = self.offsets[attribute as usize + 1] as usize;
        for (&tag, value) in self.tags[begin..end].iter().zip(&self.values[begin..end]) {
            scores[usize::from(tag)] += value;
        }
    }

    /// Extracts the weights of attributes, transitions and the network from the learned vector. Attributes whose
    /// weights are all zero are dropped.
    pub(crate) fn of(learned: &[f64], layout: &Layout, attributes: &StringTable) -> Weights {
        let mut names = StringTable::default();
        let (mut offsets, mut tags, mut values) = (vec![0], Vec::new(), Vec::new());
        for (attribute, name) in attributes.iter().enumerate() {
            let range = layout.attribute(attribute);
            let pairs = layout.tags[range.clone()].iter().zip(&learned[range]);
            for (&tag, &value) in pairs.filter(|(_, value)| **value as f32 != 0.0) {
                tags.push(tag);
                values.push(value as f32);
            }
            if tags.len() as u64 > offsets[offsets.len() - 1] {
                names.intern(name);
                offsets.push(tags.len() as u64);
            }
        }
        let narrow = |weights: &[f64]| weights.iter().map(|&w| w as f32).collect();
        Weights {
            attributes: names,
            offsets,
            tags,
            values,
            transitions: narrow(&learned[layout.transition_weights()]),
            network: narrow(&learned[layout.network().all()]),
        }
    }
}
