"""The extension module. Use the classes of `latens` instead."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Guide",
    "Model",
    "ModelFileError",
    "Ring",
    "RingSeat",
    "ShardRound",
    "ShardWorker",
    "__version__",
    "check_interpreter",
    "default_params",
    "embedded_text",
    "fit_counts",
    "fit_documents",
    "fit_sentences",
    "fit_tagger",
    "from_bytes",
    "hmm_from_arrays",
    "open",
    "run_program",
    "shard_begin",
    "shard_begin_tagger",
    "shard_begin_vocab",
    "shard_broadcast",
    "shard_merge",
    "shard_update",
    "vectors_from_arrays",
]

__version__: str

class ModelFileError(ValueError):
    """The file is not a model, is damaged, or cannot be opened by this version."""

@final
class Model:
    @property
    def kind(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def facts(self) -> str: ...
    @property
    def preprocessing(self) -> str: ...
    @property
    def cleaning(self) -> str: ...
    @property
    def limits(self) -> str: ...
    @property
    def feature_kinds(self) -> list[str]: ...
    def words(self) -> list[str]: ...
    def counts(self) -> NDArray[np.uint64]: ...
    def roles(self) -> list[str]: ...
    def save(self, path: Path) -> None: ...
    def to_bytes(self) -> bytes: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...
    def perplexity(
        self, records: Iterable[Any] | None, paths: Sequence[Path], n_threads: int | None
    ) -> tuple[float, int, int]: ...
    def score_tokens(
        self, records: Iterable[Any] | None, paths: Sequence[Path], n_threads: int | None
    ) -> tuple[NDArray[np.float64], NDArray[np.uint64], NDArray[np.uint32]]: ...
    def next_probs(self, text: str) -> NDArray[np.float64]: ...
    def ids(self, text: str) -> list[int]: ...
    def sample(self, n: int, max_words: int, seed: int) -> list[list[str]]: ...
    def encode(
        self, features: str, records: Iterable[Any] | None, paths: Sequence[Path], n_threads: int | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64], int, NDArray[np.int64]]: ...
    def n_topics(self) -> int: ...
    def mixtures(
        self, records: Iterable[Any] | None, paths: Sequence[Path], vectors: Model | None, n_threads: int | None
    ) -> NDArray[np.float32]: ...
    def lengths(
        self, records: Iterable[Any] | None, paths: Sequence[Path], n_threads: int | None
    ) -> NDArray[np.int64]: ...
    def mixtures_of_ids(
        self, indptr: NDArray[np.int64], ids: NDArray[np.uint32], n_threads: int | None
    ) -> NDArray[np.float32]: ...
    def completion(
        self, records: Iterable[Any] | None, paths: Sequence[Path], n_threads: int | None
    ) -> tuple[float, int]: ...
    def completion_of_ids(
        self, indptr: NDArray[np.int64], ids: NDArray[np.uint32], n_threads: int | None
    ) -> tuple[float, int]: ...
    def layer_words(self, layer: int, state: int, n: int) -> list[tuple[str, float]]: ...
    def word_topic_counts(self) -> NDArray[np.uint32]: ...
    def top_words(self, topic: int, n: int) -> list[tuple[str, float]]: ...
    def tags(self) -> list[str]: ...
    def tag(self, sentences: Sequence[Sequence[str]], n_threads: int | None) -> list[list[int]]: ...
    def tag_probs(self, sentences: Sequence[Sequence[str]], n_threads: int | None) -> NDArray[np.float32]: ...
    def word_vectors(self) -> NDArray[np.float32]: ...
    def vector(self, word: str) -> NDArray[np.float32]: ...
    def nearest(self, query: Sequence[float], n: int, except_: Sequence[str]) -> list[tuple[str, float]]: ...
    def inside(self, name: str, arg: int) -> Any: ...

@final
class Guide:
    def __new__(
        cls,
        model: Model,
        constraint: str,
        pieces: Sequence[bytes | None] | None,
        prefix: Sequence[int],
        min_words: int,
        max_words: int,
        keep_unk: bool,
        n_threads: int | None,
    ) -> Guide: ...
    def with_prefix(self, prefix: Sequence[int]) -> Guide: ...
    @property
    def n_states(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    def log_prob(self, words: Sequence[int]) -> float: ...
    def next(self, words: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def accepts(self, words: Sequence[int]) -> bool: ...
    def generate(
        self,
        model: Model | None,
        n: int,
        weight: float,
        beam: int | None,
        temperature: float,
        top_k: int | None,
        top_p: float | None,
        seed: int,
    ) -> list[tuple[list[int], float]]: ...

@final
class ShardWorker:
    def __new__(
        cls,
        broadcast: NDArray[np.uint8],
        shard: int,
        lines: Sequence[str] | None,
        paths: Sequence[Path],
        n_threads: int | None,
    ) -> ShardWorker: ...

@final
class ShardRound:
    def __new__(cls, broadcast: NDArray[np.uint8]) -> ShardRound: ...
    def add(self, worker: ShardWorker, carry: NDArray[np.uint8] | None) -> NDArray[np.uint8] | None: ...
    def take(self) -> NDArray[np.uint8]: ...

@final
class RingSeat:
    def __new__(cls, host: str) -> RingSeat: ...
    @property
    def address(self) -> str: ...
    def join(self, rank: int, addresses: Sequence[str], token: bytes, seconds: float) -> Ring: ...

@final
class Ring: ...

def shard_begin_vocab(preprocessing: str, limits: str, documents: bool, n_shards: int) -> NDArray[np.uint8]: ...
def shard_begin(
    kind: str,
    params: str,
    words: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    clusters: Model | None,
    vectors: Model | None,
) -> NDArray[np.uint8]: ...
def shard_begin_tagger(params: str, n_shards: int) -> NDArray[np.uint8]: ...
def shard_broadcast(broadcast: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], str]: ...
def shard_merge(parts: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]: ...
def shard_update(
    broadcast: NDArray[np.uint8], statistics: NDArray[np.uint8], n_threads: int | None
) -> tuple[NDArray[np.uint8] | None, Model | None]: ...
def fit_sentences(
    kind: str,
    params: str,
    preprocessing: str,
    limits: str,
    records: Iterable[Any] | None,
    paths: Sequence[Path],
    valid_records: Iterable[Any] | None,
    valid_paths: Sequence[Path] | None,
    inputs: dict[str, Any],
    options: dict[str, Any],
) -> Model: ...
def fit_documents(
    kind: str,
    params: str,
    preprocessing: str,
    limits: str,
    cleaning: str | None,
    records: Iterable[Any] | None,
    paths: Sequence[Path],
    vectors: Model | None,
    options: dict[str, Any],
) -> Model: ...
def fit_counts(
    kind: str,
    params: str,
    words: Sequence[str],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    counts: NDArray[np.uint64],
    vectors: Model | None,
    options: dict[str, Any],
) -> Model: ...
def fit_tagger(
    params: str,
    words: Sequence[Sequence[str]],
    tags: Sequence[Sequence[str]],
    encoders: Sequence[tuple[Model, str | None]],
    options: dict[str, Any],
) -> Model: ...
def vectors_from_arrays(words: Sequence[str], counts: Sequence[int], vectors: NDArray[np.float32]) -> Model: ...
def hmm_from_arrays(
    words: Sequence[str],
    counts: Sequence[int],
    start: NDArray[np.float32],
    transition: NDArray[np.float32],
    emission: NDArray[np.float32],
) -> Model: ...
def check_interpreter(modules: dict[str, Any]) -> None: ...
def run_program(arguments: Sequence[str]) -> int: ...
def default_params(kind: str) -> str: ...
def open(path: Path) -> Model: ...
def from_bytes(bytes: bytes) -> Model: ...
def embedded_text(part: str) -> str: ...
