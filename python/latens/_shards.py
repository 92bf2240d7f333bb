"""Fitting models to shards of a text. The driver does not know the engine that computes the statistics of shards.

An executor starts workers for the shards of a text, and workers compute rounds: they map the bytes of a broadcast to the
merged bytes of the statistics of all shards, and compute again what was lost.
"""

from __future__ import annotations

import json
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from latens import _latens
from latens._input import source
from latens._progress import Callback

Bytes = NDArray[np.uint8]

log = logging.getLogger("latens.shards")

#: Number of shards of a text in memory, unless the executor sets it. It must not depend on the number of workers.
N_SHARDS = 16
#: Seconds between checkpoints.
CHECKPOINT_SECONDS = 10.0


class Part(NamedTuple):
    """The text of a shard: lines, paths of files, or a function without arguments that returns lines."""

    lines: Any
    paths: list[str]

    def read(self) -> tuple[list[str] | None, list[Path]]:
        """Lines or paths, as the extension module takes them."""
        lines = self.lines() if callable(self.lines) else self.lines
        return lines, [Path(path) for path in self.paths]


class Readable(Protocol):
    """The text of a shard, wherever it is."""

    def read(self) -> tuple[list[str] | None, list[Path]]:
        """Lines or paths, as the extension module takes them."""


class Workers(ABC):
    """Workers that hold the shards of a text."""

    @abstractmethod
    def round(self, broadcast: Bytes, stage: str, told: Callable[[int], None]) -> Bytes:
        """The merged statistics of all shards. `told` receives the number of shards that are done."""

    @abstractmethod
    def carries(self) -> dict[int, Bytes]:
        """What shards need in the next round, for a checkpoint."""

    @abstractmethod
    def restore(self, carries: dict[int, Bytes]) -> None:
        """Sets what shards need in the next round, from a checkpoint."""

    @abstractmethod
    def close(self) -> None:
        """Ends all workers."""


class Executor(ABC):
    """An engine that computes the statistics of shards."""

    n_shards: int | None = None

    @abstractmethod
    def start(self, parts: Sequence[Part]) -> Workers:
        """Starts workers for the shards of a text."""

    def learns_together(self, estimator: Any) -> bool:
        """Whether workers have copies of a model, instead of shards of the text. Fails for models that cannot be learned so."""
        return False

    def fit_together(
        self,
        estimator: Any,
        X: Any,
        valid: Any,
        callback: Callback | None,
        checkpoint: str | os.PathLike[str] | None,
        resume: bool,
    ) -> _latens.Model:
        """Fits copies of a model."""
        raise NotImplementedError

    def parts(self, X: Any) -> list[Part]:
        """The shards of a text. They depend on the text and on `n_shards`, not on the number of workers."""
        text = source(X)
        if text.records is None:
            paths = [str(path) for path in text.paths]
            n = min(self.n_shards or len(paths), len(paths))
            return [Part(None, group) for group in _split(paths, n)]
        lines = [record if isinstance(record, str) else " ".join(record) for record in text.records]
        n = min(self.n_shards or N_SHARDS, max(len(lines), 1))
        return [Part(group, []) for group in _split(lines, n)]


    def tagged_parts(self, words: list[list[str]], tags: list[list[str]]) -> list[Part]:
        """The shards of a tagged text. A line has a word and its tag; an empty line ends a sentence."""
        sentences = [[*map("\t".join, zip(*pair)), ""] for pair in zip(words, tags)]
        n = min(self.n_shards or N_SHARDS, max(len(sentences), 1))
        return [Part([line for sentence in group for line in sentence], []) for group in _split(sentences, n)]


