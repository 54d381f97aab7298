"""Trees with crossing arcs and scores above arcs: NP-hard, decoded by relaxation (LR 6)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from certus.certificates.normal import NormalForm
from certus.checks import Ints
from certus.dependency import nonprojective
from certus.dependency.tree_kind import TreeKind
from certus.problem import Penalties
from certus.relax.system import Relaxation
from certus.result import Result, Solution

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency


class HigherOrderTrees(TreeKind):
    """All trees, scored by arcs and by parts above them: the best one is found and proved by relaxation; no more."""

    serves = ((False, True),)
    certificate_kind = "dual"
    instead: ClassVar[Mapping[str, str]] = {
        "marginals": "arc-factored scores, projective=True, or max_marginals() of the arcs alone",
        "max_marginals": "decode(), or the max-marginals of the arcs alone",
        "reference_maximum": "certus.verify, which rechecks the dual certificate of decode()",
    }

    def decode(self, problem: "Dependency", **limits: Any) -> Result[Ints]:
        return nonprojective.decode(problem, **limits)

    def kbest(self, problem: "Dependency", k: int) -> list[Result[Ints]]:
        return nonprojective.kbest(problem, k)

    def relaxation(self, problem: "Dependency") -> Relaxation:
        return nonprojective.relaxation(problem)

    def normal_form(self, problem: "Dependency") -> NormalForm:
        return nonprojective.normal_form(problem)

    def normal_structure(self, problem: "Dependency", heads: Ints) -> tuple[Any, ...]:
        return nonprojective.normal_structure(problem, heads)

    def solve(self, problem: "Dependency", penalties: Penalties | None) -> Solution[Ints]:
        result = problem.with_arcs(problem.penalised(penalties)).decode()
        return Solution(result.structure, result.certificate.bound)
