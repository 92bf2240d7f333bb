//! The answers of the explorer are the numbers of the library.

use latens::corpus::embedded::{self, Split};
use latens::prelude::*;
use latens_explorer::{Explorer, OpenError, Query, ShownDocuments, ViewError, report};
use serde_json::{Value, json};

fn corpus() -> Corpus {
    let text = embedded::text(Split::Train);
    Corpus::from_lines(text.lines().take(300)).unwrap()
}

fn ask(explorer: &Explorer, view: &str, args: Value) -> Result<Value, ViewError> {
    explorer.answer(&Query { item: 0, view: view.to_owned(), args })
}

/// A copy for the explorer, through the file, as the program does it.
fn shown(model: &dyn Model) -> Explorer {
    let mut explorer = Explorer::default();
    explorer.add_model("model", latens::from_bytes(&model.to_bytes()).unwrap());
    explorer
}

fn numbers(values: &Value, key: &str) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value[key].as_f64().unwrap()).collect()
}

fn strings(values: &Value, key: &str) -> Vec<String> {
    let text = |value: &Value| value[key].as_str().unwrap().to_owned();
    values.as_array().unwrap().iter().map(text).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

fn lda() -> Lda {
    let texts: Vec<String> =
        embedded::documents().iter().take(60).map(|d| d.sentences.join(" ")).collect();
    Lda::params().n_topics(4).n_iterations(30).fit(&Documents::from_texts(texts).unwrap()).unwrap()
}

#[test]
fn topics_have_the_words_counts_and_relevance_of_the_model() {
    let lda = lda();
    let explorer = shown(&lda);
    let topics = ask(&explorer, "topics", json!({})).unwrap();
    let prevalence = numbers(&topics["topics"], "prevalence");
    assert!(prevalence.iter().zip(lda.prevalence()).all(|(a, b)| close(*a, b)));
    let counts: Vec<u64> = lda.topic_sizes();
    let total: u64 = counts.iter().sum();
    // λ = 1 is the order of probability.
    let by_prob = ask(&explorer, "topic", json!({ "topic": 2, "lambda": 1.0 })).unwrap();
    let weights = numbers(&by_prob["words"], "weight");
    let expected = lda.top_words(2, 30);
    assert_eq!(weights.len(), expected.len());
    for (weight, (_, prob)) in weights.iter().zip(expected) {
        assert!((weight - f64::from(prob)).abs() < 1e-6);
    }
    // Relevance by its definition, with the frequencies of words summed over topics.
    let lambda = 0.3;
    let answer = ask(&explorer, "topic", json!({ "topic": 2, "lambda": lambda })).unwrap();
    for word in answer["words"].as_array().unwrap() {
        let id = lda.lexicon().vocab.id(word["word"].as_str().unwrap());
        let phi = lda.prob(2, id);
        let p = word["total"].as_f64().unwrap() / total as f64;
        let relevance = lambda * phi.ln() + (1.0 - lambda) * (phi / p).ln();
        assert!(close(word["relevance"].as_f64().unwrap(), relevance));
    }
    let found = ask(&explorer, "search", json!({ "word": answer["words"][0]["word"] })).unwrap();
    let shares: f64 = numbers(&found["words"][0]["topics"], "share").iter().sum();
    assert!(close(shares, 1.0));
}

#[test]
fn a_typed_document_has_the_topics_that_the_model_infers() {
    let lda = lda();
    let text = embedded::documents()[70].sentences.join(" ");
    let mut explorer = shown(&lda);
    let answer = ask(&explorer, "color", json!({ "text": text })).unwrap();
    let expected = lda.infer([&text]);
    for share in answer["mixture"].as_array().unwrap() {
        let topic = share["topic"].as_u64().unwrap() as usize;
        assert!(
            (share["share"].as_f64().unwrap() - f64::from(expected.row(0)[topic])).abs() < 1e-6
        );
    }
    assert_eq!(
        ask(&explorer, "documents", json!({ "topic": 0 })).unwrap_err(),
        ViewError::UnknownView { view: "documents".to_owned() }
    );
    let documents = lda.lexicon().documents([text.as_str(), "goal ball"]);
    let documents = ShownDocuments::new(explorer.models().next().unwrap().1, documents).unwrap();
    explorer.set_documents(0, documents);
    let document = ask(&explorer, "document", json!({ "document": 0 })).unwrap();
    assert_eq!(document["words"], answer["words"]);
    let listed = ask(&explorer, "documents", json!({ "topic": 1 })).unwrap();
    let shares = numbers(&listed["documents"], "share");
    assert!(shares.len() == 2 && shares[0] >= shares[1]);
}

#[test]
fn equal_models_match_topic_by_topic() {
    let lda = lda();
    let mut explorer = shown(&lda);
    explorer.add_model("again", latens::from_bytes(&(&lda as &dyn Model).to_bytes()).unwrap());
    let found = ask(&explorer, "compare", json!({ "other": 1 })).unwrap();
    assert_eq!(found["stability"], 1.0);
    for pair in found["pairs"].as_array().unwrap() {
        assert_eq!(pair["first"], pair["second"]);
    }
}

#[test]
fn states_and_sentences_have_the_probabilities_of_the_model() {
    let corpus = corpus();
    let hmm = Hmm::params().n_states(16).n_clusters(4).dim(8).epochs(1).fit(&corpus).unwrap();
    let explorer = shown(&hmm);
    let states = ask(&explorer, "states", json!({ "n": 16 })).unwrap();
    let shares = numbers(&states["states"], "share");
    assert!(shares.is_sorted_by(|a, b| a >= b));
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    let state = ask(&explorer, "state", json!({ "state": 3 })).unwrap();
    let expected = hmm.top_words(3, 30);
    assert_eq!(strings(&state["words"], "word"), expected.iter().map(|w| w.0).collect::<Vec<_>>());
    let next = hmm.transition(3);
    for other in state["next"].as_array().unwrap() {
        let at = other["state"].as_u64().unwrap() as usize;
        assert!((other["prob"].as_f64().unwrap() - f64::from(next[at])).abs() < 1e-6);
    }
    // What came before is Bayes' rule over all states.
    let stationary = hmm.stationary();
    let into = |from: usize| stationary[from] * f64::from(hmm.transition(from)[3]);
    let total: f64 = (0..16).map(into).sum();
    for other in state["before"].as_array().unwrap() {
        let from = other["state"].as_u64().unwrap() as usize;
        assert!((other["prob"].as_f64().unwrap() - into(from) / total).abs() < 1e-5);
    }
    let text = corpus_line();
    let sentence = ask(&explorer, "sentence", json!({ "text": text })).unwrap();
    let posterior = hmm.posterior(&text).unwrap();
    for row in sentence["states"].as_array().unwrap() {
        let state = row["state"].as_u64().unwrap() as usize;
        for (at, p) in row["posterior"].as_array().unwrap().iter().enumerate() {
            assert!((p.as_f64().unwrap() - f64::from(posterior[(at, state)])).abs() < 1e-6);
        }
    }
    assert_eq!(sentence["path"], json!(hmm.viterbi(&text).unwrap()));
    let scored = perplexity(&hmm, &hmm.lexicon().sentences([&text]));
    assert!((sentence["perplexity"].as_f64().unwrap() / scored.perplexity() - 1.0).abs() < 1e-4);
}

fn corpus_line() -> String {
    embedded::text(Split::Train).lines().nth(5).unwrap().to_owned()
}

#[test]
fn a_text_has_the_surprisal_and_next_words_of_the_language_model() {
    let corpus = corpus();
    let ngram = Ngram::params().order(3).fit(&corpus).unwrap();
    let explorer = shown(&ngram);
    let text = corpus_line();
    let answer = ask(&explorer, "text", json!({ "text": text })).unwrap();
    let scored = perplexity(&ngram, &ngram.lexicon().sentences([&text]));
    assert!(close(answer["perplexity"].as_f64().unwrap(), scored.perplexity()));
    let expected = ngram.next_words(&text, 5);
    for (found, (_, prob)) in numbers(&answer["next"], "prob").iter().zip(expected) {
        assert!(close(*found, prob));
    }
    let sample = ask(&explorer, "sample", json!({ "seed": 3, "n": 2 })).unwrap();
    assert_eq!(sample, ask(&explorer, "sample", json!({ "seed": 3, "n": 2 })).unwrap());
    assert_eq!(sample["sentences"].as_array().unwrap().len(), 2);
    // Parts of a sample are the same sentences.
    for first in 0..2 {
        let part = ask(&explorer, "sample", json!({ "seed": 3, "first": first, "n": 1 })).unwrap();
        assert_eq!(part["sentences"][0], sample["sentences"][first]);
    }
}

#[test]
fn layers_of_a_factorial_model_have_their_posteriors() {
    let corpus = corpus();
    let fhmm =
        Fhmm::params().n_layers(2).n_states(4).lbfgs_iterations(2).epochs(2).fit(&corpus).unwrap();
    let explorer = shown(&fhmm);
    let text = corpus_line();
    let answer = ask(&explorer, "sentence", json!({ "text": text })).unwrap();
    let posterior = fhmm.posterior(&text);
    for (m, layer) in answer["layers"].as_array().unwrap().iter().enumerate() {
        for row in layer["states"].as_array().unwrap() {
            let column = m * 4 + row["state"].as_u64().unwrap() as usize;
            let first = row["posterior"][0].as_f64().unwrap();
            assert!((first - f64::from(posterior[(0, column)])).abs() < 1e-6);
        }
    }
    let layers = ask(&explorer, "layers", json!({})).unwrap();
    assert_eq!(layers["layers"].as_array().unwrap().len(), 2);
    assert!(ask(&explorer, "layer_state", json!({ "layer": 2, "state": 0 })).is_err());
}

#[test]
fn neighbors_and_clusters_are_those_of_the_models() {
    let corpus = corpus();
    let word2vec = Word2vec::params().dim(8).epochs(1).fit(&corpus).unwrap();
    let explorer = shown(&word2vec);
    let word = corpus.lexicon.vocab.word(WordId(5)).to_owned();
    let answer = ask(&explorer, "neighbors", json!({ "word": word })).unwrap();
    let expected = word2vec.nearest(&word, 20).unwrap();
    assert_eq!(
        strings(&answer["neighbors"], "word"),
        expected.iter().map(|w| w.0).collect::<Vec<_>>()
    );
    assert!(ask(&explorer, "neighbors", json!({ "word": "no-such-word" })).is_err());
    assert!(!ask(&explorer, "map", json!({})).unwrap()["words"].as_array().unwrap().is_empty());
    // The vector of a sentence is the mean of its words; unknown words have none.
    let text = format!("{word} {} no-such-word", corpus.lexicon.vocab.word(WordId(6)));
    let answer = ask(&explorer, "embed", json!({ "text": text })).unwrap();
    let vectors = word2vec.word_vectors().unwrap();
    let rows = [5, 6].map(|id| vectors.get(WordId(id)).unwrap());
    let mean: Vec<f32> = rows[0].iter().zip(rows[1]).map(|(a, b)| (a + b) / 2.0).collect();
    let nearest = vectors.nearest(&mean, 20, &[]);
    let names: Vec<&str> = nearest.iter().map(|w| corpus.lexicon.vocab.word(w.0)).collect();
    assert_eq!(strings(&answer["sentence"], "word"), names);
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let expected = dot(rows[0], &mean) / (dot(rows[0], rows[0]) * dot(&mean, &mean)).sqrt();
    let cosine = answer["tokens"][0]["similarity"].as_f64().unwrap();
    assert!((cosine - expected).abs() < 1e-6);
    assert_eq!(answer["tokens"][2]["known"], false);
    assert_eq!(answer["tokens"][2]["similarity"], Value::Null);
    let nothing = ask(&explorer, "embed", json!({ "text": "no-such-word" })).unwrap();
    assert_eq!(nothing["sentence"], json!([]));
    let brown = Brown::params().n_clusters(8).fit(&corpus).unwrap();
    let explorer = shown(&brown);
    let found = ask(&explorer, "cluster_of_word", json!({ "word": word })).unwrap();
    assert_eq!(found["path"], brown.path(&word).unwrap());
    // The words below a node are those of its children.
    let root = ask(&explorer, "node", json!({})).unwrap();
    let below: f64 = numbers(&root["children"], "n_words").iter().sum();
    assert_eq!(root["n_words"].as_f64().unwrap(), below);
    assert!(ask(&explorer, "node", json!({ "path": "../x" })).is_err());
}

#[test]
fn a_map_is_computed_in_the_background_once_and_is_in_reports() {
    let lines = Corpus::from_lines(embedded::text(Split::Train).lines().take(12)).unwrap();
    let word2vec = Word2vec::params().dim(8).epochs(1).subsample(0.0).fit(&lines).unwrap();
    let explorer = shown(&word2vec);
    let at_once = ask(&explorer, "map", json!({})).unwrap();
    assert_eq!(at_once, ask(&explorer, "map", json!({ "projection": "pca" })).unwrap());
    let tsne = || ask(&explorer, "map", json!({ "projection": "tsne" })).unwrap();
    let mut last = 0.0;
    let map = loop {
        let answer = tsne();
        let Some(progress) = answer["progress"].as_f64() else { break answer };
        assert!((last..=1.0).contains(&progress), "{last}, {progress}");
        last = progress;
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(strings(&map["words"], "word"), strings(&at_once["words"], "word"));
    assert_ne!(numbers(&map["words"], "x"), numbers(&at_once["words"], "x"));
    assert_eq!(map, tsne());
    // Another process computes the same places.
    let page = report(&shown(&word2vec), "words");
    let start = page.find("<script type=\"application/json\"").unwrap();
    let data = page[start..].split_once('>').unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["answers"]["0 map projection=tsne"], map);
    assert!(ask(&explorer, "map", json!({ "projection": "umap" })).is_err());
}

#[test]
fn few_words_have_no_map_by_tsne() {
    let few = Corpus::from_lines(["a b c a b c"]).unwrap();
    let word2vec = Word2vec::params().dim(4).epochs(1).subsample(0.0).fit(&few).unwrap();
    let explorer = shown(&word2vec);
    let error = loop {
        match ask(&explorer, "map", json!({ "projection": "tsne" })) {
            Ok(answer) => assert!(answer["progress"].is_number(), "{answer}"),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("t-SNE needs more than"), "{error}");
    assert!(!report(&explorer, "few").contains("projection=tsne"));
}

#[test]
fn tags_have_the_probabilities_of_the_tagger() {
    let rows = [
        [("the", "D"), ("dog", "N"), ("barks", "V")],
        [("a", "D"), ("cat", "N"), ("sleeps", "V")],
        [("the", "D"), ("cat", "N"), ("walks", "V")],
    ];
    let text = TaggedSentences::from_rows(rows).unwrap();
    let tagger = FeatureTagger::params().n_iterations(50).fit(&text).unwrap();
    let mut explorer = Explorer::default();
    explorer.add_model("tagger", Box::new(tagger));
    let answer = ask(&explorer, "tags", json!({ "text": "a dog walks" })).unwrap();
    assert_eq!(strings(&answer["tokens"], "tag"), ["D", "N", "V"]);
    let probs: f64 = numbers(&answer["tokens"][0]["probs"], "prob").iter().sum();
    assert!((probs - 1.0).abs() < 1e-5);
    let weights = ask(&explorer, "weights", json!({ "text": "a dog walks", "at": 1 })).unwrap();
    assert_eq!((&weights["word"], &weights["tags"][0]), (&json!("dog"), &json!("N")));
    assert!(ask(&explorer, "weights", json!({ "text": "a dog walks", "at": 3 })).is_err());
}

#[test]
fn tags_of_spans_are_spans() {
    let rows = [
        vec![
            ("Mary", "B-PER"),
            ("Smith", "I-PER"),
            ("met", "O"),
            ("Tom", "B-PER"),
            ("in", "O"),
            ("Rome", "B-LOC"),
        ],
        vec![("Tom", "B-PER"), ("saw", "O"), ("Rome", "B-LOC")],
        vec![("Mary", "B-PER"), ("Smith", "I-PER"), ("saw", "O"), ("Tom", "B-PER")],
    ];
    let text = TaggedSentences::from_rows(rows).unwrap();
    let tagger = FeatureTagger::params().n_iterations(50).fit(&text).unwrap();
    let mut explorer = Explorer::default();
    explorer.add_model("names", Box::new(tagger));
    let text = "Mary Smith saw Rome";
    let answer = ask(&explorer, "tags", json!({ "text": text })).unwrap();
    let expected = json!([
        { "kind": "PER", "first": 0, "end": 2 },
        { "kind": "LOC", "first": 3, "end": 4 },
    ]);
    assert_eq!(answer["spans"], expected);
}

#[test]
fn a_report_contains_the_answers_and_no_markup_of_words() {
    let texts =
        ["<script>alert(1)</script> ball goal", "</script> pan pot", "ball goal", "pan pot"];
    let lda = Lda::params().n_topics(2).n_iterations(10);
    let lda = lda.fit(&Documents::from_texts(texts).unwrap()).unwrap();
    let explorer = shown(&lda);
    let page = report(&explorer, "kitchen");
    assert!(page.contains("sha256-") && page.contains("0 topic lambda=0.6&topic=1"));
    assert!(!page.contains("<script>alert"));
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("src=") && !page.contains("href=\"style"), "something is loaded");
}

#[test]
fn folders_checkpoints_and_texts_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "neither").unwrap();
    let mut explorer = Explorer::default();
    for path in [path.as_path(), folder.path()] {
        assert!(matches!(explorer.open(path), Err(OpenError::Neither { .. })));
    }
    let missing = folder.path().join("missing");
    assert!(matches!(explorer.open(&missing), Err(OpenError::Read { .. })));
    let model = folder.path().join("model.lda");
    lda().save(&model).unwrap();
    explorer.open(&model).unwrap();
    assert_eq!(explorer.items()[0]["name"], "model.lda");
    assert_eq!(ask(&explorer, "about", json!({})).unwrap()["parameters"]["n_topics"], 4);
}
