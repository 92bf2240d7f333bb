//! Token ids in Arrow files, as `datasets` of Hugging Face writes them.
//!
//! The library reads the descriptions of columns and batches. The values are read here: its own arrays take a damaged file for
//! a mistake of the programmer, and panic.

mod column;
mod messages;
#[cfg(test)]
mod tests;

use super::items::{Item, Items};
use super::npy::invalid;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{Endianness, Field};
use column::Column;
use flatbuffers::{ForwardsUOffset, Vector};
use messages::Messages;
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
        let header = message.header()?;
        let schema = header.header_as_schema();
        let schema = schema.ok_or_else(|| invalid("it does not begin with a schema"))?;
        if schema.endianness() != Endianness::Little {
            return Err(invalid("it is big-endian, which is not supported"));
        }
        check_unions(schema.fields())?;
        let schema = try_fb_to_schema(schema);
        let schema = schema.map_err(|error| invalid(format!("it cannot be decoded ({error})")))?;
        let column = Column::find(&schema)?;
        Ok(ArrowIds { messages, column, items: Vec::new().into_iter() })
    }
}

/// Refuses unions of so many types that the library panics.
fn check_unions(fields: Option<Vector<'_, ForwardsUOffset<Field<'_>>>>) -> io::Result<()> {
    for field in fields.into_iter().flatten() {
        let has_types = field.type_as_union().is_none_or(|union| union.typeIds().is_some());
        if !has_types && field.children().is_some_and(|children| children.len() > 127) {
            return Err(invalid("it has a union of more than 127 types"));
        }
        check_unions(field.children())?;
    }
    Ok(())
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
            if let Some(batch) = header.header_as_record_batch() {
                let items = self.column.items(&batch, header.version(), &message.body)?;
                self.items = items.into_iter();
            }
        }
    }
}
