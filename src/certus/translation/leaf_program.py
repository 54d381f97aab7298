"""The linear and the integer program of leaves and paths (LR fig. 5-6, constraints D0 to D6), solved by HiGHS.

Variables: x_e, how often a derivation uses edge e of the leaf graph; z_c, how often a chain of leaves is chosen (also
by the leaves after </s>, see ``leaf_paths``); f[j, a, s], how often arc s lies on the j-th path of a chain with leaf a
at place j. The paths of all chains with the same leaf at the same place are one flow, so there are few variables enough
for small forests. Without integrality its value is what "paths" converges to.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, sparse

from certus.checks import Floats
from certus.errors import Infeasible, LimitReached, NotSupported
from certus.relax.linear import WHOLE, LPReport
from certus.threads import interruptible
from certus.translation.forest import NO_DERIVATION
from certus.translation.leaf_graph import BEGIN, END, Leaves

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

MOST_VARIABLES = 300_000


class LeafProgram:
    """max objective . x such that matrix x = right, x >= 0; the first variables are the edges of the leaf graph."""

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        graph, span, size = leaves.graph, leaves.order - 1, leaves.n_leaves
        self._entries: list[tuple[int, int, float]] = []
        self._right: list[float] = []
        self._objective: list[float] = leaves.weights.tolist()
        uses: list[list[int]] = [[] for _ in range(graph.n_vertices)]  # edges with v in the tail, once for each time
        arc_uses: list[list[int]] = [[] for _ in range(leaves.n_arcs)]
        for e in range(graph.n_edges):
            for v in graph.tail_of(e).tolist():
                uses[v].append(e)
            for s in leaves.states[e]:
                arc_uses[s].append(e)
        for v in range(graph.n_vertices):  # D0
            row = self._new_row(1.0 if v == graph.root else 0.0)
            self._add(row, list(graph.edges_into(v)), 1.0)
            self._add(row, uses[v], -1.0)
        place: dict[tuple[int, int], int] = {}  # D2 to D4: leaf v is chosen at place j as often as it is used
        for j in range(span + 1):
            for v in range(size):
                if (j, v) != (span, END):  # no leaf is n - 1 places after </s>
                    place[j, v] = self._new_row(0.0)
                    self._add(place[j, v], uses[v], -1.0)
        sink = self._flows(arc_uses)
        for chain in leaves.chains(leaves.order):
            if leaves.scores[chain] > -np.inf and chain[-1] != leaves.pad:
                self._choose(float(leaves.scores[chain]), chain[::-1], 0, place, sink)
        for i in range(1, span):
            for chain in leaves.chains(span - i):
                if leaves.follows[chain[-1], END]:
                    self._choose(0.0, (END, *chain[::-1]), i, place, sink)
        self.objective = np.array(self._objective)
        rows, columns, values = zip(*self._entries, strict=True)
        shape = (len(self._right), len(self.objective))
        self.matrix = sparse.csr_array((np.array(values), (np.array(rows), np.array(columns))), shape=shape)
        self.right = np.array(self._right)

    def _new_row(self, right: float) -> int:
        self._right.append(right)
        return len(self._right) - 1

    def _new_variable(self, score: float) -> int:
        self._objective.append(score)
        if len(self._objective) > MOST_VARIABLES:
            raise NotSupported(f"the program has more than {MOST_VARIABLES} variables; it is for small forests.")
        return len(self._objective) - 1

    def _add(self, row: int, columns: list[int], value: float) -> None:
        self._entries.extend((row, column, value) for column in columns)

    def _flows(self, arc_uses: list[list[int]]) -> dict[tuple[int, int, int], int]:
        """Flows along arcs (D5, D6); the row of what flows into leaf b from leaf a at place j, by (j, a, b)."""
        leaves = self.leaves
        outer = {leaves.arc_of[leaves.down(leaves.graph.root), leaves.down(BEGIN)]}
        outer.add(leaves.arc_of[leaves.up(END), leaves.up(leaves.graph.root)])
        _, back = leaves.best_paths(np.zeros(leaves.n_arcs))
        reached = back >= 0
        reached[[leaves.up(v) for v in range(leaves.n_leaves)], np.arange(leaves.n_leaves)] = True
        sink: dict[tuple[int, int, int], int] = {}
        for j in range(1, leaves.order):
            total = {s: self._new_row(0.0) for s in range(leaves.n_arcs) if s not in outer}
            for s, row in total.items():
                self._add(row, arc_uses[s], -1.0)
            for a in range(leaves.n_leaves):
                conserved: dict[int, int] = {}
                for s in np.flatnonzero(reached[leaves.source, a]).tolist():
                    if s in outer:
                        continue
                    f = self._new_variable(0.0)
                    self._add(total[s], [f], 1.0)
                    for port, sign in ((int(leaves.target[s]), 1.0), (int(leaves.source[s]), -1.0)):
                        if port == leaves.up(a):
                            continue
                        if port not in conserved:
                            conserved[port] = self._new_row(0.0)
                        self._add(conserved[port], [f], sign)
                sink.update(((j, a, port // 2), row) for port, row in conserved.items() if port // 2 < leaves.n_leaves)
        return sink

    def _choose(
        self,
        score: float,
        chain: tuple[int, ...],
        first: int,
        place: dict[tuple[int, int], int],
        sink: dict[tuple[int, int, int], int],
    ) -> None:
        """A variable for a chain v_first, v_{first+1}, .. of leaves ever further back."""
        z = self._new_variable(score)
        for j, v in enumerate(chain, start=first):
            if v == self.leaves.pad:
                break
            self._add(place[j, v], [z], 1.0)
            if j > first:
                self._add(sink[j, v, chain[j - first - 1]], [z], -1.0)

    def solve(self, *, integer: bool, time_limit: float | None = None) -> tuple[Floats, float]:
        """An optimal x, and an upper bound of the optimum, as good as HiGHS's tolerances."""
        forbidden = self.objective == -np.inf
        found = interruptible(
            lambda: optimize.milp(
                np.where(forbidden, 0.0, -self.objective),
                constraints=optimize.LinearConstraint(self.matrix, self.right, self.right),
                bounds=optimize.Bounds(0.0, np.where(forbidden, 0.0, np.inf)),
                integrality=np.full(len(self.objective), int(integer)),
                options={"mip_rel_gap": 0.0, "time_limit": np.inf if time_limit is None else time_limit},
            )
        )
        if found.status == 2:
            raise Infeasible(NO_DERIVATION)
        if found.x is None:
            raise LimitReached(f"HiGHS found no derivation: {found.message}")
        bound = found.mip_dual_bound if integer and found.mip_dual_bound is not None else found.fun
        return found.x, 0.0 - float(bound)


