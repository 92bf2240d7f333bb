//! The roles that the model plays.

use crate::fitted::encoder::Features;
use crate::model::Hmm;
use latens_corpus::Lexicon;
use latens_model::{
    DeviceError, GpuEncoder, LanguageModel, Model, ModelWriter, Tagger, TokenEncoder,
};
use serde_json::{Map, Value};

impl Model for Hmm {
    fn kind(&self) -> &'static str {
        Hmm::KIND
    }

    fn description(&self) -> &'static str {
        "a hidden Markov model"
    }

    fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    fn params_json(&self) -> Value {
        self.fitted_with().to_json()
    }

    fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    fn writer(&self) -> ModelWriter<'_> {
        self.file_writer()
    }

    fn as_language_model(&self) -> Option<&dyn LanguageModel> {
        Some(self)
    }

    fn as_token_encoder(&self) -> Option<&dyn TokenEncoder> {
        Some(self)
    }

    fn as_tagger(&self) -> Option<Box<dyn Tagger + '_>> {
        Some(Box::new(self.tagger()?))
    }

    fn feature_kinds(&self) -> Vec<&'static str> {
        Features::ALL.map(|(kind, _)| kind).to_vec()
    }

    fn encoder(&self, kind: &str) -> Option<Box<dyn TokenEncoder + '_>> {
        Some(Box::new(self.encoder(features(kind)?)))
    }

    fn gpu_encoder(&self, kind: &str) -> Option<Result<Box<dyn GpuEncoder + '_>, DeviceError>> {
        Some(self.encoder(features(kind)?).on_gpu())
    }
}

/// The kind of features with a name.
fn features(name: &str) -> Option<Features> {
    Features::ALL.iter().find(|(known, _)| *known == name).map(|&(_, features)| features)
}
