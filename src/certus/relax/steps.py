"""Step rules: how far to move the multipliers, given how the dual has behaved so far (LR app. A.2).

A rule is a pair of pure functions, so that it is tested without a solver and a solver never asks which rule it has:

    state = rule.init(scale)                                             scale: largest absolute score of the problem
    step, state = rule.update(state, dual, best_primal, norm2)           once per iteration

``dual`` is the dual value at the current multipliers, ``best_primal`` the best score of any structure so far (-inf
before the first) and ``norm2`` the squared length of the subgradient, which is positive. Any such pair will do. Those
made here are all one function of numbers, ``certus.kernels.steps.next_step``, which kernels that make many steps in one
call can do too; a rule of another kind makes them one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from certus import kernels
from certus.checks import shown
from certus.errors import InvalidInput

if TYPE_CHECKING:
    from certus.kernels.steps import Memory, Rule

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class StepRule(Generic[S]):
    """A step rule: its name and its two functions, and its numbers if it is one that kernels know.

    With ``deflection`` c > 0 the step is not along the subgradient g but, where g points against the direction d of the
    step before (g . d < 0), along g - c (g . d / d . d) d: what would only undo that step is left out.
    """

    name: str
    init: Callable[[float], S]
    update: Callable[[S, float, float, float], tuple[float, S]]
    deflection: float = 0.0
    numbers: "Rule | None" = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not callable(self.init) or not callable(self.update):
            given = f"{shown(self.name)}, {shown(self.init)} and {shown(self.update)}"
            raise InvalidInput(
                f"a StepRule is made of {given}; expected a name and two functions, init(scale) and "
                "update(state, dual, best, norm2). Rules that are ready: certus.relax.steps.polyak(), harmonic(), ..."
            )

    def __repr__(self) -> str:
        return self.name


def constant(c: float = 1.0) -> "StepRule[Memory]":
    """The same step c at every iteration."""
    return _numbered("constant", _positive("c", c))


def harmonic(c: float = 1.0) -> "StepRule[Memory]":
    """c / k at iteration k = 1, 2, ..."""
    return _numbered("harmonic", _positive("c", c))


def inverse_sqrt(c: float = 1.0) -> "StepRule[Memory]":
    """c / sqrt(k) at iteration k = 1, 2, ..."""
    return _numbered("inverse_sqrt", _positive("c", c))


def per_increase(c: float = 1.0) -> "StepRule[Memory]":
    """c / (t + 1), where t counts the iterations at which the dual went up: shrinks only when progress stops."""
    return _numbered("per_increase", _positive("c", c))


def halving(c: float = 0.5) -> "StepRule[Memory]":
    """c / 2^t, where t counts the iterations at which the dual went up (LR 4.6.1)."""
    return _numbered("halving", _positive("c", c))


def polyak(factor: float = 1.0, *, patience: int = 5, shrink: float = 0.5) -> "StepRule[Memory]":
    """factor * (dual - best primal) / norm2, with the factor shrunk after ``patience`` iterations without progress.

    Aims at the best primal score, which lies at or below the least dual value. Before there is a primal score the
    distance aimed for is the scale of the problem. Free of scale: scores and steps grow together.
    """
    return _numbered("polyak", _positive("factor", factor), patience, shrink)


def deflected(factor: float = 1.0, *, deflection: float = 1.0) -> "StepRule[Memory]":
    """Polyak's steps along deflected subgradients: far fewer rounds where plain ones zigzag [Camerini75]."""
    rule = replace(polyak(factor), deflection=_positive("deflection", deflection), numbers=None)
    return replace(rule, name=f"deflected({factor:g})")


def _numbered(name: str, size: float, patience: int = 0, shrink: float = 1.0) -> "StepRule[Memory]":
    steps: Any = kernels.steps
    rule = steps.Rule(steps.KINDS.index(name), size, patience, shrink)
    update = partial(steps.next_step, rule)
    return StepRule(f"{name}({size:g})", lambda scale: steps.Memory(float(scale), size), update, numbers=rule)


def _positive(name: str, value: Any) -> float:
    if not (isinstance(value, int | float) and isfinite(value) and value > 0):
        raise InvalidInput(f"{name} is {value!r}; a step rule needs a positive number.")
    return float(value)
