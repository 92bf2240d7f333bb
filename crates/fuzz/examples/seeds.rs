//! Writes the seeds of all targets to `fuzz/corpus/TARGET/NAME`, or to another folder that is given.

use std::env;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
    let folder = env::args().nth(1).unwrap_or_else(|| default.to_owned());
    latens_fuzz::seeds::write(Path::new(&folder))
}
