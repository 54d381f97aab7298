"""Two problems that must agree: joint decoding by dual decomposition (LR 4.2)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from math import frexp, isfinite
from typing import Any, Self

import numpy as np

from certus.certificates.rounding import Extent
from certus.certificates.sound import sound, sound_list
from certus.checks import Floats, as_positive_int
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.factors import FactorGraph, merged
from certus.hypergraph import Forest
from certus.problem import Index, Penalties, Problem, problem_from_json, problem_to_json
from certus.relax import branch
from certus.relax.descent import descend
from certus.relax.lagrangian import Lagrangian, Subproblems
from certus.relax.run import Run
from certus.relax.steps import StepRule, polyak
from certus.relax.system import Relaxation
from certus.result import Result, Solution, certified, with_proof_of
from certus.schema import Field

Pair = tuple[Any, Any]


class Joint(Problem[Pair]):
    r"""The best pair of structures, one of each problem, that agree on a view.

    Solves  max over (y, z) of  a.score(y) + weight * b.score(z)  such that y and z use the same parts of the view
    ``on``: the same tag for every word, the same head for every word. Each problem keeps its own fast algorithm;
    Lagrange multipliers bring the two to agree. When they do not, parts are removed and branched on until the optimum
    is proved. Certificate kind: "dual" or "branch and bound".

    Parameters
    ----------
    a, b : Problem
        Both have the view ``on``, in one shape. If both have names of ``tags``, these are equal. Either may be a Joint
        itself: ``Joint(Joint(a, b, on="tags"), c, on="arcs")`` ties three, and the three are relaxed together. The
        first problem leads when candidates are made, so it is best the one with the harder structures.
    on : str
        Name of the view, such as "tags" or "arcs". In a Joint that does not share this view itself, it is that of the
        one side that has it: "0.arcs" is found by "arcs".
    weight : float
        What a score of b is worth (LR eq. 4.11); positive.
    merge : bool
        Two problems that score labels by tables (taggings, factor graphs) are one such problem when put together, and
        are decoded as one where that is small: without multipliers, so without a gap. False relaxes them all the same.

    Structures are tuples (y, z). The view ``on`` is shared; the others are called "0.name" and "1.name".

    Examples
    --------
    >>> from certus import Joint, Tagging
    >>> a = Tagging([[0, 1], [0, 0]], bigram=[[2, 0], [0, 0]])
    >>> b = Tagging([[0, 0], [0, 3]])
    >>> Joint(a, b, on="tags").decode().score
    4.0
    """

    name = "joint"

    def __init__(self, a: Problem[Any], b: Problem[Any], *, on: str, weight: float = 1.0, merge: bool = True) -> None:
        for side, problem in (("a", a), ("b", b)):
            if not isinstance(problem, Problem):
                raise InvalidInput(f"{side} is {type(problem).__name__}; expected a problem.")
        self.on_a, self.on_b = _view_called(a, on), _view_called(b, on)
        shapes = a.views[self.on_a], b.views[self.on_b]
        if shapes[0] != shapes[1]:
            raise InvalidInput(f"view {on!r} has shape {shapes[0]} in a and {shapes[1]} in b; they must be equal.")
        self.tags = _common_tags(a.tags, b.tags) if on == "tags" else None
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not (isfinite(weight) and weight > 0):
            raise InvalidInput(f"weight is {weight!r}; expected a positive number.")
        self.a, self.b, self.on, self.weight, self.merge = a, b, on, float(weight), merge

    def __repr__(self) -> str:
        return f"Joint({self.a!r}, {self.b!r}, on={self.on!r}, weight={self.weight:g})"

    # -- structures ------------------------------------------------------------------------------------------------

    @cached_property
    def views(self) -> Mapping[str, Index]:
        sides = [(0, self.a.views, self.on_a), (1, self.b.views, self.on_b)]
        out = {self.on: self.a.views[self.on_a]}
        return out | {f"{k}.{v}": s for k, views, shared in sides for v, s in views.items() if v != shared}

    def _checked(self, structure: Pair) -> Pair:
        if not isinstance(structure, tuple) or len(structure) != 2:
            raise InvalidInput(f"structure is {type(structure).__name__}; expected a pair (y, z).")
        return structure

    def indicator(self, structure: Pair, view: str) -> Floats:
        self.checked_view(view)
        y, z = self._checked(structure)
        if view == self.on:
            return self.a.indicator(y, self.on_a)
        side, _, inner = view.partition(".")
        return self.a.indicator(y, inner) if side == "0" else self.b.indicator(z, inner)

    def terms(self, structure: Pair) -> list[float]:
        y, z = self._checked(structure)
        scores = [*map(float, self.a.terms(y)), *(self.weight * float(x) for x in self.b.terms(z))]
        apart = np.argwhere(self.a.indicator(y, self.on_a) != self.b.indicator(z, self.on_b))
        if len(apart):
            raise InvalidInput(f"the two structures do not agree on {self.on}{apart[0].tolist()}.")
        return scores

    def all_structures(self) -> Iterator[Pair]:
        by_parts: dict[bytes, list[Any]] = {}
        for z in self.b.all_structures():
            by_parts.setdefault(self.b.indicator(z, self.on_b).tobytes(), []).append(z)
        for y in self.a.all_structures():
            for z in by_parts.get(self.a.indicator(y, self.on_a).tobytes(), []):
                yield y, z

    def extent(self) -> Extent:
        return self.a.extent().joined(self.b.extent(), self.weight)

    def all_scores(self) -> list[Floats] | None:
        a, b = self.a.all_scores(), self.b.all_scores()
        return None if a is None or b is None else [*a, *(self.weight * scores for scores in b)]

    def without_scores_below(self, least: float) -> Self:
        a, b = self.a.without_scores_below(least), self.b.without_scores_below(least / self.weight)
        return type(self)(a, b, on=self.on, weight=self.weight, merge=self.merge)

    def with_scores_rounded_up(self, step: float) -> Self:
        if frexp(self.weight)[0] != 0.5:
            raise NotSupported(f"scores times {self.weight:g} are rounded, unless they are times a power of two.")
        a, b = self.a.with_scores_rounded_up(step), self.b.with_scores_rounded_up(step / self.weight)
        return type(self)(a, b, on=self.on, weight=self.weight, merge=self.merge)

    # -- questions -------------------------------------------------------------------------------------------------

    @cached_property
    def _merged(self) -> FactorGraph | None:
        """Both as one factor graph, where they are that together and their tables are small."""
        a, b = (self.a.factors(), self.b.factors()) if self.merge else (None, None)
        return None if a is None or b is None else merged(a, b, self.weight)

    def relaxation(self) -> Relaxation:
        """That of both as one factor graph, or both side by side, with a row for every part of the shared view."""
        if self._merged is None:
            return self._tied()
        inner = Relaxation.of(self._merged)
        return replace(
            inner,
            views={self.on: inner.views["labels"]},
            assemble=lambda leaves: (labels := inner.assemble(leaves), labels),
            leaves=lambda pair: inner.leaves(pair[0]),
            shown=(self.on,) if inner.shown else (),
        )

    def _tied(self) -> Relaxation:
        return Relaxation.of(self.a).joined(Relaxation.of(self.b), self.on, self.weight, self.on_a, self.on_b)

    @sound
    def decode(
        self,
        *,
        max_iterations: int = 500,
        time_limit: float | None = None,
        exact: bool = True,
        step: StepRule[Any] | None = None,
    ) -> Result[Pair]:
        """The best pair. ``step`` is a rule of certus.relax.steps; see certus.relax.branch.climb for the limits.

        Raises Infeasible when no pair agrees, and LimitReached when the time ran out before a pair was found.
        """
        return branch.decode(self, max_iterations=max_iterations, time_limit=time_limit, exact=exact, step=step)

    @sound_list
    def kbest(self, k: int) -> list[Result[Pair]]:
        """The k best pairs, for two dynamic programs.

        Exact: goes through the k-best structures of a under the multipliers, completes each by its k-best partners, and
        ends when the multipliers show that no later structure of a can take part. Slow when the relaxation is loose.
        """
        if as_positive_int("k", k) == 1:
            return [self.decode()]
        a, b = self.a.forest(), self.b.forest()
        if a is None or b is None:
            raise NotSupported("kbest() of a joint problem needs two dynamic programs; ask decode().")
        best = self.decode()
        first, *others = self._ranked(a, b, k)
        return [with_proof_of(first, best, self.terms(first.structure)), *others]

    def _ranked(self, a: Forest, b: Forest, k: int) -> list[Result[Pair]]:
        relaxation = self._tied()
        subproblems = Subproblems(relaxation)
        oracle = Lagrangian(subproblems, subproblems.initial)
        origin, run = np.zeros(relaxation.n_rows), Run[Any](scale=relaxation.scale)
        u = descend(run, oracle, origin, polyak(), max_iterations=200, window=15).best_u
        penalty = relaxation.penalties(u, subproblems.initial)
        rest = subproblems.solve(1, penalty, ()).value
        error = max(self.error(), oracle.error(u))
        penalties = relaxation.question(0, penalty, ())[0]
        partners: dict[bytes, list[Any]] = {}
        asked, pairs, done = 2 * k, {}, 0
        while True:
            found = a.kbest(asked, penalties)
            for at in range(done, len(found)):
                y = self.a.from_edges(found[at][0])
                used = self.a.indicator(y, self.on)
                key = used.tobytes()
                if key not in partners:
                    partners[key] = self._partners(b, used, k)
                for j, z in enumerate(partners[key]):
                    pairs[at, j] = (self.score((y, z)), (y, z))
            done = len(found)
            best = sorted(pairs.items(), key=lambda item: (-item[1][0], item[0]))[:k]
            if len(found) < asked or (len(best) == k and best[-1][1][0] >= found[-1][1] + rest):
                return [self._listed(pair, s, rank, error) for rank, (_, (s, pair)) in enumerate(best, start=1)]
            asked *= 2

    def _listed(self, pair: Pair, score: float, rank: int, error: float) -> Result[Pair]:
        scores = partial(self.terms, pair)
        return Result(pair, score, certified(scores, score, score, error, kind="combinatorial", rank=rank))

    def _partners(self, forest: Forest, used: Floats, k: int) -> list[Any]:
        """The k best structures of b, whose forest is given, that use the given parts."""
        try:
            listed = forest.kbest(k, {self.on: np.where(used > 0, 0.0, -np.inf)})
        except Infeasible:
            return []
        found = (self.b.from_edges(edges) for edges, _ in listed)
        return [z for z in found if np.array_equal(used, self.b.indicator(z, self.on))]

    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        raise NotSupported(
            "max_marginals() of a joint problem takes one decoding per part; ask decode() with require()."
        )

    # -- for the engine, when a joint problem is part of another ---------------------------------------------------

    def solve(self, penalties: Penalties | None = None) -> Solution[Pair]:
        """Climbs the whole ladder: exact, and as costly as decode()."""
        result = branch.climb(self, self.relaxation().penalised(penalties))
        return Solution(result.structure, result.score)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return {
            "a": problem_to_json(self.a),
            "b": problem_to_json(self.b),
            "on": self.on,
            "weight": self.weight,
            "merge": self.merge,
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        a, b = (problem_from_json(given[side]) for side in ("a", "b"))
        on, weight = given["on"].text(), given["weight"].number()
        merge = given["merge"].flag() if "merge" in given else False  # older files have proofs of what is not merged
        return given.made(lambda: cls(a, b, on=on, weight=weight, merge=merge))

    def structure_to_json(self, structure: Pair) -> Any:
        y, z = self._checked(structure)
        return [self.a.structure_to_json(y), self.b.structure_to_json(z)]

    def structure_from_json(self, data: Any) -> Pair:
        y, z = Field.of(data, "structure").items(size=2)
        return self.a.structure_from_json(y), self.b.structure_from_json(z)


def _view_called(problem: Problem[Any], on: str) -> str:
    """The view of a problem that a name means: its own, or in a joint problem one of a side; InvalidInput if none."""
    found = [view for view in problem.views if view == on or view.endswith(f".{on}")]
    if on in found or len(found) != 1:
        problem.checked_view(on)
        return on
    return found[0]


def _common_tags(a: Any, b: Any) -> Any:
    """The names both sides use for their tags; InvalidInput that says where they differ."""
    if a is None or b is None:
        return a if b is None else b
    a, b = tuple(a), tuple(b)
    if a != b:
        only_a, only_b = sorted(set(a) - set(b)), sorted(set(b) - set(a))
        if only_a or only_b:
            sides = [f"only {s} has {', '.join(map(repr, tags))}" for s, tags in (("a", only_a), ("b", only_b)) if tags]
            found = ", ".join(sides)
        else:
            k = next(k for k, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
            found = f"tag {k} is {a[k]!r} in a and {b[k]!r} in b"
        raise InvalidInput(f"the problems have different tags: {found}. Give both the same tags in the same order.")
    return a
