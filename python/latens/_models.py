"""One estimator per model."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from latens import _latens
from latens._base import Estimator, SentenceEstimator, _plain
from latens._input import Counts, Text, counts, is_matrix, source
from latens._progress import Callback
from latens._roles import Encoder, LanguageModel, WordVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self


class Ngram(SentenceEstimator, LanguageModel):
    """N-gram language model with modified Kneser–Ney smoothing.

    Parameters
    ----------
    order : number of words per n-gram, including the predicted one.
    min_counts : minimum count of n-grams, one entry per order from 1 on; the last applies to all higher orders.
    cache_weight : interpolation weight of a cache of recent words; 0 disables it.
    cache_size : number of recent words in the cache.
    tokenize, lowercase, digits, min_count, max_vocab : see `docs/python.md`.
    """

    _kind = "ngram"

    def __init__(
        self,
        order: int = 5,
        *,
        min_counts: Sequence[int] = (1,),
        cache_weight: float = 0.0,
        cache_size: int = 500,
        tokenize: str = "blanks",
        lowercase: bool = False,
        digits: str = "keep",
        min_count: int = 1,
        max_vocab: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.order = order
        self.min_counts = min_counts
        self.cache_weight = cache_weight
        self.cache_size = cache_size
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.digits = digits
        self.min_count = min_count
        self.max_vocab = max_vocab
        self.n_jobs = n_jobs
        self.verbose = verbose


class Brown(SentenceEstimator, Encoder):
    """Hierarchical word clusters (Brown et al. 1992), or flat ones by the exchange algorithm.

    Parameters
    ----------
    n_clusters : number of clusters.
    algorithm : 'brown' or 'exchange'.
    n_iterations : maximum number of passes of the exchange algorithm.
    """

    _kind = "brown"

    def __init__(
        self,
        n_clusters: int = 1000,
        *,
        algorithm: str = "brown",
        n_iterations: int = 20,
        tokenize: str = "blanks",
        lowercase: bool = False,
        digits: str = "keep",
        min_count: int = 1,
        max_vocab: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.algorithm = algorithm
        self.n_iterations = n_iterations
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.digits = digits
        self.min_count = min_count
        self.max_vocab = max_vocab
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def paths_(self) -> dict[str, str]:
        """The path of each word in the tree of clusters, as a string of 0 and 1."""
        paths: list[str | None] = self.model_.inside("paths", 0)
        return {word: path for word, path in zip(self.words_, paths) if path is not None}

    def _glance(self) -> list[tuple[str, str]]:
        clusters: dict[str, list[str]] = {}
        for word, path in self.paths_.items():
            clusters.setdefault(path, []).append(word)
        return [(path, ", ".join(words[:10])) for path, words in list(clusters.items())[:10]]


class Hmm(SentenceEstimator, LanguageModel, Encoder):
    """Hidden Markov model, with up to tens of thousands of states.

    `transform` gives the mean posterior of the states of a sentence; `encode` gives features of every word.

    Parameters
    ----------
    n_states : number of hidden states.
    n_clusters : number of word clusters, which divide the states equally.
    constraint : which states may emit a word: 'brown', 'uniform' or 'none'.
    parameterization : 'neural', 'factored' or 'scalar'.
    learning : algorithm for scalar parameters: 'em' (Baum–Welch) or 'gradient'.
    dim : dimension of the embeddings.
    state_dropout : fraction of states left out of each mini-batch.
    epochs : number of passes over the training text.
    batch_tokens : number of tokens per mini-batch; 0 chooses by the size of the text.
    """

    _kind = "hmm"
    _own = ("features",)

    def __init__(
        self,
        n_states: int = 1024,
        *,
        n_clusters: int = 32,
        constraint: str = "brown",
        parameterization: str = 'neural',
        learning: str = "em",
        dim: int = 256,
        init_deviation: float = 0.1,
        tying: str = "shared",
        word_vectors: str = 'words',
        memory: str = "reset",
        run_tokens: int = 128,
        state_dropout: float = 0.0,
        dropout: float = 0.0,
        epochs: int = 20,
        batch_tokens: int = 0,
        learning_rate: float = 0.003,
        schedule: str = "cosine",
        weight_decay: float = 0.0,
        clip: float = 5.0,
        prior: float = 0.01,
        features: str = "posterior",
        tokenize: str = "blanks",
        lowercase: bool = False,
        digits: str = "keep",
        min_count: int = 1,
        max_vocab: int | None = None,
        device: str = "cpu",
        random_state: int | None = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_states = n_states
        self.n_clusters = n_clusters
        self.constraint = constraint
        self.parameterization = parameterization
        self.learning = learning
        self.dim = dim
        self.init_deviation = init_deviation
        self.tying = tying
        self.word_vectors = word_vectors
        self.memory = memory
        self.run_tokens = run_tokens
        self.state_dropout = state_dropout
        self.dropout = dropout
        self.epochs = epochs
        self.batch_tokens = batch_tokens
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.clip = clip
        self.prior = prior
        self.features = features
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.digits = digits
        self.min_count = min_count
        self.max_vocab = max_vocab
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def startprob_(self) -> NDArray[np.float32]:
        """Probability of each state at the beginning of a sentence."""
        return self.model_.inside("start", 0)  # type: ignore[no-any-return]

    @property
    def transmat_(self) -> NDArray[np.float32]:
        """Transition probabilities: rows are the states before, columns the states after."""
        import numpy as np

        return np.stack([self.model_.inside("transition", state) for state in range(len(self.startprob_))])

    @property
    def emissionprob_(self) -> NDArray[np.float32]:
        """Emission probabilities: rows are states, columns are words."""
        import numpy as np

        return np.stack([self.model_.inside("emission", state) for state in range(len(self.startprob_))])

    def predict(self, X: Text) -> list[NDArray[np.int32]]:
        """The most probable state of each word of each sentence (the largest posterior)."""
        import numpy as np

        matrix, lengths = self._encode(X, "state")
        if matrix.nnz != matrix.shape[0]:
            raise ValueError("a sentence has probability zero under the model; fit it with min_count=2")
        return np.split(matrix.indices, np.cumsum(lengths)[:-1])

    def top_words(self, state: int, n: int = 10) -> list[tuple[str, float]]:
        """The most probable words of a state."""
        import numpy as np

        probs = self.model_.inside("emission", state)
        best = np.argsort(-probs, kind="stable")[:n]
        words = self.words_
        return [(words[i], float(probs[i])) for i in best if probs[i] > 0]

    def _glance(self) -> list[tuple[str, str]]:
        share = self.model_.inside("stationary", 0)
        states = (-share).argsort()[:10]
        return [
            (f"state {state} ({share[state]:.1%})", ", ".join(word for word, _ in self.top_words(int(state))))
            for state in states
        ]


class Fhmm(SentenceEstimator, Encoder):
    """Factorial hidden Markov model: several layers of states emit each word together.

    Parameters
    ----------
    n_layers : number of layers.
    n_states : number of hidden states per layer.
    inference : 'auto', 'exact', 'meanfield' or what `latens train fhmm --help` lists.
    epochs : number of passes over the training text.
    rare_count : minimum count of a word; rarer words are treated as `unknown` says.
    """

    _kind = "fhmm"
    _renamed: ClassVar[dict[str, str]] = {"rare_count": "min_count"}

    def __init__(
        self,
        n_layers: int = 5,
        n_states: int = 10,
        *,
        inference: str = "auto",
        m_step: str = 'layers',
        lbfgs_iterations: int = 100,
        epochs: int = 5,
        batch_sentences: int | None = None,
        step_power: float = 0.7,
        sweeps: int = 10,
        pseudo_tokens: float | None = None,
        prior: float = 0.1,
        base_measure: str = "unigram",
        rare_count: int = 2,
        unknown: str = "signature",
        restarts: int = 1,
        tokenize: str = "blanks",
        lowercase: bool = False,
        digits: str = "keep",
        min_count: int = 1,
        max_vocab: int | None = None,
        random_state: int | None = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_layers = n_layers
        self.n_states = n_states
        self.inference = inference
        self.m_step = m_step
        self.lbfgs_iterations = lbfgs_iterations
        self.epochs = epochs
        self.batch_sentences = batch_sentences
        self.step_power = step_power
        self.sweeps = sweeps
        self.pseudo_tokens = pseudo_tokens
        self.prior = prior
        self.base_measure = base_measure
        self.rare_count = rare_count
        self.unknown = unknown
        self.restarts = restarts
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.digits = digits
        self.min_count = min_count
        self.max_vocab = max_vocab
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class Lds(SentenceEstimator, Encoder, WordVectors):
    """Linear dynamical system learned from co-occurrence counts: vectors of words in context.

    Parameters
    ----------
    dim : dimension of the state.
    lags : largest distance of the pairs of words that EM uses.
    ssid_lags : number of block rows of the Hankel matrix of the initial model.
    pseudo_counts : number added to the count of every word; by default a fifth of the average count.
    n_iterations : maximum number of EM iterations.
    """

    _kind = "lds"

    def __init__(
        self,
        dim: int = 200,
        *,
        lags: int = 7,
        ssid_lags: int = 4,
        pseudo_counts: float | None = None,
        n_iterations: int = 10,
        boundary: str = "stream",
        power_iterations: int = 2,
        tokenize: str = "blanks",
        lowercase: bool = False,
        digits: str = "keep",
        min_count: int = 1,
        max_vocab: int | None = None,
        random_state: int | None = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.dim = dim
        self.lags = lags
        self.ssid_lags = ssid_lags
        self.pseudo_counts = pseudo_counts
        self.n_iterations = n_iterations
        self.boundary = boundary
        self.power_iterations = power_iterations
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.digits = digits
        self.min_count = min_count
        self.max_vocab = max_vocab
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def transition_matrix_(self) -> NDArray[np.float64]:
        """The matrix that maps a state to the expected next one."""
        return self.model_.inside("transition_matrix", 0)  # type: ignore[no-any-return]


class Word2Vec(SentenceEstimator, Encoder, WordVectors):
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

    def __init__(
        self,
        dim: int = 100,
        *,
        algorithm: str = "skip-gram",
        window: int = 5,
        n_negatives: int = 5,
        noise_power: float = 0.75,
        subsample: float = 0.001,
        epochs: int = 5,
        learning_rate: float = 0.025,
        tokenize: str = "blanks",
        lowercase: bool = False,
        digits: str = "keep",
        min_count: int = 1,
        max_vocab: int | None = None,
        random_state: int | None = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.dim = dim
        self.algorithm = algorithm
        self.window = window
        self.n_negatives = n_negatives
        self.noise_power = noise_power
        self.subsample = subsample
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.digits = digits
        self.min_count = min_count
        self.max_vocab = max_vocab
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class _Topics(Estimator):
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
        keep_all = getattr(self, "keep_all", False)
        tokenize, lowercase = getattr(self, "tokenize", None), getattr(self, "lowercase", None)
        bare = {"tokenize": "blanks", "lowercase": False} if keep_all else {"tokenize": "words", "lowercase": True}
        given = {"tokenize": tokenize, "lowercase": lowercase}
        chosen = {name: bare[name] if value is None else value for name, value in given.items()}
        return json.dumps({**json.loads(super()._preprocessing_json()), **chosen})

    def _cleaning_json(self) -> str | None:
        """How documents are cleaned; None for the bare text."""
        if getattr(self, "keep_all", False):
            return None
        stop_words = getattr(self, "stop_words", None)
        if stop_words is not None and not isinstance(stop_words, str):
            stop_words = [str(word) for word in stop_words]
        names = ("min_df", "max_df", "phrases")
        return json.dumps({"stop_words": stop_words, **{name: _plain(getattr(self, name)) for name in names}})

    @classmethod
    def _opened(cls, model: _latens.Model) -> Self:
        estimator = super()._opened(model)
        cleaning = json.loads(model.cleaning)
        estimator.keep_all = cleaning is None  # type: ignore[attr-defined]
        if cleaning is not None:
            stop_words = cleaning["stop_words"]
            named = stop_words["name"] if stop_words["name"] not in ("none", "list") else stop_words["words"] or None
            values = {
                "stop_words": named,
                "min_df": cleaning["min_df"],
                "max_df": cleaning["max_df"],
                "phrases": cleaning["n_phrases"],
            }
            for name, value in values.items():
                setattr(estimator, name, value)
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

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Topic proportions of documents: one row per document, one column per topic."""
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
        ends = np.concatenate([[0], np.cumsum(matrix.counts, dtype=np.int64)])[matrix.indptr]
        return self.model_.mixtures_of_ids(ends.tolist(), tokens.tolist(), self._n_threads())

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[np.float32]:
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


