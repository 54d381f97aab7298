"""Trees without crossing arcs, scored by any head automata: a dynamic program (LR 6.8)."""

from typing import Any, ClassVar, Self

import numpy as np

from certus.checks import Floats, Ints
from certus.dependency.automata_items import OverItems
from certus.dependency.automata_problem import AutomataDependency
from certus.hypergraph import DynamicProgram
from certus.problem import Limits
from certus.result import LogPartitionBounds, MarginalEstimates, Result


class ProjectiveAutomata(OverItems[Ints], AutomataDependency):
    """The best projective tree when every head scores its modifiers by an automaton; every question has an answer.

    As ``AutomataDependency``, without crossing arcs: a dynamic program of O(n^3 Q) edges for Q states, times n with
    ``by_head``. Certificate kind: "dynamic program".

    Examples
    --------
    At most one modifier on a side:

    >>> class One:
    ...     start = 0
    ...     def step(self, state, m):
    ...         return state + 1, 0.0 if state < 1 else float("-inf")
    ...     def stop(self, state):
    ...         return 0.0
    >>> p = ProjectiveAutomata([[0, 5, 1, 1], [0, 0, 4, 4], [0, 0, 0, 3], [0, 0, 2, 0]], lambda g, h, side: One())
    >>> [(r.structure.tolist(), r.score) for r in p.kbest(2)]
    [([-1, 0, 1, 2], 12.0), ([-1, 0, 3, 1], 11.0)]
    """

    name: ClassVar[str] = "projective automata"
    projective = True

    @property
    def _cells(self) -> dict[str, Ints]:
        return {"arcs": np.arange(self.arc.size)}

    def _cell_scores(self) -> dict[str, Floats]:
        return {"arcs": self.arc}

    def from_edges(self, edges: Any) -> Ints:
        cell = self.forest().parts["arcs"][np.asarray(edges, dtype=np.int64)]
        head, mod = np.divmod(cell[cell >= 0], self.n + 1)
        heads = np.full(self.n + 1, -1, dtype=np.int64)
        heads[mod] = head
        return heads

    def _decode(self, limits: Limits) -> Result[Ints]:
        return DynamicProgram._decode(self, limits)

    def relaxation(self) -> None:
        """None: there is an exact algorithm."""
        return None

    def log_partition_bounds(self, *, iterations: int = 150) -> LogPartitionBounds:
        """The log-partition function, but for rounding."""
        return DynamicProgram.log_partition_bounds(self)

    def marginal_estimates(self, *, samples: int = 1000, seed: int | None = None) -> MarginalEstimates:
        """The marginals, which are exact."""
        return MarginalEstimates.known(self.marginals(), self.log_partition())

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return super().from_json(data)
