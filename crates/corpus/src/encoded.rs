//! Encoded texts on disk: made in bounded memory from a text of any size, mapped by later runs.

use crate::corpus::{Corpus, Lexicon};
use crate::encode::{Numbering, encode, settle};
use crate::error::ReadError;
use crate::input::Inputs;
use crate::preprocessing::Preprocessing;
use crate::sentences::Sentences;
use crate::spool::{Spool, SpoolOf, read_lexicon};
use crate::vocab::VocabLimits;
use crate::word::WordId;
use latens_store::Container;
use latens_store::StringTable;
use std::path::Path;

impl Corpus {
    /// Encodes a text into the file `path`, with the vocabulary learned on the way, and opens it.
    ///
    /// Memory holds the vocabulary and a few blocks of text, whatever the size of the text. Beside
    /// `path` there is room needed for twice the result while this works.
    pub fn encode_to(
        path: &Path,
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<Corpus, ReadError> {
        let mut numbering = Numbering::Learned(StringTable::default());
        let mut spool = Spool::new(path, SpoolOf::Sentences)?;
        encode(inputs, preprocessing, &mut numbering, &mut spool)?;
        let Numbering::Learned(seen) = numbering else { unreachable!("it was made above") };
        let n_sentences = spool.n_records();
        let (vocab, ids) = settle(&seen, spool.counts(seen.len()), n_sentences, limits);
        let lexicon = Lexicon { preprocessing: *preprocessing, limits: *limits, vocab };
        spool.write(path, &lexicon, &StringTable::default(), |number| ids[number as usize])?;
        Corpus::open(path)
    }

    /// Encodes a text into the file `path` with a lexicon that is known already, and opens it.
    pub fn encode_with(
        path: &Path,
        inputs: &Inputs,
        lexicon: &Lexicon,
    ) -> Result<Corpus, ReadError> {
        let mut spool = Spool::new(path, SpoolOf::Sentences)?;
        let mut numbering = Numbering::Fixed(&lexicon.vocab);
        encode(inputs, &lexicon.preprocessing, &mut numbering, &mut spool)?;
        spool.write(path, lexicon, &StringTable::default(), WordId)?;
        Corpus::open(path)
    }

    /// Maps an encoded text. Every byte is checked.
    pub fn open(path: &Path) -> Result<Corpus, ReadError> {
        let file = Container::open(path, SpoolOf::Sentences.kind())?;
        let lexicon = read_lexicon(&file)?;
        let sentences = Sentences::from_parts(
            file.array("ids")?,
            file.array("offsets")?,
            file.array("segments")?,
            lexicon.vocab.len(),
        );
        let sentences = sentences.map_err(|problem| file.problem(problem.to_owned()))?;
        Ok(Corpus { lexicon, sentences })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded;
    use std::fs;

    #[test]
    fn a_text_encoded_on_disk_is_the_text_read_into_memory() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a.txt"), folder.path().join("b.txt"));
        fs::write(&a, embedded::text(embedded::Split::Train)).unwrap();
        fs::write(&b, "a b\n\nc zzz\n").unwrap();
        let inputs = Inputs::new([a, b]);
        let preprocessing = Preprocessing { lowercase: true, ..Preprocessing::default() };
        let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
        let memory = Corpus::read(&inputs, &preprocessing, &limits).unwrap();
        let path = folder.path().join("encoded");
        let disk = Corpus::encode_to(&path, &inputs, &preprocessing, &limits).unwrap();
        assert_same(&memory, &disk);
        let again = Corpus::encode_with(&path, &inputs, &memory.lexicon).unwrap();
        assert_same(&memory, &again);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing temporary is left");
    }

    fn assert_same(a: &Corpus, b: &Corpus) {
        let (x, y) = (&a.lexicon, &b.lexicon);
        assert_eq!((x.preprocessing, x.limits), (y.preprocessing, y.limits));
        assert_eq!(x.vocab.words().collect::<Vec<_>>(), y.vocab.words().collect::<Vec<_>>());
        assert_eq!(x.vocab.counts(), y.vocab.counts());
        assert_eq!(a.sentences.tokens(), b.sentences.tokens());
        assert_eq!(a.sentences.offsets(), b.sentences.offsets());
        assert_eq!(a.sentences.segment_bounds(), b.sentences.segment_bounds());
    }
}
