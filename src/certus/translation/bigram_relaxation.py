"""Exact decoding of translation forests by a bigram relaxation, and search within its bounds.

The language model is relaxed to scores q[v, w] of adjacent words, each w choosing the words before v freely; a
multiplier for each pair of words pulls the choices towards what stands there (the identity at the head of
``certus/kernels/bigram_scores.py``). Under q the forest is still decoded exactly, all first and last words of all
vertices at once, so that the bound is far tighter than with choices of single leaves (LR 5.3), and it gives for every
edge, pair of words and item the best it can be part of. What falls below the best translation known is removed for
good, the choices with it, and soon the exact n-gram search of the rest is small.

Differs from LR 5.3: multipliers on pairs of words instead of leaves and paths between them; reduced-cost fixing after
each sizeable gain; the search replaces the tightening of LR 5.4.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from certus import kernels
from certus.certificates.rounding import of_sum
from certus.checks import Bools, Floats, Ints
from certus.clock import Clock
from certus.result import Trace
from certus.threads import long_call
from certus.translation.language_model import LanguageModel
from certus.translation.scored_forest import ScoredForest

BEAM = 4  # items kept per piece where a translation is sought, not a proof
BUDGET = 300_000  # combinations of the first exact search; some 20 ms
PATIENCE = 5  # iterations without a better bound before steps get smaller
COMBINATIONS_PER_SECOND = 5e6
GAIN = 0.6  # edges are removed again once the gap is so much of what it was


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search left: all items and the ways they were made (see the kernel), and the best derivation if any."""

    done: bool  # False: out of budget
    lost: float  # largest bound of what a beam dropped; -inf if nothing
    item: Ints
    score: Floats
    way: Ints
    way_score: Floats
    tried: int
    top: int  # the top's item, -1 if none

    def derivation(self) -> list[int]:
        """Edges of the best derivation, head before tails."""
        out: list[int] = []
        agenda = [self.top]
        while agenda:
            _, left, right, edge = self.way[self.item[agenda.pop(), 7]].tolist()
            if edge >= 0:
                out.append(edge)
            agenda.extend(part for part in (right, left) if part >= 0)
        return out


