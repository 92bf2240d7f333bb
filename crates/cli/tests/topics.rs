//! `train glda`, `train lda` and `topics`, as users run them.

mod common;

use common::Folder;
use latens::corpus::embedded;
use std::fmt::Write;

const READ: &str = "--format docs --fields label,split,text --tokenize words --lowercase";

/// The embedded documents as `docs.tsv`, with vectors of some words as `vectors.txt`: words of one letter of the
/// alphabet are near each other.
fn folder() -> Folder {
    let folder = Folder::new();
    let docs = embedded::docs();
    folder.write("docs.tsv", &docs);
    let text = docs.to_lowercase();
    let mut words: Vec<&str> = text
        .split(|c: char| !c.is_ascii_lowercase())
        .filter(|word| word.len() > 2 && *word != "the")
        .collect();
    words.sort_unstable();
    words.dedup();
    let mut vectors = String::new();
    for (i, word) in words.iter().enumerate() {
        let first = f64::from(word.as_bytes()[0] - b'a');
        let jitter = |k: usize| ((i * k % 17) as f64 - 8.0) / 20.0;
        writeln!(vectors, "{word} {:.3} {:.3} {:.3}", first + jitter(3), jitter(5), jitter(7))
            .unwrap();
    }
    folder.write("vectors.txt", vectors);
    folder
}

