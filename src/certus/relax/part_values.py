"""Max-marginals of a problem that is decoded by relaxation: the best structure with each part, by bounds and searches.

Every structure that is met on the way is a lower bound for all of its parts, and the max-marginals of the subproblems
under the multipliers of the best structure are upper bounds. Where the two differ, the best structure with the part is
searched for, above the lower bound alone.
"""

from collections.abc import Callable
from dataclasses import replace
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus.checks import Floats
from certus.errors import Infeasible, LimitReached
from certus.problem import Index, PartBounds, Problem
from certus.relax.branch import ROOT_WINDOW, Fixed
from certus.relax.fixing import part_bounds
from certus.relax.ranked import ITERATIONS, first_multipliers
from certus.relax.run import Run
from certus.relax.search import Node, Part, Search, Space
from certus.relax.steps import polyak
from certus.relax.system import Relaxation


class PartRun(Run[Any]):
    """A run that looks for the best structure with one part after another; ``lower`` is the best met, by flat part."""

    def __init__(
        self, parts: list[Part], used: Callable[[Any], NDArray[np.bool_]], scale: float, time_limit: float | None
    ) -> None:
        super().__init__(scale=scale, time_limit=time_limit)
        self.parts, self.used = parts, used
        self.lower = np.full(len(parts), -inf)
        self.aim: int | None = None

    def look_for(self, part: int) -> None:
        """From now on the incumbent is the best structure with this part."""
        self.aim, self.score = part, float(self.lower[part])
        self.structure = None if self.score == -inf else ()

    def offer(self, structure: Any, score: float) -> None:
        used = self.used(structure)
        self.lower[used] = np.maximum(self.lower[used], score)
        if self.aim is None or used[self.aim]:
            super().offer(structure, score)


def best_with_each(run: PartRun, space: Space[Any], root: Node[Any], upper: Floats) -> Floats:
    """Close the gap between ``run.lower`` and ``upper``, as far as time allows; returns the upper bounds then."""
    upper = np.maximum(upper, run.lower)
    for at in np.argsort(-upper, kind="stable").tolist():
        run.look_for(at)
        if run.closes(float(upper[at]), lambda: space.error(root), space.lowest):
            upper[at] = run.lower[at]
            continue
        if run.out_of_time:
            continue
        node = Node(space.fixed(root.decided, run.parts[at], 1), root.multipliers, float(upper[at]), root.evidence)
        space.relax(node)
        search = Search(run, space, node)
        search.climb(exact=True)
        upper[at] = max(run.lower[at], min(upper[at], search.left()))
    np.maximum(upper, run.lower, out=upper)  # rounding may have taken a bound below what another search found
    return upper


def flat_parts(views: dict[str, Index]) -> list[Part]:
    """All parts of the views, one view after the other."""
    return [(v, k) for v, shape in views.items() for k in range(prod(shape))]


def by_view(views: dict[str, Index], flat: Floats) -> dict[str, Floats]:
    """What ``flat_parts`` laid out, view by view."""
    ends = np.cumsum([prod(shape) for shape in views.values()])
    return {v: part.reshape(views[v]) for v, part in zip(views, np.split(flat, ends[:-1]), strict=True)}


def max_marginal_bounds(problem: Problem[Any], time_limit: float | None = None) -> PartBounds:
    """Of any problem: through its relaxation if it has one, else by decoding it with each part required."""
    if problem.relaxation() is None:
        return _one_by_one(problem, time_limit)
    best = problem.decode(time_limit=time_limit)
    views = dict(problem.views)
    relaxation = replace(Relaxation.of(problem), shown=tuple(views))

    def used(leaves: Any) -> NDArray[np.bool_]:
        structure = relaxation.assemble(leaves)
        return np.concatenate([problem.indicator(structure, view).ravel() > 0 for view in views])

    run = PartRun(flat_parts(views), used, relaxation.scale, time_limit)
    space = Fixed(run, relaxation, polyak())
    run.offer(tuple(relaxation.leaves(best.structure)), best.score)
    root = space.root(first_multipliers(relaxation, best), ITERATIONS, ROOT_WINDOW)
    bounds = part_bounds(space.subproblems, root.multipliers, root.decided)
    upper = best_with_each(run, space, root, np.concatenate([bounds[view].ravel() for view in views]))
    return PartBounds(by_view(views, run.lower), by_view(views, upper))


def _one_by_one(problem: Problem[Any], time_limit: float | None) -> PartBounds:
    """Of a problem with an algorithm of its own."""
    best, views = problem.decode(time_limit=time_limit), dict(problem.views)
    parts = flat_parts(views)

    def used(structure: Any) -> NDArray[np.bool_]:
        return np.concatenate([problem.indicator(structure, view).ravel() > 0 for view in views])

    run = PartRun(parts, used, problem.extent().size, time_limit)
    run.offer(best.structure, best.score)
    upper = np.full(len(parts), best.certificate.bound)
    for at, (view, index) in enumerate(parts):
        if not upper[at] > run.lower[at] or run.out_of_time:
            continue
        left = None if time_limit is None else max(time_limit - run.clock.seconds, 1e-3)
        cell = tuple(int(i) for i in np.unravel_index(index, views[view]))
        try:
            found = problem.with_fixed(view, cell, 1).decode(time_limit=left)
        except Infeasible:
            upper[at] = -inf
            continue
        except LimitReached:
            continue
        run.offer(found.structure, found.score)
        upper[at] = found.score if found.certificate.exact else found.certificate.bound
    return PartBounds(by_view(views, run.lower), by_view(views, np.maximum(upper, run.lower)))
