//! The tests shared by all models, the ARPA format, the cache, and sharded counts.

use latens_corpus::embedded::{self, Split};
use latens_corpus::{Corpus, Inputs, Preprocessing, Tokenize, VocabLimits, WordId};
use latens_model::{Fit, LanguageModel, ModelWriter, Params, unwatched};
use latens_model_ngram::{Ngram, NgramParams};

fn embedded_corpus() -> Corpus {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.txt");
    std::fs::write(&path, embedded::text(Split::Train)).unwrap();
    let preprocessing = Preprocessing::default().tokenize(Tokenize::Words).lowercase(true);
    let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
    Corpus::read(&Inputs::new([path]), &preprocessing, &limits).unwrap()
}

fn fit(corpus: &Corpus, params: NgramParams) -> Ngram {
    params.fit(corpus).unwrap()
}

#[test]
fn it_is_a_language_model() {
    let corpus = embedded_corpus();
    for params in [
        Ngram::params(),
        Ngram::params().order(1),
        Ngram::params().order(3).min_counts(vec![1, 2, 3]),
        Ngram::params().order(2).cache_weight(0.2).cache_size(7),
    ] {
        latens_testkit::check_language_model(&fit(&corpus, params), &corpus.sentences);
    }
}

#[test]
fn saving_and_opening_is_the_identity_and_damage_is_detected() {
    let corpus = embedded_corpus();
    let model = fit(&corpus, Ngram::params().order(3).cache_weight(0.1));
    let same = |model: &Ngram, again: &Ngram| {
        assert_eq!(model.fitted_with(), again.fitted_with());
        assert_eq!(model.n_ngrams(), again.n_ngrams());
        for sentence in corpus.sentences.iter().take(100) {
            assert_eq!(model.log_prob(sentence), again.log_prob(sentence));
        }
    };
    latens_testkit::check_file_round_trip(
        &model,
        |m, path| m.save(path),
        |path| Ngram::open(path),
        same,
    );
}

#[test]
fn writing_and_reading_arpa_is_the_identity() {
    let corpus = embedded_corpus();
    let model = fit(&corpus, Ngram::params().order(4).min_counts(vec![1, 1, 2]));
    let mut text = Vec::new();
    model.write_arpa(&mut text).unwrap();
    let again = Ngram::read_arpa(&mut &text[..], &corpus.lexicon.preprocessing).unwrap();
    assert_eq!(again.n_ngrams(), model.n_ngrams());
    let (words, again_words) = (&corpus.lexicon.vocab, &again.lexicon().vocab);
    assert_eq!(again_words.len(), words.len());
    for sentence in corpus.sentences.iter().take(200) {
        let renamed: Vec<WordId> = sentence
            .iter()
            .map(|&id| if id == WordId::EOS { id } else { again_words.id(words.word(id)) })
            .collect();
        let (a, b) = (model.log_prob(sentence), again.log_prob(&renamed));
        // Every log-probability is converted to base 10 as `f32` and back.
        assert!((a - b).abs() < 1e-6 * a.abs().max(1.0), "{a} {b}");
    }
}

#[test]
fn missing_histories_of_an_arpa_file_are_added() {
    // `b c` and `a b` are not listed: p(c | a b) = 10^-0.1, p(c | b) = 10^(-0.3-0.5).
    let text = "comment\n\\data\\\nngram 1=5\nngram 2=1\nngram 3=1\n\n\\1-grams:\n-1\t</s>\n-99\t<s>\t-0.2\n\
                -0.7\ta\t-0.4\n-0.6\tb\t-0.3\n-0.5\tc\n\n\\2-grams:\n-0.25\t<s> a\t-0.15\n\n\\3-grams:\n\
                -0.1\ta b c\n\n\\end\\\n";
    let model = Ngram::read_arpa(&mut text.as_bytes(), &Preprocessing::default()).unwrap();
    let log_10 = |sentence: &str| model.log_prob(&model.lexicon().ids(sentence)) / 10f64.ln();
    let expected = [
        ("a", -0.25),
        // p(b | <s> a): back off from `<s> a`, then from `a`.
        ("a b", -0.25 - 0.15 - 0.4 - 0.6),
        ("a b c", -0.25 - 0.15 - 0.4 - 0.6 - 0.1),
        // p(c | <s> b): `<s> b` is not a history, then back off from `b`.
        ("b c", -0.2 - 0.6 - 0.3 - 0.5),
    ];
    for (sentence, expected) in expected {
        assert!((log_10(sentence) - expected).abs() < 1e-6, "{sentence}: {}", log_10(sentence));
    }
    // A file without `<unk>` gives unknown words a probability of zero.
    assert_eq!(log_10("zzz"), f64::NEG_INFINITY);
}

