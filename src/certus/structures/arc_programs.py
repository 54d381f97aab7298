"""Parts of semantic dependency graphs that are dynamic programs: arcs in chains, and pairs of arcs one after the other.

Both are over all arcs h -> m of nodes 0 .. n, in any number, but for arcs into node 0 and from a word to itself.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.rounding import Extent, absolute_of, extent_of, total
from certus.checks import Bools, Floats, Ints, as_penalties, as_scores
from certus.errors import InvalidInput
from certus.lazy import once
from certus.problem import Penalties
from certus.result import Solution
from certus.structures.layout import Edges, Layout, edges, layout_of
from certus.structures.program import LabelProgram, as_array

SIBLING, COPARENT = "sibling", "coparent"
JOINED = 32  # vertices of pairs that one vertex joins


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


def paths(n: int) -> Bools:
    """(n + 1, n + 1, n + 1) whether g -> h -> m are arcs."""
    arc = ~np.eye(n + 1, dtype=bool) & (np.arange(n + 1) > 0)
    read: Bools = arc[:, :, None] & arc[None]
    return read


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

    @once
    def extent(self) -> Extent:
        """Of parts that use no forbidden arc. Chains are added up from end to end, an edge of the graph at a time."""
        arc = self.arrays["arc"]
        there = arc > -np.inf
        arcs, scores = int(there.sum()), [arc]
        if self.kind:
            pairs = self.arrays[self.kind]
            scores.append(np.where(_both_there(there, self.kind), pairs, -np.inf))
        found = extent_of(len(scores) * arcs, *scores)
        return found._replace(absolute=absolute_of(*scores), roundings=2 * (arcs + 4 * (self.n + 1) + 4))

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


def pair_cell(kind: str, size: int, anchor: Any, inner: Any, outer: Any) -> Any:
    """The flat cell of a pair: sibling[h, s, m], coparent[h, g, m]; the inner one is the anchor where there is none."""
    first, last = (anchor, outer) if kind == SIBLING else (outer, anchor)
    return (first * size + inner) * size + last


def _pair_cells(graph: Ints, n: int, kind: str) -> Iterator[Ints]:
    lines = graph if kind == SIBLING else graph.T
    for a, others in chains(n, kind):
        used = np.array([a, *(b for b in others if lines[a, b])])
        yield pair_cell(kind, n + 1, a, used[:-1], used[1:])


def _both_there(there: Bools, kind: str) -> Bools:
    """For each cell of an array of pairs whether its arcs are there; the anchor stands for an inner one if none is."""
    inner = there | np.eye(len(there), dtype=bool)
    both: Bools = there[:, None, :] & (inner[:, :, None] if kind == SIBLING else inner[None])
    return both


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
        part = cells + pair_cell(kind, size, a, nodes[inner], nodes[outer])
        start = end + 1
        blocks.append(edges(np.array([start]), (np.array([end]),)))
        blocks.append(edges(start + outer, (start + inner,), (arc, part)))
        end = start + len(nodes)
        blocks.append(edges(np.full(len(nodes), end), (start + np.arange(len(nodes)),)))
    return layout_of(end + 1, blocks, cells, cells + size**3, 2 * n * size)


class ArcPairs(LabelProgram):
    """Pairs of arcs: copies[0, k] says that the first of pair k is there, copies[1, k] the second; pair[k] is for both.

    Structures are arrays (2, pairs) of 0 and 1. Every pair decides for itself.
    """

    view = "copies"
    names = ("copies", "pair")

    def __init__(self, copies: ArrayLike, pair: ArrayLike) -> None:
        first = as_array("copies", copies, (2, None))
        scores = as_array("pair", pair, (first.shape[1],))
        super().__init__({"copies": first, "pair": scores}, _pair_layout(first.shape[1]))

    def cells_of(self, structure: Any) -> Ints:
        found: Ints = np.flatnonzero(structure)
        return found

    def parts_of(self, structure: Any) -> Ints:
        used = np.asarray(structure)
        return np.concatenate((np.flatnonzero(used), self.layout.cells + np.flatnonzero(used[0] & used[1])))

    def rows(self, cells: Ints) -> Ints:
        used = np.zeros(self.shape, dtype=np.int64)
        used.reshape(-1)[cells] = 1
        return used

    @once
    def extent(self) -> Extent:
        """Scores are added up in ``_worth``, pairs by fsum; differences of these are what max-marginals are."""
        found = extent_of(2 * self.shape[1], *self.arrays.values())
        return found._replace(absolute=absolute_of(*self.arrays.values()), roundings=8)

    def _worth(self, penalties: Penalties | None) -> Floats:
        """(4, pairs) the scores of no arc, the first, the second, and both."""
        penalty = np.zeros(self.shape)
        for view, values in as_penalties(penalties).items():
            penalty = as_scores(f"penalty of {view!r}", values, self.checked_view(view))
        first, second = self.arrays["copies"] + penalty
        return np.stack((np.zeros(len(first)), first, second, first + second + self.arrays["pair"]))

    def solve(self, penalties: Penalties | None = None) -> Solution[Ints]:
        """The best of each pair; the smallest number in ``_worth`` of those that tie."""
        worth = self._worth(penalties)
        chosen = worth.argmax(axis=0)
        return Solution(np.stack((chosen & 1, chosen >> 1)), total(worth.max(axis=0).tolist()))

    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        worth = self._worth(penalties)
        best = worth.max(axis=0)
        with_each = np.stack((np.maximum(worth[1], worth[3]), np.maximum(worth[2], worth[3])))
        return {self.view: with_each - best + total(best.tolist())}


@lru_cache(maxsize=32)
def _pair_layout(pairs: int) -> Layout:
    """Three vertices for each pair: no first, the first, whether the second; joined by vertices of up to JOINED tails.

    No derivation is deeper than the log of their number.
    """
    k = np.arange(pairs)
    vertex = 3 * k
    blocks = [
        edges(vertex),
        edges(vertex + 1, (), (k,)),
        edges(vertex + 2, (vertex,)),
        edges(vertex + 2, (vertex,), (pairs + k,)),
        edges(vertex + 2, (vertex + 1,)),
        edges(vertex + 2, (vertex + 1,), (pairs + k, 2 * pairs + k)),
    ]
    open_, end = vertex + 2, 3 * pairs
    while len(open_) != 1:
        padded = np.full(max(-(-len(open_) // JOINED), 1) * JOINED, -1)
        padded[: len(open_)] = open_
        above = end + np.arange(len(padded) // JOINED)
        blocks.append(edges(above, tuple(padded.reshape(-1, JOINED).T)))
        open_, end = above, end + len(above)
    return layout_of(end, blocks, 2 * pairs, 3 * pairs, 3 * pairs)
