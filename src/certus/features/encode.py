"""Sentences as arrays of hashed attribute values, ready for the feature kernels."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from certus.checks import Ints
from certus.errors import InvalidInput
from certus.features.templates import ATTRIBUTES, stable_hash
from certus.io.conllu import Sentence, Token
from certus.kernels.tuples import Sentence as EncodedSentence

PAD = 4  # rows before and after each sentence; kernels.features has the same
MOST_COARSE = 63  # coarse tags that in-between features tell apart; all others share one number

COLUMNS = ("lemma", "xpos", "feats")  # what a treebank may fill beside forms and coarse tags

_ROOT, _BEFORE, _AFTER, _NONE = range(4)  # rows of the table that every encoder has


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
MOST_ROWS = 1 << 20  # combinations remembered; then the memory is emptied, so that endless input fits


class _Rows:
    """Attribute values of every combination met so far, in arrays that grow."""

    def __init__(self) -> None:
        self.number: dict[Key, int] = {}
        self.values = np.empty((1024, len(ATTRIBUTES)), dtype=np.uint64)
        self.coarse = np.empty(1024, dtype=np.int64)
        self.count = 0
        for name, coarse in (("root", 0), ("before", -1), ("after", -1), ("none", -1)):
            self.append([f"{a}:<{name}>" for a in ATTRIBUTES], coarse)

    def append(self, texts: Sequence[str], coarse: int) -> int:
        if self.count == len(self.coarse):
            self.values = np.concatenate([self.values, np.empty_like(self.values)])
            self.coarse = np.concatenate([self.coarse, np.empty_like(self.coarse)])
        self.values[self.count] = [stable_hash(text) for text in texts]
        self.coarse[self.count] = coarse
        self.count += 1
        return self.count - 1


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
        self._rows = _Rows()

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
        if self._rows.count > MOST_ROWS:
            self._rows = _Rows()
        lengths = np.array([len(s) for s in sentences], dtype=np.int64)
        base = np.cumsum(lengths + 1 + 2 * PAD) - lengths - 1 - PAD
        rows: list[int] = []
        known = self._rows.number
        for sentence in sentences:
            rows += (_NONE, _NONE, _NONE, _BEFORE, _ROOT)
            for t in sentence.tokens:
                key = (t.form, t.lemma, t.upos, t.xpos, t.feats)
                row = known.get(key)
                rows.append(self._add(key) if row is None else row)
            rows += (_AFTER, _AFTER, _AFTER, _AFTER)
        index = np.array(rows, dtype=np.int64)
        return Encoded(self._rows.values[index], self._rows.coarse[index], base, lengths)

    @property
    def fine(self) -> bool:
        """Whether there is more than coarse tags."""
        return "xpos" in self.columns or "feats" in self.columns

    def number(self, coarse: str) -> int:
        """The number of a coarse tag, from 1; all that the treebank does not have share the last."""
        return self._number.get(coarse, MOST_COARSE)

    def values(self, token: Token) -> dict[str, str]:
        """The attributes of a word as text, by the letters that templates use."""
        return self._values((token.form, token.lemma, token.upos, token.xpos, token.feats))

    def _values(self, key: Key) -> dict[str, str]:
        form, coarse = key[0], key[2]
        lemma, fine, morphology = (
            value if column in self.columns else "_" for column, value in zip(COLUMNS, (key[1], *key[3:]), strict=True)
        )
        if "xpos" not in self.columns and morphology != "_":
            fine = f"{coarse}|{morphology}"
        path = self.clusters.get(form, "none")
        return {
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

    def _add(self, key: Key) -> int:
        """Give a new combination a row."""
        values = self._values(key)
        number = self.number(values["p"])
        row = self._rows.append([f"{a}={values[a]}" for a in ATTRIBUTES], number)
        self._rows.number[key] = row
        return row