class BigramRelaxation:
    """The relaxation of one forest: what is left of it, the multipliers, and the tables of the last sweep."""

    def __init__(self, forest: ScoredForest, lm: LanguageModel, lm_weight: float) -> None:
        self.forest, self.lm, self.lm_weight = forest, lm, lm_weight
        n_words = forest.n_words
        self.alive: Bools = forest.alive
        self.first = np.ones((forest.n_vertices, n_words), dtype=bool)
        self.last = np.ones((forest.n_vertices, n_words), dtype=bool)
        self._build()
        self.allowed = np.zeros((n_words, n_words), dtype=bool)
        kernels.forest_pieces.adjacent(self.pieces, self.allowed)
        self.lm_tables: tuple[Floats, Floats, Ints, Ints, Floats] = kernels.bigram_scores.tables(
            lm.arrays, lm.begin_state, lm.order, lm_weight, forest.lm_word, self.allowed
        )
        pair, back, _, _, value = self.lm_tables
        sizes = (np.abs(v[np.isfinite(v)]).max(initial=0.0) for v in (forest.weight, pair, back, value))
        self._scale = float(sum(sizes))
        self.u = np.zeros((n_words, n_words))
        self._gradient = np.zeros((n_words, n_words))
        self.q = np.empty((n_words, n_words))
        self.chosen = np.empty((n_words, n_words), dtype=np.int64)
        most_edges, most_words = forest.longest
        self._edges = np.empty(most_edges, dtype=np.int64)
        self._pairs = np.empty((most_words + 1, 2), dtype=np.int64)
        self.n_pairs = 0

    @property
    def exact(self) -> bool:
        """Whether the relaxation is the problem itself: the model looks back one word at most."""
        return self.lm.order <= 2

    def multipliers(self, u: Floats) -> Floats:
        """Multipliers that are not zero, as rows (word, word, value); words as in ``ScoredForest.name``."""
        v, w = np.nonzero(u)
        return np.column_stack((self.forest.name[v], self.forest.name[w], u[v, w]))

    def set_multipliers(self, rows: Floats) -> None:
        """Take up what ``multipliers`` gave."""
        self.u = self.forest.multipliers(rows)

    def _build(self) -> None:
        f = self.forest
        self.pieces = kernels.forest_pieces.build(
            f.in_ptr, f.tail_ptr, f.tail, f.token_ptr, f.token, f.weight, self.alive, self.first, self.last
        )
        size = int(self.pieces.offset[-1])
        self.table, self.out = np.empty(size), np.empty(size)

    def slack(self) -> float:
        """How far rounding may lower a bound: what lies so little below a score is not removed."""
        size = self._scale + 2 * float(max(self.u.max(), -self.u.min()))
        return of_sum(2 * sum(self.forest.longest) + 2, size)

    def value(self) -> float:
        """The bound under the present multipliers; -inf if nothing is left of the forest."""
        kernels.bigram_scores.optimistic(*self.lm_tables, self.lm.order, self.u, self.allowed, self.q, self.chosen)
        kernels.forest_bigram.inside(self.pieces, self.q, self.table)
        return float(self.table[-1]) if len(self.table) else -np.inf

    def derivation(self) -> list[int]:
        """A derivation that reaches ``value``."""
        n, self.n_pairs = kernels.forest_bigram.best_derivation(
            self.pieces, self.q, self.table, self._edges, self._pairs
        )
        edges: list[int] = self._edges[:n].tolist()
        return edges

    def move(self, scale: float, excess: float) -> float:
        """Step the multipliers against the subgradient at ``derivation``; 0 if it vanishes: all choices agree."""
        return float(
            kernels.bigram_scores.move(self._pairs, self.n_pairs, self.chosen, self.u, self._gradient, scale, excess)
        )

    def complete(self) -> tuple[Floats, Floats]:
        """Outside scores, for ``search`` and ``remove``; the best derivation of each edge and pair of words."""
        edge = np.empty(len(self.pieces.edge_id))
        pair = np.empty(self.q.shape)
        kernels.forest_bigram.outside(self.pieces, self.q, self.table, self.out, edge, pair)
        return edge, pair

    def remove(self, least: float, edge: Floats, pair: Floats) -> int:
        """Leave out what is in no derivation of at least ``least``; returns how many items of vertices are left."""
        n_items = int(kernels.forest_bigram.surviving(self.pieces, self.table, self.out, least, self.first, self.last))
        self.alive = np.zeros(len(self.forest.alive), dtype=bool)
        self.alive[self.pieces.edge_id[edge >= least]] = True
        self.allowed = self.allowed & (pair >= least)
        self._build()
        return n_items

    def search(self, least: float, *, beam: int = 0, budget: int = 1 << 62, all_ways: bool = False) -> Searched:
        """Exact search after ``complete``, without what cannot reach ``least``; see the kernel."""
        status, lost, item, score, way, way_score, tried = long_call(
            0.0 if beam == BEAM else 100.0 * budget,
            kernels.forest_exact.search,
            self.pieces,
            self.out,
            self.q,
            self.u,
            self.allowed,
            self.lm.arrays,
            self.lm.begin_state,
            self.lm.order,
            self.lm_weight,
            self.forest.lm_word,
            least,
            beam,
            budget,
            all_ways,
        )
        item, way = item.reshape(-1, 8), way.reshape(-1, 4)
        top = len(item) - 1 if len(item) and item[-1, 0] == len(self.pieces.kind) - 1 and status == 0 else -1
        return Searched(status == 0, float(lost), item, score, way, way_score, int(tried), top)


class Progress:
    """A run on one forest: the best derivation so far, the best bound with its multipliers, and rows for the trace."""

    def __init__(self, relaxation: BigramRelaxation, score_of: Callable[[list[int]], float]) -> None:
        self.relaxation = relaxation
        self._score_of = score_of
        self.edges: list[int] = []
        self.score = -np.inf
        self.bound = np.inf
        self.u = relaxation.u.copy()
        self.rows: list[tuple[float, float, float, int]] = []
        self.info: dict[str, Any] = {"searches": 0}
        self.slack = 0.0  # the largest by which anything was left out or proved

    def offer(self, edges: list[int]) -> None:
        """A derivation that may be the best so far."""
        score = self._score_of(edges)
        if score > self.score:
            self.score, self.edges = score, edges

    @property
    def least(self) -> float:
        """What scores less than this is no better than what is known, whatever the rounding."""
        return self.score - self._noted()

    @property
    def proved(self) -> bool:
        """Whether the bound has come down to the score."""
        return self.bound - self.score <= self._noted()

    def _noted(self) -> float:
        slack = self.relaxation.slack()
        self.slack = max(self.slack, slack)
        return slack

    def conclude(self, found: Searched) -> None:
        """All that scores at least ``least`` was searched: the best of it is the optimum."""
        if found.top >= 0:
            self.offer(found.derivation())
        self.bound = self.score

    def trace(self) -> Trace:
        """The rows as columns."""
        dual, primal, step, active = ([row[i] for row in self.rows] for i in range(4))
        return Trace(np.array(dual), np.array(primal), np.array(step), np.array(active, dtype=np.int64))


