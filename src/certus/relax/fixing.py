"""Reduced-cost fixing: parts that no structure better than the incumbent can use are removed for good.

At multipliers u the best penalised value of any structure of subproblem i that uses a part is its max-marginal; what
all subproblems lose by using their copies bounds every structure of the whole that uses the part. Where that bound is
not above the incumbent's score, the part is forbidden in every copy.
"""

import numpy as np

from certus.checks import Floats
from certus.errors import Infeasible, NotSupported
from certus.relax.lagrangian import Subproblems
from certus.relax.proof import Removed
from certus.relax.quasi_newton import dot
from certus.relax.system import Fixings, Relaxation


def part_bounds(subproblems: Subproblems, multipliers: Floats, fixings: Fixings) -> dict[str, Floats]:
    """For each view, a bound on every structure that uses each part, under fixings; inf where nothing is known.

    Subproblems have nothing to do with one another under multipliers: what each loses by using its copy adds up.
    """
    r = subproblems.relaxation
    penalty = r.penalties(multipliers, fixings)
    values = [subproblems.solve(i, penalty, fixings.ones).value for i in range(len(r.subproblems))]
    total = sum(values) - dot(multipliers, r.rhs) + dot(np.abs(multipliers), r.slack)
    asked = (i not in r.measuring for i in range(len(r.subproblems)))
    best = [max_marginals(r, i, penalty, fixings) if known else None for i, known in enumerate(asked)]
    out = {}
    for view, blocks in r.views.items():
        out[view] = np.full(r.shape_of(blocks[0]), total)
        for i in {block[0] for block in blocks if best[block[0]] is not None}:
            mine = [best[i][v] for j, v in blocks if j == i and (j, v) in r.offsets]  # type: ignore[index]
            if mine:
                out[view] += np.minimum(np.min(mine, axis=0) - values[i], 0.0)
    return out


def max_marginals(r: Relaxation, i: int, penalty: Floats, fixings: Fixings) -> dict[str, Floats] | None:
    """Of a subproblem, weighted; None if it has none."""
    asked, offset = r.question(i, penalty, fixings.ones)
    try:
        return {view: r.weights[i] * best + offset for view, best in r.subproblems[i].max_marginals(asked).items()}
    except NotSupported:
        return None


def removable(subproblems: Subproblems, multipliers: Floats, fixings: Fixings, score: float) -> tuple[Removed, ...]:
    """Parts that nothing better than ``score`` uses, by view."""
    r, removed = subproblems.relaxation, []
    try:
        bounds = part_bounds(subproblems, multipliers, fixings)
    except Infeasible:
        return ()
    for view, bound in bounds.items():
        blocks = [block for block in r.views[view] if block in r.offsets]
        starts = [r.offsets[block] for block in blocks]
        low = (bound <= score).ravel()
        for i, inner in blocks:  # a line that no structure uses, as the arcs into the root, proves nothing
            if inner in r.subproblems[i].exclusive:
                reached = bound.max(axis=r.subproblems[i].exclusive[inner], keepdims=True) > -np.inf
                low &= np.broadcast_to(reached, bound.shape).ravel()
        for start in starts:
            low &= ~fixings.zeros[start : start + bound.size]
        if blocks and low.any():
            removed.append(Removed(view, tuple(np.flatnonzero(low).tolist())))
    return tuple(removed)


def without(relaxation: Relaxation, fixings: Fixings, removed: tuple[Removed, ...]) -> Fixings:
    """The fixings with these parts forbidden in every copy."""
    zeros = fixings.zeros.copy()
    for part in removed:
        for block in relaxation.views[part.view]:
            if block in relaxation.offsets:
                zeros[relaxation.offsets[block] + np.array(part.indices, dtype=np.int64)] = True
    return Fixings(zeros, fixings.ones)
