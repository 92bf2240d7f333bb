"""Workers of a Ray cluster that compute the statistics of shards. Needs `pip install latens[ray]`.

>>> import latens, latens.ray
>>> latens.ray.fit(latens.Hmm(n_states=4096), paths, num_workers=16)  # doctest: +SKIP
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

try:
    # Untyped, so that type checkers see the same with and without Ray.
    ray: Any = import_module("ray")
except ImportError as error:
    raise ImportError("latens.ray needs Ray: pip install 'latens[ray]'") from error

from latens import _latens, _shards
from latens._shards import Bytes, Part, Stragglers, Workers, compute, log, merge_in_groups, shard_error, worker_of

__all__ = ["Executor", "fit"]


def fit(estimator: Any, X: Any, *, num_workers: int | None = None, address: str | None = None, **options: Any) -> Any:
    """Fit an estimator with workers of a Ray cluster.

    Short for `estimator.fit(X, executor=latens.ray.Executor(num_workers=num_workers, address=address))`. Other options are
    those of `fit`: `callback`, `checkpoint`, `resume`.
    """
    return estimator.fit(X, executor=Executor(num_workers=num_workers, address=address), **options)


class Executor(_shards.Executor):
    """Ray actors. An actor that dies is replaced, and its shards are computed again with the same result.

    Parameters
    ----------
    num_workers : number of actors; default: the CPUs of the cluster divided by `cpus_per_worker`.
    address : address of a cluster, such as "auto". Default: the cluster that `ray.init` has connected to, or a new local one.
    n_shards : number of shards; default: one per file, or 16 for texts in memory. The model depends on it (by rounding, and
        for LDA by what shards see of each other), but not on `num_workers`.
    cpus_per_worker : number of threads per actor.
    resources : more options of the actors, such as `{"memory": 8e9}`; see `ray.remote`.
    max_failures : number of times that the actor of a shard may die.
    """

    def __init__(
        self,
        num_workers: int | None = None,
        *,
        address: str | None = None,
        n_shards: int | None = None,
        cpus_per_worker: int = 1,
        resources: dict[str, Any] | None = None,
        max_failures: int = 3,
    ) -> None:
        self.num_workers = num_workers
        self.address = address
        self.n_shards = n_shards
        self.cpus_per_worker = cpus_per_worker
        self.resources = resources or {}
        self.max_failures = max_failures

    def parts(self, X: Any) -> list[Part]:
        # Who has a dataset has imported its module.
        data: Any = sys.modules.get("ray.data")
        if data is not None and isinstance(X, data.Dataset):
            shards = X.materialize().split(self.n_shards or _shards.N_SHARDS)
            return [Part(_Rows(shard), []) for shard in shards]
        return super().parts(X)

    def start(self, parts: Sequence[Part]) -> Workers:
        if not ray.is_initialized():
            ray.init(address=self.address, include_dashboard=False, log_to_driver=False, logging_level="warning")
        cpus = int(ray.cluster_resources().get("CPU", 1))
        n_workers = min(self.num_workers or max(1, cpus // self.cpus_per_worker), len(parts))
        options = {"num_cpus": self.cpus_per_worker, **self.resources}
        return _Actors(parts, n_workers, self.cpus_per_worker, options, self.max_failures)


class _Rows:
    """The texts of a part of a dataset: its column `text`, or its only column."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __call__(self) -> list[str]:
        rows = list(self._dataset.iter_rows())
        column = "text" if rows and "text" in rows[0] else next(iter(rows[0]), "text") if rows else "text"
        return [str(row[column]) for row in rows]


class _Stored(NamedTuple):
    """The text of a shard in the object store. A worker reads it once."""

    reference: Any

    def read(self) -> tuple[list[str] | None, list[Path]]:
        part: Part = ray.get(self.reference)
        return part.read()


class _Worker:
    """Computes shards, and keeps them encoded."""

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        self._cache: dict[Any, Any] = {}

    def pid(self) -> int:
        """The process of this actor."""
        return os.getpid()

    def statistics(
        self, shard: int, stage: str, part: _Stored, broadcast: Bytes, carry: Bytes | None
    ) -> tuple[tuple[str | None, bool], Bytes, Bytes | None]:
        """An error if there is one, whether the shard carries something over, the statistics of a shard, and what it needs in the next round."""
        try:
            found = compute(self._cache, part, shard, stage, broadcast, carry, self._n_threads)
        except (ValueError, OSError, RuntimeError, MemoryError) as error:
            kind = "OSError" if isinstance(error, OSError) else type(error).__name__
            return (f"{kind}: {error}", False), np.zeros(0, np.uint8), None
        return (None, found[1] is not None), *found

    def merge(self, *parts: Bytes) -> Bytes:
        """The sum of statistics."""
        return _merge(*parts)


def _merge(*parts: Bytes) -> Bytes:
    return _latens.shard_merge(list(parts))


def _is(kind: Any, error: Exception) -> bool:
    """Whether an error, or its cause in a task, is of a kind."""
    return isinstance(error, kind) or isinstance(getattr(error, "cause", None), kind)


