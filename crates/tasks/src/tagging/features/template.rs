//! The lexical template: the attributes of a token that a tagger uses as features.
//!
//! An attribute is a string, such as `w0=Monday` or `e3=day`. Attributes come in groups. All attributes of a group are
//! functions of the same few inputs, e.g., of the word itself, so a learner sums the weights of a group once per
//! distinct input instead of once per token. Some groups have a single attribute.
//!
//! | Group | Attributes (`0` is the word itself, `-1` the word before it, …) |
//! |---|---|
//! | the word | a constant; the word; lowercased; digits replaced by zeros; its shape (`Xx9-`), long and short; prefixes and suffixes of 1 to 4 letters; whether it has only capitals, an initial capital, an inner capital, a digit, a hyphen, no letter |
//! | each neighbor at -1 and +1 | lowercased; its short shape; its last three letters |
//! | each neighbor at -2 and +2 | lowercased; its short shape |
//! | word pairs | -1 and 0, 0 and +1, lowercased |
//! | shapes | the short shapes of -1, 0 and +1 |
//! | with a column of parts of speech | each of -2 to +2, all bigrams and trigrams; the one at 0 with the word |
//!
//! `<s>` stands for words before the sentence, `</s>` for words after it.

use std::borrow::Cow;
use std::fmt::Write;

/// Placeholders for words outside the sentence.
const BEFORE: &str = "<s>";
const AFTER: &str = "</s>";

/// A group of attributes: whether it has a single one, and whether it needs parts of speech.
struct Group {
    is_single: bool,
    needs_pos: bool,
}

const MANY: Group = Group { is_single: false, needs_pos: false };
const ONE: Group = Group { is_single: true, needs_pos: false };
const MANY_POS: Group = Group { is_single: false, needs_pos: true };
const ONE_POS: Group = Group { is_single: true, needs_pos: true };

/// The groups; their indices are used throughout.
const GROUPS: [Group; 12] =
    [MANY, MANY, MANY, MANY, MANY, ONE, ONE, ONE, MANY_POS, MANY_POS, MANY_POS, ONE_POS];

/// Computes the attributes of a sentence.
pub(crate) struct Template<'a> {
    forms: Vec<Forms<'a>>,
    pos: Option<&'a [&'a str]>,
}

/// The forms of a word from which attributes are built.
struct Forms<'a> {
    word: &'a str,
    lower: Cow<'a, str>,
    shape: String,
    short: String,
}

/// Returns the attributes of each word of a sentence, e.g., to train another program on them. `pos` are parts of speech.
pub fn attributes(words: &[&str], pos: Option<&[&str]>) -> Vec<Vec<String>> {
    let (template, mut scratch) = (Template::new(words, pos), String::new());
    let of_word = |at: usize| {
        let mut found = Vec::new();
        for group in groups(pos.is_some()) {
            template.attributes(group, at, &mut scratch, |name| found.push(name.to_owned()));
        }
        found
    };
    (0..words.len()).map(of_word).collect()
}

/// Indices of the groups that a token has.
pub(crate) fn groups(has_pos: bool) -> impl Iterator<Item = usize> + Clone {
    (0..GROUPS.len()).filter(move |&group| has_pos || !GROUPS[group].needs_pos)
}

/// Whether a group has a single attribute.
pub(crate) fn is_single(group: usize) -> bool {
    GROUPS[group].is_single
}

/// Number of groups that depend on a single word. They come first.
pub(crate) const WORD_GROUPS: usize = 5;

/// Offset of that word from the token.
const OFFSETS: [isize; WORD_GROUPS] = [0, -2, -1, 1, 2];

/// Each group that depends on a single word, and the index of the token, in a sentence of five words, for which that word
/// is the third.
pub(crate) fn groups_of_word() -> impl Iterator<Item = (usize, usize)> {
    OFFSETS.iter().enumerate().map(|(group, &offset)| (group, (2 - offset) as usize))
}

/// Index of the single word that a group depends on, for the token `at` of `n`; `None` if the group depends on several
/// words or the word lies outside the sentence.
pub(crate) fn word_of(group: usize, at: usize, n: usize) -> Option<usize> {
    let offset = *OFFSETS.get(group)?;
    at.checked_add_signed(offset).filter(|&at| at < n)
}

/// The inputs of a group: tokens with equal keys have equal attributes.
///
/// `words` and `pos` are the ids of the words and parts of speech of a sentence; positions outside it have none.
pub(crate) fn key(group: usize, words: &[u32], pos: &[u32], at: usize) -> [Option<u32>; 3] {
    let near = |ids: &[u32], offset: isize| {
        at.checked_add_signed(offset).and_then(|at| ids.get(at)).copied()
    };
    let word = |offset| near(words, offset);
    let tag = |offset| near(pos, offset);
    match group {
        // The group fixes the side, so `None` is `<s>` or `</s>` unambiguously.
        0..WORD_GROUPS => [word(OFFSETS[group]), None, None],
        5 => [word(-1), word(0), None],
        6 => [word(0), word(1), None],
        7 => [word(-1), word(0), word(1)],
        8 => [tag(-2), tag(-1), tag(0)],
        9 => [tag(-1), tag(0), tag(1)],
        10 => [tag(0), tag(1), tag(2)],
        _ => [word(0), tag(0), None],
    }
}