#[test]
fn errors_of_an_invalid_arpa_file_name_the_line() {
    let good = "\\data\\\nngram 1=2\n\n\\1-grams:\n-1\t</s>\n-1\ta\n\n\\end\\\n";
    let read = |text: &str| Ngram::read_arpa(&mut text.as_bytes(), &Preprocessing::default());
    assert!(read(good).is_ok());
    for (from, to, problem) in [
        ("\\data\\", "data", "line 9: unexpected end of file"),
        ("1=2", "1=x", "line 2:"),
        ("1=2", "1=3", "line 8: expected a base-10 logarithm"),
        ("1=2", "1=1", "line 6: expected `\\end\\`"),
        ("-1\ta", "1\ta", "line 6:"),
        ("-1\ta", "nan\ta", "line 6:"),
        ("-1\ta", "-1\ta\tnan", "line 6:"),
        ("-1\ta", "-1\ta\tinf", "line 6:"),
        ("-1\ta", "-1\ta\t1e39", "line 6:"),
        ("-1\ta", "-1\t</s>", "duplicate word `</s>`"),
        ("\\end\\", "\\2-grams:", "expected"),
        ("ngram 1=2", "ngram 1=2\nngram 2=1", "line 9"),
    ] {
        let message = read(&good.replace(from, to)).unwrap_err().to_string();
        assert!(message.contains(problem), "{message} / {problem}");
    }
}

