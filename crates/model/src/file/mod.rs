//! The model file: one file that holds all of a model, and says so if it is damaged.
//!
//! It is a [safetensors](https://github.com/huggingface/safetensors) file, so any program that
//! reads those (Python's `safetensors.numpy.load_file`, for one) sees the arrays by name. In bytes:
//!
//! ```text
//! length of the JSON (u64) | JSON, padded with blanks | arrays
//! {"__metadata__": {"format": "latens", "header_checksum": "…", "data_checksum": "…",
//!                   "latens": "{\"kind\": …, \"parameters\": …}"},
//!  "vocab.ends": {"dtype": "U64", "shape": [5], "data_offsets": [0, 40]}, …}
//! ```
//!
//! - The arrays begin at a multiple of 64 bytes and follow each other by decreasing alignment,
//!   without holes: they are used where they lie in the mapped file.
//! - The checksums (xxh3, 16 hexadecimal digits) together cover every byte. That of the header is
//!   over the length and the JSON, with its own digits taken as zeros; that of the data is over
//!   everything after the JSON.
//! - The vocabulary is `vocab.letters`, all words without anything between them (UTF-8);
//!   `vocab.ends`, where each word ends; and `vocab.counts`.

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
pub use header::{CheckpointHeader, Header};
pub use reader::ModelFile;
pub use writer::ModelWriter;

pub(crate) use sealed::{ArrayEntry, ByteRows, Content, Whole, write_sealed};
pub(crate) use writer::to_json;
