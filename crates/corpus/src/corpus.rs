use crate::encode::{END, EncodedRecord, Sink, encode_known_words, encode_new_words, settle};
use crate::error::ReadError;
use crate::input::inputs::Inputs;
use crate::input::source::{Files, Source};
use crate::lexicon::Lexicon;
use crate::sentences::Sentences;
use crate::words::preprocessing::Preprocessing;
use crate::words::vocab::{Vocab, VocabLimits};
use crate::words::word_id::WordId;

/// Sentences with the lexicon that defines their word ids.
///
/// ```
/// use latens_corpus::{Corpus, Tokenize};
///
/// let corpus = Corpus::from_lines(["the cat sleeps", "a dog barks"])?;
/// assert_eq!(corpus.sentences.len(), 2);
///
/// let lines = ["The cat sleeps.", "The cat barks?"];
/// let corpus = Corpus::reader().tokenize(Tokenize::Words).lowercase(true).min_count(2).read_lines(lines)?;
/// assert_eq!(corpus.lexicon.vocab.words().collect::<Vec<_>>(), ["<unk>", "<eos>", "cat", "the"]);
/// # Ok::<(), latens_corpus::ReadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Corpus {
    /// Preprocessing and vocabulary.
    pub lexicon: Lexicon,
    /// The text as word ids.
    pub sentences: Sentences,
}

