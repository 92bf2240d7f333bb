"""A process that computes the statistics of shards: one job per line on standard input, one answer per line."""

from __future__ import annotations

import json
import pickle
import sys
from typing import Any

import numpy as np

from latens import _latens
from latens._shards import Held, checksum


def main() -> None:
    """Answers jobs until standard input ends."""
    held = Held(int(sys.argv[1]))
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = _answer(job, held)
        except Exception as error:
            kind = "OSError" if isinstance(error, OSError) else type(error).__name__
            answer = {"error": str(error), "type": kind}
        print(json.dumps(answer), flush=True)


def _answer(job: dict[str, Any], held: Held) -> dict[str, Any]:
    if "merge" in job:
        # The files stay, so that a dead process can be replaced.
        parts = [np.memmap(path, dtype=np.uint8, mode="r") for path in job["merge"]]
        _latens.shard_merge(parts).tofile(job["statistics"])
        return {}
    if "total" in job:
        held.total().tofile(job["total"])
        return {}
    with open(job["part"], "rb") as file:
        part = pickle.load(file)
    broadcast = np.memmap(job["broadcast"], dtype=np.uint8, mode="r")
    if checksum(broadcast) != job["checksum"]:
        raise ValueError("its worker has another version of the broadcast")
    carry = None if job["carry"] is None else np.fromfile(job["carry"], dtype=np.uint8)
    carry = held.add(part, job["shard"], job["stage"], broadcast, carry)
    if carry is not None:
        carry.tofile(job["next_carry"])
    return {"has_carry": carry is not None}


if __name__ == "__main__":
    main()
