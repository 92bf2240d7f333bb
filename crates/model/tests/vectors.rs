//! Word vectors in the formats of other programs, and the errors for malformed files.

use latens_corpus::{EOS, Lexicon, Preprocessing, UNK, Vocab, VocabLimits, WordId};
use latens_model::compat::{
    TextFormat, VectorsError, npy, read_binary, read_text, write_binary, write_text,
};
use latens_model::{Vectors, WordVectors};
use latens_testkit::{check_file_round_trip, check_token_encoder};

type Read = Result<(Lexicon, WordVectors), VectorsError>;

fn text(text: impl AsRef<[u8]>, format: TextFormat) -> Read {
    read_text(&mut text.as_ref(), format, &Preprocessing::default())
}

fn glove(input: impl AsRef<[u8]>) -> Read {
    text(input, TextFormat::Glove)
}

fn word2vec(input: impl AsRef<[u8]>) -> Read {
    text(input, TextFormat::Word2vec)
}

fn binary(input: impl AsRef<[u8]>) -> Read {
    read_binary(&mut input.as_ref(), &Preprocessing::default())
}

fn matrix(matrix: impl AsRef<[u8]>, words: impl AsRef<[u8]>) -> Read {
    npy::read(&mut matrix.as_ref(), &mut words.as_ref(), &Preprocessing::default())
}

#[track_caller]
fn assert_refused(read: Read, message: &str) {
    let error = read.unwrap_err().to_string();
    assert!(error.contains(message), "{message:?} is not in {error:?}");
}

/// Three words with vectors, including a special word, and one word without.
fn toy() -> (Vocab, WordVectors) {
    let values = vec![0.1, -2.5e-8, 0., 0., f32::MIN_POSITIVE, 1e30, 0., 0., 1.0 / 3.0, f32::MAX];
    let vocab = Vocab::from_parts([UNK, EOS, "the", "none", "été"], vec![0; 5]).unwrap();
    (vocab, WordVectors::new(2, values).unwrap())
}

#[track_caller]
fn assert_toy((lexicon, vectors): (Lexicon, WordVectors)) {
    let (vocab, expected) = toy();
    let words: Vec<&str> = lexicon.vocab.words().collect();
    assert_eq!(words, [UNK, EOS, "the", "été"]);
    for word in [UNK, "the", "été"] {
        assert_eq!(vectors.get(lexicon.vocab.id(word)), expected.get(vocab.id(word)), "{word}");
    }
    assert_eq!(vectors.get(WordId::EOS), None);
}

#[test]
fn all_formats_round_trip_bit_for_bit() {
    let (vocab, vectors) = toy();
    for format in [TextFormat::Word2vec, TextFormat::Glove] {
        let mut out = Vec::new();
        write_text(&vocab, &vectors, format, &mut out).unwrap();
        assert_toy(text(out, format).unwrap());
    }
    let mut out = Vec::new();
    write_binary(&vocab, &vectors, &mut out).unwrap();
    assert_toy(binary(out).unwrap());
    let (mut numbers, mut words) = (Vec::new(), Vec::new());
    npy::write(&vocab, &vectors, &mut numbers, &mut words).unwrap();
    assert_eq!(words, "<unk>\nthe\nété\n".as_bytes());
    assert_toy(matrix(numbers, words).unwrap());
}

