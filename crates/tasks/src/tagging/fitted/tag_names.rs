//! The tags that a tagger predicts, and those that it returns.

use crate::tagging::spans::Scheme;
use latens_store::StringTable;

/// The names of tags.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TagNames {
    /// Tags that the model predicts; tags of spans are in the scheme of its parameters.
    pub(crate) internal: Vec<String>,
    /// Tags that the tagger returns: the same, or their IOB2 form if they are tags of spans.
    pub(crate) returned: Vec<String>,
    pub(crate) are_spans: bool,
}

impl TagNames {
    pub(crate) fn new(internal: Vec<String>, are_spans: bool) -> TagNames {
        if !are_spans {
            return TagNames { returned: internal.clone(), internal, are_spans };
        }
        let mut returned = StringTable::from_iter(["O"]);
        for tag in internal.iter().filter_map(|tag| Some(tag.split_once('-')?.1)) {
            returned.intern(&format!("B-{tag}"));
            returned.intern(&format!("I-{tag}"));
        }
        TagNames { returned: returned.iter().map(str::to_owned).collect(), internal, are_spans }
    }

    /// Converts predicted tags to returned tags.
    pub(crate) fn write(&self, found: &[u32]) -> Vec<u32> {
        if !self.are_spans {
            return found.to_vec();
        }
        let names: Vec<&str> =
            found.iter().map(|&tag| self.internal[tag as usize].as_str()).collect();
        let index = |name: String| {
            self.returned
                .iter()
                .position(|returned| *returned == name)
                .expect("every type of span has both names") as u32
        };
        Scheme::Iob2.write(&names).into_iter().map(index).collect()
    }
}
