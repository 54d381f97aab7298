"""Semantic dependency graphs: every word has any number of heads, or none."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.normal import NormalForm
from certus.certificates.rounding import Extent, extent_within, rounded_up
from certus.checks import Floats, Ints, as_scores
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph import Forest
from certus.lazy import once
from certus.problem import Index, Limits, PartBounds, Penalties, Problem
from certus.relax import branch
from certus.relax.system import Entries, Fixings, Lowered, Relaxation, Rows, Until
from certus.result import Result, Solution
from certus.schema import Field
from certus.serialize import floats_to_json
from certus.structures.arc_messages import ArcMessages
from certus.structures.arc_programs import COPARENT, SIBLING, ArcChains, ArcPairs, as_graph, paths
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
        self._fill(arc, sibling, coparent, grandparent)

    def _fill(
        self,
        arc: ArrayLike,
        sibling: ArrayLike | None = None,
        coparent: ArrayLike | None = None,
        grandparent: ArrayLike | None = None,
        kept: Ints | None = None,
    ) -> None:
        """Fill a new problem; with ``kept`` its pairs of arcs are these flat cells of grandparent."""
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
        self._pairs: Ints = np.empty(0, dtype=np.int64)  # flat cells of grandparent
        arc = self._lead.arrays["arc"]
        self.arrays: dict[str, Floats] = {"arc": arc, **{name: self._lead.arrays[name] for name in own}}
        if COPARENT in pairs and lead == SIBLING:
            copies = np.where(arc == -np.inf, -np.inf, 0.0)
            self._others.append(ArcChains(copies, coparent=pairs[COPARENT]))
            self.arrays[COPARENT] = self._others[-1].arrays[COPARENT]
        if GRANDPARENT in pairs:
            read = as_scores(GRANDPARENT, np.where(paths(self.n), pairs[GRANDPARENT], -np.inf))
            self.arrays[GRANDPARENT] = read
            self._pairs = _scored(self.arrays) if kept is None else _checked(kept, self.arrays)
            scores = read.reshape(-1)[self._pairs]
            self._others.append(ArcPairs(np.zeros((2, len(scores))), scores))
        if not self._others:
            self.certificate_kind = "dynamic program"

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
        return (graph, *(graph.reshape(-1)[self._ends] if isinstance(p, ArcPairs) else graph for p in self._others))

    @property
    def _ends(self) -> Ints:
        """(2, pairs) the flat cells of the arcs of each pair: g -> h, and h -> m."""
        size = self.n + 1
        return np.stack((self._pairs // size, self._pairs % size**2))

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
        """Of the parts that use no forbidden arc: those of chains, and the pairs."""
        extents = [p.extent() for p in (self._lead, *self._others)]
        length = extents[0].length + sum(e.length // 2 for e in extents[1:])  # the copies of arcs score nothing
        return extent_within(length, [(e.lowest, e.highest) for e in extents])

    def all_scores(self) -> tuple[Floats, ...]:
        return tuple(self.arrays.values())

    def without_scores_below(self, least: float) -> Self:
        if least == -np.inf:
            return self
        return self._with({name: np.where(a < least, -np.inf, a) for name, a in self.arrays.items()})

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._with({name: rounded_up(a, step) for name, a in self.arrays.items()})

    def _with(self, arrays: Mapping[str, Floats]) -> Self:
        """The same with other scores; multipliers of the one fit the other, as the pairs of arcs are the same."""
        made = type(self).__new__(type(self))
        made._fill(**arrays, kept=self._pairs)
        return made

    # -- questions -------------------------------------------------------------------------------------------------

    def relaxation(self) -> Relaxation | None:
        """Chains and pairs side by side, with a row for every copy of an arc; None for a dynamic program."""
        if not self._others:
            return None
        size = self.n + 1
        views, rows = [(0, "arcs")], []
        for k, program in enumerate(self._others, 1):
            if isinstance(program, ArcPairs):
                arc = self._ends.reshape(-1)
                own = np.arange(len(arc))
            else:
                own = arc = np.arange(size * size)
                views.append((k, "arcs"))
            row, ones = np.arange(len(own)), np.ones(len(own))
            tie = (Entries((0, "arcs"), row, arc, ones), Entries((k, program.view), row, own, -ones))
            name = GRANDPARENT if isinstance(program, ArcPairs) else COPARENT
            rows.append(Rows(name, tie, 0.0 * ones, True, (len(own),)))
        problems = (self._lead, *self._others)
        return Relaxation(
            problems,
            (1.0,) * len(problems),
            {"arcs": tuple(views)},
            tuple(rows),
            lambda leaves: leaves[0],
            self._leaves,
            led=True,
            lower=self._lower,
        )

    @cached_property
    def _messages(self) -> ArcMessages:
        pair = self._others[-1].arrays["pair"] if GRANDPARENT in self.arrays else np.empty(0)
        return ArcMessages(self.arrays, self._ends, pair)

    def _lower(self, r: Relaxation, u: Floats, fixings: Fixings, target: float, until: Until) -> Lowered:
        """By messages between arcs, whose copies have what the rows that tie them take off, and other penalties."""
        lead = r.cells_in((0, "arcs"))
        cells = {p.view: r.cells_in((k, p.view)) for k, p in enumerate(self._others, 1)}
        ends = np.cumsum([0, *(len(rows.rhs) for rows in r.rows[: len(cells)])]).tolist()
        ties = dict(zip(cells, map(slice, ends, ends[1:]), strict=False))
        others = u.copy()
        others[: ends[-1]] = 0.0
        given = r.penalties(others, fixings)
        copies = {view: np.where(given[at] > -np.inf, given[at], 0.0) - u[ties[view]] for view, at in cells.items()}
        arc = self.arrays["arc"].reshape(-1) + given[lead]
        if "arcs" in cells:
            arc += given[cells["arcs"]]
        required = np.array([c - lead.start for c in fixings.ones if lead.start <= c < lead.stop], dtype=np.int64)
        found = self._messages.lowered(arc, copies, required, target, until)
        after, average = u.copy(), np.zeros(r.n_cells)
        for view, tie in ties.items():
            after[tie] += copies[view] - found.copies[view]
        for block in r.views["arcs"]:
            average[r.cells_in(block)] = found.average
        return Lowered(after, found.graph.reshape(self.n + 1, self.n + 1), average, ends[-1])

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
        told = {"words": self.n, **{name: floats_to_json(array) for name, array in self.arrays.items()}}
        if len(self._pairs) and not np.array_equal(self._pairs, _scored(self.arrays)):
            told["pairs"] = self._pairs.tolist()
        return told

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        size = given["words"].whole(0, MOST_WORDS) + 1
        arc = given["arc"].scores((size, size))
        higher = {name: given[name].scores((size,) * 3) for name in HIGHER if name in given}
        kept = np.array(given["pairs"].wholes(0, size**3 - 1, (None,)), dtype=np.int64) if "pairs" in given else None
        made = cls.__new__(cls)
        given.made(lambda: made._fill(arc, **higher, kept=kept))
        return made

    def structure_to_json(self, structure: Any) -> Any:
        return as_graph(structure, self.n).tolist()

    def structure_from_json(self, data: Any) -> Ints:
        return as_graph(Field.of(data, "structure").wholes(0, 1, (self.n + 1,) * 2), self.n)


def _scored(arrays: Mapping[str, Floats]) -> Ints:
    """The flat cells of grandparent that may matter: of arcs that are not forbidden, and not 0."""
    there, scores = arrays["arc"] > -np.inf, arrays[GRANDPARENT]
    found: Ints = np.flatnonzero(there[:, :, None] & there[None] & (scores != 0.0))
    return found


def _checked(kept: Ints, arrays: Mapping[str, Floats]) -> Ints:
    """Pairs of arcs that were listed: all that may matter, and perhaps others."""
    read = paths(len(arrays["arc"]) - 1).reshape(-1)
    if not (np.diff(kept) > 0).all() or not read[kept].all() or not np.isin(_scored(arrays), kept).all():
        raise InvalidInput("pairs lists the cells of grandparent that matter, in order; some are missing, or are none.")
    return kept
