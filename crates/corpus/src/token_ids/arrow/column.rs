//! The column of the ids, and its values in a batch of rows.

use super::super::items::Item;
use super::super::npy::invalid;
use arrow_ipc::{MetadataVersion, RecordBatch};
use arrow_schema::{DataType, Field, Schema, UnionMode};
use std::io;
use std::ops::Range;

/// The name that tokenizers give to the column of ids.
const NAME: &str = "input_ids";

/// The column of the ids.
pub(super) struct Column {
    /// The columns before it, whose arrays and buffers come first in a batch.
    before: Vec<DataType>,
    lists: Option<Lists>,
    ids: Integer,
}

/// How the lists of a column are stored. Without lists, a column is running text.
#[derive(Clone, Copy)]
enum Lists {
    /// Offsets as integers.
    Of(Integer),
    /// Lists of one size.
    Fixed(usize),
}

#[derive(Clone, Copy)]
struct Integer {
    n_bytes: usize,
    is_signed: bool,
}

impl Column {
    /// The column of that name, or the only one with integers or lists of them.
    pub(super) fn find(schema: &Schema) -> io::Result<Column> {
        let types: Vec<_> = schema.fields().iter().map(|field| field.data_type()).collect();
        let has_ids = |&idx: &usize| Integer::of(elements(types[idx]).1).is_some();
        let named = schema.fields().iter().position(|field| field.name() == NAME);
        let only = match (0..types.len()).filter(has_ids).collect::<Vec<_>>()[..] {
            [idx] => Some(idx),
            _ => None,
        };
        let idx = named.or(only).ok_or_else(|| no_column(schema))?;
        let (lists, ids) = elements(types[idx]);
        let expected = || invalid(format!("its elements are `{ids}`, expected integers"));
        let ids = Integer::of(ids).ok_or_else(expected)?;
        if matches!(lists, Some(Lists::Fixed(0))) {
            return Err(invalid("its lists are empty"));
        }
        Ok(Column { before: types[..idx].iter().copied().cloned().collect(), lists, ids })
    }

    /// The ids of a batch. Missing values are skipped.
    pub(super) fn items(
        &self,
        batch: &RecordBatch<'_>,
        version: MetadataVersion,
        body: &[u8],
    ) -> io::Result<Vec<Item>> {
        if batch.compression().is_some() {
            return Err(invalid("its buffers are compressed, which is not supported"));
        }
        let mut arrays = Arrays { batch, version, body, n_arrays: 0, n_buffers: 0, n_views: 0 };
        for data_type in &self.before {
            arrays.skip(data_type)?;
        }
        let Some(lists) = self.lists else {
            let array = arrays.next()?;
            let ids = arrays.integers(&array, self.ids)?;
            return Ok(ids.of(0..array.n_values).map(Item::Id).collect());
        };
        let rows = arrays.next()?;
        let offsets: &[u8] = match lists {
            Lists::Of(_) => arrays.buffer()?,
            Lists::Fixed(_) => &[],
        };
        let array = arrays.next()?;
        let ids = arrays.integers(&array, self.ids)?;
        let mut items =
            Vec::with_capacity(array.n_values.saturating_add(rows.n_values.min(offsets.len())));
        let mut end: usize = 0;
        for row in 0..rows.n_values {
            let (from, to) = match lists {
                Lists::Of(offset) => (offset.index(offsets, row), offset.index(offsets, row + 1)),
                Lists::Fixed(n) => (Some(end), end.checked_add(n)),
            };
            let (Some(from), Some(to)) = (from, to) else { return Err(too_short()) };
            // Rows that overlap would need more memory than the file has bytes.
            if from < end || from > to || to > array.n_values {
                return Err(invalid("it is damaged (a row is outside of its column)"));
            }
            end = to;
            if rows.has(row) {
                items.extend(ids.of(from..to).map(Item::Id));
                items.push(Item::EndOfRow);
            }
        }
        Ok(items)
    }
}

