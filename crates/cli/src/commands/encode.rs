use crate::errors::hinted;
use crate::interrupts::catch_interrupts;
use crate::output::{Output, print, thousands};
use crate::progress::Watcher;
use crate::reading::watched;
use crate::{args::TextArgs, output::print_json};
use anyhow::Result;
use clap::Args;
use latens::corpus::{Corpus, VocabLimits, WordId};
use latens::hmm::Hmm;
use latens::model::Model;
use latens::model::compat::npy;
use latens::model::{FeatureRows, FitError, Progress, TokenEncoder};
use latens::store::write_atomically;
use rayon::prelude::*;
use serde_json::json;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Write features of words in context
///
/// Reads a model and text, and writes one feature vector per word. `-o F.npy` writes a dense matrix of 32-bit floats with
/// one row per word. `-o F.tsv` writes one line per word: the word, then `column:value` for every nonzero feature, and a
/// blank line after each sentence. Ends of sentences have no row. Text is preprocessed like the training text.
///
/// Kinds of features: `viterbi` and `posterior` for a factorial hidden Markov model; `state`, `cluster`, `posterior` and
/// `cluster-posterior` for a hidden Markov model; `paths` for Brown clusters; `vectors` for word vectors;
/// `type+smoothed`, `type`, `filtered` and `smoothed` for a linear dynamical system.
#[derive(Args)]
pub(crate) struct EncodeArgs {
    /// Model with features of words
    model: PathBuf,
    #[command(flatten)]
    text: TextArgs,
    /// Kind of features [default: the first kind of the model]
    #[arg(long, value_name = "KIND")]
    features: Option<String>,
    /// Path of the features to write, `.npy` or `.tsv` [default: `.tsv` to standard output]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

/// Maximum size of a dense matrix: 16 GiB.
const MAX_BYTES: u128 = 1 << 34;

pub(crate) fn run(args: &EncodeArgs, output: &Output) -> Result<()> {
    let format = args.output.as_deref().map(Format::of).transpose()?;
    if output.is_json() && args.output.is_none() {
        let message = "`--json` needs `-o`, because it prints a summary to standard output";
        return Err(hinted(message, "write the features to a file with `-o`"));
    }
    let inputs = watched(args.text.inputs()?, output);
    let model = &*latens::open(&args.model)?;
    let kind = kind(model, args)?;
    let encoder = model.encoder(kind).expect("the kind is one of the model's");
    // The vocabulary of the text, to print words that the model does not know.
    let text = Corpus::read(&inputs, &model.lexicon().preprocessing, &VocabLimits::default())?;
    refuse_unknown_words(model, &text, args)?;
    let encoding = Encoding::new(&text, model, &*encoder);
    let (n_rows, dim) = (encoding.n_rows(), encoder.n_features());
    let n_empty = match (&args.output, format) {
        (Some(path), Some(format)) => encoding.save(path, format, output)?,
        _ => encoding.print()?,
    };
    if n_empty > 0 {
        let n_empty = thousands(n_empty);
        output.note(&format!("{n_empty} words have no features: the model does not know them"));
    }
    let summary = format!("{} words, {} columns ({kind})", thousands(n_rows), thousands(dim));
    let Some(path) = &args.output else {
        output.note(&summary);
        return Ok(());
    };
    if output.is_json() {
        return print_json(&json!({ "tokens": n_rows, "dim": dim, "features": kind }));
    }
    print(|out| writeln!(out, "wrote `{}`: {summary}", path.display()))
}

/// Rejects unknown words if the model gives them probability zero, and with them the sentence.
fn refuse_unknown_words(model: &dyn Model, text: &Corpus, args: &EncodeArgs) -> Result<()> {
    let Some(hmm) = model.downcast_ref::<Hmm>() else { return Ok(()) };
    let vocab = &model.lexicon().vocab;
    // `<unk>` and `<eos>` are the first two words of every vocabulary.
    match text.lexicon.vocab.words().skip(2).find(|&word| vocab.id(word) == WordId::UNK) {
        Some(word) if !hmm.can_emit(WordId::UNK) => Err(hinted(
            format!(
                "`{}` does not know the word `{word}` and was trained without unknown words",
                args.model.display()
            ),
            "train it with `--min-count 2`, which replaces words that occur once with `<unk>`",
        )),
        _ => Ok(()),
    }
}

/// The requested kind of features, if the model has it.
fn kind(model: &dyn Model, args: &EncodeArgs) -> Result<&'static str> {
    let (kinds, path) = (model.feature_kinds(), args.model.display());
    let Some(&first) = kinds.first() else {
        return Err(hinted(
            format!("`{path}` is {}, which has no features of words", model.description()),
            "train a model that does, e.g., `latens train hmm news.txt -o news.hmm`",
        ));
    };
    let Some(wanted) = &args.features else { return Ok(first) };
    kinds.iter().copied().find(|kind| kind == wanted).ok_or_else(|| {
        let all = kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ");
        let what = model.description();
        hinted(
            format!("unknown kind of features `{wanted}`"),
            format!("`{path}` is {what}, which has {all}"),
        )
    })
}

