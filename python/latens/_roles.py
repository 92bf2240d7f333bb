"""What fitted models can do, by role."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from latens._base import Estimator, Row, Transformer
from latens._input import Text, source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from latens.constraint import Constraint


class LanguageModel(Estimator):
    """A model that assigns probabilities to text."""

    def perplexity(self, X: Text) -> float:
        """Perplexity of sentences. Unknown words count as `<unk>`, and the end of a sentence as a word."""
        log_prob, n_tokens, _ = self._log_prob(X)
        return math.exp(-log_prob / n_tokens) if math.isfinite(log_prob) else math.inf

    def score(self, X: Text, y: Any = None) -> float:
        """Mean log-probability per token, in nats. Higher is better."""
        log_prob, n_tokens, _ = self._log_prob(X)
        return log_prob / n_tokens

    def score_samples(self, X: Text) -> NDArray[np.float64]:
        """Log-probability of each sentence, in nats."""
        import numpy as np

        scores, lengths, _ = self._score_tokens(X)
        ends = np.cumsum(lengths)
        return np.array([part.sum() for part in np.split(scores, ends[:-1].astype(int))])

    def score_tokens(self, X: Text) -> list[NDArray[np.float64]]:
        """Log-probability of each token of each sentence, in nats; the last one is that of the end of the sentence."""
        import numpy as np

        scores, lengths, _ = self._score_tokens(X)
        return np.split(scores, np.cumsum(lengths)[:-1].astype(int))

    def next_words(self, text: str, n: int = 10) -> list[tuple[str, float]]:
        """The most probable next words after a text, with their probabilities."""
        probs = self.model_.next_probs(text)
        best = probs.argsort()[::-1][:n]
        words = self.words_
        return [(words[i], float(probs[i])) for i in best]

    def sample(self, n: int = 1, max_words: int = 100, random_state: int = 1) -> list[list[str]]:
        """Sampled sentences, as lists of words."""
        return self.model_.sample(n, max_words, random_state)

    def generate(
        self,
        constraint: Constraint | None = None,
        n: int = 5,
        *,
        guide: Any = None,
        prefix: str = "",
        min_words: int = 0,
        max_words: int = 30,
        weight: float = 1.0,
        beam: int | None = None,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        keep_unk: bool = False,
        random_state: int = 1,
    ) -> list[str]:
        """Texts that satisfy a constraint of `latens.constraint`.

        `guide` is an `Hmm` with the same vocabulary; an `Hmm` is its own guide, and its texts are exact samples. `prefix`
        begins every text; `min_words` and `max_words` limit the words after it. With `beam`, a beam search with this many
        hypotheses finds the most likely texts. `weight` is the strength of the guide.
        """
        from latens import constraint as constraints

        hmm = self if guide is None else guide
        if hmm.model_.kind != "hmm":
            raise ValueError(f"{self.model_.description} needs `guide`: an Hmm with the same vocabulary")
        tables = constraints.Guide(
            hmm,
            constraints.anything() if constraint is None else constraint,
            prefix=self.model_.ids(prefix),
            min_words=min_words,
            max_words=max_words,
            keep_unk=keep_unk,
            n_jobs=self._n_threads(),
        )
        found = tables.generate(
            None if guide is None else self,
            n,
            weight=weight,
            beam=beam,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            random_state=random_state,
        )
        words = self.words_
        return [" ".join([*prefix.split(), *(words[i] for i in ids)]) for ids, _ in found]

    def _glance(self) -> list[Row]:
        first = ", ".join(f"{word} {prob:.1%}" for word, prob in self.next_words("", 10))
        return [Row("first words", first), *(Row("a sample", " ".join(words)) for words in self.sample(3, 30))]

    def _log_prob(self, X: Text) -> tuple[float, int, int]:
        text = source(X)
        found = self.model_.perplexity(text.records, text.paths, self._n_threads())
        if found[1] == 0:
            raise ValueError("there is no text to score")
        return found

    def _score_tokens(self, X: Text) -> tuple[Any, Any, Any]:
        text = source(X)
        return self.model_.score_tokens(text.records, text.paths, self._n_threads())


class Encoder(Transformer):
    """A model that computes features of words in context."""

    def encode(self, X: Text, features: str | None = None) -> Any:
        """Features of all words of all sentences: a sparse matrix with one row per word.

        `features` is one of `feature_kinds_`; the first is the default.
        """
        matrix, _ = self._encode(X, features)
        return matrix

    @property
    def feature_kinds_(self) -> list[str]:
        """The kinds of features that `encode` has."""
        return self.model_.feature_kinds

    def transform(self, X: Text) -> Any:
        """Mean features of the words of each sentence: one row per sentence, in the container of `set_output`."""
        return self._output(self._means(X), X)

    def _means(self, X: Text) -> NDArray[np.float32]:
        import numpy as np
        from scipy.sparse import csr_array

        matrix, lengths = self._encode(X, getattr(self, "features", None))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        n_words = int(offsets[-1])
        weights = np.repeat(1.0 / np.maximum(lengths, 1), lengths).astype(np.float32)
        means = csr_array((weights, np.arange(n_words), offsets), shape=(len(lengths), n_words))
        rows: NDArray[np.float32] = (means @ matrix).toarray().astype(np.float32, copy=False)
        return rows

    def fit_transform(self, X: Text, y: Any = None, **fit_params: Any) -> Any:
        """Fit the model, then `transform` the same sentences."""
        text: Any = list(X) if isinstance(X, Iterable) and not isinstance(X, Sequence) else X
        return self.fit(text, y, **fit_params).transform(text)  # type: ignore[attr-defined]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`."""
        import numpy as np

        n = self._encode([[self.words_[-1]]], getattr(self, "features", None))[0].shape[1]
        return np.array([f"{self._kind}{i}" for i in range(n)], dtype=object)

    def _encode(self, X: Text, features: str | None) -> tuple[Any, Any]:
        from scipy.sparse import csr_array

        text = source(X)
        kind = features or self.model_.feature_kinds[0]
        values, columns, offsets, n_columns, lengths = self.model_.encode(
            kind, text.records, text.paths, self._n_threads()
        )
        return csr_array((values, columns, offsets), shape=(len(offsets) - 1, n_columns)), lengths


