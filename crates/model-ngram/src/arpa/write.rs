//! Writing a model in the ARPA format.

use super::format::{ArpaError, BEGIN, END, LOG_ZERO};
use crate::model::Ngram;
use crate::trie::Level;
use std::f64::consts::LN_10;
use std::io::{self, Write};

impl Ngram {
    /// Writes the model in the ARPA format, without its cache.
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
                || word.contains(|c: char| c.is_ascii_whitespace() || c == '\0')
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
    // Rounding can leave a probability slightly above 1, which the format does not allow.
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
    ((f64::from(log_prob) / LN_10) as f32).max(LOG_ZERO)
}
