//! Topics as people use them: documents in tables and folders, stop words, mixtures, names, trends and numbers of topics.

mod common;

use common::Folder;
use latens::corpus::embedded;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// The embedded documents as a folder of files, `docs/SUBJECT/N.txt`, and as `docs.csv` with the columns `key`, `subject`,
/// `year` and `body`, whose texts have quotes and line breaks.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut csv = String::from("key,subject,year,body\n");
    for (idx, document) in embedded::documents().iter().enumerate() {
        let subject = folder.path().join("docs").join(document.subject);
        fs::create_dir_all(&subject).unwrap();
        fs::write(subject.join(format!("{idx:03}.txt")), document.sentences.join("\n")).unwrap();
        let body = document.sentences.join("\n").replace('"', "\"\"");
        let year = 1990 + idx / 30;
        csv += &format!("d{idx},{},{year}-03-01,\"{body}\"\n", document.subject);
    }
    folder.write("docs.csv", csv);
    folder
}

const COLUMNS: &str = "--text-column body --id-column key --label-column subject";
const FEW: &str = "--n-topics 10 --n-iterations 60 --min-df 2";

fn words(topics: &Value) -> BTreeSet<String> {
    let topics = topics["topics"].as_array().unwrap().iter();
    let words = topics.flat_map(|topic| topic["words"].as_array().unwrap());
    words.map(|word| word["word"].as_str().unwrap().to_owned()).collect()
}

fn lines(folder: &Folder, name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(folder.path().join(name)).unwrap();
    text.lines().map(|line| line.split(['\t', ',']).map(str::to_owned).collect()).collect()
}

