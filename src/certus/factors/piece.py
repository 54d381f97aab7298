"""A factor graph of small width: a dynamic program, alone or as a piece of a larger one."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import inf

import numpy as np

from certus.certificates import sweep
from certus.certificates.assembling import normal_form
from certus.certificates.normal import NormalForm
from certus.checks import Floats, Ints
from certus.errors import Infeasible, InvalidInput
from certus.factors.elimination import Spelt, spelt_out
from certus.factors.scores import Labelled
from certus.hypergraph import Forest, Hypergraph
from certus.hypergraph.dynamic_program import DynamicProgram
from certus.lazy import once
from certus.problem import Index, Penalties
from certus.result import Solution


class Piece(Labelled, DynamicProgram[Ints]):
    """Best labels by elimination, where that is cheap. Views: "labels" (n, K), "tables": all cells in one row."""

    @cached_property
    def views(self) -> Mapping[str, Index]:
        return {"labels": (self.n, self.size), "tables": (self.starts[-1],)}

    def indicator(self, structure: Ints, view: str) -> Floats:
        shape = self.checked_view(view)
        if view == "labels":
            return self.labels_used(structure)
        used = np.zeros(shape)
        used[self.cells_used(self.checked_labels(structure))] = 1.0
        return used

    @cached_property
    def _spelt(self) -> Spelt:
        order = self.eliminated(inf)
        assert order is not None
        first = self.unary.size
        tables = [(scope, first + start) for scope, start in zip(self.scopes, self.starts, strict=False)]
        return spelt_out(self.domains, self.size, tables, order)

    @cached_property
    def _scores(self) -> Floats:
        """Of all parts: labels, then the cells of tables."""
        return np.concatenate([scores.reshape(-1) for scores in self.all_scores()])

    @once
    def forest(self) -> Forest:
        graph, part = self._spelt
        weights = np.append(self._scores, 0.0)[part]
        first = self.unary.size
        cells = {"labels": np.where(part < first, part, -1), "tables": np.where(part >= first, part - first, -1)}
        return Forest(Hypergraph(graph.in_ptr, graph.tail_ptr, graph.tail), weights, cells)

    def from_edges(self, edges: Sequence[int]) -> Ints:
        cells = self.forest().parts["labels"][np.asarray(edges, dtype=np.int64)]
        labels: Ints = np.sort(cells[cells >= 0]) % max(self.size, 1)
        return labels

    def solve(self, penalties: Penalties | None = None) -> Solution[Ints]:
        try:
            return super().solve(penalties)
        except Infeasible:
            raise Infeasible("every labelling uses a label or a cell of a table that scores -inf. Allow one.") from None

    def normal_form(self) -> NormalForm:
        first, cells = self.unary.size, self.starts[-1]
        shown = {"labels": np.arange(first), "tables": np.arange(first, first + cells)}
        return normal_form(self._spelt.graph, self._scores, shown)

    def normal_structure(self, structure: Ints) -> tuple[list[int]]:
        """The edges are those of the one derivation that uses the labels of the structure and no others."""
        labels = self.checked_labels(structure)
        if any(label not in domain for label, domain in zip(labels, self.domains, strict=True)):
            raise InvalidInput("the structure uses a forbidden part; its score is -inf.")
        graph, part = self._spelt
        weight = np.zeros(len(part))
        own = (part >= 0) & (part < self.unary.size)
        weight[own] = np.where(self.labels_used(structure).reshape(-1)[part[own]] > 0, 0.0, -np.inf)
        plan = sweep.levels(graph)
        return (sweep.best_derivation(graph, plan, weight, sweep.inside(plan, weight)),)
