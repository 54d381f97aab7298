r"""Great-grandparents of trees with crossing arcs: every word chooses its head, its modifiers and theirs, on its own.

Word g chooses a head f, takes modifiers h, and for each of these supposes some modifiers m of h: all arcs of a part,
f -> g -> h -> m, are then one word's choice. Nothing makes different words agree, so the best choice is found word by
word. In a tree, the arc h -> m of a word h is supposed once, by the head of h: tied to a spanning tree by multipliers
on their three copies of the arcs, lineages bound its great-grandparent scores, as head automata do others (LR 6.5).
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.certificates.assembling import Assembly, derivation
from certus.certificates.normal import NormalForm
from certus.certificates.rounding import Extent, extent_of
from certus.checks import Bools, Floats, Ints, as_scores
from certus.errors import Infeasible
from certus.problem import Index, Limits, Penalties, Problem
from certus.result import Result, Solution

if TYPE_CHECKING:
    from certus.dependency.parts import Scores


class Lineage(NamedTuple):
    """What the words chose: of the pairs (f, g), of the lines (f, g, h) and of the parts (f, g, h, m) those in use."""

    pairs: Bools
    lines: Bools
    parts: Bools


class Lineages(Problem[Lineage]):
    """The best head, modifiers and modifiers of modifiers for every word, each word on its own.

    Solves  max over z of  sum over parts (f, g, h, m) of z of score[f, g, h, m]. Node 0 has no head: f is -1 there, and
    nothing is scored. O(parts) by numpy. Certificate kind: "dynamic program".

    Views, all of shape (n + 1, n + 1): "above", where f is chosen as the head of g; "arcs", where g takes h; "below",
    how many words suppose that h takes m.
    """

    name: ClassVar[str] = "lineages"
    exclusive: ClassVar[Mapping[str, int]] = {"above": 0}
    told_apart_by = ("above", "arcs", "below")  # where words have one head, as all have that agree with a tree
    certificate_kind = "dynamic program"

    def __init__(self, allowed: Bools, scores: "Scores") -> None:
        self.n = len(allowed) - 1
        f, g = np.nonzero(allowed)
        order = np.argsort(g, kind="stable")
        self.pair = np.concatenate((np.array([[-1], [0]]), (f[order], g[order])), axis=1)  # (2, pairs), by g
        above, h = _joined(self.pair[1], allowed)
        kept = self.pair[0, above] != h
        self.line_of, self.line = above[kept], np.stack((*self.pair[:, above[kept]], h[kept]))
        line, m = _joined(self.line[2], allowed)
        f, g, h = self.line[:, line]
        score = np.zeros(len(line))
        score[f >= 0] = scores.gather(*(nodes[f >= 0] for nodes in (f, g, h, m)))
        kept = (m != g) & (m != f) & (score > -np.inf)
        self.part_of, self.score_of = line[kept], score[kept]
        self.part = np.stack((f[kept], g[kept], h[kept], m[kept]))

    def of_tree(self, heads: Ints) -> Lineage:
        """A tree as choices of its words."""
        f, g = self.pair
        pairs = heads[g] == f
        lines = pairs[self.line_of] & (heads[self.line[2]] == self.line[1])
        return Lineage(pairs, lines, lines[self.part_of] & (heads[self.part[3]] == self.part[2]))

    # -- structures ------------------------------------------------------------------------------------------------

    def terms(self, structure: Lineage) -> list[float]:
        pairs, lines, parts = structure
        one_each = np.bincount(self.pair[1][pairs], minlength=self.n + 1) == 1
        if not one_each.all() or (lines & ~pairs[self.line_of]).any() or (parts & ~lines[self.part_of]).any():
            return [-np.inf]
        found: list[float] = self.score_of[parts].tolist()
        return found

    def all_structures(self) -> Iterator[Lineage]:
        sizes = (len(self.pair[1]), len(self.line_of), len(self.part_of))
        for chosen in product((False, True), repeat=sum(sizes)):
            pairs, lines, parts = np.split(np.array(chosen, dtype=bool), np.cumsum(sizes)[:2])
            structure = Lineage(pairs, lines, parts)
            if self.terms(structure) != [-np.inf]:
                yield structure

    def extent(self) -> Extent:
        # Sums are three deep, of n numbers each, and add up n^3 numbers: 2 n^2 numbers in a row are rounded no less.
        return extent_of(2 * self.n**2 + 4, self.score_of)

    def all_scores(self) -> tuple[Floats, ...]:
        return (self.score_of,)

    # -- questions -------------------------------------------------------------------------------------------------

    def _decode(self, limits: Limits) -> Result[Lineage]:
        solution = self.solve()
        return self.proved(solution.structure, solution.value)

    def solve(self, penalties: Penalties | None = None) -> Solution[Lineage]:
        pair, line, part = self._worth(penalties)
        best = self._best(pair)
        pairs = np.zeros(len(pair), dtype=bool)
        pairs[best] = True
        lines: NDArray[np.bool_] = pairs[self.line_of] & (line > 0.0)
        return Solution(Lineage(pairs, lines, lines[self.part_of] & (part > 0.0)), float(pair[best].sum()))

    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        pair, line, part = self._worth(penalties)
        best = pair[self._best(pair)]
        loss = pair - best[self.pair[1]]
        with_line = loss[self.line_of] + np.minimum(line, 0.0)
        with_part = with_line[self.part_of] + np.minimum(part, 0.0)
        total, chosen = float(best.sum()), self.pair[0] >= 0
        found = ((self.pair[:, chosen], loss[chosen]), (self.line[1:], with_line), (self.part[2:], with_part))
        out = {}
        for view, (cells, values) in zip(self.views, found, strict=True):
            out[view] = np.full(self.views[view], -np.inf)
            np.maximum.at(out[view], tuple(cells), total + values)
        return out

    def _worth(self, penalties: Penalties | None) -> tuple[Floats, Floats, Floats]:
        """The best value of each pair, of each line once it is taken, and of each part."""
        above, arcs, below = self._values(penalties)
        part = self.score_of + below
        line = arcs + np.bincount(self.part_of, np.maximum(part, 0.0), minlength=len(arcs))
        return above + np.bincount(self.line_of, np.maximum(line, 0.0), minlength=len(above)), line, part

    def _best(self, pair: Floats) -> Ints:
        """The best pair of each word; ties go to the first head."""
        g, words = self.pair[1], np.arange(self.n + 1)
        best = np.lexsort((-pair, g))[np.minimum(np.searchsorted(g, words), len(g) - 1)]
        if (g[best] != words).any() or pair[best].min() == -np.inf:
            raise Infeasible("some word has no head that is not forbidden.")
        return best

    def _values(self, penalties: Penalties | None) -> tuple[Floats, Floats, Floats]:
        """The penalties of each pair, line and part."""
        given = {v: as_scores(f"penalty of {v}", p, self.checked_view(v)) for v, p in (penalties or {}).items()}
        above, arcs, below = (given.get(view, np.zeros((self.n + 1, self.n + 1))) for view in self.views)
        f, g = self.pair
        return np.where(f >= 0, above[f, g], 0.0), arcs[tuple(self.line[1:])], below[tuple(self.part[2:])]

    @property
    def views(self) -> Mapping[str, Index]:
        return dict.fromkeys(("above", "arcs", "below"), (self.n + 1, self.n + 1))

    def indicator(self, structure: Lineage, view: str) -> Floats:
        out = np.zeros(self.checked_view(view))
        if view == "above":
            f, g = self.pair[:, structure.pairs]
            out[f[f >= 0], g[f >= 0]] = 1.0
        elif view == "arcs":
            out[tuple(self.line[1:, structure.lines])] = 1.0
        else:
            np.add.at(out, tuple(self.part[2:, structure.parts]), 1.0)
        return out

    # -- proofs ----------------------------------------------------------------------------------------------------

    @cached_property
    def _spelt_out(self) -> NormalForm:
        """The normal form; beyond the views, its cells tell the pairs, lines and parts in use."""
        graph, size = Assembly(), self.n + 1
        cells: dict[str, Ints] = {}
        used = []
        choices = zip(self.views, Lineage._fields, (self.pair, self.line[1:], self.part[2:]), strict=True)
        for view, choice, nodes in choices:
            cell = np.where(nodes[0] >= 0, nodes[0] * size + nodes[1], -1)
            read = np.unique(cell[cell >= 0])
            cells[view] = np.full(size**2, -1, dtype=np.int64)
            cells[view][read] = graph.parts(np.zeros(len(read)), always=True)
            cells[choice] = graph.parts(self.score_of if choice == "parts" else np.zeros(len(cell)), always=True)
            used.append([np.where(cell >= 0, cells[view][cell], -1), cells[choice]])
        part, line = (graph.vertices(np.full(len(of), k)) for k, of in enumerate((self.part_of, self.line_of)))
        for vertex in (part, line):
            graph.edges(vertex, [], [])  # not taken
        graph.edges(part, [], used[2])
        graph.edges(line, _side_by_side(part, self.part_of, len(line)), used[1])
        word = graph.vertices(np.full(size, 2))
        graph.edges(word[self.pair[1]], _side_by_side(line, self.line_of, len(self.pair[1])), used[0])
        root = graph.vertices(np.array([3]))
        graph.edges(root, list(word[:, None]), [])
        return graph.form(int(root[0]), cells)

    def normal_form(self) -> NormalForm:
        form = self._spelt_out
        return form._replace(cells={view: form.cells[view] for view in self.views})

    def normal_structure(self, structure: Lineage) -> tuple[Any, ...]:
        return (derivation(self._spelt_out, {k: v.astype(np.float64) for k, v in structure._asdict().items()}),)


def _joined(node: Ints, allowed: Bools) -> tuple[Ints, Ints]:
    """Each node, by its place, with each of its modifiers."""
    place, modifier = np.nonzero(allowed[node])
    return place, modifier


def _side_by_side(vertex: Ints, row: Ints, rows: int) -> list[Ints]:
    """The vertices of each row, which do not fall, in columns; -1 where a row has fewer."""
    place = np.arange(len(row)) - np.searchsorted(row, row)
    table = np.full((rows, int(place.max(initial=-1)) + 1), -1, dtype=np.int64)
    table[row, place] = vertex
    return list(table.T)
