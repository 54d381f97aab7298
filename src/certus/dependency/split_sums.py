r"""The log-partition function of trees with crossing arcs and scores above arcs, bounded from above by a split.

A tree y scores  T(y) + A(y),  T a sum over its arcs and A what the head automata give it. By Hoelder's inequality, for
any share 0 < c < 1,

    log sum_y exp(T(y) + A(y))  <=  c log sum_y exp(T(y) / c)  +  (1 - c) log sum_z exp(A(z) / (1 - c)),

and the second sum only grows when z ranges over all choices that heads can make on their own, which is a product of
sums over lattices (``certus.kernels.head_sums``); the first is the matrix-tree theorem. Multipliers u move scores of
arcs between T and A, where automata score the arc into their own head as well. The right-hand side is convex in c and u
together; its gradient is the difference of the two entropies, and of the probabilities that the two give to each arc.
"""

from typing import TYPE_CHECKING

import numpy as np

from certus import kernels
from certus.certificates.rounding import of_log_sum
from certus.checks import Floats
from certus.dependency import matrix_tree
from certus.dependency.head_automata import HeadAutomata
from certus.errors import Infeasible
from certus.relax.quasi_newton import least

if TYPE_CHECKING:
    from certus.dependency.automata_problem import AutomataDependency
    from certus.dependency.problem import Dependency

LEAST = 0.02  # share of the tree
MOST = (0.98, 0.998)  # share of the tree, at first and then: near 1 the sums of the heads are nearly kinked
START = 0.9  # share to start from
MEMORY = 20  # steps that the minimiser remembers


class SplitSums:
    """The right-hand side as a function of share and multipliers, over the arcs of a problem, and where it is least.

    ``share`` and ``multipliers`` (2, A) are the best that was found; ``tree`` (n + 1, n + 1) are the arc scores of
    the distribution over trees that goes with them, T(y) / c.
    """

    def __init__(self, problem: "Dependency | AutomataDependency") -> None:
        self.n, self.root = problem.n, problem.root
        self.lattices = HeadAutomata.of(problem).lattices
        self.cells = (self.lattices.arc_head, self.lattices.arc_mod)
        self.arc: Floats = problem.arc[self.cells]
        self.by_head = bool(self.lattices.by_head[0])
        self.share = START
        self.multipliers: Floats = np.zeros((2, len(self.arc)))
        self.multipliers[0] = 0.5 * self.arc
        self.iterations = 0

    def tightened(self, iterations: int) -> "SplitSums":
        """Lower the bound by a quasi-Newton method; Infeasible if one of the sums is over nothing."""
        arcs, steps = len(self.arc), -(-iterations // len(MOST))
        for most in MOST:
            start = np.append(self.multipliers.reshape(-1), self.share)
            low, high = np.append(np.full(2 * arcs, -np.inf), LEAST), np.append(np.full(2 * arcs, np.inf), most)
            x, _, taken = least(self._value_and_slope, start, low, high, steps=steps, memory=MEMORY)
            self.iterations += taken
            self.multipliers, self.share = x[:-1].reshape(2, arcs), float(x[-1])
        return self

    @property
    def tree(self) -> Floats:
        """The arc scores of the tree, as its sum has them."""
        return self._spread(self.multipliers.sum(axis=0) / self.share)

    def bound(self) -> float:
        """The bound at share and multipliers, rounded up; Infeasible if one of the sums is over nothing."""
        return self._value_and_slope(np.append(self.multipliers.reshape(-1), self.share))[0] + self._error()

    def _error(self) -> float:
        """Rounding of both sums: their logarithms are no larger than sums of scores, and of logarithms of counts."""
        weights = self.lattices.weight
        largest = max(
            float(np.abs(weights[weights > -np.inf]).max(initial=0.0)), float(np.abs(self.arc).max(initial=0.0))
        )
        largest += 2.0 * float(np.abs(self.multipliers).max(initial=0.0))
        of_tree = of_log_sum(matrix_tree.sum_steps(self.n), (self.n + 1) * (largest / self.share + self.n))
        transitions = (self.n + 1) * (self.n + 2)
        of_heads = of_log_sum(transitions, (3 * self.n + 3) * (largest / (1.0 - self.share) + self.n))
        return self.share * of_tree + (1.0 - self.share) * of_heads

    def _spread(self, values: Floats) -> Floats:
        scores = np.full((self.n + 1, self.n + 1), -np.inf)
        scores[self.cells] = values
        return scores

    def _value_and_slope(self, x: Floats) -> tuple[float, Floats]:
        arcs = len(self.arc)
        if not np.isfinite(x).all():
            return np.inf, np.zeros(len(x))  # the minimiser stepped out of all numbers, and turns back
        u, share = x[:-1].reshape(2, arcs), float(x[-1])
        scores = u.sum(axis=0) / share
        probability, of_tree = matrix_tree.marginals_batch(self._spread(scores)[None], np.array([self.n]), self.root)
        used = probability[0][self.cells]
        taken, above = np.empty(arcs), np.empty(arcs)
        arguments = (self.lattices, self.arc - u[0], -u[1], 1.0 / (1.0 - share), taken, above)
        of_heads, average = kernels.head_sums.head_sums(*arguments)
        if of_tree[0] == -np.inf or of_heads == -np.inf:
            raise Infeasible("every tree over the allowed arcs uses a forbidden part; allow some of them.")
        entropies = float(of_tree[0] - used @ scores) - float(of_heads - average)
        slope = np.concatenate([used - taken, used - above if self.by_head else np.zeros(arcs), [entropies]])
        return share * float(of_tree[0]) + (1.0 - share) * float(of_heads), slope
