"""The linear and the integer program of leaves and paths (LR fig. 5-6, constraints D0 to D6), solved by HiGHS.

Variables: x_e, how often a derivation uses edge e of the leaf graph; links of the layers of chains (``leaf_graph``),
how often they are chosen; f[p, a, s], how often arc s lies on the path from leaf a at place p. The paths of all chains
with the same leaf at the same place are one flow. Of the last leaf of a chain only the word matters to the model, so
that chains (node, word) meet pairs (leaf, leaf) in one row for each leaf and word. Without integrality the value is
what "paths" converges to. Once the edges are whole so is all that they leave open: only they need to be.
"""

from typing import TYPE_CHECKING

import numpy as np

from certus.checks import Floats, Ints
from certus.errors import Infeasible, NotSupported
from certus.relax.linear import WHOLE, Builder, LPReport
from certus.translation.forest import NO_DERIVATION
from certus.translation.leaf_graph import BEGIN, END, Chains, Leaves

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

MOST_VARIABLES = 3_000_000  # some 2 GB with the rows and what HiGHS makes of them


class LeafProgram(Builder):
    """The program of leaves and paths; the first variables are the edges of the leaf graph."""

    def __init__(self, leaves: Leaves) -> None:
        super().__init__()
        self.leaves = leaves
        graph, span = leaves.graph, leaves.order - 1
        edge = self.variables(leaves.weights)
        row = self.rows((np.arange(graph.n_vertices) == graph.root).astype(np.float64))  # D0
        used_by = np.repeat(edge, np.diff(graph.tail_ptr))
        self.add(row[graph.heads], edge, 1.0)
        self.add(row[graph.tail], used_by, -1.0)
        # D2 to D4: leaf v is chosen at place p as often as it is used; -1 where there is no such row
        place = self._equations((span + 1) * (leaves.n_leaves + 1)).reshape(span + 1, -1)
        place[:, leaves.pad] = -1
        place[span, END] = -1  # no leaf is n - 1 places after </s>
        of_leaf = graph.tail < leaves.n_leaves
        for p in range(span + 1):
            self.add(place[p, graph.tail[of_leaf]], used_by[of_leaf], -1.0)
        self._place, self._sink = place, self._flows()
        for after in range(span):
            self._choose(Chains(leaves, np.zeros(leaves.n_leaves + 1, dtype=np.int64), after))

    def _equations(self, count: int) -> Ints:
        """New rows that add up to 0."""
        return self.rows(np.zeros(count))

    def variables(self, score: Floats, most: float = np.inf) -> Ints:
        if self.n_variables + len(score) > MOST_VARIABLES:
            raise NotSupported(
                f"the program has more than {MOST_VARIABLES} variables, which take too much memory. Prune the forest."
            )
        return super().variables(score, most)

    def _flows(self) -> list[Ints]:
        """Flows along arcs (D5, D6), for each place; for each pair, the row of what flows between its leaves, or -1."""
        leaves = self.leaves
        leaf, arc = leaves.cells()
        port_of = leaves.graph.n_vertices * 2
        into, reached = np.unique(leaf * port_of + leaves.target[arc], return_inverse=True)
        left = leaf * port_of + leaves.source[arc]
        outgoing = np.where(leaves.source[arc] == leaf, -1, np.searchsorted(into, left))
        found = leaves.pair_from * port_of + port_of - 1 - leaves.pair_to
        at = np.minimum(np.searchsorted(into, found), len(into) - 1)
        known = (into[at] == found) & (leaves.pair_from != leaves.pad)
        by_edge = leaves.uses.tocoo()
        crossed = np.unique(arc)
        sinks = []
        for _ in range(1, leaves.order):
            total = np.full(leaves.n_arcs, -1, dtype=np.int64)
            total[crossed] = self._equations(len(crossed))
            self.add(total[by_edge.col], np.asarray(by_edge.row, dtype=np.int64), -by_edge.data)  # some arcs twice
            conserved, f = self._equations(len(into)), self.variables(np.zeros(len(arc)))
            self.add(total[arc], f, 1.0)
            self.add(conserved[reached], f, 1.0)
            self.add(np.where(outgoing < 0, -1, conserved[outgoing]), f, -1.0)
            sinks.append(np.where(known, conserved[at], -1))
        return sinks

    def _choose(self, chains: Chains) -> None:
        """Variables for the links of chains, as many into each node as out of it, and for what they end in."""
        leaves, rows = self.leaves, np.full(self.leaves.n_leaves + 1, -1, dtype=np.int64)
        for k, layer in enumerate(chains.layers):
            place, last = chains.place_of(k), k + 1 == len(chains.layers)
            if last and not chains.after:
                self._end_in_words(chains, rows)
                return
            link = self.variables(np.zeros(len(layer.pair)))
            self.add(rows[layer.source], link, -1.0)
            self.add(self._place[place, leaves.pair_from[layer.pair]], link, 1.0)
            self.add(self._sink[place - 1][layer.pair], link, -1.0)
            if last:  # in </s>, so many places before the leaf that chooses
                self.add(np.full(len(link), self._place[chains.after, END]), link, 1.0)
            else:
                rows = self._equations(len(layer.leaf))
                self.add(np.repeat(rows, np.diff(layer.ptr)), link, 1.0)

    def _end_in_words(self, chains: Chains, rows: Ints) -> None:
        """Variables for pairs of leaves at places 1 and 0, and for nodes with the word after them."""
        leaves, layer = self.leaves, chains.layers[-1]
        word = leaves.words.astype(np.int64)
        word[BEGIN] = -1
        after = word[leaves.pair_to[layer.pair]] + 1
        size = int(word.max()) + 2
        keys, one = np.unique(layer.source * size + after, return_index=True)
        chosen = self.variables(chains.score[one])
        self.add(rows[keys // size], chosen, -1.0)
        pairs, first = np.unique(layer.pair, return_index=True)
        adjacent = self.variables(np.zeros(len(pairs)))
        a, b = leaves.pair_from[pairs], leaves.pair_to[pairs]
        self.add(self._place[1, a], adjacent, 1.0)
        self.add(self._place[0, b], adjacent, 1.0)
        self.add(self._sink[0][pairs], adjacent, -1.0)
        of_pair, of_node = a * size + after[first], leaves.pair_from[layer.pair[one]] * size + after[one]
        both, row = np.unique(np.concatenate((of_pair, of_node)), return_inverse=True)
        ties = self._equations(len(both))
        self.add(ties[row[: len(pairs)]], adjacent, -1.0)
        self.add(ties[row[len(pairs) :]], chosen, 1.0)

    def solved(self, *, integer: bool, time_limit: float | None) -> tuple[Floats, float]:
        """An optimal x, and an upper bound of the optimum, as good as HiGHS's tolerances."""
        try:
            return self.solve(self.leaves.graph.n_edges if integer else 0, time_limit)
        except Infeasible:
            raise Infeasible(NO_DERIVATION) from None


def _program(problem: "ForestTranslation") -> LeafProgram:
    return LeafProgram(Leaves(problem.translation_forest, problem.lm, problem.lm_weight))


def solve_ilp(problem: "ForestTranslation", time_limit: float | None = None) -> list[int]:
    """The best derivation by integer programming, as good as HiGHS's word.

    Raises NotSupported for programs of more than ``MOST_VARIABLES`` variables.
    """
    program = _program(problem)
    leaves = program.leaves
    x, _ = program.solved(integer=True, time_limit=time_limit)
    left = np.round(x[: leaves.graph.n_edges]).astype(np.int64)
    edges, agenda = [], [leaves.graph.root]
    while agenda:
        e = next(e for e in leaves.graph.edges_into(agenda.pop()) if left[e] > 0)
        left[e] -= 1
        if leaves.origin[e] >= 0:
            edges.append(int(leaves.origin[e]))
        agenda.extend(leaves.graph.tail_of(e)[::-1].tolist())
    return edges


def solve_lp(problem: "ForestTranslation", time_limit: float | None = None) -> LPReport:
    """The linear program: its value, which no derivation exceeds, and whether the vertex found is fractional."""
    program = _program(problem)
    x, value = program.solved(integer=False, time_limit=time_limit)
    leaves = program.leaves
    used, whole = leaves.origin >= 0, x[: leaves.graph.n_edges]
    edges = np.zeros(problem.translation_forest.graph.n_edges)
    edges[leaves.origin[used]] = whole[used]
    return LPReport(value, bool((np.abs(x - np.round(x)) > WHOLE).any()), {"edges": edges})
