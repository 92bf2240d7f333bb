//! The messages that a stream consists of: a schema, then batches of rows.
//!
//! The file format is a stream after a magic word, before an index that is not needed here.

use super::super::npy::invalid;
use polars_arrow_format::ipc::MessageRef;
use polars_arrow_format::ipc::planus::{self, ReadAsRoot};
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

/// The messages of a stream or a file.
pub(super) struct Messages<R> {
    input: BufReader<Chain<Cursor<Vec<u8>>, R>>,
}

/// A message: what it says about its body, and the body.
pub(super) struct Message {
    header: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl Message {
    pub(super) fn header(&self) -> io::Result<MessageRef<'_>> {
        MessageRef::read_as_root(&self.header).map_err(damaged)
    }

    /// Size of the header.
    pub(super) fn n_bytes(&self) -> usize {
        self.header.len()
    }
}

impl<R: Read> Messages<R> {
    pub(super) fn open(mut input: R) -> io::Result<Messages<R>> {
        let mut first = read_up_to(&mut input, 6)?;
        let is_file = first == b"ARROW1";
        if is_file {
            first.clear();
        }
        let mut input = BufReader::new(Cursor::new(first).chain(input));
        if is_file {
            skip_zeros(&mut input)?;
        }
        Ok(Messages { input })
    }

    /// The next message; `None` at the end of the stream.
    pub(super) fn next(&mut self) -> io::Result<Option<Message>> {
        let prefix = read_up_to(&mut self.input, 8)?;
        if prefix.is_empty() {
            return Ok(None);
        }
        let (mark, length) = prefix.split_at(prefix.len().min(4));
        if mark != [0xff; 4] {
            return Err(invalid("it is not an Arrow file, or an older one than version 0.15"));
        }
        let length: [u8; 4] = length.try_into().map_err(|_| cut_off())?;
        let length = u64::from(u32::from_le_bytes(length));
        if length == 0 {
            return Ok(None);
        }
        let bytes = read_exactly(&mut self.input, length)?;
        let mut message = Message { header: bytes, body: Vec::new() };
        let body = u64::try_from(message.header()?.body_length().map_err(damaged)?);
        let body = body.map_err(|_| invalid("it is damaged (a length is negative)"))?;
        message.body = read_exactly(&mut self.input, body)?;
        Ok(Some(message))
    }
}

/// A header that does not have the form of its schema.
pub(super) fn damaged(error: planus::Error) -> io::Error {
    invalid(format!("it is damaged ({})", error.error_kind))
}

/// Skips what pads the magic word: two bytes, or more if the writer aligns messages.
fn skip_zeros(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let n_zeros = buffer.iter().take_while(|&&byte| byte == 0).count();
        let is_all = n_zeros == buffer.len() && n_zeros > 0;
        input.consume(n_zeros);
        if !is_all {
            return Ok(());
        }
    }
}

/// Reads as many bytes as there are, whatever a damaged file claims.
fn read_up_to(input: &mut impl Read, n: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(n).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_exactly(input: &mut impl Read, n: u64) -> io::Result<Vec<u8>> {
    let bytes = read_up_to(input, n)?;
    if bytes.len() as u64 == n { Ok(bytes) } else { Err(cut_off()) }
}

fn cut_off() -> io::Error {
    invalid("it is truncated")
}
