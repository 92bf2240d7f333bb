//! What the trainers of topic models share: documents, their words, and their mixtures.

use super::training::{RunArgs, Training, warn_of_characters};
use crate::args::{DigitsArg, DocumentArgs, NormalizeArg, TokenizeArg};
use crate::cache::{DocumentWords, read_documents};
use crate::data::mixtures;
use crate::errors::hinted;
use crate::output::Output;
use crate::reading::watched;
use anyhow::{Context, Result, ensure};
use clap::Args;
use latens::corpus::{
    Cleaning, DocumentCorpus, DocumentFrequency, Documents, Preprocessing, StopWords, Tokenize,
    VocabLimits, open_input,
};
use latens::lda::{InferenceParams, Lda};
use latens::model::{Model, Params};
use serde_json::{Map, Value};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Options for training a topic model.
#[derive(Args)]
pub(super) struct TopicTrainingArgs {
    #[command(flatten)]
    pub(super) text: DocumentArgs,
    #[command(flatten)]
    pub(super) words: DocumentWordArgs,
    #[command(flatten)]
    pub(super) run: RunArgs,
    /// Write the topic mixtures of the training documents to this file, `.tsv` or `.csv`
    #[arg(long, value_name = "FILE")]
    mixtures: Option<PathBuf>,
}

/// The words of documents: preprocessing, cleaning and vocabulary.
#[derive(Args)]
pub(crate) struct DocumentWordArgs {
    /// Stop words to leave out: a language, `none`, or a file of words
    #[arg(long, value_name = "LIST", default_value = "english", help_heading = "Words")]
    stop_words: PathBuf,
    /// Minimum document frequency of a word: a number, or a fraction with a decimal point; rarer words are ignored
    #[arg(long, value_name = "N", default_value_t = DocumentFrequency::ONE, help_heading = "Words")]
    min_df: DocumentFrequency,
    /// Maximum document frequency of a word: a number, or a fraction with a decimal point; words above it are ignored
    #[arg(long, value_name = "N", default_value_t = DocumentFrequency::ALL, help_heading = "Words")]
    max_df: DocumentFrequency,
    /// Maximum number of phrases, which are joined by `_`: pairs of words with the highest normalized pointwise mutual
    /// information
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Words")]
    phrases: usize,
    /// Keep the text as it is: split at whitespace, and keep case, stop words, punctuation and numbers
    #[arg(
        long,
        help_heading = "Words",
        conflicts_with_all = ["stop_words", "min_df", "max_df", "phrases"]
    )]
    keep_all: bool,
    /// Tokenization of text [default: words; with `--keep-all`: whitespace]
    #[arg(long, value_enum, help_heading = "Words")]
    tokenize: Option<TokenizeArg>,
    /// Convert text to lowercase [default: true; with `--keep-all`: false]
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = "Words"
    )]
    lowercase: Option<bool>,
    /// Treatment of digits
    #[arg(long, value_enum, default_value_t, help_heading = "Words")]
    digits: DigitsArg,
    /// Unicode normalization
    #[arg(long, value_enum, default_value_t, help_heading = "Words")]
    normalize: NormalizeArg,
    /// Minimum number of occurrences of a word; rarer words are ignored
    #[arg(
        long,
        value_name = "N",
        default_value_t = VocabLimits::default().min_count,
        help_heading = "Words"
    )]
    min_count: u64,
    /// Maximum size of the vocabulary, including `<unk>` and `<eos>`; 0 means no limit
    #[arg(
        long,
        value_name = "N",
        default_value_t = VocabLimits::default().max_vocab,
        help_heading = "Words"
    )]
    max_vocab: usize,
    /// Use the vocabulary and preprocessing of a file written by `latens vocab`
    #[arg(
        long,
        value_name = "VOCAB",
        help_heading = "Words",
        conflicts_with_all = [
            "tokenize", "lowercase", "digits", "normalize", "min_count", "max_vocab", "stop_words", "min_df", "max_df", "phrases",
            "keep_all"
        ]
    )]
    pub(crate) vocab: Option<PathBuf>,
}

