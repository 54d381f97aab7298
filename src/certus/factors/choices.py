"""Free choices, at most one of each row: what assignments, knapsacks and covers are without the rows that tie them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from certus.certificates.assembling import Layers, normal_form
from certus.certificates.normal import Graph, NormalForm
from certus.certificates.rounding import Extent, extent_of
from certus.checks import Bools, Floats, Ints, as_numbers
from certus.errors import InvalidInput
from certus.hypergraph import Forest, Hypergraph
from certus.hypergraph.dynamic_program import DynamicProgram
from certus.lazy import once
from certus.problem import Index


class Choices(DynamicProgram[Ints]):
    """For each row of ``score`` (n, m) a column, or none (-1) unless it is one of the rows that ``must`` have one.

    The one view, called ``view``, has the shape that is asked for.
    """

    def __init__(self, score: Floats, view: str, shape: Index, must: Bools | None = None) -> None:
        self.score_of, self.view, self.shape = score, view, shape
        self.must = np.zeros(len(score), dtype=bool) if must is None else must

    @property
    def views(self) -> Mapping[str, Index]:
        return {self.view: self.shape}

    def checked(self, structure: Any) -> Ints:
        """The columns of a structure; InvalidInput if it is none."""
        columns, (n, m) = as_numbers("structure", structure), self.score_of.shape
        if columns.shape != (n,) or (n and columns.dtype.kind not in "iu"):
            raise InvalidInput(f"columns have shape {columns.shape}, of {columns.dtype}; expected {n} whole numbers.")
        if n and not (columns.min() >= -1 and columns.max() < m):
            raise InvalidInput(f"a column is {columns.min()} or {columns.max()}; expected -1..{m - 1}.")
        return columns.astype(np.int64)

    def terms(self, structure: Ints) -> list[float]:
        columns = self.checked(structure)
        rows = np.flatnonzero(columns >= 0)
        missing = [-np.inf] if (self.must & (columns < 0)).any() else []
        return [*self.score_of[rows, columns[rows]].tolist(), *missing]

    def indicator(self, structure: Ints, view: str) -> Floats:
        self.checked_view(view)
        columns, used = self.checked(structure), np.zeros(self.score_of.shape)
        rows = np.flatnonzero(columns >= 0)
        used[rows, columns[rows]] = 1.0
        return used.reshape(self.shape)

    def all_structures(self) -> Iterator[Ints]:
        n, m = self.score_of.shape
        return (np.array(y, dtype=np.int64) for y in product(range(-1, m), repeat=n))

    def extent(self) -> Extent:
        return extent_of(len(self.score_of), self.score_of)

    @cached_property
    def _graph(self) -> tuple[Graph, Ints]:
        """A vertex for each row, with an edge for each column, and one for none; then one edge over all of them."""
        n, m = self.score_of.shape
        layers, parts = Layers(), list[Ints]()
        for row in range(n):
            own = row * m + np.flatnonzero(self.score_of[row] > -np.inf)
            own = own if self.must[row] else np.append(own, -1)
            layers.add(np.array([len(own)]), np.empty((len(own), 0), dtype=np.int64), own[:, None])
            parts.append(own)
        layers.add(np.array([1]), np.arange(n).reshape(1, n), np.full((1, 1), -1))
        return layers.graph(), np.concatenate([*parts, np.full(1, -1)])

    @once
    def forest(self) -> Forest:
        graph, part = self._graph
        weights = np.append(self.score_of.reshape(-1), 0.0)[part]
        return Forest(Hypergraph(graph.in_ptr, graph.tail_ptr, graph.tail), weights, {self.view: part})

    def from_edges(self, edges: Sequence[int]) -> Ints:
        n, m = self.score_of.shape
        cells = self.forest().parts[self.view][np.asarray(edges, dtype=np.int64)]
        columns = np.full(n, -1, dtype=np.int64)
        cells = cells[cells >= 0]
        if len(cells):
            columns[cells // m] = cells % m
        return columns

    def normal_form(self) -> NormalForm:
        graph, _ = self._graph
        return normal_form(graph, self.score_of.reshape(-1), {self.view: np.arange(self.score_of.size)})

    def normal_structure(self, structure: Ints) -> tuple[list[int]]:
        columns, (graph, part), m = self.checked(structure), self._graph, self.score_of.shape[1]
        edges = [len(part) - 1]
        for row, column in enumerate(columns.tolist()):
            own = part[graph.in_ptr[row] : graph.in_ptr[row + 1]]
            at = np.flatnonzero(own == (row * m + column if column >= 0 else -1))
            if not len(at):
                raise InvalidInput("the structure uses a forbidden part; its score is -inf.")
            edges.append(int(graph.in_ptr[row] + at[0]))
        return (edges,)
