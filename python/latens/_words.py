"""Representations of words: clusters and vectors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from latens import _latens
from latens._base import Row, SentenceEstimator, TextParams
from latens._roles import Encoder, WordVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self


@dataclass(eq=False, repr=False)
class Brown(TextParams, SentenceEstimator, Encoder):
    """Hierarchical word clusters (Brown et al. 1992), or flat ones by the exchange algorithm.

    Parameters
    ----------
    n_clusters : number of clusters.
    algorithm : 'brown' or 'exchange'.
    n_iterations : maximum number of passes of the exchange algorithm.
    """

    _kind = "brown"

    n_clusters: int = 1000
    _: KW_ONLY
    algorithm: str = "brown"
    n_iterations: int = 20

    @property
    def paths_(self) -> dict[str, str]:
        """The path of each word in the tree of clusters, as a string of 0 and 1."""
        paths: list[str | None] = self.model_.inside("paths", 0)
        return {word: path for word, path in zip(self.words_, paths) if path is not None}

    def _glance(self) -> list[Row]:
        clusters: dict[str, list[str]] = {}
        tokens: dict[str, int] = {}
        counts = dict(zip(self.words_, self.model_.counts().tolist()))
        total = max(sum(counts.values()), 1)
        for word, path in self.paths_.items():
            clusters.setdefault(path, []).append(word)
            tokens[path] = tokens.get(path, 0) + counts[word]
        largest = sorted(clusters, key=lambda path: -tokens[path])[:10]
        return [Row(path, ", ".join(clusters[path][:10]), tokens[path] / total) for path in largest]


@dataclass(eq=False, repr=False)
class Lds(TextParams, SentenceEstimator, Encoder, WordVectors):
    """Linear dynamical system learned from co-occurrence counts: vectors of words in context.

    Parameters
    ----------
    dim : dimension of the state.
    lags : largest distance of the pairs of words that EM uses.
    ssid_lags : number of block rows of the Hankel matrix of the initial model.
    pseudo_counts : number added to the count of every word; by default a fifth of the mean count, at least 1.
    n_iterations : maximum number of EM iterations.
    """

    _kind = "lds"

    dim: int = 200
    _: KW_ONLY
    lags: int = 7
    ssid_lags: int = 4
    pseudo_counts: float | None = None
    n_iterations: int = 10
    boundary: str = "stream"
    power_iterations: int = 2
    random_state: int | None = 1

    @property
    def transition_matrix_(self) -> NDArray[np.float64]:
        """The matrix that maps a state to the expected next one."""
        return self.model_.inside("transition_matrix", 0)  # type: ignore[no-any-return]

    @property
    def observation_matrix_(self) -> NDArray[np.float32]:
        """The matrix that maps a state to whitened words, one row per word of `words_`."""
        return self.model_.inside("observation", 0)  # type: ignore[no-any-return]

    def top_words(self, dimension: int, n: int = 10) -> list[tuple[str, float]]:
        """The words with the greatest weights in a dimension of the state, by absolute value: its sign is arbitrary."""
        import numpy as np

        weights = self.observation_matrix_
        if not 0 <= dimension < weights.shape[1]:
            raise ValueError(f"dimension {dimension} is out of range: there are {weights.shape[1]}")
        column = weights[2:, dimension]  # without <unk> and <eos>
        best = np.argsort(-np.abs(column), kind="stable")[: max(n, 0)]
        words = self.words_
        return [(words[2 + i], float(column[i])) for i in best]


@dataclass(eq=False, repr=False)
class Word2Vec(TextParams, SentenceEstimator, Encoder, WordVectors):
    """Word vectors by skip-gram or CBOW with negative sampling.

    With several threads, runs differ slightly; `n_jobs=1` repeats exactly.

    Parameters
    ----------
    dim : number of dimensions.
    algorithm : 'skip-gram' or 'cbow'.
    window : maximum number of context words on either side.
    n_negatives : number of negative samples per positive.
    subsample : relative frequency above which tokens of a word are randomly dropped; 0 keeps all.
    """

    _kind = "word2vec"

    dim: int = 100
    _: KW_ONLY
    algorithm: str = "skip-gram"
    window: int = 5
    n_negatives: int = 5
    noise_power: float = 0.75
    subsample: float = 0.001
    epochs: int = 5
    learning_rate: float = 0.025
    random_state: int | None = 1


@dataclass(eq=False, repr=False)
class Vectors(Encoder, WordVectors):
    """Word vectors from another program. `latens.open` opens those that `latens import` wrote."""

    _kind = "vectors"

    _: KW_ONLY
    n_jobs: int | None = None
    verbose: bool | int = False

    @classmethod
    def from_arrays(cls, words: Iterable[str], vectors: Any, counts: Iterable[int] | None = None) -> Self:
        """Word vectors from an array with one row per word, in the order of `words`."""
        import numpy as np

        names, rows = list(words), np.asarray(vectors, np.float32)
        if rows.ndim != 2 or len(rows) != len(names):
            raise ValueError(f"`vectors` must have {len(names)} rows, one per word, got the shape {rows.shape}")
        numbers = [0] * len(names) if counts is None else [int(count) for count in counts]
        if names[:2] == ["<unk>", "<eos>"]:
            return cls._opened(_latens.vectors_from_arrays(names, numbers, np.ascontiguousarray(rows)))
        # They have the first two ids, and no vector if none is given.
        special = [names.index(word) if word in names else None for word in ("<unk>", "<eos>")]
        rest = [i for i in range(len(names)) if i not in special]
        ordered = np.zeros((len(rest) + 2, rows.shape[1]), np.float32)
        ordered[2:] = rows if len(rest) == len(names) else rows[rest]
        for place, i in enumerate(special):
            if i is not None:
                ordered[place] = rows[i]
        model = _latens.vectors_from_arrays(
            ["<unk>", "<eos>", *(names[i] for i in rest)],
            [*(0 if i is None else numbers[i] for i in special), *(numbers[i] for i in rest)],
            ordered,
        )
        return cls._opened(model)

    @classmethod
    def from_gensim(cls, keyed: Any) -> Self:
        """Word vectors of `gensim.models.KeyedVectors`, or of a gensim model that has them as `wv`."""
        keyed = getattr(keyed, "wv", keyed)
        has_counts = "count" in getattr(keyed, "expandos", {})
        counts = [keyed.get_vecattr(word, "count") for word in keyed.index_to_key] if has_counts else None
        return cls.from_arrays(keyed.index_to_key, keyed.vectors, counts)
