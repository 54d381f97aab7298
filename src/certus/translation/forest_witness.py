"""Multipliers that make proofs about a translation forest short."""

from typing import TYPE_CHECKING, Any

import numpy as np

from certus.checks import Floats
from certus.relax.descent import Descent, Oracle, Round, descend
from certus.relax.run import Run
from certus.translation.bigram_relaxation import BigramRelaxation, default_rule
from certus.translation.scored_forest import prepare

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

ROUNDS = 25
REMOVALS = (1, 3, 7, 13)  # rounds after which what is below is left out
FEW = 100  # items of vertices that need no better bound


def multipliers_below(problem: "ForestTranslation", weights: Floats, above: float) -> Floats:
    """Rows of word, word and value, under which little of the forest has a bound of more than ``above``."""
    forest, lm = problem.translation_forest, problem.lm
    relaxation = BigramRelaxation(prepare(forest, lm, weights), lm, problem.lm_weight)
    oracle = _Above(relaxation, above)
    if np.isfinite(above) and not relaxation.exact:
        run: Run[Any] = Run(scale=relaxation.scale)
        descend(run, oracle, oracle.u, default_rule(), max_iterations=ROUNDS, log=False, search=oracle.remove)
    return relaxation.multipliers(oracle.u.reshape(relaxation.q.shape))


class _Above(Oracle):
    """The relaxation of what may score more than a number; ``u`` are the best multipliers so far."""

    def __init__(self, relaxation: BigramRelaxation, above: float) -> None:
        self.relaxation, self.above, self.scale = relaxation, above, relaxation.scale
        self.u, self._least = np.zeros(relaxation.u.size), np.inf

    def ask(self, u: Floats) -> Round | None:
        relaxation = self.relaxation
        relaxation.u = u.reshape(relaxation.q.shape)
        value = relaxation.value()
        if value < self._least:
            self._least, self.u = value, u
        if not value > self.above:
            return None
        relaxation.derivation()
        return Round(value, relaxation.subgradient().ravel(), [((), self.above)])

    def remove(self, at: Descent[Any]) -> None:
        """Leave out what is below; at an end where little is left."""
        if at.rounds in REMOVALS and self.relaxation.remove(self.above, *self.relaxation.complete()) <= FEW:
            at.run.proof = "search"
