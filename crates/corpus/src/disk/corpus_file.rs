//! Encoded corpora on disk: written in bounded memory from a text of any size, mapped by later runs.

use crate::corpus::Corpus;
use crate::disk::spool::{Spool, SpoolOf, read_lexicon};
use crate::encode::{encode_known_words, encode_new_words, settle};
use crate::error::ReadError;
use crate::input::inputs::Inputs;
use crate::input::source::Files;
use crate::lexicon::Lexicon;
use crate::sentences::Sentences;
use crate::words::preprocessing::Preprocessing;
use crate::words::vocab::VocabLimits;
use crate::words::word_id::WordId;
use latens_store::{Container, StringTable};
use std::path::Path;

impl Corpus {
    /// Encodes a text into the file `path`, learns its vocabulary on the way, and opens the file.
    ///
    /// Memory holds the vocabulary and a few blocks of text, whatever the size of the text. The folder
    /// of `path` needs free space for twice the size of the result.
    pub fn encode_to(
        path: impl AsRef<Path>,
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<Corpus, ReadError> {
        let path = path.as_ref();
        let mut spool = Spool::new(path, SpoolOf::Sentences)?;
        let seen = encode_new_words(&mut Files::new(inputs), preprocessing, &mut spool)?;
        let n_sentences = spool.n_records();
        let (vocab, ids) = settle(&seen, spool.counts(seen.len()), n_sentences, limits, |_| true);
        let lexicon = Lexicon::new(*preprocessing, *limits, vocab);
        spool.write(path, &lexicon, &StringTable::default(), |number| ids[number as usize])?;
        Corpus::open(path)
    }

    /// Encodes a text into the file `path` with a given lexicon, and opens the file.
    pub fn encode_with(
        path: impl AsRef<Path>,
        inputs: &Inputs,
        lexicon: &Lexicon,
    ) -> Result<Corpus, ReadError> {
        let path = path.as_ref();
        let mut spool = Spool::new(path, SpoolOf::Sentences)?;
        encode_known_words(&mut Files::new(inputs), lexicon, &mut spool)?;
        spool.write(path, lexicon, &StringTable::default(), WordId)?;
        Corpus::open(path)
    }

    /// Maps an encoded corpus into memory and verifies its checksum.
    pub fn open(path: impl AsRef<Path>) -> Result<Corpus, ReadError> {
        let file = Container::open(path.as_ref(), SpoolOf::Sentences.kind())?;
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
    fn a_text_encoded_on_disk_equals_the_text_read_into_memory() {
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
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            3,
            "temporary files were left behind"
        );
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
