r"""Higher-order non-projective parsing as a linear and an integer program, solved by HiGHS: the reference (LR 6.8).

Variables are the arcs, the transitions of the head automata, and flows that make the arcs a tree:

    one arc into every word; with root="single" one arc out of node 0
    single commodity:  node 0 sends n units, every word keeps one, an arc that is used carries at most n
    multi commodity:   node 0 sends one unit to each word k, an arc that is used carries at most one unit for each k
    every lattice of a head is crossed by one unit, in the column of the head's own head where that is scored
    the transitions that take an arc add up to the arc

Once the arcs are whole, the paths through the lattices are decided, so only the arcs need to be integer. Without that,
multi-commodity flow gives the tighter program and single-commodity flow the smaller one.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, sparse

from certus.checks import Floats, Ints, one_of
from certus.clock import Clock
from certus.dependency import nonprojective
from certus.dependency.head_automata import HeadAutomata
from certus.errors import Infeasible
from certus.relax.branch import Start
from certus.relax.linear import WHOLE, LPReport, highs, proved_from
from certus.result import Result

if TYPE_CHECKING:
    from certus.dependency.automata_problem import AutomataDependency
    from certus.dependency.problem import Dependency

FLOWS = ("single", "multi")


class _Rows:
    """Sparse rows in the making: lower <= sum of coefficient * variable <= upper."""

    def __init__(self) -> None:
        self.row: list[Ints] = []
        self.variable: list[Ints] = []
        self.coefficient: list[Floats] = []
        self.lower: list[Floats] = []
        self.upper: list[Floats] = []
        self.count = 0

    def block(self, lower: Floats, upper: Floats) -> int:
        """Open as many rows as there are bounds; returns the number of the first."""
        first = self.count
        self.lower.append(lower)
        self.upper.append(upper)
        self.count += len(lower)
        return first

    def add(self, row: Ints, variable: Ints, coefficient: float) -> None:
        """Put a coefficient at each (row, variable); what falls on one place is added up."""
        self.row.append(row)
        self.variable.append(variable)
        self.coefficient.append(np.full(len(row), coefficient))

    def constraint(self, variables: int) -> optimize.LinearConstraint:
        at = (np.concatenate(self.row), np.concatenate(self.variable))
        matrix = sparse.csr_array((np.concatenate(self.coefficient), at), shape=(self.count, variables))
        return optimize.LinearConstraint(matrix, np.concatenate(self.lower), np.concatenate(self.upper))


@dataclass(frozen=True, slots=True)
class FlowProgram:
    """The program of a problem; the first variables are its arcs (arc_head[a], arc_mod[a])."""

    objective: Floats
    most: Floats  # largest value of each variable
    constraint: optimize.LinearConstraint
    arc_head: Ints
    arc_mod: Ints

    def solve(self, *, integer: bool, time_limit: float | None = None) -> tuple[Floats, float]:
        """The arcs of an optimal point and an upper bound on the objective, as good as HiGHS's tolerances."""
        integrality = np.zeros(len(self.objective), dtype=np.int64)
        integrality[: len(self.arc_head)] = int(integer)
        try:
            x, bound = highs(self.objective, self.constraint, self.most, integrality, time_limit)
        except Infeasible:
            raise Infeasible("every tree over the allowed arcs uses a forbidden part; proved by HiGHS.") from None
        return x[: len(self.arc_head)], bound


