"""Generates input files of commands in results/*.jsonl, from the corpora of docs/data.md or at random.

    python crates/experiments/texts.py DIR NAME …

DIR has the layout of docs/data.md. Files are written to the current folder. Each NAME is one of:

    news.tsv               20 newsgroups: words of three letters or more, without function words
    kept.txt               the sentences that `latens train fhmm --keep-sentences 112824` keeps
    titles.tsv             20 newsgroups: subjects without `Re:`, each once, for the first post that has it
    letters.txt            words of two letters or more, in lower case, of the training documents of 20 newsgroups, of
                           Wikipedia, newswire and WikiText-2: a document or sentence per line
    zipf2m.txt             1.9 million words of Zipf's law, 31 per line, of 50,000 types
    zipf60m.txt            60 million words of Zipf's law, 20 per line, of 1.19 million types
    big.txt                2 million words of Zipf's law, 200 per line, of 100,000 types, all of which occur; with
                           vectors of 300 dimensions in 200 clusters, `big.npy` and `big.words` (needs numpy)
    english-1g.txt         1 GB of resampled English
    english-100m.txt       100 MB of resampled English
    english-held-out.txt   10 MB of resampled English, with another seed
"""

from __future__ import annotations

import collections
import math
import random
import re
import sys
import unicodedata
from array import array
from collections.abc import Callable
from pathlib import Path

NEWS = "unlabeled-news/reuters21578.sents.txt"
MEDLINE = "bio-unlabeled/medline.sents.txt"
TRIALS = "bio-unlabeled/trials.sents.txt"
WIKI = "unlabeled-wiki/enwiki.sents.txt"
WIKITEXT = "wikitext-2/wiki.train.tokens"
ENGLISH = [NEWS, WIKI, WIKITEXT, MEDLINE, TRIALS]


def news(data: Path, path: str) -> None:
    """The documents of crates/experiments/src/corpora/topics.rs, which has the list of function words."""
    source = Path(__file__).with_name("src") / "corpora" / "topics.rs"
    found = re.search(r'STOP_WORDS: &str = "([^"]*)"', source.read_text())
    assert found, f"{source} has no list of stop words"
    stop_words = set(found[1].replace("\\\n", " ").split())
    with (data / "20news" / "20news.tsv").open() as lines, open(path, "w") as file:
        for line in lines:
            label, split, text = line.split("\t", 2)
            words = (word for word in re.findall("[a-z]+", text.lower()) if len(word) > 2)
            file.write(f"{label}\t{split}\t{' '.join(word for word in words if word not in stop_words)}\n")


def kept(data: Path, path: str) -> None:
    """The sentences with the highest mean logarithm of the frequencies of their words, in the order of the texts."""
    names = [NEWS, MEDLINE, TRIALS]
    lines = [unicodedata.normalize("NFC", line).split() for name in names for line in (data / name).open()]
    counts = collections.Counter(word for line in lines for word in line)
    scores = [sum(math.log(counts[word]) for word in line) / max(len(line), 1) for line in lines]
    best = sorted(range(len(lines)), key=lambda i: -scores[i])[:112_824]
    with open(path, "w") as file:
        file.writelines(" ".join(lines[i]) + "\n" for i in sorted(best))


def titles(data: Path, path: str) -> None:
    """A title that is in several groups or in both splits also counts once: no title of the test split is in the training split."""
    seen = set()
    with open(path, "w") as file:
        for split in ("train", "test"):
            for group in sorted(path for path in (data / "20news" / f"20news-bydate-{split}").iterdir() if path.is_dir()):
                for post in sorted(group.iterdir(), key=lambda path: int(path.name)):
                    title = subject(post.read_text(encoding="latin-1"))
                    if title and title.lower() not in seen:
                        seen.add(title.lower())
                        file.write(f"{group.name}\t{split}\t{title}\n")


