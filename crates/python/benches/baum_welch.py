"""Baum–Welch of a dense model beside hmmlearn: tokens per second of CPU time, on one thread.

    python crates/python/benches/baum_welch.py TEXT [--program latens]

Both programs train 64 states on the same text, in turn, from random models. The time of hmmlearn is that of `fit`; the
time of latens is that of the whole command.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

# Before numpy is imported.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from hmmlearn.hmm import CategoricalHMM


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--program", default="latens")
    parser.add_argument("--states", type=int, default=64)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--iterations", type=int, nargs=2, default=[4, 40], metavar=("HMMLEARN", "LATENS"))
    args = parser.parse_args()
    lines = args.text.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    sentences = [[*line.split(), "<eos>"] for line in lines]
    theirs, ours = [], []
    for run in range(args.runs):
        theirs.append(fit_hmmlearn(sentences, args.states, args.iterations[0], run))
        ours.append(fit_latens(args.program, args.text, sum(map(len, sentences)), args.states, args.iterations[1]))
        print(f"hmmlearn {theirs[-1]:,.0f}, latens {ours[-1]:,.0f} tokens/s: {ours[-1] / theirs[-1]:.1f} times", flush=True)
    for name, values in [("hmmlearn", theirs), ("latens", ours), ("ratio", [a / b for a, b in zip(ours, theirs)])]:
        print(f"{name}: median {statistics.median(values):,.1f} ({min(values):,.1f} to {max(values):,.1f})")


def fit_hmmlearn(sentences: list[list[str]], n_states: int, n_iterations: int, seed: int) -> float:
    counts = Counter(word for words in sentences for word in words)
    ids = {word: i for i, word in enumerate(counts)}
    rng = np.random.default_rng(seed)
    emissions = rng.exponential(size=(n_states, len(ids))) * np.array(list(counts.values()))
    hmm = CategoricalHMM(n_states, n_iter=n_iterations, tol=-np.inf, implementation="scaling", init_params="")
    hmm.startprob_ = rng.dirichlet(np.ones(n_states))
    hmm.transmat_ = rng.dirichlet(np.ones(n_states), n_states)
    hmm.emissionprob_ = emissions / emissions.sum(axis=1, keepdims=True)
    tokens = np.array([[ids[word]] for words in sentences for word in words])
    start = time.process_time()
    hmm.fit(tokens, [len(words) for words in sentences])
    return len(tokens) * n_iterations / (time.process_time() - start)


def fit_latens(program: str, text: Path, n_tokens: int, n_states: int, n_iterations: int) -> float:
    flags = ["--constraint", "none", "--parameterization", "scalar", "--prior", "0", "--threads", "1", "--quiet"]
    flags += ["--min-count", "1"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        sizes = ["--n-states", str(n_states), "--epochs", str(n_iterations)]
        subprocess.run([program, "train", "hmm", text, *flags, *sizes, "-o", Path(folder, "m.hmm")], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return n_tokens * n_iterations / (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


if __name__ == "__main__":
    main()
