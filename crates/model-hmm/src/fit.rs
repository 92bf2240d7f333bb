//! Fits a model to a corpus.

use crate::cost::{Given, cost};
use crate::model::Hmm;
use crate::params::{Constraint, HmmParams, Memory, Parameterization};
use crate::space::clusters::{clustering, text_to_cluster};
use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::steps::batches::Data;
use crate::tables::probability_tables::Tables;
use crate::train::device::check_device;
use crate::train::tagged_text::TaggedText;
use crate::train::task::Task;
use crate::train::teacher::{DrawnTexts, Teacher};
use crate::train::{baum_welch, gradient};
use crate::weights::neural::Neural;
use latens_corpus::{Corpus, Lexicon, Sentences, Vocab};
use latens_model::group::Group;
use latens_model::{
    Cost, Fit, FitError, Params, Progress, Session, Setup, Valid, Watch, WordClusters, check_that,
    data_fingerprint,
};
use std::time::Instant;

/// Additional inputs of a hidden Markov model.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct HmmInputs<'a> {
    /// The clusters of words for [`Constraint::Brown`]; learned from the corpus if they are not given.
    pub clusters: Option<&'a WordClusters>,
    /// The tags of the corpus, for a model of words and tags.
    pub tags: Option<&'a TaggedText>,
    /// A language model that draws additional training text.
    pub teacher: Option<&'a Teacher<'a>>,
    /// Processes that learn the model together, by gradient. All of them need the same text, parameters and inputs.
    pub group: Option<&'a dyn Group>,
}

impl<'a> HmmInputs<'a> {
    /// Divides the states among these clusters of words.
    #[must_use]
    pub fn clusters(mut self, clusters: &'a WordClusters) -> Self {
        self.clusters = Some(clusters);
        self
    }

    /// Learns to emit these tags in addition to the words.
    #[must_use]
    pub fn tags(mut self, tags: &'a TaggedText) -> Self {
        self.tags = Some(tags);
        self
    }

    /// Learns from text that a language model with the same vocabulary draws.
    #[must_use]
    pub fn teacher(mut self, teacher: &'a Teacher<'a>) -> Self {
        self.teacher = Some(teacher);
        self
    }

    /// Learns together with other processes, each of which gets a share of every mini-batch.
    #[must_use]
    pub fn group(mut self, group: &'a dyn Group) -> Self {
        self.group = Some(group);
        self
    }
}

impl Fit for HmmParams {
    type Model = Hmm;
    type Data = Corpus;
    type Inputs<'a> = HmmInputs<'a>;
    type Error = FitError;

    fn cost_with(
        params: &HmmParams,
        corpus: &Corpus,
        inputs: &HmmInputs<'_>,
        setup: &Setup<'_>,
    ) -> Cost {
        let n_tags = inputs.tags.map_or(0, |tags| tags.names.len());
        let n_drawn = inputs.teacher.map_or(0, Teacher::n_tokens);
        let copies = inputs.teacher.map_or(1, Teacher::copies);
        let given = Given { clusters: inputs.clusters.is_some(), n_tags, n_drawn, copies };
        cost(params, corpus, given, setup.valid)
    }

