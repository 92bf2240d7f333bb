"""Base classes of all estimators. They follow scikit-learn, which is imported only where it is needed."""

from __future__ import annotations

import html
import inspect
import json
import math
import os
import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from latens import _latens
from latens._input import Text, source
from latens._progress import Bar, Callback

if TYPE_CHECKING:
    from typing_extensions import Self

    from latens._shards import Executor, Part

#: Parameters of the vocabulary, which all models of text share.
PREPROCESSING = ("tokenize", "lowercase", "digits", "normalize")
LIMITS = ("min_count", "max_vocab")
#: Parameters of a run, which do not change the model.
RUN = ("random_state", "n_jobs", "verbose", "device")


class Row(NamedTuple):
    """A row of what a model has learned, with a bar where it has a share of the text."""

    name: str
    text: str
    share: float | None = None

    def html(self) -> str:
        """The row of a table."""
        left = "style='text-align:left'"
        bar = ""
        if self.share is not None:
            # The color of Matplotlib's first bar, which is visible on light and dark pages.
            width = f"width:{100 * self.share:.1f}%;min-width:1px"
            bar = f"<div style='background:#1f77b4;height:0.8em;{width}' title='{self.share:.1%}'></div>"
        return (
            f"<tr><th {left}>{html.escape(self.name)}</th><td style='width:8em'>{bar}</td>"
            f"<td {left}>{html.escape(self.text)}</td></tr>"
        )


