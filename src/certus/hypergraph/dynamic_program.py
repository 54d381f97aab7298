"""Dynamic programs spelt out as hypergraphs, and problems that answer every question through theirs.

Models override the questions for which they have a faster kernel.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np

from certus.certificates.sound import measured, sound_list, summed
from certus.checks import Floats, Ints, as_numbers, as_penalties, as_positive_int
from certus.errors import Infeasible, InvalidInput
from certus.hypergraph import sweeps
from certus.hypergraph.graph import Hypergraph
from certus.hypergraph.reference import best_value
from certus.problem import Index, Limits, PartBounds, Penalties, Problem
from certus.result import Result, Solution

Y = TypeVar("Y")
Views = Mapping[str, Index]
Answer = TypeVar("Answer")
Given = ParamSpec("Given")


def _in_words(
    answer: "Callable[Concatenate[Forest, Given], Answer]",
) -> "Callable[Concatenate[Forest, Given], Answer]":
    """A question to a forest; where it has no hyperpath, the error is about the problem, not about vertices."""

    @wraps(answer)
    def asked(forest: "Forest", /, *args: Given.args, **options: Given.kwargs) -> Answer:
        try:
            return answer(forest, *args, **options)
        except Infeasible:
            raise Infeasible(forest.nothing) from None

    return asked


@dataclass(frozen=True, slots=True)
class Forest:
    """A dynamic program spelt out: structures are the hyperpaths of ``graph``, one to one, scores sums of ``weights``.

    ``parts[view][e]`` is the flat index of the one cell of the view that edge e uses, or -1. Answers are hyperpaths,
    given by their edges, or arrays over the cells of views. Where there is no hyperpath they raise Infeasible, which
    says ``nothing``: why, in the words of the problem.
    """

    graph: Hypergraph
    weights: Floats
    parts: Mapping[str, Ints]
    nothing: str = "every structure uses a part that scores -inf. Allow one."
    _found: dict[str, tuple[Ints, Ints]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def penalised(self, penalties: Penalties | None) -> Floats:
        """Edge weights with the penalties added."""
        given = as_penalties(penalties)
        if not given:
            return self.weights
        weights = self.weights.copy()
        for view, penalty in given.items():
            if view not in self.parts:
                raise InvalidInput(f"no view {view!r} to penalise; there is {', '.join(map(repr, self.parts))}.")
            values = as_numbers(f"penalty of {view}", penalty, np.float64).reshape(-1)
            edges, cells = self.used(view)
            weights[edges] += values[cells]
        return weights

    def used(self, view: str) -> tuple[Ints, Ints]:
        """The edges that use a cell of a view, and which; relaxations ask over and over."""
        if view not in self._found:
            edges = np.flatnonzero(self.parts[view] >= 0)
            self._found[view] = (edges, self.parts[view][edges])
        return self._found[view]

    def onto_view(self, view: str, shape: Index, values: Floats, *, maximum: bool) -> Floats:
        """Edge values summed (or maximised) per cell of a view."""
        edges, cells = self.used(view)
        out = np.full(int(np.prod(shape, dtype=np.int64)), -np.inf if maximum else 0.0)
        (np.maximum if maximum else np.add).at(out, cells, values[edges])
        return out.reshape(shape)

    @_in_words
    def best(self, penalties: Penalties | None = None) -> tuple[list[int], float]:
        """The best hyperpath and its value."""
        value, edges = sweeps.best(self.graph, self.penalised(penalties))
        return edges.tolist(), value

    @_in_words
    def kbest(self, k: int, penalties: Penalties | None = None) -> list[tuple[list[int], float]]:
        """The k best hyperpaths and their values, best first."""
        found = sweeps.kbest(self.graph, self.penalised(penalties), as_positive_int("k", k))
        return [(edges.tolist(), value) for value, edges in found]

    @_in_words
    def sample(self, k: int, seed: int | None) -> list[list[int]]:
        """k hyperpaths drawn with probability proportional to exp(score)."""
        drawn = sweeps.sample(self.graph, self.weights, as_positive_int("k", k), seed=seed)
        return [edges.tolist() for edges in drawn]

    @_in_words
    def log_partition(self) -> float:
        """Log of the sum of exp(score) over all hyperpaths."""
        return sweeps.log_partition(self.graph, self.weights)

    @_in_words
    def entropy(self) -> float:
        """Entropy, in nats, of the distribution proportional to exp(score)."""
        return sweeps.entropy(self.graph, self.weights)

    @_in_words
    def marginals(self, views: Views) -> dict[str, Floats]:
        """The expected count of each part of the views."""
        edge = sweeps.marginals(self.graph, self.weights)
        return {view: self.onto_view(view, shape, edge, maximum=False) for view, shape in views.items()}

    @_in_words
    def max_marginals(self, views: Views, penalties: Penalties | None = None) -> dict[str, Floats]:
        """The best value of a hyperpath that uses each part of the views."""
        edge = sweeps.max_marginals(self.graph, self.penalised(penalties))
        return {view: self.onto_view(view, shape, edge, maximum=True) for view, shape in views.items()}


class DynamicProgram(Problem[Y]):
    """A problem whose structures are the hyperpaths of a hypergraph; answers every question through it."""

    certificate_kind = "dynamic program"

    @abstractmethod
    def forest(self) -> Forest:
        """The hypergraph, weights and parts. Models may cache it."""

    @abstractmethod
    def from_edges(self, edges: Sequence[int]) -> Y:
        """The structure of a hyperpath of ``forest()``, given by its edges, head before tails."""

    def _decode(self, limits: Limits) -> Result[Y]:
        solution = self.solve()
        return self.proved(solution.structure, solution.value)

    def solve(self, penalties: Penalties | None = None) -> Solution[Y]:
        edges, value = self.forest().best(penalties)
        return Solution(self.from_edges(edges), value)

    @sound_list
    def kbest(self, k: int) -> list[Result[Y]]:
        found = self.forest().kbest(k)
        return [self.proved(self.from_edges(edges), value, rank=rank) for rank, (edges, value) in enumerate(found, 1)]

    @summed
    def sample(self, k: int, *, seed: int | None = None) -> list[Y]:
        return [self.from_edges(edges) for edges in self.forest().sample(k, seed)]

    @summed
    def log_partition(self) -> float:
        return self.forest().log_partition()

    @summed
    def entropy(self) -> float:
        return self.forest().entropy()

    @summed
    def marginals(self) -> dict[str, Floats]:
        return self.forest().marginals(self.views)

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        return self.forest().max_marginals(self.views, penalties)

    def max_marginal_bounds(self, *, time_limit: float | None = None) -> PartBounds:
        exact = self.max_marginals()
        return PartBounds(exact, exact)

    def all_structures(self) -> Iterator[Y]:
        for edges in self.forest().graph.hyperpaths():
            yield self.from_edges(edges)

    def reference_maximum(self, penalties: Penalties | None = None) -> float:
        try:
            forest = self.forest()
        except Infeasible:
            return -np.inf
        return best_value(forest.graph, forest.penalised(penalties))
