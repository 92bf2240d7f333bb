"""Constraints on generated text.

>>> from latens import constraint
>>> c = constraint.contains("prime minister") & constraint.excludes("war") & constraint.words(5, 20)
>>> hmm.generate(c)                                   # doctest: +SKIP

Combine constraints with `&` (and), `|` (or) and `~` (not).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from latens import _latens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from latens._base import Estimator

__all__ = [
    "Constraint",
    "Guide",
    "anything",
    "char_regex",
    "contains",
    "contains_in_order",
    "ends_with",
    "excludes",
    "infill",
    "regex",
    "starts_with",
    "words",
]


class Constraint:
    """A condition on a text. The functions of this module create them."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree

    def __and__(self, other: Constraint) -> Constraint:
        return _join("and", self, other)

    def __or__(self, other: Constraint) -> Constraint:
        return _join("or", self, other)

    def __invert__(self) -> Constraint:
        return Constraint({"not": self._tree})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraint) and self._tree == other._tree

    def __hash__(self) -> int:
        return hash(json.dumps(self._tree))

    def __repr__(self) -> str:
        return f"Constraint({json.dumps(self._tree, ensure_ascii=False)})"


def _join(name: str, first: Constraint, second: object) -> Constraint:
    if not isinstance(second, Constraint):
        raise TypeError(f"expected a constraint, got {type(second).__name__}")
    return Constraint({name: [first._tree, second._tree]})


def _groups(phrases: Iterable[str | Iterable[str]]) -> list[list[str]]:
    return [[phrase] if isinstance(phrase, str) else list(phrase) for phrase in phrases]


def anything() -> Constraint:
    """Any text."""
    return Constraint("anything")


def contains(*phrases: str | Iterable[str]) -> Constraint:
    """All phrases occur, in any order. Of a list of phrases, at least one occurs."""
    return Constraint({"contains": _groups(phrases)})


def contains_in_order(*phrases: str | Iterable[str]) -> Constraint:
    """All phrases occur in this order, without overlap. Of a list of phrases, one occurs."""
    return Constraint({"in_order": _groups(phrases)})


def excludes(*phrases: str) -> Constraint:
    """None of the phrases occurs."""
    return Constraint({"excludes": list(phrases)})


def regex(pattern: str) -> Constraint:
    """The whole text matches a regular expression over words.

    `.` is any word, `[a b]` one of two words, `[^a b]` any other one, and `/[0-9]+/` a word by its characters. `*`, `+`,
    `?`, `{2,5}`, `|` and `( )` have their usual meaning and apply to words. `"."` is the word `.`.
    """
    return Constraint({"regex": pattern})


def char_regex(pattern: str) -> Constraint:
    """The whole text, its words joined by single spaces, matches a regular expression over characters."""
    return Constraint({"char_regex": pattern})


def words(minimum: int = 0, maximum: int | None = None) -> Constraint:
    """The text has at least `minimum` and at most `maximum` words."""
    return Constraint({"words": [minimum, maximum]})


def starts_with(text: str) -> Constraint:
    """The text begins with these words."""
    return Constraint({"starts_with": text})


def ends_with(text: str) -> Constraint:
    """The text ends with these words."""
    return Constraint({"ends_with": text})


def infill(prefix: str, suffix: str) -> Constraint:
    """The text begins with `prefix` and ends with `suffix`, which do not overlap."""
    return Constraint({"infill": [prefix, suffix]})


class Guide:
    """Exact probabilities of a constraint under a hidden Markov model, for every beginning of a text.

    Words are ids: positions in `words_` of the model.

    Parameters
    ----------
    hmm : a fitted `Hmm`.
    constraint : the constraint.
    prefix : ids of the words with which every text begins. They do not count towards the length.
    min_words, max_words : how many words may follow the prefix.
    keep_unk : whether these words may be `<unk>`.
    pieces : the bytes of each word, if words are pieces of text that are written without spaces between them; None for
        special tokens, which no text contains.
    n_jobs : number of threads; by default, all cores.
    """

    def __init__(
        self,
        hmm: Any,
        constraint: Constraint,
        *,
        prefix: Iterable[int] = (),
        min_words: int = 0,
        max_words: int = 30,
        keep_unk: bool = False,
        pieces: list[bytes | None] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._guide = _latens.Guide(
            hmm.model_,
            json.dumps(constraint._tree),
            pieces,
            [int(word) for word in prefix],
            min_words,
            max_words,
            keep_unk,
            n_jobs if n_jobs is not None and n_jobs > 0 else None,
        )

    def with_prefix(self, prefix: Iterable[int]) -> Guide:
        """The same tables for texts that begin with other words. As many words may follow them."""
        other = Guide.__new__(Guide)
        other._guide = self._guide.with_prefix([int(word) for word in prefix])
        return other

    @property
    def n_states(self) -> int:
        """Number of states of the automaton of the constraint."""
        return self._guide.n_states

    def log_prob(self, words: Iterable[int] = ()) -> float:
        """Log-probability that a text that begins with the prefix and these words satisfies the constraint."""
        return self._guide.log_prob([int(word) for word in words])

    def next_log_probs(self, words: Iterable[int] = ()) -> NDArray[np.float64]:
        """Log-probability of the constraint after each possible next word, given that word. `<eos>` ends the text."""
        return self._guide.next([int(word) for word in words])[1]

    def joint_log_probs(self, words: Iterable[int] = ()) -> NDArray[np.float64]:
        """Log-probability of each next word together with the constraint. They sum to the probability of `log_prob`."""
        return self._guide.next([int(word) for word in words])[0]

    def steer(
        self, log_probs: NDArray[np.floating[Any]], words: Iterable[int] = (), weight: float = 1.0
    ) -> NDArray[np.float64]:
        """Log-probabilities (or logits) of a language model plus `weight` times those of the constraint.

        Words after which the constraint cannot be met have `-inf`. The result is not normalized.
        """
        import numpy as np

        guide = self.next_log_probs(words)
        if np.shape(log_probs) != guide.shape:
            raise ValueError(f"expected {len(guide)} log-probabilities, got an array of shape {np.shape(log_probs)}")
        impossible = np.isneginf(guide)
        return np.where(impossible, -np.inf, log_probs + weight * np.where(impossible, 0.0, guide))

    def satisfied(self, words: Iterable[int] = ()) -> bool:
        """Whether the prefix and these words satisfy the constraint, apart from its length."""
        return self._guide.accepts([int(word) for word in words])

    def generate(
        self,
        model: Estimator | None = None,
        n: int = 5,
        *,
        weight: float = 1.0,
        beam: int | None = None,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        random_state: int = 1,
    ) -> list[tuple[list[int], float]]:
        """Texts that satisfy the constraint: the ids after the prefix, and their log-probability under the model."""
        other = None if model is None else model.model_
        return self._guide.generate(other, n, weight, beam, temperature, top_k, top_p, random_state)
