//! A small training of every kind of model, in each of its variants that has a checkpoint of its own.

use latens::brown::Algorithm;
use latens::corpus::{Corpus, DocumentCorpus, Documents, Sentences, TaggedSentences};
use latens::fhmm::Inference;
use latens::hmm::{Constraint, Learning, Parameterization, Schedule, TaggedText};
use latens::model::{Checkpoint, Fit, FitBuilder, Model, Progress, Vectors, Watch, WordVectors};
use latens::neural::{Neural, NeuralParams};
use latens::prelude::{
    Brown, Encoder, FeatureTagger, Fhmm, Glda, GldaInputs, Hmm, HmmInputs, Lda, Lds, Ngram,
    TaggerInputs, Word2vec,
};
use latens::tasks::tagging::{Kind, Optimizer};
use std::fmt::Display;
use std::ops::ControlFlow;
use std::sync::LazyLock;

/// A training with fixed parameters and data.
pub struct Training {
    /// The kind of model, and what distinguishes this training from others of its kind.
    pub name: &'static str,
    /// Trains from the beginning, or resumes from a checkpoint.
    pub fit: FitFn,
}

/// How a training starts: from a checkpoint or not, with a progress callback.
pub type FitFn = fn(Option<&Checkpoint>, &mut Watch<'_>) -> Result<Box<dyn Model>, String>;

/// Every training.
pub const TRAININGS: &[Training] = &[
    Training { name: "ngram", fit: |c, w| run(Ngram::params().order(3).builder(), &CORPUS, c, w) },
    Training {
        name: "brown",
        fit: |c, w| run(Brown::params().n_clusters(2).builder(), &CORPUS, c, w),
    },
    Training { name: "brown-exchange", fit: brown_exchange },
    Training {
        name: "word2vec",
        fit: |c, w| run(Word2vec::params().dim(3).epochs(2).builder(), &CORPUS, c, w),
    },
    Training { name: "lds", fit: lds },
    Training { name: "hmm", fit: |c, w| run(hmm().builder(), &CORPUS, c, w) },
    Training { name: "hmm-gradient", fit: hmm_gradient },
    Training { name: "hmm-scalar", fit: hmm_scalar },
    Training { name: "hmm-tags", fit: hmm_tags },
    Training { name: "fhmm", fit: |c, w| run(fhmm().builder(), &CORPUS, c, w) },
    Training {
        name: "fhmm-tilted",
        fit: |c, w| run(fhmm().inference(Inference::Tilted).builder(), &CORPUS, c, w),
    },
    Training { name: "ff", fit: |c, w| run(small(Neural::ff()).builder(), &CORPUS, c, w) },
    Training { name: "rnn", fit: |c, w| run(small(Neural::rnn()).valid(&VALID), &CORPUS, c, w) },
    Training { name: "lstm", fit: |c, w| run(small(Neural::lstm()).valid(&VALID), &CORPUS, c, w) },
    Training { name: "lda", fit: lda },
    Training { name: "glda", fit: glda },
    Training { name: "tagger", fit: tagger },
    Training { name: "tagger-perceptron", fit: tagger_perceptron },
];

static CORPUS: LazyLock<Corpus> = LazyLock::new(|| {
    let lines = ["the cat sees a dog", "a dog sees the cat", "", "the dog sleeps"];
    Corpus::from_lines(lines.repeat(2)).expect("the text is valid")
});

static VALID: LazyLock<Sentences> =
    LazyLock::new(|| CORPUS.lexicon.sentences(["a cat sleeps", "the dog sees"]));

static DOCUMENTS: LazyLock<DocumentCorpus> = LazyLock::new(|| {
    let texts = ["cat dog cat", "sun moon", "dog dog cat", "moon sun star"];
    Documents::from_texts(texts).expect("the documents are valid")
});

static TAGGED: LazyLock<TaggedSentences> = LazyLock::new(|| {
    let rows = [
        [("the", "D"), ("cat", "N"), ("sleeps", "V")],
        [("a", "D"), ("dog", "N"), ("sees", "V")],
        [("the", "D"), ("dog", "N"), ("sees", "N")],
    ];
    TaggedSentences::from_rows(rows).expect("the sentences are valid")
});

fn run<P: Fit>(
    builder: FitBuilder<'_, '_, P>,
    data: &P::Data,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch<'_>,
) -> Result<Box<dyn Model>, String>
where
    P::Model: Model,
    P::Error: Display,
{
    let builder = builder.watch(|progress: &Progress<'_>| watch(progress));
    let builder = match checkpoint {
        Some(checkpoint) => builder.checkpoint(checkpoint),
        None => builder,
    };
    let model = builder.fit(data).map_err(|error| error.to_string())?;
    Ok(Box::new(model))
}

fn brown_exchange(
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch<'_>,
) -> Result<Box<dyn Model>, String> {
    let params = Brown::params().n_clusters(3).algorithm(Algorithm::Exchange).n_iterations(3);
    run(params.builder(), &CORPUS, checkpoint, watch)
}

fn lds(checkpoint: Option<&Checkpoint>, watch: &mut Watch<'_>) -> Result<Box<dyn Model>, String> {
    let params = Lds::params().dim(2).lags(3).ssid_lags(2).n_iterations(2);
    run(params.builder(), &CORPUS, checkpoint, watch)
}

fn hmm() -> latens::hmm::HmmParams {
    Hmm::params().n_states(4).n_clusters(2).dim(3).epochs(2).batch_tokens(16)
}

fn hmm_gradient(
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch<'_>,
) -> Result<Box<dyn Model>, String> {
    let params =
        hmm().constraint(Constraint::None).learning(Learning::Gradient).schedule(Schedule::Plateau);
    run(params.valid(&VALID), &CORPUS, checkpoint, watch)
}

fn hmm_scalar(
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch<'_>,
) -> Result<Box<dyn Model>, String> {
    let params = hmm().constraint(Constraint::Uniform).parameterization(Parameterization::Scalar);
    run(params.builder(), &CORPUS, checkpoint, watch)
}

fn hmm_tags(
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch<'_>,
) -> Result<Box<dyn Model>, String> {
    let lines = TAGGED.iter().map(|sentence| sentence.words().join(" "));
    let corpus = Corpus::from_lines(lines).map_err(|error| error.to_string())?;
    let tags = TaggedText::of(&TAGGED, 1, &corpus).map_err(|error| error.to_string())?;
    let params = hmm().n_states(6).constraint(Constraint::None);
    run(params.with(HmmInputs::default().tags(&tags)), &corpus, checkpoint, watch)
}

fn fhmm() -> latens::fhmm::FhmmParams {
    Fhmm::params().n_layers(2).n_states(2).epochs(2).batch_sentences(4).min_count(1)
}

fn small(params: NeuralParams) -> NeuralParams {
    params.dim(3).n_layers(1).epochs(2).batch_size(2).bptt(4)
}

fn lda(checkpoint: Option<&Checkpoint>, watch: &mut Watch<'_>) -> Result<Box<dyn Model>, String> {
    let params = Lda::params().n_topics(2).n_iterations(4);
    run(params.builder(), &DOCUMENTS, checkpoint, watch)
}

fn glda(checkpoint: Option<&Checkpoint>, watch: &mut Watch<'_>) -> Result<Box<dyn Model>, String> {
    let vectors = vectors(DOCUMENTS.lexicon.vocab.len());
    let params = Glda::params().n_topics(2).n_iterations(4);
    run(params.with(GldaInputs::default().vectors(&vectors)), &DOCUMENTS, checkpoint, watch)
}

fn tagger(
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch<'_>,
) -> Result<Box<dyn Model>, String> {
    // A trained encoder would have another time in its file, and so be another encoder, in every process.
    let encoder =
        Encoder::from_model(foreign_vectors(), None).map_err(|error| error.to_string())?;
    let params = FeatureTagger::params().n_iterations(3);
    run(params.with(TaggerInputs::default().encoder(encoder)), &TAGGED, checkpoint, watch)
}

fn tagger_perceptron(
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch<'_>,
) -> Result<Box<dyn Model>, String> {
    let params = FeatureTagger::params().kind(Kind::Crf).optimizer(Optimizer::Perceptron).epochs(2);
    run(params.builder(), &TAGGED, checkpoint, watch)
}

fn vectors(n_words: usize) -> WordVectors {
    let values: Vec<f32> = (0..2 * n_words).map(|i| (i as f32).sin()).collect();
    WordVectors::new(2, values).expect("the values are finite")
}

/// A model of a kind that is not trained: word vectors of another program.
pub fn foreign_vectors() -> Vectors {
    Vectors::new(CORPUS.lexicon.clone(), vectors(CORPUS.lexicon.vocab.len()))
}

/// Trains to the end and returns the model and all checkpoints, as files.
///
/// # Panics
/// If training fails.
pub fn files_of(training: &Training) -> (Vec<u8>, Vec<Vec<u8>>) {
    let path = crate::scratch::path("checkpoint");
    let mut checkpoints = Vec::new();
    let model = (training.fit)(None, &mut |progress| {
        if let Some(checkpoint) = progress.checkpoint {
            let checkpoint = checkpoint().expect("the state can be read");
            checkpoint.save(&path).expect("there is room for a small file");
            checkpoints.push(std::fs::read(&path).expect("the file was written"));
        }
        ControlFlow::Continue(())
    });
    let model = model.unwrap_or_else(|error| panic!("{}: {error}", training.name));
    (model.to_bytes(), checkpoints)
}
