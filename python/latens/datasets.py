"""The small corpus that comes with latens, for examples and tests."""

from __future__ import annotations

from typing import Literal

from latens import _latens

__all__ = ["documents", "sentences", "tagged"]


def sentences(split: Literal["train", "valid", "test"] = "train") -> list[str]:
    """Sentences of the embedded corpus, as strings of words separated by spaces."""
    return _latens.embedded_text(split).splitlines()


def documents(split: Literal["train", "valid", "test"] | None = None) -> tuple[list[str], list[str]]:
    """Documents of the embedded corpus and their subjects, of one split or of all."""
    rows = [line.split("\t", 2) for line in _latens.embedded_text("docs").splitlines() if line]
    rows = [row for row in rows if split in (None, row[1])]
    return [text for _, _, text in rows], [subject for subject, _, _ in rows]


def tagged() -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of the embedded corpus as lists of words, and the part of speech of each word."""
    words: list[list[str]] = [[]]
    tags: list[list[str]] = [[]]
    for line in _latens.embedded_text("tagged").splitlines():
        cells = line.split()
        if len(cells) >= 2:
            words[-1].append(cells[0])
            tags[-1].append(cells[1])
        elif words[-1]:
            words.append([])
            tags.append([])
    keep = [i for i, sentence in enumerate(words) if sentence]
    return [words[i] for i in keep], [tags[i] for i in keep]
