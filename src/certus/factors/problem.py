"""Factor graphs: discrete variables whose labels are scored alone and together."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.normal import NormalForm
from certus.certificates.rounding import rounded_up
from certus.certificates.sound import measured, sound_list
from certus.checks import Floats, Ints, as_int, as_members, of_kind, shown
from certus.errors import InvalidInput, NotSupported
from certus.factors import relaxed
from certus.factors.piece import Piece
from certus.factors.scores import Labelled
from certus.hypergraph import Forest
from certus.problem import Factors, Index, Limits, PartBounds, Penalties
from certus.relax import branch
from certus.relax.system import Relaxation
from certus.result import Result, Solution
from certus.schema import MOST, Field
from certus.serialize import floats_to_json

LARGEST = 400_000  # cells of all buckets of a graph that is eliminated as it is
BUCKET = 1 << 16  # cells of one of them


class FactorGraph(Labelled):
    r"""The best labels of discrete variables that are scored alone and in groups: a Markov random field.

    Solves  max over x of  sum of unary[v, x_v] + sum over tables of table[x_i, x_j, ...].  A graph of small width (a
    tree, a chain, anything that can be eliminated variable by variable within some 400,000 steps) is a dynamic program:
    every question is answered exactly. Others, such as grids, are covered by pieces of small width that must agree:
    relaxation, then branch and bound; sums over all labellings are bounded and estimated. Certificate kind: "dynamic
    program", else "dual" or "branch and bound".

    Parameters
    ----------
    unary : array_like of shape (n, K)
        Scores of the K labels of each of n variables; -inf for labels that a variable does not have.
    pairwise : mapping of (i, j) to array_like of shape (K, K), optional
        Scores of pairs of labels, of i first; -inf forbids a pair.
    tables : iterable of ((i, j, ...), array_like), optional
        Scores of the labels of any group of different variables, an axis of length K for each.
    width : int, optional
        The largest number of cells of a bucket in the pieces that a graph of large width is covered by: larger ones
        give better bounds and take longer. K * K makes trees of them, K * K * K takes in cycles.
    clusters : int
        How many further pieces may be made where steps stall, of triangles and squares on which the others agree least:
        far fewer branchings, each of which takes longer.

    Notes
    -----
    Structures are arrays of n labels. The view is "labels" (n, K). Logic factors (exactly one, at most one, or, or with
    an output, budgets) are constraints on it: see ``certus.factors.logic``.

    Examples
    --------
    >>> unlike = [[0, 2], [2, 0]]
    >>> FactorGraph([[1, 0], [0, 0], [0, 0]], {(0, 1): unlike, (1, 2): unlike}).decode().structure.tolist()
    [0, 1, 0]
    """

    name: ClassVar[str] = "factor graph"

    def __init__(
        self,
        unary: ArrayLike,
        pairwise: Mapping[tuple[int, int], ArrayLike] | None = None,
        tables: Iterable[tuple[Sequence[int], ArrayLike]] = (),
        *,
        width: int | None = None,
        clusters: int = 0,
    ) -> None:
        if width is not None and (isinstance(width, bool) or not isinstance(width, int) or width < 1):
            raise InvalidInput(f"width is {width!r}; expected a whole number of at least 1, or None.")
        self.width, self.clusters = width, as_int("clusters", clusters, 0)
        named = of_kind("pairwise", {} if pairwise is None else pairwise, Mapping, "tables by pairs of variables")
        listed = as_members("tables", tables, "pairs of a scope and its table")
        for k, pair in enumerate(listed):
            if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
                raise InvalidInput(f"tables[{k}] is {shown(pair)}; expected a pair of a scope and its table.")
        given: list[Any] = [(scope, table, f"pairwise[{scope}]") for scope, table in named.items()]
        given += [(scope, table, f"tables[{k}]") for k, (scope, table) in enumerate(listed)]
        super().__init__(unary, given)

    def _with(self, unary: Floats, tables: Sequence[Floats]) -> Self:
        """The same graph with other scores."""
        return type(self)(unary, None, zip(self.scopes, tables, strict=True), width=self.width, clusters=self.clusters)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"labels": (self.n, self.size)}

    def indicator(self, structure: Ints, view: str) -> Floats:
        self.checked_view(view)
        return self.labels_used(structure)

    def without_scores_below(self, least: float) -> Self:
        unary = np.where(self.unary < least, -np.inf, self.unary)
        tables = []
        for scope, table in zip(self.scopes, self.tables, strict=True):
            read = table >= least
            for axis, v in enumerate(scope):
                read = read & (unary[v] > -np.inf).reshape([-1 if k == axis else 1 for k in range(len(scope))])
            tables.append(np.where(read, table, -np.inf))
        return self._with(unary, tables)

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._with(rounded_up(self.unary, step), [rounded_up(table, step) for table in self.tables])

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        self.checked_part(view, index, value)
        unary = self.unary.copy()
        if value:
            unary[index[0]] = -np.inf
            unary[index] = self.unary[index]
        else:
            unary[index] = -np.inf
        return self._with(unary, self.tables)

    def factors(self) -> Factors:
        return Factors(self.unary, tuple(zip(self.scopes, self.tables, strict=True)))

    # -- the dynamic program ---------------------------------------------------------------------------------------

    @cached_property
    def _whole(self) -> Piece | None:
        """The graph as one piece, if its width is small."""
        order, sizes = self.eliminated(BUCKET), [len(domain) for domain in self.domains]
        if order is None or sum(prod(sizes[v] for v in (b.variable, *b.separator)) for b in order) > LARGEST:
            return None
        return Piece(self.unary, [(scope, table, "") for scope, table in zip(self.scopes, self.tables, strict=True)])

    def forest(self) -> Forest | None:
        """The graph eliminated variable by variable; None where that is too large."""
        return None if self._whole is None else self._whole.forest()

    def answering(self, question: str) -> Piece:
        if self._whole is None:
            raise NotSupported(
                f"{question}() of a factor graph of large width has no tractable answer: its cycles would take more "
                f"than {LARGEST} steps. Ask decode(), kbest(k), max_marginals(), log_partition_bounds() or "
                "marginal_estimates(), or leave tables out."
            )
        return self._whole

    def from_edges(self, edges: Sequence[int]) -> Ints:
        return self.answering("from_edges").from_edges(edges)

    def normal_form(self) -> NormalForm:
        return self.answering("normal_form").normal_form()

    def normal_structure(self, structure: Ints) -> tuple[list[int]]:
        return self.answering("normal_structure").normal_structure(structure)

    def reference_maximum(self, penalties: Penalties | None = None) -> float | None:
        return None if self._whole is None else self._whole.reference_maximum(penalties)

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        if self._whole is None:
            return super().max_marginals(penalties)
        return self._whole.forest().max_marginals(self.views, penalties)

    def max_marginal_bounds(self, *, time_limit: float | None = None) -> PartBounds:
        return self.part_bounds_by_search(time_limit) if self._whole is None else super().max_marginal_bounds()

    @sound_list
    def kbest(self, k: int) -> list[Result[Ints]]:
        if self._whole is None:
            return super().kbest(k)
        found = self._whole.forest().kbest(k)
        listed = ((self.from_edges(edges), value) for edges, value in found)
        return [self.proved(y, v, kind="dynamic program", rank=rank) for rank, (y, v) in enumerate(listed, start=1)]

    # -- decoding --------------------------------------------------------------------------------------------------

    def _decode(self, limits: Limits) -> Result[Ints]:
        if self._whole is not None:
            solution = self._whole.solve()
            return self.proved(solution.structure, solution.value, kind="dynamic program")
        return branch.decode(self, limits)

    def solve(self, penalties: Penalties | None = None) -> Solution[Ints]:
        if self._whole is not None:
            return self._whole.solve(penalties)
        result = branch.climb(self, self._relaxation.penalised(penalties))
        return Solution(result.structure, result.score)

    @cached_property
    def _relaxation(self) -> Relaxation:
        return relaxed.over_pieces(self, self.width, self.clusters)

    def relaxation(self) -> Relaxation | None:
        """Pieces of small width that must agree; None where the graph is a dynamic program."""
        return None if self._whole is not None else self._relaxation

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        tables = [
            {"variables": list(scope), "scores": floats_to_json(table)}
            for scope, table in zip(self.scopes, self.tables, strict=True)
        ]
        unary = floats_to_json(self.unary)
        options = {"width": self.width} | ({"clusters": self.clusters} if self.clusters else {})
        return {"variables": self.n, "labels": self.size, "unary": unary, "tables": tables} | options

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        n, size = given["variables"].whole(), given["labels"].whole()
        unary = given["unary"].scores((n, size))
        tables = []
        for entry in given["tables"].items():
            scope = tuple(entry["variables"].wholes(0, MOST).tolist())
            tables.append((scope, entry["scores"].scores((size,) * len(scope))))
        width = given["width"].whole(1) if "width" in given else None
        clusters = given["clusters"].whole() if "clusters" in given else 0
        return given.made(lambda: cls(unary, None, tables, width=width, clusters=clusters))

    def structure_to_json(self, structure: Ints) -> list[int]:
        return self.checked_labels(structure)

    def structure_from_json(self, data: Any) -> Ints:
        labels = Field.of(data, "structure").wholes(0, max(self.size - 1, 0), (self.n,))
        return np.array(self.checked_labels(labels), dtype=np.int64)


def merged(given: Sequence[Factors], weights: Sequence[float]) -> FactorGraph | None:
    """The labels of several problems as one factor graph, their scores weighted; None where its tables are large.

    Large tables are better left to problems that have an algorithm of their own for them, unless the whole is small.
    """
    unary = weights[0] * given[0].unary
    for factors in given[1:]:
        unary = np.where(factors.unary == -np.inf, -np.inf, unary)
    tables: list[tuple[tuple[int, ...], Floats]] = []
    for k, (factors, weight) in enumerate(zip(given, weights, strict=True)):
        alone = [((v,), row) for v, row in enumerate(factors.unary)] if k else []
        tables += [(scope, weight * table) for scope, table in (*alone, *factors.tables)]
    graph = FactorGraph(unary, None, tables)
    small = all(table.size <= relaxed.BUCKET for table in graph.tables)
    return graph if small or graph.relaxation() is None else None