class Estimator:
    """Base class of all models.

    Estimators are dataclasses, so that constructors only store their arguments, as scikit-learn requires.
    """

    n_jobs: int | None
    verbose: bool | int
    _kind: ClassVar[str]
    #: Python names of parameters that have another name in Rust.
    _renamed: ClassVar[dict[str, str]] = {}
    #: Parameters that are not part of the model's parameters in Rust.
    _own: ClassVar[tuple[str, ...]] = ()
    _model: _latens.Model | None = None

    # Parameters.

    @classmethod
    def _param_names(cls) -> list[str]:
        names = list(inspect.signature(cls.__init__).parameters)
        return [name for name in names if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this estimator."""
        return {name: getattr(self, name) for name in self._param_names()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator."""
        names = self._param_names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {names!r}.")
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        from sklearn.base import clone

        # A model that another one learns from is data: a clone of it would be one without a fit.
        params = {
            name: value if _holds_models(value) else clone(value, safe=False)
            for name, value in self.get_params().items()
        }
        copy = type(self)(**params)
        if hasattr(self, "_sklearn_output_config"):
            copy._sklearn_output_config = dict(self._sklearn_output_config)  # type: ignore[attr-defined]
        return copy

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}" for name, value in self.get_params().items() if value is not defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _params_json(self) -> str:
        known = json.loads(_latens.default_params(self._kind))
        params = {}
        skipped = {*PREPROCESSING, *LIMITS, *RUN, *self._own}
        for name, value in self.get_params().items():
            rust = self._renamed.get(name, name)
            if name not in skipped and rust in known:
                params[rust] = _plain(value)
                if isinstance(params[rust], float) and not math.isfinite(params[rust]):
                    raise ValueError(f"`{name}` must be a finite number, got {value}")
        if "seed" in known:
            params["seed"] = self._seed()
        return json.dumps(params)

    def _seed(self) -> int:
        state = getattr(self, "random_state", None)
        if state is None:
            # NumPy's global generator, as scikit-learn does, so that `np.random.seed` has its effect.
            import numpy as np

            return int(np.random.randint(0, 2**31 - 1))
        if hasattr(state, "randint"):
            return int(state.randint(0, 2**31 - 1))
        if hasattr(state, "integers"):
            return int(state.integers(0, 2**31 - 1))
        return int(state)

    def _preprocessing_json(self) -> str:
        return json.dumps({name: getattr(self, name) for name in PREPROCESSING})

    def _limits_json(self) -> str:
        limits = {name: _plain(getattr(self, name)) for name in LIMITS}
        limits["min_count"] = limits["min_count"] or 1
        limits["max_vocab"] = limits["max_vocab"] or 0
        return json.dumps(limits)

    def _n_threads(self) -> int | None:
        n_jobs = getattr(self, "n_jobs", None)
        if n_jobs is None or n_jobs == -1:
            return None
        if n_jobs < 1:
            raise ValueError(f"`n_jobs` must be None, -1 or at least 1, got {n_jobs}")
        return int(n_jobs)

    def _options(
        self, callback: Callback | None, checkpoint: str | os.PathLike[str] | None, resume: bool
    ) -> tuple[dict[str, Any], Bar | None]:
        device = getattr(self, "device", "cpu")
        if device not in ("cpu", "cuda"):
            raise ValueError(f"`device` must be 'cpu' or 'cuda', got {device!r}")
        if resume and checkpoint is None:
            raise ValueError("`resume=True` needs the path of a `checkpoint`")
        bar = Bar(callback) if self.verbose else None
        options = {
            "n_threads": self._n_threads(),
            "callback": bar or callback,
            "checkpoint": None if checkpoint is None else Path(checkpoint),
            "resume": resume,
            "cuda": device == "cuda",
        }
        return options, bar

    def _fit_shards(
        self,
        parts: Callable[[], list[Part]],
        executor: Executor,
        given: dict[str, Any],
        callback: Callback | None,
        checkpoint: str | os.PathLike[str] | None,
        resume: bool,
    ) -> Self:
        """Fits with the workers of an executor."""
        from latens import _shards

        for name in [name for name, value in given.items() if value is not None]:
            raise ValueError(f"`{name}` cannot be used with an `executor`")
        executor.learns_together(self)
        options, bar = self._options(callback, checkpoint, resume)
        if options["cuda"]:
            raise ValueError("`device='cuda'` needs an `executor` with copies of the model: `latens.ray.Executor()`")
        run = _shards.Run(
            self._kind,
            self._params_json(),
            self._preprocessing_json(),
            self._limits_json(),
            self._of_documents,
            *self._shard_inputs(),
            self._n_threads(),
        )
        try:
            self._model = _shards.fit(run, parts(), executor, options["callback"], checkpoint, resume)
        finally:
            if bar is not None:
                bar.close()
        return self

    #: Whether the model is fitted to documents, which have no ends of sentences.
    _of_documents: ClassVar[bool] = False

    def _shard_inputs(self) -> tuple[_latens.Model | None, _latens.Model | None]:
        """Word clusters and word vectors that the model learns from."""
        return None, None

    # The fitted model.

    @property
    def model_(self) -> _latens.Model:
        """The fitted model of the extension module."""
        if self._model is None:
            message = f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first."
            try:
                from sklearn.exceptions import NotFittedError
            except ImportError:
                raise AttributeError(message) from None
            raise NotFittedError(message)
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Words and their ids."""
        return {word: i for i, word in enumerate(self.model_.words())}

    @property
    def words_(self) -> list[str]:
        """Words in the order of their ids. The first two are `<unk>` and `<eos>`."""
        return self.model_.words()

    @property
    def facts_(self) -> dict[str, Any]:
        """Facts about the training run, as `latens inspect` prints them."""
        facts: dict[str, Any] = json.loads(self.model_.facts)
        return facts

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `latens.open` and the program `latens` can read."""
        self.model_.save(Path(path))

    @classmethod
    def _opened(cls, model: _latens.Model) -> Self:
        """An estimator with the parameters of an opened model."""
        estimator = cls.__new__(cls)
        params = {
            name: parameter.default
            for name, parameter in inspect.signature(cls.__init__).parameters.items()
            if name != "self"
        }
        stored = {**json.loads(model.inside("params", 0)), **json.loads(model.preprocessing), **json.loads(model.limits)}
        if stored.get("tokenize") == "blanks":
            # The name in files is that of version 0.1.
            stored["tokenize"] = "whitespace"
        if "seed" in stored:
            stored["random_state"] = stored.pop("seed")
        back = {rust: python for python, rust in cls._renamed.items()}
        for name, value in json.loads(model.inside("params", 0)).items():
            if name in back:
                params[back[name]] = value
        params.update({name: value for name, value in stored.items() if name in params and name not in back})
        for name, value in params.items():
            setattr(estimator, name, value)
        estimator._model = model
        return estimator

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(one_d_array=True, two_d_array=False, string=True),
        )

    # Notebooks.

    def _glance(self) -> list[Row]:
        """Rows of a short table of what the model has learned."""
        return []

    def _repr_html_(self) -> str:
        name = html.escape(repr(self))
        if self._model is None:
            return f"<code>{name}</code> (not fitted)"
        rows = "".join(row.html() for row in self._glance())
        facts = ", ".join(f"{key} {value}" for key, value in list(self.facts_.items())[:6] if not isinstance(value, (dict, list)))
        return (
            f"<div><code>{name}</code><br>{html.escape(self._model.description)}, "
            f"{len(self.words_):,} words<br><small>{html.escape(facts)}</small><table>{rows}</table></div>"
        )


