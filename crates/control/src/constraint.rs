//! Constraints on texts, independent of a vocabulary.

use std::fmt;
use std::ops::{BitAnd, BitOr, Not};

/// A condition on a text: phrases, patterns, lengths, and combinations of these with `&`, `|` and `!`.
///
/// ```
/// use latens_control::Constraint;
///
/// let constraint = Constraint::contains("prime minister")
///     & Constraint::excludes("war")
///     & (Constraint::ends_with("today") | Constraint::ends_with("yesterday"))
///     & Constraint::words(5, Some(20));
/// println!("{constraint}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint(pub(crate) Node);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Anything,
    /// One phrase of each group, in order and without overlap.
    InOrder(Vec<Vec<String>>),
    Excludes(Vec<String>),
    StartsWith(String),
    EndsWith(String),
    Infill {
        prefix: String,
        suffix: String,
    },
    WordRegex(String),
    CharRegex(String),
    Words {
        min: usize,
        max: Option<usize>,
    },
    And(Vec<Constraint>),
    Or(Vec<Constraint>),
    Not(Box<Constraint>),
}

fn owned<S: Into<String>>(texts: impl IntoIterator<Item = S>) -> Vec<String> {
    texts.into_iter().map(Into::into).collect()
}

impl Constraint {
    /// Any text.
    pub fn anything() -> Constraint {
        Constraint(Node::Anything)
    }

    /// The phrase occurs.
    pub fn contains(phrase: impl Into<String>) -> Constraint {
        Constraint::contains_any([phrase])
    }

    /// At least one of the phrases occurs. Phrases with words that the vocabulary lacks are ignored, unless all have.
    pub fn contains_any<S: Into<String>>(phrases: impl IntoIterator<Item = S>) -> Constraint {
        Constraint(Node::InOrder(vec![owned(phrases)]))
    }

    /// All phrases occur, in any order. They may overlap.
    pub fn contains_all<S: Into<String>>(phrases: impl IntoIterator<Item = S>) -> Constraint {
        Constraint::all(phrases.into_iter().map(Constraint::contains))
    }

    /// All phrases occur in this order, without overlap.
    pub fn contains_in_order<S: Into<String>>(phrases: impl IntoIterator<Item = S>) -> Constraint {
        Constraint::contains_any_in_order(phrases.into_iter().map(|phrase| [phrase]))
    }

    /// One phrase of each group occurs, in the order of the groups and without overlap.
    pub fn contains_any_in_order<S: Into<String>>(
        groups: impl IntoIterator<Item = impl IntoIterator<Item = S>>,
    ) -> Constraint {
        let groups: Vec<Vec<String>> = groups.into_iter().map(owned).collect();
        Constraint(if groups.is_empty() { Node::Anything } else { Node::InOrder(groups) })
    }

    /// The phrase does not occur. A phrase with a word that the vocabulary lacks never does.
    pub fn excludes(phrase: impl Into<String>) -> Constraint {
        Constraint::excludes_all([phrase])
    }

    /// None of the phrases occurs.
    pub fn excludes_all<S: Into<String>>(phrases: impl IntoIterator<Item = S>) -> Constraint {
        Constraint(Node::Excludes(owned(phrases)))
    }

    /// The text begins with these words.
    pub fn starts_with(text: impl Into<String>) -> Constraint {
        Constraint(Node::StartsWith(text.into()))
    }

    /// The text ends with these words.
    pub fn ends_with(text: impl Into<String>) -> Constraint {
        Constraint(Node::EndsWith(text.into()))
    }

    /// The text begins with `prefix` and ends with `suffix`, which do not overlap.
    pub fn infill(prefix: impl Into<String>, suffix: impl Into<String>) -> Constraint {
        Constraint(Node::Infill { prefix: prefix.into(), suffix: suffix.into() })
    }

