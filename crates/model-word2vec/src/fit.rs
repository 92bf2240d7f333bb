//! The training loop: epochs, progress, and checkpoints.

use crate::cost::cost;
use crate::learner::Learner;
use crate::model::Word2vec;
use crate::params::Word2vecParams;
use crate::worker::{Loss, learn_blocks};
use latens_corpus::{Corpus, WordId};
use latens_model::{
    Checkpoint, CheckpointError, Cost, Fit, FitError, Progress, Session, Setup, Valid, Watch,
    WordVectors, data_fingerprint,
};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use std::sync::Arc;
use std::time::Instant;

/// Blocks per thread between two progress reports.
const BLOCKS_PER_REPORT: usize = 64;

/// Learns word vectors from a text. A checkpoint is available at least at the end of each epoch.
///
/// The result is reproducible for a given seed with one thread only.
impl Fit for Word2vecParams {
    type Model = Word2vec;
    type Data = Corpus;
    type Inputs<'a> = ();
    type Error = FitError;

    fn cost_with(params: &Word2vecParams, corpus: &Corpus, (): &(), _: &Setup<'_>) -> Cost {
        cost(params, corpus)
    }

    fn fit_with(
        params: &Valid<Word2vecParams>,
        corpus: &Corpus,
        (): (),
        session: Session<'_>,
    ) -> Result<Word2vec, FitError> {
        session.refuse_cuda()?;
        session.refuse_valid()?;
        fit_from(session.checkpoint, params, corpus, session.watch)
    }
}

fn fit_from(
    checkpoint: Option<&Checkpoint>,
    params: &Valid<Word2vecParams>,
    corpus: &Corpus,
    watch: &mut Watch,
) -> Result<Word2vec, FitError> {
    check_text(corpus)?;
    let n_words = corpus.lexicon.vocab.len();
    let (rows, state) = match checkpoint {
        None => (Learner::first_rows(params, n_words), State::default()),
        Some(checkpoint) => {
            let fingerprint = data_fingerprint(&corpus.lexicon.vocab, &corpus.sentences);
            checkpoint.check_fits(Word2vec::KIND, params, fingerprint, &[])?;
            let shape = [n_words, params.dim];
            let rows = [checkpoint.array("inputs", &shape)?, checkpoint.array("outputs", &shape)?];
            let state: State = checkpoint.state()?;
            if state.epoch > params.epochs || state.n_predictions >= 1 << 53 {
                let problem = "its number of epochs or predictions is too large";
                return Err(CheckpointError::Invalid { problem }.into());
            }
            (rows, state)
        }
    };
    let trainer = Trainer::new(params, corpus, &rows, state);
    if trainer.state.block > trainer.learner.n_blocks() {
        let problem = "its block number exceeds the number of blocks of the text";
        return Err(CheckpointError::Invalid { problem }.into());
    }
    drop(rows);
    trainer.run(watch)
}

/// Requires a sentence with two words, so that there is a context, and two distinct words, so that there is a negative
/// sample.
fn check_text(corpus: &Corpus) -> Result<(), FitError> {
    let longest = corpus.sentences.iter().map(|sentence| sentence.len() - 1).max().unwrap_or(0);
    if longest < 2 {
        return Err(FitError::not_enough_data("a sentence of at least 2 words", longest));
    }
    let words = || corpus.sentences.tokens().iter().filter(|&&word| word != WordId::EOS);
    if words().min() == words().max() {
        return Err(FitError::not_enough_data("at least 2 distinct words", 1));
    }
    Ok(())
}

/// Position of the training loop.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct State {
    /// Number of completed epochs.
    epoch: usize,
    /// Number of completed blocks of the current epoch.
    block: usize,
    /// Sum of the losses of these blocks.
    loss: f64,
    /// Number of predictions in these blocks.
    #[serde(rename = "n_guesses")]
    n_predictions: u64,
    /// Mean loss of the last epoch with predictions.
    last_loss: Option<f64>,
}

/// A model under training.
struct Trainer<'a> {
    params: &'a Valid<Word2vecParams>,
    corpus: &'a Corpus,
    learner: Learner<'a>,
    state: State,
    started: Instant,
    /// Time at which this run started the epoch, and its first block.
    epoch_started: (Instant, usize),
    /// Number of tokens processed before this run, over all epochs.
    n_tokens_before: usize,
}

