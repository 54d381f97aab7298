"""One loop for Lagrangian relaxation and dual decomposition: solve, compare, stop with a proof, or move (LR 3, app. A).

Every iteration solves the subproblems under the current penalties. Their values give a dual value, which bounds every
structure; their argmaxes give primal candidates, completed to structures that satisfy all rows and scored on the
original problem. The loop ends when the two meet, when progress stalls, or at a limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certus.checks import Floats
from certus.clock import Clock
from certus.errors import Infeasible
from certus.relax.steps import StepRule, polyak
from certus.relax.system import Block, Fixings, Relaxation
from certus.result import Solution, Trace

STALL = 0.1  # a window of iterations that closes less than this share of the gap is a stall


@dataclass(slots=True)
class Log:
    """The rows of a Trace while they are being written."""

    dual: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    active: list[int] = field(default_factory=list)

    def add(self, dual: float, primal: float, step: float, active: int) -> None:
        self.dual.append(dual)
        self.primal.append(primal)
        self.step.append(step)
        self.active.append(active)

    def followed_by(self, other: "Log") -> "Log":
        return Log(*(getattr(self, name) + getattr(other, name) for name in ("dual", "primal", "step", "active")))

    def trace(self) -> Trace:
        return Trace(
            np.array(self.dual), np.array(self.primal), np.array(self.step), np.array(self.active, dtype=np.int64)
        )


@dataclass(frozen=True, slots=True)
class Descent:
    """Where a run of the loop ended: the least dual value, its multipliers, and the average of the argmaxes."""

    dual: float
    multipliers: Floats
    average: Floats  # over all cells, weighted by the steps: tends to a solution of the linear program
    last: Floats  # cells used by the last argmaxes
    log: Log


class Engine:
    """A relaxation being solved: the incumbent, the clock and what was tried already."""

    def __init__(
        self, relaxation: Relaxation, *, step: StepRule[Any] | None = None, time_limit: float | None = None
    ) -> None:
        self.relaxation = relaxation
        self.rule = polyak() if step is None else step
        self.clock = Clock(time_limit)
        self.leaves: tuple[Any, ...] | None = None  # the incumbent, one structure per subproblem
        self.score = -np.inf
        self.iterations = 0
        self.solves = 0
        self._initial = relaxation.initial_fixings()
        self._unpenalised = relaxation.penalties(np.zeros(relaxation.n_rows), self._initial)
        self._ties: list[tuple[Block, ...]] = [blocks for blocks in relaxation.views.values() if len(blocks) > 1]
        self._tried: set[tuple[int, bytes]] = set()

    @property
    def initial(self) -> Fixings:
        """The fixings every structure must respect."""
        return self._initial

    @property
    def out_of_time(self) -> bool:
        """True once the time limit has passed."""
        return self.clock.out_of_time

    @property
    def cutoff(self) -> float:
        """A dual value at or below this proves that nothing better than the incumbent is left."""
        return self.score if self.leaves is not None else self.relaxation.lowest

    def closed(self, dual: float, multipliers: Floats, fixings: Fixings) -> bool:
        """True if a bound proves that nothing better than the incumbent is left, rounding aside."""
        gap = dual - self.cutoff
        if gap <= 0 or gap > 1e-5 * (1.0 + abs(dual)):
            return gap <= 0
        return self.leaves is not None and gap <= self.relaxation.error(multipliers, fixings)

    def adopt(self, other: "Engine") -> None:
        """Take over the incumbent of an engine over easier subproblems, and its counts."""
        self.leaves, self.score = other.leaves, other.score
        self.iterations += other.iterations
        self.solves += other.solves

    # -- subproblems -----------------------------------------------------------------------------------------------

    def solve(self, i: int, penalty: Floats, ones: Sequence[int]) -> Solution[Any]:
        """Argmax of subproblem i under penalties on the cells; its value is weighted."""
        self.solves += 1
        asked, offset = self.relaxation.question(i, penalty, ones)
        solution = self.relaxation.subproblems[i].solve(asked)
        return Solution(solution.structure, self.relaxation.weights[i] * solution.value + offset)

    # -- the loop --------------------------------------------------------------------------------------------------

    def descend(
        self, multipliers: Floats, fixings: Fixings, *, max_iterations: int, window: int | None = None
    ) -> Descent:
        """Lower the dual value from these multipliers on, until it meets the incumbent, stalls, or reaches a limit.

        Stalls are looked for only when ``window``, a number of iterations, is given. Raises Infeasible when a
        subproblem has no structure under the fixings.
        """
        r, rule = self.relaxation, self.rule
        state = rule.init(r.scale)
        u, best, best_u = multipliers, np.inf, multipliers
        used, average, weight, step = np.zeros(r.n_cells), np.zeros(r.n_cells), 0.0, 0.0
        solutions: list[Solution[Any]] = []
        asked: Floats | None = None
        before: Floats | None = None  # the direction of the last step
        mark = np.inf  # the best dual value a window ago
        log = Log()
        for k in range(1, max_iterations + 1):
            self.iterations += 1
            penalty = r.penalties(u, fixings)
            for i, blocks in enumerate(r.slices):
                if asked is None:
                    solutions.append(self.solve(i, penalty, fixings.ones))
                elif any(not np.array_equal(penalty[cells], asked[cells]) for _, cells, _ in blocks):
                    solutions[i] = self.solve(i, penalty, fixings.ones)
                else:
                    continue
                r.cells_used(i, solutions[i].structure, used)
            asked = penalty
            leaves = [s.structure for s in solutions]
            dual = sum(s.value for s in solutions) - float(u @ r.rhs)
            if dual < best:
                best, best_u = dual, u
            residual: Floats = r.matrix @ used - r.rhs
            self._offer(k, leaves, used, residual)
            stop = self.closed(best, best_u, fixings) or k == max_iterations or self.out_of_time
            # Rows that are slack at multiplier zero stay there: they are no part of the subgradient.
            direction = np.where(r.inequality & (u == 0) & (residual < 0), 0.0, residual)
            if rule.deflection and before is not None and (dot := float(direction @ before)) < 0:
                turned = direction - rule.deflection * dot / float(before @ before) * before
                direction = turned if turned.any() else direction
            before = direction if direction.any() else before
            norm2 = float(direction @ direction)
            if not stop and norm2 > 0:
                step, state = rule.update(state, dual, self.score, norm2)
            log.add(dual, self.score, 0.0 if stop or norm2 == 0 else step, r.n_rows)
            average, weight = average + max(step, 1e-300) * used, weight + max(step, 1e-300)
            if window is not None and k % window == 0:
                # Before there is a gap to close, progress is measured against what was made so far.
                ahead = mark - self.score if self.leaves is not None else log.dual[0] - mark
                stop = stop or (k > window and mark - best < STALL * ahead)
                mark = best
            if stop or norm2 == 0:
                break
            u = u - step * direction
            u = np.where(r.inequality, np.minimum(u, 0.0), u)
        return Descent(best, best_u, average / weight if weight else average, used, log)

    # -- primal candidates -----------------------------------------------------------------------------------------

    def _offer(self, k: int, leaves: Sequence[Any], used: Floats, residual: Floats) -> None:
        """Make structures out of the argmaxes and keep the best.

        The first subproblem leads at every iteration, the others at iterations 1, 2, 4, 8, ...: the rest follow it.
        """
        if self.relaxation.satisfied(residual):
            self._keep(leaves, used)
        elif self._ties:
            for leader in range(len(leaves) if k & (k - 1) == 0 else 1):
                self._complete(leader, leaves, used)

    def _complete(self, leader: int, leaves: Sequence[Any], used: Floats) -> None:
        """The best structures of the other subproblems that use the parts the leader uses, where they are tied."""
        r = self.relaxation
        key = (leader, b"".join(used[cells].tobytes() for _, cells, _ in r.slices[leader]))
        if key in self._tried:
            return
        self._tried.add(key)
        completed, cells = list(leaves), used.copy()
        decided = {leader}
        for j in range(len(leaves)):
            if j == leader:
                continue
            penalty = self._unpenalised.copy()
            required = list(self._initial.ones)
            for blocks in self._ties:
                sources = [b for b in blocks if b[0] in decided and b in r.offsets]
                targets = [b for b in blocks if b[0] == j and b in r.offsets]
                for target in targets:
                    for source in sources[:1]:
                        size = int(np.prod(r.shape_of(source), dtype=np.int64))
                        s, t = r.offsets[source], r.offsets[target]
                        penalty[t : t + size][cells[s : s + size] == 0] = -np.inf
                        if target[1] not in r.subproblems[j].exclusive:  # then leaving a part out is also possible
                            required += (t + np.flatnonzero(cells[s : s + size])).tolist()
            try:
                completed[j] = self.solve(j, penalty, required).structure
            except Infeasible:
                return
            r.cells_used(j, completed[j], cells)
            decided.add(j)
        if r.satisfied(r.matrix @ cells - r.rhs):
            self._keep(completed, cells)

    def _keep(self, leaves: Sequence[Any], used: Floats) -> None:
        if (used[self._initial.zeros] > 0).any() or (used[list(self._initial.ones)] == 0).any():
            return
        score = self.relaxation.score(leaves, used)
        if score > self.score:
            self.leaves, self.score = tuple(leaves), score
