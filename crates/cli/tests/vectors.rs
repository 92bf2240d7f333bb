//! Word vectors with the real program: trained, imported, exported, looked at.

mod common;

use common::{Folder, Ran};
use serde_json::Value;
use std::fs;

const TRAIN: &str =
    "train word2vec train.txt --tokenize words --lowercase --min-count 2 --dim 12 --threads 1";

fn trained() -> Folder {
    let folder = Folder::with_embedded_corpus();
    folder.json(&format!("{TRAIN} --epochs 2 -o m.word2vec"));
    folder
}

fn neighbors(folder: &Folder, args: &str) -> Value {
    folder.json(&format!("nearest {args}"))["neighbours"].clone()
}

#[test]
fn training_reports_progress_and_repeats_with_its_seed() {
    let folder = Folder::with_embedded_corpus();
    for algorithm in ["cbow", "skip-gram"] {
        let train = format!("{TRAIN} --algorithm {algorithm} --epochs 2");
        let result = folder.json(&format!("{train} --log log.jsonl -o a"));
        assert_eq!(result["model"], "word2vec");
        assert!(result["metrics"]["loss"].as_f64().unwrap() > 0.0, "{result}");
        assert!(result["metrics"]["tokens_per_second"].as_f64().unwrap() > 0.0, "{result}");
        let log = fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
        let lines: Vec<Value> =
            log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.iter().map(|line| line["iteration"].clone()).collect::<Vec<_>>(), [1, 2]);
        assert!(lines[1]["loss"].as_f64() < lines[0]["loss"].as_f64(), "{log}");
        folder.json(&format!("{train} -o b"));
        folder.json(&format!("{train} --seed 2 -o c"));
        let vectors = ["a", "b", "c"].map(|model| {
            folder.json(&format!("export {model} --to glove -o text"));
            fs::read(folder.path().join("text")).unwrap()
        });
        assert!(vectors[0] == vectors[1] && vectors[0] != vectors[2]);
    }
}

#[test]
fn every_format_preserves_the_neighbors() {
    let folder = trained();
    let expected = neighbors(&folder, "m.word2vec water game");
    assert_eq!(expected[1]["word"], "game");
    let nearest = expected[0]["nearest"].as_array().unwrap();
    assert_eq!(nearest.len(), 10);
    assert!(
        nearest
            .windows(2)
            .all(|two| two[0]["similarity"].as_f64() >= two[1]["similarity"].as_f64())
    );
    for (format, words) in [
        ("word2vec", ""),
        ("word2vec-binary", ""),
        ("glove", ""),
        ("fasttext", ""),
        ("npy", "--words words"),
    ] {
        folder.json(&format!("export m.word2vec --to {format} {words} -o foreign"));
        let imported =
            folder.json(&format!("import foreign --from {format} {words} --lowercase -o again"));
        assert_eq!(imported["model"], "vectors");
        assert_eq!(neighbors(&folder, "again water game"), expected, "{format}");
    }
    // A word is found in small letters, too.
    assert_eq!(neighbors(&folder, "again Water")[0]["nearest"], expected[0]["nearest"]);
}

#[test]
fn imported_vectors_are_features_of_words() {
    let folder = Folder::new();
    folder.write("v.txt", "the 1 2\ncat -1 0.5\n");
    folder.write("text", "The cat sleeps\n");
    folder.json("import v.txt --from glove --lowercase -o v");
    let ran = folder.run("encode v text");
    assert_eq!(ran.stdout, "the\t0:1\t1:2\ncat\t0:-1\t1:0.5\nsleeps\n\n", "{}", ran.stderr);
    assert!(ran.stderr.contains("1 words have no features"), "{}", ran.stderr);
    folder.json("encode v text --features vectors -o f.npy");
}

#[test]
fn imported_vectors_are_centered_and_have_length_one() {
    let folder = Folder::new();
    // The mean is (0, 1.25), and both differences have length 1.25.
    folder.write("v.txt", "the 1 2\ncat -1 0.5\n");
    folder.json("import v.txt --from glove --center-and-normalize -o centered");
    folder.json("export centered --to glove -o centered.txt");
    assert_eq!(
        std::fs::read_to_string(folder.path().join("centered.txt")).unwrap(),
        "the 0.8 0.6\ncat -0.8 -0.6\n"
    );
    assert_eq!(folder.json("inspect centered")["training"]["centered_and_normalized"], true);
    folder.run("import v.txt --from paths --center-and-normalize -o model").assert_refused(
        "`--center-and-normalize` needs word vectors, but the format `paths` has none",
    );
}

