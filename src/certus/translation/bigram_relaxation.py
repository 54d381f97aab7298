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

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from certus import kernels
from certus.certificates.rounding import of_sum
from certus.checks import Bools, Floats
from certus.relax.descent import Descent, Oracle, Round, descend
from certus.relax.run import Run
from certus.relax.steps import StepRule, polyak
from certus.threads import long_call
from certus.translation.cube_pruning import cube_pruning
from certus.translation.language_model import LanguageModel
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

    def slack(self, u: Floats) -> float:
        """How far rounding may lower a bound at u: what lies so little below a score is not removed."""
        size = self.scale + 2 * float(max(u.max(), -u.min()))
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

    def subgradient(self) -> Floats:
        """Of u at ``derivation``: a pair counts against its own multiplier and for that of what it chose.

        All zero where the relaxation is the problem itself.
        """
        gradient = np.zeros(self.q.shape)
        if not self.exact:
            v, w = self._pairs[: self.n_pairs].T
            chosen = self.chosen[v, w]
            np.add.at(gradient, (chosen[chosen >= 0], v[chosen >= 0]), 1.0)
            inner = w != kernels.forest_pieces.END
            np.add.at(gradient, (v[inner], w[inner]), -1.0)
        return gradient

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


class BoundedSearch(Oracle):
    """The relaxation as an oracle, over what is left of the forest, and searches under the bounds of the last round."""

    def __init__(
        self, problem: "ForestTranslation", relaxation: BigramRelaxation, run: Run[list[int]], most_items: int
    ) -> None:
        self.problem, self.relaxation, self.run, self.most_items = problem, relaxation, run, most_items
        self.scale, self.rows = relaxation.scale, int(relaxation.alive.sum())
        self.exact = True
        self._gap = inf  # when parts were removed last
        self._beam = 0
        run.count(searches=0)

    def ask(self, u: Floats) -> Round | None:
        relaxation = self.relaxation
        relaxation.u = u.reshape(relaxation.q.shape)
        value = relaxation.value()
        if not value >= self.least:
            self.run.proof = "search"
            return None
        edges = relaxation.derivation()
        return Round(value, relaxation.subgradient().ravel(), [(edges, self.problem.score(np.array(edges)))])

    def error(self, u: Floats) -> float:
        return self.relaxation.slack(u)

    @property
    def least(self) -> float:
        """What scores less than this is no better than what is known, whatever the rounding."""
        slack = self.relaxation.slack(self.relaxation.u)
        self.run.allow(slack)
        return self.run.score - slack

    def over(self, at: Descent[Any]) -> bool:
        """Whether all is proved, or the time is up."""
        return self.run.proof is not None or at.close() or self.run.out_of_time

    def offer(self, edges: list[int]) -> None:
        """A derivation that may be the best so far."""
        self.run.offer(edges, self.problem.score(np.array(edges)))

    def search(self, *, beam: int = 0, budget: int = 1 << 62) -> None:
        """Search for something better; if all that scores at least ``least`` was searched, its best is the optimum."""
        found = self.relaxation.search(self.least, beam=beam, budget=self._affordable(budget))
        self.run.count(searches=1)
        if found.top >= 0:
            self.offer(self.relaxation.best_of(found))
        if found.done and found.lost < self.least:
            self.run.proof = "search"

    def _affordable(self, budget: int) -> int:
        """The budget, cut to what the time left pays for."""
        clock = self.run.clock
        if clock.limit is None:
            return budget
        return min(budget, int(max(clock.limit - clock.seconds, 0.01) * COMBINATIONS_PER_SECOND))

    def _gained(self, at: Descent[Any]) -> bool:
        """Whether this round has brought the gap down so far that it is time to remove parts again."""
        return at.best_u is at.u and at.best - self.run.score < GAIN * self._gap

    def _remove(self, at: Descent[Any], edge: Floats, pair: Floats) -> None:
        if not self.over(at):
            self.run.info["items"] = self.relaxation.remove(self.least, edge, pair)
            self.rows = int(self.relaxation.alive.sum())
        self._gap = at.best - self.run.score

    def alternate(self, at: Descent[Any]) -> None:
        """After a gain: a small beam for a better derivation, an exact search that gives up early, and removal."""
        if not self._gained(at):
            return
        edge, pair = self.relaxation.complete()
        self.search(beam=BEAM)
        self.relaxation.allowed = self.relaxation.allowed & (pair >= self.least)
        if self.exact and not self.over(at):
            self.search(budget=min(BUDGET, self.most_items))
        self._remove(at, edge, pair)

    def widen(self, at: Descent[Any]) -> None:
        """After every round: a search with a beam, which doubles from round to round if the search is to be exact."""
        gained = self._gained(at)
        self._beam = min(2 * self._beam, WIDEST) if self.exact and self._beam else BEAM
        edge, pair = self.relaxation.complete()
        self.search(beam=self._beam, budget=self.most_items)
        if gained:
            self._remove(at, edge, pair)


def default_rule() -> StepRule[Any]:
    """Polyak's steps, which get smaller after five rounds without a better bound."""
    return polyak(patience=5, shrink=0.7)


def decode(
    oracle: BoundedSearch, rule: StepRule[Any], max_iterations: int, *, beams: bool = False
) -> Descent[BoundedSearch]:
    """Find the best derivation and prove it, unless the limits end it before.

    Alternates steps on the multipliers with searches and removal; at the end an exact search gets all that the limits
    leave. With ``beams``, this is optimal beam search instead (LR alg. 13, alternating): every round ends with a search
    with a beam, and one that dropped nothing of interest proves its result (LR property 7.4.2). Differs from LR 7:
    signatures are first and last words, of pieces of target sides, and completions are bounded for each of them, not
    for each vertex.
    """
    relaxation, run, problem = oracle.relaxation, oracle.run, oracle.problem
    search = oracle.widen if beams else oracle.alternate
    at = descend(run, oracle, np.zeros(relaxation.u.size), rule, max_iterations=max_iterations, search=search)
    if oracle.exact and not oracle.over(at):  # nothing exact should return less than cube pruning
        oracle.offer(cube_pruning(problem.translation_forest, problem.lm, problem.lm_weight).edges)
    budget = oracle.most_items if beams or not oracle.exact else BUDGET
    while budget < oracle.most_items and not oracle.over(at):
        budget = min(8 * budget, oracle.most_items)
        relaxation.u = at.best_u.reshape(relaxation.q.shape)
        relaxation.value()
        relaxation.complete()
        oracle.search(budget=budget)
    run.info |= {"step": repr(rule), "edges left": int(relaxation.alive.sum())}
    return at
