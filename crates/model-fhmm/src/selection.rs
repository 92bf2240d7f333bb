//! Which sentences of a text to learn from.

use latens_corpus::{Corpus, Lexicon, Sentences, Vocab, WordId};

/// The `n` sentences of a text whose words are the most frequent ones, by the mean logarithm of their words' counts,
/// in the order of the text; all if there are no more. Of equal sentences the first ones are kept.
///
/// The words keep their ids, and are counted anew: those of the other sentences alone have a count of zero.
///
/// The paper learns from a part of its text that was selected so as to be fast to learn from and still typical
/// (§5.1); rare words go with the sentences that are left out.
pub fn frequent_sentences(corpus: &Corpus, n: usize) -> Corpus {
    let Corpus { lexicon, sentences } = corpus;
    let logs: Vec<f64> =
        counts(&lexicon.vocab, sentences).iter().map(|&count| (count.max(1) as f64).ln()).collect();
    let score = |sentence: &[WordId]| {
        let words = words(sentence);
        words.iter().map(|word| logs[word.index()]).sum::<f64>() / words.len().max(1) as f64
    };
    let mut ranked: Vec<(f64, usize)> =
        sentences.iter().map(score).enumerate().map(|(idx, score)| (score, idx)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut kept: Vec<usize> = ranked[..n.min(ranked.len())].iter().map(|&(_, idx)| idx).collect();
    kept.sort_unstable();
    let sentences = Sentences::from_words(kept.iter().map(|&idx| words(sentences.get(idx))));
    let counts = counts(&lexicon.vocab, &sentences);
    let vocab = Vocab::from_parts(lexicon.vocab.words(), counts)
        .expect("these are the words of a vocabulary");
    Corpus { lexicon: Lexicon { vocab, ..lexicon.clone() }, sentences }
}

fn counts(vocab: &Vocab, sentences: &Sentences) -> Vec<u64> {
    let mut counts = vec![0; vocab.len()];
    sentences.tokens().iter().for_each(|word| counts[word.index()] += 1);
    counts
}

/// A sentence without its end.
fn words(sentence: &[WordId]) -> &[WordId] {
    match sentence {
        [words @ .., WordId::EOS] => words,
        words => words,
    }
}
