//! A tagger in one file, with its encoders in it.

use super::tagger::{Direct, FeatureTagger, FittedEncoder, TagNames};
use crate::tagging::features::encoders::{Encoder, Reading, WordEncoder};
use crate::tagging::params::TaggerParams;
use crate::tagging::spans::are_chunk_tags;
use crate::tagging::weights::fitted::Weights;
use latens_model::file::{FileError, ModelFile, ModelWriter};
use latens_store::FlatArray;
use latens_store::StringTable;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::sync::OnceLock;

/// How the encoders in a file are opened: by who knows all models.
pub type OpenEncoder<'o> = dyn Fn(&ModelFile, &str) -> Result<Box<dyn WordEncoder>, FileError> + 'o;

/// The fact that tells of the encoders.
const ENCODERS: &str = "encoders";

/// Strings as a file has them.
struct Strings {
    letters: Vec<u8>,
    ends: Vec<u64>,
}

impl Strings {
    fn of(table: &StringTable) -> Strings {
        Strings { letters: table.letters().as_bytes().to_vec(), ends: table.ends().collect() }
    }

    fn write<'a>(&'a self, name: &str, writer: ModelWriter<'a>) -> ModelWriter<'a> {
        writer.array(&format!("{name}.letters"), &[self.letters.len()], &self.letters).array(
            &format!("{name}.ends"),
            &[self.ends.len()],
            &self.ends,
        )
    }

    fn read(file: &ModelFile, name: &str) -> Result<StringTable, FileError> {
        let letters = file.vector(&format!("{name}.letters"))?;
        let ends = file.vector(&format!("{name}.ends"))?;
        StringTable::from_arrays(&letters, &ends)
            .ok_or_else(|| file.invalid(format!("its {name} do not fit together")))
    }
}

impl FeatureTagger {
    /// Writes the tagger to a file.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let (tags, attributes) = (self.tags.own.iter().collect(), &self.weights.attributes);
        let (tags, attributes) = (Strings::of(&tags), Strings::of(attributes));
        let direct = Strings::of(&self.direct.words);
        let files: Vec<Vec<u64>> =
            self.encoders.iter().map(|encoder| words(&encoder.encoder.file)).collect();
        let readings: Vec<&Reading> =
            self.encoders.iter().map(|encoder| &encoder.reading).collect();
        let Weights { offsets, tags: weight_tags, values, transitions, network, .. } =
            &self.weights;
        let n_tags = self.tags.own.len();
        let mut writer = ModelWriter::new(Self::KIND, &self.params)
            .lexicon(&self.lexicon)
            .facts(&self.facts)
            .fact(ENCODERS, &readings)
            .array("attributes.offsets", &[offsets.len()], offsets)
            .array("weights.tags", &[values.len()], weight_tags)
            .array("weights", &[values.len()], values)
            .array("transitions", &[n_tags, n_tags], transitions)
            .array("network", &[network.len()], network)
            .array("direct.tags", &[self.direct.tags.len()], &self.direct.tags);
        for (name, strings) in [("tags", &tags), ("attributes", &attributes), ("direct", &direct)] {
            writer = strings.write(name, writer);
        }
        for (i, (encoder, file)) in self.encoders.iter().zip(&files).enumerate() {
            let n = encoder.weights.len();
            writer = writer
                .array(&format!("encoder.{i}.file"), &[file.len()], file)
                .array(&format!("encoder.{i}.means"), &[encoder.means.len()], &encoder.means)
                .array(&format!("encoder.{i}.weights"), &[n], &encoder.weights);
        }
        writer.save(path)
    }

    /// The tagger in an open file; `open` opens the encoders in it.
    pub fn from_file(file: &ModelFile, open: &OpenEncoder<'_>) -> Result<FeatureTagger, FileError> {
        file.expect_kind(Self::KIND)?;
        let params = file.parameters::<TaggerParams>()?;
        let tags: Vec<String> = Strings::read(file, "tags")?.iter().map(str::to_owned).collect();
        let n_tags = tags.len();
        if n_tags == 0 || n_tags > usize::from(u16::MAX) {
            return Err(file.invalid("it has no tags, or too many"));
        }
        let are_spans = are_chunk_tags(tags.iter().map(String::as_str));
        let width = if params.has_network() { params.n_hidden } else { n_tags };
        let weights = read_weights(file, &params, n_tags)?;
        let direct = Direct {
            words: Strings::read(file, "direct")?,
            tags: file.vector("direct.tags")?.to_vec(),
        };
        let known = |tags: &[u16]| tags.iter().all(|&tag| usize::from(tag) < n_tags);
        if !known(&weights.tags) || !known(&direct.tags) || direct.words.len() != direct.tags.len()
        {
            return Err(file.invalid("it has weights of tags that are not there"));
        }
        let readings =
            file.header().training.get(ENCODERS).cloned().unwrap_or(Value::Array(vec![]));
        let readings = Vec::<Reading>::deserialize(readings)
            .map_err(|_| file.invalid("what it says of its encoders cannot be read"))?;
        let mut encoders = Vec::with_capacity(readings.len());
        for (i, reading) in readings.into_iter().enumerate() {
            encoders.push(read_encoder(file, i, reading, (2 * params.window + 1) * width, open)?);
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
    let attributes = Strings::read(file, "attributes")?;
    let offsets = file.array::<u64>("attributes.offsets", &[attributes.len() + 1])?.to_vec();
    let n_values = offsets[offsets.len() - 1] as usize;
    if !offsets.is_sorted() || offsets[0] != 0 {
        return Err(file.invalid("its attributes are not in order"));
    }
    let n_hidden = if params.has_network() { params.n_hidden } else { 0 };
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
    reading: Reading,
    n_weights: usize,
    open: &OpenEncoder<'_>,
) -> Result<FittedEncoder, FileError> {
    let name = format!("encoder.{i}.file");
    let part = file.part(&name, reading.n_bytes)?;
    let model = open(&part, &reading.features)?;
    if model.n_features() != reading.n_features {
        return Err(file.invalid("an encoder has other columns than it had"));
    }
    let bytes: Vec<u8> =
        bytemuck::cast_slice::<u64, u8>(&file.vector::<u64>(&name)?)[..reading.n_bytes].to_vec();
    let n_means = if reading.is_dense { reading.n_features } else { 0 };
    let means = file.finite_array(&format!("encoder.{i}.means"), &[n_means])?.to_vec();
    let weights =
        file.finite_array(&format!("encoder.{i}.weights"), &[reading.n_features * n_weights])?;
    let features = reading.features.clone();
    let encoder =
        Encoder { name: reading.name.clone(), features, model, file: FlatArray::from(bytes) };
    Ok(FittedEncoder { encoder, reading, means, weights: weights.to_vec() })
}

/// Bytes in words of eight, so that what is in them stays aligned; zeros fill up the last one.
fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
