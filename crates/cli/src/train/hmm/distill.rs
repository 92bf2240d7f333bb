use super::args::{Constraint, HmmModelArgs, Learning, Parameterization};
use crate::args::{Common, ReadingArgs};
use crate::errors::hinted;
use crate::interrupts::interrupted;
use crate::output::{Output, complain, thousands};
use crate::paths::{cannot_write, check_input};
use crate::reading::watched;
use crate::train::training::{HeldOut, RunArgs, open_log};
use anyhow::{Context, Result};
use clap::Args;
use latens::brown::{Algorithm, Brown};
use latens::corpus::{Corpus, Lexicon, Sentences, WordId};
use latens::hmm::{HmmInputs, Teacher};
use latens::model::{
    Device, Fit, FitError, LanguageModel, Model, Params, SampleSize, WordClusters, check_that,
    fingerprint,
};
use serde_json::{Map, json};
use std::fs::{self, File};
use std::io::{BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Distill a language model into a hidden Markov model
///
/// Draws text from a language model, the teacher, and trains a hidden Markov model, the student, on it. The student has
/// the vocabulary of the teacher. It computes exactly how probable constraints on the rest of a sentence are, which the
/// teacher cannot, and can therefore guide generation (`latens generate --guide`). Every epoch reads fresh samples and
/// the text of `--text`. With a validation set (`--valid`), the model of the best epoch is kept.
#[derive(Args)]
pub(crate) struct DistillArgs {
    /// Language model to learn from
    teacher: PathBuf,
    /// Text to learn from in addition to the samples, such as the training text of the teacher
    #[arg(long, value_name = "FILE")]
    text: Vec<PathBuf>,
    /// Number of times that each epoch reads the text of `--text`
    #[arg(long, value_name = "N", default_value_t = 1)]
    text_weight: usize,
    /// Total number of tokens to draw, divided among the epochs; units are K, M and G
    #[arg(long, value_name = "N", default_value = "10M", value_parser = parse_count)]
    n_tokens: usize,
    /// Write the samples to this file, one sentence per line
    #[arg(long, value_name = "FILE")]
    keep_samples: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    model: HmmModelArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// Number of tokens to learn clusters from, without a text.
const N_CLUSTERED: usize = 1_000_000;

pub(crate) fn run(args: &DistillArgs, common: &Common, output: &Output) -> Result<()> {
    let params = args.model.params(common.seed);
    params.check()?;
    args.check()?;
    let checkpoint = args.run.open_checkpoint()?;
    let started = Instant::now();
    let opened = &*latens::open(&args.teacher)?;
    let teacher = opened.as_language_model().ok_or_else(|| {
        hinted(
            format!(
                "`{}` is {}, not a language model",
                args.teacher.display(),
                opened.description()
            ),
            "train a teacher, e.g., `latens train lstm news.txt -o news.lstm`",
        )
    })?;
    let lexicon = opened.lexicon().clone();
    let corpus = args.corpus(teacher, lexicon, common.seed, output)?;
    let valid = args.read(&args.run.valid.iter().cloned().collect::<Vec<_>>(), &corpus, output)?;
    let clusters = args.clusters(&corpus, output)?;
    let samples = args.keep_samples.as_deref().map(|path| Samples::open(path, args.run.resume));
    let samples = samples.transpose()?;
    let weight = if args.text.is_empty() { 0 } else { args.text_weight };
    let bar = Bar::new(output);
    let vocab = &corpus.lexicon.vocab;
    let (words, read) = (|id: WordId| vocab.word(id).to_owned(), corpus.sentences.n_tokens());
    let mut distilled = Teacher::new(teacher, file_fingerprint(&args.teacher)?, args.n_tokens)
        .text_weight(weight)
        .device(drawing_device(opened, args.model.device))
        .watch(|n, total| bar.show(n, total));
    if let Some(samples) = &samples {
        distilled = distilled.keep(|texts| samples.write(texts, &words));
    }
    let sizes = (args.n_tokens + read * weight, vocab.len());
    let corpus = corpus.clone();
    let mut training = args.run.begin_with(started, corpus, sizes, valid, checkpoint, output)?;
    let mut inputs = HmmInputs::default().teacher(&distilled);
    inputs.clusters = clusters.as_ref();
    let device = args.model.device;
    let held_out = HeldOut::WhileTraining;
    let Some(mut student) = training.fit(params, inputs, device, held_out, output)? else {
        return Ok(());
    };
    student.add_fact("teacher", opened.kind());
    student.add_fact("drawn_tokens", args.n_tokens);
    let mut metrics = Map::new();
    metrics.insert("weights".into(), json!(student.n_weights()));
    let facts = ["train_perplexity", "valid_perplexity", "seconds_per_epoch"];
    training.finish(&student, metrics, &facts, output)
}

impl DistillArgs {
    fn check(&self) -> Result<()> {
        check_that(self.n_tokens > 0, "n_tokens", "above 0", self.n_tokens)?;
        let by_em = matches!(self.model.parameterization, Parameterization::Scalar)
            && matches!(self.model.learning, Learning::Em);
        if by_em {
            return Err(hinted(
                "Baum–Welch reads the same text in every iteration, but a teacher draws fresh text",
                "use `--learning gradient`, or keep samples with `latens sample` and train on them with `latens train hmm`",
            ));
        }
        check_input(&self.teacher)?;
        self.text.iter().chain(&self.run.valid).try_for_each(|path| check_input(path))?;
        self.model.check_files()
    }

    fn read(
        &self,
        files: &[PathBuf],
        corpus: &Corpus,
        output: &Output,
    ) -> Result<Option<Sentences>> {
        if files.is_empty() {
            return Ok(None);
        }
        let inputs = watched(self.reading.inputs(files)?, output);
        Ok(Some(corpus.lexicon.read(&inputs)?))
    }

    /// The text, or without one a sample, from which only clusters are learned.
    fn corpus(
        &self,
        teacher: &dyn LanguageModel,
        lexicon: Lexicon,
        seed: u64,
        output: &Output,
    ) -> Result<Corpus> {
        let empty = Sentences::from_words(Vec::<Vec<WordId>>::new());
        let corpus = Corpus { lexicon, sentences: empty };
        if let Some(sentences) = self.read(&self.text, &corpus, output)? {
            return Ok(Corpus { sentences, ..corpus });
        }
        let size = SampleSize::of_tokens(self.n_tokens.min(N_CLUSTERED), 64);
        let bar = Bar::new(output);
        // Far from the seeds of epochs.
        let texts =
            teacher.sample_texts(size, !seed, Device::Cpu, &mut |n| bar.show(n, size.total()))?;
        let sentences = texts.iter().flat_map(|text| {
            let whole = text.rsplitn(2, |&word| word == WordId::EOS).nth(1).unwrap_or(&[]);
            whole.split(|&word| word == WordId::EOS)
        });
        Ok(Corpus { sentences: Sentences::from_words(sentences), ..corpus })
    }

    /// Clusters for all words of the vocabulary, since a teacher may draw words that the text does not contain.
    fn clusters(&self, corpus: &Corpus, output: &Output) -> Result<Option<WordClusters>> {
        if !matches!(self.model.constraint, Constraint::Brown) {
            return self.model.read_clusters(&corpus.lexicon);
        }
        let clusters = match self.model.read_clusters(&corpus.lexicon)? {
            Some(clusters) => clusters,
            None => {
                output.note(&format!(
                    "learning {} clusters of words from {} tokens",
                    self.model.n_clusters,
                    thousands(corpus.sentences.n_tokens())
                ));
                let params = Brown::params().n_clusters(self.model.n_clusters);
                let brown = params.algorithm(Algorithm::Exchange).fit(corpus)?;
                brown.clusters().clone()
            }
        };
        Ok(Some(clusters.with_all_words()))
    }
}

/// The device that draws: networks draw on a GPU, other models on the CPU.
fn drawing_device(teacher: &dyn Model, device: Device) -> Device {
    if ["ff", "rnn", "lstm"].contains(&teacher.kind()) { device } else { Device::Cpu }
}

/// A hash of a file, so that a checkpoint continues only with the same teacher.
fn file_fingerprint(path: &Path) -> Result<u64> {
    let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let number = |part: &[u8]| part.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
    Ok(fingerprint(bytes.chunks(4).map(number)))
}

/// Parses a number with an optional unit, such as `50000`, `500K`, `50M` or `1G`.
fn parse_count(text: &str) -> Result<usize, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        _ => return Err("expected a number, or a number with the unit K, M or G".into()),
    };
    let number = number.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
    number.ok_or_else(|| "expected a number that fits into 64 bits".into())
}

