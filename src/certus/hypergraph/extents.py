"""Which derivations a hypergraph has, whatever they score: the largest, and the edges in use.

No kernel, so that verification may ask. Neighbouring vertices of which none is in the tail of another's edge are a
*layer*, and layers are swept whole; a graph of narrow layers is swept vertex by vertex.
"""

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.checks import Bools, Floats

if TYPE_CHECKING:
    from certus.hypergraph.graph import Hypergraph

MOST = 2**62  # sizes beyond are not told apart
NARROW = 100  # edges in a layer that take as long together as one by one


class Layer(NamedTuple):
    """The edges that enter a layer, their heads, their tail entries, and for each of these which edge it is of."""

    edges: slice
    heads: NDArray[np.int32]
    tail: NDArray[np.int32]
    edge: NDArray[np.int64]

    def per_edge(self, values: Floats | Bools) -> Floats:
        """For each edge, the sum of the values at its tail."""
        found = np.bincount(self.edge, weights=values[self.tail], minlength=len(self.heads))
        return found.astype(np.float64, copy=False)


def longest(graph: "Hypergraph") -> int:
    """Number of edges in the largest derivation, repeated ones counted, or MOST if it is larger; 0 if there is none."""
    layers = _layers(graph)
    if layers is None:
        return _longest(graph)
    size = np.full(graph.n_vertices, -inf)
    for layer in layers:
        np.maximum.at(size, layer.heads, np.minimum(1.0 + layer.per_edge(size), MOST))
    return int(max(size[graph.root], 0.0))


def useful_edges(graph: "Hypergraph", allowed: Bools) -> Bools:
    """Which of the allowed edges are in some derivation of the root that uses no other."""
    layers = _layers(graph)
    if layers is None:
        return _useful_edges(graph, allowed)
    swept, useful = list(layers), np.zeros(graph.n_edges, dtype=bool)
    dead, wanted = np.ones(graph.n_vertices, dtype=bool), np.zeros(graph.n_vertices, dtype=bool)
    for layer in swept:
        useful[layer.edges] = allowed[layer.edges] & (layer.per_edge(dead) == 0)
        dead[layer.heads[useful[layer.edges]]] = False
    wanted[graph.root] = True
    for layer in reversed(swept):
        useful[layer.edges] &= wanted[layer.heads]
        wanted[layer.tail[useful[layer.edges][layer.edge]]] = True
    return useful


def _layers(graph: "Hypergraph") -> Iterator[Layer] | None:
    """The layers up to the root, bottom-up; None if they are narrow."""
    newest = np.full(graph.n_vertices, -1)
    np.maximum.at(newest, np.repeat(graph.heads, np.diff(graph.tail_ptr)), graph.tail)
    starts = [0]
    for v, u in enumerate(newest[: graph.root + 1].tolist()):
        if u >= starts[-1]:
            starts.append(v)
    if len(starts) * NARROW > graph.n_edges:
        return None
    ends = graph.in_ptr[[*starts[1:], graph.root + 1]].tolist()
    return (_layer(graph, first, last) for first, last in zip([0, *ends[:-1]], ends, strict=True))


def _layer(graph: "Hypergraph", first: int, last: int) -> Layer:
    ptr = graph.tail_ptr[first : last + 1]
    edge = np.repeat(np.arange(last - first), np.diff(ptr))
    return Layer(slice(first, last), graph.heads[first:last], graph.tail[ptr[0] : ptr[-1]], edge)


def _longest(graph: "Hypergraph") -> int:
    tail_ptr, tail = graph.tail_ptr.tolist(), graph.tail.tolist()
    size: list[int] = []
    for v in range(graph.root + 1):
        most = 0
        for e in graph.edges_into(v):
            below = [size[u] for u in tail[tail_ptr[e] : tail_ptr[e + 1]]]
            if 0 not in below:
                most = max(most, 1 + sum(below))
        size.append(min(most, MOST))
    return size[graph.root]


def _useful_edges(graph: "Hypergraph", allowed: Bools) -> Bools:
    tail_ptr, tail = graph.tail_ptr.tolist(), graph.tail.tolist()
    useful = np.zeros(graph.n_edges, dtype=bool)
    derivable = [False] * graph.n_vertices
    for v in range(graph.root + 1):
        for e in graph.edges_into(v):
            useful[e] = allowed[e] and all(derivable[u] for u in tail[tail_ptr[e] : tail_ptr[e + 1]])
            derivable[v] |= bool(useful[e])
    wanted = [False] * graph.n_vertices
    wanted[graph.root] = True
    for v in range(graph.root, -1, -1):
        for e in graph.edges_into(v):
            useful[e] &= wanted[v]
            if useful[e]:
                for u in tail[tail_ptr[e] : tail_ptr[e + 1]]:
                    wanted[u] = True
    return useful
