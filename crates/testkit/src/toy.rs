//! Small generated texts. The same seed gives the same text.

use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits};
use latens_math::{Rng, sample_index};

/// Generates sentences from two hidden classes of ten words each, `a0` … `a9` and `b0` … `b9`.
///
/// A sentence starts in class a, switches the class after each word with probability 0.8, and ends
/// after each word with probability 1/6. Within a class, word frequencies follow Zipf's law.
pub fn two_class_corpus(n_sentences: usize, seed: u64) -> Corpus {
    let mut rng = Rng::new(seed);
    let weights = zipf(10);
    let sentence = |rng: &mut Rng| {
        let (mut words, mut class) = (Vec::new(), 'a');
        loop {
            words.push(format!("{class}{}", sample_index(&weights, rng)));
            if rng.uniform() < 1.0 / 6.0 {
                return words;
            }
            if rng.uniform() < 0.8 {
                class = if class == 'a' { 'b' } else { 'a' };
            }
        }
    };
    corpus((0..n_sentences).map(|_| sentence(&mut rng)).collect())
}

/// Generates sentences of independent words whose frequencies follow Zipf's law.
///
/// There are at most `n_words` different words, and `w4` is a fifth as frequent as `w0`. One sentence in
/// ten is empty.
pub fn zipfian_corpus(n_words: usize, n_sentences: usize, seed: u64) -> Corpus {
    let mut rng = Rng::new(seed);
    let weights = zipf(n_words);
    let sentence = |rng: &mut Rng| {
        let mut words = Vec::new();
        while rng.uniform() < 0.9 {
            words.push(format!("w{}", sample_index(&weights, rng)));
        }
        words
    };
    corpus((0..n_sentences).map(|_| sentence(&mut rng)).collect())
}

fn zipf(n: usize) -> Vec<f64> {
    (1..=n).map(|rank| 1.0 / rank as f64).collect()
}

fn corpus(sentences: Vec<Vec<String>>) -> Corpus {
    let limits = VocabLimits::default();
    let ends = ("<eos>", sentences.len() as u64);
    let mut counts = std::collections::BTreeMap::new();
    for word in sentences.iter().flatten() {
        *counts.entry(word.as_str()).or_insert(0u64) += 1;
    }
    let vocab = Vocab::from_counts(counts.into_iter().chain([ends]), &limits);
    let ids =
        |sentence: &Vec<String>| sentence.iter().map(|word| vocab.id(word)).collect::<Vec<_>>();
    let sentences = Sentences::from_words(sentences.iter().map(ids));
    Corpus { lexicon: Lexicon::new(Preprocessing::default(), limits, vocab), sentences }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::WordId;

    #[test]
    fn the_seed_determines_the_text() {
        let tokens = |seed| two_class_corpus(50, seed).sentences.tokens().to_vec();
        assert_eq!(tokens(1), tokens(1));
        assert_ne!(tokens(1), tokens(2));
    }

    #[test]
    fn the_vocabulary_has_the_counts_of_the_text() {
        for corpus in [two_class_corpus(300, 1), zipfian_corpus(40, 300, 1)] {
            let (vocab, sentences) = (&corpus.lexicon.vocab, &corpus.sentences);
            assert_eq!(sentences.len(), 300);
            for id in (0..vocab.len()).map(WordId::from) {
                let n = sentences.tokens().iter().filter(|&&token| token == id).count();
                assert_eq!(vocab.count(id), n as u64, "{}", vocab.word(id));
            }
        }
    }

    #[test]
    fn classes_switch_with_probability_0_8() {
        let corpus = two_class_corpus(2000, 1);
        let class = |&id: &WordId| corpus.lexicon.vocab.word(id).as_bytes()[0];
        let (mut pairs, mut changes) = (0.0, 0.0);
        for sentence in corpus.sentences.iter() {
            let words = &sentence[..sentence.len() - 1];
            assert_eq!(class(&words[0]), b'a');
            for pair in words.windows(2) {
                pairs += 1.0;
                changes += f64::from(class(&pair[0]) != class(&pair[1]));
            }
        }
        // The tolerance is four standard deviations of a binomial with p = 0.8.
        assert!((changes / pairs - 0.8f64).abs() < 4.0 * (0.16f64 / pairs).sqrt());
    }

    #[test]
    fn zipfian_text_has_frequent_words_rare_words_and_empty_sentences() {
        let corpus = zipfian_corpus(100, 1000, 1);
        let count = |word| corpus.lexicon.vocab.count(corpus.lexicon.vocab.id(word)) as f64;
        assert!((3.5..6.5).contains(&(count("w0") / count("w4"))));
        assert!(corpus.sentences.iter().any(|sentence| sentence.len() == 1));
    }
}
