//! `--device` of the commands that use a model.

mod common;

use common::Folder;

fn trained() -> Folder {
    let folder = Folder::new();
    folder.write("text", "a b c\nb c a\nc a b\n");
    folder.json("train hmm text --n-states 4 --n-clusters 2 --dim 4 --epochs 1 -o hmm");
    folder.json("train ngram text -o ngram");
    folder.json("train brown text --n-clusters 2 -o brown");
    folder.json("train lstm text --dim 4 --epochs 1 -o lstm");
    folder.write("tags.conll", "a X\nb Y\nc Z\n\nb Y\nc Z\na X\n");
    let train = "tag train tags.conll --column 2 --n-iterations 3";
    folder.json(&format!("{train} --encoder brown -o words"));
    folder.json(&format!("{train} --encoder brown --encoder hmm -o states"));
    let small = "--n-states 4 --n-clusters 2 --dim 4 --epochs 1";
    folder.json(&format!("train hmm tags.conll --tags 2 --min-count 2 {small} -o hmm-tags"));
    folder
}

/// Nothing is written, and there is one message.
fn assert_refused(folder: &Folder, command: &str, message: &str) -> String {
    let ran = folder.run(command);
    ran.assert_refused(message);
    assert_eq!(ran.stderr.matches("error: ").count(), 1, "{command}: {}", ran.stderr);
    let names =
        ["brown", "hmm", "hmm-tags", "lstm", "ngram", "states", "tags.conll", "text", "words"];
    assert_eq!(folder.names(), names, "{command}");
    ran.stderr
}

#[test]
fn what_no_gpu_computes_is_refused() {
    let folder = trained();
    let encode = "encode brown text --device cuda -o out.npy";
    let stderr = assert_refused(&folder, encode, "these features are computed on the CPU only");
    assert!(stderr.contains("hint: without `--device`, the CPU computes `paths`"), "{stderr}");
    let tag = "tag run words text --device cuda -o out.conll";
    let stderr = assert_refused(&folder, tag, "this tagger uses no hidden Markov model");
    assert!(stderr.contains("hint: without `--device`, the CPU tags the text"), "{stderr}");
    let score = "score ngram text --device cuda -o out.tsv";
    assert_refused(&folder, score, "this model is scored word by word on the CPU only");
    for model in ["ngram", "hmm"] {
        let sample = format!("sample {model} --device cuda");
        assert_refused(&folder, &sample, "this model draws text on the CPU only");
    }
    for option in ["--prompt a", "--temperature 0.5", "--top-k 2", "--top-p 0.5"] {
        let sample = format!("sample lstm --device cuda {option}");
        let message =
            "prompts, temperature, top-k and top-p sampling are supported on the CPU only";
        assert_refused(&folder, &sample, message);
    }
    for command in [
        "score hmm text",
        "perplexity hmm text",
        "encode hmm text",
        "sample lstm",
        "tag run states text",
    ] {
        let command = format!("{command} --device gpu");
        assert_refused(&folder, &command, "the device must be `cpu` or `cuda`");
    }
}

#[cfg(not(feature = "cuda"))]
#[test]
fn without_the_feature_a_gpu_is_refused() {
    let folder = trained();
    for command in [
        "score hmm text -o out.tsv",
        "score hmm text --per token",
        "perplexity hmm text",
        "encode hmm text --features posterior -o out.npy",
        "encode hmm text --features cluster-posterior",
        "encode hmm text",
        "encode hmm text --features cluster -o out.npy",
        "tag run hmm-tags text",
        "tag run states text",
        "tag run states tags.conll -o out.jsonl",
        "sample lstm",
        "sample lstm --json",
    ] {
        let message = "cannot use the device `cuda`: this program was built without CUDA";
        assert_refused(&folder, &format!("{command} --device cuda"), message);
    }
}

#[test]
fn the_cpu_gives_the_same_output_with_and_without_the_flag() {
    let folder = trained();
    for command in ["encode hmm text", "tag run states text --marginals", "tag run hmm-tags text"] {
        let stdout = |command: &str| folder.run(command).stdout;
        let expected = stdout(command);
        assert_eq!(expected.lines().count(), 12, "{expected}");
        assert_eq!(stdout(&format!("{command} --device cpu")), expected);
    }
}

