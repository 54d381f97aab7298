"""The kinds of parts of dependency trees: a line of the table for each, and what follows for items and states.

Letters stand for the words of a part. A word m with head h has at most one part of each kind; s is the modifier of h
next inside m on its side, or h itself if there is none; t is the one next inside s, likewise, and there is none if s is
h; g is the head of h and f that of g; d is a side of h, 0 for left and 1 for right. What ends a side has in place of s
the outermost modifier there, or h. Where a word that a kind asks for is missing (g above node 0, t inside h), there is
no such part.

Scores that users give, as arrays and as lists, their checks, the parts of a tree, the forest and the head automata all
read this table. Trained models have the kinds with ``roles``, which the kernels have in the same order:
``kernels.parts``.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.checks import Bools, Ints

LETTERS = "ghdtsmf"
LEFT, RIGHT = 0, 1

# Where a part is scored: at each modifier, at the outermost one of a side, at the end of a side, at one without any.
PLACES = MODIFIER, OUTERMOST, END, EMPTY = ("modifier", "outermost", "end", "empty")

Index = NDArray[np.integer]
Nodes = tuple[int, ...]  # one for each letter, -1 where there is none


class PartKind(NamedTuple):
    """A kind of part.

    ``axes`` are the letters of its array, in order. ``roles`` are those of kernels and templates, head and modifier
    first; none if no trained model has the kind. It is ``scored`` at modifiers or ends of sides; if ``narrowed``, at
    outermost modifiers alone where users ask for that.
    """

    name: str
    axes: str
    roles: str = ""
    scored: str = MODIFIER
    narrowed: bool = False

    def columns(self, rows: Ints) -> list[Ints]:
        """Rows (P, 5) of the kernels as one array for each axis; a node that is not there is the head."""
        nodes = np.where(rows[:, 1:] < 0, rows[:, 1:2], rows[:, 1:]).astype(np.int64)
        return [np.ascontiguousarray(nodes[:, self.roles.index(role)]) for role in self.axes]

    def shape(self, n: int) -> tuple[int, ...]:
        """Shape of the dense array for n words."""
        return _shape(self.axes, n)

    @property
    def pick(self) -> Callable[[Nodes], Nodes]:
        """What takes the index of a part out of the nodes by letter."""
        return itemgetter(*map(LETTERS.index, self.axes))

    def readable(self, allowed: Bools, single: bool) -> Callable[..., Any]:
        """Which parts trees over the allowed arcs may have, as a function of the indices of parts.

        With ``single`` node 0 has one modifier.
        """

        def test(*index: Index) -> Any:
            node = dict(zip(self.axes, index, strict=True))
            h = node["h"]
            if self.scored == END:
                d, s = node["d"], node["s"]
                side = (s == h) | (allowed[h, s] & ((s > h) == (d == RIGHT)))
                return side & ((h > 0) | ((d == RIGHT) & ((s > 0) | (len(allowed) == 1))))  # node 0 has a modifier
            beside = [node[letter] for letter in "mst" if letter in node]
            found: Any = True
            for outer, inner in pairwise(beside):
                between = ((h < inner) & (inner < outer)) | ((outer < inner) & (inner < h))
                found = found & ((inner == h) | (between & allowed[h, inner] & ((h > 0) | (not single))))
            for modifier in beside[:1]:
                found = found & allowed[h, modifier]
            if "t" in node:
                found = found & (node["s"] != h)
            if "g" in node:
                found = found & allowed[node["g"], h]
                for modifier in beside:
                    found = found & (node["g"] != modifier)
            if "f" in node:
                found = found & allowed[node["f"], node["g"]] & (node["f"] != h)
                for modifier in beside:
                    found = found & (node["f"] != modifier)
            return found & (node["d"] >= 0) if "d" in node else found

        return test


@lru_cache(maxsize=256)
def _shape(axes: str, n: int) -> tuple[int, ...]:
    return tuple(2 if letter == "d" else n + 1 for letter in axes)


TABLE = (
    PartKind("arc", "hm", "hm"),
    PartKind("sibling", "hsm", "hms"),
    PartKind("grandparent", "ghm", "hmg", narrowed=True),
    PartKind("grandsibling", "ghsm", "hmsg", narrowed=True),
    PartKind("trisibling", "htsm", "hmst"),
    PartKind("greatgrandparent", "fghm"),
    PartKind("grandtrisibling", "ghtsm"),
    PartKind("stop", "hds", scored=END),
    PartKind("null", "ghd", scored=EMPTY),
)
PART_KINDS = tuple(kind for kind in TABLE if kind.roles)
HIGHER_KINDS = {kind.name: kind for kind in TABLE[1:]}


class Model(NamedTuple):
    """The kinds of parts that a problem scores above arcs, where, and what its items and states must tell apart."""

    places: dict[str, str]  # of each kind, where it is scored
    ancestors: int  # of the head that parts have: none, its head, and the head of that
    head_at_modifiers: bool  # and so have items and states between the modifiers of a head
    pairs: bool  # items and states between modifiers are about the last two
    outermost: bool  # some parts are scored at outermost modifiers
    terms_of_word: int  # that its arc, its other parts, the two ends of its sides and its empty sides add, at most
    terms_of_root: int  # that the one side of node 0 adds

    def at(self, place: str) -> list[PartKind]:
        """The kinds that are scored there."""
        return [HIGHER_KINDS[name] for name, where in self.places.items() if where == place]


def model_of(names: Iterable[str], narrow: bool) -> Model:
    """The model with these kinds; with ``narrow`` those that can be are scored at outermost modifiers alone."""
    return _model_of(tuple(names), narrow)


@lru_cache(maxsize=256)
def _model_of(names: tuple[str, ...], narrow: bool) -> Model:
    kinds = [HIGHER_KINDS[name] for name in names]
    places = {kind.name: OUTERMOST if narrow and kind.narrowed else kind.scored for kind in kinds}
    letters = {place: {x for kind in kinds if places[kind.name] == place for x in kind.axes} for place in PLACES}
    ancestors = sum(any(letter in found for found in letters.values()) for letter in "gf")
    outermost = OUTERMOST in places.values()
    pairs = "t" in letters[MODIFIER] or "s" in letters[OUTERMOST]
    by_head = ancestors > 0 and ("g" in letters[MODIFIER] or not outermost)
    ends, empty = (list(places.values()).count(place) for place in (END, EMPTY))
    return Model(places, ancestors, by_head, pairs, outermost, 1 + len(places) + ends + empty, ends)