def _program(problem: "ForestTranslation") -> LeafProgram:
    return LeafProgram(Leaves(problem.translation_forest, problem.lm, problem.lm_weight))


def solve_ilp(problem: "ForestTranslation", time_limit: float | None = None) -> list[int]:
    """The best derivation by integer programming, as good as HiGHS's word.

    Raises NotSupported for forests that are not small.
    """
    program = _program(problem)
    leaves = program.leaves
    x, _ = program.solve(integer=True, time_limit=time_limit)
    left = np.round(x[: leaves.graph.n_edges]).astype(np.int64)
    edges, agenda = [], [leaves.graph.root]
    while agenda:
        e = next(e for e in leaves.graph.edges_into(agenda.pop()) if left[e] > 0)
        left[e] -= 1
        if leaves.origin[e] >= 0:
            edges.append(int(leaves.origin[e]))
        agenda.extend(leaves.graph.tail_of(e)[::-1].tolist())
    return edges


def solve_lp(problem: "ForestTranslation") -> LPReport:
    """The linear program: its value, which no derivation exceeds, and whether the vertex found is fractional."""
    program = _program(problem)
    x, value = program.solve(integer=False)
    used = program.leaves.origin >= 0
    edges = np.zeros(problem.translation_forest.graph.n_edges)
    edges[program.leaves.origin[used]] = x[: len(used)][used]
    return LPReport(value, bool((np.abs(x - np.round(x)) > WHOLE).any()), {"edges": edges})
