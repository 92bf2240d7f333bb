//! Learning from the shards of a text: the one list of models that can, and a driver for one process.

use latens_corpus::Lexicon;
use latens_model::shards::{Arrays, KindOf, Part, Round, ShardError, ShardKind, VocabCounts};
use latens_model_brown::BrownShards;
use latens_model_fhmm::FhmmShards;
use latens_model_hmm::HmmShards;
use latens_model_lda::{GldaShards, LdaShards};
use latens_model_lds::LdsShards;
use latens_model_ngram::NgramShards;
use latens_model_word2vec::Word2vecShards;
use latens_tasks::tagging::TaggerShards;
use serde_json::Value;

/// Every kind of model that is learned from shards.
pub static SHARD_KINDS: &[&dyn ShardKind] = &[
    &KindOf::<BrownShards>::new(),
    &KindOf::<FhmmShards>::new(),
    &KindOf::<GldaShards>::new(),
    &KindOf::<HmmShards>::new(),
    &KindOf::<LdaShards>::new(),
    &KindOf::<LdsShards>::new(),
    &KindOf::<NgramShards>::new(),
    &KindOf::<TaggerShards>::new(),
    &KindOf::<VocabCounts>::new(),
    &KindOf::<Word2vecShards>::new(),
];

/// The kind of model with this name.
pub fn shard_kind(kind: &str) -> Result<&'static dyn ShardKind, ShardError> {
    let found = SHARD_KINDS.iter().find(|known| known.kind() == kind);
    found.copied().ok_or_else(|| ShardError::UnknownKind { kind: kind.to_owned() })
}

/// Learns a model or a vocabulary from shards in this process, one shard after the other.
///
/// Engines that distribute the work call the same functions of [`ShardKind`]; the result is the same.
///
/// ```
/// use latens::corpus::Corpus;
/// use latens::model::shards::{Arrays, Part, Round};
///
/// let texts = [["the cat sleeps", "a dog barks"], ["the dog sleeps", "a cat walks"]];
/// let lexicon = Corpus::from_lines(texts.concat())?.lexicon;
/// let parts = texts.map(|lines| Part::Lines(lines.map(str::to_owned).to_vec()));
/// let params = serde_json::json!({ "order": 2 });
/// let result = latens::fit_shards("ngram", params, lexicon, &parts, Arrays::new())?;
/// assert!(matches!(result, Round::Model(model) if model.kind() == "ngram"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fit_shards(
    kind: &str,
    params: Value,
    lexicon: Lexicon,
    parts: &[Part],
    inputs: Arrays,
) -> Result<Round, ShardError> {
    let kind = shard_kind(kind)?;
    let mut broadcast = kind.begin(params, lexicon, parts.len(), inputs)?;
    let encoded = parts.iter().enumerate().map(|(shard, part)| kind.read(&broadcast, shard, part));
    let encoded = encoded.collect::<Result<Vec<_>, _>>()?;
    let mut kept = vec![None; parts.len()];
    loop {
        let mut all = Vec::new();
        for (part, kept) in encoded.iter().zip(&mut kept) {
            let mut statistics = kind.statistics(&broadcast, part, kept.as_ref())?;
            *kept = statistics.take_carry();
            all.push(statistics);
        }
        match kind.update(&broadcast, kind.merge(all)?)? {
            Round::Next(next) => broadcast = *next,
            done => return Ok(done),
        }
    }
}
