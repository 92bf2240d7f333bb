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
    CostArgs, TAG_COLUMN, TrainResult, open_checkpoint, open_log, refuse_other_file, save_model,
    show_cost,
};
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::{Preprocessing, TaggedSentences};
use latens::model::{Fit, Params};
use latens::tasks::tagging::{
    self, Encoder, FeatureTagger, TaggerError, TaggerInputs, TaggerParams, evaluate,
};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;
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
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
    /// Tagged text to evaluate the tagger on
    #[arg(long, value_name = "FILE")]
    dev: Option<PathBuf>,
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
    /// Coefficient of L2 regularization
    #[arg(long, value_name = "C", default_value_t = TaggerParams::default().l2)]
    l2: f64,
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
    args.check_direct_words()?;
    let params = args.params(common.seed);
    params.check()?;
    args.check_dev()?;
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
    let log = args.log.as_deref().filter(|_| !args.cost.dry_run);
    let log = log.map(|path| open_log(path, args.resume)).transpose()?;
    catch_interrupts();
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
    let mut builder =
        params.with(inputs).force(args.cost.force).watch(|progress| watcher.watch(progress));
    if let Some(checkpoint) = &checkpoint {
        builder = builder.checkpoint(checkpoint);
    }
    if args.cost.dry_run {
        return show_cost(&builder.cost(&text)?, output);
    }
    let fitted = builder.fit(&text);
    let mut tagger = match fitted {
        Ok(tagger) => watcher.finish(Ok(tagger))?,
        Err(TaggerError::Fit(error)) => return watcher.finish(Err(error)),
        Err(error) => {
            let cannot = || format!("cannot train on the tags of column {}", args.column);
            return watcher.finish(Ok(())).and(Err(error).with_context(cannot));
        }
    };
    tagger.add_fact(TAG_COLUMN, args.column);
    warn_of_low_coverage(&tagger, output);
    let mut metrics = Map::new();
    metrics.insert("weights".into(), json!(tagger.n_weights()));
    for name in ["loss", "iterations", "train_errors"] {
        metrics.extend(tagger.facts().get(name).map(|value| (name.to_owned(), value.clone())));
    }
    if let Some(dev) = &dev {
        metrics.extend(measure(&tagger, dev, args.column())?);
    }
    let vocab = tagger.lexicon().vocab.len();
    save_model(&tagger, &args.output)?;
    watcher.log_result(&metrics);
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

/// Warns of encoders that know few of the words, because of other text or other preprocessing.
fn warn_of_low_coverage(tagger: &FeatureTagger, output: &Output) {
    for (name, known) in tagger.encoder_coverage() {
        let share = 100.0 * known;
        output.note(&format!("`{name}` knows {share:.1} % of the words"));
        if known < 0.5 {
            output.note(&format!(
                "warning: `{name}` knows only {share:.1} % of the words of this text\n\n\
                 hint: train the encoder with `--lowercase` or `--digits` to match its preprocessing to its text"
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
