"""Step rules: how far to move the multipliers, given how the dual has behaved so far (LR app. A.2).

A rule is a pair of pure functions, so that it is tested without a solver and a solver never asks which rule it has:

    state = rule.init(scale)                                             scale: largest absolute score of the problem
    step, state = rule.update(state, dual, best_primal, norm2)           once per iteration

``dual`` is the dual value at the current multipliers, ``best_primal`` the best score of any structure so far (-inf
before the first) and ``norm2`` the squared length of the subgradient, which is positive.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any, Generic, TypeVar

from certus.errors import InvalidInput

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class StepRule(Generic[S]):
    """A step rule: its name and its two functions.

    With ``deflection`` c > 0 the step is not along the subgradient g but, where g points against the direction d of the
    step before (g . d < 0), along g - c (g . d / d . d) d: what would only undo that step is left out.
    """

    name: str
    init: Callable[[float], S]
    update: Callable[[S, float, float, float], tuple[float, S]]
    deflection: float = 0.0

    def __repr__(self) -> str:
        return self.name


def constant(c: float = 1.0) -> StepRule[None]:
    """The same step c at every iteration."""
    c = _positive("c", c)
    return StepRule(f"constant({c:g})", lambda scale: None, lambda state, dual, primal, norm2: (c, None))


def harmonic(c: float = 1.0) -> StepRule[int]:
    """c / k at iteration k = 1, 2, ..."""
    c = _positive("c", c)
    return StepRule(f"harmonic({c:g})", lambda scale: 1, lambda k, dual, primal, norm2: (c / k, k + 1))


def inverse_sqrt(c: float = 1.0) -> StepRule[int]:
    """c / sqrt(k) at iteration k = 1, 2, ..."""
    c = _positive("c", c)
    return StepRule(f"inverse_sqrt({c:g})", lambda scale: 1, lambda k, dual, primal, norm2: (c / sqrt(k), k + 1))


Increases = tuple[int, float]  # how often the dual went up, and its last value


def _count(state: Increases, dual: float) -> Increases:
    increases, last = state
    return increases + (dual > last), dual


def per_increase(c: float = 1.0) -> StepRule[Increases]:
    """c / (t + 1), where t counts the iterations at which the dual went up: shrinks only when progress stops."""
    c = _positive("c", c)

    def update(state: Increases, dual: float, primal: float, norm2: float) -> tuple[float, Increases]:
        state = _count(state, dual)
        return c / (state[0] + 1), state

    return StepRule(f"per_increase({c:g})", lambda scale: (0, inf), update)


def halving(c: float = 0.5) -> StepRule[Increases]:
    """c / 2^t, where t counts the iterations at which the dual went up (LR 4.6.1)."""
    c = _positive("c", c)

    def update(state: Increases, dual: float, primal: float, norm2: float) -> tuple[float, Increases]:
        state = _count(state, dual)
        return c * 2.0 ** -state[0], state

    return StepRule(f"halving({c:g})", lambda scale: (0, inf), update)


@dataclass(frozen=True, slots=True)
class PolyakState:
    """``factor`` scales the step to the target; ``best`` and ``since`` watch for stalls; ``scale`` is the fallback."""

    factor: float
    scale: float
    best: float = inf
    since: int = 0


def polyak(factor: float = 1.0, *, patience: int = 5, shrink: float = 0.5) -> StepRule[PolyakState]:
    """factor * (dual - best primal) / norm2, with the factor shrunk after ``patience`` iterations without progress.

    Aims at the best primal score, which lies at or below the least dual value. Before there is a primal score the
    distance aimed for is the scale of the problem. Free of scale: scores and steps grow together.
    """
    factor = _positive("factor", factor)

    def update(state: PolyakState, dual: float, primal: float, norm2: float) -> tuple[float, PolyakState]:
        if dual < state.best:
            best, since, gamma = dual, 0, state.factor
        else:
            best, since, gamma = state.best, state.since + 1, state.factor
            if since >= patience:
                since, gamma = 0, gamma * shrink
        distance = dual - primal if isfinite(primal) else state.scale
        # A gap that is zero or rounding is no aim; the caller stops there, a rule on its own must stay positive.
        distance = distance if distance > 0 else state.scale * 1e-12
        return gamma * distance / norm2, PolyakState(gamma, state.scale, best, since)

    return StepRule(f"polyak({factor:g})", lambda scale: PolyakState(factor, scale), update)


def deflected(factor: float = 1.0, *, deflection: float = 1.0) -> StepRule[PolyakState]:
    """Polyak's steps along deflected subgradients: far fewer rounds where plain ones zigzag [Camerini75]."""
    rule = polyak(factor)
    return StepRule(f"deflected({factor:g})", rule.init, rule.update, _positive("deflection", deflection))


def _positive(name: str, value: Any) -> float:
    if not (isinstance(value, int | float) and isfinite(value) and value > 0):
        raise InvalidInput(f"{name} is {value!r}; a step rule needs a positive number.")
    return float(value)
