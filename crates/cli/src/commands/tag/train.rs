use super::tagged_inputs;
use crate::args::{Common, TextArgs};
use crate::errors::hinted;
use crate::output::{Output, thousands};
use crate::paths::{check_input, check_output, refuse_same_output, refuse_second_stdin};
use crate::progress::{Watcher, catch_interrupts};
use crate::reading::watched;
use crate::train::{
    TAG_COLUMN, TrainResult, checkpoint_path, open_checkpoint, open_log, refuse_other_file,
};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use latens::corpus::{Preprocessing, TaggedSentences};
use latens::model::{Fit, Params};
use latens::tasks::tagging::{
    self, Encoder, FeatureTagger, TaggerError, TaggerInputs, TaggerParams, evaluate,
};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// Learn a tagger from tagged text
///
/// Text in columns goes in; out comes a tagger in one file, with the encoders in it. It looks at words, their
/// letters and neighbours, and at what encoders know of them: any model of which `latens encode` writes features.
/// Spans are read as IOB1, IOB2 or BIOES; tags come back as IOB2. `latens tag eval` measures it.
#[derive(Args)]
pub(crate) struct TagTrainArgs {
    #[command(flatten)]
    text: TextArgs,
    /// The column that has the tags, the first one being 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    column: u16,
    /// A column of parts of speech to look at, too
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pos_column: Option<u16>,
    /// A model whose features of words are used, perhaps with their kind after a colon; may be named often
    #[arg(long = "encoder", value_name = "MODEL[:KIND]")]
    encoders: Vec<String>,
    /// Where to write the tagger
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
    /// Tagged text to measure the tagger on
    #[arg(long, value_name = "FILE")]
    dev: Option<PathBuf>,
    /// Whether the tags of neighbours are found together
    #[arg(long, value_enum, default_value_t = KindArg::Crf)]
    kind: KindArg,
    /// Leave out the words themselves and their letters: look at encoders only
    #[arg(long)]
    no_lexical: bool,
    /// How `crf` learns
    #[arg(long, value_enum, default_value_t = OptimizerArg::Lbfgs)]
    optimizer: OptimizerArg,
    /// How the tagger writes spans down for itself
    #[arg(long, value_enum, default_value_t = SpansArg::Iob2)]
    spans: SpansArg,
    /// Which tags an attribute of words has weights for
    #[arg(long, value_enum, default_value_t = PairsArg::Observed)]
    pairs: PairsArg,
    /// Attributes of words that are seen fewer times are left out
    #[arg(long, value_name = "N", default_value_t = TaggerParams::default().min_count)]
    min_count: u64,
    /// What the sum of squares of weights is multiplied with; more makes them smaller
    #[arg(long, value_name = "C", default_value_t = TaggerParams::default().l2)]
    l2: f64,
    /// What the sum of sizes of weights is multiplied with; more makes more of them zero
    #[arg(long, value_name = "C", default_value_t = TaggerParams::default().l1)]
    l1: f64,
    /// The most steps of L-BFGS
    #[arg(long, value_name = "N", default_value_t = TaggerParams::default().n_iterations)]
    n_iterations: usize,
    /// How often the perceptron goes through the text
    #[arg(long, value_name = "N", default_value_t = TaggerParams::default().epochs)]
    epochs: usize,
    /// How many words on either side encoders' features are taken from, 0 to 5
    #[arg(long, value_name = "N", default_value_t = TaggerParams::default().window)]
    window: usize,
    /// The standard deviation that the numbers of dense encoders are scaled to
    #[arg(long, value_name = "S", default_value_t = TaggerParams::default().scale)]
    scale: f64,
    /// Hidden units of a `local` tagger, which then looks at encoders only; 0 for a linear one
    #[arg(long, value_name = "N", default_value_t = TaggerParams::default().n_hidden)]
    n_hidden: usize,
    /// Words that a `local` tagger gives their most frequent tag, as it does with punctuation, e.g., `and,the`
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    direct_words: Vec<String>,
    /// Where words end in plain text that is tagged later
    #[arg(long, value_enum, default_value_t)]
    tokenize: crate::args::TokenizeArg,
    /// Go on from the checkpoint that an interrupted run left
    #[arg(long)]
    resume: bool,
    /// Write one JSON line an iteration to this file
    #[arg(long, value_name = "FILE.jsonl")]
    log: Option<PathBuf>,
}