#[test]
fn files_of_other_programs_are_read() {
    // fastText ends lines with a space, Windows uses CRLF, and gensim writes binary files without line breaks.
    for (lexicon, vectors) in [
        word2vec("2 3\nthe 1 2 3 \ncat -1 0.5 1e-3 \n").unwrap(),
        word2vec("2 3\r\nthe 1 2 3\r\ncat -1 .5 0.001\r\n\r\n").unwrap(),
        glove("the 1 2 3\ncat -1 0.5 0.001").unwrap(),
        binary(
            [b"2 3\nthe ", &bytes(&[1., 2., 3.])[..], b"cat ", &bytes(&[-1., 0.5, 1e-3])].concat(),
        )
        .unwrap(),
    ] {
        let (the, cat) = (lexicon.vocab.id("the"), lexicon.vocab.id("cat"));
        assert_eq!(vectors.get(the), Some(&[1., 2., 3.][..]));
        assert_eq!(vectors.get(cat), Some(&[-1., 0.5, 1e-3][..]));
        assert_eq!(vectors.n_words(), 4);
    }
    // GloVe has words with spaces.
    let (lexicon, vectors) = glove("the 1 2\n. . . 3 4\nat name@domain.com 5 6\n").unwrap();
    assert_eq!(vectors.get(lexicon.vocab.id(". . .")), Some(&[3., 4.][..]));
    assert_eq!(vectors.get(lexicon.vocab.id("at name@domain.com")), Some(&[5., 6.][..]));
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn malformed_text_is_rejected_with_its_line_number() {
    assert_refused(glove(""), "the file has no vectors");
    assert_refused(glove("\n\n"), "the file has no vectors");
    assert_refused(
        glove("a 1 2\nb 1 nan\n"),
        "line 2: value 2 of the word `b` is NaN, must be finite",
    );
    assert_refused(glove("a 1 -inf\n"), "line 1: value 2 of the word `a` is -inf");
    assert_refused(glove("a 1 1e39\n"), "line 1: value 2 of the word `a` is inf");
    assert_refused(glove("a 1 2\nb 1\n"), "line 2: 2 numbers expected after the word, found 1");
    assert_refused(glove("a 1 2\nb 1 2 3\n"), "line 2: 2 numbers expected after the word, found 3");
    assert_refused(glove("a 1 2\n1 2\n"), "line 2: 2 numbers expected after the word, found 1");
    assert_refused(glove("a 1 2\nb 1 x\n"), "line 2: `x` is not a number");
    assert_refused(glove("a 1\nb 1\na 2\n"), "line 3: duplicate word `a`, first in line 1");
    assert_refused(glove("<unk> 1\n<unk> 2\n"), "line 2: duplicate word `<unk>`");
    assert_refused(glove(b"a 1\n\xff 1\n"), "line 2: the word `\u{fffd}` is not UTF-8");
    assert_refused(glove("word\n"), "line 1: expected a word and its values");
    assert_refused(word2vec(""), "the file has no vectors");
    assert_refused(
        word2vec("the 1 2 3\n"),
        "the first line must have the number of words and the dimension, got `the 1 2 3`",
    );
    assert_refused(word2vec("2 0\n"), "the first line must have the number of words");
    assert_refused(word2vec("2 2\na 1 2\n"), "expected 2 vectors, found 1");
    assert_refused(word2vec("1 2\na 1 2\nb 1 2\n"), "expected 1 vectors, found more");
    assert_refused(word2vec("0 2\n"), "the file has no vectors");
    assert_refused(word2vec("1 3\na 1 2\n"), "line 2: 3 numbers expected after the word, found 2");
    assert_refused(word2vec("99999999999999 65536\na 1\n"), "65536 numbers expected");
}

#[test]
fn malformed_binary_files_are_rejected_with_the_vector_number() {
    let of = |header: &str, entries: &[(&[u8], &[f32])]| {
        let entry = |&(word, values): &(&[u8], &[f32])| [word, b" ", &bytes(values)].concat();
        [header.as_bytes().to_vec(), entries.iter().flat_map(entry).collect()].concat()
    };
    let good = of("2 2\n", &[(b"a", &[1., 2.]), (b"b", &[1., 2.])]);
    binary(&good).unwrap();
    for length in 0..good.len() {
        binary(&good[..length]).unwrap_err();
    }
    assert_refused(binary(&good[..good.len() - 1]), "expected 2 vectors, found 1");
    assert_refused(binary([&good[..], b"c"].concat()), "expected 2 vectors, found more");
    assert_refused(binary(""), "the first line must have the number of words");
    assert_refused(binary(of("9999999999 65536\n", &[])), "expected 9999999999 vectors, found 0");
    assert_refused(
        binary(of("1 1\n", &[(&[b'x'; 70_000], &[1.])])),
        "vector 1: the word is too long",
    );
    assert_refused(
        binary(of("1 1\n", &[(b"a", &[f32::NAN])])),
        "vector 1: value 1 of the word `a` is NaN",
    );
    assert_refused(
        binary(of("2 1\n", &[(b"a", &[1.]), (b"a", &[1.])])),
        "vector 2: duplicate word `a`, first in vector 1",
    );
    assert_refused(binary(of("1 1\n", &[(b"\xff", &[1.])])), "vector 1: the word");
    assert_refused(binary(of("1 1\n", &[(b"", &[1.])])), "vector 1: the word is missing");
}

#[test]
fn a_numpy_matrix_is_read() {
    // numpy.save of numpy.array([[1.5, -2.0]]), which has 64-bit floats.
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }";
    let numbers: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let file = |header: &str| {
        [b"\x93NUMPY\x01\x00\x76\x00", format!("{header:117}\n").as_bytes(), &numbers].concat()
    };
    let (lexicon, vectors) = matrix(file(header), "a b\n").unwrap();
    assert_eq!(vectors.get(lexicon.vocab.id("a b")), Some(&[1.5, -2.0][..]));
    assert_refused(matrix(file(header), ""), "expected 1 vectors, found 0 words");
    assert_refused(matrix(file(header), "a\nb\n"), "expected 1 vectors, found more words");
    assert_refused(
        matrix(file(&header.replace("(1,", "(2,")), "a\nb\n"),
        "expected 2 vectors, found 1",
    );
    assert_refused(
        matrix([&file(header)[..], b"x"].concat(), "a\n"),
        "expected 1 vectors, found more",
    );
    assert_refused(matrix(file(&header.replace("False", "True")), "a\n"), "column-major");
    assert_refused(matrix(file(&header.replace("<f8", "<i8")), "a\n"), "the element type is '<i8'");
    assert_refused(matrix(file(&header.replace("(1, 2)", "(2,)")), "a\nb\n"), "its shape is (2,)");
    assert_refused(
        matrix(file(&header.replace("shape", "form")), "a\n"),
        "its header has no `shape`",
    );
    assert_refused(matrix("the 1 2 3\n", "a\n"), "it is not a `.npy` file");
    assert_refused(matrix("", "a\n"), "it is not a `.npy` file");
}

