use crate::table::CountTable;
use latens_corpus::WordId;
use latens_math::Csr;

/// How often one word was seen a number of tokens after another: N_k\[a, b\] = #{t : word a at t+k,
/// word b at t}. Rows are later words, columns earlier ones.
#[derive(Clone, Debug)]
pub struct LagMatrix(pub(crate) CountTable<u32>);

impl LagMatrix {
    /// The number of rows, and of columns.
    pub fn n_words(&self) -> usize {
        self.0.n_rows()
    }

    /// How many pairs of words were seen at all.
    pub fn nnz(&self) -> usize {
        self.0.len()
    }

    /// How often `later` was seen the given number of tokens after `earlier`.
    ///
    /// # Panics
    /// If the id of `later` is of another, larger vocabulary.
    pub fn get(&self, later: WordId, earlier: WordId) -> u64 {
        let range = self.0.range(later.index());
        match self.0.items()[range.clone()].binary_search(&earlier.0) {
            Ok(i) => self.0.counts().get(range.start + i),
            Err(_) => 0,
        }
    }

    /// The words that were seen before `later`, in the order of their ids, with counts.
    ///
    /// # Panics
    /// If the id of `later` is of another, larger vocabulary.
    pub fn row(&self, later: WordId) -> impl ExactSizeIterator<Item = (WordId, u64)> {
        self.0.row(later.index()).map(|(earlier, count)| (WordId(earlier), count))
    }

    /// r_k = N_k 1: how often each word was the later one.
    pub fn row_sums(&self) -> Vec<u64> {
        (0..self.n_words()).map(|later| self.0.sum(self.0.range(later))).collect()
    }

    /// l_k = N_k^T 1: how often each word was the earlier one.
    pub fn column_sums(&self) -> Vec<u64> {
        let mut sums = vec![0; self.n_words()];
        for (i, &earlier) in self.0.items().iter().enumerate() {
            sums[earlier as usize] += self.0.counts().get(i);
        }
        sums
    }

    /// n_k = 1^T N_k 1: how many pairs of tokens were counted.
    pub fn total(&self) -> u64 {
        self.0.sum(0..self.0.len())
    }

    /// A copy in memory with values of another type, e.g., `|count| count as f32`.
    pub fn to_csr<T>(&self, value: impl Fn(u64) -> T) -> Csr<T> {
        let values = (0..self.nnz()).map(|i| value(self.0.counts().get(i))).collect();
        let (offsets, columns) = (self.0.offsets().to_vec(), self.0.items().to_vec());
        Csr::new(self.n_words(), offsets, columns, values).expect("a table has ascending columns")
    }
}