/// The lists and the type of the elements of a column.
fn elements(data_type: &DataType) -> (Option<Lists>, &DataType) {
    let offsets = |n_bytes| Some(Lists::Of(Integer { n_bytes, is_signed: true }));
    match data_type {
        DataType::List(of) => (offsets(4), of.data_type()),
        DataType::LargeList(of) => (offsets(8), of.data_type()),
        DataType::FixedSizeList(of, n) => {
            (Some(Lists::Fixed(usize::try_from(*n).unwrap_or(0))), of.data_type())
        }
        other => (None, other),
    }
}

impl Integer {
    fn of(data_type: &DataType) -> Option<Integer> {
        let n_bytes = data_type.is_integer().then(|| data_type.primitive_width())??;
        Some(Integer { n_bytes, is_signed: data_type.is_signed_integer() })
    }

    /// The integer at an index; `None` beyond the end. A huge number stays one: no tokenizer has it.
    fn get(self, bytes: &[u8], idx: usize) -> Option<i64> {
        let begin = idx.checked_mul(self.n_bytes)?;
        let bytes = bytes.get(begin..begin.checked_add(self.n_bytes)?)?;
        let is_negative = self.is_signed && bytes.last().is_some_and(|&byte| byte >= 0x80);
        let mut wide = [if is_negative { 0xff } else { 0 }; 8];
        wide[..self.n_bytes].copy_from_slice(bytes);
        let value = i64::from_le_bytes(wide);
        Some(if value < 0 && !self.is_signed { i64::MAX } else { value })
    }

    /// An integer that is an index; `None` if there is no such index.
    fn index(self, bytes: &[u8], idx: usize) -> Option<usize> {
        usize::try_from(self.get(bytes, idx)?).ok()
    }
}

/// The arrays of a batch, one after another. Each has a node, and buffers of the one body.
struct Arrays<'a> {
    batch: &'a RecordBatch<'a>,
    version: MetadataVersion,
    body: &'a [u8],
    n_arrays: usize,
    n_buffers: usize,
    n_views: usize,
}

/// The length of an array and which of its values are there.
struct Values<'a> {
    n_values: usize,
    /// A bit for each value, if some are missing.
    present: Option<&'a [u8]>,
}

impl Values<'_> {
    fn has(&self, idx: usize) -> bool {
        self.present.is_none_or(|bits| bits[idx / 8] >> (idx % 8) & 1 == 1)
    }
}

/// An array of integers, which are all inside its buffer.
struct Integers<'a> {
    values: &'a Values<'a>,
    bytes: &'a [u8],
    integer: Integer,
}

impl Integers<'_> {
    /// The integers of a range that are there.
    fn of(&self, range: Range<usize>) -> impl Iterator<Item = i64> {
        let present = range.filter(|&idx| self.values.has(idx));
        present.filter_map(|idx| self.integer.get(self.bytes, idx))
    }
}

