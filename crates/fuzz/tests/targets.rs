//! Every fuzz target over its seeds and a fixed set of mutations of them, without a fuzzer.

use latens::KINDS;
use latens::corpus::{Corpus, Documents};
use latens::counts::{LagCounts, NgramCounts};
use latens::model::shards::{Broadcast, Statistics};
use latens_fuzz::mutation::mutated;
use latens_fuzz::outline::{Outline, outline_of_model, outline_of_shards};
use latens_fuzz::scratch::file;
use latens_fuzz::seeds::{self, Seed};
use latens_fuzz::targets::{TARGETS, Target, find};
use latens_fuzz::trainings::{TRAININGS, files_of};
use latens_fuzz::use_shards::RUNS;
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static SEEDS: LazyLock<Vec<Seed>> = LazyLock::new(|| seeds::all().expect("seeds can be made"));

fn seeds_of(target: &str) -> Vec<&'static Seed> {
    SEEDS.iter().filter(|seed| seed.target == target).collect()
}

/// Runs a target. Keeps the input and returns its path if the target panics.
fn run(target: &Target, name: &str, input: &[u8]) -> Option<PathBuf> {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).err()?;
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", target.name));
    fs::write(&kept, input).expect("there is room for a small file");
    Some(kept)
}

fn check(name: &str, n_mutations: u32) {
    let target = find(name).expect("the target exists");
    let seeds = seeds_of(name);
    assert!(!seeds.is_empty());
    let mut panics = Vec::new();
    for (i, seed) in seeds.iter().enumerate() {
        panics.extend(run(target, &seed.name, &seed.bytes));
        let other = seeds[(i + 1) % seeds.len()];
        for number in 0..n_mutations.div_ceil(seeds.len() as u32) {
            let input = mutated(&seed.bytes, &other.bytes, target.takes_outlines, number);
            panics.extend(run(target, &format!("{}-{number}", seed.name), &input));
        }
    }
    assert!(panics.is_empty(), "the target `{name}` panics on these inputs: {panics:#?}");
}

macro_rules! targets {
    ($($name:ident: $n_mutations:literal,)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), $n_mutations);
        })*

        #[test]
        fn every_target_has_a_test() {
            let tested: BTreeSet<&str> = [$(stringify!($name)),*].into();
            let expected: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(tested, expected);
        }
    };
}

targets! {
    arpa: 2000,
    clusters: 2000,
    container_arrays: 2000,
    container_file: 1000,
    model_arrays: 1500,
    model_file: 1000,
    resume: 600,
    shards: 1500,
    text_compressed: 500,
    text_conll: 1000,
    text_conllu: 1000,
    text_docs: 1000,
    text_jsonl: 1000,
    text_lines: 1000,
    token_ids: 2000,
    vectors_binary: 2000,
    vectors_npy: 2000,
    vectors_text: 2000,
    vocab: 2000,
}

#[test]
fn seeds_are_the_same_in_every_run() {
    let again = seeds::all().unwrap();
    assert_eq!(again.len(), SEEDS.len());
    for (seed, again) in SEEDS.iter().zip(again) {
        assert!(seed.bytes == again.bytes, "{} {}", seed.target, seed.name);
    }
}

/// A reader that rejects its seed would never be fuzzed beyond the first check.
#[test]
fn every_kind_of_model_has_seeds_that_open_as_files_and_as_outlines() {
    let expected: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
    for target in ["model_file", "model_arrays"] {
        let is_model =
            |seed: &&&Seed| !seed.name.contains("checkpoint") && !seed.name.contains("-open");
        let kinds: BTreeSet<&str> = seeds_of(target)
            .iter()
            .filter(is_model)
            .map(|seed| {
                let bytes = match target {
                    "model_file" => seed.bytes.clone(),
                    _ => Outline::parse(std::str::from_utf8(&seed.bytes).unwrap()).model(),
                };
                let model = latens::open(file("seed", &bytes));
                model.unwrap_or_else(|error| panic!("{}: {error}", seed.name)).kind()
            })
            .collect();
        assert_eq!(kinds, expected, "{target}");
    }
}

#[test]
fn every_outline_of_a_model_is_the_whole_file() {
    for training in TRAININGS {
        let (bytes, _) = files_of(training);
        let outline = outline_of_model(&bytes);
        let forged = Outline::parse(&outline).model();
        // Not byte for byte: empty arrays are at the same place in the file, and have no order.
        assert_eq!(forged.len(), bytes.len(), "{}", training.name);
        assert_eq!(outline_of_model(&forged), outline, "{}", training.name);
    }
}

/// A resumed training that is refused would not be fuzzed. Every trainer must offer a checkpoint: front ends wait for one
/// before they stop it.
#[test]
fn every_training_resumes_from_its_seed() {
    for training in TRAININGS {
        let name = format!("{}-0", training.name);
        let seed = seeds_of("resume").into_iter().find(|seed| seed.name == name);
        let seed = seed.unwrap_or_else(|| panic!("`{}` offers no checkpoint", training.name));
        let text = std::str::from_utf8(&seed.bytes).unwrap();
        let outline = text.split_once('\n').unwrap().1;
        let path = file("checkpoint", &Outline::parse(outline).model());
        let checkpoint = latens::model::Checkpoint::open(path).unwrap();
        let model = (training.fit)(Some(&checkpoint), &mut latens::model::unwatched);
        assert!(model.is_ok(), "{}: {:?}", training.name, model.err());
    }
}

#[test]
fn every_container_is_opened_from_its_outline() {
    for seed in seeds_of("container_arrays") {
        let outline = std::str::from_utf8(&seed.bytes).unwrap();
        let path = file("container", &Outline::parse(outline).container());
        let opens = match seed.name.as_str() {
            "sentences" => Corpus::open(&path).is_ok(),
            "documents" => Documents::open(&path).is_ok(),
            "lags" => LagCounts::open(&path).is_ok(),
            _ => NgramCounts::open(&path).is_ok(),
        };
        assert!(opens, "{}", seed.name);
    }
}

/// Inputs that fuzzing found once.
#[test]
fn found_inputs_are_read_or_refused() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found");
    let mut n_inputs = 0;
    for folder in fs::read_dir(found).unwrap().map(|entry| entry.unwrap().path()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let target = find(name).expect("folders are called after targets");
        for input in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            n_inputs += 1;
            (target.run)(&fs::read(&input).unwrap());
        }
    }
    assert!(n_inputs >= 10);
}

/// Outlines of broadcasts and statistics stand for whole files: the run that they are taken from goes on with them.
#[test]
fn every_outline_of_shards_is_the_whole_file() {
    for run in RUNS.iter() {
        for (broadcast, statistics) in &run.rounds {
            for bytes in [broadcast.to_bytes(), statistics[0].to_bytes()] {
                let outline = outline_of_shards(&bytes);
                let forged = Outline::parse(&outline).container();
                assert_eq!(outline_of_shards(&forged), outline, "{}", run.kind.kind());
                let reads = Broadcast::from_bytes(&forged, "b").is_ok()
                    || Statistics::from_bytes(&forged, "s").is_ok();
                assert!(reads, "{}", run.kind.kind());
            }
        }
    }
}
