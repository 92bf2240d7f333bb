//! Selection of the sentences to train on.

use latens_corpus::{Corpus, Lexicon, Sentences, Vocab, WordId};

/// Selects the `n` sentences with the most frequent words, by the mean log-count of their words.
///
/// The order of the text is kept, and ties go to earlier sentences. Word ids stay the same; counts are recomputed, so
/// words outside the selection have a count of zero.
///
/// Nepal and Yates (2013, §5.1) likewise train on a selected part of their text, which is faster and still
/// representative. Rare words disappear with the other sentences.
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
    let vocab =
        Vocab::from_parts(lexicon.vocab.words(), counts).expect("the words come from a vocabulary");
    Corpus { lexicon: Lexicon { vocab, ..lexicon.clone() }, sentences }
}

fn counts(vocab: &Vocab, sentences: &Sentences) -> Vec<u64> {
    let mut counts = vec![0; vocab.len()];
    sentences.tokens().iter().for_each(|word| counts[word.index()] += 1);
    counts
}

/// A sentence without `<eos>`.
fn words(sentence: &[WordId]) -> &[WordId] {
    match sentence {
        [words @ .., WordId::EOS] => words,
        words => words,
    }
}
