"""The form of the page: accessibility, themes, small screens."""

import pytest

PANELS = [
    ("demo.lda", "topics"), ("demo.lda", "documents"), ("demo.lda", "trend"), ("demo.lda", "compare"), ("demo.lda", "about"),
    ("demo.hmm", "states"), ("demo.hmm", "sentence"), ("demo.hmm", "samples"), ("demo.fhmm", "layers"),
    ("demo.ngram", "text"), ("demo.ngram", "samples"), ("demo.brown", "tree"), ("demo.word2vec", "words"), ("demo.word2vec", "context"), ("demo.fhmm", "sentence"), ("demo.fhmm", "samples"),
    ("demo.lds", "pairs"), ("demo.lds", "context"), ("demo.tagger", "tags"), ("run.jsonl", "log"),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violation(view, theme):
    axe = pytest.importorskip("axe_core_python.sync_playwright").Axe()
    view.page.emulate_media(color_scheme=theme)
    found = {}
    # Themes differ in their colors only, which a few views have all of.
    for model, panel in PANELS if theme == "light" else [PANELS[0], PANELS[6], PANELS[18]]:
        page = view.open(model, panel)
        for violation in axe.run(page)["violations"]:
            targets = [node["html"][:160] for node in violation["nodes"]][:3]
            found.setdefault(violation["id"], []).append((model, panel, targets))
    assert found == {}
    view.open("demo.lda", "topics")
    view.shot(f"topics-{theme}")


def test_a_phone_shows_everything_without_scrolling_sideways(view):
    view.page.set_viewport_size({"width": 390, "height": 800})
    for model, panel in PANELS:
        page = view.open(model, panel)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, (model, panel, width)
    view.open("demo.lda", "topics")
    view.shot("phone")


def test_the_theme_is_kept(view):
    page = view.open("demo.lda", "topics")
    page.locator("#theme").select_option("dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    view.ready()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.locator("#theme").select_option("light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


def test_the_keyboard_reaches_the_content(view):
    page = view.open("demo.lda", "topics")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
