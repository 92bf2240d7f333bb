//! Seeds written by hand.

pub(super) const TEXT: &str = "the cat saw the dog\n\nthe dog ran 3.5 <unk> naïve\r\nthe cat ran\n";

/// Target, name, and text.
pub(super) const OTHER_TEXTS: [(&str, &str, &str); 8] = [
    ("text_lines", "plain", TEXT),
    ("text_lines", "odd", "\u{feff}a b\r\n\t\r\n  \n\u{2028}c\u{a0}d e\u{301}"),
    ("text_docs", "plain", "sport\tx\ttrain\tthe ball\nfood\ty\ttest\ta pan\n"),
    ("text_conll", "plain", "-DOCSTART- -X-\n\nDogs NNS B-NP\nbark VBP O\n\n\nNo UH O\n"),
    (
        "text_conllu",
        "plain",
        "# text = cannot\n1-2\tcannot\t_\t_\t_\t_\t_\t_\t_\t_\n\
         1\tcan\tcan\tAUX\tMD\t_\t0\troot\t_\t_\n2\tnot\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_\n\n",
    ),
    (
        "text_conllu",
        "empty-node",
        "1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n1.1\tb\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
    ),
    ("text_jsonl", "label", "{\"text\":\"a \\u0062\",\"label\":\"x\"}\n"),
    ("text_jsonl", "tags", "{\"text\":[\"c d\",\"e\"],\"tags\":[\"X\",\"Y\"]}\n"),
];

pub(super) const ARPA: &str = "\\data\\\nngram 1=5\nngram 2=3\nngram 3=1\n\n\
    \\1-grams:\n-1.2\t<unk>\n-99\t<s>\t-0.3\n-0.7\t</s>\n-0.5\ta\t-0.2\n-0.9\tb\t0.1\n\n\
    \\2-grams:\n-0.3\t<s> a\t-0.1\n-0.6\ta b\t-0.4\n-0.2\tb </s>\n\n\
    \\3-grams:\n-0.1\t<s> a b\n\n\\end\\\n";

pub(super) const PATHS: &str = "00\tthe\t9\n00\ta\t4\n010010\t<unk>\t2\n1\tcat\n";

pub(super) const VECTORS_WORD2VEC: &str = "2 2\nthe 0.5 -1\ncat 2e-3 0\n";
pub(super) const VECTORS_GLOVE: &str = "the 0.5 -1\n. . 2e-3 7\n";

pub(super) const VOCAB: &str =
    "vocab.letters letters <unk><eos>ab\nvocab.ends u64 5 10 11 12\nvocab.counts u64 0 2 3 1\n";
pub(super) const SENTENCES: &str = r#"{"kind":"encoded corpus","version":1,"meta":[{},{}]}
ids u32 2 3 1 1
offsets u64 0 3 4
segments u64 0 1 2
"#;
pub(super) const DOCUMENTS: &str = r#"{"kind":"encoded documents","version":1,"meta":[{},{}]}
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
pub(super) const LAGS: &str = r#"{"kind":"lag counts","version":1,"meta":{"preprocessing":{},"limits":{},"boundary":"stream","n_lags":1,"n_tokens":6}}
unigrams u64 0 2 3 1
lag1.offsets u64 0 0 1 3 4
lag1.items u32 3 1 2 2
lag1.counts32 u32 1 1 1 1
"#;
pub(super) const NGRAMS: &str = r#"{"kind":"n-gram counts","version":1,"meta":{"order":2,"n_words":4,"n_tokens":6}}
ngrams.offsets u64 0 0 2 4 5
ngrams.items u64 2 3 2 4 2
ngrams.counts32 u32 1 1 1 2 1
"#;
