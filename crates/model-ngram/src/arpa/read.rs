//! Reading a model in the ARPA format.

use super::complete::{Entry, trie_of};
use super::format::{ArpaError, BEGIN, END, LOG_ZERO, OTHER_UNK};
use crate::file::MAX_LOG_BACKOFF;
use crate::model::Ngram;
use crate::params::{MAX_ORDER, NgramParams};
use latens_corpus::{EOS, Lexicon, LineReader, Preprocessing, UNK, Vocab, VocabLimits};
use latens_model::Params;
use latens_store::StringTable;
use std::f64::consts::LN_10;
use std::io::BufRead;

impl Ngram {
    /// Reads a model in the ARPA format.
    ///
    /// The format does not store the preprocessing, which the caller supplies, or word counts, which
    /// become 0. Some toolkits prune n-grams that others need as history or to back off to: these are
    /// added with their back-off probabilities.
    pub fn read_arpa(
        input: &mut dyn BufRead,
        preprocessing: &Preprocessing,
    ) -> Result<Ngram, ArpaError> {
        let mut lines = Lines(LineReader::new(input));
        let sizes = read_sizes(&mut lines)?;
        let mut names = StringTable::from_iter([UNK, EOS]);
        let mut levels = vec![read_unigrams(&mut lines, sizes[0], &mut names)?];
        let begin = names.len() as u32;
        for order in 2..=sizes.len() {
            levels.push(read_ngrams(&mut lines, order, sizes[order - 1], &names, begin)?);
        }
        lines.expect("\\end\\")?;
        let trie = trie_of(levels, begin);
        let counts = vec![0; names.len()];
        let vocab = Vocab::from_parts(names.iter(), counts)
            .expect("the words are distinct and start with `<unk>` and `<eos>`");
        let params = NgramParams { order: sizes.len(), ..NgramParams::default() }
            .validate()
            .expect("the order is in range");
        let lexicon = Lexicon::new(*preprocessing, VocabLimits::default(), vocab);
        Ok(Ngram { params, lexicon, facts: serde_json::Map::new(), trie })
    }
}

/// Reader of the lines that are not blank, with their numbers.
struct Lines<'a>(LineReader<'a>);

impl Lines<'_> {
    fn next(&mut self) -> Result<String, ArpaError> {
        while let Some(line) = self.0.next_str()? {
            let line = line.trim_ascii_end();
            if !line.is_empty() {
                return Ok(line.to_owned());
            }
        }
        Err(self.problem("unexpected end of file"))
    }

    fn expect(&mut self, wanted: &str) -> Result<(), ArpaError> {
        let line = self.next()?;
        if line.trim_ascii() == wanted {
            return Ok(());
        }
        Err(self.problem(format!("expected `{wanted}`, found {:?}", line.trim_ascii())))
    }

    fn problem(&self, problem: impl Into<String>) -> ArpaError {
        ArpaError::Line { line: self.0.number(), problem: problem.into() }
    }
}

/// Reads the header, up to and including the first line of the unigram section.
fn read_sizes(lines: &mut Lines<'_>) -> Result<Vec<usize>, ArpaError> {
    // Some toolkits write comments before the header.
    while lines.next()?.trim_ascii() != "\\data\\" {}
    let mut sizes = Vec::new();
    loop {
        let line = lines.next()?;
        let line = line.trim_ascii();
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
            return Err(lines.problem("expected `ngram ORDER=COUNT` or `\\1-grams:`"));
        };
        sizes.push(size);
    }
    if sizes.is_empty() || sizes.len() > MAX_ORDER {
        return Err(lines.problem(format!(
            "the order must be at least 1 and at most {MAX_ORDER}, got {}",
            sizes.len()
        )));
    }
    Ok(sizes)
}

fn read_unigrams(
    lines: &mut Lines<'_>,
    size: usize,
    names: &mut StringTable,
) -> Result<Vec<Entry>, ArpaError> {
    let impossible =
        |word| Entry { words: [word, 0, 0, 0, 0, 0], log_prob: f32::NEG_INFINITY, backoff: 0.0 };
    let mut entries = vec![impossible(0), impossible(1)];
    let mut begin = impossible(u32::MAX);
    let mut seen = [false; 3];
    for _ in 0..size {
        let line = lines.next()?;
        let (log_prob, words, backoff) = fields(&line, 1).ok_or_else(|| lines.bad_ngram(1))?;
        let mut entry = Entry { log_prob, backoff, ..impossible(0) };
        let special = match words[0] {
            UNK => Some(0),
            // Some toolkits write `<UNK>` for `<unk>`; a file with both has it as a regular word.
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
            return Err(lines.problem(format!("duplicate word `{}`", words[0])));
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
    names: &StringTable,
    begin: u32,
) -> Result<Vec<Entry>, ArpaError> {
    lines.expect(&format!("\\{order}-grams:"))?;
    let mut entries = Vec::new();
    for _ in 0..size {
        let line = lines.next()?;
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
        return Err(lines.problem(format!("duplicate n-gram of order {order}")));
    }
    Ok(entries)
}

impl Lines<'_> {
    fn bad_ngram(&self, order: usize) -> ArpaError {
        self.problem(format!("expected a base-10 logarithm of at most 0 and {order} words"))
    }
}

/// Parses one line into its log-probability, words and back-off weight, in natural logarithms.
fn fields(line: &str, order: usize) -> Option<(f32, Vec<&str>, f32)> {
    let mut parts = line.split_ascii_whitespace();
    let log_10: f64 = parts.next()?.parse().ok()?;
    let words: Vec<&str> = parts.by_ref().take(order).collect();
    let backoff_10: f64 = parts.next().map_or(Some(0.0), |part| part.parse().ok())?;
    let ln = |log_10: f64| {
        if log_10 <= f64::from(LOG_ZERO) { f32::NEG_INFINITY } else { (log_10 * LN_10) as f32 }
    };
    let (log_prob, backoff) = (ln(log_10), ln(backoff_10));
    // An infinite weight times a probability of zero is NaN, and model files have the same limit.
    let sound = log_prob <= 0.0 && backoff <= MAX_LOG_BACKOFF;
    (sound && words.len() == order && parts.next().is_none()).then_some((log_prob, words, backoff))
}