#[test]
fn the_cpu_draws_the_same_sentences_with_and_without_the_flag() {
    let folder = trained();
    let sample = "sample lstm -n 30 --max-words 7 --seed 3";
    assert_eq!(folder.json(sample), folder.json(&format!("{sample} --device cpu")));
}

/// Each sentence is as frequent as on the CPU; without a GPU there is an error.
#[cfg(feature = "cuda")]
#[test]
fn a_gpu_draws_sentences_as_often_as_the_cpu() {
    use std::io::Write;
    let folder = Folder::new();
    folder.write("text", "a b\nb a\na\n".repeat(30));
    folder.json("train lstm text --dim 8 --epochs 20 --batch-size 4 -o lstm");
    let command = "sample lstm -n 3000 --max-words 3";
    let on_cpu = folder.json(command);
    let ran = folder.run(&format!("{command} --device cuda --json"));
    if ran.code == Some(2) && ran.stderr.contains("cannot use the device `cuda`") {
        let _ = writeln!(std::io::stderr(), "skipped: {}", ran.stderr.trim_end());
        return;
    }
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let on_gpu: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let (on_cpu, on_gpu) =
        (on_cpu["sentences"].as_array().unwrap(), on_gpu["sentences"].as_array().unwrap());
    assert_eq!((on_cpu.len(), on_gpu.len()), (3000, 3000));
    for sentence in ["a", "a b", "b a", "a b a"] {
        let share = |all: &[serde_json::Value]| {
            all.iter().filter(|found| **found == sentence).count() as f64 / 3000.0
        };
        let (a, b) = (share(on_cpu), share(on_gpu));
        // Five standard deviations of the difference are at most 0.065.
        assert!((a - b).abs() < 0.065, "`{sentence}`: {a} on the CPU, {b} on the GPU");
    }
}

/// The rows are those of the CPU; without a GPU there is an error and no file.
#[cfg(feature = "cuda")]
#[test]
fn a_gpu_gives_the_rows_of_the_cpu() {
    use std::io::Write;
    let folder = Folder::with_embedded_corpus();
    folder.json(
        "train hmm train.txt --lowercase --min-count 2 --n-states 64 --n-clusters 4 --dim 16 --epochs 1 \
         -o hmm",
    );
    folder.write("text.txt", "the dog walks .\n\nthe Zyzzogeton\n");
    folder.write("tags.conll", "the D\ndog N\nwalks V\n. .\n\na D\ndog N\nbarks V\n");
    folder.json(
        "tag train tags.conll --column 2 --encoder hmm:posterior --encoder hmm:state -o tagger",
    );
    folder.json(
        "train hmm tags.conll --tags 2 --min-count 2 --word-vectors chars --n-states 16 --n-clusters 2 --dim 8 \
         --epochs 2 -o hmm-tags",
    );
    for command in [
        "score hmm text.txt",
        "score hmm text.txt --per token",
        "encode hmm text.txt --features posterior",
        "encode hmm text.txt --features cluster-posterior",
        "encode hmm text.txt --features state",
        "encode hmm text.txt --features cluster",
        "tag run tagger text.txt --marginals",
        "tag run hmm-tags text.txt --marginals",
    ] {
        let on_cpu = folder.json(&format!("{command} -o cpu.tsv"));
        let ran = folder.run(&format!("{command} --device cuda -o gpu.tsv --json"));
        if ran.code == Some(2) && ran.stderr.contains("cannot use the device `cuda`") {
            assert!(!folder.path().join("gpu.tsv").exists());
            // Unlike `eprintln`, this is not captured by the test harness.
            let _ = writeln!(std::io::stderr(), "skipped: {}", ran.stderr.trim_end());
            return;
        }
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let on_gpu: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(on_gpu["tokens"], on_cpu["tokens"]);
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let (on_cpu, on_gpu) = (read("cpu.tsv"), read("gpu.tsv"));
        assert_eq!(on_cpu.lines().count(), on_gpu.lines().count());
        for (a, b) in on_cpu.split_whitespace().zip(on_gpu.split_whitespace()) {
            let number = |cell: &str| cell.rsplit(':').next().unwrap().parse::<f64>();
            match (number(a), number(b)) {
                (Ok(a), Ok(b)) => assert!((a - b).abs() < 1e-3 * b.abs().max(1.0), "{a} and {b}"),
                _ => assert_eq!(a, b),
            }
        }
    }
}
