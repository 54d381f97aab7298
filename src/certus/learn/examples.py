"""What learners by marginals learn from: sentences, their right trees and all others, two losses (DEP 2.4, 4.4)."""

from collections.abc import Callable

from certus.checks import Bools, Floats
from certus.learn.parts import Features, ForestParts, Parts
from certus.learn.trees import TreeModel, TreeTask


class Examples:
    """The sentences of a treebank with the vectors of their right trees over the parts of all their trees.

    ``kind`` makes the parts of a sentence from the model and the allowed arcs, if they are not those of trees.
    """

    def __init__(self, task: TreeTask, bits: int, kind: Callable[[TreeModel, Bools], ForestParts] = Parts) -> None:
        self.task, self.trees, self.kind = task, task.trees, kind
        self.features = Features(task.model, task.batch, bits)
        self.words = sum(len(tree) - 1 for tree in task.trees)

    def __len__(self) -> int:
        return len(self.trees)

    def parts(self, s: int) -> ForestParts:
        """The parts of a sentence; its right tree must be among the trees they make."""
        return self.kind(self.task.model, self.task.allowed(s))

    def scores(self, s: int, parts: ForestParts, weight: Floats) -> Floats:
        """The scores of the parts of a sentence."""
        return self.features.scores(s, parts.rows, weight)


def log_loss(parts: ForestParts, score: Floats, right: Floats) -> tuple[float, Floats]:
    """-log P(right tree), and its gradient by the scores of parts: their marginals less the right tree (DEP 4.4.1)."""
    total, marginal = parts.log_sum(score)
    return total - float(right @ score), marginal - right


def hinge_loss(parts: ForestParts, score: Floats, right: Floats, errors: Floats) -> tuple[float, Floats]:
    """max over trees of (errors - margin to the right tree), and a subgradient by the scores (DEP 4.4.2)."""
    value, best = parts.best(score + errors)
    return max(0.0, value - float(right @ score)), best - right