#[test]
fn a_folder_and_a_table_give_the_same_topics_without_stop_words() {
    let folder = folder();
    folder.json(&format!("train lda docs {FEW} -o folder.lda"));
    folder.json(&format!("train lda docs.csv {COLUMNS} {FEW} -o table.lda"));
    let of_folder = folder.json("topics show folder.lda");
    assert_eq!(of_folder, folder.json("topics show table.lda"));
    let found = words(&of_folder);
    for word in ["the", "and", "of", "to", ",", ".", "would"] {
        assert!(!found.contains(word), "{word}");
    }
    assert!(found.iter().all(|word| word.chars().any(char::is_alphabetic)), "{found:?}");
    // Prevalences and weights are shares.
    let topics = of_folder["topics"].as_array().unwrap();
    let sum: f64 = topics.iter().map(|topic| topic["prevalence"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    let weights: Vec<f64> = topics[0]["words"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word["weight"].as_f64().unwrap())
        .collect();
    assert!(weights.is_sorted_by(|a, b| a >= b) && weights[0] < 1.0 && weights[14] > 0.0);
    // The bare text has stop words.
    folder.json("train lda docs --keep-all --n-topics 5 --n-iterations 5 -o bare.lda");
    assert!(words(&folder.json("topics show bare.lda")).contains("the"));
}

#[test]
fn new_documents_are_cleaned_like_the_training_documents() {
    let folder = folder();
    for idx in 0..12 {
        folder.write(&format!("docs/{idx}.txt"), "In New York it rained, and 17 of them left.");
    }
    let train = "--phrases 30 --max-df 0.5 --n-topics 5 --n-iterations 10";
    folder.json(&format!("train lda docs {train} -o m.lda"));
    let inspected = folder.json("inspect m.lda");
    let phrases = inspected["cleaning"]["phrases"].as_array().unwrap().clone();
    assert!(!phrases.is_empty() && phrases.len() <= 30);
    let pair = |idx: usize| phrases[0][idx].as_str().unwrap();
    folder.write("new.txt", format!("The {} {} , and 17 of them .\nzzz\n", pair(0), pair(1)));
    let found = folder.json("topics infer m.lda new.txt");
    // One phrase is known, and nothing else is left.
    assert_eq!(found["mixtures"][0]["skipped"], 0);
    assert_eq!(found["mixtures"][1]["skipped"], 1);
    folder.write("one.txt", format!("{}_{}\n", pair(0), pair(1)));
    let again = folder.json("topics infer m.lda one.txt");
    assert_eq!(again["mixtures"][0]["mixture"], found["mixtures"][0]["mixture"]);
    // The cache has the same documents.
    folder.json(&format!("train lda docs {train} -o cached.lda --cache kept"));
    folder.json(&format!("train lda docs {train} -o again.lda --cache kept"));
    let bytes = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(bytes("m.lda") == bytes("cached.lda") && bytes("m.lda") == bytes("again.lda"));
}

#[test]
fn stop_words_come_from_a_language_or_a_file() {
    let folder = folder();
    folder.write("own.txt", "moon\nBall goal\n");
    let shown = |list: &str| {
        let few = "--n-topics 2 --n-iterations 3";
        folder.json(&format!("train lda docs {few} --stop-words {list} -o m.lda"));
        words(&folder.json("topics show m.lda --n-words 5000"))
    };
    let own = shown("own.txt");
    assert!(own.contains("the") && !own.contains("ball") && !own.contains("."));
    assert!(shown("none").contains("ball"));
    let german = shown("german");
    assert!(german.contains("the") && !german.contains("die") && !german.contains("was"));
    folder.run("train lda docs --stop-words klingon -o m.lda").assert_refused("neither a language");
    let ran = folder.run("train lda docs --min-df 1000 -o none.lda");
    ran.assert_refused("a word of the vocabulary");
    let ran = folder.run("train lda docs --max-df 0.0 -o none.lda");
    ran.assert_refused("are left after cleaning");
    folder.run("train lda docs --keep-all --min-df 2 -o m.lda").assert_refused("--keep-all");
}

#[test]
fn columns_decide_and_a_third_one_is_never_taken_as_text() {
    let folder = folder();
    let ran = folder.run("train lda docs.csv --n-topics 2 -o m.lda");
    ran.assert_refused("no column `text`; its columns are `key`, `subject`, `year`, `body`");
    assert!(ran.stderr.contains("--text-column"), "{}", ran.stderr);
    folder.write("three.tsv", "sport\ttrain\tball goal\nfood\ttest\tpan pot\n");
    let ran = folder.run("train lda three.tsv --n-topics 2 -o m.lda");
    ran.assert_refused("`sport<TAB>train<TAB>ball goal`");
    assert!(ran.stderr.contains("--fields label,split,text"), "{}", ran.stderr);
    let few = "--n-topics 2 --n-iterations 2 -o m.lda";
    folder.json(&format!("train lda three.tsv --fields label,split,text {few}"));
    folder
        .write("header.tsv", "label\tsplit\ttext\nsport\ttrain\tball goal\nfood\ttest\tpan pot\n");
    let result = folder.json(&format!("train lda header.tsv {few}"));
    assert_eq!(result["tokens"], 4);
    folder.write("any.jsonl", "{\"body\": \"ball goal\", \"n\": 1}\n{\"body\": \"pan\"}\n");
    let result = folder.json(&format!("train lda any.jsonl --text-column body {few}"));
    assert_eq!(result["tokens"], 3);
    folder.write("lines.txt", "ball goal\n");
    let ran = folder.run("train lda lines.txt --text-column body -o m.lda");
    ran.assert_refused("need a table with a header");
}

#[test]
fn mixtures_have_identifiers_a_header_and_the_best_documents() {
    let folder = folder();
    let train = format!("train lda docs.csv {COLUMNS} {FEW} -o m.lda --mixtures trained.csv");
    folder.json(&train);
    folder.json(&format!("topics infer m.lda docs.csv {COLUMNS} -o inferred.tsv"));
    let (trained, inferred) = (lines(&folder, "trained.csv"), lines(&folder, "inferred.tsv"));
    assert_eq!(trained, inferred);
    assert_eq!(trained.len(), 301);
    assert_eq!(trained[0][..4], ["id", "label", "unknown", "topic_0"]);
    assert_eq!(trained[0].last().unwrap(), "topic_9");
    assert_eq!(trained[31][..2], ["d30", "cooking"]);
    let share = |row: &Vec<String>, topic: usize| row[3 + topic].parse::<f64>().unwrap();
    assert!((0..10).map(|topic| share(&trained[1], topic)).sum::<f64>() > 0.999);

    let shown = folder.json("topics show m.lda --mixtures trained.csv --n-documents 2");
    for topic in shown["topics"].as_array().unwrap() {
        let number = topic["topic"].as_u64().unwrap() as usize;
        let best = trained[1..].iter().map(|row| share(row, number)).fold(0.0, f64::max);
        let documents = topic["documents"].as_array().unwrap();
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0]["share"].as_f64().unwrap(), best);
    }
    let text = folder.run("topics show m.lda --weights --mixtures trained.csv").stdout;
    assert_eq!(text.lines().count(), 10 * 4);
    assert!(text.lines().next().unwrap().contains(" %  "), "{text}");
    let ran = folder.run("topics show m.lda --mixtures docs.csv");
    ran.assert_refused("not a table of mixtures of 10 topics");

    let labels = folder.json("topics label m.lda docs");
    let names: Vec<&str> =
        labels["labels"].as_array().unwrap().iter().map(|l| l["label"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 10);
    assert!(names.iter().all(|name| name.split(", ").count() == 3), "{names:?}");
    let without_text = folder.run("topics label m.lda").stdout;
    assert_eq!(without_text.lines().count(), 10);
}

#[test]
fn trends_have_intervals_and_follow_the_subjects() {
    let folder = folder();
    folder.json(&format!("train lda docs {FEW} -o m.lda"));
    let by = "--text-column body --by year --bin year";
    let command = format!("topics trend m.lda docs.csv {by} -o trend.tsv --plot trend.svg");
    let found = folder.json(&command);
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 10 * 10);
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
    for row in rows {
        let (low, mean, high) =
            (number(row, "low"), number(row, "prevalence"), number(row, "high"));
        assert!(0.0 <= low && low <= mean && mean <= high && high <= 1.0, "{row}");
        assert_eq!(row["documents"], 30);
    }
    // Every year is a subject, so in most years one topic stands out.
    let best = |year: u64| {
        let year = year.to_string();
        let of_year = rows.iter().filter(|row| row["value"] == year.as_str());
        of_year.map(|row| number(row, "prevalence")).fold(0.0, f64::max)
    };
    assert!((1990..2000).filter(|&year| best(year) > 0.3).count() >= 7);
    let table = lines(&folder, "trend.tsv");
    assert_eq!(table[0], ["value", "topic", "prevalence", "low", "high", "documents"]);
    assert_eq!(table.len(), 101);
    let svg = fs::read_to_string(folder.path().join("trend.svg")).unwrap();
    let drawn = roxmltree::Document::parse(&svg).unwrap();
    assert!(drawn.descendants().filter(|node| node.has_tag_name("polyline")).count() > 90);
    // The label of a folder is the name of the subfolder.
    let found = folder.json("topics trend m.lda docs --by label --topics 0,3");
    assert_eq!(found["rows"].as_array().unwrap().len(), 2 * 10);
    assert_eq!(found["rows"][0]["value"], "astronomy");
    let ran = folder.run("topics trend m.lda docs.csv --text-column body --by key --bin year");
    ran.assert_refused("`d0` is not a date");
    let ran = folder.run("topics trend m.lda docs.csv --text-column body --by nothing");
    ran.assert_refused("no column `nothing`");
}

