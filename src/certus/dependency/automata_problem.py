"""Trees scored by any head automata the user can write, crossing arcs allowed (LR 6.3, "sibling head automata")."""

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.normal import NormalForm
from certus.certificates.rounding import Extent
from certus.certificates.sound import floored, sound_list, summed
from certus.checks import Floats, Ints, as_positive_int, one_of
from certus.dependency import automata_tables, nonprojective, sum_bounds, sum_estimates
from certus.dependency.head_automata import AutomatonOf, HeadAutomata
from certus.dependency.problem import ROOTS, checked_arcs
from certus.dependency.tree_problem import TreeProblem
from certus.problem import Limits, PartBounds, Penalties
from certus.result import LogPartitionBounds, MarginalEstimates, Result, Solution
from certus.schema import Field
from certus.serialize import floats_to_json

if TYPE_CHECKING:
    from certus.relax.system import Relaxation


class AutomataDependency(TreeProblem):
    """The best dependency tree when every head scores its modifiers, from the nearest outwards, by an automaton.

    The score of a tree is the sum of its arc scores and, for every head and side, of the weights with which the
    automaton of that head and side reads the modifiers. Decoded by dual decomposition with the spanning tree;
    certificate kinds "dual" and "branch and bound". O(k q) per automaton and iteration, for k possible modifiers and q
    states.

    Parameters
    ----------
    arc : array_like of shape (n + 1, n + 1)
        ``arc[h, m]``; ``-inf`` forbids an arc.
    automaton : callable (g, h, side) -> Automaton
        Side 0 is left of h, side 1 right. An automaton has a ``start`` state, ``step(state, m) -> (state, weight)``
        and ``stop(state) -> weight``; states are any hashable values, weights finite or -inf. It must be
        deterministic. g is the head of h with ``by_head``, and -1 otherwise and for h = 0.
    by_head : bool
        Whether automata depend on the head of their head.
    root : "single" or "multi"
        Exactly one modifier of node 0, or any number.

    Examples
    --------
    At most two modifiers on a side, each worth 1 more than its arc:

    >>> class Two:
    ...     start = 0
    ...     def step(self, state, m):
    ...         return state + 1, 1.0 if state < 2 else float("-inf")
    ...     def stop(self, state):
    ...         return 0.0
    >>> p = AutomataDependency([[0, 1, 0, 0], [0, 0, 1, 3], [0, 0, 0, 0], [0, 0, 0, 0]], lambda g, h, side: Two())
    >>> p.decode().structure.tolist()
    [-1, 0, 1, 1]
    """

    name: ClassVar[str] = "automata dependency"
    projective = False

    def __init__(
        self,
        arc: ArrayLike,
        automaton: AutomatonOf,
        *,
        by_head: bool = False,
        root: str = "single",
    ) -> None:
        self.arc = checked_arcs(arc)
        self.n = len(self.arc) - 1
        self.root = one_of("root", root, ROOTS)
        self.automata = HeadAutomata(self.arc, automaton, by_head=by_head, root=self.root)

    def with_arcs(self, arc: Floats) -> Self:
        a = self.automata
        return type(self)(arc, a.automaton_of, by_head=a.by_head, root=self.root)

    def terms(self, structure: ArrayLike) -> list[float]:
        _, choices = self.automata.leaves(self.checked_heads(structure))
        return [-np.inf] if (self.arc[choices.arcs] == -np.inf).any() else self.automata.terms(choices)

    def extent(self) -> Extent:
        return self.automata.extent()

    def all_scores(self) -> tuple[Floats, ...]:
        return self.automata.all_scores()

    def without_scores_below(self, least: float) -> Self:
        return self._over(self.automata.without_scores_below(least))

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._over(self.automata.with_scores_rounded_up(step))

    def _over(self, automata: HeadAutomata) -> Self:
        return type(self)(automata.arc, automata.automaton_of, by_head=automata.by_head, root=self.root)

    def _decode(self, limits: Limits) -> Result[Ints]:
        return nonprojective.decode(self, limits)

    @sound_list
    def kbest(self, k: int) -> list[Result[Ints]]:
        return nonprojective.kbest(self, as_positive_int("k", k))

    def max_marginal_bounds(self, *, time_limit: float | None = None) -> PartBounds:
        return PartBounds(*floored(self, lambda problem: nonprojective.max_marginal_bounds(problem, time_limit)))

    @summed
    def log_partition_bounds(self, *, iterations: int = 150) -> LogPartitionBounds:
        """An interval that holds the log-partition function, as ``Dependency.log_partition_bounds`` finds it.

        Below are trees one by one alone: the best, and some that are likely.
        """
        return sum_bounds.log_partition_bounds(self, as_positive_int("iterations", iterations))

    @summed
    def marginal_estimates(self, *, samples: int = 1000, seed: int | None = None) -> MarginalEstimates:
        """Estimates of the probability of each arc, as ``Dependency.marginal_estimates`` makes them."""
        return sum_estimates.marginal_estimates(self, samples, seed)

    def relaxation(self) -> "Relaxation | None":
        """The relaxation that decode solves."""
        return nonprojective.relaxation(self)

    def normal_form(self) -> NormalForm:
        return nonprojective.normal_form(self)

    def normal_structure(self, structure: ArrayLike) -> tuple[Any, ...]:
        return nonprojective.normal_structure(self, self.checked_heads(structure))

    def solve(self, penalties: Penalties | None = None) -> Solution[Ints]:
        result = self.with_arcs(self.penalised(penalties)).decode()
        return Solution(result.structure, result.certificate.bound)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """With all automata spelt out as tables over the modifiers that are allowed."""
        a = self.automata
        tables = automata_tables.to_json(a)
        return {"arc": floats_to_json(self.arc), "by_head": a.by_head, "root": self.root, "automata": tables}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        arc = given["arc"].scores((None, None))
        automaton = automata_tables.from_json(given["automata"], len(arc) - 1)
        settings: Any = {"by_head": given["by_head"].flag(), "root": given["root"].one_of(ROOTS)}
        return given["arc"].made(lambda: cls(arc, automaton, **settings))
