"""Word lattices and confusion networks as input of translation: PLF, as Moses and cdec read it, and the same as JSON.

PLF, the "Python lattice format", is one line of nested tuples. The k-th tuple holds the arcs that leave node k, each a
word, one score or more, and how many nodes further it leads:

    ((('das',0.75,1),('dass',0.25,1),),(('haus',1.0,1),),)

The last node is the one after the last tuple. In a confusion network every arc leads one node further. The word
``*EPS*``, or an empty one, is none. JSON has lists in place of tuples, or an object with "edges": lists of start, end,
word and scores. What is read is data and nothing else: no line is ever evaluated as Python.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, log
from typing import Any

from certus.errors import FormatError, InvalidInput

EPSILON = "*EPS*"
SHAPE = "expected one entry per node: its arcs, each a word, scores and the number of nodes that it leads further"
_TOKEN = re.compile(r"""\s*(?:([(),\[\]])|'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([-+]?[\w.][-+\w.]*))""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Arc:
    """A word between two nodes, and its score, a logarithm."""

    start: int
    end: int
    word: str
    score: float


@dataclass(frozen=True, slots=True)
class WordLattice:
    """Nodes 0 .. n_nodes - 1, from the first to the last of which every path is a sentence; arcs lead to later nodes.

    Examples
    --------
    >>> lattice = WordLattice.parse("((('a',0.5,1),('b',0.5,2),),(('c',1,1),),)")
    >>> [(arc.start, arc.end, arc.word) for arc in lattice.arcs]
    [(0, 1, 'a'), (0, 2, 'b'), (1, 2, 'c')]
    """

    n_nodes: int
    arcs: tuple[Arc, ...]

    @classmethod
    def parse(cls, text: str, *, probabilities: bool = True, place: object = "lattice") -> "WordLattice":
        """A lattice in PLF or JSON. Scores are probabilities, as Moses takes them, or, if not, logarithms already.

        FormatError, which begins with ``place``, says what is wrong.
        """
        try:
            return cls.of(_json(text) if text.lstrip()[:1] in "[{" else _plf(text), probabilities=probabilities)
        except InvalidInput as wrong:
            raise FormatError(place, None, str(wrong)) from None

    @classmethod
    def of(cls, data: Any, *, probabilities: bool = True) -> "WordLattice":
        """A lattice given as nested lists or tuples in the shape of PLF, or as a mapping with "edges"."""
        if isinstance(data, WordLattice):
            return data
        rows = _edges(data) if isinstance(data, Mapping) else _columns(data)
        arcs = tuple(_arc(k, row, probabilities) for k, row in enumerate(rows))
        n_nodes = 1 + max((arc.end for arc in arcs), default=0)
        if not isinstance(data, Mapping):
            n_nodes = max(n_nodes, len(data) + 1)
        reached = {0}
        for arc in sorted(arcs, key=lambda arc: arc.start):
            if arc.start in reached:
                reached.add(arc.end)
        if n_nodes - 1 not in reached:
            raise InvalidInput(f"no path of the lattice leads from node 0 to its last node, {n_nodes - 1}.")
        return cls(n_nodes, arcs)

    def without_epsilons(self) -> "WordLattice":
        """The same sentences without the empty word: it goes with the word before it, at the begin with the one after.

        Of arcs between the same nodes with the same word the best is kept. Paths without any word are left out.
        """
        empty: dict[int, dict[int, float]] = {}
        for start in range(self.n_nodes - 1, -1, -1):
            found = empty[start] = {start: 0.0}
            for arc in self.arcs:
                if arc.start == start and not arc.word:
                    for end, score in empty[arc.end].items():
                        found[end] = max(found.get(end, -inf), arc.score + score)
        best: dict[tuple[int, int, str], float] = {}
        for arc in self.arcs:
            if arc.word:
                before = {0: empty[0].get(arc.start, -inf)} if empty[0].get(arc.start, -inf) > -inf else {}
                for start, lead in ({arc.start: 0.0} | before).items():
                    for end, score in empty[arc.end].items():
                        key = start, end, arc.word
                        best[key] = max(best.get(key, -inf), arc.score + lead + score)
        return WordLattice(self.n_nodes, tuple(Arc(*key, score) for key, score in sorted(best.items())))

    def leaving(self) -> list[list[Arc]]:
        """The arcs that leave each node."""
        out: list[list[Arc]] = [[] for _ in range(self.n_nodes)]
        for arc in self.arcs:
            out[arc.start].append(arc)
        return out

    def positions(self) -> tuple[str, ...]:
        """A name for each step from a node to the next: the words that start there."""
        return tuple("|".join(sorted({a.word or EPSILON for a in arcs})) for arcs in self.leaving()[:-1])


def is_words(source: Any) -> bool:
    """Whether a source is a list of words, not a lattice."""
    if isinstance(source, WordLattice | Mapping) or (isinstance(source, Sequence) and not isinstance(source, str)):
        return not isinstance(source, WordLattice | Mapping) and not any(isinstance(x, list | tuple) for x in source)
    return True


def _edges(data: Mapping[str, Any]) -> list[Any]:
    if "edges" not in data or not isinstance(data["edges"], Sequence) or isinstance(data["edges"], str):
        raise InvalidInput('a lattice that is a mapping has "edges": lists of start, end, word and scores.')
    rows = []
    for k, edge in enumerate(data["edges"]):
        if not isinstance(edge, list | tuple) or len(edge) < 3:
            raise InvalidInput(f"edge {k} of the lattice is {edge!r}; expected start, end, word and scores.")
        start, end, word, *scores = edge
        rows.append((start, end, word, scores))
    return rows


def _columns(data: Any) -> list[Any]:
    if not isinstance(data, list | tuple) or not data:
        raise InvalidInput(
            f"a lattice is {type(data).__name__}; {SHAPE}." if data else f"the lattice is empty; {SHAPE}."
        )
    rows = []
    for start, column in enumerate(data):
        if not isinstance(column, list | tuple):
            raise InvalidInput(f"node {start} of the lattice is {column!r}; {SHAPE}.")
        for arc in column:
            if not isinstance(arc, list | tuple) or len(arc) < 2 or not isinstance(arc[0], str):
                raise InvalidInput(f"an arc of node {start} is {arc!r}; {SHAPE}.")
            word, *scores, further = arc
            if isinstance(further, bool) or not isinstance(further, int | float) or further != int(further):
                raise InvalidInput(f"arc {arc!r} of node {start} leads {further!r} nodes further; expected 1 or more.")
            rows.append((start, start + int(further), word, scores))
    return rows


def _arc(k: int, row: tuple[Any, Any, Any, Sequence[Any]], probabilities: bool) -> Arc:
    start, end, word, scores = row
    for node in (start, end):
        if isinstance(node, bool) or not isinstance(node, int) or node < 0:
            raise InvalidInput(f"arc {k} of the lattice leads from {start!r} to {end!r}; expected whole numbers.")
    if end <= start:
        raise InvalidInput(f"arc {k} of the lattice leads from node {start} to {end}; arcs lead to later nodes.")
    if not isinstance(word, str) or word.split() != [word] * bool(word):
        raise InvalidInput(f"arc {k} of the lattice has the word {word!r}; expected a string without blanks.")
    total = 0.0
    for score in scores:
        if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score):
            raise InvalidInput(f"arc {k} ({word!r}) of the lattice has the score {score!r}; expected a number.")
        if probabilities and score < 0.0:
            raise InvalidInput(f"arc {k} ({word!r}) of the lattice has probability {score}; logarithms are asked for.")
        total += (log(score) if score > 0.0 else -inf) if probabilities else float(score)
    return Arc(start, end, "" if word == EPSILON else word, total)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise InvalidInput(f"the lattice is no JSON: {wrong}.") from None


