"""Training a filter to keep the right tree while it throws away what it can (LR 8.4.1, 8.4.2).

A filter keeps an arc when its max-marginal, the value of the best tree with the arc, is at least

    tau(eta) = eta * (value of the best tree) + (1 - eta) * (mean of the max-marginals of all arcs in any tree)

so a tree that scores at least tau(eta) keeps all its arcs. Filter loss is max(0, 1 + tau(eta) - score of the right
tree): zero when the right tree survives with a margin, however far it is from being the best.

How a cascade trains a stage with it, where MIRA would be used otherwise::

    weights = Weights(bits, dtype=np.float64)
    trainer = FilterTrainer(model, batch, trees, allowed, weights, FilterLoss(eta=0.4), seed)
    for epoch in range(epochs):
        words, lost = np.sum(list(trainer.epoch(epoch)), axis=0)   # lost: right arcs below the threshold
    weight = weights.averaged()

``allowed(s)`` are the arcs that earlier stages leave to sentence s, the right ones among them. Afterwards
``kernels.learning.threshold(through, best, eta)`` is tau(eta) for the max-marginals ``through``, -inf where there are
none; or, to choose the eta at which at most a given share of right arcs is lost on held-out trees (LR 8.5.1), collect
``levels`` of all sentences and take ``highest_eta`` of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from certus.checks import Bools, Floats, Ints
from certus.errors import InvalidInput
from certus.features.encode import Encoded
from certus.learn.parts import Features, Parts
from certus.learn.trees import TreeModel
from certus.learn.weights import Weights


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

    def __init__(
        self,
        model: TreeModel,
        batch: Encoded,
        trees: Sequence[Ints],
        allowed: Callable[[int], Bools],
        weights: Weights,
        loss: FilterLoss,
        seed: int,
    ) -> None:
        self.model, self.trees, self.allowed = model, trees, allowed
        self.weights, self.loss, self.seed = weights, loss, seed
        self.objective = 0.0  # mean filter loss of the last epoch
        self._features = Features(model, batch, weights.bits)

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Go through all sentences once, in an order that depends on the seed and the epoch only.

        Yields the words of each sentence and how many of their arcs fall below the threshold.
        """
        total = 0.0
        for s in np.random.default_rng([self.seed, number]).permutation(len(self.trees)):
            words, lost, loss = self._learn(int(s))
            total += loss
            yield words, lost
        self.objective = total / max(len(self.trees), 1)

    def _learn(self, s: int) -> tuple[int, float, float]:
        from certus.kernels.learning import move_along

        gold = self.trees[s]
        if len(gold) == 1:
            return 0, 0.0, 0.0
        parts = Parts(self.model, self.allowed(s))
        weights, eta = self.weights, self.loss.eta
        score = self._features.scores(s, parts.rows, weights.value)
        loss, gradient, lost = filter_loss(parts, score, gold, eta)
        if loss > 0.0:
            touched = self._features.gather(s, parts.rows, -gradient)
            state = (weights.clock, weights.value, weights.total, weights.squares)
            move_along(touched, self._features.vector, 0.0, 0.0, self.loss.rate, *state)
        weights.clock += 1.0
        return len(gold) - 1, lost, loss


def filter_loss(parts: Parts, score: Floats, gold: Ints, eta: float) -> tuple[float, Floats, float]:
    """Filter loss of a sentence, a subgradient of it by the scores of its parts, and how many right arcs are lost."""
    best, through, mean = parts.filter(score, eta)
    right = parts.of_tree(gold)
    tau = float(mean @ score)
    loss = max(0.0, 1.0 + tau - float(right @ score))
    lost = float(((through < min(tau, best)) & (right[: parts.n_arcs] > 0.0)).sum())
    return loss, mean - right if loss > 0.0 else np.zeros_like(score), lost


def levels(through: Floats, best: float, gold: Ints) -> Floats:
    """For each right arc of a sentence the largest eta that keeps it: 1 on the best tree, below 0 under the mean.

    ``through[h, m]`` are max-marginals, -inf where there are none; a right arc without one has level -inf.
    """
    mean = float(through[through > -np.inf].mean())
    own = through[gold[1:], np.arange(1, len(gold))]
    if best <= mean:
        return np.where(own > -np.inf, 1.0, -np.inf)
    return np.asarray((own - mean) / (best - mean))


def highest_eta(level: Floats, share: float = 0.002) -> float:
    """The highest eta, from 0 to 1, that loses at most a share of the right arcs whose levels are given (LR 8.5.1)."""
    if not len(level):
        return 1.0
    worst = np.sort(level)[min(int(share * len(level)), len(level) - 1)]
    return float(np.clip(worst, 0.0, 1.0))
