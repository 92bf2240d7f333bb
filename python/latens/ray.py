"""Workers of a Ray cluster that compute the statistics of shards. Needs `pip install latens[ray]`.

>>> import latens, latens.ray
>>> latens.ray.fit(latens.Hmm(n_states=4096), paths, num_workers=16)  # doctest: +SKIP
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

try:
    # Untyped, so that type checkers see the same with and without Ray.
    ray: Any = import_module("ray")
except ImportError as error:
    raise ImportError("latens.ray needs Ray: pip install 'latens[ray]'") from error

from latens import _latens, _ray_copies, _shards
from latens._hmm import Hmm
from latens._input import source
from latens._shards import Bytes, Held, Part, Stragglers, Workers, log, shard_error, worker_of

if TYPE_CHECKING:
    from latens._progress import Callback

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
    num_workers : number of actors; default: the CPUs of the cluster divided by `cpus_per_worker`, or its GPUs divided by
        `gpus_per_worker`.
    address : address of a cluster, such as "auto". Default: the cluster that `ray.init` has connected to, or a new local one.
    n_shards : number of shards; default: one per file, or 16 for texts in memory. The model depends on it (by rounding, and
        for LDA by what shards see of each other), but not on `num_workers`.
    cpus_per_worker : number of threads per actor.
    gpus_per_worker : number of GPUs per actor; default: 1 for a model with `device="cuda"`, otherwise 0.
    data_parallel : whether every actor has the whole text and a copy of the model, and learns from its share of every
        mini-batch, instead of shards; for hidden Markov models that are learned by gradient. The model then depends on
        `num_workers`, by rounding. Default: for a model with `device="cuda"`.
    resources : more options of the actors, such as `{"memory": 8e9}`; see `ray.remote`.
    max_failures : number of times that a worker may die in one round.
    """

    def __init__(
        self,
        num_workers: int | None = None,
        *,
        address: str | None = None,
        n_shards: int | None = None,
        cpus_per_worker: int = 1,
        gpus_per_worker: float | None = None,
        data_parallel: bool | None = None,
        resources: dict[str, Any] | None = None,
        max_failures: int = 3,
    ) -> None:
        if max_failures < 1:
            raise ValueError(f"`max_failures` must be at least 1, got {max_failures}")
        self.num_workers = num_workers
        self.address = address
        self.n_shards = n_shards
        self.cpus_per_worker = cpus_per_worker
        self.gpus_per_worker = gpus_per_worker
        self.data_parallel = data_parallel
        self.resources = resources or {}
        self.max_failures = max_failures

    def parts(self, X: Any) -> list[Part]:
        # Who has a dataset has imported its module.
        data: Any = sys.modules.get("ray.data")
        if data is not None and isinstance(X, data.Dataset):
            shards = X.materialize().split(self.n_shards or _shards.N_SHARDS)
            return [Part(_Rows(shard), []) for shard in shards]
        return super().parts(X)

    def _whole(self, X: Any) -> list[Part]:
        """All of a text."""
        data: Any = sys.modules.get("ray.data")
        if data is not None and isinstance(X, data.Dataset):
            return self.parts(X)
        text = source(X)
        return [Part(None, list(map(str, text.paths))) if text.records is None else Part(list(text.records), [])]

    def start(self, parts: Sequence[Part]) -> Workers:
        self._connect()
        n_workers = min(self._n_workers("CPU", self.cpus_per_worker), len(parts))
        options = {"num_cpus": self.cpus_per_worker, "num_gpus": self.gpus_per_worker or 0, **self.resources}
        return _Actors(parts, n_workers, self.cpus_per_worker, options, self.max_failures)

    def _connect(self) -> None:
        if not ray.is_initialized():
            ray.init(address=self.address, include_dashboard=False, log_to_driver=False, logging_level="warning")

    def _n_workers(self, resource: str, per_worker: float) -> int:
        """The number of actors: by default as many as the cluster has a resource for."""
        return self.num_workers or max(1, int(ray.cluster_resources().get(resource, 1) / per_worker))

    def learns_together(self, estimator: Any) -> bool:
        on_gpu = getattr(estimator, "device", "cpu") == "cuda"
        if not (on_gpu if self.data_parallel is None else self.data_parallel):
            return False
        scalar = getattr(estimator, "parameterization", None) == "scalar" and getattr(estimator, "learning", None) == "em"
        if not isinstance(estimator, Hmm) or scalar:
            what = "`device='cuda'`" if self.data_parallel is None else "`data_parallel`"
            raise ValueError(f"{what} with an `executor` needs an `Hmm` that is learned by gradient")
        return True

    def fit_together(
        self,
        estimator: Any,
        X: Any,
        valid: Any,
        callback: Callback | None,
        checkpoint: str | os.PathLike[str] | None,
        resume: bool,
    ) -> _latens.Model:
        on_gpu = estimator.device == "cuda"
        gpus = self.gpus_per_worker if self.gpus_per_worker is not None else 1 if on_gpu else 0
        self._connect()
        n_workers = self._n_workers("GPU", gpus) if gpus else self._n_workers("CPU", self.cpus_per_worker)
        for resource, needed in (("GPU", gpus * n_workers), ("CPU", self.cpus_per_worker * n_workers)):
            has = ray.cluster_resources().get(resource, 0)
            if needed > has:
                raise ValueError(
                    f"{n_workers} workers need {needed:g} {resource}s, but the cluster has {has:g}; "
                    f"lower `num_workers` or `{resource.lower()}s_per_worker`"
                )
        estimator.n_jobs = self.cpus_per_worker
        options = {"num_cpus": self.cpus_per_worker, "num_gpus": gpus, **self.resources}
        stored = [_Stored(ray.put(part)) for part in self._whole(X)]
        stored_valid = None if valid is None else [_Stored(ray.put(part)) for part in self._whole(valid)]
        given = _ray_copies.Given(estimator, stored, stored_valid)
        return _ray_copies.fit(given, n_workers, options, self.max_failures, callback, checkpoint, resume)


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
    """Computes shards, keeps them encoded, and adds up their statistics."""

    def __init__(self, n_threads: int) -> None:
        self._held = Held(n_threads)

    def pid(self) -> int:
        """The process of this actor."""
        return os.getpid()

    def compute(
        self, shard: int, stage: str, part: _Stored, broadcast: Bytes, carry: Bytes | None, attempt: int
    ) -> tuple[tuple[str | None, bool], Bytes | None]:
        """An error if there is one, whether the shard carries something over, and what it needs in the next round."""
        try:
            found = self._held.add(part, shard, stage, broadcast, carry, attempt)
        except (ValueError, OSError, RuntimeError, MemoryError) as error:
            kind = "OSError" if isinstance(error, OSError) else type(error).__name__
            return (f"{kind}: {error}", False), None
        return (None, found is not None), found

    def total(self) -> Bytes:
        """The sum of the statistics of all shards of this actor."""
        return self._held.total()

    def merge(self, *parts: Bytes) -> Bytes:
        """The sum of sums."""
        return _latens.shard_merge(list(parts))


