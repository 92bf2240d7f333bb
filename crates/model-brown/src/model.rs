use crate::params::BrownParams;
use latens_corpus::{Lexicon, WordId};
use latens_model::file::{FileError, ModelFile, ModelWriter};
use latens_model::{FeatureRows, ParamError, TokenEncoder, Valid, WordClusters};
use latens_store::StringTable;
use serde_json::{Map, Value};
use std::path::Path;

/// How many bits of a path are features of a word, besides the whole path.
const PREFIXES: [usize; 4] = [4, 6, 10, 20];

/// Words in clusters, and clusters in a binary tree.
#[derive(Clone, Debug)]
pub struct Brown {
    params: Valid<BrownParams>,
    lexicon: Lexicon,
    facts: Map<String, Value>,
    clusters: WordClusters,
    /// For each cluster the columns that its words have.
    columns: Vec<Vec<u32>>,
    n_features: usize,
}

impl Brown {
    /// What the file calls this model.
    pub const KIND: &str = "brown";

    /// A model of clusters that were made elsewhere.
    ///
    /// # Panics
    /// If there are more clusters than the parameters allow, which no file has.
    pub fn from_clusters(lexicon: Lexicon, clusters: WordClusters) -> Result<Brown, ParamError> {
        let params = BrownParams { n_clusters: clusters.n_clusters(), ..BrownParams::default() };
        let params = latens_model::Params::validate(params)?;
        Ok(Brown::new(params, lexicon, clusters, Map::new()))
    }

    pub(crate) fn new(
        params: Valid<BrownParams>,
        lexicon: Lexicon,
        clusters: WordClusters,
        facts: Map<String, Value>,
    ) -> Brown {
        let mut features = StringTable::default();
        let mut columns = Vec::with_capacity(clusters.n_clusters());
        for path in clusters.paths() {
            let prefixes = PREFIXES.iter().filter_map(|&n| Some((n, path.get(..n)?)));
            let prefixes = prefixes.map(|(n, prefix)| format!("{n} {prefix}"));
            let whole = std::iter::once(format!("path {path}"));
            columns.push(prefixes.chain(whole).map(|name| features.intern(&name)).collect());
        }
        Brown { params, lexicon, facts, clusters, columns, n_features: features.len() }
    }

    /// The parameters it was fitted with.
    pub fn params(&self) -> &Valid<BrownParams> {
        &self.params
    }

    /// How it reads text.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// The clusters.
    pub fn clusters(&self) -> &WordClusters {
        &self.clusters
    }

    /// Facts about its training, which are saved with it: `mutual_information`, in bits, among them.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Writes the model to a file.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let none = u32::MAX;
        let of_word: Vec<u32> =
            self.clusters.of_word().iter().map(|cluster| cluster.unwrap_or(none)).collect();
        let paths: StringTable = self.clusters.paths().iter().collect();
        let ends: Vec<u64> = paths.ends().collect();
        let letters = paths.letters().as_bytes();
        ModelWriter::new(Self::KIND, &self.params)
            .lexicon(&self.lexicon)
            .facts(&self.facts)
            .array("clusters", &[of_word.len()], &of_word)
            .array("paths.ends", &[ends.len()], &ends)
            .array("paths.letters", &[letters.len()], letters)
            .save(path)
    }

    /// Opens a model file.
    pub fn open(path: &Path) -> Result<Brown, FileError> {
        Brown::from_file(&ModelFile::open(path)?)
    }

    /// The model in an open file.
    pub fn from_file(file: &ModelFile) -> Result<Brown, FileError> {
        file.expect_kind(Self::KIND)?;
        let (params, lexicon) = (file.parameters::<BrownParams>()?, file.lexicon()?);
        let of_word = file.array::<u32>("clusters", &[lexicon.vocab.len()])?;
        let of_word = of_word.iter().map(|&cluster| (cluster != u32::MAX).then_some(cluster));
        let (ends, letters) = (file.vector("paths.ends")?, file.vector("paths.letters")?);
        let paths = StringTable::from_arrays(&letters, &ends)
            .ok_or_else(|| file.invalid("its paths do not fit together"))?;
        let paths = paths.iter().map(str::to_owned).collect();
        let clusters =
            WordClusters::new(of_word.collect(), paths).map_err(|error| file.invalid(error))?;
        Ok(Brown::new(params, lexicon, clusters, file.header().training.clone()))
    }
}

impl TokenEncoder for Brown {
    fn n_features(&self) -> usize {
        self.n_features
    }

    /// The first 4, 6, 10 and 20 bits of the path of the word's cluster, as far as it has so many, and the
    /// whole path: a column each, of value 1. A word without a cluster is read as `<unk>`; if that has none
    /// either, its row is empty.
    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        for &word in sentence {
            let cluster = self.clusters.cluster(word).or(self.clusters.cluster(WordId::UNK));
            let columns = cluster.map_or(&[][..], |cluster| &self.columns[cluster as usize]);
            let mut columns = columns.to_vec();
            columns.sort_unstable();
            out.push_sparse(columns.into_iter().map(|column| (column, 1.0)));
        }
    }
}