impl<'a> Arrays<'a> {
    /// The node of the next array, with the bits of its values.
    fn next(&mut self) -> io::Result<Values<'a>> {
        let nodes = self.batch.nodes();
        let node = nodes.filter(|nodes| self.n_arrays < nodes.len());
        let node = node.ok_or_else(too_short)?.get(self.n_arrays);
        self.n_arrays += 1;
        let n_values = usize::try_from(node.length()).map_err(|_| negative())?;
        let bits = self.buffer()?;
        if node.null_count() == 0 || bits.is_empty() {
            return Ok(Values { n_values, present: None });
        }
        if bits.len() < n_values.div_ceil(8) {
            return Err(too_short());
        }
        Ok(Values { n_values, present: Some(bits) })
    }

    /// The buffer of an array of integers.
    fn integers<'v>(
        &mut self,
        values: &'v Values<'a>,
        integer: Integer,
    ) -> io::Result<Integers<'v>> {
        let bytes = self.buffer()?;
        let is_whole =
            values.n_values.checked_mul(integer.n_bytes).is_some_and(|n| n <= bytes.len());
        if !is_whole {
            return Err(too_short());
        }
        Ok(Integers { values, bytes, integer })
    }

    /// The next buffer.
    fn buffer(&mut self) -> io::Result<&'a [u8]> {
        let buffers = self.batch.buffers().filter(|buffers| self.n_buffers < buffers.len());
        let buffer = buffers.ok_or_else(too_short)?.get(self.n_buffers);
        self.n_buffers += 1;
        let begin = usize::try_from(buffer.offset()).map_err(|_| negative())?;
        let length = usize::try_from(buffer.length()).map_err(|_| negative())?;
        let end = begin.checked_add(length);
        let outside = || invalid("it is damaged (a buffer is outside of its message)");
        end.and_then(|end| self.body.get(begin..end)).ok_or_else(outside)
    }

    /// Skips the arrays of a column. They are counted as in the specification of the format.
    fn skip(&mut self, data_type: &DataType) -> io::Result<()> {
        let skip_fields = |arrays: &mut Self, fields: &[&Field]| {
            fields.iter().try_for_each(|field| arrays.skip(field.data_type()))
        };
        self.n_arrays += 1;
        // The bits of values that are there, and what the type needs.
        match data_type {
            DataType::Null => Ok(()),
            DataType::Binary | DataType::LargeBinary | DataType::Utf8 | DataType::LargeUtf8 => {
                self.n_buffers += 3;
                Ok(())
            }
            DataType::BinaryView | DataType::Utf8View => {
                let counts = self.batch.variadicBufferCounts();
                let counts = counts.filter(|counts| self.n_views < counts.len());
                let n = counts.ok_or_else(too_short)?.get(self.n_views);
                self.n_views += 1;
                let n_buffers = usize::try_from(n).ok().and_then(|n| n.checked_add(2));
                let n_buffers = n_buffers.and_then(|n| self.n_buffers.checked_add(n));
                let n_all = self.batch.buffers().map_or(0, |buffers| buffers.len());
                self.n_buffers = n_buffers.filter(|&n| n <= n_all).ok_or_else(too_short)?;
                Ok(())
            }
            DataType::List(of) | DataType::LargeList(of) | DataType::Map(of, _) => {
                self.n_buffers += 2;
                skip_fields(self, &[of])
            }
            DataType::ListView(of) | DataType::LargeListView(of) => {
                self.n_buffers += 3;
                skip_fields(self, &[of])
            }
            DataType::FixedSizeList(of, _) => {
                self.n_buffers += 1;
                skip_fields(self, &[of])
            }
            DataType::Struct(fields) => {
                self.n_buffers += 1;
                fields.iter().try_for_each(|field| self.skip(field.data_type()))
            }
            DataType::RunEndEncoded(ends, values) => skip_fields(self, &[ends, values]),
            DataType::Union(fields, mode) => {
                self.n_buffers += 1 + usize::from(*mode == UnionMode::Dense);
                self.n_buffers += usize::from(self.version < MetadataVersion::V5);
                fields.iter().try_for_each(|(_, field)| self.skip(field.data_type()))
            }
            // Numbers, times and keys of dictionaries.
            _ => {
                self.n_buffers += 2;
                Ok(())
            }
        }
    }
}

fn no_column(schema: &Schema) -> io::Error {
    let names = schema.fields().iter().map(|field| format!("`{}`", field.name()));
    let names: Vec<_> = names.take(20).collect();
    let names = names.join(", ");
    invalid(format!("it has no column `{NAME}` of token ids (columns: {names})"))
}

fn negative() -> io::Error {
    invalid("it is damaged (a length is negative)")
}

fn too_short() -> io::Error {
    invalid("it is damaged (a column is shorter than its batch says)")
}
