use super::inputs::tagged_inputs;
use crate::args::{Common, EncoderArg, TextArgs};
use crate::choice::choice;
use crate::errors::hinted;
use crate::interrupts::catch_interrupts;
use crate::output::{Output, thousands};
use crate::paths::{check_input, checkpoint_path};
use crate::progress::Watcher;
use crate::reading::watched;
use crate::train::{
    CostArgs, TAG_COLUMN, TrainResult, find_checkpoint, open_log, save_model, show_cost,
};
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::{Preprocessing, TaggedSentences};
use latens::model::{Device, Fit, Params};
use latens::tasks::tagging::{
    self, Encoder, FeatureTagger, TaggerError, TaggerInputs, TaggerParams, evaluate,
};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

/// Train a tagger on tagged text
///
/// Reads text in columns and writes a tagger, which is a single file that includes its encoders. Its features are words,
/// their characters, their context, and the features of encoders: models that `latens encode` supports. Spans are read as
/// IOB1, IOB2 or BIOES and predicted as IOB2. `latens tag eval` evaluates the tagger.
#[derive(Args)]
pub(crate) struct TagTrainArgs {
    #[command(flatten)]
    text: TextArgs,
    /// Column of the tags, counted from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    column: u16,
    /// Column of part-of-speech tags to use as features, counted from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pos_column: Option<u16>,
    /// Model whose features are used, optionally with their kind (repeatable)
    #[arg(long = "encoder", value_name = "MODEL[:KIND]")]
    encoders: Vec<EncoderArg>,
    /// Path of the tagger to write
    #[arg(short, long, value_name = "PATH", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Tagged text to evaluate the tagger on. Training ends when the score on it no longer improves
    #[arg(long, value_name = "FILE")]
    dev: Option<PathBuf>,
    /// Number of consecutive evaluations on `--dev` without a better score after which training stops; 0 never stops
    /// early. The tagger is evaluated every 10 iterations, or after every epoch of the perceptron
    #[arg(long, value_name = "N", default_value_t = TaggerInputs::default().patience, requires = "dev")]
    patience: usize,
    /// Kind of tagger
    #[arg(long, value_enum, default_value_t = KindArg::Crf)]
    kind: KindArg,
    /// Use no lexical features (words and their characters), only encoders
    #[arg(long)]
    no_lexical: bool,
    /// Training algorithm of `crf`
    #[arg(long, value_enum, default_value_t = OptimizerArg::Lbfgs)]
    optimizer: OptimizerArg,
    /// Internal encoding of spans
    #[arg(long, value_enum, default_value_t = SpansArg::Iob2)]
    spans: SpansArg,
    /// Pairs of attribute and tag that have a weight
    #[arg(long, value_enum, default_value_t = PairsArg::Observed)]
    pairs: PairsArg,
    /// Minimum number of occurrences of a lexical attribute; rarer ones are dropped
    #[arg(long, value_name = "N", default_value_t = TaggerParams::default().min_count)]
    min_count: u64,
    /// Coefficient of L2 regularization; `auto` tries several and keeps the best one on `--dev` [default: 0.5]
    #[arg(long, value_name = "C")]
    l2: Option<L2Arg>,
    /// Coefficient of L1 regularization
    #[arg(long, value_name = "C", default_value_t = TaggerParams::default().l1)]
    l1: f64,
    /// Maximum number of L-BFGS iterations
    #[arg(long, value_name = "N", default_value_t = TaggerParams::default().n_iterations)]
    n_iterations: usize,
    /// Number of passes of the perceptron over the training text
    #[arg(long, value_name = "N", default_value_t = TaggerParams::default().epochs)]
    epochs: usize,
    /// Number of words on either side whose encoder features are used, 0 to 5
    #[arg(long, value_name = "N", default_value_t = TaggerParams::default().window)]
    window: usize,
    /// Standard deviation to which the features of dense encoders are scaled
    #[arg(long, value_name = "S", default_value_t = TaggerParams::default().scale)]
    scale: f64,
    /// Number of hidden units of a `local` tagger, which then uses encoders only; 0 for a linear tagger
    #[arg(long, value_name = "N", default_value_t = TaggerParams::default().n_hidden)]
    n_hidden: usize,
    /// Words that a `local` tagger always assigns their most frequent tag, like punctuation, e.g., `and,the`
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    direct_words: Vec<String>,
    /// Tokenization of plain text to tag
    #[arg(long, value_enum, default_value_t)]
    tokenize: crate::args::TokenizeArg,
    /// Continue from the checkpoint of an interrupted run
    #[arg(long)]
    resume: bool,
    /// Write one JSON line per iteration to this file
    #[arg(long, value_name = "FILE.jsonl")]
    log: Option<PathBuf>,
    #[command(flatten)]
    cost: CostArgs,
}

