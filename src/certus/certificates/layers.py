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
        self._ragged: tuple[list[tuple[Ints, Ints]], list[tuple[Ints, Ints]]] = ([], [])

    def add(self, degree: Ints, tails: Ints, parts: Ints) -> int:
        """Add vertices with so many edges each, and return the number of the first.

        ``tails`` (E, any) and ``parts`` (E, any) are those of the edges, in the order of their heads; -1 for none.
        """
        first = self.vertices
        self.vertices += len(degree)
        self.edges += len(tails)
        self._degree.append(degree)
        for kept, table in zip(self._ragged, (tails, parts), strict=True):
            present = table >= 0
            kept.append((present.sum(axis=1), table[present]))
        return first

    def graph(self) -> Graph:
        """The graph of all layers; its root is the last vertex."""
        (tail_ptr, tail), (part_ptr, part) = (
            (_offsets([sizes for sizes, _ in kept]), _joined([flat for _, flat in kept])) for kept in self._ragged
        )
        return Graph(_offsets(self._degree), tail_ptr, tail, part_ptr, part)


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
    used = np.zeros(len(scores), dtype=bool)
    used[graph.part] = True
    number = np.append(np.where(used, np.cumsum(used) - 1, -1), -1)
    kept = graph._replace(part=number[graph.part])
    return NormalForm(scores[used], (kept,), {view: number[cell] for view, cell in cells.items()})


def _offsets(sizes: list[Ints]) -> Ints:
    return np.concatenate(([0], np.cumsum(_joined(sizes))))


def _joined(pieces: list[Ints]) -> Ints:
    return np.concatenate(pieces).astype(np.int64, copy=False) if pieces else np.zeros(0, dtype=np.int64)
