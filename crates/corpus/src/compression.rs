//! Opens and writes files, compressed or not.

use std::fs::File;
use std::io::{self, Read, Write};
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

/// Calls `write` with a writer that compresses to `out` if the name `path` ends in `.gz` or `.zst`.
pub fn write_compressed(
    path: impl AsRef<Path>,
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let extension = path.as_ref().extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("gz") => write_gzip(out, write),
        Some("zst") => write_zstandard(out, write),
        _ => write(out),
    }
}

#[cfg(feature = "compression")]
fn write_gzip(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // Without a time, so that equal content gives equal files.
    let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
    write(&mut encoder)?;
    encoder.finish().map(|_| ())
}

#[cfg(feature = "compression")]
fn write_zstandard(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut encoder = zstd::stream::write::Encoder::new(out, 0)?;
    write(&mut encoder)?;
    encoder.finish().map(|_| ())
}

#[cfg(not(feature = "compression"))]
use write_unsupported as write_gzip;
#[cfg(not(feature = "compression"))]
use write_unsupported as write_zstandard;

#[cfg(not(feature = "compression"))]
fn write_unsupported(
    _: &mut dyn Write,
    _: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let problem = "compressed files need a build with the feature `compression`";
    Err(io::Error::new(io::ErrorKind::Unsupported, problem))
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

#[cfg(all(test, feature = "compression"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        for (name, magic) in
            [("a.gz", &[0x1f, 0x8b][..]), ("a.ZST", &[0x28, 0xb5]), ("a.txt", b"some")]
        {
            let path = folder.path().join(name);
            let mut bytes = Vec::new();
            write_compressed(&path, &mut bytes, |out| out.write_all(b"some text")).unwrap();
            assert!(bytes.starts_with(magic), "{name}");
            std::fs::write(&path, bytes).unwrap();
            let mut text = String::new();
            open_input(&path).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "some text");
        }
    }
}
