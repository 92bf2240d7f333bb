use super::choice::{Choice, Sizes, choose};
use super::cost::cost;
use super::gaussian::prior::Prior;
use super::kmeans::kmeans;
use super::model::Glda;
use super::params::{GldaParams, Start};
use super::problem::{Problem, State};
use super::sampler::{Sweep, document_rng, sweep};
use super::types::Types;
use crate::counts::TypeCounts;
use crate::dirichlet::{DIRICHLET, improve_alpha};
use crate::documents::TypedDocuments;
use latens_corpus::{DocumentCorpus, Documents, Lexicon};
use latens_math::Rng;
use latens_model::{
    Checkpoint, CheckpointError, Cost, FitError, Progress, Session, Setup, Valid, Watch,
    WordVectors, check_that, fingerprint,
};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use std::time::{Duration, Instant};

/// Number of iterations between updates of α, and number of fixed-point steps per update.
const ALPHA_EVERY: u64 = 20;
const ALPHA_STEPS: usize = 10;

/// Additional inputs of Gaussian LDA.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct GldaInputs<'a> {
    /// Word vectors of the vocabulary, required; see [`WordVectors::for_words`]. Words without a vector are ignored.
    pub vectors: Option<&'a WordVectors>,
}

impl<'a> GldaInputs<'a> {
    /// Sets the word vectors.
    #[must_use]
    pub fn vectors(mut self, vectors: &'a WordVectors) -> Self {
        self.vectors = Some(vectors);
        self
    }
}

/// The training data of Gaussian LDA.
#[derive(Clone, Copy)]
struct GldaData<'a> {
    lexicon: &'a Lexicon,
    documents: &'a Documents,
    vectors: &'a WordVectors,
}

/// Results depend only on the seed, not on the number of threads. A checkpoint is available after each iteration.
impl latens_model::Fit for GldaParams {
    type Model = Glda;
    type Data = DocumentCorpus;
    type Inputs<'a> = GldaInputs<'a>;
    type Error = FitError;

    fn cost_with(
        params: &GldaParams,
        data: &DocumentCorpus,
        inputs: &GldaInputs<'_>,
        _: &Setup<'_>,
    ) -> Cost {
        cost(params, data, inputs.vectors)
    }

    fn fit_with(
        params: &Valid<GldaParams>,
        data: &DocumentCorpus,
        inputs: GldaInputs<'_>,
        session: Session<'_>,
    ) -> Result<Glda, FitError> {
        session.refuse_cuda()?;
        session.refuse_valid()?;
        let Some(vectors) = inputs.vectors else {
            return Err(FitError::not_enough_data("word vectors (`GldaInputs::vectors`)", "none"));
        };
        let DocumentCorpus { lexicon, documents } = data;
        let mut fit = Fit::new(params, GldaData { lexicon, documents, vectors })?;
        match session.checkpoint {
            None => {
                let topics = fit.first_topics();
                let alpha = vec![params.first_alpha(); params.n_topics];
                fit.state = State::new(&fit.problem.documents, topics, fit.types.len(), alpha);
            }
            Some(checkpoint) => fit.restore(checkpoint)?,
        }
        fit.run(session.watch)
    }
}

/// Progress of the training run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Done {
    iteration: u64,
    log_likelihood: f64,
    n_rebuilt: u64,
}

struct Fit<'a> {
    params: &'a Valid<GldaParams>,
    data: GldaData<'a>,
    types: Types,
    problem: Problem,
    state: State,
    choice: Choice,
    done: Done,
    started: Instant,
    /// Sampling time and number of sampled tokens in this run.
    sampling: (Duration, usize),
}