impl<'a> Trainer<'a> {
    fn new(
        params: &'a Valid<Word2vecParams>,
        corpus: &'a Corpus,
        [inputs, outputs]: &[Vec<f32>; 2],
        state: State,
    ) -> Trainer<'a> {
        let learner = Learner::new(params, corpus, inputs, outputs);
        let started = Instant::now();
        let epoch_started = (started, state.block);
        let n_tokens_before = learner.n_tokens_before(state.epoch, state.block);
        Trainer { params, corpus, learner, state, started, epoch_started, n_tokens_before }
    }

    fn run(mut self, watch: &mut Watch) -> Result<Word2vec, FitError> {
        let n_per_report = BLOCKS_PER_REPORT * rayon::current_num_threads();
        while self.state.epoch < self.params.epochs {
            let n_blocks = self.learner.n_blocks();
            let end = (self.state.block + n_per_report).min(n_blocks);
            let blocks = self.state.block..end;
            let Loss { sum, n } = learn_blocks(&self.learner, self.state.epoch, blocks);
            self.state.loss += sum;
            self.state.n_predictions += n;
            self.state.block = end;
            if !self.state.loss.is_finite() {
                return Err(self.diverged());
            }
            if end == n_blocks {
                self.end_epoch(watch)?;
            } else {
                self.report(&[], watch)?;
            }
        }
        self.finish()
    }

    fn end_epoch(&mut self, watch: &mut Watch) -> Result<(), FitError> {
        let State { epoch, loss, n_predictions, .. } = self.state;
        let mean = (n_predictions > 0).then(|| loss / n_predictions as f64);
        let last_loss = mean.or(self.state.last_loss);
        self.state = State { epoch: epoch + 1, last_loss, ..State::default() };
        let (began, block) = self.epoch_started;
        let n_tokens = self.learner.n_tokens_before(1, 0) - self.learner.n_tokens_before(0, block);
        let speed = n_tokens as f64 / began.elapsed().as_secs_f64();
        self.epoch_started = (Instant::now(), 0);
        let mut metrics = vec![("tokens_per_second", speed)];
        metrics.splice(0..0, mean.map(|loss| ("loss", loss)));
        self.report(&metrics, watch)
    }

    fn report(&self, metrics: &[(&'static str, f64)], watch: &mut Watch) -> Result<(), FitError> {
        let checkpoint = || Ok(self.checkpoint());
        let State { epoch, block, .. } = self.state;
        let progress = Progress {
            phase: "learn",
            done: self.learner.n_tokens_before(epoch, block) as u64,
            total: Some(self.learner.n_tokens_before(self.params.epochs, 0) as u64),
            unit: "tokens",
            metrics,
            iteration: (!metrics.is_empty()).then_some(epoch as u64),
            checkpoint: Some(&checkpoint),
        };
        progress.report(watch)
    }

    fn checkpoint(&self) -> Checkpoint {
        let Corpus { lexicon, sentences } = self.corpus;
        let fingerprint = data_fingerprint(&lexicon.vocab, sentences);
        let shape = [lexicon.vocab.len(), self.params.dim];
        Checkpoint::new(Word2vec::KIND, self.params, fingerprint, &self.state)
            .with_shared_array("inputs", &shape, Arc::new(self.learner.inputs.to_vec()))
            .with_shared_array("outputs", &shape, Arc::new(self.learner.outputs.to_vec()))
    }

    fn diverged(&self) -> FitError {
        FitError::Diverged { epoch: self.state.epoch + 1, lower: "learning_rate" }
    }

    fn finish(self) -> Result<Word2vec, FitError> {
        let Some(loss) = self.state.last_loss else {
            let needs = "sentences with at least two words kept by `subsample`";
            return Err(FitError::not_enough_data(needs, "none"));
        };
        let mut values = self.learner.inputs.to_vec();
        // A word that does not occur in the text keeps no vector.
        let rows = values.chunks_exact_mut(self.params.dim).zip(&self.learner.counts);
        rows.filter(|&(_, &count)| count == 0).for_each(|(row, _)| row.fill(0.0));
        let Ok(vectors) = WordVectors::new(self.params.dim, values) else {
            return Err(FitError::Diverged { epoch: self.params.epochs, lower: "learning_rate" });
        };
        let mut facts = Map::new();
        facts.insert("tokens".into(), self.corpus.sentences.n_tokens().into());
        facts.insert("loss".into(), loss.into());
        let seconds = self.started.elapsed().as_secs_f64();
        let all = self.learner.n_tokens_before(self.params.epochs, 0);
        let n_tokens = all.saturating_sub(self.n_tokens_before);
        facts.insert("tokens_per_second".into(), (n_tokens as f64 / seconds).into());
        facts.insert("seconds".into(), seconds.into());
        Ok(Word2vec::new(self.params.clone(), self.corpus.lexicon.clone(), vectors, facts))
    }
}
