"""Log-linear tree models (DEP 2.4.2, 4.4.1): P(y | x) in proportion to exp(w . phi(x, y)), fitted to a treebank.

Both trainers minimise  L(w) = -C sum over sentences of log P(right tree) + |w|^2 / 2,  which is convex. Sums over trees
come from inside-outside for projective trees and from the matrix-tree theorem for crossing arcs.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from certus import kernels
from certus.checks import Floats, Ints
from certus.learn.examples import Examples, log_loss
from certus.learn.weights import Step, Weights


def objective(examples: Examples, weight: Floats, cost: float) -> tuple[float, Floats, float]:
    """L(w) with C = cost, its gradient, and how many heads a tree drawn from the model is expected to have wrong."""
    gradient = weight.copy()
    value, wrong = 0.5 * float(weight @ weight), 0.0
    features = examples.features
    for s in range(len(examples)):
        if len(examples.trees[s]) == 1:
            continue
        parts = examples.parts(s)
        right = parts.of_tree(examples.trees[s])
        loss, by_part = log_loss(parts, examples.scores(s, parts, weight), right)
        value += cost * loss
        wrong += expected_errors(by_part, right, parts.n_arcs)
        kernels.learning.add_and_clear(features.gather(s, parts.rows, by_part), features.vector, cost, gradient)
    return value, gradient, wrong


def expected_errors(by_part: Floats, right: Floats, n_arcs: int) -> float:
    """Heads expected to be wrong, from marginals less the right tree."""
    return -float(by_part[:n_arcs] @ right[:n_arcs])


class GradientTrainer:
    """Stochastic gradient: after each sentence a step against its share of L(w).

    Steps shrink as rate / (1 + rate t / (C N)) for N sentences and t steps so far, as L(w) is strongly convex. The
    weights w are a number times ``weights.value``, so that the regulariser costs nothing, multiplied out after every
    epoch. ``weights.clock`` adds up that number over all steps: then the average that ``weights`` knows is the mean of
    all w, but for its length, and trees do not depend on that.
    """

    def __init__(self, examples: Examples, weights: Weights, seed: int, *, cost: float, rate: float = 0.05) -> None:
        self.examples, self.weights, self.seed = examples, weights, seed
        self.cost, self.rate = cost, rate
        self.objective = 0.0  # mean -log P of the right trees, each before its step

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Go through all sentences once; yields the words of each and how many heads are expected to be wrong."""
        examples, weights, features = self.examples, self.weights, self.examples.features
        decay = 1.0 / (self.cost * max(len(examples), 1))
        scale, total, t = 1.0, 0.0, number * len(examples)
        for s in examples.task.order(self.seed, number):
            parts = examples.parts(s)
            right = parts.of_tree(examples.trees[s])
            loss, by_part = log_loss(parts, scale * examples.scores(s, parts, weights.value), right)
            step = self.rate / (1.0 + self.rate * decay * t)
            scale *= 1.0 - step * decay
            touched = features.gather(s, parts.rows, -by_part)
            weights.move_along(touched, features.vector, Step(step / scale))
            weights.clock += scale
            t += 1
            total += loss
            yield parts.n, expected_errors(by_part, right, parts.n_arcs)
        weights.value *= scale
        weights.clock /= scale
        self.objective = total / max(len(examples), 1)


class LbfgsTrainer:
    """L-BFGS: an epoch is ``iterations`` steps of a quasi-Newton method that starts afresh from the weights so far.

    So the weights alone are its state. Only features of allowed parts take part.
    """

    def __init__(self, examples: Examples, weights: Weights, *, cost: float, iterations: int = 10) -> None:
        self.examples, self.weights = examples, weights
        self.cost, self.iterations = cost, iterations
        self.objective = np.inf  # L(w) at the end of the last epoch
        self.gradient = np.inf  # and the largest part of its gradient
        self._active = self._features_of_parts()

    def _features_of_parts(self) -> Ints:
        examples, features = self.examples, self.examples.features
        seen = np.zeros(1 << features.bits)
        for s in range(len(examples)):
            if len(examples.trees[s]) > 1:
                rows = examples.parts(s).rows
                kernels.learning.add_and_clear(features.gather(s, rows, np.ones(len(rows))), features.vector, 1.0, seen)
        return np.flatnonzero(seen)

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Take steps over all sentences; yields their words and how many heads are expected to be wrong."""
        from scipy.optimize import minimize

        weight, wrong = self.weights.value, 0.0

        def at(x: Floats) -> tuple[float, Floats]:
            nonlocal wrong
            weight[self._active] = x
            value, gradient, wrong = objective(self.examples, weight, self.cost)
            return value, gradient[self._active]

        options = {"maxiter": self.iterations, "maxcor": 6, "ftol": 1e-12, "gtol": 1e-8}
        solve: Any = minimize  # its overloads know only some kinds of arrays
        found = solve(at, weight[self._active], jac=True, method="L-BFGS-B", options=options)
        weight[self._active] = found.x
        self.objective, self.gradient = float(found.fun), float(np.abs(found.jac).max(initial=0.0))
        yield self.examples.words, wrong
