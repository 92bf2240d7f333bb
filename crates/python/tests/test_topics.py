"""Topic models, with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import latens
from latens._models import _CLASSES


@pytest.fixture(scope="module")
def lda(documents) -> latens.Lda:
    return latens.Lda(8, n_iterations=60, lowercase=True, tokenize="words").fit(documents[0])


def test_mixtures_are_distributions_and_repeat_with_a_seed(lda, documents) -> None:
    theta = lda.transform(documents[0])
    assert theta.shape == (len(documents[0]), 8) and theta.dtype == np.float32
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-4)
    again = latens.Lda(8, n_iterations=60, lowercase=True, tokenize="words").fit_transform(documents[0])
    np.testing.assert_array_equal(theta, again)
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(lda.set_params(n_jobs=n_jobs).transform(documents[0]), theta)
    lda.set_params(n_jobs=None)
    other = latens.Lda(8, n_iterations=60, lowercase=True, tokenize="words", random_state=2).fit(documents[0])
    assert not np.array_equal(other.transform(documents[0]), theta)


def test_topics_can_be_looked_at(lda, documents) -> None:
    components = lda.components_
    assert components.shape == (8, len(lda.words_))
    np.testing.assert_allclose(components.sum(axis=1), 1, rtol=1e-9)
    word, probability = lda.top_words(3, 1)[0]
    assert probability == pytest.approx(components[3].max(), rel=1e-5)
    assert components[3, lda.vocabulary_[word]] == pytest.approx(probability, rel=1e-5)
    assert lda.topic_sizes_.sum() == lda.model_.counts()[2:].sum()
    assert "topic" in lda._repr_html_()
    arguments = lda.to_pyldavis(documents[0])
    assert arguments["topic_term_dists"].shape[1] == len(arguments["vocab"]) == len(arguments["term_frequency"])
    with pytest.raises(ValueError, match="out of range"):
        lda.top_words(8)


def test_an_empty_or_unknown_document_gets_the_prior(lda) -> None:
    theta = lda.transform(["", "zzzz qqqq"])
    np.testing.assert_allclose(theta, 1 / 8, rtol=1e-4)


def test_a_matrix_of_counts_is_the_same_as_its_documents(documents) -> None:
    vectorizer = CountVectorizer(max_features=300)
    X = vectorizer.fit_transform(documents[0])
    names = [f"x{i}" for i in range(X.shape[1])]
    rows = csr_array(X).sorted_indices()
    texts = [
        [names[j] for j, n in zip(rows.indices[a:b], rows.data[a:b]) for _ in range(n)]
        for a, b in zip(rows.indptr[:-1], rows.indptr[1:])
    ]
    of_counts = latens.Lda(5, n_iterations=20).fit(X)
    of_texts = latens.Lda(5, n_iterations=20).fit(texts)
    assert of_counts.words_ == of_texts.words_
    np.testing.assert_array_equal(of_counts.components_, of_texts.components_)
    np.testing.assert_array_equal(of_counts.transform(X), of_texts.transform(texts))
    np.testing.assert_array_equal(of_counts.transform(X.toarray()), of_counts.transform(X))


def test_it_works_in_pipelines_and_searches(documents) -> None:
    texts, subjects = documents
    pipeline = make_pipeline(
        latens.Lda(16, n_iterations=60, lowercase=True, tokenize="words"), LogisticRegression(C=10, max_iter=1000)
    )
    scores = cross_val_score(pipeline, np.array(texts, dtype=object), subjects, cv=3)
    most_frequent = max(subjects.count(subject) for subject in set(subjects)) / len(subjects)
    assert scores.mean() > 1.5 * most_frequent
    search = GridSearchCV(pipeline, {"lda__n_topics": [2, 12]}, cv=2).fit(np.array(texts, dtype=object), subjects)
    assert search.best_params_["lda__n_topics"] in (2, 12)


def test_gaussian_topics_need_vectors(documents) -> None:
    texts = documents[0]
    vectors = latens.Word2Vec(10, epochs=2, n_jobs=1, tokenize="words", lowercase=True).fit(texts)
    glda = latens.GaussianLda(vectors, 4, n_iterations=10, covariance="spherical", tokenize="words", lowercase=True)
    theta = glda.fit_transform(texts)
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-4)
    assert glda.means_.shape == (4, 10)
    with pytest.raises(ValueError, match="`vectors` must be"):
        latens.GaussianLda().fit(texts)
    with pytest.raises(ValueError, match="no word vectors"):
        latens.GaussianLda(latens.Ngram(2).fit(texts)).fit(texts)


def test_gaussian_topics_use_new_words_that_have_vectors(tmp_path) -> None:
    # Two groups of words that lie apart; `brook` and `wrench` are in no training document.
    groups = [["river", "lake", "brook"], ["hammer", "chisel", "wrench"]]
    rng = np.random.default_rng(1)
    words = [word for group in groups for word in group]
    points = np.repeat([[5.0, 0.0], [-5.0, 0.0]], 3, axis=0) + rng.normal(size=(6, 2)) / 10
    vectors = latens.Vectors.from_arrays(words, points)
    texts = [" ".join(group[:2] * 3) for group in groups] * 10
    glda = latens.GaussianLda(vectors, 2, n_iterations=20, n_jobs=1).fit(texts)
    river, brook, hammer, wrench, unknown = glda.transform(["river lake", "brook", "chisel", "wrench", "sofa"])
    assert river.argmax() == brook.argmax() != hammer.argmax() == wrench.argmax()
    np.testing.assert_allclose(unknown, 0.5, atol=1e-3)
    # Without the vectors, a new word says nothing; documents of known words have the same topics.
    glda.save(tmp_path / "m.glda")
    opened = latens.open(tmp_path / "m.glda")
    np.testing.assert_allclose(opened.transform(["brook"])[0], unknown, atol=1e-3)
    np.testing.assert_array_equal(opened.transform(["river lake"])[0], river)
    glda.vectors = tmp_path / "none.vectors"
    with pytest.warns(UserWarning, match="words outside the training documents are ignored.*none.vectors"):
        np.testing.assert_array_equal(glda.transform(["river lake"])[0], river)
    glda.vectors = latens.Vectors.from_arrays(words, np.ones((6, 3)))
    with pytest.raises(ValueError, match="`vectors` must be of 2 dimensions"):
        glda.transform(["river"])


# scikit-learn's checks run on `Lda` because it takes matrices; estimators of strings get those of cloning. None fails.
@parametrize_with_checks(
    [
        latens.Lda(n_topics=3, n_iterations=5) if kind == "lda" else cls()
        for kind, cls in _CLASSES.items()
        if kind not in ("glda", "vectors")
    ]
)
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)


# Those that need no data. scikit-learn leaves them out for estimators of text, together with those that fit numbers.
@pytest.mark.parametrize("cls", [cls for kind, cls in _CLASSES.items() if kind != "vectors"])
@pytest.mark.parametrize(
    "name",
    [
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_get_params_invariance",
        "check_mixin_order",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    ],
)
def test_scikit_learn_checks_without_data(cls, name: str) -> None:
    check = getattr(estimator_checks, name, None)
    if check is None:
        pytest.skip("this version of scikit-learn has no such check")
    check(cls.__name__, cls())


def test_held_out_words_are_predicted(documents, tmp_path) -> None:
    train, test = documents[0][:250], documents[0][250:]
    one, many = (latens.Lda(n, n_iterations=60).fit(train) for n in (1, 10))
    assert many.perplexity(test) == pytest.approx(np.exp(-many.score(test)))
    assert many.perplexity(train) < one.perplexity(train) < len(one.words_)
    # One topic predicts the smoothed frequencies of every second known word.
    words = [[w for w in one.model_.ids(text) if w > 1] for text in test]
    hidden = [word for document in words for word in document[1::2]]
    assert one.score(test) == pytest.approx(np.log(one.components_[0, hidden]).mean(), rel=1e-5)
    # A matrix has the order of its columns.
    X = CountVectorizer(max_features=200).fit_transform(documents[0])
    of_counts = latens.Lda(5, n_iterations=20).fit(X)
    search = GridSearchCV(latens.Lda(n_iterations=10), {"n_topics": [1, 8]}, cv=2).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert 1 < of_counts.perplexity(X) < 200
    assert np.isnan(many.score([""]))


def test_counts_of_topics_are_a_view(lda) -> None:
    counts = lda.topic_word_counts_
    assert counts.shape == lda.components_.shape and counts.dtype == np.uint32
    assert not counts.flags.owndata and not counts.flags.writeable
    assert counts.__array_interface__["data"] == lda.topic_word_counts_.__array_interface__["data"]
    np.testing.assert_array_equal(counts.sum(axis=1), lda.topic_sizes_)
    np.testing.assert_array_equal(counts.sum(axis=0)[2:], lda.model_.counts()[2:])
    beta = lda.beta * (np.arange(counts.shape[1]) > 1)
    expected = (counts + beta) / (counts.sum(axis=1, keepdims=True) + beta.sum())
    np.testing.assert_allclose(lda.components_, expected, rtol=1e-9)


def test_stop_words_and_phrases_are_part_of_the_model(documents, tmp_path) -> None:
    texts = documents[0] + ["In New York it rained, and 17 of them left."] * 12
    lda = latens.Lda(5, n_iterations=10, phrases=20, max_df=0.5).fit(texts)
    words = set(lda.words_)
    assert not words & {"the", "The", "and", ".", ","} and any("_" in word for word in words)
    lda.save(tmp_path / "m.lda")
    opened = latens.open(tmp_path / "m.lda")
    assert (opened.stop_words, opened.phrases, opened.max_df, opened.keep_all) == ("english", 20, 0.5, False)
    np.testing.assert_array_equal(opened.transform(texts), lda.transform(texts))
    bare = latens.Lda(5, n_iterations=10, keep_all=True).fit(texts)
    assert "the" in bare.words_
    own = latens.Lda(5, n_iterations=10, stop_words=["moon"]).fit(texts)
    assert "the" in own.words_ and "moon" not in own.words_
    with pytest.raises(ValueError, match="`stop_words` must be"):
        latens.Lda(stop_words="klingon").fit(texts)
