"""Every view in a real browser, with its numbers compared with those of other commands."""

import csv
import io
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request

import pytest
from conftest import PROGRAM, explore, latens

SENTENCE = "The ship sails over the sea"


def figure(text):
    return float(text.replace(",", "").replace("%", "").replace("−", "-"))


def close(shown, exact, digits=4):
    """The page shows about four digits."""
    assert figure(shown) == pytest.approx(exact, rel=10 ** (1 - digits), abs=1e-12)


def test_topics_have_the_words_of_topics_show(view, folder):
    page = view.open("demo.lda", "topics", topic=3)
    expected = latens("topics", "show", "demo.lda", cwd=folder)["topics"]
    listed = {row[0]: row for row in view.rows("All topics")}
    assert len(listed) == len(expected)
    for topic in expected:
        shown = listed[str(topic["topic"])]
        close(shown[1], 100 * topic["prevalence"], digits=2)
        assert shown[2].split() == [word["word"] for word in topic["words"]][:8]
    assert page.locator("svg .node").count() == len(expected)
    view.shot("topics")
    # λ = 1 is the order of probability.
    page.locator("#lambda").fill("1")
    page.wait_for_function("() => location.hash.includes('lambda=1')")
    page.wait_for_timeout(500)
    words = view.rows("Words of topic 3 by relevance")
    for shown, word in zip(words, expected[3]["words"]):
        close(shown[3], word["weight"])


def test_a_topic_is_selected_with_mouse_and_keyboard(view):
    page = view.open("demo.lda", "topics", topic=3)
    page.locator("svg .node", has=page.locator("text", has_text="0")).first.click()
    page.wait_for_function("() => location.hash.includes('topic=0')")
    page.locator("h2", has_text="Topic 0").wait_for()
    focused = page.locator("svg .node[tabindex='0']")
    focused.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function("() => !location.hash.includes('topic=0')")
    page.go_back()
    page.locator("h2", has_text="Topic 0").wait_for()


def test_search_marks_topics_on_the_map(view):
    page = view.open("demo.lda", "topics")
    page.locator("#topic-search").fill("ship")
    page.locator("table caption", has_text="found").wait_for(state="attached")
    assert page.locator("svg .node.faded").count() > 0
    assert view.rows("found")[0][0].startswith("ship")


def test_a_typed_document_is_colored(view, folder):
    page = view.open("demo.lda", "documents")
    page.locator("#document-text").fill("The ship sails with the wind and the cook stirs soup in a pan")
    page.get_by_role("button", name="Color by topic").click()
    page.locator(".token.topic").first.wait_for()
    topics = page.locator(".token.topic").evaluate_all("nodes => nodes.map(node => node.dataset.topic)")
    assert len(set(topics)) >= 2
    view.shot("document")
    page = view.open("demo.lda", "topics", topic=0)
    page.locator("table", has=page.locator("caption", has_text="Documents with this topic")).locator("a").first.click()
    page.locator("h2", has_text="Document ").first.wait_for()


def test_prevalence_is_that_of_topics_trend(view, folder):
    view.open("demo.lda", "trend", topics=2)
    reading = ["documents.tsv", "--fields", "label,split,text", "--by", "label", "--topics", "2"]
    expected = latens("topics", "trend", "demo.lda", *reading, cwd=folder)["rows"]
    shown = view.rows("Prevalence by label")
    assert [row[0] for row in shown] == [row["value"] for row in expected]
    for row, exact in zip(shown, expected):
        close(row[2], exact["prevalence"])
    view.shot("prevalence")


def test_topics_of_two_models_are_compared(view):
    page = view.open("demo.lda", "compare")
    assert len(view.rows("Compare")) == 8
    page.get_by_text("Mean similarity").wait_for()
    view.shot("compare")


def test_states_and_transitions_of_a_hidden_markov_model(view):
    page = view.open("demo.hmm", "states")
    first = view.rows("States")[0]
    assert page.locator("h2", has_text=f"State {first[0]}").count() == 1
    view.shot("states")
    page.locator("svg .node").last.click()
    page.wait_for_function("() => location.hash.includes('state=')")
    page.locator("#state-search").fill("ship")
    page.locator("table caption", has_text="ship").wait_for(state="attached")


