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

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from certus import kernels
from certus.certificates.rounding import of_sum
from certus.checks import Bools, Floats, Ints
from certus.clock import Clock
from certus.relax.engine import Log
from certus.relax.steps import StepRule, polyak
from certus.threads import long_call
from certus.translation.cube_pruning import cube_pruning
from certus.translation.language_model import LanguageModel
from certus.translation.multipliers import Steps
from certus.translation.scored_forest import ScoredForest

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

BEAM = 4  # items kept per piece where a translation is sought, not a proof
WIDEST = 1 << 30  # a beam that drops nothing
BUDGET = 300_000  # combinations of the first exact search; some 20 ms
COMBINATIONS_PER_SECOND = 5e6
GAIN = 0.6  # edges are removed again once the gap is so much of what it was


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
        self.tables = kernels.bigram_scores.tables(lm.arrays, lm_weight, forest.lm_word, self.allowed)
        values = (forest.arrays.weight, self.tables.pair, self.tables.back, self.tables.value)
        self.scale = float(sum(np.abs(v[np.isfinite(v)]).max(initial=0.0) for v in values))
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
        self.pieces = kernels.forest_pieces.build(self.forest.arrays, self.alive, self.first, self.last)
        size = int(self.pieces.offset[-1])
        self.table, self.out = np.empty(size), np.empty(size)

    def slack(self) -> float:
        """How far rounding may lower a bound: what lies so little below a score is not removed."""
        size = self.scale + 2 * float(max(self.u.max(), -self.u.min()))
        return of_sum(2 * sum(self.forest.longest) + 2, size)

    # -- the oracle: from multipliers to a value, a derivation and a subgradient ---------------------------------------

    def value(self) -> float:
        """The bound under the present multipliers; -inf if nothing is left of the forest."""
        kernels.bigram_scores.optimistic(self.tables, self.u, self.allowed, self.q, self.chosen)
        kernels.forest_bigram.inside(self.pieces, self.q, self.table)
        return float(self.table[-1]) if len(self.table) else -np.inf

    def derivation(self) -> list[int]:
        """A derivation of the forest that reaches ``value``."""
        n, self.n_pairs = kernels.forest_bigram.best_derivation(
            self.pieces, self.q, self.table, self._edges, self._pairs
        )
        return self.forest.derivation(self._edges[:n].tolist())

    def subgradient(self) -> tuple[Ints, Floats]:
        """Cells (n, 2) and values of the subgradient at ``derivation``; none if all choices agree."""
        cells, values = kernels.bigram_scores.subgradient(self._pairs[: self.n_pairs], self.chosen, self._gradient)
        return cells, values

    # -- bounds of everything, removal, search -------------------------------------------------------------------------

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

    def search(self, least: float, *, beam: int = 0, budget: int = 1 << 62, all_ways: bool = False) -> Any:
        """Exact search after ``complete``, without what cannot reach ``least``: a Found of the kernel."""
        k = kernels.forest_exact
        model = k.Model(self.lm.arrays, self.lm_weight, self.forest.lm_word, self.q, self.u, self.allowed)
        steps = 0.0 if beam == BEAM else 100.0 * budget
        return long_call(steps, k.search, self.pieces, self.out, model, least, beam, budget, all_ways)

    def best_of(self, found: Any) -> list[int]:
        """Edges of the best derivation that a search found."""
        out: list[int] = []
        agenda = [found.top]
        while agenda:
            _, left, right, edge = found.way[found.best_way[agenda.pop()]].tolist()
            if edge >= 0:
                out.append(edge)
            agenda.extend(part for part in (right, left) if part >= 0)
        return self.forest.derivation(out)


class Progress:
    """A run on one forest: the best derivation so far, the best bound with its multipliers, and rows for the trace."""

    def __init__(self, relaxation: BigramRelaxation, problem: "ForestTranslation", clock: Clock) -> None:
        self.relaxation, self.problem, self.clock = relaxation, problem, clock
        self.edges: list[int] = []
        self.score = -np.inf
        self.bound = np.inf
        self.u = relaxation.u.copy()
        self.log = Log()
        self.info: dict[str, Any] = {"searches": 0}
        self.slack = 0.0  # the largest by which anything was left out or proved

    def offer(self, edges: list[int]) -> None:
        """A derivation that may be the best so far."""
        score = self.problem.score(np.array(edges))
        if score > self.score:
            self.score, self.edges = score, edges

    def offer_heuristic(self) -> None:
        """What cube pruning finds, where a gap remains: nothing exact should return less."""
        if not self.over:
            p = self.problem
            self.offer(cube_pruning(p.translation_forest, p.lm, p.lm_weight).edges)

    def lower(self, value: float) -> bool:
        """A value of the relaxation; True if it is the lowest so far."""
        lowest = value < self.bound
        if lowest:
            self.bound, self.u = value, self.relaxation.u.copy()
        return lowest

    @property
    def least(self) -> float:
        """What scores less than this is no better than what is known, whatever the rounding."""
        return self.score - self._noted()

    @property
    def proved(self) -> bool:
        """Whether the bound has come down to the score."""
        return self.bound - self.score <= self._noted()

    @property
    def over(self) -> bool:
        """Whether all is proved, or the time is up."""
        return self.proved or self.clock.out_of_time

    def _noted(self) -> float:
        slack = self.relaxation.slack()
        self.slack = max(self.slack, slack)
        return slack

    def search(self, *, beam: int = 0, budget: int = 1 << 62) -> Any:
        """Search for something better; if all that scores at least ``least`` was searched, its best is the optimum."""
        found = self.relaxation.search(self.least, beam=beam, budget=budget)
        if found.top >= 0:
            self.offer(self.relaxation.best_of(found))
        if found.done and found.lost < self.least:
            self.bound = self.score
        return found

    def affordable(self, budget: int) -> int:
        """The budget, cut to what the time left pays for."""
        if self.clock.limit is None:
            return budget
        return min(budget, int(max(self.clock.limit - self.clock.seconds, 0.01) * COMBINATIONS_PER_SECOND))


