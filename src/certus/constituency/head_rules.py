"""Rules that name the head among the children of a phrase, read from a small text format."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from certus.errors import FormatError
from certus.io.files import read_text

LEFT, RIGHT = "left", "right"
SETS = ("conjunctions", "punctuation", "verbs")


@dataclass(frozen=True, slots=True)
class HeadSearch:
    """One search among children: where it starts, and sets of labels looked for one after the other."""

    side: str
    wanted: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True)
class HeadRules:
    """Which child of a phrase is its head.

    Build one with :meth:`from_text`, :meth:`load` or :meth:`penn`; the file ``penn.heads`` explains the format.

    Examples
    --------
    >>> HeadRules.penn().head("NP", ["DT", "JJ", "NN"])
    2
    """

    searches: Mapping[str, tuple[HeadSearch, ...]]
    conjunctions: frozenset[str] = field(default_factory=frozenset)
    punctuation: frozenset[str] = field(default_factory=frozenset)
    verbs: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def from_text(cls, text: str, *, path: object = "<text>") -> "HeadRules":
        """Read rules, one search a line: ``phrase  left|right  labels``. FormatError names a line that is none."""
        searches: dict[str, tuple[HeadSearch, ...]] = {}
        sets: dict[str, frozenset[str]] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            phrase, *rest = line.split() or ["#"]
            if phrase.startswith("#"):
                continue
            if phrase in SETS:
                sets[phrase] = frozenset(rest)
                continue
            if not rest or rest[0] not in (LEFT, RIGHT):
                found = f'"{rest[0]}"' if rest else "nothing"
                raise FormatError(path, number, f'after "{phrase}" stands {found}; expected "left" or "right".')
            wanted = tuple(frozenset(labels.split("|")) for labels in rest[1:])
            searches[phrase] = (*searches.get(phrase, ()), HeadSearch(rest[0], wanted))
        return cls(searches, **sets)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "HeadRules":
        """Read rules from a file."""
        return cls.from_text(read_text(path), path=path)

    @staticmethod
    @cache
    def penn() -> "HeadRules":
        """The bundled rules for the Penn Treebank."""
        text = (resources.files(__package__) / "penn.heads").read_text(encoding="utf-8")
        return HeadRules.from_text(text, path="penn.heads")

    def head(self, phrase: str, children: Sequence[str]) -> int:
        """Position of the head among the labels of a phrase's children."""
        searches = self.searches.get(phrase) or self.searches.get("*") or (HeadSearch(LEFT),)
        for search in searches:
            order = range(len(children)) if search.side == LEFT else range(len(children) - 1, -1, -1)
            for labels in search.wanted:
                for k in order:
                    if children[k] in labels:
                        return self._first_conjunct(children, k)
        for k in order:
            if children[k] not in self.punctuation and children[k] not in self.conjunctions:
                return self._first_conjunct(children, k)
        return order[0]

    def _first_conjunct(self, children: Sequence[str], k: int) -> int:
        if k >= 2 and children[k - 1] in self.conjunctions and children[k - 2] not in self.punctuation:
            return k - 2
        return k
