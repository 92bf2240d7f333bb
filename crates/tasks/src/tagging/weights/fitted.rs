use super::layout::Layout;
use latens_store::StringTable;

/// All that was learned, but for encoders.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    pub(crate) attributes: StringTable,
    /// Where the weights of each attribute begin, and where the last one's end.
    pub(crate) offsets: Vec<u64>,
    /// The tag and the value of each weight of an attribute.
    pub(crate) tags: Vec<u16>,
    pub(crate) values: Vec<f32>,
    /// From, to.
    pub(crate) transitions: Vec<f32>,
    /// b, V, v of a network.
    pub(crate) network: Vec<f32>,
}

impl Weights {
    /// Adds what an attribute says of each tag.
    #[inline]
    pub(crate) fn add(&self, attribute: &str, scores: &mut [f32]) {
        let Some(attribute) = self.attributes.find(attribute) else { return };
        let begin = self.offsets[attribute as usize] as usize;
        let end = self.offsets[attribute as usize + 1] as usize;
        for (&tag, value) in self.tags[begin..end].iter().zip(&self.values[begin..end]) {
            scores[usize::from(tag)] += value;
        }
    }

    /// Takes the weights of attributes, transitions and the network out of the vector that was learned. Attributes
    /// whose weights are all zero are left out.
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
        let [first, _, last] = layout.network();
        Weights {
            attributes: names,
            offsets,
            tags,
            values,
            transitions: narrow(&learned[layout.transition_weights()]),
            network: narrow(&learned[first.start..last.end]),
        }
    }
}
