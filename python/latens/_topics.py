"""Topic models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from latens import _latens
from latens._base import TextParams, Transformer, opened
from latens._input import Counts, Text, counts, is_matrix, source
from latens._progress import Callback
from latens._roles import WordVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self


class _Topics(Transformer):
    """What topic models share."""

    def _vectors(self) -> _latens.Model | None:
        return None

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Fit topics to documents.

        Parameters
        ----------
        X : documents as strings or lists of words, paths of files, or a document–term matrix of counts
            (`scipy.sparse` or array), whose columns are then the words `x0`, `x1` …
        y : ignored.
        callback, checkpoint, resume : see `Hmm.fit`.
        """
        if is_matrix(X):
            return self._fit_counts(counts(X, self, reset=True), callback, checkpoint, resume)
        text = source(X)
        options, bar = self._options(callback, checkpoint, resume)
        try:
            self._model = _latens.fit_documents(
                self._kind,
                self._params_json(),
                self._preprocessing_json(),
                self._limits_json(),
                text.records,
                text.paths,
                self._vectors(),
                options,
            )
        finally:
            if bar is not None:
                bar.close()
        return self

    def _fit_counts(
        self,
        matrix: Counts,
        callback: Callback | None,
        checkpoint: str | os.PathLike[str] | None,
        resume: bool,
    ) -> Self:
        names = [f"x{i}" for i in range(matrix.n_columns)]
        options, bar = self._options(callback, checkpoint, resume)
        try:
            self._model = _latens.fit_counts(
                self._kind, self._params_json(), names, matrix.indptr, matrix.indices, matrix.counts,
                self._vectors(), options,
            )
        finally:
            if bar is not None:
                bar.close()
        return self

    def transform(self, X: Any) -> Any:
        """Topic proportions of documents: one row per document, one column per topic, as `set_output` says."""
        return self._output(self._mixtures(X), X)

    def _mixtures(self, X: Any) -> NDArray[np.float32]:
        model = self.model_
        if is_matrix(X):
            return self._transform_counts(counts(X, self, reset=False))
        text = source(X)
        return model.mixtures(text.records, text.paths, self._n_threads())

    def _transform_counts(self, matrix: Counts) -> NDArray[np.float32]:
        import numpy as np

        vocabulary = self.vocabulary_
        # Words without a token in training are unknown: id 0.
        ids = np.array([vocabulary.get(f"x{i}", 0) for i in range(matrix.n_columns)], dtype=np.uint32)
        tokens = np.repeat(ids[matrix.indices], matrix.counts.astype(np.int64))
        ends = np.concatenate([[0], np.cumsum(matrix.counts, dtype=np.int64)])[matrix.indptr].astype(np.int64)
        return self.model_.mixtures_of_ids(ends, tokens, self._n_threads())

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit topics, then infer the topic proportions of the same documents."""
        is_once = isinstance(X, Iterable) and not hasattr(X, "__len__") and not hasattr(X, "tocsr")
        X = list(X) if is_once else X
        return self.fit(X, y, **fit_params).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`."""
        import numpy as np

        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{i}" for i in range(self.model_.n_topics())], dtype=object)

    @property
    def alpha_(self) -> NDArray[np.float64]:
        """Dirichlet parameter of each topic."""
        return self.model_.inside("alpha", 0)  # type: ignore[no-any-return]

    @property
    def topic_sizes_(self) -> NDArray[np.uint64]:
        """Number of training tokens of each topic."""
        return self.model_.inside("topic_sizes", 0)  # type: ignore[no-any-return]

    def top_words(self, topic: int, n: int = 10) -> list[tuple[str, float]]:
        """The most probable words of a topic, with their probabilities."""
        return self.model_.top_words(topic, n)

    def _glance(self) -> list[tuple[str, str]]:
        sizes = self.topic_sizes_
        total = max(int(sizes.sum()), 1)
        order = sorted(range(len(sizes)), key=lambda topic: -int(sizes[topic]))[:20]
        return [
            (f"topic {topic} ({int(sizes[topic]) / total:.1%})", ", ".join(word for word, _ in self.top_words(topic)))
            for topic in order
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


@dataclass(eq=False, repr=False)
class Lda(TextParams, _Topics):
    """Latent Dirichlet allocation: topics are distributions over words.

    Parameters
    ----------
    n_topics : number of topics.
    n_iterations : number of Gibbs sampling iterations over all tokens.
    sampler : 'auto', 'dense' or 'sparse'.
    alpha : Dirichlet parameter of each topic in a document; by default 1 / `n_topics`.
    optimize_alpha : learn one alpha per topic.
    beta : Dirichlet parameter of each word in a topic.
    """

    _kind = "lda"

    n_topics: int = 50
    _: KW_ONLY
    n_iterations: int = 200
    sampler: str = "auto"
    alpha: float | None = None
    optimize_alpha: bool = False
    beta: float = 0.01
    random_state: int | None = 1

    @property
    def components_(self) -> NDArray[np.float64]:
        """Probability of each word in each topic: one row per topic, one column per word of `words_`."""
        return self.model_.inside("components", 0)  # type: ignore[no-any-return]

    def to_pyldavis(self, X: Text) -> dict[str, Any]:
        """Arguments of `pyLDAvis.prepare` for these documents: `pyLDAvis.prepare(**lda.to_pyldavis(texts))`."""
        import numpy as np

        texts: Any = list(X) if isinstance(X, Iterable) and not isinstance(X, Sequence) else X
        text = source(texts)
        components = self.components_[:, 2:]
        return {
            "topic_term_dists": components / components.sum(axis=1, keepdims=True),
            "doc_topic_dists": self._mixtures(texts),
            # pyLDAvis divides by the lengths.
            "doc_lengths": np.maximum(self.model_.lengths(text.records, text.paths, self._n_threads()), 1),
            "vocab": self.words_[2:],
            "term_frequency": self.model_.counts()[2:],
        }


@dataclass(eq=False, repr=False)
class GaussianLda(TextParams, _Topics):
    """Gaussian LDA: topics are Gaussian distributions over word vectors.

    Parameters
    ----------
    vectors : a model with word vectors (`Word2Vec`, `Lds`, `Vectors`), or the path of one.
    n_topics : number of topics.
    n_iterations : number of Gibbs sampling iterations over all tokens.
    sampler : 'auto' or what `latens train glda --help` lists.
    covariance : 'full', 'diagonal' or 'spherical'.
    """

    _kind = "glda"
    _own = ("vectors",)

    vectors: WordVectors | str | os.PathLike[str] | None = None
    n_topics: int = 50
    _: KW_ONLY
    n_iterations: int = 50
    sampler: str = "auto"
    covariance: str = "full"
    start: str = "kmeans"
    prior: str = "relative"
    alpha: float | None = None
    optimize_alpha: bool = False
    kappa: float = 0.1
    nu: float | None = None
    psi_scale: float = 1.0
    likelihood_weight: float = 1.0
    n_shards: int = 4
    random_state: int | None = 1

    def _vectors(self) -> _latens.Model | None:
        if self.vectors is None:
            raise ValueError("`vectors` must be a model with word vectors or the path of one, got None")
        return opened(self.vectors, "vectors")

    @property
    def means_(self) -> NDArray[np.float64]:
        """The mean vector of each topic."""
        return self.model_.inside("means", 0)  # type: ignore[no-any-return]
