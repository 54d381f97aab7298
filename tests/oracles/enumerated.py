"""A problem given by the list of all its structures: the universal oracle, and the plainest subclass of Problem."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from certus import Infeasible, Problem, Result, Solution
from certus.certificates.rounding import Extent, extent_of


class Enumerated(Problem[int]):
    """Structures are the rows of ``parts`` (counts over one view), with a score each; structure k is the number k."""

    name = "enumerated"

    def __init__(self, parts, scores, shape=None, view="parts", exclusive=None):
        self.parts = np.asarray(parts, dtype=np.float64)
        self.scores = np.asarray(scores, dtype=np.float64)
        self.shape = (self.parts.shape[1],) if shape is None else tuple(shape)
        self.view = view
        if exclusive is not None:
            self.exclusive = {view: exclusive}

    @property
    def views(self) -> Mapping[str, tuple[int, ...]]:
        return {self.view: self.shape}

    def terms(self, structure: int) -> list[float]:
        return [float(self.scores[structure])]

    def all_structures(self) -> Iterator[int]:
        return iter(range(len(self.scores)))

    def extent(self) -> Extent:
        return extent_of(max(1, int(self.parts.sum(axis=1).max(initial=0))), self.scores)

    def all_scores(self) -> tuple[np.ndarray]:
        return (self.scores,)

    def _values(self, penalties: Any) -> np.ndarray:
        values = self.scores.copy()
        for penalty in (penalties or {}).values():
            flat = np.asarray(penalty).ravel()
            for k, row in enumerate(self.parts):
                values[k] += sum(count * flat[c] for c, count in enumerate(row) if count)
        return values

    def solve(self, penalties=None) -> Solution[int]:
        values = self._values(penalties)
        if not len(values) or values.max() == -np.inf:
            raise Infeasible("no structure is left.")
        return Solution(int(values.argmax()), float(values.max()))

    def decode(self, **limits: Any) -> Result[int]:
        found = self.solve()
        return self.proved(found.structure, found.value, kind="combinatorial")

    def indicator(self, structure: int, view: str) -> np.ndarray:
        return self.parts[structure].reshape(self.shape).copy()

    def max_marginals(self, penalties=None) -> dict[str, np.ndarray]:
        values = self._values(penalties)
        out = np.full(self.parts.shape[1], -np.inf)
        for value, row in zip(values, self.parts, strict=True):
            out = np.where(row > 0, np.maximum(out, value), out)
        return {self.view: out.reshape(self.shape)}

    def reference_maximum(self, penalties=None) -> float:
        return float(self._values(penalties).max(initial=-np.inf))


def best_by_enumeration(problem, penalties):
    """The best penalised score over all structures, one by one; -inf when there is none."""
    best = -np.inf
    for y in problem.all_structures():
        value = problem.score(y)
        for view, penalty in (penalties or {}).items():
            used = problem.indicator(y, view)
            value += float((penalty[used > 0] * used[used > 0]).sum())
        best = max(best, value)
    return float(best)
