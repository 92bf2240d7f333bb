//! From a tagged text to a tagger.

use super::optimize::{Task, learn};
use crate::tagging::features::encoders::{Encoder, Reading, Rows, read_rows};
use crate::tagging::features::examples::{Examples, Lexical};
use crate::tagging::fitted::tagger::{Direct, FeatureTagger, FittedEncoder, TagNames};
use crate::tagging::params::{Kind, TaggerParams};
use crate::tagging::spans::are_chunk_tags;
use crate::tagging::weights::fitted::Weights;
use crate::tagging::weights::layout::Layout;
use latens_corpus::{
    EOS, Lexicon, MissingColumn, Preprocessing, TaggedSentences, Vocab, VocabLimits,
};
use latens_model::{Checkpoint, FitError, ParamError, Progress, Valid, Watch, check_that};
use latens_store::StringTable;
use serde_json::{Map, json};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Instant;
use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

/// Why a tagger could not be learned.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TaggerError {
    /// A word has no such column.
    #[error(transparent)]
    Column(#[from] MissingColumn),
    /// A column has too many different tags to be one of tags.
    #[error(
        "column {column} has {n_tags} different tags, more than {MAX_TAGS}: is it the right one?"
    )]
    TooManyTags {
        /// The column, counted from 1.
        column: usize,
        /// How many there are.
        n_tags: usize,
    },
    /// There is nothing to look at.
    #[error("a tagger without lexical features needs an encoder")]
    NoFeatures,
    /// Learning failed.
    #[error(transparent)]
    Fit(#[from] FitError),
}

/// More tags would need more transitions than there are words in any text.
const MAX_TAGS: usize = 1000;

impl From<ParamError> for TaggerError {
    fn from(error: ParamError) -> TaggerError {
        TaggerError::Fit(error.into())
    }
}

/// What a tagger learns from.
pub struct TaggedTraining<'a> {
    /// The text.
    pub text: &'a TaggedSentences,
    /// The column that has the tags, counted from 0.
    pub column: usize,
    /// How plain text is cut into words that are like those of the text.
    pub preprocessing: Preprocessing,
}

impl FeatureTagger {
    /// Learns a tagger. The encoders become part of it.
    pub fn fit(
        params: &Valid<TaggerParams>,
        training: &TaggedTraining<'_>,
        encoders: Vec<Encoder>,
        watch: &mut Watch,
    ) -> Result<FeatureTagger, TaggerError> {
        fit(params, training, encoders, None, watch)
    }

    /// Goes on from a checkpoint with the same parameters, text and encoders.
    pub fn resume(
        params: &Valid<TaggerParams>,
        training: &TaggedTraining<'_>,
        encoders: Vec<Encoder>,
        checkpoint: &Checkpoint,
        watch: &mut Watch,
    ) -> Result<FeatureTagger, TaggerError> {
        fit(params, training, encoders, Some(checkpoint), watch)
    }
}

