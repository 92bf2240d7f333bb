"""Gaussian LDA beside LDA on short texts and on few documents: classification by topic mixtures, and coherence.

    python crates/python/benches/few_documents.py DATA [--program latens] [--record results/topics.jsonl --machine ID]
    python crates/python/benches/few_documents.py DATA --vectors skip-gram-300=w300.txt
    python crates/python/benches/few_documents.py DATA --titles titles.tsv --more-topics 400 800

With `--vectors`, only the rows that use word vectors are computed, with the vectors of this file (in the text format of GloVe).
With `--titles`, documents are the titles of this file (see crates/experiments/texts.py). With `--more-topics`, there are also rows
whose number of topics is chosen among these, with the other parameters of the search.

DATA has `20news/20news.tsv` and `vectors/` (see docs/data.md). Documents are posts in lower case, without stop words, cut at
100 words; short texts are the first 10 words that remain. For each seed, 100, 300 or 1,000 training documents and 1,000
held-out documents are drawn from the training split, and 2,000 test documents (1,000 titles) from the test split, with equally
many of each newsgroup. Topic models see the training documents without labels and infer the mixtures of all documents. A
logistic regression learns newsgroups from the mixtures of the training documents.

One setting per row and kind of documents is chosen by the mean accuracy on the held-out documents of all seeds. The search is
greedy: one parameter after the other, each once. The regularization of the classifier is chosen per seed, also on the held-out
documents. Then the test documents are scored once per seed.

Coherence is the mean NPMI of the ten top words of 20 topics. Settings are chosen on the documents of the training split that no
model of the seed was trained on, among settings whose topics have a diversity of at least 0.7 (otherwise, twenty equal topics
may win), and measured on all documents of the test split. For titles, these documents are the posts of the two splits.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import functools
import json
import random
import re
import statistics
import subprocess
import tempfile
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import latens

N_GROUPS, N_HELD_OUT, N_TEST, N_WORDS, N_SHORT = 20, 1000, 2000, 100, 10
N_TEST_TITLES = 1000
REGULARIZATION = (1, 10, 100, 1000)
MIN_DIVERSITY = 0.7

VECTORS: dict[str, tuple] = {"dim": (50, 100), "form": ("unit", "raw", "whitened")}
#: Values of each parameter. The search starts at the first ones, except those of `START`.
SEARCH = {
    "tfidf": {"sublinear": (False, True)},
    "mean": VECTORS,
    "lda": {"n_topics": (20, 50, 100, 200), "alpha": (None, 0.1, 0.5), "beta": (0.01, 0.001, 0.1)},
    "glda": {
        "n_topics": (20, 50, 100, 200),
        "alpha": (None, 0.1, 0.5),
        "weight": (1, 0.3, 0.1),
        "covariance": ("spherical", "diagonal", "full"),
        "form": VECTORS["form"],
        "dim": VECTORS["dim"],
    },
}
START = {"n_topics": 50}
DEFAULTS = {
    "lda-default": {"n_topics": 50, "alpha": None, "beta": 0.01},
    "glda-default": {"n_topics": 50, "alpha": None, "weight": 1, "covariance": "full", "form": "raw", "dim": 50},
}
#: Rows that are computed with `--vectors`. Full covariances are not searched: with 300 dimensions they have 300 × 300 numbers.
WITH_VECTORS = ("mean", "glda")
COVARIANCES = ("spherical", "diagonal")
ROWS = {
    "tfidf": "bag of words (tf–idf)",
    "mean": "mean word vector",
    "lda-default": "LDA, default parameters",
    "lda": "LDA",
    "glda-default": "G-LDA, default parameters",
    "glda-known": "G-LDA, without vectors of new words",
    "glda": "G-LDA",
    "lda-more": "LDA, more topics",
    "glda-more": "G-LDA, more topics",
}

Words = list[str]


@dataclass
class Sample:
    """The documents of one seed."""

    seed: int
    train: tuple[list[Words], list[str]]
    held_out: tuple[list[Words], list[str]]
    test: tuple[list[Words], list[str]]
    others: list[Words]
    """Documents of the training split that are not training documents, in which words are counted."""


def head() -> str:
    """The commit that is checked out."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--program", default="latens")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", choices=["short", "100", "300", "1000"])
    parser.add_argument("--vectors", metavar="NAME=PATH")
    parser.add_argument("--titles", type=Path)
    parser.add_argument("--more-topics", type=int, nargs="+", default=[])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--commit", help="of the program; by default the commit that is checked out")
    parser.add_argument("--machine", help="an id of docs/machines.md, for `--record`")
    args = parser.parse_args()
    if args.record and not args.machine:
        parser.error("`--record` needs `--machine`, an id of docs/machines.md")
    if args.more_topics and args.vectors:
        parser.error("`--more-topics` is for the vectors of the table: omit `--vectors`")
    if args.only and args.titles:
        parser.error("`--titles` measures titles alone: omit `--only`")
    if args.record and not args.commit:
        args.commit = head()
    warnings.simplefilter("ignore", ConvergenceWarning)
    posts = read(args.data / "20news/20news.tsv")
    titles = read(args.titles, min_words=1) if args.titles else {}
    kinds = {"short": (1000, N_SHORT), "100": (100, N_WORDS), "300": (300, N_WORDS), "1000": (1000, N_WORDS)}
    records = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args.data / "vectors", Path(folder), args.program, posts, titles)
        if args.vectors:
            args.vectors, path = args.vectors.split("=", 1)
            dim = bench.add_vectors(Path(path))
            for row in WITH_VECTORS:
                SEARCH[row]["dim"] = (dim,)
            SEARCH["glda"]["covariance"] = COVARIANCES
        for kind in ["titles"] if titles else args.only or kinds:
            if titles:
                samples = [draw_titles(titles, posts, seed) for seed in args.seeds]
            else:
                samples = [draw(posts, *kinds[kind], seed) for seed in args.seeds]
            n_tokens = statistics.mean(sum(map(len, sample.train[0])) for sample in samples)
            print(f"{data_name(kind)}: {n_tokens:,.0f} training tokens", flush=True)
            rows = WITH_VECTORS if args.vectors else tuple(ROWS)
            records += [record(kind, *row, args) for row in classify(bench, samples, rows, args.more_topics)]
            records += [record(kind, *row, args) for row in coherence(bench, samples, rows)]
            if args.record:
                replace(args.record, records)


