//! One small model of every kind, saved and opened through the table of kinds.

use latens::KINDS;
use latens::hmm::{Parameterization, TaggedText, WordEmbedding};
use latens::model::FeatureRows;
use latens::model::file::{ModelFile, ModelWriter, is_timing};
use latens::neural::Neural;
use latens::prelude::*;
use latens_testkit::forged_floats;
use rayon::ThreadPoolBuilder;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

fn corpus() -> Corpus {
    let lines = ["the cat sees a dog", "a dog sees the cat", "the dog sleeps", "a cat sleeps"];
    Corpus::from_lines(lines.repeat(12)).unwrap()
}

fn documents() -> DocumentCorpus {
    Documents::from_texts(["cat dog cat", "sun moon", "dog dog cat", "moon sun star"]).unwrap()
}

fn vectors(lexicon: &Lexicon) -> WordVectors {
    let values: Vec<f32> = (0..2 * lexicon.vocab.len()).map(|i| (i as f32).sin()).collect();
    WordVectors::new(2, values).unwrap()
}

/// A model of each kind. A new kind adds a line.
fn models() -> Vec<Box<dyn Model>> {
    let (corpus, documents) = (corpus(), documents());
    let tagged =
        TaggedSentences::from_rows([[("the", "D"), ("cat", "N")], [("a", "D"), ("dog", "N")]]);
    let of_documents = vectors(&documents.lexicon);
    let brown = || Brown::params().n_clusters(2).fit(&corpus).unwrap();
    let encoder = Encoder::from_model(brown(), None).unwrap();
    let network = |params: latens::neural::NeuralParams| {
        params.dim(4).epochs(1).batch_size(8).bptt(4).fit(&corpus).unwrap()
    };
    vec![
        Box::new(brown()),
        Box::new(network(Neural::ff())),
        Box::new(Fhmm::params().n_layers(2).n_states(2).epochs(1).fit(&corpus).unwrap()),
        Box::new(
            Glda::params()
                .n_topics(2)
                .n_iterations(2)
                .with(GldaInputs::default().vectors(&of_documents))
                .fit(&documents)
                .unwrap(),
        ),
        Box::new(Hmm::params().n_states(4).n_clusters(2).dim(4).epochs(1).fit(&corpus).unwrap()),
        Box::new(Lda::params().n_topics(2).n_iterations(2).fit(&documents).unwrap()),
        Box::new(Lds::params().dim(2).lags(3).ssid_lags(2).n_iterations(1).fit(&corpus).unwrap()),
        Box::new(network(Neural::lstm())),
        Box::new(Ngram::params().order(2).fit(&corpus).unwrap()),
        Box::new(network(Neural::rnn())),
        Box::new(
            FeatureTagger::params()
                .n_iterations(3)
                .with(TaggerInputs::default().encoder(encoder))
                .fit(&tagged.unwrap())
                .unwrap(),
        ),
        Box::new(Vectors::new(corpus.lexicon.clone(), vectors(&corpus.lexicon))),
        Box::new(Word2vec::params().dim(4).epochs(1).fit(&corpus).unwrap()),
    ]
}

#[test]
fn every_kind_is_opened_as_what_it_is_and_saved_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let mut kinds = BTreeSet::new();
    for model in models() {
        model.save(&first).unwrap();
        let opened = latens::open(&first).unwrap();
        assert_eq!(opened.kind(), model.kind());
        assert_eq!(opened.description(), model.description());
        let kept = model.facts().iter().filter(|(name, _)| !is_timing(name));
        assert!(opened.facts().iter().eq(kept), "{}: all facts but times", model.kind());
        assert_eq!(opened.feature_kinds(), model.feature_kinds());
        assert_eq!(opened.to_bytes(), std::fs::read(&first).unwrap(), "{}", model.kind());
        opened.save(&second).unwrap();
        assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
        kinds.insert(model.kind());
    }
    let expected: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
    assert_eq!(kinds, expected, "one model of each kind");
}

/// The names of the parameters of a model, as an opened file or `KINDS` has them.
fn names(params: &Value) -> BTreeSet<&str> {
    params.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn every_model_has_the_parameters_of_its_file_and_of_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    for model in models() {
        model.save(&path).unwrap();
        let params = model.params_json();
        assert_eq!(params, ModelFile::open(&path).unwrap().header().parameters, "{}", model.kind());
        let kind = KINDS.iter().find(|kind| kind.name == model.kind()).unwrap();
        let defaults = (kind.default_params)().unwrap_or(json!({}));
        assert_eq!(names(&params), names(&defaults), "{}", model.kind());
    }
}

/// Lists of all kinds in other places, and what stands before and after the name of a kind there. These lists cannot use
/// [`KINDS`].
const LISTS: &[(&str, &str, &str)] = &[
    ("ARCHITECTURE.md", "`", "`"),
    ("crates/cli/tests/equal_runs.rs", "\"train ", " "),
    ("crates/cli/tests/own_files.rs", "\"train ", " IN "),
    ("crates/cli/tests/sizes.rs", "(\"train ", " "),
    ("crates/explorer/web/texts.js", " ", ": \""),
    ("crates/python/src/fit.rs", "\"", "\""),
    ("crates/xtask/src/torture/kinds.rs", "\"train ", " "),
    ("docs/README.md", "`", "`"),
    ("docs/guides/explore.md", "`", "`"),
    ("docs/pictures/overview.svg", " ", " "),
    ("results/memory.jsonl", "latens train ", " "),
    ("results/models.toml", "model = \"`", "`"),
];

