"""Threads, interrupts, progress, and equality with the program."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pytest

import latens
from conftest import TINY

LONG = latens.Hmm(512, n_clusters=8, epochs=10_000, min_count=2)


@pytest.mark.parametrize("kind", ["ngram", "brown", "hmm", "lds", "rnn", "word2vec"])
def test_models_equal_those_of_the_program(kind: str, sentences, program, tmp_path: Path) -> None:
    text, path = tmp_path / "text.txt", tmp_path / "model"
    text.write_text("\n".join(sentences) + "\n")
    flags = {
        "ngram": ["--order", "3"],
        "brown": ["--n-clusters", "8"],
        "hmm": ["--n-states", "16", "--n-clusters", "4", "--dim", "8", "--epochs", "1"],
        "lds": ["--dim", "6", "--n-iterations", "1"],
        "rnn": ["--dim", "8", "--epochs", "1"],
        "word2vec": ["--dim", "8", "--epochs", "1", "--threads", "1"],
    }
    program("train", kind, text, "--min-count", "2", *flags[kind], "-o", path, "--quiet")
    theirs, ours = latens.open(path), TINY[kind]().fit(sentences)
    assert len(_arrays(ours)) > 100 and _arrays(theirs) == _arrays(ours)
    assert path.read_bytes() == ours.model_.to_bytes()


def test_the_default_vocabulary_of_an_hmm_is_that_of_the_program(sentences, program, tmp_path: Path) -> None:
    text, path = tmp_path / "text.txt", tmp_path / "model"
    text.write_text("\n".join(sentences) + "\n")
    flags = ["--n-states", "16", "--n-clusters", "4", "--dim", "8", "--epochs", "1", "--quiet"]
    hmm = latens.Hmm(16, n_clusters=4, dim=8, epochs=1)
    program("train", "hmm", text, *flags, "-o", path)
    assert path.read_bytes() == hmm.fit(sentences).model_.to_bytes()
    assert np.isfinite(hmm.perplexity(["a word that is not in the text: zyzzogeton"]))
    # A text with unknown words keeps all others, and so does a number.
    program("train", "hmm", text, *flags, "--min-count", "1", "-o", path)
    assert path.read_bytes() == hmm.set_params(min_count=1).fit(sentences).model_.to_bytes()
    kept = hmm.set_params(min_count=None).fit([*sentences, "<unk> zyzzogeton"])
    assert "zyzzogeton" in kept.words_


def test_probabilities_of_tags_are_those_of_the_program(program, tmp_path: Path) -> None:
    X, y = latens.datasets.tagged()
    tagger = latens.Tagger(n_iterations=10).fit(X[:60], y[:60])
    found = tagger.predict_proba(X[60:65])
    assert [rows.shape for rows in found] == [(len(words), len(tagger.classes_)) for words in X[60:65]]
    np.testing.assert_allclose(np.concatenate(found).sum(axis=1), 1, atol=1e-5)
    text, path = tmp_path / "text.txt", tmp_path / "pos.tagger"
    text.write_text("".join(" ".join(words) + "\n" for words in X[60:65]))
    tagger.save(path)
    ran = program("tag", "run", path, text, "--marginals", "--quiet")
    theirs = [line.split() for line in ran.splitlines() if line.strip()]
    ours = [
        (word, tag, float(row[tagger.classes_.index(tag)]))
        for words, tags, rows in zip(X[60:65], tagger.predict(X[60:65]), found)
        for word, tag, row in zip(words, tags, rows)
    ]
    assert [(row[0], row[1]) for row in theirs] == [(word, tag) for word, tag, _ in ours]
    np.testing.assert_allclose([float(row[-1]) for row in theirs], [prob for *_, prob in ours], atol=1e-3)
    assert tagger.predict_proba([]) == []


def test_topics_equal_those_of_the_program(documents, program, tmp_path: Path) -> None:
    text, path, mixtures = tmp_path / "docs.txt", tmp_path / "model", tmp_path / "mixtures.tsv"
    text.write_text("\n".join(documents[0]) + "\n")
    program("train", "lda", text, "--n-topics", "5", "--n-iterations", "20", "-o", path, "--quiet")
    ours = latens.Lda(5, n_iterations=20).fit(documents[0])
    assert _arrays(latens.open(path)) == _arrays(ours)
    program("topics", "infer", path, text, "-o", mixtures, "--quiet")
    rows = [line.split("\t")[-5:] for line in mixtures.read_text().splitlines()[1:]]
    theirs = np.array([[float(x) for x in row] for row in rows[-len(documents[0]) :]])
    np.testing.assert_allclose(ours.transform(documents[0]), theirs, atol=2e-6)


def _arrays(model) -> bytes:
    """The arrays of a model file: what follows the header, whose length comes first."""
    data = model.model_.to_bytes()
    return data[8 + int.from_bytes(data[:8], "little") :]


def test_threads_do_not_change_a_model_and_none_survives(sentences) -> None:
    before = threading.active_count(), _n_threads()
    one = TINY["hmm"]().set_params(n_jobs=1).fit(sentences)
    two = TINY["hmm"]().set_params(n_jobs=2).fit(sentences)
    np.testing.assert_array_equal(one.transmat_, two.transmat_)
    assert threading.active_count() == before[0]
    # Threads of a pool are told to end, and end a moment later: they are waited for here.
    until = time.monotonic() + 20
    while _n_threads() > before[1] and time.monotonic() < until:
        time.sleep(0.01)
    assert _n_threads() <= before[1]


def _n_threads() -> int:
    task = Path("/proc/self/task")
    return len(list(task.iterdir())) if task.exists() else 0


def test_other_python_threads_run_during_a_fit(sentences) -> None:
    ticks = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.005):
            ticks.append(time.monotonic())

    def end(facts: dict) -> None:
        # However slow the machine is, the fit goes on until the other thread has run.
        if len(ticks) > 20:
            raise RuntimeError("enough")

    thread = threading.Thread(target=tick)
    thread.start()
    with pytest.raises(RuntimeError, match="enough"):
        LONG.fit(sentences, callback=end)
    stop.set()
    thread.join()


def test_callbacks_get_facts_and_their_exceptions_stop_the_fit(sentences) -> None:
    seen = []
    latens.Hmm(16, n_clusters=4, dim=8, epochs=3, min_count=2).fit(sentences, callback=seen.append)
    iterations = [facts["iteration"] or facts["done"] for facts in seen if facts["metrics"]]
    assert len(iterations) >= 3
    assert {"phase", "done", "total", "unit", "iteration", "metrics"} == set(seen[0])

    def stop(facts: dict) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        LONG.fit(sentences, callback=stop)


def test_validation_text_selects_the_epoch(sentences, held_out) -> None:
    model = latens.Hmm(16, n_clusters=4, dim=8, epochs=3, min_count=2).fit(sentences, valid=held_out)
    assert model.facts_["valid_perplexity"] == pytest.approx(model.perplexity(held_out), rel=1e-4)


def test_verbose_shows_a_bar(sentences, capsys) -> None:
    TINY["hmm"]().set_params(verbose=True).fit(sentences)
    assert "epoch" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_stops_within_a_second_and_leaves_a_checkpoint(tmp_path: Path, sentences) -> None:
    checkpoint = tmp_path / "hmm.checkpoint"
    script = f"""