    /// The whole text matches a regular expression over words.
    ///
    /// | Pattern | Meaning |
    /// |---|---|
    /// | `dog`, `"u.s."`, `u\.s\.` | this word; characters with a meaning are quoted or escaped |
    /// | `.` | any word |
    /// | `[dog cat]`, `[^dog cat]` | one of these words; any other word |
    /// | `/[0-9]+/` | a word that matches a regular expression over characters |
    /// | `a b`, <code>a \| b</code>, `( … )` | one after the other, one of both, a group |
    /// | `a*`, `a+`, `a?`, `a{2}`, `a{2,}`, `a{2,5}` | repetitions of a word or a group |
    pub fn regex(pattern: impl Into<String>) -> Constraint {
        Constraint(Node::WordRegex(pattern.into()))
    }

    /// The whole text, its words joined by single spaces, matches a regular expression over characters, in the syntax of
    /// the crate `regex`.
    pub fn char_regex(pattern: impl Into<String>) -> Constraint {
        Constraint(Node::CharRegex(pattern.into()))
    }

    /// The text has `min` to `max` words.
    pub fn words(min: usize, max: Option<usize>) -> Constraint {
        Constraint(Node::Words { min, max })
    }

    /// All constraints hold.
    pub fn all(constraints: impl IntoIterator<Item = Constraint>) -> Constraint {
        let mut parts: Vec<Constraint> = constraints.into_iter().collect();
        match parts.len() {
            0 => Constraint::anything(),
            1 => parts.remove(0),
            _ => Constraint(Node::And(parts)),
        }
    }

    /// The constraints of a conjunction, including nested ones; a constraint of another kind by itself.
    pub(crate) fn conjuncts(&self) -> Vec<&Constraint> {
        match &self.0 {
            Node::And(parts) => parts.iter().flat_map(Constraint::conjuncts).collect(),
            _ => vec![self],
        }
    }
}

impl BitAnd for Constraint {
    type Output = Constraint;

    fn bitand(self, other: Constraint) -> Constraint {
        Constraint(Node::And(vec![self, other]))
    }
}

impl BitOr for Constraint {
    type Output = Constraint;

    fn bitor(self, other: Constraint) -> Constraint {
        Constraint(Node::Or(vec![self, other]))
    }
}

impl Not for Constraint {
    type Output = Constraint;

    fn not(self) -> Constraint {
        Constraint(Node::Not(Box::new(self)))
    }
}

/// Names the constraint in messages.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |phrases: &[String], between: &str| {
            let quoted = phrases.iter().map(|phrase| format!("`{phrase}`"));
            quoted.collect::<Vec<_>>().join(between)
        };
        let joined = |parts: &[Constraint], between: &str| {
            parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
        };
        match &self.0 {
            Node::Anything => f.write_str("any text"),
            Node::InOrder(groups) => {
                let groups: Vec<String> =
                    groups.iter().map(|group| quoted(group, " or ")).collect();
                let what = if groups.len() > 1 { "phrases in order" } else { "phrase" };
                write!(f, "the {what} {}", groups.join(", "))
            }
            Node::Excludes(phrases) => write!(f, "the excluded phrase {}", quoted(phrases, ", ")),
            Node::StartsWith(text) => write!(f, "the beginning `{text}`"),
            Node::EndsWith(text) => write!(f, "the ending `{text}`"),
            Node::Infill { prefix, suffix } => {
                write!(f, "the beginning `{prefix}` with the ending `{suffix}`")
            }
            Node::WordRegex(pattern) => write!(f, "the pattern `{pattern}`"),
            Node::CharRegex(pattern) => write!(f, "the character pattern `{pattern}`"),
            Node::Words { min, max: None } => write!(f, "the length of at least {min} words"),
            Node::Words { min, max: Some(max) } => write!(f, "the length of {min} to {max} words"),
            Node::And(parts) => write!(f, "({})", joined(parts, " and ")),
            Node::Or(parts) => write!(f, "({})", joined(parts, " or ")),
            Node::Not(part) => write!(f, "(not {part})"),
        }
    }
}
