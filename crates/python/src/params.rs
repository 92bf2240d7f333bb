//! Parameters of models as JSON objects.

use crate::errors::value_error;
use latens::model::Params;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The default parameters of a kind of model, as JSON.
#[pyfunction]
pub(crate) fn default_params(kind: &str) -> PyResult<String> {
    let known = latens::KINDS.iter().find(|known| known.name == kind);
    let params = known.and_then(|known| (known.default_params)());
    let params = params
        .ok_or_else(|| PyValueError::new_err(format!("there is no model of kind `{kind}`")))?;
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