import latens, sys
sentences = latens.datasets.sentences("train")[:600]
model = latens.Hmm(64, n_clusters=8, dim=16, epochs=100000, min_count=2, random_state=3)
print("started", flush=True)
model.fit(sentences, checkpoint={str(checkpoint)!r}, callback=lambda facts: print("report", flush=True))
"""
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A build in the background may ignore the signal, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert child.stdout is not None
    lines = iter(child.stdout.readline, "")
    assert any(line.startswith("report") for line in lines)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert checkpoint.exists()
    resumed = []
    with pytest.raises(RuntimeError, match="enough"):
        latens.Hmm(64, n_clusters=8, dim=16, epochs=100000, min_count=2, random_state=3).fit(
            sentences, checkpoint=checkpoint, resume=True, callback=lambda facts: _stop_after(resumed, facts, 2)
        )
    assert resumed[0]["done"] > 0


def _stop_after(seen: list, facts: dict, n: int) -> None:
    seen.append(facts)
    if len(seen) >= n:
        raise RuntimeError("enough")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_can_go_on(models, held_out, tmp_path: Path) -> None:
    hmm, vectors, path = models["hmm"], models["word2vec"], tmp_path / "model"
    vectors.save(path)

    def work() -> list:
        probs = hmm.next_words("the"), hmm.perplexity(held_out), hmm.model_.inside("stationary", 0).tolist()
        return [*probs, vectors.most_similar(vectors.words_[5]), latens.open(path).vectors_.sum(), models["lds"].vectors_.sum()]

    # Threads that this leaves behind would be missing in the other process, which would wait for them.
    expected = work()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if work() == expected else 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("the forked process hangs")


def test_joblib_runs_models_in_processes(models, held_out, tmp_path: Path) -> None:
    model = models["ngram"]
    joblib.dump(model, tmp_path / "model.joblib")
    assert joblib.load(tmp_path / "model.joblib").perplexity(held_out) == model.perplexity(held_out)
    scores = joblib.Parallel(n_jobs=2)(joblib.delayed(model.perplexity)(held_out) for _ in range(2))
    assert scores == [model.perplexity(held_out)] * 2


def test_import_takes_no_other_library() -> None:
    script = """
import sys, latens
heavy = {"numpy", "scipy", "sklearn", "pandas", "dataclasses", "inspect", "json"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
for name in latens.__all__:
    getattr(latens, name)
assert set(latens.__all__) == set(dir(latens))
assert not {"scipy", "sklearn", "pandas"} & set(sys.modules)
"""
    # Without `site`, which may import anything.
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-S", "-c", script], check=True, env={**os.environ, **path})
    with pytest.raises(AttributeError, match="no_such"):
        latens.no_such


def test_views_of_large_models_copy_nothing(tmp_path: Path) -> None:
    model = latens.Word2Vec(64, epochs=1, n_jobs=1).fit([f"w{i} w{i + 1}" for i in range(3000)])
    path = tmp_path / "vectors"
    model.save(path)
    opened = latens.open(path)
    first, second = opened.vectors_, opened.vectors_
    assert first.__array_interface__["data"] == second.__array_interface__["data"]
    # The view keeps its model alive.
    again = pickle.loads(pickle.dumps(opened)).vectors_
    np.testing.assert_array_equal(first, again)


def test_other_interpreters_of_a_process_are_refused() -> None:
    script = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import latens
other = interpreters.create()
try:
    failure = interpreters.run_string(other, "import latens")
except Exception as error:
    failure = error
assert failure is not None and "subinterpreters" in str(failure), failure
interpreters.destroy(other)
assert latens.Ngram(2).fit(["a b", "b a"]).perplexity(["a b"]) > 1
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if "No module named" in done.stderr:
        pytest.skip("this Python has no subinterpreters")
    assert done.returncode == 0, done.stderr


def test_an_interpreter_without_the_lock_is_refused() -> None:
    script = "import sys; sys._is_gil_enabled = lambda: False; import latens"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "ImportError: latens needs the global interpreter lock: start Python with `-X gil=1`" in done.stderr
