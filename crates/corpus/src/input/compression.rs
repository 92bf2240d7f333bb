//! Opens files, compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens a file for reading; `-` is the standard input.
///
/// Files whose names end in `.gz` or `.zst` are decompressed. Without the feature `compression` they
/// give an error of kind [`io::ErrorKind::Unsupported`].
pub fn open_input(path: impl AsRef<Path>) -> io::Result<Box<dyn Read + Send>> {
    let path = path.as_ref();
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("gz") => gzip(file),
        Some("zst") => zstandard(file),
        _ => Ok(Box::new(file)),
    }
}

#[cfg(feature = "compression")]
fn gzip(file: File) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::new(file))))
}

#[cfg(feature = "compression")]
fn zstandard(file: File) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(zstd::stream::read::Decoder::new(file)?))
}

#[cfg(not(feature = "compression"))]
use unsupported as gzip;
#[cfg(not(feature = "compression"))]
use unsupported as zstandard;

#[cfg(not(feature = "compression"))]
fn unsupported(_: File) -> io::Result<Box<dyn Read + Send>> {
    let problem =
        "compressed files need a build with the feature `compression`; decompress it first";
    Err(io::Error::new(io::ErrorKind::Unsupported, problem))
}

#[cfg(all(test, not(feature = "compression")))]
mod tests {
    use super::*;

    #[test]
    fn compressed_files_are_refused_with_the_name_of_the_feature() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.gz", "a.txt.ZST"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "any bytes").unwrap();
            let error = open_input(&path).err().expect("no decompression is built in");
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains("`compression`"), "{error}");
        }
    }
}