def lower(progress: Progress, clock: Clock, max_iterations: int) -> Iterator[bool]:
    """Lower the bound by steps on the multipliers; yields after each, True when it is time to remove parts again.

    The caller may remove parts of the forest in between. Ends when the bound meets the score, when the steps vanish or
    at the limits. Steps are Polyak's, aimed at the best score, and get smaller after ``PATIENCE`` without gain.
    """
    relaxation = progress.relaxation
    scale, since, gap_then = 1.0, 0, np.inf
    for _ in range(max_iterations):
        value = relaxation.value()
        if not value >= progress.least:  # all that is left scores less than what is known
            progress.bound = progress.score
            return
        if value == -np.inf:
            return
        progress.offer(relaxation.derivation())
        since += 1
        if value < progress.bound:
            progress.bound, progress.u, since = value, relaxation.u.copy(), 0
        elif since >= PATIENCE:
            scale, since = 0.7 * scale, 0
        progress.rows.append((value, progress.score, scale, int(relaxation.alive.sum())))
        again = since == 0 and progress.bound - progress.score < GAIN * gap_then
        yield again
        if again:
            gap_then = progress.bound - progress.score
        if relaxation.exact or progress.proved or clock.out_of_time:
            return
        if relaxation.move(scale, value - progress.score) == 0.0:
            return


def decode(progress: Progress, clock: Clock, max_iterations: int, most_items: int, *, exact: bool) -> None:
    """Find the best derivation and prove it, unless the limits end it before.

    Alternates steps on the multipliers with a small beam for a better derivation, an exact search that gives up early,
    and removal; at the end the search gets all that the limits leave. Not ``exact``: without the exact searches.
    """
    relaxation = progress.relaxation
    for again in lower(progress, clock, max_iterations):
        if relaxation.exact or not again:
            continue
        edge, pair = relaxation.complete()
        found = relaxation.search(progress.least, beam=BEAM)
        if found.top >= 0:
            progress.offer(found.derivation())
        relaxation.allowed = relaxation.allowed & (pair >= progress.least)
        if exact:
            found = relaxation.search(progress.least, budget=min(BUDGET, most_items))
            progress.info["searches"] += 1
            if found.done:
                progress.conclude(found)
                break
        progress.info["items"] = relaxation.remove(progress.least, edge, pair)
    budget = BUDGET
    while exact and not (progress.proved or clock.out_of_time) and budget < most_items:
        budget = min(8 * budget, most_items)
        relaxation.u = progress.u.copy()
        relaxation.value()
        relaxation.complete()
        found = relaxation.search(progress.least, budget=_affordable(budget, clock))
        progress.info["searches"] += 1
        if found.done:
            progress.conclude(found)
    progress.info["edges left"] = int(relaxation.alive.sum())


def beam_search(progress: Progress, clock: Clock, max_iterations: int, most_items: int, *, exact: bool) -> None:
    """Optimal beam search (LR alg. 13, alternating): rounds of a step on the multipliers and of a search with a beam.

    With ``exact`` the beam doubles from round to round; a search that dropped nothing of interest proves its result (LR
    property 7.4.2). Differs from LR 7: signatures are first and last words, of pieces of target sides, and completions
    are bounded for each of them, not for each vertex.
    """
    relaxation = progress.relaxation
    beam = BEAM
    for again in lower(progress, clock, max_iterations):
        if relaxation.exact:
            continue
        edge, pair = relaxation.complete()
        found = relaxation.search(progress.least, beam=beam, budget=_affordable(most_items, clock))
        progress.info["searches"] += 1
        progress.info["beam"] = beam
        if found.top >= 0:
            progress.offer(found.derivation())
        if found.done and found.lost < progress.least:
            progress.bound = progress.score
            break
        if exact:
            beam *= 2
        if again:
            progress.info["items"] = relaxation.remove(progress.least, edge, pair)
    progress.info["edges left"] = int(relaxation.alive.sum())


def _affordable(budget: int, clock: Clock) -> int:
    """The budget, cut to what the time left pays for."""
    if clock.limit is None:
        return budget
    return min(budget, int(max(clock.limit - clock.seconds, 0.01) * COMBINATIONS_PER_SECOND))
