use crate::fitted::block_cache::Transitions;
use crate::fitted::tags::Tags;
use crate::model::Hmm;
use crate::params::{Constraint, HmmParams, Parameterization};
use crate::space::state_space::{Lists, NONE, Support};
use crate::tables::probability_tables::{Kept, Tables};
use crate::weights::mapping::Parameters;
use crate::weights::neural::Neural;
use latens_corpus::Lexicon;
use latens_model::file::{FileError, ModelFile, ModelWriter};
use latens_store::FlatArray;
use latens_store::StringTable;
use std::borrow::Cow;
use std::path::Path;

impl Hmm {
    /// Writes the model to a file.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let Support { k, ref lists, .. } = self.support;
        let (m, n) = (self.support.n_clusters(), self.support.n_states());
        let names: StringTable = self.tags.iter().flat_map(|tags| &tags.names).collect();
        let rare_words = self.tags.as_ref().map(|tags| tags.rare_words.clone()).unwrap_or_default();
        let (name_ends, rare_ends): (Vec<u64>, Vec<u64>) =
            (names.ends().collect(), rare_words.ends().collect());
        let words: Vec<u32> = self.support.words().iter().map(|word| word.0).collect();
        let mut writer = ModelWriter::new(Self::KIND, &self.params)
            .lexicon(&self.lexicon)
            .facts(&self.facts)
            .array("clusters", &[self.lexicon.vocab.len()], self.support.cluster_of())
            .array("emitted_words", &[words.len()], &words);
        if let Some(Lists { n, states, .. }) = lists {
            writer = writer.array("lists", &[states.len() / n.max(&1), *n], states);
        }
        if let Some(tags) = &self.tags {
            let (name_letters, rare_letters) =
                (names.letters().as_bytes(), rare_words.letters().as_bytes());
            writer = writer
                .array("tags.ends", &[name_ends.len()], &name_ends)
                .array("tags.letters", &[name_letters.len()], name_letters)
                .array("rare_words.ends", &[rare_ends.len()], &rare_ends)
                .array("rare_words.letters", &[rare_letters.len()], rare_letters)
                .array("rare_words.counts", &[tags.rare_counts.len()], &tags.rare_counts);
            if self.weights.is_none() {
                writer = writer.array("tag_emission", &[tags.len(), n], &tags.emission);
            }
        }
        match (&self.weights, &self.transitions) {
            (Some(weights), _) => {
                let neural = self.network();
                for (name, shape, range) in neural.layout().entries() {
                    writer = writer.array(name, shape, &weights[range]);
                }
                writer.save(path)
            }
            (None, Transitions::Stored(blocks)) => {
                // In the file they are rows of all states of a cluster.
                let emission = match self.support.all_lists() {
                    Some(lists) => Cow::Owned(lists.scatter(&self.emission, k)),
                    None => Cow::Borrowed(&self.emission[..]),
                };
                writer
                    .array("start", &[n], &self.start)
                    .array("transition", &[m, m, k, k], blocks)
                    .array("emission", &[self.support.n_slots(), k], &emission)
                    .save(path)
            }
            (None, Transitions::Computed { .. }) => unreachable!("made of weights"),
        }
    }

    pub(crate) fn network(&self) -> Neural<f32> {
        let n_tags = self.tags.as_ref().map_or(0, Tags::len);
        network(&self.params, &self.support, &self.lexicon, n_tags)
    }

    /// Opens a model file.
    pub fn open(path: &Path) -> Result<Hmm, FileError> {
        Hmm::from_file(&ModelFile::open(path)?)
    }

    /// The model in an open file.
    pub fn from_file(file: &ModelFile) -> Result<Hmm, FileError> {
        file.expect_kind(Self::KIND)?;
        let (params, lexicon) = (file.parameters::<HmmParams>()?, file.lexicon()?);
        let support = support(file, &params, &lexicon)?;
        let (n, k, m) = (support.n_states(), support.k, support.n_clusters());
        let facts = file.header().training.clone();
        let mut tags = tags(file)?;
        let n_tags = tags.as_ref().map_or(0, Tags::len);
        if params.parameterization == Parameterization::Scalar {
            if let Some(tags) = &mut tags {
                tags.emission = probabilities(file, "tag_emission", &[n_tags, n])?;
            }
            let mut emission = probabilities(file, "emission", &[support.n_slots(), k])?;
            if let Some(lists) = support.all_lists() {
                emission = lists.gather(&emission, k).into();
            }
            return Ok(Hmm {
                start: probabilities(file, "start", &[n])?,
                transitions: Transitions::Stored(probabilities(file, "transition", &[m, m, k, k])?),
                emission,
                params,
                lexicon,
                facts,
                support,
                weights: None,
                tags,
            });
        }
        let mut neural = network(&params, &support, &lexicon, n_tags);
        let mut weights = vec![0.0; neural.layout().len()];
        for (name, shape, range) in neural.layout().entries() {
            weights[range].copy_from_slice(&file.finite_array::<f32>(name, shape)?);
        }
        let mut tables = Tables::default();
        neural.forward_to_factors(&weights, &support, &Kept::all(&support), None, &mut tables);
        if let Some(tags) = &mut tags {
            tags.emission = std::mem::take(&mut tables.tags).into();
        }
        Ok(Hmm::new(params, lexicon, facts, support, Some(weights), tables, tags))
    }
}

