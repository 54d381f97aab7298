"""Trees with crossing arcs scored by labelled arcs, as relaxations draw and add them up: by the matrix-tree theorem."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from certus.checks import Floats, Ints
from certus.dependency import matrix_tree
from certus.dependency.label_folds import fold_labels
from certus.errors import Infeasible
from certus.problem import Index
from certus.relax.laws import Asked, Drawn, Law


class TreeLaw(Law):
    """``scores[h, m, l]`` of arcs h -> m with label l; penalties are on "arcs", and "labels" where there are some.

    ``make`` makes structures of heads and labels, -1 at node 0.
    """

    def __init__(self, scores: Floats, root: str, asked: Asked, make: Callable[[Ints, Ints], Any]) -> None:
        self.root, self.make = root, make
        total = asked.weight * scores
        if "arcs" in asked.penalties:
            total = total + asked.penalties["arcs"][:, :, None]
        if "labels" in asked.penalties:
            total = total + asked.penalties["labels"]
        self.scores = asked.power * total
        self.arc, self.given = fold_labels(self.scores)
        n, labels = len(scores) - 1, scores.shape[2]
        self.steps = matrix_tree.sum_steps(n) + 4 * n * labels + 8

    @cached_property
    def log_partition(self) -> float:  # type: ignore[override]
        try:
            return matrix_tree.log_partition(self.arc, self.root)
        except Infeasible:
            return -np.inf

    @cached_property
    def _marginals(self) -> Floats:
        return matrix_tree.marginals(self.arc, self.root)

    def expected(self, view: str, shape: Index) -> Floats:
        marginals: Floats = self._marginals if view == "arcs" else self._marginals[:, :, None] * self.given
        return marginals

    def draws(self, count: int, rng: np.random.Generator) -> list[Drawn | None]:
        n = len(self.arc) - 1
        length, probability = np.array([n]), self._marginals[None]
        heads = matrix_tree.sample_batch(self.arc[None], length, probability, (count, self.root), rng)[0]
        words = np.arange(1, n + 1)
        upto = self.given[heads[:, 1:], words].cumsum(axis=2)
        # Scaled by the total, which rounding may leave below 1, so that no label of probability 0 is drawn.
        labels = (upto <= rng.random((count, n, 1)) * upto[:, :, -1:]).sum(axis=2)
        return [self._drawn(*pair) for pair in zip(heads, labels, strict=True)]

    def _drawn(self, heads: Ints, labels: Ints) -> Drawn:
        n, size = len(heads) - 1, self.scores.shape[2]
        arcs = heads[1:] * (n + 1) + np.arange(1, n + 1)
        cells = arcs * size + labels
        return Drawn(cells.tobytes(), {"arcs": arcs, "labels": cells}, (heads, labels))

    def measure(self, drawn: Drawn) -> float:
        return float(self.scores.reshape(-1)[drawn.cells["labels"]].sum())

    def structure(self, drawn: Drawn) -> Any:
        heads, labels = drawn.made_of
        return self.make(heads, np.concatenate(([-1], labels)))
