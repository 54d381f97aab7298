"""Exact decoding of translation forests by a bigram relaxation, and search within its bounds.

The language model is relaxed to scores q[v, w] of adjacent words, each w choosing the words before v freely;
multipliers for pairs of words, and for the longer contexts that the model knows, pull the choices towards what stands
there (the identity at the head of ``certus/kernels/bigram_scores.py``). Under q the forest is still decoded exactly,
all first and last words of all vertices at once, so that the bound is far tighter than with choices of single leaves
(LR 5.3), and it gives for every edge, pair of words and item the best it can be part of. What falls below the best
translation known is removed for good, the choices with it, and soon the exact n-gram search of the rest is small.

As long as much is left, most steps on the multipliers are made on a part of the forest: what may score close to the
bound (``pull``). Any multipliers are good for the whole; nothing is lost but that the whole must be asked again.

Differs from LR 5.3: multipliers on pairs of words and contexts of the model instead of leaves and paths between them;
reduced-cost fixing after each sizeable gain; the search replaces the tightening of LR 5.4.
"""

from copy import copy
from math import inf
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from certus import kernels
from certus.certificates.rounding import of_sum
from certus.checks import Bools, Floats, Ints
from certus.errors import Infeasible
from certus.relax.descent import Descent, Oracle, Round, descend
from certus.relax.run import HeldRun, Run
from certus.relax.steps import StepRule, polyak
from certus.threads import long_call
from certus.translation.cube_pruning import cube_pruning
from certus.translation.forest import NO_DERIVATION
from certus.translation.language_model import LanguageModel
from certus.translation.scored_forest import ScoredForest

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

POPS = 60  # of cube pruning for a translation to begin with
BEAM = 4  # items kept per piece where a translation is sought, not a proof
WIDEST = 1 << 30  # a beam that drops nothing
BUDGET = 20_000  # combinations of the first exact search; some 5 ms
CELLS_PER_COMBINATION = 8  # a search may take so much of what sweeps over the tables have taken
COMBINATIONS_PER_SECOND = 5e6
GAIN = 0.6  # edges are removed again once the gap is so much of what it was
MANY = 20_000  # items of vertices that no search of a small budget comes to an end with
LARGE = 10_000  # cells of the tables from which on steps are made on a part of the forest
SHARE = 0.85  # of the gap: what may score more than so far above the best translation is that part
PART = 10_000  # cells that may score so, at most
WIDE = 8  # items kept per piece of the part
PULLS = 50  # steps on it, at most
SETTLED = 0.9  # steps on a part that leave more than this of the gap are the last
WINDOW = 15  # steps on the whole within which progress is looked for
ENOUGH = 0.1  # of the gap: once it is no more than this, the whole is asked again


