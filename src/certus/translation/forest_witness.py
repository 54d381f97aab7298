"""Multipliers that make proofs about a translation forest short."""

from typing import TYPE_CHECKING

import numpy as np

from certus.checks import Floats
from certus.translation.bigram_relaxation import BigramRelaxation, default_rule
from certus.translation.multipliers import Steps
from certus.translation.scored_forest import prepare

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

ROUNDS = 25
REMOVALS = (0, 2, 6, 12)  # rounds after which what is below is left out
FEW = 100  # items of vertices that need no better bound


def multipliers_below(problem: "ForestTranslation", weights: Floats, above: float) -> Floats:
    """Rows of word, word and value, under which little of the forest has a bound of more than ``above``."""
    relaxation = BigramRelaxation(
        prepare(problem.translation_forest, problem.lm, weights), problem.lm, problem.lm_weight
    )
    steps, best, u = Steps(default_rule(), relaxation.scale), np.inf, relaxation.u.copy()
    for k in range(ROUNDS if not relaxation.exact and np.isfinite(above) else 0):
        value = relaxation.value()
        if value < best:
            best, u = value, relaxation.u.copy()
        if not value > above:
            break
        relaxation.derivation()
        cells, residual = relaxation.subgradient()
        if not len(residual) or (k in REMOVALS and relaxation.remove(above, *relaxation.complete()) <= FEW):
            break
        at = cells[:, 0] * len(relaxation.u) + cells[:, 1]
        steps.move(relaxation.u.reshape(-1), at, residual, value, above)
    return relaxation.multipliers(u)
