//! `latens encode`: features of words in context.

mod written;

use crate::errors::hinted;
use crate::output::{Output, print, thousands};
use crate::reading::watched;
use crate::{args::TextArgs, output::print_json};
use anyhow::Result;
use clap::Args;
use latens::corpus::{Corpus, VocabLimits, WordId};
use latens::hmm::Hmm;
use latens::model::{Device, DeviceError, Model, TokenEncoder};
use serde_json::json;
use std::path::PathBuf;
use written::{EncodeAll, Encoding, Format};

/// Write features of words in context
///
/// Reads a model and text, and writes one feature vector per word. `-o F.npy` writes a dense matrix of 32-bit floats with
/// one row per word. `-o F.tsv` writes one line per word: the word, then `column:value` for every nonzero feature, and a
/// blank line after each sentence. Ends of sentences have no row. Text is preprocessed like the training text.
///
/// Kinds of features: `viterbi` and `posterior` for a factorial hidden Markov model; `state`, `cluster`, `posterior` and
/// `cluster-posterior` for a hidden Markov model; `paths` for Brown clusters; `vectors` for word vectors;
/// `type+smoothed`, `type`, `filtered` and `smoothed` for a linear dynamical system. With `--device cuda`, a GPU computes
/// the features of a hidden Markov model.
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
    /// Device that computes: `cpu`, or `cuda` for hidden Markov models
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    device: Device,
}

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
    let encode_all = encode_all(model, &*encoder, kind, args.device)?;
    // The vocabulary of the text, to print words that the model does not know.
    let text = Corpus::read(&inputs, &model.lexicon().preprocessing, &VocabLimits::default())?;
    refuse_unknown_words(model, &text, args)?;
    let encoding = Encoding::new(&text, model, &*encoder);
    let (n_rows, dim) = (encoding.n_rows(), encoder.n_features());
    let n_empty = match (&args.output, format) {
        (Some(path), Some(format)) => encoding.save(path, format, encode_all, output)?,
        _ => encoding.print(encode_all)?,
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

/// How the rows of sentences are computed on the chosen device.
fn encode_all<'a>(
    model: &'a dyn Model,
    encoder: &'a dyn TokenEncoder,
    kind: &str,
    device: Device,
) -> Result<EncodeAll<'a>> {
    if device == Device::Cpu {
        return Ok(Box::new(|sentences| Ok(encoder.encode_all(sentences))));
    }
    let cpu_only = || Err(DeviceError::cuda("these features are computed on the CPU only"));
    let refused = |error: DeviceError| {
        let hint = format!("without `--device`, the CPU computes `{kind}`");
        hinted(error.to_string(), hint)
    };
    let mut on_gpu = model.gpu_encoder(kind).unwrap_or_else(cpu_only).map_err(refused)?;
    Ok(Box::new(move |sentences| on_gpu.encode_all(sentences)))
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
