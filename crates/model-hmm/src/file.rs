//! Saves and opens model files.

use crate::model::Hmm;
use crate::params::{Constraint, HmmParams, Parameterization};
use crate::space::clusters::NO_CLUSTER;
use crate::space::kept_lists::KeptLists;
use crate::space::kept_states::KeptStates;
use crate::space::state_lists::StateLists;
use crate::space::state_space::StateSpace;
use crate::tables::block_cache::TransitionBlocks;
use crate::tables::probability_tables::Tables;
use crate::tables::tag_table::TagTable;
use crate::weights::mapping::TableMapping;
use latens_corpus::Lexicon;
use latens_model::file::{FileError, ModelFile, ModelWriter};
use latens_store::{FlatArray, StringTable};
use std::path::Path;

impl Hmm {
    /// Saves the model to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.file_writer().save(path)
    }

    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Hmm, FileError> {
        Hmm::from_file(&ModelFile::open(path)?)
    }

    /// Reads the model from an open file.
    pub fn from_file(file: &ModelFile) -> Result<Hmm, FileError> {
        file.expect_kind(Self::KIND)?;
        let (params, lexicon) = (file.parameters::<HmmParams>()?, file.lexicon()?);
        let space = read_space(file, &params, &lexicon)?;
        let (n, k, m) = (space.n_states(), space.k, space.n_clusters());
        let facts = file.header().training.clone();
        let mut tags = read_tags(file)?;
        let n_tags = tags.as_ref().map_or(0, TagTable::len);
        if params.parameterization == Parameterization::Scalar {
            if let Some(tags) = &mut tags {
                tags.emission = read_probabilities(file, "tag_emission", &[n_tags, n])?;
            }
            let mut emission = read_probabilities(file, "emission", &[space.n_slots(), k])?;
            if let Some(lists) = KeptLists::all(&space) {
                emission = lists.gather(&emission, k).into();
            }
            return Ok(Hmm {
                start: read_probabilities(file, "start", &[n])?,
                blocks: TransitionBlocks::Stored(read_probabilities(
                    file,
                    "transition",
                    &[m, m, k, k],
                )?),
                emission,
                params,
                lexicon,
                facts,
                space,
                weights: None,
                tags,
            });
        }
        let mut neural = Hmm::network_of(&params, &space, &lexicon, n_tags);
        let mut weights = vec![0.0; neural.layout().len()];
        for (name, shape, range) in neural.layout().entries() {
            weights[range].copy_from_slice(&file.finite_array::<f32>(name, shape)?);
        }
        let mut tables = Tables::default();
        neural.forward_to_factors(&weights, &space, &KeptStates::all(&space), None, &mut tables);
        if let Some(tags) = &mut tags {
            tags.emission = std::mem::take(&mut tables.tags).into();
        }
        let hmm = Hmm::new(params, lexicon, facts, space, Some(weights), tables, tags);
        if hmm.is_finite() {
            Ok(hmm)
        } else {
            Err(file.invalid("its weights are so large that probabilities overflow"))
        }
    }
}

impl Hmm {
    /// Whether all weights and probabilities are numbers. Finite weights may be so large that probabilities are not.
    pub(crate) fn is_finite(&self) -> bool {
        let weights = self.weights.iter().flatten();
        let tags = self.tags.iter().flat_map(|tags| tags.emission.iter());
        let transitions: Vec<&[f32]> = match &self.blocks {
            TransitionBlocks::Stored(blocks) => vec![blocks],
            // An infinite or NaN product of factors makes its normalizer infinite or NaN.
            TransitionBlocks::Computed { factors, .. } => vec![&factors.log_sums],
        };
        let tables = self.start.iter().chain(self.emission.iter()).chain(tags).chain(weights);
        tables.chain(transitions.into_iter().flatten()).all(|value| value.is_finite())
    }

    /// The contents of the model file.
    pub(crate) fn file_writer(&self) -> ModelWriter<'_> {
        let StateSpace { k, ref lists, .. } = self.space;
        let (m, n) = (self.space.n_clusters(), self.space.n_states());
        let words: Vec<u32> = self.space.words().iter().map(|word| word.0).collect();
        let mut writer = ModelWriter::new(Self::KIND, &self.params)
            .lexicon(&self.lexicon)
            .facts(&self.facts)
            .array("clusters", &[self.lexicon.vocab.len()], self.space.cluster_of())
            .owned_array("emitted_words", &[words.len()], words);
        if let Some(StateLists { n, states, .. }) = lists {
            writer = writer.array("lists", &[states.len() / n.max(&1), *n], states);
        }
        if let Some(tags) = &self.tags {
            writer = write_tags(tags, writer);
            if self.weights.is_none() {
                writer = writer.array("tag_emission", &[tags.len(), n], &tags.emission);
            }
        }
        match (&self.weights, &self.blocks) {
            (Some(weights), _) => {
                for (name, shape, range) in self.network().layout().entries() {
                    writer = writer.array(name, shape, &weights[range]);
                }
                writer
            }
            (None, TransitionBlocks::Stored(blocks)) => {
                writer = writer.array("start", &[n], &self.start).array(
                    "transition",
                    &[m, m, k, k],
                    blocks,
                );
                // Emissions are dense rows in the file.
                let shape = [self.space.n_slots(), k];
                match KeptLists::all(&self.space) {
                    Some(lists) => {
                        writer.owned_array("emission", &shape, lists.scatter(&self.emission, k))
                    }
                    None => writer.array("emission", &shape, &self.emission),
                }
            }
            (None, TransitionBlocks::Computed { .. }) => {
                unreachable!("factors are computed from weights")
            }
        }
    }
}

