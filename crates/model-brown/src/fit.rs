use crate::algorithms::{exchange, greedy as window};
use crate::counts::bigrams::Bigrams;
use crate::counts::cluster_counts::NONE;
use crate::model::Brown;
use crate::params::{Algorithm, BrownParams};
use latens_corpus::Corpus;
use latens_counts::Budget;
use latens_model::{
    Checkpoint, CheckpointError, FitError, ParamError, Valid, Watch, WordClusters, data_fingerprint,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Map;
use std::time::Instant;

impl Brown {
    /// Clusters the words of a text.
    pub fn fit(
        params: &Valid<BrownParams>,
        corpus: &Corpus,
        watch: &mut Watch,
    ) -> Result<Brown, FitError> {
        fit_from(None, params, corpus, watch)
    }

    /// Goes on from a checkpoint of [`Brown::fit`] with the same parameters and text; only `n_iterations`
    /// may be another.
    pub fn resume(
        params: &Valid<BrownParams>,
        corpus: &Corpus,
        checkpoint: &Checkpoint,
        watch: &mut Watch,
    ) -> Result<Brown, FitError> {
        let fingerprint = data_fingerprint(&corpus.lexicon.vocab, &corpus.sentences);
        checkpoint.check_fits(Brown::KIND, params, fingerprint, &["n_iterations"])?;
        fit_from(Some(checkpoint), params, corpus, watch)
    }
}

fn fit_from(
    checkpoint: Option<&Checkpoint>,
    params: &Valid<BrownParams>,
    corpus: &Corpus,
    watch: &mut Watch,
) -> Result<Brown, FitError> {
    let started = Instant::now();
    let task = Task::new(params, corpus)?;
    let cluster = match params.algorithm {
        Algorithm::Brown => window::cluster,
        Algorithm::Exchange => exchange::cluster,
    };
    let hierarchy = cluster(&task, checkpoint, watch)?;
    let clusters = WordClusters::new(hierarchy.cluster_of.clone(), hierarchy.paths())
        .expect("a tree gives every cluster a path of its own");
    let mut facts = Map::new();
    facts.insert("tokens".into(), corpus.sentences.n_tokens().into());
    facts.insert("mutual_information".into(), hierarchy.mutual_information.into());
    facts.insert("seconds".into(), started.elapsed().as_secs_f64().into());
    Ok(Brown::new(params.clone(), corpus.lexicon.clone(), clusters, facts))
}

/// What both algorithms work on.
pub(crate) struct Task<'a> {
    pub(crate) params: &'a Valid<BrownParams>,
    corpus: &'a Corpus,
    pub(crate) bigrams: Bigrams,
    /// The words that were seen, by falling frequency, in the order in which they are looked at.
    pub(crate) words: Vec<u32>,
}

impl<'a> Task<'a> {
    pub(crate) fn new(
        params: &'a Valid<BrownParams>,
        corpus: &'a Corpus,
    ) -> Result<Task<'a>, FitError> {
        let n_words = corpus.lexicon.vocab.len();
        let bigrams = Bigrams::of(&corpus.sentences, n_words, &Budget::default())
            .map_err(FitError::step("count bigrams"))?;
        let words = match params.algorithm {
            Algorithm::Brown => bigrams.words_by_recurrence(),
            // Words move again, and neither order was always the better one.
            Algorithm::Exchange => bigrams.words_by_frequency(),
        };
        if params.n_clusters > words.len() {
            return Err(FitError::Params(ParamError {
                name: "n_clusters",
                must: format!("at most {}, the number of different words", words.len()),
                got: params.n_clusters.to_string(),
            }));
        }
        Ok(Task { params, corpus, bigrams, words })
    }

    /// A checkpoint without arrays.
    pub(crate) fn checkpoint<S: Serialize + DeserializeOwned>(&self, state: &S) -> Checkpoint {
        let fingerprint = data_fingerprint(&self.corpus.lexicon.vocab, &self.corpus.sentences);
        Checkpoint::new(Brown::KIND, self.params, fingerprint, state)
    }

    /// The words of each of `n_clusters`, if the clusters of a checkpoint are possible: the first
    /// `n_words` have one, and no others.
    pub(crate) fn members(
        &self,
        cluster_of: &[u32],
        n_words: usize,
        n_clusters: usize,
    ) -> Result<Vec<Vec<u32>>, CheckpointError> {
        let mut members = vec![Vec::new(); n_clusters];
        for &word in self.words.iter().take(n_words) {
            if let Some(members) = members.get_mut(cluster_of[word as usize] as usize) {
                members.push(word);
            }
        }
        let n_clustered = cluster_of.iter().filter(|&&cluster| cluster != NONE).count();
        if n_clustered != n_words || members.iter().map(Vec::len).sum::<usize>() != n_words {
            let problem = "it does not have the clusters of the words that came first";
            return Err(CheckpointError::Invalid { problem });
        }
        Ok(members)
    }
}
