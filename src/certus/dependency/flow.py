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

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from certus.checks import Floats, Ints, one_of
from certus.clock import Clock
from certus.dependency import nonprojective
from certus.dependency.head_automata import HeadAutomata
from certus.errors import Infeasible
from certus.relax.branch import Start
from certus.relax.linear import WHOLE, Builder, LPReport, proved_from
from certus.result import Result

if TYPE_CHECKING:
    from certus.dependency.automata_problem import AutomataDependency
    from certus.dependency.problem import Dependency

FLOWS = ("single", "multi")


class FlowProgram(NamedTuple):
    """The program of a problem; the first variables are its arcs (arc_head[a], arc_mod[a])."""

    builder: Builder
    arc_head: Ints
    arc_mod: Ints

    def solve(self, *, integer: bool, time_limit: float | None = None) -> tuple[Floats, float]:
        """The arcs of an optimal point and an upper bound on the objective, as good as HiGHS's tolerances."""
        arcs = len(self.arc_head)
        try:
            x, bound = self.builder.solve(arcs if integer else 0, time_limit)
        except Infeasible:
            raise Infeasible("every tree over the allowed arcs uses a forbidden part; proved by HiGHS.") from None
        return x[:arcs], bound


def flow_program(problem: "Dependency | AutomataDependency", flow: str = "single") -> FlowProgram:
    """The program over arcs, transitions and flows. ``flow`` is "single" or "multi" commodity."""
    one_of("flow", flow, FLOWS)
    automata = HeadAutomata.of(problem)
    lat, n = automata.lattices, problem.n
    head, mod = lat.arc_head, lat.arc_mod
    made, ones, each = Builder(), np.ones(n), np.zeros(len(head))
    arcs = made.variables(problem.arc[head, mod], 1.0)
    made.add(made.rows(ones)[mod - 1], arcs, 1.0)
    if problem.single and n:
        from_root = arcs[head == 0]
        made.add(np.repeat(made.rows(np.ones(1)), len(from_root)), from_root, 1.0)

    # The tree: flows after the arcs.
    inner = head > 0
    for k in range(1 if flow == "single" else n):
        amount = float(n) if flow == "single" else 1.0
        carried = made.variables(each, amount)
        kept = made.rows(ones if flow == "single" else (np.arange(1, n + 1) == k + 1).astype(np.float64))
        made.add(kept[mod - 1], carried, 1.0)
        made.add(kept[head[inner] - 1], carried[inner], -1.0)
        used = made.rows(np.full(len(arcs), -np.inf), each)
        made.add(used, carried, 1.0)
        made.add(used, arcs, -amount)

    taken = made.rows(each)
    made.add(taken, arcs, -1.0)
    for lattice in range(2 * n + 2):
        _add_lattice(made, automata, lattice, taken)
    return FlowProgram(made, head, mod)


def _add_lattice(made: Builder, automata: HeadAutomata, lattice: int, taken: Ints) -> None:
    """Add one automaton: a variable for each transition and column that is not forbidden."""
    lat, h = automata.lattices, lattice // 2
    width = int(lat.width[h])
    begin, end = int(lat.state_ptr[lattice]), int(lat.state_ptr[lattice + 1])
    e_first, e_last = int(lat.in_ptr[begin]), int(lat.in_ptr[end])
    enters = np.repeat(np.arange(begin, end), np.diff(lat.in_ptr[begin : end + 1]))
    weight = lat.weight[lat.weight_ptr[lattice] : lat.weight_ptr[lattice + 1]].reshape(e_last - e_first, width)
    e, g = np.nonzero(weight > -np.inf)
    x = made.variables(weight[e, g], 1.0)
    # Every state of every column passes on what enters it; the start sends a unit, the end keeps it.
    supply = np.zeros((end - begin, width))
    scored = automata.by_head and h > 0
    if not scored:
        supply[0], supply[-1] = -1.0, 1.0
    state = made.rows(supply.ravel()).reshape(supply.shape)
    made.add(state[enters[e] - begin, g], x, 1.0)
    made.add(state[lat.src[e_first:e_last][e] - begin, g], x, -1.0)
    if scored:
        above = lat.up[lat.up_ptr[h] : lat.up_ptr[h + 1]]
        made.add(state[0], above, 1.0)
        made.add(state[-1], above, -1.0)
    arc = lat.state_arc[enters[e]]
    takes = arc >= 0
    made.add(taken[arc[takes]], x[takes], 1.0)


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
