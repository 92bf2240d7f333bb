//! Documents, word vectors and synonyms for the experiments with topic models.

use anyhow::{Context, Result};
use latens::corpus::{
    DocumentCorpus, Documents, Field, Format, Inputs, Lexicon, Preprocessing, VocabLimits,
    open_input,
};
use latens::model::WordVectors;
use latens::model::compat::{TextFormat, read_text};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::fs;
use std::io::{BufReader, Read};
use std::path::Path;

/// Minimum number of occurrences of a word in the vocabulary.
const MIN_COUNT: u64 = 5;

/// Stop words, which would otherwise dominate the topics.
const STOP_WORDS: &str = "about above after again against all also although always am among an and any \
    anyone anything are aren around as at away be became because been before being below between both but by came can \
    cannot could couldn did didn do does doesn doing don done down during each either else even ever every everyone \
    everything few for from further gave get gets getting give given go goes going gone got had hadn has hasn have haven \
    having he her here hers herself him himself his how however if in instead into is isn it its itself just keep kept let \
    ll made make makes making many may maybe me might mine more most much must my myself need neither never no none nor \
    not nothing now of off often on once one only onto or other others otherwise our ours ourselves out over own per \
    perhaps put quite rather re really said same say says see seem seemed seems seen several shall she should shouldn since \
    so some someone something sometimes still such take taken than that the their theirs them themselves then there \
    therefore these they thing things this those though through thus to together too toward towards under until up upon us \
    use used uses using ve very was wasn way we well went were weren what whatever when where whether which while who whole \
    whom whose why will with within without won would wouldn yet you your yours yourself yourselves";

/// A tokenized document.
#[derive(Clone)]
pub(crate) struct Document {
    pub(crate) label: String,
    pub(crate) is_test: bool,
    pub(crate) words: Vec<String>,
}

/// 20 Newsgroups in the by-date split: words of at least three letters, without stop words.
pub(crate) fn newsgroups(data: &Path) -> Result<Vec<Document>> {
    let stop_words: HashSet<&str> = STOP_WORDS.split_ascii_whitespace().collect();
    let text = read(&data.join("20news/20news.tsv"))?;
    let document = |line: &str| {
        let mut fields = line.splitn(3, '\t');
        let (label, split) = (fields.next()?, fields.next()?);
        let text = fields.next()?.to_lowercase();
        let words = text.split(|c: char| !c.is_ascii_lowercase());
        let words = words.filter(|word| word.len() > 2 && !stop_words.contains(word));
        let words: Vec<String> = words.map(str::to_owned).collect();
        let (label, is_test) = (label.to_owned(), split == "test");
        Some(Document { label, is_test, words })
    };
    Ok(text.lines().filter_map(document).filter(|document| !document.words.is_empty()).collect())
}

/// Papers of NIPS. Every tenth one is a test document.
pub(crate) fn nips(data: &Path) -> Result<Vec<Document>> {
    let text = read(&data.join("nips/nips.tsv"))?;
    let document = |(i, line): (usize, &str)| {
        let (label, text) = line.split_once('\t')?;
        let words = text.split_ascii_whitespace().map(str::to_owned).collect();
        Some(Document { label: label.to_owned(), is_test: i % 10 == 9, words })
    };
    Ok(text.lines().enumerate().filter_map(document).collect())
}

/// GloVe vectors of 50 or 100 dimensions.
pub(crate) fn vectors(data: &Path, dim: usize) -> Result<(Lexicon, WordVectors)> {
    let name = match dim {
        100 => "vectors/glove.6B.100d.top30k.txt",
        _ => "vectors/glove.6B.100d-pca50.top30k.txt",
    };
    let path = data.join(name);
    let reading = || format!("cannot read `{}`", path.display());
    let mut file = BufReader::new(open_input(&path).with_context(reading)?);
    read_text(&mut file, TextFormat::Glove, &Preprocessing::default()).with_context(reading)
}

/// Synonyms of words, in the order of the file.
pub(crate) fn synonyms(data: &Path, name: &str) -> Result<HashMap<String, Vec<String>>> {
    let text = read(&data.join("synonyms").join(name))?;
    let entry = |line: &str| {
        let (word, synonyms) = line.split_once('\t')?;
        let synonyms = synonyms.split_ascii_whitespace().map(str::to_owned).collect();
        Some((word.to_owned(), synonyms))
    };
    Ok(text.lines().filter_map(entry).collect())
}

fn read(path: &Path) -> Result<String> {
    let reading = || format!("cannot read `{}`", path.display());
    let mut text = String::new();
    open_input(path).with_context(reading)?.read_to_string(&mut text).with_context(reading)?;
    Ok(text)
}

/// Encodes documents with a vocabulary of their words that are not rare.
pub(crate) fn encode(documents: &[Document]) -> Result<DocumentCorpus> {
    let limits = VocabLimits { min_count: MIN_COUNT, max_vocab: 0 };
    in_file(documents, |inputs| {
        Ok(DocumentCorpus::read(inputs, &Preprocessing::default(), &limits)?)
    })
}

/// Encodes documents with the vocabulary of a model.
pub(crate) fn encode_with(documents: &[Document], lexicon: &Lexicon) -> Result<Documents> {
    in_file(documents, |inputs| Ok(Documents::read_with(inputs, lexicon)?))
}

fn in_file<T>(documents: &[Document], read: impl FnOnce(&Inputs) -> Result<T>) -> Result<T> {
    let mut text = String::new();
    for document in documents {
        writeln!(text, "{}\t{}", document.label, document.words.join(" "))?;
    }
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let path = folder.path().join("documents");
    fs::write(&path, text).context("cannot write a temporary file")?;
    let format = Some(Format::Docs(vec![Field::Label, Field::Text]));
    read(&Inputs::new([path]).format(format))
}
