"""Topic models."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from latens import _latens
from latens._base import Row, TextParams, Transformer, _plain, opened
from latens._input import Counts, Text, counts, is_matrix, source
from latens._progress import Callback
from latens._roles import WordVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self

    from latens._shards import Executor


#: Parameters of cleaning, which are part of a model's preprocessing.
CLEANING = ("stop_words", "min_df", "max_df", "phrases", "keep_all")


@dataclass(eq=False, repr=False)
class TopicParams(TextParams):
    """Parameters of all topic models: how documents are split into words and cleaned."""

    _: KW_ONLY
    stop_words: str | Sequence[str] | None = "english"
    min_df: int | float = 1
    max_df: int | float = 1.0
    phrases: int = 0
    keep_all: bool = False
    tokenize: str | None = None  # type: ignore[assignment]
    lowercase: bool | None = None  # type: ignore[assignment]


class _Topics(Transformer):
    """What topic models share."""

    stop_words: str | Sequence[str] | None
    min_df: int | float
    max_df: int | float
    phrases: int
    keep_all: bool

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
        executor: Executor | None = None,
    ) -> Self:
        """Fit topics to documents.

        Parameters
        ----------
        X : documents as strings or lists of words, paths of files, or a document–term matrix of counts
            (`scipy.sparse` or array), whose columns are then the words `x0`, `x1` …
        y : ignored.
        callback, checkpoint, resume, executor : see `Hmm.fit`. An executor needs `keep_all=True`.
        """
        if executor is not None:
            if not self.keep_all or is_matrix(X):
                raise ValueError("an `executor` needs documents as text, and `keep_all=True`: shards are not cleaned")
            return self._fit_shards(lambda: executor.parts(X), executor, {}, callback, checkpoint, resume)
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
                self._cleaning_json(),
                text.records,
                text.paths,
                self._vectors(),
                options,
            )
        finally:
            if bar is not None:
                bar.close()
        return self

    def _preprocessing_json(self) -> str:
        bare = {"tokenize": "whitespace", "lowercase": False} if self.keep_all else {"tokenize": "words", "lowercase": True}
        given = json.loads(super()._preprocessing_json())
        return json.dumps({**given, **{name: value for name, value in bare.items() if given[name] is None}})

    _of_documents: ClassVar[bool] = True

    def _shard_inputs(self) -> tuple[_latens.Model | None, _latens.Model | None]:
        return None, self._vectors()

    def _cleaning_json(self) -> str | None:
        """How documents are cleaned; `None` if `keep_all`."""
        if self.keep_all:
            return None
        stop_words = self.stop_words
        if stop_words is not None and not isinstance(stop_words, str):
            stop_words = [str(word) for word in stop_words]
        names = ("min_df", "max_df", "phrases")
        return json.dumps({"stop_words": stop_words, **{name: _plain(getattr(self, name)) for name in names}})

    @classmethod
    def _opened(cls, model: _latens.Model) -> Self:
        estimator = super()._opened(model)
        cleaning = json.loads(model.cleaning)
        estimator.keep_all = cleaning is None
        if cleaning is not None:
            stop_words = cleaning["stop_words"]
            named = stop_words["name"] if stop_words["name"] not in ("none", "list") else stop_words["words"] or None
            estimator.stop_words = named
            estimator.min_df, estimator.max_df = cleaning["min_df"], cleaning["max_df"]
            estimator.phrases = cleaning["n_phrases"]
        return estimator

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
        """Topic proportions, one row per document and one column per topic, in the container chosen with `set_output`."""
        return self._output(self._mixtures(X), X)

    def _mixtures(self, X: Any) -> NDArray[np.float32]:
        model = self.model_
        if is_matrix(X):
            return self._transform_counts(counts(X, self, reset=False))
        text = source(X)
        return model.mixtures(text.records, text.paths, self._more_vectors(), self._n_threads())

    def _more_vectors(self) -> _latens.Model | None:
        """Vectors of words that may be outside the training documents."""
        return None

    def _transform_counts(self, matrix: Counts) -> NDArray[np.float32]:
        return self.model_.mixtures_of_ids(*self._ids(matrix), self._n_threads())

    def _ids(self, matrix: Counts) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Ends of documents, and the ids of their words."""
        import numpy as np

        vocabulary = self.vocabulary_
        # Words without a token in training are unknown: id 0.
        ids = np.array([vocabulary.get(f"x{i}", 0) for i in range(matrix.n_columns)], dtype=np.uint32)
        tokens = np.repeat(ids[matrix.indices], matrix.counts.astype(np.int64))
        ends = np.concatenate([[0], np.cumsum(matrix.counts, dtype=np.int64)])[matrix.indptr].astype(np.int64)
        return ends, tokens

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

    def _glance(self) -> list[Row]:
        sizes = self.topic_sizes_
        total = max(int(sizes.sum()), 1)
        order = sorted(range(len(sizes)), key=lambda topic: -int(sizes[topic]))[:20]
        words = [", ".join(word for word, _ in self.top_words(topic)) for topic in order]
        return [Row(f"topic {topic}", text, int(sizes[topic]) / total) for topic, text in zip(order, words)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


@dataclass(eq=False, repr=False)
class Lda(TopicParams, _Topics):
    """Latent Dirichlet allocation: topics are distributions over words.

    Parameters
    ----------
    n_topics : number of topics.
    n_iterations : number of Gibbs sampling iterations over all tokens.
    sampler : 'auto', 'dense' or 'sparse'.
    alpha : Dirichlet parameter of each topic in a document; by default 1 / `n_topics`.
    optimize_alpha : learn one alpha per topic.
    beta : Dirichlet parameter of each word in a topic.
    stop_words : words to leave out: the name of a language, a list of words, or None.
    min_df, max_df : number of documents that contain a word (int), or their share (float).
    phrases : number of pairs of words that are joined to phrases.
    keep_all : keep stop words, punctuation and numbers, and the case of letters.
    tokenize, lowercase : by default 'words' and True; with `keep_all`, 'whitespace' and False.
    """

    _kind = "lda"
    _own = CLEANING

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

    @property
    def topic_word_counts_(self) -> NDArray[np.uint32]:
        """Number of training tokens of each word in each topic, in the shape of `components_`: a read-only view of the model."""
        return self.model_.word_topic_counts().T

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-probability of every second word of the documents, given the others, in nats. Higher is better.

        The topic proportions of a document are inferred from the words in between (document completion).
        """
        log_prob, n_tokens = self._completion(X)
        return log_prob / n_tokens if n_tokens else math.nan

    def perplexity(self, X: Any) -> float:
        """Perplexity of every second word of the documents, given the others: the exponential of −`score`."""
        return math.exp(-self.score(X))

    def _completion(self, X: Any) -> tuple[float, int]:
        if is_matrix(X):
            return self.model_.completion_of_ids(*self._ids(counts(X, self, reset=False)), self._n_threads())
        text = source(X)
        return self.model_.completion(text.records, text.paths, self._n_threads())

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
class GaussianLda(TopicParams, _Topics):
    """Gaussian LDA: topics are Gaussian distributions over word vectors.

    Parameters
    ----------
    vectors : a model with word vectors (`Word2Vec`, `Lds`, `Vectors`), or the path of one. `transform` also uses words
        outside the training documents if these have a vector for them.
    n_topics : number of topics.
    n_iterations : number of Gibbs sampling iterations over all tokens.
    sampler : 'auto' or what `latens train glda --help` lists.
    covariance : 'full', 'diagonal' or 'spherical'.
    stop_words : words to leave out: the name of a language, a list of words, or None.
    min_df, max_df : number of documents that contain a word (int), or their share (float).
    phrases : number of pairs of words that are joined to phrases.
    keep_all : keep stop words, punctuation and numbers, and the case of letters.
    tokenize, lowercase : by default 'words' and True; with `keep_all`, 'whitespace' and False.
    """

    _kind = "glda"
    _own = ("vectors", *CLEANING)

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

    def _more_vectors(self) -> _latens.Model | None:
        try:
            return None if self.vectors is None else opened(self.vectors, "vectors")
        except OSError as error:
            warnings.warn(
                f"words outside the training documents are ignored, because `vectors` cannot be read: {error}", stacklevel=4
            )
            return None

    @property
    def means_(self) -> NDArray[np.float64]:
        """The mean vector of each topic."""
        return self.model_.inside("means", 0)  # type: ignore[no-any-return]
