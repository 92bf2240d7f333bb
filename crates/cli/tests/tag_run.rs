//! `latens tag run` with the real program: formats in and out, offsets, marginals and the best sequences.

mod common;

use common::Folder;
use latens::corpus::embedded::{self, Split};
use serde_json::Value;
use std::fs;

/// Taggers of parts of speech and of names, trained on the embedded corpus in a second.
fn with_taggers() -> Folder {
    let folder = Folder::new();
    for split in Split::ALL {
        folder.write(&format!("{}.conll", split.name()), embedded::tagged(split));
    }
    folder.json("tag train train.conll --column 2 --n-iterations 20 -o pos.tagger");
    folder.json("tag train train.conll --column 3 --n-iterations 20 --spans bioes -o names.tagger");
    folder
}

/// The columns of each word.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().filter(|line| !line.is_empty()).map(|line| line.split('\t').collect()).collect()
}

#[test]
fn tag_run_reads_what_tag_eval_reads() {
    let folder = with_taggers();
    let text = embedded::tagged(Split::Test);
    folder.write("test.txt", &text);
    folder.write("test.bio", text.replace('\t', " "));
    let expected = folder.run("tag run pos.tagger test.conll").stdout;
    let accuracy = folder.json("tag eval pos.tagger test.txt")["accuracy"].as_f64().unwrap();
    for name in ["test.txt", "test.bio"] {
        let ran = folder.run(&format!("tag run pos.tagger {name}"));
        assert_eq!(ran.stdout, expected, "{name}");
        assert!(ran.stderr.contains("is read as columns"), "{}", ran.stderr);
        assert!(ran.stderr.contains("`--format lines` reads it as plain text"), "{}", ran.stderr);
    }
    let rows = rows(&expected);
    let n_right = rows.iter().filter(|row| row[1] == row[3]).count();
    assert_eq!(n_right as f64 / rows.len() as f64, accuracy);
    // The user decides.
    let plain = folder.json("tag run pos.tagger test.txt --format lines");
    assert_eq!(plain["sentences"][0]["words"].as_array().unwrap().len(), 3);
    // Standard input, too.
    let mut command = folder.command();
    command
        .args(["tag", "run", "pos.tagger", "-"])
        .stdin(fs::File::open(folder.path().join("test.txt")).unwrap());
    assert_eq!(String::from_utf8(command.output().unwrap().stdout).unwrap(), expected);
}

#[test]
fn documents_of_conll_are_kept() {
    let folder = with_taggers();
    folder
        .write("a.conll", "-DOCSTART- -X- O\n\nThe DET\ndog NOUN\n\n-DOCSTART- -X- O\n\nIt PRON\n");
    let tagged = folder.run("tag run names.tagger a.conll").stdout;
    let lines: Vec<&str> = tagged.lines().collect();
    assert_eq!(lines[0], "-DOCSTART-\t-X-\tO\tO");
    assert_eq!((lines[1], lines[4], lines[6]), ("", "", ""));
    assert!(lines[2].starts_with("The\tDET\t"), "{tagged}");
    assert_eq!(lines[5], "-DOCSTART-\t-X-\tO\tO");
    assert!(lines[7].starts_with("It\tPRON\t"), "{tagged}");
}

const CONLLU: &str = "# newdoc id = d1
# sent_id = 1
# text = Zum Hund geht's.
1-2\tZum\t_\t_\t_\t_\t_\t_\t_\t_
1\tzu\tzu\t_\tAPPR\t_\t3\tcase\t_\t_
2\tdem\tder\t_\tART\tCase=Dat\t3\tdet\t_\t_
3\tHund\tHund\t_\tNN\t_\t4\tobl\t_\t_
4\tgeht\tgehen\t_\tVVFIN\t_\t0\troot\t_\tSpaceAfter=No
5\t's\tes\t_\tPPER\t_\t4\tnsubj\t_\tSpaceAfter=No
5.1\tnull\tnull\t_\t_\t_\t_\t_\t4:x\tCopyOf=1
6\t.\t.\t_\t$.\t_\t4\tpunct\t_\t_

