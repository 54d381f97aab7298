"""The least value of a smooth convex function within a box, by limited memory BFGS over the coordinates that are free.

Scipy's minimiser factors a matrix of a few rows in each step, for which BLAS wakes its threads: with two processors
that took ten times longer than everything else together, and more the busier they were.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.checks import Floats

DECREASE = 1e-4  # share of what the slope promises that a step must bring
STEEP = (0.1, 0.9)  # of the first step and the others: shares of the slope that, if left at its end, ask for more
LONGER = 4.0  # how much more
TRIES = 20  # lengths of one step
CURVED = 1e-12  # steps along which the slope changes less tell nothing
FLAT = 1e-5  # no free coordinate with a larger slope: done
LITTLE = 1e-9  # a step that lowers the value by no more than this share of it: done

Ask = Callable[[Floats], tuple[float, Floats]]


class Least(NamedTuple):
    """Where the value was least, the value there, and steps."""

    x: Floats
    value: float
    steps: int


def dot(a: Floats, b: Floats) -> float:
    """a . b on one thread: a BLAS wakes others for vectors that are summed in a fraction of the time that takes."""
    return float(np.einsum("i,i->", a, b))


def least(ask: Ask, x: Floats, low: Floats, high: Floats, *, steps: int, memory: int, enough: float = -np.inf) -> Least:
    """Lower ``ask``, which gives value and gradient, from the point of the box next to x on, or as far as ``enough``.

    Steps bend at the sides of the box. A value that is not finite is that of a point too far away.
    """
    x = np.clip(x, low, high)
    value, gradient = ask(x)
    moved, turned = np.zeros((0, len(x))), np.zeros((0, len(x)))  # by the last steps: x, and the gradient
    for taken in range(steps):
        free = np.where(gradient > 0, x > low, x < high)
        slope = np.where(free, gradient, 0.0)
        if not enough < value < np.inf or not FLAT < np.abs(slope).max(initial=0.0) < np.inf:
            return Least(x, value, taken)
        step = -_turned(slope, free, moved, turned)
        first = not len(moved) or not -np.inf < dot(step, slope) < 0
        if first:
            moved, turned, step = moved[:0], turned[:0], -slope
        size = min(1.0, 1.0 / math.sqrt(dot(step, step))) if first else 1.0
        there = _line(ask, x, value, slope, (step, size, STEEP[0 if first else 1]), (low, high))
        if there is None:
            return Least(x, value, taken)
        before, (x, found, its_gradient), change = x, there, value
        if dot(x - before, its_gradient - gradient) > 0:
            moved = np.concatenate([moved[-memory + 1 :], [x - before]])
            turned = np.concatenate([turned[-memory + 1 :], [its_gradient - gradient]])
        value, gradient = found, its_gradient
        if change - value <= LITTLE * max(abs(change), abs(value), 1.0):
            return Least(x, value, taken + 1)
    return Least(x, value, steps)


def _line(
    ask: Ask, x: Floats, value: float, slope: Floats, step: tuple[Floats, float, float], box: tuple[Floats, Floats]
) -> tuple[Floats, float, Floats] | None:
    """A point along a step that is low enough for its length, with its value and gradient; None if there is none.

    The length is made smaller until it is, or else larger while the slope there promises much.
    """
    direction, size, steep = step
    best: tuple[Floats, float, Floats] | None = None
    for _ in range(TRIES):
        there = np.clip(x + size * direction, *box)
        found, gradient = ask(there)
        promised = dot(slope, there - x)
        if found <= value + DECREASE * promised:
            shorter = best is None and size < step[1]
            best = (there, found, gradient)
            if shorter or not dot(gradient, there - x) < steep * promised:
                return best
            size *= LONGER
        elif best is not None:
            return best
        else:  # to where a parabola through value, slope and what was found is least
            bent = found - value - promised
            size *= min(max(-0.5 * promised / bent, 0.1), 0.5) if np.isfinite(found) and bent > 0 else 0.1
    return best


def _turned(slope: Floats, free: NDArray[np.bool_], moved: Floats, turned: Floats) -> Floats:
    """The slope times an estimate of the inverse of the second derivatives, over what is free."""
    if not free.all():
        moved, turned = moved * free, turned * free
    curvature, squares = (moved * turned).sum(axis=1), (turned * turned).sum(axis=1)
    use = np.flatnonzero((curvature > CURVED * squares) & (squares > 0))
    if not len(use):
        return slope
    out, shares = slope.copy(), np.zeros(len(moved))
    with np.errstate(over="ignore", invalid="ignore"):  # beside masks; a step that is no number is not taken
        for k in use[::-1]:
            shares[k] = dot(moved[k], out) / curvature[k]
            out -= shares[k] * turned[k]
        out *= curvature[use[-1]] / squares[use[-1]]
        for k in use:
            out += (shares[k] - dot(turned[k], out) / curvature[k]) * moved[k]
    return out
