"""Projective questions that have a kernel of their own; None sends the question to the forest."""

from typing import TYPE_CHECKING

from certus.checks import Floats
from certus.result import Solution

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency, Heads


def best(problem: "Dependency", arc: Floats) -> "Solution[Heads] | None":
    """Best projective tree under the given arc scores."""
    return None


def log_partition(problem: "Dependency") -> float | None:
    """Log of the sum of exp(score) over projective trees."""
    return None


def marginals(problem: "Dependency") -> Floats | None:
    """Probability of each arc."""
    return None


def max_marginals(problem: "Dependency", arc: Floats) -> Floats | None:
    """Best score of a tree with each arc."""
    return None
