use super::cost::cost;
use super::model::Lda;
use super::params::{LdaParams, LdaSampler};
use super::sampler::{LdaState, Sampling};
use super::types::type_of;
use crate::counts::TypeCounts;
use crate::dirichlet::{DIRICHLET, improve_alpha, log_mixtures};
use crate::documents::TypedDocuments;
use latens_corpus::{DocumentCorpus, Documents, Lexicon};
use latens_math::{Rng, ln_gamma};
use latens_model::{
    Checkpoint, CheckpointError, Cost, FitError, Progress, Session, Setup, Valid, Watch,
    check_that, fingerprint,
};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use std::time::{Duration, Instant};

/// Number of iterations between updates of α, and number of fixed-point steps per update.
pub(super) const ALPHA_EVERY: u64 = 20;
pub(super) const ALPHA_STEPS: usize = 10;

/// Number of iterations between measurements of the likelihood, which costs about as much as a sweep of few topics.
pub(super) const LIKELIHOOD_EVERY: u64 = 10;

/// Results depend only on the seed, not on the number of threads. A checkpoint is available after each iteration.
impl latens_model::Fit for LdaParams {
    type Model = Lda;
    type Data = DocumentCorpus;
    type Inputs<'a> = ();
    type Error = FitError;

    fn cost_with(params: &LdaParams, data: &DocumentCorpus, (): &(), _: &Setup<'_>) -> Cost {
        cost(params, data)
    }

    fn fit_with(
        params: &Valid<LdaParams>,
        data: &DocumentCorpus,
        (): (),
        session: Session<'_>,
    ) -> Result<Lda, FitError> {
        session.refuse_cuda()?;
        session.refuse_valid()?;
        let mut fit = Fit::new(params, &data.lexicon, &data.documents)?;
        match session.checkpoint {
            None => {
                let n_topics = params.n_topics as f64;
                let mut rng = Rng::stream(params.seed, u64::MAX);
                let topics =
                    fit.documents.types.iter().map(|_| (rng.uniform() * n_topics) as u16).collect();
                fit.start(topics, vec![params.first_alpha(); params.n_topics]);
            }
            Some(checkpoint) => fit.restore(checkpoint)?,
        }
        fit.run(session.watch)
    }
}

/// ln p(w, z) with mixtures and topics integrated out.
pub(super) fn log_likelihood(
    documents: &TypedDocuments,
    topics: &[u16],
    alpha: &[f64],
    counts: &TypeCounts,
    n_types: usize,
    beta: f64,
) -> f64 {
    log_topics(counts, n_types, beta) + log_mixtures(documents, topics, alpha)
}

/// ln p(w | z) with topics integrated out.
pub(super) fn log_topics(counts: &TypeCounts, n_types: usize, beta: f64) -> f64 {
    let all_beta = n_types as f64 * beta;
    let totals = counts.totals();
    let of_totals = totals.iter().map(|&n| ln_gamma(all_beta) - ln_gamma(n as f64 + all_beta));
    let of_beta = ln_gamma(beta);
    let cells = counts.rows().flatten().filter(|&&n| n > 0);
    let of_cells = cells.map(|&n| ln_gamma(f64::from(n) + beta) - of_beta);
    of_totals.sum::<f64>() + of_cells.sum::<f64>()
}

/// Progress of the training run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Done {
    iteration: u64,
    log_likelihood: f64,
}

struct Fit<'a> {
    params: &'a Valid<LdaParams>,
    lexicon: &'a Lexicon,
    all: &'a Documents,
    documents: TypedDocuments,
    state: LdaState,
    sampling: Sampling,
    done: Done,
    started: Instant,
    timed: (Duration, usize),
}

