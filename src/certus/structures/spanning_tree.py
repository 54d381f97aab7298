"""Undirected spanning trees: each is directed away from node 0 in one way, so they are trees of arcs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.normal import NormalForm, Trees
from certus.certificates.rounding import Extent, rounded_up
from certus.checks import Floats, Ints, one_of
from certus.dependency.problem import Dependency
from certus.draw import Picture, arcs
from certus.errors import InvalidInput
from certus.problem import Index, Limits, Penalties, Problem, named_words
from certus.result import LogPartitionBounds, Result, Solution
from certus.schema import Field
from certus.serialize import floats_to_json
from certus.structures.program import Cells, as_array, as_rows

MOST_NODES = 1 << 15  # of a problem in a file


class SpanningTree(Problem[Cells]):
    """The best spanning tree of an undirected graph: n - 1 edges that connect n nodes.

    Exact: best trees by contraction in O(n^2), the next best in O(n^3) each; sums over all trees by the matrix-tree
    theorem, O(n^3). Every question has an answer. Certificate kind: "combinatorial"; its witness is that of trees
    directed away from node 0.

    Parameters
    ----------
    edge : array_like of shape (n, n)
        Symmetric; ``-inf`` where there is no edge. The diagonal is not read.

    Notes
    -----
    Structures are tuples of edges (i, j) with i < j. The one view is "edges", of shape (n, n): the edge between i and j
    is its cell [i, j] with i < j, and the other cells are never used.

    Examples
    --------
    >>> SpanningTree([[0, 3, 1], [3, 0, 2], [1, 2, 0]]).decode().structure
    ((0, 1), (1, 2))
    """

    name = "spanning tree"

    def __init__(self, edge: ArrayLike) -> None:
        array = as_array("edge", edge, (None, None)).copy()
        self.n = len(array)
        if array.shape != (self.n, self.n):
            raise InvalidInput(f"edge has shape {array.shape}; expected (nodes, nodes).")
        np.fill_diagonal(array, -np.inf)
        wrong = np.argwhere(array != array.T)
        if len(wrong):
            i, j = wrong[0].tolist()
            raise InvalidInput(
                f"edge[{i}, {j}] is {array[i, j]} and edge[{j}, {i}] is {array[j, i]}; expected a symmetric array."
            )
        self.edge = array
        # Without nodes there is one tree, that of no edges, as with one node.
        self._directed = Dependency(array if self.n else np.zeros((1, 1)), root="multi")

    def __repr__(self) -> str:
        return f"SpanningTree({self.n} nodes)"

    # -- trees and heads -------------------------------------------------------------------------------------------

    def _edges(self, heads: Ints) -> Cells:
        """The edges of a tree given by the nodes before its nodes, seen from node 0."""
        return tuple(sorted((min(h, m), max(h, m)) for m, h in enumerate(heads.tolist()) if h >= 0))

    def picture(self, structure: Cells, words: Sequence[str] | None = None) -> Picture:
        """The edges as arcs over the nodes, each from the lower to the higher one."""
        return arcs(named_words(words, self.n), [(i + 1, j + 1) for i, j in structure], title="Spanning tree")

    def _heads(self, structure: Any) -> Ints:
        """A tree directed away from node 0; InvalidInput if it is none."""
        rows = as_rows(structure, 2, "(node, node)")
        if len(rows) != max(self.n - 1, 0) or (len(rows) and not 0 <= rows.min() <= rows.max() < self.n):
            raise InvalidInput(
                f"there are {len(rows)} edges; expected {max(self.n - 1, 0)} between nodes 0..{self.n - 1}."
            )
        beside: list[list[int]] = [[] for _ in range(max(self.n, 1))]
        for i, j in rows.tolist():
            beside[i].append(j)
            beside[j].append(i)
        heads, agenda = np.full(max(self.n, 1), -1), [0]
        for h in agenda:
            for m in beside[h]:
                if m != heads[h]:
                    if m in agenda:
                        raise InvalidInput(f"the edges make a cycle through nodes {h} and {m}; they make no tree.")
                    heads[m] = h
                    agenda.append(m)
        if len(agenda) < self.n:
            lost = min(set(range(self.n)) - set(agenda))
            raise InvalidInput(f"node {lost} is not connected to node 0; the edges make no tree.")
        return heads

    def undirected(self, result: Result[Ints]) -> Result[Cells]:
        """What was found for the tree directed away from node 0, as that of its edges."""
        better = tuple(self._edges(heads) for heads in result.certificate.better)
        certificate = replace(result.certificate, better=better)
        return Result(self._edges(result.structure), result.score, certificate, result.trace, result.info)

    def _upper(self, arcs: Floats, *, maximum: bool) -> Floats:
        """Values of arcs as values of edges."""
        both = np.maximum(arcs, arcs.T) if maximum else arcs + arcs.T
        size = (self.n, self.n)
        return np.where(np.triu(np.ones(size, dtype=bool), 1), both[: self.n, : self.n], -np.inf if maximum else 0.0)

    def _arc_penalties(self, penalties: Penalties | None) -> Penalties | None:
        if not penalties:
            return None
        above = np.triu(penalties["edges"], 1)
        return {"arcs": above + above.T} if self.n else {"arcs": np.zeros((1, 1))}

    # -- structures ------------------------------------------------------------------------------------------------

    def terms(self, structure: Any) -> list[float]:
        return self._directed.terms(self._heads(structure))

    def all_structures(self) -> Iterator[Cells]:
        return map(self._edges, self._directed.all_structures())

    def extent(self) -> Extent:
        return self._directed.extent()

    def error_at(self, value: float) -> float:
        return self._directed.error_at(value)

    def all_scores(self) -> tuple[Floats]:
        return (self.edge,)

    def without_scores_below(self, least: float) -> Self:
        return type(self)(np.where(self.edge < least, -np.inf, self.edge))

    def with_scores_rounded_up(self, step: float) -> Self:
        return type(self)(rounded_up(self.edge, step))

    # -- questions -------------------------------------------------------------------------------------------------

    def _decode(self, limits: Limits) -> Result[Cells]:
        return self.undirected(self._directed.decode())

    def solve(self, penalties: Penalties | None = None) -> Solution[Cells]:
        found = self._directed.solve(self._arc_penalties(penalties))
        return Solution(self._edges(found.structure), found.value)

    def kbest(self, k: int) -> list[Result[Cells]]:
        return [self.undirected(result) for result in self._directed.kbest(k)]

    def sample(self, k: int, *, seed: int | None = None) -> list[Cells]:
        return [self._edges(heads) for heads in self._directed.sample(k, seed=seed)]

    def answering(self, question: str) -> Dependency:
        return self._directed

    def log_partition_bounds(self, *, iterations: int = 150) -> LogPartitionBounds:
        return self._directed.log_partition_bounds(iterations=iterations)

    def marginals(self) -> dict[str, Floats]:
        return {"edges": self._upper(self._directed.marginals()["arcs"], maximum=False)}

    def part_marginals(self, kind: str) -> Floats:
        one_of("kind", kind, ("edge",))
        return self.marginals()["edges"]

    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        found = self._directed.max_marginals(self._arc_penalties(penalties))
        return {"edges": self._upper(found["arcs"], maximum=True)}

    # -- the view and proofs ---------------------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, Index]:
        return {"edges": (self.n, self.n)}

    def indicator(self, structure: Any, view: str) -> Floats:
        used = np.zeros(self.checked_view(view))
        rows = np.array(self._edges(self._heads(structure)), dtype=np.int64).reshape(-1, 2)
        used[rows[:, 0], rows[:, 1]] = 1.0
        return used

    @cached_property
    def _part(self) -> Ints:
        """(n, n) the part of each edge, from both sides; -1 where there is none."""
        allowed = np.triu(self.edge > -np.inf, 1)
        number = np.where(allowed, np.cumsum(allowed).reshape(allowed.shape) - 1, -1)
        return np.maximum(number, number.T)

    def normal_form(self) -> NormalForm:
        part = self._part if self.n else np.full((1, 1), -1)
        directed = part.copy()
        directed[:, 0] = -1
        cells = np.where(np.triu(np.ones((self.n, self.n), dtype=bool), 1), self._part, -1)
        scores = self.edge[(cells >= 0)]
        return NormalForm(scores, (Trees(directed, False),), {"edges": cells.reshape(-1)})

    def normal_structure(self, structure: Any) -> tuple[Any, ...]:
        return self._directed.normal_structure(self._heads(structure))

    def reference_maximum(self, penalties: Penalties | None = None) -> float | None:
        return self._directed.reference_maximum(self._arc_penalties(penalties))

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return {"nodes": self.n, "edge": floats_to_json(self.edge)}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        n = given["nodes"].whole(0, MOST_NODES)
        edge = given["edge"].scores((n, n))
        return given.made(lambda: cls(edge))

    def structure_to_json(self, structure: Any) -> Any:
        return [list(edge) for edge in self._edges(self._heads(structure))]

    def structure_from_json(self, data: Any) -> Cells:
        rows = Field.of(data, "structure").wholes(0, max(self.n - 1, 0), (None, 2))
        return self._edges(self._heads(rows))
