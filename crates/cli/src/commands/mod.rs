//! One file per command: its arguments, and how its result is shown.

mod roles;
pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod demo;
pub(crate) mod encode;
#[cfg(feature = "explore")]
pub(crate) mod explore;
pub(crate) mod inspect;
pub(crate) mod manual;
pub(crate) mod nearest;
pub(crate) mod language;
#[cfg(feature = "reproduce")]
pub(crate) mod reproduce;
pub(crate) mod shard;
pub(crate) mod tag;
pub(crate) mod topics;
pub(crate) mod vocab;