def _is_loss(error: Exception) -> bool:
    """Whether an error, or its cause in a task, is the loss of an actor or of an object with its node."""
    kinds = (ray.exceptions.ObjectLostError, ray.exceptions.RayActorError)
    return isinstance(error, kinds) or isinstance(getattr(error, "cause", None), kinds)


class _Actors(Workers):
    def __init__(
        self, parts: Sequence[Part], n_workers: int, n_threads: int, options: dict[str, Any], max_failures: int
    ) -> None:
        # Texts in memory go to the object store once.
        self._parts = [_Stored(ray.put(part)) for part in parts]
        self._n_shards, self._n_threads, self._max_failures = len(parts), n_threads, max_failures
        self._actor = ray.remote(max_restarts=0, **options)(_Worker)
        self._carries: dict[int, Any] = {}
        self._actors = [self._actor.remote(n_threads) for _ in range(n_workers)]

    def round(self, broadcast: Bytes, stage: str, told: Callable[[int], None]) -> Bytes:
        shared = ray.put(np.asarray(broadcast))
        for attempt in range(1, self._max_failures + 1):
            carries = self._compute(shared, stage, attempt, told)
            try:
                merged = self._total()
            except ray.exceptions.RayError as error:
                if not _is_loss(error):
                    raise
                log.warning("sums were lost with a worker: the round is computed again")
                dead = self._replace_dead()
                if attempt == self._max_failures:
                    raise RuntimeError(
                        f"workers died {attempt} times while they merged statistics (last: {dead}); "
                        "do they have enough memory?"
                    ) from error
            else:
                self._carries = carries
                return merged
        raise AssertionError("a round ends or fails")

    def _total(self) -> Bytes:
        """The sum of all statistics. Neighbors merge their sums, until one is left."""
        sums = [actor.total.remote() for actor in self._actors]
        while len(sums) > 1:
            pairs = [sums[i : i + 2] for i in range(0, len(sums), 2)]
            sums = [actor.merge.remote(*pair) if pair[1:] else pair[0] for actor, pair in zip(self._actors, pairs)]
        total: Bytes = ray.get(sums[0])
        return total

    def _compute(self, shared: Any, stage: str, attempt: int, told: Callable[[int], None]) -> dict[int, Any]:
        """Computes all shards. Returns references to what they need in the next round."""
        slow, failures = Stragglers(self._n_shards), [0] * len(self._actors)
        carries: dict[int, Any] = {}

        def submit(shards: Iterable[int]) -> dict[Any, int]:
            """Starts shards. Returns them by the references to their status."""
            found = {}
            for shard in shards:
                method = self._actors[self._slot(shard)].compute.options(num_returns=2)
                carry = self._carries.get(shard)
                status, carries[shard] = method.remote(shard, stage, self._parts[shard], shared, carry, attempt)
                found[status] = shard
            return found

        running = submit(range(self._n_shards))
        while running:
            done, _ = ray.wait(list(running), timeout=1.0)
            for status in done:
                shard = running.pop(status)
                try:
                    problem, has_carry = ray.get(status)
                except ray.exceptions.RayActorError as error:
                    slot = self._slot(shard)
                    failures[slot] += 1
                    self._replace(shard, failures[slot], error)
                    # The sum of the actor's shards is lost with it.
                    own = [other for other in range(self._n_shards) if self._slot(other) == slot]
                    running = {ref: other for ref, other in running.items() if other not in own}
                    running.update(submit(own))
                else:
                    self._check(shard, problem)
                    slow.done(shard)
                    if not has_carry:
                        del carries[shard]
            told(self._n_shards - len(running))
            slow.check(sorted(running.values()))
        return carries

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

    def _replace_dead(self) -> list[int]:
        """Replaces the actors that have died, and returns their numbers."""
        dead = []
        for slot, actor in enumerate(self._actors):
            try:
                ray.get(actor.pid.remote())
            except ray.exceptions.RayActorError:
                log.warning("worker %d died and is replaced", slot)
                self._actors[slot] = self._actor.remote(self._n_threads)
                dead.append(slot)
        return dead

    def carries(self) -> dict[int, Bytes]:
        return {shard: ray.get(carry) for shard, carry in self._carries.items()}

    def restore(self, carries: dict[int, Bytes]) -> None:
        self._carries = {shard: ray.put(carry) for shard, carry in carries.items()}

    def close(self) -> None:
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
