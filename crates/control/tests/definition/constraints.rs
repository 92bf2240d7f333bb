//! Automata accept the texts that satisfy a constraint, and mistakes have clear messages.

use crate::toy::{cases, compiled, lexicon, spelled, texts};
use latens_control::{Alphabet, Constraint, ControlError};

#[test]
fn automata_accept_the_texts_that_satisfy_a_constraint() {
    for (constraint, satisfies) in cases() {
        let automaton = compiled(&constraint);
        let mut n_accepted = 0;
        for text in texts() {
            let accepted = automaton.accepts(text.iter().map(|word| word.index()));
            let text = spelled(&text);
            assert_eq!(accepted, satisfies(&text), "{constraint}: {text}");
            n_accepted += usize::from(accepted);
        }
        assert!(n_accepted > 0, "{constraint}");
    }
}

#[test]
fn equal_languages_have_equal_automata() {
    use Constraint as C;
    let both = compiled(&(C::contains("ab") & C::contains("d")));
    assert_eq!(both, compiled(&!(!C::contains("d") | C::excludes("ab"))));
    assert_eq!(compiled(&C::excludes("ab b")), compiled(&!C::contains("ab b")));
    assert_eq!(compiled(&C::regex(".* ab b .*")), compiled(&C::contains("ab b")));
    assert_eq!(compiled(&C::regex(".* d")), compiled(&C::ends_with("d")));
    assert_eq!((both.n_states(), both.n_classes()), (4, 3));
    // Three single words in any order: every subset of them is a state.
    assert_eq!(compiled(&C::contains_all(["ab", "b", "d"])).n_states(), 8);
}

#[test]
fn pieces_of_words_spell_phrases_in_every_tokenization() {
    let pieces: Vec<Option<Vec<u8>>> =
        [None, None, Some(" d"), Some("o"), Some("g"), Some("og"), Some(" dog"), Some("s")]
            .map(|piece| piece.map(|text: &str| text.as_bytes().to_vec()))
            .to_vec();
    let alphabet = Alphabet::Pieces(&pieces);
    use Constraint as C;
    let automaton = |constraint: &C| constraint.compile(&alphabet).unwrap().automaton;
    type Check = fn(&str) -> bool;
    let checks: [(C, Check); 7] = [
        (!C::contains(" dog"), |text| !text.contains(" dog")),
        (C::contains(" dog"), |text| text.contains(" dog")),
        (C::excludes("og"), |text| !text.contains("og")),
        (C::words(1, Some(2)), |text| (1..=2).contains(&text.split_whitespace().count())),
        (C::ends_with("gs"), |text| text.ends_with("gs")),
        (C::infill(" d", "gs"), |text| {
            text.starts_with(" d") && text.ends_with("gs") && text.len() >= 4
        }),
        (C::char_regex("( dog)+s?"), |text| {
            let text = text.strip_suffix('s').unwrap_or(text);
            !text.is_empty() && text.replace(" dog", "").is_empty()
        }),
    ];
    for (constraint, satisfies) in checks {
        let automaton = automaton(&constraint);
        for code in 0..6usize.pow(4) {
            let ids: Vec<usize> = (0..4).map(|at| 2 + code / 6usize.pow(at) % 6).collect();
            for len in 0..=4 {
                let bytes = ids[..len].iter().flat_map(|&id| pieces[id].clone().unwrap());
                let text = String::from_utf8(bytes.collect()).unwrap();
                let accepted = automaton.accepts(ids[..len].iter().copied());
                assert_eq!(accepted, satisfies(&text), "{constraint}: {text:?}");
            }
        }
        assert!(!automaton.accepts([0, 6]) && !automaton.accepts([6, 1]), "{constraint}");
    }
}

#[test]
fn mistakes_name_the_part_of_the_constraint() {
    use Constraint as C;
    let lexicon = lexicon();
    let error = |constraint: C, max_states| {
        let compiled = constraint.compile_with(&Alphabet::Words(&lexicon), max_states);
        compiled.unwrap_err()
    };
    let message = |constraint: C| error(constraint, 1000).to_string();
    assert_eq!(
        message(C::contains("ab zebra") & C::contains("d")),
        "the phrase `ab zebra`: the word `zebra` is not in the vocabulary of the model"
    );
    assert!(message(C::contains(" ")).contains("contains no words"));
    assert!(message(C::regex("ab zebra*")).contains("`zebra`"));
    assert!(message(C::regex("ab (")).contains("missing `)`"));
    assert!(message(C::regex("/[/ ab")).contains("unclosed"));
    assert!(message(C::char_regex("a(")).contains("the character pattern `a(`"));
    assert_eq!(
        message(C::contains("d") & C::words(2, None) & C::contains("ab") & C::excludes("ab")),
        "the phrase `ab` and the excluded phrase `ab` contradict each other"
    );
    // Every two of them can be met.
    let three = C::contains("ab") & C::contains("b") & C::regex(".");
    assert!(matches!(error(three, 1000), ControlError::Contradiction { .. }));
    assert!(message(C::regex("/x+/")).contains("no text satisfies the pattern"));
    assert!(message(C::words(3, None) & C::words(0, Some(2))).contains("minimum 3"));
    assert!(message(C::words(3, Some(2))).contains("minimum 3"));
    let order: Vec<String> = (0..30).map(|_| "ab b ca d".to_owned()).collect();
    let large = error(C::contains("d") & C::contains_in_order(order), 100);
    assert!(matches!(&large, ControlError::TooLarge { max_states: 100, .. }), "{large}");
    let product = C::regex(".{0,40}") & C::regex("(. . .)*") & C::regex("(. . . . .)*");
    assert!(matches!(error(product, 30), ControlError::TooLarge { .. }));
}
