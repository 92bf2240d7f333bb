use crate::fitted::encoder::Features;
use crate::model::Lds;
use latens_corpus::Lexicon;
use latens_model::{Model, ModelWriter, TokenEncoder, WordVectors};
use serde_json::{Map, Value};
use std::borrow::Cow;

impl Model for Lds {
    fn kind(&self) -> &'static str {
        Lds::KIND
    }

    fn description(&self) -> &'static str {
        "a linear dynamical system"
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
        self.file_contents()
    }

    fn as_token_encoder(&self) -> Option<&dyn TokenEncoder> {
        Some(self)
    }

    fn word_vectors(&self) -> Option<Cow<'_, WordVectors>> {
        WordVectors::new(self.dim(), self.type_vectors().into_vec()).ok().map(Cow::Owned)
    }

    fn feature_kinds(&self) -> Vec<&'static str> {
        Features::ALL.map(|(kind, _)| kind).to_vec()
    }

    fn encoder(&self, kind: &str) -> Option<Box<dyn TokenEncoder + '_>> {
        let (_, features) = *Features::ALL.iter().find(|(name, _)| *name == kind)?;
        Some(Box::new(Lds::encoder(self, features)))
    }
}
