"""Relaxations made tighter where descent stalls with a gap: by further pieces, then by cuts.

Every bound holds as before, and so do the multipliers: what is new begins at 0 and adds nothing to the bound.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from certus.checks import Floats
from certus.errors import Infeasible
from certus.relax.cuts import DENSE, Separation, with_cuts
from certus.relax.descent import Descent
from certus.relax.fixing import max_marginals
from certus.relax.lagrangian import Lagrangian, Subproblems
from certus.relax.normal_form import RelaxedForm
from certus.relax.proof import Cut, Leaf, Tighter
from certus.relax.system import Pieces, Relaxation

ROUNDS = 8  # of tightening
SHARE = 0.3  # of the gap, which a round must close for another one
CUTS = 30  # of one round


class Tightening:
    """A relaxation and what was added to it."""

    def __init__(self, base: Relaxation) -> None:
        self.base, self.pieces, self.cuts = base, Pieces(), tuple[Cut, ...]()
        self._bound, self._rounds = np.inf, 0

    def proof(self, rest: Any) -> Tighter:
        """The proof of what was proved of the tighter relaxation."""
        return Tighter(self.pieces, self.cuts, Leaf(rest) if isinstance(rest, Mapping) else rest)

    def found(self, subproblems: Subproblems, at: Descent[Lagrangian]) -> Relaxation | None:
        """A tighter relaxation, for what the best multipliers show; None if there is none, or the last did not help."""
        gap = self._bound - at.run.score
        if self._rounds == ROUNDS or (self._rounds and not self._bound - at.best >= SHARE * gap):
            return None
        self._bound, self._rounds = at.best, self._rounds + 1
        wider = None if self.cuts else self._wider(subproblems, at)
        return self._cut(at) if wider is None else wider

    def _wider(self, subproblems: Subproblems, at: Descent[Lagrangian]) -> Relaxation | None:
        """With one more piece."""
        wider = subproblems.relaxation.wider
        if wider is None or len(self.pieces) >= wider.most:
            return None
        losses = _losses(subproblems, at)
        piece = wider.proposed(losses, subproblems.relaxation.scale) if losses else ()
        if not piece or piece in self.pieces:
            return None
        self.pieces = (*self.pieces, piece)
        return self.base.with_pieces(self.pieces)

    def _cut(self, at: Descent[Lagrangian]) -> Relaxation | None:
        """With more cuts, those that the solution of the linear program breaks, where it is small enough for one."""
        relaxation = self.base.with_pieces(self.pieces)
        point = at.oracle.solution
        if point is None or relaxation.n_rows * relaxation.n_cells > DENSE:
            return None

        @cache
        def form() -> RelaxedForm:
            return RelaxedForm.of(relaxation)

        @cache
        def once(cell: int) -> bool:
            part = form().part[cell : cell + 1]
            return bool(part[0] < 0 or form().evaluation.at_most_one(part))

        more = [cut for cut in Separation(relaxation, point, once).cuts(CUTS) if cut not in self.cuts]
        if not more:
            return None
        self.cuts = (*self.cuts, *more)
        return with_cuts(relaxation, self.cuts)


def _losses(subproblems: Subproblems, at: Descent[Lagrangian]) -> list[Mapping[str, Floats]]:
    """What each subproblem loses by each cell of its views, under the best multipliers; none if that is not known."""
    r, fixings = subproblems.relaxation, at.oracle.fixings
    penalty, found = r.penalties(at.best_u, fixings), list[Mapping[str, Floats]]()
    try:
        for i in range(len(r.subproblems)):
            value, best = subproblems.solve(i, penalty, fixings.ones).value, max_marginals(r, i, penalty, fixings)
            if best is None:
                break
            found.append({view: np.maximum(value - most, 0.0) for view, most in best.items()})
    except Infeasible:
        return []
    return found
