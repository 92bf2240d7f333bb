//! Storage for everything that outlives a run: atomic file writes, memory-mapped arrays and
//! checksummed containers.
//!
//! The crate is independent of text and models. A file gets its name when it is complete. A crash
//! therefore never leaves a partial file, and the content of a mapped file never changes.
//!
//! ```
//! use latens_store::{Container, write_container};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("squares");
//! let squares: Vec<u64> = (0..10).map(|i| i * i).collect();
//! write_container(&path, "squares", &"0 to 9", &[("values", 80)], |out| out.array(&squares))?;
//!
//! let file = Container::open(&path, "squares")?; // verifies the checksum
//! assert_eq!(file.array::<u64>("values")?[3], 9); // used in place, without a copy
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod place;
mod atomic;
mod temporary;
mod lock;
mod array;
mod container;
mod strings;

pub use array::{FlatArray, MappedFile, map_bytes, map_file, map_open_file};
pub use atomic::{check_writable, write_atomically};
pub use container::{
    ArrayWriter, Container, ContainerError, container_bytes, is_container, write_container,
};
pub use error::StorageError;
pub use lock::{LockError, OutputLock, lock_path};
pub use place::{is_stream, parent_folder, without_links};
pub use strings::StringTable;
