//! Linear dynamical systems with the real program.

mod common;

use common::{Folder, Ran};

fn train(folder: &Folder, args: &str) -> Ran {
    let ran = folder.run(&format!("train lds {args} -o model"));
    if ran.code != Some(0) {
        assert!(!folder.path().join("model").exists(), "no model after {args}");
        assert!(!folder.names().iter().any(|name| name.contains(".part")), "{:?}", folder.names());
    }
    ran
}

#[test]
fn a_trained_model_encodes_new_text() {
    let folder = Folder::with_embedded_corpus();
    let args = "train lds train.txt --valid valid.txt --min-count 4 --dim 10 --n-iterations 3 \
                --log log.jsonl -o model";
    let trained = folder.json(args);
    assert_eq!(trained["model"], "lds");
    let metrics = &trained["metrics"];
    assert!(metrics["gain"].as_f64().unwrap() > 0.0, "{metrics}");
    assert!(metrics["valid_gain"].is_f64() && metrics["pseudo_counts"].is_f64());
    let log = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 2 && lines[0]["iteration"] == 0 && lines[1]["iteration"] == 1);
    assert!(lines.iter().all(|line| line["gain"].is_f64() && line["valid_gain"].is_f64()));

    for (kind, dim) in [("", 20), ("type", 10), ("filtered", 10), ("smoothed", 10)] {
        let flag = if kind.is_empty() { String::new() } else { format!("--features {kind}") };
        let encoded = folder.json(&format!("encode model test.txt {flag} -o out.npy"));
        assert_eq!(encoded["dim"], dim);
        let kind = if kind.is_empty() { "type+smoothed" } else { kind };
        assert_eq!(encoded["features"], kind);
    }
    folder.run("perplexity model test.txt").assert_refused("not a language model");
    assert_eq!(folder.json("inspect model")["model"], "lds");
}

#[test]
fn counts_and_their_text_give_the_same_model() {
    let folder = Folder::with_embedded_corpus();
    folder.json("count train.txt --min-count 4 --lags 7 -o counts");
    let from_counts = folder.json("train lds counts --dim 8 --n-iterations 2 -o a");
    let from_text = folder.json("train lds train.txt --min-count 4 --dim 8 --n-iterations 2 -o b");
    assert_eq!(from_counts["metrics"], from_text["metrics"]);
    assert_eq!(from_counts["tokens"], from_text["tokens"]);
    let encode = |model: &str| {
        folder.json(&format!("encode {model} test.txt -o {model}.npy"));
        std::fs::read(folder.path().join(format!("{model}.npy"))).unwrap()
    };
    assert_eq!(encode("a"), encode("b"));
    // Shards are added up.
    folder.json("vocab train.txt valid.txt --min-count 4 -o words");
    for part in ["train", "valid"] {
        folder.json(&format!("count {part}.txt --vocab words --lags 7 -o {part}.counts"));
    }
    let shards =
        folder.json("train lds train.counts valid.counts --dim 8 --n-iterations 2 -o shards");
    let whole = folder
        .json("train lds train.txt valid.txt --vocab words --dim 8 --n-iterations 2 -o whole");
    assert_eq!(shards["metrics"], whole["metrics"]);
}

#[test]
fn mismatched_counts_are_rejected() {
    let folder = Folder::with_embedded_corpus();
    folder.json("count train.txt --lags 3 -o short");
    train(&folder, "short").assert_refused("the counts have 3 lags, but the model needs 7");
    assert_eq!(train(&folder, "short --lags 3 --ssid-lags 2 --dim 5").code, Some(0));
    std::fs::remove_file(folder.path().join("model")).unwrap();
    folder.json("count train.txt --lags 7 --boundary sentence -o counts");
    train(&folder, "counts --boundary stream")
        .assert_refused("computed with `--boundary sentence`");
    train(&folder, "counts --lowercase").assert_refused("cannot be used with counts");
    train(&folder, "counts train.txt").assert_refused("cannot mix counts and text: 1 of 2 files");
    folder.json("vocab test.txt -o other");
    train(&folder, "counts --vocab other")
        .assert_refused("the vocabulary of the counts differs from `other`");
    folder.json("count test.txt --lags 7 --boundary sentence -o more");
    train(&folder, "counts more").assert_refused("has a different vocabulary from part 1");
    let bytes = std::fs::read(folder.path().join("counts")).unwrap();
    folder.write("cut", &bytes[..bytes.len() / 2]);
    assert_eq!(train(&folder, "cut").code, Some(2));
}

#[test]
fn too_little_text_is_rejected() {
    let folder = Folder::new();
    folder.write("one", "a a a a a a a a a a a\n");
    folder.write("short", "a b c d\n");
    train(&folder, "one").assert_refused("at least 3 distinct words");
    train(&folder, "short --dim 2").assert_refused("words 7 tokens apart");
    folder.write("text", "a b c a c b b a c a b c c b a\n".repeat(20));
    train(&folder, "text").assert_refused("`dim` must be at most 3");
    train(&folder, "text --dim 0").assert_refused("`dim` must be");
    train(&folder, "text --dim 2 --pseudo-counts nan").assert_refused("`pseudo_counts` must be");
}

#[test]
fn missing_pseudo_counts_are_added_with_a_warning() {
    let folder = Folder::with_embedded_corpus();
    let ran = train(&folder, "train.txt --dim 8 --pseudo-counts 0 --n-iterations 3");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: `pseudo_counts` = 0 is too small"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("NaN"), "{}", ran.stdout);
}

#[test]
fn a_figure_is_rejected_for_experiments_without_one() {
    let folder = Folder::new();
    let ran = folder.run("reproduce lm-baselines --data . -o figure.svg");
    ran.assert_refused("has no figure");
}