#[test]
fn the_matrix_header_equals_that_of_numpy() {
    let mut bytes = Vec::new();
    npy::write_header(&mut bytes, 3, 12).unwrap();
    npy::write_values(&mut bytes, &[1.5]).unwrap();
    // The first bytes that `numpy.save` writes for a 3 × 12 array of `float32`.
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 12), }";
    let expected = format!("{header:117}\n");
    assert_eq!(bytes[..10], *b"\x93NUMPY\x01\x00\x76\x00");
    assert_eq!(bytes[10..128], *expected.as_bytes());
    assert_eq!(bytes[128..], 1.5f32.to_le_bytes());
}

#[test]
fn words_that_a_format_cannot_represent_are_rejected() {
    let vocab = Vocab::from_parts([UNK, EOS, "a b"], vec![0; 3]).unwrap();
    let vectors = WordVectors::new(1, vec![0., 0., 1.]).unwrap();
    let out = &mut Vec::new();
    let refused = [
        write_text(&vocab, &vectors, TextFormat::Word2vec, out),
        write_binary(&vocab, &vectors, out),
        // The first line tells the dimension.
        write_text(&vocab, &vectors, TextFormat::Glove, out),
    ];
    for error in refused.map(Result::unwrap_err) {
        assert!(error.to_string().contains("\"a b\" contains whitespace"), "{error}");
    }
}

#[test]
fn glove_begins_with_a_word_without_spaces() {
    let vocab = Vocab::from_parts([UNK, EOS, "a b", "c\u{a0}", "d 1"], vec![0; 5]).unwrap();
    let vectors = WordVectors::new(1, vec![0., 0., 1., 2., 0.]).unwrap();
    let mut out = Vec::new();
    write_text(&vocab, &vectors, TextFormat::Glove, &mut out).unwrap();
    assert_eq!(out, "c\u{a0} 2\na b 1\n".as_bytes());
    let (lexicon, read) = glove(&out).unwrap();
    assert_eq!(read.get(lexicon.vocab.id("a b")), Some(&[1.0][..]));
    // A number at the end of a word cannot be told from the vector.
    let vectors = WordVectors::new(1, vec![0., 0., 1., 2., 3.]).unwrap();
    let error = write_text(&vocab, &vectors, TextFormat::Glove, &mut out).unwrap_err();
    assert!(error.to_string().contains("\"d 1\" contains whitespace"), "{error}");
}

#[test]
fn vectors_encode_tokens_and_round_trip_as_a_model() {
    let (vocab, vectors) = toy();
    let (preprocessing, limits) = (Preprocessing::default(), VocabLimits::default());
    let mut model = Vectors::new(Lexicon::new(preprocessing, limits, vocab), vectors);
    model.add_fact("imported_from", "glove");
    let sentences = latens_corpus::Sentences::from_words([[WordId(2), WordId(3), WordId(4)]]);
    check_token_encoder(model.vectors(), &sentences);
    check_file_round_trip(
        &model,
        |m, path| m.save(path),
        |path| Vectors::open(path),
        |a, b| {
            assert_eq!(a.vectors().values(), b.vectors().values());
            assert_eq!(a.facts(), b.facts());
        },
    );
}