#[test]
fn labels_on_the_map_of_topics_do_not_overlap() {
    let folder = folder();
    folder.json(&format!("train lda docs {FEW} -o m.lda"));
    folder.json("topics map m.lda -o map.svg");
    folder.run("topics map m.lda -o map.png").assert_refused("cannot write a plot to `map.png`");
    assert!(!folder.path().join("map.png").exists());
    let svg = fs::read_to_string(folder.path().join("map.svg")).unwrap();
    let drawn = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<(f64, f64, f64)> = drawn
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .map(|node| {
            let number = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
            // The same estimate of the width as the plot's.
            let width = node.text().unwrap().chars().count() as f64 * 0.6 * number("font-size");
            (number("x"), number("y"), width)
        })
        .collect();
    assert_eq!(texts.len(), 10);
    for (i, a) in texts.iter().enumerate() {
        for b in &texts[..i] {
            let apart =
                a.0 + a.2 <= b.0 + 0.2 || b.0 + b.2 <= a.0 + 0.2 || (a.1 - b.1).abs() >= 12.0;
            assert!(apart, "{a:?} {b:?}");
        }
    }
}

#[test]
fn held_out_documents_and_numbers_of_topics_are_measured() {
    let folder = folder();
    let documents = embedded::documents();
    let text = |first: bool| -> String {
        let of_part = documents.iter().enumerate().filter(|(idx, _)| (idx % 5 != 0) == first);
        of_part.map(|(_, document)| document.sentences.join(" ") + "\n").collect()
    };
    folder.write("train.txt", text(true));
    folder.write("valid.txt", text(false));
    let perplexity = |k: usize| {
        let train = format!("--n-topics {k} --n-iterations 80 --min-df 3 --valid valid.txt");
        let result = folder.json(&format!("train lda train.txt {train} -o m.lda"));
        assert!(result["metrics"]["valid_tokens"].as_u64().unwrap() > 300);
        result["metrics"]["valid_perplexity"].as_f64().unwrap()
    };
    // Ten subjects are predicted better by ten topics than by one.
    let (one, ten) = (perplexity(1), perplexity(10));
    assert!(ten < 0.95 * one, "{ten} {one}");

    let select = "topics select train.txt --k 2,10 --min-df 3 --n-iterations 40";
    let found = folder.json(&format!("{select} -o table.csv --plot select.svg"));
    let rows = found["rows"].as_array().unwrap();
    assert_eq!((rows[0]["k"].as_u64(), rows[1]["k"].as_u64()), (Some(2), Some(10)));
    for row in rows {
        assert!((-1.0..=1.0).contains(&row["npmi"].as_f64().unwrap()), "{row}");
        assert!((0.0..=1.0).contains(&row["stability"].as_f64().unwrap()), "{row}");
        assert!(row["perplexity"].as_f64().unwrap() > 1.0, "{row}");
    }
    let table = lines(&folder, "table.csv");
    assert_eq!(table[0], ["k", "npmi", "perplexity", "stability"]);
    let n_digits = |value: &str| value.split_once('.').map_or(0, |(_, digits)| digits.len());
    for (value, at_most) in table[1..].iter().flat_map(|row| row.iter().zip([0, 4, 1, 4])) {
        assert!(n_digits(value) <= at_most, "{table:?}");
    }
    assert!(fs::read_to_string(folder.path().join("select.svg")).unwrap().contains("stability"));
    // The same seed gives the same table.
    assert_eq!(folder.json(select), found);
    folder.run("topics select train.txt --k 0").assert_refused("`n_topics`");
    let picture = folder.run("topics select train.txt --k 2 -o picture.svg");
    picture.assert_refused("`picture.svg` does not have the extension of a table");
    assert!(!folder.path().join("picture.svg").exists());
    let picture = folder.run("topics select train.txt --k 2 --plot picture.pdf");
    picture.assert_refused("cannot write a plot to `picture.pdf`");
}

