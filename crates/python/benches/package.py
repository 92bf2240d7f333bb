"""Measures the installed package: import, wheel, overhead over the program, topics beside scikit-learn, encoding.

    python crates/python/benches/package.py TEXT [--wheel WHEEL] [--data DIR] [--record results/python.jsonl]

TEXT has one sentence per line, at least 50,000. Times of threads are CPU seconds where the machine is shared, so both CPU
and wall time are printed; records hold CPU seconds, measured in turn.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import latens

COMMAND = """pip wheel --no-deps .
pip install latens-*.whl
python crates/python/benches/package.py DIR/unlabeled-news/reuters21578.sents.txt --wheel latens-*.whl --data DIR"""
N_DOCUMENTS = 100_000
#: Number of sentences that models are fitted to.
N_SENTENCES = 30_000
N_TOPICS = 50
#: Estimator, flags of the program. Few iterations: the overhead is what is measured.
FITS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "ngram": (lambda: latens.Ngram(5, n_jobs=1), ["--order", "5"]),
    "hmm": (
        lambda: latens.Hmm(256, n_clusters=16, dim=64, epochs=1, min_count=5, n_jobs=1),
        ["--n-states", "256", "--n-clusters", "16", "--dim", "64", "--epochs", "1", "--min-count", "5"],
    ),
    "word2vec": (
        lambda: latens.Word2Vec(100, epochs=1, min_count=5, n_jobs=1),
        ["--dim", "100", "--epochs", "1", "--min-count", "5"],
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--data", type=Path, help="a folder with 20news/20news.tsv, for a classifier of topics")
    parser.add_argument("--program", default="latens")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--machine", help="an id of docs/machines.md, for `--record`")
    args = parser.parse_args()
    if args.record and not args.machine:
        parser.error("`--record` needs `--machine`, an id of docs/machines.md")
    lines = [line for line in args.text.read_text().splitlines() if line.strip()]
    records = Records(args)
    measure_import(records)
    if args.wheel:
        records.add("python-wheel", "one abi3 wheel, with the program", "wheel", "size", "MB", args.wheel.stat().st_size / 1e6)
    measure_interrupts(records)
    if args.data:
        measure_newsgroups(args.data, records)
    measure_fits(lines[:N_SENTENCES], args, records)
    measure_topics(lines, args.runs, records)
    measure_encoding(lines, args.runs, records)


class Records:
    """Prints figures, and appends them to a file."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
        self.commit = subprocess.run(git, capture_output=True, text=True).stdout.strip() or None

    def add(
        self, id: str, model: str, data: str, metric: str, unit: str, value: float,
        runs: list[float] | None = None, reference: tuple[float, str] | None = None, note: str | None = None,
    ) -> None:
        record = {
            "id": id, "model": model, "data": data, "metric": metric, "unit": unit, "value": rounded(value),
            "spread": spread(runs),
            "reference": reference and {"kind": "program", "value": rounded(reference[0]), "source": reference[1]},
            "command": COMMAND,
            "commit": self.commit, "machine": self.args.machine, "date": str(datetime.date.today()), "note": note,
        }
        print(f"{model}: {metric} {record['value']} {unit}", reference or "", runs or "", flush=True)
        if self.args.record:
            path = self.args.record
            old = path.read_text().splitlines() if path.exists() else []
            kept = [line for line in old if json.loads(line)["id"] != id]
            path.write_text("\n".join([*kept, json.dumps(record, ensure_ascii=False)]) + "\n")


def rounded(value: float) -> float:
    return float(f"{value:.3g}") if value < 1000 else round(value)


def spread(runs: list[float] | None) -> dict[str, Any] | None:
    if not runs or len(runs) < 2:
        return None
    return {"over": "runs", "n": len(runs), "min": rounded(min(runs)), "max": rounded(max(runs))}


def measure_import(records: Records) -> None:
    """CPU time of `import latens` in a new interpreter, less that of an interpreter that imports nothing."""

    def once(statement: str) -> float:
        return children_cpu(lambda: subprocess.run([sys.executable, "-c", statement], check=True))

    once("import latens")  # Compiles the modules.
    times = []
    for _ in range(20):
        empty = once("pass")
        times.append(1000 * (once("import latens") - empty))
    records.add("python-import", "`import latens`", "none", "import time", "CPU ms", statistics.median(times), times)
    first = []
    for _ in range(20):
        empty = once("pass")
        first.append(1000 * (once("import latens; latens.Hmm") - empty))
    records.add(
        "python-import-hmm", "`import latens; latens.Hmm`", "none", "import time", "CPU ms", statistics.median(first), first,
        note="mostly modules of Python itself",
    )
    names = "import sys, latens; print(sorted({'numpy', 'scipy', 'sklearn', 'pandas'} & set(sys.modules)))"
    print("imported with it:", subprocess.run([sys.executable, "-c", names], capture_output=True, text=True).stdout)


#: A long fit in a process that tells when it has begun.
LONG_FIT = """
import latens
sentences = latens.datasets.sentences("train")
latens.Hmm(1024, epochs=1000).fit(sentences, callback=lambda facts: print(facts["phase"], flush=True))
"""


def measure_interrupts(records: Records) -> None:
    """Time from Ctrl-C to the end of a process that fits a model."""
    times = []
    for _ in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", LONG_FIT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert child.stdout is not None
        next(line for line in iter(child.stdout.readline, "") if line.startswith("learn"))
        time.sleep(0.5)
        begin = time.perf_counter()
        child.send_signal(signal.SIGINT)
        child.wait()
        times.append(time.perf_counter() - begin)
    records.add(
        "python-interrupt", "`hmm`, 1,024 states", "a long `fit`", "time from Ctrl-C to the end of the process", "s",
        statistics.median(times), times,
    )


