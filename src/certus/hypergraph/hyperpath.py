"""Any dynamic program as a problem: find the best derivation of a weighted hypergraph."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.assembling import normal_form
from certus.certificates.normal import Graph, NormalForm
from certus.certificates.rounding import Extent, extent_of, of_best, rounded_up
from certus.checks import Floats, Ints, as_numbers, as_scores, of_kind
from certus.draw import Picture, hypergraph
from certus.draw.graphs import MOST
from certus.errors import InvalidInput
from certus.hypergraph import formats
from certus.hypergraph.dynamic_program import DynamicProgram, Forest
from certus.hypergraph.extents import useful_edges
from certus.hypergraph.graph import Hypergraph, Int32
from certus.hypergraph.require import requiring
from certus.hypergraph.sweeps import infeasible
from certus.lazy import once
from certus.problem import Index
from certus.schema import Field


class Hyperpath(DynamicProgram[Int32]):
    """The best derivation of a hypergraph's root (LR 2.2.2).

    Solves  max over derivations y of  sum of weights[e] over the edges of y.  Every question takes time linear in the
    graph (k-best: see ``sweeps.kbest``). Certificate kind: "dynamic program". The one view is "edges" (E,): how often a
    derivation uses each edge. A structure is an array of edges, head before tails; an edge used twice is listed twice.

    Parameters
    ----------
    graph : Hypergraph
    weights : array_like of shape (E,)
        Finite, or -inf to forbid an edge.
    vertex_weights : array_like of shape (V,), optional
        Added for each use of a vertex: folded into the weights of the edges that enter it.

    Examples
    --------
    >>> graph = Hypergraph(in_ptr=[0, 1, 2, 4], tail_ptr=[0, 0, 0, 2, 4], tail=[0, 1, 1, 0])
    >>> Hyperpath(graph, [1, 2, 3, 4]).decode().structure.tolist()
    [3, 1, 0]
    """

    name: ClassVar[str] = "hyperpath"

    def __init__(self, graph: Hypergraph, weights: ArrayLike, *, vertex_weights: ArrayLike | None = None) -> None:
        self.graph = of_kind(
            "graph", graph, Hypergraph, "a certus.Hypergraph; HypergraphBuilder makes one edge by edge"
        )
        self.weights = as_scores("weights", weights, (graph.n_edges,))
        if vertex_weights is not None:
            self.weights = self.weights + as_scores("vertex_weights", vertex_weights, (graph.n_vertices,))[graph.heads]
        self._required: tuple[int, ...] = ()
        self._forest = self._forest_of(graph, self.weights, np.arange(graph.n_edges))

    def forest(self) -> Forest:
        return self._forest

    def from_edges(self, edges: Sequence[int]) -> Int32:
        original: Int32 = self._forest.parts["edges"][np.asarray(edges)].astype(np.int32)
        return original

    def sequence(self, structure: Int32, view: str) -> list[int]:
        """The edges of a derivation, each after those of its tails."""
        self.checked_view(view)
        below: list[list[int]] = []
        for e in reversed(self._checked(structure)):
            tails = [below.pop() for _ in self.graph.tail_of(e)]
            below.append([*(edge for tail in tails for edge in tail), e])
        return below[0]

    @property
    def views(self) -> Mapping[str, Index]:
        return {"edges": (self.graph.n_edges,)}

    def terms(self, structure: Int32) -> list[float]:
        edges = self._checked(structure)
        scores: list[float] = self.weights[edges].tolist()
        return scores if set(self._required) <= set(edges) else [-np.inf]

    def indicator(self, structure: Int32, view: str) -> Floats:
        self.checked_view(view)
        return np.bincount(self._checked(structure), minlength=self.graph.n_edges).astype(np.float64)

    @once
    def extent(self) -> Extent:
        return extent_of(self.graph.longest, self.weights)

    def error_at(self, value: float) -> float:
        """Small in graphs with derivations of any size, if these score less the larger they are."""
        return of_best(self.extent().above(value), value)

    def all_scores(self) -> tuple[Floats]:
        return (self.weights,)

    def without_scores_below(self, least: float) -> Self:
        kept = useful_edges(self.graph, (self.weights >= least) & (self.weights > -np.inf))
        return self._restricted(np.where(kept, self.weights, -np.inf), self._required)

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._restricted(rounded_up(self.weights, step), self._required)

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        """The problem without an edge (value 0), or with only the derivations that use it at least once (value 1).

        The second makes a graph of at most 2 + (longest tail) times the edges, in plain Python.
        """
        shape = self.checked_view(view)
        if len(index) != 1 or not 0 <= index[0] < shape[0]:
            raise InvalidInput(f"index {index!r} is not one of the edges 0..{shape[0] - 1}.")
        if value not in (0, 1):
            raise InvalidInput(f"value is {value!r}; an edge is fixed to 0 or 1.")
        edge = int(index[0])
        if value:
            return self._restricted(self.weights, (*self._required, edge))
        weights = self.weights.copy()
        weights[edge] = -np.inf
        return self._restricted(weights, self._required)

    def _restricted(self, weights: Floats, required: Sequence[int]) -> Self:
        """The same graph with other weights, and only the derivations that use all required edges."""
        new = type(self)(self.graph, weights)
        graph, original = self.graph, np.arange(self.graph.n_edges)
        for edge in dict.fromkeys(required):
            graph, edge_map = requiring(graph, original == edge)
            original = original[edge_map]
        new._required = tuple(dict.fromkeys(required))
        new._forest = self._forest_of(graph, new.weights[original], original)
        return new

    @staticmethod
    def _forest_of(graph: Hypergraph, weights: Floats, original: Ints) -> Forest:
        return Forest(graph, weights, {"edges": original}, str(infeasible(graph)))

    def normal_form(self) -> NormalForm:
        graph, part = self._forest.graph, self._forest.parts["edges"]
        edges = int(graph.in_ptr[graph.root + 1])
        tails = int(graph.tail_ptr[edges])
        flat = (graph.in_ptr[: graph.root + 2], graph.tail_ptr[: edges + 1], graph.tail[:tails])
        in_ptr, tail_ptr, tail = (array.astype(np.int64) for array in flat)
        space = Graph(in_ptr, tail_ptr, tail, np.arange(edges + 1), part[:edges].astype(np.int64))
        return normal_form(space, self.weights, {"edges": np.arange(self.graph.n_edges)})

    def normal_structure(self, structure: Int32) -> tuple[list[int]]:
        """With required edges the graph has copies of the given edges; those of a derivation are found bottom up."""
        edges = self._checked(structure)
        if not self._required:
            return (edges,)
        graph, original = self._forest.graph, self._forest.parts["edges"]
        copies: dict[int, list[int]] = {e: [] for e in edges}
        for copy in np.flatnonzero(np.isin(original, edges)).tolist():
            copies[int(original[copy])].append(copy)
        below: list[dict[int, list[int]]] = []  # for what is derived so far: vertex -> edges that do it
        for e in reversed(edges):
            tails = [below.pop() for _ in self.graph.tail_of(e)]
            made = {}
            for copy in copies[e]:
                parts = list(zip(tails, graph.tail_of(copy).tolist(), strict=True))
                if all(u in found for found, u in parts):
                    made[int(graph.heads[copy])] = [copy, *(k for found, u in parts for k in found[u])]
            below.append(made)
        if graph.root not in below[0]:
            raise InvalidInput("the derivation lacks a required edge; its score is -inf.")
        return (below[0][graph.root],)

    def picture(self, structure: Int32, words: Sequence[str] | None = None) -> Picture:
        """The hypergraph with the hyperpath in it; the hyperpath alone where there are too many edges."""
        used = self._checked(structure)
        g = self.graph
        shown = range(g.n_edges) if g.n_edges <= MOST else sorted(set(used))
        return hypergraph(
            g.n_vertices,
            [(int(g.heads[e]), g.tail_of(e).tolist()) for e in shown],
            names=[g.vertex_name(v) for v in range(g.n_vertices)],
            labels=[f"{self.weights[e]:.4g}" for e in shown],
            used=[k for k, e in enumerate(shown) if e in set(used)],
        )

    def to_json(self) -> dict[str, Any]:
        return {"graph": formats.to_json(self.graph, self.weights), "required": list(self._required)}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        graph, weights = formats.weighted_from_json(given["graph"])
        required = given["required"].wholes(0, graph.n_edges - 1).tolist() if "required" in given else []
        problem = cls(graph, weights)
        return problem._restricted(problem.weights, required) if required else problem

    def structure_to_json(self, structure: Int32) -> list[int]:
        return self._checked(structure)

    def structure_from_json(self, data: Any) -> Int32:
        edges = Field.of(data, "structure").wholes(0, self.graph.n_edges - 1)
        return np.array(self._checked(edges), dtype=np.int32)

    def _checked(self, structure: Any) -> list[int]:
        """The edges of a derivation of the root, head before tails; InvalidInput if they are none."""
        array = as_numbers("structure", structure)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InvalidInput("a derivation is a list of edges, head before tails.")
        edges: list[int] = array.tolist()
        heads = self.graph.heads
        pending = [self.graph.root]
        for place, e in enumerate(edges):
            if not 0 <= e < self.graph.n_edges:
                raise InvalidInput(f"structure[{place}] is {e}; edges are 0..{self.graph.n_edges - 1}.")
            if not pending:
                raise InvalidInput(f"structure[{place}] is edge {e}, but the derivation is complete before it.")
            v = pending.pop()
            if heads[e] != v:
                raise InvalidInput(
                    f"structure[{place}] is {self.graph.edge_name(e)}; "
                    f"expected an edge into {self.graph.vertex_name(v)}."
                )
            pending.extend(reversed(self.graph.tail_of(e).tolist()))
        if pending:
            raise InvalidInput(f"the derivation stops before vertex {self.graph.vertex_name(pending[-1])} is derived.")
        return edges
