//! Word analogies, a test of word vectors (Mikolov et al. 2013).

use latens_corpus::{LineError, LineReader, Vocab, WordId};
use latens_model::WordVectors;
use rayon::prelude::*;
use std::io::BufRead;
use thiserror::Error;

/// An analogy "a is to b as c is to d"; the task is to find d.
pub type Question = [String; 4];

/// The result of a set of analogy questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Analogies {
    /// Number of questions whose four words all have vectors.
    pub n_asked: usize,
    /// Number of asked questions answered correctly: d is the nearest word.
    pub n_correct: usize,
    /// Number of questions skipped because a word has no vector.
    pub n_skipped: usize,
}

impl Analogies {
    /// Fraction of asked questions answered correctly; NaN if no question was asked.
    pub fn accuracy(&self) -> f64 {
        self.n_correct as f64 / self.n_asked as f64
    }
}

/// A file of questions cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// A line cannot be read.
    #[error(transparent)]
    Line(#[from] LineError),
    /// A line does not have four words.
    #[error("line {line}: expected four words, found {found}")]
    Words {
        /// Line number, counted from 1.
        line: u64,
        /// Number of words on the line.
        found: usize,
    },
}

/// Reads questions in the format of `questions-words.txt`: four words per line.
///
/// Lines that begin with `:` are section titles. Titles and empty lines are skipped.
pub fn read_questions(input: &mut dyn BufRead) -> Result<Vec<Question>, QuestionError> {
    let (mut lines, mut questions) = (LineReader::new(input), Vec::new());
    loop {
        let number = lines.number() + 1;
        let Some(line) = lines.next_str()?.map(str::trim) else { return Ok(questions) };
        if line.is_empty() || line.starts_with(':') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let words: [&str; 4] = words
            .try_into()
            .map_err(|words: Vec<_>| QuestionError::Words { line: number, found: words.len() })?;
        questions.push(words.map(str::to_owned));
    }
}

/// Answers all questions: for a, b, c the answer is the word nearest to b − a + c, excluding a, b and c.
///
/// Words are looked up as written, then in lowercase.
pub fn analogies(vectors: &WordVectors, vocab: &Vocab, questions: &[Question]) -> Analogies {
    let find = |word: &String| {
        let has_vector = |id: &WordId| *id != WordId::UNK && vectors.get(*id).is_some();
        let exact = vocab.get(word).filter(has_vector);
        exact.or_else(|| vocab.get(&word.to_lowercase()).filter(has_vector))
    };
    let is_correct = |question: &Question| -> Option<bool> {
        let [a, b, c, d] = question.each_ref().map(find);
        let (a, b, c, d) = (a?, b?, c?, d?);
        let nearest = vectors.nearest(&vectors.analogy(a, b, c)?, 1, &[a, b, c]);
        Some(nearest.first().is_some_and(|&(word, _)| word == d))
    };
    vectors.prepare_search();
    let answers: Vec<Option<bool>> = questions.par_iter().map(is_correct).collect();
    let n_asked = answers.iter().flatten().count();
    let n_correct = answers.iter().flatten().filter(|&&correct| correct).count();
    Analogies { n_asked, n_correct, n_skipped: questions.len() - n_asked }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::{EOS, UNK};

    #[test]
    fn questions_have_four_words_per_line() {
        let text = ": capitals\nAthens Greece Oslo Norway\n\n : x\na b c d\r\n";
        let questions = read_questions(&mut text.as_bytes());
        let expected = [["Athens", "Greece", "Oslo", "Norway"], ["a", "b", "c", "d"]];
        assert_eq!(questions.unwrap(), expected.map(|words| words.map(str::to_owned)));
        let error = read_questions(&mut "a b c d\na b c\n".as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "line 2: expected four words, found 3");
    }

    #[test]
    fn the_answer_is_the_word_nearest_to_b_minus_a_plus_c() {
        // Nouns and their plurals: the first two dimensions encode the noun, the third encodes number.
        let words = [UNK, EOS, "cat", "cats", "dog", "dogs", "none"];
        let values = vec![
            0., 0., 0., 0., 0., 0., 1., 0., 0., 1., 0., 1., 0., 1., 0., 0., 1., 1., 0., 0., 0.,
        ];
        let vectors = WordVectors::new(3, values).unwrap();
        let vocab = Vocab::from_parts(words, vec![0; 7]).unwrap();
        let text =
            "cat cats dog dogs\nCat cats Dog dogs\ncat cats dog cat\ncat cats none dogs\na b c d\n";
        let found = analogies(&vectors, &vocab, &read_questions(&mut text.as_bytes()).unwrap());
        assert_eq!(found, Analogies { n_asked: 3, n_correct: 2, n_skipped: 2 });
        assert_eq!(found.accuracy(), 2.0 / 3.0);
    }
}
