"""Processes of this machine that compute the statistics of shards.

>>> import latens, latens.processes
>>> executor = latens.processes.Executor(num_workers=2)
>>> latens.Hmm(parameterization="scalar").fit(paths, executor=executor)  # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np

from latens import _latens, _shards
from latens._shards import Bytes, Part, Stragglers, Workers, checksum, log, shard_error, worker_of

__all__ = ["Executor"]


class Executor(_shards.Executor):
    """Local processes. A process that dies is replaced, and its shards are computed again with the same result.

    Parameters
    ----------
    num_workers : number of processes; default: number of cores.
    n_shards : number of shards; default: one per file, or 16 for texts in memory. The model depends on it (by rounding, and
        for LDA by what shards see of each other), but not on `num_workers`.
    threads_per_worker : number of threads per process; default: the cores divided by the number of processes.
    max_failures : number of times that a worker may die in one round.
    """

    def __init__(
        self,
        num_workers: int | None = None,
        *,
        n_shards: int | None = None,
        threads_per_worker: int | None = None,
        max_failures: int = 3,
    ) -> None:
        self.num_workers = num_workers
        self.n_shards = n_shards
        self.threads_per_worker = threads_per_worker
        self.max_failures = max_failures

    def start(self, parts: Sequence[Part]) -> Workers:
        cores = os.cpu_count() or 1
        n_workers = min(self.num_workers or cores, len(parts))
        n_threads = self.threads_per_worker or max(1, cores // n_workers)
        return _Processes(parts, n_workers, n_threads, self.max_failures)


class _Process:
    """A process that computes one shard at a time."""

    def __init__(self, n_threads: int) -> None:
        root = str(Path(_latens.__file__).resolve().parent.parent)
        paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "latens._shard_worker", str(n_threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
            text=True,
        )

    def ask(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a job; None if the process has died."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except (BrokenPipeError, ValueError):
            return None
        return json.loads(answer) if answer.endswith("\n") else None

    def end(self) -> int | None:
        """Ends the process. Returns its exit status."""
        self.process.kill()
        status = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except BrokenPipeError:
                pass
        return status


class _Died(Exception):
    """The process of a shard has died."""

    def __init__(self, shard: int, where: str) -> None:
        super().__init__()
        self.shard, self.where = shard, where


class _Processes(Workers):
    def __init__(self, parts: Sequence[Part], n_workers: int, n_threads: int, max_failures: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="latens-shards-")
        self._n_shards = len(parts)
        self._n_threads = n_threads
        self._max_failures = max_failures
        self._round = 0
        self._carries: dict[int, Path] = {}
        self._closed = False
        for shard, part in enumerate(parts):
            with open(self._path(f"part.{shard}"), "wb") as file:
                pickle.dump(part, file)
        self._processes = [_Process(n_threads) for _ in range(n_workers)]
        self._threads = ThreadPoolExecutor(n_workers)

    def _path(self, name: str) -> Path:
        return Path(self._folder.name) / name

    def round(self, broadcast: Bytes, stage: str, told: Callable[[int], None]) -> Bytes:
        self._round += 1
        path = self._path("broadcast")
        np.asarray(broadcast).tofile(path)
        self._checksum = checksum(broadcast)
        n_workers, slow = len(self._processes), Stragglers(self._n_shards)
        waiting = set(range(self._n_shards))
        carries: dict[int, Path] = {}
        sums: dict[int, Path] = {}

        def shards_of(worker: int) -> None:
            # A shard stays with its worker, which keeps it encoded.
            own = [shard for shard in range(self._n_shards) if worker_of(shard, self._n_shards, n_workers) == worker]

            def compute() -> None:
                for shard in own:
                    carry = self._compute(worker, shard, stage, path)
                    if carry is not None:
                        carries[shard] = carry
                    waiting.discard(shard)
                    slow.done(shard)
                sums[worker] = self._path(f"sum.{worker}")
                self._ask(worker, own[-1], {"total": str(sums[worker])})

            # The sum of a process is lost with it.
            self._again(worker, compute, lambda: waiting.update(own))

        futures = {self._threads.submit(shards_of, worker) for worker in range(n_workers)}
        try:
            while futures:
                done, futures = wait(futures, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                told(self._n_shards - len(waiting))
                slow.check(sorted(waiting))
        except BaseException:
            # The threads end when their processes do.
            self.close()
            raise
        for old in self._carries.values():
            old.unlink(missing_ok=True)
        self._carries = carries
        return self._total([sums[worker] for worker in range(n_workers)])

    def _compute(self, worker: int, shard: int, stage: str, broadcast: Path) -> Path | None:
        carry = self._carries.get(shard)
        job = {
            "shard": shard,
            "stage": stage,
            "part": str(self._path(f"part.{shard}")),
            "broadcast": str(broadcast),
            "checksum": self._checksum,
            "carry": None if carry is None else str(carry),
            "next_carry": str(self._path(f"carry.{self._round}.{shard}")),
        }
        answer = self._ask(worker, shard, job)
        return Path(job["next_carry"]) if answer["has_carry"] else None  # type: ignore[arg-type]

    def _again(self, worker: int, work: Callable[[], None], lost: Callable[[], None] = lambda: None) -> None:
        """Does the work of a process again if it dies."""
        for failure in range(1, self._max_failures + 1):
            try:
                return work()
            except _Died as death:
                status = self._processes[worker].end()
                if self._closed:
                    raise RuntimeError("the workers were stopped") from None
                shard = f"shard {death.shard + 1} of {self._n_shards}"
                log.warning("%s: %s died (exit status %s)", shard, death.where, status)
                if failure == self._max_failures:
                    raise RuntimeError(
                        f"{shard}: its process died {failure} times ({death.where}, exit status {status}); "
                        "does it have enough memory?"
                    ) from None
                self._processes[worker] = _Process(self._n_threads)
                lost()

    def _ask(self, worker: int, shard: int, job: dict[str, Any]) -> dict[str, Any]:
        """The answer to a job of a shard."""
        process = self._processes[worker]
        answer, where = process.ask(job), f"worker {worker}, process {process.process.pid}"
        if answer is None:
            raise _Died(shard, where)
        if "error" in answer:
            raise shard_error(answer["type"], answer["error"], shard, self._n_shards, where)
        return answer

    def _merge(self, worker: int, files: list[Path]) -> Path:
        """Merges sums in a process. Returns the path of their sum."""
        if len(files) == 1:
            return files[0]
        out = files[0].with_name(f"{files[0].name}+")
        job = {"merge": list(map(str, files)), "statistics": str(out)}
        # Errors name a shard of the worker.
        shards, n_workers = range(self._n_shards), len(self._processes)
        first = next(shard for shard in shards if worker_of(shard, self._n_shards, n_workers) == worker)

        def merge() -> None:
            self._ask(worker, first, job)

        self._again(worker, merge)
        for file in files:
            file.unlink()
        return out

    def _total(self, files: list[Path]) -> Bytes:
        """The sum of the sums of all processes. Neighbors merge in parallel, until one is left."""
        while len(files) > 1:
            pairs = [(worker, files[i : i + 2]) for worker, i in enumerate(range(0, len(files), 2))]
            merged = [self._threads.submit(self._merge, worker, pair) for worker, pair in pairs]
            files = [future.result() for future in merged]
        total = np.fromfile(files[0], dtype=np.uint8)
        files[0].unlink()
        return total

    def carries(self) -> dict[int, Bytes]:
        return {shard: np.fromfile(path, dtype=np.uint8) for shard, path in self._carries.items()}

    def restore(self, carries: dict[int, Bytes]) -> None:
        for shard, carry in carries.items():
            path = self._path(f"carry.0.{shard}")
            carry.tofile(path)
            self._carries[shard] = path

    def pids(self) -> list[int]:
        """Ids of the processes."""
        return [worker.process.pid for worker in self._processes]

    def close(self) -> None:
        self._closed = True
        for worker in self._processes:
            worker.end()
        self._threads.shutdown(wait=True)
        self._folder.cleanup()
