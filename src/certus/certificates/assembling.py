"""Graphs in normal form put together, layer by layer or of edges in any order; cut down to what derivations use."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from certus.certificates import sweep
from certus.certificates.normal import Graph, NormalForm
from certus.certificates.ragged import offsets
from certus.certificates.rounding import Floats
from certus.checks import Bools, Ints
from certus.errors import InvalidInput, NotSupported

MOST_EDGES = 20_000_000


class Layers:
    """The edges of a graph, bottom up: each layer is some new vertices and all edges into them."""

    def __init__(self) -> None:
        self.vertices = self.edges = 0
        self._degree: list[Ints] = []
        self._tails, self._parts = _Ragged(), _Ragged()

    def add(self, degree: Ints, tails: Ints, parts: Ints) -> int:
        """Add vertices with so many edges each, and return the number of the first.

        ``tails`` (E, any) and ``parts`` (E, any) are those of the edges, in the order of their heads; -1 for none.
        """
        first = self.vertices
        self.vertices += len(degree)
        self.edges += len(tails)
        self._degree.append(degree)
        self._tails.add(tails)
        self._parts.add(parts)
        return first

    @classmethod
    def from_top(
        cls, found: Iterable[tuple[Ints, Ints, Ints, Ints]], items: int, advice: str
    ) -> tuple["Layers", NDArray[np.int32]]:
        """Layers that are found from the root down, and the vertex of each item, -1 for none.

        Each is some items, how many edges each has, and the tails, which are items, and parts of these edges. More than
        MOST_EDGES of them are NotSupported.
        """
        pending, edges = [], 0
        for layer in found:
            pending.append(layer)
            edges += len(layer[2])
            if edges > MOST_EDGES:
                raise NotSupported(f"the graph has more than {MOST_EDGES} edges, too many to check. {advice}")
        number = np.full(items, -1, dtype=np.int32)
        layers = cls()
        while pending:
            own, degree, tails, parts = pending.pop()
            first = layers.add(degree, np.where(tails >= 0, number[tails], -1), parts)
            number[own] = first + np.arange(len(own))
        return layers, number

    def graph(self) -> Graph:
        """The graph of all layers; its root is the last vertex."""
        return Graph(offsets(np.concatenate(self._degree)), *self._tails.joined(), *self._parts.joined())


class _Ragged:
    """Rows of various lengths, laid end to end."""

    def __init__(self) -> None:
        self._ends, self._flat, self._size = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 0

    def add(self, table: Ints) -> None:
        """More rows, -1 where they have no entry."""
        rows, columns = table.shape
        if columns and table.min(initial=0) >= 0:
            self._ends.append(np.arange(self._size + columns, self._size + rows * columns + 1, columns))
            self._flat.append(table.reshape(-1))
        else:
            present = table >= 0
            self._ends.append(self._size + np.cumsum(present.sum(axis=1)))
            self._flat.append(table[present])
        self._size += len(self._flat[-1])

    def joined(self, order: Ints | None = None) -> tuple[Ints, Ints]:
        """Offsets and entries, of rows in another order if one is given."""
        ends, flat = np.concatenate(self._ends), np.concatenate(self._flat)
        if order is None:
            return ends, flat
        ends, places = sweep.rows(ends, order)
        return ends, flat[places]


class Assembly:
    """Vertices, edges and parts of a graph, many at a time, in any order. Edges lead from lower to higher levels."""

    def __init__(self) -> None:
        self._levels: list[Ints] = []
        self._heads: list[Ints] = []
        self._tails, self._parts = _Ragged(), _Ragged()
        self._scores: list[Floats] = []
        self.n_vertices = self.n_parts = 0

    def vertices(self, level: Ints) -> Ints:
        """The numbers of new vertices at these levels."""
        self._levels.append(level.reshape(-1))
        first, self.n_vertices = self.n_vertices, self.n_vertices + level.size
        return np.arange(first, self.n_vertices).reshape(level.shape)

    def parts(self, scores: Floats, *, always: bool = False) -> Ints:
        """The numbers of new parts; -1 for those that score 0, which need not be told, unless ``always``."""
        self._scores.append(scores)
        first, self.n_parts = self.n_parts, self.n_parts + len(scores)
        numbers = np.arange(first, self.n_parts)
        return numbers if always else np.where(scores == 0.0, -1, numbers)

    def edges(self, head: Ints, tails: Sequence[Ints], parts: Sequence[Ints]) -> None:
        """New edges: in tails and parts one array for each place, -1 where an edge has none."""
        none = np.empty((len(head), 0), dtype=np.int64)
        self._heads.append(head)
        self._tails.add(np.stack(tails, axis=1) if tails else none)
        self._parts.add(np.stack(parts, axis=1) if parts else none)

    def form(self, root: int, cells: Mapping[str, Ints]) -> NormalForm:
        """The normal form of the derivations of a vertex, above all others: without dead edges, and unused parts."""
        level = np.concatenate(self._levels)
        level[root] = level.max() + 1
        order = np.argsort(level, kind="stable")
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        head = number[np.concatenate(self._heads)]
        order = np.argsort(head, kind="stable")
        tail_ptr, tail = self._tails.joined(order)
        graph = Graph(
            offsets(np.bincount(head, minlength=len(level))), tail_ptr, number[tail], *self._parts.joined(order)
        )
        scores = np.concatenate((*self._scores, np.zeros(0)))
        allowed = sweep.edge_weights(graph, np.where(scores > -np.inf, 0.0, -np.inf)) == 0.0
        return normal_form(trimmed(graph, allowed)[0], scores, cells)


def trimmed(graph: Graph, allowed: Bools) -> tuple[Graph, Ints]:
    """The graph of the allowed edges that are in a derivation of the root by allowed edges; and the new edges' numbers.

    The second, of shape (E,), has the new number of each edge, -1 if it is left out.
    """
    plan = sweep.levels(graph)
    weight = np.where(allowed, 0.0, -np.inf)
    kept = sweep.edge_max_marginals(plan, weight, sweep.inside(plan, weight)) > -np.inf
    degree = np.add.reduceat(np.append(kept, False), graph.in_ptr[:-1], dtype=np.int64)
    degree[np.diff(graph.in_ptr) == 0] = 0
    stays = degree > 0
    stays[-1] = True  # the root, even if nothing derives it
    vertex = np.cumsum(stays) - 1
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    edges = np.flatnonzero(kept)
    tail_ptr, tails = sweep.rows(graph.tail_ptr, edges)
    part_ptr, parts = sweep.rows(graph.part_ptr, edges)
    smaller = Graph(offsets(degree[stays]), tail_ptr, vertex[graph.tail[tails]], part_ptr, graph.part[parts])
    return smaller, number


def normal_form(graph: Graph, scores: Floats, cells: Mapping[str, Ints]) -> NormalForm:
    """The normal form of one graph, with only those parts that its edges use."""
    used = np.zeros(len(scores), dtype=bool)
    used[graph.part] = True
    number = np.append(np.where(used, np.cumsum(used) - 1, -1), -1)  # a cell that is no part has -1: the last
    kept = graph._replace(part=number[graph.part])
    return NormalForm(scores[used], (kept,), {view: number[cell] for view, cell in cells.items()})


def derivation(form: NormalForm, used: Mapping[str, Floats]) -> list[int]:
    """The edges, heads before tails, of the derivation of the only space that uses these cells of views and no others.

    InvalidInput if there is none. Derivations must differ in the cells that they use.
    """
    (graph,) = form.spaces
    assert isinstance(graph, Graph)
    scores, count = np.zeros(len(form.scores)), 0.0
    for view, indicator in used.items():
        flat, part = indicator.reshape(-1), form.cells[view]
        scores[part[part >= 0]] = np.where(flat > 0, 1.0, -np.inf)[part >= 0]
        count += float(flat.sum())
    plan, weight = sweep.levels(graph), sweep.edge_weights(graph, scores)
    chart = sweep.inside(plan, weight)
    if chart[-1] != count:
        raise InvalidInput("the structure uses a forbidden part: the normal form does not have it.")
    return sweep.best_derivation(graph, plan, weight, chart)
