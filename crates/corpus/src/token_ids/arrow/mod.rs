//! Token ids in Arrow files, as `datasets` of Hugging Face writes them.
//!
//! The descriptions of columns and batches are read by code that is generated from the schema of the format. The values are
//! read here: the library of Arrow takes long to compile, and takes a damaged file for a mistake of the programmer.

mod column;
mod layout;
mod messages;
#[cfg(test)]
mod tests;

use super::items::{Item, Items};
use super::npy::invalid;
use column::Column;
use messages::{Messages, damaged};
use polars_arrow_format::ipc::{Endianness, MessageHeaderRef};
use std::io::{self, Read};
use std::vec;

/// The ids of a stream, one batch of rows at a time.
pub(super) struct ArrowIds {
    messages: Messages<Box<dyn Read + Send>>,
    column: Column,
    items: vec::IntoIter<Item>,
}

impl ArrowIds {
    pub(super) fn open(input: Box<dyn Read + Send>) -> io::Result<ArrowIds> {
        let mut messages = Messages::open(input)?;
        let message = messages.next()?.ok_or_else(|| invalid("it is empty"))?;
        let header = message.header()?.header().map_err(damaged)?;
        let Some(MessageHeaderRef::Schema(schema)) = header else {
            return Err(invalid("it does not begin with a schema"));
        };
        if schema.endianness().map_err(damaged)? != Endianness::Little {
            return Err(invalid("it is big-endian, which is not supported"));
        }
        let column = Column::find(schema, message.n_bytes())?;
        Ok(ArrowIds { messages, column, items: Vec::new().into_iter() })
    }
}

impl Items for ArrowIds {
    fn next(&mut self) -> io::Result<Option<Item>> {
        loop {
            if let Some(item) = self.items.next() {
                return Ok(Some(item));
            }
            let Some(message) = self.messages.next()? else { return Ok(None) };
            let header = message.header()?;
            // Other messages are dictionaries: no column of integers has one.
            if let Some(MessageHeaderRef::RecordBatch(batch)) = header.header().map_err(damaged)? {
                let version = header.version().map_err(damaged)?;
                self.items = self.column.items(batch, version, &message.body)?.into_iter();
            }
        }
    }
}