fn fit(
    params: &Valid<TaggerParams>,
    training: &TaggedTraining<'_>,
    encoders: Vec<Encoder>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<FeatureTagger, TaggerError> {
    let started = Instant::now();
    let text = training.text;
    text.check_column(training.column)?;
    params.pos_column.map_or(Ok(()), |column| text.check_column(column))?;
    let sees_itself = params.pos_column == Some(training.column);
    let must = "another column than that of the tags to learn";
    check_that(!sees_itself, "pos_column", must, training.column + 1).map_err(FitError::from)?;
    if !params.has_lexical() && encoders.is_empty() {
        return Err(TaggerError::NoFeatures);
    }
    let report = |done: u64, watch: &mut Watch| {
        let total = Some(1 + encoders.len() as u64);
        Progress { phase: "read features", done, total, unit: "kinds", ..Progress::default() }
            .report(watch)
    };
    report(0, watch)?;
    let (names, tags) = read_tags(params, training)?;
    let direct = Direct::of(params, text, &tags);
    let lexical = match params.has_lexical() {
        true => Lexical::read(text, params.pos_column, params.min_count),
        false => Lexical::default(),
    };
    let (mut readings, mut blocks): (Vec<(Reading, Vec<f32>)>, Vec<Rows>) =
        (Vec::new(), Vec::new());
    for (encoder, done) in encoders.iter().zip(1..) {
        report(done, watch)?;
        let (reading, means, rows) = read_rows(encoder, text, params.scale);
        readings.push((reading, means));
        blocks.push(rows);
    }
    let words = text.iter().flat_map(|sentence| sentence.words());
    let counts = words.map(|word| direct.words.find(word).is_none()).collect();
    let ends = text.iter().scan(0, |end, sentence| {
        *end += sentence.len();
        Some(*end)
    });
    let n_tags = names.own.len();
    let ends = ends.collect();
    let examples = Examples { n_tags, ends, tags, counts, lexical, blocks, window: params.window };
    let n_hidden = if params.has_network() { params.n_hidden } else { 0 };
    let layout = Layout::new(&examples, params.pairs, params.kind == Kind::Crf, n_hidden);
    let fingerprint = fingerprint(training, &encoders);
    let task = Task { params, examples: &examples, layout: &layout, fingerprint };
    let learned = learn(&task, checkpoint, watch)?;

    let fitted = encoders.into_iter().zip(readings).enumerate().map(
        |(block, (encoder, (reading, means)))| {
            let places = 0..layout.n_places;
            let weights = places.flat_map(|place| &learned.weights[layout.block(block, place)]);
            let weights = weights.map(|&w| w as f32).collect();
            FittedEncoder { encoder, reading, means, weights }
        },
    );
    let mut facts = Map::new();
    facts.insert("tokens".into(), json!(text.n_tokens()));
    facts.insert("sentences".into(), json!(text.len()));
    facts.insert("tags".into(), json!(n_tags));
    facts.extend(learned.facts);
    facts.insert("seconds".into(), json!(started.elapsed().as_secs_f64()));
    Ok(FeatureTagger {
        params: params.clone(),
        lexicon: lexicon(training),
        facts,
        tags: names,
        weights: Weights::of(&learned.weights, &layout, &examples.lexical.attributes),
        encoders: fitted.collect(),
        direct,
        word_scores: OnceLock::new(),
    })
}

/// The tags of all tokens as numbers, in the tagger's own scheme if they are of spans.
fn read_tags(
    params: &TaggerParams,
    training: &TaggedTraining<'_>,
) -> Result<(TagNames, Vec<u16>), TaggerError> {
    let columns = training.text.iter().map(|s| s.column(training.column).expect("it was checked"));
    let columns: Vec<Vec<&str>> = columns.collect();
    let are_spans = are_chunk_tags(columns.iter().flatten().copied());
    let (mut names, mut tags) =
        (StringTable::default(), Vec::with_capacity(training.text.n_tokens()));
    for column in &columns {
        if are_spans {
            tags.extend(params.spans.write(column).iter().map(|tag| names.intern(tag)));
        } else {
            tags.extend(column.iter().map(|tag| names.intern(tag)));
        }
    }
    if names.len() > MAX_TAGS {
        let (column, n_tags) = (training.column + 1, names.len());
        return Err(TaggerError::TooManyTags { column, n_tags });
    }
    let names = TagNames::new(names.iter().map(str::to_owned).collect(), are_spans);
    Ok((names, tags.into_iter().map(|tag| tag as u16).collect()))
}

impl Direct {
    /// The most frequent tags, of equal ones the first, of punctuation and of the words that are named, for a
    /// local tagger (Belanger and Kakade 2015, §7.2).
    fn of(params: &TaggerParams, text: &TaggedSentences, tags: &[u16]) -> Direct {
        let mut direct = Direct::default();
        if params.kind != Kind::Local {
            return direct;
        }
        let mut counts: Vec<HashMap<u16, usize>> = Vec::new();
        let words = text.iter().flat_map(|sentence| sentence.words());
        for (word, &tag) in words.zip(tags) {
            let is_named = params.direct_words.iter().any(|named| named == word);
            if is_named || !word.chars().any(char::is_alphanumeric) {
                let number = direct.words.intern(word) as usize;
                counts.resize_with(direct.words.len(), HashMap::new);
                *counts[number].entry(tag).or_default() += 1;
            }
        }
        let most = |counts: &HashMap<u16, usize>| {
            let most = counts.iter().max_by_key(|&(&tag, &n)| (n, std::cmp::Reverse(tag)));
            *most.expect("every word has a tag").0
        };
        direct.tags = counts.iter().map(most).collect();
        direct
    }
}

/// The words of the text, as they were written, and how often.
fn lexicon(training: &TaggedTraining<'_>) -> Lexicon {
    let mut words = StringTable::default();
    let mut counts: Vec<u64> = Vec::new();
    for word in training.text.iter().flat_map(|sentence| sentence.words()) {
        let number = words.intern(word) as usize;
        counts.resize(words.len(), 0);
        counts[number] += 1;
    }
    let limits = VocabLimits::default();
    let ends = [(EOS, training.text.len() as u64)];
    let counted = words.iter().zip(counts).filter(|(word, _)| *word != EOS).chain(ends);
    let vocab = Vocab::from_counts(counted, &limits);
    Lexicon { preprocessing: training.preprocessing, limits, vocab }
}

/// A number that is the same for the same words, tags, parts of speech and encoders only.
fn fingerprint(training: &TaggedTraining<'_>, encoders: &[Encoder]) -> u64 {
    let mut hash = Xxh3::new();
    for sentence in training.text.iter() {
        for token in 0..sentence.len() {
            for cell in sentence.row(token) {
                hash.update(cell.as_bytes());
                hash.update(b"\t");
            }
            hash.update(b"\n");
        }
        hash.update(b"\n");
    }
    hash.update(&training.column.to_le_bytes());
    for encoder in encoders {
        hash.update(encoder.features.as_bytes());
        hash.update(&encoder.file);
    }
    hash.digest()
}
