//! Tiny models, and what brute force says about them.

use latens_control::{Alphabet, Automaton, Constraint};
use latens_corpus::{Lexicon, Preprocessing, Vocab, VocabLimits, WordId};
use latens_math::Rng;
use latens_model::LanguageModel;
use latens_model_hmm::Hmm;

/// The words after `<unk>` and `<eos>`.
pub(crate) const WORDS: [&str; 4] = ["ab", "b", "ca", "d"];
pub(crate) const MAX_WORDS: usize = 6;

pub(crate) fn lexicon() -> Lexicon {
    let words = ["<unk>", "<eos>"].into_iter().chain(WORDS);
    let vocab = Vocab::from_parts(words, vec![1; 2 + WORDS.len()]).unwrap();
    Lexicon::new(Preprocessing::default(), VocabLimits::default(), vocab)
}

/// A model with random probabilities, raised to a power: large powers make some tiny.
pub(crate) fn random_hmm(n_states: usize, power: f64, seed: u64) -> Hmm {
    let mut rng = Rng::new(seed);
    let mut row = |n: usize| -> Vec<f32> {
        let weights: Vec<f64> = (0..n).map(|_| (rng.uniform() + 1e-3).powf(power)).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| (weight / sum) as f32).collect()
    };
    let start = row(n_states);
    let transition: Vec<f32> = (0..n_states).flat_map(|_| row(n_states)).collect();
    let emission: Vec<f32> = (0..n_states).flat_map(|_| row(2 + WORDS.len())).collect();
    Hmm::from_probabilities(lexicon(), start, &transition, &emission).unwrap()
}

/// All texts of up to [`MAX_WORDS`] words without `<unk>`.
pub(crate) fn texts() -> impl Iterator<Item = Vec<WordId>> {
    let n = WORDS.len();
    (0..=MAX_WORDS as u32).flat_map(move |len| {
        (0..n.pow(len))
            .map(move |code| (0..len).map(|at| WordId::from(2 + code / n.pow(at) % n)).collect())
    })
}

pub(crate) fn spelled(text: &[WordId]) -> String {
    let words = text.iter().map(|word| WORDS[word.index() - 2]);
    words.collect::<Vec<_>>().join(" ")
}

/// p(text `<eos>`).
pub(crate) fn probability(hmm: &Hmm, text: &[WordId]) -> f64 {
    let ended: Vec<WordId> = text.iter().copied().chain([WordId::EOS]).collect();
    hmm.log_prob(&ended).exp()
}

pub(crate) fn compiled(constraint: &Constraint) -> Automaton {
    constraint.compile(&Alphabet::Words(&lexicon())).unwrap().automaton
}

/// A constraint, and whether a text satisfies it by the definition.
pub(crate) type Case = (Constraint, fn(&str) -> bool);

fn has(text: &str, phrase: &str) -> bool {
    format!(" {text} ").contains(&format!(" {phrase} "))
}

fn n_words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn position(text: &str, phrase: &str) -> Option<usize> {
    format!(" {text} ").find(&format!(" {phrase} ")).map(|at| at + phrase.len() + 1)
}

/// One case for every kind of constraint, and products of them.
pub(crate) fn cases() -> Vec<Case> {
    use Constraint as C;
    vec![
        (C::anything(), |_| true),
        (C::contains("ab b"), |text| has(text, "ab b")),
        (C::contains_any(["ca ca", "d"]), |text| has(text, "ca ca") || has(text, "d")),
        (C::contains_all(["ab", "b d", "ca"]), |text| {
            has(text, "ab") && has(text, "b d") && has(text, "ca")
        }),
        (C::contains_in_order(["d", "ab ab"]), |text| {
            position(text, "d").is_some_and(|at| has(format!(" {text} ")[at..].trim(), "ab ab"))
        }),
        (C::excludes("ab ca"), |text| !has(text, "ab ca")),
        (C::excludes_all(["d", "b b", "zebra"]), |text| !has(text, "d") && !has(text, "b b")),
        (C::starts_with("ca d"), |text| format!("{text} ").starts_with("ca d ")),
        (C::ends_with("b ab"), |text| format!(" {text}").ends_with(" b ab")),
        (C::infill("ab b", "b ca"), |text| {
            let spaced = format!(" {text} ");
            spaced.starts_with(" ab b ") && spaced.ends_with(" b ca ") && n_words(text) >= 4
        }),
        (C::regex("[ab b]* (d | ca .){1,2} [^d]?"), |text| {
            let words: Vec<&str> = text.split_whitespace().collect();
            fn tail(words: &[&str]) -> bool {
                words.is_empty() || words.len() == 1 && words[0] != "d"
            }
            fn middle(words: &[&str], n: usize) -> bool {
                let one = match words {
                    ["d", rest @ ..] => Some(rest),
                    ["ca", _, rest @ ..] => Some(rest),
                    _ => None,
                };
                one.is_some_and(|rest| tail(rest) || (n < 2 && middle(rest, n + 1)))
            }
            let n_first = words.iter().take_while(|word| ["ab", "b"].contains(word)).count();
            (0..=n_first).any(|n| middle(&words[n..], 1))
        }),
        (C::regex("/.*a.*/+ d"), |text| {
            let words: Vec<&str> = text.split_whitespace().collect();
            matches!(&words[..], [first @ .., "d"] if !first.is_empty()
                && first.iter().all(|word| word.contains('a')))
        }),
        (C::char_regex("(ab ?)+b.*a"), |text| {
            // By the definition of the expression: two or more letters `ab`, then `b`, then `a` at the end.
            let mut rest = text;
            let mut found = false;
            while let Some(next) = rest.strip_prefix("ab") {
                for next in [Some(next), next.strip_prefix(' ')].into_iter().flatten() {
                    found |= next.strip_prefix('b').is_some_and(|next| next.ends_with('a'));
                }
                rest = next.strip_prefix(' ').unwrap_or(next);
            }
            found
        }),
        (C::words(2, Some(4)) | C::contains("d d"), |text| {
            (2..=4).contains(&n_words(text)) || has(text, "d d")
        }),
        (!(C::contains("ab") | C::ends_with("d")), |text| {
            !has(text, "ab") && !format!(" {text}").ends_with(" d")
        }),
        (C::contains("ca") & !C::words(0, Some(2)) & C::excludes("d"), |text| {
            has(text, "ca") && n_words(text) > 2 && !has(text, "d")
        }),
    ]
}
