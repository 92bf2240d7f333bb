use super::runs::{Texts, assert_close, assert_same, in_memory, through_files};
use latens::corpus::{Corpus, Lexicon, Preprocessing, VocabLimits};
use latens::model::Model;
use latens::model::shards::{Arrays, Round};
use latens::prelude::*;
use serde_json::{Value, json};

/// Learns from 1, 2 and 7 shards, in memory and through files, and compares the models with `check`.
fn check(
    texts: &Texts,
    lexicon: &Lexicon,
    kind: &str,
    params: Value,
    inputs: &Arrays,
    check: impl Fn(&dyn Model),
) {
    for n in [1, 2, 7] {
        let (parts, params) = (texts.parts(n), || params.clone());
        let memory = in_memory(kind, params(), lexicon.clone(), &parts, inputs.clone());
        let files = through_files(kind, params(), lexicon.clone(), &parts, inputs.clone());
        assert_eq!(memory.to_bytes(), files.to_bytes(), "{kind}, {n} shards");
        check(&*memory);
    }
}

fn corpus(texts: &Texts, lexicon: &Lexicon) -> Corpus {
    Corpus { sentences: lexicon.read(&texts.inputs()).unwrap(), lexicon: lexicon.clone() }
}

const RARE: VocabLimits = VocabLimits { min_count: 2, max_vocab: 0 };

#[test]
fn the_vocabulary_of_shards_is_that_of_the_text() {
    let texts = Texts::new(300);
    for n in [1, 2, 7] {
        let limits = VocabLimits { min_count: 2, max_vocab: 300 };
        let none = latens::corpus::Vocab::from_counts([], &limits);
        let begin = Lexicon::new(Preprocessing::default(), limits, none);
        let result =
            latens::fit_shards("vocab", json!({}), begin, &texts.parts(n), Arrays::new()).unwrap();
        let Round::Lexicon(found) = result else { panic!("{result:?}") };
        let expected = texts.lexicon(limits);
        assert!(found.vocab.words().eq(expected.vocab.words()));
        assert_eq!(found.vocab.counts(), expected.vocab.counts());
        assert_eq!(found.limits, limits);
    }
}

#[test]
fn an_ngram_model_of_shards_is_that_of_the_text() {
    let texts = Texts::new(300);
    let lexicon = texts.lexicon(RARE);
    let expected = Ngram::params().order(3).fit(&corpus(&texts, &lexicon)).unwrap();
    let params = json!({ "order": 3 });
    check(&texts, &lexicon, "ngram", params, &Arrays::new(), |model| {
        assert_same(model, &expected);
        assert_eq!(model.facts()["tokens"], expected.facts()["tokens"]);
    });
}

#[test]
fn a_linear_dynamical_system_of_shards_is_that_of_the_text() {
    let texts = Texts::new(400);
    let lexicon = texts.lexicon(RARE);
    let lds = Lds::params().dim(5).lags(4).ssid_lags(2).n_iterations(3);
    let params = serde_json::to_value(&lds).unwrap();
    let expected = lds.fit(&corpus(&texts, &lexicon)).unwrap();
    check(&texts, &lexicon, "lds", params, &Arrays::new(), |model| assert_same(model, &expected));
}

#[test]
fn brown_clusters_of_shards_are_those_of_the_text() {
    let texts = Texts::new(300);
    let lexicon = texts.lexicon(RARE);
    let expected = Brown::params().n_clusters(20).fit(&corpus(&texts, &lexicon)).unwrap();
    let params = json!({ "n_clusters": 20 });
    check(&texts, &lexicon, "brown", params, &Arrays::new(), |model| assert_same(model, &expected));
}

#[test]
fn baum_welch_of_shards_gives_the_model_of_the_text() {
    let texts = Texts::new(200);
    let lexicon = texts.lexicon(RARE);
    for (constraint, memory) in [("brown", "reset"), ("none", "carry"), ("uniform", "reset")] {
        let params = json!({
            "n_states": 16, "n_clusters": 4, "constraint": constraint, "memory": memory,
            "parameterization": "scalar", "epochs": 4,
        });
        let hmm: latens::hmm::HmmParams = serde_json::from_value(params.clone()).unwrap();
        let expected = hmm.fit(&corpus(&texts, &lexicon)).unwrap();
        check(&texts, &lexicon, "hmm", params, &Arrays::new(), |model| {
            assert_close(model, &expected, 1e-6);
            let perplexity =
                |model: &dyn Model| model.facts()["train_perplexity"].as_f64().unwrap();
            assert!((perplexity(model) / perplexity(&expected) - 1.0).abs() < 1e-6);
        });
    }
}

