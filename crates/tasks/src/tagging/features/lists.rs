/// Lists of numbers, one after the other.
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

    /// For each number below `n`, the lists that have it, in order; numbers above are left out.
    pub(crate) fn transposed(&self, n: usize) -> Lists {
        let pairs = self.iter().enumerate();
        let pairs =
            pairs.flat_map(|(list, items)| items.iter().map(move |&item| (item, list as u32)));
        Lists::by_number(n, pairs)
    }

    /// For each number below `n`, what stands beside it, in order; numbers above are left out.
    pub(crate) fn by_number(n: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Lists {
        let pairs = pairs.filter(|&(number, _)| (number as usize) < n);
        let mut offsets = vec![0; n + 1];
        pairs.clone().for_each(|(number, _)| offsets[number as usize + 1] += 1);
        (0..n).for_each(|number| offsets[number + 1] += offsets[number]);
        let mut next = offsets.clone();
        let mut items = vec![0; offsets[n]];
        for (number, item) in pairs {
            items[next[number as usize]] = item;
            next[number as usize] += 1;
        }
        Lists { offsets, items }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposed_lists_say_who_has_a_number() {
        let mut lists = Lists::new();
        lists.push([2, 0]);
        lists.push([]);
        lists.push([2, 9]);
        let transposed = lists.transposed(3);
        let found: Vec<&[u32]> = transposed.iter().collect();
        assert_eq!(found, [&[0][..], &[], &[0, 2]]);
    }
}
