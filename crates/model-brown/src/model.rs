use crate::bigrams::Bigrams;
use crate::params::BrownParams;
use crate::window::{Hierarchy, cluster};
use latens_corpus::{Corpus, Lexicon, StringTable, WordId};
use latens_counts::Budget;
use latens_model::file::{FileError, ModelFile, ModelWriter};
use latens_model::{FeatureRows, FitError, ParamError, TokenEncoder, Valid, Watch, WordClusters};
use serde_json::{Map, Value};
use std::path::Path;
use std::time::Instant;

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

    /// Clusters the words of a text; see Brown et al. 1992, §3.
    pub fn fit(
        params: &Valid<BrownParams>,
        corpus: &Corpus,
        watch: &mut Watch,
    ) -> Result<Brown, FitError> {
        let started = Instant::now();
        let n_words = corpus.lexicon.vocab.len();
        let bigrams = Bigrams::of(&corpus.sentences, n_words, &Budget::default())
            .map_err(FitError::step("count bigrams"))?;
        let n_seen = bigrams.frequency.iter().filter(|&&frequency| frequency > 0).count();
        if params.n_clusters > n_seen {
            return Err(FitError::Params(ParamError {
                name: "n_clusters",
                must: format!("at most {n_seen}, the number of different words"),
                got: params.n_clusters.to_string(),
            }));
        }
        let hierarchy = cluster(&bigrams, params.n_clusters, watch)?;
        let clusters = WordClusters::new(hierarchy.cluster_of.clone(), paths(&hierarchy))
            .expect("a tree gives every cluster a path of its own");
        let mut facts = Map::new();
        facts.insert("tokens".into(), corpus.sentences.n_tokens().into());
        facts.insert("mutual_information".into(), hierarchy.mutual_information.into());
        facts.insert("seconds".into(), started.elapsed().as_secs_f64().into());
        Ok(Brown::new(params.clone(), corpus.lexicon.clone(), clusters, facts))
    }

    /// A model of clusters that were made elsewhere.
    ///
    /// # Panics
    /// If there are more clusters than the parameters allow, which no file has.
    pub fn from_clusters(lexicon: Lexicon, clusters: WordClusters) -> Result<Brown, ParamError> {
        let params = BrownParams { n_clusters: clusters.n_clusters() };
        let params = latens_model::Params::validate(params)?;
        Ok(Brown::new(params, lexicon, clusters, Map::new()))
    }

    fn new(
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

/// The path of each cluster: 0 to the first part of a merger, 1 to the second, from the last one down.
fn paths(hierarchy: &Hierarchy) -> Vec<String> {
    let n_clusters = hierarchy.mergers.len() + 1;
    let mut paths = vec![String::new(); n_clusters + hierarchy.mergers.len()];
    for (i, &(a, b)) in hierarchy.mergers.iter().enumerate().rev() {
        let path = paths[n_clusters + i].clone();
        paths[a as usize] = path.clone() + "0";
        paths[b as usize] = path + "1";
    }
    paths.truncate(n_clusters);
    paths
}
