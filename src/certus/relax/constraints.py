"""Linear constraints on the parts of a structure, written as one would say them, and problems subject to them.

    tagging.subject_to(at_most(2, "tags", noun_cells), implies(("tags", (0, 3)), ("tags", (4, 1))))

A part is one cell of a view: ("tags", (4, 1)) is tag 1 at position 4. Constraints speak of parts that are used once
or not at all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isfinite
from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.rounding import WIDTH, Extent
from certus.certificates.sound import measured, sound, sound_list, summed
from certus.checks import Floats, as_positive_int, as_scores, one_of
from certus.draw import Picture
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.hypergraph import Forest
from certus.problem import Index, Penalties, Problem, problem_from_json, problem_to_json
from certus.relax import branch
from certus.relax.steps import StepRule
from certus.relax.system import Entries, Relaxation, Rows, row_slack
from certus.result import Result, Solution, certified, with_proof_of
from certus.schema import MOST, Field

Y = TypeVar("Y")
Part = tuple[str, Index]
Term = tuple[float, str, Index]  # coefficient, view, index
Sense = Literal["<=", "==", ">="]
SENSES = ("<=", "==", ">=")
MULTIPLIED = 32.0  # errors of a rank that is proved under multipliers, in those of the best


@dataclass(frozen=True, slots=True, repr=False)
class Constraint:
    """sum of coefficient * part (<=, ==, >=) bound, with a name to call it by."""

    terms: tuple[Term, ...]
    sense: Sense
    bound: float
    name: str
    shape: Index | None = None  # of the view, if coefficients were given for all of it

    def __repr__(self) -> str:
        return self.name

    def named(self, name: str) -> "Constraint":
        """The same under another name, as errors and multipliers will show it."""
        return replace(self, name=name)

    def holds(self, indicators: Mapping[str, Floats]) -> bool:
        """True if the parts used satisfy the constraint, but for the rounding of coefficients and of their sum."""
        value = sum(c * float(indicators[view][index]) for c, view, index in self.terms)
        whole = self.bound % 1 == 0 and all(c % 1 == 0 for c, _, _ in self.terms)
        slack = 0.0 if whole else row_slack(sum(abs(c) for c, _, _ in self.terms), abs(self.bound))
        excess = {"<=": value - self.bound, ">=": self.bound - value, "==": abs(value - self.bound)}[self.sense]
        return excess <= slack

    @property
    def decides(self) -> int | None:
        """0 or 1 if the constraint does no more than forbid or require one part, else None."""
        if len(self.terms) == 1 and self.terms[0][0] == 1.0:
            if self.sense != ">=" and self.bound == 0:
                return 0
            if self.sense == ">=" and self.bound == 1:
                return 1
        return None

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        terms = [[c, view, list(index)] for c, view, index in self.terms]
        return {"name": self.name, "sense": self.sense, "bound": self.bound, "terms": terms}

    @classmethod
    def from_json(cls, data: Any) -> "Constraint":
        """Read what ``to_json`` wrote; InvalidInput for anything else."""
        given = Field.of(data, "constraint")
        terms = []
        for term in given["terms"].items():
            c, view, index = term.items(size=3)
            terms.append((c.number(), view.text(), tuple(index.wholes(0, MOST).tolist())))
        sense: Any = given["sense"].one_of(SENSES)
        return replace(linear(terms, sense, given["bound"].number()), name=given["name"].text())


def linear(terms: Iterable[tuple[float, str, Sequence[int]]], sense: Sense, bound: float) -> Constraint:
    """Any linear row: terms are (coefficient, view, index)."""
    one_of("sense", sense, SENSES)
    checked = tuple((_number("coefficient", c), _word(view), _index(index)) for c, view, index in terms)
    shown = " + ".join(f"{c:g} {view}{list(index)}" for c, view, index in checked[:4])
    more = " + ..." if len(checked) > 4 else ""
    bound = _number("bound", bound)
    return Constraint(checked, sense, bound, f"{shown or '0'}{more} {sense} {bound:g}")


def at_most(k: int, view: str, parts: Iterable[Sequence[int]]) -> Constraint:
    """At most k of the parts."""
    return _counted("at_most", "<=", k, view, parts)


def at_least(k: int, view: str, parts: Iterable[Sequence[int]]) -> Constraint:
    """At least k of the parts."""
    return _counted("at_least", ">=", k, view, parts)


def exactly(k: int, view: str, parts: Iterable[Sequence[int]]) -> Constraint:
    """Exactly k of the parts."""
    return _counted("exactly", "==", k, view, parts)


def at_most_one(view: str, parts: Iterable[Sequence[int]]) -> Constraint:
    """At most one of the parts."""
    made = at_most(1, view, parts)
    return made.named(made.name.replace("at_most(1, ", "at_most_one("))


def implies(a: Part, b: Part) -> Constraint:
    """If part a is used, so is part b; parts are (view, index)."""
    made = linear([(1.0, *a), (-1.0, *b)], "<=", 0.0)
    (_, view_a, index_a), (_, view_b, index_b) = made.terms
    return made.named(f"implies({view_a}{list(index_a)}, {view_b}{list(index_b)})")


def forbid(view: str, part: Sequence[int]) -> Constraint:
    """The part is not used."""
    made = linear([(1.0, view, part)], "<=", 0.0)
    return made.named(f"forbid({view}{list(made.terms[0][2])})")


def require(view: str, part: Sequence[int]) -> Constraint:
    """The part is used."""
    made = linear([(1.0, view, part)], ">=", 1.0)
    return made.named(f"require({view}{list(made.terms[0][2])})")


def budget(view: str, costs: ArrayLike, limit: float) -> Constraint:
    """The costs of the parts used, given as an array in the shape of the view, add up to at most the limit."""
    array = as_scores("costs", costs)
    if not np.isfinite(array).all():
        raise InvalidInput("costs are finite numbers; use forbid(view, part) for a part that must not be used.")
    cells = [tuple(int(k) for k in index) for index in np.argwhere(array)]
    made = linear([(float(array[index]), view, index) for index in cells], "<=", limit)
    return replace(made, name=f"budget({view}, {len(cells)} costs, {made.bound:g})", shape=array.shape)


def _counted(word: str, sense: Sense, k: int, view: str, parts: Iterable[Sequence[int]]) -> Constraint:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 0:
        raise InvalidInput(f"k is {k!r}; expected a whole number of at least 0.")
    made = linear([(1.0, view, part) for part in parts], sense, float(k))
    if len(set(made.terms)) != len(made.terms):
        raise InvalidInput(f"{word}: a part is listed twice.")
    listed = ", ".join(str(list(index)) for _, _, index in made.terms[:4]) + (", ..." if len(made.terms) > 4 else "")
    return made.named(f"{word}({k}, {view}: {listed})")


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not isfinite(value):
        raise InvalidInput(f"{name} is {value!r}; expected a finite number.")
    return float(value)


def _word(view: Any) -> str:
    if not isinstance(view, str):
        raise InvalidInput(f"view is {view!r}; expected the name of a view.")
    return view


def _index(index: Any) -> Index:
    try:
        cell = tuple(index)
    except TypeError:
        raise InvalidInput(f"part is {index!r}; expected the index of a cell, such as (4, 1).") from None
    if not all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in cell):
        raise InvalidInput(f"part is {index!r}; expected whole numbers.")
    return tuple(int(k) for k in cell)


class Constrained(Problem[Y]):
    """A problem restricted to the structures that satisfy linear constraints on its parts.

    Constraints that only forbid parts, or require parts of exclusive views, are decided by masking scores: every
    question of the problem keeps its answer. Others are relaxed by Lagrange multipliers and the ladder climbed; then
    only ``decode`` and ``kbest`` are answered. Certificate kind: that of the problem when masking does, else "dual" or
    "branch and bound". Constraints that no structure satisfies raise Infeasible, which branch and bound proves.
    """

    name = "constrained"

    def __init__(self, problem: Problem[Y], constraints: Iterable[Constraint]) -> None:
        self.problem = problem
        self.constraints = tuple(constraints)
        for constraint in self.constraints:
            if not isinstance(constraint, Constraint):
                raise InvalidInput(f"{constraint!r} is not a constraint; make one with certus.constraints.")
            for _, view, index in constraint.terms:
                shape = problem.checked_view(view)
                if constraint.shape is not None and constraint.shape != shape:
                    raise InvalidInput(f"{constraint}: costs have shape {constraint.shape}; view {view} has {shape}.")
                if len(index) != len(shape) or not all(0 <= k < size for k, size in zip(index, shape, strict=True)):
                    raise InvalidInput(f"{constraint}: {view}{list(index)} is outside the view, of shape {shape}.")

    def __repr__(self) -> str:
        return f"Constrained({self.problem!r}, {len(self.constraints)} constraints)"

    # -- structures ------------------------------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, Index]:
        return self.problem.views

    def indicator(self, structure: Y, view: str) -> Floats:
        return self.problem.indicator(structure, view)

    def violated(self, structure: Y) -> list[Constraint]:
        """The constraints a structure breaks."""
        views = {view for c in self.constraints for _, view, _ in c.terms}
        indicators = {view: self.problem.indicator(structure, view) for view in views}
        return [c for c in self.constraints if not c.holds(indicators)]

    def terms(self, structure: Y) -> Sequence[float] | Floats:
        scores = self.problem.terms(structure)
        return [-np.inf] if self.violated(structure) else scores

    def picture(self, structure: Y, words: Sequence[str] | None = None) -> Picture:
        return self.problem.picture(structure, words)

    def all_structures(self) -> Iterator[Y]:
        return (y for y in self.problem.all_structures() if not self.violated(y))

    def extent(self) -> Extent:
        return self.problem.extent()

    def all_scores(self) -> Iterable[Floats] | None:
        return self.problem.all_scores()

    def error_at(self, value: float) -> float:
        return self.problem.error_at(value)

    def without_scores_below(self, least: float) -> Self:
        return type(self)(self.problem.without_scores_below(least), self.constraints)

    def with_scores_rounded_up(self, step: float) -> Self:
        return type(self)(self.problem.with_scores_rounded_up(step), self.constraints)

    # -- masking ---------------------------------------------------------------------------------------------------

    @cached_property
    def _mask(self) -> dict[str, Floats] | None:
        """-inf where a part is forbidden, when that is all the constraints say; None when they say more."""
        if self.problem.relaxation() is not None:
            return None
        mask = {view: np.zeros(self.views[view]) for c in self.constraints for _, view, _ in c.terms}
        for c in self.constraints:
            value = c.decides
            if value is None or (value == 1 and c.terms[0][1] not in self.problem.exclusive):
                return None
            _, view, index = c.terms[0]
            if value == 0:
                mask[view][index] = -np.inf
            else:
                axis = self.problem.exclusive[view]
                line: tuple[int | slice, ...] = (*index[:axis], slice(None), *index[axis + 1 :])
                rivals = np.full(self.views[view], 0.0)
                rivals[line] = -np.inf
                rivals[index] = 0.0
                mask[view] += rivals
        return mask if self._masking_suffices(mask) else None

    def _masking_suffices(self, mask: dict[str, Floats]) -> bool:
        """Whether forbidding the rivals of required parts makes structures use these: they might use none instead."""
        if all(c.decides == 0 for c in self.constraints):
            return True
        try:
            return not self.violated(self.problem.solve(mask).structure)
        except Infeasible:
            return True

    def _masked(self, penalties: Penalties | None) -> dict[str, Floats]:
        mask = self._mask or {}
        given = dict(penalties or {})
        return {v: mask.get(v, 0.0) + given.get(v, 0.0) for v in {**mask, **given}}  # type: ignore[misc]

    @cached_property
    def _forest(self) -> Forest | None:
        forest = None if self._mask is None else self.problem.forest()
        return forest and replace(forest, weights=forest.penalised(self._mask))

    def forest(self) -> Forest | None:
        """The problem's own, less what is masked, when masking suffices; else None."""
        return self._forest

    def from_edges(self, edges: Sequence[int]) -> Y:
        self._answering("from_edges")
        return self.problem.from_edges(edges)

    def _answering(self, question: str) -> Forest:
        """The forest, which answers every question; NotSupported if there is none."""
        if self._mask is None:
            raise NotSupported(
                f"{question}() under constraints that tie parts has no tractable answer; ask decode() or kbest(k)."
            )
        if self._forest is None:
            raise NotSupported(f"{question}() under constraints needs a dynamic program; ask decode() or kbest(k).")
        return self._forest

    @summed
    def sample(self, k: int, *, seed: int | None = None) -> list[Y]:
        return [self.from_edges(edges) for edges in self._answering("sample").sample(k, seed)]

    @summed
    def log_partition(self) -> float:
        return self._answering("log_partition").log_partition()

    @summed
    def marginals(self) -> dict[str, Floats]:
        return self._answering("marginals").marginals(self.views)

    @summed
    def entropy(self) -> float:
        return self._answering("entropy").entropy()

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        return self._answering("max_marginals").max_marginals(self.views, penalties)

    # -- decoding --------------------------------------------------------------------------------------------------

    def relaxation(self) -> Relaxation:
        """The problem's own relaxation with the constraints as rows, and what they decide as fixings."""
        inner = Relaxation.of(self.problem)
        rows, fixed = [], []
        for c in self.constraints:
            _, view, index = c.terms[0] if c.terms else (0.0, "", ())
            if c.decides is not None:
                fixed.append((view, int(np.ravel_multi_index(index, self.views[view])), c.decides))
            # Where a part is required by forbidding its rivals, structures might still use none of them.
            if c.decides is None or (c.decides == 1 and view in inner.subproblems[inner.views[view][0][0]].exclusive):
                rows.append(self._rows(inner, c))
        return inner.with_rows(rows, fixed)

    def _rows(self, inner: Relaxation, constraint: Constraint) -> Rows:
        sign = -1.0 if constraint.sense == ">=" else 1.0
        by_view: dict[str, list[tuple[int, float]]] = {}
        for c, view, index in constraint.terms:
            cell = int(np.ravel_multi_index(index, self.views[view]))
            by_view.setdefault(view, []).append((cell, sign * c))
        entries = []
        for view, pairs in by_view.items():
            cells, coefficients = zip(*pairs, strict=True)
            row = np.zeros(len(cells), dtype=np.int64)
            entries.append(Entries(inner.views[view][0], row, np.array(cells, dtype=np.int64), np.array(coefficients)))
        rhs = np.array([sign * constraint.bound])
        return Rows(constraint.name, tuple(entries), rhs, constraint.sense == "==", (1,))

    @sound
    def decode(
        self,
        *,
        max_iterations: int = 500,
        time_limit: float | None = None,
        exact: bool = True,
        step: StepRule[Any] | None = None,
    ) -> Result[Y]:
        if self._mask is not None:
            solution = self.problem.solve(self._mask)
            return self.proved(solution.structure, solution.value, kind=self.problem.certificate_kind)
        return branch.decode(self, max_iterations=max_iterations, time_limit=time_limit, exact=exact, step=step)

    def solve(self, penalties: Penalties | None = None) -> Solution[Y]:
        if self._mask is not None:
            return self.problem.solve(self._masked(penalties))
        result = branch.climb(self, self.relaxation().penalised(penalties))
        return Solution(result.structure, result.score)

    @sound_list
    def kbest(self, k: int) -> list[Result[Y]]:
        """The k best structures, found by asking the problem for more and more of its own and leaving out the others.

        Exact. Fast when constraints are mild; asks for every structure when fewer than k satisfy the constraints.
        """
        as_positive_int("k", k)
        if self._forest is not None:
            listed = ((self.from_edges(edges), value) for edges, value in self._forest.kbest(k))
            return [self.proved(y, v, kind="dynamic program", rank=rank) for rank, (y, v) in enumerate(listed, start=1)]
        best = self.decode()  # raises Infeasible when there is nothing to look for
        if k == 1:
            return [best]
        asked = 2 * k
        while True:
            found = self.problem.kbest(asked)
            kept = [r for r in found if not self.violated(r.structure)][:k]
            if len(kept) == k or len(found) < asked:
                first, *others = kept
                proved = with_proof_of(first, best, self.terms(first.structure))
                return [proved, *(self._ranked(r, rank, best) for rank, r in enumerate(others, 2))]
            asked *= 4

    def _ranked(self, result: Result[Y], rank: int, best: Result[Y]) -> Result[Y]:
        """Whoever checks the rank does so under multipliers, with more to round than the list was made with."""
        scores, c = partial(self.terms, result.structure), result.certificate
        error = max(MULTIPLIED * best.certificate.tolerance, c.tolerance) / WIDTH
        return replace(result, certificate=certified(scores, c.score, c.bound, error, kind=c.kind, rank=rank))

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        fixed = require(view, index) if value else forbid(view, index)
        return type(self)(self.problem, (*self.constraints, fixed))

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return {"problem": problem_to_json(self.problem), "constraints": [c.to_json() for c in self.constraints]}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        constraints = [Constraint.from_json(c) for c in given["constraints"].items()]
        problem = problem_from_json(given["problem"])
        return given.made(lambda: cls(problem, constraints))

    def structure_to_json(self, structure: Y) -> Any:
        return self.problem.structure_to_json(structure)

    def structure_from_json(self, data: Any) -> Y:
        return self.problem.structure_from_json(data)