# sent_id = 2
1\tJa\tja\tINTJ\tITJ\t_\t0\troot\t_\t_

";

#[test]
fn conllu_stays_conllu() {
    let folder = with_taggers();
    folder.write("a.conllu", CONLLU);
    let tagged = folder.run("tag run pos.tagger a.conllu").stdout;
    // All that changes is the fourth column of words: the tags are universal parts of speech.
    assert_eq!(tagged.lines().count(), CONLLU.lines().count());
    for (found, given) in tagged.lines().zip(CONLLU.lines()) {
        let (found, given): (Vec<&str>, Vec<&str>) =
            (found.split('\t').collect(), given.split('\t').collect());
        let is_word = given.len() == 10 && given[0].parse::<u32>().is_ok();
        if !is_word {
            assert_eq!(found, given);
            continue;
        }
        assert_eq!(found.len(), 10);
        assert!(!["_", ""].contains(&found[3]), "{found:?}");
        assert!((0..10).all(|i| i == 3 || found[i] == given[i]), "{found:?}");
    }
    // The output can be evaluated, and equals the tags.
    folder.write("tagged.conllu", &tagged);
    let scores = folder.json("tag eval pos.tagger tagged.conllu --column 4");
    assert_eq!(scores["accuracy"], 1.0);
    // Another column, and probabilities.
    let tagged = folder.run("tag run pos.tagger a.conllu --column 5 --marginals").stdout;
    let row = rows(&tagged).into_iter().find(|row| row[0] == "4").unwrap();
    assert_eq!(row[3], "_");
    let prob = row[9].strip_prefix("SpaceAfter=No|TagProb=").unwrap();
    assert!((0.0..=1.0).contains(&prob.parse::<f64>().unwrap()), "{row:?}");
    // Names have no column of their own.
    let tagged = folder.run("tag run names.tagger a.conllu").stdout;
    let row = rows(&tagged).into_iter().find(|row| row[0] == "4").unwrap();
    assert!(row[9].starts_with("SpaceAfter=No|Tag="), "{row:?}");
    let refused = folder.run("tag run names.tagger a.conllu --n-best 2");
    refused.assert_refused("`--n-best` needs more");
}

#[test]
fn spans_have_offsets_in_characters() {
    let folder = with_taggers();
    let name = "Galileo Galilei";
    folder.write("a.txt", format!("  « Ça — 𝄞 » sagte {name}, in Rome .\n\nNo name .\n"));
    folder.write("a.jsonl", format!("{{\"text\": \"« Ça — 𝄞 » sagte {name} , in Rome .\"}}\n"));
    let mut n_spans = 0;
    let mut check = |result: &Value| {
        for sentence in result["sentences"].as_array().unwrap() {
            let text: Vec<char> = sentence["text"].as_str().unwrap().chars().collect();
            let words: Vec<&str> =
                sentence["words"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
            for span in sentence["spans"].as_array().unwrap() {
                let number = |key: &str| span[key].as_u64().unwrap() as usize;
                let found: String = text[number("start")..number("end")].iter().collect();
                assert_eq!(span["text"], found);
                let first = number("first_word");
                assert!(found.starts_with(words[first]), "{span}");
                assert!(found.ends_with(words[first + number("n_words") - 1]), "{span}");
                n_spans += 1;
            }
        }
    };
    let result = folder.json("tag run names.tagger a.txt --tokenize words");
    assert_eq!(result["sentences"].as_array().unwrap().len(), 2);
    let first = &result["sentences"][0];
    assert_eq!(first["words"][7], "Galilei");
    assert_eq!(first["words"][8], ",");
    assert_eq!(first["spans"][0]["text"], name, "{first}");
    assert_eq!(first["spans"][0]["type"], "PER");
    // By hand: two spaces, «, a space, Ça, a space, —, a space, 𝄞, a space, », a space, sagte, a space.
    assert_eq!((&first["spans"][0]["start"], &first["spans"][0]["end"]), (&19.into(), &34.into()));
    check(&result);
    // As the tagger was trained, at whitespace.
    assert_eq!(folder.json("tag run names.tagger a.txt")["sentences"][0]["words"][7], "Galilei,");
    let result = folder.json("tag run names.tagger a.jsonl");
    assert_eq!(result["sentences"][0]["spans"][0]["start"], 17);
    check(&result);
    // JSON Lines are the same objects.
    folder.json("tag run names.tagger a.jsonl -o out.jsonl");
    let line = fs::read_to_string(folder.path().join("out.jsonl")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), result["sentences"][0]);
    // Multiword tokens and missing spaces of CoNLL-U.
    folder.write("a.conllu", CONLLU);
    let result = folder.json("tag run names.tagger a.conllu");
    assert_eq!(result["sentences"][0]["text"], "Zum Hund geht's.");
    check(&result);
    check(&folder.json("tag run names.tagger test.conll"));
    assert!(n_spans > 20, "{n_spans}");
}

