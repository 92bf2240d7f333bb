//! The ARPA format of n-gram language models, which every toolkit reads: base-10 logarithms, `<s>` and
//! `</s>` around a sentence.

use crate::model::Ngram;
use crate::params::{MAX_ORDER, NgramParams};
use crate::trie::{Level, Trie};
use latens_corpus::{EOS, Lexicon, Preprocessing, UNK, Vocab, VocabLimits};
use latens_model::Params;
use std::f64::consts::LN_10;
use std::io::{self, BufRead, Write};
use thiserror::Error;

const BEGIN: &str = "<s>";
const END: &str = "</s>";
const OTHER_UNK: &str = "<UNK>";
/// What the format writes for probability zero.
const NEVER: f32 = -99.0;

/// A model that cannot be written in the ARPA format, or a text that is none.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArpaError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A word that the format has no room for.
    #[error("the word {word:?} cannot be written in the ARPA format")]
    Word {
        /// The word.
        word: String,
    },
    /// A line that is not as the format has it.
    #[error("line {line}: {problem}")]
    Line {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
}

impl Ngram {
    /// Writes the model, without its cache, in the ARPA format.
    pub fn write_arpa(&self, out: &mut dyn Write) -> Result<(), ArpaError> {
        let names = self.arpa_names()?;
        writeln!(out, "\\data\\")?;
        for (i, level) in self.trie.levels.iter().enumerate() {
            writeln!(out, "ngram {}={}", i + 1, level.log_probs.len())?;
        }
        for (i, level) in self.trie.levels.iter().enumerate() {
            writeln!(out, "\n\\{}-grams:", i + 1)?;
            let mut failed = Ok(());
            self.trie.for_each(i + 1, |words, node| {
                if failed.is_ok() {
                    failed = write_ngram(out, level, node, words, &names);
                }
            });
            failed?;
        }
        writeln!(out, "\n\\end\\")?;
        Ok(())
    }

    fn arpa_names(&self) -> Result<Vec<&str>, ArpaError> {
        let mut names: Vec<&str> = self.lexicon.vocab.words().collect();
        let unfit = |word: &&&str| {
            word.is_empty()
                || word.contains(|c: char| c.is_ascii_whitespace())
                || [BEGIN, END].contains(*word)
        };
        if let Some(word) = names.iter().find(unfit) {
            return Err(ArpaError::Word { word: (*word).to_owned() });
        }
        names[1] = END;
        names.push(BEGIN);
        Ok(names)
    }
}

fn write_ngram(
    out: &mut dyn Write,
    level: &Level,
    node: usize,
    words: &[u32],
    names: &[&str],
) -> io::Result<()> {
    // Rounding can leave a probability a little above 1, which the format does not allow.
    write!(out, "{}", base_10(level.log_probs[node].min(0.0)))?;
    for (i, &word) in words.iter().enumerate() {
        write!(out, "{}{}", if i == 0 { '\t' } else { ' ' }, names[word as usize])?;
    }
    match level.backoffs.get(node) {
        Some(&backoff) => writeln!(out, "\t{}", base_10(backoff)),
        None => writeln!(out),
    }
}

fn base_10(log_prob: f32) -> f32 {
    ((f64::from(log_prob) / LN_10) as f32).max(NEVER)
}

/// One line of an n-gram section: the words from last to first, and natural logarithms.
#[derive(Clone, Copy)]
struct Entry {
    words: [u32; MAX_ORDER],
    log_prob: f32,
    backoff: f32,
}

impl Ngram {
    /// Reads a model in the ARPA format. The format says nothing of the preprocessing, which is taken
    /// from the caller, and of counts, which are 0.
    ///
    /// n-grams whose history or whose shorter n-gram is not listed, as pruning by some toolkits
    /// leaves them, get these with the probabilities that backing off gives them.
    pub fn read_arpa(
        input: &mut dyn BufRead,
        preprocessing: &Preprocessing,
    ) -> Result<Ngram, ArpaError> {
        let mut lines = Lines { input, number: 0, text: String::new() };
        let sizes = read_sizes(&mut lines)?;
        let mut names = latens_store::StringTable::from_iter([UNK, EOS]);
        let mut levels = vec![read_unigrams(&mut lines, sizes[0], &mut names)?];
        let begin = names.len() as u32;
        for order in 2..=sizes.len() {
            levels.push(read_ngrams(&mut lines, order, sizes[order - 1], &names, begin)?);
        }
        lines.expect("\\end\\")?;
        let trie = trie_of(levels, begin);
        let counts = vec![0; names.len()];
        let vocab = Vocab::from_parts(names.iter(), counts)
            .expect("the names are different, and begin with the special words");
        let params = NgramParams { order: sizes.len(), ..NgramParams::default() }
            .validate()
            .expect("the order was checked");
        let lexicon =
            Lexicon { preprocessing: *preprocessing, limits: VocabLimits::default(), vocab };
        Ok(Ngram { params, lexicon, facts: serde_json::Map::new(), trie })
    }
}

