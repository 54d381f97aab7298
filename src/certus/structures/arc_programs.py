"""Parts of semantic dependency graphs that are dynamic programs: arcs in chains, and pairs of arcs one after the other.

Both are over all arcs h -> m of nodes 0 .. n, in any number, but for arcs into node 0 and from a word to itself.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Ints
from certus.errors import InvalidInput
from certus.structures.layout import Edges, Layout, edges, layout_of
from certus.structures.program import LabelProgram, as_array

SIBLING, COPARENT = "sibling", "coparent"


def as_graph(structure: Any, n: int) -> Ints:
    """A graph as an array (n + 1, n + 1) of 0 and 1; InvalidInput for what is none."""
    array = np.asarray(structure)
    if array.shape != (n + 1, n + 1) or array.dtype.kind not in "iub" or not ((array == 0) | (array == 1)).all():
        raise InvalidInput(
            f"the structure has shape {array.shape} and type {array.dtype}; expected {(n + 1, n + 1)} of 0 and 1."
        )
    if array[:, 0].any() or array.diagonal().any():
        raise InvalidInput("the structure has an arc into node 0, or from a word to itself.")
    return array.astype(np.int64)


def chains(n: int, kind: str) -> Iterator[tuple[int, list[int]]]:
    """For each node and side the nodes there that it may have an arc to (siblings) or from (coparents), inside out."""
    for a in range(1 if kind == COPARENT else 0, n + 1):
        least = 0 if kind == COPARENT else 1
        yield a, list(range(a - 1, least - 1, -1))
        yield a, list(range(a + 1, n + 1))


class ArcChains(LabelProgram):
    """Arcs scored by themselves, and with the next one inside from the same head (siblings) or to the same word."""

    view = "arcs"
    names = ("arc", SIBLING, COPARENT)

    def __init__(self, arc: ArrayLike, sibling: ArrayLike | None = None, coparent: ArrayLike | None = None) -> None:
        first = as_array("arc", arc, (None, None))
        size = len(first)
        if first.shape != (size, size) or not size:
            raise InvalidInput(f"arc has shape {first.shape}; expected (words + 1, words + 1).")
        given = {SIBLING: sibling, COPARENT: coparent}
        pairs = {name: as_array(name, a, (size,) * 3) for name, a in given.items() if a is not None}
        self.n, self.kind = size - 1, next(iter(pairs), "")
        super().__init__({"arc": first, **pairs}, _chain_layout(self.n, self.kind) if pairs else _arc_layout(self.n))

    def cells_of(self, structure: Any) -> Ints:
        found: Ints = np.flatnonzero(as_graph(structure, self.n))
        return found

    def parts_of(self, structure: Any) -> Ints:
        graph = as_graph(structure, self.n)
        arcs: Ints = np.flatnonzero(graph)
        if not self.kind:
            return arcs
        return np.concatenate([arcs, *(self.layout.cells + cell for cell in _pair_cells(graph, self.n, self.kind))])

    def rows(self, cells: Ints) -> Ints:
        graph = np.zeros(self.shape, dtype=np.int64)
        graph.reshape(-1)[cells] = 1
        return graph


def _pair_cell(kind: str, size: int, anchor: Any, inner: Any, outer: Any) -> Any:
    """The flat cell of a pair: sibling[h, s, m], coparent[h, g, m]; the inner one is the anchor where there is none."""
    first, last = (anchor, outer) if kind == SIBLING else (outer, anchor)
    return (first * size + inner) * size + last


def _pair_cells(graph: Ints, n: int, kind: str) -> Iterator[Ints]:
    lines = graph if kind == SIBLING else graph.T
    for a, others in chains(n, kind):
        used = np.array([a, *(b for b in others if lines[a, b])])
        yield _pair_cell(kind, n + 1, a, used[:-1], used[1:])


@lru_cache(maxsize=32)
def _arc_layout(n: int) -> Layout:
    """Each arc is taken or not, one after the other."""
    cell = np.flatnonzero(~np.eye(n + 1, dtype=bool) & (np.arange(n + 1) > 0))
    step = np.arange(len(cell))
    blocks = [edges(np.zeros(1, dtype=np.int64)), edges(step + 1, (step,)), edges(step + 1, (step,), (cell,))]
    return layout_of(len(cell) + 1, blocks, (n + 1) ** 2, (n + 1) ** 2, len(cell))


@lru_cache(maxsize=32)
def _chain_layout(n: int, kind: str) -> Layout:
    """Chain after chain: its start, a vertex for each node that is taken last, and its end."""
    size, cells = n + 1, (n + 1) ** 2
    blocks: list[Edges] = [edges(np.zeros(1, dtype=np.int64))]
    end = 0
    for a, others in chains(n, kind):
        nodes = np.array([a, *others])
        outer, inner = np.tril_indices(len(nodes), -1)
        arc: Ints = a * size + nodes[outer] if kind == SIBLING else nodes[outer] * size + a
        part = cells + _pair_cell(kind, size, a, nodes[inner], nodes[outer])
        start = end + 1
        blocks.append(edges(np.array([start]), (np.array([end]),)))
        blocks.append(edges(start + outer, (start + inner,), (arc, part)))
        end = start + len(nodes)
        blocks.append(edges(np.full(len(nodes), end), (start + np.arange(len(nodes)),)))
    return layout_of(end + 1, blocks, cells, cells + size**3, 2 * n * size)


class ArcPairs(LabelProgram):
    """Arcs g -> h -> m: copies[0, g, h, m] says that the first is there, copies[1, g, h, m] the second."""

    view = "copies"
    names = ("copies", "grandparent")

    def __init__(self, copies: ArrayLike, grandparent: ArrayLike) -> None:
        first = as_array("copies", copies, (2, None, None, None))
        self.n = first.shape[1] - 1
        pairs = as_array("grandparent", grandparent, (self.n + 1,) * 3)
        super().__init__({"copies": first, "grandparent": pairs}, _pair_layout(self.n))

    def cells_of(self, structure: Any) -> Ints:
        found: Ints = np.flatnonzero(structure)
        return found

    def parts_of(self, structure: Any) -> Ints:
        used = np.asarray(structure)
        pairs = np.flatnonzero(used[0] & used[1])
        return np.concatenate((np.flatnonzero(used), self.layout.cells + pairs))

    def rows(self, cells: Ints) -> Ints:
        used = np.zeros(self.shape, dtype=np.int64)
        used.reshape(-1)[cells] = 1
        return used


def copies_of(graph: Ints) -> Ints:
    """What ``ArcPairs`` says of a graph."""
    size = len(graph)
    read = _paths(size - 1)
    first = np.broadcast_to(graph[:, :, None], (size,) * 3)
    second = np.broadcast_to(graph[None], (size,) * 3)
    return np.where(read, np.stack((first, second)), 0)


def _paths(n: int) -> Any:
    """(n + 1, n + 1, n + 1) whether g -> h -> m are arcs."""
    arc = ~np.eye(n + 1, dtype=bool) & (np.arange(n + 1) > 0)
    return arc[:, :, None] & arc[None]


@lru_cache(maxsize=32)
def _pair_layout(n: int) -> Layout:
    """For each g -> h -> m: whether the first is there, then the second. Three vertices each."""
    cell = np.flatnonzero(_paths(n))
    size = (n + 1) ** 3
    start = 3 * np.arange(len(cell))
    blocks = [
        edges(np.zeros(1, dtype=np.int64)),
        edges(start + 1, (start,)),
        edges(start + 2, (start,), (cell,)),
        edges(start + 3, (start + 1,)),
        edges(start + 3, (start + 1,), (size + cell,)),
        edges(start + 3, (start + 2,)),
        edges(start + 3, (start + 2,), (size + cell, 2 * size + cell)),
    ]
    return layout_of(3 * len(cell) + 1, blocks, 2 * size, 3 * size, 3 * len(cell))
