"""A problem holds scores; you ask it questions. This is the one idea, the same for every structure.

``Problem`` is what users see and what the relaxation engine needs. ``DynamicProgram`` answers every question of a
problem that can be spelt out as a hypergraph; models override the questions for which they have a faster kernel.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from certus.certificates import rounding
from certus.certificates.sound import measured, sound, sound_list, summed
from certus.checks import Floats, Ints, as_positive_int
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.result import Result, Solution, certified

if TYPE_CHECKING:
    from certus.hypergraph import Hypergraph
    from certus.relax.constraints import Constrained, Constraint

Y = TypeVar("Y")
Penalties = Mapping[str, Floats]
Index = tuple[int, ...]


class Problem(ABC, Generic[Y]):
    """Scores over a set of structures, and the questions one may ask of them.

    Besides the questions, a problem shows some of its parts through named views: arrays of 0/1 in the shape users
    think in, such as "tags" (n, T) or "arcs" (n + 1, n + 1). Penalties are arrays in the same shapes; a penalty is
    finite, or -inf to forbid a part. A structure that uses a part twice has a 2 there.
    """

    name: ClassVar[str]  # the word for this kind of problem in a saved result
    # View -> axis along which no structure uses two cells ({"tags": 1}: one tag per position), so that a part is
    # required by forbidding its rivals along the axis. Views that are not so are left out.
    exclusive: ClassVar[Mapping[str, int]] = {}

    # -- structures ------------------------------------------------------------------------------------------------

    @abstractmethod
    def terms(self, structure: Y) -> Sequence[float] | Floats:
        """The scores of the parts that a structure uses, from the input, in plain Python; [-inf] if it is forbidden.

        Raises InvalidInput for what is not a structure of this problem at all.
        """

    def score(self, structure: Y) -> float:
        """Score of one structure: the sum of its terms, rounded once; -inf if it uses a forbidden part."""
        return rounding.total(self.terms(structure))

    @abstractmethod
    def all_structures(self) -> Iterator[Y]:
        """Every structure of a small problem, in no special order; the oracle of the tests.

        Structures that use a forbidden part may be left out.
        """

    @abstractmethod
    def extent(self) -> rounding.Extent:
        """How many terms a score has at most, and the least and greatest of all scores: what rounding depends on."""

    def extent_under(self, views: Collection[str]) -> rounding.Extent:
        """The extent for penalties on these views alone: scores that they cannot bring into use need not count."""
        return self.extent()

    def all_scores(self) -> Iterable[Floats] | None:
        """All scores as arrays; None if they are not at hand. Where all are whole numbers nothing is ever rounded."""
        return None

    def without_scores_below(self, least: float) -> Self:
        """The same problem with scores below ``least`` read as -inf, and scores that are never read cleared.

        A problem without it is asked as it is, and says ``exact=False`` where finite masks spoil the proof.
        """
        if least == -np.inf:
            return self
        raise self._not_supported("without_scores_below")

    def with_scores_rounded_up(self, step: float) -> Self:
        """The same problem with all scores rounded up to multiples of ``step``, a power of two."""
        raise self._not_supported("with_scores_rounded_up")

    # -- questions -------------------------------------------------------------------------------------------------

    @abstractmethod
    def decode(self, *, max_iterations: int = 500, time_limit: float | None = None, exact: bool = True) -> Result[Y]:
        """The best structure, with its certificate. Raises Infeasible when there is none.

        ``max_iterations``, ``time_limit`` (seconds) and ``exact`` matter only to problems decoded by relaxation: with
        ``exact`` the decoder climbs from relaxation to branch and bound until proved or out of its limits.
        """

    def kbest(self, k: int) -> list[Result[Y]]:
        """The k best structures, best first; fewer when there are fewer.

        Structures that need a score so low that float64 cannot add it up (below about -1e280) are not listed.
        """
        raise self._not_supported("kbest")

    def sample(self, k: int, *, seed: int | None = None) -> list[Y]:
        """k structures drawn with probability proportional to exp(score)."""
        raise self._not_supported("sample")

    def log_partition(self) -> float:
        """Log of the sum of exp(score) over all structures."""
        raise self._not_supported("log_partition")

    def marginals(self) -> dict[str, Floats]:
        """For each view, the probability (expected count) of each part under exp(score)."""
        raise self._not_supported("marginals")

    def entropy(self) -> float:
        """Entropy, in nats, of the distribution proportional to exp(score)."""
        raise self._not_supported("entropy")

    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        """For each view, the best score of any structure that uses each part; -inf for parts no structure uses.

        Raises InvalidInput where scores above 1e9 leave nothing of the digits of a small one; with penalties, which
        are for relaxations, the caller accounts for rounding.
        """
        raise self._not_supported("max_marginals")

    def subject_to(self, *constraints: "Constraint") -> "Constrained[Y]":
        """The same problem restricted to structures that satisfy linear constraints on its parts."""
        from certus.relax.constraints import Constrained

        return Constrained(self, constraints)

    # -- what the relaxation engine needs --------------------------------------------------------------------------

    @property
    @abstractmethod
    def views(self) -> Mapping[str, Index]:
        """Name and shape of each view."""

    @abstractmethod
    def solve(self, penalties: Penalties | None = None) -> Solution[Y]:
        """Argmax of score plus the sum of penalty * view, with its value. Raises Infeasible when there is none."""

    @abstractmethod
    def indicator(self, structure: Y, view: str) -> Floats:
        """Which parts of a view a structure uses."""

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        """The same problem, less the structures in which the part is not ``value`` (0 or 1)."""
        raise self._not_supported("with_fixed")

    def easier(self) -> "Problem[Y] | None":
        """A problem with the same views and scores but fewer structures, quicker to solve again and again; or None.

        Relaxations are solved over it first; what they find is then proved over this one.
        """
        return None

    @abstractmethod
    def reference_maximum(self, penalties: Penalties | None = None) -> float:
        """The value ``solve`` must reach, found again without any kernel; -inf when infeasible. For certus.verify."""

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The problem as JSON data, so that a saved result can be verified elsewhere."""
        raise self._not_supported("to_json")

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The problem that ``to_json`` described."""
        raise NotSupported(f"{cls.__name__} cannot be read from JSON.")

    def structure_to_json(self, structure: Y) -> Any:
        """A structure of this problem as JSON data."""
        raise self._not_supported("structure_to_json")

    def structure_from_json(self, data: Any) -> Y:
        """The structure that ``structure_to_json`` described; InvalidInput if it is none."""
        raise self._not_supported("structure_from_json")

    # -- shared by the models --------------------------------------------------------------------------------------

    def checked_view(self, view: str) -> Index:
        """Shape of a view; InvalidInput for a name that is not one."""
        if view not in self.views:
            raise InvalidInput(
                f"{type(self).__name__} has no view {view!r}; it has {', '.join(map(repr, self.views))}."
            )
        return self.views[view]

    def error(self) -> float:
        """How far rounding may take any sum of scores of this problem from the truth."""
        extent = self.extent()
        return rounding.of_sum(extent.length, extent.size)

    def error_at(self, value: float) -> float:
        """How far rounding may have taken ``value`` from the truth if it was found as the best score."""
        return rounding.of_best(self.extent(), value)

    def proved(
        self, structure: Y, value: float, *, kind: str, rank: int = 1, scores: Sequence[float] | None = None
    ) -> Result[Y]:
        """Result of an algorithm that is exact but for rounding and found ``value`` for the structure.

        ``scores`` are its terms, where they are known.
        """
        used = self.terms(structure) if scores is None else scores
        score = rounding.total(used)
        certificate = certified(lambda: used, score, value, self.error_at(value), kind=kind, rank=rank)
        return Result(structure, score, certificate)

    def _not_supported(self, question: str) -> NotSupported:
        return NotSupported(f"{type(self).__name__} does not answer {question}().")


@dataclass(frozen=True, slots=True)
class Forest:
    """A dynamic program spelt out: structures are the hyperpaths of ``graph``, one to one, scores sums of ``weights``.

    ``parts[view][e]`` is the flat index of the one cell of the view that edge e uses, or -1.
    """

    graph: "Hypergraph"
    weights: Floats
    parts: Mapping[str, Ints]

    def penalised(self, penalties: Penalties | None) -> Floats:
        """Edge weights with the penalties added."""
        if not penalties:
            return self.weights
        weights = self.weights.copy()
        for view, penalty in penalties.items():
            cell = self.parts[view]
            used = cell >= 0
            weights[used] += penalty.reshape(-1)[cell[used]]
        return weights

    def onto_view(self, view: str, shape: Index, values: Floats, *, maximum: bool) -> Floats:
        """Edge values summed (or maximised) per cell of a view."""
        cell = self.parts[view]
        used = cell >= 0
        out = np.full(int(np.prod(shape, dtype=np.int64)), -np.inf if maximum else 0.0)
        (np.maximum if maximum else np.add).at(out, cell[used], values[used])
        return out.reshape(shape)


class DynamicProgram(Problem[Y]):
    """A problem whose structures are the hyperpaths of a hypergraph; answers every question through it."""

    kind: ClassVar[str] = "dynamic program"

    @abstractmethod
    def forest(self) -> Forest:
        """The hypergraph, weights and parts. Models may cache it."""

    @abstractmethod
    def from_edges(self, edges: Sequence[int]) -> Y:
        """The structure of a hyperpath of ``forest()``, given by its edges, head before tails."""

    @sound
    def decode(self, *, max_iterations: int = 500, time_limit: float | None = None, exact: bool = True) -> Result[Y]:
        solution = self.solve()
        return self.proved(solution.structure, solution.value, kind=self.kind)

    def solve(self, penalties: Penalties | None = None) -> Solution[Y]:
        from certus.hypergraph import sweeps

        forest = self.forest()
        value, edges = sweeps.best(forest.graph, forest.penalised(penalties))
        return Solution(self.from_edges(edges.tolist()), value)

    @sound_list
    def kbest(self, k: int) -> list[Result[Y]]:
        return self._listed(k)

    def _listed(self, k: int) -> list[Result[Y]]:
        """The k best structures for the scores as they are."""
        from certus.hypergraph import sweeps

        forest = self.forest()
        found = sweeps.kbest(forest.graph, forest.weights, as_positive_int("k", k))
        return [
            self.proved(self.from_edges(edges.tolist()), value, kind=self.kind, rank=rank)
            for rank, (value, edges) in enumerate(found, start=1)
        ]

    @summed
    def sample(self, k: int, *, seed: int | None = None) -> list[Y]:
        from certus.hypergraph import sweeps

        forest = self.forest()
        drawn = sweeps.sample(forest.graph, forest.weights, as_positive_int("k", k), seed=seed)
        return [self.from_edges(edges.tolist()) for edges in drawn]

    @summed
    def log_partition(self) -> float:
        from certus.hypergraph import sweeps

        forest = self.forest()
        return sweeps.log_partition(forest.graph, forest.weights)

    @summed
    def entropy(self) -> float:
        from certus.hypergraph import sweeps

        forest = self.forest()
        return sweeps.entropy(forest.graph, forest.weights)

    @summed
    def marginals(self) -> dict[str, Floats]:
        from certus.hypergraph import sweeps

        forest = self.forest()
        edge = sweeps.marginals(forest.graph, forest.weights)
        return {view: forest.onto_view(view, shape, edge, maximum=False) for view, shape in self.views.items()}

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        from certus.hypergraph import sweeps

        forest = self.forest()
        edge = sweeps.max_marginals(forest.graph, forest.penalised(penalties))
        return {view: forest.onto_view(view, shape, edge, maximum=True) for view, shape in self.views.items()}

    def all_structures(self) -> Iterator[Y]:
        for edges in self.forest().graph.hyperpaths():
            yield self.from_edges(edges)

    def reference_maximum(self, penalties: Penalties | None = None) -> float:
        from certus.hypergraph.reference import best_value

        forest = self.forest()
        return best_value(forest.graph, forest.penalised(penalties))


__all__ = ["DynamicProgram", "Forest", "Index", "Infeasible", "Penalties", "Problem"]
