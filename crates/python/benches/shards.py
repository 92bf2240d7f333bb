"""Training from shards: speed-up of two workers, overhead of one worker over the program, a text of 1 GB, and quality.

    python crates/python/benches/shards.py DATA [STEP …] [--program latens] [--record results/shards.jsonl]

DATA has `unlabeled-wiki/` and `unlabeled-news/` (see docs/data.md). Steps:

    speedup    two workers against one, in turn: Baum-Welch, LDS counts, LDA
    overhead   one worker against `latens train --threads 1`
    memory     vocabulary and LDS counts of 1 GB in 32 shards: peak memory of the driver, and equality with one process
    quality    LDA and word2vec on the embedded corpus, in 1 to 16 shards; reads nothing from DATA

Every worker has one thread. Workers start before the clock does, except where a figure says so.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import latens
from latens import processes

STEPS = ("speedup", "overhead", "memory", "quality")
HMM = {"n_states": 1024, "parameterization": "scalar", "min_count": 1}
LDA = {"n_topics": 100, "keep_all": True, "random_state": 1}


def head() -> str:
    """The commit that is checked out."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("steps", nargs="*", choices=[*STEPS, []], default=STEPS)
    parser.add_argument("--executor", action="append", choices=["processes", "ray"])
    parser.add_argument("--model", action="append", choices=["hmm", "lds", "lda"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shards", type=int, action="append", help="numbers of shards of the step `quality`")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the text of the step `memory`")
    parser.add_argument("--program", default="latens")
    parser.add_argument("--folder", type=Path, help="keeps the texts that are made")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--commit", help="of the program; by default the commit that is checked out")
    parser.add_argument("--machine", help="an id of docs/machines.md, for `--record`")
    args = parser.parse_args()
    if args.record and not args.machine:
        parser.error("`--record` needs `--machine`, an id of docs/machines.md")
    if args.record and not args.commit:
        args.commit = head()
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        args.folder = args.folder or Path(temporary)
        for step in args.steps or STEPS:
            for executor in args.executor or ["processes", "ray"]:
                found = {"speedup": speedup, "overhead": overhead, "memory": memory, "quality": quality}[step](args, executor)
                for record in found:
                    print(f"{record['id']}: {record['value']} {record['unit'] or ''} ({record['note'] or ''})", flush=True)
                records += found
    if args.record:
        replace(args.record, records)


# Texts.


def sentences(data: Path) -> list[str]:
    names = ["unlabeled-wiki/enwiki.sents.txt", "unlabeled-news/reuters21578.sents.txt"]
    return [line for name in names for line in (data / name).read_text(encoding="utf-8").splitlines() if line.strip()]


def repeated(args: argparse.Namespace, name: str, n_bytes: int, n_files: int, per_line: int = 1) -> list[Path]:
    """Real sentences, repeated and shuffled, in files of about the same size."""
    folder = args.folder / f"{name}-{n_bytes}"
    paths = [folder / f"{i}.txt" for i in range(n_files)]
    if paths[-1].exists():
        return paths
    folder.mkdir(exist_ok=True)
    lines, rng, written = sentences(args.data), random.Random(1), 0
    files = [path.with_suffix(".part").open("w", encoding="utf-8") for path in paths]
    while written < n_bytes:
        rng.shuffle(lines)
        for i in range(0, len(lines), per_line):
            if written >= n_bytes:
                break
            line = " ".join(lines[i : i + per_line]) + "\n"
            files[(i // per_line) % n_files].write(line)
            written += len(line.encode())
    for file, path in zip(files, paths):
        file.close()
        os.replace(file.name, path)
    return paths


# Runs.


class Times:
    """Seconds of the parts of a run."""

    def __init__(self, executor: Any) -> None:
        self.rounds: dict[str, float] = {}
        self.n_rounds = 0
        self._begin = 0.0
        start = executor.start

        def started(parts: Any) -> Any:
            workers = start(parts)
            of_workers = workers.round

            def round(broadcast: Any, stage: str, told: Any) -> Any:
                begin = time.monotonic()
                if stage == "model" and not self._begin:
                    self._begin = begin
                found = of_workers(broadcast, stage, told)
                self.rounds[stage] = self.rounds.get(stage, 0.0) + time.monotonic() - begin
                self.n_rounds += stage == "model"
                return found

            workers.round = round
            return workers

        executor.start = started

    def fit(self, executor: Any, estimator: Any, paths: list[Path]) -> Any:
        begin = time.monotonic()
        estimator.fit(paths, executor=executor)
        end = time.monotonic()
        self.total = end - begin
        #: From the first broadcast of the model to the model.
        self.learning = end - self._begin
        return estimator


def executor_of(name: str, n_workers: int) -> Any:
    if name == "processes":
        return processes.Executor(n_workers, threads_per_worker=1)
    import ray

    import latens.ray

    if not ray.is_initialized():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    return latens.ray.Executor(n_workers)


def run(name: str, n_workers: int, estimator: Any, paths: list[Path]) -> Times:
    executor = executor_of(name, n_workers)
    times = Times(executor)
    times.fit(executor, estimator, paths)
    return times


# Steps.


def speedup(args: argparse.Namespace, executor: str) -> list[dict[str, Any]]:
    records = []
    for model in args.model or ["hmm", "lds", "lda"]:
        if model == "hmm":
            paths, what = repeated(args, "sentences", 20_000_000, 4), "Baum–Welch, 1,024 states, 3 iterations"
            data = "20 MB, 4 shards"
            make = lambda: latens.Hmm(epochs=3, max_vocab=10_000, n_jobs=1, random_state=1, **HMM)  # noqa: E731
        elif model == "lds":
            paths, what = repeated(args, "sentences", 200_000_000, 4), "LDS counts, 7 lags"
            data = "200 MB, 4 shards"
            make = lambda: latens.Lds(dim=20, n_iterations=1, max_vocab=20_000, n_jobs=1)  # noqa: E731
        else:
            paths, what = repeated(args, "documents", 100_000_000, 8, per_line=20), "LDA, 100 topics, 10 iterations"
            data = "100 MB, 8 shards"
            make = lambda: latens.Lda(n_iterations=10, max_vocab=20_000, n_jobs=1, **LDA)  # noqa: E731
        ratios, notes = [], []
        for _ in range(args.runs):
            one, two = (run(executor, n, make(), paths) for n in (1, 2))
            # The decomposition of LDS counts is the work of one machine.
            seconds = [times.rounds["model"] if model == "lds" else times.learning for times in (one, two)]
            ratios.append(seconds[0] / seconds[1])
            notes.append((seconds, [one.rounds["model"], two.rounds["model"]], [one.total, two.total]))
            print(f"{executor}, {what}: {notes[-1]}", flush=True)
        (a, b), _, (c, d) = notes[ratios.index(statistics.median_low(ratios))]
        note = f"{a:.1f} s with one worker, {b:.1f} s with two; with the vocabulary and the start of workers {c:.1f} s and {d:.1f} s"
        records.append(
            record(
                args, "speedup", f"shards-speedup-{executor}-{model}", f"{what}, `{executor}`", data,
                "speed-up of two workers over one", "×", ratios, note,
            )
        )
    return records


def overhead(args: argparse.Namespace, executor: str) -> list[dict[str, Any]]:
    paths, epochs, ratios, notes = repeated(args, "sentences", 20_000_000, 4), 12, [], []
    # A cluster starts once, whatever runs on it.
    begin = time.monotonic()
    executor_of(executor, 1)
    start = time.monotonic() - begin
    for _ in range(args.runs):
        with tempfile.TemporaryDirectory() as folder:
            command = [args.program, "train", "hmm", *paths, "--n-states", 1024, "--parameterization", "scalar"]
            command += ["--epochs", epochs, "--min-count", 1, "--max-vocab", 10_000, "--threads", 1, "--seed", 1, "-o", Path(folder, "m.hmm")]
            begin = time.monotonic()
            subprocess.run(list(map(str, command)), check=True, capture_output=True)
            plain = time.monotonic() - begin
        times = run(executor, 1, latens.Hmm(epochs=epochs, max_vocab=10_000, n_jobs=1, random_state=1, **HMM), paths)
        ratios.append(100 * (times.total / plain - 1))
        notes.append((plain, times.total))
        print(f"{executor}, overhead: {notes[-1]}, rounds {times.rounds}, start {start:.1f} s", flush=True)
    plain, total = notes[ratios.index(statistics.median_low(ratios))]
    note = f"{plain:.1f} s and {total:.1f} s of wall time, with the start of the worker"
    note += f"; the local cluster started in {start:.1f} s before" if executor == "ray" else ""
    return [
        record(
            args, "overhead", f"shards-overhead-{executor}", f"Baum–Welch, 1,024 states, {epochs} iterations, one worker of `{executor}`",
            "20 MB, 4 shards", "overhead over `latens train`, one thread", "%", ratios, note,
        )
    ]


def memory(args: argparse.Namespace, executor: str) -> list[dict[str, Any]]:
    paths = repeated(args, "gigabyte", args.megabytes * 1_000_000, 32)
    size = sum(path.stat().st_size for path in paths)
    params = {"dim": 20, "n_iterations": 2, "max_vocab": 20_000}
    found = measured_apart(executor, params, paths)
    expected = measured_apart("one process", params, paths)
    assert found["model"] == expected["model"], "the model of shards differs from the model of one process"
    note = f"one process: {expected['peak'] / 1e6:.0f} MB; words and vectors of the models are equal, bit for bit; "
    note += f"{found['seconds']:.0f} s with two workers, {expected['seconds']:.0f} s in one process with two threads"
    return [
        record(
            args, "memory", f"shards-gigabyte-{executor}", f"LDS, 20,000 words, 7 lags, two workers of `{executor}`",
            f"{size / 1e9:.2f} GB, 32 shards", "peak memory of the driver", "MB", [found["peak"] / 1e6], note, digits=0,
        )
    ]


def quality(args: argparse.Namespace, executor: str) -> list[dict[str, Any]]:
    """What a model loses if its shards are far too small. All executors learn the same model."""
    if executor != "processes":
        return []
    documents, sentences = latens.datasets.documents()[0], latens.datasets.sentences()
    make_lda = lambda seed: latens.Lda(n_topics=10, n_iterations=100, keep_all=True, random_state=seed)  # noqa: E731
    make_word2vec = lambda seed: latens.Word2Vec(dim=32, epochs=10, n_jobs=1, random_state=seed)  # noqa: E731
    models = [
        (
            "lda", "LDA, 10 topics, 100 iterations", make_lda, documents, "embedded corpus, documents",
            "log_likelihood_per_token", "log-likelihood per token", "nats/token", 3,
        ),
        (
            "word2vec", "word2vec, 32 dimensions, 10 epochs", make_word2vec, sentences, "embedded corpus, training sentences",
            "loss", "loss", None, 2,
        ),
    ]
    count = lambda n: f"{n} shards" if n > 1 else "1 shard"  # noqa: E731
    records = []
    for model, what, make, texts, data, metric, name, unit, digits in models:
        for n_shards in args.shards or [1, 2, 7, 16]:
            values = []
            for seed in range(1, args.runs + 1):
                metrics: dict[str, float] = {}
                workers = processes.Executor(2, n_shards=n_shards, threads_per_worker=1)
                make(seed).fit(texts, executor=workers, callback=lambda facts: metrics.update(facts["metrics"]))
                values.append(metrics[metric])
            records.append(
                record(
                    args, "quality", f"shards-quality-{model}-{n_shards}", f"{what}, {count(n_shards)}", data,
                    name, unit, values, None, digits, over="seeds",
                )
            )
    return records


def measured_apart(executor: str, params: dict[str, Any], paths: list[Path]) -> dict[str, Any]:
    """Fits in a process of its own. Returns its peak memory, without that of its workers, and a hash of the model."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import shards; shards.child(*sys.argv[2:])"
    here = str(Path(__file__).resolve().parent)
    command = [sys.executable, "-c", code, here, executor, json.dumps(params), json.dumps(list(map(str, paths)))]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
    return found


def child(executor: str, params: str, paths: str) -> None:
    """The process of `measured_apart`."""
    import hashlib

    import numpy as np

    estimator, files = latens.Lds(**json.loads(params)), [Path(path) for path in json.loads(paths)]
    begin = time.monotonic()
    if executor == "one process":
        estimator.fit(files)
    else:
        estimator.fit(files, executor=executor_of(executor, 2))
    seconds = time.monotonic() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    vectors = np.ascontiguousarray(estimator.vectors_)
    words = "\n".join(estimator.words_).encode()
    model = hashlib.sha256(words + vectors.tobytes()).hexdigest()
    print(json.dumps({"peak": peak, "model": model, "seconds": seconds}))


def record(
    args: argparse.Namespace, step: str, name: str, model: str, data: str, metric: str, unit: str | None, values: list[float],
    note: str | None, digits: int = 2, over: str = "runs",
) -> dict[str, Any]:
    middle = statistics.mean(values) if over == "seeds" else statistics.median(values)
    spread = {"over": over, "n": len(values), "min": round(min(values), digits), "max": round(max(values), digits)}
    return {
        "id": name,
        "model": model,
        "data": data,
        "metric": metric,
        "unit": unit,
        "value": round(middle, digits) if digits else round(middle),
        "spread": spread if len(values) > 1 else None,
        "reference": None,
        "command": f"python crates/python/benches/shards.py DIR {step}",
        "commit": args.commit,
        "machine": args.machine,
        "date": datetime.date.today().isoformat(),
        "note": note,
    }


def replace(path: Path, records: list[dict[str, Any]]) -> None:
    ids = {record["id"] for record in records}
    lines = path.read_text().splitlines() if path.exists() else []
    lines = [line for line in lines if json.loads(line)["id"] not in ids]
    path.write_text("\n".join(lines + [json.dumps(record, ensure_ascii=False) for record in records]) + "\n")


if __name__ == "__main__":
    main()
