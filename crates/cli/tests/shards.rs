//! Learning from shards with the real program, which is all that a scheduler needs.

mod common;

use common::Folder;
use serde_json::Value;
use std::fs;

const N: usize = 3;

/// A folder with the parts `1.txt`, `2.txt` and `3.txt`, and all of them in `all.txt`.
fn folder() -> Folder {
    let folder = Folder::with_embedded_corpus();
    let text = fs::read_to_string(folder.path().join("train.txt")).unwrap();
    let lines: Vec<&str> = text.lines().take(240).collect();
    for (i, part) in lines.chunks(80).enumerate() {
        folder.write(&format!("{}.txt", i + 1), part.join("\n") + "\n");
    }
    folder
}

/// Runs rounds until the result is there: `round.0`, `round.1`, … and then `model`.
fn rounds(folder: &Folder, carries: bool) -> Value {
    rounds_of(folder, carries, "")
}

/// [`rounds`] with flags for reading.
fn rounds_of(folder: &Folder, carries: bool, reading: &str) -> Value {
    for round in 0.. {
        let mut statistics = Vec::new();
        for shard in 1..=N {
            let out = format!("{round}.{shard}");
            let last = if carries && round > 0 {
                format!("--previous {}.{shard}", round - 1)
            } else {
                String::new()
            };
            let args = format!(
                "shard stats round.{round} {shard}.txt {reading} --shard {shard} {last} -o {out}"
            );
            assert_eq!(folder.json(&args)["shard"], shard);
            statistics.insert(0, out);
        }
        // The last two, then all.
        folder.json(&format!("shard merge {} {} -o some", statistics[0], statistics[1]));
        let next = format!("round.{}", round + 1);
        let updated =
            folder.json(&format!("shard update round.{round} {} some -o {next}", statistics[2]));
        if updated["done"] == true {
            fs::rename(folder.path().join(next), folder.path().join("model")).unwrap();
            return updated;
        }
    }
    unreachable!("a run ends")
}

fn learn_vocab(folder: &Folder) {
    folder.json(&format!("shard begin vocab --shards {N} --min-count 2 -o round.0"));
    rounds(folder, false);
    fs::rename(folder.path().join("model"), folder.path().join("words")).unwrap();
}

fn begin(folder: &Folder, args: &str) {
    folder.json(&format!("shard begin {args} --vocab words --shards {N} -o round.0"));
}

#[test]
fn a_vocabulary_of_shards_is_the_file_that_the_whole_text_gives() {
    let folder = folder();
    learn_vocab(&folder);
    folder.json("vocab 1.txt 2.txt 3.txt --min-count 2 -o expected");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("words"), read("expected"));
}

#[test]
fn models_of_shards_score_text_like_those_of_the_whole_text() {
    let folder = folder();
    learn_vocab(&folder);
    let text = "1.txt 2.txt 3.txt --vocab words";
    let perplexity = || folder.json("perplexity model test.txt")["perplexity"].as_f64().unwrap();

    begin(&folder, "ngram --set order=3");
    rounds(&folder, false);
    let found = perplexity();
    folder.json(&format!("train ngram {text} --order 3 -o model"));
    assert_eq!(found, perplexity());

    let params = "--set n_states=8 --set n_clusters=4 --set parameterization=scalar --set epochs=3";
    begin(&folder, &format!("hmm {params}"));
    let done = rounds(&folder, false);
    assert_eq!((&done["round"], &done["rounds"]), (&4.into(), &4.into()));
    let found = perplexity();
    let params = "--n-states 8 --n-clusters 4 --parameterization scalar --epochs 3";
    folder.json(&format!("train hmm {text} {params} -o model"));
    assert!((found / perplexity() - 1.0).abs() < 1e-6, "{found} {}", perplexity());

    begin(&folder, "lda --set n_topics=4 --set n_iterations=3");
    rounds(&folder, true);
    assert_eq!(folder.json("inspect model")["model"], "lda");
}

