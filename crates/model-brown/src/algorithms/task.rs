use crate::counts::bigrams::Bigrams;
use crate::counts::cluster_counts::NONE;
use crate::model::Brown;
use crate::params::{Algorithm, BrownParams};
use latens_corpus::Corpus;
use latens_counts::Budget;
use latens_model::{Checkpoint, CheckpointError, FitError, ParamError, Valid, data_fingerprint};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The input of both algorithms.
pub(crate) struct Task<'a> {
    pub(crate) params: &'a Valid<BrownParams>,
    /// `None` if only the counts of the text are known.
    corpus: Option<&'a Corpus>,
    pub(crate) bigrams: Bigrams,
    /// The words that occur, in the order in which the algorithm processes them.
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
        Task::from_bigrams(params, Some(corpus), bigrams)
    }

    pub(crate) fn from_bigrams(
        params: &'a Valid<BrownParams>,
        corpus: Option<&'a Corpus>,
        bigrams: Bigrams,
    ) -> Result<Task<'a>, FitError> {
        let words = match params.algorithm {
            Algorithm::Brown => bigrams.words_by_recurrence(),
            // Words can move again, and neither order was always better.
            Algorithm::Exchange => bigrams.words_by_frequency(),
        };
        if params.n_clusters > words.len() {
            return Err(FitError::Params(ParamError {
                name: "n_clusters",
                must: format!("at most {}, the number of distinct words", words.len()),
                got: params.n_clusters.to_string(),
            }));
        }
        Ok(Task { params, corpus, bigrams, words })
    }

    /// A checkpoint with a state and no arrays yet.
    pub(crate) fn checkpoint<S: Serialize + DeserializeOwned>(&self, state: &S) -> Checkpoint {
        let of_text = |corpus: &Corpus| data_fingerprint(&corpus.lexicon.vocab, &corpus.sentences);
        let fingerprint = self.corpus.map_or(0, of_text);
        Checkpoint::new(Brown::KIND, self.params, fingerprint, state)
    }

    /// The words of each of the `n_clusters` clusters of a checkpoint, in which exactly the first `n_words` words must
    /// have a cluster.
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
            let problem = "its clusters do not cover exactly the words processed so far";
            return Err(CheckpointError::Invalid { problem });
        }
        Ok(members)
    }
}
