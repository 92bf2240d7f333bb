//! Writes what the lexical template sees of a tagged text, for other programs: the tag and its attributes a line,
//! tab-separated, and a blank line after each sentence, as CRFsuite reads it.
//!
//! `cargo run --release -p latens-tasks --example attributes -- TEXT.conll COLUMN [POS_COLUMN]`, columns counted
//! from 1.

use latens_corpus::{Format, Inputs, TaggedSentences};
use latens_tasks::tagging::attributes;
use std::error::Error;
use std::io::{BufWriter, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().ok_or("a tagged text is needed")?;
    let column = |i: usize| arguments.get(i).map(|column| column.parse::<usize>().map(|n| n - 1));
    let tag_column = column(1).ok_or("the column of tags is needed")??;
    let pos_column = column(2).transpose()?;
    let inputs = Inputs { format: Some(Format::Conll), ..Inputs::new([path]) };
    let text = TaggedSentences::read(&inputs)?;
    text.check_column(tag_column)?;
    pos_column.map_or(Ok(()), |column| text.check_column(column))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for sentence in text.iter() {
        let tags = sentence.column(tag_column).ok_or("every word has it")?;
        let pos = pos_column.and_then(|column| sentence.column(column));
        for (tag, attributes) in tags.iter().zip(attributes(&sentence.words(), pos.as_deref())) {
            writeln!(out, "{tag}\t{}", attributes.join("\t"))?;
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}
