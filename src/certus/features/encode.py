"""Sentences as arrays of hashed attribute values, ready for the kernels of parsers and taggers."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Ints
from certus.errors import InvalidInput
from certus.features.templates import ATTRIBUTES, stable_hash
from certus.kernels.tuples import ByteTable
from certus.kernels.tuples import Sentence as EncodedSentence
from certus.text import Sentence, Token

PAD = 4  # rows before and after each sentence; kernels.features has the same
MOST_COARSE = 63  # coarse tags that in-between features tell apart; all others share one number
MOST_ROWS = 1 << 20  # kinds of words remembered; then the memory is emptied, so that endless input fits

COLUMNS = ("lemma", "xpos", "feats")  # what a treebank may fill beside forms and coarse tags

_hash = lru_cache(maxsize=1 << 18)(stable_hash)  # endings, tags and clusters come again and again
Word = TypeVar("Word", bound=Hashable)
encoding = threading.Lock()  # rows are made one at a time, whichever thread asks
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=encoding._at_fork_reinit)  # type: ignore[attr-defined]


class Rows(Generic[Word]):
    """A row of hashed attribute values, and a number, for every kind of word met so far, in arrays that grow.

    ``describe`` gives the attributes of a word as text, by name, and its number. ``before`` and ``after`` are the pads
    around a sentence, such as "root"; that has the number 0, the others -1.
    """

    def __init__(
        self,
        attributes: Iterable[str],
        describe: Callable[[Word], tuple[Mapping[str, str], int]],
        before: Sequence[str],
        after: Sequence[str],
    ) -> None:
        self.attributes, self.describe = tuple(attributes), describe
        self.before, self.after = before, after
        self.cleared = 0  # how often all was forgotten
        self.clear()

    def clear(self) -> None:
        """Forget all words met."""
        self.cleared += 1
        self.value = np.empty((1024, len(self.attributes)), dtype=np.uint64)
        self.number = np.empty(1024, dtype=np.int64)
        self._count = 0
        self._row: dict[Word, int] = {}
        pads = dict.fromkeys([*self.before, *self.after])
        row = {name: self._append([f"{a}:<{name}>" for a in self.attributes], -(name != "root")) for name in pads}
        self._before, self._after = [row[name] for name in self.before], [row[name] for name in self.after]

    @property
    def full(self) -> bool:
        """Whether it is time to ``clear``."""
        return self._count > MOST_ROWS

    def index(self, sentences: Iterable[Sequence[Word]]) -> tuple[Ints, Ints, Ints]:
        """The row of each word and pad, one sentence after the other; where their words begin; their lengths."""
        if self.full:
            self.clear()
        known, rows, lengths = self._row.get, list[int](), list[int]()
        for words in sentences:
            rows += [self.add(word) if (row := known(word)) is None else row for word in words]
            lengths.append(len(words))
        return self.padded(np.array(rows, dtype=np.int64), np.array(lengths, dtype=np.int64))

    def padded(self, rows: Ints, length: Ints) -> tuple[Ints, Ints, Ints]:
        """Rows of the words of sentences, one after the other, and their lengths: as ``index`` has them, with pads."""
        before, after = len(self._before), len(self._after)
        first = np.cumsum(length + before + after) - length - after
        out = np.empty(len(rows) + len(length) * (before + after), dtype=np.int64)
        out[np.arange(len(rows)) + np.repeat(first - np.cumsum(length) + length, length)] = rows
        out[(first - before)[:, None] + np.arange(before)] = self._before
        out[(first + length)[:, None] + np.arange(after)] = self._after
        return out, first, length

    def add(self, word: Word) -> int:
        """The row of a word, a new one if it is new."""
        if (row := self._row.get(word)) is not None:
            return row
        values, number = self.describe(word)
        self._row[word] = row = self._append([f"{a}={values[a]}" for a in self.attributes], number)
        return row

    def _append(self, texts: Sequence[str], number: int) -> int:
        row = self._count
        if row == len(self.number):
            self.value = np.concatenate([self.value, np.empty_like(self.value)])
            self.number = np.concatenate([self.number, np.empty_like(self.number)])
        self.value[row] = [_hash(text) for text in texts]
        self.number[row] = number
        self._count += 1
        return row


class Encoded(NamedTuple):
    """A batch of sentences: node v of sentence s is row ``base[s] + v`` of ``attribute`` and ``coarse``."""

    attribute: NDArray[np.uint64]
    coarse: Ints
    base: Ints
    length: Ints

    def sentence(self, s: int) -> EncodedSentence:
        """One sentence, as the kernels take it."""
        return EncodedSentence(self.attribute, self.coarse, int(self.base[s]), int(self.length[s]))


Key = tuple[str, str, str, str, str]  # form, lemma, coarse tag, fine tag, morphology


class ByteKeys:
    """Numbers for pieces of texts, found by their bytes, so that no object need be made of one met before.

    ``number`` gives that of a new one.
    """

    def __init__(self, number: Callable[[bytes], int]) -> None:
        self._number = number
        self._keys, self._bytes = 0, 0
        self._table = self._room(1 << 12, 1 << 16)

    def __len__(self) -> int:
        return self._keys

    @staticmethod
    def _room(slots: int, size: int) -> ByteTable:
        wide, keys = np.int64, slots // 2
        return ByteTable(
            np.full(slots, -1, dtype=wide), np.zeros(keys + 1, wide), np.zeros(keys, wide), np.empty(size, np.uint8)
        )

    def find(self, text: NDArray[np.uint8], begin: Ints, end: Ints) -> Ints:
        """The numbers of all pieces text[begin[k] : end[k]]."""
        found = np.empty(len(begin), dtype=np.int64)
        kernels.conllu.find_rows(text, begin, end, self._table, found)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            spans = zip(begin[missing].tolist(), end[missing].tolist(), strict=True)
            data = text.tobytes()
            self._add(list(dict.fromkeys(data[first:last] for first, last in spans)))
            kernels.conllu.find_rows(text, begin, end, self._table, found)
        return found

    def _add(self, keys: list[bytes]) -> None:
        count, size = self._keys + len(keys), self._bytes + sum(map(len, keys))
        old, slots = self._table, len(self._table.slot)
        if 2 * count > slots or size > len(old.bytes):
            self._table = self._room(max(slots, 1 << (2 * count).bit_length()), max(len(old.bytes), 2 * size))
            for name in ("ptr", "row", "bytes"):
                had = getattr(old, name)
                getattr(self._table, name)[: len(had)] = had
        table, ptr = self._table, self._bytes + np.cumsum([len(key) for key in keys])
        table.bytes[self._bytes : size] = np.frombuffer(b"".join(keys), dtype=np.uint8)
        table.ptr[self._keys + 1 : count + 1] = ptr
        table.row[self._keys : count] = [self._number(key) for key in keys]
        first = self._keys if table is old else 0
        kernels.conllu.put_keys(np.arange(first, count), table)
        self._keys, self._bytes = count, size


class WordTable(ByteKeys):
    """Rows of words by their bytes in CoNLL-U, columns 2 to 6."""

    def __init__(self, rows: Rows[Key]) -> None:
        self.cleared = rows.cleared  # of use until they are cleared again
        super().__init__(lambda key: rows.add(cast(Key, tuple(key.decode().split("\t")))))


class Encoder:
    """Turns words with their annotation into attribute values.

    Values are hashes of strings, so there is no vocabulary to keep: only the coarse tags, in the order of their
    numbers, the words frequent enough to stand beside clusters, and the bit string of each clustered word. Lemmas, fine
    tags and morphology are looked at only if ``columns`` names them, so that a model sees what it was trained on. Where
    a treebank has no fine tags, coarse tags with morphology serve as such.
    """

    def __init__(
        self,
        coarse: Sequence[str],
        frequent: Iterable[str] = (),
        clusters: Mapping[str, str] | None = None,
        columns: Iterable[str] = COLUMNS,
    ) -> None:
        self.coarse = tuple(coarse)
        self.frequent = frozenset(frequent)
        self.clusters = dict(clusters or {})
        self.columns = tuple(column for column in COLUMNS if column in set(columns))
        self._number = {tag: min(k, MOST_COARSE) for k, tag in enumerate(self.coarse, start=1)}
        before = ["none"] * (PAD - 1) + ["before", "root"]
        self._rows = Rows[Key](ATTRIBUTES, self._described, before, ["after"] * PAD)
        self._table = WordTable(self._rows)

    @classmethod
    def of(cls, sentences: Iterable[Sentence], *, clusters: Mapping[str, str] | None = None, top: int = 800) -> Self:
        """An encoder for a treebank: its coarse tags, its ``top`` most frequent words, the columns it fills."""
        tags: Counter[str] = Counter()
        words: Counter[str] = Counter()
        filled: set[str] = set()
        pairs: set[tuple[str, str]] = set()
        for sentence in sentences:
            for token in sentence:
                tags[token.upos] += 1
                words[token.form] += 1
                pairs.add((token.upos, token.xpos))
                filled.update(column for column in COLUMNS if getattr(token, column) != "_")
        if not tags:
            raise InvalidInput("there is no word to learn from: every sentence is empty.")
        if len(pairs) == len(tags):  # fine tags say no more than coarse ones
            filled.discard("xpos")
        coarse = sorted(tags, key=lambda t: (-tags[t], t))
        frequent = sorted(words, key=lambda w: (-words[w], w))[:top]
        return cls(coarse, frequent, clusters, filled)

    def encode(self, sentences: Sequence[Sentence]) -> Encoded:
        """The sentences as arrays."""
        keys = ([(t.form, t.lemma, t.upos, t.xpos, t.feats) for t in sentence.tokens] for sentence in sentences)
        with encoding:
            return self._encoded(*self._rows.index(keys))

    def encode_bytes(self, text: NDArray[np.uint8], layout: Any, sentences: Ints) -> Encoded:
        """The same of some sentences of a text of CoNLL-U, laid out by ``kernels.conllu``."""
        length = np.diff(layout.word)[sentences]
        chosen = np.repeat(layout.word[sentences] - np.cumsum(length) + length, length) + np.arange(length.sum())
        with encoding:
            if self._rows.full:
                self._rows.clear()
            if self._table.cleared != self._rows.cleared:
                self._table = WordTable(self._rows)
            words = int(layout.word[-1])
            rows = self._table.find(text, layout.form[:words], layout.feats[:words])
            return self._encoded(*self._rows.padded(rows[chosen], length))

    def _encoded(self, rows: Ints, first: Ints, length: Ints) -> Encoded:
        return Encoded(self._rows.value[rows], self._rows.number[rows], first - 1, length)

    @property
    def fine(self) -> bool:
        """Whether there is more than coarse tags."""
        return "xpos" in self.columns or "feats" in self.columns

    def number(self, coarse: str) -> int:
        """The number of a coarse tag, from 1; all that the treebank does not have share the last."""
        return self._number.get(coarse, MOST_COARSE)

    def values(self, token: Token) -> dict[str, str]:
        """The attributes of a word as text, by the letters that templates use."""
        return self._described((token.form, token.lemma, token.upos, token.xpos, token.feats))[0]

    def _described(self, key: Key) -> tuple[dict[str, str], int]:
        """The attributes of a word, and the number of its coarse tag."""
        form, coarse = key[0], key[2]
        lemma, fine, morphology = (
            value if column in self.columns else "_" for column, value in zip(COLUMNS, (key[1], *key[3:]), strict=True)
        )
        if "xpos" not in self.columns and morphology != "_":
            fine = f"{coarse}|{morphology}"
        path = self.clusters.get(form, "none")
        values = {
            "w": form,
            "l": lemma if lemma != "_" else form.lower(),
            "p": coarse,
            "t": fine if fine != "_" else coarse,
            "f": morphology,
            "a": path[:4],
            "b": path[:6],
            "c": path,
            "v": form if form in self.frequent else f"<{coarse}>",
        }
        return values, self.number(coarse)