def measure_newsgroups(data: Path, records: Records) -> None:
    """The accuracy that the example prints."""
    example = Path(__file__).parents[1] / "examples/newsgroups.py"
    printed = subprocess.run([sys.executable, example, data], check=True, capture_output=True, text=True).stdout
    mean, low, high = (float(number) for number in re.findall(r"0\.\d+", printed)[:3])
    records.add(
        "python-newsgroups", "`Lda(100)` and `LogisticRegression`", "20 newsgroups, 3 folds", "accuracy", "share of documents",
        mean, [low, mean, high], note="`crates/python/examples/newsgroups.py`; the spread is over the folds",
    )


def children_cpu(work: Callable[[], Any]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def own_cpu(work: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def measure_fits(lines: list[str], args: argparse.Namespace, records: Records) -> None:
    """CPU time of `fit` with one thread beside that of `latens train`, in turn. Both read the same file."""
    with tempfile.TemporaryDirectory() as folder:
        text, out = Path(folder) / "text.txt", Path(folder) / "model"
        text.write_text("\n".join(lines) + "\n")
        for kind, (make, flags) in FITS.items():
            command = [args.program, "train", kind, str(text), *flags, "-o", str(out), "--threads", "1", "--quiet"]
            ratios, of_lists = [], []
            for _ in range(args.runs):
                theirs = children_cpu(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
                ours = own_cpu(lambda: make().fit(text).save(out))[0]
                from_list = own_cpu(lambda: make().fit(lines).save(out))[0]
                ratios.append(100 * (ours / theirs - 1))
                of_lists.append(100 * (from_list / theirs - 1))
            for name, what, found in (("path", "a path", ratios), ("list", "a list of strings", of_lists)):
                records.add(
                    f"python-fit-{kind}-{name}", f"`{kind}`, `fit` of {what}", f"{len(lines):,} sentences",
                    "overhead over `latens train`", "% of CPU time", statistics.median(found), found,
                )


def measure_topics(lines: list[str], runs: int, records: Records) -> None:
    """`transform` of short documents with `N_TOPICS` topics beside scikit-learn's."""
    from sklearn.decomposition import LatentDirichletAllocation
    from sklearn.feature_extraction.text import CountVectorizer

    documents = (lines * (N_DOCUMENTS // len(lines) + 1))[:N_DOCUMENTS]
    vectorizer = CountVectorizer(token_pattern=r"\S+", lowercase=False, min_df=5)
    X = vectorizer.fit_transform(documents)
    training = X[:20_000]
    for n_jobs in (1, None):
        theirs = LatentDirichletAllocation(N_TOPICS, max_iter=2, random_state=1, n_jobs=n_jobs or -1).fit(training)
        ours = latens.Lda(N_TOPICS, n_iterations=50, n_jobs=n_jobs).fit(training)
        strings = latens.Lda(N_TOPICS, n_iterations=50, min_count=5, n_jobs=n_jobs).fit(documents[:20_000])
        seconds: dict[str, list[float]] = {"sklearn": [], "matrix": [], "vectorizer": [], "strings": []}
        for _ in range(runs):
            for name, work in (
                ("sklearn", lambda: theirs.transform(X)),
                ("matrix", lambda: ours.transform(X)),
                ("vectorizer", lambda: vectorizer.transform(documents)),
                ("strings", lambda: strings.transform(documents)),
            ):
                cpu, wall = own_cpu(work)
                print(f"  {name}, n_jobs={n_jobs}: {cpu:.2f} s of CPU, {wall:.2f} s", flush=True)
                # With one thread, CPU time is what a quiet machine would take.
                seconds[name].append(cpu if n_jobs == 1 else wall)
        seconds["sklearn-strings"] = [a + b for a, b in zip(seconds["sklearn"], seconds["vectorizer"])]
        speeds = {name: [len(documents) / time for time in times] for name, times in seconds.items()}
        threads = "1 thread" if n_jobs == 1 else "all cores"
        for name, reference in (("matrix", "sklearn"), ("strings", "sklearn-strings")):
            records.add(
                f"python-transform-{name}-{'1' if n_jobs == 1 else 'all'}",
                f"`Lda.transform` of {'a sparse matrix' if name == 'matrix' else 'strings'}, {threads}",
                f"{N_DOCUMENTS:,} sentences, {N_TOPICS} topics", "documents per second",
                "documents/s" + (" of CPU" if n_jobs == 1 else ""),
                statistics.median(speeds[name]), speeds[name],
                (statistics.median(speeds[reference]), "scikit-learn's `LatentDirichletAllocation`"),
            )


def measure_encoding(lines: list[str], runs: int, records: Records) -> None:
    """`encode` to NumPy arrays. No Python object is made per token."""
    model = latens.Word2Vec(100, epochs=1, min_count=5).fit(lines[:20_000])
    brown = latens.Brown(64, min_count=5).fit(lines[:5_000])
    n_tokens = sum(len(line.split()) for line in lines[:20_000])
    for name, encoder in (("word2vec", model), ("brown", brown)):
        encoder.set_params(n_jobs=1)
        speeds = [n_tokens / own_cpu(lambda: encoder.encode(lines[:20_000]))[0] for _ in range(runs)]
        records.add(
            f"python-encode-{name}", f"`encode` of `{name}`, 1 thread", "20,000 sentences", "encoding throughput",
            "tokens/s of CPU", statistics.median(speeds), speeds,
        )


if __name__ == "__main__":
    main()
