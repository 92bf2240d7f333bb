//! The lexical attributes of a training text.

use super::lists::Lists;
use super::template::{Template, groups, is_single, key};
use foldhash::fast::FixedState;
use latens_corpus::TaggedSentences;
use latens_store::StringTable;
use std::collections::HashMap;

/// Attributes of all tokens: in groups that tokens share, and single ones.
#[derive(Default)]
pub(crate) struct Lexical {
    pub(crate) attributes: StringTable,
    /// Attributes of each group.
    pub(crate) groups: Lists,
    /// Groups of each token, `n_groups` per token.
    pub(crate) of_token: Vec<u32>,
    pub(crate) n_groups: usize,
    /// Attributes of each token that are in no group, `n_singles` per token; [`NO_ATTRIBUTE`] for a rare one.
    pub(crate) singles: Vec<u32>,
    pub(crate) n_singles: usize,
}

/// Stands for an attribute below the minimum count.
pub(crate) const NO_ATTRIBUTE: u32 = u32::MAX;

impl Lexical {
    /// Reads the attributes of all tokens, without those that occur fewer than `min_count` times.
    pub(crate) fn read(
        text: &TaggedSentences,
        pos_column: Option<usize>,
        min_count: u64,
    ) -> Lexical {
        let all = groups(pos_column.is_some());
        let mut lexical = Lexical {
            n_groups: all.clone().filter(|&group| !is_single(group)).count(),
            n_singles: all.clone().filter(|&group| is_single(group)).count(),
            groups: Lists::new(),
            ..Lexical::default()
        };
        let (mut words, mut tags) = (StringTable::default(), StringTable::default());
        let mut known: Vec<HashMap<[Option<u32>; 3], u32, FixedState>> =
            all.clone().map(|_| HashMap::default()).collect();
        let (mut scratch, mut found) = (String::new(), Vec::new());
        for sentence in text.iter() {
            let strings = sentence.words();
            let pos =
                pos_column.map(|column| sentence.column(column).expect("the column was checked"));
            let word_ids: Vec<u32> = strings.iter().map(|word| words.intern(word)).collect();
            let pos_ids: Vec<u32> = pos.iter().flatten().map(|tag| tags.intern(tag)).collect();
            let template = Template::new(&strings, pos.as_deref());
            for at in 0..strings.len() {
                for (group, known) in all.clone().zip(&mut known) {
                    let key = key(group, &word_ids, &pos_ids, at);
                    let number = *known.entry(key).or_insert_with(|| {
                        found.clear();
                        template.attributes(group, at, &mut scratch, |name| {
                            found.push(lexical.attributes.intern(name));
                        });
                        if is_single(group) {
                            return found[0];
                        }
                        lexical.groups.push(found.iter().copied());
                        lexical.groups.len() as u32 - 1
                    });
                    let numbers =
                        if is_single(group) { &mut lexical.singles } else { &mut lexical.of_token };
                    numbers.push(number);
                }
            }
        }
        if min_count > 1 { lexical.without_rare(min_count) } else { lexical }
    }

    fn without_rare(self, min_count: u64) -> Lexical {
        let mut n_tokens = vec![0u64; self.groups.len()];
        self.of_token.iter().for_each(|&group| n_tokens[group as usize] += 1);
        let mut counts = vec![0u64; self.attributes.len()];
        for (group, n_tokens) in self.groups.iter().zip(n_tokens) {
            group.iter().for_each(|&attribute| counts[attribute as usize] += n_tokens);
        }
        self.singles.iter().for_each(|&attribute| counts[attribute as usize] += 1);
        let mut attributes = StringTable::default();
        let kept =
            |(name, &count): (&str, &u64)| (count >= min_count).then(|| attributes.intern(name));
        let numbers: Vec<Option<u32>> = self.attributes.iter().zip(&counts).map(kept).collect();
        self.renumbered(attributes, &numbers)
    }

    /// The same attributes with their numbers in another table. Attributes that it lacks are dropped.
    pub(crate) fn numbered_as(self, attributes: StringTable) -> Lexical {
        let numbers: Vec<Option<u32>> =
            self.attributes.iter().map(|name| attributes.find(name)).collect();
        self.renumbered(attributes, &numbers)
    }

    fn renumbered(self, attributes: StringTable, numbers: &[Option<u32>]) -> Lexical {
        let mut groups = Lists::new();
        for group in self.groups.iter() {
            groups.push(group.iter().filter_map(|&attribute| numbers[attribute as usize]));
        }
        let single = |&attribute: &u32| numbers[attribute as usize].unwrap_or(NO_ATTRIBUTE);
        let singles = self.singles.iter().map(single).collect();
        Lexical { attributes, groups, singles, ..self }
    }

    /// Attributes of a token that are in no group.
    #[inline(always)]
    pub(crate) fn singles_of(&self, token: usize) -> &[u32] {
        &self.singles[token * self.n_singles..(token + 1) * self.n_singles]
    }

    /// All attributes of a token.
    pub(crate) fn attributes_of(&self, token: usize) -> impl Iterator<Item = usize> + '_ {
        let grouped =
            self.groups_of(token).iter().flat_map(|&group| self.groups.get(group as usize));
        let singles = self.singles_of(token).iter().filter(|&&attribute| attribute != NO_ATTRIBUTE);
        grouped.chain(singles).map(|&attribute| attribute as usize)
    }

    /// Groups of a token.
    #[inline(always)]
    pub(crate) fn groups_of(&self, token: usize) -> &[u32] {
        &self.of_token[token * self.n_groups..(token + 1) * self.n_groups]
    }
}
