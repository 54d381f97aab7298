r"""Projective trees scored by head automata as a hypergraph (LR 6.8; split heads as in DEP 5.3; labels as in DEP 5.5).

Items, for a head h below g (where automata depend on it), one of its sides, and the number of words covered there:

    T(q, w)   h with its modifiers on that side and all their descendants, w words, its automaton in state q
    I(q, m)   the same up to the modifier m, whose descendants away from h are still missing, q the state after m
    C(w)      T(q, w) for any q in which the automaton stops

    I(q', m) <- T(q, r), C of m towards h      the step from q to q' by m, and the arc
    T(q, w)  <- I(q, m), C of m away from h    C(w) <- T(q, w)    all trees: C of node 0 on both sides

Here g, h and m are nodes: words, or words with labels, of which a tree has one for each word. O(n^3 Q L^2) edges for n
words, Q states and L labels, times n L where the head of a head counts.
"""

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from certus.certificates.assembling import Assembly, derivation
from certus.certificates.normal import NormalForm
from certus.checks import Floats, Ints
from certus.dependency.head_automata import NO_HEAD, HeadAutomata
from certus.dependency.part_kinds import LEFT, RIGHT
from certus.hypergraph import DynamicProgram, Forest, Hypergraph
from certus.lazy import once

Y = TypeVar("Y")
Slot = tuple[int, int, int]  # (g, h, side)


class Edge(NamedTuple):
    """An edge of the forest: at most two tails, -1 for none; the cell of the arc that it takes, -1 for none."""

    head: int
    first: int
    second: int
    cell: int
    weights: tuple[float, ...]


