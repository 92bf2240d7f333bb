"""Language models: n-grams and neural networks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from latens._base import SentenceEstimator, TextParams, opened
from latens._roles import LanguageModel

if TYPE_CHECKING:
    from latens._words import Lds


@dataclass(eq=False, repr=False)
class Ngram(TextParams, SentenceEstimator, LanguageModel):
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

    order: int = 5
    _: KW_ONLY
    min_counts: Sequence[int] = (1,)
    cache_weight: float = 0.0
    cache_size: int = 500


@dataclass(eq=False, repr=False)
class _Neural(TextParams, SentenceEstimator, LanguageModel):
    """What neural language models share."""

    _: KW_ONLY
    tying: str = "shared"
    dropout: float = 0.3
    init_range: float = 0.1
    epochs: int = 30
    batch_size: int = 20
    optimizer: str = "adamw"
    schedule: str = "cosine"
    learning_rate: float = 0.001
    weight_decay: float = 0.0
    beta2: float = 0.999
    clip: float = 1.0
    average: float = 0.0
    device: str = "cpu"
    random_state: int | None = 1


@dataclass(eq=False, repr=False)
class FeedForward(_Neural):
    """Feed-forward n-gram network.

    Parameters
    ----------
    order : n of the n-grams; the network reads n − 1 words.
    dim : dimension of the embeddings and hidden layers.
    n_layers : number of hidden layers.
    """

    _kind = "ff"

    dim: int = 256
    _: KW_ONLY
    order: int = 4
    n_layers: int = 2
    tying: str = "shared"
    batch_size: int = 512
    weight_decay: float = 0.01


@dataclass(eq=False, repr=False)
class Rnn(_Neural):
    """Simple recurrent network.

    Parameters
    ----------
    dim : dimension of the embeddings and the hidden layer.
    squash : activation function.
    bptt : number of time steps of truncated backpropagation through time.
    init : a fitted `Lds` with the same vocabulary and `dim` to initialize from, or the path of one.
    init_state : state of the linear dynamical system that initializes the hidden state: 'predicted' or 'filtered'.
    init_scale : scale of the initial hidden states; small values keep hidden units in their linear range.
    init_max_norm : maximum norm of the initial output vectors.
    """

    _kind = "rnn"
    _own = ("init", "init_state", "init_scale", "init_max_norm")

    dim: int = 300
    _: KW_ONLY
    squash: str = "tanh"
    tying: str = "separate"
    memory: str = "carry"
    dropout: float = 0.2
    bptt: int = 20
    schedule: str = "halving"
    learning_rate: float = 0.0005
    init: Lds | str | os.PathLike[str] | None = None
    init_state: str = "predicted"
    init_scale: float = 0.5
    init_max_norm: float = 1.0

    def _inputs(self, words: list[list[str]] | None, tags: list[list[str]] | None) -> dict[str, Any]:
        inputs = super()._inputs(words, tags)
        if self.init is not None:
            inputs["init"] = {
                "model": opened(self.init, "init"),
                "state": self.init_state,
                "scale": float(self.init_scale),
                "max_norm": float(self.init_max_norm),
            }
        return inputs


@dataclass(eq=False, repr=False)
class Lstm(_Neural):
    """Long short-term memory network.

    Parameters
    ----------
    dim : dimension of the embeddings and hidden layers.
    n_layers : number of hidden layers.
    bptt : number of time steps of truncated backpropagation through time.
    hidden_dim : number of units of all layers except the last; 0 means `dim`.
    dropout : dropout rate after the last layer, and elsewhere unless the next two are set.
    input_dropout, layer_dropout : dropout rates of word vectors and between layers.
    word_dropout : rate at which all occurrences of a word in a mini-batch are dropped.
    weight_dropout : dropout rate of the recurrent weights.
    mask : how long a dropout mask holds: 'token' or 'sequence'.
    activation_penalty : penalty on the mean square of the outputs of the last layer.
    forget_bias : initial bias of the forget gates.
    average : rate of the running average of the weights, which becomes the model; 0 disables it.
    """

    _kind = "lstm"

    dim: int = 256
    _: KW_ONLY
    n_layers: int = 2
    hidden_dim: int = 0
    input_dropout: float | None = None
    layer_dropout: float | None = None
    word_dropout: float = 0.0
    weight_dropout: float = 0.0
    mask: str = "token"
    activation_penalty: float = 0.0
    forget_bias: float = 1.0
    tying: str = "shared"
    memory: str = "carry"
    epochs: int = 45
    bptt: int = 35
    optimizer: str = "sgd"
    schedule: str = "plateau"
    learning_rate: float = 20.0
    clip: float = 0.25
