"""The bound of a translation checked in numpy and plain Python: bigram tables with multipliers, then exact search.

The same relaxation as ``bigram_relaxation``, found again without kernels and without hooks: each edge is followed from
left to right with a matrix (first word, last word), and back again for what surrounds it. Slow (a minute for a forest
of 40,000 edges), and independent.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from certus.checks import Bools, Floats, Ints
from certus.translation.forest import TranslationForest
from certus.translation.language_model import LanguageModel
from certus.translation.reference import Item, best_value
from certus.translation.scored_forest import BEGIN, END, ScoredForest, prepare

ROUNDS = 4  # of removing what is below the bound

Cells = tuple[Any, ...]


class BigramBounds:
    """Tables of a forest under multipliers: ``inside[v]`` and ``outside[v]``, by ``first[v]`` and ``last[v]`` words."""

    def __init__(self, forest: ScoredForest, lm: LanguageModel, lm_weight: float, u: Floats) -> None:
        self.forest, self.lm, self.lm_weight, self.u = forest, lm, lm_weight, u
        self.alive = forest.alive.copy()
        self.allowed = np.ones(u.shape, dtype=bool)
        self.allowed[:, BEGIN] = self.allowed[END] = False
        self._ends()
        self.inside = [np.zeros((0, 0))] * forest.n_vertices
        self.allowed &= self._adjacent()
        self.known: dict[tuple[int, int], float] = {}

    def _side(self, e: int) -> list[int]:
        """Words of an edge's target side, and ~vertex."""
        f = self.forest.arrays
        tail = f.tail[f.tail_ptr[e] : f.tail_ptr[e + 1]]
        side = f.token[f.token_ptr[e] : f.token_ptr[e + 1]].tolist()
        return [t if t >= 0 else ~int(tail[~t]) for t in side]

    def _ends(self) -> None:
        """First and last words of the vertices, over the edges alive."""
        f = self.forest
        first: Bools = np.zeros((f.n_vertices, f.n_words), dtype=bool)
        last: Bools = np.zeros((f.n_vertices, f.n_words), dtype=bool)
        for v in range(f.n_vertices):
            for e in range(f.arrays.in_ptr[v], f.arrays.in_ptr[v + 1]):
                if self.alive[e]:
                    side = self._side(e)
                    for ends, t in ((first, side[0]), (last, side[-1])):
                        if t >= 0:
                            ends[v, t] = True
                        else:
                            ends[v] |= ends[~t]
        self.first: list[Ints] = [np.flatnonzero(row) for row in first]
        self.last: list[Ints] = [np.flatnonzero(row) for row in last]

    def _adjacent(self) -> Bools:
        out = np.zeros(self.allowed.shape, dtype=bool)
        for e in np.flatnonzero(self.alive).tolist():
            side = self._side(e)
            for a, b in pairwise(side):
                out[np.ix_(self._part(a)[1], self._part(b)[0])] = True
        return out

    def _histories(self) -> dict[tuple[int, int], set[int]]:
        """States of the model after any history that ends in two adjacent words."""
        f, lm = self.forest, self.lm
        single = {
            t: int(lm.begin_state if t == BEGIN else lm.advance(0, int(f.lm_word[t]))[1]) for t in range(f.n_words)
        }
        pairs = [(int(t), int(v)) for t, v in np.argwhere(self.allowed) if v != END]
        states = {(t, v): {lm.advance(single[t], int(f.lm_word[v]))[1]} for t, v in pairs}
        for _ in range(lm.order - 3):
            before: dict[int, set[int]] = {}
            for (_, t), found in states.items():
                before.setdefault(t, set()).update(found)
            more = {
                (t, v): {lm.advance(x, int(f.lm_word[v]))[1] for x in before.get(t, ())} | states[t, v]
                for t, v in pairs
            }
            states = more
        return states

    def scores(self) -> Floats:
        """q[v, w]: the most that w may add after v, over all words before v."""
        f, lm = self.forest, self.lm
        q = np.full(self.allowed.shape, -np.inf)
        following = [np.flatnonzero(row).tolist() for row in self.allowed]

        def value(state: int, w: int) -> float:
            if (state, w) not in self.known:
                self.known[state, w] = self.lm_weight * lm.advance(state, int(f.lm_word[w]))[0]
            return self.known[state, w]

        best: list[dict[int, float]] = [{} for _ in range(f.n_words)]  # per word: state after it -> best multiplier
        best[BEGIN] = {lm.begin_state: 0.0}
        for (t, v), states in self._histories().items():
            for state in states:
                best[v][state] = max(best[v].get(state, -np.inf), float(self.u[t, v]))
        for v in range(f.n_words):
            for state, most in best[v].items():
                for w in following[v]:
                    q[v, w] = max(q[v, w], value(state, w) + most)
        return np.where(self.allowed, q - self.u, -np.inf)

    def sweep(self) -> float:
        """Fill the tables inside and outside; the bound."""
        self.q = self.scores()
        f = self.forest
        self.inside = [np.full((len(a), len(b)), -np.inf) for a, b in zip(self.first, self.last, strict=True)]
        self.outside = [table.copy() for table in self.inside]
        self.edge = np.full(len(self.alive), -np.inf)
        self.pair = np.full(self.allowed.shape, -np.inf)
        for v in range(f.n_vertices):
            for e in self._edges(v):
                first, last, table = self._stages(e)[-1]
                at, of = self._places(v, first, last)
                self.inside[v][at] = np.maximum(self.inside[v][at], table[of])
        if not self.inside[-1].size:
            return -np.inf
        self.outside[-1][:] = 0.0
        for v in range(f.n_vertices - 1, -1, -1):
            for e in self._edges(v):
                self._back(v, e)
        return float(self.inside[-1].max())

    def _edges(self, v: int) -> list[int]:
        return [e for e in range(self.forest.arrays.in_ptr[v], self.forest.arrays.in_ptr[v + 1]) if self.alive[e]]

    def _places(self, v: int, first: Ints, last: Ints) -> tuple[Cells, Cells]:
        """Where words of an edge are in the tables of its head, and which of them those are: some may be removed."""
        rows, columns = np.isin(first, self.first[v]), np.isin(last, self.last[v])
        at = np.ix_(np.searchsorted(self.first[v], first[rows]), np.searchsorted(self.last[v], last[columns]))
        return at, np.ix_(np.flatnonzero(rows), np.flatnonzero(columns))

    def _stages(self, e: int) -> list[tuple[Ints, Ints, Floats]]:
        """First words, last words and best scores after each token of an edge."""
        stages: list[tuple[Ints, Ints, Floats]] = []
        for t in self._side(e):
            first, last, table = self._part(t)
            if stages:
                a, b, before = stages[-1]
                link = _best_sums(self.q[np.ix_(b, first)], table)
                stages.append((a, last, _best_sums(before, link)))
            else:
                stages.append((first, last, table + self.forest.arrays.weight[e]))
        return stages

    def _part(self, t: int) -> tuple[Ints, Ints, Floats]:
        if t < 0:
            return self.first[~t], self.last[~t], self.inside[~t]
        return np.array([t]), np.array([t]), np.zeros((1, 1))

    def _back(self, v: int, e: int) -> None:
        """What surrounds the parts of an edge, from right to left."""
        stages, side = self._stages(e), self._side(e)
        at, of = self._places(v, stages[-1][0], stages[-1][1])
        around = np.full(stages[-1][2].shape, -np.inf)
        around[of] = self.outside[v][at]
        self.edge[e] = float((stages[-1][2] + around).max(initial=-np.inf))
        for k in range(len(side) - 1, 0, -1):
            first, _, table = self._part(side[k])
            _, before_last, before = stages[k - 1]
            link = self.q[np.ix_(before_last, first)]
            up = _best_sums(before.T, around)  # by last word before, last word of the part
            if side[k] < 0:
                self.outside[~side[k]] = np.maximum(self.outside[~side[k]], _best_sums(link.T, up))
            cell = np.ix_(before_last, first)
            self.pair[cell] = np.maximum(self.pair[cell], link + _best_sums(up, table.T))
            around = _best_sums(around, _best_sums(link, table).T)
        if side[0] < 0:
            self.outside[~side[0]] = np.maximum(self.outside[~side[0]], around + self.forest.arrays.weight[e])

    def remove(self, least: float) -> None:
        """Leave out edges, pairs and ends of vertices that are in no derivation of at least ``least``."""
        self.alive &= self.edge >= least
        self.allowed &= self.pair >= least
        for v in range(self.forest.n_vertices):
            items = self.inside[v] + self.outside[v] >= least
            self.first[v], self.last[v] = self.first[v][items.any(axis=1)], self.last[v][items.any(axis=0)]


