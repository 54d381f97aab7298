"""Building a hypergraph item by item."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from certus.checks import Floats, as_scores
from certus.errors import InvalidInput
from certus.hypergraph.graph import Hypergraph, Int32


class Built(NamedTuple):
    """What a builder made: the graph, its weights, and for each new edge and vertex the id the builder gave it."""

    graph: Hypergraph
    weights: Floats
    edge_map: Int32
    vertex_map: Int32


class HypergraphBuilder:
    """Builds a hypergraph item by item, in any order.

    Examples
    --------
    >>> b = HypergraphBuilder()
    >>> the, dog, np_ = b.vertex("the"), b.vertex("dog"), b.vertex("NP")
    >>> edges = b.edge(the, []), b.edge(dog, []), b.edge(np_, [the, dog], weight=2.0)
    >>> graph, weights, edge_map, vertex_map = b.build()
    >>> graph, weights.tolist()
    (Hypergraph(vertices=3, edges=3, root=2), [0.0, 0.0, 2.0])
    """

    def __init__(self) -> None:
        self._vertex_labels: list[str] = []
        self._edge_labels: list[str] = []
        self._head: list[int] = []
        self._tail_ptr: list[int] = [0]
        self._tail: list[int] = []
        self._weight: list[float] = []

    def vertex(self, label: str = "") -> int:
        """Add a vertex and return its id."""
        self._vertex_labels.append(label)
        return len(self._vertex_labels) - 1

    def edge(self, head: int, tails: Iterable[int] = (), *, label: str = "", weight: float = 0.0) -> int:
        """Add an edge and return its id; an empty tail makes the head a terminal."""
        tail = list(tails)
        for v in (head, *tail):
            if not 0 <= v < len(self._vertex_labels):
                raise InvalidInput(
                    f"edge {len(self._head)} names vertex {v}; the vertices made so far are "
                    f"0..{len(self._vertex_labels) - 1}."
                )
        self._head.append(head)
        self._tail.extend(tail)
        self._tail_ptr.append(len(self._tail))
        self._edge_labels.append(label)
        self._weight.append(weight)
        return len(self._head) - 1

    def build(self, root: int | None = None) -> Built:
        """The graph, in bottom-up order, with its weights and maps; the root is the last vertex made if not given.

        ``edge_map[e]`` is the id that ``edge`` returned for what is now edge e; ``vertex_map`` likewise.
        """
        graph, edge_map, vertex_map = Hypergraph.from_edges(
            self._head,
            self._tail_ptr,
            self._tail,
            n_vertices=len(self._vertex_labels),
            root=root,
            vertex_labels=self._vertex_labels if any(self._vertex_labels) else None,
            edge_labels=self._edge_labels if any(self._edge_labels) else None,
        )
        weights = as_scores("weight", np.array(self._weight, dtype=np.float64))
        return Built(graph, weights[edge_map], edge_map, vertex_map)
