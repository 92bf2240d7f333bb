"""Latent-variable models of text: hidden Markov models, linear dynamical systems, topic models, word vectors and more.

>>> import latens
>>> lda = latens.Lda(n_topics=50).fit(texts)          # doctest: +SKIP
>>> lda.top_words(0)                                  # doctest: +SKIP
>>> model = latens.open("news.hmm")                   # doctest: +SKIP
"""

from __future__ import annotations

import sys

# Models in Python rely on the lock. Interpreters without it are as of 3.13.
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError("latens needs the global interpreter lock: start Python with `-X gil=1`")

from latens import _latens
from latens._latens import ModelFileError, __version__

_latens.check_interpreter(sys.modules)

# Type checkers take this for true. `typing` has it, but takes longer to import than everything here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from latens import constraint, datasets, hf, processes, ray
    from latens._hmm import Fhmm, Hmm
    from latens._language import FeedForward, Lstm, Ngram, Rnn
    from latens._models import open
    from latens._tagger import Tagger
    from latens._topics import GaussianLda, Lda
    from latens._words import Brown, Lds, Vectors, Word2Vec

__all__ = [
    "Brown",
    "FeedForward",
    "Fhmm",
    "GaussianLda",
    "Hmm",
    "Lda",
    "Lds",
    "Lstm",
    "ModelFileError",
    "Ngram",
    "Rnn",
    "Tagger",
    "Vectors",
    "Word2Vec",
    "__version__",
    "constraint",
    "datasets",
    "hf",
    "open",
    "processes",
]

#: The module of each name. It is imported with the first use, so that the program and `import latens` start at once.
_MODULES = {
    "Brown": "_words",
    "FeedForward": "_language",
    "Fhmm": "_hmm",
    "GaussianLda": "_topics",
    "Hmm": "_hmm",
    "Lda": "_topics",
    "Lds": "_words",
    "Lstm": "_language",
    "Ngram": "_language",
    "Rnn": "_language",
    "Tagger": "_tagger",
    "Vectors": "_words",
    "Word2Vec": "_words",
    "constraint": "constraint",
    "datasets": "datasets",
    "hf": "hf",
    "open": "_models",
    "processes": "processes",
    "ray": "ray",
}

if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module 'latens' has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f"latens.{_MODULES[name]}")
        value = module if _MODULES[name] == name else getattr(module, name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted(__all__)
