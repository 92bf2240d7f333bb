//! What is required of a text besides the constraint.

/// The number of words that may follow the given beginning of a text.
///
/// Exhaustive: an interval has two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// The minimum.
    pub min: usize,
    /// The maximum.
    pub max: usize,
}

/// What else is required of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LookaheadOptions {
    /// The number of words after the given beginning.
    pub lengths: Lengths,
    /// Whether these words may be `<unk>`.
    pub keep_unk: bool,
}

impl LookaheadOptions {
    /// Texts of some lengths without `<unk>`.
    pub fn new(lengths: Lengths) -> LookaheadOptions {
        LookaheadOptions { lengths, keep_unk: false }
    }

    /// Sets whether texts may contain `<unk>`.
    #[must_use]
    pub fn keep_unk(mut self, keep_unk: bool) -> LookaheadOptions {
        self.keep_unk = keep_unk;
        self
    }
}

/// The precision of tables. The numbers are the bytes of an entry.
#[derive(Clone, Copy)]
pub(super) enum Precision {
    Single = 4,
    Double = 8,
}

impl Precision {
    /// Tables of small models are in double precision.
    pub(super) fn of_tables(n_states: usize) -> Precision {
        if n_states <= 1024 { Precision::Double } else { Precision::Single }
    }
}
