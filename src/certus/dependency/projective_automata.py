r"""Trees without crossing arcs, scored by any head automata: a dynamic program (LR 6.8; split heads as in DEP 5.3).

Items, for a head h below g (where automata depend on it), one of its sides, and the number of words covered there:

    T(q, w)   h with its modifiers on that side and all their descendants, w words, its automaton in state q
    I(q, m)   the same up to the modifier m, whose descendants away from h are still missing, q the state after m
    C(w)      T(q, w) for any q in which the automaton stops

    I(q', m) <- T(q, r), C of m towards h      the step from q to q' by m, and the arc
    T(q, w)  <- I(q, m), C of m away from h    C(w) <- T(q, w)    all trees: C of node 0 on both sides

O(n^3 Q) edges for n words and Q states, times n where the head of a head counts.
"""

from collections.abc import Hashable
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from certus.certificates.assembling import Assembly, derivation
from certus.certificates.normal import NormalForm
from certus.certificates.rounding import of_log_sum
from certus.checks import Ints
from certus.dependency.automata_problem import AutomataDependency
from certus.dependency.head_automata import NO_HEAD, HeadAutomata
from certus.dependency.part_kinds import LEFT, RIGHT
from certus.hypergraph import DynamicProgram, Forest, Hypergraph
from certus.relax.steps import StepRule
from certus.result import LogPartitionBounds, MarginalEstimates, Result

Slot = tuple[int, int, int]  # (g, h, side)


class Edge(NamedTuple):
    """An edge of the forest: at most two tails, -1 for none; the cell of the arc that it takes, -1 for none."""

    head: int
    first: int
    second: int
    cell: int
    weight: float


class Items:
    """The vertices, by level, and the edges of the forest of some automata; the last vertex is the root."""

    def __init__(self, automata: HeadAutomata) -> None:
        self.automata, self.n = automata, automata.n
        self.levels: list[int] = []
        self.edges: list[Edge] = []
        self.taken: dict[tuple[Slot, int], dict[Hashable, int]] = {}  # I by slot and distance of m
        self.whole: dict[tuple[Slot, int], dict[Hashable, int]] = {}  # T by slot and number of words
        self.complete: dict[tuple[Slot, int], int] = {}
        slots = [(g, h, side) for h, side in product(range(self.n + 1), (LEFT, RIGHT)) for g in automata.heads_of(h)]
        for width in range(self.n + 1):
            for slot in slots:
                if width <= self._room(slot):
                    self._take(slot, width)
                    self._cover(slot, width)
        root = self._vertex(3 * self.n + 3)
        both = [self.complete.get(((NO_HEAD, 0, side), self.n * side)) for side in (LEFT, RIGHT)]
        if both[0] is not None and both[1] is not None:
            self.edges.append(Edge(root, both[0], both[1], -1, 0.0))

    def _room(self, slot: Slot) -> int:
        """How many words there are on the side of a slot, up to the head of its head."""
        g, h, side = slot
        words = self.n - h if side else max(h - 1, 0)
        return min(words, abs(g - h) - 1) if g >= 0 and (g > h) == bool(side) else words

    def _vertex(self, level: int) -> int:
        self.levels.append(level)
        return len(self.levels) - 1

    def _take(self, slot: Slot, d: int) -> None:
        """I of the modifier at distance d."""
        (g, h, side), automata = slot, self.automata
        m = h + d if side else h - d
        if d == 0 or automata.arc[h, m] == -np.inf:
            return
        below = (h if automata.by_head else NO_HEAD, m, 1 - side)
        found: dict[Hashable, int] = {}
        for r in range(d):
            inner = self.complete.get((below, d - 1 - r))
            if inner is None:
                continue
            for state, vertex in self.whole.get((slot, r), {}).items():
                after, weight = automata.step(g, h, side, state, m)
                if weight == -np.inf:
                    continue
                if after not in found:
                    found[after] = self._vertex(3 * d)
                self.edges.append(Edge(found[after], vertex, inner, h * (self.n + 1) + m, weight))
        self.taken[slot, d] = found

    def _cover(self, slot: Slot, width: int) -> None:
        """T and C of so many words."""
        g, h, side = slot
        found: dict[Hashable, int] = {}
        automaton = self.automata.automaton(g, h, side)
        if width == 0:
            found[automaton.start] = self._vertex(1)
            self.edges.append(Edge(found[automaton.start], -1, -1, -1, 0.0))
        for d in range(1, width + 1):
            below = (h if self.automata.by_head else NO_HEAD, h + d if side else h - d, side)
            outer = self.complete.get((below, width - d))
            for state, vertex in self.taken.get((slot, d), {}).items() if outer is not None else ():
                if state not in found:
                    found[state] = self._vertex(3 * width + 1)
                self.edges.append(Edge(found[state], vertex, -1 if outer is None else outer, -1, 0.0))
        self.whole[slot, width] = found
        stops = [(vertex, automaton.stop(state)) for state, vertex in found.items()]
        stops = [(vertex, weight) for vertex, weight in stops if weight > -np.inf]
        if stops:
            end = self.complete[slot, width] = self._vertex(3 * width + 2)
            self.edges += [Edge(end, vertex, -1, -1, weight) for vertex, weight in stops]


