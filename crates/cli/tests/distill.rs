//! `latens distill` with the real program.

mod common;

use common::Folder;
use serde_json::Value;
use std::sync::OnceLock;

const TEXT: &str = "--tokenize words --lowercase --min-count 2";
const STUDENT: &str =
    "--n-states 32 --n-clusters 8 --dim 16 --epochs 3 --batch-tokens 500 --n-tokens 30K";

/// A student for tests that compare files, not quality.
const QUICK: &str =
    "--n-states 32 --n-clusters 8 --dim 16 --epochs 3 --batch-tokens 500 --n-tokens 10K";

const TEACHERS: [&str; 2] = ["t.ngram", "t.lstm"];

/// A folder with the corpus and teachers.
fn teachers() -> Folder {
    /// Their files. They are trained once for all tests.
    static FILES: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    let folder = Folder::with_embedded_corpus();
    for (name, file) in TEACHERS.iter().zip(FILES.get_or_init(train_teachers)) {
        std::fs::write(folder.path().join(name), file).unwrap();
    }
    folder
}

fn train_teachers() -> [Vec<u8>; 2] {
    let folder = Folder::with_embedded_corpus();
    for args in [
        format!("ngram train.txt {TEXT} -o t.ngram"),
        format!(
            "lstm train.txt {TEXT} --dim 12 --hidden-dim 16 --epochs 3 --optimizer adamw --schedule cosine \
             --learning-rate 0.01 --mask sequence --word-dropout 0.1 --weight-dropout 0.3 --input-dropout 0.2 \
             --layer-dropout 0.1 --activation-penalty 1 --average 0.1 -o t.lstm"
        ),
    ] {
        let ran = folder.run(&format!("train {args} -q"));
        assert_eq!(ran.code, Some(0), "{args}: {}", ran.stderr);
    }
    TEACHERS.map(|name| std::fs::read(folder.path().join(name)).unwrap())
}

