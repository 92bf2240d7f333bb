"""Hidden Markov models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from latens import _latens
from latens._base import Row, SentenceEstimator, TextParams, opened, tagged_sentences
from latens._input import Text
from latens._roles import Encoder, LanguageModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self

    from latens._words import Brown
    from latens.constraint import Constraint


@dataclass(eq=False, repr=False)
class Hmm(TextParams, SentenceEstimator, LanguageModel, Encoder):
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
    state_dropout : fraction of states dropped in each mini-batch; `None` chooses it by the number of states and the size of
        the text.
    epochs : number of passes over the training text.
    batch_tokens : number of tokens per mini-batch; 0 chooses by the size of the text.
    clusters : a fitted `Brown` for the constraint 'brown', or the path of one; by default, clusters are learned.
    features : kind of features of `transform`: 'posterior', 'state', 'cluster' or 'cluster-posterior'.
    min_count : minimum count of a word; rarer words are unknown. If `None`, 2 for text without `<unk>`, so that unknown
        words are possible, otherwise 1.
    """

    _kind = "hmm"
    _own = ("features", "clusters")

    n_states: int = 1024
    _: KW_ONLY
    n_clusters: int = 32
    constraint: str = "brown"
    parameterization: str = "neural"
    learning: str = "em"
    dim: int = 256
    init_deviation: float = 0.1
    tying: str = "shared"
    word_vectors: str = "words"
    memory: str = "reset"
    run_tokens: int = 128
    state_dropout: float | None = None
    dropout: float = 0.0
    epochs: int = 20
    batch_tokens: int = 0
    learning_rate: float = 0.003
    schedule: str = "cosine"
    weight_decay: float = 0.0
    clip: float = 5.0
    prior: float = 0.01
    clusters: Brown | str | os.PathLike[str] | None = None
    features: str = "posterior"
    device: str = "cpu"
    random_state: int | None = 1
    min_count: int | None = None

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
        """The state of each word of each sentence in the most probable path of states (Viterbi)."""
        import numpy as np

        matrix, lengths = self._encode(X, "state")
        if matrix.nnz != matrix.shape[0]:
            raise ValueError("a sentence has probability zero under the model; fit it with min_count=2")
        return np.split(matrix.indices, np.cumsum(lengths)[:-1])

    def predict_proba(self, X: Text) -> list[NDArray[np.float32]]:
        """Posterior of the states of each word, given its sentence: one row per word, one column per state."""
        import numpy as np

        matrix, lengths = self._encode(X, "posterior")
        ends = np.cumsum(lengths)
        return [matrix[begin:end].toarray() for begin, end in zip(ends - lengths, ends)]

    def constraint_log_prob(
        self, constraint: Constraint, *, prefix: str = "", min_words: int = 0, max_words: int = 30
    ) -> float:
        """Log-probability that a sentence satisfies a constraint of `latens.constraint`, given its beginning."""
        from latens.constraint import Guide

        ids = self.model_.ids(prefix)
        guide = Guide(
            self, constraint, prefix=ids, min_words=min_words, max_words=max_words, n_jobs=self._n_threads()
        )
        return guide.log_prob()

    @property
    def tags_(self) -> list[str]:
        """Names of the tags that the model was fitted with."""
        return self.model_.tags()

    def predict_tags(self, X: Iterable[Sequence[str]]) -> list[list[str]]:
        """The tag of each word of each sentence, for a model that was fitted with tags."""
        names = self.tags_
        found = self.model_.tag([list(sentence) for sentence in X], self._n_threads())
        return [[names[tag] for tag in sentence] for sentence in found]

    def _tagged(self, X: Any, y: Any) -> tuple[list[list[str]] | None, list[list[str]] | None]:
        # In a pipeline, `y` has one label per sentence, which belongs to the next step.
        first = next(iter(y), None) if isinstance(y, Sequence) else None
        if isinstance(first, str) or not isinstance(first, Sequence):
            return None, None
        return tagged_sentences(X, y)

    def _inputs(self, words: list[list[str]] | None, tags: list[list[str]] | None) -> dict[str, Any]:
        inputs = super()._inputs(words, tags)
        # As `latens train hmm`: vectors of letters make unknown words possible.
        inputs["unknown_words"] = self.min_count is None and self.word_vectors == "words"
        if self.clusters is not None:
            if self.constraint != "brown":
                raise ValueError("`clusters` requires constraint='brown'")
            inputs["clusters"] = opened(self.clusters, "clusters")
        if words is not None:
            inputs["tags"] = (words, tags)
        return inputs

    def _shard_inputs(self) -> tuple[_latens.Model | None, _latens.Model | None]:
        return self._inputs(None, None)["clusters"], None

    def to_hmmlearn(self) -> Any:
        """The model as `hmmlearn.hmm.CategoricalHMM`.

        Its symbols are the ids of `words_`. A sentence of words and `<eos>` has the same log-likelihood.
        """
        from hmmlearn.hmm import CategoricalHMM

        other = CategoricalHMM(len(self.startprob_), n_features=len(self.words_))
        other.startprob_ = _distributions(self.startprob_)
        other.transmat_ = _distributions(self.transmat_)
        other.emissionprob_ = _distributions(self.emissionprob_)
        return other

    @classmethod
    def from_hmmlearn(cls, other: Any, words: Sequence[str] | None = None, end: float = 0.05) -> Self:
        """A model with the probabilities of a fitted `hmmlearn.hmm.CategoricalHMM`.

        Parameters
        ----------
        words : the word of each symbol; by default their numbers, '0', '1' …
        end : hmmlearn's sequences have no end, but ours end with `<eos>`. If it is not one of the words, every state
            emits it with this probability: it does not change the states of a sentence, and adds
            `n * log(1 - end) + log(end)` to the log-likelihood of `n` words.
        """
        import numpy as np

        emission = np.asarray(other.emissionprob_, np.float64)
        names = [str(i) for i in range(emission.shape[1])] if words is None else list(words)
        if len(names) != emission.shape[1]:
            raise ValueError(f"there are {len(names)} words, but {emission.shape[1]} symbols")
        if not 0 < end < 1:
            raise ValueError(f"`end` must be between 0 and 1, got {end}")
        if "<eos>" not in names:
            emission = np.column_stack([emission * (1 - end), np.full(len(emission), end)])
            names.append("<eos>")
        if "<unk>" not in names:
            emission = np.column_stack([emission, np.zeros(len(emission))])
            names.append("<unk>")
        order = [names.index("<unk>"), names.index("<eos>")]
        order += [i for i in range(len(names)) if i not in order]
        model = _latens.hmm_from_arrays(
            [names[i] for i in order],
            [0] * len(names),
            np.ascontiguousarray(other.startprob_, np.float32),
            np.ascontiguousarray(other.transmat_, np.float32),
            np.ascontiguousarray(emission[:, order], np.float32),
        )
        return cls._opened(model)

    def top_words(self, state: int, n: int = 10) -> list[tuple[str, float]]:
        """The most probable words of a state."""
        import numpy as np

        probs = self.model_.inside("emission", state)
        best = np.argsort(-probs, kind="stable")[:n]
        words = self.words_
        return [(words[i], float(probs[i])) for i in best if probs[i] > 0]

    def _glance(self) -> list[Row]:
        share = self.model_.inside("stationary", 0)
        states = (-share).argsort()[:10]
        words = [", ".join(word for word, _ in self.top_words(int(state))) for state in states]
        return [Row(f"state {state}", text, float(share[state])) for state, text in zip(states, words)]


