"""Taggers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from latens import _latens
from latens._base import Estimator, Row, tagged_sentences
from latens._progress import Callback

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self

    from latens._shards import Executor


@dataclass(eq=False, repr=False)
class Tagger(Estimator):
    """Conditional random field over words and the features of encoders.

    Parameters
    ----------
    encoders : models whose features the tagger uses; a pair (model, kind) chooses the kind of features. The encoders
        become part of the tagger.
    kind : 'crf', or 'local' for a classifier of single words.
    l1, l2 : regularization.
    """

    _kind = "tagger"
    _own = ("encoders",)

    encoders: Sequence[Any] = ()
    _: KW_ONLY
    kind: str = "crf"
    optimizer: str = "lbfgs"
    lexical: bool = True
    spans: str = "iob2"
    pairs: str = "observed"
    min_count: int = 1
    l2: float = 0.5
    l1: float = 0.0
    n_iterations: int = 200
    epochs: int = 10
    window: int = 2
    scale: float = 0.3
    n_hidden: int = 25
    direct_words: Sequence[str] = ()
    random_state: int | None = 1
    n_jobs: int | None = None
    verbose: bool | int = False

    def _params_json(self) -> str:
        # `min_count` is a parameter of the tagger, not of a vocabulary.
        params = json.loads(super()._params_json())
        params["min_count"] = self.min_count
        return json.dumps(params)

    def _preprocessing_json(self) -> str:
        # Sentences are lists of words, and all of them count.
        return "{}"

    def _limits_json(self) -> str:
        return "{}"

    def fit(
        self,
        X: Iterable[Sequence[str]],
        y: Iterable[Sequence[str]],
        *,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        executor: Executor | None = None,
    ) -> Self:
        """Fit the tagger to sentences X, lists of words, and their tags y.

        An `executor` computes gradients of shards: see `Hmm.fit`. It needs `kind="crf"`, `optimizer="lbfgs"` and no encoders.
        """
        words, tags = tagged_sentences(X, y)
        if executor is not None:
            given = {"encoders": self.encoders or None}
            parts = executor.tagged_parts
            return self._fit_shards(lambda: parts(words, tags), executor, given, callback, checkpoint, resume)
        encoders = [item if isinstance(item, tuple) else (item, None) for item in self.encoders]
        models = [(model.model_, kind) for model, kind in encoders]
        options, bar = self._options(callback, checkpoint, resume)
        try:
            self._model = _latens.fit_tagger(self._params_json(), words, tags, models, options)
        finally:
            if bar is not None:
                bar.close()
        return self

    @property
    def classes_(self) -> list[str]:
        """Names of the tags."""
        return self.model_.tags()

    def _glance(self) -> list[Row]:
        return [Row("tags", ", ".join(self.classes_)), Row("encoders", str(len(self.encoders)))]

    def predict(self, X: Iterable[Sequence[str]]) -> list[list[str]]:
        """The tag of each word of each sentence."""
        names = self.classes_
        found = self.model_.tag([list(sentence) for sentence in X], self._n_threads())
        return [[names[tag] for tag in sentence] for sentence in found]

    def predict_proba(self, X: Iterable[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Probabilities of the tags of each word, given its sentence: one row per word, one column per tag of `classes_`."""
        import numpy as np

        sentences = [list(sentence) for sentence in X]
        rows = self.model_.tag_probs(sentences, self._n_threads())
        return np.split(rows, np.cumsum([len(sentence) for sentence in sentences])[:-1]) if sentences else []

    def score(self, X: Iterable[Sequence[str]], y: Iterable[Sequence[str]]) -> float:
        """Fraction of words with the correct tag."""
        pairs = [
            (found, tag) for own, right in zip(self.predict(X), y) for found, tag in zip(own, right)
        ]
        return sum(found == tag for found, tag in pairs) / max(len(pairs), 1)
