"""The ladder: relax; if that does not prove the optimum, remove parts; if that does not, branch on parts in dispute."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from certus.checks import Floats
from certus.errors import Infeasible
from certus.problem import DEFAULT_LIMITS, Limits, Problem
from certus.relax.descent import Descent, descend
from certus.relax.fixing import removable, without
from certus.relax.lagrangian import Lagrangian, Subproblems
from certus.relax.proof import Multipliers, Removed
from certus.relax.run import Run
from certus.relax.search import Node, Part, Search, Space
from certus.relax.smoothing import Smoothing
from certus.relax.steps import StepRule, deflected, polyak
from certus.relax.system import Fixings, Lowered, Relaxation, Until
from certus.relax.tightening import Tightening
from certus.result import Result

if TYPE_CHECKING:
    from certus.hypergraph import Forest
    from certus.relax.linear import LinearProgram

Y = TypeVar("Y")

ROOT_WINDOW = 15  # iterations over which the root must close a share of the gap, or branching begins
NODE_WINDOW = 6
NODE_ITERATIONS = 100
ROOT_ROUNDS = 400  # by which a relaxation lowers multipliers itself, where it can
NODE_ROUNDS = 200
LARGE = 1e9  # scores beyond which its tolerances say nothing
PROGRAM = 2000  # edges of a subproblem, up to which HiGHS is asked for multipliers where steps stall


class Start(NamedTuple):
    """Where a climb starts from: a structure of each subproblem that satisfies the rows, and multipliers."""

    leaves: tuple[Any, ...]
    multipliers: Floats


def decode(problem: Problem[Y], limits: Limits = DEFAULT_LIMITS) -> Result[Y]:
    """Decode any problem through its relaxation. See ``climb`` for the limits."""
    return climb(problem, Relaxation.of(problem), limits)


def climb(
    problem: Problem[Y], relaxation: Relaxation, limits: Limits = DEFAULT_LIMITS, start: Start | None = None
) -> Result[Y]:
    """Climb the ladder over a relaxation of the problem, from where another solver got to if ``start`` says so.

    ``max_iterations`` limits the relaxation before branching, ``time_limit`` (seconds) the whole climb. Without
    ``exact`` the climb ends after the relaxation, unless that has found no structure: then it goes on to the first.

    Raises
    ------
    Infeasible : it is proved that no structure satisfies the rows.
    LimitReached : the time ran out before a structure was found.
    """
    max_iterations, time_limit, exact, step = limits
    run: Run[tuple[Any, ...]] = Run(max_iterations=max_iterations, time_limit=time_limit, scale=relaxation.scale)
    easier = None if start is not None else relaxation.easier()
    rule = step or (polyak() if easier is None else deflected())
    window = ROOT_WINDOW if exact else None
    rehearsal = None
    if easier is not None:
        rehearsal = _rehearsed(Fixed(run, easier, rule), max_iterations, window, exact)
    if rehearsal is not None:
        run.info["rehearsed"] = len(run.log)  # rounds over easier subproblems; the proof is over all of them
    space = Fixed(run, relaxation, rule)
    u, rounds = (np.zeros(relaxation.n_rows), max_iterations) if rehearsal is None else (rehearsal.multipliers, 1)
    if start is not None:
        run.offer(start.leaves, problem.score(relaxation.assemble(start.leaves)))
        u = start.multipliers
    tighter = Tightening(relaxation)
    root = space.root(u, rounds, window, tighter)
    relaxation = space.relaxation
    search = Search(run, space, root)
    search.climb(exact=exact)
    if run.structure is None:
        reasons = f"no structure satisfies all the constraints ({_reasons(relaxation)}); proved by branch and bound."
        run.give_up("structure", reasons)
    structure = relaxation.assemble(run.structure)
    run.count(solves=space.subproblems.solves, nodes=search.nodes, fixed=search.removed)
    run.info |= {"step": repr(rule), "averages": _averages(relaxation, (rehearsal or root).evidence[0])}
    score = problem.score(structure) if not relaxation.base else run.score
    certificate = search.certificate(partial(problem.terms, structure), score)
    if tighter.pieces or tighter.cuts:
        run.info |= {"pieces": len(tighter.pieces), "cuts": len(tighter.cuts)}
        certificate = replace(certificate, duals=tighter.proof(certificate.duals))
    return run.result(structure, certificate)


def _rehearsed(space: "Fixed", max_iterations: int, window: int | None, exact: bool) -> "Node[Fixings] | None":
    """Solve the relaxation over easier subproblems; the run keeps the structure found. None if there is none.

    If its multipliers are not the last word even there, the search goes on there, for a better structure to start from.
    """
    try:
        root = space.root(np.zeros(space.relaxation.n_rows), max_iterations, window)
    except Infeasible:
        return None
    start = Node(root.decided, root.multipliers, root.bound, root.evidence)
    if exact:
        Search(space.run, space, root).climb(exact=True)
    space.run.count(solves=space.subproblems.solves)
    return start


class Fixed(Space[Fixings]):
    """The search space of a relaxation: its parts, fixed to 0 or 1. Evidence: average and last argmaxes."""

    def __init__(self, run: Run[tuple[Any, ...]], relaxation: Relaxation, rule: StepRule[Any]) -> None:
        self.run, self.rule = run, rule
        self._take(relaxation)

    def _take(self, relaxation: Relaxation) -> None:
        self.relaxation, self.subproblems = relaxation, Subproblems(relaxation)
        self.rows, self.lowest = relaxation.n_rows, relaxation.lowest
        in_rows = {e.block for rows in relaxation.rows for e in rows.entries}
        self._branchable = {v: [b for b in blocks if b in in_rows] for v, blocks in relaxation.views.items()}
        for known in ("_forests", "_program", "_smoothing"):
            self.__dict__.pop(known, None)

    def root(
        self, multipliers: Floats, max_iterations: int, window: int | None, tighter: Tightening | None = None
    ) -> Node[Fixings]:
        """The root, relaxed; Infeasible if a subproblem is. Where it stalls, the relaxation is made ``tighter``."""
        node = Node(self.subproblems.initial, multipliers)
        self._descend(node, max_iterations, window, log=True, tighter=tighter)
        return node

    def relax(self, node: Node[Fixings]) -> None:
        try:
            if not self._priced_out(node):
                self._descend(node, NODE_ITERATIONS, NODE_WINDOW, log=False)
        except Infeasible:
            node.bound = -np.inf

    def _priced_out(self, node: Node[Fixings]) -> bool:
        """Put a price on a row that what is decided breaks, so high that nothing is left; whether that is so."""
        broken = self.relaxation.broken(node.decided)
        least = self.lowest if self.run.structure is None else self.run.score
        if broken is None or not np.isfinite(node.bound - least):
            return False
        row, off = broken
        priced = node.multipliers.copy()
        priced[row] += 2.0 * (node.bound - least) / off
        value = Lagrangian(self.subproblems, node.decided).ask(priced).value
        if value < least:
            node.multipliers, node.bound = priced, value
        return value < least

    def _descend(
        self,
        node: Node[Fixings],
        max_iterations: int,
        window: int | None,
        *,
        log: bool,
        tighter: Tightening | None = None,
    ) -> None:
        lowered = self._lowered(node, ROOT_ROUNDS if log else NODE_ROUNDS)
        if lowered is not None and lowered.rows == self.rows:
            max_iterations = 1
        oracle = Lagrangian(self.subproblems, node.decided, proposals=log or self.run.structure is None)
        at = (self.run, oracle, node.multipliers, self.rule)
        hook = self._priced if tighter is None else partial(self._tightened, tighter)
        descent = descend(*at, max_iterations=max_iterations, window=window, log=log, tighten=hook)
        node.multipliers, node.bound, node.decided = descent.best_u, descent.best, descent.oracle.fixings
        average = descent.oracle.average if lowered is None else lowered.average
        node.evidence = (average, descent.oracle.last)

    def _lowered(self, node: Node[Fixings], rounds: int) -> Lowered | None:
        """What a relaxation finds by itself that can lower multipliers: the node's become these."""
        r = self.relaxation
        if r.lower is None:
            return None
        until = Until(rounds, self.run.clock.left)
        found = r.lower(r, node.multipliers, node.decided, self.run.score, until)
        for leaves, score in self.subproblems.met(found.structure):
            self.run.offer(leaves, score)
        node.multipliers = found.multipliers
        return found

    @cached_property
    def _forests(self) -> "list[Forest] | None":
        """Those of the subproblems; None where one has none, or is too large to spell out."""
        if not self.rows or any(problem.searched for problem in self.relaxation.subproblems):
            return None
        forests = [problem.forest() for problem in self.relaxation.subproblems]
        spelt_out = [forest for forest in forests if forest is not None]
        return spelt_out if len(spelt_out) == len(forests) else None

    @cached_property
    def _program(self) -> "LinearProgram | None":
        """The linear program that the multipliers solve the dual of; None where it is large, or there is none."""
        if self._forests is None or not self.relaxation.scale < LARGE:
            return None
        if any(forest.graph.n_edges > PROGRAM for forest in self._forests):
            return None
        from certus.relax.linear import program_of

        return program_of(self.relaxation)

    def _priced(self, at: Descent[Lagrangian]) -> tuple[Lagrangian, Floats] | None:
        """Where steps stall: once, to multipliers found by other means; they are believed no more than any others.

        By HiGHS if the program is small, else by the dual function smoothed.
        """
        oracle = Lagrangian(self.subproblems, at.oracle.fixings)
        oracle.priced = True
        if at.oracle.priced or self._forests is None:
            return None
        if self._program is not None:
            self.run.count(programs=1)
            u, oracle.solution = self._program.under(at.oracle.fixings).optimum(self.run.clock.left)
            return oracle, u
        if not self._smoothing.useful:
            return None
        score = self.lowest if self.run.structure is None else self.run.score
        return oracle, self._smoothing.better(at, oracle, score)

    @cached_property
    def _smoothing(self) -> Smoothing:
        return Smoothing(self.relaxation)

    def _tightened(self, tighter: Tightening, at: Descent[Lagrangian]) -> tuple[Lagrangian, Floats] | None:
        """The same, and then to tighter relaxations: each begins at the best multipliers, with the bound of these."""
        priced = self._priced(at)
        if priced is not None or self.run.structure is None:
            return priced
        before, found = self.relaxation, tighter.found(self.subproblems, at)
        if found is None:
            return None
        self._take(found)
        self.run.structure = tuple(found.leaves(before.assemble(self.run.structure)))
        at.oracle = Lagrangian(self.subproblems, self.subproblems.initial)
        at.best_u = found.carried(before.named(at.best_u))
        return self._priced(at) or (Lagrangian(self.subproblems, self.subproblems.initial), at.best_u)

    def error(self, node: Node[Fixings]) -> float:
        return self.relaxation.error(node.multipliers, node.decided)

    def removable(self, node: Node[Fixings]) -> tuple[Removed, ...]:
        return removable(self.subproblems, node.multipliers, node.decided, self.run.score)

    def without(self, decided: Fixings, removed: tuple[Removed, ...]) -> Fixings:
        return without(self.relaxation, decided, removed)

    def fixed(self, decided: Fixings, part: Part, value: int) -> Fixings:
        return self.relaxation.fix(decided, *part, value)

    def part(self, node: Node[Fixings]) -> Part | None:
        """The part that the averages are least decided about, then one of a row in dispute; None when all are fixed."""
        r = self.relaxation
        average, last = node.evidence
        doubt = np.minimum(average, np.abs(1.0 - average))
        doubt = np.where(doubt < 1e-9, 0.0, doubt) + 1e-6 * r.in_dispute(last, node.multipliers)
        doubt = np.where(r.decided(node.decided), -1.0, doubt)
        own = [view for view, blocks in self._branchable.items() if blocks and view not in r.excesses]
        return self._most_doubtful(own, doubt) or self._most_doubtful(r.excesses, doubt)

    def _most_doubtful(self, views: Sequence[str], doubt: Floats) -> Part | None:
        """The part of these views with the greatest doubt; None if none is 0 or more."""
        r = self.relaxation
        best: tuple[float, Part] | None = None
        for view in views:
            blocks = self._branchable[view]
            total = np.max([doubt[r.cells_in(block)] for block in blocks], axis=0)
            if total.size and (best is None or total.max() > best[0]):
                best = (float(total.max()), (view, int(total.argmax())))
        return None if best is None or best[0] < 0 else best[1]

    def witness(self, node: Node[Fixings], removed: tuple[Removed, ...] = ()) -> tuple[Multipliers, float, float]:
        r = self.relaxation
        required = max((r.insists(part.view) for part in removed), default=0)
        return r.named(node.multipliers), node.bound, r.error(node.multipliers, node.decided, required=required)


def _averages(relaxation: Relaxation, average: Floats) -> Mapping[str, Floats]:
    out = {}
    for view, blocks in relaxation.views.items():
        block = next((b for b in blocks if b in relaxation.offsets), None)
        if block is not None and view not in relaxation.excesses:
            out[view] = average[relaxation.cells_in(block)].reshape(relaxation.shape_of(block))
    return out


def _reasons(relaxation: Relaxation) -> str:
    names = [rows.name for rows in relaxation.rows]
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "") if names else "parts required or forbidden"
