//! Minimization: Hopcroft, An n log n algorithm for minimizing states in a finite automaton, 1971.

/// Returns the block of equivalent states of each state. `next` has one row per state and one column per class.
pub(super) fn blocks(n_classes: usize, next: &[u32], accepting: &[bool]) -> Vec<u32> {
    let inverse = Inverse::new(n_classes, next);
    let mut partition = Partition::new(accepting.len());
    let is_accepting = |state: u32| accepting[state as usize];
    let marked: Vec<u32> = (0..accepting.len() as u32).filter(|&s| is_accepting(s)).collect();
    partition.split(&marked, |_, _| ());
    let n_first = partition.bounds.len();
    let mut waiting: Vec<(u32, u32)> = Vec::new();
    let mut is_waiting = vec![false; n_first * n_classes];
    for block in 0..n_first {
        for class in 0..n_classes {
            waiting.push((block as u32, class as u32));
            is_waiting[block * n_classes + class] = true;
        }
    }
    let mut before = Vec::new();
    while let Some((block, class)) = waiting.pop() {
        is_waiting[block as usize * n_classes + class as usize] = false;
        before.clear();
        for &state in partition.members(block as usize) {
            before.extend_from_slice(inverse.of(class as usize, state as usize));
        }
        partition.split(&before, |old, new| {
            is_waiting.resize((new.idx + 1) * n_classes, false);
            for class in 0..n_classes {
                // If the old block waits, both halves must; otherwise the smaller one is enough.
                let waits = is_waiting[old.idx * n_classes + class];
                let chosen = if waits || new.len <= old.len { new.idx } else { old.idx };
                is_waiting[chosen * n_classes + class] = true;
                waiting.push((chosen as u32, class as u32));
            }
        });
    }
    partition.block_of
}

/// For each class and state, the states that lead to it.
struct Inverse {
    n_states: usize,
    begins: Vec<u32>,
    from: Vec<u32>,
}

impl Inverse {
    fn new(n_classes: usize, next: &[u32]) -> Inverse {
        let n_states = next.len() / n_classes.max(1);
        let place = |at: usize, to: u32| (at % n_classes) * n_states + to as usize;
        let mut begins = vec![0u32; n_classes * n_states + 1];
        next.iter().enumerate().for_each(|(at, &to)| begins[place(at, to) + 1] += 1);
        for i in 1..begins.len() {
            begins[i] += begins[i - 1];
        }
        let (mut ends, mut from) = (begins.clone(), vec![0; next.len()]);
        for (at, &to) in next.iter().enumerate() {
            let end = &mut ends[place(at, to)];
            from[*end as usize] = (at / n_classes) as u32;
            *end += 1;
        }
        Inverse { n_states, begins, from }
    }

    fn of(&self, class: usize, state: usize) -> &[u32] {
        let at = class * self.n_states + state;
        &self.from[self.begins[at] as usize..self.begins[at + 1] as usize]
    }
}

/// A block after a split.
struct Half {
    idx: usize,
    len: usize,
}

/// A partition of states in which blocks can be split in time proportional to the part that leaves.
struct Partition {
    /// The states, block by block.
    states: Vec<u32>,
    /// The place of each state.
    places: Vec<u32>,
    block_of: Vec<u32>,
    bounds: Vec<(usize, usize)>,
    n_marked: Vec<usize>,
}

impl Partition {
    fn new(n_states: usize) -> Partition {
        let states: Vec<u32> = (0..n_states as u32).collect();
        Partition {
            places: states.clone(),
            states,
            block_of: vec![0; n_states],
            bounds: vec![(0, n_states)],
            n_marked: vec![0],
        }
    }

    fn members(&self, block: usize) -> &[u32] {
        let (begin, end) = self.bounds[block];
        &self.states[begin..end]
    }

    /// Splits every block into states of `marked`, which are distinct, and others. Reports the old and the new half.
    fn split(&mut self, marked: &[u32], mut report: impl FnMut(Half, Half)) {
        let mut touched = Vec::new();
        for &state in marked {
            let block = self.block_of[state as usize] as usize;
            if self.n_marked[block] == 0 {
                touched.push(block);
            }
            // Marked states move to the front of their block.
            let place = self.places[state as usize] as usize;
            let front = self.bounds[block].0 + self.n_marked[block];
            self.states.swap(place, front);
            self.places[self.states[place] as usize] = place as u32;
            self.places[state as usize] = front as u32;
            self.n_marked[block] += 1;
        }
        for block in touched {
            let n_marked = std::mem::take(&mut self.n_marked[block]);
            let (begin, end) = self.bounds[block];
            if begin + n_marked == end {
                continue;
            }
            let new = self.bounds.len();
            self.bounds.push((begin, begin + n_marked));
            self.n_marked.push(0);
            self.bounds[block] = (begin + n_marked, end);
            for &state in &self.states[begin..begin + n_marked] {
                self.block_of[state as usize] = new as u32;
            }
            let old_len = end - begin - n_marked;
            report(Half { idx: block, len: old_len }, Half { idx: new, len: n_marked });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    /// Equivalence by its definition: pairs are distinguished if an accepting state meets another one.
    fn by_definition(n_classes: usize, next: &[u32], accepting: &[bool]) -> Vec<Vec<bool>> {
        let n = accepting.len();
        let mut differ: Vec<Vec<bool>> =
            (0..n).map(|a| (0..n).map(|b| accepting[a] != accepting[b]).collect()).collect();
        for _ in 0..n {
            for a in 0..n {
                for b in 0..n {
                    let to = |state: usize, class: usize| next[state * n_classes + class] as usize;
                    let found = (0..n_classes).any(|class| differ[to(a, class)][to(b, class)]);
                    differ[a][b] |= found;
                }
            }
        }
        differ
    }

    #[test]
    fn blocks_are_the_equivalent_states() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut below = |n: usize| (rng.uniform() * n as f64) as usize;
            let (n, n_classes) = (1 + below(12), 1 + below(3));
            let next: Vec<u32> = (0..n * n_classes).map(|_| below(n) as u32).collect();
            let accepting: Vec<bool> = (0..n).map(|_| below(4) == 0).collect();
            let found = blocks(n_classes, &next, &accepting);
            let differ = by_definition(n_classes, &next, &accepting);
            for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
                assert_eq!(found[a] != found[b], differ[a][b], "seed {seed}: {a} {b}");
            }
        }
    }
}
