//! `latens score`, `perplexity` of several files, and `sample` with the real program.

mod common;

use common::Folder;
use serde_json::Value;
use std::fs;

const SMALL: &str = "--n-states 16 --n-clusters 4 --dim 8 --epochs 1";

/// One small model of every kind that is a language model.
const MODELS: &[(&str, &str)] = &[
    ("ngram", "--min-count 2"),
    ("hmm", SMALL),
    ("ff", "--min-count 2 --order 3 --n-layers 1 --dim 8 --epochs 1"),
    ("rnn", "--min-count 2 --dim 8 --epochs 1"),
    ("lstm", "--min-count 2 --dim 8 --n-layers 1 --epochs 1"),
];

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(1.0)
}

fn with_models() -> Folder {
    let folder = Folder::with_embedded_corpus();
    for &(kind, flags) in MODELS {
        let valid = if matches!(kind, "ff" | "rnn" | "lstm") { "--valid valid.txt" } else { "" };
        // The smallest of the three texts.
        folder.json(&format!("train {kind} valid.txt {valid} --lowercase {flags} -o m.{kind}"));
    }
    folder
}

#[test]
fn scores_of_all_models_sum_to_their_perplexity() {
    let folder = with_models();
    folder.write("some.txt", "the Zyzzogeton walks .\n\nthe dog\n");
    for &(kind, _) in MODELS {
        for text in ["some.txt", "test.txt"] {
            let all = folder.json(&format!("perplexity m.{kind} {text}"));
            let sentences = folder.json(&format!("score m.{kind} {text}"));
            let tokens = folder.json(&format!("score m.{kind} {text} --per token"));
            let (sentences, tokens) =
                (sentences["rows"].as_array().unwrap(), tokens["rows"].as_array().unwrap());
            let sum =
                |rows: &[Value], key: &str| rows.iter().map(|row| number(row, key)).sum::<f64>();
            assert!(close(sum(sentences, "log_prob"), number(&all, "log_prob")), "{kind}, {text}");
            assert!(close(sum(tokens, "log_prob"), number(&all, "log_prob")), "{kind}, {text}");
            assert_eq!(sum(sentences, "tokens"), number(&all, "tokens"));
            assert_eq!(tokens.len() as f64, number(&all, "tokens"));
            assert_eq!(sum(sentences, "oov"), number(&all, "oov"));
            let n_oov = tokens.iter().filter(|row| row["oov"] == true).count();
            assert_eq!(n_oov as f64, number(&all, "oov"));
            for row in sentences.iter().chain(tokens) {
                let bits = -number(row, "log_prob") / std::f64::consts::LN_2;
                assert!(close(number(row, "bits"), bits), "{row}");
            }
            // Without unknown words, by hand.
            let known: Vec<f64> = tokens
                .iter()
                .filter(|row| row["oov"] == false)
                .map(|row| number(row, "log_prob"))
                .collect();
            let expected = (-known.iter().sum::<f64>() / known.len() as f64).exp();
            let found = folder.json(&format!("perplexity m.{kind} {text} --without-oov"));
            assert!(close(number(&found, "perplexity_without_oov"), expected), "{kind}, {text}");
            assert_eq!(found["perplexity"], all["perplexity"]);
        }
    }
}

#[test]
fn rows_name_the_words_as_written() {
    let folder = Folder::with_embedded_corpus();
    folder.json("train ngram train.txt --lowercase --min-count 2 -o m.ngram");
    folder.write("a.txt", "the Zyzzogeton\n\n");
    let tokens = folder.run("score m.ngram a.txt --per token").stdout;
    let rows: Vec<Vec<&str>> = tokens.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["sentence", "token", "word", "log_prob", "bits", "oov"]);
    let words: Vec<&[&str]> = rows[1..].iter().map(|row| &row[..3]).collect();
    assert_eq!(words[..3], [["1", "1", "the"], ["1", "2", "zyzzogeton"], ["1", "3", "<eos>"]]);
    assert_eq!(rows.iter().skip(1).map(|row| row[5]).collect::<Vec<_>>()[..3], ["0", "1", "0"]);
    // A blank line is a sentence of its own, as for perplexity.
    assert_eq!(words[3], ["2", "1", "<eos>"]);
    let sentences = folder.run("score m.ngram a.txt").stdout;
    assert!(sentences.starts_with("sentence\ttokens\tlog_prob\tbits\toov\n1\t3\t-"), "{sentences}");
    let written = folder.json("score m.ngram a.txt --per token -o scores.tsv");
    assert_eq!(written["tokens"], 4);
    assert_eq!(fs::read_to_string(folder.path().join("scores.tsv")).unwrap(), tokens);
    folder.json("train brown train.txt --n-clusters 8 -o m.brown");
    folder.run("score m.brown a.txt").assert_refused("not a language model");
}

