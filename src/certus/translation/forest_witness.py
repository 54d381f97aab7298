"""Multipliers that make proofs about a translation forest short."""

from typing import TYPE_CHECKING

import numpy as np

from certus.checks import Floats
from certus.relax.descent import Descent, descend
from certus.relax.run import HeldRun
from certus.translation.bigram_relaxation import BigramRelaxation, Pull, default_rule
from certus.translation.scored_forest import prepare

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

ROUNDS = 80  # late ones cost little: they are about what is left
REMOVALS = (1, 3, 7, 13, 25, 40, 60)  # rounds after which what is below is left out
FEW = 100  # items of vertices that need no better bound


def multipliers_below(problem: "ForestTranslation", weights: Floats, above: float) -> dict[str, Floats]:
    """Multipliers, as of ``BigramRelaxation``, under which little of the forest has a bound of more than ``above``."""
    prepared = prepare(problem.translation_forest, problem.lm, weights)
    relaxation = BigramRelaxation(prepared, problem.lm, problem.lm_weight)
    start = np.zeros(relaxation.size)
    if relaxation.exact or not np.isfinite(above):
        return relaxation.multipliers(start)
    oracle, run = Pull(relaxation, above), HeldRun(above, relaxation.scale)

    def remove(at: Descent[Pull]) -> None:
        """Leave out what is below, now and then; little that is left needs no better bound."""
        if at.rounds in REMOVALS and relaxation.remove(above, *relaxation.complete(above)) <= FEW:
            run.proof = "search"

    at = descend(run, oracle, start, default_rule(), max_iterations=ROUNDS, search=remove)
    return relaxation.multipliers(at.best_u if oracle.found is None else oracle.found)
