"""Trees without crossing arcs, scored by any head automata: a dynamic program (LR 6.8)."""

from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from certus.certificates.assembling import derivation
from certus.certificates.normal import NormalForm
from certus.checks import Ints
from certus.dependency.automata_items import Items
from certus.dependency.automata_problem import AutomataDependency
from certus.hypergraph import DynamicProgram, Forest
from certus.problem import Limits
from certus.result import LogPartitionBounds, MarginalEstimates, Result


class ProjectiveAutomata(DynamicProgram[Ints], AutomataDependency):
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
    projective: ClassVar[bool] = True

    @cached_property
    def _items(self) -> Items:
        return Items(self.automata)

    @cached_property
    def _forest(self) -> Forest:
        return self._items.forest({"arcs": np.arange(self.arc.size)})

    def forest(self) -> Forest:
        return self._forest

    def from_edges(self, edges: Any) -> Ints:
        cell = self._forest.parts["arcs"][np.asarray(edges, dtype=np.int64)]
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

    @cached_property
    def _normal_form(self) -> NormalForm:
        return self._items.normal_form({"arcs": np.arange(self.arc.size)}, {"arcs": self.arc})

    def normal_form(self) -> NormalForm:
        return self._normal_form

    def normal_structure(self, structure: Any) -> tuple[Any, ...]:
        return (derivation(self._normal_form, {"arcs": self.indicator(structure, "arcs")}),)

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return super().from_json(data)
