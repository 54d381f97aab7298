"""Optimal beam search (LR alg. 13): rounds of descent, and beam searches under the bounds that they give.

Alternating, a search follows every round, wider as the gap shrinks and ten times wider whenever progress stalls.
Staged, there is one after the first round, and a stall ends the rounds. What is open then goes to ever wider beams. A
search that pruned nothing proves that no structure is better than the best one known.
"""

from abc import abstractmethod
from math import isfinite
from typing import Any, NamedTuple, Self

from certus.checks import Floats
from certus.relax.descent import Descent, Oracle
from certus.relax.run import Run

WINDOW = 10  # rounds that must close a share of the gap, or they are a stall


class Beam(NamedTuple):
    """What a beam search found: the best structure above the incumbent, or None, and whether it pruned any."""

    structure: Any
    score: float
    pruned: bool
    hypotheses: int


class BeamOracle(Oracle):
    """An oracle whose bounds a beam search can use; a beam as wide as ``widest`` prunes nothing."""

    widest: int = 1 << 62

    def __init__(self, run: Run[Any], *, staged: bool) -> None:
        self.run, self.staged = run, staged
        self.width = 1
        run.count(searches=0, hypotheses=0)

    @abstractmethod
    def beam(self, width: int, u: Floats) -> Beam:
        """The best structure above the incumbent that a beam of this width finds under the bounds at u."""

    def search(self, width: int, u: Floats) -> None:
        """A beam search, and the proof if it pruned nothing."""
        self.run.allow(self.error(u))
        found = self.beam(min(width, self.widest), u)
        self.run.count(searches=1, hypotheses=found.hypotheses)
        if found.structure is not None:
            self.run.offer(found.structure, found.score)
        if not found.pruned:
            self.run.proof = "search"

    def after(self, at: Descent[Any]) -> None:
        """The hook ``search`` of a descent."""
        if not self.staged or at.rounds == 1:
            gap = at.best - self.run.score
            self.search(max(self.width, 10 ** min(4, max(0, int(4 - gap))) if isfinite(gap) else 1), at.u)

    def stalled(self, at: Descent[Any]) -> tuple[Self, Floats] | None:
        """The hook ``tighten`` of a descent."""
        self.width *= 10
        return None if self.staged else (self, at.u)

    def widen(self, u: Floats, width: int, *, once: bool = False) -> None:
        """Beams of this width and ever wider, until nothing is pruned."""
        while self.run.proof is None and not self.run.out_of_time:
            self.search(width, u)
            if once or width >= self.widest:
                return
            width *= 10