fn network(params: &HmmParams, support: &Support, lexicon: &Lexicon, n_tags: usize) -> Neural<f32> {
    let words = support.words().iter();
    let spellings: Vec<&str> = words.map(|&word| lexicon.vocab.word(word)).collect();
    Neural::new(params, support, &spellings, n_tags)
}

fn support(file: &ModelFile, params: &HmmParams, lexicon: &Lexicon) -> Result<Support, FileError> {
    let has_blocks = params.constraint == Constraint::Brown;
    let n_clusters = if has_blocks { params.n_clusters } else { 1 };
    let clusters = file.array::<u32>("clusters", &[lexicon.vocab.len()])?;
    if clusters.iter().any(|&cluster| cluster != NONE && cluster as usize >= n_clusters) {
        return Err(file.invalid("a word is in a cluster that is not there"));
    }
    let mut support = Support::new(params.n_states / n_clusters, n_clusters, clusters.to_vec());
    if params.constraint == Constraint::Uniform {
        let n = params.states_per_word();
        let states = file.array::<u32>("lists", &[support.n_slots(), n])?;
        let ascends = |list: &[u32]| list.is_sorted_by(|a, b| a < b);
        let is_state = |&state: &u32| (state as usize) < params.n_states;
        if !states.iter().all(is_state) || !states.chunks_exact(n).all(ascends) {
            return Err(file.invalid("the states of a word are none"));
        }
        support.lists = Some(Lists::new(n, params.n_states, states.to_vec()));
    }
    Ok(support.with_unknown(params, &lexicon.vocab))
}

/// The tags of the file, if it has some, but not how likely they are.
fn tags(file: &ModelFile) -> Result<Option<Tags>, FileError> {
    if !file.has_array("tags.ends") {
        return Ok(None);
    }
    let strings = |name: &str| {
        let (ends, letters) =
            (file.vector(&format!("{name}.ends"))?, file.vector(&format!("{name}.letters"))?);
        StringTable::from_arrays(&letters, &ends)
            .ok_or_else(|| file.invalid(format!("its {name} do not fit together")))
    };
    let names: Vec<String> = strings("tags")?.iter().map(str::to_owned).collect();
    if names.is_empty() {
        return Err(file.invalid("it has tags, but none"));
    }
    let rare_words = strings("rare_words")?;
    let rare_counts = file.array::<u64>("rare_words.counts", &[rare_words.len()])?.to_vec();
    Ok(Some(Tags { names, emission: vec![].into(), rare_words, rare_counts }))
}

fn probabilities(
    file: &ModelFile,
    name: &str,
    shape: &[usize],
) -> Result<FlatArray<f32>, FileError> {
    let values = file.finite_array::<f32>(name, shape)?;
    if values.iter().all(|p| (0.0..=1.0).contains(p)) {
        Ok(values)
    } else {
        Err(file.invalid(format!("`{name}` has numbers that are no probabilities")))
    }
}
