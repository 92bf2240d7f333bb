//! N-gram counts on disk.

use crate::context::{Context, Packing};
use crate::error::CountError;
use crate::ngrams::{NgramCounts, Ngrams, packing, with_table};
use crate::table::CountTable;
use crate::table_file::{read_table, table_arrays, write_table};
use latens_store::{Container, ContainerError, write_container};
use serde::{Deserialize, Serialize};
use std::path::Path;

const KIND: &str = "n-gram counts";
const TABLE: &str = "ngrams";

#[derive(Serialize, Deserialize)]
struct Meta {
    order: usize,
    n_words: usize,
    n_tokens: u64,
}

impl NgramCounts {
    /// Writes the counts into a file, for merging with others of the same vocabulary. Equal counts
    /// give equal files. The words themselves are not in it.
    pub fn save(&self, path: &Path) -> Result<(), CountError> {
        let meta = Meta { order: self.order, n_words: self.n_words(), n_tokens: self.n_tokens };
        with_table!(&self.ngrams, table => {
            let arrays = table_arrays(TABLE, table);
            let arrays = arrays.each_ref().map(|(name, n)| (&name[..], *n));
            write_container(path, KIND, &meta, &arrays, |out| write_table(table, out))?;
        });
        Ok(())
    }

    /// Maps a file that [`NgramCounts::save`] wrote. Every byte is checked.
    pub fn open(path: &Path) -> Result<NgramCounts, CountError> {
        let file = Container::open(path, KIND)?;
        let Meta { order, n_words, n_tokens } = file.meta()?;
        let packing = packing(order, n_words)
            .map_err(|error| file.problem(format!("its header is wrong: {error}")))?;
        let ngrams = if packing.n_bits() <= u64::BITS {
            Ngrams::Narrow(read_ngrams(&file, n_words, n_tokens, packing)?)
        } else {
            Ngrams::Wide(read_ngrams(&file, n_words, n_tokens, packing)?)
        };
        Ok(NgramCounts { order, n_tokens, packing, ngrams })
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
        return Err(file.problem("it counts words outside its vocabulary".to_owned()));
    }
    if !table.sums_to(n_tokens) {
        return Err(file.problem("its n-grams do not add up to its tokens".to_owned()));
    }
    Ok(table)
}
