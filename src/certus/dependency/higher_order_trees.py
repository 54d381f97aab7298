"""Trees with crossing arcs and scores above arcs: NP-hard, decoded by relaxation (LR 6)."""

from typing import TYPE_CHECKING, NoReturn

from certus.certificates.rounding import of_sum
from certus.checks import Floats, Ints
from certus.dependency import nonprojective
from certus.dependency.tree_kind import TreeKind
from certus.errors import NotSupported
from certus.problem import Penalties
from certus.relax.system import Relaxation
from certus.result import Result, Solution

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency

ARCS_ALONE = "arc-factored scores, or projective=True"


class HigherOrderTrees(TreeKind):
    """All trees, scored by arcs and by parts above them: the best one is found and proved by relaxation; no more."""

    serves = ((False, True),)
    certificate_kind = "dual"

    def decode(
        self, problem: "Dependency", *, max_iterations: int = 500, time_limit: float | None = None, exact: bool = True
    ) -> Result[Ints]:
        return nonprojective.decode(problem, max_iterations=max_iterations, time_limit=time_limit, exact=exact)

    def relaxation(self, problem: "Dependency") -> Relaxation:
        return nonprojective.relaxation(problem)

    def solve(self, problem: "Dependency", penalties: Penalties | None) -> Solution[Ints]:
        result = problem.with_arcs(problem.penalised(penalties)).decode()
        return Solution(result.structure, result.certificate.bound)

    def error_at(self, problem: "Dependency", value: float) -> float:
        extent = problem.extent()
        return of_sum(2 * extent.length, extent.size)

    def _refuse(self, problem: "Dependency", question: str, instead: str = ARCS_ALONE) -> NoReturn:
        raise NotSupported(
            f"{question}() of trees with crossing arcs and scores above arcs ({', '.join(problem.scores)}) has no "
            f"tractable answer: even the best tree is NP-hard. Ask for {instead}."
        )

    def reference_maximum(self, problem: "Dependency", penalties: Penalties | None) -> float:
        instead = "certus.verify, which rechecks the dual certificate of decode()"
        self._refuse(problem, "reference_maximum", instead)

    def kbest(self, problem: "Dependency", k: int) -> list[Result[Ints]]:
        self._refuse(problem, "kbest", "decode(), or projective=True")

    def sample(self, problem: "Dependency", k: int, seed: int | None) -> list[Ints]:
        self._refuse(problem, "sample")

    def log_partition(self, problem: "Dependency") -> float:
        self._refuse(problem, "log_partition")

    def marginals(self, problem: "Dependency") -> Floats:
        instead = "arc-factored scores, projective=True, or max_marginals() of the arcs alone"
        self._refuse(problem, "marginals", instead)

    def entropy(self, problem: "Dependency") -> float:
        self._refuse(problem, "entropy")

    def max_marginals(self, problem: "Dependency", penalties: Penalties | None) -> Floats:
        self._refuse(problem, "max_marginals", "decode(), or the max-marginals of the arcs alone")
