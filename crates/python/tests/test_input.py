"""What estimators accept, and what they say of everything else."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import latens
from latens import _latens


def test_every_form_of_the_same_text_gives_the_same_model(sentences, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(sentences) + "\n")
    packed = tmp_path / "text.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    expected = latens.Ngram(3).fit(sentences).model_.to_bytes()
    forms = {
        "tuple": tuple(sentences),
        "generator": (sentence for sentence in sentences),
        "tokens": [sentence.split() for sentence in sentences],
        "array": np.array(sentences),
        "objects": np.array(sentences, dtype=object),
        "pandas": pd.Series(sentences),
        "polars": pl.Series(sentences),
        "path": path,
        "paths": [path],
        "gzip": packed,
    }
    for name, form in forms.items():
        assert latens.Ngram(3).fit(form).model_.to_bytes() == expected, name


def test_preprocessing_is_stored_and_used_again(sentences) -> None:
    model = latens.Ngram(2, lowercase=True, digits="zero").fit(["The year 1987", "the Year 2001"])
    assert {"the", "year", "0000"} <= set(model.words_)
    assert model.score_samples(["THE YEAR 1999"]) == model.score_samples(["the year 0000"])


def test_a_generator_is_read_once_and_its_exception_comes_out() -> None:
    def broken():
        yield "a b c"
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError, match="the source is gone"):
        latens.Ngram(2).fit(broken())


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("a single string", ValueError, "pathlib.Path"),
        (3, TypeError, "expected an iterable"),
        ([1, 2], TypeError, "got an item of type `int`"),
        (["a", None], TypeError, "NoneType"),
        (["a b", ["c", "d"]], ValueError, "mixes strings and lists"),
        ([], ValueError, "no words"),
        (["", " "], ValueError, "no words"),
        ([["a", ""]], ValueError, "token"),
        (["a\0b"], ValueError, "NUL"),
        (Path("no/such/file.txt"), OSError, "no/such/file.txt"),
        (pd.DataFrame({"text": ["a b"]}), ValueError, "select a column"),
        (np.array([["a", "b"]]), ValueError, "one-dimensional"),
    ],
)
def test_bad_text_is_refused_with_a_message(X, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        latens.Ngram(2).fit(X)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (latens.Ngram(0), "`order` must be at least 1"),
        (latens.Hmm(n_states=-1), "`n_states` cannot be -1"),
        (latens.Hmm(constraint="nothing"), "`constraint` cannot be"),
        (latens.Hmm(learning_rate=float("nan")), "`learning_rate` must be a finite number"),
        (latens.Ngram(tokenize="magic"), "magic"),
        (latens.Ngram(n_jobs=0), "`n_jobs` must be"),
        (latens.Hmm(device="tpu"), "`device` must be"),
        (latens.Lds(dim=10**9), "dim"),
    ],
)
def test_bad_parameters_are_refused_with_their_name(estimator, message: str, sentences) -> None:
    with pytest.raises(ValueError, match=message):
        estimator.fit(sentences[:20])


def test_bad_files_are_refused(tmp_path: Path, models) -> None:
    path = tmp_path / "x"
    path.write_text("not a model")
    with pytest.raises(latens.ModelFileError, match="is not a latens model"):
        latens.open(path)
    models["ngram"].save(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(latens.ModelFileError):
        latens.open(path)
    with pytest.raises(OSError, match="no-such-file"):
        latens.open(tmp_path / "no-such-file")
    with pytest.raises(OSError):
        models["ngram"].save(tmp_path / "no" / "folder")


def test_roles_that_a_model_lacks_are_named(models, documents) -> None:
    lda = latens.Lda(2, n_iterations=1).fit(documents[0])
    with pytest.raises(ValueError, match="which has no word vectors"):
        lda.model_.word_vectors()
    with pytest.raises(ValueError, match="does not assign probabilities"):
        lda.model_.next_probs("a")


def test_documents_have_a_subject_and_a_split() -> None:
    texts, subjects = latens.datasets.documents()
    assert len(texts) == len(subjects) == 300
    assert not any("\t" in text for text in texts)
    # Thirty documents per subject, of which three are for validation and three for tests.
    assert {subjects.count(subject) for subject in subjects} == {30}
    test_texts, test_subjects = latens.datasets.documents("test")
    assert {test_subjects.count(subject) for subject in subjects} == {3}
    assert set(test_texts) < set(texts) and not set(test_texts) & set(latens.datasets.documents("train")[0])


def test_odd_arguments_of_the_extension_are_errors(models, documents) -> None:
    """A panic of Rust would be a `PanicException`, which is not an `Exception`."""
    fitted = {**models, "lda": latens.Lda(2, n_iterations=1).fit(documents[0])}
    huge = 2**63
    calls = [
        ("sample", (0, 0, 0)), ("sample", (1, 3, huge)), ("sample", (-1, 3, 1)), ("next_probs", ("",)), ("next_probs", ("\0 \ud7ff",)),
        ("nearest", ([], 3, [])), ("nearest", ([float("nan")] * 8, 3, ["no such word"])), ("nearest", ([0.0] * 8, huge, [])),
        ("nearest", ([1e38] * 6, 2**62, [])), ("vector", ("",)), ("inside", ("transition", huge)), ("inside", ("", -1)),
        ("encode", ("", iter([]), [], None)), ("encode", ("state", iter([[]]), [], 0)), ("encode", (None, iter([""]), [], 1)),
        ("top_words", (huge, 3)), ("top_words", (0, huge)), ("layer_words", (0, 99, 1)), ("layer_words", (0, 0, 2**40)),
        ("mixtures", (iter(["", "\x85"]), [], None)), ("mixtures_of_ids", (np.array([0, 2]), np.array([0, 99], np.uint32), None)),
        ("mixtures_of_ids", (np.array([2, 0]), np.array([0, 1], np.uint32), None)), ("completion", (iter(["a"]), [], 1)),
        ("mixtures_of_ids", (np.array([], int), np.array([], np.uint32), None)), ("completion_of_ids", (np.array([1]), np.array([1], np.uint32), 1)),
        ("score_tokens", (iter([]), [], None)), ("perplexity", (iter([[""]]), [], 10**6)), ("tag", ([[]], None)), ("tag_probs", ([[""]], None)),
        ("save", ("",)), ("word_topic_counts", ()),
    ]
    n_errors = 0
    for kind, estimator in fitted.items():
        for name, args in calls:
            # Iterators are read once.
            fresh = [iter(["a b", ""]) if hasattr(arg, "__next__") else arg for arg in args]
            try:
                getattr(estimator.model_, name)(*fresh)
            except Exception as error:
                assert str(error) or isinstance(error, KeyError), (kind, name, args)
                n_errors += 1
    assert n_errors > 50
    with pytest.raises(latens.ModelFileError):
        _latens.from_bytes(b"")
    with pytest.raises(ValueError, match="`<unk>`|words"):
        _latens.vectors_from_arrays([], [], np.zeros((0, 2), np.float32))
