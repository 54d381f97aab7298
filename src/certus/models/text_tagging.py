"""Plain text to tagged CoNLL-U, as bytes: no object is made of a word that was met before.

It gives what tokenising, tagging and writing sentences give, byte for byte.
"""

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Ints
from certus.features import encode
from certus.models.lengths import MAX_WORDS, of_bounded_length
from certus.text import Sentence
from certus.text.tokenizer import chunk_words, marks

if TYPE_CHECKING:
    from certus.models.tagger import ColumnModel

FILLED = ("upos", "xpos", "feats")  # the columns between lemma and head


class TextTagger:
    """The models of a tagger, and the words of all that stood between blanks so far; see kernels.tokens.

    ``style`` is that of the tokeniser, "web" or "blank".
    """

    def __init__(self, models: Sequence["ColumnModel"], style: str) -> None:
        self.models, self.style = models, style
        names, self._source = [b"_"], dict[str, tuple[int, int]]()
        for m, model in enumerate(models):
            for part, column in enumerate(model.column.split("+")):
                self._source[column] = m, len(names)
                names += [tag.split("\t")[part].encode() for tag in model.tags]
        self._longest = max(map(len, names))
        ends = np.array([0, *accumulate(map(len, names))], dtype=np.int64)
        self._names = ends, np.frombuffer(b"".join(names), dtype=np.uint8)
        self._clear()

    def _clear(self) -> None:
        self._met = [model.encoder.met for model in self.models]
        self._keys = encode.ByteKeys(self._add)
        self._ptr, self._words = array("q", [0]), array("q")

    def _add(self, key: bytes) -> int:
        """The number of a key that is new."""
        for form in chunk_words(key.decode(), style=self.style):
            rows = (model.encoder.row(form) for model in self.models)
            self._words.extend([len(form.encode()), marks(form), *rows])
        self._ptr.append(len(self._words) // self._width)
        return len(self._ptr) - 2

    @property
    def _width(self) -> int:
        return int(kernels.tokens.ROWS) + len(self.models)

    def conllu(self, pieces: Sequence[str], *, whole: bool, before: int = 0) -> bytes:
        """The sentences of pieces of text, none of them blank, with their tags; there were so many ``before`` them.

        With ``whole`` every piece is a sentence. InvalidInput for one that is too long to be parsed.
        """
        text = np.frombuffer("\0".join(pieces).encode(), dtype=np.uint8)
        begin, end, key = (np.empty(len(text) // 2 + 1, dtype=np.int64) for _ in range(3))
        last = np.empty(len(begin), dtype=np.bool_)
        count = kernels.tokens.find_chunks(text, begin, end, key, last)
        with encode.encoding:
            start, end, sentence, rows = self._cut(text, (begin[:count], last[:count]), key[:count], whole)
            length = np.diff(sentence)
            self._check(text, (start, end, sentence), before)
            batches = [model.encoder.batch(row, length) for model, row in zip(self.models, rows, strict=True)]
        tags = np.zeros((len(FILLED), len(start)), dtype=np.int64)
        found = [_tags(model, batch) for model, batch in zip(self.models, batches, strict=True)]
        for k, column in enumerate(FILLED):
            if column in self._source:
                m, offset = self._source[column]
                tags[k] = found[m] + offset
        out = np.empty(len(text) + (3 * self._longest + 32) * len(start) + len(length), dtype=np.uint8)
        size = kernels.tokens.write_words(text, (start, end, sentence), tags, self._names, out)
        return out[:size].tobytes()

    def _cut(
        self, text: NDArray[np.uint8], chunks: tuple[Ints, NDArray[np.bool_]], key: Ints, whole: bool
    ) -> tuple[Ints, Ints, Ints, list[Ints]]:
        """Where words begin and end, where sentences begin among them, and for each model the rows of the words."""
        for model in self.models:
            model.encoder.forget_if_full()
        if [model.encoder.met for model in self.models] != self._met or len(self._keys) > encode.MOST_ROWS:
            self._clear()
        keys = self._keys.find(text, chunks[0], key)
        ptr = np.frombuffer(self._ptr, dtype=np.int64)
        table = np.frombuffer(self._words, dtype=np.int64).reshape(-1, self._width)
        start, end, row = (np.empty(int((ptr[keys + 1] - ptr[keys]).sum()), dtype=np.int64) for _ in range(3))
        sentence = np.empty(len(start) + 1, dtype=np.int64)
        count = kernels.tokens.cut_words(chunks, keys, (ptr, table), whole, (start, end, row, sentence))
        return start, end, sentence[: count + 1], list(table[row, kernels.tokens.ROWS :].T.copy())

    @staticmethod
    def _check(text: NDArray[np.uint8], words: tuple[Ints, Ints, Ints], before: int) -> None:
        start, end, sentence = words
        for s in np.flatnonzero(np.diff(sentence) > MAX_WORDS).tolist():
            own = range(sentence[s], sentence[s + 1])
            forms = [text[start[w] : end[w]].tobytes().decode() for w in own]
            list(of_bounded_length([Sentence.from_words(forms)], before=before + s))


def _tags(model: "ColumnModel", batch: Any) -> Ints:
    """The number of the tag of each word of a batch."""
    out = model.decoded(batch)[0]
    ahead = np.repeat(batch.first - np.cumsum(batch.length) + batch.length, batch.length)
    return np.asarray(out[np.arange(len(ahead)) + ahead])
