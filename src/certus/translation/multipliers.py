"""Steps on Lagrange multipliers, by any step rule: what the relaxations of this package share."""

from typing import Any

import numpy as np

from certus.checks import Floats, Ints
from certus.relax.steps import StepRule


class Steps:
    """A step rule at work: its state, and the last direction if it deflects."""

    def __init__(self, rule: StepRule[Any], scale: float) -> None:
        self.rule, self.scale = rule, scale
        self.restart()

    def restart(self) -> None:
        """Forget what was seen so far: the function to be minimised has changed."""
        self._state = self.rule.init(self.scale)
        self._before: Floats | None = None

    def move(self, u: Floats, at: Ints | slice, residual: Floats, dual: float, primal: float) -> float:
        """Step u, in place, against the subgradient, which is ``residual`` at the cells ``at`` and not all zero."""
        rule, direction = self.rule, residual
        if rule.deflection:
            direction = np.zeros(u.shape)
            direction[at] = residual
            at = slice(None)
            if self._before is not None and (dot := float(direction @ self._before)) < 0:
                turned = direction - rule.deflection * dot / float(self._before @ self._before) * self._before
                direction = turned if turned.any() else direction
            self._before = direction
        step, self._state = rule.update(self._state, dual, primal, float(direction @ direction))
        u[at] -= step * direction
        return step
