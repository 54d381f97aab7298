"""Trees with crossing arcs and scores above arcs: NP-hard, decoded by relaxation (LR 6)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from certus.certificates.normal import NormalForm
from certus.certificates.sound import floored
from certus.checks import Floats, Ints
from certus.dependency import nonprojective, sum_bounds, sum_estimates
from certus.dependency.tree_kind import TreeKind
from certus.problem import Limits, PartBounds, Penalties, Problem
from certus.relax.system import Relaxation
from certus.result import LogPartitionBounds, MarginalEstimates, Result, Solution

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency


class HigherOrderTrees(TreeKind):
    """All trees, scored by arcs and by parts above them: the best by relaxation; sums are bounded and estimated."""

    certificate_kind = "dual"
    instead: ClassVar[Mapping[str, str]] = {
        "marginals": "marginal_estimates(), arc-factored scores, or projective=True",
        "log_partition": "log_partition_bounds(), arc-factored scores, or projective=True",
    }

    def decode(self, problem: "Dependency", limits: Limits) -> Result[Ints]:
        return nonprojective.decode(problem, limits)

    def kbest(self, problem: "Dependency", k: int) -> list[Result[Ints]]:
        return nonprojective.kbest(problem, k)

    def max_marginals(self, problem: "Dependency", penalties: Penalties | None) -> Floats:
        asked = problem.with_arcs(problem.penalised(penalties)) if penalties else problem
        return Problem.max_marginals(asked)["arcs"]

    def max_marginal_bounds(self, problem: "Dependency", time_limit: float | None) -> PartBounds:
        return PartBounds(*floored(problem, lambda asked: nonprojective.max_marginal_bounds(asked, time_limit)))

    def relaxation(self, problem: "Dependency") -> Relaxation:
        return nonprojective.relaxation(problem)

    def normal_form(self, problem: "Dependency") -> NormalForm:
        return nonprojective.normal_form(problem)

    def normal_structure(self, problem: "Dependency", heads: Ints) -> tuple[Any, ...]:
        return nonprojective.normal_structure(problem, heads)

    def solve(self, problem: "Dependency", penalties: Penalties | None) -> Solution[Ints]:
        result = problem.with_arcs(problem.penalised(penalties)).decode()
        return Solution(result.structure, result.certificate.bound)

    def log_partition_bounds(self, problem: "Dependency", iterations: int) -> LogPartitionBounds:
        return sum_bounds.log_partition_bounds(problem, iterations)

    def marginal_estimates(self, problem: "Dependency", samples: int, seed: int | None) -> MarginalEstimates:
        return sum_estimates.marginal_estimates(problem, samples, seed)


TREES = HigherOrderTrees()
