"""Memory: what must not be copied."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import latens

#: Opens a model with 1 GB of vectors, uses them, and prints how much memory of its own the process needed, in MB.
SCRIPT = """
import sys
import latens, numpy

def own():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:")) / 1000

before = own()
model = latens.open(sys.argv[1])
vectors = model.vectors_
assert vectors.nbytes > 1e9 and not vectors.flags.owndata and not vectors.flags.writeable
parts = [vectors[i : i + 1000].sum() for i in range(0, len(vectors), 1000)]
assert abs(sum(float(part) for part in parts) - float(sys.argv[2])) < 1
del model
assert vectors[-1, -1] == vectors[-1, 0]
print(own() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the memory figures of Linux")
def test_an_array_of_a_gigabyte_is_a_view_of_the_file(tmp_path: Path) -> None:
    n_words, dim = 4_100, 62_000
    # One value per row, so that the sum is known: 0 + 1 + … of the words.
    rows = np.broadcast_to((np.arange(n_words, dtype=np.float32) % 7)[:, None] / dim, (n_words, dim))
    path = tmp_path / "large.vectors"
    words = ["<unk>", "<eos>", *(f"w{i}" for i in range(2, n_words))]
    latens.Vectors.from_arrays(words, rows).save(path)
    expected = sum(i % 7 for i in range(n_words))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, path, str(expected)], capture_output=True, text=True, check=False
    )
    path.unlink()
    assert done.returncode == 0, done.stderr
    # NumPy itself takes 20 MB.
    assert float(done.stdout) < 100


def test_views_are_read_only_and_keep_their_model_alive(models) -> None:
    view = latens.Vectors.from_arrays(["a", "b"], np.eye(2)).vectors_
    # The model is gone, but not its memory.
    np.testing.assert_array_equal(view[2:], np.eye(2))
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.flags.writeable = True


#: Fits a model to a generator of 150 MB of text, and prints by how much the memory of the process grew, in MB.
GENERATOR = """
import resource
import latens

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000

words = [f"w{i}" + 95 * "x" for i in range(50)]

def sentences():
    for i in range(30_000):
        yield " ".join(words[(7 * i + j) % 50] for j in range(50))

latens.Ngram(2, n_jobs=1).fit(["a b", "b c"])
before = peak()
model = latens.Ngram(2, n_jobs=1).fit(sentences())
assert len(model.words_) == 52
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems measure in other units")
def test_a_generator_is_read_in_bounded_memory() -> None:
    done = subprocess.run([sys.executable, "-c", GENERATOR], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # 1.5 million tokens, of which ids are kept, and one block of sentences at a time.
    assert float(done.stdout) < 75


def test_tokens_become_no_python_objects(models, held_out) -> None:
    """`encode` gives arrays, whose number does not depend on the number of words."""
    import gc

    def n_objects(text: list[str]) -> int:
        gc.collect()
        before = len(gc.get_objects())
        matrix = models["word2vec"].encode(text)
        found = len(gc.get_objects()) - before
        assert matrix.shape[0] == sum(len(line.split()) for line in text)
        return found

    n_objects(held_out)  # Imports what it needs.
    assert n_objects(held_out * 40) <= n_objects(held_out[:2]) + 50
