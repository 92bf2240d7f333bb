//! Writes small inputs that the readers accept, from which fuzzing starts: `corpus/TARGET/NAME`.

use flate2::Compression;
use flate2::write::GzEncoder;
use latens::corpus::{Corpus, Documents, Inputs, Preprocessing, VocabLimits};
use latens::counts::{Boundary, Budget, LagCounts, NgramCounts};
use latens::model::compat::{TextFormat, npy, read_text, write_binary};
use latens::model::{Checkpoint, Fit, Params};
use latens::ngram::NgramParams;
use latens_fuzz::forge::Outline;
use latens_fuzz::{file, path};
use std::error::Error;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

const TEXT: &str = "the cat saw the dog\n\nthe dog ran 3.5 <unk> naïve\r\nthe cat ran\n";

const OTHER_TEXTS: [(&str, &str); 5] = [
    ("text_lines", TEXT),
    ("text_docs", "sport\tx\ttrain\tthe ball\nfood\ty\ttest\ta pan\n"),
    ("text_conll", "-DOCSTART- -X-\n\nDogs NNS B-NP\nbark VBP O\n\n\nNo UH O\n"),
    (
        "text_conllu",
        "# text = cannot\n1-2\tcannot\t_\t_\t_\t_\t_\t_\t_\t_\n\
         1\tcan\tcan\tAUX\tMD\t_\t0\troot\t_\t_\n2\tnot\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_\n\n",
    ),
    (
        "text_jsonl",
        "{\"text\":\"a \\u0062\",\"label\":\"x\"}\n\
         {\"text\":[\"c d\",\"e\"],\"tags\":[\"X\",\"Y\"]}\n",
    ),
];

const ARPA: &str = "\\data\\\nngram 1=5\nngram 2=3\nngram 3=1\n\n\
    \\1-grams:\n-1.2\t<unk>\n-99\t<s>\t-0.3\n-0.7\t</s>\n-0.5\ta\t-0.2\n-0.9\tb\t0.1\n\n\
    \\2-grams:\n-0.3\t<s> a\t-0.1\n-0.6\ta b\t-0.4\n-0.2\tb </s>\n\n\
    \\3-grams:\n-0.1\t<s> a b\n\n\\end\\\n";

const VOCAB: &str =
    "vocab.letters letters <unk><eos>ab\nvocab.ends u64 5 10 11 12\nvocab.counts u64 0 2 3 1\n";
const BIGRAMS: &str = r#"{"kind":"ngram","format_version":1,"latens_version":"0","parameters":{"order":2,"cache_weight":0.1,"cache_size":3},"preprocessing":{},"vocab_limits":{}}
order1.log_probs f32 -2 -1 -1.5 -1 -inf
order1.backoffs f32 0 0 -0.5 -0.25 -1
order1.children u64 0 0 1 3 4 4
order2.words u32 3 2 4 2
order2.log_probs f32 -0.5 -1 -0.25 -0.75
"#;
const CLUSTERS: &str = r#"{"kind":"brown","format_version":1,"latens_version":"0","parameters":{"n_clusters":3},"preprocessing":{},"vocab_limits":{}}
clusters u32 2 4294967295 0 1
paths.ends u64 2 6 7
paths.letters letters 0001001
"#;
const PATHS: &str = "00\tthe\t9\n00\ta\t4\n010010\t<unk>\t2\n1\tcat\n";
const STATE: &str = r#"{"kind":"checkpoint","format_version":1,"latens_version":"0","parameters":{"order":2},"checkpoint":{"of":"ngram","data_fingerprint":7,"state":[1.5,null]}}
weights f32 0.5 nan
"#;
const SENTENCES: &str = r#"{"kind":"encoded corpus","version":1,"meta":[{},{}]}
ids u32 2 3 1 1
offsets u64 0 3 4
segments u64 0 1 2
"#;
const DOCUMENTS: &str = r#"{"kind":"encoded documents","version":1,"meta":[{},{}]}
ids u32 2 0 4
offsets u64 0 2 2 3
labels.numbers u32 0 1 0
labels.ends u64 1 2
labels.letters letters xy
splits.numbers u32 0 0 0
splits.ends u64 0
splits.letters letters
extra.ends u64 1
extra.letters letters c
"#;
const LAGS: &str = r#"{"kind":"lag counts","version":1,"meta":{"preprocessing":{},"limits":{},"boundary":"stream","n_lags":1,"n_tokens":6}}
unigrams u64 0 2 3 1
lag1.offsets u64 0 0 1 3 4
lag1.items u32 3 1 2 2
lag1.counts32 u32 1 1 1 1
"#;
const NGRAMS: &str = r#"{"kind":"n-gram counts","version":1,"meta":{"order":2,"n_words":4,"n_tokens":6}}
ngrams.offsets u64 0 0 2 4 5
ngrams.items u64 2 3 2 4 2
ngrams.counts32 u32 1 1 1 2 1
"#;