/// A choice of parameters and its flag: the same names.
macro_rules! choice {
    ($name:ident for $of:ident { $($variant:ident $help:literal),+ }) => {
        #[derive(Clone, Copy, ValueEnum)]
        enum $name { $(#[doc = $help] $variant),+ }

        impl From<$name> for tagging::$of {
            fn from(choice: $name) -> tagging::$of {
                match choice { $($name::$variant => tagging::$of::$variant),+ }
            }
        }
    };
}

choice!(KindArg for Kind {
    Crf "Yes: a linear-chain conditional random field",
    Local "No: a classifier of each word by itself"
});
choice!(OptimizerArg for Optimizer {
    Lbfgs "To the maximum of the likelihood",
    Perceptron "From its errors, sentence by sentence: fast"
});
choice!(SpansArg for Scheme {
    Iob2 "`B` for the first word of a span, `I` for others",
    Bioes "Also `E` for the last word and `S` for a span of one: better for names"
});
choice!(PairsArg for Pairs {
    Observed "Those that it was seen with",
    All "All of them: larger, and sometimes better"
});

pub(super) fn run(args: &TagTrainArgs, common: &Common, output: &Output) -> Result<()> {
    let started = Instant::now();
    args.check_direct_words()?;
    let params = args.params(common.seed);
    params.check()?;
    args.check_files()?;
    let encoders = args.open_encoders()?;
    let checkpoint_path = checkpoint_path(&args.output);
    let checkpoint = match args.resume {
        true => Some(open_checkpoint(&checkpoint_path)?),
        false => refuse_other_file(&checkpoint_path).map(|()| None)?,
    };
    let text = TaggedSentences::read(&watched(
        tagged_inputs(&args.text.reading, &args.text.files)?,
        output,
    ))?;
    let dev = args.dev.as_ref().map(|dev| -> Result<TaggedSentences> {
        let dev =
            TaggedSentences::read(&tagged_inputs(&args.text.reading, std::slice::from_ref(dev))?)?;
        dev.check_column(args.column())?;
        args.params(common.seed).pos_column.map_or(Ok(()), |column| dev.check_column(column))?;
        Ok(dev)
    });
    let dev = dev.transpose()?;
    let log = args.log.as_deref().map(|path| open_log(path, args.resume)).transpose()?;
    catch_interrupts()?;
    output.note(&format!(
        "{} words, {} sentences",
        thousands(text.n_tokens()),
        thousands(text.len())
    ));
    let mut watcher = Watcher::new(output, log, Some(checkpoint_path.clone()), args.resume);
    let preprocessing =
        Preprocessing { tokenize: args.tokenize.into(), ..Preprocessing::default() };
    let mut inputs = TaggerInputs::default().column(args.column()).preprocessing(preprocessing);
    inputs.encoders = encoders;
    let mut builder = params.with(inputs).watch(|progress| watcher.watch(progress));
    if let Some(checkpoint) = &checkpoint {
        builder = builder.checkpoint(checkpoint);
    }
    let fitted = builder.fit(&text);
    let mut tagger = match fitted {
        Ok(tagger) => watcher.finish(Ok(tagger))?,
        Err(TaggerError::Fit(error)) => return watcher.finish(Err(error)),
        Err(error) => {
            let cannot = || format!("cannot learn tags from column {}", args.column);
            return watcher.finish(Ok(())).and(Err(error).with_context(cannot));
        }
    };
    tagger.add_fact(TAG_COLUMN, args.column);
    warn_of_strange_encoders(&tagger, output);
    let mut metrics = Map::new();
    metrics.insert("weights".into(), json!(tagger.n_weights()));
    for name in ["loss", "iterations", "train_errors"] {
        metrics.extend(tagger.facts().get(name).map(|value| (name.to_owned(), value.clone())));
    }
    if let Some(dev) = &dev {
        metrics.extend(measure(&tagger, dev, args.column())?);
    }
    let vocab = tagger.lexicon().vocab.len();
    tagger.save(&args.output)?;
    watcher.log_result(&metrics)?;
    if watcher.has_saved() || checkpoint.is_some() {
        let _ = fs::remove_file(&checkpoint_path);
    }
    TrainResult {
        model: FeatureTagger::KIND,
        path: args.output.display().to_string(),
        seconds: started.elapsed().as_secs_f64(),
        tokens: text.n_tokens(),
        vocab,
        metrics,
    }
    .show(output)
}

/// An encoder that knows few of the words was made of other text, or of text that was written in another way.
fn warn_of_strange_encoders(tagger: &FeatureTagger, output: &Output) {
    for (name, known) in tagger.encoder_coverage() {
        let share = 100.0 * known;
        output.note(&format!("`{name}` knows {share:.1} % of the words"));
        if known < 0.5 {
            output.note(&format!(
                "warning: `{name}` knows few of the words of this text\n\n\
                 hint: train it with `--lowercase` or `--digits`, so that it reads words as its own text has them"
            ));
        }
    }
}

fn measure(
    tagger: &FeatureTagger,
    dev: &TaggedSentences,
    column: usize,
) -> Result<Map<String, Value>> {
    let scores = evaluate(tagger, dev, column).context("cannot measure on the text of `--dev`")?;
    let mut metrics = Map::new();
    metrics.insert("dev_accuracy".into(), json!(scores.accuracy));
    metrics.extend(scores.spans.map(|spans| ("dev_f1".to_owned(), json!(spans.f1))));
    Ok(metrics)
}

impl TagTrainArgs {
    fn column(&self) -> usize {
        usize::from(self.column) - 1
    }

    fn check_direct_words(&self) -> Result<()> {
        if self.direct_words.is_empty() || matches!(self.kind, KindArg::Local) {
            return Ok(());
        }
        let message = "`--direct-words` is for taggers of each word by itself alone";
        Err(hinted(message, "leave it out, or add `--kind local`"))
    }

    fn check_files(&self) -> Result<()> {
        refuse_second_stdin(self.text.files.iter().chain(&self.dev))?;
        let encoders: Vec<PathBuf> = self.encoders.iter().map(|name| split(name).0).collect();
        let inputs = || self.text.files.iter().chain(&self.dev).chain(&encoders);
        check_output(&self.output, inputs())?;
        if let Some(log) = &self.log {
            check_output(log, inputs())?;
            refuse_same_output(log, &self.output, "the model and the log")?;
        }
        self.dev.as_deref().map_or(Ok(()), check_input)
    }

    fn open_encoders(&self) -> Result<Vec<Encoder>> {
        let open = |name: &String| {
            let (path, kind) = split(name);
            Ok(latens::open_encoder(&path, kind.as_deref())?)
        };
        let encoders: Vec<Encoder> = self.encoders.iter().map(open).collect::<Result<_>>()?;
        let network = matches!(self.kind, KindArg::Local) && self.n_hidden > 0;
        if encoders.is_empty() && (self.no_lexical || network) {
            let message = "a tagger that does not look at words themselves needs an encoder";
            return Err(hinted(message, "name one with `--encoder`, e.g., `--encoder news.brown`"));
        }
        Ok(encoders)
    }

    fn params(&self, seed: u64) -> TaggerParams {
        FeatureTagger::params()
            .kind(self.kind.into())
            .optimizer(self.optimizer.into())
            .lexical(!self.no_lexical)
            .pos_column(self.pos_column.map(|column| usize::from(column) - 1))
            .spans(self.spans.into())
            .pairs(self.pairs.into())
            .min_count(self.min_count)
            .l2(self.l2)
            .l1(self.l1)
            .n_iterations(self.n_iterations)
            .epochs(self.epochs)
            .window(self.window)
            .scale(self.scale)
            .n_hidden(self.n_hidden)
            .direct_words(self.direct_words.clone())
            .seed(seed)
    }
}

/// `news.hmm:posterior` ─▶ `news.hmm` and `posterior`. A file whose own name has a colon is taken as it is.
fn split(name: &str) -> (PathBuf, Option<String>) {
    match name.rsplit_once(':') {
        Some((path, kind)) if !PathBuf::from(name).exists() => (path.into(), Some(kind.to_owned())),
        _ => (name.into(), None),
    }
}
