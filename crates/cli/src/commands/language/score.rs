use crate::args::TextArgs;
use crate::commands::roles::language_model;
use crate::output::{Output, print, print_json, thousands};
use crate::reading::watched;
use anyhow::Result;
use clap::{Args, ValueEnum};
use latens::corpus::{Corpus, Sentences, VocabLimits, WordId};
use latens::model::Device;
use latens::store::write_atomically;
use latens::tasks::token_log_probs_on;
use serde::Serialize;
use serde_json::json;
use std::f64::consts::LN_2;
use std::io::{self, Write};
use std::path::PathBuf;

/// Score sentences or tokens with a language model
///
/// Reads a model and text, and writes one row per sentence or token with its log-probability (natural logarithm), its
/// surprisal in bits (−log₂ p) and the out-of-vocabulary words. The end of each sentence is a token, `<eos>`, as in
/// `latens perplexity`, whose log_prob is the sum of all rows up to rounding. The output has tab-separated columns with a
/// header and six decimals. `--json` writes one JSON object with all digits.
#[derive(Args)]
pub(crate) struct ScoreArgs {
    /// Language model
    model: PathBuf,
    #[command(flatten)]
    text: TextArgs,
    /// Unit of a row
    #[arg(long, value_enum, default_value_t)]
    per: PerArg,
    /// Path of the scores to write as tab-separated columns [default: standard output]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Device that scores: `cpu`, or `cuda` for hidden Markov models
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    device: Device,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum PerArg {
    /// One row per sentence
    #[default]
    Sentence,
    /// One row per token
    Token,
}

/// A sentence. Numbers count from 1.
#[derive(Serialize)]
struct SentenceRow {
    sentence: usize,
    tokens: usize,
    #[serde(serialize_with = "finite_or_text")]
    log_prob: f64,
    #[serde(serialize_with = "finite_or_text")]
    bits: f64,
    oov: usize,
}

/// A token. Numbers count from 1.
#[derive(Serialize)]
struct TokenRow<'a> {
    sentence: usize,
    token: usize,
    word: &'a str,
    #[serde(serialize_with = "finite_or_text")]
    log_prob: f64,
    #[serde(serialize_with = "finite_or_text")]
    bits: f64,
    oov: bool,
}

/// JSON has no infinity, which is the surprisal of an impossible token.
fn finite_or_text<S: serde::Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match *x {
        x if x.is_finite() => serializer.serialize_f64(x),
        x if x < 0.0 => serializer.serialize_str("-inf"),
        _ => serializer.serialize_str("inf"),
    }
}

pub(crate) fn run(args: &ScoreArgs, output: &Output) -> Result<()> {
    let inputs = watched(args.text.inputs()?, output);
    let any_model = &*latens::open(&args.model)?;
    let model = language_model(any_model, &args.model)?;
    let lexicon = any_model.lexicon();
    // With all of its words, so that unknown words can be shown.
    let text = Corpus::read(&inputs, &lexicon.preprocessing, &VocabLimits::default())?;
    let known: Vec<WordId> =
        text.lexicon.vocab.words().map(|word| lexicon.vocab.id(word)).collect();
    let id = |word: &WordId| if *word == WordId::EOS { WordId::EOS } else { known[word.index()] };
    let sentences = text
        .sentences
        .iter()
        .map(|sentence| -> Vec<WordId> { sentence[..sentence.len() - 1].iter().map(id).collect() });
    let scored = Sentences::from_words(sentences);
    let log_probs = token_log_probs_on(args.device, model, &scored)?;
    let scores = Scores { words: &text, scored: &scored, log_probs: &log_probs };
    let Some(path) = &args.output else {
        return match (output.is_json(), args.per) {
            (false, per) => print(|out| scores.write(per, out)),
            (true, PerArg::Sentence) => {
                print_json(&json!({ "rows": scores.sentences().collect::<Vec<_>>() }))
            }
            (true, PerArg::Token) => {
                print_json(&json!({ "rows": scores.tokens().collect::<Vec<_>>() }))
            }
        };
    };
    write_atomically(path, |out| scores.write(args.per, out))?;
    let (path, tokens) = (path.display().to_string(), scored.n_tokens());
    let log_prob: f64 = log_probs.iter().sum();
    let result = json!({ "path": path, "tokens": tokens, "log_prob": log_prob });
    output.result(&result, |out| writeln!(out, "wrote `{path}`: {} tokens", thousands(tokens)))
}

/// A text and the scores of its tokens.
struct Scores<'a> {
    /// The text with all of its words.
    words: &'a Corpus,
    /// The same text in the words of the model.
    scored: &'a Sentences,
    log_probs: &'a [f64],
}

impl<'a> Scores<'a> {
    fn sentences(&self) -> impl Iterator<Item = SentenceRow> + '_ {
        let mut begin = 0;
        self.scored.iter().enumerate().map(move |(i, words)| {
            let log_prob: f64 = self.log_probs[begin..begin + words.len()].iter().sum();
            begin += words.len();
            SentenceRow {
                sentence: i + 1,
                tokens: words.len(),
                log_prob,
                bits: bits(log_prob),
                oov: words.iter().filter(|&&word| word == WordId::UNK).count(),
            }
        })
    }

    fn tokens(&self) -> impl Iterator<Item = TokenRow<'a>> + '_ {
        let (vocab, words) = (&self.words.lexicon.vocab, self.words.sentences.iter());
        let sentences = words.zip(self.scored.iter()).enumerate();
        let tokens = sentences.flat_map(|(i, (words, ids))| {
            words.iter().zip(ids).enumerate().map(move |(t, pair)| (i + 1, t + 1, pair))
        });
        tokens.zip(self.log_probs).map(|((sentence, token, (&word, &id)), &log_prob)| TokenRow {
            sentence,
            token,
            word: vocab.word(word),
            log_prob,
            bits: bits(log_prob),
            oov: id == WordId::UNK,
        })
    }

    fn write(&self, per: PerArg, out: &mut dyn Write) -> io::Result<()> {
        match per {
            PerArg::Sentence => {
                writeln!(out, "sentence\ttokens\tlog_prob\tbits\toov")?;
                self.sentences().try_for_each(|row| {
                    let SentenceRow { sentence, tokens, log_prob, bits, oov } = row;
                    writeln!(out, "{sentence}\t{tokens}\t{log_prob:.6}\t{bits:.6}\t{oov}")
                })
            }
            PerArg::Token => {
                writeln!(out, "sentence\ttoken\tword\tlog_prob\tbits\toov")?;
                self.tokens().try_for_each(|row| {
                    let TokenRow { sentence, token, word, log_prob, bits, oov } = row;
                    let oov = u8::from(oov);
                    writeln!(out, "{sentence}\t{token}\t{word}\t{log_prob:.6}\t{bits:.6}\t{oov}")
                })
            }
        }
    }
}

/// Surprisal: −log₂ p. A certain token has 0, not −0.
fn bits(log_prob: f64) -> f64 {
    -log_prob / LN_2 + 0.0
}
