"""Keeping only the derivations that use an edge."""

import numpy as np
from numpy.typing import NDArray

from certus.hypergraph.graph import Hypergraph, Int32

FREE, WITHOUT, WITH = 0, 1, 2


def requiring(graph: Hypergraph, wanted: NDArray[np.bool_]) -> tuple[Hypergraph, Int32]:
    """A graph whose derivations are those of ``graph`` that use a wanted edge at least once, one to one.

    A vertex has up to three copies: all its derivations (free), those without a wanted edge, and those with one. A
    derivation "with" starts with a wanted edge, or some tail vertex is the first "with", those before it are "without"
    and those after it free; so none is made twice. Only copies that a derivation of the new root uses are made; there
    is one vertex that no edge enters when none is left. Returns the graph and its edge map. Plain Python.
    """
    tails = [graph.tail_of(e).tolist() for e in range(graph.n_edges)]
    alive: list[tuple[bool, bool, bool]] = []

    def choices(v: int, kind: int) -> list[tuple[int, list[tuple[int, int]]]]:
        """The edges into a copy of v, and the copies in their tails."""
        made = []
        for e in graph.edges_into(v):
            if kind == FREE or (kind == WITH and wanted[e]):
                made.append((e, [(u, FREE) for u in tails[e]]))
            elif kind == WITHOUT and not wanted[e]:
                made.append((e, [(u, WITHOUT) for u in tails[e]]))
            elif kind == WITH:
                for i, u in enumerate(tails[e]):
                    before, after = tails[e][:i], tails[e][i + 1 :]
                    made.append((e, [*((t, WITHOUT) for t in before), (u, WITH), *((t, FREE) for t in after)]))
        return [(e, tail) for e, tail in made if all(alive[u][k] for u, k in tail)]

    for v in range(graph.root + 1):
        free, without, with_ = (bool(choices(v, kind)) for kind in (FREE, WITHOUT, WITH))
        alive.append((free, without, with_))
    used = {(graph.root, WITH)}
    edges: list[tuple[tuple[int, int], int, list[tuple[int, int]]]] = []
    for v in range(graph.root, -1, -1):
        for kind in (WITH, WITHOUT, FREE):
            if (v, kind) in used:
                for e, tail in choices(v, kind):
                    edges.append(((v, kind), e, tail))
                    used.update(tail)
    number = {copy: i for i, copy in enumerate(sorted(used))}
    edges.sort(key=lambda edge: (edge[0], edge[1]))
    new, order, _ = Hypergraph.from_edges(
        np.array([number[head] for head, _, _ in edges], dtype=np.int64),
        np.concatenate(([0], np.cumsum([len(tail) for _, _, tail in edges], dtype=np.int64))),
        np.array([number[copy] for _, _, tail in edges for copy in tail], dtype=np.int64),
        n_vertices=len(number),
        edge_labels=None if graph.edge_labels is None else [graph.edge_labels[e] for _, e, _ in edges],
    )
    return new, np.array([e for _, e, _ in edges], dtype=np.int32)[order]
