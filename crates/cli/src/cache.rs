//! Cache of encoded training text (`--cache`).

use crate::args::{LearnedWordArgs, WordArgs};
use crate::paths::is_stdin;
use crate::reading::total_bytes;
use anyhow::Context;
use clap::Args;
use latens::corpus::{
    Cleaning, Corpus, DocumentCorpus, Documents, Format, Inputs, Lexicon, Preprocessing,
    VocabLimits, folder_files,
};
use latens::counts::Budget;
use std::fmt::Debug;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Cache options.
#[derive(Args)]
pub(crate) struct CacheArgs {
    /// Cache the encoded text in this folder; required for text larger than memory
    #[arg(long, value_name = "DIR", help_heading = "Reading text")]
    pub(crate) cache: Option<PathBuf>,
}

/// Reads a training text, with the vocabulary file `vocab` or a vocabulary learned from the text, and
/// through the cache if there is one.
pub(crate) fn read_corpus(
    inputs: &Inputs,
    words: &LearnedWordArgs,
    vocab: Option<&Path>,
    cache: &CacheArgs,
) -> anyhow::Result<Corpus> {
    let lexicon = vocab.map(Lexicon::open).transpose()?;
    let Some(folder) = &cache.cache else {
        return Ok(match lexicon {
            Some(lexicon) => Corpus { sentences: lexicon.read(inputs)?, lexicon },
            None => Corpus::read(inputs, &words.preprocessing(), &words.limits())?,
        });
    };
    let path = make_folder(folder)?.join(cache_name(
        inputs,
        &(words.preprocessing(), words.limits()),
        vocab,
        "corpus",
    )?);
    if path.exists()
        && let Ok(corpus) = Corpus::open(&path)
    {
        return Ok(corpus);
    }
    encode_corpus(&path, inputs, words, lexicon.as_ref())
}

/// Encodes a training text into a file, and memory-maps the file.
pub(crate) fn encode_corpus(
    path: &Path,
    inputs: &Inputs,
    words: &LearnedWordArgs,
    lexicon: Option<&Lexicon>,
) -> anyhow::Result<Corpus> {
    Ok(match lexicon {
        Some(lexicon) => Corpus::encode_with(path, inputs, lexicon)?,
        None => Corpus::encode_to(path, inputs, &words.preprocessing(), &words.limits())?,
    })
}

/// A text to count, in memory or in a file, and the budget that it leaves to the counts.
pub(crate) struct EncodedText {
    pub(crate) corpus: Corpus,
    pub(crate) budget: Budget,
    /// The folder of the file, which is deleted with the text.
    pub(crate) folder: Option<TempDir>,
}

impl EncodedText {
    /// Reads a text into memory if it is certain to fit into the budget, else into a temporary file.
    pub(crate) fn read(
        inputs: &Inputs,
        words: &WordArgs,
        cache: &CacheArgs,
        budget: &Budget,
    ) -> anyhow::Result<EncodedText> {
        let (words, vocab) = (&words.learned, words.vocab.as_deref());
        if cache.cache.is_some() {
            let corpus = read_corpus(inputs, words, vocab, cache)?;
            return Ok(EncodedText { corpus, budget: budget.clone(), folder: None });
        }
        if total_bytes(inputs).is_some_and(|n_bytes| fits(n_bytes, budget)) {
            let corpus = read_corpus(inputs, words, vocab, cache)?;
            let bytes = budget.bytes.saturating_sub(n_bytes(&corpus));
            let budget = budget.clone().bytes(bytes);
            return Ok(EncodedText { corpus, budget, folder: None });
        }
        let folder = tempfile::Builder::new().prefix(".latens-").tempdir_in(&budget.folder);
        let folder = folder.with_context(|| {
            format!("cannot write to the temporary folder `{}`", budget.folder.display())
        })?;
        let lexicon = vocab.map(Lexicon::open).transpose()?;
        let path = folder.path().join("text");
        let corpus = encode_corpus(&path, inputs, words, lexicon.as_ref())?;
        // Where a mapped file can be removed, nothing is left behind if the program is killed.
        let _ = fs::remove_file(&path);
        Ok(EncodedText { corpus, budget: budget.clone(), folder: Some(folder) })
    }
}

