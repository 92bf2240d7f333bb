//! Arrow files of the library's own writers, whole and damaged.

use super::super::tests::{Folder, read, sentences};
use arrow_array::builder::{
    ArrayBuilder, FixedSizeListBuilder, Int64Builder, LargeListBuilder, ListBuilder,
};
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float32Array, Int32Array, ListArray,
    ListViewArray, MapArray, NullArray, PrimitiveArray, RecordBatch, RunArray, StringArray,
    StringViewArray, StructArray, UnionArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_ipc::{
    self as ipc, FieldArgs, Message, MessageArgs, MessageHeader, MetadataVersion, Null, NullArgs,
    SchemaArgs, Type, Union, UnionArgs,
};
use arrow_schema::{DataType, Field, Fields, UnionFields};
use flatbuffers::FlatBufferBuilder;
use proptest::prelude::*;
use std::error::Error;
use std::sync::Arc;

const ROWS: [&[Option<i64>]; 3] = [
    &[Some(1), Some(2), Some(3), Some(0), Some(3)],
    &[None, Some(-100)],
    &[Some(3), None, Some(1)],
];
const SENTENCES: [&str; 3] = ["Ġthe Ġd og <eos>", "og <eos>", "og Ġthe <eos>"];

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn file(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn lists() -> ArrayRef {
    let mut builder = ListBuilder::new(Int64Builder::new());
    ROWS.iter().for_each(|row| builder.append_value(row.iter().copied()));
    builder.append_null();
    Arc::new(builder.finish())
}

fn texts(n: usize) -> ArrayRef {
    Arc::new(StringArray::from(vec!["the dog"; n]))
}

#[test]
fn streams_and_files_are_read_batch_by_batch() {
    let folder = Folder::new();
    let batches: Vec<_> =
        (0..2).map(|_| batch(vec![("text", texts(4)), ("input_ids", lists())])).collect();
    for (name, bytes) in [("stream.arrow", stream(&batches)), ("FILE.ARROW", file(&batches))] {
        let corpus = read(&folder.write(name, &bytes), folder.names(None)).unwrap();
        assert_eq!(sentences(&corpus), [SENTENCES, SENTENCES].concat(), "{name}");
    }
}

#[test]
fn lists_of_other_sizes_are_rows_and_plain_columns_are_running_text() {
    let folder = Folder::new();
    let mut large = LargeListBuilder::new(Int64Builder::new());
    ROWS.iter().for_each(|row| large.append_value(row.iter().copied()));
    let mut fixed = FixedSizeListBuilder::new(Int64Builder::new(), 2);
    for id in [1, 3, 3, 2] {
        fixed.values().append_value(id);
        if fixed.values().len().is_multiple_of(2) {
            fixed.append(true);
        }
    }
    for (array, expected) in [
        (Arc::new(large.finish()) as ArrayRef, &SENTENCES[..]),
        (Arc::new(fixed.finish()), &["Ġthe og <eos>", "og Ġd <eos>"]),
    ] {
        // The only column with ids need not be called `input_ids`.
        let bytes = stream(&[batch(vec![("text", texts(array.len())), ("ids", array)])]);
        let corpus = read(&folder.write("x.arrow", &bytes), folder.names(None)).unwrap();
        assert_eq!(sentences(&corpus), expected);
    }
    check::<Int8Type>(&folder);
    check::<Int16Type>(&folder);
    check::<Int32Type>(&folder);
    check::<Int64Type>(&folder);
    check::<UInt8Type>(&folder);
    check::<UInt16Type>(&folder);
    check::<UInt32Type>(&folder);
    check::<UInt64Type>(&folder);
}

/// A column of integers goes on in the next batch.
fn check<T: ArrowPrimitiveType>(folder: &Folder)
where
    T::Native: From<bool>,
{
    let one = T::Native::from(true);
    let array: PrimitiveArray<T> = [Some(one), None, Some(one)].into_iter().collect();
    let part = batch(vec![("ids", Arc::new(array))]);
    let path = folder.write("x.arrow", &stream(&[part.clone(), part]));
    let corpus = read(&path, folder.names(None)).unwrap();
    assert_eq!(sentences(&corpus), ["Ġthe Ġthe Ġthe Ġthe <eos>"]);
}

fn problem(folder: &Folder, bytes: &[u8]) -> String {
    let error = read(&folder.write("x.arrow", bytes), folder.names(None)).unwrap_err();
    format!("{error}: {}", error.source().map_or(String::new(), ToString::to_string))
}

#[test]
fn columns_of_all_kinds_may_stand_before_the_ids() {
    let folder = Folder::new();
    let bytes = stream(&[all_kinds(), all_kinds()]);
    let corpus = read(&folder.write("x.arrow", &bytes), folder.names(None)).unwrap();
    assert_eq!(sentences(&corpus), [SENTENCES, SENTENCES].concat());
}

/// A batch whose ids come after columns of every layout.
fn all_kinds() -> RecordBatch {
    let numbers = || -> ArrayRef { Arc::new(Int32Array::from(vec![Some(1), None, Some(3), None])) };
    let field = |name: &str| Arc::new(Field::new(name, DataType::Int32, true));
    let offsets = || OffsetBuffer::from_lengths([1, 0, 2, 1]);
    let key = Arc::new(Field::new("keys", DataType::Int32, false));
    let fields = Fields::from(vec![key, field("values")]);
    let entries = StructArray::new(fields.clone(), vec![keys(), numbers()], None);
    let entry = Arc::new(Field::new("entries", DataType::Struct(fields.clone()), false));
    let ids = UnionFields::try_new([0, 1], [field("a"), field("b")]).unwrap();
    let union = |offsets: Option<Vec<i32>>| -> ArrayRef {
        let (types, offsets) = (vec![0_i8; 4].into(), offsets.map(Into::into));
        let children = vec![numbers(), numbers()];
        Arc::new(UnionArray::try_new(ids.clone(), types, offsets, children).unwrap())
    };
    let ends = Int32Array::from(vec![1, 4]);
    let run = RunArray::<Int32Type>::try_new(&ends, &StringArray::from(vec!["a", "b"])).unwrap();
    let long = "a word that is too long for a view";
    let list_view = ListViewArray::new(
        field("item"),
        vec![0, 1, 1, 3].into(),
        vec![1, 0, 2, 1].into(),
        numbers(),
        None,
    );
    batch(vec![
        ("null", Arc::new(NullArray::new(4))),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), None, None, Some(false)]))),
        ("view", Arc::new(StringViewArray::from(vec![long, "a", long, "b"]))),
        ("bytes", Arc::new(BinaryArray::from(vec![&b"ab"[..]; 4]))),
        ("list", Arc::new(ListArray::new(field("item"), offsets(), numbers(), None))),
        ("list_view", Arc::new(list_view)),
        ("map", Arc::new(MapArray::new(entry, offsets(), entries, None, false))),
        ("struct", Arc::new(StructArray::new(fields, vec![keys(), numbers()], None))),
        ("sparse", union(None)),
        ("dense", union(Some(vec![0, 1, 2, 3]))),
        ("runs", Arc::new(run)),
        ("names", Arc::new(DictionaryArray::<Int8Type>::from_iter(["a", "b", "a", "a"]))),
        ("input_ids", lists()),
        ("after", texts(4)),
    ])
}

