//! Trainings of every kind of model, and what the models are used for.

use super::effort::Effort;
use super::model_file::Contents;
use super::runner::{Expected, Runner};
use anyhow::{Result, bail};

/// A way to train a model, and to use it.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The command. `N` stands for the number of iterations, if it has any.
    train: &'static str,
    /// Commands that use the model `M`.
    uses: &'static [&'static str],
}

const LANGUAGE_MODEL: &[&str] = &["perplexity M few.txt", "sample M"];
const HMM: &[&str] = &["perplexity M few.txt", "sample M", "encode M few.txt"];
const ENCODER: &[&str] = &["encode M few.txt"];
const VECTORS: &[&str] = &["encode M few.txt", "nearest M w1"];
const TOPICS: &[&str] = &["topics show M", "topics infer M documents.tsv --fields label,text"];
const TAGGER: &[&str] = &["tag run M few.txt"];

const KINDS: &[Kind] = &[
    kind("ngram", "train ngram text.txt --order 3", LANGUAGE_MODEL),
    kind("brown", "train brown text.txt --n-clusters 8", ENCODER),
    kind("exchange", "train brown text.txt --n-clusters 8 --algorithm exchange", ENCODER),
    kind("word2vec", "train word2vec text.txt --dim 8 --min-count 1 --epochs N", VECTORS),
    kind("lds", "train lds text.txt --dim 4 --lags 4 --ssid-lags 2 --n-iterations N", VECTORS),
    kind("hmm", "train hmm text.txt --n-states 32 --n-clusters 8 --dim 16 --epochs N", HMM),
    kind(
        "hmm-gradient",
        "train hmm text.txt --n-states 8 --constraint none --dim 8 --learning gradient --valid few.txt --epochs N",
        HMM,
    ),
    kind(
        "hmm-scalar",
        "train hmm text.txt --n-states 16 --constraint none --parameterization scalar --epochs N",
        HMM,
    ),
    kind(
        "hmm-tags",
        "train hmm tags.conll --tags 2 --n-states 20 --constraint none --dim 8 --epochs N",
        &["perplexity M few.txt", "tag run M few.txt"],
    ),
    kind("fhmm", "train fhmm text.txt --n-layers 2 --n-states 4 --epochs N", ENCODER),
    kind("ff", "train ff text.txt --dim 8 --epochs N", LANGUAGE_MODEL),
    kind("rnn", "train rnn text.txt --dim 8 --valid few.txt --epochs N", LANGUAGE_MODEL),
    kind("lstm", "train lstm text.txt --dim 8 --valid few.txt --epochs N", LANGUAGE_MODEL),
    kind(
        "lda",
        "train lda documents.tsv --fields label,text --n-topics 5 --n-iterations N",
        TOPICS,
    ),
    kind(
        "glda",
        "train glda documents.tsv --fields label,text --vectors vectors.txt --n-topics 4 --n-iterations N",
        TOPICS,
    ),
    kind("tagger", "tag train tags.conll --column 2 --n-iterations N", TAGGER),
    kind("perceptron", "tag train tags.conll --column 2 --optimizer perceptron --epochs N", TAGGER),
    kind("vectors", "import vectors.txt --from word2vec", VECTORS),
];

const fn kind(name: &'static str, train: &'static str, uses: &'static [&'static str]) -> Kind {
    Kind { name, train, uses }
}

/// A kind with a model that was trained without interruption, in `NAME.model`.
pub(crate) struct Trained {
    pub(crate) kind: &'static Kind,
    n_iterations: usize,
    pub(crate) seconds: f64,
    pub(crate) model: Contents,
}

impl Trained {
    /// The command that trains the model again, as another file.
    pub(crate) fn command(&self, output: &str) -> String {
        self.kind.command(self.n_iterations, output)
    }

    /// Whether training can be interrupted and resumed.
    pub(crate) fn resumes(&self) -> bool {
        self.kind.name != "vectors"
    }

    /// The commands that use the model in a file.
    pub(crate) fn uses(&self, file: &str) -> impl Iterator<Item = String> {
        self.kind.uses.iter().map(move |command| in_words(command, "M", file))
    }
}

impl Kind {
    fn command(&self, n_iterations: usize, output: &str) -> String {
        // One thread: some trainers give another model with each number of threads.
        let train = in_words(self.train, "N", &n_iterations.to_string());
        format!("{train} -o {output} --seed 7 --threads 1 --quiet")
    }

    fn has_iterations(&self) -> bool {
        self.train.split(' ').any(|word| word == "N")
    }
}

fn in_words(command: &str, word: &str, replacement: &str) -> String {
    let words = command.split(' ').map(|other| if other == word { replacement } else { other });
    words.collect::<Vec<_>>().join(" ")
}

/// Trains one model of each kind and uses it. The number of iterations is chosen so that training takes the wanted time.
pub(crate) fn train_all(runner: &mut Runner, effort: &Effort) -> Result<Vec<Trained>> {
    const FIRST_GUESS: usize = 4;
    let mut all = Vec::new();
    for kind in KINDS {
        let file = format!("{}.model", kind.name);
        let mut n_iterations = FIRST_GUESS;
        let mut ran = runner.run(&kind.command(n_iterations, &file), Expected::Success)?;
        if kind.has_iterations() {
            let factor = effort.training.as_secs_f64() / ran.seconds.max(0.01);
            n_iterations = (FIRST_GUESS as f64 * factor).clamp(2.0, 1e5) as usize;
            ran = runner.run(&kind.command(n_iterations, &file), Expected::Success)?;
        }
        if !ran.succeeded {
            bail!("cannot train a model of kind `{}`", kind.name);
        }
        let model = Contents::read(&runner.path(&file))?;
        let trained = Trained { kind, n_iterations, seconds: ran.seconds, model };
        for command in trained.uses(&file) {
            runner.run(&command, Expected::Success)?;
        }
        all.push(trained);
    }
    Ok(all)
}
