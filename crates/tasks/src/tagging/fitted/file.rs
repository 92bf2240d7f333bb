//! The file of a tagger, which contains the files of its encoders.

use super::direct::Direct;
use super::fitted_encoder::FittedEncoder;
use super::tag_names::TagNames;
use super::tagger::FeatureTagger;
use crate::tagging::features::encoder::{Encoder, EncoderInfo};
use crate::tagging::features::word_encoder::WordEncoder;
use crate::tagging::params::TaggerParams;
use crate::tagging::spans::are_chunk_tags;
use crate::tagging::weights::fitted::Weights;
use latens_corpus::Lexicon;
use latens_model::{FileError, Model, ModelFile, ModelWriter, Tagger};
use latens_store::{FlatArray, StringTable};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::OnceLock;

/// Opens the encoder in a model file, with features of the given kind. The caller knows all kinds of models.
pub type OpenEncoder<'o> = dyn Fn(&ModelFile, &str) -> Result<Box<dyn WordEncoder>, FileError> + 'o;

/// Key of the [`EncoderInfo`]s among the training facts.
const ENCODERS: &str = "encoders";

/// Adds the arrays `name.letters` and `name.ends` of a table of strings.
fn write_strings<'a>(name: &str, table: &StringTable, writer: ModelWriter<'a>) -> ModelWriter<'a> {
    let letters = table.letters().as_bytes().to_vec();
    let ends: Vec<u64> = table.ends().collect();
    writer.owned_array(&format!("{name}.letters"), &[letters.len()], letters).owned_array(
        &format!("{name}.ends"),
        &[ends.len()],
        ends,
    )
}

fn read_strings(file: &ModelFile, name: &str) -> Result<StringTable, FileError> {
    let letters = file.vector(&format!("{name}.letters"))?;
    let ends = file.vector(&format!("{name}.ends"))?;
    StringTable::from_arrays(&letters, &ends)
        .ok_or_else(|| file.invalid(format!("the arrays of `{name}` are inconsistent")))
}

impl Model for FeatureTagger {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn description(&self) -> &'static str {
        "a tagger"
    }

    fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    fn params_json(&self) -> Value {
        self.fitted_with().to_json()
    }

    fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    fn writer(&self) -> ModelWriter<'_> {
        let infos: Vec<&EncoderInfo> = self.encoders.iter().map(|encoder| &encoder.info).collect();
        let Weights { attributes, offsets, tags: weight_tags, values, transitions, network } =
            &self.weights;
        let n_tags = self.tags.internal.len();
        let mut writer = ModelWriter::new(Self::KIND, &self.params)
            .lexicon(&self.lexicon)
            .facts(&self.facts)
            .fact(ENCODERS, &infos)
            .array("attributes.offsets", &[offsets.len()], offsets)
            .array("weights.tags", &[values.len()], weight_tags)
            .array("weights", &[values.len()], values)
            .array("transitions", &[n_tags, n_tags], transitions)
            .array("network", &[network.len()], network)
            .array("direct.tags", &[self.direct.tags.len()], &self.direct.tags);
        let tags: StringTable = self.tags.internal.iter().collect();
        for (name, table) in
            [("tags", &tags), ("attributes", attributes), ("direct", &self.direct.words)]
        {
            writer = write_strings(name, table, writer);
        }
        for (i, encoder) in self.encoders.iter().enumerate() {
            let (file, n_weights) = (words(&encoder.encoder.file), encoder.weights.len());
            writer = writer
                .owned_array(&format!("encoder.{i}.file"), &[file.len()], file)
                .array(&format!("encoder.{i}.means"), &[encoder.means.len()], &encoder.means)
                .array(&format!("encoder.{i}.weights"), &[n_weights], &encoder.weights);
        }
        writer
    }

    fn as_tagger(&self) -> Option<Box<dyn Tagger + '_>> {
        Some(Box::new(self))
    }
}

