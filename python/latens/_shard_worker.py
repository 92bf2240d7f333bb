"""A process that computes the statistics of shards: one job per line on standard input, one answer per line."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

from latens import _latens
from latens._shards import checksum, compute, merge_in_groups


def main() -> None:
    """Answers jobs until standard input ends."""
    n_threads = int(sys.argv[1])
    cache: dict[Any, Any] = {}
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = _answer(job, cache, n_threads)
        except Exception as error:
            kind = "OSError" if isinstance(error, OSError) else type(error).__name__
            answer = {"error": str(error), "type": kind}
        print(json.dumps(answer), flush=True)


def _answer(job: dict[str, Any], cache: dict[Any, Any], n_threads: int) -> dict[str, Any]:
    if "merge" in job:
        merge_files([Path(path) for path in job["merge"]], Path(job["statistics"]))
        return {}
    with open(job["part"], "rb") as file:
        part = pickle.load(file)
    broadcast = np.memmap(job["broadcast"], dtype=np.uint8, mode="r")
    if checksum(broadcast) != job["checksum"]:
        raise ValueError("its worker has another version of the broadcast")
    carry = None if job["carry"] is None else np.fromfile(job["carry"], dtype=np.uint8)
    statistics, carry = compute(cache, part, job["shard"], job["stage"], broadcast, carry, n_threads)
    statistics.tofile(job["statistics"])
    if carry is not None:
        carry.tofile(job["next_carry"])
    return {"has_carry": carry is not None}


def merge_files(paths: list[Path], out: Path) -> None:
    """Merges statistics. Files of other statistics stay, so that a dead process can be replaced."""
    parts = [np.memmap(path, dtype=np.uint8, mode="r") for path in paths]
    merged: Any = merge_in_groups(parts, _latens.shard_merge)
    merged.tofile(out)


if __name__ == "__main__":
    main()
