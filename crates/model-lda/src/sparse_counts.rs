//! Sparse counts of words in topics, as stored in model files.

use crate::counts::TypeCounts;
use latens_model::file::{FileError, ModelFile, ModelWriter};

const ENDS: &str = "counts.ends";
const TOPICS: &str = "counts.topics";
const VALUES: &str = "counts.values";

/// The nonzero counts of each row, with their topics.
pub(crate) struct SparseCounts {
    ends: Vec<u64>,
    topics: Vec<u16>,
    values: Vec<u32>,
}

impl SparseCounts {
    pub(crate) fn new(counts: &TypeCounts) -> SparseCounts {
        let mut sparse = SparseCounts { ends: Vec::new(), topics: Vec::new(), values: Vec::new() };
        for row in counts.rows() {
            for (topic, &n) in (0..).zip(row).filter(|&(_, &n)| n > 0) {
                sparse.topics.push(topic);
                sparse.values.push(n);
            }
            sparse.ends.push(sparse.topics.len() as u64);
        }
        sparse
    }

    pub(crate) fn write_to(self, writer: ModelWriter<'_>) -> ModelWriter<'_> {
        writer
            .owned_array(ENDS, &[self.ends.len()], self.ends)
            .owned_array(TOPICS, &[self.topics.len()], self.topics)
            .owned_array(VALUES, &[self.values.len()], self.values)
    }

    /// Reads the counts of `n_types` types from an open file.
    pub(crate) fn read(
        file: &ModelFile,
        n_types: usize,
        n_topics: usize,
    ) -> Result<TypeCounts, FileError> {
        let ends = file.array::<u64>(ENDS, &[n_types])?;
        let (topics, values) = (file.vector::<u16>(TOPICS)?, file.vector::<u32>(VALUES)?);
        let ascend = ends.windows(2).all(|pair| pair[0] <= pair[1]);
        let is_whole = ends.last().copied().unwrap_or(0) == topics.len() as u64;
        let in_range = topics.iter().all(|&topic| usize::from(topic) < n_topics);
        if !ascend || !is_whole || !in_range || topics.len() != values.len() {
            return Err(file.invalid("its topic counts are inconsistent"));
        }
        let mut rows = vec![0; n_types * n_topics];
        let mut begin = 0;
        for (row, &end) in rows.chunks_exact_mut(n_topics).zip(ends.iter()) {
            for i in begin..end as usize {
                row[usize::from(topics[i])] = values[i];
            }
            begin = end as usize;
        }
        Ok(TypeCounts::from_values(n_topics, rows))
    }
}
