//! The arrays of a NumPy archive (`.npz`), which is a ZIP file.

use super::npy::invalid;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use zip::{CompressionMethod, ZipArchive};

/// Opens an array.
pub(super) type Open = Box<dyn FnOnce() -> io::Result<Box<dyn Read + Send>> + Send>;

/// The arrays of an archive, in its order, each as a `.npy` file.
pub(super) fn arrays(path: &Path) -> io::Result<Vec<Open>> {
    let mut archive = ZipArchive::new(BufReader::new(File::open(path)?))
        .map_err(|error| invalid(format!("it is not a `.npz` file ({error})")))?;
    let mut arrays: Vec<Open> = Vec::new();
    for idx in 0..archive.len() {
        let entry = archive.by_index_raw(idx).map_err(|error| invalid(error.to_string()))?;
        if !entry.name().is_ok_and(|name| name.ends_with(".npy")) {
            continue;
        }
        let begin = entry.data_start().ok_or_else(|| invalid("an array has no data"))?;
        let (size, compression) = (entry.compressed_size(), entry.compression());
        let path = path.to_owned();
        // Every array is read as it is needed, whatever its size.
        arrays.push(Box::new(move || {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(begin))?;
            let bytes = BufReader::new(file.take(size));
            match compression {
                CompressionMethod::Stored => Ok(Box::new(bytes)),
                #[cfg(feature = "compression")]
                CompressionMethod::DEFLATE => {
                    Ok(Box::new(flate2::bufread::DeflateDecoder::new(bytes)))
                }
                other => Err(invalid(format!("its compression `{other}` is not supported"))),
            }
        }));
    }
    Ok(arrays)
}