class WordVectors(Estimator):
    """A model with one vector per word."""

    @property
    def vectors_(self) -> NDArray[np.float32]:
        """Word vectors, one row per word of `words_`: a read-only view of the model where it stores them."""
        return self.model_.word_vectors()

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        return self.model_.vector(word)

    def __contains__(self, word: object) -> bool:
        try:
            self.model_.vector(str(word))
        except KeyError:
            return False
        return True

    def most_similar(
        self,
        positive: str | Sequence[str] = (),
        negative: str | Sequence[str] = (),
        topn: int = 10,
    ) -> list[tuple[str, float]]:
        """Words with the most similar vectors by cosine; with several words, those of a sum of unit vectors."""
        import numpy as np

        plus = [positive] if isinstance(positive, str) else list(positive)
        minus = [negative] if isinstance(negative, str) else list(negative)
        if not plus and not minus:
            raise ValueError("`most_similar` needs at least one word")
        query = sum(_unit(self[word]) for word in plus) - sum(_unit(self[word]) for word in minus)
        return self.model_.nearest(np.asarray(query, np.float32).tolist(), topn, [*plus, *minus])

    def similarity(self, a: str, b: str) -> float:
        """Cosine of the vectors of two words."""
        return float(_unit(self[a]) @ _unit(self[b]))

    def _glance(self) -> list[Row]:
        # The most frequent words with some content.
        frequent = (word for word in self.words_[2:] if len(word) > 3 and word.isalpha() and word in self)
        shown = list(islice(frequent, 10))
        return [Row(word, ", ".join(other for other, _ in self.most_similar(word, topn=8))) for word in shown]

    def to_gensim(self) -> Any:
        """The vectors as `gensim.models.KeyedVectors`."""
        from gensim.models import KeyedVectors

        vectors = self.vectors_
        keyed = KeyedVectors(vectors.shape[1])
        # Without `<unk>` and `<eos>`, which are not words.
        keyed.add_vectors(self.words_[2:], vectors[2:])
        return keyed


def _unit(vector: Any) -> Any:
    import numpy as np

    norm = np.linalg.norm(vector)
    return vector / norm if norm > 0 else vector