def test_surprisal_of_a_sentence_is_that_of_score(view, folder):
    (folder / "sentence.txt").write_text(SENTENCE + "\n")
    for model, panel in [("demo.hmm", "sentence"), ("demo.ngram", "text")]:
        page = view.open(model, panel, text=SENTENCE)
        page.locator(".token.bits").first.wait_for()
        bits = page.locator(".token.bits").evaluate_all("nodes => nodes.map(node => Number(node.dataset.bits))")
        scored = latens("score", model, "sentence.txt", "--per", "token", cwd=folder)["rows"]
        assert bits == pytest.approx([row["bits"] for row in scored][: len(bits)], rel=1e-3)
        expected = latens("perplexity", model, "sentence.txt", cwd=folder)["perplexity"]
        close(page.locator("#perplexity").text_content().split()[-1], expected, digits=3)
        view.shot(f"{panel}")


def test_typing_changes_the_posterior(view):
    page = view.open("demo.hmm", "sentence", text="The ship")
    assert page.locator("svg .cell.path").count() == 2
    page.locator("#sentence").fill("The ship sails")
    page.wait_for_function("() => document.querySelectorAll('svg .cell.path').length === 3")
    assert "sails" in page.evaluate("decodeURIComponent(location.hash)")
    page.locator("#sentence").fill("x " * 400)
    page.locator("[role=alert]").wait_for()
    # The browser also reports the answer to its console.
    view.problems.clear()


def test_layers_of_a_factorial_model(view):
    view.open("demo.fhmm", "layers")
    assert view.rows("Layer 0") and view.rows("Layer 2")
    view.shot("layers")
    page = view.open("demo.fhmm", "sentence", text=SENTENCE)
    assert page.locator("svg .cell.path").count() == 3 * 6


def test_samples_are_shown_as_they_are_drawn(view):
    asked = []
    view.page.on("request", lambda request: request.url.endswith("api/query") and asked.append(request.post_data_json))
    page = view.open("demo.ngram", "samples")
    page.locator("ol.samples li").nth(4).wait_for()
    # One question per sentence, each after the one before.
    assert [query["args"]["first"] for query in asked if query["view"] == "sample"] == list(range(5))
    before = page.locator("ol.samples").text_content()
    page.locator("#prompt").fill("the ship")
    page.get_by_role("button", name="Draw again").click()
    page.locator("ol.samples b").nth(4).wait_for()
    assert page.locator("ol.samples").text_content() != before
    page = view.open("demo.hmm", "samples")
    # Word by word: the first ones are there before the last.
    page.wait_for_function("() => { const n = document.querySelectorAll('.token').length; return n > 0 && n < 40; }")
    page.locator(".token").nth(40).wait_for()
    page.wait_for_timeout(500)
    view.shot("samples")
    page = view.open("demo.fhmm", "samples")
    page.locator(".token").nth(20).wait_for()


def test_samples_come_at_once_for_those_who_ask_for_less_motion(view):
    view.page.emulate_media(reduced_motion="reduce")
    page = view.open("demo.hmm", "samples")
    assert page.locator(".token").count() > 40


def test_neighbors_are_those_of_nearest(view, folder):
    for model in ["demo.word2vec", "demo.lds"]:
        page = view.open(model, "words", word="ship")
        expected = latens("nearest", model, "ship", "-n", "20", cwd=folder)["neighbours"][0]["nearest"]
        words = page.locator("svg[aria-label*='Neighbors'] .bar title").all_text_contents()
        assert [text.split(":")[0] for text in words] == [one["word"] for one in expected]
        close(words[0].split(": ")[1], expected[0]["similarity"])
    view.shot("words")
    for name, word in zip("abc", ["ship", "sea", "train"]):
        page.locator(f"#analogy-{name}").fill(word)
    page.get_by_role("button", name="Show").last.click()
    page.get_by_text("ship is to sea as train is to …").first.wait_for()
    expected = latens("nearest", "demo.lds", "ship", "sea", "train", "--analogy", cwd=folder)["neighbours"][0]["nearest"]
    assert view.rows("ship is to sea")[0][0] == expected[0]["word"]


def test_the_map_by_tsne_replaces_its_progress(view):
    words = "svg[aria-label='Map of words'] .word"
    place = "nodes => nodes.map(node => [node.querySelector('title').textContent, node.querySelector('circle').getAttribute('cx')])"
    page = view.open("demo.word2vec", "words", word="ship")
    before = dict(page.locator(words).evaluate_all(place))
    page.locator("#projection").select_option("tsne")
    page.wait_for_function("() => location.hash.includes('projection=tsne')")
    page.get_by_text("placed by t-SNE").wait_for()
    page.locator(words).first.wait_for(timeout=120_000)
    after = dict(page.locator(words).evaluate_all(place))
    assert len(before) > 100 and before.keys() == after.keys() and before != after
    assert page.locator("svg .word.selected title").text_content() == "ship"
    assert page.locator("#map-progress").count() == 0
    view.shot("tsne")
    # The word and the projection stay in the address.
    page.locator("#word").fill("sea")
    page.get_by_role("button", name="Show").first.click()
    page.locator("h2", has_text="Neighbors of “sea”").wait_for()
    assert page.locator("#projection").input_value() == "tsne"


