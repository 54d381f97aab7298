"""Exponentiated gradient on the dual of log-linear and max-margin training (DEP 4.4.2, fig. 4-2, app. A).

The primal  L(w) = C sum_i loss_i(w) + |w|^2 / 2  has a dual over one distribution of trees a_i for each sentence,

    D(a) = C sum_i H(a_i) - |w(a)|^2 / 2           log-linear: H is the entropy
    D(a) = C sum_i E_i(a_i) - |w(a)|^2 / 2         max-margin: E_i is the expected number of wrong heads
    w(a) = C sum_i (phi(right tree) - sum_y a_i(y) phi(y))

with max D = min L at w = w(a). Distributions are exp(theta) over parts: theta_i is one number for each part, a step on
one sentence adds to theta_i its gradient times a rate, and everything else is marginals.

Differs from fig. 4-2: each sentence has a rate of its own, halved and tried again at once while the dual does not
rise, and half as large again after a step; so the dual never falls. theta starts at BETA on the arcs of the right tree.
"""

from collections.abc import Iterator

import numpy as np

from certus import kernels
from certus.checks import Floats, Ints
from certus.errors import InvalidInput
from certus.learn.examples import Examples, hinge_loss, log_loss
from certus.learn.parts import ForestParts
from certus.learn.weights import Weights

BETA = 9.0
HALVINGS = 12
GROWTH = 1.5
LEAST_RATE = 1e-9


class ExponentiatedTrainer:
    """Dual exponentiated gradient, one sentence at a time, for log-linear (or with ``margin`` max-margin) models.

    ``weights.extra`` holds the dual: "theta" for all parts of all sentences in a row, "rate" for each sentence.
    """

    def __init__(self, examples: Examples, weights: Weights, seed: int, *, margin: bool, cost: float) -> None:
        self.examples, self.weights, self.seed = examples, weights, seed
        self.margin, self.cost = margin, cost
        sizes = [len(examples.parts(s).rows) if len(tree) > 1 else 0 for s, tree in enumerate(examples.trees)]
        self._ptr: Ints = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._gain = np.zeros(len(examples))  # H or E of each sentence
        started = "theta" in weights.extra
        wanted = {"theta": int(self._ptr[-1]), "rate": len(examples)}
        if started and {name: len(state) for name, state in weights.extra.items()} != wanted:
            raise InvalidInput(f"the dual to go on from is not {wanted['theta']} parts and {wanted['rate']} rates.")
        if not started:
            weights.extra["theta"] = np.zeros(int(self._ptr[-1]))
            weights.extra["rate"] = np.full(len(examples), 1.0 if margin else 0.5)
        self._start(fresh=not started)

    def _start(self, *, fresh: bool) -> None:
        """theta of the right trees, and the weights of the dual, from nothing or from a state that was restored."""
        features = self.examples.features
        for s, tree in enumerate(self.examples.trees):
            if len(tree) == 1:
                continue
            parts = self.examples.parts(s)
            right, theta = parts.of_tree(tree), self._theta(s)
            if fresh:
                theta[: parts.n_arcs] = BETA * right[: parts.n_arcs]
            total, marginal = parts.log_sum(theta)
            self._gain[s] = self._worth(total, marginal, theta, parts.errors(tree))
            if fresh:
                touched = features.gather(s, parts.rows, right - marginal)
                kernels.learning.add_and_clear(touched, features.vector, self.cost, self.weights.value)

    def _theta(self, s: int) -> Floats:
        own: Floats = self.weights.extra["theta"][self._ptr[s] : self._ptr[s + 1]]
        return own

    def _worth(self, total: float, marginal: Floats, theta: Floats, errors: Floats) -> float:
        """H or E of the distribution with this log-partition and these marginals."""
        return float(marginal @ errors) if self.margin else total - float(marginal @ theta)

    def dual(self) -> float:
        """D(a): it rises with every step, and never exceeds ``primal``."""
        return self.cost * float(self._gain.sum()) - 0.5 * float(self.weights.value @ self.weights.value)

    def primal(self) -> float:
        """L(w(a)): costs a pass over all sentences."""
        weight = self.weights.value
        value = 0.5 * float(weight @ weight)
        for s, tree in enumerate(self.examples.trees):
            if len(tree) > 1:
                parts = self.examples.parts(s)
                score, right = self.examples.scores(s, parts, weight), parts.of_tree(tree)
                errors = parts.errors(tree)
                loss = hinge_loss(parts, score, right, errors) if self.margin else log_loss(parts, score, right)
                value += self.cost * loss[0]
        return value

    @property
    def objective(self) -> float:
        """The dual, which rises towards the least value of L."""
        return self.dual()

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """One step on every sentence; yields its words and how many heads the dual expects to be wrong."""
        for s in self.examples.task.order(self.seed, number):
            parts = self.examples.parts(s)
            marginal = self._step(s, parts)
            yield parts.n, float(marginal @ parts.errors(self.examples.trees[s]))

    def _step(self, s: int, parts: ForestParts) -> Floats:
        """Raise the dual by a step on one sentence; returns its marginals."""
        examples, weights, features = self.examples, self.weights, self.examples.features
        theta, rate, errors = self._theta(s), weights.extra["rate"], parts.errors(examples.trees[s])
        score = examples.scores(s, parts, weights.value)
        _, marginal = parts.log_sum(theta)
        slope = errors + score if self.margin else score - theta
        for _ in range(HALVINGS):
            moved = theta + rate[s] * slope
            total, new = parts.log_sum(moved)
            gain = self._worth(total, new, moved, errors)
            # |w + d|^2 - |w|^2 for the change d of the weights, C (marginal - new) phi
            touched = features.gather(s, parts.rows, marginal - new)
            across = self.cost * float((marginal - new) @ score)
            along = self.cost**2 * float(kernels.learning.squared_norm(touched, features.vector))
            rise = self.cost * (gain - self._gain[s]) - across - 0.5 * along
            taken = rise > 0.0
            kernels.learning.add_and_clear(touched, features.vector, self.cost if taken else 0.0, weights.value)
            if taken:
                theta[:] = moved
                self._gain[s] = gain
                rate[s] *= GROWTH
                return new
            if along == 0.0:  # nothing to gain here, as with a single tree: the step is not to blame
                break
            rate[s] = max(0.5 * rate[s], LEAST_RATE)
        return marginal
