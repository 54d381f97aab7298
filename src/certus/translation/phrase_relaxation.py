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

from certus import kernels
from certus.certificates.rounding import Extent, of_sum
from certus.checks import Floats
from certus.threads import long_call
from certus.translation.language_model import LanguageModel
from certus.translation.phrase_reading import OptionReading, read_arrays, read_contexts
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
    reading: OptionReading | None = None  # what translations must be accepted by

    def error(self, multipliers: Floats) -> float:
        """How far rounding may take a dual value at these multipliers from the truth."""
        largest = float(np.abs(multipliers).max(initial=0.0))
        return of_sum(self.extent.length + 2 * self.arrays.n, self.extent.size + largest)

    @cached_property
    def _met(self) -> tuple[Any, Any]:
        """States that may be met, and scores after them."""
        k, lm, p = kernels.phrase_contexts, self.lm.arrays, self.arrays
        met = k.meet(lm, p, self.lm_weight, self.limit)
        scores = k.head_and_body_scores(lm, p, self.lm_weight, met.state)
        return (met, scores) if self.reading is None else read_contexts(p, self.reading, met, scores)

    @cached_property
    def searched(self) -> PhraseArrays:
        """The options as searches see them: under an automaton every one scores, and goes on, by its states too."""
        return self.arrays if self.reading is None else read_arrays(self.arrays)

    def contexts(self, exact: bool) -> Any:
        """Contexts that may precede each phrase: states, or last words."""
        met, scores = self._met
        return kernels.phrase_contexts.contexts(self.arrays.n, met, scores, exact)

    def lattice(self, tracked: tuple[int, ...] | None, most: int = MOST_NODES) -> Any:
        """The lattice that tracks these words, or all (None); without nodes if it is too large or has no path."""
        p = self.arrays
        if tracked is None and p.n > 64 and not (self.gap and self.limit <= 63):
            most = 0
        bits = np.full(p.n, -1, dtype=np.int32)
        bits[list(tracked or ())] = np.arange(len(tracked or ()))
        if most == 0:
            return None
        made = kernels.phrase_lattice.build(p, self.limit, self.gap, int(tracked is None), bits, most)
        return made if len(made.count) else None


class PhraseRelaxation:
    """A lattice with contexts and multipliers, its dual value, and the bounds it gives to a search."""

    def __init__(self, sentence: Sentence, lattice: Any, *, exact_contexts: bool) -> None:
        k, p = kernels.phrase_search, sentence.searched
        contexts = sentence.contexts(exact_contexts)
        self.sentence = sentence
        self.model = k.Model(lattice, p, contexts, sentence.distortion, sentence.limit, sentence.gap)
        sizes = np.diff(contexts.context_ptr).astype(np.int64)
        ptr = np.concatenate(([0], np.cumsum(sizes * (len(p.score) + 1))))
        self.tables = k.Tables(ptr, np.empty(int(ptr[-1])), np.empty(int(ptr[-1]), dtype=np.int32))
        k.fill(p, contexts, sentence.limit, self.tables)
        ptr = np.concatenate(([0], np.cumsum(sizes[lattice.last + 1])))
        self.bounds = k.Bounds(np.zeros(len(p.span_start)), ptr, np.empty(int(ptr[-1])))
        self.multipliers = np.zeros(p.n)

    @property
    def size(self) -> int:
        """Nodes times contexts."""
        return len(self.bounds.value)

    def sweep(self, multipliers: Floats) -> float:
        """Best value of any path under multipliers, which bounds every translation; keeps the bounds of all nodes."""
        p = self.sentence.arrays
        sums = np.concatenate(([0.0], np.cumsum(multipliers)))
        self.multipliers = multipliers
        self.bounds.span_weight[:] = sums[p.span_end + 1] - sums[p.span_start]
        long_call(self.size * len(p.score), kernels.phrase_search.sweep, self.model, self.tables, self.bounds)
        return float(self.bounds.value[0]) - float(multipliers.sum())

    def path_and_residual(self) -> tuple[Int32, Floats]:
        """After a sweep that found a path: options, in packed order, of a best one, and how often it covers each word,
        less one."""
        p = self.sentence.arrays
        path: Int32 = kernels.phrase_search.walk(self.model, self.tables, self.bounds)
        spans = p.phrase_span[path]
        steps = np.zeros(p.n + 1)
        np.add.at(steps, p.span_start[spans], 1.0)
        np.add.at(steps, p.span_end[spans] + 1, -1.0)
        return path, np.cumsum(steps)[: p.n] - 1.0

    def search(
        self,
        lower: float,
        width: int,
        *,
        future: Floats | None = None,
        keep_arcs: bool = False,
        most: int = MOST_HYPOTHESES,
    ) -> Any:
        """Beam search of a width under the bounds of the last sweep, or A* if the width is 0: a Found of the kernel.

        With ``future`` the beam keeps hypotheses by those estimates instead of the bounds, and no bound is applied.
        """
        offset = float(self.multipliers.sum())
        bounds, estimates = self.bounds, np.empty((0, 0))
        if future is not None:
            bounds, estimates = bounds._replace(value=np.zeros_like(bounds.value)), future
        steps = 100.0 * self.sentence.arrays.n * (width or most)
        found = long_call(
            steps, kernels.phrase_search.search, self.model, bounds, estimates, lower + offset, width, most, keep_arcs
        )
        return found._replace(score=found.score - offset)
