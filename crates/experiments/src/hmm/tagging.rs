//! Part-of-speech tagging with hidden Markov models of words and tags (Chiu & Rush 2020, Table 5 of the draft on
//! tagging).
//!
//! The paper trains models of 32,768 states on the whole Wall Street Journal part of the Penn Treebank. Only a tenth of
//! that text is freely available, which is too little for so many states. The experiment compares the order of the two
//! models, not their absolute figures.

use crate::cache::cache_folder;
use crate::experiment::{Effort, Experiment, Row};
use crate::tagging::representation::{Representation, greedy_clusters};
use crate::tagging::runner::Runner;
use crate::tagging::task::Task;
use anyhow::{Context, Result};
use latens::brown::BrownParams;
use latens::corpus::{Corpus, Digits, Format, Preprocessing, TaggedSentences, VocabLimits};
use latens::hmm::{Hmm, HmmInputs, HmmParams, TaggedText, WordEmbedding};
use latens::model::Fit;
use latens::tasks::tagging::{FeatureTagger, evaluate};
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hmm-tagging",
    about: "part-of-speech tagging with hidden Markov models (accuracy, %)",
    run,
};

/// A treebank, and the figures of the paper: models of words and of letters × development and test text.
struct Treebank {
    task: Task,
    paper: Option<[[f64; 2]; 2]>,
}

const TREEBANKS: [Treebank; 2] = [
    Treebank {
        task: Task {
            name: "WSJ sample",
            folder: "ptb-pos",
            files: ["wsj.train.txt", "wsj.dev.txt", "wsj.test.txt"],
            format: Format::Conll,
            column: 1,
            pos_column: None,
        },
        paper: Some([[96.25, 96.50], [96.73, 96.95]]),
    },
    Treebank {
        task: Task {
            name: "UD EWT",
            folder: "ud-ewt",
            files: ["en_ewt-ud-train.conllu", "en_ewt-ud-dev.conllu", "en_ewt-ud-test.conllu"],
            format: Format::Conllu,
            column: 3,
            pos_column: None,
        },
        paper: None,
    },
];

const MODELS: [(&str, WordEmbedding); 2] =
    [("HMM", WordEmbedding::Words), ("HMM + CharCNN", WordEmbedding::Chars)];

fn run(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for treebank in &TREEBANKS {
        for (i, (name, word_vectors)) in MODELS.into_iter().enumerate() {
            note(&format!("fitting {name} on {}", treebank.task.name));
            let hmm = treebank.fit(data, &params(word_vectors, effort))?;
            for (part, column) in [(1, "dev"), (2, "test")] {
                let column = format!("{} {column}", treebank.task.name);
                let ours = 100.0 * treebank.accuracy(data, part, &hmm)?;
                note(&format!("{name} on {column}: {ours:.2}"));
                let paper = treebank.paper.map(|paper| paper[i][part - 1]);
                rows.push(Row::new(name, column, paper, ours));
            }
        }
        rows.extend(conditional_random_fields(treebank, data, effort, note)?);
    }
    Ok(rows)
}

/// The same models as features of a conditional random field with lexical features.
fn conditional_random_fields(
    treebank: &Treebank,
    data: &Path,
    effort: Effort,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let runner = Runner {
        data,
        unlabeled: treebank.task.inputs(data, 0),
        preprocessing: Preprocessing::default().digits(Digits::Zero),
        limits: VocabLimits { min_count: 2, ..VocabLimits::default() },
        keep_sentences: None,
        cache: cache_folder(),
    };
    let brown = BrownParams::default().n_clusters(if effort.is_quick() { 64 } else { 256 });
    let representations = [
        ("words", Representation::Words),
        ("words + Brown", Representation::Brown(brown)),
        ("words + HMM states", Representation::Hmm(params(WordEmbedding::Words, effort), "state")),
    ];
    let n_iterations = if effort.is_quick() { 30 } else { 100 };
    let taggers = [("CRF", FeatureTagger::params().n_iterations(n_iterations))];
    runner.rows(&representations, std::slice::from_ref(&treebank.task), &taggers, note)
}

fn params(word_vectors: WordEmbedding, effort: Effort) -> HmmParams {
    let (n_states, epochs) = if effort.is_quick() { (512, 8) } else { (4096, 15) };
    HmmParams::default()
        .state_dropout(0.0)
        .n_states(n_states)
        .n_clusters(16)
        .dim(64)
        .epochs(epochs)
        .word_vectors(word_vectors)
        .batch_tokens(1000)
        .learning_rate(0.01)
}

impl Treebank {
    /// Fits a model. Digits are replaced by zeros, as in the paper. Words that occur once serve as unknown words: a model
    /// of words reads them as `<unk>`, a model of letters by their letters.
    fn fit(&self, data: &Path, params: &HmmParams) -> Result<Hmm> {
        let how = Preprocessing::default().digits(Digits::Zero);
        let min_count = if params.word_vectors == WordEmbedding::Words { 2 } else { 1 };
        let limits = VocabLimits { min_count, ..VocabLimits::default() };
        let inputs = self.task.inputs(data, 0);
        let corpus = Corpus::read(&inputs, &how, &limits).with_context(|| {
            format!("the folder of `--data` must contain the folder `{}`", self.task.folder)
        })?;
        let tags = TaggedText::of(&TaggedSentences::read(&inputs)?, self.task.column, &corpus)?;
        let valid = corpus.lexicon.read(&self.task.inputs(data, 1))?;
        let clusters = greedy_clusters(params, &corpus)?;
        let mut inputs = HmmInputs::default().tags(&tags);
        inputs.clusters = clusters.as_ref();
        Ok(params.clone().with(inputs).valid(&valid).fit(&corpus)?)
    }

    fn accuracy(&self, data: &Path, part: usize, hmm: &Hmm) -> Result<f64> {
        let tagger = hmm.tagger().context("the model has no tags")?;
        let text = TaggedSentences::read(&self.task.inputs(data, part))?;
        Ok(evaluate(&tagger, &text, self.task.column)?.accuracy)
    }
}
