use crate::counts::bigrams::Bigrams;

/// Marks a word without a cluster.
pub(crate) const NONE: u32 = u32::MAX;

/// Frequencies and bigram counts of clusters.
pub(crate) struct ClusterCounts {
    pub(crate) n_clusters: usize,
    /// n(s, t), the number of times that s occurs right before t, row-major.
    pub(crate) right: Vec<u64>,
    /// The transpose of `right`.
    pub(crate) left: Vec<u64>,
    /// f(s), the number of occurrences of s.
    pub(crate) frequency: Vec<u64>,
    /// l(s) + r(s), the number of neighbors of s on both sides.
    pub(crate) n_neighbors: Vec<u64>,
}

impl ClusterCounts {
    pub(crate) fn new(n_clusters: usize) -> ClusterCounts {
        ClusterCounts {
            n_clusters,
            right: vec![0; n_clusters * n_clusters],
            left: vec![0; n_clusters * n_clusters],
            frequency: vec![0; n_clusters],
            n_neighbors: vec![0; n_clusters],
        }
    }

    /// The counts of a clustering. Words with [`NONE`] are skipped.
    pub(crate) fn of(bigrams: &Bigrams, cluster_of: &[u32], n_clusters: usize) -> ClusterCounts {
        let mut counts = ClusterCounts::new(n_clusters);
        let clustered = |&(_, &cluster): &(usize, &u32)| cluster != NONE;
        for (word, &s) in cluster_of.iter().enumerate().filter(clustered) {
            counts.frequency[s as usize] += bigrams.frequency[word];
            for &(next, count) in bigrams.after(word as u32) {
                let t = cluster_of[next as usize];
                if t != NONE {
                    counts.add(s as usize, t as usize, count);
                }
            }
        }
        counts
    }

    /// Adds `count` to n(s, t).
    pub(crate) fn add(&mut self, s: usize, t: usize, count: u64) {
        self.right[s * self.n_clusters + t] += count;
        self.left[t * self.n_clusters + s] += count;
        self.n_neighbors[s] += count;
        self.n_neighbors[t] += count;
    }

    /// Subtracts `count` from n(s, t).
    pub(crate) fn subtract(&mut self, s: usize, t: usize, count: u64) {
        self.right[s * self.n_clusters + t] -= count;
        self.left[t * self.n_clusters + s] -= count;
        self.n_neighbors[s] -= count;
        self.n_neighbors[t] -= count;
    }

    /// The mutual information of adjacent clusters in bits, Σ n(s,t)/N · log2 (n(s,t)/N · T/f(s) · T/f(t)), with N
    /// bigrams and T tokens.
    pub(crate) fn mutual_information(&self, n_tokens: u64, n_bigrams: u64) -> f64 {
        let log_total = 2.0 * (n_tokens as f64).ln() - (n_bigrams as f64).ln();
        let log_frequency: Vec<f64> = self.frequency.iter().map(|&f| (f as f64).ln()).collect();
        let mut sum = 0.0;
        for (row, log_s) in self.right.chunks_exact(self.n_clusters).zip(&log_frequency) {
            let terms = row.iter().zip(&log_frequency).filter(|&(&n, _)| n > 0);
            let term = |(&n, log_t)| n as f64 * ((n as f64).ln() + log_total - log_s - log_t);
            sum += terms.map(term).sum::<f64>();
        }
        if sum == 0.0 { 0.0 } else { sum / n_bigrams as f64 / std::f64::consts::LN_2 }
    }
}