#[test]
fn marginals_sum_to_one_and_the_best_sequences_are_ranked() {
    let folder = with_taggers();
    folder.write("a.txt", "The dog barks in Rome .\nOh\n");
    for tagger in ["pos", "names"] {
        let result = folder.json(&format!("tag run {tagger}.tagger a.txt --marginals --n-best 4"));
        for sentence in result["sentences"].as_array().unwrap() {
            for (word, tag) in sentence["marginals"]
                .as_array()
                .unwrap()
                .iter()
                .zip(sentence["tags"].as_array().unwrap())
            {
                let probs: Vec<f64> =
                    word.as_object().unwrap().values().map(|p| p.as_f64().unwrap()).collect();
                assert!((probs.iter().sum::<f64>() - 1.0).abs() < 1e-4, "{word}");
                assert!(word[tag.as_str().unwrap()].is_number(), "{word}");
            }
            let n_best = sentence["n_best"].as_array().unwrap();
            assert_eq!(n_best.len(), 4);
            assert_eq!(n_best[0]["tags"], sentence["tags"]);
            let log_probs: Vec<f64> =
                n_best.iter().map(|found| found["log_prob"].as_f64().unwrap()).collect();
            assert!(log_probs.is_sorted_by(|a, b| a >= b) && log_probs[0] < 0.0, "{log_probs:?}");
        }
        // The best sequence is the one without the flag.
        let plain = folder.json(&format!("tag run {tagger}.tagger a.txt"));
        assert_eq!(plain["sentences"][0]["tags"], result["sentences"][0]["tags"]);
    }
    // A word has as many sequences as tags, and its marginal is the probability of its sequence.
    let result = folder.json("tag run pos.tagger a.txt --marginals --n-best 4");
    let word = &result["sentences"][1];
    let tag = word["tags"][0].as_str().unwrap();
    let (p, log_prob) = (&word["marginals"][0][tag], &word["n_best"][0]["log_prob"]);
    assert!((p.as_f64().unwrap() - log_prob.as_f64().unwrap().exp()).abs() < 1e-5, "{word}");
    let columns = folder.run("tag run pos.tagger a.txt --n-best 3 --marginals").stdout;
    assert!(rows(&columns).iter().all(|row| row.len() == 5), "{columns}");

    folder.json("tag train train.conll --column 2 --optimizer perceptron --epochs 2 -o p.tagger");
    let ran = folder.run("tag run p.tagger a.txt --marginals");
    assert!(ran.stderr.contains("not trained to give probabilities"), "{}", ran.stderr);
    // An HMM has marginals, but does not rank sequences.
    let small = "--n-states 16 --n-clusters 4 --dim 8 --epochs 1";
    folder.json(&format!("train hmm train.conll --tags 2 --min-count 2 {small} -o m.hmm"));
    let result = folder.json("tag run m.hmm a.txt --marginals");
    let probs = result["sentences"][0]["marginals"][0].as_object().unwrap().values();
    assert!((probs.map(|p| p.as_f64().unwrap()).sum::<f64>() - 1.0).abs() < 1e-4);
    let refused = folder.run("tag run m.hmm a.txt --n-best 2");
    refused.assert_refused("cannot tag with `m.hmm`");
    assert!(refused.stderr.contains("train one with `latens tag train`"), "{}", refused.stderr);
}