/// Bytes of a model file that version 0.1 could have written: its header has no cleaning.
#[test]
fn models_without_cleaning_keep_all_words() {
    let folder = folder();
    folder.json("train lda docs --keep-all --n-topics 2 --n-iterations 2 -o bare.lda");
    assert!(folder.json("inspect bare.lda")["cleaning"].is_null());
    folder.write("new.txt", "the , 17 zzz\n");
    let found = folder.json("topics infer bare.lda new.txt");
    // `the` and `,` are known or unknown words, but not left out.
    let result = folder.json("topics infer bare.lda new.txt");
    assert_eq!(found, result);
    let n_unknown = found["mixtures"][0]["skipped"].as_u64().unwrap();
    assert!(n_unknown >= 2, "{found}");
}

#[test]
fn the_sampler_of_gaussian_topics_is_named_with_its_reason() {
    let folder = folder();
    folder.json("train word2vec docs.csv --text-column body --tokenize words --lowercase --dim 10 --epochs 1 -o v.w2v");
    let train = "train glda docs --vectors v.w2v --n-topics 4 --n-iterations 3 -o m.glda";
    let metrics = &folder.json(train)["metrics"];
    assert_eq!(metrics["sampler"], "exact");
    let reason = metrics["sampler_reason"].as_str().unwrap();
    assert!(reason.contains("training is short") && reason.contains("parallel"), "{reason}");
    let metrics = &folder.json(&format!("{train} --sampler mh"))["metrics"];
    assert_eq!(metrics["sampler"], "mh");
    assert!(metrics["sampler_reason"].is_null());
}