#[test]
fn backoff_probabilities_above_one_are_clamped_to_one() {
    // `a b` is not listed; with the back-off weight of `a`, its probability would be 10^(0.5-0.1).
    let text = "\\data\\\nngram 1=4\nngram 2=0\nngram 3=1\n\n\\1-grams:\n-1\t</s>\n-99\t<s>\n\
                -0.7\ta\t0.5\n-0.1\tb\n\n\\2-grams:\n\n\\3-grams:\n-0.1\ta b </s>\n\n\\end\\\n";
    let model = Ngram::read_arpa(&mut text.as_bytes(), &Preprocessing::default()).unwrap();
    let log_10 = |sentence: &str| model.log_prob(&model.lexicon().ids(sentence)) / 10f64.ln();
    assert!((log_10("a b") + 0.7).abs() < 1e-6, "{}", log_10("a b"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    model.save(&path).unwrap();
    assert!(Ngram::open(&path).is_ok());
}

#[test]
fn a_probability_rounded_above_one_is_written_as_one() {
    let corpus = embedded_corpus();
    let params = Ngram::params().order(1).validate().unwrap();
    let n_words = corpus.lexicon.vocab.len();
    let mut log_probs = vec![-20f32; n_words + 1];
    log_probs[2] = 1e-6;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let writer = ModelWriter::new(Ngram::KIND, &params).lexicon(&corpus.lexicon);
    writer.array("order1.log_probs", &[n_words + 1], &log_probs).save(&path).unwrap();
    let mut arpa = Vec::new();
    Ngram::open(&path).unwrap().write_arpa(&mut arpa).unwrap();
    let again = Ngram::read_arpa(&mut &arpa[..], &Preprocessing::default()).unwrap();
    let word = again.lexicon().vocab.id(corpus.lexicon.vocab.word(WordId(2)));
    assert_eq!(again.log_prob(&[word]), 0.0);
}

#[test]
fn a_cache_of_any_size_allocates_memory_only_for_the_words_read() {
    let plain = fit(&embedded_corpus(), Ngram::params().order(1));
    let (huge, large) =
        (plain.with_cache(0.5, usize::MAX).unwrap(), plain.with_cache(0.5, 100).unwrap());
    let words = [2, 3, 2, 1, 2].map(WordId);
    assert_eq!(huge.log_prob(&words), large.log_prob(&words));
}

#[test]
fn uppercase_unk_is_the_unknown_word_unless_the_file_also_has_lowercase_unk() {
    let text = "\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-1\t</s>\n-0.5\t<UNK>\n-0.7\ta\n\n\
                \\2-grams:\n-0.2\ta <UNK>\n\n\\end\\\n";
    let read = |text: &str| Ngram::read_arpa(&mut text.as_bytes(), &Preprocessing::default());
    let words = |text: &str| {
        let model = read(text).unwrap();
        let mut again = Vec::new();
        model.write_arpa(&mut again).unwrap();
        let again = read(std::str::from_utf8(&again).unwrap()).unwrap();
        assert!(again.lexicon().vocab.words().eq(model.lexicon().vocab.words()));
        let sentence = model.lexicon().ids("a <UNK>");
        assert!((model.log_prob(&sentence) / 10f64.ln() + 0.9).abs() < 1e-6);
        model.lexicon().vocab.words().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(words(text), ["<unk>", "<eos>", "a"]);
    let both = text.replace("1=3", "1=4").replace("-1\t</s>", "-1\t</s>\n-2\t<unk>");
    assert_eq!(words(&both), ["<unk>", "<eos>", "<UNK>", "a"]);
}

#[test]
fn non_ascii_whitespace_is_part_of_a_word() {
    let text =
        "\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t<unk>\n-1\t</s>\n-0.5\t10\u{a0}000\n\n\\end\\\n";
    let model = Ngram::read_arpa(&mut text.as_bytes(), &Preprocessing::default()).unwrap();
    assert_eq!(model.lexicon().vocab.word(WordId(2)), "10\u{a0}000");
    let mut again = Vec::new();
    model.write_arpa(&mut again).unwrap();
    assert!(String::from_utf8(again).unwrap().contains("10\u{a0}000"));
}

#[test]
fn the_cache_remembers_words_across_sentences() {
    let corpus = embedded_corpus();
    let plain = fit(&corpus, Ngram::params().order(2));
    let cached = plain.with_cache(0.25, 3).unwrap();
    let [a, b] = ["the", "soil"].map(|word| corpus.lexicon.vocab.id(word));
    let (mut scorer, mut reference) = (cached.scorer(), plain.scorer());
    // The cache before each read: empty; a; a eos; a eos a; then the first a has left.
    let counts = [(0.0, 0.0), (0.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
    for (word, (count, held)) in [a, WordId::EOS, a, b, a].into_iter().zip(counts) {
        let p = reference.read(word).exp();
        let expected = if held == 0.0 { p } else { 0.75 * p + 0.25 * count / held };
        let found = scorer.read(word).exp();
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

#[test]
fn merged_shards_give_the_model_of_the_whole_text() {
    use latens_counts::{Budget, NgramCounts};
    let corpus = embedded_corpus();
    let params = Ngram::params().order(3).validate().unwrap();
    let whole = fit(&corpus, Ngram::params().order(3));
    let half = corpus.sentences.len() / 2;
    let shards = [0..half, half..corpus.sentences.len()].map(|range| {
        let words = range.map(|i| corpus.sentences.get(i).split_last().unwrap().1);
        let sentences = latens_corpus::Sentences::from_words(words.collect::<Vec<_>>());
        let shard = Corpus { sentences, lexicon: corpus.lexicon.clone() };
        Ngram::count(&params, &shard, &Budget::default(), &mut unwatched).unwrap()
    });
    let counts = NgramCounts::merge(&shards, &Budget::default()).unwrap();
    let merged = Ngram::from_counts(&params, &corpus.lexicon, &counts).unwrap();
    for sentence in corpus.sentences.iter() {
        assert_eq!(merged.log_prob(sentence), whole.log_prob(sentence));
    }
}
