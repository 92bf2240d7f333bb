//! The syntax of regular expressions over words.

use super::nfa::Ast;

/// A set of words, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordSet {
    /// Any word.
    Any,
    /// The words of a list, or all others.
    Words { words: Vec<String>, negated: bool },
    /// The words that match a regular expression over characters.
    Matching(String),
}

/// Nested groups beyond this depth are refused, because parsing is recursive.
const MAX_DEPTH: usize = 100;
/// The largest number of repetitions.
const MAX_REPEAT: u32 = 1000;

/// Parses an expression. Returns its sets, to which [`Ast::Set`] refers, or what is wrong.
pub(super) fn parse(pattern: &str) -> Result<(Ast, Vec<WordSet>), String> {
    let mut parser = Parser { chars: pattern.chars().collect(), at: 0, depth: 0, sets: Vec::new() };
    let ast = parser.choice()?;
    match parser.peek() {
        None => Ok((ast, parser.sets)),
        Some(found) => Err(parser.problem(&format!("unexpected `{found}`"))),
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    sets: Vec<WordSet>,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let found = self.peek();
        self.at += usize::from(found.is_some());
        found
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn problem(&self, what: &str) -> String {
        format!("{what} at character {}", self.at + 1)
    }

    fn choice(&mut self) -> Result<Ast, String> {
        let mut parts = vec![self.sequence()?];
        while self.peek() == Some('|') {
            self.at += 1;
            parts.push(self.sequence()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Ast::Choice(parts) })
    }

    fn sequence(&mut self) -> Result<Ast, String> {
        let mut parts = Vec::new();
        loop {
            self.skip_spaces();
            match self.peek() {
                None | Some('|' | ')') => return Ok(Ast::Sequence(parts)),
                _ => {
                    let atom = self.atom()?;
                    parts.push(self.repeated(atom)?);
                }
            }
        }
    }

    fn atom(&mut self) -> Result<Ast, String> {
        match self.peek().expect("the caller has seen a character") {
            '(' => {
                self.at += 1;
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(self.problem(&format!("more than {MAX_DEPTH} nested groups")));
                }
                let inner = self.choice()?;
                self.depth -= 1;
                self.expect(')')?;
                Ok(inner)
            }
            '.' => {
                self.at += 1;
                Ok(self.set(WordSet::Any))
            }
            '[' => self.list(),
            '/' => {
                self.at += 1;
                let pattern = self.until('/')?;
                Ok(self.set(WordSet::Matching(pattern)))
            }
            found @ ('*' | '+' | '?' | '{') => {
                Err(self.problem(&format!("`{found}` without a word before it")))
            }
            found @ (']' | '}') => Err(self.problem(&format!(
                "`{found}` without its opening bracket (write `\\{found}` for the word)"
            ))),
            _ => {
                let word = self.word()?;
                Ok(self.set(WordSet::Words { words: vec![word], negated: false }))
            }
        }
    }

    fn set(&mut self, set: WordSet) -> Ast {
        let known = self.sets.iter().position(|known| *known == set);
        Ast::Set(known.unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        }))
    }

    /// `[a b c]` or `[^a b c]`.
    fn list(&mut self) -> Result<Ast, String> {
        self.at += 1;
        let negated = self.peek() == Some('^');
        self.at += usize::from(negated);
        let mut words = Vec::new();
        loop {
            self.skip_spaces();
            match self.peek() {
                None => return Err(self.problem("`[` without `]`")),
                Some(']') => break,
                Some(_) => words.push(self.word()?),
            }
        }
        self.at += 1;
        if words.is_empty() {
            return Err(self.problem("a list without words"));
        }
        Ok(self.set(WordSet::Words { words, negated }))
    }

    /// A word: quoted, or up to whitespace or a character with a meaning.
    fn word(&mut self) -> Result<String, String> {
        if self.peek() == Some('"') {
            self.at += 1;
            let word = self.until('"')?;
            let is_word = !word.is_empty() && !word.contains(char::is_whitespace);
            return if is_word {
                Ok(word)
            } else {
                Err(self.problem("a quoted text must be one word"))
            };
        }
        let mut word = String::new();
        while let Some(found) = self.peek() {
            match found {
                '\\' => {
                    self.at += 1;
                    word.push(self.take().ok_or_else(|| self.problem("`\\` at the end"))?);
                }
                _ if found.is_whitespace() || "()|*+?{}[].\"/".contains(found) => break,
                _ => {
                    word.push(found);
                    self.at += 1;
                }
            }
        }
        if word.is_empty() {
            let found = self.peek().unwrap_or(' ');
            return Err(self.problem(&format!("unexpected `{found}`")));
        }
        Ok(word)
    }

    /// The text up to a delimiter, which a backslash escapes.
    fn until(&mut self, delimiter: char) -> Result<String, String> {
        let mut text = String::new();
        loop {
            match self.take() {
                None => return Err(self.problem(&format!("missing `{delimiter}`"))),
                Some(found) if found == delimiter => return Ok(text),
                Some('\\') if self.peek() == Some(delimiter) => {
                    text.push(delimiter);
                    self.at += 1;
                }
                Some(found) => text.push(found),
            }
        }
    }

    fn expect(&mut self, expected: char) -> Result<(), String> {
        match self.take() {
            Some(found) if found == expected => Ok(()),
            _ => Err(self.problem(&format!("missing `{expected}`"))),
        }
    }

    fn repeated(&mut self, mut ast: Ast) -> Result<Ast, String> {
        let mut n_nested = 0;
        loop {
            let (min, max) = match self.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => self.bounds()?,
                _ => return Ok(ast),
            };
            self.at += 1;
            n_nested += 1;
            if n_nested > MAX_DEPTH {
                return Err(self.problem(&format!("more than {MAX_DEPTH} repetitions of one word")));
            }
            ast = Ast::Repeat { of: Box::new(ast), min, max };
        }
    }

    /// `{n}`, `{n,}` or `{n,m}`, up to the closing brace.
    fn bounds(&mut self) -> Result<(u32, Option<u32>), String> {
        let close = self.chars[self.at..].iter().position(|&found| found == '}');
        let close = self.at + close.ok_or_else(|| self.problem("`{` without `}`"))?;
        let inner: String = self.chars[self.at + 1..close].iter().collect();
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&n| n <= MAX_REPEAT);
        let bounds = match inner.split_once(',') {
            None => number(&inner).map(|n| (n, Some(n))),
            Some((min, "")) => number(min).map(|min| (min, None)),
            Some((min, max)) => number(min).zip(number(max)).map(|(min, max)| (min, Some(max))),
        };
        let bounds = bounds.filter(|(min, max)| max.is_none_or(|max| *min <= max));
        let must = format!("expected `{{n}}`, `{{n,}}` or `{{n,m}}` with n ≤ m ≤ {MAX_REPEAT}");
        let bounds = bounds.ok_or_else(|| self.problem(&must))?;
        self.at = close;
        Ok(bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_located() {
        for (pattern, problem) in [
            ("a (b", "missing `)` at character 5"),
            ("a ) b", "unexpected `)` at character 3"),
            ("* a", "`*` without a word before it at character 1"),
            ("a [b", "`[` without `]` at character 5"),
            ("[]", "a list without words"),
            ("a{2,1}", "expected `{n}`"),
            ("a{1001}", "1000"),
            ("a{2", "`{` without `}`"),
            ("\"a b\"", "one word"),
            ("a }", "without its opening bracket"),
            ("/[a-z]", "missing `/`"),
            ("a\\", "`\\` at the end"),
        ] {
            let found = parse(pattern).unwrap_err();
            assert!(found.contains(problem), "{pattern}: {found}");
        }
        assert!(parse(&"(".repeat(10_000)).unwrap_err().contains("nested"));
        assert!(parse(&format!("a{}", "+".repeat(10_000))).unwrap_err().contains("repetitions"));
    }

    #[test]
    fn no_text_crashes_the_parser() {
        let letters: Vec<char> = r#"ab ()|*+?{}[]^.,\"/123"#.chars().collect();
        let mut rng = latens_math::Rng::new(1);
        for _ in 0..20_000 {
            let n = (rng.uniform() * 12.0) as usize;
            let letter = |_| letters[(rng.uniform() * letters.len() as f64) as usize];
            let pattern: String = (0..n).map(letter).collect();
            let _ = parse(&pattern);
        }
    }

    #[test]
    fn words_may_be_quoted_or_escaped() {
        let (_, sets) = parse(r#"u\.s\. "u.s." a"b""#).unwrap();
        let words = |word: &str| WordSet::Words { words: vec![word.into()], negated: false };
        assert_eq!(sets, [words("u.s."), words("a"), words("b")]);
    }
}
