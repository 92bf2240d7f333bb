//! Word vectors: neighbors, analogies, a map, the pairs of a transition, and typed sentences.

mod map;

use super::args::{NoArgs, TextArgs, WordArgs, parse};
use super::text::{Typed, largest, weighted};
use crate::error::ViewError;
use latens::corpus::WordId;
use latens::lds::{Features, Lds, SingularPair};
use latens::math::dot_wide;
use latens::model::{FeatureRows, Model, TokenEncoder, WordVectors};
use map::{Maps, Projection};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// Limit on the words of a typed sentence.
const MAX_WORDS: usize = 100;

/// What is computed once per model.
#[derive(Default)]
pub(crate) struct VectorCache {
    vectors: OnceLock<Option<WordVectors>>,
    maps: Maps,
    /// States of sentences of one word.
    alone: OnceLock<Option<WordVectors>>,
}

impl VectorCache {
    /// Computes what the first queries need, so that they are answered at once.
    pub(crate) fn fill(&self, model: &dyn Model) {
        if let Some(vectors) = self.vectors(model) {
            self.maps.fill(model, vectors);
            vectors.prepare_search();
        }
    }

    /// Computes what otherwise goes on in the background, and waits for it.
    pub(crate) fn finish(&self, model: &dyn Model) {
        if let Some(vectors) = self.vectors(model) {
            self.maps.finish(model, vectors);
        }
    }

