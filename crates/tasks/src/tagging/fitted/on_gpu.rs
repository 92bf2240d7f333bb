//! A tagger with encoders on a GPU.

use super::tagger::FeatureTagger;
use crate::tagging::features::word_encoder::{GpuWordEncoder, WordEncoder};
use latens_model::{DeviceError, FeatureRows, GpuTagger, TagError, TagInput, TagOutputs, Tagged};

/// A tagger some of whose encoders compute on a GPU. The CPU computes the other encoders and the scores of tags.
pub(super) struct FeatureTaggerOnGpu<'t> {
    tagger: &'t FeatureTagger,
    encoders: Vec<OpenedEncoder<'t>>,
}

enum OpenedEncoder<'t> {
    Cpu(&'t dyn WordEncoder),
    Gpu(Box<dyn GpuWordEncoder + 't>),
}

impl<'t> FeatureTaggerOnGpu<'t> {
    /// `None` if a GPU computes none of the encoders.
    pub(super) fn open(
        tagger: &'t FeatureTagger,
    ) -> Result<Option<FeatureTaggerOnGpu<'t>>, DeviceError> {
        let open = |encoder: &'t dyn WordEncoder| {
            let on_gpu = encoder.on_gpu().transpose()?;
            Ok(on_gpu.map_or(OpenedEncoder::Cpu(encoder), OpenedEncoder::Gpu))
        };
        let encoders = tagger.encoders.iter().map(|encoder| open(&*encoder.encoder.model));
        let encoders: Vec<OpenedEncoder<'t>> = encoders.collect::<Result<_, _>>()?;
        let has_gpu = encoders.iter().any(|encoder| matches!(encoder, OpenedEncoder::Gpu(_)));
        Ok(has_gpu.then_some(FeatureTaggerOnGpu { tagger, encoders }))
    }
}

impl GpuTagger for FeatureTaggerOnGpu<'_> {
    fn tag_all_with(
        &mut self,
        sentences: &[TagInput<'_>],
        outputs: TagOutputs,
    ) -> Result<Vec<Result<Tagged, TagError>>, DeviceError> {
        let encoders = &mut self.encoders;
        self.tagger.tag_parts(sentences, outputs, |words| {
            encoders.iter_mut().map(|encoder| encoder.encode_all(words)).collect()
        })
    }
}

impl OpenedEncoder<'_> {
    fn encode_all(&mut self, sentences: &[Vec<&str>]) -> Result<Vec<FeatureRows>, DeviceError> {
        match self {
            OpenedEncoder::Cpu(encoder) => Ok(encoder.encode_all(sentences)),
            OpenedEncoder::Gpu(encoder) => encoder.encode_all(sentences),
        }
    }
}