class BigramRelaxation:
    """The relaxation of one forest: what is left of it, the multipliers, and the tables of the last sweep.

    ``size`` multipliers stand in one vector: those of pairs of words that may be adjacent, then those of contexts of
    three words or more. ``take`` spreads them out to ``u`` (W, W), by pairs, and ``high``, by contexts of ``tables``.
    """

    def __init__(self, forest: ScoredForest, lm: LanguageModel, lm_weight: float) -> None:
        self.forest, self.lm, self.lm_weight = forest, lm, lm_weight
        n_words = forest.n_words
        self.alive: Bools = forest.alive
        self.first = np.ones((forest.n_vertices, n_words), dtype=bool)
        self.last = np.ones((forest.n_vertices, n_words), dtype=bool)
        self._build()
        allowed = np.zeros((n_words, n_words), dtype=bool)
        kernels.forest_pieces.adjacent(self.pieces, allowed)
        self.tables = kernels.bigram_scores.tables(lm.arrays, lm_weight, forest.lm_word, allowed)
        values = (forest.arrays.weight, self.tables.pair, lm.order * self.tables.back, self.tables.value)
        self.scale = float(sum(np.abs(v[np.isfinite(v)]).max(initial=0.0) for v in values))
        self._columns = np.zeros((n_words, n_words))  # [w, v]: what stands before one word is read together
        self.u = self._columns.T
        self.q = np.full((n_words, n_words), -np.inf)
        self._free = np.flatnonzero(allowed & (np.arange(n_words) != kernels.forest_pieces.END) & (lm.order > 2))
        before, after = np.divmod(self._free, n_words)
        self._turned = after * n_words + before
        self._number = np.full(n_words * n_words, -1, dtype=np.int64)  # of the multiplier of each pair
        self._number[self._free] = np.arange(len(self._free))
        self._n_short = int((self.tables.parent < 0).sum())  # contexts of two words
        self.high = np.zeros(len(self.tables.state))
        self._by_state = np.zeros(lm.n_states if lm.order > 3 else 1)
        states, self._shown, self._long = np.unique(
            self.tables.state[self._n_short :], return_index=True, return_inverse=True
        )  # longer contexts: those of one state, of copies of its words, have one multiplier
        self.size = len(self._free) + len(states)
        self._number_of_context = np.concatenate((np.full(self._n_short, -1), self._long + len(self._free), [-1]))
        self.allow(allowed)
        most_edges, most_words = forest.longest
        self._edges = np.empty(most_edges, dtype=np.int64)
        self._pairs = np.empty((most_words + 1, 2), dtype=np.int64)
        self.n_pairs = 0

    @property
    def exact(self) -> bool:
        """Whether the relaxation is the problem itself: the model looks back one word at most."""
        return self.lm.order <= 2

    # -- multipliers ---------------------------------------------------------------------------------------------------

    def take(self, vector: Floats) -> None:
        """Take up multipliers."""
        n = len(self._free)
        self._columns.reshape(-1)[self._turned] = vector[:n]
        self.high[self._n_short :] = vector[n:][self._long]

    def multipliers(self, vector: Floats) -> dict[str, Floats]:
        """Multipliers that are not zero: of "pairs", as rows (word, word, value), and of "contexts", as rows (words,

        value) with -3 before the words of shorter ones; words as in ``ScoredForest.label``, in contexts as in ``name``.
        """
        n, label = len(self._free), self.forest.label
        used = np.flatnonzero(vector[:n])
        v, w = np.divmod(self._free[used], self.forest.n_words)
        out: dict[str, Floats] = {"pairs": np.column_stack((label[v], label[w], vector[used])).astype(np.float64)}
        if self.lm.order > 3:
            used = np.flatnonzero(vector[n:])
            words = self._words(self._shown[used] + self._n_short)
            out["contexts"] = np.column_stack((words, vector[n + used])).astype(np.float64)
        return out

    def _words(self, contexts: Ints) -> Ints:
        """The words of contexts (n, order - 1), as in ``ScoredForest.name``, -3 before those of shorter ones."""
        t, name = self.tables, self.forest.name
        words = np.full((len(contexts), self.lm.order - 1), -3, dtype=np.int64)
        at = contexts.copy()
        for place in range(self.lm.order - 2, 0, -1):
            there = at >= 0
            words[there, place] = name[t.newer[at[there]]]
            words[there, place - 1] = name[t.older[at[there]]]
            at[there] = t.parent[at[there]]
        return words

    def vector(self, rows: dict[str, Floats]) -> Floats:
        """The vector of which ``multipliers`` gave the rows; those of words and contexts that are not there are left

        out.
        """
        out = np.zeros(self.size)
        number = {label: i for i, label in enumerate(self.forest.label.tolist())}
        for v, w, value in rows["pairs"].tolist():
            if v in number and w in number and (k := self._number[number[v] * self.forest.n_words + number[w]]) >= 0:
                out[k] = value
        if "contexts" in rows:
            long = self._words(self._shown + self._n_short).tolist()
            known = {tuple(words): i for i, words in enumerate(long, start=len(self._free))}
            for *words, value in rows["contexts"].tolist():
                if (i := known.get(tuple(words))) is not None:
                    out[i] = value
        return out

    def _build(self) -> None:
        self.pieces = kernels.forest_pieces.build(self.forest.arrays, self.alive, self.first, self.last)
        size = int(self.pieces.offset[-1])
        self.table, self.out = np.empty(size), np.empty(size)

    def allow(self, allowed: Bools) -> None:
        """Pairs of words that may be adjacent from now on."""
        self.allowed = allowed
        self._activate(allowed)
        self.q[~allowed] = -np.inf

    def _activate(self, pairs: Bools) -> None:
        """Score these pairs of words only."""
        self.active = kernels.bigram_scores.select(self.tables, self.allowed, pairs)
        n = self.forest.n_words
        self._keys = np.repeat(np.arange(n) * n, np.diff(self.active.pair_ptr)) + self.active.second
        self.chosen = np.full((len(self._keys), 3), -1, dtype=np.int64)

    def slack(self) -> float:
        """How far rounding may lower a bound: what lies so little below a score is not removed."""
        largest = sum(float(max(a.max(initial=0.0), -a.min(initial=0.0))) for a in (self.u, self.high))
        return of_sum(2 * sum(self.forest.longest) + 2, self.scale + 2 * largest)

    # -- the oracle: from multipliers to a value, a derivation and a subgradient ---------------------------------------

    def value(self) -> float:
        """The bound under the present multipliers; -inf if nothing is left of the forest."""
        kernels.bigram_scores.optimistic(self.tables, self.active, self.u, self.high, self.q, self.chosen)
        kernels.forest_bigram.inside(self.pieces, self.q, self.table)
        return float(self.table[-1]) if len(self.table) else -np.inf

    def derivation(self) -> list[int]:
        """A derivation of the forest that reaches ``value``."""
        n, self.n_pairs = kernels.forest_bigram.best_derivation(
            self.pieces, self.q, self.table, self._edges, self._pairs
        )
        return self.forest.derivation(self._edges[:n].tolist())

    def taken(self, v: Ints, w: Ints) -> Ints:
        """(n, 3) what the pairs v, w chose: the word before v, the context and the one after w, -1 for none."""
        found: Ints = self.chosen[np.searchsorted(self._keys, v * self.forest.n_words + w)]
        return found

    def subgradient(self) -> Floats:
        """Of the multipliers at ``derivation``: a pair counts against its own and for those of what it chose.

        All zero where the relaxation is the problem itself.
        """
        gradient = np.zeros(self.size)
        if not self.exact:
            v, w = self._pairs[: self.n_pairs].T
            before, context, after = self.taken(v, w).T
            n, long = self.forest.n_words, self._number_of_context
            for at, sign in (
                (self._number[(before * n + v)[before >= 0]], 1.0),
                (self._number[v * n + w], -1.0),
                (long[context], 1.0),
                (long[after], -1.0),
            ):
                np.add.at(gradient, at[at >= 0], sign)
        return gradient

    # -- bounds of everything, removal, search -------------------------------------------------------------------------

    def complete(self, least: float) -> tuple[Floats, Floats]:
        """Outside scores, for ``search`` and ``remove``; the best derivation of each edge and pair of words.

        They are good for what is in derivations of at least ``least``, and take little time for the rest.
        """
        edge = np.empty(len(self.pieces.edge_id))
        pair = np.empty(self.q.shape)
        kernels.forest_bigram.outside(self.pieces, self.q, self.table, least, self.out, edge, pair)
        return edge, pair

    def remove(self, least: float, edge: Floats, pair: Floats) -> int:
        """Leave out what is in no derivation of at least ``least``; returns how many items of vertices are left."""
        n_items = self.mark(least, edge)
        self.leave(pair >= least)
        return n_items

    def mark(self, least: float, edge: Floats) -> int:
        """Take note of edges and ends of vertices in derivations of at least ``least``; the items of vertices there."""
        n_items = int(kernels.forest_bigram.surviving(self.pieces, self.table, self.out, least, self.first, self.last))
        self.alive = np.zeros(len(self.forest.alive), dtype=bool)
        self.alive[self.pieces.edge_id[edge >= least]] = True
        return n_items

    def leave(self, pairs: Bools) -> None:
        """Leave out what is not marked, and all but these pairs of words; bounds of items are not known any more."""
        self.allow(self.allowed & pairs)
        self._build()

    def part(self, least: float, edge: Floats, before: Self | None) -> Self:
        """The relaxation of what is in derivations of at least ``least``, and of all that ``before`` has.

        Multipliers and scores are those of the whole, and change with them.
        """
        part = copy(self)
        part.first, part.last = np.empty_like(self.first), np.empty_like(self.last)
        part.mark(least, edge)
        if before is not None:
            part.alive, part.first, part.last = (
                part.alive | (before.alive & self.alive), part.first | before.first, part.last | before.last
            )  # fmt: skip
        part._build()
        pairs = np.zeros_like(self.allowed)
        kernels.forest_pieces.adjacent(part.pieces, pairs)
        part._activate(pairs & self.allowed)
        return part

    def search(self, least: float, *, beam: int = 0, budget: int = 1 << 62, all_ways: bool = False) -> Any:
        """Exact search after ``complete``, without what cannot reach ``least``: a Found of the kernel."""
        k = kernels.forest_exact
        if self.lm.order > 3:
            self._by_state[self.tables.state] = self.high
        model = k.Model(
            self.lm.arrays, self.lm_weight, self.forest.lm_word, self.q, self.u, self._by_state, self.allowed
        )
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


