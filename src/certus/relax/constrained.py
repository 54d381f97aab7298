"""Problems subject to constraints: what ``subject_to`` makes.

Parts that are forbidden or required go into the problem itself, automata into its hypergraph, and every question keeps
its answer. What ties parts becomes rows, which are relaxed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from certus.certificates.rounding import EPSILON, EXACT, MASK, WIDTH, Extent, allowed
from certus.certificates.sound import sound_list
from certus.checks import Floats, as_positive_int
from certus.draw import Picture
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph.readings import Reading
from certus.problem import Index, Limits, Penalties, Problem, problem_from_json, problem_to_json
from certus.relax import branch, ranked
from certus.relax.constraints import Constraint, forbid, require
from certus.relax.soft import Slack
from certus.relax.system import Entries, Relaxation, Rows
from certus.result import Result, Solution, certified, with_proof_of
from certus.schema import Field

Y = TypeVar("Y")
MOST_ASKED = 32  # structures of a problem without its constraints, for each that is wanted


class Constrained(Problem[Y]):
    """A problem restricted to the structures that satisfy linear constraints on its parts, or pay for what they break.

    The constraints are relaxed by Lagrange multipliers and the ladder climbed; ``decode``, ``kbest`` and
    ``max_marginals`` are answered, the last two without penalties; sums are bounded and estimated. Certificate kind:
    "dual" or "branch and bound". Constraints that no structure satisfies raise Infeasible, which branch and bound
    proves. ``problem.subject_to(...)`` makes one where constraints do more than forbid or require parts.
    """

    name = "constrained"

    def __init__(self, problem: Problem[Y], constraints: Iterable[Constraint]) -> None:
        self.problem = problem
        self.constraints = tuple(constraints)
        self.exclusive = problem.exclusive  # type: ignore[misc]
        for constraint in self.constraints:
            _check(problem, constraint)

    @classmethod
    def of(cls, problem: Problem[Y], constraints: Iterable["Constraint | Reading"]) -> Problem[Y]:
        """The problem subject to the constraints: of its own kind where these only forbid or require parts."""
        given = tuple(constraints)
        if isinstance(problem, Constrained):
            given, problem = (*problem.constraints, *given), problem.problem
        linear = [c for c in given if isinstance(c, Constraint)]
        readings = [c for c in given if isinstance(c, Reading)]
        for c in given:
            if not isinstance(c, Constraint | Reading):
                raise InvalidInput(f"{c!r} is not a constraint; make one with certus.constraints.")
        for c in linear:
            _check(problem, c)
        rows = [c for c in linear if c.decides is None]
        for c in linear:
            # Beside rows, a part that has no rivals is better required by the relaxation: it need not change a graph.
            if c.decides == 0 or (c.decides == 1 and (not rows or c.terms[0][1] in problem.exclusive)):
                try:
                    problem = _decided(problem, c)
                except NotSupported:
                    rows.append(c)
            elif c.decides == 1:
                rows.append(c)
        for reading in readings:
            problem = reading.restricted(problem)
        return cls(problem, rows) if rows else problem

    def __repr__(self) -> str:
        return f"Constrained({self.problem!r}, {len(self.constraints)} constraints)"

    @property
    def has_sequence(self) -> bool:
        return self.problem.has_sequence

    # -- structures ------------------------------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, Index]:
        return self.problem.views

    def indicator(self, structure: Y, view: str) -> Floats:
        return self.problem.indicator(structure, view)

    def _used(self, structure: Y) -> dict[str, Floats]:
        """The indicators of all views that constraints speak of."""
        views = {view for c in self.constraints for _, view, _ in c.terms}
        return {view: self.problem.indicator(structure, view) for view in views}

    def violated(self, structure: Y) -> list[Constraint]:
        """The constraints a structure breaks, those that it may break at a price included."""
        used = self._used(structure)
        return [c for c in self.constraints if not c.holds(used)]

    def terms(self, structure: Y) -> Sequence[float] | Floats:
        scores, used = self.problem.terms(structure), self._used(structure)
        if not all(c.soft or c.holds(used) for c in self.constraints):
            return [-np.inf]
        return (
            [*map(float, scores), *(x for slack in self._slacks for x in slack.terms(used))] if self._slacks else scores
        )

    def picture(self, structure: Y, words: Sequence[str] | None = None) -> Picture:
        return self.problem.picture(structure, words)

    def all_structures(self) -> Iterator[Y]:
        return (y for y in self.problem.all_structures() if all(c.soft for c in self.violated(y)))

    @cached_property
    def _slacks(self) -> tuple[Slack, ...]:
        """Of the soft constraints; a part is used no more often than a score has terms."""
        most = max(self.problem.extent().length, 1)
        uses = {view: 1 if view in self.problem.exclusive else most for view in self.views}
        return tuple(Slack(c, uses) for c in self.constraints if c.soft)

    def extent(self) -> Extent:
        extent = self.problem.extent()
        for slack in self._slacks:
            extent = extent.joined(Extent(slack.over + slack.under, float(slack.costs.min()), 0.0))
        return extent

    def all_scores(self) -> Iterable[Floats] | None:
        scores = self.problem.all_scores()
        return None if scores is None else [*scores, *(slack.costs for slack in self._slacks)]

    def error_at(self, value: float) -> float:
        return self.problem.error_at(value) if not self._slacks else super().error_at(value)

    def without_scores_below(self, least: float) -> Self:
        """A constraint whose every violation costs more than that is none that may be broken."""
        cheap = {slack.constraint: slack.constraint.penalty * float(slack.step) <= -least for slack in self._slacks}
        kept = (c if cheap.get(c, True) else replace(c, penalty=np.inf) for c in self.constraints)
        return type(self)(self.problem.without_scores_below(least), kept)

    def with_scores_rounded_up(self, step: float) -> Self:
        """With penalties rounded down so far that the least violation of each costs a multiple of the step."""
        units = {slack.constraint: float(slack.step) for slack in self._slacks}  # powers of two

        def down(c: Constraint) -> Constraint:
            unit = units.get(c, 1.0)
            return replace(c, penalty=np.floor(c.penalty * unit / step) * step / unit) if c.soft else c

        return type(self)(self.problem.with_scores_rounded_up(step), map(down, self.constraints))

    def with_fixed(self, view: str, index: Index, value: int) -> Problem[Y]:
        return type(self).of(self, [require(view, index) if value else forbid(view, index)])

    # -- decoding --------------------------------------------------------------------------------------------------

    def relaxation(self) -> Relaxation:
        """The problem's own relaxation with the constraints as rows, and what they decide as fixings."""
        inner = Relaxation.of(self.problem)
        rows, fixed = [], []
        for c in self.constraints:
            for _, view, index in c.terms if c.decides is not None else ():
                fixed.append((view, int(np.ravel_multi_index(index, self.views[view])), int(c.decides or 0)))
            # Where a part is required by forbidding its rivals, structures might still use none of them.
            exclusive = [v in inner.subproblems[inner.views[v][0][0]].exclusive for _, v, _ in c.terms]
            if not c.soft and (c.decides is None or (c.decides == 1 and all(exclusive))):
                rows.append(self._rows(inner, c))
        whole = inner.with_rows(rows, fixed)
        return self._softened(whole) if self._slacks else whole

    def _softened(self, inner: Relaxation) -> Relaxation:
        """With a subproblem and a row for each soft constraint."""
        first, slacks = len(inner.subproblems), self._slacks
        names = [f"excess of {slack.constraint.name}" for slack in slacks]
        names = [f"{name} #{k}" if names.count(name) > 1 else name for k, name in enumerate(names)]
        rows = []
        for k, slack in enumerate(slacks):
            own, edges = self._rows(inner, slack.constraint), np.flatnonzero(slack.value)
            digits = Entries((first + k, "edges"), np.zeros_like(edges), edges, -slack.value[edges])
            most = slack.constraint.penalty
            box = (-most, most if slack.constraint.sense == "==" else 0.0)
            rows.append(replace(own, entries=(*own.entries, digits), equality=True, slack=np.zeros(1), box=box))

        def leaves(structure: Y) -> list[Any]:
            used = self._used(structure)
            return [*inner.leaves(structure), *(slack.structure(used) for slack in slacks)]

        softened = replace(
            inner,
            subproblems=(*inner.subproblems, *(slack.problem for slack in slacks)),
            weights=(*inner.weights, *(1.0 for _ in slacks)),
            views={**inner.views, **{name: ((first + k, "edges"),) for k, name in enumerate(names)}},
            assemble=lambda found: inner.assemble(found[:first]),
            leaves=leaves,
            excesses=(*inner.excesses, *names),
            led=inner.led or first == 1,
            wider=None,
        )
        return softened.with_rows(rows)

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

    def _decode(self, limits: Limits) -> Result[Y]:
        return branch.decode(self, limits)

    def solve(self, penalties: Penalties | None = None) -> Solution[Y]:
        result = branch.climb(self, self.relaxation().penalised(penalties))
        return Solution(result.structure, result.score)

    @sound_list
    def kbest(self, k: int) -> list[Result[Y]]:
        """The k best structures.

        A problem with an algorithm of its own is asked for more and more of its own, and the others are left out, while
        that is not too many. Then, and else, what is left without those found is partitioned (certus.relax.ranked).
        """
        as_positive_int("k", k)
        best = self.decode()  # raises Infeasible when there is nothing to look for
        if k == 1:
            return [best]
        asked = 2 * k
        while self.problem.relaxation() is None and asked <= MOST_ASKED * k:
            found = self.problem.kbest(asked)
            kept = [r for r in map(self._priced, found) if r.score > -np.inf]
            kept = sorted(kept, key=lambda r: -r.score)[:k]  # penalties are never negative
            if len(found) < asked or (len(kept) == k and kept[-1].score >= found[-1].score):
                first, *others = kept
                proved = with_proof_of(first, best, self.terms(first.structure))
                return [proved, *(self._ranked(r, rank, best) for rank, r in enumerate(others, 2))]
            asked *= 4
        return ranked.kbest(self, k)

    def _priced(self, result: Result[Y]) -> Result[Y]:
        """A result of the problem with what it scores here."""
        if not self._slacks:
            return result if not self.violated(result.structure) else replace(result, score=-np.inf)
        score, c = self.score(result.structure), result.certificate
        return replace(result, score=score, certificate=replace(c, score=score, bound=c.bound + (score - c.score)))

    def _ranked(self, result: Result[Y], rank: int, best: Result[Y]) -> Result[Y]:
        """Whoever checks the rank does so under multipliers, with more to round than the list was made with."""
        c, scores = result.certificate, self.terms(result.structure)
        least = max(best.certificate.tolerance, c.tolerance)
        tolerance = max(least, min(ranked.MULTIPLIED * best.certificate.tolerance, allowed(scores)))
        if self._slacks:  # digits of what a row is missed by are priced as well: as much as a proof may have
            rounded = 2.0 * WIDTH * ranked.MULTIPLIED * EPSILON * abs(c.score)
            tolerance = max(tolerance, EXACT * min(abs(c.score), MASK), rounded)
        proved = certified(lambda: scores, c.score, c.bound, tolerance / WIDTH, kind=c.kind, rank=rank)
        return replace(result, certificate=proved)

    def _not_supported(self, question: str) -> NotSupported:
        return NotSupported(
            f"{question}() under constraints that tie parts has no tractable answer: counting what satisfies them is "
            "#P-hard. Ask decode(), kbest(k), max_marginals(), log_partition_bounds() or marginal_estimates()."
        )

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


def _check(problem: Problem[Any], constraint: Constraint) -> None:
    """InvalidInput for a constraint on parts that the problem does not have."""
    if not isinstance(constraint, Constraint):
        raise InvalidInput(f"{constraint!r} is not a constraint; make one with certus.constraints.")
    for _, view, index in constraint.terms:
        shape = problem.checked_view(view)
        if constraint.shape is not None and constraint.shape != shape:
            raise InvalidInput(f"{constraint}: costs have shape {constraint.shape}; view {view} has {shape}.")
        if len(index) != len(shape) or not all(0 <= k < size for k, size in zip(index, shape, strict=True)):
            raise InvalidInput(f"{constraint}: {view}{list(index)} is outside the view, of shape {shape}.")


def _decided(problem: Problem[Y], constraint: Constraint) -> Problem[Y]:
    """The problem with all parts of a constraint fixed to what it decides."""
    for _, view, index in constraint.terms:
        problem = problem.with_fixed(view, index, int(constraint.decides or 0))
    return problem
