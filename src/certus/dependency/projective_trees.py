"""Trees without crossing arcs: dynamic programs, by kernels of their own or by the forest (DEP 5)."""

from typing import TYPE_CHECKING, Any

from certus.certificates.assembling import derivation
from certus.certificates.normal import NormalForm
from certus.certificates.rounding import of_best
from certus.checks import Floats, Ints
from certus.dependency import normal_projective, projective
from certus.dependency.forest import DependencyForest
from certus.dependency.tree_kind import TreeKind
from certus.problem import Penalties
from certus.result import Result, Solution

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency


class ProjectiveTrees(TreeKind):
    """Trees without crossing arcs, with any scores: every question has an answer."""

    certificate_kind = "dynamic program"

    def forest(self, problem: "Dependency") -> DependencyForest:
        return DependencyForest(problem)

    def solve(self, problem: "Dependency", penalties: Penalties | None) -> Solution[Ints]:
        found = projective.best(problem, problem.penalised(penalties))
        if found is not None:
            return found
        spelt_out = problem.spelt_out
        edges, value = spelt_out.forest.best(penalties)
        return Solution(spelt_out.heads(edges), value)

    def normal_form(self, problem: "Dependency") -> NormalForm:
        return normal_projective.of_trees(problem, problem.arc)

    def normal_structure(self, problem: "Dependency", heads: Ints) -> tuple[Any, ...]:
        return (derivation(problem.normal_form(), {"arcs": problem.indicator(heads, "arcs")}),)

    def error_at(self, problem: "Dependency", value: float) -> float:
        return of_best(problem.extent(), value)

    def kbest(self, problem: "Dependency", k: int) -> list[Result[Ints]]:
        spelt_out = problem.spelt_out
        found = ((spelt_out.heads(edges), value) for edges, value in spelt_out.forest.kbest(k))
        return [
            problem.proved(heads, value, rank=rank, scores=problem._terms(heads))
            for rank, (heads, value) in enumerate(found, start=1)
        ]

    def sample(self, problem: "Dependency", k: int, seed: int | None) -> list[Ints]:
        spelt_out = problem.spelt_out
        return [spelt_out.heads(edges) for edges in spelt_out.forest.sample(k, seed)]

    def log_partition(self, problem: "Dependency") -> float:
        found = projective.log_partition(problem)
        return problem.spelt_out.forest.log_partition() if found is None else found

    def marginals(self, problem: "Dependency") -> Floats:
        found = projective.marginals(problem)
        return problem.spelt_out.forest.marginals(problem.views)["arcs"] if found is None else found

    def entropy(self, problem: "Dependency") -> float:
        return problem.spelt_out.forest.entropy()

    def max_marginals(self, problem: "Dependency", penalties: Penalties | None) -> Floats:
        found = projective.max_marginals(problem, problem.penalised(penalties))
        if found is not None:
            return found
        return problem.spelt_out.forest.max_marginals(problem.views, penalties)["arcs"]


TREES = ProjectiveTrees()