/// The same for language models.
const LISTS_OF_LANGUAGE_MODELS: &[(&str, &str, &str)] = &[
    ("crates/cli/tests/scoring.rs", "(\"", "\", "),
    ("docs/guides/distill.md", "`", "`"),
    ("docs/guides/generate.md", "`", "`"),
];

/// Kinds that other commands than `train` write.
const NOT_TRAINED: [&str; 2] = [FeatureTagger::KIND, Vectors::KIND];

#[test]
fn every_list_of_kinds_names_all_that_are_trained() {
    let kinds = KINDS.iter().map(|kind| kind.name).filter(|kind| !NOT_TRAINED.contains(kind));
    let models = models();
    let language_models = models.iter().filter(|model| model.as_language_model().is_some());
    let mut missing = missing(LISTS, &kinds.collect::<Vec<_>>());
    missing.extend(self::missing(
        LISTS_OF_LANGUAGE_MODELS,
        &language_models.map(|model| model.kind()).collect::<Vec<_>>(),
    ));
    assert!(missing.is_empty(), "lists without a kind of model: {missing:#?}");
}

/// The files of lists and the kinds that they lack.
fn missing(lists: &[(&str, &str, &str)], kinds: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut missing = Vec::new();
    for (file, before, after) in lists {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        // A document may have the command as well as the kind: `train ff`, `rnn`. A picture has lists between tags.
        let text = text.replace("`train ", "`");
        let text = if file.ends_with(".svg") { text.replace(['<', '>'], " ") } else { text };
        let is_missing = |kind: &&&str| !text.contains(&format!("{before}{kind}{after}"));
        missing.extend(kinds.iter().filter(is_missing).map(|kind| format!("{file}: {kind}")));
    }
    missing
}

#[test]
fn files_of_equal_runs_are_equal() {
    // The threads of word2vec update vectors without locks.
    let one_thread = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for (a, b) in one_thread.install(models).iter().zip(one_thread.install(models)) {
        assert_eq!(a.kind(), b.kind());
        assert!(a.to_bytes() == b.to_bytes(), "{}: {:?}, {:?}", a.kind(), a.facts(), b.facts());
    }
}

#[test]
fn every_model_plays_the_roles_it_claims() {
    for model in models() {
        for kind in model.feature_kinds() {
            assert!(model.encoder(kind).unwrap().n_features() > 0, "{}: {kind}", model.kind());
        }
        assert_eq!(model.as_token_encoder().is_some(), !model.feature_kinds().is_empty());
        assert!(model.encoder("no such features").is_none(), "{}", model.kind());
        let word_vectors = model.word_vectors();
        assert!(word_vectors.is_none_or(|v| v.n_words() == model.lexicon().vocab.len()));
        let n_roles = usize::from(model.as_language_model().is_some())
            + usize::from(model.as_token_encoder().is_some())
            + usize::from(model.as_topic_model().is_some())
            + usize::from(model.as_tagger().is_some());
        assert!(n_roles > 0, "{}", model.kind());
    }
}

#[test]
fn a_model_of_any_kind_is_downcast_to_its_own_type_only() {
    let model: Box<dyn Model> = Box::new(Ngram::params().order(2).fit(&corpus()).unwrap());
    assert!(model.downcast_ref::<Hmm>().is_none());
    assert_eq!(model.downcast_ref::<Ngram>().unwrap().kind(), "ngram");
    let model = model.downcast::<Hmm>().unwrap_err();
    assert_eq!(model.downcast::<Ngram>().unwrap().kind(), "ngram");
}

#[test]
fn an_unknown_kind_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let params = Ngram::params().validate().unwrap();
    ModelWriter::new("oracle", &params).save(&path).unwrap();
    let message = latens::open(&path).unwrap_err().to_string();
    assert!(message.contains("does not know models of kind `oracle`"), "{message}");
}

/// Hidden Markov models of stored probabilities, and of networks that read characters and emit tags.
fn more_hmms() -> Vec<Box<dyn Model>> {
    let corpus = corpus();
    let scalar = Hmm::params().parameterization(Parameterization::Scalar).epochs(1);
    let rows = [[("the", "D"), ("cat", "N")], [("a", "D"), ("dog", "N")]].repeat(8);
    let tagged = TaggedSentences::from_rows(rows).unwrap();
    let lines = ["the cat", "a dog"].repeat(8);
    let words = Corpus::from_lines(lines).unwrap();
    let tags = TaggedText::of(&tagged, 1, &words).unwrap();
    let chars = Hmm::params().word_vectors(WordEmbedding::Chars).dim(4).epochs(1);
    vec![
        Box::new(scalar.n_states(4).n_clusters(2).fit(&corpus).unwrap()),
        Box::new(
            chars
                .n_states(4)
                .n_clusters(2)
                .with(HmmInputs::default().tags(&tags))
                .fit(&words)
                .unwrap(),
        ),
    ]
}

