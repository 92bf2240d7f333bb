//! The column of the ids, and its values in a batch of rows.

use super::super::items::Item;
use super::super::npy::invalid;
use super::layout::{Integer, Kind, Layout, Layouts};
use super::messages::damaged;
use polars_arrow_format::ipc::planus::Vector;
use polars_arrow_format::ipc::{
    BufferRef, FieldNodeRef, MetadataVersion, RecordBatchRef, SchemaRef,
};
use std::io;
use std::ops::Range;

/// The name that tokenizers give to the column of ids.
const NAME: &str = "input_ids";

/// The column of the ids.
pub(super) struct Column {
    /// The columns before it, whose arrays and buffers come first in a batch.
    before: Vec<Layout>,
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

impl Column {
    /// The column of that name, or the only one with integers or lists of them, in a schema of `n_bytes`.
    pub(super) fn find(schema: SchemaRef<'_>, n_bytes: usize) -> io::Result<Column> {
        let mut layouts = Layouts::new(n_bytes);
        let (mut names, mut columns) = (Vec::new(), Vec::new());
        let fields = schema.fields().map_err(damaged)?;
        for field in fields.iter().flat_map(|fields| fields.iter()) {
            let field = field.map_err(damaged)?;
            names.push(field.name().map_err(damaged)?.unwrap_or_default());
            columns.push(layouts.read(field)?);
        }
        let has_ids =
            |&idx: &usize| elements(&columns[idx]).is_some_and(|(_, ids)| integer(ids).is_some());
        let named = names.iter().position(|&name| name == NAME);
        let only = match (0..columns.len()).filter(has_ids).collect::<Vec<_>>()[..] {
            [idx] => Some(idx),
            _ => None,
        };
        let idx = named.or(only).ok_or_else(|| no_column(&names))?;
        let (lists, ids) = elements(&columns[idx]).ok_or_else(too_short)?;
        let expected =
            || invalid(format!("its elements are `{}`, expected integers", ids.kind.name()));
        let ids = integer(ids).ok_or_else(expected)?;
        if matches!(lists, Some(Lists::Fixed(0))) {
            return Err(invalid("its lists are empty"));
        }
        columns.truncate(idx);
        Ok(Column { before: columns, lists, ids })
    }

    /// The ids of a batch. Missing values are skipped.
    pub(super) fn items(
        &self,
        batch: RecordBatchRef<'_>,
        version: MetadataVersion,
        body: &[u8],
    ) -> io::Result<Vec<Item>> {
        if batch.compression().map_err(damaged)?.is_some() {
            return Err(invalid("its buffers are compressed, which is not supported"));
        }
        let mut arrays = Arrays {
            nodes: batch.nodes().map_err(damaged)?,
            buffers: batch.buffers().map_err(damaged)?,
            views: batch.variadic_buffer_counts().map_err(damaged)?,
            version,
            body,
            n_arrays: 0,
            n_buffers: 0,
            n_views: 0,
        };
        for layout in &self.before {
            arrays.skip(layout)?;
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

/// The lists and the elements of a column; `None` if its lists have none, which no writer makes.
fn elements(column: &Layout) -> Option<(Option<Lists>, &Layout)> {
    let lists = match column.kind {
        Kind::Lists(n_bytes) => Lists::Of(Integer { n_bytes, is_signed: true }),
        Kind::FixedLists(n) => Lists::Fixed(n),
        _ => return Some((None, column)),
    };
    Some((Some(lists), column.children.first()?))
}

fn integer(layout: &Layout) -> Option<Integer> {
    match layout.kind {
        Kind::Integers(integer) => Some(integer),
        _ => None,
    }
}

/// The arrays of a batch, one after another. Each has a node, and buffers of the one body.
struct Arrays<'a> {
    nodes: Option<Vector<'a, FieldNodeRef<'a>>>,
    buffers: Option<Vector<'a, BufferRef<'a>>>,
    /// The number of buffers of each array of views.
    views: Option<Vector<'a, i64>>,
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
        let node = self.nodes.and_then(|nodes| nodes.get(self.n_arrays)).ok_or_else(too_short)?;
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
        let buffer = self.buffers.and_then(|buffers| buffers.get(self.n_buffers));
        let buffer = buffer.ok_or_else(too_short)?;
        self.n_buffers += 1;
        let begin = usize::try_from(buffer.offset()).map_err(|_| negative())?;
        let length = usize::try_from(buffer.length()).map_err(|_| negative())?;
        let end = begin.checked_add(length);
        let outside = || invalid("it is damaged (a buffer is outside of its message)");
        end.and_then(|end| self.body.get(begin..end)).ok_or_else(outside)
    }

    /// Skips the arrays of a column. They are counted as in the specification of the format.
    fn skip(&mut self, layout: &Layout) -> io::Result<()> {
        self.n_arrays += 1;
        self.n_buffers += match layout.kind {
            // The bits of values that are there, and the values or offsets.
            Kind::Integers(_) | Kind::Lists(_) => 2,
            Kind::FixedLists(_) => 1,
            Kind::Union { is_dense } => {
                1 + usize::from(is_dense) + usize::from(self.version < MetadataVersion::V5)
            }
            Kind::Views(_) => self.views()?,
            Kind::Other(_, n_buffers) => n_buffers,
        };
        layout.children.iter().try_for_each(|child| self.skip(child))
    }

    /// The number of buffers of the next array of views.
    fn views(&mut self) -> io::Result<usize> {
        let n = self.views.and_then(|views| views.get(self.n_views)).ok_or_else(too_short)?;
        self.n_views += 1;
        let n_all = self.buffers.map_or(0, |buffers| buffers.len());
        let n = usize::try_from(n).ok().and_then(|n| n.checked_add(2));
        n.filter(|&n| n <= n_all).ok_or_else(too_short)
    }
}

fn no_column(names: &[&str]) -> io::Error {
    let names: Vec<_> = names.iter().take(20).map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    invalid(format!("it has no column `{NAME}` of token ids (columns: {names})"))
}

fn negative() -> io::Error {
    invalid("it is damaged (a length is negative)")
}

fn too_short() -> io::Error {
    invalid("it is damaged (a column is shorter than its batch says)")
}
