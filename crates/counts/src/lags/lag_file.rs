//! Lag counts on disk.

use crate::error::CountError;
use crate::lags::lag_counts::{Boundary, LagCounts};
use crate::lags::lag_matrix::LagMatrix;
use crate::limits::MAX_LAGS;
use crate::table::count_table::CountTable;
use crate::table::table_file::{read_table, table_arrays, write_table};
use latens_corpus::{Lexicon, Preprocessing, VocabLimits, read_vocab, vocab_arrays, write_vocab};
use latens_store::{ArrayWriter, Container, container_bytes, write_container};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

const KIND: &str = "lag counts";

#[derive(Serialize, Deserialize)]
struct Meta {
    preprocessing: Preprocessing,
    limits: VocabLimits,
    boundary: Boundary,
    n_lags: usize,
    n_tokens: u64,
}

impl LagCounts {
    /// Writes the counts and their lexicon to a file. Equal counts give equal files.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), CountError> {
        let arrays = self.arrays();
        let arrays: Vec<(&str, u64)> = arrays.iter().map(|(name, n)| (&name[..], *n)).collect();
        write_container(path, KIND, &self.meta(), &arrays, |out| self.write(out))?;
        Ok(())
    }

    /// The bytes of the file that [`LagCounts::save`] writes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let arrays = self.arrays();
        let arrays: Vec<(&str, u64)> = arrays.iter().map(|(name, n)| (&name[..], *n)).collect();
        container_bytes(KIND, &self.meta(), &arrays, |out| self.write(out))
    }

    fn meta(&self) -> Meta {
        Meta {
            preprocessing: self.lexicon.preprocessing,
            limits: self.lexicon.limits,
            boundary: self.boundary,
            n_lags: self.n_lags(),
            n_tokens: self.n_tokens,
        }
    }

    /// Names and lengths in bytes of the arrays of a file.
    fn arrays(&self) -> Vec<(String, u64)> {
        let mut arrays = vocab_arrays(self.vocab()).map(|(name, n)| (name.to_owned(), n)).to_vec();
        arrays.push(("unigrams".to_owned(), size_of_val(&self.unigrams[..]) as u64));
        for (i, lag) in self.lags.iter().enumerate() {
            arrays.extend(table_arrays(&table_name(i), &lag.0));
        }
        arrays
    }

    fn write(&self, out: &mut ArrayWriter<'_>) -> io::Result<()> {
        write_vocab(self.vocab(), out)?;
        out.array(&self.unigrams)?;
        self.lags.iter().try_for_each(|lag| write_table(&lag.0, out))
    }

    /// Maps a file that [`LagCounts::save`] wrote, and verifies its checksum.
    pub fn open(path: impl AsRef<Path>) -> Result<LagCounts, CountError> {
        LagCounts::from_container(&Container::open(path, KIND)?)
    }

    /// Reads the bytes of a file, which messages call `name`.
    pub fn from_bytes(bytes: &[u8], name: impl AsRef<Path>) -> Result<LagCounts, CountError> {
        LagCounts::from_container(&Container::from_bytes(bytes, name, KIND)?)
    }

    fn from_container(file: &Container) -> Result<LagCounts, CountError> {
        let Meta { preprocessing, limits, boundary, n_lags, n_tokens } = file.meta()?;
        let vocab = read_vocab(file)?;
        let unigrams = file.array::<u64>("unigrams")?.to_vec();
        let sum = unigrams.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count));
        if unigrams.len() != vocab.len() || sum != Some(n_tokens) {
            return Err(file
                .problem("its unigram counts do not add up to its number of tokens".to_owned())
                .into());
        }
        if !(1..=MAX_LAGS).contains(&n_lags) {
            return Err(file
                .problem(format!("the number of lags must be from 1 to {MAX_LAGS}, got {n_lags}"))
                .into());
        }
        let mut lags = Vec::new();
        for i in 0..n_lags {
            let table = read_table(file, &table_name(i), vocab.len())?;
            check(&table, &unigrams).map_err(|problem| file.problem(problem.to_owned()))?;
            lags.push(LagMatrix(table));
        }
        let lexicon = Lexicon::new(preprocessing, limits, vocab);
        Ok(LagCounts { lexicon, boundary, unigrams, n_tokens, lags })
    }
}

fn table_name(i: usize) -> String {
    format!("lag{}", i + 1)
}

/// Checks that columns are words, and that no word is the later word of more pairs than it has
/// occurrences. Sums of counts can then not overflow.
fn check(table: &CountTable<u32>, unigrams: &[u64]) -> Result<(), &'static str> {
    if table.items().iter().any(|&earlier| earlier as usize >= unigrams.len()) {
        return Err("it contains word ids outside its vocabulary");
    }
    for (later, &n_seen) in unigrams.iter().enumerate() {
        let counts = table.row(later).map(|(_, count)| count);
        let sum = counts.fold(0_u64, u64::saturating_add);
        if sum > n_seen {
            return Err("it counts more pairs than there are tokens");
        }
    }
    Ok(())
}