class Items:
    """The vertices, by level, and the edges of the forest of some automata; the last vertex is the root."""

    def __init__(self, automata: HeadAutomata) -> None:
        self._begin(automata)
        self.taken: dict[tuple[Slot, int], dict[Hashable, int]] = {}  # I by slot and m
        self.whole: dict[tuple[Slot, int], dict[Hashable, int]] = {}  # T by slot and number of words
        self.complete: dict[tuple[Slot, int], int] = {}
        slots = [(g, h, side) for h, side in product(self.word, (LEFT, RIGHT)) for g in automata.heads_of(h)]
        for width in range(self.n + 1):
            for slot in slots:
                if width <= self._room(slot):
                    for m in self._at(slot, width) if width else ():
                        self._take(slot, m, width)
                    self._cover(slot, width)
        root = self._vertex(3 * self.n + 3)
        both = [self.complete.get(((NO_HEAD, 0, side), self.n * side)) for side in (LEFT, RIGHT)]
        if both[0] is not None and both[1] is not None:
            self.edges.append(Edge(root, both[0], both[1], -1, ()))

    def _begin(self, automata: HeadAutomata) -> None:
        self.automata, self.scores = automata, automata.arc.reshape(-1)  # of the cells that edges name
        self.nodes = automata.nodes()
        self.word = {node: word for word, nodes in enumerate(self.nodes) for node in nodes}
        self.n = len(self.nodes) - 1
        self.levels: list[int] = []
        self.edges: list[Edge] = []

    def _room(self, slot: Slot) -> int:
        """How many words there are on the side of a slot, up to the head of its head."""
        g, h, side = slot[0], self.word[slot[1]], slot[2]
        words = self.n - h if side else max(h - 1, 0)
        above = self.word.get(g, NO_HEAD)
        return min(words, abs(above - h) - 1) if above >= 0 and (above > h) == bool(side) else words

    def _at(self, slot: Slot, distance: int) -> list[int]:
        """The nodes of the word so far from the head of a slot."""
        return self.nodes[self.word[slot[1]] + (distance if slot[2] else -distance)]

    def _below(self, slot: Slot, m: int, side: int) -> Slot:
        return (slot[1] if self.automata.by_head else NO_HEAD, m, side)

    def _vertex(self, level: int) -> int:
        self.levels.append(level)
        return len(self.levels) - 1

    def _take(self, slot: Slot, m: int, d: int) -> None:
        """I of the modifier m, at distance d."""
        (g, h, side), automata = slot, self.automata
        if automata.arc[h, m] == -np.inf:
            return
        below, cell = self._below(slot, m, 1 - side), h * len(automata.arc) + m
        found: dict[Hashable, int] = {}
        steps: dict[Hashable, tuple[int, tuple[float, ...]]] = {}  # by state: the vertex after m, -1 for none
        for r in range(d):
            inner = self.complete.get((below, d - 1 - r))
            if inner is None:
                continue
            for state, vertex in self.whole.get((slot, r), {}).items():
                if state not in steps:
                    after, weight = automata.step(g, h, side, state, m)
                    if weight > -np.inf and after not in found:
                        found[after] = self._vertex(3 * d)
                    allowed = weight > -np.inf
                    weights = automata.step_terms(g, h, side, state, m) if allowed else ()
                    steps[state] = found[after] if allowed else -1, weights
                entered, weights = steps[state]
                if entered >= 0:
                    self.edges.append(Edge(entered, vertex, inner, cell, weights))
        self.taken[slot, m] = found

    def _cover(self, slot: Slot, width: int) -> None:
        """T and C of so many words."""
        g, h, side = slot
        found: dict[Hashable, int] = {}
        automaton = self.automata.automaton(g, h, side)
        if width == 0:
            found[automaton.start] = self._vertex(1)
            self.edges.append(Edge(found[automaton.start], -1, -1, -1, ()))
        for d in range(1, width + 1):
            for m in self._at(slot, d):
                outer = self.complete.get((self._below(slot, m, side), width - d))
                for state, vertex in self.taken.get((slot, m), {}).items() if outer is not None else ():
                    if state not in found:
                        found[state] = self._vertex(3 * width + 1)
                    self.edges.append(Edge(found[state], vertex, -1 if outer is None else outer, -1, ()))
        self.whole[slot, width] = found
        stops = [(vertex, automaton.stop(state)) for state, vertex in found.items()]
        stops = [(vertex, weight) for vertex, weight in stops if weight > -np.inf]
        if stops:
            end = self.complete[slot, width] = self._vertex(3 * width + 2)
            self.edges += [Edge(end, vertex, -1, -1, (weight,)) for vertex, weight in stops]

    def forest(self, cells: Mapping[str, Ints]) -> Forest:
        """The hypergraph; ``cells[view]`` is the cell of the view, or -1, for each cell that edges name."""
        n_vertices = len(self.levels)
        tails = [[v for v in (edge.first, edge.second) if v >= 0] for edge in self.edges]
        tail_ptr = np.cumsum([0, *map(len, tails)])
        flat = np.array([v for tail in tails for v in tail], dtype=np.int64)
        heads = np.array([edge.head for edge in self.edges], dtype=np.int64)
        graph, order, _ = Hypergraph.from_edges(heads, tail_ptr, flat, n_vertices=n_vertices, root=n_vertices - 1)
        cell = np.array([edge.cell for edge in self.edges], dtype=np.int64)
        weight = np.array([sum(edge.weights) for edge in self.edges], dtype=np.float64)
        weight[cell >= 0] += self.scores[cell[cell >= 0]]
        cell = cell[order]
        views = {view: np.where(cell >= 0, number[cell], -1) for view, number in cells.items()}
        return Forest(graph, weight[order], views)

    def normal_form(self, cells: Mapping[str, Ints], scores: Mapping[str, Floats]) -> NormalForm:
        """Cells of views, which have ``scores``, and weights of automata are parts, so that no sum is rounded."""
        graph = Assembly()
        graph.vertices(np.array(self.levels, dtype=np.int64))
        head, first, second, cell = np.array([edge[:4] for edge in self.edges], dtype=np.int64).reshape(-1, 4).T
        columns, parts = [], {}
        for view, number in cells.items():
            flat = scores[view].reshape(-1)
            parts[view] = np.full(flat.shape, -1, dtype=np.int64)
            parts[view][flat > -np.inf] = graph.parts(flat[flat > -np.inf], always=True)
            column = np.full(cell.shape, -1, dtype=np.int64)
            column[cell >= 0] = np.append(parts[view], -1)[number[cell[cell >= 0]]]
            columns.append(column)
        for k in range(max((len(edge.weights) for edge in self.edges), default=0)):
            weights = [edge.weights[k] if k < len(edge.weights) else 0.0 for edge in self.edges]
            columns.append(graph.parts(np.array(weights, dtype=np.float64)))
        graph.edges(head, [first, second], columns)
        return graph.form(len(self.levels) - 1, parts)


class OverItems(DynamicProgram[Y]):
    """A problem that is answered over the items of its automata."""

    automata: HeadAutomata
    items_kind: ClassVar[type[Items]] = Items

    @property
    @abstractmethod
    def _cells(self) -> Mapping[str, Ints]:
        """The cell of each view, or -1, for each cell that edges name."""

    @abstractmethod
    def _cell_scores(self) -> Mapping[str, Floats]:
        """What the cells of the views score, -inf where they are forbidden; the weights of automata come on top."""

    @cached_property
    def _items(self) -> Items:
        return self.items_kind(self.automata)

    @once
    def forest(self) -> Forest:
        return self._items.forest(self._cells)

    @once
    def normal_form(self) -> NormalForm:
        return self._items.normal_form(self._cells, self._cell_scores())

    def normal_structure(self, structure: Any) -> tuple[Any, ...]:
        return (derivation(self.normal_form(), {view: self.indicator(structure, view) for view in self.views}),)