/// The lines of a text that are not blank, with their numbers.
struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: u64,
    text: String,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<&str, ArpaError> {
        loop {
            self.text.clear();
            self.number += 1;
            if self.input.read_line(&mut self.text)? == 0 {
                return Err(self.problem("the file ends too early"));
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(self.text.trim_ascii_end());
            }
        }
    }

    fn expect(&mut self, wanted: &str) -> Result<(), ArpaError> {
        if self.next()?.trim_ascii() == wanted {
            return Ok(());
        }
        Err(self.problem(format!("`{wanted}` expected, found {:?}", self.text.trim_ascii())))
    }

    fn problem(&self, problem: impl Into<String>) -> ArpaError {
        ArpaError::Line { line: self.number, problem: problem.into() }
    }
}

/// The header; it leaves `lines` behind the line that begins the unigrams.
fn read_sizes(lines: &mut Lines<'_>) -> Result<Vec<usize>, ArpaError> {
    // Some toolkits write a comment before the data.
    while lines.next()?.trim_ascii() != "\\data\\" {}
    let mut sizes = Vec::new();
    loop {
        let line = lines.next()?.trim_ascii();
        if line == "\\1-grams:" {
            break;
        }
        let size = line.strip_prefix("ngram ").and_then(|rest| rest.split_once('='));
        let size = size.and_then(|(order, size)| {
            let order: usize = order.trim().parse().ok()?;
            let size: usize = size.trim().parse().ok()?;
            (order == sizes.len() + 1).then_some(size)
        });
        let Some(size) = size else {
            return Err(lines.problem("`ngram ORDER=NUMBER` or `\\1-grams:` expected"));
        };
        sizes.push(size);
    }
    if sizes.is_empty() || sizes.len() > MAX_ORDER {
        return Err(lines.problem(format!("orders 1 to {MAX_ORDER} are read, not {}", sizes.len())));
    }
    Ok(sizes)
}

fn read_unigrams(
    lines: &mut Lines<'_>,
    size: usize,
    names: &mut latens_store::StringTable,
) -> Result<Vec<Entry>, ArpaError> {
    let never =
        |word| Entry { words: [word, 0, 0, 0, 0, 0], log_prob: f32::NEG_INFINITY, backoff: 0.0 };
    let mut entries = vec![never(0), never(1)];
    let mut begin = never(u32::MAX);
    let mut seen = [false; 3];
    for _ in 0..size {
        let line = lines.next()?.to_owned();
        let (log_prob, words, backoff) = fields(&line, 1).ok_or_else(|| lines.bad_ngram(1))?;
        let mut entry = Entry { log_prob, backoff, ..never(0) };
        let special = match words[0] {
            UNK => Some(0),
            // What some toolkits write for it; beside it, a word like any other.
            OTHER_UNK if !seen[0] => Some(0),
            END => Some(1),
            BEGIN => Some(2),
            _ => None,
        };
        let twice = match special {
            Some(special) => std::mem::replace(&mut seen[special], true),
            None => names.find(words[0]).is_some(),
        };
        if twice {
            return Err(lines.problem(format!("the word `{}` comes twice", words[0])));
        }
        match special {
            Some(2) => begin = Entry { log_prob: f32::NEG_INFINITY, ..entry },
            Some(special) => {
                entry.words[0] = special as u32;
                entries[special] = entry;
            }
            None => {
                entry.words[0] = names.intern(words[0]);
                entries.push(entry);
            }
        }
    }
    begin.words[0] = names.len() as u32;
    entries.push(begin);
    Ok(entries)
}

fn read_ngrams(
    lines: &mut Lines<'_>,
    order: usize,
    size: usize,
    names: &latens_store::StringTable,
    begin: u32,
) -> Result<Vec<Entry>, ArpaError> {
    lines.expect(&format!("\\{order}-grams:"))?;
    let mut entries = Vec::new();
    for _ in 0..size {
        let line = lines.next()?.to_owned();
        let (log_prob, words, backoff) =
            fields(&line, order).ok_or_else(|| lines.bad_ngram(order))?;
        let mut entry = Entry { words: [0; MAX_ORDER], log_prob, backoff };
        for (place, word) in entry.words.iter_mut().zip(words.iter().rev()) {
            *place = match *word {
                BEGIN => begin,
                END => 1,
                UNK => 0,
                word => names.find(word).or((word == OTHER_UNK).then_some(0)).ok_or_else(|| {
                    lines.problem(format!("the word `{word}` is not among the 1-grams"))
                })?,
            };
        }
        entries.push(entry);
    }
    entries.sort_unstable_by_key(|entry| entry.words);
    if entries.windows(2).any(|pair| pair[0].words == pair[1].words) {
        return Err(lines.problem(format!("an n-gram of order {order} comes twice")));
    }
    Ok(entries)
}

