//! Every command with the real program, on the embedded corpus.

mod common;

use common::{Folder, Ran};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::Stdio;

const WORDS: &str = "--tokenize words --lowercase --min-count 2";

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn a_model_is_trained_inspected_and_used() {
    let folder = Folder::with_embedded_corpus();
    let trained = folder
        .json(&format!("train ngram train.txt --order 3 --valid valid.txt {WORDS} -o m.ngram"));
    assert_eq!(keys(&trained), ["metrics", "model", "path", "seconds", "tokens", "vocab"]);
    assert_eq!(trained["model"], "ngram");
    let scored = folder.json("perplexity m.ngram valid.txt");
    assert_eq!(keys(&scored), ["log_prob", "oov", "perplexity", "tokens"]);
    assert_eq!(scored["perplexity"], trained["metrics"]["valid_perplexity"]);
    let (log_prob, tokens) =
        (scored["log_prob"].as_f64().unwrap(), scored["tokens"].as_f64().unwrap());
    let expected = (-log_prob / tokens).exp();
    assert!((scored["perplexity"].as_f64().unwrap() - expected).abs() < 1e-9);
    let inspected = folder.json("inspect m.ngram");
    assert_eq!(inspected["model"], "ngram");
    assert_eq!(inspected["parameters"]["order"], 3);
    assert_eq!(inspected["preprocessing"]["tokenize"], "words");
    assert_eq!(inspected["vocab"], trained["vocab"]);
    let sampled = folder.json("sample m.ngram -n 4");
    assert_eq!(sampled["sentences"].as_array().unwrap().len(), 4);
    assert_eq!(sampled, folder.json("sample m.ngram -n 4 --seed 1"));
    assert_ne!(sampled, folder.json("sample m.ngram -n 4 --seed 2"));
}

#[test]
fn the_same_seed_gives_the_same_file_for_any_number_of_threads() {
    let folder = Folder::with_embedded_corpus();
    // Threads share a text in blocks of a mebibyte, so there must be several.
    let text = fs::read(folder.path().join("train.txt")).unwrap().repeat(24);
    assert!(text.len() > 3 << 20, "{}", text.len());
    folder.write("long.txt", text);
    let array_bytes = |name: &str, threads: usize| {
        folder.json(&format!("train ngram long.txt {WORDS} --threads {threads} -o {name}"));
        let bytes = fs::read(folder.path().join(name)).unwrap();
        // The header tells how long it took, which no seed fixes.
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        bytes[8 + header..].to_vec()
    };
    assert!(array_bytes("a", 1) == array_bytes("b", 2));
}

#[test]
fn a_vocabulary_can_be_reused() {
    let folder = Folder::with_embedded_corpus();
    let made = folder.json(&format!("vocab train.txt valid.txt {WORDS} -o words.vocab"));
    assert_eq!(keys(&made), ["path", "sentences", "tokens", "vocab"]);
    let trained = folder.json("train ngram train.txt --vocab words.vocab -o m.ngram");
    assert_eq!(trained["vocab"], made["vocab"]);
    let inspected = folder.json("inspect m.ngram");
    assert_eq!(inspected["preprocessing"]["lowercase"], true);
    assert_eq!(inspected["vocab_limits"]["min_count"], 2);
}

#[test]
fn counts_of_parts_merge_to_the_counts_of_the_whole() {
    let folder = Folder::with_embedded_corpus();
    folder.json(&format!("vocab train.txt valid.txt test.txt {WORDS} -o words.vocab"));
    let whole = folder.json(
        "count train.txt valid.txt test.txt --lags 7 --vocab words.vocab -o whole --threads 2",
    );
    assert_eq!(keys(&whole), ["lags", "nonzeros", "tokens", "vocab"]);
    for part in ["train", "valid", "test"] {
        folder
            .json(&format!("count {part}.txt --lags 7 --vocab words.vocab -o {part} --threads 1"));
    }
    let merged = folder.json("count --merge test train valid -o merged");
    assert_eq!(merged, whole);
    let bytes = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(bytes("merged") == bytes("whole"));
    let sentence = folder.json("count train.txt --lags 7 --boundary sentence -o s --memory 1");
    assert_eq!(sentence["lags"], 7);
    folder.run("count --merge whole s -o x").assert_refused("cannot merge counts");
}