/// Uses a model in all its roles. No answer may be NaN, and features and mixtures must be finite.
fn use_model(model: &dyn Model) {
    let vocab = &model.lexicon().vocab;
    let sentence: Vec<WordId> = (0..40).map(|i| WordId::from(i * 7 % vocab.len())).collect();
    if let Some(model) = model.as_language_model() {
        let (mut scorer, mut next) = (model.scorer(), vec![0.0; model.n_words()]);
        for &word in &sentence {
            scorer.next_log_probs(&mut next);
            assert!(next.iter().all(|p| !p.is_nan() && *p < 1e3), "{next:?}");
            assert!(!scorer.read(word).is_nan(), "the score of a word");
        }
        assert!(!model.text_log_prob(&sentence).is_nan(), "the score of a text");
        latens::tasks::sample(model, 5, &mut latens::math::Rng::new(1));
    }
    for kind in model.feature_kinds() {
        let (encoder, mut rows) = (model.encoder(kind).unwrap(), FeatureRows::new());
        encoder.encode(&sentence, &mut rows);
        assert_eq!(rows.len(), sentence.len());
        assert!(rows.iter().all(|(_, row)| row.iter().all(|x| x.is_finite())), "{kind}");
    }
    if let Some(model) = model.as_topic_model() {
        let mixture = model.mixture(&sentence);
        assert!((mixture.iter().sum::<f32>() - 1.0).abs() < 1e-3, "{mixture:?}");
        for (_, score) in (0..model.n_topics()).flat_map(|topic| model.top_word_ids(topic, 3)) {
            assert!(score.is_finite());
        }
    }
    if let Some(tagger) = model.as_tagger()
        && let Ok(tags) = tagger.tag(&["the", "unheard-of", "dog"])
    {
        assert!(tags.iter().all(|&tag| (tag as usize) < tagger.tags().len()));
    }
    if let Some(vectors) = model.word_vectors() {
        let query = vec![1.0; vectors.dim()];
        assert!(vectors.nearest(&query, 3, &[]).iter().all(|(_, cosine)| !cosine.is_nan()));
    }
}

fn open_forged(path: &Path, bytes: &[u8]) -> bool {
    std::fs::write(path, bytes).unwrap();
    latens::open(path).inspect(|model| use_model(&**model)).is_ok()
}

#[test]
fn huge_numbers_in_model_files_are_refused_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forged");
    let mut failed = Vec::new();
    for model in models().into_iter().chain(more_hmms()) {
        assert!(open_forged(&path, &model.to_bytes()), "{}", model.kind());
        for (what, bytes) in forged_floats(&model.to_bytes()) {
            if std::panic::catch_unwind(|| open_forged(&path, &bytes)).is_err() {
                failed.push(format!("{}: {what}", model.kind()));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Models that compute large tables on first use, on several threads.
fn models_with_tables() -> Vec<Box<dyn Model>> {
    let words: Vec<String> = (0..2000).map(|i| format!("word{i}")).collect();
    let row = |word: &String| (word.clone(), if word.ends_with('3') { "D" } else { "N" });
    let sentences = words.chunks(20).map(|words| words.iter().map(row).collect::<Vec<_>>());
    let tagged = TaggedSentences::from_rows(sentences).unwrap();
    let documents = Documents::from_texts(words.chunks(50).map(|words| words.join(" "))).unwrap();
    let values: Vec<f32> =
        (0..20 * documents.lexicon.vocab.len()).map(|i| (i as f32).sin()).collect();
    let vectors = WordVectors::new(20, values).unwrap();
    let inputs = GldaInputs::default().vectors(&vectors);
    vec![
        Box::new(FeatureTagger::params().n_iterations(1).fit(&tagged).unwrap()),
        Box::new(Glda::params().n_topics(20).n_iterations(1).with(inputs).fit(&documents).unwrap()),
        Box::new(Vectors::new(documents.lexicon.clone(), vectors)),
    ]
}

#[test]
fn many_tasks_may_use_a_model_from_the_start() {
    let folder = tempfile::tempdir().unwrap();
    for model in models_with_tables() {
        let (kind, path) = (model.kind(), folder.path().join("model"));
        model.save(&path).unwrap();
        let (done, wait) = channel();
        // If the test fails, this thread hangs.
        std::thread::spawn(move || {
            let pool = ThreadPoolBuilder::new().num_threads(8).build().unwrap();
            for _ in 0..10 {
                // What a model computes on first use is not in its file.
                let model = latens::open(&path).unwrap();
                // Every second task ends early, so that its thread takes part in such a computation.
                let task = |i| match i % 2 {
                    0 => use_model(&*model),
                    _ => std::thread::sleep(Duration::from_micros(100)),
                };
                pool.install(|| (0..64).into_par_iter().with_max_len(1).for_each(task));
            }
            done.send(())
        });
        assert_eq!(wait.recv_timeout(Duration::from_secs(60)), Ok(()), "{kind}: a task hangs");
    }
}
