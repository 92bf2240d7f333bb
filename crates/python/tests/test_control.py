"""Constraints: against sums over all texts, with every language model, and as a logits processor."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import latens
from conftest import LANGUAGE_MODELS
from latens import _latens, constraint

WORDS = ["<unk>", "<eos>", "a", "b", "c"]
MAX = 5


def random_hmm(words: list[str] = WORDS, n_states: int = 3) -> latens.Hmm:
    rng = np.random.default_rng(1)

    def rows(n: int, columns: int) -> np.ndarray:
        return rng.dirichlet(np.ones(columns), n).astype(np.float32)

    model = _latens.hmm_from_arrays(
        words, [1] * len(words), rows(1, n_states)[0], rows(n_states, n_states), rows(n_states, len(words))
    )
    return latens.Hmm._opened(model)


def probabilities(hmm: latens.Hmm) -> dict[tuple[str, ...], float]:
    """p of all texts of up to MAX words, by the forward recursion."""
    start, a, b = hmm.startprob_, hmm.transmat_.astype(float), hmm.emissionprob_.astype(float)
    found = {}
    for n in range(MAX + 1):
        for text in itertools.product(range(2, len(WORDS)), repeat=n):
            alpha = start.astype(float)
            for word in text:
                alpha = (alpha * b[:, word]) @ a
            found[tuple(WORDS[word] for word in text)] = float(alpha @ b[:, 1])
    return found


def has(text: tuple[str, ...], *phrase: str) -> bool:
    return any(text[i : i + len(phrase)] == phrase for i in range(len(text)))


CASES = [
    (constraint.anything(), lambda text: True),
    (constraint.contains("a b", ["c", "b b"]), lambda t: has(t, "a", "b") and (has(t, "c") or has(t, "b", "b"))),
    (constraint.contains_in_order("b", "a"), lambda t: "b" in t and "a" in t[t.index("b") :]),
    (constraint.excludes("a", "c c"), lambda t: not has(t, "a") and not has(t, "c", "c")),
    (constraint.regex("a+ [^a]*"), lambda t: t[:1] == ("a",) and "a" not in t[len(list(itertools.takewhile("a".__eq__, t))) :]),
    (constraint.char_regex("a.*b"), lambda t: len(t) > 1 and t[0] == "a" and t[-1] == "b"),
    (constraint.words(2, 3) | constraint.ends_with("c"), lambda t: len(t) in (2, 3) or t[-1:] == ("c",)),
    (constraint.words(2, 4) & ~constraint.starts_with("b"), lambda t: len(t) in (2, 3, 4) and t[0] != "b"),
    (constraint.infill("a", "b c"), lambda t: len(t) > 2 and t[0] == "a" and t[-2:] == ("b", "c")),
]


@pytest.mark.parametrize(("condition", "holds"), CASES)
def test_probabilities_are_sums_over_all_texts(condition, holds) -> None:
    hmm = random_hmm()
    every = probabilities(hmm)
    met = {text: p for text, p in every.items() if holds(text)}
    expected = math.log(sum(met.values()))
    assert hmm.constraint_log_prob(condition, max_words=MAX) == pytest.approx(expected, rel=1e-5)
    guide = constraint.Guide(hmm, condition, max_words=MAX)
    assert guide.log_prob() == pytest.approx(expected, rel=1e-5)
    joint = guide.joint_log_probs()
    first = [sum(p for text, p in met.items() if (text[:1] or ("<eos>",)) == (word,)) for word in WORDS]
    np.testing.assert_allclose(np.exp(joint), first, rtol=1e-5, atol=1e-12)
    conditional = guide.next_log_probs()
    assert (conditional <= 0).all() and not np.isnan(conditional).any()
    np.testing.assert_allclose(np.exp(conditional[2:]) * (hmm.startprob_ @ hmm.emissionprob_)[2:], first[2:], rtol=1e-4)
    # The model's own probabilities, steered, are the joint ones.
    own = np.log(hmm.startprob_ @ hmm.emissionprob_)
    np.testing.assert_allclose(guide.steer(own), joint, rtol=1e-4)
    with pytest.raises(ValueError, match="expected 5"):
        guide.steer(own[:3])
    texts = hmm.generate(condition, n=20, max_words=MAX)
    assert all(holds(tuple(text.split())) for text in texts)


def test_every_language_model_generates_under_constraints(models) -> None:
    hmm = models["hmm"]
    condition = constraint.contains("of the") & constraint.excludes("and")
    for kind in LANGUAGE_MODELS:
        guide = None if kind == "hmm" else hmm
        for options in [{}, {"beam": 4}, {"top_k": 40, "weight": 2.0, "temperature": 0.7}]:
            texts = models[kind].generate(condition, n=3, guide=guide, max_words=10, prefix="It was", **options)
            assert len(texts) == 3, kind
            for text in texts:
                assert text.startswith("It was "), kind
                assert " of the " in f" {text} " and " and " not in f" {text} ", kind
                assert len(text.split()) <= 12, kind
        assert models[kind].generate(condition, guide=guide) == models[kind].generate(condition, guide=guide)


def test_mistakes_are_explained(models) -> None:
    hmm, ngram = models["hmm"], models["ngram"]
    with pytest.raises(ValueError, match="zyzzyva"):
        hmm.generate(constraint.contains("zyzzyva"))
    with pytest.raises(ValueError, match="contradict"):
        hmm.generate(constraint.contains("the") & constraint.excludes("the"))
    with pytest.raises(ValueError, match="at least 2 words, and at most 1"):
        hmm.generate(constraint.contains("of the"), max_words=1)
    with pytest.raises(ValueError, match="missing"):
        hmm.generate(constraint.regex("the ("))
    with pytest.raises(ValueError, match="needs `guide`"):
        ngram.generate(constraint.contains("the"))
    with pytest.raises(ValueError, match="needs `guide`|hidden Markov model"):
        ngram.generate(constraint.contains("the"), guide=ngram)
    with pytest.raises(ValueError, match="the vocabulary of the guide differs"):
        ngram.generate(guide=random_hmm())
    with pytest.raises(TypeError, match="expected a constraint"):
        constraint.contains("the") & "man"
    with pytest.raises(ValueError, match="temperature"):
        hmm.generate(temperature=-1.0)
    guide = constraint.Guide(random_hmm(), constraint.contains("a"), max_words=2)
    for words in ([1], [9], [2, 2, 2]):
        with pytest.raises(ValueError, match="not a word id|at most 2"):
            guide.log_prob(words)
    assert guide.satisfied([2]) and not guide.satisfied([3])
    other = guide.with_prefix([3])
    expected = constraint.Guide(random_hmm(), constraint.contains("a"), max_words=2, prefix=[3])
    assert other.log_prob([3]) == expected.log_prob([3])


class Tokenizer:
    """What a logits processor needs of a byte-level tokenizer. The ids differ from those of the guide."""

    eos_token_id = 0
    all_special_tokens = ("</s>",)
    tokens = ("</s>", "Ġdo", "Ġcat", "g", "s", "Ġdog", ".")

    def get_vocab(self) -> dict[str, int]:
        return {token: i for i, token in enumerate(self.tokens)}

    def text(self, ids) -> str:
        return "".join(self.tokens[i] for i in ids).replace("Ġ", " ")


def token_hmm() -> latens.Hmm:
    return random_hmm(["<unk>", "<eos>", "Ġdog", "g", "Ġdo", "s", "Ġcat"], 4)


def test_a_logits_processor_needs_only_the_protocol() -> None:
    tokenizer = Tokenizer()
    condition = constraint.contains([" dogs", " cats"]) & constraint.words(2, 3)
    control = latens.hf.Control(token_hmm(), condition, tokenizer, max_new_tokens=6)
    rng = np.random.default_rng(2)
    seen = set()
    for _ in range(40):
        ids = np.array([[6, 6], [6, 1]])
        for _ in range(7):
            scores = control(ids, np.zeros((2, len(tokenizer.tokens))))
            assert not np.isnan(scores).any() and (scores[:, 6] == -np.inf).all() | (ids[:, 2:] == 0).any()
            # As `generate` does: finished texts are filled with the end token.
            finished = (ids[:, 2:] == 0).any(axis=1)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            drawn = [rng.choice(len(row), p=row / row.sum()) for row in weights]
            ids = np.column_stack([ids, np.where(finished, 0, drawn)])
        for row in ids:
            text = tokenizer.text(itertools.takewhile(bool, row[2:]))
            assert " dogs" in text or " cats" in text, text
            assert 2 <= len(text.split()) <= 3, text
            seen.add(text)
    assert len(seen) > 5
    with pytest.raises(ValueError, match="needs at least"):
        latens.hf.Control(token_hmm(), condition, tokenizer, max_new_tokens=1)
    with pytest.raises(ValueError, match="no word of the guide"):
        latens.hf.Control(random_hmm(), condition, tokenizer, max_new_tokens=5)
    # The prompt counts as a part of the text if it should.
    begun = latens.hf.Control(token_hmm(), condition, tokenizer, max_new_tokens=2, continue_prompt=True)
    scores = begun(np.array([[5, 4], [2, 4]]), np.zeros((2, len(tokenizer.tokens))))
    assert (scores[:, 0] == -np.inf).all() and (scores[:, 2] > -np.inf).all()
    # " dog" lacks its last letter and a second word.
    scores = begun(np.array([[5]]), np.zeros((1, len(tokenizer.tokens))))
    assert scores[0, 4] > -np.inf and np.isneginf(scores[0, :4]).sum() >= 2


def test_tokens_are_spelled_in_bytes() -> None:
    class Pieces(Tokenizer):
        tokens = ("</s>", "▁dog", "s", "<0x0A>")

    assert latens.hf.token_bytes(Pieces()) == {"</s>": None, "▁dog": b" dog", "s": b"s", "<0x0A>": b"\n"}
    assert latens.hf.token_bytes(Tokenizer())["Ġdo"] == b" do"


def test_a_random_gpt2_meets_a_constraint() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    tokenizer = Tokenizer()
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer.tokens), n_positions=32, n_embd=16, n_layer=1, n_head=2,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )
    torch.manual_seed(1)
    model = transformers.GPT2LMHeadModel(config).eval()
    condition = constraint.contains(" dogs") & constraint.words(2, 4)
    for options in [{"do_sample": True, "num_return_sequences": 4}, {"num_beams": 3, "num_return_sequences": 2}]:
        control = latens.hf.Control(token_hmm(), condition, tokenizer, max_new_tokens=8)
        processors = transformers.LogitsProcessorList([control])
        ids = torch.tensor([[6, 2]])
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, logits_processor=processors, **options
        )
        for row in out.tolist():
            text = tokenizer.text(itertools.takewhile(bool, row[2:]))
            assert " dogs" in text and 2 <= len(text.split()) <= 4, text