#[test]
fn the_cache_contains_the_encoded_text() {
    let folder = Folder::with_embedded_corpus();
    let train = |extra: &str| folder.json(&format!("train ngram train.txt -o m {WORDS} {extra}"));
    let without = train("");
    let first = train("--cache kept");
    let second = train("--cache kept");
    assert_eq!((&first["tokens"], &first["vocab"]), (&without["tokens"], &without["vocab"]));
    assert_eq!(first["metrics"], second["metrics"]);
    let kept = fs::read_dir(folder.path().join("kept")).unwrap();
    let kept: Vec<_> = kept.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 1);
    // A damaged cache is made anew, not believed.
    fs::write(&kept[0], "damaged").unwrap();
    assert_eq!(train("--cache kept")["metrics"], second["metrics"]);
}

#[test]
fn arpa_files_round_trip() {
    let folder = Folder::with_embedded_corpus();
    folder.json(&format!("train ngram train.txt {WORDS} --order 3 -o m.ngram"));
    folder.json("export m.ngram --to arpa -o m.arpa");
    folder.json("import m.arpa --from arpa --tokenize words --lowercase -o again.ngram");
    let scores = ["m.ngram", "again.ngram"].map(|model| {
        folder.json(&format!("perplexity {model} test.txt"))["perplexity"].as_f64().unwrap()
    });
    assert!((scores[0] - scores[1]).abs() < 1e-4 * scores[0], "{scores:?}");
}

#[test]
fn paths_files_round_trip() {
    let folder = Folder::with_embedded_corpus();
    let trained = folder.json(&format!("train brown train.txt {WORDS} --n-clusters 20 -o m.brown"));
    assert!(trained["metrics"]["mutual_information"].as_f64().unwrap() > 0.5, "{trained}");
    folder.json("export m.brown --to paths -o m.paths");
    let paths = fs::read_to_string(folder.path().join("m.paths")).unwrap();
    // Every word but `<eos>` has a path.
    assert_eq!(paths.lines().count() as u64, trained["vocab"].as_u64().unwrap() - 1);
    folder.json("import m.paths --from paths --tokenize words --lowercase -o again.brown");
    folder.json("export again.brown --to paths -o again.paths");
    let again = fs::read_to_string(folder.path().join("again.paths")).unwrap();
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&again), sorted(&paths));
    folder.run("perplexity m.brown test.txt").assert_refused("not a language model");
    folder.run("export m.brown --to arpa -o x").assert_refused("cannot export `m.brown`");
    folder
        .run("train brown train.txt --n-clusters 99999 -o x")
        .assert_refused("`n_clusters` must be");
}

#[test]
fn clusters_are_found_by_exchange() {
    let folder = Folder::with_embedded_corpus();
    let train = |flags: &str| {
        folder.json(&format!("train brown train.txt {WORDS} --n-clusters 20 -o m.brown {flags}"))
            ["metrics"]["mutual_information"]
            .as_f64()
            .unwrap()
    };
    let exchange = train("--algorithm exchange --n-iterations 30 --log log");
    assert!(exchange > train("--algorithm brown"), "{exchange}");
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let values: Vec<f64> = lines.map(|line| line["mutual_information"].as_f64().unwrap()).collect();
    assert!(values.len() > 2 && values.is_sorted(), "{values:?}");
    assert_eq!(values.last(), Some(&exchange));
    folder
        .run("train brown train.txt --algorithm other -o x")
        .assert_refused("possible values: brown, exchange");
    folder
        .run("train brown train.txt --n-iterations 0 -o x")
        .assert_refused("`n_iterations` must be");
    folder
        .run("train brown train.txt --valid valid.txt -o x")
        .assert_refused("do not support `--valid`");
}