impl<'a> Template<'a> {
    pub(crate) fn new(words: &[&'a str], pos: Option<&'a [&'a str]>) -> Template<'a> {
        Template { forms: words.iter().map(|word| Forms::of(word)).collect(), pos }
    }

    /// Calls `attribute` with each attribute of a group at a token. `text` is scratch memory.
    pub(crate) fn attributes(
        &self,
        group: usize,
        at: usize,
        text: &mut String,
        mut attribute: impl FnMut(&str),
    ) {
        let mut emit = |arguments: std::fmt::Arguments<'_>| {
            text.clear();
            text.write_fmt(arguments).expect("writing to a string cannot fail");
            attribute(text);
        };
        let lower = |offset| self.lower(at, offset);
        let short = |offset| self.short(at, offset);
        let pos = |offset| self.pos(at, offset);
        match group {
            0 => self.forms[at].attributes(&mut emit),
            1..=4 => {
                let offset = OFFSETS[group];
                emit(format_args!("l{offset}={}", lower(offset)));
                emit(format_args!("c{offset}={}", short(offset)));
                if group == 2 || group == 3 {
                    emit(format_args!("n{offset}={}", last(lower(offset), 3)));
                }
            }
            5 => emit(format_args!("l-1,0={} {}", lower(-1), lower(0))),
            6 => emit(format_args!("l0,1={} {}", lower(0), lower(1))),
            7 => emit(format_args!("c-1,0,1={} {} {}", short(-1), short(0), short(1))),
            8 => {
                emit(format_args!("p-2={}", pos(-2)));
                emit(format_args!("p-2,-1={} {}", pos(-2), pos(-1)));
                emit(format_args!("p-2,-1,0={} {} {}", pos(-2), pos(-1), pos(0)));
            }
            9 => {
                emit(format_args!("p-1={}", pos(-1)));
                emit(format_args!("p0={}", pos(0)));
                emit(format_args!("p1={}", pos(1)));
                emit(format_args!("p-1,0={} {}", pos(-1), pos(0)));
                emit(format_args!("p0,1={} {}", pos(0), pos(1)));
                emit(format_args!("p-1,0,1={} {} {}", pos(-1), pos(0), pos(1)));
            }
            10 => {
                emit(format_args!("p2={}", pos(2)));
                emit(format_args!("p1,2={} {}", pos(1), pos(2)));
                emit(format_args!("p0,1,2={} {} {}", pos(0), pos(1), pos(2)));
            }
            _ => emit(format_args!("l0,p0={} {}", lower(0), pos(0))),
        }
    }

    fn lower(&self, at: usize, offset: isize) -> &str {
        self.near(at, offset).map_or_else(|side| side, |forms| &*forms.lower)
    }

    fn short(&self, at: usize, offset: isize) -> &str {
        self.near(at, offset).map_or_else(|side| side, |forms| &*forms.short)
    }

    fn pos(&self, at: usize, offset: isize) -> &str {
        let tags = self.pos.unwrap_or_default();
        match at.checked_add_signed(offset) {
            None => BEFORE,
            Some(at) => tags.get(at).copied().unwrap_or(AFTER),
        }
    }

    /// The word at an offset, or the placeholder for it.
    fn near(&self, at: usize, offset: isize) -> Result<&Forms<'a>, &'static str> {
        let at = at.checked_add_signed(offset).ok_or(BEFORE)?;
        self.forms.get(at).ok_or(AFTER)
    }
}

impl<'a> Forms<'a> {
    fn of(word: &'a str) -> Forms<'a> {
        let has_capital = word.chars().any(char::is_uppercase);
        let lower = if has_capital { word.to_lowercase().into() } else { word.into() };
        let shape: String = word.chars().map(shape).collect();
        let mut short = String::with_capacity(shape.len());
        for letter in shape.chars() {
            if !short.ends_with(letter) {
                short.push(letter);
            }
        }
        Forms { word, lower, shape, short }
    }

    fn attributes(&self, emit: &mut impl FnMut(std::fmt::Arguments<'_>)) {
        let Forms { word, lower, shape, short } = self;
        emit(format_args!("1"));
        emit(format_args!("w0={word}"));
        emit(format_args!("l0={lower}"));
        emit(format_args!("h0={shape}"));
        emit(format_args!("c0={short}"));
        if shape.contains('9') {
            let zeros = lower.chars().map(|c| if c.is_numeric() { '0' } else { c });
            emit(format_args!("z0={}", zeros.collect::<String>()));
        }
        for n in 1..=lower.chars().take(4).count() {
            emit(format_args!("b{n}={}", first(lower, n)));
            emit(format_args!("e{n}={}", last(lower, n)));
        }
        let has = |letter: char| short.contains(letter);
        let is_first_capital = short.starts_with('X');
        for (holds, name) in [
            (is_first_capital, "capital"),
            (has('X') && !has('x'), "capitals"),
            (short.chars().skip(1).any(|c| c == 'X'), "inner capital"),
            (has('9'), "digit"),
            (word.contains('-'), "hyphen"),
            (!has('X') && !has('x'), "no letter"),
        ] {
            if holds {
                emit(format_args!("{name}"));
            }
        }
    }
}

/// `X` for an uppercase letter, `x` for another letter, `9` for a digit; other characters are unchanged.
fn shape(letter: char) -> char {
    match letter {
        'A'..='Z' => 'X',
        'a'..='z' => 'x',
        '0'..='9' => '9',
        letter if letter.is_ascii() => letter,
        letter if letter.is_uppercase() => 'X',
        letter if letter.is_alphabetic() => 'x',
        letter if letter.is_numeric() => '9',
        letter => letter,
    }
}

/// The first `n` characters, or all if there are fewer.
fn first(word: &str, n: usize) -> &str {
    word.char_indices().nth(n).map_or(word, |(end, _)| &word[..end])
}

/// The last `n` characters, or all if there are fewer.
fn last(word: &str, n: usize) -> &str {
    word.char_indices().rev().nth(n - 1).map_or(word, |(begin, _)| &word[begin..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn all(words: &[&str], pos: Option<&[&str]>, at: usize) -> Vec<String> {
        attributes(words, pos).swap_remove(at)
    }

    #[test]
    fn a_token_has_the_documented_attributes() {
        let found = all(&["On", "Élan-2b"], Some(&["IN", "NNP"]), 1);
        let expected = "1|w0=Élan-2b|l0=élan-2b|h0=Xxxx-9x|c0=Xx-9x|z0=élan-0b|b1=é|e1=b|b2=él|e2=2b|b3=éla|e3=-2b|\
                        b4=élan|e4=n-2b|capital|digit|hyphen|l-2=<s>|c-2=<s>|l-1=on|c-1=Xx|n-1=on|l1=</s>|c1=</s>|\
                        n1=/s>|l2=</s>|c2=</s>|l-1,0=on élan-2b|l0,1=élan-2b </s>|c-1,0,1=Xx Xx-9x </s>|p-2=<s>|\
                        p-2,-1=<s> IN|p-2,-1,0=<s> IN NNP|p-1=IN|p0=NNP|p1=</s>|p-1,0=IN NNP|p0,1=NNP </s>|\
                        p-1,0,1=IN NNP </s>|p2=</s>|p1,2=</s> </s>|p0,1,2=NNP </s> </s>|l0,p0=élan-2b NNP";
        assert_eq!(found.join("|"), expected);
        let flags = |word: &str| all(&[word], None, 0).join("|");
        assert!(flags("IBM").contains("capital|capitals|"));
        assert!(flags("eBay").contains("inner capital|"));
        assert!(flags(",").contains("no letter|"));
        assert!(!flags("said").contains("capital"));
    }

    #[test]
    fn tokens_with_equal_keys_have_equal_attributes() {
        // All sentences of up to three tokens over two words and two tags.
        let mut seen: HashMap<(usize, [Option<u32>; 3]), Vec<String>> = HashMap::new();
        for code in 0..1 << 6 {
            let bit = |i: usize| (code >> i) & 1;
            let n = 1 + code % 3;
            let (words, pos): (Vec<u32>, Vec<u32>) =
                (0..n).map(|i| (bit(i), bit(i + 3))).unzip_u32();
            let strings: Vec<&str> = words.iter().map(|&w| ["Ab", "c1"][w as usize]).collect();
            let tags: Vec<&str> = pos.iter().map(|&p| ["P", "Q"][p as usize]).collect();
            let template = Template::new(&strings, Some(&tags));
            for at in 0..n {
                for group in groups(true) {
                    let mut found = Vec::new();
                    template
                        .attributes(group, at, &mut String::new(), |a| found.push(a.to_owned()));
                    let key = (group, key(group, &words, &pos, at));
                    assert_eq!(seen.entry(key).or_insert_with(|| found.clone()), &found, "{key:?}");
                }
            }
        }
    }

    trait Unzip {
        fn unzip_u32(self) -> (Vec<u32>, Vec<u32>);
    }

    impl<I: Iterator<Item = (usize, usize)>> Unzip for I {
        fn unzip_u32(self) -> (Vec<u32>, Vec<u32>) {
            self.map(|(a, b)| (a as u32, b as u32)).unzip()
        }
    }
}
