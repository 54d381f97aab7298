"""What a tagger looks at: attributes of words, templates over the words around, and what is known of words."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from certus.checks import Ints
from certus.errors import InvalidInput
from certus.features.templates import stable_hash

ATTRIBUTES = {
    "w": "form",
    "l": "form in small letters",
    "p1": "first letter",
    "p2": "first two letters",
    "p3": "first three letters",
    "p4": "first four letters",
    "s1": "last letter",
    "s2": "last two letters",
    "s3": "last three letters",
    "s4": "last four letters",
    "s5": "last five letters",
    "h": "shape: kinds of characters in a row",
    "k": "kinds of characters that occur",
    "a": "cluster, 4 bits",
    "b": "cluster, 6 bits",
    "d": "cluster, 10 bits",
    "c": "cluster, all bits",
    "m": "tags the word takes, if frequent",
}
_COLUMN = {name: k for k, name in enumerate(ATTRIBUTES)}
WORD = _COLUMN["l"]  # the attribute that the tag before is paired with
_COMPONENT = re.compile(r"([+-][12]|0)\.([a-z]\d?)")
PAD = 2
WIDEST = 64  # tags that a frequent word may take; one seen with more is not closed
MOST_ROWS = 1 << 20  # words remembered; then the memory is emptied, so that endless input fits
_BEFORE, _AFTER = 0, 1  # rows that every encoder has
_hash = lru_cache(maxsize=1 << 18)(stable_hash)  # endings come again, and every column of a tagger asks for the same

TEMPLATES = """
    0.w / 0.l / 0.h / 0.k / 0.m
    0.p1 / 0.p2 / 0.p3 / 0.p4
    0.s1 / 0.s2 / 0.s3 / 0.s4 / 0.s5 / 0.s3 0.k
    -1.l / +1.l / -2.l / +2.l
    -1.l 0.l / 0.l +1.l / -1.l +1.l / -2.l -1.l / +1.l +2.l
    -1.h 0.h / 0.h +1.h / -1.k 0.k +1.k
    -1.s3 / +1.s3 / -1.s2 0.s2 / 0.s2 +1.s2
    -1.m / +1.m / -2.m / +2.m
    -1.m 0.m / 0.m +1.m / -1.m 0.m +1.m / -2.m -1.m 0.m / 0.m +1.m +2.m / -1.m 0.l / 0.l +1.m
"""
CLUSTER_TEMPLATES = """
    0.a / 0.b / 0.d / 0.c
    -1.c / +1.c / -2.c / +2.c / -1.b / +1.b
    -1.c 0.c / 0.c +1.c / -1.b 0.b +1.b / -1.d 0.d / 0.d +1.d / 0.l +1.d / -1.d 0.l