/// Values that `--l2 auto` tries, in ascending order: half a decade apart, around the default.
const L2_GRID: [f64; 6] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0];

/// The coefficient of regularization, or `auto`.
#[derive(Clone, Copy)]
enum L2Arg {
    Auto,
    Value(f64),
}

impl FromStr for L2Arg {
    type Err = String;

    fn from_str(text: &str) -> Result<L2Arg, String> {
        match text {
            "auto" => Ok(L2Arg::Auto),
            text => {
                text.parse().map(L2Arg::Value).map_err(|_| "expected a number or `auto`".into())
            }
        }
    }
}

choice!(KindArg for tagging::Kind {
    Crf "Linear-chain conditional random field: tags of a sentence are predicted jointly",
    Local "Classifier: the tag of each word is predicted independently"
});
choice!(OptimizerArg for tagging::Optimizer {
    Lbfgs "Maximum likelihood by L-BFGS",
    Perceptron "Averaged perceptron; fast"
});
choice!(SpansArg into tagging::Scheme {
    Iob2 "`B` for the first word of a span, `I` for the others",
    Bioes "Also `E` for the last word and `S` for a single word; better for named entities"
});
choice!(PairsArg for tagging::Pairs {
    Observed "Pairs that occur in the training text",
    All "All pairs; larger and sometimes more accurate"
});

pub(super) fn run(args: &TagTrainArgs, common: &Common, output: &Output) -> Result<()> {
    let started = Instant::now();
    args.check_column()?;
    args.check_direct_words()?;
    let l2_values = args.l2_values()?;
    l2_values.iter().try_for_each(|&l2| args.params(common.seed).l2(l2).check())?;
    args.check_dev()?;
    let encoders = args.open_encoders()?;
    let checkpoint_path = args.output.as_deref().and_then(checkpoint_path);
    let checkpoint = find_checkpoint(checkpoint_path.as_deref(), args.resume)?;
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
    let log = args.log.as_deref().filter(|_| !args.cost.dry_run);
    let log = log.map(|path| open_log(path, args.resume)).transpose()?;
    catch_interrupts();
    output.note(&format!(
        "{} words, {} sentences",
        thousands(text.n_tokens()),
        thousands(text.len())
    ));
    // The checkpoint of one value of `--l2` says nothing about the others.
    let keeps_checkpoint = l2_values.len() == 1 && !args.cost.dry_run;
    let watcher_path = checkpoint_path.clone().filter(|_| keeps_checkpoint);
    let mut watcher = Watcher::new(output, log, watcher_path, args.resume);
    let mut encoders = Some(encoders);
    let mut chosen: Option<(f64, f64, FeatureTagger)> = None;
    for (i, l2) in l2_values.iter().copied().enumerate() {
        let encoders = encoders.take().map_or_else(|| args.open_encoders(), Ok)?;
        let params = args.params(common.seed).l2(l2);
        let mut builder = params
            .with(args.inputs(encoders, dev.clone()))
            .force(args.cost.force)
            .watch(|progress| watcher.watch(progress));
        if let Some(checkpoint) = &checkpoint {
            builder = builder.checkpoint(checkpoint);
        }
        if args.cost.dry_run {
            return show_cost(&builder.cost(&text)?, Device::Cpu, output);
        }
        let tagger = match builder.fit(&text) {
            Ok(tagger) => tagger,
            Err(TaggerError::Fit(error)) => return watcher.finish(Err(error)),
            Err(error) => {
                let cannot = || format!("cannot train on the tags of column {}", args.column);
                return watcher.finish(Ok(())).and(Err(error).with_context(cannot));
            }
        };
        if l2_values.len() == 1 {
            chosen = Some((0.0, l2, tagger));
            break;
        }
        let dev = dev.as_ref().expect("`--l2 auto` needs `--dev`");
        let scores = evaluate(&tagger, dev, args.column())?;
        let score = scores.spans.map_or(scores.accuracy, |spans| spans.f1);
        output.note(&format!(
            "--l2 {l2} ({} of {}): {:.2} % on the development set",
            i + 1,
            l2_values.len(),
            100.0 * score
        ));
        // The grid ascends: of equal scores, the stronger regularization is kept.
        if chosen.as_ref().is_none_or(|best| score >= best.0) {
            chosen = Some((score, l2, tagger));
        }
    }
    watcher.finish(Ok(()))?;
    let (_, l2, mut tagger) = chosen.expect("there is at least one value");
    tagger.add_fact(TAG_COLUMN, args.column);
    warn_of_low_coverage(&tagger, output);
    let mut metrics = Map::new();
    metrics.insert("weights".into(), json!(tagger.n_weights()));
    for name in ["loss", "iterations", "train_errors", "best_iteration"] {
        metrics.extend(tagger.facts().get(name).map(|value| (name.to_owned(), value.clone())));
    }
    if l2_values.len() > 1 {
        metrics.insert("l2".into(), json!(l2));
    }
    let vocab = tagger.lexicon().vocab.len();
    // Before the evaluation, which may fail.
    let path = args.output.as_ref().expect("only a dry run has no output");
    save_model(&tagger, path)?;
    if let Some(old) = checkpoint_path
        && (watcher.has_saved() || checkpoint.is_some())
    {
        let _ = fs::remove_file(old);
    }
    if let Some(dev) = &dev {
        metrics.extend(measure(&tagger, dev, args.column())?);
    }
    watcher.log_result(&metrics);
    TrainResult {
        model: FeatureTagger::KIND,
        path: path.display().to_string(),
        seconds: started.elapsed().as_secs_f64(),
        tokens: text.n_tokens(),
        vocab,
        metrics,
    }
    .show(output)
}

