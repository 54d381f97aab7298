r"""An interval for the log-partition function of a problem that is decoded by relaxation.

Above: structures are among the combinations of structures of the subproblems, and multipliers only add to the scores of
those that satisfy the rows, so that for any multipliers u

    log sum_y exp(score(y))  <=  sum_i log Z_i(u) - u'b,

where Z_i sums over all structures of subproblem i under the penalties A'u. Where the structure of any subproblem tells
those of all others, Hoelder's inequality gives sum_i 1/K log Z_i^(K)(u) - u'b as well, for K subproblems with scores
times K. Both are convex and smooth in u, and lowered by a quasi-Newton method. Below: the best structures, one by one.
"""

from typing import Any

import numpy as np

from certus.certificates.rounding import EPSILON, of_log_sum
from certus.certificates.sound import summed
from certus.checks import Floats, as_positive_int
from certus.errors import Infeasible, NotSupported
from certus.hypergraph import Forest, sweeps
from certus.problem import Problem
from certus.relax.quasi_newton import least
from certus.relax.system import Relaxation
from certus.result import LogPartitionBounds

LISTED = 8  # structures of the lower bound
MEMORY = 10  # steps that the minimiser remembers


class Sums:
    """The upper bound as a function of the multipliers; ``power`` is 1, or the number of subproblems."""

    def __init__(self, relaxation: Relaxation, forests: list[Forest], power: int) -> None:
        self.relaxation, self.forests, self.power = relaxation, forests, power
        self.fixings = relaxation.initial_fixings()

    def ask(self, u: Floats) -> tuple[float, Floats]:
        """The bound under multipliers, rounding aside, and its gradient."""
        r = self.relaxation
        penalty, expected = r.penalties(u, self.fixings), np.zeros(r.n_cells)
        value = float(np.abs(u) @ r.slack) - float(u @ r.rhs)
        for i, forest in enumerate(self.forests):
            weights = self._weights(i, penalty)
            value += sweeps.log_partition(forest.graph, weights) / self.power
            if value == -np.inf:
                return value, np.zeros_like(u)
            edge = sweeps.marginals(forest.graph, weights)
            for view, cells, shape in r.slices[i]:
                expected[cells] = forest.onto_view(view, shape, edge, maximum=False).ravel()
        gradient: Floats = r.matrix @ expected - r.rhs + np.sign(u) * r.slack
        return value, gradient

    def _weights(self, i: int, penalty: Floats) -> Floats:
        r, forest = self.relaxation, self.forests[i]
        weights = r.weights[i] * forest.weights
        for view, cells, _ in r.slices[i]:
            cell = forest.parts[view]
            weights[cell >= 0] += penalty[cells][cell[cell >= 0]]
        return self.power * weights

    def lowest(self, iterations: int) -> float:
        """The bound, rounded up, under multipliers that make it low."""
        r = self.relaxation
        u = np.zeros(r.n_rows)
        if r.n_rows:
            low, high = np.full(r.n_rows, -np.inf), np.where(r.inequality, 0.0, np.inf)
            if r.box is not None:
                low, high = np.maximum(low, r.box[0]), np.minimum(high, r.box[1])
            u = least(self.ask, u, low, high, steps=iterations, memory=MEMORY).x
        return self.ask(u)[0] + self._error(u)

    def _error(self, u: Floats) -> float:
        """How far rounding may have taken the bound from the truth."""
        r, total = self.relaxation, 0.0
        largest = float(np.abs(r.penalties(u, r.initial_fixings())).max(initial=0.0, where=~self.fixings.zeros))
        for problem, weight, forest in zip(r.subproblems, r.weights, self.forests, strict=True):
            extent, edges = problem.extent(), forest.graph.n_edges
            size = self.power * max(extent.length, 1) * (weight * extent.size + largest * (len(problem.views) + 1))
            total += of_log_sum(edges + 8, size + edges)
        return total + EPSILON * (r.n_rows + 4) * float(np.abs(u) @ (np.abs(r.rhs) + r.slack))


@summed
def log_partition_bounds(problem: Problem[Any], iterations: int) -> LogPartitionBounds:
    """Of any problem with a relaxation whose subproblems are dynamic programs."""
    relaxation = Relaxation.of(problem)
    forests = [_forest(sub) for sub in relaxation.subproblems]
    try:
        listed = problem.kbest(LISTED)
    except Infeasible:
        return LogPartitionBounds(-np.inf, -np.inf, "no structure", "no structure")
    scores = np.array([r.score for r in listed]) - problem.error()
    lower = float(np.logaddexp.reduce(scores)) - of_log_sum(LISTED + 8, float(np.abs(scores).max()))
    rounds, count = as_positive_int("iterations", iterations), len(forests)
    upper, by = Sums(relaxation, forests, 1).lowest(rounds), "multipliers"
    if count > 1 and _told_by_each(relaxation):
        tied = Sums(relaxation, forests, count).lowest(rounds)
        upper, by = (tied, "Hoelder's inequality") if tied < upper else (upper, by)
    return LogPartitionBounds(lower, max(lower, upper), f"the best {len(listed)}", by)


def _forest(problem: Problem[Any]) -> Forest:
    forest = problem.forest()
    if forest is None:
        raise NotSupported(
            f"log_partition_bounds() is not known of what is relaxed to {type(problem).__name__}, which is no dynamic "
            "program. Ask decode(), kbest(k) or max_marginals()."
        )
    return forest


def _told_by_each(relaxation: Relaxation) -> bool:
    """Whether the structure of any subproblem tells those of all others: they are told apart by what all share."""
    every = set(range(len(relaxation.subproblems)))
    shared = [blocks for blocks in relaxation.views.values() if {i for i, _ in blocks} == every]
    told = [{view for blocks in shared for i, view in blocks if i == k} for k in every]
    pairs = zip(relaxation.subproblems, told, strict=True)
    return all(p.told_apart_by and set(p.told_apart_by) <= views for p, views in pairs)
