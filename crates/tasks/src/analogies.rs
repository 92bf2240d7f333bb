//! How many analogies word vectors solve (Mikolov et al. 2013).

use latens_corpus::{Vocab, WordId};
use latens_model::WordVectors;
use rayon::prelude::*;
use thiserror::Error;

/// "a is to b as c is to d", of which the last word is to be found.
pub type Question = [String; 4];

/// How many questions were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Analogies {
    /// Those whose words all have vectors.
    pub n_asked: usize,
    /// Those of them whose answer is the nearest word.
    pub n_right: usize,
    /// Those with a word that has no vector.
    pub n_skipped: usize,
}

impl Analogies {
    /// The share of right answers among the questions that were asked; NaN if none was.
    pub fn accuracy(&self) -> f64 {
        self.n_right as f64 / self.n_asked as f64
    }
}

/// A line that is no question.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: four words expected, found {found}")]
pub struct NoQuestion {
    /// The line, counted from 1.
    pub line: usize,
    /// How many words it has.
    pub found: usize,
}

/// Questions as the usual list has them (`questions-words.txt`): four words a line. Lines that begin with `:` are
/// titles; empty ones are skipped.
pub fn read_questions(text: &str) -> Result<Vec<Question>, NoQuestion> {
    let lines = text.lines().zip(1..).filter(|(line, _)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with(':')
    });
    let question = |(line, number): (&str, usize)| {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let found = words.len();
        Question::try_from(words).map_err(|_| NoQuestion { line: number, found })
    };
    lines.map(question).collect()
}

/// Asks all questions: for a, b, c the answer is the word nearest to b − a + c, other than these three. A word is found
/// as it is written, or else in small letters.
pub fn analogies(vectors: &WordVectors, vocab: &Vocab, questions: &[Question]) -> Analogies {
    let find = |word: &String| {
        let has_vector = |id: &WordId| *id != WordId::UNK && vectors.get(*id).is_some();
        let exact = vocab.get(word).filter(has_vector);
        exact.or_else(|| vocab.get(&word.to_lowercase()).filter(has_vector))
    };
    let is_right = |question: &Question| -> Option<bool> {
        let [a, b, c, d] = question.each_ref().map(find);
        let (a, b, c, d) = (a?, b?, c?, d?);
        let nearest = vectors.nearest(&vectors.analogy(a, b, c)?, 1, &[a, b, c]);
        Some(nearest.first().is_some_and(|&(word, _)| word == d))
    };
    let answers: Vec<Option<bool>> = questions.par_iter().map(is_right).collect();
    let n_asked = answers.iter().flatten().count();
    let n_right = answers.iter().flatten().filter(|&&right| right).count();
    Analogies { n_asked, n_right, n_skipped: questions.len() - n_asked }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::{EOS, UNK};

    #[test]
    fn questions_are_four_words_a_line() {
        let questions =
            read_questions(": capitals\nAthens Greece Oslo Norway\n\n : x\na b c d\r\n");
        let expected = [["Athens", "Greece", "Oslo", "Norway"], ["a", "b", "c", "d"]];
        assert_eq!(questions.unwrap(), expected.map(|words| words.map(str::to_owned)));
        let found = read_questions("a b c d\na b c\n").unwrap_err();
        assert_eq!(found, NoQuestion { line: 2, found: 3 });
    }

    #[test]
    fn the_answer_is_where_the_sum_of_vectors_points() {
        // Nouns and their plurals: one direction is the noun, the third is the number.
        let words = [UNK, EOS, "cat", "cats", "dog", "dogs", "none"];
        let values = vec![
            0., 0., 0., 0., 0., 0., 1., 0., 0., 1., 0., 1., 0., 1., 0., 0., 1., 1., 0., 0., 0.,
        ];
        let vectors = WordVectors::new(3, values).unwrap();
        let vocab = Vocab::from_parts(words, vec![0; 7]).unwrap();
        let text =
            "cat cats dog dogs\nCat cats Dog dogs\ncat cats dog cat\ncat cats none dogs\na b c d\n";
        let found = analogies(&vectors, &vocab, &read_questions(text).unwrap());
        assert_eq!(found, Analogies { n_asked: 3, n_right: 2, n_skipped: 2 });
        assert_eq!(found.accuracy(), 2.0 / 3.0);
    }
}