/// A file of samples.
struct Samples(Mutex<BufWriter<File>>);

impl Samples {
    fn open(path: &Path, resumes: bool) -> Result<Samples> {
        let file = open_log(path, resumes).with_context(|| cannot_write(path))?;
        Ok(Samples(Mutex::new(BufWriter::new(file))))
    }

    /// Writes whole sentences, one per line.
    fn write(
        &self,
        texts: &[Vec<WordId>],
        word: &dyn Fn(WordId) -> String,
    ) -> Result<(), FitError> {
        let mut file = self.0.lock().expect("the lock is never poisoned");
        let mut write = || {
            for sentence in
                texts.iter().flat_map(|text| text.split_inclusive(|&w| w == WordId::EOS))
            {
                let Some((&WordId::EOS, words)) = sentence.split_last() else { continue };
                let line: Vec<String> = words.iter().map(|&id| word(id)).collect();
                writeln!(file, "{}", line.join(" "))?;
            }
            file.flush()
        };
        write().map_err(FitError::step("write the samples"))
    }
}

/// Progress of drawing: on a terminal a line that is overwritten, otherwise one line every few seconds.
struct Bar {
    is_quiet: bool,
    started: Mutex<(Instant, Instant)>,
}

impl Bar {
    fn new(output: &Output) -> Bar {
        let now = Instant::now();
        Bar { is_quiet: output.is_quiet(), started: Mutex::new((now, now)) }
    }

    fn show(&self, n: usize, total: usize) -> ControlFlow<()> {
        let on_terminal = std::io::stderr().is_terminal();
        let every = if on_terminal { Duration::from_millis(200) } else { Duration::from_secs(5) };
        let mut times = self.started.lock().expect("the lock is never poisoned");
        let (started, last) = *times;
        if !self.is_quiet && last.elapsed() >= every {
            // A pause means that another epoch has begun.
            let started = if last.elapsed() > 3 * every { Instant::now() } else { started };
            *times = (started, Instant::now());
            let left = started.elapsed().as_secs_f64() * (total - n) as f64 / n.max(1) as f64;
            let line = format!(
                "draw text: {} of {} tokens, {left:.0} s left",
                thousands(n),
                thousands(total)
            );
            complain(&if on_terminal { format!("\r\x1b[2K{line}") } else { format!("{line}\n") });
        }
        if !self.is_quiet && on_terminal && n >= total {
            complain("\r\x1b[2K");
        }
        if interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_units() {
        for (text, n) in [("7", 7), ("500K", 500_000), ("50M", 50_000_000), ("1g", 1_000_000_000)] {
            assert_eq!(parse_count(text), Ok(n));
        }
        for text in ["", "M", "5 M", "-1", "1.5M", "99999999999G"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }
}