/// Warns of encoders that know few of the words, because of other text or other preprocessing.
fn warn_of_low_coverage(tagger: &FeatureTagger, output: &Output) {
    for (name, known) in tagger.encoder_coverage() {
        let share = 100.0 * known;
        output.note(&format!("`{name}` knows {share:.1} % of the words"));
        if known < 0.5 {
            output.note(&format!(
                "warning: `{name}` knows only {share:.1} % of the words of this text\n\n\
                 hint: train the encoder on text like this one, or set `--lowercase` or `--digits` as its text needs"
            ));
        }
    }
}

fn measure(
    tagger: &FeatureTagger,
    dev: &TaggedSentences,
    column: usize,
) -> Result<Map<String, Value>> {
    let scores = evaluate(tagger, dev, column).context("cannot evaluate on the text of `--dev`")?;
    let mut metrics = Map::new();
    metrics.insert("dev_accuracy".into(), json!(scores.accuracy));
    metrics.extend(scores.spans.map(|spans| ("dev_f1".to_owned(), json!(spans.f1))));
    Ok(metrics)
}

impl TagTrainArgs {
    fn column(&self) -> usize {
        usize::from(self.column) - 1
    }

    fn check_column(&self) -> Result<()> {
        if self.column > 1 {
            return Ok(());
        }
        Err(hinted(
            "`--column 1` is the column of the words, not of their tags",
            "columns are counted from 1; tags are in column 2 or later, and in column 4 or 5 of CoNLL-U",
        ))
    }

    /// The values of `--l2` to try, in ascending order.
    fn l2_values(&self) -> Result<Vec<f64>> {
        let refuse = |message: &str, hint: &str| Err(hinted(message, hint));
        if self.l2.is_some() && matches!(self.optimizer, OptimizerArg::Perceptron) {
            return refuse("a perceptron does not use `--l2`", "omit `--l2` or `--optimizer`");
        }
        match self.l2 {
            None => return Ok(vec![TaggerParams::default().l2]),
            Some(L2Arg::Value(l2)) => return Ok(vec![l2]),
            Some(L2Arg::Auto) => {}
        }
        if self.dev.is_none() {
            return refuse("`--l2 auto` needs a development set", "pass one with `--dev`");
        }
        if self.resume {
            let hint = "repeat the run without `--resume`, or with the best value so far";
            return refuse("a run with `--l2 auto` cannot be resumed", hint);
        }
        Ok(L2_GRID.to_vec())
    }

    fn inputs(&self, encoders: Vec<Encoder>, dev: Option<TaggedSentences>) -> TaggerInputs {
        let preprocessing = Preprocessing::default().tokenize(self.tokenize.into());
        let mut inputs = TaggerInputs::default().column(self.column()).preprocessing(preprocessing);
        (inputs.encoders, inputs.dev, inputs.patience) = (encoders, dev, self.patience);
        inputs
    }

    fn check_direct_words(&self) -> Result<()> {
        if self.direct_words.is_empty() || matches!(self.kind, KindArg::Local) {
            return Ok(());
        }
        let message = "`--direct-words` requires `--kind local`";
        Err(hinted(message, "omit `--direct-words`, or add `--kind local`"))
    }

    fn check_dev(&self) -> Result<()> {
        self.dev.as_deref().map_or(Ok(()), check_input)
    }

    fn open_encoders(&self) -> Result<Vec<Encoder>> {
        let open = |encoder: &EncoderArg| {
            Ok(latens::open_encoder(&encoder.path, encoder.kind.as_deref())?)
        };
        let encoders: Vec<Encoder> = self.encoders.iter().map(open).collect::<Result<_>>()?;
        let network = matches!(self.kind, KindArg::Local) && self.n_hidden > 0;
        if encoders.is_empty() && (self.no_lexical || network) {
            let message = "a tagger without lexical features needs an encoder";
            return Err(hinted(message, "add one with `--encoder`, e.g., `--encoder news.brown`"));
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