def flow_program(problem: "Dependency | AutomataDependency", flow: str = "single") -> FlowProgram:
    """The program over arcs, transitions and flows. ``flow`` is "single" or "multi" commodity."""
    one_of("flow", flow, FLOWS)
    automata = HeadAutomata.of(problem)
    lat, n = automata.lattices, problem.n
    head, mod = lat.arc_head, lat.arc_mod
    arcs = np.arange(len(head))
    rows = _Rows()
    ones = np.ones(n)
    first = rows.block(ones, ones)
    rows.add(first + mod - 1, arcs, 1.0)
    if problem.single and n:
        first = rows.block(np.ones(1), np.ones(1))
        from_root = arcs[head == 0]
        rows.add(np.full(len(from_root), first), from_root, 1.0)

    # The tree: flows after the arcs.
    commodities = 1 if flow == "single" else n
    variables = len(arcs)
    for k in range(commodities):
        amount = float(n) if flow == "single" else 1.0
        carried = variables + arcs
        variables += len(arcs)
        kept = ones if flow == "single" else (np.arange(1, n + 1) == k + 1).astype(np.float64)
        first = rows.block(kept, kept)
        rows.add(first + mod - 1, carried, 1.0)
        inner = head > 0
        rows.add(first + head[inner] - 1, carried[inner], -1.0)
        first = rows.block(np.full(len(arcs), -np.inf), np.zeros(len(arcs)))
        rows.add(first + arcs, carried, 1.0)
        rows.add(first + arcs, arcs, -amount)

    # The automata: one variable per transition and column that is not forbidden.
    objective = [problem.arc[head, mod], np.zeros(variables - len(arcs))]
    taken = rows.block(np.zeros(len(arcs)), np.zeros(len(arcs)))
    rows.add(taken + arcs, arcs, -1.0)
    for lattice in range(2 * n + 2):
        weight = _add_lattice(rows, automata, lattice, variables, taken)
        variables += len(weight)
        objective.append(weight)
    most = np.ones(variables)
    most[len(arcs) : len(arcs) * (1 + commodities)] = float(n) if flow == "single" else 1.0
    return FlowProgram(np.concatenate(objective), most, rows.constraint(variables), head, mod)


def _add_lattice(rows: _Rows, automata: HeadAutomata, lattice: int, variables: int, taken: int) -> Floats:
    """Add the rows of one automaton over variables from ``variables`` on; returns their scores."""
    lat, h = automata.lattices, lattice // 2
    width = int(lat.width[h])
    begin, end = int(lat.state_ptr[lattice]), int(lat.state_ptr[lattice + 1])
    e_first, e_last = int(lat.in_ptr[begin]), int(lat.in_ptr[end])
    enters = np.repeat(np.arange(begin, end), np.diff(lat.in_ptr[begin : end + 1]))
    weight = lat.weight[lat.weight_ptr[lattice] : lat.weight_ptr[lattice + 1]].reshape(e_last - e_first, width)
    e, g = np.nonzero(weight > -np.inf)
    x = variables + np.arange(len(e))
    # Every state of every column passes on what enters it; the start sends a unit, the end keeps it.
    supply = np.zeros((end - begin, width))
    scored = automata.by_head and h > 0
    if not scored:
        supply[0], supply[-1] = -1.0, 1.0
    first = rows.block(supply.ravel(), supply.ravel())
    rows.add(first + (enters[e] - begin) * width + g, x, 1.0)
    rows.add(first + (lat.src[e_first:e_last][e] - begin) * width + g, x, -1.0)
    if scored:
        columns = np.arange(width)
        above = lat.up[lat.up_ptr[h] : lat.up_ptr[h + 1]]
        rows.add(first + columns, above, 1.0)
        rows.add(first + (end - begin - 1) * width + columns, above, -1.0)
    arc = lat.state_arc[enters[e]]
    takes = arc >= 0
    rows.add(taken + arc[takes], x[takes], 1.0)
    found: Floats = weight[e, g]
    return found


def ilp(
    problem: "Dependency | AutomataDependency", *, flow: str = "single", time_limit: float | None = None
) -> Result[Ints]:
    """The best tree by the integer program, proved by branch and bound. Certificate kind: "integer program".

    Raises Infeasible when there is no tree, LimitReached when the time ran out before one was found.
    """
    clock, program = Clock(time_limit), flow_program(problem, flow)
    x, _ = program.solve(integer=True, time_limit=time_limit)
    heads = np.full(problem.n + 1, -1, dtype=np.int64)
    used = x > 0.5
    heads[program.arc_mod[used]] = program.arc_head[used]
    relaxation = nonprojective.relaxation(problem)
    start = Start(tuple(relaxation.leaves(heads)), np.zeros(relaxation.n_rows))
    return proved_from(problem, relaxation, start, clock)


def lp(problem: "Dependency | AutomataDependency", *, flow: str = "single") -> LPReport:
    """The linear program: its value, which bounds every tree, the arcs of the vertex found, where it is fractional."""
    program = flow_program(problem, flow)
    x, value = program.solve(integer=False)
    arcs = np.zeros(problem.arc.shape)
    arcs[program.arc_head, program.arc_mod] = x
    return LPReport(value, bool((np.abs(x - np.round(x)) > WHOLE).any()), {"arcs": arcs})