def subject(post: str) -> str:
    """The subject in the header of a post, without the marks of replies and with single spaces."""
    header = post.split("\n\n", 1)[0]
    found = re.search(r"^Subject:(.*(?:\n[ \t].*)*)", header, re.MULTILINE)
    words = " ".join(found[1].split()) if found else ""
    return re.sub(r"^(?:re(?:\^\d+)?\s*:\s*)+", "", words, flags=re.IGNORECASE)


def letters(data: Path, path: str) -> None:
    with (data / "20news" / "20news.tsv").open(errors="replace") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    texts = [row[2] for row in rows if len(row) == 3 and row[1] == "train"]
    for name in (WIKI, NEWS, WIKITEXT):
        with (data / name).open() as lines:
            texts.extend(lines)
    with open(path, "w") as file:
        for text in texts:
            if words := re.findall("[a-z]{2,}", text.lower()):
                file.write(" ".join(words) + "\n")


def zipf(n_lines: int, per_line: int, n_types: int, all_types: bool = False) -> Callable[[Path, str], None]:
    """Words `w0`, `w1` … drawn from a continuous Zipf law by its inverse. With `all_types`, each type occurs once first."""

    def write(_: Path, path: str) -> None:
        rng = random.Random(1)
        with open(path, "w") as file:
            for line in range(n_lines):
                first = line * per_line if all_types else n_types
                words = (i if i < n_types else int(n_types ** rng.random()) - 1 for i in range(first, first + per_line))
                file.write(" ".join(f"w{word}" for word in words) + "\n")

    return write


def big(data: Path, path: str) -> None:
    import numpy

    n_types, dim, n_clusters = 100_000, 300, 200
    zipf(10_000, 200, n_types, all_types=True)(data, path)
    with open("big.words", "w") as file:
        file.writelines(f"w{word}\n" for word in range(n_types))
    rng = numpy.random.default_rng(2)
    centers = rng.normal(0, 0.5, (n_clusters, dim))
    vectors = centers[rng.integers(n_clusters, size=n_types)] + rng.normal(0, 0.5, (n_types, dim))
    numpy.save("big.npy", vectors.astype(numpy.float32))


def english(n_bytes: int, seed: int) -> Callable[[Path, str], None]:
    """Newswire, Wikipedia and biomedical sentences whose words are resampled: after each token, the text continues after
    a random occurrence of the same word with probability 0.3, and at a random position with probability 0.07."""

    def write(data: Path, path: str) -> None:
        ids: dict[str, int] = {}
        stream = array("i")
        for name in ENGLISH:
            with (data / name).open() as lines:
                for line in lines:
                    stream.extend(ids.setdefault(word, len(ids)) for word in [*line.split(), "\n"])
        words, places = list(ids), [array("i") for _ in ids]
        for i, word_id in enumerate(stream):
            places[word_id].append(i)
        rng, at, written = random.Random(seed), 0, 0
        with open(path, "w") as file:
            while written < n_bytes:
                word = words[stream[at]]
                written += file.write(word if word == "\n" else word + " ")
                jump = rng.random()
                if jump < 0.3:
                    at = rng.choice(places[stream[at]])
                elif jump < 0.37:
                    at = rng.randrange(len(stream))
                at = (at + 1) % len(stream)

    return write


TEXTS: dict[str, Callable[[Path, str], None]] = {
    "news.tsv": news,
    "kept.txt": kept,
    "titles.tsv": titles,
    "letters.txt": letters,
    "zipf2m.txt": zipf(62_500, 31, 50_000),
    "zipf60m.txt": zipf(3_000_000, 20, 1_194_000),
    "big.txt": big,
    "english-1g.txt": english(1_000_000_000, 1),
    "english-100m.txt": english(100_000_000, 1),
    "english-held-out.txt": english(10_000_000, 2),
}


def main() -> None:
    if len(sys.argv) < 3 or any(name not in TEXTS for name in sys.argv[2:]):
        sys.exit(__doc__)
    for name in sys.argv[2:]:
        TEXTS[name](Path(sys.argv[1]), name)


if __name__ == "__main__":
    main()
