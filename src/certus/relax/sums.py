r"""An interval for the log-partition function of a problem that is decoded by relaxation.

Above: structures are among the combinations of structures of the subproblems, and multipliers only add to the scores of
those that satisfy the rows, so that for any multipliers u

    log sum_y exp(score(y))  <=  sum_i log Z_i(u) - u'b,

where Z_i sums over all structures of subproblem i under the penalties A'u. Where the structure of any subproblem tells
those of all others, Hoelder's inequality gives sum_i 1/K log Z_i^(K)(u) - u'b as well, for K subproblems with scores
times K. Both are convex and smooth in u, and lowered by a quasi-Newton method. Below: the best structures, one by one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from certus.certificates.rounding import EPSILON, of_log_sum
from certus.certificates.sound import summed
from certus.checks import Floats, as_positive_int
from certus.errors import Infeasible
from certus.problem import Problem
from certus.relax.laws import Asked, Law, law_of
from certus.relax.quasi_newton import dot, least
from certus.relax.system import Relaxation
from certus.result import LogPartitionBounds

LISTED = 8  # structures of the lower bound
MEMORY = 10  # steps that the minimiser remembers


class Sums:
    """The upper bound as a function of the multipliers; ``power`` is what scores are times, and sums divided by."""

    def __init__(self, relaxation: Relaxation, power: float) -> None:
        self.relaxation, self.power = relaxation, power
        self.fixings = relaxation.initial_fixings()
        self.laws = [self.law(i, relaxation.penalties(np.zeros(relaxation.n_rows), self.fixings)) for i in self._all]

    @property
    def _all(self) -> range:
        return range(len(self.relaxation.subproblems))

    def law(self, i: int, penalty: Floats, power: float | None = None) -> Law:
        """The distribution of a subproblem under penalties on the cells; NotSupported where it has none."""
        r = self.relaxation
        own = {view: penalty[cells].reshape(shape) for view, cells, shape in r.slices[i]}
        return law_of(r.subproblems[i], Asked(r.weights[i], own, self.power if power is None else power))

    def ask(self, u: Floats) -> tuple[float, Floats]:
        """The bound under multipliers, rounding aside, and its gradient."""
        r = self.relaxation
        penalty, expected = r.penalties(u, self.fixings), np.zeros(r.n_cells)
        value = dot(np.abs(u), r.slack) - dot(u, r.rhs)
        for i in self._all:
            law = self.law(i, penalty)
            value += law.log_partition / self.power
            if value == -np.inf:
                return value, np.zeros_like(u)
            for view, cells, shape in r.slices[i]:
                expected[cells] = law.expected(view, shape).ravel()
        gradient: Floats = r.matrix @ expected - r.rhs + np.sign(u) * r.slack
        return value, gradient

    def multipliers(self, iterations: int) -> Floats:
        """Multipliers under which the bound is low."""
        return self.lowered(np.zeros(self.relaxation.n_rows), iterations)

    def lowered(
        self, u: Floats, iterations: int, enough: float = -np.inf, ended: Callable[[], bool] = lambda: False
    ) -> Floats:
        """Multipliers under which it is lower than under these, or ``enough``; any, once all has ``ended``."""
        r = self.relaxation
        if not r.n_rows:
            return u
        low, high = np.full(r.n_rows, -np.inf), np.where(r.inequality, 0.0, np.inf)
        if r.box is not None:
            low, high = np.maximum(low, r.box[0]), np.minimum(high, r.box[1])

        def ask(u: Floats) -> tuple[float, Floats]:
            return (-np.inf, np.zeros_like(u)) if ended() else self.ask(u)

        return least(ask, u, low, high, steps=iterations, memory=MEMORY, enough=enough).x

    def lowest(self, iterations: int) -> float:
        """The bound, rounded up, under multipliers that make it low."""
        u = self.multipliers(iterations)
        return self.ask(u)[0] + self._error(u)

    def _error(self, u: Floats) -> float:
        """How far rounding may have taken the bound from the truth."""
        r, total = self.relaxation, 0.0
        largest = float(np.abs(r.penalties(u, r.initial_fixings())).max(initial=0.0, where=~self.fixings.zeros))
        for problem, weight, law in zip(r.subproblems, r.weights, self.laws, strict=True):
            extent = problem.extent()
            size = self.power * max(extent.length, 1) * (weight * extent.size + largest * (len(problem.views) + 1))
            total += of_log_sum(law.steps, size + law.steps)
        return total + EPSILON * (r.n_rows + 4) * float(np.abs(u) @ (np.abs(r.rhs) + r.slack))


@summed
def log_partition_bounds(problem: Problem[Any], iterations: int) -> LogPartitionBounds:
    """Of any problem with a relaxation whose subproblems have sums."""
    relaxation = Relaxation.of(problem)
    bound, rounds = Sums(relaxation, 1), as_positive_int("iterations", iterations)
    try:
        listed = problem.kbest(LISTED)
    except Infeasible:
        return LogPartitionBounds(-np.inf, -np.inf, "no structure", "no structure")
    scores = np.array([r.score for r in listed]) - problem.error()
    lower = float(np.logaddexp.reduce(scores)) - of_log_sum(LISTED + 8, float(np.abs(scores).max()))
    upper, by = bound.lowest(rounds), "multipliers"
    if told_by_each(relaxation):
        tied = Sums(relaxation, len(relaxation.subproblems)).lowest(rounds)
        upper, by = (tied, "Hoelder's inequality") if tied < upper else (upper, by)
    return LogPartitionBounds(lower, max(lower, upper), f"the best {len(listed)}", by)


def told_by_each(relaxation: Relaxation) -> bool:
    """Whether the structure of any of several subproblems tells those of all others, by views that all share."""
    every = set(range(len(relaxation.subproblems)))
    shared = [blocks for blocks in relaxation.views.values() if {i for i, _ in blocks} == every]
    told = [{view for blocks in shared for i, view in blocks if i == k} for k in every]
    pairs = zip(relaxation.subproblems, told, strict=True)
    return len(every) > 1 and all(p.told_apart_by and set(p.told_apart_by) <= views for p, views in pairs)
