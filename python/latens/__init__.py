"""Latent-variable models of text: hidden Markov models, linear dynamical systems, topic models, and their peers.

>>> import latens
>>> lda = latens.Lda(n_topics=50).fit(texts)          # doctest: +SKIP
>>> lda.top_words(0)                                  # doctest: +SKIP
>>> model = latens.open("news.hmm")                   # doctest: +SKIP
"""

from __future__ import annotations

import sys

from latens import _latens

_latens.check_interpreter(sys.modules)

from latens import datasets
from latens._hmm import Fhmm, Hmm
from latens._language import FeedForward, Lstm, Ngram, Rnn
from latens._latens import ModelFileError, __version__
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
    "datasets",
    "open",
]