impl FeatureTagger {
    /// Saves the tagger to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.writer().save(path)
    }

    /// Reads the tagger in an open file. `open` opens the encoders in it.
    pub fn from_file(file: &ModelFile, open: &OpenEncoder<'_>) -> Result<FeatureTagger, FileError> {
        file.expect_kind(Self::KIND)?;
        let params = file.parameters::<TaggerParams>()?;
        let tags: Vec<String> = read_strings(file, "tags")?.iter().map(str::to_owned).collect();
        let n_tags = tags.len();
        if n_tags == 0 || n_tags > usize::from(u16::MAX) {
            return Err(
                file.invalid(format!("the number of tags is {n_tags}, expected 1 to {}", u16::MAX))
            );
        }
        let are_spans = are_chunk_tags(tags.iter().map(String::as_str));
        let width = if params.has_network() { params.n_hidden } else { n_tags };
        let weights = read_weights(file, &params, n_tags)?;
        let direct = Direct {
            words: read_strings(file, "direct")?,
            tags: file.vector("direct.tags")?.to_vec(),
        };
        let known = |tags: &[u16]| tags.iter().all(|&tag| usize::from(tag) < n_tags);
        if !known(&weights.tags) || !known(&direct.tags) || direct.words.len() != direct.tags.len()
        {
            return Err(file.invalid("a tag index is out of range"));
        }
        let infos = file.header().training.get(ENCODERS).cloned().unwrap_or(Value::Array(vec![]));
        let infos = Vec::<EncoderInfo>::deserialize(infos)
            .map_err(|_| file.invalid("the descriptions of its encoders are invalid"))?;
        let mut encoders = Vec::with_capacity(infos.len());
        for (i, info) in infos.into_iter().enumerate() {
            encoders.push(read_encoder(file, i, info, (2 * params.window + 1) * width, open)?);
        }
        let mut facts = file.header().training.clone();
        facts.remove(ENCODERS);
        let (lexicon, tags) = (file.lexicon()?, TagNames::new(tags, are_spans));
        let word_scores = OnceLock::new();
        Ok(FeatureTagger { params, lexicon, facts, tags, weights, encoders, direct, word_scores })
    }
}

fn read_weights(
    file: &ModelFile,
    params: &TaggerParams,
    n_tags: usize,
) -> Result<Weights, FileError> {
    let attributes = read_strings(file, "attributes")?;
    let offsets = file.array::<u64>("attributes.offsets", &[attributes.len() + 1])?.to_vec();
    let n_values = offsets[offsets.len() - 1] as usize;
    if !offsets.is_sorted() || offsets[0] != 0 {
        return Err(file.invalid("the offsets of its attributes are not sorted"));
    }
    let n_hidden = params.n_hidden_units();
    let n_network = if n_hidden > 0 { n_hidden + n_hidden * n_tags + n_tags } else { 0 };
    Ok(Weights {
        attributes,
        offsets,
        tags: file.array("weights.tags", &[n_values])?.to_vec(),
        values: file.finite_array("weights", &[n_values])?.to_vec(),
        transitions: file.finite_array("transitions", &[n_tags, n_tags])?.to_vec(),
        network: file.finite_array("network", &[n_network])?.to_vec(),
    })
}

fn read_encoder(
    file: &ModelFile,
    i: usize,
    info: EncoderInfo,
    n_weights: usize,
    open: &OpenEncoder<'_>,
) -> Result<FittedEncoder, FileError> {
    let name = format!("encoder.{i}.file");
    let part = file.part(&name, info.n_bytes)?;
    let model = open(&part, &info.features)?;
    if model.n_features() != info.n_features {
        return Err(file.invalid(format!(
            "encoder {i} has {} features, expected {}",
            model.n_features(),
            info.n_features
        )));
    }
    let bytes: Vec<u8> =
        bytemuck::cast_slice::<u64, u8>(&file.vector::<u64>(&name)?)[..info.n_bytes].to_vec();
    let n_means = if info.is_dense { info.n_features } else { 0 };
    let means = file.finite_array(&format!("encoder.{i}.means"), &[n_means])?.to_vec();
    let weights =
        file.finite_array(&format!("encoder.{i}.weights"), &[info.n_features * n_weights])?;
    let features = info.features.clone();
    let encoder =
        Encoder { name: info.name.clone(), features, model, file: FlatArray::from(bytes) };
    Ok(FittedEncoder { encoder, info, means, weights: weights.to_vec() })
}

/// Packs bytes into `u64`s, padded with zeros, so that the arrays inside stay aligned.
fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
