//! The arrays of a NumPy archive (`.npz`), which is a ZIP file.

use super::npy::invalid;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use zip::{CompressionMethod, ZipArchive};

/// The arrays of an archive, in its order, each as a `.npy` file.
pub(super) fn arrays(path: &Path) -> io::Result<Vec<Box<dyn Read + Send>>> {
    let mut archive = ZipArchive::new(BufReader::new(File::open(path)?))
        .map_err(|error| invalid(format!("it is not a `.npz` file ({error})")))?;
    let mut arrays = Vec::new();
    for idx in 0..archive.len() {
        let entry = archive.by_index_raw(idx).map_err(|error| invalid(error.to_string()))?;
        if !entry.name().is_ok_and(|name| name.ends_with(".npy")) {
            continue;
        }
        let begin = entry.data_start().ok_or_else(|| invalid("an array has no data"))?;
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(begin))?;
        // Every array is read as it is needed, whatever its size.
        let bytes = BufReader::new(file.take(entry.compressed_size()));
        arrays.push(match entry.compression() {
            CompressionMethod::Stored => Box::new(bytes) as Box<dyn Read + Send>,
            #[cfg(feature = "compression")]
            CompressionMethod::DEFLATE => Box::new(flate2::bufread::DeflateDecoder::new(bytes)),
            other => return Err(invalid(format!("its compression `{other}` is not supported"))),
        });
    }
    Ok(arrays)
}
