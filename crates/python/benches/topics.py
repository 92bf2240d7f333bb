"""LDA of short documents beside tomotopy: CPU time, likelihood, and classification by topic mixtures.

    python crates/python/benches/topics.py DATA [--program latens] [--record results/topics.jsonl]

DATA has `20news/20news.tsv` (see docs/data.md). The documents are the first 50 words of 7,600 posts, in lower case and
without stop words. Both programs sample on one thread, in turn, and keep the same symmetric priors. CPU time covers
reading the documents and training. A logistic regression predicts the newsgroups of 3,800 other posts, whose mixtures
each program infers with its defaults, by five-fold cross-validation. Last, Gaussian LDA of the same documents with
`vectors/glove.6B.100d-pca50.top30k.txt`: the sampler that `auto` chooses beside the fast ones.
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

N_DOCUMENTS, N_NEW, N_WORDS, BETA = 7600, 3800, 50, 0.01


def head() -> str:
    """The commit that is checked out."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--program", default="latens")
    parser.add_argument("--topics", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--only", choices=["lda", "glda"])
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--commit", help="of the program; by default the commit that is checked out")
    parser.add_argument("--machine", help="an id of docs/machines.md, for `--record`")
    args = parser.parse_args()
    if args.record and not args.machine:
        parser.error("`--record` needs `--machine`, an id of docs/machines.md")
    if args.record and not args.commit:
        args.commit = head()
    documents, labels = read(args.data / "20news/20news.tsv")
    documents, new, labels = documents[:N_DOCUMENTS], documents[N_DOCUMENTS:], labels[N_DOCUMENTS:]
    print(f"{len(documents):,} documents, {sum(map(len, documents)):,} tokens, {args.iterations} iterations, one thread")
    records = []
    with tempfile.TemporaryDirectory() as folder:
        text, new_text = Path(folder, "text.txt"), Path(folder, "new.txt")
        text.write_text("".join(" ".join(words) + "\n" for words in documents))
        new_text.write_text("".join(" ".join(words) + "\n" for words in new))
        for n_topics in args.topics if args.only != "glda" else []:
            runs = {"latens": [], "tomotopy": []}
            for seed in range(1, args.runs + 1):
                runs["latens"].append(fit_latens(args.program, text, new_text, n_topics, args.iterations, seed))
                runs["tomotopy"].append(fit_tomotopy(documents, new, n_topics, args.iterations, seed))
                print(f"seed {seed}:", *(f"{name} {results[-1][0]:.2f} s" for name, results in runs.items()), flush=True)
            figures = {}
            for name, results in runs.items():
                seconds, likelihoods, mixtures = zip(*results, strict=True)
                scores = [100 * accuracy(mixture, labels) for mixture in mixtures]
                figures[name] = [statistics.median(seconds), statistics.mean(likelihoods), statistics.mean(scores)]
                figures[name] += [sorted(values) for values in (seconds, likelihoods, scores)]
                print(f"{n_topics} topics, {name}: {span(seconds, 2)} s of CPU, {span(likelihoods, 3)} nats/token, ", end="")
                print(f"accuracy {span(scores, 1)} %, median {figures[name][0]:.2f} s, mean {figures[name][2]:.2f} %")
            print(f"{n_topics} topics: tomotopy takes {figures['tomotopy'][0] / figures['latens'][0]:.2f} times the CPU time")
            records += rows(n_topics, figures, args)
        if args.only != "lda":
            vectors = args.data / "vectors/glove.6B.100d-pca50.top30k.txt"
            records.append(glda_row(measure_glda(args, text, vectors), args))
    if args.record:
        replace(args.record, records)


def span(values, digits: int) -> str:
    return f"{min(values):.{digits}f}–{max(values):.{digits}f}".replace("-", "−")


def read(path: Path) -> tuple[list[list[str]], list[str]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        rows = [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if len(row) == 3]
    random.Random(1).shuffle(rows)
    documents, labels = [], []
    for label, _, text in rows:
        words = [word for word in re.findall(r"[a-z]{2,}", text.lower()) if word not in ENGLISH_STOP_WORDS][:N_WORDS]
        if len(words) >= 10 and len(documents) < N_DOCUMENTS + N_NEW:
            documents.append(words)
            labels.append(label)
    return documents, labels


def fit_latens(program: str, text: Path, new: Path, n_topics: int, n_iterations: int, seed: int):
    model, log, mixtures = (text.with_name(f"{n_topics}-{seed}.{end}") for end in ("lda", "jsonl", "tsv"))
    command = [program, "train", "lda", text, "--keep-all", "--n-topics", n_topics, "--n-iterations", n_iterations]
    command += ["--alpha", 1 / n_topics, "--beta", BETA, "--threads", 1, "--seed", seed, "-o", model, "--log", log]
    start = cpu_of_children()
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    seconds = cpu_of_children() - start
    likelihood = json.loads(log.read_text().splitlines()[-1])["log_likelihood_per_token"]
    infer = [program, "topics", "infer", model, new, "--seed", seed, "-o", mixtures]
    subprocess.run(list(map(str, infer)), check=True, capture_output=True)
    with mixtures.open() as file:
        rows = list(csv.reader(file, delimiter="\t"))[1:]
    return seconds, likelihood, [[float(share) for share in row[-n_topics:]] for row in rows]


def cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def fit_tomotopy(documents: list[list[str]], new: list[list[str]], n_topics: int, n_iterations: int, seed: int):
    start = time.process_time()
    model = tomotopy.LDAModel(k=n_topics, alpha=1 / n_topics, eta=BETA, seed=seed)
    for words in documents:
        model.add_doc(words)
    model.optim_interval = 0
    model.train(n_iterations, workers=1)
    seconds = time.process_time() - start
    mixtures, _ = model.infer([model.make_doc(words) for words in new])
    return seconds, model.ll_per_word, mixtures


def measure_glda(args: argparse.Namespace, text: Path, vectors: Path) -> dict[str, float]:
    seconds = {sampler: [] for sampler in ("auto", "parallel", "mh")}
    for seed in range(1, args.runs + 1):
        for sampler, times in seconds.items():
            times.append(fit_glda(args.program, text, vectors, sampler, seed))
    medians = {sampler: statistics.median(times) for sampler, times in seconds.items()}
    print("Gaussian LDA, seconds of CPU:", ", ".join(f"{name} {median:.2f}" for name, median in medians.items()))
    return medians


def fit_glda(program: str, text: Path, vectors: Path, sampler: str, seed: int) -> float:
    command = [program, "train", "glda", text, "--keep-all", "--vectors", vectors, "--n-topics", 20, "--n-iterations", 100]
    command += ["--sampler", sampler, "--threads", 1, "--seed", seed, "-o", text.with_name("m.glda"), "--force"]
    start = cpu_of_children()
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return cpu_of_children() - start


def accuracy(mixtures, labels: list[str]) -> float:
    classifier = LogisticRegression(C=10, max_iter=2000)
    return float(cross_val_score(classifier, mixtures, labels, cv=5).mean())


def rows(n_topics: int, figures, args: argparse.Namespace) -> list[dict]:
    metrics = [("cpu", "CPU time, 1 thread", "s", 2), ("likelihood", "log-likelihood", "nats/token", 3)]
    metrics.append(("accuracy", "accuracy of a classifier of mixtures", "%", 1))

    def note(place: int, name: str, digits: int) -> str:
        kind = "median" if name == "cpu" else "mean"
        ours, theirs = (span(figures[program][place + 3], digits) for program in ("latens", "tomotopy"))
        return f"{kind} of {args.runs} seeds: {ours}; tomotopy: {theirs}"

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
            "commit": args.commit,
            "machine": args.machine,
            "date": datetime.date.today().isoformat(),
            "note": note(place, name, digits),
        }
        for place, (name, metric, unit, digits) in enumerate(metrics)
    ]


def glda_row(medians: dict[str, float], args: argparse.Namespace) -> dict:
    fastest = min(("parallel", "mh"), key=medians.__getitem__)
    return {
        "id": "topics-glda-short-auto",
        "model": "G-LDA `auto`, 20 topics, 50 dimensions, 100 iterations",
        "data": "20 newsgroups, 50 words of 7,600 posts",
        "metric": "CPU time, 1 thread",
        "unit": "s",
        "value": round(medians["auto"], 2),
        "spread": None,
        "reference": {"kind": "program", "value": round(medians[fastest], 2), "source": f"our `{fastest}`"},
        "command": "python crates/python/benches/topics.py DIR",
        "commit": args.commit,
        "machine": args.machine,
        "date": datetime.date.today().isoformat(),
        "note": f"median of {args.runs} seeds; `parallel` {medians['parallel']:.2f} s, `mh` {medians['mh']:.2f} s",
    }


def replace(path: Path, records: list[dict]) -> None:
    ids = {record["id"] for record in records}
    lines = [line for line in path.read_text().splitlines() if json.loads(line)["id"] not in ids]
    path.write_text("\n".join(lines + [json.dumps(record, ensure_ascii=False) for record in records]) + "\n")


if __name__ == "__main__":
    main()