class Transformer(Estimator):
    """A model whose `transform` gives one row of numbers per text."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the container of the results of `transform`: 'default' (NumPy), 'pandas' or 'polars'."""
        if transform not in (None, "default", "pandas", "polars"):
            raise ValueError(f"`transform` must be 'default', 'pandas' or 'polars', got {transform!r}")
        if transform is not None:
            # The name that scikit-learn uses: its pipelines and clones look for it.
            self._sklearn_output_config = {"transform": transform}
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns of `transform`."""
        raise NotImplementedError

    def _output(self, rows: Any, X: Any) -> Any:
        """Rows in the container that was asked for."""
        config = getattr(self, "_sklearn_output_config", {}).get("transform")
        # Who has set the global configuration has imported scikit-learn.
        if config is None and "sklearn" in sys.modules:
            from sklearn import get_config

            config = get_config()["transform_output"]
        if config == "pandas":
            import pandas

            index = X.index if isinstance(X, (pandas.Series, pandas.DataFrame)) else None
            return pandas.DataFrame(rows, index=index, columns=self.get_feature_names_out())
        if config == "polars":
            import polars

            return polars.DataFrame(rows, schema=list(self.get_feature_names_out()), orient="row")
        return rows


@dataclass(eq=False, repr=False)
class TextParams:
    """Parameters of all models of text: the vocabulary and the run."""

    _: KW_ONLY
    tokenize: str = "whitespace"
    lowercase: bool = False
    digits: str = "keep"
    normalize: str = "nfc"
    min_count: int | None = 1
    max_vocab: int | None = None
    n_jobs: int | None = None
    verbose: bool | int = False


class SentenceEstimator(Estimator):
    """A model that is fitted to sentences."""

    def _inputs(self, words: list[list[str]] | None, tags: list[list[str]] | None) -> dict[str, Any]:
        """What the model learns from besides text."""
        return {"clusters": None, "tags": None, "init": None, "unknown_words": False}

    def fit(
        self,
        X: Text,
        y: Any = None,
        *,
        valid: Text | None = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        executor: Executor | None = None,
    ) -> Self:
        """Fit the model to sentences.

        Parameters
        ----------
        X : sentences as strings or lists of words, or paths of files; a generator is read once.
        y : ignored, except for the tags of `Hmm`.
        valid : validation sentences. Models that support it keep the parameters of the best epoch.
        callback : function that gets facts about the progress. An exception stops the training.
        checkpoint : path of a checkpoint, which is written from time to time and on Ctrl-C.
        resume : continue from the checkpoint.
        executor : workers that compute the statistics of shards: `latens.processes.Executor` or `latens.ray.Executor`.
            Each file is a shard, and the model does not depend on the number of workers. On GPUs (`device="cuda"`), each
            worker has the whole text and learns from its share of every mini-batch.
        """
        if executor is not None:
            _, tags = self._tagged(X, y)
            if executor.learns_together(self):
                return self._fit_copies(X, tags, valid, executor, callback, checkpoint, resume)
            given = {"valid": valid, "y": tags}
            return self._fit_shards(lambda: executor.parts(X), executor, given, callback, checkpoint, resume)
        return self._fit_text(X, y, valid, callback, checkpoint, resume)

    def _fit_copies(
        self,
        X: Any,
        tags: Any,
        valid: Any,
        executor: Executor,
        callback: Callback | None,
        checkpoint: str | os.PathLike[str] | None,
        resume: bool,
    ) -> Self:
        """Fits with workers that have copies of the model."""
        if tags is not None:
            raise ValueError("`y` cannot be used with an `executor`")
        options, bar = self._options(callback, checkpoint, resume)
        # Without a seed, every worker would draw another one.
        params = {**self.get_params(), "random_state": self._seed(), "verbose": False}
        try:
            copy = type(self)(**params)
            self._model = executor.fit_together(copy, X, valid, options["callback"], checkpoint, resume)
        finally:
            if bar is not None:
                bar.close()
        return self

    def _fit_text(
        self,
        X: Any,
        y: Any,
        valid: Any,
        callback: Callback | None,
        checkpoint: str | os.PathLike[str] | None,
        resume: bool,
        group: _latens.Ring | None = None,
    ) -> Self:
        """Fits in this process, which may learn together with others."""
        words, tags = self._tagged(X, y)
        text = source(X if words is None else words)
        valid_text = None if valid is None else source(valid)
        options, bar = self._options(callback, checkpoint, resume)
        try:
            self._model = _latens.fit_sentences(
                self._kind,
                self._params_json(),
                self._preprocessing_json(),
                self._limits_json(),
                text.records,
                text.paths,
                None if valid_text is None else valid_text.records,
                None if valid_text is None or valid_text.records is not None else valid_text.paths,
                {**self._inputs(words, tags), "group": group},
                options,
            )
        finally:
            if bar is not None:
                bar.close()
        return self


    def _tagged(self, X: Any, y: Any) -> tuple[list[list[str]] | None, list[list[str]] | None]:
        """Words and their tags, for models that learn from tags."""
        return None, None


def tagged_sentences(X: Any, y: Any) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of words, and the tags of the words."""
    for sentence in X[:1] if isinstance(X, (list, tuple)) else ():
        if isinstance(sentence, str):
            raise ValueError("sentences with tags must be lists of words, got a string; split it into words first")
    words, tags = [list(sentence) for sentence in X], [list(sentence) for sentence in y]
    if len(words) != len(tags):
        raise ValueError(f"X has {len(words)} sentences, but y has {len(tags)}")
    for i, (sentence, own) in enumerate(zip(words, tags)):
        if len(sentence) != len(own):
            raise ValueError(f"sentence {i} has {len(sentence)} words, but {len(own)} tags")
    return words, tags


def opened(model: Any, name: str) -> _latens.Model:
    """The model of a parameter that is an estimator or the path of a model file."""
    if isinstance(model, Estimator):
        return model.model_
    if isinstance(model, (str, os.PathLike)):
        return _latens.open(Path(model))
    raise ValueError(f"`{name}` must be a fitted model or the path of one, got {type(model).__name__}")


def _holds_models(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_models(item) for item in value)
    return isinstance(value, Estimator)


def _plain(value: Any) -> Any:
    """A parameter as JSON has it. NumPy numbers come from grid searches."""
    if hasattr(value, "item") and not isinstance(value, (list, tuple)):
        return value.item()
    if isinstance(value, tuple):
        return list(value)
    return value