impl Corpus {
    /// Reads a text into memory and learns its vocabulary.
    ///
    /// [`Corpus::reader`] does the same with options set one by one.
    pub fn read(
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<Corpus, ReadError> {
        Corpus::read_source(&mut Files::new(inputs), preprocessing, limits)
    }

    pub(crate) fn read_source(
        source: &mut impl Source,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<Corpus, ReadError> {
        let mut flat = FlatSentences::default();
        let seen = encode_new_words(source, preprocessing, &mut flat)?;
        let mut counts = vec![0u64; seen.len()];
        for &number in flat.numbers.iter().filter(|&&number| number != END) {
            counts[number as usize] += 1;
        }
        let (vocab, ids) = settle(&seen, &counts, flat.n_sentences(), limits, |_| true);
        let sentences = flat.finish(|number| ids[number as usize]);
        let lexicon = Lexicon::new(*preprocessing, *limits, vocab);
        Ok(Corpus { lexicon, sentences })
    }

    /// Returns the same text with a smaller vocabulary: words outside the limits become
    /// [`WordId::UNK`].
    pub fn limited(&self, limits: &VocabLimits) -> Corpus {
        let Lexicon { preprocessing, vocab: all, .. } = &self.lexicon;
        let vocab = Vocab::from_counts(all.words().zip(all.counts().iter().copied()), limits);
        let id = |&id: &WordId| if id == WordId::EOS { id } else { vocab.id(all.word(id)) };
        let ids = self.sentences.tokens().iter().map(id).collect();
        let (offsets, segments) = (self.sentences.offsets(), self.sentences.segment_bounds());
        let sentences = Sentences::from_encoded(ids, offsets.to_vec(), segments.to_vec());
        Corpus { lexicon: Lexicon::new(*preprocessing, *limits, vocab), sentences }
    }

    /// Returns the same text with [`WordId::UNK`] for words that occur once, for models to which unknown words would be
    /// impossible otherwise. `None` if the text already has unknown words, or if none or all of its words occur once.
    pub fn with_unknown_words(&self) -> Option<Corpus> {
        let vocab = &self.lexicon.vocab;
        let counts = || vocab.counts().iter().skip(WordId::EOS.index() + 1);
        // Text in which every word occurs once would have no words left.
        let has_both = counts().any(|&count| count == 1) && counts().any(|&count| count > 1);
        if vocab.count(WordId::UNK) > 0 || !has_both {
            return None;
        }
        Some(self.limited(&VocabLimits { min_count: 2, ..self.lexicon.limits }))
    }
}

impl Lexicon {
    /// Reads a text into memory with this vocabulary; all other words become [`WordId::UNK`].
    pub fn read(&self, inputs: &Inputs) -> Result<Sentences, ReadError> {
        let mut flat = FlatSentences::default();
        encode_known_words(&mut Files::new(inputs), self, &mut flat)?;
        Ok(flat.finish(WordId))
    }

    /// Encodes text in memory, one sentence per line, with this vocabulary; all other words become
    /// [`WordId::UNK`].
    ///
    /// ```
    /// # use latens_corpus::{Corpus, WordId};
    /// let train = Corpus::from_lines(["the cat sleeps", "a dog barks"])?;
    /// let test = train.lexicon.sentences(["the dog purrs"]);
    /// assert_eq!(test.get(0)[2..], [WordId::UNK, WordId::EOS]);
    /// # Ok::<(), latens_corpus::ReadError>(())
    /// ```
    pub fn sentences(&self, lines: impl IntoIterator<Item = impl AsRef<str>>) -> Sentences {
        Sentences::from_words(lines.into_iter().map(|line| self.ids(line.as_ref())))
    }
}

/// Sentences in memory while they are read.
#[derive(Default)]
struct FlatSentences {
    numbers: Vec<u32>,
    offsets: Vec<u64>,
    segments: Vec<u64>,
}

impl Sink for FlatSentences {
    fn record(&mut self, record: EncodedRecord<'_>) -> Result<(), ReadError> {
        self.offsets.push(self.numbers.len() as u64);
        self.numbers.extend_from_slice(record.words);
        self.numbers.push(END);
        Ok(())
    }

    fn end_of_file(&mut self) -> Result<(), ReadError> {
        self.segments.push(self.n_sentences());
        Ok(())
    }
}

impl FlatSentences {
    fn n_sentences(&self) -> u64 {
        self.offsets.len() as u64
    }

    fn finish(mut self, id: impl Fn(u32) -> WordId) -> Sentences {
        self.offsets.push(self.numbers.len() as u64);
        self.segments.insert(0, 0);
        for number in &mut self.numbers {
            *number = if *number == END { WordId::EOS.0 } else { id(*number).0 };
        }
        let ids: Vec<WordId> = bytemuck::allocation::cast_vec(self.numbers);
        Sentences::from_encoded(ids, self.offsets, self.segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::vocab::{EOS, UNK};
    use std::fs;
    use std::path::PathBuf;

    fn file(folder: &tempfile::TempDir, name: &str, text: &[u8]) -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn read(name: &str, text: &[u8]) -> Result<Corpus, ReadError> {
        let folder = tempfile::tempdir().unwrap();
        let inputs = Inputs::new([file(&folder, name, text)]);
        Corpus::read(&inputs, &Preprocessing::default(), &VocabLimits::default())
    }

    /// The corpus as words, to compare with the text.
    fn words(corpus: &Corpus) -> Vec<Vec<&str>> {
        let sentences = corpus.sentences.iter();
        sentences.map(|s| s.iter().map(|&id| corpus.lexicon.vocab.word(id)).collect()).collect()
    }

    #[test]
    fn lines_become_sentences_and_blank_lines_empty_ones() {
        let corpus = read("a.txt", "b a b\n\n <unk> é <eos>\r\nlast".as_bytes()).unwrap();
        let expected: [&[&str]; 4] =
            [&["b", "a", "b", EOS], &[EOS], &[UNK, "é", UNK, EOS], &["last", EOS]];
        assert_eq!(words(&corpus), expected);
        assert_eq!(
            corpus.lexicon.vocab.words().collect::<Vec<_>>(),
            [UNK, EOS, "b", "a", "last", "é"]
        );
        assert_eq!(corpus.lexicon.vocab.counts(), [2, 4, 2, 1, 1, 1]);
    }

    #[test]
    fn every_format_is_read() {
        let conll = read("a.conll", b"-DOCSTART- -X-\n\nDogs NNS\nbark VBP\n\n\nNo UH\n").unwrap();
        assert_eq!(words(&conll), [vec!["Dogs", "bark", EOS], vec!["No", EOS]]);
        let row = |id: &str, word: &str| format!("{id}\t{word}{}\n", "\t_".repeat(8));
        let text =
            format!("# text\n{}{}{}\n", row("1-2", "cannot"), row("1", "can"), row("2", "not"));
        assert_eq!(words(&read("a.conllu", text.as_bytes()).unwrap()), [vec!["can", "not", EOS]]);
        let json =
            read("a.jsonl", b"{\"text\":\"a \\u0062\"}\n{\"text\":[\"c d\"],\"label\":\"x\"}\n");
        assert_eq!(words(&json.unwrap()), [vec!["a", "b", EOS], vec!["c d", EOS]]);
        let json =
            read("a.jsonl", b"{\"text\":\"a\",\"label\":3,\"tags\":null}\n{\"text\":\"\"}\n");
        assert_eq!(words(&json.unwrap()), [vec!["a", EOS], vec![EOS]]);
        let docs = read("a.tsv", b"sport\tthe ball\n\nfood\ta pan\n").unwrap();
        assert_eq!(words(&docs), [vec!["the", "ball", EOS], vec!["a", "pan", EOS]]);
    }

    #[cfg(feature = "compression")]
    #[test]
    fn compressed_files_give_the_text_of_the_plain_file() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let text = "one two\nthree\n".repeat(1000);
        let plain = read("a.txt", text.as_bytes()).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gz = file(&folder, "a.gz", &gzip.finish().unwrap());
        let zst = file(&folder, "a.txt.zst", &zstd::encode_all(text.as_bytes(), 1).unwrap());
        for path in [gz, zst] {
            let inputs = Inputs::new([path]);
            let corpus =
                Corpus::read(&inputs, &Preprocessing::default(), &VocabLimits::default()).unwrap();
            assert_eq!(corpus.sentences.tokens(), plain.sentences.tokens());
        }
    }

    #[test]
    fn a_text_of_many_blocks_is_read_whole() {
        // The lines have very different lengths, so blocks end in the middle of some.
        let lines: Vec<String> = (0..3000)
            .map(|i| vec![format!("w{}", i % 97); 1 + (i * 7919) % 400].join(" "))
            .collect();
        let corpus = read("a.txt", lines.join("\n").as_bytes()).unwrap();
        assert_eq!(corpus.sentences.len(), lines.len());
        for (line, sentence) in lines.iter().zip(words(&corpus)) {
            assert_eq!(format!("{line} {EOS}"), sentence.join(" "));
        }
        let conll = lines.iter().map(|l| l.replace(' ', " x\n") + " x\n\n").collect::<String>();
        let again = read("a.conll", conll.as_bytes()).unwrap();
        assert_eq!(again.sentences.tokens(), corpus.sentences.tokens());
    }

    #[test]
    fn a_given_vocabulary_maps_new_words_to_unknown() {
        let corpus = read("a.txt", b"a b\n").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let inputs =
            Inputs::new([file(&folder, "b.txt", b"b c\n"), file(&folder, "c.txt", b"a\n")]);
        let sentences = corpus.lexicon.read(&inputs).unwrap();
        let other = Corpus { sentences, ..corpus };
        assert_eq!(words(&other), [vec!["b", UNK, EOS], vec!["a", EOS]]);
        assert_eq!(other.sentences.segments().map(<[_]>::len).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(other.lexicon.ids("b c"), other.sentences.get(0)[..2]);
    }

    #[test]
    fn limited_agrees_with_reading_with_limits() {
        let text = b"b a b\n\n<unk> a c <eos>\n";
        let all = read("a.txt", text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let inputs = Inputs::new([file(&folder, "a.txt", text)]);
        let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
        let expected = Corpus::read(&inputs, &Preprocessing::default(), &limits).unwrap();
        let limited = all.limited(&limits);
        assert_eq!(words(&limited), words(&expected));
        assert_eq!(limited.lexicon.vocab.counts(), expected.lexicon.vocab.counts());
        assert_eq!(limited.sentences.segment_bounds(), expected.sentences.segment_bounds());
    }

    #[test]
    fn words_that_occur_once_become_unknown_where_nothing_is() {
        let corpus = Corpus::from_lines(["b a b", "c"]).unwrap();
        let limited = corpus.with_unknown_words().unwrap();
        assert_eq!(limited.lexicon.limits.min_count, 2);
        let ids: Vec<&[WordId]> = (0..2).map(|at| limited.sentences.get(at)).collect();
        let b = limited.lexicon.vocab.id("b");
        assert_eq!(ids[0], [b, WordId::UNK, b, WordId::EOS]);
        assert_eq!(ids[1], [WordId::UNK, WordId::EOS]);
        for text in ["b a b <unk>", "a b", "a b a b"] {
            assert!(Corpus::from_lines([text]).unwrap().with_unknown_words().is_none(), "{text}");
        }
    }

    #[test]
    fn a_census_agrees_with_the_corpus() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = Inputs::new([file(&folder, "a.txt", b"b a b\n\n<unk> <eos>\n")]);
        let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
        let census = Lexicon::learn(&inputs, &Preprocessing::default(), &limits).unwrap();
        let corpus = Corpus::read(&inputs, &Preprocessing::default(), &limits).unwrap();
        assert_eq!(census.n_tokens, corpus.sentences.n_tokens() as u64);
        assert_eq!(census.n_sentences, 3);
        let (found, expected) = (&census.lexicon.vocab, &corpus.lexicon.vocab);
        assert!(found.words().eq(expected.words()) && found.counts() == expected.counts());
    }

    #[test]
    fn the_censuses_of_parts_merge_to_that_of_the_text() {
        let folder = tempfile::tempdir().unwrap();
        let texts: [&[u8]; 3] = [b"b a b\n\n<unk> <eos>\n", b"c a\n", b"b d d\na\n"];
        let paths: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(i, text)| file(&folder, &format!("{i}"), text))
            .collect();
        let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
        let learn = |paths: &[PathBuf], limits: &VocabLimits| {
            Lexicon::learn(&Inputs::new(paths), &Preprocessing::default(), limits).unwrap()
        };
        let parts: Vec<_> =
            paths.chunks(1).map(|path| learn(path, &VocabLimits::default())).collect();
        let (merged, whole) = (crate::Census::merge(&parts, &limits), learn(&paths, &limits));
        assert_eq!((merged.n_tokens, merged.n_sentences), (whole.n_tokens, whole.n_sentences));
        let (found, expected) = (&merged.lexicon.vocab, &whole.lexicon.vocab);
        assert!(found.words().eq(expected.words()) && found.counts() == expected.counts());
    }

    #[test]
    fn invalid_text_is_refused_with_its_line() {
        let message = |name: &str, text: &[u8]| read(name, text).unwrap_err().to_string();
        assert!(message("a.txt", b"").ends_with("is empty"));
        assert!(message("a.txt", b"\n \n").contains("no words in"));
        assert!(message("a.txt", b"a\nb \xff\n").ends_with("invalid bytes in line 2"));
        assert!(message("a.txt", b"a\nb\nc\0d\n").ends_with("NUL byte in line 3"));
        assert!(
            message("a.jsonl", b"{\"text\":\"a\"}\n{\"txt\":1}\n")
                .contains("line 2: not a JSON object")
        );
        assert!(
            message("a.jsonl", b"{\"text\":\"a b\",\"tags\":[\"X\"]}\n").contains("1 tags for 2")
        );
        assert!(message("a.jsonl", b"{\"text\":[\"a\\tb\"]}\n").contains("line 1: the token"));
        assert!(message("a.jsonl", b"{\"text\":3}\n").contains("`text` must be"));
        let empty_form = format!("1\t{}\n", "\t_".repeat(8));
        assert!(message("a.conllu", empty_form.as_bytes()).contains("line 1: the token"));
        assert!(
            message("a.conllu", b"1\ta\n")
                .contains("line 1: expected the 10 tab-separated columns of CoNLL-U, found 2")
        );
        assert!(message("a.tsv", b"no tab\n").contains("expected 2 tab-separated fields, found 1"));
        assert!(message("a.gz", b"no gzip").contains("cannot read"));
        assert!(message("a.zst", b"no zstd").contains("cannot read"));
    }

    #[test]
    fn a_watch_receives_the_number_of_bytes_read() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicU64, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let mut inputs = Inputs::new([file(&folder, "a", b"a b\n"), file(&folder, "b", b"c\n")]);
        let seen = Arc::new(AtomicU64::new(0));
        let last = seen.clone();
        inputs.watch = Some(crate::ReadWatch::new(move |n| last.store(n, Ordering::Relaxed)));
        Corpus::read(&inputs, &Preprocessing::default(), &VocabLimits::default()).unwrap();
        assert_eq!(seen.load(Ordering::Relaxed), 6);
    }

    #[test]
    fn invalid_bytes_can_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let mut inputs = Inputs::new([file(&folder, "a.txt", b"a\xff b\0\n")]);
        inputs.invalid = crate::Invalid::Replace;
        let limits = VocabLimits::default();
        let corpus = Corpus::read(&inputs, &Preprocessing::default(), &limits).unwrap();
        assert_eq!(words(&corpus), [vec!["a\u{FFFD}", "b\u{FFFD}", EOS]]);
    }
}
