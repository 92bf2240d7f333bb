//! How training from shards scales: a cost model, and a simulation with random delays. See docs/scale.md.

use latens::math::Rng;

/// Bytes per second of a network of 10 Gbit/s, and seconds per message.
const BANDWIDTH: f64 = 1.25e9;
const LATENCY: f64 = 0.002;

/// A round of training on the whole text.
struct Round {
    name: &'static str,
    /// Seconds of all shards on one worker.
    work: f64,
    /// Bytes that every worker gets, and bytes of merged statistics.
    broadcast: f64,
    statistics: f64,
    /// Seconds of the update on the driver, and of adding up two statistics.
    update: f64,
    n_shards: usize,
}

/// Rounds on 10⁹ tokens and a vocabulary of 50,000 words. The throughputs of one core of Baum–Welch, LDA and word2vec were
/// measured (docs/results); the others, and the sizes of counts, are assumptions.
fn rounds() -> Vec<Round> {
    let tokens = 1e9;
    let dense = |n_values: f64, bytes: f64| n_values * bytes;
    let round = |name, work, broadcast, statistics, update, n_shards| Round {
        name,
        work,
        broadcast,
        statistics,
        update,
        n_shards,
    };
    // Start, transition and emission probabilities: Z² + V·k with k states per word.
    let hmm = |z: f64, k: f64| z * z + 5e4 * k;
    vec![
        round("vocabulary", tokens / 4e6, 1e3, 2e7, 0.5, 1024),
        round("n-gram counts, order 3", tokens / 1.5e6, 2e6, 5e9, 60.0, 1024),
        round("lagged counts, 7 lags", tokens / 1e6, 2e6, 2e9, 30.0, 1024),
        round(
            "Baum-Welch, 1,024 states, 32 clusters",
            tokens / 2.8e5,
            dense(hmm(1024.0, 32.0), 4.0),
            dense(hmm(1024.0, 32.0), 8.0),
            0.05,
            1024,
        ),
        round(
            "Baum-Welch, 4,096 states, 128 clusters",
            tokens / 1.1e5,
            dense(hmm(4096.0, 32.0), 4.0),
            dense(hmm(4096.0, 32.0), 8.0),
            0.3,
            1024,
        ),
        round("LDA, 100 topics", tokens / 9.2e6, 2e7, 3e7, 0.2, 1024),
        round("HMM gradient, batch of 2,048 tokens", 2048.0 / 1.5e4, 4e6, 8e6, 0.01, 64),
        round("word2vec, an epoch", tokens / 1.3e6, 4e7, 8e7, 0.1, 256),
    ]
}

/// Seconds that bytes take along the levels of a binary tree over `n` machines.
fn along_tree(bytes: f64, n: usize) -> f64 {
    let levels = f64::from(n.next_power_of_two().trailing_zeros());
    levels * (LATENCY + bytes / BANDWIDTH)
}

impl Round {
    /// Seconds by the cost model: every worker takes ⌈shards / workers⌉ shards of equal length.
    fn seconds(&self, n_workers: usize) -> f64 {
        let per_worker = self.n_shards.div_ceil(n_workers) as f64;
        let work = per_worker * self.work / self.n_shards as f64;
        work + self.communication(n_workers)
    }

    fn communication(&self, n_workers: usize) -> f64 {
        let shares = along_tree(self.broadcast, n_workers) + along_tree(self.statistics, n_workers);
        // A worker sends what it has merged.
        shares + self.update + 2.0 * LATENCY
    }

    /// Mean seconds of simulated rounds, in which every shard is delayed by an exponential variable and a free worker takes
    /// the next shard.
    fn simulated(&self, n_workers: usize, mean_delay: f64, rng: &mut Rng) -> f64 {
        const N_ROUNDS: usize = 20;
        let shard = self.work / self.n_shards as f64;
        let mut total = 0.0;
        for _ in 0..N_ROUNDS {
            let mut free = vec![0.0f64; n_workers];
            for _ in 0..self.n_shards {
                let delay = -mean_delay * shard * (1.0 - rng.uniform()).ln();
                let next = free.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("a worker");
                *next += shard + delay;
            }
            let last = free.iter().copied().fold(0.0, f64::max);
            total += last + self.communication(n_workers);
        }
        total / N_ROUNDS as f64
    }
}

#[expect(clippy::print_stdout, reason = "the result of the example")]
fn main() {
    let workers = [1, 2, 4, 16, 64, 256];
    let mut rng = Rng::new(1);
    for (title, delay) in
        [("cost model", None), ("simulation, delays of 20 % on average", Some(0.2))]
    {
        println!("Speed-up of a round: {title}");
        println!("{:42} {}", "", workers.map(|n| format!("{n:>6}")).join(" "));
        for round in rounds() {
            let seconds = |n: usize, rng: &mut Rng| match delay {
                None => round.seconds(n),
                Some(delay) => round.simulated(n, delay, rng),
            };
            let one = seconds(1, &mut rng);
            let speed_ups = workers.map(|n| format!("{:>6.1}", one / seconds(n, &mut rng)));
            println!("{:42} {}", round.name, speed_ups.join(" "));
        }
        println!();
    }
}
