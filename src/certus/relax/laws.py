"""Distributions over the structures of a subproblem, in proportion to exp(score) under penalties: sums and samples.

A dynamic program has one by its hypergraph; other problems say theirs (``Problem.law``). Samples may be drawn within
budgets: parts are chosen one after the other, and none that some row could not be satisfied after.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from certus import kernels
from certus.checks import Floats, Ints
from certus.errors import NotSupported
from certus.hypergraph import Forest, sweeps
from certus.problem import Index, Penalties, Problem

SPENT = 50_000_000  # cells of the table of what edges spend: beyond it samples are drawn without budgets
ROUNDING = 1e-9  # of what is added up for a budget


class Drawn(NamedTuple):
    """A structure drawn: what tells it from others, and the cells it uses by view, each as often as it is used."""

    key: bytes
    cells: Mapping[str, Ints]
    made_of: Any  # edges, or the structure itself


class Budget(NamedTuple):
    """What is added up over the uses of cells must come to no more than ``most``."""

    terms: Sequence[tuple[str, Ints, Floats]]  # view, cells and coefficients
    most: float


class Law(ABC):
    """Structures of a subproblem with probabilities in proportion to exp(measure)."""

    log_partition: float  # -inf where there is no structure
    steps: int  # operations behind it, one after the other, at most

    @abstractmethod
    def expected(self, view: str, shape: Index) -> Floats:
        """The expected uses of each cell of a view."""

    @abstractmethod
    def draws(self, count: int, rng: np.random.Generator) -> list[Drawn | None]:
        """As many structures, independently; None for a draw that came to where no choice is within the budgets."""

    @abstractmethod
    def measure(self, drawn: Drawn) -> float:
        """The power times the score under the penalties of what was drawn by any law of the same subproblem."""

    def log_probability(self, drawn: Drawn) -> float:
        """Log of the probability that it is drawn by this law, within the budgets if there are some."""
        return self.measure(drawn) - self.log_partition

    @abstractmethod
    def structure(self, drawn: Drawn) -> Any:
        """What was drawn as a structure of the subproblem."""

    def within(self, budgets: Sequence[Budget]) -> Self:
        """The law of drawing within budgets, where that can be done; else this one."""
        return self


class ForestLaw(Law):
    """Of a dynamic program: ``power`` times ``weight`` times the scores, and the penalties."""

    def __init__(self, problem: Problem[Any], forest: Forest, asked: "Asked") -> None:
        self.problem, self.forest = problem, forest
        self.weights = asked.power * (asked.weight * forest.weights)
        for view, penalty in asked.penalties.items():
            edges, cells = forest.used(view)
            self.weights[edges] += asked.power * penalty.reshape(-1)[cells]
        graph, self.steps = forest.graph, forest.graph.n_edges + 8
        conditional, self.log_partition = sweeps.choices(graph, self.weights)
        sequential: Any = kernels.sequential
        self.graph = sequential.Graph(graph.in_ptr, graph.tail_ptr, graph.tail, conditional, graph.root)
        self.spend, self.budget = np.zeros((graph.n_edges, 0)), np.zeros(0)

    def expected(self, view: str, shape: Index) -> Floats:
        edge = sweeps.expected_uses(self.forest.graph, self.graph.conditional)
        return self.forest.onto_view(view, shape, edge, maximum=False)

    def within(self, budgets: Sequence[Budget]) -> Self:
        edges, count = len(self.weights), len(budgets)
        if not count or edges * count > SPENT or self.log_partition == -np.inf:
            return self
        spend, least = np.zeros((edges, count)), np.empty((len(self.graph.in_ptr) - 1, count))
        size = np.zeros(count)
        for s, budget in enumerate(budgets):
            size[s] = abs(budget.most) + sum(float(np.abs(coefficients).sum()) for _, _, coefficients in budget.terms)
            for view, cells, coefficients in budget.terms:
                added = np.zeros(int(np.prod(self.problem.views[view])))
                np.add.at(added, cells, coefficients)
                own, cell = self.forest.used(view)
                spend[own, s] += added[cell]
        kernels.sequential.spending(self.graph, spend, least)
        most = np.array([budget.most for budget in budgets])
        kept = copy(self)
        kept.spend, kept.budget = spend, most - least[self.graph.root] + ROUNDING * size
        return kept

    def draws(self, count: int, rng: np.random.Generator) -> list[Drawn | None]:
        walks = (self._walked(rng, NO_EDGES) for _ in range(count))
        return [None if probability == -np.inf else self._drawn(edges) for edges, probability in walks]

    def _walked(self, rng: np.random.Generator, given: Any) -> tuple[Any, float]:
        edges, probability = kernels.sequential.walk(self.graph, self.spend, self.budget, rng, given)
        return edges, float(probability)

    def _drawn(self, edges: Any) -> Drawn:
        cells = {view: part[edges] for view, part in self.forest.parts.items()}
        return Drawn(edges.tobytes(), {view: cell[cell >= 0] for view, cell in cells.items()}, edges)

    def measure(self, drawn: Drawn) -> float:
        return float(self.weights[drawn.made_of].sum())

    def log_probability(self, drawn: Drawn) -> float:
        return self._walked(UNUSED, drawn.made_of)[1]

    def structure(self, drawn: Drawn) -> Any:
        return self.problem.from_edges(drawn.made_of.tolist())


class Asked(NamedTuple):
    """Which distribution: exp(power * (weight * score + penalties))."""

    weight: float
    penalties: Penalties
    power: float


NO_EDGES = np.empty(0, dtype=np.int32)
UNUSED = np.random.default_rng(0)  # where edges are given, nothing is drawn


def law_of(problem: Problem[Any], asked: Asked) -> Law:
    """The law of a subproblem; NotSupported where its sums are not known."""
    own = problem.law(asked)
    if own is not None:
        return own
    forest = problem.forest()
    if forest is None:
        raise NotSupported(
            f"sums are not known of what is relaxed to {type(problem).__name__}: it is no dynamic program, and no "
            "trees scored by arcs. Ask decode(), kbest(k) or max_marginals() in place of log_partition_bounds() and "
            "marginal_estimates()."
        )
    return ForestLaw(problem, forest, asked)
