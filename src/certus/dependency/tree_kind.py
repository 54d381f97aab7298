"""What ``certus.Dependency`` asks of a kind of trees.

``projective_trees``, ``crossing_trees`` and ``higher_order_trees`` beside this answer, each for its own trees.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from certus.certificates.normal import NormalForm
from certus.certificates.rounding import of_sum
from certus.checks import Floats, Ints
from certus.errors import NotSupported
from certus.problem import Limits, PartBounds, Penalties
from certus.relax.laws import Asked, Law
from certus.relax.system import Relaxation
from certus.result import LogPartitionBounds, MarginalEstimates, Result, Solution

if TYPE_CHECKING:
    from certus.dependency.forest import DependencyForest
    from certus.dependency.problem import Dependency


@cache
def kind_of_trees(projective: bool, higher: bool) -> "TreeKind":
    """The kind that serves problems with or without scores above arcs; imported with the first of them."""
    name = "projective_trees" if projective else "higher_order_trees" if higher else "crossing_trees"
    kind: TreeKind = import_module(f"certus.dependency.{name}").TREES
    return kind


class TreeKind(ABC):
    """One kind of trees, without scores: what it can answer for a problem, whose scores are read as they are.

    The module of a kind has one as ``TREES``; its algorithms may stand on problems of another kind.
    """

    certificate_kind: ClassVar[str]
    instead: ClassVar[Mapping[str, str]] = {}  # what to ask for instead of a question that is refused

    def decode(self, problem: "Dependency", limits: Limits) -> Result[Ints]:
        """The best tree, with its certificate. The limits of ``Dependency.decode`` are for trees that are relaxed."""
        solution = self.solve(problem, None)
        return problem.proved(solution.structure, solution.value, scores=problem._terms(solution.structure))

    @abstractmethod
    def solve(self, problem: "Dependency", penalties: Penalties | None) -> Solution[Ints]:
        """The best tree under penalties, and its value."""

    @abstractmethod
    def normal_form(self, problem: "Dependency") -> NormalForm:
        """The trees and their scores in normal form."""

    @abstractmethod
    def normal_structure(self, problem: "Dependency", heads: Ints) -> tuple[Any, ...]:
        """A tree of the problem in every space of the normal form; InvalidInput if it uses a forbidden part."""

    def error_at(self, problem: "Dependency", value: float) -> float:
        """How far rounding may have taken a best value from the truth."""
        extent = problem.extent()
        return of_sum(2 * extent.length, extent.size)  # contracted cycles subtract what is added again: masks matter

    def kbest(self, problem: "Dependency", k: int) -> list[Result[Ints]]:
        """The k best trees."""
        self._refuse(problem, "kbest")

    def sample(self, problem: "Dependency", k: int, seed: int | None) -> list[Ints]:
        """k trees drawn with probability proportional to exp(score)."""
        self._refuse(problem, "sample")

    def log_partition(self, problem: "Dependency") -> float:
        """Log of the sum of exp(score) over all trees."""
        self._refuse(problem, "log_partition")

    def log_partition_bounds(self, problem: "Dependency", iterations: int) -> LogPartitionBounds:
        """An interval that holds the log-partition function: here it is known, but for rounding."""
        value, extent, n = self.log_partition(problem), problem.extent(), problem.n
        largest = extent.length * extent.size + (n + 1.0) ** 2
        return LogPartitionBounds.around(value, self.log_sum_steps(n), largest, "all trees")

    def log_sum_steps(self, n: int) -> int:
        """The operations behind a log-partition function for n words, one after the other, at most."""
        return 8 * (n + 1) ** 2

    def marginal_estimates(self, problem: "Dependency", samples: int, seed: int | None) -> MarginalEstimates:
        """Estimates of the probability of each arc: here they are known."""
        return MarginalEstimates.known({"arcs": self.marginals(problem)}, self.log_partition(problem))

    def marginals(self, problem: "Dependency") -> Floats:
        """The probability of each arc."""
        self._refuse(problem, "marginals")

    def entropy(self, problem: "Dependency") -> float:
        """The entropy of the distribution over trees."""
        self._refuse(problem, "entropy")

    def max_marginals(self, problem: "Dependency", penalties: Penalties | None) -> Floats:
        """The best score of a tree with each arc."""
        self._refuse(problem, "max_marginals")

    def max_marginal_bounds(self, problem: "Dependency", time_limit: float | None) -> PartBounds:
        """What is known of these in as many seconds."""
        exact = {"arcs": self.max_marginals(problem, None)}
        return PartBounds(exact, exact)

    def _refuse(self, problem: "Dependency", question: str) -> NoReturn:
        instead = self.instead.get(question, "arc-factored scores, or projective=True")
        raise NotSupported(
            f"{question}() of trees with crossing arcs and scores above arcs ({', '.join(problem.scores)}) has no "
            f"tractable answer: even the best tree is NP-hard. Ask for {instead}."
        )

    def forest(self, problem: "Dependency") -> "DependencyForest | None":
        """The trees as hyperpaths; None where they are no dynamic program."""
        return None

    def law(self, problem: "Dependency", asked: Asked) -> Law | None:
        """The distribution over trees under penalties; None where ``forest`` tells it, or nothing does."""
        return None

    def relaxation(self, problem: "Dependency") -> Relaxation | None:
        """The relaxation that ``decode`` solves; None where there is an exact algorithm."""
        return None
