"""Training an unstructured classifier: is this arc in the tree, whatever the other arcs are (LR 8.5.1)."""

from collections.abc import Iterator

import numpy as np

from certus.learn.examples import Examples
from certus.learn.weights import Step, Weights


class LocalTrainer:
    """Logistic regression on the parts of each sentence, one by one: P(part in the tree) = 1 / (1 + exp(-score)).

    Stochastic gradients, each weight with its own step (AdaGrad), the weights averaged in place of a regulariser.
    """

    def __init__(self, examples: Examples, weights: Weights, seed: int, *, rate: float = 0.05) -> None:
        self.examples, self.weights, self.seed, self.rate = examples, weights, seed, rate
        self.objective = 0.0  # mean, over the sentences of the last epoch, of -log P of what is right

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Go through all sentences once; yields the words of each and how many parts are on the wrong side of 0."""
        examples, weights, features = self.examples, self.weights, self.examples.features
        total = 0.0
        for s in examples.task.order(self.seed, number):
            parts = examples.parts(s)
            right = parts.of_tree(examples.trees[s])
            score = examples.scores(s, parts, weights.value)
            margin = np.where(right > 0.0, score, -score)
            total += float(np.logaddexp(0.0, -margin).sum())
            touched = features.gather(s, parts.rows, right - 1.0 / (1.0 + np.exp(-score)))
            weights.move_along(touched, features.vector, Step(1.0, rate=self.rate))
            weights.clock += 1.0
            yield parts.n, float((margin < 0.0).sum())
        self.objective = total / max(len(examples), 1)
