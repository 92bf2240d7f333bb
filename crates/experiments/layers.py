"""Measures what the layers of factorial HMMs share, and how many of their states are in use: records of results/fhmm.jsonl.

    python crates/experiments/layers.py DIR [--program target/release/latens] [--models FOLDER] [--record results/fhmm.jsonl]
    python -m doctest crates/experiments/layers.py

DIR has the layout of docs/data.md. Models of ten states per layer are trained on the sentences that `--keep-sentences` keeps
of the text of the learning curves, with one thread. States (Viterbi) and posteriors are those of GENIA development text.
`--models` keeps the models in a folder, and uses those that are there.

Entropies and mutual information are in nats, of the relative frequencies of states among the tokens.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import math
import statistics
import subprocess
import tempfile
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path

TEXTS = ("unlabeled-news/reuters21578.sents.txt", "bio-unlabeled/medline.sents.txt", "bio-unlabeled/trials.sents.txt")
TAGGED = "bio-pos/genia.dev.txt"
N_STATES = 10
SEEDS = (1, 2, 3)
#: Sentences, layers and epochs of the models.
MODELS = [
    (4_000, 1, 5),
    (4_000, 3, 5),
    (4_000, 5, 5),
    (4_000, 5, 15),
    (16_000, 1, 5),
    (16_000, 3, 5),
    (16_000, 5, 5),
]
#: A state is in use if at least this fraction of the tokens has it.
IN_USE = 0.001
#: Name and unit of each figure.
METRICS = {
    "entropy": ("entropy of the states of a layer", "nats"),
    "shared": ("mutual information of two layers, mean", "nats"),
    "shared-most": ("mutual information of two layers, maximum", "nats"),
    "perplexity": ("exp(entropy) of the states of a layer", None),
    "in-use": ("states of a layer with at least 0.1% of the tokens, minimum", None),
    "posterior": ("entropy of the posterior of a layer", "nats"),
    "tags": ("mutual information of a layer and parts of speech", "nats"),
}

Labels = Sequence[Hashable]


def head() -> str:
    """The commit that is checked out."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--program", type=Path, default=Path("target/release/latens"))
    parser.add_argument("--models", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--commit", help="of the program; by default the commit that is checked out")
    parser.add_argument("--machine", help="an id of docs/machines.md, for `--record`")
    args = parser.parse_args()
    if args.record and not args.machine:
        parser.error("`--record` needs `--machine`, an id of docs/machines.md")
    if args.record and not args.commit:
        args.commit = head()
    program = str(args.program.resolve(strict=True))
    with tempfile.TemporaryDirectory() as folder:
        models = args.models or Path(folder)
        models.mkdir(exist_ok=True)
        for n_sentences, n_layers, n_epochs in MODELS:
            runs = [
                measure(program, args.data, train(program, args.data, models, n_sentences, n_layers, n_epochs, seed))
                for seed in SEEDS
            ]
            model = f"FHMM-{n_layers}-{N_STATES}, {n_sentences:,} sentences, {n_epochs} epochs"
            print(model, *(f"  seed {seed}: {show(run)}" for seed, run in zip(SEEDS, runs)), sep="\n", flush=True)
            if args.record:
                suffix = f"{n_layers}-{n_sentences}-{n_epochs}"
                replace(args.record, list(records(suffix, model, runs, args)))


def train(program: str, data: Path, models: Path, n_sentences: int, n_layers: int, n_epochs: int, seed: int) -> Path:
    model = models / f"{n_sentences}-{n_layers}-{n_epochs}-{seed}.fhmm"
    if not model.exists():
        command = [program, "train", "fhmm", *(data / name for name in TEXTS), "-o", model, "--quiet", "--threads", 1]
        command += ["--n-layers", n_layers, "--n-states", N_STATES, "--epochs", n_epochs, "--seed", seed]
        subprocess.run([*map(str, command), "--keep-sentences", str(n_sentences)], check=True)
    return model


def measure(program: str, data: Path, model: Path) -> dict[str, float]:
    """The figures of one model: means over layers and tokens unless `METRICS` says otherwise."""
    layers = list(zip(*(by_layer(columns) for columns in encode(program, data, model, "viterbi"))))
    states = [[next(iter(layer)) for layer in tokens] for tokens in layers]
    posteriors = (layer.values() for columns in encode(program, data, model, "posterior") for layer in by_layer(columns))
    with (data / TAGGED).open() as lines:
        tags = [line.split()[1] for line in lines if line.strip()]
    shared = [mutual_information(a, b) for a, b in itertools.combinations(states, 2)]
    figures = {
        "entropy": statistics.mean(map(entropy, states)),
        "perplexity": statistics.mean(math.exp(entropy(layer)) for layer in states),
        "in-use": min(map(n_in_use, states)),
        "posterior": statistics.mean(map(entropy_of, posteriors)),
        "tags": statistics.mean(mutual_information(layer, tags) for layer in states),
    }
    return figures | ({"shared": statistics.mean(shared), "shared-most": max(shared)} if shared else {})


def encode(program: str, data: Path, model: Path, features: str) -> Iterator[list[str]]:
    """The columns `index:value` of each token."""
    command = [program, "encode", model, data / TAGGED, "--format", "conll", "--features", features, "--threads", 1, "--quiet"]
    run = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    return (line.split("\t")[1:] for line in run.stdout.splitlines() if line)


def by_layer(columns: list[str]) -> list[dict[int, float]]:
    """States of each layer with their probabilities. The columns of the layers follow each other.

    >>> by_layer(["3:1", "10:0.25", "19:0.75"])
    [{3: 1.0}, {0: 0.25, 9: 0.75}]
    """
    layers: dict[int, dict[int, float]] = {}
    for column in columns:
        index, value = column.split(":")
        layer, state = divmod(int(index), N_STATES)
        layers.setdefault(layer, {})[state] = float(value)
    assert list(layers) == list(range(len(layers))), columns
    return list(layers.values())


def entropy_of(weights: Sequence[float]) -> float:
    """Entropy of a distribution, given up to a factor.

    >>> round(entropy_of([1, 1, 2]), 6) == round(1.5 * math.log(2), 6)
    True
    >>> entropy_of([0, 3]) == 0
    True
    """
    total = sum(weights)
    return -sum(weight / total * math.log(weight / total) for weight in weights if weight > 0)


def entropy(labels: Labels) -> float:
    """Entropy of the relative frequencies.

    >>> round(entropy("aabb"), 6) == round(math.log(2), 6)
    True
    """
    return entropy_of(Counter(labels).values())


def mutual_information(a: Labels, b: Labels) -> float:
    """Sum of the entropies less that of the pairs.

    A copy shares everything, an independent layer nothing:

    >>> round(mutual_information("aabb", "ccdd"), 6) == round(math.log(2), 6)
    True
    >>> round(mutual_information("aabb", "cdcd"), 6) + 0
    0.0

    From the definition, with pairs of probability 1/4, 1/4 and 1/2:

    >>> expected = math.log(2) / 4 + math.log(2 / 3) / 4 + math.log(4 / 3) / 2
    >>> round(mutual_information("aabb", "cddd"), 6) == round(expected, 6)
    True
    """
    return entropy(a) + entropy(b) - entropy(list(zip(a, b, strict=True)))


def n_in_use(labels: Labels) -> int:
    """Number of labels with at least the fraction `IN_USE`.

    >>> n_in_use(["a"] * 2997 + ["b"] * 3), n_in_use(["a"] * 2998 + ["b"] * 2)
    (2, 1)
    """
    return sum(count >= IN_USE * len(labels) for count in Counter(labels).values())


def show(run: dict[str, float]) -> str:
    return ", ".join(f"{name} {run[name]:.4f}" for name in METRICS if name in run)


def records(suffix: str, model: str, runs: list[dict[str, float]], args: argparse.Namespace) -> Iterator[dict]:
    for name, (metric, unit) in METRICS.items():
        if name not in runs[0]:
            continue
        values = [run[name] for run in runs]
        digits = 1 if unit is None else 3
        yield {
            "id": f"fhmm-layers-{name}-{suffix}",
            "model": model,
            "data": "GENIA development text",
            "metric": metric,
            "unit": unit,
            "value": round(statistics.mean(values), digits),
            "spread": {"over": "seeds", "n": len(runs), "min": round(min(values), digits), "max": round(max(values), digits)},
            "reference": None,
            "command": "python crates/experiments/layers.py DIR",
            "commit": args.commit,
            "machine": args.machine,
            "date": datetime.date.today().isoformat(),
            "note": None,
        }


def replace(path: Path, records: list[dict]) -> None:
    ids = {record["id"] for record in records}
    old = path.read_text().splitlines() if path.exists() else []
    lines = [line for line in old if json.loads(line)["id"] not in ids]
    path.write_text("".join(f"{line}\n" for line in [*lines, *(json.dumps(record, ensure_ascii=False) for record in records)]))


if __name__ == "__main__":
    main()
