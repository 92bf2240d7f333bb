"""Other libraries: hmmlearn, gensim, spaCy, pandas and polars. Tests of a missing library are skipped."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import latens


@pytest.fixture(scope="module")
def scalar_hmm(sentences) -> latens.Hmm:
    return latens.Hmm(6, constraint="none", parameterization="scalar", epochs=3, min_count=5).fit(sentences)


def test_hmmlearn_computes_the_same_likelihoods(scalar_hmm, models, held_out) -> None:
    pytest.importorskip("hmmlearn")
    for hmm in (scalar_hmm, models["hmm"]):
        theirs = hmm.to_hmmlearn()
        ids = [[hmm.vocabulary_.get(word, 0) for word in sentence.split()] + [1] for sentence in held_out]
        expected = [theirs.score(np.array(sentence)[:, None]) for sentence in ids]
        np.testing.assert_allclose(hmm.score_samples(held_out), expected, rtol=1e-4)
        path = theirs.predict(np.array(ids[0])[:, None])
        np.testing.assert_array_equal(hmm.predict(held_out[:1])[0], path[:-1])
        posterior = theirs.predict_proba(np.array(ids[0])[:, None])
        np.testing.assert_allclose(hmm.predict_proba(held_out[:1])[0], posterior[:-1], atol=1e-4)


def test_models_come_back_from_hmmlearn(scalar_hmm, held_out) -> None:
    pytest.importorskip("hmmlearn")
    back = latens.Hmm.from_hmmlearn(scalar_hmm.to_hmmlearn(), scalar_hmm.words_)
    assert back.words_ == scalar_hmm.words_
    np.testing.assert_allclose(back.transmat_, scalar_hmm.transmat_, atol=1e-6)
    np.testing.assert_allclose(back.score_samples(held_out), scalar_hmm.score_samples(held_out), rtol=1e-4)


def test_a_model_that_hmmlearn_fitted_keeps_its_likelihood(tmp_path) -> None:
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    rng = np.random.default_rng(3)
    lengths = rng.integers(3, 9, size=40)
    symbols = rng.integers(0, 5, size=(int(lengths.sum()), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = hmmlearn.CategoricalHMM(3, n_iter=20, random_state=1, n_features=5).fit(symbols, lengths)
    ours = latens.Hmm.from_hmmlearn(theirs, ["a", "b", "c", "d", "e"], end=0.2)
    sentences = [["abcde"[symbol] for symbol in part[:, 0]] for part in np.split(symbols, np.cumsum(lengths)[:-1])]
    for sentence, part in zip(sentences, np.split(symbols, np.cumsum(lengths)[:-1])):
        expected = theirs.score(part) + len(part) * math.log(0.8) + math.log(0.2)
        assert ours.score_samples([sentence])[0] == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(ours.predict_proba(sentences[:1])[0], theirs.predict_proba(symbols[: lengths[0]]), atol=1e-4)
    path = tmp_path / "theirs.hmm"
    ours.save(path)
    np.testing.assert_array_equal(latens.open(path).transmat_, ours.transmat_)
    with pytest.raises(ValueError, match="4 words, but 5 symbols"):
        latens.Hmm.from_hmmlearn(theirs, ["a", "b", "c", "d"])
    theirs.emissionprob_ = theirs.emissionprob_ * 2
    with pytest.raises(ValueError, match="`emission` must be probabilities"):
        latens.Hmm.from_hmmlearn(theirs)


def test_vectors_come_from_arrays() -> None:
    rows = np.arange(12, dtype=np.float64).reshape(4, 3)
    vectors = latens.Vectors.from_arrays(["river", "<unk>", "bank", "boat"], rows, counts=[4, 1, 2, 3])
    assert vectors.words_ == ["<unk>", "<eos>", "river", "bank", "boat"]
    np.testing.assert_array_equal(vectors["bank"], rows[2])
    np.testing.assert_array_equal(vectors.vectors_[:2], [rows[1], [0, 0, 0]])
    assert vectors.model_.counts().tolist() == [1, 0, 4, 2, 3]
    np.testing.assert_allclose(vectors.transform(["river boat", "bank"]), [rows[[0, 3]].mean(axis=0), rows[2]])
    with pytest.raises(ValueError, match="must have 2 rows"):
        latens.Vectors.from_arrays(["a", "b"], rows)
    with pytest.raises(ValueError, match="not finite"):
        latens.Vectors.from_arrays(["a"], [[np.nan, 1.0]])
    with pytest.raises(ValueError, match="word 2 is empty"):
        latens.Vectors.from_arrays([""], [[1.0]])
    with pytest.raises(ValueError, match="`a`"):
        latens.Vectors.from_arrays(["a", "a"], [[1.0], [2.0]])


def test_gensim_has_the_same_vectors_and_neighbors(models) -> None:
    gensim = pytest.importorskip("gensim.models")
    ours = models["word2vec"]
    keyed = ours.to_gensim()
    word = ours.words_[5]
    np.testing.assert_array_equal(keyed[word], ours[word])
    for (a, p), (b, q) in zip(keyed.most_similar(word, topn=3), ours.most_similar(word, topn=3)):
        assert a == b and p == pytest.approx(q, abs=1e-5)
    back = latens.Vectors.from_gensim(keyed)
    assert back.words_ == ours.words_
    np.testing.assert_array_equal(back.vectors_[2:], ours.vectors_[2:])
    theirs = gensim.Word2Vec([["a", "b", "c", "a"]] * 5, vector_size=4, min_count=1, workers=1)
    imported = latens.Vectors.from_gensim(theirs)
    np.testing.assert_array_equal(imported["b"], theirs.wv["b"])
    assert imported.model_.counts()[imported.vocabulary_["a"]] == 10


def test_a_spacy_pipeline_has_a_tagger(tmp_path) -> None:
    spacy = pytest.importorskip("spacy")
    import latens.spacy  # noqa: F401

    X, y = latens.datasets.tagged()
    tagger = latens.Tagger(n_iterations=10).fit(X[:60], y[:60])
    path = tmp_path / "pos.tagger"
    tagger.save(path)
    nlp = spacy.blank("en")
    nlp.add_pipe("latens_tagger", config={"path": str(path)})
    docs = [spacy.tokens.Doc(nlp.vocab, words=sentence) for sentence in X[:3]]
    found = [[token.tag_ for token in doc] for doc in nlp.pipe(docs)]
    assert found == tagger.predict(X[:3])
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    doc = again(spacy.tokens.Doc(again.vocab, words=X[0]))
    assert [token.tag_ for token in doc] == found[0]
    copy = spacy.blank("en")
    copy.add_pipe("latens_tagger")
    with pytest.raises(ValueError, match="has no model"):
        copy("A text")
    copy.from_bytes(nlp.to_bytes())
    assert [token.tag_ for token in copy(spacy.tokens.Doc(copy.vocab, words=X[0]))] == found[0]


def test_spacy_gets_the_spans_of_names() -> None:
    spacy = pytest.importorskip("spacy")
    from latens.spacy import TaggerComponent

    X = [["Mary", "Smith", "met", "Tom", "in", "Rome"], ["Tom", "saw", "Rome"], ["Mary", "Smith", "saw", "Tom"]] * 5
    names = {"Mary": "B-PER", "Smith": "I-PER", "Tom": "B-PER", "Rome": "B-LOC"}
    tagger = latens.Tagger(n_iterations=30).fit(X, [[names.get(word, "O") for word in sentence] for sentence in X])
    doc = TaggerComponent(tagger)(spacy.tokens.Doc(spacy.blank("en").vocab, words=X[0]))
    assert [(entity.text, entity.label_) for entity in doc.ents] == [("Mary Smith", "PER"), ("Tom", "PER"), ("Rome", "LOC")]


def test_transform_gives_the_frame_that_is_asked_for(models, documents, held_out) -> None:
    index = [f"row{i}" for i in range(len(held_out))]
    for model in (models["hmm"], models["word2vec"], latens.Lda(3, n_iterations=2).fit(documents[0])):
        model = clone(model).set_output(transform="pandas").fit(documents[0])
        text = pd.Series(held_out, index=index)
        frame = model.transform(text)
        assert list(frame.index) == index and list(frame.columns) == list(model.get_feature_names_out())
        rows = model.set_output(transform="default").transform(held_out)
        assert isinstance(rows, np.ndarray)
        np.testing.assert_array_equal(frame.to_numpy(), rows)
        table = model.set_output(transform="polars").transform(held_out)
        assert isinstance(table, pl.DataFrame) and table.columns == list(frame.columns)
        np.testing.assert_array_equal(table.to_numpy(), rows)
        assert isinstance(clone(model).fit_transform(documents[0]), pl.DataFrame)
        with pytest.raises(ValueError, match="`transform` must be"):
            model.set_output(transform="excel")
    with config_context(transform_output="pandas"):
        assert isinstance(latens.Lda(2, n_iterations=1).fit_transform(documents[0]), pd.DataFrame)


def test_models_that_others_learn_from_survive_clones(documents) -> None:
    texts, subjects = documents
    vectors = latens.Word2Vec(6, epochs=1, n_jobs=1).fit(texts)
    topics = latens.GaussianLda(vectors, 3, n_iterations=2, covariance="spherical")
    assert clone(topics).vectors is vectors
    scores = cross_val_score(make_pipeline(topics, LogisticRegression()), np.array(texts, object), subjects, cv=2)
    assert np.isfinite(scores).all()
    tagger = clone(latens.Tagger(encoders=[(vectors, None)]))
    assert tagger.encoders[0][0] is vectors