fn keys() -> ArrayRef {
    Arc::new(Int32Array::from(vec![1, 2, 3, 4]))
}

#[test]
fn rows_of_slices_are_read() {
    let folder = Folder::new();
    let whole = batch(vec![("input_ids", lists())]);
    // The first row has an end token inside.
    let bytes = stream(&[whole.slice(2, 2), whole.slice(0, 1)]);
    let corpus = read(&folder.write("x.arrow", &bytes), folder.names(None)).unwrap();
    assert_eq!(sentences(&corpus), [SENTENCES[2], SENTENCES[0], SENTENCES[1]]);
}

#[test]
fn mistakes_are_named() {
    let folder = Folder::new();
    let bytes = stream(&[batch(vec![("input_ids", lists())])]);
    for n in [5, 20, bytes.len() - 20] {
        let problem = problem(&folder, &bytes[..n]);
        assert!(problem.contains("it is truncated"), "{n}: {problem}");
    }
    assert!(problem(&folder, b"some text").contains("it is not an Arrow file"));
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![1.0; 4]));
    let without = stream(&[batch(vec![("text", texts(4)), ("score", Arc::clone(&floats))])]);
    let problem_of = problem(&folder, &without);
    assert!(problem_of.contains("no column `input_ids`"), "{problem_of}");
    assert!(problem_of.contains("`text`, `score`"), "{problem_of}");
    let wrong = stream(&[batch(vec![("input_ids", floats)])]);
    assert!(problem(&folder, &wrong).contains("`Float32`, expected integers"));
}