def _plf(text: str) -> Any:
    """The nested tuples of a line, as lists."""
    stack: list[list[Any]] = [[]]
    at, depth = 0, 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidInput(f"the lattice has {text[at : at + 20]!r} at character {at + 1}; expected PLF.")
        mark, single, double, number = match.groups()
        if mark in ("(", "["):
            stack.append([])
            depth += 1
            if depth > 3:
                raise InvalidInput(f"the lattice opens a fourth bracket at character {at + 1}; {SHAPE}.")
        elif mark in (")", "]"):
            if depth == 0:
                raise InvalidInput(f"the lattice closes a bracket that is not open at character {at + 1}.")
            depth -= 1
            done = stack.pop()
            stack[-1].append(done)
        elif number is not None:
            stack[-1].append(_number(number))
        elif mark is None:
            quoted = single if single is not None else double
            stack[-1].append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        at = match.end()
    if depth or len(stack[0]) != 1:
        raise InvalidInput("the brackets of the lattice do not match." if depth else f"the lattice is no PLF; {SHAPE}.")
    return stack[0][0]


def _number(text: str) -> float | int:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"the lattice has {text!r} where a number or a quoted word is expected.") from None


def lattices(lines: Iterable[str], *, probabilities: bool = True, path: object = "lattices") -> list[WordLattice]:
    """One lattice a line."""
    return [
        WordLattice.parse(line, probabilities=probabilities, place=f"{path}:{k}") for k, line in enumerate(lines, 1)
    ]
