//! Parameters of models as JSON objects.

use crate::errors::value_error;
use latens::brown::BrownParams;
use latens::fhmm::FhmmParams;
use latens::hmm::HmmParams;
use latens::lda::{GldaParams, LdaParams};
use latens::lds::LdsParams;
use latens::model::Params;
use latens::neural::NeuralParams;
use latens::ngram::NgramParams;
use latens::tasks::tagging::TaggerParams;
use latens::word2vec::Word2vecParams;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The default parameters of a kind of model, as JSON.
#[pyfunction]
pub(crate) fn default_params(kind: &str) -> PyResult<String> {
    let params = match kind {
        "brown" => to_json(&BrownParams::default()),
        "ff" => to_json(&NeuralParams::ff()),
        "fhmm" => to_json(&FhmmParams::default()),
        "glda" => to_json(&GldaParams::default()),
        "hmm" => to_json(&HmmParams::default()),
        "lda" => to_json(&LdaParams::default()),
        "lds" => to_json(&LdsParams::default()),
        "lstm" => to_json(&NeuralParams::lstm()),
        "ngram" => to_json(&NgramParams::default()),
        "rnn" => to_json(&NeuralParams::rnn()),
        "tagger" => to_json(&TaggerParams::default()),
        "word2vec" => to_json(&Word2vecParams::default()),
        _ => return Err(PyValueError::new_err(format!("there is no model of kind `{kind}`"))),
    };
    Ok(params.to_string())
}

fn to_json(params: &impl Serialize) -> Value {
    serde_json::to_value(params).expect("parameters are plain data")
}

/// `defaults` with the parameters of a JSON object set, which are validated.
pub(crate) fn with_params<P: Params + Serialize + DeserializeOwned>(
    defaults: P,
    json: &str,
) -> PyResult<P> {
    let changes: Map<String, Value> =
        serde_json::from_str(json).map_err(|error| value_error(&error))?;
    let mut all = to_json(&defaults);
    let mut params = defaults;
    // One by one, so that a message can name the parameter.
    for (name, value) in changes {
        let known = all.get_mut(&name);
        let slot = known
            .ok_or_else(|| PyValueError::new_err(format!("there is no parameter `{name}`")))?;
        let text = value.to_string();
        *slot = value;
        params = serde_json::from_value(all.clone()).map_err(|error| {
            PyValueError::new_err(format!("`{name}` cannot be {text}: {error}"))
        })?;
    }
    params.check().map_err(|error| value_error(&error))?;
    Ok(params)
}
