//! Writes the lexical attributes of a tagged text in CRFsuite's format: one line per token with the tag and its
//! attributes, tab-separated, and an empty line after each sentence.
//!
//! `cargo run --release -p latens-tasks --example attributes -- TEXT.conll COLUMN [POS_COLUMN]`. Columns are counted
//! from 1.

use latens_corpus::{Format, Inputs, TaggedSentences};
use latens_tasks::tagging::attributes;
use std::error::Error;
use std::io::{BufWriter, Write};
use std::num::NonZeroUsize;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().ok_or("missing argument: TEXT.conll")?;
    let column = |i: usize| {
        arguments.get(i).map(|column| column.parse::<NonZeroUsize>().map(|n| n.get() - 1))
    };
    let tag_column = column(1).ok_or("missing argument: COLUMN")??;
    let pos_column = column(2).transpose()?;
    let inputs = Inputs::new([path]).format(Format::Conll);
    let text = TaggedSentences::read(&inputs)?;
    text.check_column(tag_column)?;
    pos_column.map_or(Ok(()), |column| text.check_column(column))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for sentence in text.iter() {
        let tags = sentence.column(tag_column).ok_or("the column was checked")?;
        let pos = pos_column.and_then(|column| sentence.column(column));
        for (tag, attributes) in tags.iter().zip(attributes(&sentence.words(), pos.as_deref())) {
            writeln!(out, "{tag}\t{}", attributes.join("\t"))?;
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}
