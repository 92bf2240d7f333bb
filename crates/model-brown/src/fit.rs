//! Fitting a clustering to a corpus.

use crate::algorithms::task::Task;
use crate::algorithms::{exchange, greedy};
use crate::cost::cost;
use crate::model::Brown;
use crate::params::{Algorithm, BrownParams};
use latens_corpus::{Corpus, Lexicon};
use latens_model::{
    Checkpoint, Cost, Fit, FitError, Session, Setup, Valid, Watch, WordClusters, data_fingerprint,
};
use serde_json::Map;
use std::time::Instant;

/// Clusters the words of a corpus.
impl Fit for BrownParams {
    type Model = Brown;
    type Data = Corpus;
    type Inputs<'a> = ();
    type Error = FitError;

    fn cost_with(params: &BrownParams, corpus: &Corpus, (): &(), _: &Setup<'_>) -> Cost {
        cost(params, corpus)
    }

    fn fit_with(
        params: &Valid<BrownParams>,
        corpus: &Corpus,
        (): (),
        session: Session<'_>,
    ) -> Result<Brown, FitError> {
        session.refuse_cuda()?;
        session.refuse_valid()?;
        fit_from(session.checkpoint, params, corpus, session.watch)
    }
}

fn fit_from(
    checkpoint: Option<&Checkpoint>,
    params: &Valid<BrownParams>,
    corpus: &Corpus,
    watch: &mut Watch,
) -> Result<Brown, FitError> {
    let started = Instant::now();
    if let Some(checkpoint) = checkpoint {
        let fingerprint = data_fingerprint(&corpus.lexicon.vocab, &corpus.sentences);
        checkpoint.check_fits(Brown::KIND, params, fingerprint, &["n_iterations"])?;
    }
    let task = Task::new(params, corpus)?;
    let lexicon = &corpus.lexicon;
    let mut brown = cluster(&task, params, lexicon, checkpoint, watch)?;
    brown.add_fact("tokens", corpus.sentences.n_tokens());
    brown.add_fact("seconds", started.elapsed().as_secs_f64());
    Ok(brown)
}

/// Clusters the words of a task.
pub(crate) fn cluster(
    task: &Task<'_>,
    params: &Valid<BrownParams>,
    lexicon: &Lexicon,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Brown, FitError> {
    let cluster = match params.algorithm {
        Algorithm::Brown => greedy::cluster,
        Algorithm::Exchange => exchange::cluster,
    };
    let hierarchy = cluster(task, checkpoint, watch)?;
    let clusters = WordClusters::new(hierarchy.cluster_of.clone(), hierarchy.paths())
        .expect("paths in a binary tree are distinct");
    let mut facts = Map::new();
    facts.insert("mutual_information".into(), hierarchy.mutual_information.into());
    Ok(Brown::new(params.clone(), lexicon.clone(), clusters, facts))
}
