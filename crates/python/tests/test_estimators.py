"""Every estimator on the embedded corpus: conventions, saving, roles."""

from __future__ import annotations

import inspect
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import latens
from conftest import ENCODERS, LANGUAGE_MODELS, TINY
from latens import _latens
from latens._base import LIMITS, PREPROCESSING, RUN
from latens._models import _CLASSES

KINDS = [kind for kind in _CLASSES if kind != "vectors"]


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_and_names_are_those_of_the_library(kind: str) -> None:
    cls = _CLASSES[kind]
    known = json.loads(_latens.default_params(kind))
    known.pop("seed", None)
    signature = inspect.signature(cls.__init__).parameters
    for name, parameter in signature.items():
        rust = cls._renamed.get(name, name)
        shared = name in (*PREPROCESSING, *LIMITS, *RUN, *cls._own) and not (kind == "tagger" and name == "min_count")
        if name == "self" or shared:
            continue
        default = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
        assert known.pop(rust) == pytest.approx(default), name
    # What is left belongs to other architectures, or needs columns that lists of words do not have.
    of_lstms = {"hidden_dim", "input_dropout", "layer_dropout", "word_dropout", "weight_dropout", "mask"}
    of_lstms |= {"activation_penalty", "forget_bias"}
    others = {"architecture", "order", "n_layers", "squash", "memory", "bptt", "pos_column", "min_count"}
    assert set(known) <= of_lstms | others


def test_every_class_is_exported_and_documented() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "python.md").read_text()
    for cls in _CLASSES.values():
        assert cls.__name__ in latens.__all__
        assert f"`{cls.__name__}`" in guide


def test_every_kind_has_a_small_estimator() -> None:
    # Topic models and taggers need other data, and have tests of their own.
    assert {*TINY, "glda", "lda", "tagger", "vectors"} == set(_CLASSES)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_follow_the_conventions_of_scikit_learn(kind: str) -> None:
    estimator = _CLASSES[kind]()
    params = estimator.get_params()
    assert clone(estimator).get_params() == params
    changed = estimator.set_params(verbose=True)
    assert changed is estimator and changed.verbose is True
    assert "verbose=True" in repr(changed)
    with pytest.raises(ValueError, match="no_such"):
        estimator.set_params(no_such=1)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    with pytest.raises(NotFittedError):
        estimator.model_  # noqa: B018


@pytest.mark.parametrize("kind", TINY)
def test_models_are_saved_opened_and_pickled(kind: str, models, tmp_path, held_out) -> None:
    model = models[kind]
    path = tmp_path / f"model.{kind}"
    model.save(path)
    opened = latens.open(path)
    assert type(opened) is type(model)
    copy = pickle.loads(pickle.dumps(model))
    for other in (opened, copy):
        assert other.words_ == model.words_
        assert other.model_.to_bytes() == model.model_.to_bytes()
        for name, value in model.get_params().items():
            # Not part of a model, or stored in another form: no limit is 0, and a rate is the one that was chosen.
            if name in ("n_jobs", "verbose", "device", "max_vocab", "state_dropout", *model._own):
                continue
            found = getattr(other, name)
            # A file has lists only.
            assert (tuple(found) if isinstance(found, list) else found) == value, name
    assert type(model).__name__ in model._repr_html_()


def test_notebooks_show_what_a_model_learned(models, documents) -> None:
    hmm, shown = models["hmm"], models["hmm"]._repr_html_()
    state = int(hmm.model_.inside("stationary", 0).argmax())
    # The most frequent state comes first, with its words and a bar.
    first = shown.split("<tr>")[1]
    assert f"state {state}<" in first and hmm.top_words(state)[0][0] in first and "width:" in first
    lda = latens.Lda(4, n_iterations=10).fit(documents[0])
    largest = int(lda.topic_sizes_.argmax())
    first = lda._repr_html_().split("<tr>")[1]
    share = lda.topic_sizes_[largest] / lda.topic_sizes_.sum()
    assert f"topic {largest}<" in first and f"title='{share:.1%}'" in first
    for kind in ("word2vec", "lds"):
        word = next(word for word in models[kind].words_[2:] if len(word) > 3 and word.isalpha())
        first = models[kind]._repr_html_().split("<tr>")[1]
        assert f">{word}<" in first and models[kind].most_similar(word)[0][0] in first
    assert models["fhmm"].top_words(1, 2)[0][0] in models["fhmm"]._repr_html_().split("layer 1, state 2")[1]
    assert "a sample" in models["ngram"]._repr_html_()
    assert len(models["brown"]._repr_html_().split("<tr>")) == 9
    X, y = latens.datasets.tagged()
    assert "NOUN" in latens.Tagger(n_iterations=2).fit(X[:20], y[:20])._repr_html_()
    evil = latens.Brown(2).fit(["<script>alert(1)</script> a b", "a <b>"])
    assert "<script" not in evil._repr_html_() and "&lt;b&gt;" in evil._repr_html_()
    with pytest.raises(ValueError, match="out of range"):
        models["fhmm"].top_words(2, 0)


