"""Ray actors that learn one model together. Each has a copy of the model and all of the text, and computes the gradient of
its share of every mini-batch. A ring adds up the gradients, so that the copies stay equal.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from latens import _latens
from latens._shards import Readable, log

if TYPE_CHECKING:
    from latens._base import SentenceEstimator
    from latens._progress import Callback

ray: Any = import_module("ray")

#: Seconds that workers wait for each other before they learn.
PATIENCE = 600.0
#: The error of a worker because another one has ended.
CONSEQUENCE = "ConnectionAbortedError"


class Given(NamedTuple):
    """What every copy is fitted to."""

    estimator: SentenceEstimator
    text: Sequence[Readable]
    valid: Sequence[Readable] | None


class Place(NamedTuple):
    """The place of a worker in the ring."""

    rank: int
    addresses: list[str]
    token: bytes


class _Worker:
    """A copy. `fit` and `news` are called by different threads."""

    def __init__(self) -> None:
        self._seat: _latens.RingSeat | None = None
        self._lock = threading.Lock()
        self._news: list[dict[str, Any]] = []
        self._checkpoint: Path | None = None
        #: The time of the last checkpoint that was told.
        self._told = 0
        self._stops = False

    def where(self) -> tuple[int, str, str]:
        """The process, the node and its address."""
        return os.getpid(), ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address()

    def seat(self, host: str) -> str:
        """Opens a place in the ring. Returns its address."""
        self._seat = _latens.RingSeat(host)
        return self._seat.address

    def stop(self) -> None:
        """Ends `fit` with a checkpoint."""
        self._stops = True

    def fit(self, given: Given, place: Place, checkpoint: bytes | None) -> tuple[str, bytes]:
        """An error if there is one, as its kind and text; and the model, from the first worker, or its checkpoint."""
        assert self._seat is not None
        is_first = place.rank == 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "checkpoint"
            if checkpoint is not None:
                path.write_bytes(checkpoint)
            # Those of one worker are enough: the copies are equal.
            self._checkpoint = path if is_first else None
            try:
                text, valid = _text(given.text), None if given.valid is None else _text(given.valid)
                given.estimator._fit_text(
                    text,
                    None,
                    valid,
                    self._tell if is_first else None,
                    path if is_first or checkpoint is not None else None,
                    checkpoint is not None,
                    self._seat.join(place.rank, place.addresses, place.token, PATIENCE),
                )
            except KeyboardInterrupt:
                return "KeyboardInterrupt: ", path.read_bytes() if path.exists() else b""
            except (ValueError, OSError, RuntimeError, MemoryError) as error:
                return f"{_kind(error)}: {error}", b""
            finally:
                self._checkpoint = None
        return "", given.estimator.model_.to_bytes() if is_first else b""

    def _tell(self, facts: dict[str, Any]) -> None:
        if self._stops:
            raise KeyboardInterrupt
        with self._lock:
            self._news.append(facts)

    def news(self) -> tuple[list[dict[str, Any]], bytes | None]:
        """Progress and a checkpoint since the last call."""
        with self._lock:
            news, self._news = self._news, []
        path, checkpoint = self._checkpoint, None
        try:
            if path is not None and (changed := path.stat().st_mtime_ns) > self._told:
                checkpoint, self._told = path.read_bytes(), changed
        except OSError:
            pass  # There is none yet, or the run has just ended.
        return news, checkpoint


def _text(parts: Sequence[Readable]) -> Any:
    """The text of parts, as `fit` takes it."""
    lines: list[str] = []
    paths: list[Path] = []
    for part in parts:
        found, files = part.read()
        lines += found or []
        paths += files
    return paths or lines


def _kind(error: Exception) -> str:
    """The kind of an error of a worker."""
    for kind in (ConnectionAbortedError, OSError, ValueError):
        if isinstance(error, kind):
            return kind.__name__
    return "RuntimeError"


class _Lost(Exception):
    """A worker has died."""


def fit(
    given: Given,
    n_workers: int,
    options: dict[str, Any],
    max_failures: int,
    callback: Callback | None,
    checkpoint: str | os.PathLike[str] | None,
    resume: bool,
) -> _latens.Model:
    """Fits copies of a model. If a worker dies, all start again from the last checkpoint."""
    path = None if checkpoint is None else Path(checkpoint)
    last = path.read_bytes() if path is not None and resume else None

    def keep(found: bytes) -> None:
        nonlocal last
        last = found
        if path is not None:
            part = path.with_name(path.name + ".part")
            try:
                part.write_bytes(found)
                os.replace(part, path)
            except OSError as error:
                # It must not cost the model.
                log.warning("cannot write the checkpoint `%s`: %s", path, error)

    # One thread learns, and one tells.
    actor = ray.remote(max_restarts=0, max_concurrency=2, **options)(_Worker)
    for failure in range(1, max_failures + 1):
        workers = [actor.remote() for _ in range(n_workers)]
        try:
            return _latens.from_bytes(_run(given, workers, last, callback, keep))
        except _Lost as loss:
            if failure == max_failures:
                raise RuntimeError(
                    f"workers died {failure} times (last: {loss}); do they have enough memory?"
                ) from loss
            log.warning("%s died: all workers start again from the last checkpoint", loss)
        finally:
            for worker in workers:
                ray.kill(worker)
    raise AssertionError("a run ends or fails")


def _run(
    given: Given,
    workers: list[Any],
    checkpoint: bytes | None,
    callback: Callback | None,
    keep: Callable[[bytes], None],
) -> bytes:
    """The bytes of the model."""
    # Large texts and checkpoints go to the object store once.
    shared, state = ray.put(given), ray.put(checkpoint)
    running, errors, model = _start(workers, shared, state), {}, b""

    def hear() -> None:
        news, saved = _get(workers[0].news.remote(), 0)
        if saved is not None:
            keep(saved)
        for facts in news:
            if callback is not None:
                callback(facts)

    try:
        while running:
            for reference in ray.wait(list(running), timeout=0.1)[0]:
                rank = running.pop(reference)
                error, found = _get(reference, rank)
                model = found or model
                if error:
                    errors[rank] = error
            hear()
            # Others wait for this worker, or end because of it.
            if any(not error.startswith(CONSEQUENCE) for error in errors.values()):
                break
    except _Lost:
        raise
    except BaseException:
        # Ctrl-C, or an exception of the callback.
        _rescue(workers[0], [reference for reference, rank in running.items() if rank == 0], keep)
        raise
    if any(not error.startswith("ValueError") for error in errors.values()):
        # The death of a worker shows as many errors in others.
        for rank, reference in enumerate([worker.where.remote() for worker in workers]):
            if ray.wait([reference], timeout=5)[0]:
                _get(reference, rank)
    for rank, error in sorted(errors.items(), key=lambda item: item[1].startswith(CONSEQUENCE)):
        kind, _, text = error.partition(": ")
        raise {"ValueError": ValueError, "OSError": OSError}.get(kind, RuntimeError)(f"{text} (worker {rank})")
    return model


def _rescue(worker: Any, fits: list[Any], keep: Callable[[bytes], None]) -> None:
    """Keeps a last checkpoint of the first worker."""
    try:
        worker.stop.remote()
        for reference in ray.wait(fits, timeout=30)[0] if fits else []:
            error, found = ray.get(reference)
            if error.startswith("KeyboardInterrupt") and found:
                keep(found)
    except ray.exceptions.RayError:
        pass  # The last one that was told must do.


def _start(workers: list[Any], given: Any, checkpoint: Any) -> dict[Any, int]:
    """Lets all workers learn. Returns their numbers by references to the results."""
    asked = [worker.where.remote() for worker in workers]
    for seconds in (30.0, PATIENCE):
        ready, waiting = ray.wait(asked, num_returns=len(asked), timeout=seconds)
        if not waiting:
            break
        free = {name: n for name, n in ray.available_resources().items() if name in ("CPU", "GPU")}
        state = f"{len(ready)} of {len(asked)} workers have started; the cluster has {free} left"
        if seconds == PATIENCE:
            raise RuntimeError(f"{state}; lower `num_workers`, or what each of them needs")
        log.warning("%s", state)
    places = [_get(reference, rank) for rank, reference in enumerate(asked)]
    # Workers on one machine do not need its network.
    is_local = len({node for _, node, _ in places}) == 1
    hosts = ["127.0.0.1" if is_local else host for _, _, host in places]
    seats = [worker.seat.remote(host) for worker, host in zip(workers, hosts)]
    addresses = [_get(reference, rank) for rank, reference in enumerate(seats)]
    token = secrets.token_bytes(16)
    return {
        worker.fit.remote(given, Place(rank, addresses, token), checkpoint): rank for rank, worker in enumerate(workers)
    }


def _get(reference: Any, rank: int) -> Any:
    """A result of a worker."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayActorError as error:
        raise _Lost(f"worker {rank}") from error
