use crate::learn::pseudo_counts::{FREQUENT, PseudoCounts};
use crate::learn::state::TrainingState;
use crate::params::LdsParams;
use serde_json::{Map, Value, json};

/// The facts about a training run that are saved with the model.
pub(crate) fn facts(
    params: &LdsParams,
    state: &TrainingState,
    pseudo_counts: &PseudoCounts,
) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("gain".into(), state.gain.into());
    if let Some(gain) = state.valid_gain {
        facts.insert("valid_gain".into(), gain.into());
    }
    facts.insert("best_iteration".into(), state.best_iteration.into());
    facts.insert("iterations".into(), state.iteration.into());
    facts.insert("pseudo_counts".into(), pseudo_counts.used.into());
    facts.insert("clipped".into(), state.n_clipped.into());
    let warnings = warnings(params, state, pseudo_counts);
    if !warnings.is_empty() {
        facts.insert("warnings".into(), json!(warnings));
    }
    facts
}

fn warnings(
    params: &LdsParams,
    state: &TrainingState,
    pseudo_counts: &PseudoCounts,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if pseudo_counts.is_raised {
        warnings.push(format!(
            "`pseudo_counts` = {} is too small for words with fewer than {FREQUENT} occurrences: \
             1 was used",
            params.pseudo_counts.unwrap_or(0.0)
        ));
    }
    if state.correlation > 0.9 {
        warnings.push(
            "some words are almost certain to follow each other, which the model overfits; raise \
             `pseudo_counts`"
                .to_owned(),
        );
    }
    if let Some(reason) = &state.stopped {
        warnings.push(format!(
            "EM stopped at iteration {}: {reason}; the best earlier model is kept; raise \
             `pseudo_counts`",
            state.iteration
        ));
    }
    if state.worst_fall > 1e-2 {
        let worst = 100.0 * state.worst_fall;
        warnings.push(format!("the gain fell by {worst:.1} % in one iteration; raise `lags`"));
    }
    warnings
}
