"""Graphs in normal form put together layer by layer, and cut down to what derivations of the root use."""

from collections.abc import Mapping

import numpy as np

from certus.certificates import sweep
from certus.certificates.normal import Graph, NormalForm
from certus.certificates.rounding import Floats
from certus.checks import Bools, Ints


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

    def graph(self) -> Graph:
        """The graph of all layers; its root is the last vertex."""
        return Graph(_offsets(self._degree), *self._tails.joined(), *self._parts.joined())


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

    def joined(self) -> tuple[Ints, Ints]:
        """Offsets and entries."""
        return np.concatenate(self._ends), np.concatenate(self._flat)


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
    smaller = Graph(_offsets([degree[stays]]), tail_ptr, vertex[graph.tail[tails]], part_ptr, graph.part[parts])
    return smaller, number


def normal_form(graph: Graph, scores: Floats, cells: Mapping[str, Ints]) -> NormalForm:
    """The normal form of one graph, with only those parts that its edges use."""
    mark = np.zeros(len(scores), dtype=bool)
    mark[graph.part] = True
    used = np.flatnonzero(mark)
    number = np.full(len(scores), -1)
    number[used] = np.arange(len(used))
    kept = graph._replace(part=number[graph.part])
    # A cell that is no part has -1, which picks the -1 at the end.
    placed = np.append(number, -1)
    return NormalForm(scores[used], (kept,), {view: placed[cell] for view, cell in cells.items()})


def _offsets(sizes: list[Ints]) -> Ints:
    return np.concatenate(([0], np.cumsum(np.concatenate(sizes)))).astype(np.int64, copy=False)
