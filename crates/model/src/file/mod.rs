//! The model file format: a single file per model, with checksums.
//!
//! It is a [safetensors](https://github.com/huggingface/safetensors) file, so that other programs,
//! such as Python's `safetensors.numpy.load_file`, can read the arrays by name. Layout:
//!
//! ```text
//! length of the JSON (u64) | JSON, padded with spaces | arrays
//! {"__metadata__": {"format": "latens", "header_checksum": "…", "data_checksum": "…",
//!                   "latens": "{\"kind\": …, \"parameters\": …}"},
//!  "vocab.ends": {"dtype": "U64", "shape": [5], "data_offsets": [0, 40]}, …}
//! ```
//!
//! - The arrays begin at a multiple of 64 bytes and are ordered by decreasing alignment without
//!   gaps, so that they can be used directly in the memory-mapped file.
//! - Two checksums (xxh3, 16 hexadecimal digits) cover every byte. The header checksum covers the
//!   length and the JSON, with its own digits replaced by zeros. The data checksum covers
//!   everything after the JSON.
//! - The vocabulary is stored as `vocab.letters`, the concatenated words in UTF-8; `vocab.ends`,
//!   the end offset of each word; and `vocab.counts`.
//! - A model file contains no times and no speeds: the same parameters, data and seed give the same
//!   bytes (word2vec: with one thread). The trainer reports times while it runs.

mod writer;
mod reader;
mod header;
mod contents;
mod sealed;
mod element;
mod error;

pub use contents::{ArrayInfo, Inspection, inspect};
pub use element::{Element, ElementType};
pub use error::FileError;
pub use header::{CheckpointHeader, Header, is_timing};
pub use reader::ModelFile;
pub use writer::ModelWriter;

pub(crate) use sealed::{ArrayEntry, ByteRows, Content, Whole, write_sealed};
pub(crate) use writer::to_json;
