"""The program `latens` that the package brings: `python -m latens` is what its entry point runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import latens

OURS = [sys.executable, "-m", "latens"]


@pytest.fixture(scope="module")
def theirs() -> str:
    path = os.environ.get("LATENS_PROGRAM")
    if path is None:
        pytest.skip("set LATENS_PROGRAM to the path of the program")
    return path


def run(command: list[str], *args: str | bytes | Path, **options) -> subprocess.CompletedProcess:
    return subprocess.run([*command, *args], capture_output=True, timeout=120, **options)


@pytest.mark.parametrize(
    "args",
    [
        ["--version"],
        ["--help"],
        ["train", "hmm", "--help"],
        [],
        ["no-such-command"],
        ["train", "lda", "no-such-file.txt", "-o", "x.lda"],
        ["inspect", b"name-\xff-not-utf-8"],
        ["inspect", "bell-\a-and-\x1b[31m-color"],
    ],
)
def test_output_and_status_are_those_of_the_program(args: list, theirs: str, tmp_path: Path) -> None:
    options = {"cwd": tmp_path, "env": environment()}
    expected, found = run([theirs], *args, **options), run(OURS, *args, **options)
    assert (found.returncode, found.stdout, found.stderr) == (expected.returncode, expected.stdout, expected.stderr)
    assert expected.stdout or expected.stderr


def environment() -> dict[str, str]:
    """The environment of a process in another folder, where a relative PYTHONPATH finds nothing."""
    return {**os.environ, "PYTHONPATH": str(Path(latens.__file__).parents[1])}


def test_it_trains_models_that_the_package_opens(sentences, tmp_path: Path) -> None:
    text, path = tmp_path / "text.txt", tmp_path / "small.ngram"
    text.write_text("\n".join(sentences) + "\n")
    done = run(OURS, "train", "ngram", text, "--order", "3", "-o", path, "--json", "--threads", "2")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert latens.open(path).words_ == latens.Ngram(3).fit(sentences).words_


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of Unix")
def test_a_closed_pipe_is_success(sentences, tmp_path: Path) -> None:
    path = tmp_path / "small.ngram"
    latens.Ngram(3).fit(sentences).save(path)
    child = subprocess.Popen(
        [*OURS, "sample", str(path), "-n", "100000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None and child.stderr is not None
    assert child.stdout.readline()
    child.stdout.close()
    errors = child.stderr.read()
    assert (child.wait(60), errors) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize("stage", ["training", "reading"])
def test_ctrl_c_is_that_of_the_program(stage: str, sentences, tmp_path: Path) -> None:
    text, path = tmp_path / "text.txt", tmp_path / "m.hmm"
    text.write_text("\n".join(sentences) + "\n")
    # A named pipe without a writer keeps the program reading.
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    flags = ["--n-states", "64", "--n-clusters", "8", "--dim", "16", "--epochs", "100000", "--log", str(tmp_path / "log")]
    source = text if stage == "training" else pipe
    child = subprocess.Popen(
        [*OURS, "train", "hmm", str(source), "-o", str(path), *flags],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert child.stderr is not None
    if stage == "training":
        wait_for(tmp_path / "log", child)
    else:
        # Opening for writing waits until the program has opened the pipe.
        writer = os.open(pipe, os.O_WRONLY)
        os.write(writer, b"one line\n")
    child.send_signal(signal.SIGINT)
    errors = child.communicate(timeout=60)[1].decode()
    if stage == "training":
        assert child.returncode == 2 and "interrupted" in errors
        assert Path(f"{path}.checkpoint").exists()
    else:
        os.close(writer)
        assert child.returncode == -signal.SIGINT
    assert "Traceback" not in errors
    assert not Path(f"{path}.lock").exists()


def wait_for(log: Path, child: subprocess.Popen) -> None:
    """Waits for the first line of a log."""
    import time

    for _ in range(1200):
        if child.poll() is not None or log.exists() and log.stat().st_size > 0:
            return
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform == "win32", reason="file descriptors of Unix")
def test_closed_standard_streams_do_no_harm(tmp_path: Path, sentences) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(sentences) + "\n")
    command = " ".join([sys.executable, "-m latens train ngram", str(text), "--order 2 -o", str(tmp_path / "m"), ">&- 2>&-"])
    assert subprocess.run(command, shell=True, timeout=120).returncode == 0
    assert latens.open(tmp_path / "m").order == 2
