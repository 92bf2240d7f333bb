"""What estimators accept as text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Union

#: Sentences or documents: strings, or lists of words; a path or several; a pandas or polars column.
Text = Union[Iterable[str], Iterable[Sequence[str]], "os.PathLike[str]", Iterable["os.PathLike[str]"]]


class Source(NamedTuple):
    """Text as the extension module takes it: an iterable, or paths."""

    records: Iterable[Any] | None
    paths: list[Path]


class Counts(NamedTuple):
    """A document–term matrix in compressed sparse row layout."""

    indptr: Any
    indices: Any
    counts: Any
    n_columns: int


def source(X: Any) -> Source:
    """Text from any form that estimators accept."""
    if isinstance(X, (str, bytes)):
        raise ValueError(
            "expected an iterable of strings or of lists of words, got a single string; "
            "pass pathlib.Path(...) to read a file, or [text] for a single text"
        )
    if isinstance(X, os.PathLike):
        return Source(None, [Path(X)])
    if _is_frame(X):
        raise ValueError("expected a column of texts, got a table; select a column, such as X['text']")
    if hasattr(X, "ndim") and X.ndim != 1:
        raise ValueError(f"expected a one-dimensional array of texts, got {X.ndim} dimensions")
    try:
        iterator = iter(X)
    except TypeError:
        kind = type(X).__name__
        raise TypeError(f"expected an iterable of strings or of lists of words, got `{kind}`") from None
    if isinstance(X, Sequence) and X and isinstance(X[0], os.PathLike):
        return Source(None, [Path(path) for path in X])
    return Source(iterator, [])


def is_matrix(X: Any) -> bool:
    """Whether X is a numeric matrix: scipy.sparse, or a two-dimensional array."""
    if hasattr(X, "tocsr"):
        return True
    shape = getattr(X, "shape", None)
    if shape is not None:
        dtype = getattr(X, "dtype", None)
        return len(shape) == 2 or (dtype is not None and getattr(dtype, "kind", "O") in "iufb")
    if hasattr(X, "__array__"):
        import numpy as np

        return is_matrix(np.asarray(X))
    return isinstance(X, list) and bool(X) and isinstance(X[0], list) and bool(X[0]) and _is_number(X[0][0])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "shape") and len(X.shape) == 2


def counts(X: Any, estimator: Any, reset: bool) -> Counts:
    """A document–term matrix, checked by scikit-learn."""
    import numpy as np
    from sklearn.utils.validation import check_non_negative, validate_data

    X = validate_data(
        estimator, X, accept_sparse="csr", reset=reset, dtype=[np.float64, np.float32, np.int64, np.int32]
    )
    check_non_negative(X, f"{type(estimator).__name__}.{'fit' if reset else 'transform'}")
    if not hasattr(X, "tocsr"):
        from scipy.sparse import csr_array

        X = csr_array(X)
    # The order of words in a row must not matter.
    X = X.sorted_indices()
    # Fractions of words cannot be sampled: a weighted matrix such as TF–IDF is rounded up, so that no word is lost.
    whole = np.ceil(X.data).astype(np.uint64)
    return Counts(X.indptr.astype(np.int64), X.indices.astype(np.int64), whole, X.shape[1])
