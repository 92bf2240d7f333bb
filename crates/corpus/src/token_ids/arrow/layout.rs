//! How the arrays of a column lie in a batch, as the schema says.

use super::super::npy::invalid;
use super::messages::damaged;
use polars_arrow_format::ipc::{FieldRef, FloatingPointRef, Precision, TypeRef, UnionMode};
use std::io;

/// The deepest nesting of columns that is read.
const MAX_DEPTH: usize = 64;

/// The arrays of a column: its own, then those of its children.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) kind: Kind,
    pub(super) children: Vec<Layout>,
}

/// The buffers of an array. All but `Null`, `Runs` and unions begin with the bits of the values that are there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Integers(Integer),
    /// Lists with offsets of so many bytes.
    Lists(usize),
    /// Lists of one size.
    FixedLists(usize),
    Views(&'static str),
    Union {
        is_dense: bool,
    },
    /// Any other type, with so many buffers.
    Other(&'static str, usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Integer {
    pub(super) n_bytes: usize,
    pub(super) is_signed: bool,
}

impl Kind {
    /// The name of the type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Integers(_) => "Int",
            Kind::Lists(_) => "List",
            Kind::FixedLists(_) => "FixedSizeList",
            Kind::Union { .. } => "Union",
            Kind::Views(name) | Kind::Other(name, _) => name,
        }
    }
}

/// Reads layouts. A forged schema may refer to the same bytes again and again, so the number of fields is limited.
pub(super) struct Layouts {
    n_left: usize,
}

impl Layouts {
    /// For a schema of so many bytes.
    pub(super) fn new(n_bytes: usize) -> Layouts {
        Layouts { n_left: n_bytes / 4 + 64 }
    }

    pub(super) fn read(&mut self, field: FieldRef<'_>) -> io::Result<Layout> {
        self.at_depth(field, 0)
    }

    fn at_depth(&mut self, field: FieldRef<'_>, depth: usize) -> io::Result<Layout> {
        let n_left = self.n_left.checked_sub(1).filter(|_| depth < MAX_DEPTH);
        self.n_left = n_left.ok_or_else(|| invalid("it is damaged (too many nested columns)"))?;
        if field.dictionary().map_err(damaged)?.is_some() {
            // The values are in messages of their own; the batch has the keys.
            return Ok(Layout { kind: Kind::Other("Dictionary", 2), children: Vec::new() });
        }
        let data_type = field.type_().map_err(damaged)?;
        let kind = kind(data_type.ok_or_else(|| invalid("it is damaged (a column has no type)"))?);
        let children = field.children().map_err(damaged)?;
        let children = children.iter().flat_map(|children| children.iter());
        let children = children.map(|child| self.at_depth(child.map_err(damaged)?, depth + 1));
        Ok(Layout { kind: kind?, children: children.collect::<io::Result<_>>()? })
    }
}

fn kind(data_type: TypeRef<'_>) -> io::Result<Kind> {
    Ok(match data_type {
        TypeRef::Int(of) => {
            let n_bits = of.bit_width().map_err(damaged)?;
            let n_bytes = match n_bits {
                8 | 16 | 32 | 64 => n_bits as usize / 8,
                _ => return Err(invalid(format!("it has integers of {n_bits} bits"))),
            };
            Kind::Integers(Integer { n_bytes, is_signed: of.is_signed().map_err(damaged)? })
        }
        TypeRef::List(_) => Kind::Lists(4),
        TypeRef::LargeList(_) => Kind::Lists(8),
        TypeRef::FixedSizeList(of) => {
            Kind::FixedLists(usize::try_from(of.list_size().map_err(damaged)?).unwrap_or(0))
        }
        TypeRef::Union(of) => {
            Kind::Union { is_dense: of.mode().map_err(damaged)? == UnionMode::Dense }
        }
        TypeRef::Utf8View(_) => Kind::Views("Utf8View"),
        TypeRef::BinaryView(_) => Kind::Views("BinaryView"),
        TypeRef::Null(_) => Kind::Other("Null", 0),
        TypeRef::RunEndEncoded(_) => Kind::Other("RunEndEncoded", 0),
        TypeRef::Struct(_) => Kind::Other("Struct", 1),
        TypeRef::Map(_) => Kind::Other("Map", 2),
        TypeRef::ListView(_) => Kind::Other("ListView", 3),
        TypeRef::LargeListView(_) => Kind::Other("LargeListView", 3),
        TypeRef::Utf8(_) => Kind::Other("Utf8", 3),
        TypeRef::LargeUtf8(_) => Kind::Other("LargeUtf8", 3),
        TypeRef::Binary(_) => Kind::Other("Binary", 3),
        TypeRef::LargeBinary(_) => Kind::Other("LargeBinary", 3),
        TypeRef::FixedSizeBinary(_) => Kind::Other("FixedSizeBinary", 2),
        TypeRef::Bool(_) => Kind::Other("Boolean", 2),
        TypeRef::FloatingPoint(of) => Kind::Other(float(of)?, 2),
        TypeRef::Decimal(_) => Kind::Other("Decimal", 2),
        TypeRef::Date(_) => Kind::Other("Date", 2),
        TypeRef::Time(_) => Kind::Other("Time", 2),
        TypeRef::Timestamp(_) => Kind::Other("Timestamp", 2),
        TypeRef::Duration(_) => Kind::Other("Duration", 2),
        TypeRef::Interval(_) => Kind::Other("Interval", 2),
    })
}

fn float(of: FloatingPointRef<'_>) -> io::Result<&'static str> {
    Ok(match of.precision().map_err(damaged)? {
        Precision::Half => "Float16",
        Precision::Single => "Float32",
        Precision::Double => "Float64",
    })
}

impl Integer {
    /// The integer at an index; `None` beyond the end. A huge number stays one: no tokenizer has it.
    pub(super) fn get(self, bytes: &[u8], idx: usize) -> Option<i64> {
        let begin = idx.checked_mul(self.n_bytes)?;
        let bytes = bytes.get(begin..begin.checked_add(self.n_bytes)?)?;
        let is_negative = self.is_signed && bytes.last().is_some_and(|&byte| byte >= 0x80);
        let mut wide = [if is_negative { 0xff } else { 0 }; 8];
        wide[..self.n_bytes].copy_from_slice(bytes);
        let value = i64::from_le_bytes(wide);
        Some(if value < 0 && !self.is_signed { i64::MAX } else { value })
    }

    /// An integer that is an index; `None` if there is no such index.
    pub(super) fn index(self, bytes: &[u8], idx: usize) -> Option<usize> {
        usize::try_from(self.get(bytes, idx)?).ok()
    }
}