impl<'a> Fit<'a> {
    /// Resumes from a checkpoint, possibly with more iterations.
    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), FitError> {
        // The sampler may change: all have the same stationary distribution.
        let may_differ = &["n_iterations", "sampler"];
        checkpoint.check_fits(Lda::KIND, self.params, self.fingerprint(), may_differ)?;
        self.done = checkpoint.state()?;
        let n_topics = self.params.n_topics;
        let topics: Vec<u16> = checkpoint.array("topics", &[self.documents.n_tokens()])?;
        let alpha: Vec<f64> = checkpoint.array("alpha", &[n_topics])?;
        let is_good = topics.iter().all(|&k| usize::from(k) < n_topics)
            && alpha.iter().all(|a| DIRICHLET.contains(a));
        if !is_good {
            let problem = "a topic or an alpha is out of range";
            return Err(CheckpointError::Invalid { problem }.into());
        }
        self.start(topics, alpha);
        Ok(())
    }

    fn new(
        params: &'a Valid<LdaParams>,
        lexicon: &'a Lexicon,
        all: &'a Documents,
    ) -> Result<Fit<'a>, FitError> {
        let n_words = lexicon.vocab.len();
        let documents = TypedDocuments::of(all, |word| type_of(word, n_words));
        let n_tokens = documents.n_tokens();
        if n_tokens == 0 {
            return Err(FitError::not_enough_data("a word of the vocabulary", "none"));
        }
        let must = format!("at most the number of tokens, {n_tokens}");
        check_that(params.n_topics <= n_tokens, "n_topics", must, params.n_topics)?;
        let largest = documents.type_counts(n_words).into_iter().max().unwrap_or(0);
        if largest > u64::from(u32::MAX) {
            let allows = format!("at most {} occurrences of a word", u32::MAX);
            return Err(FitError::too_much_data(allows, largest));
        }
        let state = LdaState::new(&TypedDocuments::new([[0u32; 0]]), vec![], 0, vec![1.0]);
        let (done, started) = (Done::default(), Instant::now());
        let timed = (Duration::ZERO, 0);
        let sampler = params.chosen_sampler(n_tokens as f64 / documents.len() as f64);
        let is_few = u32::try_from(n_tokens).is_ok() || sampler == LdaSampler::Dense;
        let must = format!("`dense` for {n_tokens} tokens");
        check_that(is_few, "sampler", must, "sparse")?;
        let sampling = Sampling::new(sampler, &documents, n_words);
        Ok(Fit { params, lexicon, all, documents, state, sampling, done, started, timed })
    }

    fn start(&mut self, topics: Vec<u16>, alpha: Vec<f64>) {
        self.state = LdaState::new(&self.documents, topics, self.lexicon.vocab.len(), alpha);
        self.state.set_n_types(self.n_types());
    }

    /// Number of words that topics can contain.
    fn n_types(&self) -> usize {
        self.lexicon.vocab.len() - 2
    }

    fn run(mut self, watch: &mut Watch) -> Result<Lda, FitError> {
        while self.done.iteration < self.params.n_iterations as u64 {
            let began = Instant::now();
            let seed: [u64; 4] = Rng::stream(self.params.seed, self.done.iteration).into();
            let (documents, beta) = (&self.documents, self.params.beta);
            let n_changed = self.sampling.sweep(&mut self.state, documents, beta, seed[0]);
            let took = began.elapsed();
            self.done.iteration += 1;
            if self.params.optimize_alpha && self.done.iteration.is_multiple_of(ALPHA_EVERY) {
                let LdaState { topics, alpha, .. } = &mut self.state;
                for _ in 0..ALPHA_STEPS {
                    improve_alpha(&self.documents, topics, alpha);
                }
            }
            self.timed = (self.timed.0 + took, self.timed.1 + self.documents.n_tokens());
            let is_last = self.done.iteration == self.params.n_iterations as u64;
            let is_measured = self.done.iteration.is_multiple_of(LIKELIHOOD_EVERY)
                || is_last
                || self.done.iteration == 1;
            if is_measured {
                self.measure();
            }
            let n = self.documents.n_tokens() as f64;
            let metrics = [
                ("log_likelihood", self.done.log_likelihood),
                ("log_likelihood_per_token", self.done.log_likelihood / n),
                ("tokens_per_second", n / took.as_secs_f64()),
                ("changed", n_changed as f64 / n),
            ];
            self.report(if is_measured { &metrics } else { &[] }, watch)?;
        }
        Ok(self.finish())
    }

    fn measure(&mut self) {
        let LdaState { topics, alpha, .. } = &self.state;
        let (counts, beta) = (self.state.counts(), self.params.beta);
        self.done.log_likelihood =
            log_likelihood(&self.documents, topics, alpha, &counts, self.n_types(), beta);
    }

    fn report(&self, metrics: &[(&'static str, f64)], watch: &mut Watch) -> Result<(), FitError> {
        let checkpoint = || Ok(self.checkpoint());
        let progress = Progress {
            phase: "sample topics",
            done: self.done.iteration,
            total: Some(self.params.n_iterations as u64),
            unit: "iterations",
            metrics,
            iteration: None,
            checkpoint: Some(&checkpoint),
        };
        progress.report(watch)
    }

    fn fingerprint(&self) -> u64 {
        let vocab = self.lexicon.vocab.fingerprint();
        let numbers = self.documents.fingerprint_numbers();
        fingerprint(numbers.chain([vocab as u32, (vocab >> 32) as u32]))
    }

    fn checkpoint(&self) -> Checkpoint {
        let LdaState { topics, alpha, .. } = &self.state;
        Checkpoint::new(Lda::KIND, self.params, self.fingerprint(), &self.done)
            .with_array("topics", &[topics.len()], topics)
            .with_array("alpha", &[alpha.len()], alpha)
    }

    fn finish(self) -> Lda {
        let n_tokens = self.documents.n_tokens();
        let counts = self.state.counts();
        let mut facts = Map::new();
        let mut fact = |name: &str, value: serde_json::Value| facts.insert(name.into(), value);
        fact("tokens", n_tokens.into());
        fact("tokens_out_of_vocabulary", (self.all.n_tokens() - n_tokens).into());
        fact("sampler", serde_json::json!(self.sampling.sampler()));
        fact("documents", self.documents.len().into());
        fact("log_likelihood", self.done.log_likelihood.into());
        fact("log_likelihood_per_token", (self.done.log_likelihood / n_tokens as f64).into());
        fact("empty_topics", counts.totals().iter().filter(|&&n| n == 0).count().into());
        if self.timed.1 > 0 {
            let seconds = self.timed.0.as_secs_f64();
            fact("tokens_per_second", (self.timed.1 as f64 / seconds).into());
        }
        fact("seconds", self.started.elapsed().as_secs_f64().into());
        let (params, alpha) = (self.params.clone(), self.state.alpha);
        Lda::new(params, self.lexicon.clone(), counts, alpha, facts)
    }
}
