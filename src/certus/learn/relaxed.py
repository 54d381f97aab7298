"""The perceptron over relaxed trees (LR 6.6): learning where the best tree is too hard to find.

In place of the best tree y* in Y it takes the best z* in a larger set Z that is easy to search, and moves the weights
by phi(y) - phi(z*). Here Z lets every word choose its modifiers, and its head, without regard to the other words; any
other relaxed solution, fractional or not a tree, can be given instead.
"""

from collections.abc import Callable, Iterator

import numpy as np

from certus import kernels
from certus.checks import Bools, Floats
from certus.errors import Infeasible
from certus.learn.parts import Features, PartVectors, Rows
from certus.learn.trees import TreeModel, TreeTask
from certus.learn.weights import Step, Weights


class RelaxedParts(PartVectors):
    """The modifiers, and the head, that each word may choose on its own over the allowed arcs: the set Z.

    Any model, crossing arcs or not; node 0 has one modifier if the model has a single root.
    """

    def __init__(self, model: TreeModel, allowed: Bools) -> None:
        super().__init__(model, allowed)
        self.rows, self._at, self._arcs = kernels.parts.list_parts(self.allowed, self.kinds)

    def best(self, score: Floats) -> tuple[float, Floats]:
        """Value and parts of the best choice, worth at least the best tree. O(parts), times heads with tri-siblings."""
        vector = np.empty(len(score))
        choice = kernels.relaxed.best_choice(self._at, self._arcs, self.kinds, self.model.single, score, vector)
        value = float(choice)
        if value == -np.inf:
            raise Infeasible(f"the {self.n_arcs} arcs allowed for {self.n} words leave one without a head.")
        return value, vector


Inference = Callable[[int, Rows, Floats], Floats]  # sentence, parts, their scores -> how much of each part there is


class RelaxedTrainer:
    """The averaged perceptron with relaxed inference, epoch by epoch.

    ``infer(s, rows, score)`` gives the relaxed solution of sentence s as a vector over its parts, in [0, 1] but
    otherwise free: fractional, or a mean of the disagreeing solutions of a dual decomposition. Without it each word
    chooses on its own (``RelaxedParts.best``).
    """

    def __init__(self, task: TreeTask, weights: Weights, seed: int, infer: Inference | None = None) -> None:
        self.task, self.weights, self.seed, self.infer = task, weights, seed, infer
        self.objective = 0.0  # mean of score(z*) - score(y) over the last epoch: 0 when all is learned
        self._features = Features(task.model, task.batch, weights.bits)

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Go through all sentences once; yields the words of each and how many of their arcs the solution lacks."""
        total = 0.0
        for s in self.task.order(self.seed, number):
            words, lacking, loss = self._learn(s)
            total += loss
            yield words, lacking
        self.objective = total / max(len(self.task.trees), 1)

    def _learn(self, s: int) -> tuple[int, float, float]:
        gold = self.task.trees[s]
        parts = RelaxedParts(self.task.model, self.task.allowed(s))
        score = self._features.scores(s, parts.rows, self.weights.value)
        guess = parts.best(score)[1] if self.infer is None else self.infer(s, parts.rows, score)
        right = parts.of_tree(gold)
        move_towards(self._features, self.weights, s, parts.rows, right - guess)
        own = right[: parts.n_arcs] > 0.0
        lacking = len(gold) - 1 - float(guess[: parts.n_arcs][own].sum())
        return len(gold) - 1, lacking, float((guess - right) @ score)


def move_towards(features: Features, weights: Weights, s: int, rows: Rows, amount: Floats) -> None:
    """The perceptron's step along a vector over parts, w + sum of amount * phi(part), remembered for averaging."""
    if amount.any():
        weights.move_along(features.gather(s, rows, amount), features.vector, Step(1.0))
    weights.clock += 1.0
