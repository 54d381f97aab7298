"""Witnesses for proofs about phrase-based translations: which words a lattice tracks, and the multipliers of all.

What certus/translation/phrase_proof.py then does in numpy is tried here by the kernels, until little is left to do.
"""

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from certus.checks import Floats
from certus.relax.steps import polyak
from certus.translation.multipliers import Steps
from certus.translation.phrase_relaxation import PhraseRelaxation

if TYPE_CHECKING:
    from certus.translation.phrase_problem import PhraseTranslation

FEW_NODES = 6_000  # of a lattice of all coverages that is checked quickly
FEW, MANY = 3_000, 300_000  # states that are left to a check: at first, and before more words are tracked
PATIENCE = 10  # rounds that must close a tenth of the gap, or they are a stall
ROUNDS = 1000


def make_witness(problem: "PhraseTranslation", above: float) -> dict[str, Any]:
    """A witness that leaves few states above a bound."""
    n = problem.n
    if not above < inf or n == 0 or problem.sentence.lattice(None, FEW_NODES) is not None:
        return {"tracked": np.arange(n), "multipliers": np.zeros(n)}
    tracked: tuple[int, ...] = ()
    relaxation = _tracking(problem, tracked)
    if relaxation is None:  # nothing covers the sentence
        return {"tracked": np.arange(0), "multipliers": np.zeros(n)}
    u, blame, steps = np.zeros(n), np.zeros(n), Steps(polyak(patience=3), 1.0)
    most, since, mark, best, best_u = FEW, 0, inf, inf, u
    for _ in range(ROUNDS):
        dual = relaxation.sweep(u)
        _, residual = relaxation.path_and_residual()
        if dual < best:
            best, best_u = dual, u
            if not relaxation.search(above, most, most=most).pruned:
                break
        blame += np.abs(residual)
        since += 1
        if since == PATIENCE or not residual.any():
            if mark - best < 0.1 * (mark - above) or not residual.any():
                most = min(10 * most, MANY)
                relaxation.sweep(best_u)
                if not relaxation.search(above, most, most=most).pruned:
                    break
                if most == MANY and (tighter := _tighter(problem, tracked, blame)) is not None:
                    tracked, relaxation = tighter
                    steps.restart()
                    best, u, blame[:], mark = inf, best_u, 0.0, inf
                    continue
            since, mark = 0, best
        if residual.any():
            u = u.copy()
            steps.move(u, slice(None), residual, dual, above)
    return {"tracked": np.array(tracked, dtype=np.int64), "multipliers": best_u}


def _tracking(problem: "PhraseTranslation", tracked: tuple[int, ...]) -> PhraseRelaxation | None:
    lattice = problem.sentence.lattice(tracked)
    return None if lattice is None else PhraseRelaxation(problem.sentence, lattice, exact_contexts=True)


def _tighter(
    problem: "PhraseTranslation", tracked: tuple[int, ...], blame: Floats
) -> tuple[tuple[int, ...], PhraseRelaxation] | None:
    """The relaxation with up to three more words tracked, those most often covered twice or not at all."""
    order = [i for i in np.argsort(-blame, kind="stable").tolist() if i not in tracked]
    more = tuple(sorted((*tracked, *order[:3])))
    made = _tracking(problem, more) if len(tracked) < len(more) < problem.n and len(more) <= 60 else None
    return None if made is None else (more, made)