/// Adds the names of the tags and the counts of rare words.
fn write_tags<'a>(tags: &'a TagTable, writer: ModelWriter<'a>) -> ModelWriter<'a> {
    let names: StringTable = tags.names.iter().collect();
    let (name_ends, rare_ends): (Vec<u64>, Vec<u64>) =
        (names.ends().collect(), tags.rare_words.ends().collect());
    let (name_letters, rare_letters) =
        (names.letters().as_bytes(), tags.rare_words.letters().as_bytes());
    writer
        .owned_array("tags.ends", &[name_ends.len()], name_ends)
        .owned_array("tags.letters", &[name_letters.len()], name_letters.to_vec())
        .owned_array("rare_words.ends", &[rare_ends.len()], rare_ends)
        .array("rare_words.letters", &[rare_letters.len()], rare_letters)
        .array("rare_words.counts", &[tags.rare_counts.len()], &tags.rare_counts)
}

/// Reads the state space.
fn read_space(
    file: &ModelFile,
    params: &HmmParams,
    lexicon: &Lexicon,
) -> Result<StateSpace, FileError> {
    let has_blocks = params.constraint == Constraint::Brown;
    let n_clusters = if has_blocks { params.n_clusters } else { 1 };
    let clusters = file.array::<u32>("clusters", &[lexicon.vocab.len()])?;
    if clusters.iter().any(|&cluster| cluster != NO_CLUSTER && cluster as usize >= n_clusters) {
        return Err(file.invalid(format!("`clusters` contains values outside 0..{n_clusters}")));
    }
    let mut space = StateSpace::new(params.n_states / n_clusters, n_clusters, clusters.to_vec());
    if params.constraint == Constraint::Uniform {
        let n = params.states_per_word();
        let states = file.array::<u32>("lists", &[space.n_slots(), n])?;
        let ascends = |list: &[u32]| list.is_sorted_by(|a, b| a < b);
        let is_state = |&state: &u32| (state as usize) < params.n_states;
        if !states.iter().all(is_state) || !states.chunks_exact(n).all(ascends) {
            return Err(file.invalid(format!(
                "`lists` contains invalid or unsorted states (n_states = {})",
                params.n_states
            )));
        }
        space.lists = Some(StateLists::new(n, params.n_states, states.to_vec()));
    }
    Ok(space.with_unknown_share(params, &lexicon.vocab))
}

/// Reads the tags, if there are any, without their emission probabilities.
fn read_tags(file: &ModelFile) -> Result<Option<TagTable>, FileError> {
    if !file.has_array("tags.ends") {
        return Ok(None);
    }
    let strings = |name: &str| {
        let (ends, letters) =
            (file.vector(&format!("{name}.ends"))?, file.vector(&format!("{name}.letters"))?);
        StringTable::from_arrays(&letters, &ends).ok_or_else(|| {
            file.invalid(format!("`{name}.ends` and `{name}.letters` are inconsistent"))
        })
    };
    let names: Vec<String> = strings("tags")?.iter().map(str::to_owned).collect();
    if names.is_empty() {
        return Err(file.invalid("`tags.ends` is empty"));
    }
    let rare_words = strings("rare_words")?;
    let rare_counts = file.array::<u64>("rare_words.counts", &[rare_words.len()])?.to_vec();
    Ok(Some(TagTable { names, emission: vec![].into(), rare_words, rare_counts }))
}

/// Reads an array of probabilities.
fn read_probabilities(
    file: &ModelFile,
    name: &str,
    shape: &[usize],
) -> Result<FlatArray<f32>, FileError> {
    let values = file.finite_array::<f32>(name, shape)?;
    if values.iter().all(|p| (0.0..=1.0).contains(p)) {
        Ok(values)
    } else {
        Err(file.invalid(format!("`{name}` contains values outside [0, 1]")))
    }
}