#[test]
fn text_comes_from_pipes_and_compressed_files() {
    let folder = Folder::with_embedded_corpus();
    folder.json(&format!("train ngram train.txt {WORDS} -o m.ngram"));
    let expected = folder.json("perplexity m.ngram test.txt");
    let text = fs::read(folder.path().join("test.txt")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&text).unwrap();
    folder.write("test.txt.gz", gzip.finish().unwrap());
    folder.write("test.txt.zst", zstd::encode_all(&text[..], 3).unwrap());
    assert_eq!(folder.json("perplexity m.ngram test.txt.gz"), expected);
    assert_eq!(folder.json("perplexity m.ngram test.txt.zst"), expected);
    let mut child = folder
        .command()
        .args(["perplexity", "m.ngram", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let piped: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(piped, expected);
}

#[test]
fn every_format_is_read() {
    let folder = Folder::new();
    folder.write("a.txt", "the cat sat\n");
    folder.write("b.tsv", "pets\ttrain\tthe cat sat\n");
    folder.write("c.conll", "the DT\ncat NN\nsat VBD\n\n");
    folder.write("d.jsonl", "{\"text\": \"the cat sat\"}\n");
    let row = |id: usize, word: &str| format!("{id}\t{word}{}\n", "\t_".repeat(8));
    let conllu = row(1, "the") + &row(2, "cat") + &row(3, "sat") + "\n";
    folder.write("e.conllu", &conllu);
    folder.write("f", &conllu);
    for file in [
        "a.txt",
        "b.tsv --fields label,split,text",
        "c.conll",
        "d.jsonl",
        "e.conllu",
        "f --format conllu",
    ] {
        let made = folder.json(&format!("vocab {file} -o v"));
        assert_eq!((&made["tokens"], &made["vocab"]), (&4.into(), &5.into()), "{file}");
    }
}

#[test]
fn the_demo_runs_and_keeps_its_models() {
    let folder = Folder::new();
    let ran = folder.run("demo --only ngram,brown");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("n-gram"), "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("on your own text: latens train").count(), 2, "{}", ran.stdout);
    assert!(folder.names().is_empty(), "nothing is written unless asked");
    let result = folder.json("demo -o kept");
    // Topics find the ten subjects.
    for model in result["models"].as_array().unwrap() {
        if let Some(purity) = model["metrics"]["purity"].as_f64() {
            assert!(purity > 0.6, "{model}"); // 0.1 by chance
        }
    }
    let mut files: Vec<String> = result["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| format!("demo.{}", m["model"].as_str().unwrap()))
        .collect();
    files.sort();
    let kept = std::fs::read_dir(folder.path().join("kept")).unwrap();
    let kept = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut kept: Vec<String> = kept.filter(|name| name.starts_with("demo.")).collect();
    kept.sort();
    assert_eq!(files, kept);
    assert!(files.len() >= 8, "{files:?}");
    let shown = folder.json("topics show kept/demo.lda");
    assert!(!shown.to_string().contains("\"the\""), "{shown}");
    let mut models = result["models"].as_array().unwrap().iter();
    let model = models.find(|model| model["model"] == "ngram").unwrap();
    assert_eq!(keys(model), ["metrics", "model", "seconds"]);
    let metrics = &model["metrics"];
    // Looking at the words before must help, a lot.
    let ratio = metrics["test_perplexity"].as_f64().unwrap()
        / metrics["unigram_test_perplexity"].as_f64().unwrap();
    assert!(ratio < 0.7, "{metrics}");
    let scored = folder.json("perplexity kept/demo.ngram kept/test.txt");
    assert_eq!(scored["perplexity"], metrics["test_perplexity"]);
    // A second demo replaces its own files, and its last words are commands that work.
    let ran = folder.run("demo -o kept --only ngram");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let examples: Vec<&str> =
        ran.stdout.lines().filter_map(|line| line.strip_prefix("  latens ")).collect();
    assert_eq!(examples.len(), 3, "{}", ran.stdout);
    for example in examples {
        assert_eq!(folder.run(example).code, Some(0), "{example}");
    }
}

#[test]
fn experiments_are_listed() {
    let listed = Folder::new().json("reproduce --list");
    let names =
        listed["experiments"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap());
    assert!(names.collect::<Vec<_>>().contains(&"lm-baselines"));
}

#[test]
fn completions_and_manual_pages_are_printed() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = folder.run(&format!("completions {shell}"));
        assert!(ran.code == Some(0) && ran.stdout.contains("perplexity"), "{shell}");
    }
    assert!(folder.run("man").stdout.contains(".TH latens"));
    assert_eq!(folder.run("man -o pages").code, Some(0));
    assert!(folder.path().join("pages/latens-train-ngram.1").exists());
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = Folder::new();
    let mut child =
        folder.command().args(["completions", "bash"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn help_documents_every_flag_with_its_default() {
    let ran = Folder::new().run("help train ngram");
    assert_eq!(ran.code, Some(0));
    for flag in [
        "--order <N>",
        "--min-counts",
        "--cache-weight <W>",
        "--cache-size <N>",
        "--valid <FILE>",
        "--resume",
        "--log <FILE.jsonl>",
        "--cache <DIR>",
        "--format",
        "--fields",
        "--invalid",
        "--tokenize",
        "--lowercase",
        "--digits",
        "--min-count",
        "--max-vocab",
        "--vocab",
        "--threads",
        "--seed",
        "--quiet",
        "--json",
        "--output <PATH>",
    ] {
        assert!(ran.stdout.contains(flag), "{flag}");
    }
    // A flag, what it does, and then its default.
    for (flag, default) in [
        ("--order", "5"),
        ("--min-counts", "1"),
        ("--cache-weight", "0"),
        ("--cache-size", "500"),
        ("--format", "by the file's extension, else lines"),
        ("--invalid", "error"),
        ("--tokenize", "whitespace"),
        ("--digits", "keep"),
        ("--normalize", "nfc"),
        ("--min-count", "1"),
        ("--max-vocab", "0"),
        ("--threads", "all cores"),
        ("--seed", "1"),
    ] {
        let (_, rest) = ran.stdout.split_once(&format!("{flag} <")).expect(flag);
        let (_, rest) = rest.split_once("[default: ").expect(flag);
        assert!(rest.starts_with(&format!("{default}]")), "{flag}: {rest}");
    }
}

#[test]
fn the_log_has_a_line_for_a_model_without_iterations() {
    let folder = Folder::with_embedded_corpus();
    for model in ["ngram --valid valid.txt", "brown --n-clusters 9"] {
        // The second run begins the log anew.
        for _ in 0..2 {
            let args = format!("train {model} train.txt {WORDS} -o m --log log");
            let trained = folder.json(&args);
            let log = fs::read_to_string(folder.path().join("log")).unwrap();
            let line: Value = serde_json::from_str(&log).unwrap();
            assert_eq!(line["iteration"], 1);
            assert!(line["seconds"].as_f64().unwrap() <= trained["seconds"].as_f64().unwrap());
            for (name, value) in trained["metrics"].as_object().unwrap() {
                assert_eq!(&line[name], value);
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn the_cache_knows_the_format_of_each_file() {
    let folder = Folder::new();
    folder.write("a.tsv", "sport\tball\n");
    std::os::unix::fs::symlink("a.tsv", folder.path().join("a.txt")).unwrap();
    let tokens =
        |name: &str| folder.json(&format!("vocab {name} --cache kept -o v"))["tokens"].clone();
    assert_eq!(tokens("a.tsv"), 2);
    assert_eq!(tokens("a.txt"), 3);
}

#[test]
fn the_first_sentences_of_a_sample_do_not_depend_on_their_number() {
    let folder = Folder::new();
    folder.write("text", "a b c\nb a\nc c a b\n".repeat(9));
    folder.json("train ngram text -o m.ngram");
    folder.json("train rnn text --valid text --dim 8 --epochs 1 --min-count 1 -o m.rnn");
    for model in ["m.ngram", "m.rnn"] {
        let drawn = |flags: &str| {
            let sample = folder.json(&format!("sample {model} --seed 5 --max-words 9 {flags}"));
            sample["sentences"].as_array().unwrap().clone()
        };
        let all = drawn("-n 700");
        assert_eq!(all.len(), 700);
        assert_eq!(drawn("-n 3"), all[..3]);
        assert_eq!(drawn("-n 300 --threads 1"), all[..300]);
        let mut command = folder.command();
        command.args(["sample", model, "--seed", "5", "--max-words", "9", "-n", "700"]);
        let lines = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(lines.lines().eq(all.iter().map(|sentence| sentence.as_str().unwrap())));
    }
}

#[test]
fn sampling_needs_no_memory_for_all_sentences() {
    let folder = Folder::new();
    folder.write("text", "a b c\n");
    folder.json("train ngram text -o m");
    let mut child = folder
        .command()
        .args(["sample", "m", "-n", &usize::MAX.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1];
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
    drop(stdout);
    assert!(child.wait().unwrap().success(), "the reader has seen enough");
}

/// `TMPDIR` is the temporary folder on Unix only.
#[cfg(unix)]
#[test]
fn counting_keeps_a_text_beyond_its_memory_in_a_temporary_file() {
    let folder = Folder::new();
    folder.write("text", "a b\nb c a\n".repeat(30_000));
    let temporary = folder.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let count = |args: &str, temporary: &str| {
        let args = format!("count text --lags 2 {args}");
        let mut command = folder.command();
        Ran::new(command.args(args.split(' ')).env("TMPDIR", temporary).output().unwrap())
    };
    // The text fits into the default budget, so no temporary folder is needed.
    assert_eq!(count("-o whole", "absent").code, Some(0));
    assert_eq!(count("--memory 1 -o bounded", "temporary").code, Some(0));
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(read("whole") == read("bounded"));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "temporary files were left behind");
    count("--memory 1 -o more", "absent").assert_refused("to the temporary folder `absent`");
}