#[test]
fn bad_input_is_one_clear_error() {
    let folder = folder();
    learn_vocab(&folder);
    folder.json("vocab train.txt -o other");
    let hmm = "hmm --set n_states=4 --set constraint=none --set parameterization=scalar";
    begin(&folder, hmm);
    folder.json(&format!("shard begin {hmm} --vocab other --shards {N} -o foreign"));
    folder.json("shard stats round.0 1.txt --shard 1 -o s1");
    folder.json("shard stats round.0 2.txt --shard 2 -o s2");
    folder.json("shard stats foreign 3.txt --shard 3 -o s3");

    let merged = folder.run("shard merge s1 s2 s3 -o s");
    merged.assert_refused("shard 3 of 3: computed with another vocabulary");
    assert!(merged.stderr.contains("cannot merge `s3`"), "{}", merged.stderr);
    folder
        .run("shard merge s1 s1 -o s")
        .assert_refused("shard 1 of 3: its statistics were given twice");
    let update = folder.run("shard update round.0 s1 s2 -o s");
    update.assert_refused("statistics of shard 3 of 3 are missing");
    folder.run("shard update foreign s1 -o s").assert_refused("another vocabulary");

    folder.json("shard stats round.0 3.txt --shard 3 -o s3");
    folder.json("shard update round.0 s1 s2 s3 -o round.1");
    let old = folder.run("shard update round.1 s1 s2 s3 -o s");
    old.assert_refused("computed in round 0, not in round 1");
    begin(&folder, &format!("{hmm} --seed 2"));
    let other = folder.run("shard update round.0 s1 s2 s3 -o s");
    other.assert_refused("computed from another broadcast");

    let missing = folder.run("shard stats round.1 none.txt --shard 2 -o s");
    missing.assert_refused("shard 2 of 3: cannot read its text");
    folder.write("empty.txt", "");
    folder
        .run("shard stats round.1 empty.txt --shard 2 -o s")
        .assert_refused("`empty.txt` is empty");
    let changed = folder.run("shard stats round.1 valid.txt --shard 2 -o s");
    changed.assert_refused("shard 2 of 3: cannot compute its statistics");
    folder.run("shard stats round.1 1.txt --shard 4 -o s").assert_refused("there is no shard 4");
    folder.run("shard stats round.1 1.txt --shard 0 -o s").assert_refused("counted from 1");
    folder.run("shard stats s1 1.txt --shard 1 -o s").assert_refused("not a file of kind");
    begin(&folder, "lda --set n_topics=2 --set n_iterations=1");
    for round in 0..2 {
        for shard in 1..=N {
            folder.json(&format!(
                "shard stats round.{round} {shard}.txt --shard {shard} -o l{shard}"
            ));
        }
        folder.json(&format!("shard update round.{round} l1 l2 l3 -o round.{}", round + 1));
    }
    folder
        .run("shard stats round.2 1.txt --shard 1 -o s")
        .assert_refused("of the last round are needed");
    folder
        .run("shard stats round.2 1.txt --shard 1 --previous l2 -o s")
        .assert_refused("those of shard 2");
    folder.run("shard begin hmm --shards 3 -o s").assert_refused("needs the vocabulary");
    let unknown = folder.run("shard begin hmm --vocab words --shards 3 --set states=4 -o s");
    unknown.assert_refused("unknown field `states`");
    assert!(!folder.path().join("s").exists());
}

#[test]
fn a_tagger_of_shards_tags_like_that_of_the_whole_text() {
    let folder = folder();
    // The columns of the embedded text: a sentence is followed by an empty line.
    let text = latens::corpus::embedded::tagged(latens::corpus::embedded::Split::Train);
    let sentences: Vec<&str> = text.split("\n\n").take(90).collect();
    for (i, part) in sentences.chunks(30).enumerate() {
        folder.write(&format!("{}.txt", i + 1), part.join("\n\n") + "\n\n");
    }
    folder.write("all.txt", sentences.join("\n\n") + "\n\n");
    let begin = format!("shard begin tagger --shards {N} --set n_iterations=5 -o round.0");
    folder.run(&begin).assert_refused("a tagger needs the column of its tags");
    folder
        .run(&format!("{begin} --column 2 --min-count 2"))
        .assert_refused("a tagger does not use `--min-count` and `--max-vocab`");
    folder
        .run(&format!("{begin} --column 2 --vocab words"))
        .assert_refused("does not use `--vocab`");
    folder
        .run(&format!("shard begin vocab --shards {N} --column 2 -o round.0"))
        .assert_refused("do not use `--column`");
    folder.json(&format!("{begin} --column 2"));
    rounds_of(&folder, false, "--format conll");
    fs::rename(folder.path().join("model"), folder.path().join("shards.tagger")).unwrap();
    folder.json("tag train all.txt --format conll --column 2 --n-iterations 5 -o whole.tagger");
    let loss =
        |name: &str| folder.json(&format!("inspect {name}"))["training"]["loss"].as_f64().unwrap();
    assert!((loss("shards.tagger") / loss("whole.tagger") - 1.0).abs() < 1e-5);
    let accuracy = |name: &str| {
        folder.json(&format!("tag eval {name} all.txt --format conll --column 2"))["accuracy"]
            .clone()
    };
    assert_eq!(accuracy("shards.tagger"), accuracy("whole.tagger"));
}