def test_transitions_of_a_linear_dynamical_system(view):
    view.open("demo.lds", "pairs")
    strengths = [figure(row[0]) for row in view.rows("Singular vectors of the transition matrix")]
    assert strengths == sorted(strengths, reverse=True)
    view.shot("transitions")
    page = view.open("demo.lds", "context", text=SENTENCE)
    assert len(view.rows("Neighbors in this sentence")) == 6
    assert page.locator("svg .bar").count() == 15
    view.shot("context")


def test_a_sentence_has_the_mean_of_its_vectors(view, folder):
    page = view.open("demo.word2vec", "context", text="ship sea zyzzogeton")
    rows = {row[0]: row[1] for row in view.rows("Words of the sentence")}
    assert list(rows) == ["ship", "sea", "zyzzogeton"] and rows["zyzzogeton"] == "no vector"
    # The mean by the vectors that another command writes.
    ran = [PROGRAM, "export", "demo.word2vec", "--to", "word2vec", "-o", "vectors.txt", "--quiet"]
    subprocess.run(ran, cwd=folder, check=True)
    lines = [line.split() for line in (folder / "vectors.txt").read_text().splitlines()[1:]]
    vectors = {line[0]: [float(x) for x in line[1:]] for line in lines}
    mean = [(a + b) / 2 for a, b in zip(vectors["ship"], vectors["sea"])]

    def cosine(a, b):
        return sum(x * y for x, y in zip(a, b)) / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5

    close(rows["ship"], cosine(vectors["ship"], mean))
    best = max((cosine(vector, mean), word) for word, vector in vectors.items() if not word.startswith("<"))
    assert page.locator("svg .bar title").first.text_content().split(":")[0] == best[1]


def test_the_tree_unfolds(view):
    page = view.open("demo.brown", "tree")
    before = page.locator(".tree li").count()
    page.locator(".tree summary").nth(1).click()
    page.wait_for_function(f"() => document.querySelectorAll('.tree li').length > {before}")
    page.locator("#tree-word").fill("two")
    page.get_by_role("button", name="Show").click()
    page.locator("h2", has_text=re.compile("^Cluster [01]+$")).wait_for()
    assert "two" in [row[0] for row in view.rows(re.compile("^Cluster [01]+$"))]
    view.shot("tree")


def test_tags_are_those_of_tag_run(view, folder):
    text = "The old ship sails over the sea ."
    page = view.open("demo.tagger", "tags", text=text)
    shown = view.rows("Tagged sentence")
    (folder / "to-tag.txt").write_text(text + "\n")
    ran = subprocess.run([PROGRAM, "tag", "run", "demo.tagger", "to-tag.txt"], cwd=folder, check=True, capture_output=True, text=True)
    tags = [line.split()[-1] for line in ran.stdout.splitlines() if line.strip()]
    assert [row[1] for row in shown] == tags
    page.locator("button.token").nth(2).click()
    page.locator("h2", has_text="Feature weights for").wait_for()
    assert len(view.rows("Feature weights for")) > 3
    view.shot("tags")


def test_curves_follow_a_log_while_it_grows(view, folder):
    page = view.open("run.jsonl", "log")
    assert page.locator("svg .curve").count() > 0
    view.shot("curves")
    before = page.locator("svg .curve").first.get_attribute("d")
    lines = (folder / "run.jsonl").read_text().splitlines()
    last = json.loads(lines[-2])
    with open(folder / "run.jsonl", "a") as log:
        log.write(json.dumps({**last, "iteration": last["iteration"] + 100}) + "\n")
    page.wait_for_function("before => document.querySelector('svg .curve').getAttribute('d') !== before", arg=before)
    # Another run in the same pictures.
    page.get_by_label("second.jsonl").check()
    page.wait_for_function("() => document.querySelector('svg.picture').querySelectorAll('.curve').length === 2")
    assert "with=" in page.evaluate("location.hash")


