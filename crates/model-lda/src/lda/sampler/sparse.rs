//! Computes weights only for the topics of the document, so that the cost does not depend on the total number of topics.
//!
//! A proposal is drawn with probability proportional to
//!
//! q_k = (n_wk + β) (n_dk / (N_k + V β) + g), with all counts excluding the token,
//!
//! where g is a constant. The first term is nonzero only for the topics of the document. The second term is sampled by
//! taking the topic of another random token of the same word, or any topic with weight β. This needs no table that could
//! become stale. Because q depends only on the other tokens, a Metropolis–Hastings step leaves the posterior invariant.
//! The target is (n_wk + β) (n_dk + α_k) / (N_k + V β). With g = ᾱ / mean(N_k + V β), target and proposal differ
//! only in α_k / (N_k + V β) versus g, which matters for topics that the document does not have: nearly all proposals are
//! accepted.

use super::shards::{Shard, ShardTopics};
use super::table::Table;
use crate::documents::TypedDocuments;
use latens_math::Rng;

/// Positions of the tokens of each type.
pub(crate) struct Occurrences {
    tokens: Vec<u32>,
    offsets: Vec<usize>,
}

impl Occurrences {
    pub(crate) fn new(documents: &TypedDocuments, n_rows: usize) -> Occurrences {
        let mut offsets = vec![0; n_rows + 1];
        documents.types.iter().for_each(|&t| offsets[t as usize + 1] += 1);
        (0..n_rows).for_each(|t| offsets[t + 1] += offsets[t]);
        let (mut tokens, mut next) = (vec![0; documents.n_tokens()], offsets.clone());
        for (token, &t) in (0..).zip(&documents.types) {
            tokens[next[t as usize]] = token;
            next[t as usize] += 1;
        }
        Occurrences { tokens, offsets }
    }

    #[inline(always)]
    fn of(&self, token_type: u32) -> &[u32] {
        let t = token_type as usize;
        &self.tokens[self.offsets[t]..self.offsets[t + 1]]
    }
}

/// Samples every token of a shard once.
pub(super) fn sample(shard: &mut Shard<'_>, occurrences: &Occurrences) {
    let mut pass = Pass::new(shard);
    for document in shard.documents.clone() {
        pass.document(shard, document, occurrences);
    }
}

/// Buffers and constants of a sweep.
struct Pass {
    alpha: Vec<f32>,
    beta: f32,
    /// V β.
    all_beta: f32,
    /// g.
    of_word: f32,
    /// 1 / (N_k + V β).
    inverses: Vec<f32>,
    mixture: Mixture,
}

/// The topics of one document.
#[derive(Default)]
struct Mixture {
    topics: Vec<u16>,
    /// n_dk / (N_k + V β) of each of these topics.
    weights: Vec<f32>,
    /// n_dk of all topics.
    counts: Vec<u32>,
    /// Position of each topic in `topics`, if present.
    places: Vec<u16>,
    /// Scratch space with one entry per topic.
    sums: Vec<f32>,
}

impl Pass {
    fn new(shard: &Shard<'_>) -> Pass {
        let (alpha, all_beta) = (shard.prior.alpha, shard.prior.all_beta());
        let n_topics = alpha.len();
        let mean_total = shard.all.n_tokens() as f64 / n_topics as f64 + all_beta;
        let mean_alpha = alpha.iter().sum::<f64>() / n_topics as f64;
        let inverse = |&total: &f64| 1.0 / (total as f32 + all_beta as f32);
        Pass {
            alpha: alpha.iter().map(|&a| a as f32).collect(),
            beta: shard.prior.beta as f32,
            all_beta: all_beta as f32,
            of_word: (mean_alpha / mean_total) as f32,
            inverses: shard.table.totals().iter().map(inverse).collect(),
            mixture: Mixture::new(n_topics),
        }
    }

    fn document(&mut self, shard: &mut Shard<'_>, document: usize, occurrences: &Occurrences) {
        let Shard { all, table, topics, seed, .. } = shard;
        let mut rng = Rng::stream(*seed, all.number(document) as u64);
        let range = all.range(document);
        self.mixture.reset(topics.document(range.clone()), &self.inverses);
        for token in range {
            let token_type = all.types[token];
            let others = Others { all: occurrences.of(token_type), but: token as u32 };
            let old = usize::from(topics.get(token));
            let without = self.without(old, table.totals()[old]);
            let proposed = self.propose(table.row(token_type), &without, others, topics, &mut rng);
            if proposed != old
                && rng.uniform() as f32 * self.excess(without.n, without.inverse, old)
                    < self.excess(self.mixture.counts[proposed], self.inverses[proposed], proposed)
            {
                self.count(table, token_type, old, false);
                self.count(table, token_type, proposed, true);
                topics.set(token, proposed as u16);
            }
        }
    }