impl<'a> Fit<'a> {
    /// Resumes from a checkpoint, possibly with more iterations.
    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), FitError> {
        checkpoint.check_fits(Glda::KIND, self.params, self.fingerprint(), &["n_iterations"])?;
        self.done = checkpoint.state()?;
        let n_topics = self.params.n_topics;
        let topics: Vec<u16> = checkpoint.array("topics", &[self.problem.documents.n_tokens()])?;
        let alpha: Vec<f64> = checkpoint.array("alpha", &[n_topics])?;
        let is_good = topics.iter().all(|&k| usize::from(k) < n_topics)
            && alpha.iter().all(|a| DIRICHLET.contains(a));
        if !is_good {
            let problem = "a topic or an alpha is out of range";
            return Err(CheckpointError::Invalid { problem }.into());
        }
        self.state = State::new(&self.problem.documents, topics, self.types.len(), alpha);
        Ok(())
    }

    fn new(params: &'a Valid<GldaParams>, data: GldaData<'a>) -> Result<Fit<'a>, FitError> {
        let (types, vectors) = Types::new(data.vectors);
        let documents = TypedDocuments::of(data.documents, |word| types.of(word));
        let n_tokens = documents.n_tokens();
        if n_tokens == 0 {
            return Err(FitError::not_enough_data("a word that has a vector", "none"));
        }
        let largest = documents.type_counts(vectors.len()).into_iter().max().unwrap_or(0);
        if largest > u64::from(u32::MAX) {
            let allows = format!("at most {} occurrences of a word", u32::MAX);
            return Err(FitError::too_much_data(allows, largest));
        }
        let must = format!("at most the number of tokens that have a vector, {n_tokens}");
        check_that(params.n_topics <= n_tokens, "n_topics", must, params.n_topics)?;
        let choice = choose(params, Sizes::new(params, n_tokens, vectors.len(), vectors.dim()));
        let prior = Prior::of(params, &vectors)?;
        let problem = Problem { prior, vectors, documents, weight: params.likelihood_weight };
        let state = State {
            topics: Vec::new(),
            counts: TypeCounts::new(0, params.n_topics),
            alpha: Vec::new(),
        };
        let started = Instant::now();
        let (done, sampling) = (Done::default(), (Duration::ZERO, 0));
        Ok(Fit { params, data, types, problem, state, choice, done, started, sampling })
    }

    fn first_topics(&self) -> Vec<u16> {
        let Problem { documents, vectors, .. } = &self.problem;
        let n_topics = self.params.n_topics;
        match self.params.start {
            Start::Kmeans => {
                let counts = documents.type_counts(vectors.len());
                let weights: Vec<f64> = counts.iter().map(|&n| (n as f64).sqrt()).collect();
                let mut rng = Rng::stream(self.params.seed, u64::MAX);
                let clusters = kmeans(vectors, &weights, n_topics, &mut rng);
                documents.types.iter().map(|&t| clusters[t as usize]).collect()
            }
            Start::Random => {
                let of_document = |d: usize| {
                    let mut rng = document_rng(!self.params.seed, d);
                    let n = documents.range(d).len();
                    (0..n).map(move |_| (rng.uniform() * n_topics as f64) as u16)
                };
                (0..documents.len()).flat_map(of_document).collect()
            }
        }
    }

    fn run(mut self, watch: &mut Watch) -> Result<Glda, FitError> {
        while self.done.iteration < self.params.n_iterations as u64 {
            let began = Instant::now();
            let (n_shards, at) = (self.params.n_shards, (self.params.seed, self.done.iteration));
            let swept = sweep(self.choice.sampler, &self.problem, &mut self.state, n_shards, at);
            let took = began.elapsed();
            self.done.iteration += 1;
            self.done.n_rebuilt = self.done.n_rebuilt.saturating_add(swept.n_rebuilt);
            if self.params.optimize_alpha && self.done.iteration.is_multiple_of(ALPHA_EVERY) {
                let State { topics, alpha, .. } = &mut self.state;
                for _ in 0..ALPHA_STEPS {
                    improve_alpha(&self.problem.documents, topics, alpha);
                }
            }
            self.done.log_likelihood = self.problem.log_likelihood(&self.state);
            self.report(swept, took, watch)?;
        }
        Ok(self.finish())
    }

    fn report(&mut self, swept: Sweep, took: Duration, watch: &mut Watch) -> Result<(), FitError> {
        let n_tokens = self.problem.documents.n_tokens();
        self.sampling = (self.sampling.0 + took, self.sampling.1 + n_tokens);
        let n = n_tokens as f64;
        let mut metrics = vec![
            ("log_likelihood", self.done.log_likelihood),
            ("log_likelihood_per_token", self.done.log_likelihood / n),
            ("tokens_per_second", n / took.as_secs_f64()),
            ("changed", swept.n_changed as f64 / n),
        ];
        if swept.n_proposed > 0 {
            metrics.push(("accepted", swept.n_accepted as f64 / swept.n_proposed as f64));
        }
        let checkpoint = || Ok(self.checkpoint());
        let progress = Progress {
            phase: "sample topics",
            done: self.done.iteration,
            total: Some(self.params.n_iterations as u64),
            unit: "iterations",
            metrics: &metrics,
            iteration: None,
            checkpoint: Some(&checkpoint),
        };
        progress.report(watch)
    }

    fn fingerprint(&self) -> u64 {
        let Problem { documents, vectors, .. } = &self.problem;
        let vocab = self.data.lexicon.vocab.fingerprint();
        let numbers = documents.fingerprint_numbers();
        let values = vectors.values().iter().map(|x| x.to_bits());
        fingerprint(numbers.chain(values).chain([vocab as u32, (vocab >> 32) as u32]))
    }

    fn checkpoint(&self) -> Checkpoint {
        let State { topics, alpha, .. } = &self.state;
        Checkpoint::new(Glda::KIND, self.params, self.fingerprint(), &self.done)
            .with_array("topics", &[topics.len()], topics)
            .with_array("alpha", &[alpha.len()], alpha)
    }

    fn finish(self) -> Glda {
        let n_tokens = self.problem.documents.n_tokens();
        let n_empty = self.state.counts.totals().iter().filter(|&&n| n == 0).count();
        let n_without = (0..self.problem.documents.len())
            .filter(|&d| self.problem.documents.range(d).is_empty())
            .count();
        let mut facts = Map::new();
        let mut fact = |name: &str, value: serde_json::Value| facts.insert(name.into(), value);
        fact("tokens", n_tokens.into());
        fact("tokens_without_vector", (self.data.documents.n_tokens() - n_tokens).into());
        fact("documents", self.problem.documents.len().into());
        fact("documents_without_known_words", n_without.into());
        fact(
            "sampler",
            serde_json::to_value(self.choice.sampler).expect("a sampler serializes to its name"),
        );
        if let Some(reason) = self.choice.reason {
            fact("sampler_reason", reason.into());
        }
        fact("log_likelihood", self.done.log_likelihood.into());
        fact("log_likelihood_per_token", (self.done.log_likelihood / n_tokens as f64).into());
        fact("empty_topics", n_empty.into());
        fact("rebuilt_topics", self.done.n_rebuilt.into());
        if self.sampling.1 > 0 {
            let seconds = self.sampling.0.as_secs_f64();
            fact("tokens_per_second", (self.sampling.1 as f64 / seconds).into());
        }
        fact("seconds", self.started.elapsed().as_secs_f64().into());
        let problem = Problem { documents: TypedDocuments::default(), ..self.problem };
        Glda::new(
            self.params.clone(),
            self.data.lexicon.clone(),
            self.data.vectors.clone(),
            self.types,
            problem,
            self.state.counts,
            self.state.alpha,
            facts,
        )
    }
}
