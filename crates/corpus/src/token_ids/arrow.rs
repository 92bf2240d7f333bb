//! Token ids in Arrow files, as `datasets` of Hugging Face writes them.
//!
//! A stream consists of messages: a schema, then batches of rows. The file format is a stream after a magic word, before an
//! index that is not needed here.

use super::items::{Item, Items};
use super::npy::invalid;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::{Message, root_as_message};
use arrow_schema::{DataType, Schema};
use std::io::{self, BufRead, BufReader, Read};
use std::vec;

/// The name that tokenizers give to the column of ids.
const COLUMN: &str = "input_ids";

/// The ids of a stream, one batch of rows at a time.
pub(super) struct ArrowIds {
    input: BufReader<Box<dyn Read + Send>>,
    decoder: StreamDecoder,
    items: vec::IntoIter<Item>,
}

impl ArrowIds {
    pub(super) fn open(input: Box<dyn Read + Send>) -> io::Result<ArrowIds> {
        let mut input = BufReader::new(input);
        if input.fill_buf()?.starts_with(b"ARROW1") {
            read_exactly(&mut input, 6)?;
            skip_zeros(&mut input)?;
        }
        Ok(ArrowIds { input, decoder: StreamDecoder::new(), items: Vec::new().into_iter() })
    }

    /// The next batch of rows; `None` at the end.
    fn next_batch(&mut self) -> io::Result<Option<RecordBatch>> {
        while let Some(message) = read_message(&mut self.input)? {
            let mut message = Buffer::from(message);
            while !message.is_empty() {
                let decoded = self.decoder.decode(&mut message);
                let decoded =
                    decoded.map_err(|error| invalid(format!("it cannot be decoded ({error})")))?;
                if decoded.is_some() {
                    return Ok(decoded);
                }
            }
        }
        Ok(None)
    }
}

impl Items for ArrowIds {
    fn next(&mut self) -> io::Result<Option<Item>> {
        loop {
            if let Some(item) = self.items.next() {
                return Ok(Some(item));
            }
            let Some(batch) = self.next_batch()? else { return Ok(None) };
            let column = column(&batch.schema())?;
            self.items = items(batch.column(column))?.into_iter();
        }
    }
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

/// Reads a message with its length and its body; `None` at the end of the stream.
fn read_message(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut message = read_up_to(input, 8)?;
    if message.is_empty() {
        return Ok(None);
    }
    let (mark, length) = message.split_at(message.len().min(4));
    if mark != [0xff; 4] {
        return Err(invalid("it is not an Arrow file, or an older one than version 0.15"));
    }
    let length: [u8; 4] = length.try_into().map_err(|_| cut_off())?;
    let length = u64::from(u32::from_le_bytes(length));
    if length == 0 {
        return Ok(None);
    }
    let header = read_exactly(input, length)?;
    let body = {
        let damaged = |error| invalid(format!("it is damaged ({error})"));
        body_length(&root_as_message(&header).map_err(damaged)?)?
    };
    message.extend(header);
    message.extend(read_exactly(input, body)?);
    Ok(Some(message))
}

/// The length of the body of a message, whose buffers must be inside it: the decoder does not check that.
fn body_length(message: &Message<'_>) -> io::Result<u64> {
    let absurd = |_| invalid("it is damaged (a length is negative)");
    let length = u64::try_from(message.bodyLength()).map_err(absurd)?;
    let dictionary = message.header_as_dictionary_batch().and_then(|batch| batch.data());
    for batch in message.header_as_record_batch().into_iter().chain(dictionary) {
        u64::try_from(batch.length()).map_err(absurd)?;
        for node in batch.nodes().into_iter().flatten() {
            u64::try_from(node.length()).map_err(absurd)?;
            u64::try_from(node.null_count()).map_err(absurd)?;
        }
        for buffer in batch.buffers().into_iter().flatten() {
            let begin = u64::try_from(buffer.offset()).map_err(absurd)?;
            let size = u64::try_from(buffer.length()).map_err(absurd)?;
            if begin.checked_add(size).is_none_or(|end| end > length) {
                return Err(invalid("it is damaged (a buffer is outside of its message)"));
            }
        }
    }
    Ok(length)
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
    invalid("it is cut off")
}

/// The column of the ids: by its name, or the only one with integers or lists of them.
fn column(schema: &Schema) -> io::Result<usize> {
    let fields = schema.fields();
    if let Some(idx) = fields.iter().position(|field| field.name() == COLUMN) {
        return Ok(idx);
    }
    let has_ids = |(_, data_type): &(usize, &DataType)| match data_type {
        DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            of.data_type().is_integer()
        }
        other => other.is_integer(),
    };
    let columns = fields.iter().map(|field| field.data_type()).enumerate().filter(has_ids);
    match columns.collect::<Vec<_>>()[..] {
        [(idx, _)] => Ok(idx),
        _ => {
            let names: Vec<_> = fields.iter().map(|field| format!("`{}`", field.name())).collect();
            let names = names.join(", ");
            Err(invalid(format!("it has no column `{COLUMN}` of token ids (columns: {names})")))
        }
    }
}

/// The ids of a column. Missing values are skipped.
fn items(column: &dyn Array) -> io::Result<Vec<Item>> {
    let mut out = Vec::new();
    let mut add_row = |row: &dyn Array| {
        add(row, &mut out)?;
        out.push(Item::EndOfRow);
        Ok::<(), io::Error>(())
    };
    match column.data_type() {
        DataType::List(_) => {
            column.as_list::<i32>().iter().flatten().try_for_each(|row| add_row(&row))?;
        }
        DataType::LargeList(_) => {
            column.as_list::<i64>().iter().flatten().try_for_each(|row| add_row(&row))?;
        }
        DataType::FixedSizeList(..) => {
            column.as_fixed_size_list().iter().flatten().try_for_each(|row| add_row(&row))?;
        }
        _ => add(column, &mut out)?,
    }
    Ok(out)
}

/// Adds the integers of an array.
fn add(array: &dyn Array, out: &mut Vec<Item>) -> io::Result<()> {
    fn of<T: ArrowPrimitiveType>(array: &dyn Array, out: &mut Vec<Item>)
    where
        i64: TryFrom<T::Native>,
    {
        // A huge number stays one: no tokenizer has it.
        let id = |value| Item::Id(i64::try_from(value).unwrap_or(i64::MAX));
        out.extend(array.as_primitive::<T>().iter().flatten().map(id));
    }
    match array.data_type() {
        DataType::Int8 => of::<Int8Type>(array, out),
        DataType::Int16 => of::<Int16Type>(array, out),
        DataType::Int32 => of::<Int32Type>(array, out),
        DataType::Int64 => of::<Int64Type>(array, out),
        DataType::UInt8 => of::<UInt8Type>(array, out),
        DataType::UInt16 => of::<UInt16Type>(array, out),
        DataType::UInt32 => of::<UInt32Type>(array, out),
        DataType::UInt64 => of::<UInt64Type>(array, out),
        other => return Err(invalid(format!("its elements are `{other}`, expected integers"))),
    }
    Ok(())
}
