//! Words that a local tagger tags without a classifier.

use crate::tagging::params::{Kind, TaggerParams};
use latens_corpus::TaggedSentences;
use latens_store::StringTable;
use std::collections::HashMap;

/// Words with a fixed tag.
#[derive(Clone, Debug, Default)]
pub(crate) struct Direct {
    pub(crate) words: StringTable,
    pub(crate) tags: Vec<u16>,
}

impl Direct {
    /// The most frequent tags of punctuation and of `direct_words`, for a local tagger (Belanger and Kakade 2015, §7.2).
    /// Ties go to the tag that occurs first in the text.
    pub(crate) fn of(params: &TaggerParams, text: &TaggedSentences, tags: &[u16]) -> Direct {
        let mut direct = Direct::default();
        if params.kind != Kind::Local {
            return direct;
        }
        let mut counts: Vec<HashMap<u16, usize>> = Vec::new();
        let words = text.iter().flat_map(|sentence| sentence.words());
        for (word, &tag) in words.zip(tags) {
            let is_named = params.direct_words.iter().any(|named| named == word);
            if is_named || !word.chars().any(char::is_alphanumeric) {
                let index = direct.words.intern(word) as usize;
                counts.resize_with(direct.words.len(), HashMap::new);
                *counts[index].entry(tag).or_default() += 1;
            }
        }
        let most = |counts: &HashMap<u16, usize>| {
            let most = counts.iter().max_by_key(|&(&tag, &n)| (n, std::cmp::Reverse(tag)));
            *most.expect("every counted word has a tag").0
        };
        direct.tags = counts.iter().map(most).collect();
        direct
    }

    /// The tag of a word, if it is fixed.
    pub(crate) fn tag(&self, word: &str) -> Option<u32> {
        self.words.find(word).map(|index| u32::from(self.tags[index as usize]))
    }
}