def data_name(kind: str) -> str:
    return {"short": "1,000 short texts", "titles": "1,000 titles"}.get(kind) or f"{int(kind):,} documents"


def read(path: Path, min_words: int = N_SHORT) -> dict[str, dict[str, list[Words]]]:
    """Documents by split and newsgroup, in the order of the file."""
    posts: dict[str, dict[str, list[Words]]] = {"train": defaultdict(list), "test": defaultdict(list)}
    with path.open(encoding="utf-8", errors="replace") as file:
        for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if len(row) == 3:
                label, split, text = row
                words = [word for word in re.findall(r"[a-z]{2,}", text.lower()) if word not in ENGLISH_STOP_WORDS]
                if len(words) >= min_words:
                    posts[split][label].append(words[:N_WORDS])
    return posts


def draw(posts, n_documents: int, n_words: int, seed: int, n_test: int = N_TEST) -> Sample:
    rng = random.Random(seed)
    parts: list[tuple[list[Words], list[str]]] = [([], []), ([], []), ([], []), ([], [])]
    # 100 training documents are among the 300, and those among the 1,000.
    first, last = 1000 // N_GROUPS, (1000 + N_HELD_OUT) // N_GROUPS
    for label in sorted(posts["train"]):
        train = rng.sample(posts["train"][label], len(posts["train"][label]))
        test = rng.sample(posts["test"][label], n_test // N_GROUPS)
        for part, documents in zip(parts, (train[: n_documents // N_GROUPS], train[first:last], test, train[first:])):
            part[0].extend(documents)
            part[1].extend([label] * len(documents))
    *short, (others, _) = parts
    return Sample(seed, *(([words[:n_words] for words in documents], labels) for documents, labels in short), others)


def draw_titles(titles, posts, seed: int) -> Sample:
    sample = draw(titles, 1000, N_WORDS, seed, N_TEST_TITLES)
    # Few pairs of words are in a title together.
    sample.others = [words for group in posts["train"].values() for words in group]
    return sample


class Bench:
    """Makes features of documents from settings."""

    def __init__(self, vectors: Path, folder: Path, program: str, posts, titles) -> None:
        self.folder, self.program = folder, program
        splits = [*posts.values(), *titles.values()]
        self.known = {word for split in splits for group in split.values() for words in group for word in words}
        self.test_split = [words for group in posts["test"].values() for words in group]
        self.paths = {50: vectors / "glove.6B.100d-pca50.top30k.txt", 100: vectors / "glove.6B.100d.top30k.txt"}

    def add_vectors(self, path: Path) -> int:
        """Adds the vectors of a file and returns their dimension, by which settings name them."""
        with path.open(encoding="utf-8") as file:
            dim = len(file.readline().split()) - 1
        self.paths[dim] = path
        return dim

    @functools.cache
    def read_vectors(self, dim: int) -> tuple[list[str], np.ndarray]:
        with self.paths[dim].open(encoding="utf-8") as file:
            words, *columns = zip(*(line.split() for line in file))
        return list(words), np.array(columns, dtype=np.float32).T

    @functools.cache
    def vectors(self, dim: int, form: str) -> tuple[latens.Vectors, Path, dict[str, int], np.ndarray]:
        """Vectors as a model, the path of its file, row numbers of words, and rows."""
        words, rows = self.read_vectors(dim)
        if form != "raw":
            rows = rows - rows.mean(axis=0)
        if form == "unit":
            rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
        if form == "whitened":
            values, axes = np.linalg.eigh(np.cov(rows.T))
            rows = rows @ (axes / np.sqrt(values))
        # Means and axes are those of all words; only words of the posts are kept.
        ids = [i for i, word in enumerate(words) if word in self.known]
        words, rows = [words[i] for i in ids], np.ascontiguousarray(rows[ids], dtype=np.float32)
        model, path = latens.Vectors.from_arrays(words, rows), self.folder / f"{dim}-{form}.vectors"
        model.save(path)
        return model, path, {word: i for i, word in enumerate(words)}, rows

    def features(self, row: str, setting: dict, sample: Sample, parts: list[list[Words]]) -> list:
        """Features of the documents of each part."""
        if row == "tfidf":
            model = TfidfVectorizer(analyzer=list, sublinear_tf=setting["sublinear"]).fit(sample.train[0])
            return [model.transform(part) for part in parts]
        if row == "mean":
            _, _, ids, rows = self.vectors(setting["dim"], setting["form"])
            return [np.array([mean(words, ids, rows) for words in part]) for part in parts]
        if row in ("lda", "lda-default"):
            lda = self.fit_lda(setting, sample)
            return [lda.transform(part) for part in parts]
        glda = self.fit_glda(setting, sample)
        return self.infer(glda, None if row == "glda-known" else self.vectors(setting["dim"], setting["form"])[1], parts)

    def fit_lda(self, setting: dict, sample: Sample) -> latens.Lda:
        kwargs = {name: setting[name] for name in ("n_topics", "alpha", "beta")}
        return latens.Lda(**kwargs, keep_all=True, random_state=sample.seed, n_jobs=1).fit(sample.train[0])

    def fit_glda(self, setting: dict, sample: Sample) -> latens.GaussianLda:
        vectors = self.vectors(setting["dim"], setting["form"])[0]
        kwargs = {name: setting[name] for name in ("n_topics", "alpha", "covariance")}
        kwargs |= {"likelihood_weight": setting["weight"], "random_state": sample.seed}
        return latens.GaussianLda(vectors, **kwargs, keep_all=True, n_jobs=1).fit(sample.train[0])

    def infer(self, glda: latens.GaussianLda, vectors: Path | None, parts: list[list[Words]]) -> list:
        """Mixtures that, with `vectors`, also use words with a vector that are not in the training documents."""
        model, text, table = (self.folder / name for name in ("m.glda", "text.txt", "mixtures.tsv"))
        glda.save(model)
        text.write_text("".join(" ".join(words) + "\n" for part in parts for words in part))
        command = [self.program, "topics", "infer", model, text, "-o", table, "--threads", "1"]
        command += ["--vectors", vectors] if vectors else []
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
        mixtures = np.loadtxt(table, skiprows=1, delimiter="\t", usecols=range(3, 3 + glda.n_topics), dtype=np.float32)
        table.unlink()
        return np.split(mixtures, np.cumsum([len(part) for part in parts])[:-1])

    def top_words(self, row: str, setting: dict, sample: Sample) -> list[Words]:
        if row == "lda":
            lda = self.fit_lda(setting, sample)
            return [[word for word, _ in lda.top_words(topic)] for topic in range(lda.n_topics)]
        model = self.folder / "m.glda"
        self.fit_glda(setting, sample).save(model)
        command = [self.program, "topics", "show", model, "--by", setting["by"], "--n-words", "10", "--json"]
        shown = subprocess.run(list(map(str, command)), check=True, capture_output=True)
        return [[word["word"] for word in topic["words"]] for topic in json.loads(shown.stdout)["topics"]]


def mean(words: Words, ids: dict[str, int], rows: np.ndarray) -> np.ndarray:
    found = [ids[word] for word in words if word in ids]
    return rows[found].mean(axis=0) if found else np.zeros(rows.shape[1], dtype=np.float32)


def classify(bench: Bench, samples: list[Sample], rows: tuple[str, ...], more_topics: list[int]):
    """Rows of accuracies on the test documents."""
    searched = [row for row in SEARCH if row in rows]
    chosen = {row: choose(row, SEARCH[row], START, functools.partial(held_out_accuracy, bench, row, samples)) for row in searched}
    chosen |= {"glda-known": chosen["glda"]} | DEFAULTS
    for row in searched:
        settings = [chosen[row] | {"n_topics": n_topics} for n_topics in more_topics]
        if settings and f"{row}-more" in rows:
            chosen[f"{row}-more"] = max(settings, key=functools.partial(held_out_accuracy, bench, row, samples))
    for row in [row for row in rows if row in chosen]:
        setting, scores = chosen[row], []
        for sample in samples:
            train, held_out, test = (part[0] for part in (sample.train, sample.held_out, sample.test))
            train, held_out, test = bench.features(row.removesuffix("-more"), setting, sample, [train, held_out, test])
            _, classifier = fit_classifier(train, held_out, sample)
            scores.append(100 * classifier.score(test, sample.test[1]))
        print(f"  {ROWS[row]}: {show(scores, 1)} %; {describe(setting)}", flush=True)
        yield "accuracy", row, scores, setting


def choose(row: str, search: dict, start: dict, measure) -> dict:
    """The best setting of a greedy search: one parameter after the other."""
    measured = {}

    def value(setting: dict) -> float:
        key = tuple(setting.items())
        if key not in measured:
            measured[key] = measure(setting)
        return measured[key]

    best = {name: start.get(name, values[0]) for name, values in search.items()}
    for name, values in search.items():
        best = max((best | {name: other} for other in (best[name], *values)), key=value)
    for key, result in measured.items():
        print(f"    {row}: {result:.4f} {describe(dict(key))}", flush=True)
    return best


def held_out_accuracy(bench: Bench, row: str, samples: list[Sample], setting: dict) -> float:
    scores = []
    for sample in samples:
        train, held_out = bench.features(row, setting, sample, [sample.train[0], sample.held_out[0]])
        scores.append(fit_classifier(train, held_out, sample)[0])
    return statistics.mean(scores)


def fit_classifier(train, held_out, sample: Sample) -> tuple[float, LogisticRegression]:
    """The classifier that is best on the held-out documents, and its accuracy on them."""
    found = []
    for c in REGULARIZATION:
        classifier = LogisticRegression(C=c, max_iter=200).fit(train, sample.train[1])
        found.append((classifier.score(held_out, sample.held_out[1]), classifier))
    return max(found, key=lambda pair: pair[0])


def coherence(bench: Bench, samples: list[Sample], rows: tuple[str, ...]):
    """Rows of coherence and diversity of 20 topics."""
    test = Reference(bench.test_split)
    references = {sample.seed: Reference(sample.others) for sample in samples}
    for row in [row for row in ("lda", "glda") if row in rows]:
        search = ({"by": ("count", "density")} if row == "glda" else {}) | SEARCH[row] | {"n_topics": (20,)}

        def measure(setting: dict) -> float:
            topics = {sample.seed: bench.top_words(row, setting, sample) for sample in samples}
            if statistics.mean(map(diversity, topics.values())) < MIN_DIVERSITY:
                return -1
            return statistics.mean(references[seed].npmi(words) for seed, words in topics.items())

        setting = choose(f"{row} NPMI", search, {}, measure)
        topics = [bench.top_words(row, setting, sample) for sample in samples]
        scores = [test.npmi(words) for words in topics]
        diversities = [diversity(words) for words in topics]
        print(f"  {ROWS[row]}: NPMI {show(scores, 3)}, diversity {show(diversities, 2)}; {describe(setting)}", flush=True)
        yield "coherence", row, scores, setting
        yield "diversity", row, diversities, setting


def diversity(topics: list[Words]) -> float:
    """Fraction of distinct words among the top words of all topics."""
    return len({word for words in topics for word in words}) / sum(map(len, topics))


class Reference:
    """Documents in which words are counted."""

    def __init__(self, documents: list[Words]) -> None:
        self.ids: dict[str, int] = {}
        rows = [sorted({self.ids.setdefault(word, len(self.ids)) for word in words}) for words in documents]
        ends = np.cumsum([0] + [len(row) for row in rows])
        columns = np.concatenate(rows)
        self.matrix = csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(rows), len(self.ids))).tocsc()

    def npmi(self, topics: list[Words]) -> float:
        """Mean over topics. −1 for pairs of words that never occur together; words that do not occur are skipped."""
        scores = []
        for words in topics:
            columns = self.matrix[:, [self.ids[word] for word in words if word in self.ids]]
            together = (columns.T @ columns).toarray() / columns.shape[0]
            alone = together.diagonal()
            pairs = np.triu_indices(len(alone), 1)
            p, q = together[pairs], np.outer(alone, alone)[pairs]
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.where(p > 0, np.log(p / q) / -np.log(p), -1)
            if len(values):
                scores.append(values.mean())
        return float(np.mean(scores))


def show(values: list[float], digits: int) -> str:
    return f"{statistics.mean(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})".replace("-", "−")


def describe(setting: dict) -> str:
    texts = {
        "sublinear": lambda value: "logarithm of counts" if value else "counts",
        "weight": lambda value: f"likelihood weight {value}",
        "form": lambda value: f"{value} vectors",
        "n_topics": lambda value: f"{value} topics",
        "alpha": lambda value: f"alpha {value or '1/K'}",
        "beta": lambda value: f"beta {value}",
        "dim": lambda value: f"{value} dimensions",
        "by": lambda value: f"words by {value}",
    }
    return ", ".join(texts.get(name, str)(value) for name, value in setting.items())


def record(kind: str, metric: str, row: str, values: list[float], setting: dict, args: argparse.Namespace) -> dict:
    name, unit, digits = {
        "accuracy": ("accuracy of a classifier of test documents", "%", 1),
        "coherence": ("NPMI, mean of 20 topics", None, 3),
        "diversity": ("topic diversity, 20 topics", None, 2),
    }[metric]
    suffix = f"-{args.vectors}" if args.vectors else ""
    spread = {"over": "seeds", "n": len(values), "min": round(min(values), digits), "max": round(max(values), digits)}
    return {
        "id": f"topics-titles-{metric}-{row}{suffix}" if kind == "titles" else f"topics-few-{metric}-{row}{suffix}-{kind}",
        "model": ROWS[row] + suffix.replace("-", ", ", 1),
        "data": f"20 newsgroups, {data_name(kind)}",
        "metric": name,
        "unit": unit,
        "value": round(statistics.mean(values), digits),
        "spread": spread,
        "reference": None,
        "command": "python crates/python/benches/few_documents.py DIR"
        + (f" --vectors {args.vectors}={args.vectors}.txt" if args.vectors else "")
        + (" --titles titles.tsv" if args.titles else "")
        + "".join([" --more-topics", *(f" {n_topics}" for n_topics in args.more_topics)] if args.more_topics else []),
        "commit": args.commit,
        "machine": args.machine,
        "date": datetime.date.today().isoformat(),
        "note": f"{data_name(kind)}: {describe(setting)}" if row.removesuffix("-more") in SEARCH else None,
    }


def replace(path: Path, records: list[dict]) -> None:
    ids = {record["id"] for record in records}
    old = path.read_text().splitlines() if path.exists() else []
    lines = [line for line in old if json.loads(line)["id"] not in ids]
    path.write_text("\n".join(lines + [json.dumps(record, ensure_ascii=False) for record in records]) + "\n")


if __name__ == "__main__":
    main()