    fn vectors(&self, model: &dyn Model) -> Option<&WordVectors> {
        // Some models compute them.
        self.vectors.get_or_init(|| Some(model.word_vectors()?.into_owned())).as_ref()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MapArgs {
    #[serde(default)]
    projection: Projection,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnalogyArgs {
    a: String,
    b: String,
    c: String,
}

/// Answers `map`, `neighbors`, `analogy`, `pairs` and `embed`; `None` for other views, and models without vectors.
pub(crate) fn answer(
    model: &dyn Model,
    cache: &VectorCache,
    view: &str,
    args: &Value,
) -> Option<Result<Value, ViewError>> {
    let vectors = cache.vectors(model)?;
    Some(match (view, model.downcast_ref::<Lds>()) {
        ("map", _) => parse::<MapArgs>(args)
            .and_then(|args| cache.maps.answer(model, vectors, args.projection)),
        ("neighbors", _) => {
            parse::<WordArgs>(args).and_then(|args| neighbors(model, vectors, &args.word))
        }
        ("analogy", _) => parse::<AnalogyArgs>(args)
            .and_then(|args| analogy(model, vectors, [&args.a, &args.b, &args.c])),
        ("pairs", Some(lds)) => parse::<NoArgs>(args).and_then(|_| pairs(lds)),
        ("embed", Some(lds)) => {
            parse::<TextArgs>(args).and_then(|args| embed(lds, vectors, cache, &args.text))
        }
        ("embed", None) => {
            parse::<TextArgs>(args).and_then(|args| embed_mean(model, vectors, &args.text))
        }
        _ => return None,
    })
}

/// Finds a word after the preprocessing of the model, or in lowercase.
fn find(model: &dyn Model, vectors: &WordVectors, word: &str) -> Result<WordId, ViewError> {
    let (lexicon, word) = (model.lexicon(), word.trim());
    let known = |word: &str| lexicon.vocab.get(word).filter(|&id| vectors.get(id).is_some());
    let found = known(&lexicon.preprocessing.normalize_word(word));
    found
        .or_else(|| known(&word.to_lowercase()))
        .ok_or_else(|| ViewError::no_answer(format!("`{word}` has no vector")))
}

fn listed(model: &dyn Model, found: Vec<(WordId, f32)>) -> Vec<Value> {
    let vocab = &model.lexicon().vocab;
    let words = found.into_iter().map(|(id, cosine)| (vocab.word(id), f64::from(cosine)));
    weighted("similarity", words)
}

fn neighbors(model: &dyn Model, vectors: &WordVectors, word: &str) -> Result<Value, ViewError> {
    let id = find(model, vectors, word)?;
    let vector = vectors.get(id).expect("the word was found by its vector");
    let vocab = &model.lexicon().vocab;
    let nearest = listed(model, vectors.nearest(vector, 20, &[id]));
    Ok(json!({ "word": vocab.word(id), "count": vocab.count(id), "neighbors": nearest }))
}

fn analogy(
    model: &dyn Model,
    vectors: &WordVectors,
    words: [&String; 3],
) -> Result<Value, ViewError> {
    let mut ids = [WordId::UNK; 3];
    for (id, word) in ids.iter_mut().zip(words) {
        *id = find(model, vectors, word)?;
    }
    let [a, b, c] = ids;
    let query = vectors.analogy(a, b, c).expect("all words have vectors");
    let vocab = &model.lexicon().vocab;
    Ok(json!({
        "words": ids.map(|id| vocab.word(id)),
        "nearest": listed(model, vectors.nearest(&query, 10, &ids)),
    }))
}

/// The pairs of singular vectors of the transition matrix, with their words.
fn pairs(lds: &Lds) -> Result<Value, ViewError> {
    let found = lds.singular_pairs(12, 8, 5).map_err(ViewError::no_answer)?;
    let vocab = &lds.lexicon().vocab;
    let side = |words: &[(WordId, f64)]| {
        weighted("weight", words.iter().map(|&(id, weight)| (vocab.word(id), weight)))
    };
    let pair = |pair: &SingularPair| json!({ "strength": pair.strength, "from": side(&pair.from), "to": side(&pair.to) });
    let values = lds.singular_values().map_err(ViewError::no_answer)?;
    Ok(json!({ "pairs": found.iter().map(pair).collect::<Vec<_>>(), "values": values }))
}

/// The words of a sentence: their neighbors by their own vectors and in context, and the next words.
fn embed(
    lds: &Lds,
    vectors: &WordVectors,
    cache: &VectorCache,
    text: &str,
) -> Result<Value, ViewError> {
    const N: usize = 6;
    let typed = Typed::new(lds, text, MAX_WORDS)?;
    let vocab = &lds.lexicon().vocab;
    let mut rows = FeatureRows::new();
    lds.encoder(Features::Smoothed).encode(&typed.sentence(), &mut rows);
    let alone = cache.alone.get_or_init(|| states_alone(lds)).as_ref();
    let in_context = |state: &[f32], id: WordId| match alone {
        Some(alone) => listed(lds, alone.nearest(state, N, &[id])),
        None => Vec::new(),
    };
    let token = |(at, (_, state)): (usize, (&[u32], &[f32]))| {
        let id = typed.ids[at];
        let alone = vectors.get(id).map(|vector| listed(lds, vectors.nearest(vector, N, &[id])));
        json!({
            "word": typed.words[at],
            "known": typed.is_known(at),
            "alone": alone,
            "in_context": in_context(state, id),
        })
    };
    let tokens: Vec<Value> = rows.iter().enumerate().take(typed.words.len()).map(token).collect();
    let probs = lds.next_word_probs(&typed.ids);
    let next: Vec<(&str, f64)> = largest(&probs, 15)
        .into_iter()
        .map(|word| (vocab.word(WordId::from(word)), probs[word]))
        .collect();
    Ok(json!({ "tokens": tokens, "next": weighted("prob", next) }))
}

/// The mean of the vectors of a sentence: the nearest words, and how similar its own words are. Unknown words are left out.
fn embed_mean(model: &dyn Model, vectors: &WordVectors, text: &str) -> Result<Value, ViewError> {
    let typed = Typed::new(model, text, MAX_WORDS)?;
    // `<unk>` may have a vector.
    let vector = |at: usize| typed.is_known(at).then(|| vectors.get(typed.ids[at])).flatten();
    let rows: Vec<&[f32]> = (0..typed.words.len()).filter_map(vector).collect();
    let mut mean = vec![0.0; vectors.dim()];
    for row in &rows {
        mean.iter_mut().zip(*row).for_each(|(sum, x)| *sum += x / rows.len() as f32);
    }
    let length = |vector: &[f32]| dot_wide(vector, vector).sqrt();
    let similarity = |vector: &[f32]| {
        let cosine = dot_wide(vector, &mean) / (length(vector) * length(&mean));
        cosine.is_finite().then_some(cosine)
    };
    let token = |at: usize| {
        json!({
            "word": typed.words[at],
            "known": vector(at).is_some(),
            "similarity": vector(at).and_then(similarity),
        })
    };
    let has_direction = mean.iter().any(|&x| x != 0.0);
    let nearest = if has_direction { vectors.nearest(&mean, 20, &[]) } else { Vec::new() };
    Ok(json!({
        "tokens": (0..typed.words.len()).map(token).collect::<Vec<_>>(),
        "sentence": listed(model, nearest),
    }))
}

/// The states of frequent words as sentences of one word, in the same space as the states of words in context.
fn states_alone(lds: &Lds) -> Option<WordVectors> {
    /// Number of words that are compared.
    const N_WORDS: usize = 20_000;
    let (encoder, n_words) = (lds.encoder(Features::Smoothed), lds.lexicon().vocab.len());
    // Words are numbered by descending frequency.
    let mut values = Vec::new();
    for word in 0..n_words {
        let mut rows = FeatureRows::new();
        if (2..N_WORDS).contains(&word) {
            encoder.encode(&[WordId::from(word), WordId::EOS], &mut rows);
        }
        match rows.iter().next() {
            Some((_, state)) => values.extend_from_slice(state),
            None => values.resize(values.len() + lds.dim(), 0.0),
        }
    }
    WordVectors::new(lds.dim(), values).ok()
}