#[test]
fn gaussian_topics_are_trained_and_used_by_every_command() {
    let folder = folder();
    let result = folder.json(&format!(
        "train glda docs.tsv {READ} --vectors vectors.txt --n-topics 6 --n-iterations 5 -o m.glda --log log.jsonl"
    ));
    assert_eq!(result["model"], "glda");
    let metrics = &result["metrics"];
    assert!(metrics["tokens_per_second"].as_f64().unwrap() > 0.0);
    assert!(metrics["log_likelihood"].is_number());
    assert!((0.3..1.0).contains(&metrics["coverage"].as_f64().unwrap()));
    let log = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 5);
    assert!(
        log.lines()
            .all(|line| line.contains("tokens_per_second") && line.contains("log_likelihood"))
    );

    let shown = folder.json("topics show m.glda --n-words 4 --by density");
    assert_eq!(shown["topics"].as_array().unwrap().len(), 6);
    assert_eq!(shown["topics"][0]["words"].as_array().unwrap().len(), 4);

    folder.write("new.txt", "qqq sail zzzsail\nzzz\n\n");
    folder.write("more.txt", "zzzsail 18.0 0.1 0.1\n");
    let found = folder.json("topics infer m.glda new.txt");
    assert_eq!(found["mixtures"].as_array().unwrap().len(), 3);
    assert_eq!(found["mixtures"][0]["skipped"], 2);
    for topics in ["fixed", "online", "cumulative"] {
        let command =
            format!("topics infer m.glda new.txt --vectors more.txt --topics {topics} --batch 2");
        let found = folder.json(&command);
        assert_eq!(found["mixtures"][0]["skipped"], 1);
        assert_eq!(found["mixtures"][0]["mixture"].as_array().unwrap().len(), 6);
    }

    let reading = "--reference docs.tsv --format docs --fields label,split,text";
    let result = folder.json(&format!("topics eval m.glda {reading}"));
    assert!((-1.0..=1.0).contains(&result["npmi"].as_f64().unwrap()));
    assert_eq!(result["documents"], 300);

    folder.json("topics map m.glda -o map.svg");
    folder.json("topics map m.glda --topics 1,2 -o map.html");
    let svg = std::fs::read_to_string(folder.path().join("map.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.matches("<text").count() > 50);
}

/// Counts of one reference are put in the place of another's, so that it shows whether they are used.
#[test]
fn counts_of_a_reference_are_used_again_for_that_reference_alone() {
    let folder = folder();
    let train = "--n-topics 5 --n-iterations 5 --min-count 3 -o m.lda";
    folder.json(&format!("train lda docs.tsv {READ} {train}"));
    let docs = embedded::docs();
    let half: String = docs.lines().take(150).map(|line| format!("{line}\n")).collect();
    folder.write("half.tsv", &half);
    let eval = |reference: &str, more: &str| {
        let reading = "--format docs --fields label,split,text";
        folder.json(&format!("topics eval m.lda --reference {reference} {reading} {more}"))
    };
    let names = |cache: &str| -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(folder.path().join(cache)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let (of_docs, of_half) = (eval("docs.tsv", ""), eval("half.tsv", ""));
    assert_ne!(of_docs["npmi"], of_half["npmi"]);
    assert_eq!(eval("docs.tsv", "--cache kept"), of_docs);
    let kept = names("kept").remove(0);
    // Another reference, or other words: not these counts.
    assert_eq!(eval("half.tsv", "--cache kept"), of_half);
    assert_eq!(eval("docs.tsv", "--cache kept --n-words 4"), eval("docs.tsv", "--n-words 4"));
    assert_eq!(names("kept").len(), 3);
    // The same reference: its counts are not made again, which shows when they are others.
    eval("half.tsv", "--cache other");
    std::fs::copy(names("other").remove(0), &kept).unwrap();
    assert_eq!(eval("docs.tsv", "--cache kept"), of_half);
    // Counts that cannot be read are made again.
    std::fs::write(&kept, "no counts").unwrap();
    assert_eq!(eval("docs.tsv", "--cache kept"), of_docs);
    // A reference that has changed since: not the counts of what it was.
    folder.write("docs.tsv", &half);
    assert_eq!(eval("docs.tsv", "--cache kept"), of_half);
}

#[test]
fn multinomial_topics_are_trained_and_used() {
    let folder = folder();
    let result = folder.json(&format!(
        "train lda docs.tsv {READ} --n-topics 10 --n-iterations 60 --min-count 3 --sampler sparse -o m.lda"
    ));
    assert_eq!(result["metrics"]["sampler"], "sparse");
    assert_eq!(result["model"], "lda");
    assert!(result["metrics"]["tokens_per_second"].as_f64().unwrap() > 0.0);
    let found = folder.json("topics infer m.lda docs.tsv --format docs --fields label,split,text");
    // Documents of one subject have more in common than those of two.
    let documents = found["mixtures"].as_array().unwrap();
    let mixture = |d: usize| -> Vec<f64> {
        documents[d]["mixture"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    };
    let alike = |a: usize, b: usize| -> f64 {
        mixture(a).iter().zip(mixture(b)).map(|(a, b)| a.min(b)).sum()
    };
    let (mut same, mut other) = (0.0, 0.0);
    for i in 0..100 {
        same += alike(3 * i, 3 * i / 30 * 30 + (3 * i + 7) % 30);
        other += alike(3 * i, (3 * i + 67) % 300);
    }
    assert!(same > 1.2 * other, "{same} {other}");
    folder.json("topics map m.lda -o map.svg");
    let svg = std::fs::read_to_string(folder.path().join("map.svg")).unwrap();
    assert_eq!(svg.matches("<circle").count(), 10);
}

#[test]
fn invalid_input_is_an_error_and_nothing_is_written() {
    let folder = folder();
    folder.write("nan.txt", "sail 1.0 nan 2.0\n");
    folder.write("twice.txt", "sail 1.0 2.0 2.0\nsail 1.0 2.0 3.0\n");
    folder.write("short.txt", "sail 1.0 2.0 2.0\nship 1.0 2.0\n");
    folder.write("other.txt", "qqqq 1.0 2.0 2.0\n");
    folder.write("two.txt", "sail 1.0 2.0 2.0\nship 1.0 2.5 2.0\n");
    let train = |args: &str| folder.run(&format!("train glda docs.tsv {READ} -o m.glda {args}"));
    for (args, message) in [
        ("--vectors nan.txt", "must be finite"),
        ("--vectors twice.txt", "duplicate word"),
        ("--vectors short.txt", "numbers expected"),
        ("--vectors absent.txt", "cannot read"),
        ("--vectors other.txt", "a word that has a vector"),
        ("--vectors vectors.txt --nu 2", "`nu` must be above 2, the number of dimensions minus 1"),
        (
            "--vectors vectors.txt --n-topics 60000",
            "`n_topics` must be at most the number of tokens",
        ),
        ("--vectors vectors.txt --valid docs.tsv", "omit `--valid`"),
        ("--vectors docs.tsv", "cannot read the vectors"),
    ] {
        let ran = train(args);
        assert_eq!(ran.code, Some(2), "{args}");
        assert!(ran.stderr.contains(message), "{args}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"));
    }
    assert!(!folder.names().iter().any(|name| name.starts_with("m.glda")));
    // Little is covered: that is told, with the figure.
    let ran = train("--vectors two.txt --n-topics 2 --n-iterations 2");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: the vectors cover only"), "{}", ran.stderr);
    let ran = folder.run("topics show docs.tsv");
    assert_eq!(ran.code, Some(2));
    let ran = folder.run("topics infer m.glda docs.tsv --vectors absent.txt");
    assert_eq!(ran.code, Some(2));
}

#[test]
fn documents_without_known_words_get_the_prior() {
    let folder = Folder::new();
    folder.write("docs.txt", "\nzzz zzz\nsail ship sail\nship\n");
    folder.write("vectors.txt", "sail 1.0 2.0\nship 1.5 2.5\n");
    let train = "train glda docs.txt --vectors vectors.txt --n-topics 3 --n-iterations 3 -o m.glda";
    let result = folder.json(train);
    assert_eq!(result["metrics"]["documents_without_known_words"], 2);
    let found = folder.json("topics infer m.glda docs.txt");
    let third = found["mixtures"][1]["mixture"][0].as_f64().unwrap();
    assert!((third - 1.0 / 3.0).abs() < 1e-6);
}