fn perplexity(folder: &Folder, model: &str, text: &str) -> f64 {
    let ran = folder.run(&format!("perplexity {model} {text} --json"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    result["perplexity"].as_f64().unwrap()
}

#[test]
fn students_learn_from_samples_and_guide_their_teacher() {
    let folder = teachers();
    for (teacher, text) in [
        ("t.ngram", ""),
        ("t.lstm", ""),
        ("t.lstm", "--text train.txt --text-weight 2 --valid valid.txt"),
    ] {
        let args =
            format!("distill {teacher} {text} {STUDENT} --learning-rate 0.01 -o student.hmm");
        let ran = folder.run(&args);
        assert_eq!(ran.code, Some(0), "{args}: {}", ran.stderr);
        // Far better than guessing among all words of the vocabulary, of which there are more than 2,000.
        let found = perplexity(&folder, "student.hmm", "test.txt");
        assert!(found < 1000.0, "{args}: {found}");
        let ran = folder.run(&format!(
            "generate {teacher} --guide student.hmm --must house --max-words 12 -n 2 --json"
        ));
        assert_eq!(ran.code, Some(0), "{args}: {}", ran.stderr);
    }
}

#[test]
fn samples_are_kept_and_the_seed_repeats_them() {
    let folder = teachers();
    let distill = |name: &str, seed: u32| {
        let args = format!(
            "distill t.lstm {QUICK} --keep-samples {name}.txt --seed {seed} -o {name}.hmm -q"
        );
        let ran = folder.run(&args);
        assert_eq!(ran.code, Some(0), "{args}: {}", ran.stderr);
        let read = |file: &str| std::fs::read(folder.path().join(file)).unwrap();
        (read(&format!("{name}.txt")), read(&format!("{name}.hmm")))
    };
    let (text, model) = distill("a", 1);
    assert_eq!((text.clone(), model), distill("b", 1));
    assert_ne!(text, distill("c", 2).0);
    let text = String::from_utf8(text).unwrap();
    // Tokens are words and ends of sentences; an unfinished sentence is not written.
    let n_tokens: usize = text.lines().map(|line| line.split_whitespace().count() + 1).sum();
    assert!((5_000..=10_500).contains(&n_tokens), "{n_tokens}");
}

#[test]
#[cfg(unix)]
fn an_interrupted_distillation_resumes_to_the_same_model() {
    use nix::sys::signal::{SigHandler, Signal, kill};
    use nix::unistd::Pid;
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let folder = teachers();
    let args = |name: &str| format!("distill t.lstm --text train.txt {QUICK} -o {name}.hmm");
    assert_eq!(folder.run(&args("whole")).code, Some(0));
    let mut command = folder.interruptible(SigHandler::SigDfl);
    let mut child =
        command.args(args("stopped").split_whitespace()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // Each epoch ends with a line that has its metrics.
    let first = lines.by_ref().map(Result::unwrap).find(|line| line.contains("perplexity"));
    assert!(first.is_some());
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let status = child.wait().unwrap();
    // A fast machine may be done before the signal arrives.
    if !status.success() {
        assert!(rest.iter().any(|line| line.contains("--resume")), "{rest:?}");
        let resumed = folder.run(&format!("{} --resume", args("stopped")));
        assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    }
    let read = |file: &str| std::fs::read(folder.path().join(file)).unwrap();
    assert_eq!(read("stopped.hmm"), read("whole.hmm"));
}

#[test]
fn bad_input_is_explained() {
    let folder = teachers();
    let ran = folder.run("train brown train.txt --n-clusters 4 -q -o t.brown");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for (args, message) in [
        ("t.brown", "not a language model"),
        ("t.ngram --parameterization scalar", "Baum–Welch reads the same text"),
        ("t.ngram --n-tokens 0", "`n_tokens` must be above 0"),
        ("t.ngram --n-tokens 5X", "K, M or G"),
        ("t.ngram --text missing.txt", "missing.txt"),
        ("t.ngram --keep-samples s.hmm", "written twice"),
        ("t.ngram --n-clusters 7", "n_clusters"),
    ] {
        let ran = folder.run(&format!("distill {args} --n-states 32 --epochs 1 -o s.hmm"));
        assert_ne!(ran.code, Some(0), "{args}");
        assert!(ran.stderr.contains(message), "{args}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{args}: {}", ran.stderr);
        assert!(!folder.path().join("s.hmm").exists(), "{args}");
    }
}

/// A `.npy` file with rows of two-byte integers.
fn npy(rows: &[[i16; 6]]) -> Vec<u8> {
    let header =
        format!("{{'descr': '<i2', 'fortran_order': False, 'shape': ({}, 6), }}\n", rows.len());
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    let ids: Vec<u8> = rows.as_flattened().iter().flat_map(|id| id.to_le_bytes()).collect();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), &ids].concat()
}

#[test]
fn token_ids_of_another_model_are_text() {
    let folder = Folder::new();
    folder.write(
        "tokenizer.json",
        r#"{"model": {"vocab": {"</s>": 0, "Ġthe": 1, "Ġd": 2, "og": 3, "Ġcat": 4}},
            "added_tokens": [{"id": 0, "content": "</s>", "special": true}]}"#,
    );
    folder.write("ids.npy", npy(&[[1, 2, 3, 0, 0, 0], [1, 4, 0, 1, 2, 3], [4, 0, -1, -1, -1, -1]]));
    folder.write("same.txt", "Ġthe Ġd og\nĠthe Ġcat\nĠthe Ġd og\nĠcat\n");
    let train = "--n-states 4 --n-clusters 2 --dim 8 --epochs 3 --min-count 1 -q";
    for (text, model) in
        [("ids.npy --tokenizer tokenizer.json", "ids.hmm"), ("same.txt", "same.hmm")]
    {
        let ran = folder.run(&format!("train hmm {text} {train} -o {model}"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let ids = perplexity(&folder, "ids.hmm", "ids.npy --tokenizer tokenizer.json");
    assert_eq!(ids, perplexity(&folder, "same.hmm", "same.txt"));

    let ran = folder.run(&format!("train hmm ids.npy {train} -o no.hmm"));
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("`ids.npy` contains token ids"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`--tokenizer`"), "{}", ran.stderr);
    let args =
        format!("train hmm ids.npy --tokenizer tokenizer.json --end-token nope {train} -o no.hmm");
    let ran = folder.run(&args);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("it has no token `nope`"), "{}", ran.stderr);
    let ran =
        folder.run(&format!("train hmm same.txt --tokenizer tokenizer.json {train} -o no.hmm"));
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("`--tokenizer` needs arrays of token ids"), "{}", ran.stderr);
}