#[test]
fn analogies_are_solved_and_counted() {
    let folder = Folder::new();
    folder.write("v.txt", "cat 1 0 0\ncats 1 0 1\ndog 0 1 0\ndogs 0 1 1\nfar -1 -1 0\n");
    folder.json("import v.txt --from glove -o v");
    let found = neighbors(&folder, "v cat cats dog --analogy -n 1");
    assert_eq!(
        (&found[0]["word"], &found[0]["nearest"][0]["word"]),
        (&"cat cats dog".into(), &"dogs".into())
    );
    folder.write("q.txt", ": plurals\ncat cats dog dogs\ncat cats dog far\nno such words here\n");
    let asked = folder.json("nearest v --questions q.txt");
    assert_eq!(asked, serde_json::json!({ "accuracy": 0.5, "questions": 2, "skipped": 1 }));
    folder.write("none.txt", "no such words here\n");
    folder.run("nearest v --questions none.txt").assert_refused("every question of `none.txt`");
    folder.write("bad.txt", "cat cats dog dogs\ncat cats\n");
    folder
        .run("nearest v --questions bad.txt")
        .assert_refused("line 2: expected four words, found 2");
    folder
        .run("nearest v cat cats --analogy")
        .assert_refused("needs a multiple of three words, got 2");
}

fn import(folder: &Folder, args: &str) -> Ran {
    let ran = folder.run(&format!("import {args} -o model"));
    assert!(!folder.path().join("model").exists(), "no model after {args}");
    ran
}

#[test]
fn invalid_vectors_are_rejected() {
    let folder = Folder::new();
    folder.write("good", "the 1 2\ncat 3 4\n");
    folder.write("header", "2 2\nthe 1 2\ncat 3 4\n");
    folder.write("nan", "the 1 2\ncat 3 nan\n");
    folder.write("wrong", "the 1 2\ncat 3 4\nsat 5\n");
    folder.write("twice", "the 1 2\ncat 3 4\nthe 5 6\n");
    folder.write("empty", "");
    let ran = import(&folder, "good --from word2vec");
    ran.assert_refused("the first line must have the number of words");
    assert!(ran.stderr.contains("hint: `--from glove`"), "{}", ran.stderr);
    let ran = import(&folder, "header --from glove");
    ran.assert_refused("line 2: 1 numbers expected after the word, found 2");
    assert!(ran.stderr.contains("use `--from word2vec`"), "{}", ran.stderr);
    import(&folder, "nan --from glove").assert_refused("line 2: value 2 of the word `cat` is NaN");
    import(&folder, "wrong --from glove").assert_refused("line 3: 2 numbers expected");
    import(&folder, "twice --from glove")
        .assert_refused("line 3: duplicate word `the`, first in line 1");
    import(&folder, "empty --from glove").assert_refused("the file has no vectors");
    import(&folder, "missing --from glove").assert_refused("cannot read `missing`");
    import(&folder, "good --from npy").assert_refused("does not contain words");
    import(&folder, "good --from npy --words good").assert_refused("it is not a `.npy` file");
    import(&folder, "good --from glove --words good")
        .assert_refused("`--words` requires the format `npy`");
}

#[test]
fn models_without_vectors_are_rejected() {
    let folder = trained();
    folder.json("train ngram valid.txt --order 2 -o m.ngram");
    folder.run("nearest m.ngram water").assert_refused("which has no word vectors");
    folder.run("export m.ngram --to glove -o v").assert_refused("which has no word vectors");
    folder
        .run("export m.word2vec --to arpa -o v")
        .assert_refused("which this format cannot represent");
    folder.run("export m.word2vec --to npy -o v").assert_refused("does not contain words");
    for words in ["v", "./v", "new/../v"] {
        fs::create_dir_all(folder.path().join("new")).unwrap();
        folder
            .run(&format!("export m.word2vec --to npy --words {words} -o v"))
            .assert_refused("would be written twice");
    }
    folder.run("nearest m.word2vec zyzzyva").assert_refused("no vector for the word `zyzzyva`");
    folder.run("perplexity m.word2vec valid.txt").assert_refused("not a language model");
    assert!(!folder.path().join("v").exists());
}

#[test]
fn impossible_trainings_are_rejected() {
    let folder = Folder::new();
    folder.write("text", "a b c\nb c a\n");
    folder.write("words", "a\nb\nc\n");
    folder.write("same", "a a a\na a\n");
    let train = |args: &str| folder.run(&format!("train word2vec {args} -o model"));
    train("words").assert_refused("a sentence of at least 2 words, has 1");
    train("same").assert_refused("at least 2 distinct words, has 1");
    train("text --dim 0").assert_refused("`dim` must be at least 1");
    train("text --window 0").assert_refused("`window` must be at least 1");
    train("text --learning-rate 0").assert_refused("`learning_rate` must be above 0");
    train("text --learning-rate 1e38 --subsample 0").assert_refused("the loss diverged");
    train("text --valid text").assert_refused("does not support `--valid`");
    train("text --resume").assert_refused("the checkpoint `model.checkpoint` does not exist");
    assert_eq!(folder.names(), ["same", "text", "words"]);
}
