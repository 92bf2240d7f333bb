//! Many sentences, whose features are computed together, against each sentence alone.

use super::fixtures::{Letters, TEXT, encoders, fit, kinds, read};
use crate::tagging::evaluation::tagged::{tag_names, tag_text};
use crate::tagging::features::encoder::Encoder;
use crate::tagging::features::word_encoder::WordEncoder;
use crate::tagging::fitted::tagger::FeatureTagger;
use latens_model::{FeatureRows, TagError, TagInput, TagOutputs, Tagged, Tagger};
use std::sync::{Arc, Mutex};

/// Parts of 256 words, the minimum.
const N_VALUES: usize = usize::MAX >> 8;

/// An encoder that notes how many words it encodes at a time, and which needs much memory.
struct Noted {
    letters: Letters,
    /// Number of words of each call of `encode_all`.
    n_words: Arc<Mutex<Vec<usize>>>,
}

impl WordEncoder for Noted {
    fn n_features(&self) -> usize {
        self.letters.n_features()
    }

    fn encode(&self, words: &[&str], out: &mut FeatureRows) {
        self.letters.encode(words, out);
    }

    fn encode_all(&self, sentences: &[Vec<&str>]) -> Vec<FeatureRows> {
        self.n_words.lock().unwrap().push(sentences.iter().map(Vec::len).sum());
        let rows = |words: &Vec<&str>| {
            let mut rows = FeatureRows::new();
            self.encode(words, &mut rows);
            rows
        };
        sentences.iter().map(rows).collect()
    }

    fn values_per_token(&self) -> usize {
        N_VALUES
    }

    fn knows(&self, word: &str) -> bool {
        self.letters.knows(word)
    }
}

/// Encoders that note into the list.
fn noted(n_words: &Arc<Mutex<Vec<usize>>>) -> Vec<Encoder> {
    let of = |(encoder, is_dense): (Encoder, bool)| {
        let letters = Letters::new(is_dense);
        Encoder { model: Box::new(Noted { letters, n_words: n_words.clone() }), ..encoder }
    };
    encoders().into_iter().zip([true, false]).map(of).collect()
}

/// Sentences of different lengths, of known and unknown words, and without words.
fn sentences() -> Vec<Vec<&'static str>> {
    let words = ["The", "dog", "barks", "a", "cat", "cat-2", ",", "sleeps", "zebra"];
    (0..200).map(|i: usize| (0..i * i % 7).map(|at| words[(i + at * at) % 9]).collect()).collect()
}

fn check(tagger: &FeatureTagger, sentence: &TagInput<'_>, found: &Tagged, n: usize) {
    let &TagInput { words, pos } = sentence;
    let alone = match pos {
        Some(pos) => tagger.tag_with_pos(words, pos).unwrap(),
        None => tagger.tag(words).unwrap(),
    };
    let n_best = tagger.tag_n_best(words, pos, n.max(1)).unwrap();
    assert_eq!(found.tags, if n == 0 { alone } else { n_best[0].0.clone() });
    assert_eq!(found.n_best, if n == 0 { vec![] } else { n_best });
    assert_eq!(found.marginals.as_ref(), Some(&tagger.tag_marginals(words, pos).unwrap()));
}

#[test]
fn sentences_are_tagged_together_in_parts_as_each_is_alone() {
    let (text, sentences) = (read(TEXT), sentences());
    let n_tokens: usize = sentences.iter().map(Vec::len).sum();
    for params in kinds() {
        let n_words = Arc::default();
        let tagger = fit(&params, &text, noted(&n_words));
        n_words.lock().unwrap().clear();
        let pos: Vec<Vec<&str>> =
            sentences.iter().map(|words| ["P", "Q", "R"].repeat(words.len())).collect();
        let pos: Vec<&[&str]> =
            pos.iter().zip(&sentences).map(|(pos, words)| &pos[..words.len()]).collect();
        let inputs = sentences.iter().zip(&pos);
        let has_pos = params.pos_column.is_some();
        let inputs: Vec<TagInput<'_>> =
            inputs.map(|(words, pos)| TagInput { words, pos: has_pos.then_some(*pos) }).collect();
        for n in [0, 3] {
            let outputs = TagOutputs::default().marginals(true).n_best(n);
            let found = tagger.tag_all_with(&inputs, outputs);
            assert_eq!(found.len(), sentences.len());
            let sizes = std::mem::take(&mut *n_words.lock().unwrap());
            assert!(sizes.len() >= 4 && sizes.iter().all(|&n| n <= 256), "{sizes:?}");
            assert_eq!(sizes.iter().sum::<usize>(), 2 * n_tokens, "each encoder reads it once");
            for (sentence, found) in inputs.iter().zip(found) {
                check(&tagger, sentence, &found.unwrap(), n);
            }
        }
    }
}

#[test]
fn other_outputs_are_left_out_unless_asked_for() {
    let tagger = fit(&kinds()[0], &read(TEXT), encoders());
    let sentences = sentences();
    let found = tagger.tag_all_with(&TagInput::of_words(&sentences), TagOutputs::default());
    for (found, words) in found.into_iter().zip(&sentences) {
        let found = found.unwrap();
        assert_eq!(found.tags, tagger.tag(words).unwrap());
        assert!(found.marginals.is_none() && found.n_best.is_empty());
    }
}

#[test]
fn a_tagger_of_parts_of_speech_reads_their_column_of_the_text() {
    let text = read(TEXT);
    let tagger = fit(&kinds()[1], &text, encoders());
    let names = tag_names(&tagger, &text).unwrap();
    let outputs = TagOutputs::default().marginals(true);
    let tagged = tag_text(&tagger, &text, outputs).unwrap();
    for ((sentence, names), tagged) in text.iter().zip(names).zip(tagged) {
        let (words, pos) = (sentence.words(), sentence.column(1).unwrap());
        let tags = tagger.tag_with_pos(&words, &pos).unwrap();
        let expected: Vec<&str> = tags.iter().map(|&tag| &*tagger.tags()[tag as usize]).collect();
        assert_eq!((names, tagged.tags), (expected, tags));
        assert_eq!(tagged.marginals.unwrap(), tagger.tag_marginals(&words, Some(&pos)).unwrap());
    }
    let missing = Err(TagError::NoPartsOfSpeech { column: 2 });
    assert_eq!(tagger.tag_all(&[vec!["The"]]), [missing]);
    let alone = read("The\ndog\n");
    assert_eq!(tag_names(&tagger, &alone), Err(TagError::NoPartsOfSpeech { column: 2 }));
}
