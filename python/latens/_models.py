"""The table of all models, and how to open their files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from latens import _latens
from latens._base import Estimator
from latens._hmm import Fhmm, Hmm
from latens._language import FeedForward, Lstm, Ngram, Rnn
from latens._tagger import Tagger
from latens._topics import GaussianLda, Lda
from latens._words import Brown, Lds, Vectors, Word2Vec


_CLASSES: dict[str, type[Estimator]] = {
    cls._kind: cls
    for cls in (Brown, FeedForward, Fhmm, GaussianLda, Hmm, Lda, Lds, Lstm, Ngram, Rnn, Tagger, Vectors, Word2Vec)
}


def open(path: str | os.PathLike[str]) -> Any:
    """Open a model file of any kind."""
    model = _latens.open(Path(path))
    return _CLASSES[model.kind]._opened(model)
