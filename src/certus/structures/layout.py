"""Dynamic programs over arrays of scores, spelt out once for all arrays of the same shape.

A layout is a graph whose edges name cells of the arrays, laid end to end: its parts. It holds no score, so that
problems of the same shape, and the items of a batch, share one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from certus.certificates import sweep
from certus.certificates.assembling import trimmed
from certus.certificates.normal import Graph
from certus.checks import Bools, Floats, Ints
from certus.hypergraph import Hypergraph


class Edges(NamedTuple):
    """Edges into the vertices ``head``; rows of ``tails`` and ``parts`` are theirs, -1 for none."""

    head: Ints  # (E,)
    tails: Ints  # (E, any)
    parts: Ints  # (E, any)


def edges(head: Ints, tails: tuple[Ints, ...] = (), parts: tuple[Ints, ...] = ()) -> Edges:
    """Edges for all combinations of the axes of the arrays, which are broadcast against each other."""
    shape = np.broadcast_shapes(head.shape, *(a.shape for a in (*tails, *parts)))
    columns = [np.broadcast_to(a, shape).reshape(-1) for a in (head, *tails, *parts)]
    size, cut = len(columns[0]), 1 + len(tails)
    empty = np.empty((size, 0), dtype=np.int64)
    return Edges(
        columns[0],
        np.stack(columns[1:cut], axis=1) if tails else empty,
        np.stack(columns[cut:], axis=1) if parts else empty,
    )


@dataclass(frozen=True)
class Layout:
    """A graph over the cells of arrays: ``cells`` of the first, which are those of the view, before all others.

    Derivations and structures are one to one, and the cells of the view that a derivation uses, each at most once, tell
    it from all others. ``longest`` is how many parts one uses at most.
    """

    spell_out: Callable[[], Graph]
    cells: int
    size: int  # parts
    longest: int
    used: Bools | None = None  # (P,) the parts that some structure uses, where the graph need not tell

    @cached_property
    def graph(self) -> Graph:
        """The graph; NotSupported if it is too large to spell out."""
        return self.spell_out()

    @cached_property
    def hypergraph(self) -> Hypergraph:
        """The graph as sweeps with kernels take it."""
        return Hypergraph(self.graph.in_ptr, self.graph.tail_ptr, self.graph.tail)

    @cached_property
    def parts(self) -> Ints:
        """(W, E) the parts of each edge, ``size`` where it has fewer than others."""
        count = np.diff(self.graph.part_ptr)
        table = np.full((max(int(count.max(initial=0)), 1), len(count)), self.size)
        edge = np.repeat(np.arange(len(count)), count)
        table[np.arange(len(edge)) - self.graph.part_ptr[edge], edge] = self.graph.part
        return table

    @cached_property
    def cell(self) -> Ints:
        """(E,) the cell of the view that each edge uses, or -1."""
        found: Ints = np.where(self.parts < self.cells, self.parts, -1).max(axis=0)
        return found

    @cached_property
    def read(self) -> Bools:
        """(P,) the parts that some structure uses."""
        if self.used is not None:
            return self.used
        found = np.zeros(self.size, dtype=bool)
        found[self.graph.part] = True
        return found

    def weights(self, scores: Floats) -> Floats:
        """(..., E) weights of the edges by scores (..., P) of the parts."""
        padded = np.concatenate((scores, np.zeros((*scores.shape[:-1], 1))), axis=-1)
        first, *others = self.parts
        total: Floats = np.take(padded, first, axis=-1)
        for column in others:
            total += np.take(padded, column, axis=-1)
        return total


def layout_of(vertices: int, blocks: list[Edges], cells: int, size: int, longest: int, *, trim: bool = False) -> Layout:
    """The layout of some edges in any order; the last vertex is the root.

    With ``trim`` edges that are in no derivation of the root are left out; without it there must be none.
    """
    head = np.concatenate([block.head for block in blocks])
    order = np.argsort(head, kind="stable")
    in_ptr = np.concatenate(([0], np.cumsum(np.bincount(head, minlength=vertices)))).astype(np.int64)
    ragged = [_ragged([block[k] for block in blocks], order) for k in (1, 2)]
    graph = Graph(in_ptr, *ragged[0], *ragged[1])
    if trim:
        graph, _ = trimmed(graph, np.ones(len(head), dtype=bool))
    return Layout(lambda: graph, cells, size, longest)


def _ragged(tables: list[Ints], order: Ints) -> tuple[Ints, Ints]:
    """Rows of several tables in an order, laid end to end without the -1: offsets and entries."""
    width = max(table.shape[1] for table in tables)
    whole = np.full((len(order), width), -1)
    start = 0
    for table in tables:
        whole[start : start + len(table), : table.shape[1]] = table
        start += len(table)
    whole = whole[order]
    present = whole >= 0
    return np.concatenate(([0], np.cumsum(present.sum(axis=1)))), whole[present]


class Walk:
    """A graph that is asked for the derivations of given cells of the view, in numpy."""

    def __init__(self, graph: Graph, cell: Ints) -> None:
        self.graph, self.cell, self.plan = graph, cell, sweep.levels(graph)

    def derivation(self, cells: Ints, size: int) -> list[int] | None:
        """The edges of the derivation with exactly these of ``size`` cells, head before tails; None for none."""
        worth = np.full(size + 1, -np.inf)
        worth[cells], worth[-1] = 1.0, 0.0
        weight = worth[self.cell]
        chart = sweep.inside(self.plan, weight)
        if chart[-1] != len(cells):
            return None
        return sweep.best_derivation(self.graph, self.plan, weight, chart)

    def beside(self, cell: int, size: int) -> Bools:
        """(size,) the cells that some derivation uses together with a cell, itself among them."""
        weight = np.where(self.cell == cell, 1.0, 0.0)
        through = sweep.edge_max_marginals(self.plan, weight, sweep.inside(self.plan, weight))
        found = np.zeros(size + 1, dtype=bool)
        found[self.cell[through == 1.0]] = True
        return found[:size]