impl Lines<'_> {
    fn bad_ngram(&self, order: usize) -> ArpaError {
        self.problem(format!("a base-10 logarithm of at most 0 and {order} words expected"))
    }
}

/// Logarithm, words and back-off weight of one line, in natural logarithms.
fn fields(line: &str, order: usize) -> Option<(f32, Vec<&str>, f32)> {
    let mut parts = line.split_ascii_whitespace();
    let log_10: f64 = parts.next()?.parse().ok()?;
    let words: Vec<&str> = parts.by_ref().take(order).collect();
    let backoff_10: f64 = parts.next().map_or(Some(0.0), |part| part.parse().ok())?;
    let ln = |log_10: f64| {
        if log_10 <= f64::from(NEVER) { f32::NEG_INFINITY } else { (log_10 * LN_10) as f32 }
    };
    let (log_prob, backoff) = (ln(log_10), ln(backoff_10));
    // An infinite weight, also one that only an `f32` has no room for, times a probability of zero
    // is no number.
    let sound = log_prob <= 0.0 && backoff < f32::INFINITY;
    (sound && words.len() == order && parts.next().is_none()).then_some((log_prob, words, backoff))
}

/// The trie of sorted entries of all orders, with the entries added that others need.
fn trie_of(mut levels: Vec<Vec<Entry>>, begin: u32) -> Trie {
    for order in (2..=levels.len()).rev() {
        let (below, level) = levels.split_at_mut(order - 1);
        add_missing(&mut below[order - 2], &level[0], order);
    }
    for order in 2..=levels.len() {
        let (below, level) = levels.split_at_mut(order - 1);
        let below = &below[order - 2];
        for entry in level[0].iter_mut().filter(|entry| entry.log_prob.is_nan()) {
            let find = |words| &below[position(below, words).expect("it was added")];
            let (shorter, history) = (find(without_first(entry, order)), find(without_last(entry)));
            // A back-off weight above 1 is no reason for a probability above 1.
            entry.log_prob = (shorter.log_prob + history.backoff).min(0.0);
        }
    }
    let order = levels.len();
    let level = |i: usize| {
        let entries = &levels[i];
        let of_all =
            |value: fn(&Entry) -> f32| entries.iter().map(value).collect::<Vec<_>>().into();
        let last = i + 1 == order;
        let words: Vec<u32> = match i {
            0 => vec![],
            _ => entries.iter().map(|entry| entry.words[i]).collect(),
        };
        Level {
            words: words.into(),
            log_probs: of_all(|entry| entry.log_prob),
            backoffs: if last { vec![].into() } else { of_all(|entry| entry.backoff) },
            children: if last { vec![] } else { children(entries, &levels[i + 1], i + 1) }.into(),
        }
    };
    debug_assert_eq!(levels[0].len(), begin as usize + 1);
    Trie { levels: (0..order).map(level).collect() }
}

/// Adds to the order below what the n-grams of `level` back off to, and their histories.
fn add_missing(below: &mut Vec<Entry>, level: &[Entry], order: usize) {
    let needed = level.iter().flat_map(|entry| [without_first(entry, order), without_last(entry)]);
    let mut missing: Vec<[u32; MAX_ORDER]> =
        needed.filter(|&words| position(below, words).is_none()).collect();
    missing.sort_unstable();
    missing.dedup();
    let entry = |words| Entry { words, log_prob: f32::NAN, backoff: 0.0 };
    below.extend(missing.into_iter().map(entry));
    below.sort_unstable_by_key(|entry| entry.words);
}

fn position(level: &[Entry], words: [u32; MAX_ORDER]) -> Option<usize> {
    level.binary_search_by_key(&words, |entry| entry.words).ok()
}

fn without_first(entry: &Entry, order: usize) -> [u32; MAX_ORDER] {
    let mut words = entry.words;
    words[order - 1] = 0;
    words
}

fn without_last(entry: &Entry) -> [u32; MAX_ORDER] {
    let mut words = entry.words;
    words.rotate_left(1);
    words[MAX_ORDER - 1] = 0;
    words
}

/// Where the children of each entry begin in the next order, and where the last one's end.
fn children(entries: &[Entry], next: &[Entry], order: usize) -> Vec<u64> {
    let mut begins = Vec::with_capacity(entries.len() + 1);
    let mut at = 0;
    for entry in entries {
        begins.push(at as u64);
        while next.get(at).is_some_and(|child| child.words[..order] == entry.words[..order]) {
            at += 1;
        }
    }
    begins.push(at as u64);
    begins
}