def _split(items: list[Any], n: int) -> list[list[Any]]:
    """Consecutive groups of about the same number of items."""
    return [items[len(items) * i // n : len(items) * (i + 1) // n] for i in range(n)]


class Held:
    """The shards of a worker: their texts, encoded, and the sum of their statistics in the current round.

    Statistics of single shards never leave the worker. If it dies, all of its shards are computed again.
    """

    def __init__(self, n_threads: int | None) -> None:
        self._n_threads = n_threads
        self._texts: dict[tuple[str, int], _latens.ShardWorker] = {}
        self._version: tuple[str, int] | None = None
        self._round: _latens.ShardRound | None = None

    def add(
        self, part: Readable, shard: int, stage: str, broadcast: Bytes, carry: Bytes | None, attempt: int = 0
    ) -> Bytes | None:
        """Computes a shard. Returns what it needs in the next round. The text is encoded in the first round of a stage."""
        version = (checksum(broadcast), attempt)
        if self._round is None or self._version != version:
            self._round, self._version = _latens.ShardRound(broadcast), version
        key = (stage, shard)
        if key not in self._texts:
            # The text of an earlier stage has another encoding.
            for old in [old for old in self._texts if old[1] == shard]:
                del self._texts[old]
            lines, paths = part.read()
            self._texts[key] = _latens.ShardWorker(broadcast, shard, lines, paths, self._n_threads)
        return self._round.add(self._texts[key], carry)

    def total(self) -> Bytes:
        """The sum of the statistics of all shards of the worker."""
        assert self._round is not None
        found, self._round = self._round.take(), None
        return found


def shard_error(kind: str, problem: str, shard: int, n_shards: int, where: str) -> Exception:
    """An error of a worker, which names the shard and the worker."""
    # Errors of the system, such as a lack of memory, do not know the shard.
    name = "" if problem.startswith("shard ") else f"shard {shard + 1} of {n_shards}: "
    return {"ValueError": ValueError, "OSError": OSError}.get(kind, RuntimeError)(f"{name}{problem} ({where})")


def checksum(broadcast: Bytes) -> str:
    """The checksum of a broadcast, with which its file ends."""
    return broadcast[-8:].tobytes().hex()


def worker_of(shard: int, n_shards: int, n_workers: int) -> int:
    """The worker that keeps a shard. Workers have neighbors, whose statistics they can merge."""
    return shard * n_workers // n_shards


class Stragglers:
    """Tells which shards take much longer than the others."""

    def __init__(self, n_shards: int) -> None:
        self._n_shards = n_shards
        self._begin = time.monotonic()
        #: Seconds after which each shard was done for the first time.
        self._done: dict[int, float] = {}
        self._told: set[int] = set()

    def done(self, shard: int) -> None:
        """A shard is done."""
        self._done.setdefault(shard, time.monotonic() - self._begin)

    def check(self, waiting: Sequence[int]) -> None:
        """Tells about shards that others have overtaken long ago."""
        took = time.monotonic() - self._begin
        seconds = sorted(self._done.values())
        if 2 * len(seconds) < self._n_shards or took < max(10.0, 3 * seconds[len(seconds) // 2]):
            return
        for shard in waiting:
            if shard not in self._told:
                self._told.add(shard)
                log.warning("shard %d of %d is slow: %.0f s so far", shard + 1, self._n_shards, took)


class Checkpoint:
    """The state of a run in a file."""

    def __init__(self, path: str | os.PathLike[str] | None, run: dict[str, Any]) -> None:
        self._path = None if path is None else Path(path)
        self._run = json.dumps(run, sort_keys=True)
        self._saved = time.monotonic()

    def load(self) -> tuple[Bytes, dict[int, Bytes]]:
        """The broadcast of the next round, and what shards carry over."""
        assert self._path is not None
        with np.load(self._path, allow_pickle=False) as file:
            if str(file["run"]) != self._run:
                raise ValueError(
                    f"cannot resume from the checkpoint `{self._path}`: "
                    "it belongs to other parameters, another text or another number of shards"
                )
            carries = {int(name[6:]): file[name] for name in file.files if name.startswith("carry.")}
            return file["broadcast"], carries

    def is_due(self) -> bool:
        """Whether it is time to write the next one."""
        return self._path is not None and time.monotonic() - self._saved >= CHECKPOINT_SECONDS

    def save(self, broadcast: Bytes, workers: Workers) -> None:
        """Replaces the file."""
        assert self._path is not None
        arrays = {f"carry.{shard}": carry for shard, carry in workers.carries().items()}
        part = self._path.with_name(self._path.name + ".part")
        with open(part, "wb") as file:
            np.savez(file, run=np.array(self._run), broadcast=broadcast, **arrays)  # type: ignore[arg-type]
        os.replace(part, self._path)
        self._saved = time.monotonic()


class Run(NamedTuple):
    """What a model is fitted to and with."""

    kind: str
    params: str
    preprocessing: str
    limits: str
    documents: bool
    clusters: _latens.Model | None
    vectors: _latens.Model | None
    n_threads: int | None


def fit(
    run: Run,
    parts: list[Part],
    executor: Executor,
    callback: Callback | None,
    checkpoint: str | os.PathLike[str] | None,
    resume: bool,
) -> _latens.Model:
    """Fits a model to the shards of a text."""
    names = [part.paths or len(part.lines) if isinstance(part.lines, list) else part.paths for part in parts]
    stored = Checkpoint(checkpoint, {**run._asdict(), "clusters": None, "vectors": None, "n_threads": None, "parts": names})
    workers = executor.start(parts)
    try:
        if resume:
            broadcast, carries = stored.load()
            workers.restore(carries)
        else:
            broadcast = _first(run, len(parts), workers, callback)
        return _rounds(run, broadcast, workers, callback, stored)
    finally:
        workers.close()


def _first(run: Run, n_shards: int, workers: Workers, callback: Callback | None) -> Bytes:
    """The first broadcast of the model. All models but taggers need the vocabulary of the text."""
    if run.kind == "tagger":
        return _latens.shard_begin_tagger(run.params, n_shards)
    first = _latens.shard_begin_vocab(run.preprocessing, run.limits, run.documents, n_shards)

    last = -1

    def told(done: int) -> None:
        nonlocal last
        # The shards of a dead worker are computed again.
        if done > last:
            _tell(callback, "learn the vocabulary", done, n_shards, "shards", {})
        last = max(done, last)

    counts = workers.round(first, "vocab", told)
    return _latens.shard_begin(run.kind, run.params, (first, counts), run.clusters, run.vectors)


def _rounds(
    run: Run, broadcast: Bytes, workers: Workers, callback: Callback | None, checkpoint: Checkpoint
) -> _latens.Model:
    while True:
        sent, text = _latens.shard_broadcast(broadcast)
        facts = json.loads(text)
        _tell(callback, "learn", facts["round"], facts["n_rounds"], "rounds", facts["metrics"])
        merged = workers.round(sent, "model", lambda done: None)
        updated, model = _latens.shard_update(broadcast, merged, run.n_threads)
        if model is not None:
            _tell(callback, "learn", facts["round"] + 1, facts["round"] + 1, "rounds", {})
            return model
        assert updated is not None
        broadcast = updated
        if checkpoint.is_due():
            checkpoint.save(broadcast, workers)


def _tell(
    callback: Callback | None, phase: str, done: int, total: int | None, unit: str, metrics: dict[str, float]
) -> None:
    if callback is not None:
        facts = {"phase": phase, "done": done, "total": total, "unit": unit, "iteration": None, "metrics": metrics}
        callback(facts)