def default_rule() -> StepRule[Any]:
    """Polyak's steps, which get smaller after five rounds without a better bound."""
    return polyak(patience=5, shrink=0.7)


def descend(progress: Progress, rule: StepRule[Any], max_iterations: int, visit: Callable[[bool], None]) -> None:
    """Lower the bound by steps on the multipliers, until it meets the score, the steps vanish or a limit is reached.

    ``visit`` is called after each round, with True when it is time to remove parts again; it may search and remove.
    """
    relaxation = progress.relaxation
    steps, gap_then = Steps(rule, relaxation.scale), np.inf
    for _ in range(max_iterations):
        value = relaxation.value()
        if not value >= progress.least:  # all that is left scores less than what is known
            progress.bound = progress.score
            return
        if value == -np.inf:
            return
        progress.offer(relaxation.derivation())
        again = progress.lower(value) and progress.bound - progress.score < GAIN * gap_then
        progress.log.add(value, progress.score, 0.0, int(relaxation.alive.sum()))
        if relaxation.exact:
            return
        visit(again)
        if again:
            gap_then = progress.bound - progress.score
        cells, residual = relaxation.subgradient()
        if progress.over or not len(residual):
            return
        at = cells[:, 0] * len(relaxation.u) + cells[:, 1]
        progress.log.step[-1] = steps.move(relaxation.u.reshape(-1), at, residual, value, progress.score)


def decode(progress: Progress, rule: StepRule[Any], max_iterations: int, most_items: int, *, exact: bool) -> None:
    """Find the best derivation and prove it, unless the limits end it before.

    Alternates steps on the multipliers with a small beam for a better derivation, an exact search that gives up early,
    and removal; at the end the search gets all that the limits leave. Not ``exact``: without the exact searches.
    """
    relaxation = progress.relaxation

    def visit(again: bool) -> None:
        if not again:
            return
        edge, pair = relaxation.complete()
        progress.search(beam=BEAM)
        relaxation.allowed = relaxation.allowed & (pair >= progress.least)
        if exact and not progress.proved:
            progress.info["searches"] += 1
            progress.search(budget=min(BUDGET, most_items))
        if not progress.proved:
            progress.info["items"] = relaxation.remove(progress.least, edge, pair)

    descend(progress, rule, max_iterations, visit)
    if exact:
        progress.offer_heuristic()
    budget = BUDGET
    while exact and not progress.over and budget < most_items:
        budget = min(8 * budget, most_items)
        relaxation.u = progress.u.copy()
        relaxation.value()
        relaxation.complete()
        progress.info["searches"] += 1
        progress.search(budget=progress.affordable(budget))
    progress.info["edges left"] = int(relaxation.alive.sum())


def beam_search(progress: Progress, rule: StepRule[Any], max_iterations: int, most_items: int, *, exact: bool) -> None:
    """Optimal beam search (LR alg. 13, alternating): rounds of a step on the multipliers and of a search with a beam.

    With ``exact`` the beam doubles from round to round; a search that dropped nothing of interest proves its result (LR
    property 7.4.2). Differs from LR 7: signatures are first and last words, of pieces of target sides, and completions
    are bounded for each of them, not for each vertex.
    """
    relaxation, info = progress.relaxation, progress.info

    def visit(again: bool) -> None:
        info["beam"] = min(2 * info["beam"], WIDEST) if exact and "beam" in info else BEAM
        info["searches"] += 1
        edge, pair = relaxation.complete()
        progress.search(beam=info["beam"], budget=progress.affordable(most_items))
        if again and not progress.proved:
            info["items"] = relaxation.remove(progress.least, edge, pair)

    descend(progress, rule, max_iterations, visit)
    if exact:
        progress.offer_heuristic()
    info["edges left"] = int(relaxation.alive.sum())
