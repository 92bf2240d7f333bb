"""Constraints for language models of Hugging Face `transformers`.

    constraint = latens.constraint.contains([" dog", " dogs"]) & latens.constraint.words(7, 12)
    control = latens.hf.Control(hmm, constraint, tokenizer, max_new_tokens=32)
    model.generate(**inputs, max_new_tokens=32, do_sample=True, logits_processor=[control])

The hidden Markov model is a model of tokens: the words of its vocabulary are the tokens of the tokenizer.
"""

from __future__ import annotations

import re
from typing import Any

from latens.constraint import Constraint, Guide

__all__ = ["Control", "token_bytes"]


def _byte_letters() -> dict[str, int]:
    """The letter that byte-level tokenizers (GPT-2 and its successors) write for each byte."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    letters = {chr(byte): byte for byte in visible}
    others = [byte for byte in range(256) if byte not in visible]
    letters.update({chr(256 + i): byte for i, byte in enumerate(others)})
    return letters


def token_bytes(tokenizer: Any) -> dict[str, bytes | None]:
    """The bytes that each token stands for, by its name in the vocabulary; None for special tokens.

    Knows byte-level tokenizers, tokenizers that write a space as `▁`, and tokenizers whose tokens are plain text.
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    special = set(getattr(tokenizer, "all_special_tokens", []))
    names = [name for name in vocabulary if name not in special]
    letters = _byte_letters()
    is_byte_level = any("Ġ" in name for name in names) and all(
        letter in letters for name in names for letter in name
    )

    def spelled(name: str) -> bytes:
        if is_byte_level:
            return bytes(letters[letter] for letter in name)
        byte = re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", name)
        return bytes([int(byte[1], 16)]) if byte else name.replace("▁", " ").encode()

    found: dict[str, bytes | None] = {name: spelled(name) for name in names}
    found.update(dict.fromkeys(special))
    return found


class Control:
    """A logits processor that makes generated text satisfy a constraint.

    Pass it to `generate` in `logits_processor`. One object serves one call of `generate` at a time.

    Parameters
    ----------
    hmm : a fitted `Hmm` whose words are tokens of the tokenizer. Tokens that it lacks are never generated.
    constraint : a constraint on the text. Phrases are sequences of characters: `" dog"` is a word that begins with `dog`.
    tokenizer : the tokenizer of the language model.
    max_new_tokens : maximum number of tokens to generate; at most the `max_new_tokens` of `generate`.
    min_new_tokens : minimum number of tokens before the end.
    weight : strength of the guide; 0 only excludes tokens after which the constraint cannot be met.
    continue_prompt : whether the prompt is the beginning of the text, for the constraint and for the guide. By default,
        the text begins after the prompt.
    """

    def __init__(
        self,
        hmm: Any,
        constraint: Constraint,
        tokenizer: Any,
        max_new_tokens: int,
        *,
        min_new_tokens: int = 0,
        weight: float = 1.0,
        continue_prompt: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        import numpy as np

        if tokenizer.eos_token_id is None:
            raise ValueError("the tokenizer has no end-of-sequence token")
        spelling = token_bytes(tokenizer)
        words: list[str] = hmm.words_
        self._hmm, self._constraint = hmm, constraint
        self._eos = int(tokenizer.eos_token_id)
        ids: dict[str, int] = tokenizer.get_vocab()
        #: The token of each word of the guide; -1 if the tokenizer has no such token.
        self._token_of = np.array([-1, self._eos, *(ids.get(word, -1) for word in words[2:])], dtype=np.int64)
        if (self._token_of[2:] < 0).all():
            raise ValueError("no word of the guide is a token of the tokenizer")
        self._word_of = {int(token): word for word, token in enumerate(self._token_of) if word > 1 and token >= 0}
        self._options: dict[str, Any] = {
            "pieces": [None, None, *(spelling.get(word) for word in words[2:])],
            "min_words": min_new_tokens,
            "max_words": max_new_tokens,
            "n_jobs": n_jobs,
        }
        self._weight, self._continue_prompt = weight, continue_prompt
        #: All guides share the tables of the first one.
        self._tables: Guide | None = None
        self._guides: dict[tuple[int, ...], Guide] = {}
        self._n_prompt: int | None = None
        self._n_last = 0
        if not continue_prompt:
            # Mistakes in the constraint are found here, and not in the middle of a generation.
            self._guide(())

    def reset(self) -> None:
        """Forget the prompt. Called by itself when a shorter text follows a longer one."""
        self._n_prompt = None
        if self._continue_prompt:
            self._guides.clear()

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import numpy as np

        rows = np.asarray(input_ids.tolist(), dtype=np.int64)
        n_tokens = rows.shape[1]
        if self._n_prompt is None or n_tokens <= self._n_last:
            self.reset()
            self._n_prompt = n_tokens
        self._n_last = n_tokens
        added = np.stack([self._log_probs(row, scores.shape[1]) for row in rows])
        if hasattr(scores, "new_tensor"):
            return scores + scores.new_tensor(added)
        return scores + added

    def _log_probs(self, row: Any, n_tokens: int) -> Any:
        """What is added to the logits of one text."""
        import numpy as np

        prompt, text = row[: self._n_prompt].tolist(), row[self._n_prompt :].tolist()
        if self._eos in text:
            return np.zeros(n_tokens)
        guide = self._guide(tuple(prompt) if self._continue_prompt else ())
        log_probs = guide.next_log_probs([self._word(token) for token in text])
        known = (self._token_of >= 0) & ~np.isneginf(log_probs)
        if not known.any():
            raise ValueError("the guide gives the constraint probability zero after this text")
        added = np.full(n_tokens, -np.inf)
        added[self._token_of[known]] = self._weight * log_probs[known]
        return added

    def _guide(self, prompt: tuple[int, ...]) -> Guide:
        if prompt not in self._guides:
            prefix = [self._word(token) for token in prompt]
            if self._tables is None:
                self._tables = Guide(self._hmm, self._constraint, prefix=prefix, **self._options)
            self._guides[prompt] = self._tables.with_prefix(prefix)
        return self._guides[prompt]

    def _word(self, token: int) -> int:
        if token not in self._word_of:
            raise ValueError(f"the guide does not know the token {token}")
        return self._word_of[token]