class _Actors(Workers):
    def __init__(
        self, parts: Sequence[Part], n_workers: int, n_threads: int, options: dict[str, Any], max_failures: int
    ) -> None:
        # Texts in memory go to the object store once.
        self._parts = [_Stored(ray.put(part)) for part in parts]
        self._n_shards, self._n_threads, self._max_failures = len(parts), n_threads, max_failures
        self._actor = ray.remote(max_restarts=0, **options)(_Worker)
        self._merge = ray.remote(num_cpus=0)(_merge)
        self._carries: dict[int, Any] = {}
        self._actors = [self._actor.remote(n_threads) for _ in range(n_workers)]

    def round(self, broadcast: Bytes, stage: str, told: Callable[[int], None]) -> Bytes:
        shared = ray.put(np.asarray(broadcast))
        for attempt in range(self._max_failures):
            try:
                statistics, carries = self._compute(shared, stage, told)
                merged = self._total(statistics)
            except (ray.exceptions.ObjectLostError, ray.exceptions.RayTaskError) as error:
                if attempt + 1 == self._max_failures or not _is(ray.exceptions.ObjectLostError, error):
                    raise
                log.warning("statistics were lost with a node: the round is computed again")
            else:
                self._carries = carries
                return merged
        raise AssertionError("a round ends or fails")

    def _total(self, statistics: list[Any]) -> Bytes:
        """The sum of all statistics. Actors merge those of their shards, and then neighbors each other's."""
        n = len(self._actors)
        own = [[part for shard, part in enumerate(statistics) if self._slot(shard) == slot] for slot in range(n)]
        try:
            sums = [self._sum(actor, parts) for actor, parts in zip(self._actors, own)]
            while len(sums) > 1:
                sums = [self._sum(self._actors[i], sums[i : i + 2]) for i in range(0, len(sums), 2)]
            total: Bytes = ray.get(sums[0])
        except (ray.exceptions.RayActorError, ray.exceptions.RayTaskError) as error:
            if not _is(ray.exceptions.RayActorError, error):
                raise
            # The next round replaces the actor. Its statistics are in the object store.
            log.warning("a worker died while it merged statistics, which are merged again")
            total = ray.get(merge_in_groups(statistics, lambda group: self._merge.remote(*group)))
        return total

    def _sum(self, actor: Any, parts: list[Any]) -> Any:
        return merge_in_groups(parts, lambda group: actor.merge.remote(*group))

    def _compute(self, shared: Any, stage: str, told: Callable[[int], None]) -> tuple[list[Any], dict[int, Any]]:
        """References to the statistics of all shards, and to what they need in the next round."""
        slow, failures = Stragglers(self._n_shards), [0] * self._n_shards
        statistics: list[Any] = [None] * self._n_shards
        carries: dict[int, Any] = {}
        # The status of each shard that is being computed.
        running = dict(self._submit(shard, stage, shared, statistics, carries) for shard in range(self._n_shards))
        while running:
            done, _ = ray.wait(list(running), timeout=1.0)
            for status in done:
                shard = running.pop(status)
                try:
                    problem, has_carry = ray.get(status)
                except ray.exceptions.RayActorError as error:
                    failures[shard] += 1
                    self._replace(shard, failures[shard], error)
                    # The other shards of the actor are lost, too.
                    lost = {old: other for old, other in running.items() if self._slot(other) == self._slot(shard)}
                    for old in lost:
                        del running[old]
                    for again in [shard, *lost.values()]:
                        running.update([self._submit(again, stage, shared, statistics, carries)])
                else:
                    self._check(shard, problem)
                    slow.done()
                    if not has_carry:
                        del carries[shard]
            told(self._n_shards - len(running))
            slow.check(sorted(running.values()))
        return statistics, carries

    def _submit(
        self, shard: int, stage: str, broadcast: Any, statistics: list[Any], carries: dict[int, Any]
    ) -> tuple[Any, int]:
        actor = self._actors[self._slot(shard)]
        method = actor.statistics.options(num_returns=3)
        carry = self._carries.get(shard)
        status, statistics[shard], carries[shard] = method.remote(shard, stage, self._parts[shard], broadcast, carry)
        return status, shard

    def _slot(self, shard: int) -> int:
        """The actor of a shard, which keeps it encoded."""
        return worker_of(shard, self._n_shards, len(self._actors))

    def _check(self, shard: int, error: str | None) -> None:
        if error is None:
            return
        kind, _, text = error.partition(": ")
        raise shard_error(kind, text, shard, self._n_shards, f"worker {self._slot(shard)}")

    def _replace(self, shard: int, n_failures: int, error: Exception) -> None:
        slot = self._slot(shard)
        if n_failures >= self._max_failures:
            raise RuntimeError(
                f"shard {shard + 1} of {self._n_shards}: its worker {slot} died {n_failures} times; "
                "does it have enough memory?"
            ) from error
        log.warning("shard %d of %d: worker %d died and is replaced", shard + 1, self._n_shards, slot)
        self._actors[slot] = self._actor.remote(self._n_threads)

    def carries(self) -> dict[int, Bytes]:
        return {shard: ray.get(carry) for shard, carry in self._carries.items()}

    def restore(self, carries: dict[int, Bytes]) -> None:
        self._carries = {shard: ray.put(carry) for shard, carry in carries.items()}

    def close(self) -> None:
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
