use crate::table::count_table::CountTable;
use latens_corpus::WordId;
use latens_math::Csr;

/// Counts of word pairs at one lag k: N_k\[a, b\] = #{t : word a at t+k, word b at t}.
///
/// Rows are later words, columns earlier words. The matrix is sparse.
#[derive(Clone, Debug)]
pub struct LagMatrix(pub(crate) CountTable<u32>);

impl LagMatrix {
    /// Number of rows, which equals the number of columns.
    pub fn n_words(&self) -> usize {
        self.0.n_rows()
    }

    /// Number of distinct pairs, i.e., of nonzero entries.
    pub fn nnz(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of occurrences of `later` at this lag after `earlier`.
    ///
    /// # Panics
    /// If the id of `later` comes from a larger vocabulary.
    pub fn get(&self, later: WordId, earlier: WordId) -> u64 {
        let range = self.0.range(later.index());
        match self.0.items()[range.clone()].binary_search(&earlier.0) {
            Ok(i) => self.0.counts().get(range.start + i),
            Err(_) => 0,
        }
    }

    /// Iterates over the earlier words of `later` and their counts, in the order of word ids.
    ///
    /// # Panics
    /// If the id of `later` comes from a larger vocabulary.
    pub fn row(&self, later: WordId) -> impl ExactSizeIterator<Item = (WordId, u64)> {
        self.0.row(later.index()).map(|(earlier, count)| (WordId(earlier), count))
    }

    /// Row sums r_k = N_k 1: the number of pairs with each later word.
    pub fn row_sums(&self) -> Vec<u64> {
        (0..self.n_words()).map(|later| self.0.sum(self.0.range(later))).collect()
    }

    /// Column sums l_k = N_k^T 1: the number of pairs with each earlier word.
    pub fn column_sums(&self) -> Vec<u64> {
        let mut sums = vec![0; self.n_words()];
        for (i, &earlier) in self.0.items().iter().enumerate() {
            sums[earlier as usize] += self.0.counts().get(i);
        }
        sums
    }

    /// Total n_k = 1^T N_k 1: the number of all pairs.
    pub fn total(&self) -> u64 {
        self.0.sum(0..self.0.len())
    }

    /// Copies the matrix into memory with values of another type, e.g. `|count| count as f32`.
    pub fn to_csr<T>(&self, value: impl Fn(u64) -> T) -> Csr<T> {
        let values = (0..self.nnz()).map(|i| value(self.0.counts().get(i))).collect();
        let (offsets, columns) = (self.0.offsets().to_vec(), self.0.items().to_vec());
        Csr::new(self.n_words(), offsets, columns, values).expect("the columns of a table ascend")
    }
}
