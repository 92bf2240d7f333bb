//! Merges ascending streams of counts.

use crate::error::CountError;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Iterator over the sum of ascending streams: every key once, in ascending order, with its count.
pub(crate) struct Merge<K, S> {
    sources: Vec<S>,
    /// The next key of each source, the index of the source, and the count. There is at most one
    /// entry per source, so counts do not affect the order.
    heads: BinaryHeap<Reverse<(K, usize, u64)>>,
}

impl<K, S> Merge<K, S>
where
    K: Copy + Ord,
    S: Iterator<Item = Result<(K, u64), CountError>>,
{
    pub(crate) fn new(mut sources: Vec<S>) -> Result<Self, CountError> {
        let mut heads = BinaryHeap::with_capacity(sources.len());
        for (i, source) in sources.iter_mut().enumerate() {
            if let Some(head) = source.next() {
                let (key, count) = head?;
                heads.push(Reverse((key, i, count)));
            }
        }
        Ok(Merge { sources, heads })
    }

    /// Removes the smallest head and replaces it with the next entry of the same source.
    fn take(
        mut head: PeekMut<'_, Reverse<(K, usize, u64)>>,
        sources: &mut [S],
    ) -> Result<u64, CountError> {
        let Reverse((_, i, count)) = *head;
        match sources[i].next() {
            Some(next) => {
                let (key, count) = next?;
                *head = Reverse((key, i, count));
            }
            None => {
                PeekMut::pop(head);
            }
        }
        Ok(count)
    }

    fn sum_of(&mut self, key: K) -> Result<(K, u64), CountError> {
        let mut sum = 0_u64;
        while let Some(head) = self.heads.peek_mut() {
            if head.0.0 != key {
                break;
            }
            let count = Self::take(head, &mut self.sources)?;
            sum = sum.checked_add(count).ok_or(CountError::Overflow)?;
        }
        Ok((key, sum))
    }
}

impl<K, S> Iterator for Merge<K, S>
where
    K: Copy + Ord,
    S: Iterator<Item = Result<(K, u64), CountError>>,
{
    type Item = Result<(K, u64), CountError>;

    fn next(&mut self) -> Option<Self::Item> {
        let &Reverse((key, ..)) = self.heads.peek()?;
        Some(self.sum_of(key))
    }
}
