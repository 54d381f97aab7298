"""How far to move the multipliers (LR app. A.2): one plain function of numbers, for loops in Python and in kernels.

Kernels compile it (``njit(next_step)``); this file imports no numba. ``certus.relax.steps`` has the rules by name.
"""

from math import inf, isfinite, sqrt
from typing import NamedTuple

KINDS = ("constant", "harmonic", "inverse_sqrt", "per_increase", "halving", "polyak")
CONSTANT, HARMONIC, INVERSE_SQRT, PER_INCREASE, HALVING, POLYAK = range(6)


class Rule(NamedTuple):
    """A step rule in numbers. ``size`` is c, or Polyak's factor, which shrinks after ``patience`` without progress."""

    kind: int
    size: float
    patience: int = 0
    shrink: float = 1.0


class Memory(NamedTuple):
    """What a rule remembers: all floats, so that a loop over it has one type."""

    scale: float  # largest absolute score of the problem
    factor: float  # Polyak's, as far as it has shrunk
    count: float = 0.0  # steps so far
    increases: float = 0.0  # how often the dual went up
    last: float = inf  # dual value
    best: float = inf  # least dual value
    since: float = 0.0  # steps since then, or since the factor shrank


def next_step(rule, memory, dual, primal, norm2):  # type: ignore[no-untyped-def]
    """(step, memory after it): dual is the present value, primal the best score so far, norm2 of the subgradient."""
    scale, factor, count, increases, last, best, since = memory
    count += 1.0
    if dual > last:
        increases += 1.0
    if dual < best:
        best, since = dual, 0.0
    else:
        since += 1.0
        if since >= rule.patience:
            factor, since = factor * rule.shrink, 0.0
    step = rule.size
    if rule.kind == HARMONIC:
        step /= count
    elif rule.kind == INVERSE_SQRT:
        step /= sqrt(count)
    elif rule.kind == PER_INCREASE:
        step /= increases + 1.0
    elif rule.kind == HALVING:
        step *= 2.0**-increases
    elif rule.kind == POLYAK:
        distance = dual - primal if isfinite(primal) else scale
        # A gap that is zero or rounding is no aim; the caller stops there, a rule on its own must stay positive.
        step = factor * (distance if distance > 0.0 else scale * 1e-12) / norm2
    return step, Memory(scale, factor, count, increases, dual, best, since)
