//! Fits a tagger to a tagged text.

use super::cost::cost;
use super::data::{TaggedTraining, TaggerInputs};
use super::early::{EarlyStop, Judge};
use super::error::{MAX_TAGS, TaggerError};
use super::optimize::{Task, learn};
use crate::tagging::evaluation::scores::evaluate;
use crate::tagging::features::encoder::{Encoder, EncoderInfo};
use crate::tagging::features::examples::Examples;
use crate::tagging::features::lexical::Lexical;
use crate::tagging::features::rows::{Rows, read_rows};
use crate::tagging::fitted::direct::Direct;
use crate::tagging::fitted::fitted_encoder::FittedEncoder;
use crate::tagging::fitted::tag_names::TagNames;
use crate::tagging::fitted::tagger::FeatureTagger;
use crate::tagging::params::TaggerParams;
use crate::tagging::spans::are_chunk_tags;
use crate::tagging::weights::fitted::Weights;
use crate::tagging::weights::layout::Layout;
use latens_corpus::{EOS, Lexicon, Preprocessing, TaggedSentences, Vocab, VocabLimits};
use latens_model::{
    Checkpoint, Cost, Fit, FitError, Progress, Session, Setup, Valid, Watch, check_that,
};
use latens_store::StringTable;
use serde_json::{Map, json};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use xxhash_rust::xxh3::Xxh3;

impl Fit for TaggerParams {
    type Model = FeatureTagger;
    type Data = TaggedSentences;
    type Inputs<'a> = TaggerInputs;
    type Error = TaggerError;

    fn cost_with(
        params: &TaggerParams,
        text: &TaggedSentences,
        inputs: &TaggerInputs,
        _: &Setup<'_>,
    ) -> Cost {
        cost(params, text, inputs)
    }

    fn fit_with(
        params: &Valid<TaggerParams>,
        text: &TaggedSentences,
        inputs: TaggerInputs,
        session: Session<'_>,
    ) -> Result<FeatureTagger, TaggerError> {
        session.refuse_valid()?;
        session.refuse_cuda()?;
        let TaggerInputs { column, preprocessing, encoders, dev, patience } = inputs;
        let text = &*text.normalized(&preprocessing);
        let training = TaggedTraining { text, column, preprocessing };
        let dev = dev.as_ref().map(|dev| (dev, patience));
        fit(params, &training, encoders, dev, session.checkpoint, session.watch)
    }
}

