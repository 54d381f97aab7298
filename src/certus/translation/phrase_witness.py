"""Witnesses for proofs about phrase-based translations: which words a lattice tracks, and the multipliers of all.

What certus/translation/phrase_proof.py then does in numpy is tried here by the kernels, until little is left to do.
"""

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from certus.checks import Floats
from certus.relax.beams import WINDOW
from certus.relax.descent import Descent, Oracle, Round, descend
from certus.relax.run import Run
from certus.relax.steps import polyak
from certus.translation.phrase_relaxation import PhraseRelaxation

if TYPE_CHECKING:
    from certus.translation.phrase_problem import PhraseTranslation

FEW_NODES = 6_000  # of a lattice of all coverages that is checked quickly
FEW, MANY = 3_000, 300_000  # states that are left to a check: at first, and before more words are tracked
ROUNDS = 1000


def make_witness(problem: "PhraseTranslation", above: float) -> dict[str, Any]:
    """A witness that leaves few states above a bound."""
    n = problem.n
    if not above < inf or n == 0 or problem.sentence.lattice(None, FEW_NODES) is not None:
        return {"tracked": np.arange(n), "multipliers": np.zeros(n)}
    relaxation = _tracking(problem, ())
    if relaxation is None:  # nothing covers the sentence
        return {"tracked": np.arange(0), "multipliers": np.zeros(n)}
    run: Run[str] = Run()
    run.offer("what the bound is to be lowered to", above)
    start = (run, _States(problem, relaxation), np.zeros(n), polyak(patience=3))
    at = descend(
        *start,
        max_iterations=ROUNDS,
        window=WINDOW,
        log=False,
        search=lambda at: at.best_u is at.u and at.oracle.check(at),
        tighten=lambda at: at.oracle.tighter(at),
    )
    return {"tracked": np.array(at.oracle.tracked, dtype=np.int64), "multipliers": at.best_u}


class _States(Oracle):
    """The relaxation that tracks some words, and how many states it leaves above the bound."""

    def __init__(
        self, problem: "PhraseTranslation", relaxation: PhraseRelaxation, tracked: tuple[int, ...] = (), most: int = FEW
    ) -> None:
        self.problem, self.relaxation, self.tracked, self.most = problem, relaxation, tracked, most
        self._blame = np.zeros(problem.n)

    def ask(self, u: Floats) -> Round:
        value = self.relaxation.sweep(u)
        _, residual = self.relaxation.path_and_residual()
        self._blame += np.abs(residual)
        return Round(value, residual)

    def check(self, at: Descent[Any]) -> bool:
        """Whether few states are left under the bounds of the last sweep: then its multipliers are the witness."""
        if not self.relaxation.search(at.run.score, self.most, most=self.most).pruned:
            at.run.proof = "search"
        return at.run.proof is not None

    def tighter(self, at: Descent[Any]) -> "tuple[_States, Floats] | None":
        """More states, then up to three more words tracked, those most often covered twice or not at all."""
        self.most = min(10 * self.most, MANY)
        self.relaxation.sweep(at.best_u)
        if self.check(at):
            return None
        order = [i for i in np.argsort(-self._blame, kind="stable").tolist() if i not in self.tracked]
        more = tuple(sorted((*self.tracked, *order[:3])))
        grows = self.most == MANY and len(self.tracked) < len(more) < self.problem.n and len(more) <= 60
        made = _tracking(self.problem, more) if grows else None
        if made is not None:
            return _States(self.problem, made, more, self.most), at.best_u
        return None if at.norm2 == 0 and self.most == MANY else (self, at.u)


def _tracking(problem: "PhraseTranslation", tracked: tuple[int, ...]) -> PhraseRelaxation | None:
    lattice = problem.sentence.lattice(tracked)
    return None if lattice is None else PhraseRelaxation(problem.sentence, lattice, exact_contexts=True)
