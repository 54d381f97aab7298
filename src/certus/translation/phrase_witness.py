"""Witnesses for proofs about phrase-based translations: which words a lattice tracks, and the multipliers of all.

What certus/translation/phrase_proof.py then does in numpy is tried here by the kernels, until little is left to do.
"""

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from certus.checks import Floats
from certus.relax.descent import Descent, Oracle, Round, descend
from certus.relax.run import HeldRun
from certus.relax.steps import polyak
from certus.translation.phrase_relaxation import PhraseRelaxation

if TYPE_CHECKING:
    from certus.translation.phrase_problem import PhraseTranslation

FEW_NODES = 6_000  # of a lattice of all coverages that is checked quickly
FEW, MANY = 3_000, 300_000  # states that are left to a check: at first, and before more words are tracked
PATIENCE = 10  # rounds that must close a tenth of the gap, or they are a stall
ROUNDS = 1000
MOST_TRACKED = 60


def make_witness(problem: "PhraseTranslation", above: float) -> dict[str, Any]:
    """A witness that leaves few states above a bound."""
    n = problem.n
    if not above < inf or n == 0 or problem.sentence.lattice(None, FEW_NODES) is not None:
        return {"tracked": np.arange(n), "multipliers": np.zeros(n)}
    oracle = _Tracking.of(problem, (), above)
    if oracle is None:  # nothing covers the sentence
        return {"tracked": np.arange(0), "multipliers": np.zeros(n)}
    at = descend(
        HeldRun(above, 1.0),
        oracle,
        np.zeros(n),
        polyak(patience=3),
        max_iterations=ROUNDS,
        window=PATIENCE,
        search=lambda at: at.oracle.look(at),
        tighten=lambda at: at.oracle.tighter(at),
    )
    return {"tracked": np.array(at.oracle.tracked, dtype=np.int64), "multipliers": at.best_u}


class _Tracking(Oracle):
    """The relaxation that tracks some words: it ends once a search under its bounds leaves few states."""

    def __init__(
        self, problem: "PhraseTranslation", relaxation: PhraseRelaxation, tracked: tuple[int, ...], above: float
    ) -> None:
        self.problem, self.relaxation, self.tracked, self.above = problem, relaxation, tracked, above
        self.most, self.blame = FEW, np.zeros(problem.n)

    @classmethod
    def of(cls, problem: "PhraseTranslation", tracked: tuple[int, ...], above: float) -> "_Tracking | None":
        """None where nothing covers the sentence, or the lattice is too large."""
        lattice = problem.sentence.lattice(tracked)
        if lattice is None:
            return None
        return cls(problem, PhraseRelaxation(problem.sentence, lattice, exact_contexts=True), tracked, above)

    def ask(self, u: Floats) -> Round:
        dual = self.relaxation.sweep(u)
        if dual == -inf:  # an automaton accepts nothing
            return Round(dual, np.zeros(len(u)))
        _, residual = self.relaxation.path_and_residual()
        self.blame += np.abs(residual)
        return Round(dual, residual)

    def look(self, at: Descent["_Tracking"]) -> None:
        """Where the bound is the best so far, see how much is left under it."""
        if at.value == at.best:
            self._search(at)

    def _search(self, at: Descent["_Tracking"]) -> None:
        if not self.relaxation.search(self.above, self.most, most=self.most).pruned:
            at.run.proof = "search"

    def tighter(self, at: Descent["_Tracking"]) -> "tuple[_Tracking, Floats] | None":
        """Leave more states, and once they are many, track three more words: those covered twice or not at all."""
        self.most = min(10 * self.most, MANY)
        self.relaxation.sweep(at.best_u)
        self._search(at)
        if at.run.proof is not None:
            return None
        if self.most < MANY and at.norm2:
            return self, at.u
        order = [i for i in np.argsort(-self.blame, kind="stable").tolist() if i not in self.tracked]
        tracked = tuple(sorted((*self.tracked, *order[:3])))
        fits = len(self.tracked) < len(tracked) < self.problem.n and len(tracked) <= MOST_TRACKED
        made = _Tracking.of(self.problem, tracked, self.above) if fits else None
        if made is None:
            return (self, at.u) if at.norm2 else None
        made.most = MANY
        at.best = inf  # of a lattice that is left behind
        return made, at.best_u
