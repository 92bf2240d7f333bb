"""LDA of short documents beside tomotopy: CPU time, likelihood, and classification by topic mixtures.

    python crates/python/benches/topics.py DATA [--program latens] [--record results/topics.jsonl]

DATA has `20news/20news.tsv` (see docs/data.md). The documents are the first 50 words of 7,600 posts, in lower case and
without stop words. Both programs sample on one thread, in turn, and keep the same symmetric priors.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import random
import re
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import tomotopy
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

N_DOCUMENTS, N_WORDS, BETA = 7600, 50, 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--program", default="latens")
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--machine", default="xeon-2core")
    args = parser.parse_args()
    documents, labels = read(args.data / "20news/20news.tsv")
    print(f"{len(documents):,} documents, {sum(map(len, documents)):,} tokens, {args.iterations} iterations, one thread")
    records = []
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text("".join(" ".join(words) + "\n" for words in documents))
        for n_topics in (20, 50):
            runs = {"latens": [], "tomotopy": []}
            for seed in range(1, args.runs + 1):
                runs["latens"].append(fit_latens(args.program, text, n_topics, args.iterations, seed))
                runs["tomotopy"].append(fit_tomotopy(documents, n_topics, args.iterations, seed))
            figures = {}
            for name, results in runs.items():
                seconds = statistics.median(result[0] for result in results)
                likelihood = statistics.mean(result[1] for result in results)
                scores = [accuracy(result[2], labels) for result in results]
                figures[name] = seconds, likelihood, 100 * statistics.mean(scores)
                print(f"{n_topics} topics, {name}: {seconds:.2f} s of CPU, {likelihood:.4f} nats/token, ", end="")
                print(f"accuracy {100 * statistics.mean(scores):.1f} % ({100 * min(scores):.1f}–{100 * max(scores):.1f})")
            print(f"{n_topics} topics: tomotopy takes {figures['tomotopy'][0] / figures['latens'][0]:.2f} times the CPU time")
            records += rows(n_topics, figures, args)
    if args.record:
        replace(args.record, records)


def read(path: Path) -> tuple[list[list[str]], list[str]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        rows = [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if len(row) == 3]
    random.Random(1).shuffle(rows)
    documents, labels = [], []
    for label, _, text in rows:
        words = [word for word in re.findall(r"[a-z]{2,}", text.lower()) if word not in ENGLISH_STOP_WORDS][:N_WORDS]
        if len(words) >= 10 and len(documents) < N_DOCUMENTS:
            documents.append(words)
            labels.append(label)
    return documents, labels


def fit_latens(program: str, text: Path, n_topics: int, n_iterations: int, seed: int):
    model, log, mixtures = (text.with_name(f"{n_topics}-{seed}.{end}") for end in ("lda", "jsonl", "tsv"))
    command = [program, "train", "lda", text, "--keep-all", "--n-topics", n_topics, "--n-iterations", n_iterations]
    command += ["--alpha", 1 / n_topics, "--beta", BETA, "--threads", 1, "--seed", seed, "-o", model]
    command += ["--log", log, "--mixtures", mixtures]
    start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start
    likelihood = json.loads(log.read_text().splitlines()[-1])["log_likelihood_per_token"]
    with mixtures.open() as file:
        rows = list(csv.reader(file, delimiter="\t"))[1:]
    return seconds, likelihood, [[float(share) for share in row[-n_topics:]] for row in rows]


def fit_tomotopy(documents: list[list[str]], n_topics: int, n_iterations: int, seed: int):
    model = tomotopy.LDAModel(k=n_topics, alpha=1 / n_topics, eta=BETA, seed=seed)
    for words in documents:
        model.add_doc(words)
    model.optim_interval = 0
    start = time.process_time()
    model.train(n_iterations, workers=1)
    seconds = time.process_time() - start
    return seconds, model.ll_per_word, [document.get_topic_dist() for document in model.docs]


def accuracy(mixtures, labels: list[str]) -> float:
    classifier = LogisticRegression(C=10, max_iter=2000)
    return float(cross_val_score(classifier, mixtures, labels, cv=5).mean())


def rows(n_topics: int, figures, args: argparse.Namespace) -> list[dict]:
    metrics = [("cpu", "CPU time, 1 thread", "s", 2), ("likelihood", "log-likelihood", "nats/token", 3)]
    metrics.append(("accuracy", "accuracy of a classifier of mixtures", "%", 1))
    return [
        {
            "id": f"topics-lda-short-{n_topics}-{name}",
            "model": f"`lda`, {n_topics} topics, {args.iterations} iterations",
            "data": "20 newsgroups, 50 words of 7,600 posts",
            "metric": metric,
            "unit": unit,
            "value": round(figures["latens"][place], digits),
            "spread": None,
            "reference": {
                "kind": "program",
                "value": round(figures["tomotopy"][place], digits),
                "source": f"tomotopy {tomotopy.__version__}, one worker, {tomotopy.isa}",
            },
            "command": "python crates/python/benches/topics.py DIR",
            "commit": None,
            "machine": args.machine,
            "date": datetime.date.today().isoformat(),
            "note": f"{args.runs} seeds: median of times, means of the others",
        }
        for place, (name, metric, unit, digits) in enumerate(metrics)
    ]


def replace(path: Path, records: list[dict]) -> None:
    ids = {record["id"] for record in records}
    lines = [line for line in path.read_text().splitlines() if json.loads(line)["id"] not in ids]
    path.write_text("\n".join(lines + [json.dumps(record, ensure_ascii=False) for record in records]) + "\n")


if __name__ == "__main__":
    main()