@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_language_models_score_and_sample(kind: str, models, held_out) -> None:
    model = models[kind]
    perplexity = model.perplexity(held_out)
    assert 1 < perplexity < len(model.words_)
    assert model.score(held_out) == pytest.approx(-math.log(perplexity))
    scores = model.score_tokens(held_out)
    lengths = [len(sentence.split()) + 1 for sentence in held_out]
    assert [len(score) for score in scores] == lengths
    total = sum(score.sum() for score in scores)
    assert total / sum(lengths) == pytest.approx(model.score(held_out), rel=1e-6)
    assert model.score_samples(held_out).sum() == pytest.approx(total)
    probabilities = model.model_.next_probs("the")
    assert probabilities.sum() == pytest.approx(1, abs=1e-4)
    best = model.next_words("the", 3)
    assert len(best) == 3 and best[0][1] == pytest.approx(probabilities.max())
    assert model.sample(3, random_state=7) == model.sample(3, random_state=7)
    assert all(word in model.vocabulary_ for sentence in model.sample(3) for word in sentence)


@pytest.mark.parametrize("kind", ENCODERS)
def test_encoders_give_one_row_per_word(kind: str, models, held_out) -> None:
    model = models[kind]
    matrix = model.encode(held_out)
    assert matrix.shape[0] == sum(len(sentence.split()) for sentence in held_out)
    assert matrix.dtype == np.float32
    kind_of_means = getattr(model, "features", None)
    matrix = model.encode(held_out, features=kind_of_means)
    mean = model.transform(held_out)
    assert mean.shape == (len(held_out), matrix.shape[1])
    first = matrix[: len(held_out[0].split())].toarray().mean(axis=0)
    np.testing.assert_allclose(mean[0], first, rtol=1e-4, atol=1e-6)
    assert len(model.get_feature_names_out()) == matrix.shape[1]
    # Lists of words are the same text.
    tokens = model.encode([sentence.split() for sentence in held_out], features=kind_of_means)
    np.testing.assert_array_equal(tokens.toarray(), matrix.toarray())
    with pytest.raises(ValueError, match="no_such"):
        model.encode(held_out, features="no_such")


def test_an_hmm_shows_its_probabilities(models, held_out) -> None:
    hmm = models["hmm"]
    transitions, emissions, start = hmm.transmat_, hmm.emissionprob_, hmm.startprob_
    assert transitions.shape == (16, 16) and emissions.shape == (16, len(hmm.words_))
    for rows in (transitions, emissions, start[None]):
        np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-3)
    # The forward algorithm in NumPy.
    sentence = hmm.model_.words()[2:7]
    ids = [hmm.vocabulary_[word] for word in sentence] + [1]
    alpha = start * emissions[:, ids[0]]
    for word in ids[1:]:
        alpha = (alpha @ transitions) * emissions[:, word]
    assert hmm.score_samples([sentence])[0] == pytest.approx(math.log(alpha.sum()), rel=1e-3)
    states = hmm.predict(held_out)
    assert [len(s) for s in states] == [len(s.split()) for s in held_out]
    assert hmm.top_words(0, 3)[0][1] == pytest.approx(emissions[0].max())


def test_a_linear_dynamical_system_shows_its_matrices_and_words(models) -> None:
    lds = models["lds"]
    transition, observation = lds.transition_matrix_, lds.observation_matrix_
    assert transition.shape == (6, 6) and observation.shape == (len(lds.words_), 6)
    best = lds.top_words(2, 3)
    weights = dict(zip(lds.words_, observation[:, 2].tolist()))
    assert [weights[word] for word, _ in best] == [weight for _, weight in best]
    assert abs(best[0][1]) == np.abs(observation[2:, 2]).max() and abs(best[0][1]) >= abs(best[1][1]) >= abs(best[2][1])
    with pytest.raises(ValueError, match="dimension 6 is out of range: there are 6"):
        lds.top_words(6)


def test_word_vectors_are_views_and_have_neighbors(models) -> None:
    model = models["word2vec"]
    vectors = model.vectors_
    assert vectors.shape == (len(model.words_), 8)
    assert not vectors.flags.writeable and vectors.base is not None
    word = model.words_[5]
    np.testing.assert_array_equal(model[word], vectors[5])
    assert word in model and "no such word" not in model
    with pytest.raises(KeyError):
        model["no such word"]
    neighbors = model.most_similar(word, topn=3)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = unit @ unit[5]
    cosines[[0, 1, 5]] = -2
    assert neighbors[0][0] == model.words_[int(cosines.argmax())]
    assert neighbors[0][1] == pytest.approx(cosines.max(), abs=1e-5)
    assert model.similarity(word, neighbors[0][0]) == pytest.approx(cosines.max(), abs=1e-5)