def _best_sums(a: Floats, b: Floats) -> Floats:
    """[i, j]: max over k of a[i, k] + b[k, j]."""
    if a.shape[1] == 1:
        return a + b
    out = np.full((a.shape[0], b.shape[1]), -np.inf)
    for k in range(a.shape[1]):
        np.maximum(out, a[:, k, None] + b[None, k], out=out)
    return out


def exceeds(
    forest: TranslationForest, lm: LanguageModel, lm_weight: float, rows: Floats, bound: float, slack: float
) -> float:
    """``bound``, if no derivation scores more; else the best score. ``rows`` are multipliers of pairs of words.

    Everything is removed that is below the bound by more than rounding (``slack``); what is left is searched.
    """
    prepared = prepare(forest, lm, forest.weights)
    u = prepared.multipliers(rows)
    tables = BigramBounds(prepared, lm, lm_weight, u)
    least = bound - slack
    for _ in range(ROUNDS):
        if tables.sweep() < least:
            return bound
        tables.remove(least)
    if tables.sweep() < least:
        return bound
    local = {int(w): i for i, w in enumerate(prepared.lm_word) if i > END}
    full = max(lm.order - 1, 1)
    ends = zip(tables.first, tables.last, strict=True)
    place = [({int(w): i for i, w in enumerate(a)}, {int(w): i for i, w in enumerate(b)}) for a, b in ends]

    def keep(v: int, item: Item, score: float) -> bool:
        if not item[0]:
            return True
        first, last = [local[w] for w in item[0]], [local[w] for w in item[1]]
        row, column = place[v][0].get(first[0]), place[v][1].get(last[-1])
        if row is None or column is None:
            return False
        score += sum(float(tables.q[a, b]) for a, b in pairwise(first))
        if len(first) == full and full > 1:
            score += float(u[first[-2], first[-1]] - u[last[-2], last[-1]])
        return bool(score + tables.outside[v][row, column] >= least)

    used = np.zeros(forest.graph.n_edges, dtype=bool)
    used[prepared.origin[tables.alive & (prepared.origin >= 0)]] = True
    for e, ways in prepared.empties.items():
        if tables.alive[e]:
            used[[edge for way in ways if way is not None for edge in way]] = True
    weights = np.where(used, forest.weights, -np.inf)
    found = best_value(forest, lm, lm_weight, weights, keep, lambda a, b: bool(tables.allowed[local[a], local[b]]))
    return max(found, bound)
