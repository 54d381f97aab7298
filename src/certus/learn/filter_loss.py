"""Training a filter to keep the right tree while it throws away what it can (LR 8.4.1, 8.4.2).

A filter keeps an arc when its max-marginal, the value of the best tree with the arc, is at least

    tau(eta) = eta * (value of the best tree) + (1 - eta) * (mean of the max-marginals of all arcs in any tree)

so a tree that scores at least tau(eta) keeps all its arcs. Filter loss is max(0, 1 + tau(eta) - score of the right
tree): zero when the right tree survives with a margin, however far it is from being the best.

How a cascade trains a stage with it, where MIRA would be used otherwise::

    weights = Weights(bits, dtype=np.float64)
    trainer = FilterTrainer(Examples(task, bits), weights, seed, FilterLoss(eta=0.4))
    for epoch in range(epochs):
        words, lost = np.sum(list(trainer.epoch(epoch)), axis=0)   # lost: right arcs below the threshold
    weight = weights.averaged()

``task.allowed(s)`` are the arcs that earlier stages leave to sentence s, the right ones among them. Afterwards
``kernels.learning.threshold(through, best, eta)`` is tau(eta) for the max-marginals ``through``, -inf where there are
none; ``levels`` says of each arc the largest eta that keeps it, from which ``certus.models.filters`` chooses the eta at
which at most a given share of right arcs is lost on held-out trees (LR 8.5.1).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from certus.checks import Floats, Ints
from certus.errors import InvalidInput
from certus.learn.examples import Examples
from certus.learn.parts import ForestParts
from certus.learn.weights import Step, Weights


@dataclass(frozen=True)
class FilterLoss:
    """Where the threshold lies between the mean of the max-marginals (0) and the best tree (1), and AdaGrad's rate."""

    eta: float = 0.4
    rate: float = 0.02

    def __post_init__(self) -> None:
        if not 0.0 <= self.eta <= 1.0:
            raise InvalidInput(
                f"eta is {self.eta}; expected a number from 0 (prune below the mean) to 1 (keep the best)."
            )


class FilterTrainer:
    """Trains a tree model on filter loss, epoch by epoch: projective of any order, or first order with crossing arcs.

    Stochastic subgradients, each weight with its own step (AdaGrad), the weights averaged in place of a regulariser.
    O(edges of the forest) for a projective sentence, O(n^4) with crossing arcs.
    """

    def __init__(self, examples: Examples, weights: Weights, seed: int, loss: FilterLoss) -> None:
        self.examples, self.weights, self.seed, self.loss = examples, weights, seed, loss
        self.objective = 0.0  # mean filter loss of the last epoch

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Go through all sentences once, in an order that depends on the seed and the epoch only.

        Yields the words of each sentence and how many of their arcs fall below the threshold.
        """
        total = 0.0
        for s in self.examples.task.order(self.seed, number):
            words, lost, loss = self._learn(s)
            total += loss
            yield words, lost
        self.objective = total / max(len(self.examples), 1)

    def _learn(self, s: int) -> tuple[int, float, float]:
        examples, weights, features = self.examples, self.weights, self.examples.features
        parts = examples.parts(s)
        score = examples.scores(s, parts, weights.value)
        loss, gradient, lost = filter_loss(parts, score, examples.trees[s], self.loss.eta)
        if loss > 0.0:
            touched = features.gather(s, parts.rows, -gradient)
            weights.move_along(touched, features.vector, Step(1.0, rate=self.loss.rate))
        weights.clock += 1.0
        return parts.n, lost, loss


def filter_loss(parts: ForestParts, score: Floats, gold: Ints, eta: float) -> tuple[float, Floats, float]:
    """Filter loss of a sentence, a subgradient of it by the scores of its parts, and how many right arcs are lost."""
    best, through, mean = parts.filter(score, eta)
    right = parts.of_tree(gold)
    tau = float(mean @ score)
    loss = max(0.0, 1.0 + tau - float(right @ score))
    lost = float(((through < min(tau, best)) & (right[: parts.n_arcs] > 0.0)).sum())
    return loss, mean - right if loss > 0.0 else np.zeros_like(score), lost


def levels(through: Floats, best: float) -> Floats:
    """The largest eta that keeps each arc: 1 on the best tree, 0 at the mean, below 0 under it, -inf for no tree.

    ``through`` are max-marginals, in any shape, -inf where there are none; ``best`` is the value of the best tree.
    """
    found = through > -np.inf
    mean = float(through[found].mean()) if found.any() else best
    if best <= mean:
        return np.where(found, 1.0, -np.inf)
    return np.asarray((through - mean) / (best - mean))