class ProjectiveAutomata(DynamicProgram[Ints], AutomataDependency):
    """The best projective tree when every head scores its modifiers by an automaton; every question has an answer.

    As ``AutomataDependency``, without crossing arcs: a dynamic program of O(n^3 Q) edges for Q states, times n with
    ``by_head``. Certificate kind: "dynamic program".

    Examples
    --------
    At most one modifier on a side:

    >>> class One:
    ...     start = 0
    ...     def step(self, state, m):
    ...         return state + 1, 0.0 if state < 1 else float("-inf")
    ...     def stop(self, state):
    ...         return 0.0
    >>> p = ProjectiveAutomata([[0, 5, 1, 1], [0, 0, 4, 4], [0, 0, 0, 3], [0, 0, 2, 0]], lambda g, h, side: One())
    >>> [(r.structure.tolist(), r.score) for r in p.kbest(2)]
    [([-1, 0, 1, 2], 12.0), ([-1, 0, 3, 1], 11.0)]
    """

    name: ClassVar[str] = "projective automata"
    projective: ClassVar[bool] = True

    @cached_property
    def _items(self) -> Items:
        return Items(self.automata)

    @cached_property
    def _forest(self) -> Forest:
        edges, n_vertices = self._items.edges, len(self._items.levels)
        tails = [[v for v in (edge.first, edge.second) if v >= 0] for edge in edges]
        tail_ptr = np.cumsum([0, *map(len, tails)])
        flat = np.array([v for tail in tails for v in tail], dtype=np.int64)
        heads = np.array([edge.head for edge in edges], dtype=np.int64)
        graph, order, _ = Hypergraph.from_edges(heads, tail_ptr, flat, n_vertices=n_vertices, root=n_vertices - 1)
        cell = np.array([edge.cell for edge in edges], dtype=np.int64)
        weight = np.array([edge.weight for edge in edges])
        weight[cell >= 0] += self.arc.reshape(-1)[cell[cell >= 0]]
        return Forest(graph, weight[order], {"arcs": cell[order]})

    def forest(self) -> Forest:
        return self._forest

    def from_edges(self, edges: Any) -> Ints:
        cell = self._forest.parts["arcs"][np.asarray(edges, dtype=np.int64)]
        head, mod = np.divmod(cell[cell >= 0], self.n + 1)
        heads = np.full(self.n + 1, -1, dtype=np.int64)
        heads[mod] = head
        return heads

    def decode(
        self,
        *,
        max_iterations: int = 500,
        time_limit: float | None = None,
        exact: bool = True,
        step: StepRule[Any] | None = None,
    ) -> Result[Ints]:
        """The best tree. The limits and the step rule are for trees that are relaxed."""
        return DynamicProgram.decode(self)

    def relaxation(self) -> None:
        """None: there is an exact algorithm."""
        return None

    def log_partition_bounds(self, *, iterations: int = 150) -> LogPartitionBounds:
        """The log-partition function, but for rounding."""
        value, extent, edges = self.log_partition(), self.extent(), len(self._items.edges)
        if value == -np.inf:
            return LogPartitionBounds(value, value, "no tree", "no tree")
        error = of_log_sum(edges, extent.length * extent.size + edges)
        return LogPartitionBounds(value - error, value + error, "all trees", "all trees")

    def marginal_estimates(self, *, samples: int = 1000, seed: int | None = None) -> MarginalEstimates:
        """The marginals, which are exact."""
        return MarginalEstimates.known(self.marginals(), self.log_partition())

    @cached_property
    def _normal_form(self) -> NormalForm:
        """Arcs and weights of automata are parts of their own, so that no sum of them is rounded."""
        graph, edges = Assembly(), self._items.edges
        graph.vertices(np.array(self._items.levels, dtype=np.int64))
        allowed = self.arc.reshape(-1) > -np.inf
        cells = np.full(allowed.shape, -1, dtype=np.int64)
        cells[allowed] = graph.parts(self.arc.reshape(-1)[allowed], always=True)
        head, first, second, cell = np.array([edge[:4] for edge in edges], dtype=np.int64).reshape(-1, 4).T
        weights = graph.parts(np.array([edge.weight for edge in edges], dtype=np.float64))
        graph.edges(head, [first, second], [np.where(cell >= 0, cells[cell], -1), weights])
        return graph.form(len(self._items.levels) - 1, {"arcs": cells})

    def normal_form(self) -> NormalForm:
        return self._normal_form

    def normal_structure(self, structure: Any) -> tuple[Any, ...]:
        return (derivation(self._normal_form, {"arcs": self.indicator(structure, "arcs")}),)

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return super().from_json(data)
