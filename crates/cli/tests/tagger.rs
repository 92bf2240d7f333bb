//! `latens tag train` and `latens tag compare` with the real program, on the tagged part of the embedded corpus.

mod common;

use common::Folder;
use latens::corpus::embedded::{self, Split};
use std::fs;

fn with_tagged_corpus() -> Folder {
    let folder = Folder::new();
    for split in Split::ALL {
        folder.write(&format!("{}.conll", split.name()), embedded::tagged(split));
    }
    folder
}

/// Learns in a second.
const QUICK: &str = "--n-iterations 12";

#[test]
fn part_of_speech_taggers_are_trained_and_compared() {
    let folder = with_tagged_corpus();
    let trained = folder
        .json(&format!("tag train train.conll --column 2 --dev valid.conll {QUICK} -o a.tagger"));
    assert_eq!(trained["model"], "tagger");
    assert!(trained["metrics"]["dev_accuracy"].as_f64().unwrap() > 0.75, "{trained}");
    let inspected = folder.json("inspect a.tagger");
    assert_eq!(
        (&inspected["model"], &inspected["training"]["tag_column"]),
        (&"tagger".into(), &2.into())
    );

    let scores = folder.json("tag eval a.tagger test.conll");
    let accuracy = scores["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.75, "{scores}");
    assert!(scores["oov_accuracy"].as_f64().unwrap() > 0.4, "{scores}");

    // One that learned nearly nothing is worse, and that is no luck.
    folder.json("tag train train.conll --column 2 --n-iterations 1 -o b.tagger");
    let compared = folder.json("tag compare a.tagger b.tagger test.conll");
    assert_eq!(compared["first_accuracy"].as_f64(), Some(accuracy));
    assert_eq!(compared["significant"], true);
    assert!(compared["p_value"].as_f64().unwrap() < 1e-6, "{compared}");
    let same = folder.run("tag compare a.tagger a.tagger test.conll");
    assert_eq!(same.code, Some(1), "{}", same.stderr);
    assert!(same.stdout.contains("p = 1.00"), "{}", same.stdout);

    // Two that learned different columns are compared on one that is named, whichever comes first.
    folder.json("tag train train.conll --column 3 --n-iterations 1 -o c.tagger");
    let other = folder.run("tag compare a.tagger c.tagger test.conll");
    other.assert_refused("`a.tagger` was trained on column 2, `c.tagger` on column 3");
    assert!(other.stderr.contains("hint: name the column"), "{}", other.stderr);
    let named = folder.json("tag compare c.tagger a.tagger test.conll --column 2");
    assert_eq!(named["second_accuracy"].as_f64(), Some(accuracy));

    // Plain text is tagged, too.
    folder.write("plain.txt", "the moon rises\n");
    let tagged = folder.run("tag run a.tagger plain.txt");
    assert_eq!(tagged.stdout.lines().count(), 4, "{}", tagged.stdout);
}

#[test]
fn taggers_of_names_contain_their_encoders() {
    let folder = with_tagged_corpus();
    folder.json("train brown train.conll --n-clusters 12 -o w.brown");
    folder.json("train hmm train.conll --min-count 2 --n-states 16 --n-clusters 4 --dim 8 --epochs 1 -o w.hmm");
    let train = format!(
        "tag train train.conll --column 3 --pos-column 2 --spans bioes --encoder w.brown --encoder w.hmm:posterior {QUICK}"
    );
    let trained = folder.run(&format!("{train} -o n.tagger"));
    assert_eq!(trained.code, Some(0), "{}", trained.stderr);
    assert!(trained.stderr.contains("`w.brown` knows 100.0 % of the words"), "{}", trained.stderr);
    let scores = folder.json("tag eval n.tagger test.conll");
    assert!(scores["f1"].as_f64().unwrap() > 0.3, "{scores}");
    // The encoders are in the file: theirs are not needed any more.
    fs::remove_file(folder.path().join("w.brown")).unwrap();
    fs::remove_file(folder.path().join("w.hmm")).unwrap();
    assert_eq!(folder.json("tag eval n.tagger test.conll"), scores);
    let encoders = &folder.json("inspect n.tagger")["training"]["encoders"];
    assert_eq!(
        (&encoders[0]["name"], &encoders[1]["features"]),
        (&"w.brown".into(), &"posterior".into())
    );
    // Tags are written as IOB2, whatever the tagger uses for itself.
    let tagged = folder.run("tag run n.tagger test.conll").stdout;
    let tags = tagged.lines().filter_map(|line| line.rsplit_once('\t')).map(|(_, tag)| tag);
    assert!(tags.clone().all(|tag| tag == "O" || tag.starts_with("B-") || tag.starts_with("I-")));

    folder.write("plain.txt", "the moon rises\n");
    folder.run("tag run n.tagger plain.txt").assert_refused("parts of speech in column 2");
    folder.write("strange.conll", "moon NOUN B-Planet\n");
    let strange = folder.run("tag eval n.tagger strange.conll");
    assert!(
        strange.code == Some(0) && strange.stderr.contains("never saw the tag `B-Planet`"),
        "{}",
        strange.stderr
    );
}

#[test]
fn every_flag_has_an_effect() {
    let folder = with_tagged_corpus();
    folder.json("train brown train.conll --n-clusters 12 -o w.brown");
    for (flags, name, value) in [
        ("--optimizer perceptron --epochs 2", "optimizer", "\"perceptron\""),
        ("--kind local --n-hidden 0 --direct-words the,and", "direct_words", "[\"the\",\"and\"]"),
        ("--kind local --encoder w.brown", "n_hidden", "25"),
        ("--no-lexical --encoder w.brown --window 1", "window", "1"),
        ("--encoder w.brown:paths --scale 0.2", "scale", "0.2"),
        ("--l1 0.5 --l2 0.01", "l1", "0.5"),
        ("--pairs all", "pairs", "\"all\""),
        ("--min-count 3", "min_count", "3"),
        ("--n-iterations 3 --tokenize words", "n_iterations", "3"),
    ] {
        let iterations = if flags.contains("--n-iterations") { "" } else { "--n-iterations 4" };
        folder.json(&format!("tag train train.conll --column 2 {iterations} {flags} -o f.tagger"));
        let parameters = &folder.json("inspect f.tagger")["parameters"];
        assert_eq!(parameters[name].to_string(), value, "{flags}");
        assert!(
            folder.json("tag eval f.tagger test.conll")["accuracy"].as_f64().unwrap() > 0.1,
            "{flags}"
        );
    }
}

#[test]
fn unusable_training_data_is_rejected() {
    let folder = with_tagged_corpus();
    folder.write("empty.conll", "\n\n");
    folder.write("one.txt", "words\nalone\n");
    folder.json("train ngram train.conll -o w.ngram");
    folder.json("train brown train.conll --n-clusters 4 -o w.brown");
    folder.json("tag train train.conll --column 2 --n-iterations 2 -o t.tagger");
    for (args, message) in [
        ("tag train train.conll --column 9 -o x", "no column 9"),
        ("tag train train.conll --column 2 --pos-column 7 -o x", "no column 7"),
        (
            "tag train train.conll --column 2 --pos-column 2 -o x",
            "different from the column of the tags",
        ),
        ("tag train train.conll --column 0 -o x", "--column"),
        ("tag train empty.conll --column 2 -o x", "no words"),
        ("tag train train.conll --column 1 -o x", "the column of the words"),
        ("tag train train.conll --column 2 --no-lexical -o x", "needs an encoder"),
        ("tag train train.conll --column 2 --kind local -o x", "needs an encoder"),
        ("tag train train.conll --column 2 --encoder w.ngram -o x", "has no token features"),
        ("tag train train.conll --column 2 --encoder w.brown:bits -o x", "no features `bits`"),
        ("tag train train.conll --column 2 --encoder absent.brown -o x", "absent.brown"),
        ("tag train train.conll --column 2 --encoder train.conll -o x", "is not a latens model"),
        ("tag train train.conll --column 2 --l2=-1 -o x", "`l2` must be at least 0"),
        ("tag train train.conll --column 2 --optimizer perceptron --l1 1 -o x", "`l1` must be 0"),
        (
            "tag train train.conll --column 2 --optimizer perceptron --l2 0.5 -o x",
            "a perceptron does not use `--l2`",
        ),
        ("tag train train.conll --column 2 --direct-words the -o x", "add `--kind local`"),
        ("tag train train.conll --column 2 --log ./x -o x", "would be written twice"),
        ("tag train train.conll --column 2 -o train.conll", "both input and output"),
        ("tag train train.conll --column 2 --resume -o x", "does not exist"),
        ("tag train train.conll --column 2 --dev one.txt -o x", "no column 2"),
        ("tag eval t.tagger test.conll --column 9", "no column 9"),
        ("tag compare t.tagger w.brown test.conll", "trained without tags"),
        ("encode t.tagger test.conll", "has no features"),
        ("perplexity t.tagger test.conll", "not a language model"),
    ] {
        let ran = folder.run(args);
        ran.assert_refused("error");
        let said = ran.stderr.to_lowercase();
        assert!(said.contains(&message.to_lowercase()), "{args}: {}", ran.stderr);
        assert!(!folder.path().join("x").exists(), "{args}");
    }
}

#[test]
fn a_sentence_of_ten_thousand_words_is_learned_and_tagged() {
    let folder = with_tagged_corpus();
    let long: String = embedded::tagged(Split::Train)
        .lines()
        .filter(|l| !l.is_empty())
        .map(|l| format!("{l}\n"))
        .collect();
    let long = long.repeat(3);
    let n_words = long.lines().count();
    assert!(n_words > 10_000, "{n_words}");
    folder.write("long.conll", long);
    folder.json("tag train long.conll --column 2 --n-iterations 3 -o l.tagger");
    assert_eq!(folder.json("tag eval l.tagger long.conll")["tokens"], n_words);
}