def test_brown_clusters_have_paths(models) -> None:
    paths = models["brown"].paths_
    assert len(set(paths.values())) == 8
    assert all(set(path) <= {"0", "1"} for path in paths.values())


@pytest.mark.parametrize("encoded", [False, True])
def test_taggers_learn_their_training_text(encoded: bool, models) -> None:
    X, y = latens.datasets.tagged()
    X, y = X[:60], y[:60]
    encoders = [models["brown"], (models["hmm"], "state")] if encoded else []
    tagger = latens.Tagger(encoders=encoders, n_iterations=30).fit(X, y)
    assert tagger.score(X, y) > 0.95
    assert set(tagger.classes_) == {tag for tags in y for tag in tags}
    again = pickle.loads(pickle.dumps(tagger))
    assert again.predict(X[:5]) == tagger.predict(X[:5])
    with pytest.raises(ValueError, match="sentence 0 has"):
        tagger.fit(X[:1], [y[0][:-1]])


def test_an_hmm_learns_tags(tmp_path) -> None:
    X, y = latens.datasets.tagged()
    X, y = X[:200], y[:200]
    hmm = latens.Hmm(32, n_clusters=8, dim=16, epochs=6, min_count=2).fit(X, y)
    assert set(hmm.tags_) == {tag for tags in y for tag in tags}
    pairs = [pair for own, right in zip(hmm.predict_tags(X), y) for pair in zip(own, right)]
    words = [(word, tag) for sentence, tags in zip(X, y) for word, tag in zip(sentence, tags)]
    most_frequent = max(sum(tag == other for _, tag in words) for other in hmm.tags_) / len(words)
    assert sum(found == right for found, right in pairs) / len(pairs) > 2 * most_frequent
    assert hmm.perplexity(X) > 1
    hmm.save(tmp_path / "tags.hmm")
    assert latens.open(tmp_path / "tags.hmm").predict_tags(X[:3]) == hmm.predict_tags(X[:3])
    with pytest.raises(ValueError, match="sentence 0 has"):
        hmm.fit(X, [y[0][:-1], *y[1:]])
    with pytest.raises(ValueError, match="lists of words"):
        hmm.fit([" ".join(words) for words in X], y)
    # The labels of a pipeline are no tags.
    plain = latens.Hmm(8, n_clusters=2, dim=4, epochs=1).fit(X[:20], ["label"] * 20)
    with pytest.raises(ValueError, match="does not assign tags"):
        plain.predict_tags(X[:1])


def test_an_hmm_takes_clusters(models, sentences) -> None:
    def make(**params) -> latens.Hmm:
        return latens.Hmm(16, n_clusters=8, dim=8, epochs=1, min_count=2, **params)

    brown = latens.Brown(n_clusters=8, min_count=2, algorithm="exchange").fit(sentences)
    given, learned = make(clusters=brown).fit(sentences), make().fit(sentences)
    # The clusters that it would learn itself.
    np.testing.assert_array_equal(given.transmat_, learned.transmat_)
    with pytest.raises(ValueError, match="`clusters` must be a Brown clustering"):
        make(clusters=models["ngram"]).fit(sentences)
    with pytest.raises(ValueError, match="constraint='brown'"):
        make(clusters=models["brown"], constraint="none").fit(sentences)


def test_a_network_starts_from_a_linear_dynamical_system(models, sentences, held_out, tmp_path) -> None:
    lds = models["lds"]
    path = tmp_path / "small.lds"
    lds.save(path)

    def make(**params) -> latens.Rnn:
        return latens.Rnn(6, epochs=0, min_count=2, **params).fit(sentences)

    assert make(init=lds).perplexity(held_out) < make().perplexity(held_out)
    assert make(init=path).perplexity(held_out) == make(init=lds).perplexity(held_out)
    assert make(init=lds, init_state="filtered").perplexity(held_out) != make(init=lds).perplexity(held_out)
    with pytest.raises(ValueError, match="`init` must be a linear dynamical system"):
        make(init=models["ngram"])
    with pytest.raises(ValueError, match="`init_state` must be"):
        make(init=lds, init_state="smoothed")
    with pytest.raises(ValueError, match="`init_scale` must be above 0"):
        make(init=lds, init_scale=0)
    with pytest.raises(ValueError, match="`init` must be a fitted model or the path of one"):
        make(init=3)