#[derive(Clone, Copy)]
enum Format {
    Npy,
    Tsv,
}

impl Format {
    fn of(path: &Path) -> Result<Format> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("npy") => Ok(Format::Npy),
            Some("tsv") => Ok(Format::Tsv),
            _ => Err(hinted(
                format!("cannot infer a format from `{}`", path.display()),
                "use the extension `.npy` (dense, for NumPy) or `.tsv` (text)",
            )),
        }
    }
}

/// A text with its encoder.
struct Encoding<'a> {
    text: &'a Corpus,
    /// The model's id of every word of the text.
    ids: Vec<WordId>,
    encoder: &'a dyn TokenEncoder,
}

impl<'a> Encoding<'a> {
    fn new(text: &'a Corpus, model: &dyn Model, encoder: &'a dyn TokenEncoder) -> Encoding<'a> {
        let vocab = &text.lexicon.vocab;
        let mut ids: Vec<WordId> = vocab.words().map(|word| model.word_id(word)).collect();
        ids[WordId::EOS.index()] = WordId::EOS;
        Encoding { text, ids, encoder }
    }

    fn n_rows(&self) -> usize {
        self.text.sentences.n_tokens() - self.text.sentences.len()
    }

    /// Writes a file and returns the number of words without features.
    fn save(&self, path: &Path, format: Format, output: &Output) -> Result<usize> {
        let (n_rows, dim) = (self.n_rows(), self.encoder.n_features());
        let n_bytes = n_rows as u128 * dim as u128 * 4;
        if matches!(format, Format::Npy) && n_bytes > MAX_BYTES {
            return Err(hinted(
                format!(
                    "a dense matrix of {} words and {} features needs {} GiB",
                    thousands(n_rows),
                    thousands(dim),
                    thousands((n_bytes >> 30) as usize)
                ),
                "write `.tsv`, which omits zeros, or encode the text in parts",
            ));
        }
        catch_interrupts();
        let mut watcher = Watcher::new(output, None, None, false);
        let mut stopped = false;
        let mut watch = |done: usize| {
            let progress = Progress {
                phase: "encode",
                done: done as u64,
                total: Some(n_rows as u64),
                unit: "words",
                ..Progress::default()
            };
            stopped = watcher.watch(&progress) == ControlFlow::Break(());
            !stopped
        };
        let mut n_empty = 0;
        let written = write_atomically(path, |out| {
            n_empty = match format {
                Format::Npy => self.write_npy(out, &mut watch)?,
                Format::Tsv => self.write_tsv(out, &mut watch)?,
            };
            Ok(())
        });
        if stopped {
            return watcher.finish(Err(FitError::Interrupted));
        }
        watcher.finish(Ok(()))?;
        written?;
        Ok(n_empty)
    }

    fn print(&self) -> Result<usize> {
        let mut n_empty = 0;
        print(|out| {
            let mut out = BufWriter::new(out);
            n_empty = self.write_tsv(&mut out, &mut |_| true)?;
            out.flush()
        })?;
        Ok(n_empty)
    }

    fn write_npy(
        &self,
        out: &mut dyn Write,
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> io::Result<usize> {
        let (mut n_empty, mut dense) = (0, vec![0f32; self.encoder.n_features()]);
        npy::write_header(out, self.n_rows(), dense.len())?;
        self.each_sentence(
            |words, rows| (words.len(), rows),
            |(n_words, rows)| {
                for (columns, values) in rows.iter().take(n_words) {
                    n_empty += usize::from(columns.is_empty());
                    dense.fill(0.0);
                    let entries = columns.iter().zip(values);
                    entries.for_each(|(&column, &value)| dense[column as usize] = value);
                    npy::write_values(out, &dense)?;
                }
                Ok(())
            },
            watch,
        )?;
        Ok(n_empty)
    }

    fn write_tsv(
        &self,
        out: &mut dyn Write,
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> io::Result<usize> {
        let mut n_empty = 0;
        self.each_sentence(
            |words, rows| {
                let rows_of_words = rows.iter().take(words.len());
                let n_empty = rows_of_words.filter(|(columns, _)| columns.is_empty()).count();
                (self.lines(words, &rows), n_empty)
            },
            |(lines, n)| {
                n_empty += n;
                out.write_all(lines.as_bytes())
            },
            watch,
        )?;
        Ok(n_empty)
    }

    fn lines(&self, words: &[WordId], rows: &FeatureRows) -> String {
        use std::fmt::Write;
        let mut text = String::new();
        for (&word, (columns, values)) in words.iter().zip(rows.iter()) {
            text.push_str(self.text.lexicon.vocab.word(word));
            for (column, value) in columns.iter().zip(values).filter(|(_, value)| **value != 0.0) {
                write!(text, "\t{column}:{value}").expect("a string takes all");
            }
            text.push('\n');
        }
        text.push('\n');
        text
    }

    /// Encodes batches of sentences in parallel and writes them in order. `work` gets the words of a sentence and their
    /// rows, followed by that of the end of the sentence; `watch` gets the number of encoded words and returns whether to
    /// continue.
    fn each_sentence<T: Send>(
        &self,
        work: impl Fn(&[WordId], FeatureRows) -> T + Sync,
        mut write: impl FnMut(T) -> io::Result<()>,
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> io::Result<()> {
        let (sentences, mut n_done) = (&self.text.sentences, 0);
        for batch in self.batches() {
            let ids: Vec<Vec<WordId>> =
                batch.clone().map(|idx| self.ids_of(sentences.get(idx))).collect();
            let ids: Vec<&[WordId]> = ids.iter().map(Vec::as_slice).collect();
            let encoded: Vec<T> = self
                .encoder
                .encode_all(&ids)
                .into_par_iter()
                .zip(batch.clone())
                .map(|(rows, idx)| {
                    let sentence = sentences.get(idx);
                    work(&sentence[..sentence.len() - 1], rows)
                })
                .collect();
            encoded.into_iter().try_for_each(&mut write)?;
            n_done += batch.map(|idx| sentences.get(idx).len() - 1).sum::<usize>();
            if !watch(n_done) {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        Ok(())
    }

    /// The model's ids of the words of a sentence and of its end.
    fn ids_of(&self, sentence: &[WordId]) -> Vec<WordId> {
        sentence.iter().map(|word| self.ids[word.index()]).collect()
    }

    /// Batches of sentences whose rows fit in memory for any number of columns.
    fn batches(&self) -> Vec<std::ops::Range<usize>> {
        const MAX_NUMBERS: usize = 1 << 24;
        let max_tokens = (MAX_NUMBERS / self.encoder.values_per_token().max(1)).clamp(256, 1 << 14);
        let (offsets, n) = (self.text.sentences.offsets(), self.text.sentences.len());
        let (mut batches, mut begin) = (Vec::new(), 0);
        while begin < n {
            let limit = offsets[begin] + max_tokens as u64;
            let fitting = offsets[begin + 1..].partition_point(|&end| end <= limit);
            let end = begin + fitting.max(1);
            batches.push(begin..end);
            begin = end;
        }
        batches
    }
}
