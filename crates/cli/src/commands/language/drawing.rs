//! Options of commands that draw words.

use clap::ValueEnum;

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum UnkArg {
    /// Draw `<unk>` as often as the model expects unknown words
    Keep,
    /// Never draw `<unk>`; the other words are renormalized
    #[default]
    Never,
}

pub(super) fn temperature(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|t| t.is_finite() && *t >= 0.0);
    parsed.ok_or_else(|| "expected a number of at least 0".into())
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 1.0);
    parsed.ok_or_else(|| "expected a number above 0 and at most 1".into())
}