class Lda(_Topics):
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
    tokenize, lowercase : by default 'words' and True; with `keep_all`, 'blanks' and False.
    """

    _kind = "lda"

    def __init__(
        self,
        n_topics: int = 50,
        *,
        n_iterations: int = 200,
        sampler: str = "auto",
        alpha: float | None = None,
        optimize_alpha: bool = False,
        beta: float = 0.01,
        stop_words: str | Sequence[str] | None = "english",
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        phrases: int = 0,
        keep_all: bool = False,
        tokenize: str | None = None,
        lowercase: bool | None = None,
        digits: str = "keep",
        min_count: int = 1,
        max_vocab: int | None = None,
        random_state: int | None = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_topics = n_topics
        self.n_iterations = n_iterations
        self.sampler = sampler
        self.alpha = alpha
        self.optimize_alpha = optimize_alpha
        self.beta = beta
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.phrases = phrases
        self.keep_all = keep_all
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.digits = digits
        self.min_count = min_count
        self.max_vocab = max_vocab
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
            "doc_topic_dists": self.transform(texts),
            # pyLDAvis divides by the lengths.
            "doc_lengths": np.maximum(self.model_.lengths(text.records, text.paths, self._n_threads()), 1),
            "vocab": self.words_[2:],
            "term_frequency": self.model_.counts()[2:],
        }


class GaussianLda(_Topics):
    """Gaussian LDA: topics are Gaussian distributions over word vectors.

    Parameters
    ----------
    vectors : a model with word vectors (`Word2Vec`, `Lds`, `Vectors`), or the path of one.
    n_topics : number of topics.
    n_iterations : number of Gibbs sampling iterations over all tokens.
    sampler : 'auto' or what `latens train glda --help` lists.
    covariance : 'full', 'diagonal' or 'spherical'.
    stop_words : words to leave out: the name of a language, a list of words, or None.
    min_df, max_df : number of documents that contain a word (int), or their share (float).
    phrases : number of pairs of words that are joined to phrases.
    keep_all : keep stop words, punctuation and numbers, and the case of letters.
    tokenize, lowercase : by default 'words' and True; with `keep_all`, 'blanks' and False.
    """

    _kind = "glda"
    _own = ("vectors",)

    def __init__(
        self,
        vectors: WordVectors | str | os.PathLike[str] | None = None,
        n_topics: int = 50,
        *,
        n_iterations: int = 50,
        sampler: str = "auto",
        covariance: str = 'full',
        start: str = "kmeans",
        prior: str = 'relative',
        alpha: float | None = None,
        optimize_alpha: bool = False,
        kappa: float = 0.1,
        nu: float | None = None,
        psi_scale: float = 1.0,
        likelihood_weight: float = 1.0,
        n_shards: int = 4,
        stop_words: str | Sequence[str] | None = "english",
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        phrases: int = 0,
        keep_all: bool = False,
        tokenize: str | None = None,
        lowercase: bool | None = None,
        digits: str = "keep",
        min_count: int = 1,
        max_vocab: int | None = None,
        random_state: int | None = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.vectors = vectors
        self.n_topics = n_topics
        self.n_iterations = n_iterations
        self.sampler = sampler
        self.covariance = covariance
        self.start = start
        self.prior = prior
        self.alpha = alpha
        self.optimize_alpha = optimize_alpha
        self.kappa = kappa
        self.nu = nu
        self.psi_scale = psi_scale
        self.likelihood_weight = likelihood_weight
        self.n_shards = n_shards
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.phrases = phrases
        self.keep_all = keep_all
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.digits = digits
        self.min_count = min_count
        self.max_vocab = max_vocab
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _vectors(self) -> _latens.Model | None:
        if self.vectors is None:
            raise ValueError("`vectors` must be a model with word vectors or the path of one, got None")
        if isinstance(self.vectors, Estimator):
            return self.vectors.model_
        return _latens.open(Path(self.vectors))

    @property
    def means_(self) -> NDArray[np.float64]:
        """The mean vector of each topic."""
        return self.model_.inside("means", 0)  # type: ignore[no-any-return]


class _Neural(SentenceEstimator, LanguageModel):
    """What neural language models share."""


class FeedForward(_Neural):
    """Feed-forward n-gram network.

    Parameters
    ----------
    order : n of the n-grams; the network reads n − 1 words.
    dim : dimension of the embeddings and hidden layers.
    n_layers : number of hidden layers.
    """

    _kind = "ff"

    def __init__(
        self,
        dim: int = 256,
        *,
        order: int = 4,
        n_layers: int = 2,
        tying: str = "shared",
        dropout: float = 0.3,
        init_range: float = 0.1,
        epochs: int = 30,
        batch_size: int = 512,
        optimizer: str = "adamw",
        schedule: str = 'cosine',
        learning_rate: float = 0.001,
        weight_decay: float = 0.01,
        clip: float = 1.0,
        tokenize: str = "blanks",
        lowercase: bool = False,
        digits: str = "keep",
        min_count: int = 1,
        max_vocab: int | None = None,
        device: str = "cpu",
        random_state: int | None = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.dim = dim
        self.order = order
        self.n_layers = n_layers
        self.tying = tying
        self.dropout = dropout
        self.init_range = init_range
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.clip = clip
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.digits = digits
        self.min_count = min_count
        self.max_vocab = max_vocab
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class Rnn(_Neural):
    """Simple recurrent network.

    Parameters
    ----------
    dim : dimension of the embeddings and the hidden layer.
    squash : activation function.
    bptt : number of time steps of truncated backpropagation through time.
    """

    _kind = "rnn"

    def __init__(
        self,
        dim: int = 300,
        *,
        squash: str = "tanh",
        tying: str = 'separate',
        memory: str = "carry",
        dropout: float = 0.2,
        init_range: float = 0.1,
        epochs: int = 30,
        batch_size: int = 20,
        bptt: int = 20,
        optimizer: str = "adamw",
        schedule: str = 'halving',
        learning_rate: float = 0.0005,
        weight_decay: float = 0.0,
        clip: float = 1.0,
        tokenize: str = "blanks",
        lowercase: bool = False,
        digits: str = "keep",
        min_count: int = 1,
        max_vocab: int | None = None,
        device: str = "cpu",
        random_state: int | None = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.dim = dim
        self.squash = squash
        self.tying = tying
        self.memory = memory
        self.dropout = dropout
        self.init_range = init_range
        self.epochs = epochs
        self.batch_size = batch_size
        self.bptt = bptt
        self.optimizer = optimizer
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.clip = clip
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.digits = digits
        self.min_count = min_count
        self.max_vocab = max_vocab
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class Lstm(_Neural):
    """Long short-term memory network.

    Parameters
    ----------
    dim : dimension of the embeddings and hidden layers.
    n_layers : number of hidden layers.
    bptt : number of time steps of truncated backpropagation through time.
    """

    _kind = "lstm"

    def __init__(
        self,
        dim: int = 256,
        *,
        n_layers: int = 2,
        tying: str = "shared",
        memory: str = 'carry',
        dropout: float = 0.3,
        init_range: float = 0.1,
        epochs: int = 45,
        batch_size: int = 20,
        bptt: int = 35,
        optimizer: str = "sgd",
        schedule: str = 'plateau',
        learning_rate: float = 20.0,
        weight_decay: float = 0.0,
        clip: float = 0.25,
        tokenize: str = "blanks",
        lowercase: bool = False,
        digits: str = "keep",
        min_count: int = 1,
        max_vocab: int | None = None,
        device: str = "cpu",
        random_state: int | None = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.dim = dim
        self.n_layers = n_layers
        self.tying = tying
        self.memory = memory
        self.dropout = dropout
        self.init_range = init_range
        self.epochs = epochs
        self.batch_size = batch_size
        self.bptt = bptt
        self.optimizer = optimizer
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.clip = clip
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.digits = digits
        self.min_count = min_count
        self.max_vocab = max_vocab
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


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

    def __init__(
        self,
        encoders: Sequence[Any] = (),
        *,
        kind: str = "crf",
        optimizer: str = 'lbfgs',
        lexical: bool = True,
        spans: str = "iob2",
        pairs: str = 'observed',
        min_count: int = 1,
        l2: float = 0.5,
        l1: float = 0.0,
        n_iterations: int = 200,
        epochs: int = 10,
        window: int = 2,
        scale: float = 0.3,
        n_hidden: int = 25,
        direct_words: Sequence[str] = (),
        random_state: int | None = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.encoders = encoders
        self.kind = kind
        self.optimizer = optimizer
        self.lexical = lexical
        self.spans = spans
        self.pairs = pairs
        self.min_count = min_count
        self.l2 = l2
        self.l1 = l1
        self.n_iterations = n_iterations
        self.epochs = epochs
        self.window = window
        self.scale = scale
        self.n_hidden = n_hidden
        self.direct_words = direct_words
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _params_json(self) -> str:
        # `min_count` is a parameter of the tagger, not of a vocabulary.
        import json

        params = json.loads(super()._params_json())
        params["min_count"] = self.min_count
        return json.dumps(params)

    def fit(
        self,
        X: Iterable[Sequence[str]],
        y: Iterable[Sequence[str]],
        *,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Fit the tagger to sentences X, lists of words, and their tags y."""
        words, tags = [list(sentence) for sentence in X], [list(sentence) for sentence in y]
        if len(words) != len(tags):
            raise ValueError(f"X has {len(words)} sentences, but y has {len(tags)}")
        for i, (sentence, own) in enumerate(zip(words, tags)):
            if len(sentence) != len(own):
                raise ValueError(f"sentence {i} has {len(sentence)} words, but {len(own)} tags")
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

    def predict(self, X: Iterable[Sequence[str]]) -> list[list[str]]:
        """The tag of each word of each sentence."""
        names = self.classes_
        found = self.model_.tag([list(sentence) for sentence in X], self._n_threads())
        return [[names[tag] for tag in sentence] for sentence in found]

    def score(self, X: Iterable[Sequence[str]], y: Iterable[Sequence[str]]) -> float:
        """Fraction of words with the right tag."""
        pairs = [
            (found, tag) for own, right in zip(self.predict(X), y) for found, tag in zip(own, right)
        ]
        return sum(found == tag for found, tag in pairs) / max(len(pairs), 1)


class Vectors(Encoder, WordVectors):
    """Word vectors of another program. `latens.open` opens those that `latens import` wrote."""

    _kind = "vectors"

    def __init__(self, *, n_jobs: int | None = None, verbose: bool | int = False) -> None:
        self.n_jobs = n_jobs
        self.verbose = verbose


_CLASSES: dict[str, type[Estimator]] = {
    cls._kind: cls
    for cls in (Brown, FeedForward, Fhmm, GaussianLda, Hmm, Lda, Lds, Lstm, Ngram, Rnn, Tagger, Vectors, Word2Vec)
}


def open(path: str | os.PathLike[str]) -> Any:
    """Open a model file of any kind."""
    model = _latens.open(Path(path))
    return _CLASSES[model.kind]._opened(model)
