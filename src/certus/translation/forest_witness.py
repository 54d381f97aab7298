"""Multipliers that make proofs about a translation forest short."""

from typing import TYPE_CHECKING

import numpy as np

from certus.checks import Floats
from certus.relax.descent import Descent, Oracle, Round, descend
from certus.relax.run import HeldRun
from certus.translation.bigram_relaxation import BigramRelaxation, default_rule
from certus.translation.scored_forest import prepare

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

ROUNDS = 25
REMOVALS = (1, 3, 7, 13)  # rounds after which what is below is left out
FEW = 100  # items of vertices that need no better bound


def multipliers_below(problem: "ForestTranslation", weights: Floats, above: float) -> Floats:
    """Rows of word, word and value, under which little of the forest has a bound of more than ``above``."""
    prepared = prepare(problem.translation_forest, problem.lm, weights)
    relaxation = BigramRelaxation(prepared, problem.lm, problem.lm_weight)
    start = np.zeros(relaxation.u.size)
    if relaxation.exact or not np.isfinite(above):
        return relaxation.multipliers(relaxation.u)
    oracle, run = _Below(relaxation, above), HeldRun(above, relaxation.scale)
    at = descend(run, oracle, start, default_rule(), max_iterations=ROUNDS, search=oracle.remove)
    return relaxation.multipliers((at.best_u if oracle.enough is None else oracle.enough).reshape(relaxation.q.shape))


class _Below(Oracle):
    """The relaxation as an oracle, until its value is no more than ``above``: then ``enough`` are the multipliers."""

    def __init__(self, relaxation: BigramRelaxation, above: float) -> None:
        self.relaxation, self.above, self.scale = relaxation, above, relaxation.scale
        self.enough: Floats | None = None

    def ask(self, u: Floats) -> Round | None:
        relaxation = self.relaxation
        relaxation.u = u.reshape(relaxation.q.shape)
        value = relaxation.value()
        if not value > self.above:
            self.enough = u
            return None
        relaxation.derivation()
        return Round(value, relaxation.subgradient().ravel())

    def remove(self, at: Descent["_Below"]) -> None:
        """Leave out what is below, now and then; little that is left needs no better bound."""
        if at.rounds in REMOVALS and self.relaxation.remove(self.above, *self.relaxation.complete()) <= FEW:
            at.run.proof = "search"
