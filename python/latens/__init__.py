"""Latent-variable models of text: hidden Markov models, linear dynamical systems, topic models, and their peers.

>>> import latens
>>> lda = latens.Lda(n_topics=50).fit(texts)          # doctest: +SKIP
>>> lda.top_words(0)                                  # doctest: +SKIP
>>> model = latens.open("news.hmm")                   # doctest: +SKIP
"""

from __future__ import annotations

from latens import datasets
from latens._latens import ModelFileError, __version__
from latens._models import (
    Brown,
    FeedForward,
    Fhmm,
    GaussianLda,
    Hmm,
    Lda,
    Lds,
    Lstm,
    Ngram,
    Rnn,
    Tagger,
    Vectors,
    Word2Vec,
    open,
)

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