impl DocumentWordArgs {
    /// How words are learned.
    pub(crate) fn words(&self) -> Result<DocumentWords> {
        let bare = if self.keep_all { Tokenize::Whitespace } else { Tokenize::Words };
        let preprocessing = Preprocessing::default()
            .tokenize(self.tokenize.map_or(bare, Into::into))
            .lowercase(self.lowercase.unwrap_or(!self.keep_all))
            .digits(self.digits.into())
            .normalize(self.normalize.into());
        let limits = VocabLimits { min_count: self.min_count, max_vocab: self.max_vocab };
        let mut cleaning = Cleaning::default();
        if !self.keep_all {
            cleaning.stop_words = stop_words(&self.stop_words)?;
            cleaning.letters_only = true;
            cleaning.min_df = self.min_df;
            cleaning.max_df = self.max_df;
            cleaning.n_phrases = self.phrases;
        }
        Ok(DocumentWords { preprocessing, limits, cleaning })
    }
}

/// The list of a language, or of a file with words separated by whitespace.
fn stop_words(list: &Path) -> Result<StopWords> {
    let name = list.to_string_lossy();
    if name == "none" {
        return Ok(StopWords::default());
    }
    if let Some(words) = StopWords::of_language(&name) {
        return Ok(words);
    }
    if !list.exists() {
        return Err(hinted(
            format!("`{name}` is neither a language with stop words nor a file"),
            format!("languages: {}", StopWords::languages().collect::<Vec<_>>().join(", ")),
        ));
    }
    let mut text = String::new();
    let read = open_input(list).and_then(|mut input| input.read_to_string(&mut text));
    read.with_context(|| format!("cannot read the stop words in `{name}`"))?;
    Ok(StopWords::new(name, text.split_whitespace()))
}

impl TopicTrainingArgs {
    /// Reads the documents and starts the training of a topic model.
    pub(super) fn begin(&self, output: &Output) -> Result<Training<'_, DocumentCorpus>> {
        let words = self.words.words()?;
        self.run.check_valid()?;
        let inputs = watched(self.text.inputs()?, output);
        let vocab = self.words.vocab.as_deref();
        let data = read_documents(&inputs, &words, vocab, &self.run.cache())?;
        warn_of_characters(&data.lexicon, output);
        let checkpoint = self.run.open_checkpoint()?;
        let sizes = (data.documents.n_tokens(), data.lexicon.vocab.len());
        self.run.begin_with(Instant::now(), data, sizes, None, checkpoint, output)
    }

    /// Measures the perplexity of the validation documents by document completion, if there are any.
    pub(super) fn completion(
        &self,
        model: &Lda,
        seed: u64,
        metrics: &mut Map<String, Value>,
    ) -> Result<()> {
        let Some(valid) = &self.run.valid else { return Ok(()) };
        let inputs = self.text.reading.document_inputs(std::slice::from_ref(valid))?;
        let documents = Documents::read_with(&inputs, model.lexicon())?;
        let params = InferenceParams::default().seed(seed).validate()?;
        let found = model.completion(&documents, &params);
        ensure!(
            found.n_tokens > 0,
            "no document in `{}` has two words of the vocabulary",
            valid.display()
        );
        metrics.insert("valid_perplexity".into(), found.perplexity().into());
        metrics.insert("valid_tokens".into(), found.n_tokens.into());
        Ok(())
    }

    /// Writes the mixtures of the training documents, if they are wanted.
    pub(super) fn write_mixtures(
        &self,
        model: &dyn Model,
        documents: &Documents,
        seed: u64,
    ) -> Result<()> {
        let Some(path) = &self.mixtures else { return Ok(()) };
        let params = InferenceParams::default().seed(seed);
        let found = mixtures::infer(model, documents, params)?;
        mixtures::save(path, documents, &found)
    }
}