/// Whether the encoded text of files of `n_bytes` bytes fits into half of the budget, whatever they contain.
fn fits(n_bytes: u64, budget: &Budget) -> bool {
    /// An empty line of one byte becomes an id of 4 bytes and an offset of 8. Arrays that grow have up to twice their size.
    const MAX_GROWTH: u64 = 24;
    n_bytes.saturating_mul(MAX_GROWTH) <= budget.bytes as u64 / 2
}

/// Size of an encoded text in memory.
fn n_bytes(corpus: &Corpus) -> usize {
    let sentences = &corpus.sentences;
    size_of_val(sentences.tokens()) + size_of_val(sentences.offsets())
}

/// How the words of documents are learned.
#[derive(Clone, Debug)]
pub(crate) struct DocumentWords {
    pub(crate) preprocessing: Preprocessing,
    pub(crate) limits: VocabLimits,
    pub(crate) cleaning: Cleaning,
}

/// Reads training documents; see [`read_corpus`].
pub(crate) fn read_documents(
    inputs: &Inputs,
    words: &DocumentWords,
    vocab: Option<&Path>,
    cache: &CacheArgs,
) -> anyhow::Result<DocumentCorpus> {
    let DocumentWords { preprocessing, limits, cleaning } = words;
    let lexicon = vocab.map(Lexicon::open).transpose()?;
    let Some(folder) = &cache.cache else {
        return Ok(match lexicon {
            Some(lexicon) => {
                DocumentCorpus { documents: Documents::read_with(inputs, &lexicon)?, lexicon }
            }
            None => DocumentCorpus::read_clean(inputs, preprocessing, limits, cleaning)?,
        });
    };
    let path = make_folder(folder)?.join(cache_name(inputs, words, vocab, "documents")?);
    if path.exists()
        && let Ok((lexicon, documents)) = Documents::open(&path)
    {
        return Ok(DocumentCorpus { lexicon, documents });
    }
    Ok(match lexicon {
        Some(lexicon) => {
            DocumentCorpus { documents: Documents::encode_with(&path, inputs, &lexicon)?, lexicon }
        }
        None => DocumentCorpus::encode_clean(&path, inputs, preprocessing, limits, cleaning)?,
    })
}

pub(crate) fn make_folder(folder: &Path) -> anyhow::Result<&Path> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder `{}`", folder.display()))?;
    Ok(folder)
}

/// A file name that depends on the inputs (their paths, sizes and modification times), on how they
/// are read, and on the version of the program.
fn cache_name(
    inputs: &Inputs,
    words: &dyn Debug,
    vocab: Option<&Path>,
    extension: &str,
) -> anyhow::Result<String> {
    let mut hash = hash_inputs(inputs)?;
    if let Some(vocab) = vocab {
        hash_file(vocab, &mut hash)?;
    }
    let how = (inputs.invalid, &inputs.columns, words);
    format!("{how:?}").hash(&mut hash);
    Ok(format!("{:016x}.{extension}", hash.finish()))
}

/// A hash of the inputs and of the version of the program.
pub(crate) fn hash_inputs(inputs: &Inputs) -> anyhow::Result<DefaultHasher> {
    let mut hash = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hash);
    for path in &inputs.paths {
        anyhow::ensure!(!is_stdin(path), "standard input cannot be cached");
        if inputs.folders && path.is_dir() {
            let files =
                folder_files(path).with_context(|| format!("cannot read `{}`", path.display()))?;
            files.iter().try_for_each(|file| hash_file(file, &mut hash))?;
        }
        hash_file(path, &mut hash)?;
        // A link may have another extension than the file that it leads to.
        let format = inputs.format.clone().unwrap_or_else(|| Format::of_path(path));
        format!("{format:?}").hash(&mut hash);
    }
    if let Some(names) = &inputs.token_names {
        names.fingerprint().hash(&mut hash);
    }
    Ok(hash)
}

fn hash_file(path: &Path, hash: &mut DefaultHasher) -> anyhow::Result<()> {
    let found = fs::metadata(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    (fs::canonicalize(path)?, found.len(), found.modified()?).hash(hash);
    Ok(())
}