class Pull(Oracle):
    """A relaxation as an oracle that asks for multipliers only; done once its value is no more than ``enough``."""

    def __init__(self, relaxation: BigramRelaxation, enough: float) -> None:
        self.relaxation, self.enough, self.scale = relaxation, enough, relaxation.scale
        self.found: Floats | None = None

    def ask(self, u: Floats) -> Round | None:
        relaxation = self.relaxation
        relaxation.take(u)
        value = relaxation.value()
        if not value > self.enough:
            self.found = u
            return None
        relaxation.derivation()
        return Round(value, relaxation.subgradient())


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
        self.settled = False  # steps on a part do not help any more: they are made on the whole
        self._cells = 0  # of the tables, all sweeps together
        self._part: BigramRelaxation | None = None
        run.count(searches=0)

    def ask(self, u: Floats) -> Round | None:
        relaxation = self.relaxation
        relaxation.take(u)
        value = relaxation.value()
        self._cells += len(relaxation.table)
        if value == -inf and self.run.structure is None:
            raise Infeasible(NO_DERIVATION)
        if not value >= self.least:
            self.run.proof = "search"
            return None
        edges = relaxation.derivation()
        return Round(value, relaxation.subgradient(), [(edges, self.problem.score(np.array(edges)))])

    def error(self, u: Floats) -> float:
        return self.relaxation.slack()

    @property
    def least(self) -> float:
        """What scores less than this is no better than what is known, whatever the rounding."""
        slack = self.relaxation.slack()
        self.run.allow(slack)
        return self.run.score - slack

    @property
    def large(self) -> bool:
        """Whether so much is left that most steps should be made on a part of it."""
        return len(self.relaxation.table) > LARGE

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
        gain = 1.0 if self.large else GAIN
        return at.best_u is at.u and at.best - self.run.score < gain * self._gap

    def _remove(self, at: Descent[Any], pair: Floats) -> None:
        if not self.over(at):
            self.relaxation.leave(pair >= self.least)
            self.rows = int(self.relaxation.alive.sum())
        self._gap = at.best - self.run.score

    def _complete(self, at: Descent[Any], *, all_of_it: bool) -> tuple[Floats, Floats]:
        """Bounds of all that may be best, or of the part alone; and the part to make steps on, if much is left."""
        relaxation = self.relaxation
        level = self.run.score + SHARE * (at.value - self.run.score)
        edge, pair = relaxation.complete(self.least if all_of_it else level)
        self._cells += len(relaxation.table)
        if self.large:
            level = kernels.forest_bigram.ranked(relaxation.table, relaxation.out, level, PART)
            self._part = relaxation.part(level, edge, self._part)
        else:
            self._part = None
        return edge, pair

    def alternate(self, at: Descent[Any]) -> None:
        """After a gain: a small beam for a better derivation, an exact search that gives up early, and removal."""
        gained = self._gained(at)
        if self.large and self._gap == inf:  # the first bound removes little
            self._gap, gained = at.best - self.run.score, False
        if not gained and (self.settled or not self.large):
            return
        edge, pair = self._complete(at, all_of_it=gained)
        if not gained:
            return
        items = self.run.info["items"] = self.relaxation.mark(self.least, edge)
        if not self.large:
            self.search(beam=BEAM)
        if self.exact and not self.over(at) and items < MANY:
            self.search(budget=min(max(BUDGET, self._cells // CELLS_PER_COMBINATION), self.most_items))
        self._remove(at, pair)

    def widen(self, at: Descent[Any]) -> None:
        """After every round: a search with a beam, which doubles from round to round if the search is to be exact."""
        gained = self._gained(at)
        self._beam = min(2 * self._beam, WIDEST) if self.exact and self._beam else BEAM
        edge, pair = self._complete(at, all_of_it=True)
        self.search(beam=self._beam, budget=self.most_items)
        if gained:
            self.run.info["items"] = self.relaxation.mark(self.least, edge)
            self._remove(at, pair)

    def finish(self, at: Descent[Any]) -> None:
        """Exact searches under the best bounds, each of eight times the budget, up to all that memory allows."""
        if not self.exact or self.over(at):
            return
        self.relaxation.take(at.best_u)
        self.relaxation.value()
        self.relaxation.complete(self.least)
        budget = max(BUDGET, self._cells // CELLS_PER_COMBINATION)
        while budget < self.most_items and not self.over(at):
            budget = min(8 * budget, self.most_items)
            self.search(budget=budget)

    def pull(self, at: Descent[Any], most: int) -> Floats:
        """Better multipliers, by ``most`` steps on the part of the forest that may score close to the bound.

        Under these a beam over the part finds a better derivation as a rule.
        """
        part, run = self._part, self.run
        if part is None:
            return at.best_u
        enough = run.score + ENOUGH * (at.best - run.score)
        oracle, held = Pull(part, enough), HeldRun(run.score, part.scale)
        found = descend(held, oracle, at.best_u, at.rule, max_iterations=min(PULLS, most), log=False)
        run.iterations += found.rounds
        self._cells += found.rounds * len(part.table)
        u = found.best_u if oracle.found is None else oracle.found
        part.take(u)
        part.value()
        part.complete(self.least)
        best = part.search(self.least, beam=WIDE)
        if best.top >= 0:
            self.offer(part.best_of(best))
        return u


def default_rule() -> StepRule[Any]:
    """Polyak's steps, which get smaller after five rounds without a better bound."""
    return polyak(patience=5, shrink=0.7)


def decode(
    oracle: BoundedSearch, rule: StepRule[Any], max_iterations: int, *, beams: bool = False
) -> Descent[BoundedSearch]:
    """Find the best derivation and prove it, unless the limits end it before.

    Starts from what cube pruning finds. Alternates steps on the multipliers with searches and removal; at the end an
    exact search gets all that the limits leave. With ``beams``, this is optimal beam search instead (LR alg. 13,
    alternating): every round ends with a search with a beam, and one that dropped nothing of interest proves its result
    (LR property 7.4.2); what they leave open goes to the same exact search. Differs from LR 7: signatures are first and
    last words, of pieces of target sides, and completions are bounded for each of them, not for each vertex.
    """
    relaxation, run, problem = oracle.relaxation, oracle.run, oracle.problem
    if not relaxation.exact:
        oracle.offer(cube_pruning(problem.translation_forest, problem.lm, problem.lm_weight, POPS).edges)
    search = oracle.widen if beams else oracle.alternate
    at = Descent(run, oracle, np.zeros(relaxation.size), rule)
    gap = inf
    while run.iterations < max_iterations:
        if at.ask(search, True) or oracle.over(at):
            break
        oracle.settled = oracle.settled or (at.best - run.score > SETTLED * gap and not beams)
        left = max_iterations - run.iterations - 1  # steps on a part, with one on the whole after them
        if oracle.large and not oracle.settled and left > 0:
            gap = at.best - run.score
            at.restart(oracle, oracle.pull(at, left))
        elif at.stalled(WINDOW) and not beams:
            break
    oracle.finish(at)
    if run.proof is None and not at.close():  # nothing should return less than cube pruning
        oracle.offer(cube_pruning(problem.translation_forest, problem.lm, problem.lm_weight).edges)
    run.info |= {"step": repr(rule), "edges left": int(relaxation.alive.sum())}
    return at