def _distributions(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Rows that sum to 1 in double precision, as hmmlearn requires."""
    import numpy as np

    exact = rows.astype(np.float64)
    exact /= exact.sum(axis=-1, keepdims=True)
    return exact


@dataclass(eq=False, repr=False)
class Fhmm(TextParams, SentenceEstimator, Encoder):
    """Factorial hidden Markov model: several layers of states emit each word together.

    Parameters
    ----------
    n_layers : number of layers.
    n_states : number of hidden states per layer.
    inference : 'auto', 'exact-mf', 'tilted', 'jensen' or 'exact'; see `latens train fhmm --help`.
    m_step : 'lazy' updates the scores of the words of each mini-batch, 'layers' those of all words, 'lbfgs' is slow.
    epochs : number of passes over the training text.
    rare_count : minimum count of a word; rarer words are treated as set by `unknown`.
    """

    _kind = "fhmm"
    _renamed: ClassVar[dict[str, str]] = {"rare_count": "min_count"}

    n_layers: int = 5
    n_states: int = 10
    _: KW_ONLY
    inference: str = "auto"
    m_step: str = "lazy"
    lbfgs_iterations: int = 100
    epochs: int = 5
    batch_sentences: int | None = None
    step_power: float = 0.7
    sweeps: int = 10
    pseudo_tokens: float | None = None
    prior: float = 0.1
    base_measure: str = "unigram"
    rare_count: int = 2
    unknown: str = "signature"
    restarts: int = 1
    random_state: int | None = 1

    def top_words(self, layer: int, state: int, n: int = 10) -> list[tuple[str, float]]:
        """The words that a state of a layer makes more likely than the other states of the layer do, with their scores."""
        return self.model_.layer_words(layer, state, n)

    def _glance(self) -> list[Row]:
        n_layers, n_states = self.model_.inside("n_layers", 0), self.model_.inside("n_states", 0)
        places = [(layer, state) for layer in range(n_layers) for state in range(min(n_states, 4))][:20]
        words = [", ".join(word for word, _ in self.top_words(*place)) for place in places]
        return [Row(f"layer {layer}, state {state}", text) for (layer, state), text in zip(places, words)]