    /// The topic of a token, which all counts still include, without this token.
    #[inline(always)]
    fn without(&self, topic: usize, total: f64) -> Without {
        let n = self.mixture.counts[topic] - 1;
        Without { topic, n, inverse: 1.0 / ((total - 1.0) as f32 + self.all_beta) }
    }

    /// Adds a token to a topic or removes it.
    #[inline(always)]
    fn count(&mut self, table: &mut Table, token_type: u32, topic: usize, comes: bool) {
        let total =
            if comes { table.add(token_type, topic) } else { table.remove(token_type, topic) };
        self.inverses[topic] = 1.0 / (total as f32 + self.all_beta);
        self.mixture.count(topic, comes, self.inverses[topic]);
    }

    /// Draws k with probability proportional to q_k.
    #[inline(always)]
    fn propose(
        &mut self,
        row: &[f32],
        without: &Without,
        others: Others<'_>,
        topics: &ShardTopics<'_>,
        rng: &mut Rng,
    ) -> usize {
        let (beta, n_topics) = (self.beta, self.alpha.len());
        let of_document = self.mixture.weigh(row, beta, without);
        let n_others = others.len() as f64;
        let of_word = f64::from(self.of_word) * (n_others + n_topics as f64 * f64::from(beta));
        let target = rng.uniform() * (f64::from(of_document) + of_word);
        if target < f64::from(of_document) {
            return self.mixture.find(target as f32);
        }
        let place = (target - f64::from(of_document)) / f64::from(self.of_word);
        if place < n_others {
            usize::from(topics.get(others.token(place as usize)))
        } else {
            (((place - n_others) / f64::from(beta)) as usize).min(n_topics - 1)
        }
    }

    /// Ratio of target to proposal probability of a topic, up to a common factor, given n_dk and 1 / (N_k + V β).
    #[inline(always)]
    fn excess(&self, n: u32, inverse: f32, topic: usize) -> f32 {
        let n = n as f32;
        (n + self.alpha[topic]) * inverse / (n * inverse + self.of_word)
    }
}

/// The counts of a token's topic, without the token.
struct Without {
    topic: usize,
    /// n_dk.
    n: u32,
    /// 1 / (N_k + V β).
    inverse: f32,
}

/// All tokens of a type except one.
#[derive(Clone, Copy)]
struct Others<'a> {
    all: &'a [u32],
    but: u32,
}

impl Others<'_> {
    fn len(self) -> usize {
        self.all.len() - 1
    }

    #[inline(always)]
    fn token(self, place: usize) -> usize {
        let token = self.all[place];
        // The last token replaces the excluded one.
        (if token == self.but { self.all[self.all.len() - 1] } else { token }) as usize
    }
}

impl Mixture {
    fn new(n_topics: usize) -> Mixture {
        let (counts, places) = (vec![0; n_topics], vec![0; n_topics]);
        Mixture { counts, places, ..Mixture::default() }
    }

    /// Starts a new document.
    fn reset(&mut self, topics: &[u16], inverses: &[f32]) {
        self.topics.iter().for_each(|&k| self.counts[usize::from(k)] = 0);
        self.topics.clear();
        self.weights.clear();
        for &topic in topics {
            self.count(usize::from(topic), true, inverses[usize::from(topic)]);
        }
        self.sums.resize(topics.len() + 1, 0.0);
    }

    #[inline(always)]
    fn count(&mut self, topic: usize, comes: bool, inverse: f32) {
        let n = if comes { self.counts[topic] + 1 } else { self.counts[topic] - 1 };
        self.counts[topic] = n;
        let place = usize::from(self.places[topic]);
        match n {
            0 => {
                self.topics.swap_remove(place);
                self.weights.swap_remove(place);
                if let Some(&moved) = self.topics.get(place) {
                    self.places[usize::from(moved)] = place as u16;
                }
            }
            1 if comes => {
                self.places[topic] = self.topics.len() as u16;
                self.topics.push(topic as u16);
                self.weights.push(inverse);
            }
            _ => self.weights[place] = n as f32 * inverse,
        }
    }

    /// The sum over the document's topics of (n_wk + β) n_dk / (N_k + V β), without one token.
    #[inline(always)]
    fn weigh(&mut self, row: &[f32], beta: f32, without: &Without) -> f32 {
        let place = usize::from(self.places[without.topic]);
        let rest = without.n as f32 * without.inverse * (row[without.topic] - 1.0 + beta);
        let mut total = 0.0;
        let topics = self.topics.iter().zip(&self.weights).zip(&mut self.sums).enumerate();
        for (at, ((&k, weight), sum)) in topics {
            let all = weight * (row[usize::from(k)] + beta);
            total += if at == place { rest } else { all };
            *sum = total;
        }
        total
    }

    /// The topic at this position of the cumulative sum.
    #[inline(always)]
    fn find(&self, target: f32) -> usize {
        let sums = &self.sums[..self.topics.len()];
        let place = sums.iter().position(|&sum| target < sum).unwrap_or(sums.len() - 1);
        usize::from(self.topics[place])
    }
}