"""


def templates_of(clusters: Mapping[str, str]) -> list[str]:
    """The templates of a tagger, one a line; those of clusters only if there are some."""
    text = TEMPLATES + (CLUSTER_TEMPLATES if clusters else "")
    return [" ".join(words) for line in re.split(r"[/\n]", text) if (words := line.split())]


def template_arrays(lines: Iterable[str]) -> tuple[Ints, Ints, Ints, NDArray[np.uint64]]:
    """ptr, offset, column and seed of the templates, as kernels.tagger takes them.

    A component is an offset -2 .. +2, a point and an attribute: ``-1.s3`` is the ending of the word before.
    """
    ptr, offset, column, seed = [0], [], [], []
    for line in lines:
        words = line.split()
        for word in words:
            found = _COMPONENT.fullmatch(word)
            if not found or found[2] not in _COLUMN:
                raise InvalidInput(
                    f"template {line.strip()!r}: {word!r} is no component; write an offset -2, -1, 0, +1 or +2, a "
                    f"point, and an attribute out of {', '.join(_COLUMN)}."
                )
            offset.append(int(found[1]))
            column.append(_COLUMN[found[2]])
        ptr.append(len(offset))
        seed.append(stable_hash("tagger:" + " ".join(words)))
    ints = [np.array(values, dtype=np.int64) for values in (ptr, offset, column)]
    return ints[0], ints[1], ints[2], np.array(seed, dtype=np.uint64)


@dataclass(frozen=True)
class Lexicon:
    """What a tagger knows of words.

    ``known`` are the forms seen often enough to be told apart, ``sets`` the numbers of the tags of forms so frequent
    that they take no other, ``clusters`` bit strings.
    """

    known: frozenset[str]
    sets: Mapping[str, tuple[int, ...]]
    clusters: Mapping[str, str]

    @classmethod
    def of(
        cls,
        tagged: Iterable[Iterable[tuple[str, int]]],
        *,
        known: int,
        sure: int,
        clusters: Mapping[str, str] | None = None,
    ) -> "Lexicon":
        """From words with numbers of tags: forms seen ``known`` times are known, those seen ``sure`` times closed."""
        seen: dict[str, Counter[int]] = {}
        for sentence in tagged:
            for form, tag in sentence:
                seen.setdefault(form, Counter())[tag] += 1
        times = {form: counts.total() for form, counts in seen.items()}
        return cls(
            frozenset(form for form in seen if times[form] >= known),
            {form: tuple(sorted(c)) for form, c in seen.items() if times[form] >= sure and len(c) <= WIDEST},
            dict(clusters or {}),
        )


class WordEncoder:
    """Gives each word a row of hashed attributes and the number of its set of tags; 0 is the open set."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self._known_lower = {form.lower() for form in lexicon.known}
        distinct = sorted(set(lexicon.sets.values()))
        self._set_number = {tags: s for s, tags in enumerate(distinct, start=1)}
        self.set_ptr = np.cumsum([0, 0, *map(len, distinct)], dtype=np.int64)
        self.allowed = np.array([t for tags in distinct for t in tags], dtype=np.int64)
        self.clear()

    def clear(self) -> None:
        """Forget all words met."""
        self._row: dict[str, int] = {}
        self.value = np.empty((1024, len(ATTRIBUTES)), dtype=np.uint64)
        self.set_of = np.zeros(1024, dtype=np.int64)
        for row, name in ((_BEFORE, "before"), (_AFTER, "after")):
            self.value[row] = [stable_hash(f"{a}:<{name}>") for a in ATTRIBUTES]
        self._count = 2

    def encode(self, sentences: Sequence[Sequence[str]]) -> tuple[Ints, Ints, Ints]:
        """The row of each word, with two pads around each sentence; where sentences begin; their lengths."""
        if self._count > MOST_ROWS:
            self.clear()
        known = self._row
        rows: list[int] = []
        length = np.array([len(words) for words in sentences], dtype=np.int64)
        first = np.cumsum(length + 2 * PAD) - length - PAD
        for words in sentences:
            rows += (_BEFORE, _BEFORE)
            for word in words:
                row = known.get(word)
                rows.append(self._add(word) if row is None else row)
            rows += (_AFTER, _AFTER)
        return np.array(rows, dtype=np.int64), first, length

    def _add(self, word: str) -> int:
        row = self._count
        if row == len(self.set_of):
            self.value = np.concatenate([self.value, np.empty_like(self.value)])
            self.set_of = np.concatenate([self.set_of, np.zeros_like(self.set_of)])
        self.value[row] = [_hash(f"{a}={v}") for a, v in zip(ATTRIBUTES, self.attributes(word), strict=True)]
        self.set_of[row] = self._set_number.get(self.lexicon.sets.get(word, ()), 0)
        self._row[word] = row
        self._count += 1
        return row

    def attributes(self, word: str) -> tuple[str, ...]:
        """The word's attributes as text, in the order of ATTRIBUTES."""
        lexicon = self.lexicon
        lower = word.lower()
        path = lexicon.clusters.get(word) or lexicon.clusters.get(lower) or "none"
        tags = lexicon.sets.get(word)
        if tags is None and (tags := lexicon.sets.get(lower)) is not None:
            tags = (-1, *tags)  # not sure to take these
        return (
            word if word in lexicon.known else "<rare>",
            lower if lower in self._known_lower else "<rare>",
            *(lower[:k] for k in range(1, 5)),
            *(lower[-k:] for k in range(1, 6)),
            *_looks(word),
            path[:4],
            path[:6],
            path[:10],
            path,
            "<open>" if tags is None else ",".join(map(str, tags)),
        )


def _looks(word: str) -> tuple[str, str]:
    """The shape, in which equal kinds in a row are one; and the kinds of characters, with whether the first is large.

    >>> _looks("McDonald's-2")
    ('XxXx.x-d', 'Xxd-.+')
    """
    kinds = [_kind(c) for c in word]
    shape = "".join(kind for k, kind in enumerate(kinds) if k == 0 or kinds[k - 1] != kind)
    occur = "".join(kind for kind in "Xxd-." if kind in kinds)
    return shape, occur + ("+" if kinds[:1] == ["X"] else "")


def _kind(c: str) -> str:
    if c.isupper():
        return "X"
    if c.isalpha():
        return "x"
    if c.isdigit():
        return "d"
    return c if c == "-" else "."
