//! Lists of indices and sparse matrices in compressed sparse row form.

use latens_model::FeatureRows;

/// Lists of indices, stored contiguously.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lists {
    offsets: Vec<usize>,
    items: Vec<u32>,
}

impl Default for Lists {
    fn default() -> Lists {
        Lists::new()
    }
}

impl Lists {
    pub(crate) fn new() -> Lists {
        Lists { offsets: vec![0], items: Vec::new() }
    }

    pub(crate) fn push(&mut self, items: impl IntoIterator<Item = u32>) {
        self.items.extend(items);
        self.offsets.push(self.items.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline(always)]
    pub(crate) fn get(&self, list: usize) -> &[u32] {
        &self.items[self.offsets[list]..self.offsets[list + 1]]
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> + Clone {
        (0..self.len()).map(|list| self.get(list))
    }

    /// For each item below `n`, the lists that contain it, in order. Items of `n` or more are skipped.
    pub(crate) fn transposed(&self, n: usize) -> Lists {
        let pairs = self.iter().enumerate();
        let pairs =
            pairs.flat_map(|(list, items)| items.iter().map(move |&item| (item, list as u32)));
        Lists::by_key(n, pairs)
    }

    /// Groups pairs (key, item) by key, for keys below `n`, in order. Pairs with larger keys are skipped.
    pub(crate) fn by_key(n: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Lists {
        let pairs = pairs.filter(|&(key, _)| (key as usize) < n);
        let mut offsets = vec![0; n + 1];
        pairs.clone().for_each(|(key, _)| offsets[key as usize + 1] += 1);
        (0..n).for_each(|key| offsets[key + 1] += offsets[key]);
        let mut next = offsets.clone();
        let mut items = vec![0; offsets[n]];
        for (key, item) in pairs {
            items[next[key as usize]] = item;
            next[key as usize] += 1;
        }
        Lists { offsets, items }
    }
}

/// A sparse matrix, row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SparseMatrix {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl SparseMatrix {
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let range = self.offsets[row]..self.offsets[row + 1];
        let columns = self.columns[range.clone()].iter().map(|&column| column as usize);
        columns.zip(self.values[range].iter().copied())
    }

    pub(crate) fn of(rows: &FeatureRows) -> SparseMatrix {
        SparseMatrix {
            offsets: rows.offsets().to_vec(),
            columns: rows.columns().to_vec(),
            values: rows.values().to_vec(),
        }
    }

    pub(crate) fn transposed(&self, n_columns: usize) -> SparseMatrix {
        let mut offsets = vec![0; n_columns + 1];
        self.columns.iter().for_each(|&column| offsets[column as usize + 1] += 1);
        (0..n_columns).for_each(|column| offsets[column + 1] += offsets[column]);
        let (mut next, n_values) = (offsets.clone(), self.values.len());
        let (mut columns, mut values) = (vec![0; n_values], vec![0.0; n_values]);
        for row in 0..self.offsets.len() - 1 {
            for (column, value) in self.row(row) {
                columns[next[column]] = row as u32;
                values[next[column]] = value;
                next[column] += 1;
            }
        }
        SparseMatrix { offsets, columns, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposed_lists_contain_the_lists_of_each_item() {
        let mut lists = Lists::new();
        lists.push([2, 0]);
        lists.push([]);
        lists.push([2, 9]);
        let transposed = lists.transposed(3);
        let found: Vec<&[u32]> = transposed.iter().collect();
        assert_eq!(found, [&[0][..], &[], &[0, 2]]);
    }
}
