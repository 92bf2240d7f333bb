"""A spaCy component for taggers: `nlp.add_pipe("latens_tagger", config={"path": "pos.tagger"})`.

`pip install` registers the component; without it, import this module first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.training import biluo_tags_to_spans, iob_to_biluo

from latens import _latens
from latens._models import _CLASSES, open

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

__all__ = ["TaggerComponent"]


class TaggerComponent:
    """Sets `token.tag_`, or `doc.ents` where the tags are those of spans, such as `B-PER` and `O`."""

    def __init__(self, tagger: Any = None) -> None:
        self.tagger = tagger

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Tag documents in batches, on all cores."""
        if self.tagger is None:
            raise ValueError("`latens_tagger` has no model; pass config={'path': ...} to `add_pipe`")
        rest = iter(stream)
        while docs := list(islice(rest, batch_size)):
            sentences = [sentence for doc in docs for sentence in _sentences(doc)]
            found = self._predict([[token.text for token in sentence] for sentence in sentences])
            tags = {token: tag for sentence, own in zip(sentences, found) for token, tag in zip(sentence, own)}
            for doc in docs:
                self._annotate(doc, tags)
                yield doc

    def _predict(self, words: list[list[str]]) -> list[list[str]]:
        predict = getattr(self.tagger, "predict_tags", None) or self.tagger.predict
        found: list[list[str]] = predict(words)
        return found

    def _annotate(self, doc: Doc, tags: dict[Token, str]) -> None:
        if self._has_spans():
            doc.ents = biluo_tags_to_spans(doc, iob_to_biluo([tags.get(token, "O") for token in doc]))
            return
        for token in doc:
            if token in tags:
                token.tag_ = tags[token]

    def _has_spans(self) -> bool:
        names = self.tagger.model_.tags()
        return any(name[:2] == "B-" for name in names) and all(name == "O" or name[1:2] == "-" for name in names)

    # What `nlp.to_disk` and `nlp.to_bytes` call.

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The model file."""
        return b"" if self.tagger is None else self.tagger.model_.to_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> TaggerComponent:
        """Take the model of `to_bytes`."""
        if data:
            model = _latens.from_bytes(data)
            self.tagger = _CLASSES[model.kind]._opened(model)
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model file into a folder."""
        Path(path).mkdir(parents=True, exist_ok=True)
        if self.tagger is not None:
            self.tagger.save(Path(path) / "model")

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> TaggerComponent:
        """Open the model of `to_disk`."""
        if (Path(path) / "model").exists():
            self.tagger = open(Path(path) / "model")
        return self


def _sentences(doc: Doc) -> list[list[Token]]:
    """The tokens of each sentence, without whitespace; of the whole document if it has no sentence boundaries."""
    spans = doc.sents if doc.has_annotation("SENT_START") else [doc[:]]
    return [sentence for span in spans if (sentence := [token for token in span if not token.is_space])]


@Language.factory("latens_tagger", default_config={"path": None})
def make_tagger(nlp: Language, name: str, path: str | None) -> TaggerComponent:
    """Make the component from the path of a model file."""
    return TaggerComponent(None if path is None else open(path))
