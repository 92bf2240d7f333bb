//! N-gram counts on disk.

use crate::error::CountError;
use crate::ngrams::context::{Context, Packing};
use crate::ngrams::ngram_counts::{NgramCounts, Ngrams, packing, with_table};
use crate::table::count_table::CountTable;
use crate::table::table_file::{read_table, table_arrays, write_table};
use latens_store::{Container, ContainerError, container_bytes, write_container};
use serde::{Deserialize, Serialize};
use std::path::Path;

const KIND: &str = "n-gram counts";
const TABLE: &str = "ngrams";

#[derive(Serialize, Deserialize)]
struct Meta {
    order: usize,
    n_words: usize,
    n_tokens: u64,
    /// Fingerprint of the vocabulary. Files of version 0.1 do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vocab: Option<u64>,
}

impl NgramCounts {
    /// Writes the counts to a file. Equal counts give equal files.
    ///
    /// The file contains a fingerprint of the vocabulary, but not its words.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), CountError> {
        let (path, meta) = (path.as_ref(), self.meta());
        with_table!(&self.ngrams, table => {
            let arrays = table_arrays(TABLE, table);
            let arrays = arrays.each_ref().map(|(name, n)| (&name[..], *n));
            write_container(path, KIND, &meta, &arrays, |out| write_table(table, out))?;
        });
        Ok(())
    }

    /// The bytes of the file that [`NgramCounts::save`] writes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let meta = self.meta();
        with_table!(&self.ngrams, table => {
            let arrays = table_arrays(TABLE, table);
            let arrays = arrays.each_ref().map(|(name, n)| (&name[..], *n));
            container_bytes(KIND, &meta, &arrays, |out| write_table(table, out))
        })
    }

    fn meta(&self) -> Meta {
        let NgramCounts { order, n_tokens, vocab, .. } = *self;
        Meta { order, n_words: self.n_words(), n_tokens, vocab }
    }

    /// Maps a file that [`NgramCounts::save`] wrote, and verifies its checksum.
    pub fn open(path: impl AsRef<Path>) -> Result<NgramCounts, CountError> {
        NgramCounts::from_container(&Container::open(path, KIND)?)
    }

    /// Reads the bytes of a file, which messages call `name`.
    pub fn from_bytes(bytes: &[u8], name: impl AsRef<Path>) -> Result<NgramCounts, CountError> {
        NgramCounts::from_container(&Container::from_bytes(bytes, name, KIND)?)
    }

    fn from_container(file: &Container) -> Result<NgramCounts, CountError> {
        let Meta { order, n_words, n_tokens, vocab } = file.meta()?;
        let packing = packing(order, n_words)
            .map_err(|error| file.problem(format!("invalid header: {error}")))?;
        let ngrams = if packing.n_bits() <= u64::BITS {
            Ngrams::Narrow(read_ngrams(file, n_words, n_tokens, packing)?)
        } else {
            Ngrams::Wide(read_ngrams(file, n_words, n_tokens, packing)?)
        };
        Ok(NgramCounts { order, n_tokens, vocab, packing, ngrams })
    }
}

fn read_ngrams<C: Context>(
    file: &Container,
    n_words: usize,
    n_tokens: u64,
    packing: Packing,
) -> Result<CountTable<C>, ContainerError> {
    let table = read_table(file, TABLE, n_words)?;
    if !table.items().iter().all(|&context| packing.is_valid::<C>(context)) {
        return Err(file.problem("it contains word ids outside its vocabulary".to_owned()));
    }
    if !table.sums_to(n_tokens) {
        return Err(file.problem("its counts do not add up to its number of tokens".to_owned()));
    }
    Ok(table)
}