/// Schemas that writers do not make: a union of too many types, or of types that are one and the same field, and columns that
/// refer to each other so often that they would fill the memory.
#[test]
fn forged_schemas_are_refused() {
    let folder = Folder::new();
    let schema = |n_children: usize, name: &str, are_distinct: bool| {
        let mut builder = FlatBufferBuilder::new();
        let name = builder.create_string(name);
        let null = Null::create(&mut builder, &NullArgs {}).as_union_value();
        let args = FieldArgs {
            name: Some(name),
            type_type: Type::Null,
            type_: Some(null),
            ..FieldArgs::default()
        };
        let mut children = vec![ipc::Field::create(&mut builder, &args); n_children];
        if are_distinct {
            children.fill_with(|| ipc::Field::create(&mut builder, &args));
        }
        let children = Some(builder.create_vector(&children));
        let union = Union::create(&mut builder, &UnionArgs::default()).as_union_value();
        let args = FieldArgs {
            type_type: Type::Union,
            type_: Some(union),
            children,
            ..FieldArgs::default()
        };
        let field = ipc::Field::create(&mut builder, &args);
        let fields = Some(builder.create_vector(&[field]));
        message(builder, SchemaArgs { fields, ..SchemaArgs::default() })
    };
    assert!(problem(&folder, &schema(3, "a", true)).contains("no column `input_ids`"));
    assert!(problem(&folder, &schema(200, "a", true)).contains("no column `input_ids`"));
    let many = problem(&folder, &schema(100, &"a".repeat(10_000), false));
    assert!(many.contains("no column `input_ids`"), "{many}");
    assert!(problem(&folder, &nested(40, 1)).contains("no column `input_ids`"));
    // Every level refers to the next one twice.
    for (depth, n_references) in [(200, 1), (40, 2)] {
        let many = problem(&folder, &nested(depth, n_references));
        assert!(many.contains("too many nested columns"), "{many}");
    }
}

/// A schema of structures in structures.
fn nested(depth: usize, n_references: usize) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let mut children = Vec::new();
    for _ in 0..depth {
        let fields = Some(builder.create_vector(&children));
        let of = ipc::Struct_::create(&mut builder, &ipc::Struct_Args {}).as_union_value();
        let args = FieldArgs {
            type_type: Type::Struct_,
            type_: Some(of),
            children: fields,
            ..FieldArgs::default()
        };
        children = vec![ipc::Field::create(&mut builder, &args); n_references];
    }
    let fields = Some(builder.create_vector(&children[..1]));
    message(builder, SchemaArgs { fields, ..SchemaArgs::default() })
}

/// A stream that consists of a schema.
fn message(mut builder: FlatBufferBuilder<'_>, args: SchemaArgs<'_>) -> Vec<u8> {
    let schema = ipc::Schema::create(&mut builder, &args);
    let args = MessageArgs {
        version: MetadataVersion::V5,
        header_type: MessageHeader::Schema,
        header: Some(schema.as_union_value()),
        ..MessageArgs::default()
    };
    let message = Message::create(&mut builder, &args);
    builder.finish(message, None);
    let bytes = builder.finished_data();
    [&[0xff; 4], &(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}

proptest! {
    /// Damaged files are read or refused; none panics.
    #[test]
    fn damaged_files_are_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        is_file: bool,
        has_all_kinds: bool,
    ) {
        let folder = Folder::new();
        let batches = [if has_all_kinds {
            all_kinds()
        } else {
            batch(vec![("text", texts(4)), ("input_ids", lists())])
        }];
        let mut bytes = if is_file { file(&batches) } else { stream(&batches) };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&folder.write("x.arrow", &bytes), folder.names(None));
    }
}