#[test]
fn perplexity_of_several_files_lists_each() {
    let folder = with_models();
    for &(kind, _) in MODELS {
        let all = folder.json(&format!("perplexity m.{kind} valid.txt test.txt --without-oov"));
        let files = all["files"].as_array().unwrap();
        assert_eq!(files.len(), 2);
        for (found, name) in files.iter().zip(["valid.txt", "test.txt"]) {
            assert_eq!(found["file"], name);
            let alone = folder.json(&format!("perplexity m.{kind} {name} --without-oov"));
            assert!(alone.get("files").is_none());
            for key in ["perplexity", "perplexity_without_oov", "log_prob", "tokens", "oov"] {
                assert!(close(number(found, key), number(&alone, key)), "{kind}, {name}, {key}");
            }
        }
        let text = folder.run(&format!("perplexity m.{kind} valid.txt test.txt")).stdout;
        assert!(text.contains("`test.txt`: perplexity"), "{text}");
    }
}

#[test]
fn samples_continue_a_prompt_and_obey_their_options() {
    let folder = with_models();
    for &(kind, _) in MODELS {
        let sample =
            |flags: &str| folder.json(&format!("sample m.{kind} -n 5 --max-words 8 {flags}"));
        let prompted = sample("--prompt the");
        for sentence in prompted["sentences"].as_array().unwrap() {
            assert!(sentence.as_str().unwrap().starts_with("the"), "{kind}: {sentence}");
        }
        // The defaults are the options that change nothing, and the same seed gives the same sample.
        assert_eq!(sample(""), sample("--temperature 1 --top-p 1 --unk never"));
        assert_ne!(sample("--seed 2"), sample("--seed 3"), "{kind}");
        // The likeliest word leaves no choice.
        let greedy = sample("--temperature 0 --seed 2");
        assert_eq!(greedy, sample("--top-k 1 --seed 9"), "{kind}");
        assert_eq!(greedy["sentences"][0], greedy["sentences"][4]);
        assert!(!sample("--unk never --seed 5").to_string().contains("<unk>"), "{kind}");
    }
    assert!(folder.json("sample m.ngram -n 200 --unk keep").to_string().contains("<unk>"));
    let ran = folder.run("sample m.ngram --prompt Zyzzogeton -n 1");
    assert!(ran.stderr.contains("1 of the 1 words of the prompt are unknown"), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("zyzzogeton"), "{}", ran.stdout);
    for flags in ["--temperature=-1", "--top-k 0", "--top-p 0", "--top-p 1.5", "--unk maybe"] {
        assert_eq!(folder.run(&format!("sample m.ngram {flags}")).code, Some(2), "{flags}");
    }
}

#[test]
fn samples_after_a_prompt_have_the_probabilities_of_score() {
    const N: usize = 3000;
    let folder = Folder::new();
    let text = "the cat sleeps\nthe cat runs\nthe dog runs\na dog sleeps\na bird\nthe bird sings\n";
    folder.write("text.txt", text.repeat(4));
    let words = ["the", "a", "cat", "dog", "bird", "sleeps", "runs", "sings"];
    let small = "--n-states 8 --n-clusters 4 --dim 8 --epochs 5";
    let models = [("ngram", "--order 3"), ("hmm", small), ("rnn", "--dim 8 --epochs 2")];
    for (kind, flags) in models {
        let valid = if kind == "rnn" { "--valid text.txt" } else { "" };
        folder.json(&format!("train {kind} text.txt {valid} --min-count 1 {flags} -o m.{kind}"));
        for prompt in ["the", "a dog"] {
            // One sentence per next word, and one that ends after the prompt.
            let lines: Vec<String> = words.iter().map(|word| format!("{prompt} {word}")).collect();
            folder.write("next.txt", format!("{}\n{prompt}\n", lines.join("\n")));
            let scored = folder.json(&format!("score m.{kind} next.txt --per token"));
            let at = prompt.split(' ').count() as u64 + 1;
            let next = scored["rows"].as_array().unwrap().iter().filter(|row| row["token"] == at);
            let probs: Vec<f64> = next.map(|row| number(row, "log_prob").exp()).collect();
            assert_eq!(probs.len(), words.len() + 1);
            assert!(probs.iter().sum::<f64>() < 1.0 + 1e-6, "{kind}: {probs:?}");

            let mut command = folder.command();
            let sample = ["sample", &format!("m.{kind}"), "--json", "--prompt", prompt];
            command.args(sample).args(["-n", &N.to_string(), "--unk", "keep", "--seed", "7"]);
            let drawn: Value =
                serde_json::from_slice(&command.output().unwrap().stdout).expect("JSON");
            let mut counts = vec![0; words.len() + 1];
            for sentence in drawn["sentences"].as_array().unwrap() {
                let rest = sentence.as_str().unwrap().strip_prefix(prompt).unwrap();
                let word = rest.split_whitespace().next();
                let place = match word {
                    None => Some(words.len()),
                    Some(word) => words.iter().position(|&other| other == word),
                };
                // `<unk>` is no sentence of `next.txt`.
                place.into_iter().for_each(|place| counts[place] += 1);
            }
            for (place, (&n, &prob)) in counts.iter().zip(&probs).enumerate() {
                let share = f64::from(n) / N as f64;
                let deviation = (prob * (1.0 - prob) / N as f64).sqrt();
                let is_near = (share - prob).abs() <= 5.0 * deviation + 1.0 / N as f64;
                assert!(is_near, "{kind} after `{prompt}`, word {place}: {share} and {prob}");
            }
        }
    }
}
