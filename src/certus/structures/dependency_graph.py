"""Semantic dependency graphs: every word has any number of heads, or none."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.normal import NormalForm
from certus.certificates.rounding import Extent, extent_of, rounded_up
from certus.checks import Floats, Ints
from certus.errors import NotSupported
from certus.hypergraph import Forest
from certus.lazy import once
from certus.problem import Index, Limits, PartBounds, Penalties, Problem
from certus.relax import branch
from certus.relax.system import Entries, Relaxation, Rows
from certus.result import Result, Solution
from certus.schema import Field
from certus.serialize import floats_to_json
from certus.structures.arc_programs import COPARENT, SIBLING, ArcChains, ArcPairs, as_graph, copies_of
from certus.structures.program import as_array

GRANDPARENT = "grandparent"
HIGHER = (SIBLING, COPARENT, GRANDPARENT)
MOST_WORDS = 1 << 12  # of a problem in a file


class DependencyGraph(Problem[Ints]):
    """The best graph of arcs between words, with any number of heads for each word, or none: semantic dependencies.

    A graph scores the sum of arc[h, m] over its arcs, and of

        sibling[h, s, m] over arcs h -> m, where s is the modifier of h next inside m on the same side, h if none is;
        coparent[h, g, m] over arcs h -> m, where g is the head of m next inside h on the same side, m if none is;
        grandparent[g, h, m] over arcs g -> h and h -> m.

    With arcs alone, or arcs and one of sibling and coparent, it is a dynamic program, O(n^3), and every question has an
    answer. With more it is decoded by relaxation: chains of siblings, chains of coparents and pairs of arcs are solved
    by themselves and brought to agree, by branching where multipliers do not suffice. Certificate kind: "dynamic
    program", "dual" or "branch and bound".

    Parameters
    ----------
    arc : array_like of shape (n + 1, n + 1)
        Node 0 is the root, which has no head; ``-inf`` forbids an arc. Arcs into node 0 and from a word to itself are
        not read.
    sibling, coparent, grandparent : array_like of shape (n + 1, n + 1, n + 1), optional

    Notes
    -----
    Structures are arrays (n + 1, n + 1) of 0 and 1. The one view is "arcs", in the same shape.

    Examples
    --------
    >>> DependencyGraph([[0, 1, -1], [0, 0, 2], [0, 3, 0]]).decode().structure.tolist()
    [[0, 1, 0], [0, 0, 1], [0, 1, 0]]
    """

    name = "dependency graph"

    def __init__(
        self,
        arc: ArrayLike,
        sibling: ArrayLike | None = None,
        coparent: ArrayLike | None = None,
        grandparent: ArrayLike | None = None,
    ) -> None:
        given = dict(zip(HIGHER, (sibling, coparent, grandparent), strict=True))
        first = as_array("arc", arc, (None, None))
        pairs = {
            name: as_array(name, values, (len(first),) * 3) for name, values in given.items() if values is not None
        }
        lead = SIBLING if SIBLING in pairs else COPARENT
        own = {name: values for name, values in pairs.items() if name == lead}
        self._lead = ArcChains(first, **own)
        self.n = self._lead.n
        self._others: list[ArcChains | ArcPairs] = []
        if COPARENT in pairs and lead == SIBLING:
            self._others.append(ArcChains(np.zeros(first.shape), coparent=pairs[COPARENT]))
        if GRANDPARENT in pairs:
            self._others.append(ArcPairs(np.zeros((2, *pairs[GRANDPARENT].shape)), pairs[GRANDPARENT]))
        if not self._others:
            self.certificate_kind = "dynamic program"
        higher = {name: p.arrays[name] for p in (self._lead, *self._others) for name in HIGHER if name in p.arrays}
        self.arrays: dict[str, Floats] = {"arc": self._lead.arrays["arc"], **higher}

    def __repr__(self) -> str:
        return f"DependencyGraph({self.n} words, {', '.join(self.arrays)})"

    def answering(self, question: str) -> ArcChains:
        """The dynamic program that the problem is; NotSupported if it is more."""
        if self._others:
            raise NotSupported(
                f"{question}() of graphs scored by {', '.join(self.arrays)} has no tractable answer; it has with arcs "
                "and one of sibling and coparent. Ask decode(), kbest(k), max_marginals(), log_partition_bounds() or "
                "marginal_estimates()."
            )
        return self._lead

    # -- structures ------------------------------------------------------------------------------------------------

    def _leaves(self, graph: Ints) -> tuple[Ints, ...]:
        return (graph, *(copies_of(graph) if isinstance(p, ArcPairs) else graph for p in self._others))

    def terms(self, structure: Any) -> list[float]:
        graph = as_graph(structure, self.n)
        found = self._lead.terms(graph)
        for program, leaf in zip(self._others, self._leaves(graph)[1:], strict=True):
            parts = program.parts_of(leaf)
            found += program.scores[parts[parts >= program.layout.cells]].tolist()
        return found

    def all_structures(self) -> Iterator[Ints]:
        cells = np.flatnonzero(~np.eye(self.n + 1, dtype=bool) & (np.arange(self.n + 1) > 0))
        for chosen in product((0, 1), repeat=len(cells)):
            yield self._lead.from_cells(cells[np.array(chosen, dtype=bool)])

    @once
    def extent(self) -> Extent:
        length = self._lead.layout.longest + sum(p.layout.longest for p in self._others)
        return extent_of(length, *self.arrays.values())

    def all_scores(self) -> tuple[Floats, ...]:
        return tuple(self.arrays.values())

    def without_scores_below(self, least: float) -> Self:
        if least == -np.inf:
            return self
        return type(self)(**{name: np.where(a < least, -np.inf, a) for name, a in self.arrays.items()})

    def with_scores_rounded_up(self, step: float) -> Self:
        return type(self)(**{name: rounded_up(a, step) for name, a in self.arrays.items()})

    # -- questions -------------------------------------------------------------------------------------------------

    def relaxation(self) -> Relaxation | None:
        """Chains and pairs side by side, with a row for every copy of an arc; None for a dynamic program."""
        if not self._others:
            return None
        size = self.n + 1
        views, rows = [(0, "arcs")], []
        for k, program in enumerate(self._others, 1):
            if isinstance(program, ArcPairs):
                own = np.flatnonzero(program.layout.read[: program.layout.cells])
                side, g, h, m = np.unravel_index(own, program.shape)
                arc = np.where(side == 0, g * size + h, h * size + m)
            else:
                own = arc = np.arange(size * size)
                views.append((k, "arcs"))
            row, ones = np.arange(len(own)), np.ones(len(own))
            tie = (Entries((0, "arcs"), row, arc, ones), Entries((k, program.view), row, own, -ones))
            rows.append(
                Rows(
                    program.names[-1] if isinstance(program, ArcPairs) else COPARENT, tie, 0.0 * ones, True, (len(own),)
                )
            )
        problems = (self._lead, *self._others)
        return Relaxation(
            problems,
            (1.0,) * len(problems),
            {"arcs": tuple(views)},
            tuple(rows),
            lambda leaves: leaves[0],
            self._leaves,
            led=True,
        )

    def _decode(self, limits: Limits) -> Result[Ints]:
        if not self._others:
            solution = self._lead.solve()
            return self.proved(solution.structure, solution.value)
        return branch.decode(self, limits)

    def solve(self, penalties: Penalties | None = None) -> Solution[Ints]:
        relaxation = self.relaxation()
        if relaxation is None:
            return self._lead.solve(penalties)
        result = branch.climb(self, relaxation.penalised(penalties))
        return Solution(result.structure, result.score)

    def kbest(self, k: int) -> list[Result[Ints]]:
        return super().kbest(k) if self._others else self._lead.kbest(k)

    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        return super().max_marginals(penalties) if self._others else self._lead.max_marginals(penalties)

    def max_marginal_bounds(self, *, time_limit: float | None = None) -> PartBounds:
        if self._others:
            return self.part_bounds_by_search(time_limit)
        return self._lead.max_marginal_bounds()

    def forest(self) -> Forest | None:
        return None if self._others else self._lead.forest()

    def from_edges(self, edges: Any) -> Ints:
        return self.answering("from_edges").from_edges(edges)

    # -- the view and proofs ---------------------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": (self.n + 1, self.n + 1)}

    def indicator(self, structure: Any, view: str) -> Floats:
        self.checked_view(view)
        return as_graph(structure, self.n).astype(np.float64)

    def normal_form(self) -> NormalForm:
        return self.answering("normal_form").normal_form()

    def normal_structure(self, structure: Any) -> tuple[Any, ...]:
        return self.answering("normal_structure").normal_structure(as_graph(structure, self.n))

    def reference_maximum(self, penalties: Penalties | None = None) -> float | None:
        return None if self._others else self._lead.reference_maximum(penalties)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return {"words": self.n, **{name: floats_to_json(array) for name, array in self.arrays.items()}}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        size = given["words"].whole(0, MOST_WORDS) + 1
        arc = given["arc"].scores((size, size))
        higher = {name: given[name].scores((size,) * 3) for name in HIGHER if name in given}
        return given.made(lambda: cls(arc, **higher))

    def structure_to_json(self, structure: Any) -> Any:
        return as_graph(structure, self.n).tolist()

    def structure_from_json(self, data: Any) -> Ints:
        return as_graph(Field.of(data, "structure").wholes(0, 1, (self.n + 1,) * 2), self.n)
