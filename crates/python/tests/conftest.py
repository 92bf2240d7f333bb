"""What several tests share: the embedded corpus, small estimators of every kind, and the program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import latens

TINY = {
    "brown": lambda: latens.Brown(8, min_count=2),
    "ff": lambda: latens.FeedForward(8, epochs=1, min_count=2),
    "fhmm": lambda: latens.Fhmm(2, 3, epochs=1),
    "hmm": lambda: latens.Hmm(16, n_clusters=4, dim=8, epochs=1, min_count=2),
    "lds": lambda: latens.Lds(6, n_iterations=1, min_count=2),
    "lstm": lambda: latens.Lstm(8, n_layers=1, epochs=1, min_count=2),
    "ngram": lambda: latens.Ngram(3, min_count=2),
    "rnn": lambda: latens.Rnn(8, epochs=1, min_count=2),
    "word2vec": lambda: latens.Word2Vec(8, epochs=1, n_jobs=1, min_count=2),
}
LANGUAGE_MODELS = ["ff", "hmm", "lstm", "ngram", "rnn"]
ENCODERS = ["brown", "fhmm", "hmm", "lds", "word2vec"]


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    return latens.datasets.sentences("train")[:600]


@pytest.fixture(scope="session")
def held_out() -> list[str]:
    return latens.datasets.sentences("valid")[:50]


@pytest.fixture(scope="session")
def documents() -> tuple[list[str], list[str]]:
    return latens.datasets.documents()


@pytest.fixture(scope="session")
def models(sentences: list[str]) -> dict[str, latens.Hmm]:
    return {kind: make().fit(sentences) for kind, make in TINY.items()}


@pytest.fixture(scope="session")
def program():
    """Runs the program `latens`: that of LATENS_PROGRAM, or the one that was installed with the package."""
    path = os.environ.get("LATENS_PROGRAM") or shutil.which("latens", path=sysconfig.get_path("scripts"))
    if path is None:
        pytest.skip("the program `latens` is not installed; set LATENS_PROGRAM to its path")

    def run(*args: str | Path) -> str:
        done = subprocess.run([path, *map(str, args)], check=True, capture_output=True, text=True)
        return done.stdout

    return run
