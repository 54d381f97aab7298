"""What a tagger looks at: attributes of words, templates over the words around, and what is known of words."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certus import kernels
from certus.checks import Ints
from certus.features.encode import Rows, encoding
from certus.features.templates import Templates, template_lines

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
WORD = list(ATTRIBUTES).index("l")  # the attribute that the tag before is paired with
PAD = 2
WIDEST = 64  # tags that a frequent word may take; one seen with more is not closed

_PLAIN = """
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
_CLUSTERS = """
    0.a / 0.b / 0.d / 0.c
    -1.c / +1.c / -2.c / +2.c / -1.b / +1.b
    -1.c 0.c / 0.c +1.c / -1.b 0.b +1.b / -1.d 0.d / 0.d +1.d / 0.l +1.d / -1.d 0.l
"""
TEMPLATES, WITH_CLUSTERS = (
    Templates("", template_lines(text), tuple(ATTRIBUTES)) for text in (_PLAIN, _PLAIN + _CLUSTERS)
)


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
        self._rows = Rows[str](ATTRIBUTES, self._described, ["before"] * PAD, ["after"] * PAD)

    @property
    def templates(self) -> Templates:
        """What the tagger looks at: at clusters only if there are some."""
        return WITH_CLUSTERS if self.lexicon.clusters else TEMPLATES

    def encode(self, sentences: Sequence[Sequence[str]]) -> Any:
        """The words as kernels.tagger takes them, with two pads around each sentence."""
        with encoding:
            return self._words(*self._rows.index(sentences))

    # What follows is for who holds ``encoding``, and keeps rows himself: they are those of words until ``met`` changes.

    @property
    def met(self) -> int:
        """How often all words were forgotten."""
        return self._rows.cleared

    def forget_if_full(self) -> None:
        """Forget all words, if there are too many."""
        if self._rows.full:
            self._rows.clear()

    def row(self, word: str) -> int:
        """The row of a word."""
        return self._rows.add(word)

    def batch(self, rows: Ints, length: Ints) -> Any:
        """As ``encode``, of words by their rows, one sentence after the other, and the lengths of these."""
        return self._words(*self._rows.padded(rows, length))

    def _words(self, rows: Ints, first: Ints, length: Ints) -> Any:
        return kernels.tagger.Words(first, length, rows, self._rows.value, self._rows.number)

    def _described(self, word: str) -> tuple[dict[str, str], int]:
        """The word's attributes, and the number of its set of tags."""
        return self.attributes(word), self._set_number.get(self.lexicon.sets.get(word, ()), 0)

    def attributes(self, word: str) -> dict[str, str]:
        """The word's attributes as text, by the names that templates use."""
        lexicon = self.lexicon
        lower = word.lower()
        path = lexicon.clusters.get(word) or lexicon.clusters.get(lower) or "none"
        tags = lexicon.sets.get(word)
        if tags is None and (tags := lexicon.sets.get(lower)) is not None:
            tags = (-1, *tags)  # not sure to take these
        shape, kinds = _looks(word)
        return {
            "w": word if word in lexicon.known else "<rare>",
            "l": lower if lower in self._known_lower else "<rare>",
            **{f"p{k}": lower[:k] for k in range(1, 5)},
            **{f"s{k}": lower[-k:] for k in range(1, 6)},
            "h": shape,
            "k": kinds,
            "a": path[:4],
            "b": path[:6],
            "d": path[:10],
            "c": path,
            "m": "<open>" if tags is None else ",".join(map(str, tags)),
        }


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