def test_every_model_of_the_demo_is_shown(browser, folder):
    """`latens explore demo/*` skips the texts of the demo and shows the rest."""
    files = sorted(path.name for path in folder.iterdir())
    server = explore(*files, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        url = server.stdout.readline().strip()
        page = browser.new_page()
        page.goto(url)
        page.wait_for_selector("main[aria-busy=false]")
        names = page.locator("nav.items .name").all_text_contents()
        kinds = ["brown", "fhmm", "glda", "hmm", "lda", "lds", "ngram", "word2vec", "lstm"]
        assert {f"demo.{kind}" for kind in kinds} <= set(names), names
        for item in range(len(names)):
            page.goto("about:blank")
            page.goto(f"{url}#model={item}")
            page.wait_for_selector("main[aria-busy=false]")
            panels = page.locator("nav.panels a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
            for panel in panels:
                page.goto("about:blank")
                page.goto(url + panel)
                page.wait_for_selector("main[aria-busy=false]")
                assert page.locator("main .error").count() == 0, (names[item], panel)
                assert page.locator("main section, main p").count() > 0, (names[item], panel)
        page.close()
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=10) == 0


def test_tables_and_pictures_can_be_saved(view):
    page = view.open("demo.lda", "topics", topic=1)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save All topics as CSV").click()
    rows = list(csv.reader(io.StringIO(download.value.path().read_text())))
    assert rows[0] == ["Topic", "Share", "Words"] and len(rows) == 11
    for kind, start in [("SVG", b"<svg"), ("PNG", b"\x89PNG")]:
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Save Map of topics as {kind}").click()
        assert download.value.path().read_bytes().startswith(start)


def test_a_report_opens_from_disk(browser, folder, tmp_path):
    path = tmp_path / "report.html"
    documents = ["--documents", "documents.tsv", "--fields", "label,split,text", "--by", "label"]
    models = ["demo.lda", "demo.hmm", "demo.brown", "demo.word2vec", "demo.ngram"]
    latens("report", *models, *documents, "-o", str(path), cwd=folder)
    page = browser.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: message.type == "error" and problems.append(message.text))
    page.on("request", lambda request: request.url.startswith("file:") or request.url.startswith(("data:", "blob:")) or problems.append(request.url))
    for at, panels in enumerate([["topics", "trend", "about"], ["states", "samples"], ["tree"], ["words"], ["samples"]]):
        for panel in panels:
            page.goto("about:blank")
            page.goto(f"{path.as_uri()}#model={at}&panel={panel}")
            page.wait_for_selector("main[aria-busy=false]")
            assert page.locator(".error").count() == 0, panel
            assert page.locator("main table, main svg, main ol, main .token, main .tree li").count() > 0, panel
    page.goto("about:blank")
    page.goto(f"{path.as_uri()}#model=3&panel=words&projection=tsne")
    page.locator("svg[aria-label='Map of words'] .word").first.wait_for()
    page.goto("about:blank")
    page.goto(f"{path.as_uri()}#model=0&topic=2")
    page.locator("h2", has_text="Topic 2").wait_for()
    page.locator("#lambda").fill("0.3")
    page.wait_for_timeout(300)
    assert page.locator("svg .bar").count() == 30
    assert problems == []
    page.close()


def test_words_are_never_markup(browser, folder, tmp_path):
    text = "".join(f"<img/src=x/onerror=alert({i})> <b>bold</b> ball goal team\n" for i in range(5)) * 4
    (tmp_path / "evil.txt").write_text(text)
    latens("train", "lda", "evil.txt", "--keep-all", "--n-topics", "2", "--n-iterations", "5", "-o", "evil.lda", cwd=tmp_path)
    latens("report", "evil.lda", "-o", "evil.html", cwd=tmp_path)
    page = browser.new_page()
    page.on("dialog", lambda dialog: pytest.fail("a word became a script"))
    page.goto((tmp_path / "evil.html").as_uri())
    page.wait_for_selector("main[aria-busy=false]")
    assert "<b>bold</b>" in page.locator("main").inner_text()
    assert page.locator("main img, main b").count() == 0
    page.close()


def test_other_sites_cannot_read_answers(view, url):
    request = urllib.request.Request(url + "api/items", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code == 403
    # A page of another origin: the browser blocks the answer.
    page = view.page
    page.goto("data:text/html,<p>other</p>")
    blocked = page.evaluate("url => fetch(url + 'api/items').then(() => 'read', () => 'blocked')", url)
    assert blocked == "blocked"
    view.problems.clear()