    fn fit_with(
        params: &Valid<HmmParams>,
        corpus: &Corpus,
        inputs: HmmInputs<'_>,
        session: Session<'_>,
    ) -> Result<Hmm, FitError> {
        let Session { valid, device, checkpoint, watch } = session;
        let started = Instant::now();
        let Corpus { lexicon, sentences } = corpus;
        if sentences.is_empty() {
            return Err(FitError::not_enough_data("at least 1 sentence", 0));
        }
        if valid.is_some_and(|valid| valid.n_tokens() == 0) {
            return Err(FitError::not_enough_data("at least 1 sentence of validation text", 0));
        }
        let n_drawn = inputs.teacher.map_or(0, Teacher::n_tokens);
        let copies = inputs.teacher.map_or(1, Teacher::copies);
        let params = &params.for_text(copies * sentences.n_tokens() + n_drawn).validate()?;
        let learned = match (params.constraint, inputs.clusters) {
            (Constraint::Brown, None) => Some(learn_clusters(params, corpus, watch)?),
            _ => None,
        };
        let tags = inputs.tags;
        if inputs.teacher.is_some() {
            check_that(!params.by_em(), "learning", "`gradient` with a teacher", "em")?;
            check_that(tags.is_none(), "tags", "unset with a teacher", "tags")?;
        }
        if inputs.group.is_some() {
            check_that(!params.by_em(), "learning", "`gradient` with a group of processes", "em")?;
        }
        let vocab = recounted(&lexicon.vocab, sentences);
        // A teacher may draw words that the corpus does not contain.
        let vocab = if inputs.teacher.is_some() { all_seen(&vocab) } else { vocab };
        let space = StateSpace::from_params(params, &vocab, inputs.clusters.or(learned.as_ref()))?;
        if let Some(valid) = valid {
            check_valid(&space, lexicon, valid)?;
        }
        if let Some(tags) = tags {
            tags.check(sentences)?;
            let resets = params.memory == Memory::Reset;
            check_that(resets, "memory", "`reset` for a model with tags", "carry")?;
        }
        let run_tokens = (params.memory == Memory::Carry).then_some(params.run_tokens);
        let task = Task {
            params,
            space: &space,
            spellings: space.words().iter().map(|&word| lexicon.vocab.word(word)).collect(),
            n_tags: tags.map_or(0, |tags| tags.names.len()),
            drawn: inputs.teacher.map(|teacher| DrawnTexts::new(teacher, params.epochs)),
            train: Data { sentences, tags: tags.map(|tags| &tags.tags[..]), run_tokens },
            valid: valid.map(|sentences| Data { sentences, tags: None, run_tokens }),
            fingerprint: data_fingerprint(&lexicon.vocab, sentences)
                ^ tags.map_or(0, TaggedText::fingerprint)
                ^ inputs.teacher.map_or(0, Teacher::fingerprint)
                ^ space.fingerprint()
                ^ valid.map_or(0, |valid| data_fingerprint(&lexicon.vocab, valid)).rotate_left(1),
            device,
            // One process has no one to add up with.
            group: inputs.group.filter(|group| group.size() > 1),
            kind: Hmm::KIND,
        };
        check_device(&task)?;
        let (weights, tables, mut facts) = if params.by_em() {
            let fitted = baum_welch::fit(&task, &vocab, checkpoint, watch)?;
            (None, fitted.tables, fitted.facts)
        } else {
            let (weights, facts) = gradient::fit(&task, checkpoint, watch)?;
            let (weights, tables) = probabilities(&task, weights);
            (weights, tables, facts)
        };
        facts.insert("tokens".into(), sentences.n_tokens().into());
        facts.insert("sentences".into(), sentences.len().into());
        facts.insert("seconds".into(), started.elapsed().as_secs_f64().into());
        let tags = tags.map(|tags| tags.table(tables.tags.clone()));
        drop(task);
        let (params, lexicon) = (params.clone(), lexicon.clone());
        let hmm = Hmm::new(params, lexicon, facts, space, weights, tables, tags);
        if hmm.is_finite() {
            Ok(hmm)
        } else {
            Err(FitError::Diverged { epoch: hmm.params.epochs, lower: "learning_rate" })
        }
    }
}

/// Checks that the states can emit the words of the validation text. No training would make them possible.
fn check_valid(space: &StateSpace, lexicon: &Lexicon, valid: &Sentences) -> Result<(), FitError> {
    match valid.tokens().iter().find(|&&word| space.slot(word).is_none()) {
        None => Ok(()),
        Some(&word) => Err(FitError::Unscorable {
            problem: format!(
                "no state can emit `{}`, because the training text does not contain it",
                lexicon.vocab.word(word)
            ),
        }),
    }
}

/// Learns Brown clusters of the words of a corpus.
fn learn_clusters(
    params: &HmmParams,
    corpus: &Corpus,
    watch: &mut Watch,
) -> Result<WordClusters, FitError> {
    let text = text_to_cluster(params, corpus);
    // A checkpoint of the clustering is not one of this model.
    let watch = |progress: &Progress<'_>| watch(&Progress { checkpoint: None, ..*progress });
    let brown = clustering(params);
    // The estimate of this model includes the clustering.
    let brown = brown.watch(watch).force(true).fit(&text)?;
    Ok(brown.clusters().for_words(&text.lexicon.vocab, &corpus.lexicon.vocab))
}

/// The vocabulary with the counts of this text, which may differ from the text that the vocabulary was built from.
fn recounted(vocab: &Vocab, sentences: &Sentences) -> Vocab {
    let mut counts = vec![0; vocab.len()];
    sentences.tokens().iter().for_each(|word| counts[word.index()] += 1);
    Vocab::from_parts(vocab.words(), counts).expect("the words of a vocabulary are distinct")
}

/// The vocabulary with a count of at least 1 for every word.
fn all_seen(vocab: &Vocab) -> Vocab {
    let counts = vocab.counts().iter().map(|&count| count.max(1)).collect();
    Vocab::from_parts(vocab.words(), counts).expect("the words of a vocabulary are distinct")
}

/// Computes probabilities from weights. Keeps the weights of networks, because the factors of their transitions are
/// smaller than the probabilities.
pub(crate) fn probabilities(task: &Task<'_>, weights: Vec<f32>) -> (Option<Vec<f32>>, Tables<f32>) {
    let (mut tables, kept) = (Tables::default(), KeptStates::all(task.space));
    if task.params.parameterization == Parameterization::Scalar {
        task.mapping().forward(&weights, task.space, &kept, None, &mut tables);
        return (None, tables);
    }
    let mut neural = Neural::new(task.params, task.space, &task.spellings, task.n_tags);
    neural.forward_to_factors(&weights, task.space, &kept, None, &mut tables);
    (Some(weights), tables)
}
