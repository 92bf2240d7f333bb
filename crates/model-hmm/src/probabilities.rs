//! Models with given probabilities.

use crate::model::Hmm;
use crate::params::{Constraint, HmmParams, Parameterization};
use crate::space::clusters::NO_CLUSTER;
use crate::space::state_space::StateSpace;
use crate::tables::block_cache::TransitionBlocks;
use latens_corpus::Lexicon;
use latens_model::{ParamError, Params, check_that};
use serde_json::Map;

/// The largest difference between 1 and a sum of probabilities that is taken for a rounding error.
const ROUNDING: f64 = 1e-3;

impl Hmm {
    /// A model with given probabilities, in which every state may emit every word.
    ///
    /// Matrices are row-major and have one row per state: `transition` has one column per next state, `emission` one per
    /// word of the vocabulary, `<unk>` and `<eos>` among them. Sentences are independent and end with `<eos>`.
    ///
    /// Fails if an array has the wrong length, or if a row is not a probability distribution.
    pub fn from_probabilities(
        lexicon: Lexicon,
        start: Vec<f32>,
        transition: &[f32],
        emission: &[f32],
    ) -> Result<Hmm, ParamError> {
        let (n, n_words) = (start.len(), lexicon.vocab.len());
        let params = HmmParams {
            n_states: n,
            n_clusters: 1,
            constraint: Constraint::None,
            parameterization: Parameterization::Scalar,
            epochs: 0,
            state_dropout: Some(0.0),
            ..HmmParams::default()
        };
        let params = params.validate()?;
        check_rows("start", &start, n, 1)?;
        check_rows("transition", transition, n, n)?;
        check_rows("emission", emission, n_words, n)?;
        let cluster_of = |word: usize| {
            let is_emitted = (0..n).any(|state| emission[state * n_words + word] > 0.0);
            if is_emitted { 0 } else { NO_CLUSTER }
        };
        let space = StateSpace::new(n, 1, (0..n_words).map(cluster_of).collect());
        // One row per word, as scoring reads them.
        let words = space.words().iter();
        let by_word = words
            .flat_map(|word| (0..n).map(move |state| emission[state * n_words + word.index()]));
        Ok(Hmm {
            emission: by_word.collect::<Vec<f32>>().into(),
            start: start.into(),
            blocks: TransitionBlocks::from_rows(transition, &space),
            params,
            lexicon,
            facts: Map::new(),
            space,
            weights: None,
            tags: None,
        })
    }
}

/// Checks that an array has `n_rows` rows that sum to 1.
fn check_rows(
    name: &'static str,
    values: &[f32],
    n_columns: usize,
    n_rows: usize,
) -> Result<(), ParamError> {
    let n = n_rows * n_columns;
    let must = || format!("{n} probabilities ({n_rows} × {n_columns})");
    check_that(values.len() == n, name, must(), values.len())?;
    for (row_idx, row) in values.chunks_exact(n_columns.max(1)).enumerate() {
        let is_valid = row.iter().all(|p| (0.0..=1.0).contains(p));
        let sum: f64 = row.iter().map(|&p| f64::from(p)).sum();
        let must = "probabilities in [0, 1] that sum to 1";
        let got = || format!("the sum {sum} in row {row_idx}");
        check_that(is_valid && (sum - 1.0).abs() < ROUNDING, name, must, got())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::{Preprocessing, Vocab, VocabLimits, WordId};
    use latens_model::LanguageModel;

    fn lexicon() -> Lexicon {
        let words = ["<unk>", "<eos>", "a", "b"];
        let vocab = Vocab::from_parts(words, vec![0, 1, 1, 1]).unwrap();
        Lexicon::new(Preprocessing::default(), VocabLimits::default(), vocab)
    }

    const START: [f32; 2] = [0.75, 0.25];
    const TRANSITION: [f32; 4] = [0.5, 0.5, 0.125, 0.875];
    const EMISSION: [f32; 8] = [0.0, 0.25, 0.5, 0.25, 0.0, 0.5, 0.125, 0.375];

    #[test]
    fn a_sentence_has_the_sum_over_all_paths() {
        let hmm =
            Hmm::from_probabilities(lexicon(), START.to_vec(), &TRANSITION, &EMISSION).unwrap();
        let words = [2_usize, 3, 3, 1];
        let mut expected = 0.0;
        for path in 0..1_usize << words.len() {
            let state = |t: usize| (path >> t) & 1;
            let mut product = START[state(0)];
            for (t, word) in words.iter().enumerate() {
                if t > 0 {
                    product *= TRANSITION[state(t - 1) * 2 + state(t)];
                }
                product *= EMISSION[state(t) * 4 + word];
            }
            expected += f64::from(product);
        }
        let mut scorer = hmm.scorer();
        let found: f64 = words.iter().map(|&word| scorer.read(WordId::from(word))).sum();
        assert!((found - expected.ln()).abs() < 1e-5, "{found} {}", expected.ln());
        assert!(!hmm.can_emit(WordId::UNK));
        let again =
            latens_model::file::ModelFile::from_bytes(&hmm.file_writer().to_bytes()).unwrap();
        let again = Hmm::from_file(&again).unwrap();
        assert_eq!(again.transition(1), [0.125, 0.875]);
        assert_eq!(again.emission(0), EMISSION[..4]);
    }

    #[test]
    fn rows_that_are_not_distributions_are_refused() {
        let message = |start: &[f32], transition: &[f32], emission: &[f32]| {
            let model = Hmm::from_probabilities(lexicon(), start.to_vec(), transition, emission);
            model.unwrap_err().to_string()
        };
        assert!(message(&[], &[], &[]).contains("`n_states`"));
        assert!(message(&[0.5, 0.25], &TRANSITION, &EMISSION).contains("`start`"));
        assert!(message(&START, &TRANSITION[..3], &EMISSION).contains("`transition`"));
        assert!(message(&START, &[1.5, -0.5, 0.5, 0.5], &EMISSION).contains("`transition`"));
        assert!(message(&START, &TRANSITION, &[f32::NAN; 8]).contains("`emission`"));
    }
}
