"""A browser, and a server with models that the program trains on the embedded corpus.

Needs Chromium (`apt install chromium`) and `pip install playwright pytest axe-core-python`; `LATENS_PROGRAM` names the program.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from playwright.sync_api import sync_playwright

PROGRAM = os.environ.get("LATENS_PROGRAM", "latens")
SCREENSHOTS = os.environ.get("LATENS_SCREENSHOTS")


def latens(*arguments, cwd):
    """Runs the program and returns its JSON."""
    ran = subprocess.run([PROGRAM, *arguments, "--json"], cwd=cwd, check=True, capture_output=True)
    return json.loads(ran.stdout)


def explore(*arguments, cwd, **options):
    """Starts the explorer. Ctrl-C ends it even where this process ignores the signal, as in the background of a script."""
    command = [PROGRAM, "explore", *arguments, "--no-browser"]

    def heed_interrupts():
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True, preexec_fn=heed_interrupts, **options)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The models of the demo, another topic model, a tagger, and the log of a run."""
    folder = tmp_path_factory.mktemp("models")
    # A folder of an earlier run, so that this does not train again.
    kept = os.environ.get("LATENS_BROWSER_MODELS")
    if kept and pathlib.Path(kept, "other.lda").exists():
        return pathlib.Path(kept)
    if kept:
        folder = pathlib.Path(kept)
    latens("demo", "-o", ".", cwd=folder)
    reading = ["--fields", "label,split,text", "--tokenize", "words", "--lowercase"]
    topics = ["--n-topics", "8", "--n-iterations", "40", "--log", "run.jsonl"]
    latens("tag", "train", "train.conll", "--column", "2", "--n-iterations", "15", "-o", "demo.tagger", cwd=folder)
    latens("train", "lda", "documents.tsv", *reading, *topics, "-o", "other.lda", cwd=folder)
    network = ["--dim", "8", "--n-layers", "1", "--epochs", "1", "--min-count", "2"]
    latens("train", "lstm", "train.txt", *network, "-o", "demo.lstm", cwd=folder)
    shutil.copy(folder / "run.jsonl", folder / "second.jsonl")
    return folder


@pytest.fixture(scope="session")
def models():
    """The models in the order of the page."""
    kinds = ["lda", "hmm", "fhmm", "ngram", "brown", "word2vec", "lds", "tagger"]
    return [f"demo.{kind}" for kind in kinds] + ["other.lda", "run.jsonl", "second.jsonl", "demo.glda", "demo.lstm"]


@pytest.fixture(scope="session")
def url(folder, models):
    documents = ["--documents", "documents.tsv", "--fields", "label,split,text", "--by", "label"]
    server = explore(*models, *documents, cwd=folder)
    yield server.stdout.readline().strip()
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=10) == 0


@pytest.fixture(scope="session")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        # Tests often run as root in containers, where the sandbox of Chromium does not work.
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


class View:
    """A page that fails on errors of its scripts and on what its policy blocks."""

    def __init__(self, page, url, models):
        self.page, self.url, self.models, self.problems = page, url, models, []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.problems.append(message.text))

    def open(self, model, panel, **route):
        parts = {"model": self.models.index(model), "panel": panel, **route}
        self.page.goto("about:blank")
        self.page.goto(self.url + "#" + "&".join(f"{name}={value}" for name, value in parts.items()))
        return self.ready()

    def ready(self):
        self.page.wait_for_selector("main[aria-busy=false]")
        return self.page

    def rows(self, caption):
        """The cells of the table with this caption, also if it is folded."""
        table = self.page.locator("table", has=self.page.locator("caption", has_text=caption)).first
        return [[cell.text_content() for cell in row.locator("td, th").all()] for row in table.locator("tbody tr").all()]

    def shot(self, name):
        if SCREENSHOTS:
            self.page.wait_for_timeout(200)
            self.page.screenshot(path=pathlib.Path(SCREENSHOTS, f"{name}.png"))


@pytest.fixture
def view(browser, url, models):
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    view = View(context.new_page(), url, models)
    yield view
    context.close()
    assert view.problems == []