fn fit(
    params: &Valid<TaggerParams>,
    training: &TaggedTraining<'_>,
    encoders: Vec<Encoder>,
    dev: Option<(&TaggedSentences, usize)>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<FeatureTagger, TaggerError> {
    let started = Instant::now();
    let text = training.text;
    text.check_column(training.column)?;
    params.pos_column.map_or(Ok(()), |column| text.check_column(column))?;
    if let Some((dev, _)) = dev {
        dev.check_column(training.column)?;
        params.pos_column.map_or(Ok(()), |column| dev.check_column(column))?;
    }
    let is_same = params.pos_column == Some(training.column);
    let must = "different from the column of the tags";
    check_that(!is_same, "pos_column", must, training.column + 1).map_err(FitError::from)?;
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
    let (mut infos, mut blocks): (Vec<(EncoderInfo, Vec<f32>)>, Vec<Rows>) =
        (Vec::new(), Vec::new());
    for (encoder, done) in encoders.iter().zip(1..) {
        report(done, watch)?;
        let (info, means, rows) = read_rows(encoder, text, params.scale);
        infos.push((info, means));
        blocks.push(rows);
    }
    let words = text.iter().flat_map(|sentence| sentence.words());
    let counts = words.map(|word| direct.words.find(word).is_none()).collect();
    let ends = text.iter().scan(0, |end, sentence| {
        *end += sentence.len();
        Some(*end)
    });
    let n_tags = names.internal.len();
    let ends = ends.collect();
    let examples = Examples { n_tags, ends, tags, counts, lexical, blocks, window: params.window };
    let layout = Layout::new(&examples, params.pairs, params.kind, params.n_hidden_units());
    let (examples, layout) = (Arc::new(examples), Arc::new(layout));
    let fingerprint = fingerprint(training, &encoders);
    let task = Task { params, examples: &examples, layout: &layout, fingerprint };
    let fitted = encoders.into_iter().zip(infos).map(|(encoder, (info, means))| FittedEncoder {
        encoder,
        info,
        means,
        weights: Vec::new(),
    });
    let mut tagger = FeatureTagger {
        params: params.clone(),
        lexicon: lexicon(training),
        facts: Map::new(),
        tags: names,
        weights: Weights::of(&vec![0.0; layout.n_weights()], &layout, &examples.lexical.attributes),
        encoders: fitted.collect(),
        direct,
        word_scores: OnceLock::new(),
    };
    let attributes = &examples.lexical.attributes;
    let learned = {
        let mut judge = |weights: &[f64]| {
            set_weights(&mut tagger, weights, &layout, attributes);
            dev.map_or(0.0, |(dev, _)| score(&tagger, dev, training.column))
        };
        let patience = dev.map_or(0, |(_, patience)| patience);
        let judge: Option<&mut Judge<'_>> = if dev.is_some() { Some(&mut judge) } else { None };
        learn(&task, checkpoint, EarlyStop::new(judge, patience), watch)?
    };
    set_weights(&mut tagger, &learned.weights, &layout, attributes);
    let facts = &mut tagger.facts;
    facts.insert("tokens".into(), json!(text.n_tokens()));
    facts.insert("sentences".into(), json!(text.len()));
    facts.insert("tags".into(), json!(n_tags));
    facts.extend(learned.facts);
    facts.insert("seconds".into(), json!(started.elapsed().as_secs_f64()));
    Ok(tagger)
}

/// Gives a tagger the learned weights.
fn set_weights(
    tagger: &mut FeatureTagger,
    learned: &[f64],
    layout: &Layout,
    attributes: &StringTable,
) {
    tagger.weights = Weights::of(learned, layout, attributes);
    for (block, encoder) in tagger.encoders.iter_mut().enumerate() {
        let positions = 0..layout.n_positions;
        let weights = positions.flat_map(|position| &learned[layout.block(block, position)]);
        encoder.weights = weights.map(|&w| w as f32).collect();
    }
    tagger.word_scores = OnceLock::new();
}

/// The F1 of spans, or the accuracy.
fn score(tagger: &FeatureTagger, dev: &TaggedSentences, column: usize) -> f64 {
    let scores = evaluate(tagger, dev, column).expect("the columns were checked");
    scores.spans.map_or(scores.accuracy, |spans| spans.f1)
}

/// The names of tags, and the tag index of each token. Tags of spans are converted to the scheme of the parameters.
fn read_tags(
    params: &TaggerParams,
    training: &TaggedTraining<'_>,
) -> Result<(TagNames, Vec<u16>), TaggerError> {
    let columns =
        training.text.iter().map(|s| s.column(training.column).expect("the column was checked"));
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

/// The words of the text, as written, with their counts.
fn lexicon(training: &TaggedTraining<'_>) -> Lexicon {
    let mut words = StringTable::default();
    let mut counts: Vec<u64> = Vec::new();
    for word in training.text.iter().flat_map(|sentence| sentence.words()) {
        let index = words.intern(word) as usize;
        counts.resize(words.len(), 0);
        counts[index] += 1;
    }
    lexicon_of(training.preprocessing, &words, &counts, training.text.len() as u64)
}

/// The lexicon of words with their counts.
pub(crate) fn lexicon_of(
    preprocessing: Preprocessing,
    words: &StringTable,
    counts: &[u64],
    n_sentences: u64,
) -> Lexicon {
    let limits = VocabLimits::default();
    let counted = words.iter().zip(counts.iter().copied()).filter(|(word, _)| *word != EOS);
    let vocab = Vocab::from_counts(counted.chain([(EOS, n_sentences)]), &limits);
    Lexicon::new(preprocessing, limits, vocab)
}

/// Hash of the text, the column of the tags and the encoders.
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