#[test]
fn gradients_of_shards_give_the_model_of_the_text() {
    let texts = Texts::new(120);
    let lexicon = texts.lexicon(RARE);
    for parameterization in ["neural", "scalar"] {
        let params = json!({
            "n_states": 8, "n_clusters": 4, "dim": 8, "epochs": 2, "parameterization": parameterization,
            "learning": "gradient", "state_dropout": 0.25, "dropout": 0.1, "schedule": "plateau",
        });
        let hmm: latens::hmm::HmmParams = serde_json::from_value(params.clone()).unwrap();
        let expected = hmm.fit(&corpus(&texts, &lexicon)).unwrap();
        check(&texts, &lexicon, "hmm", params, &Arrays::new(), |model| {
            let perplexity = |model: &dyn Model| {
                let model = model.as_language_model().unwrap();
                latens::tasks::perplexity(model, &corpus(&texts, &lexicon).sentences).perplexity()
            };
            let (found, expected) = (perplexity(model), perplexity(&expected));
            assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
        });
    }
}

#[test]
fn one_shard_of_lda_is_gibbs_sampling_and_more_shards_learn_as_well() {
    let texts = Texts::new(400);
    let DocumentCorpus { lexicon, documents } =
        DocumentCorpus::read(&texts.inputs(), &Preprocessing::default(), &RARE).unwrap();
    let params = json!({
        "n_topics": 5, "n_iterations": 40, "optimize_alpha": true, "sampler": "dense", "beta": 0.1,
    });
    let lda: latens::lda::LdaParams = serde_json::from_value(params.clone()).unwrap();
    let corpus = DocumentCorpus { lexicon: lexicon.clone(), documents };
    let expected = lda.fit(&corpus).unwrap();
    let likelihood =
        |model: &dyn Model| model.facts()["log_likelihood_per_token"].as_f64().unwrap();
    check(&texts, &lexicon, "lda", params, &Arrays::new(), |model| {
        if model.facts()["shards"] == 1 {
            assert_close(model, &expected, 1e-6);
            let (found, expected) = (likelihood(model), likelihood(&expected));
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        // Shards of a few hundred tokens miss much of each other's changes, and still learn.
        assert!((likelihood(model) / likelihood(&expected) - 1.0).abs() < 0.02);
    });
}

#[test]
fn gaussian_lda_of_shards_is_that_of_the_documents() {
    let texts = Texts::new(400);
    let DocumentCorpus { lexicon, documents } =
        DocumentCorpus::read(&texts.inputs(), &Preprocessing::default(), &RARE).unwrap();
    let mut rng = latens::math::Rng::new(1);
    let values: Vec<f32> = (0..4 * lexicon.vocab.len()).map(|_| rng.normal() as f32).collect();
    let inputs = Arrays::new().with("vectors", values.clone()).with("dim", vec![4u64]);
    let vectors = WordVectors::new(4, values).unwrap();
    let corpus = DocumentCorpus { lexicon: lexicon.clone(), documents };
    for start in ["kmeans", "random"] {
        let params =
            json!({ "n_topics": 4, "n_iterations": 8, "sampler": "parallel", "start": start });
        let glda: latens::lda::GldaParams = serde_json::from_value(params.clone()).unwrap();
        let given = latens::lda::GldaInputs::default().vectors(&vectors);
        let expected = glda.with(given).fit(&corpus).unwrap();
        check(&texts, &lexicon, "glda", params, &inputs, |model| {
            assert_same(model, &expected);
            let likelihood = |model: &dyn Model| model.facts()["log_likelihood"].as_f64().unwrap();
            assert!((likelihood(model) / likelihood(&expected) - 1.0).abs() < 1e-9);
        });
    }
}

#[test]
fn one_shard_of_word2vec_is_one_thread_and_more_shards_are_averaged() {
    let toy = latens_testkit::two_class_corpus(400, 1);
    let lines: Vec<String> = toy
        .sentences
        .iter()
        .map(|sentence| {
            let words = sentence.iter().filter(|&&word| word != WordId::EOS);
            words.map(|&word| toy.lexicon.vocab.word(word)).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let texts = Texts::of(lines.iter().map(String::as_str).collect());
    let lexicon = texts.lexicon(VocabLimits::default());
    let params = json!({ "dim": 8, "epochs": 20, "window": 1, "subsample": 0.0 });
    let word2vec: latens::word2vec::Word2vecParams =
        serde_json::from_value(params.clone()).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let text = corpus(&texts, &lexicon);
    let expected = pool.install(|| word2vec.fit(&text)).unwrap();
    check(&texts, &lexicon, "word2vec", params, &Arrays::new(), |model| {
        if model.facts()["shards"] == 1 {
            assert_same(model, &expected);
        }
        // Words of the same class are closer to each other than words of different classes.
        let vectors = model.word_vectors().unwrap();
        let vocab = &lexicon.vocab;
        let cosine = |a: &str, b: &str| {
            let [a, b] = [a, b].map(|word| vectors.get(vocab.id(word)).unwrap());
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
        };
        assert!(cosine("a0", "a1") > cosine("a0", "b1"), "{}", model.facts()["shards"]);
    });
}

#[test]
fn a_factorial_hmm_of_shards_is_that_of_the_text() {
    let texts = Texts::new(150);
    let lexicon = texts.lexicon(RARE);
    // With small batches, most updates are those of the words of a batch.
    for (inference, n) in [("exact-mf", 40), ("exact", 40), ("exact-mf", 12)] {
        let params = json!({
            "n_layers": 2, "n_states": 3, "epochs": 2, "batch_sentences": n, "inference": inference,
        });
        let fhmm: latens::fhmm::FhmmParams = serde_json::from_value(params.clone()).unwrap();
        let expected = fhmm.fit(&corpus(&texts, &lexicon)).unwrap();
        check(&texts, &lexicon, "fhmm", params, &Arrays::new(), |model| {
            assert_close(model, &expected, 1e-5);
            let bound = |model: &dyn Model| model.facts()["train_bound"].as_f64().unwrap();
            assert!((bound(model) / bound(&expected) - 1.0).abs() < 1e-6);
        });
    }
}

/// Sentences of the embedded text in columns. Tags depend on the words around, so that transitions matter.
fn tagged(n_lines: usize, tag: impl Fn(&[&str], usize) -> String) -> Texts {
    let text = latens::corpus::embedded::text(latens::corpus::embedded::Split::Train);
    let sentences = text.lines().take(n_lines).map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let row = |i: usize| format!("{}\t{}\n", words[i], tag(&words, i));
        (0..words.len()).map(row).collect::<String>()
    });
    Texts::with_extension(&sentences.collect::<Vec<String>>(), "conll")
}

#[test]
fn a_tagger_of_shards_is_that_of_the_text() {
    let letter = |words: &[&str], i: usize| match words[i].len() + words[i.saturating_sub(1)].len()
    {
        n if n % 3 == 0 => "A".to_owned(),
        n if n % 5 == 0 => "B".to_owned(),
        _ => "C".to_owned(),
    };
    // A long word begins a span, and the word after it is part of the span.
    let span = |words: &[&str], i: usize| match (words[i].len(), i.checked_sub(1).map(|i| words[i]))
    {
        (n, _) if n > 6 => "B-LONG".to_owned(),
        (_, Some(before)) if before.len() > 6 => "I-LONG".to_owned(),
        _ => "O".to_owned(),
    };
    let all = [
        (tagged(60, letter), json!({ "n_iterations": 3 })),
        (tagged(60, letter), json!({ "n_iterations": 40 })),
        (tagged(60, span), json!({ "n_iterations": 3, "spans": "bioes", "min_count": 2 })),
        (tagged(60, letter), json!({ "n_iterations": 3, "l1": 0.1, "pairs": "all" })),
    ];
    let limits = VocabLimits::default();
    let none = latens::corpus::Vocab::from_counts([], &limits);
    let lexicon = Lexicon::new(Preprocessing::default(), limits, none);
    for (texts, params) in all {
        let text = TaggedSentences::read(&texts.inputs()).unwrap();
        let tagger: latens::tasks::tagging::TaggerParams =
            serde_json::from_value(params.clone()).unwrap();
        let expected = tagger.clone().fit(&text).unwrap();
        let column = Arrays::new().with("column", vec![1u64]);
        check(&texts, &lexicon, "tagger", params, &column, |model| {
            if model.facts()["shards"] == 1 {
                assert_same(model, &expected);
            }
            // Scores are summed in single precision, and L-BFGS amplifies their rounding.
            assert_close(model, &expected, if tagger.n_iterations > 3 { 1e-3 } else { 1e-6 });
            for fact in ["tokens", "sentences", "tags"] {
                assert_eq!(model.facts()[fact], expected.facts()[fact], "{fact}");
            }
            let loss = |model: &dyn Model| model.facts()["loss"].as_f64().unwrap();
            assert!((loss(model) / loss(&expected) - 1.0).abs() < 1e-6);
        });
    }
}
