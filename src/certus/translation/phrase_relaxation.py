"""Relaxations of phrase-based translation: lattices whose paths are a superset of the translations (LR 7.3, 7.5).

Two things are relaxed. Coverage: a lattice keeps the number of words covered, the last position, and which of some
tracked words are covered; multipliers price the other words. In full it keeps the whole coverage and no multipliers are
needed. Contexts: a lattice tells apart the states of the language model, or only their last word, with the best
score any state of that word could have. The best completions from every node bound what a hypothesis can still add.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.certificates.rounding import Extent, of_sum
from certus.checks import Floats
from certus.threads import long_call
from certus.translation.language_model import LanguageModel
from certus.translation.phrases import Int32, PhraseArrays

MOST_NODES = 60_000  # of a lattice; above, multipliers are faster
MOST_HYPOTHESES = 10_000_000  # of one search; about 1 GB


@dataclass(frozen=True)
class Sentence:
    """The options of a sentence as arrays, and the weights and limits: what every relaxation of it shares."""

    arrays: PhraseArrays
    lm: LanguageModel
    lm_weight: float
    distortion: float
    limit: int  # no larger than the sentence
    gap: bool
    extent: Extent  # of the problem

    def error(self, multipliers: Floats) -> float:
        """How far rounding may take a dual value at these multipliers from the truth."""
        largest = float(np.abs(multipliers).max(initial=0.0))
        return of_sum(self.extent.length + 2 * self.arrays.n, self.extent.size + largest)

    @cached_property
    def _met(self) -> tuple[Any, ...]:
        """States that may be met, and scores after them: base, first, second and so on, as Contexts has them."""
        lm, p = self.lm, self.arrays
        base, state, after, state_end, after_short, pair_place, pair_state = kernels.phrase_contexts.meet(
            lm.arrays, p, self.lm_weight, lm.begin_state, self.limit
        )
        first, second, state_class = kernels.phrase_contexts.head_and_body_scores(lm.arrays, p, self.lm_weight, state)
        by_end = after_short.reshape(-1, len(p.short_ptr) - 1) if len(p.short_ptr) > 1 else after_short.reshape(1, -1)
        return (base, first, second, state, state_class, after, state_end, by_end), pair_place, pair_state

    def contexts(self, exact: bool) -> Any:
        """Contexts that may precede each phrase: states, or last words."""
        shared, pair_place, pair_state = self._met
        first, second, state_class = shared[1], shared[2], shared[4]
        return kernels.phrase_contexts.Contexts(
            *shared,
            *kernels.phrase_contexts.places(
                self.arrays.n, pair_place, pair_state, state_class, len(second), first, exact
            ),
        )

    def lattice(self, tracked: tuple[int, ...] | None, most: int = MOST_NODES) -> Any:
        """The lattice that tracks these words, or all (None); without nodes if it is too large or has no path."""
        p = self.arrays
        if tracked is None and p.n > 64 and not (self.gap and self.limit <= 63):
            most = 0
        bits = np.full(p.n, -1, dtype=np.int32)
        bits[list(tracked or ())] = np.arange(len(tracked or ()))
        if most == 0:
            return None
        made = kernels.phrase_lattice.build(
            p.n, p.span_start, p.span_end, p.start_ptr, self.limit, self.gap, int(tracked is None), bits, most
        )
        return made if len(made.count) else None


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found above its lower bound: score -inf and no path if nothing."""

    score: float
    path: Int32  # options in packed order
    pruned: bool
    hypotheses: int
    transitions: int
    arcs: NDArray[np.int32]  # (m, 3): from, option, to; option and to are -1 at an end
    arc_scores: Floats


class PhraseRelaxation:
    """A lattice with contexts and multipliers, its dual value, and the bounds it gives to a search."""

    def __init__(self, sentence: Sentence, lattice: Any, *, exact_contexts: bool) -> None:
        self.sentence, self.lattice = sentence, lattice
        self.contexts = sentence.contexts(exact_contexts)
        p, c = sentence.arrays, self.contexts
        sizes = np.diff(c.context_ptr).astype(np.int64)
        self.row_ptr = np.concatenate(([0], np.cumsum(sizes * (len(p.score) + 1))))
        self.value = np.empty(int(self.row_ptr[-1]))
        self.target = np.empty(int(self.row_ptr[-1]), dtype=np.int32)
        kernels.phrase_search.tables(p, c, sentence.limit, self.row_ptr, self.value, self.target)
        self.bound_ptr = np.concatenate(([0], np.cumsum(sizes[lattice.last + 1])))
        self.bound = np.empty(int(self.bound_ptr[-1]))
        self.multipliers = np.zeros(p.n)
        self.span_weight = np.zeros(len(p.span_start))

    @property
    def size(self) -> int:
        """Nodes times contexts."""
        return len(self.bound)

    def sweep(self, multipliers: Floats) -> float:
        """Best value of any path under multipliers, which bounds every translation; keeps the bounds of all nodes."""
        s = self.sentence
        p = s.arrays
        sums = np.concatenate(([0.0], np.cumsum(multipliers)))
        self.multipliers = multipliers
        self.span_weight = sums[p.span_end + 1] - sums[p.span_start]
        long_call(
            self.size * len(p.score), kernels.phrase_search.sweep,
            self.lattice, p, self.contexts, s.distortion, self.span_weight,
            self.row_ptr, self.value, self.target, self.bound_ptr, self.bound,
        )  # fmt: skip
        return float(self.bound[0]) - float(multipliers.sum())

    def path(self) -> Int32:
        """Options, in packed order, of a best path after a sweep."""
        s = self.sentence
        out: Int32 = kernels.phrase_search.walk(
            self.lattice, s.arrays, self.contexts, s.distortion, self.span_weight,
            self.row_ptr, self.value, self.target, self.bound_ptr, self.bound,
        )  # fmt: skip
        return out

    def uses(self, path: Int32) -> Floats:
        """How often a path covers each source word."""
        p = self.sentence.arrays
        spans = p.phrase_span[path]
        steps = np.zeros(p.n + 1)
        np.add.at(steps, p.span_start[spans], 1.0)
        np.add.at(steps, p.span_end[spans] + 1, -1.0)
        return np.cumsum(steps)[: p.n]

    def search(
        self,
        lower: float,
        width: int,
        *,
        future: Floats | None = None,
        keep_arcs: bool = False,
        most: int = MOST_HYPOTHESES,
    ) -> Found:
        """Beam search of a width under the bounds of the last sweep, or A* if the width is 0.

        With ``future`` the beam keeps hypotheses by those estimates instead of the bounds, and no bound is applied.
        """
        s = self.sentence
        offset = float(self.multipliers.sum())
        bound = self.bound if future is None else np.zeros_like(self.bound)
        steps = 100.0 * s.arrays.n * (width or most)
        found = long_call(
            steps, kernels.phrase_search.search,
            self.lattice, s.arrays, self.contexts, s.limit, s.gap, s.distortion, self.span_weight,
            self.bound_ptr, bound, np.empty((0, 0)) if future is None else future, lower + offset, width, most,
            keep_arcs,
        )  # fmt: skip
        score, path, pruned, hypotheses, transitions, arcs, arc_scores = found
        return Found(score - offset, path, pruned, hypotheses, transitions, arcs.reshape(-1, 3), arc_scores)
