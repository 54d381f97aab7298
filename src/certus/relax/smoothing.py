r"""Multipliers by a smooth stand-in for the dual function: each maximum becomes a logarithm of a sum of exponentials.

    L_b(u)  =  sum_i 1/b log sum_y exp( b (score_i(y) + (A'u) . y) )  -  u . rhs

is at least L(u), and near it for large b. It is convex and has a gradient, the marginals of the subproblems, so that a
quasi-Newton method lowers it by far longer steps than a subgradient allows ([Nesterov05]_, with the method of [Liu89]_
in place of his); b grows while L itself falls. What it finds is believed no more than any other multipliers.
"""

from certus.checks import Floats
from certus.relax.descent import Descent
from certus.relax.lagrangian import Lagrangian
from certus.relax.sums import Sums
from certus.relax.system import Relaxation

FIRST = 2.0  # b, for scores of the size of 1
FACTOR = 4.0  # by which b grows
MOST = 1e6
ROUGH = 4.0  # gaps by which the first may be above the dual function
STEPS = 40  # with each b
STEPS_AGAIN = 15  # the same from multipliers that were found like that
LITTLE = 0.01  # of the gap: a b that lowers the bound by less is the last one
USEFUL = 0.5  # of the gap, which it must have closed at first to be tried again


class Smoothing:
    """The dual function of a relaxation of dynamic programs, smoothed: first little by little less, then as at last."""

    def __init__(self, relaxation: Relaxation) -> None:
        self._sums = Sums(relaxation, FIRST / relaxation.scale)
        self._most, self._steps, self.useful = MOST / relaxation.scale, STEPS, MOST > 0

    def better(self, at: Descent[Lagrangian], oracle: Lagrangian, score: float) -> Floats:
        """From the best multipliers of a descent to better ones, but no lower than to a score."""
        x, u, best, sums = at.best_u, at.best_u, at.best, self._sums
        sums.fixings = oracle.fixings
        while sums.power < self._most and sums.ask(x)[0] - best > ROUGH * (best - score):
            sums.power *= FACTOR
        while best > score and not at.run.out_of_time:
            x = sums.lowered(x, self._steps, score, lambda: at.run.out_of_time)
            found, before = oracle.ask(x).value, best
            if found < best:
                u, best = x, found
            if sums.power >= self._most or (best < at.best and before - best < LITTLE * (before - score)):
                break
            sums.power *= FACTOR
        if self._steps == STEPS:
            self._steps, self.useful = STEPS_AGAIN, at.best - best >= USEFUL * (at.best - score)
        sums.power /= FACTOR
        return u