fn main() -> Result<(), Box<dyn Error>> {
    for (target, text) in OTHER_TEXTS {
        seed(target, "plain", text)?;
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(TEXT.as_bytes())?;
    seed("text_compressed", "gzip", gzip.finish()?)?;
    seed("text_compressed", "zstd", zstd::encode_all(TEXT.as_bytes(), 3)?)?;
    seed("arpa", "trigrams", ARPA)?;
    seed("clusters", "paths", PATHS)?;
    vectors()?;
    // One sentence done, and its three n-grams, each seen once; see the target.
    seed("ngram_resume", "one", [1, 1, 3, 2, 1, 2, 4, 4, 1, 3, 2, 4, 1])?;
    let model = |name: &str, outline: &str| {
        seed("model_arrays", name, outline)?;
        Ok::<_, Box<dyn Error>>(file("outline", &Outline::parse(outline).model()))
    };
    let container = |name: &str, outline: &str| {
        seed("container_arrays", name, outline)?;
        Ok::<_, Box<dyn Error>>(file("outline", &Outline::parse(outline).container()))
    };
    // A reader that refuses its seed would never be fuzzed beyond the first check.
    latens::open(&model("bigrams", &format!("{BIGRAMS}{VOCAB}"))?)?;
    latens::open(&model("clusters", &format!("{CLUSTERS}{VOCAB}"))?)?;
    Checkpoint::open(&model("checkpoint", STATE)?)?;
    Corpus::open(&container("sentences", &format!("{SENTENCES}{VOCAB}"))?)?;
    Documents::open(&container("documents", &format!("{DOCUMENTS}{VOCAB}"))?)?;
    LagCounts::open(&container("lags", &format!("{LAGS}{VOCAB}"))?)?;
    NgramCounts::open(&container("ngrams", NGRAMS)?)?;
    files()
}

/// Two vectors of two numbers in every format, each of which its reader accepts.
fn vectors() -> Result<(), Box<dyn Error>> {
    const WORD2VEC: &str = "2 2\nthe 0.5 -1\ncat 2e-3 0\n";
    const GLOVE: &str = "the 0.5 -1\n. . 2e-3 NaN\n";
    let how = Preprocessing::default();
    for (name, text, format) in
        [("word2vec", WORD2VEC, TextFormat::Word2vec), ("glove", GLOVE, TextFormat::Glove)]
    {
        seed("vectors_text", name, text)?;
        read_text(&mut text.as_bytes(), format, &how)?;
    }
    let (lexicon, vectors) = read_text(&mut WORD2VEC.as_bytes(), TextFormat::Word2vec, &how)?;
    let (mut binary, mut words, mut matrix) = (Vec::new(), Vec::new(), Vec::new());
    write_binary(&lexicon.vocab, &vectors, &mut binary)?;
    seed("vectors_binary", "two", &binary)?;
    npy::write(&lexicon.vocab, &vectors, &mut matrix, &mut words)?;
    seed("vectors_npy", "two", [&words[..], &[0], &matrix].concat())
}

/// The files that the program itself makes of a text.
fn files() -> Result<(), Box<dyn Error>> {
    let (inputs, how) = (Inputs::new([file("text", TEXT.as_bytes())]), Preprocessing::default());
    let corpus = Corpus::encode_to(&path("corpus"), &inputs, &how, &VocabLimits::default())?;
    let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
    Documents::encode_to(&path("documents"), &inputs, &how, &limits)?;
    let (budget, mut watch) = (Budget::default(), |_| ControlFlow::Continue(()));
    let vocab = &corpus.lexicon.vocab;
    NgramCounts::of(&corpus.sentences, vocab, 3, &budget, &mut watch)?.save(&path("ngrams"))?;
    LagCounts::of(&corpus, 2, Boundary::Sentence, &budget, &mut watch)?.save(&path("lags"))?;
    let params = NgramParams::default().order(3).cache_weight(0.1);
    params.clone().fit(&corpus)?.save(path("model"))?;
    let params = params.validate()?;
    let checkpoint = Checkpoint::new("ngram", &params, 7, &[1, 2]);
    checkpoint.with_array("weights", &[2], &[0.5f32, 1.5]).save(&path("checkpoint"))?;
    for name in ["corpus", "documents", "ngrams", "lags"] {
        let bytes = fs::read(path(name))?;
        seed("container_file", name, &bytes)?;
        let (bytes, _checksum) = bytes.split_at(bytes.len() - 8);
        seed("container_file", &format!("{name}-open"), unsealed(bytes, 8, 16)?)?;
    }
    for name in ["model", "checkpoint"] {
        let bytes = fs::read(path(name))?;
        seed("model_file", name, &bytes)?;
        let at = bytes.windows(9).position(|letters| letters == b"\"latens\":").unwrap_or(0);
        seed("model_file", &format!("{name}-open"), unsealed(&bytes, 0, at)?)?;
    }
    Ok(())
}

/// The JSON of a file from `begin` on, NUL, and its arrays: what a target adds checksums to. The
/// length of the JSON is at `length_at`, just before it.
fn unsealed(bytes: &[u8], length_at: usize, begin: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let json_at = length_at + 8;
    let length = u64::from_le_bytes(bytes[length_at..json_at].try_into()?) as usize;
    let (json, arrays) = bytes.split_at(json_at + length);
    Ok([json[begin..].trim_ascii_end(), &[0], arrays].concat())
}

fn seed(target: &str, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(name), bytes)?)
}
