"""Structures of a problem drawn by the subproblems of its relaxation under multipliers, with what they weigh.

A structure of the first subproblem is drawn, then one of each other that the structure of the whole depends on, from
those that agree with what was drawn before.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from certus.checks import Floats, Ints
from certus.problem import Problem
from certus.relax.laws import Budget, Drawn, Law
from certus.relax.sums import Sums


class State(NamedTuple):
    """A structure drawn: what was chosen first, how likely that was (a log), what tells it from others, its weight."""

    first: Drawn
    log_probability: float
    key: tuple[bytes, ...]
    log_weight: float


class Lead(NamedTuple):
    """One way to draw from the first subproblem, and how often it is taken."""

    law: Law
    penalty: Floats
    power: float
    share: float


class Forced(NamedTuple):
    """Rows that give one cell of a subproblem a value: the value is ``(right - known @ used) / coefficient``."""

    cell: Ints
    known: Any
    right: Floats
    coefficient: Floats


class Sampler:
    """Draws structures of a problem by the subproblems of its relaxation under multipliers."""

    def __init__(self, problem: Problem[Any], sums: Sums, u: Floats) -> None:
        self.problem, self.relaxation, self.sums = problem, sums.relaxation, sums
        self.penalty = sums.relaxation.penalties(u, sums.fixings)
        self.order = sums.relaxation.telling
        self._prepare()
        self.leads = list[Lead]()
        self.known: dict[tuple[bytes, ...], tuple[Any, float]] = {}

    def lead(self, u: Floats, power: float, share: float) -> bool:
        """Draw from the first subproblem in one more way, under these multipliers; False if it has no structure."""
        penalty = self.relaxation.penalties(u, self.sums.fixings)
        law = self.sums.law(self.order[0], penalty, power)
        self.leads.append(Lead(law.within(self._budgets(0, np.zeros(self.relaxation.n_cells))), penalty, power, share))
        return law.log_partition > -np.inf

    def _prepare(self) -> None:
        """For each subproblem drawn: rows that force its cells by what is drawn before it, and rows over several."""
        r = self.relaxation
        block_of = np.full(r.n_cells, -1)
        for i, blocks in enumerate(r.slices):
            for _, cells, _ in blocks:
                block_of[cells] = i
        place = np.full(len(r.subproblems) + 1, len(self.order))  # of those that are not drawn: after all others
        place[list(self.order)] = np.arange(len(self.order))
        entries = r.matrix.tocoo()
        at = place[block_of[entries.col]]
        last = np.full(r.n_rows, -1)
        np.maximum.at(last, entries.row, at)
        own = np.bincount(entries.row[at == last[entries.row]], minlength=r.n_rows)
        self.checked = np.flatnonzero((last >= 0) & (last < len(self.order)))
        self.forced, self.rows = list[Forced](), list[Ints]()
        for k in range(len(self.order)):
            single = np.flatnonzero((last == k) & (own == 1) & ~r.inequality) if k else np.empty(0, dtype=np.int64)
            mine = (at == k) & np.isin(entries.row, single)
            by_row = np.argsort(entries.row[mine], kind="stable")
            cell, coefficient = entries.col[mine][by_row], entries.data[mine][by_row]
            known = r.matrix[single].tolil()
            known[np.arange(len(single)), cell] = 0.0
            self.forced.append(Forced(cell, known.tocsr(), r.rhs[single], coefficient))
            self.rows.append(np.setdiff1d(np.flatnonzero(last == k), single))
        self.checks = r.matrix[self.checked]

    def _budgets(self, k: int, used: Floats) -> list[Budget]:
        """What rows over cells of one subproblem allow, given the cells used in those before it."""
        r, i = self.relaxation, self.order[k]
        out = []
        for row in self.rows[k].tolist():
            begin, end = r.matrix.indptr[row : row + 2]
            cells, values = r.matrix.indices[begin:end], r.matrix.data[begin:end]
            left = r.rhs[row] - float(values @ used[cells])
            for sign in (1.0,) if r.inequality[row] else (1.0, -1.0):
                out.append(Budget(self._terms(i, cells, sign * values), sign * left + r.slack[row]))
        for cell in self.sums.fixings.ones:
            if terms := self._terms(i, np.array([cell], dtype=np.int64), np.array([-1.0])):
                out.append(Budget(terms, -1.0))
        return out

    def _terms(self, i: int, cells: Any, values: Floats) -> list[tuple[str, Ints, Floats]]:
        out = []
        for view, own, _ in self.relaxation.slices[i]:
            here = (cells >= own.start) & (cells < own.stop)
            if here.any():
                out.append((view, cells[here] - own.start, values[here]))
        return out

    # -- drawing ---------------------------------------------------------------------------------------------------

    def draws(self, count: int, rng: np.random.Generator) -> list[State | None]:
        """As many structures; None for a draw that came to nothing.

        Each way to draw has its share of them, and what is drawn weighs by the probability of all together.
        """
        cuts = np.rint(count * np.cumsum([0.0, *(lead.share for lead in self.leads)])).astype(int).tolist()
        firsts = [
            y for (a, b), lead in zip(pairwise(cuts), self.leads, strict=True) for y in lead.law.draws(b - a, rng)
        ]
        return [None if first is None else self.completed(first, rng) for first in firsts]

    def completed(self, first: Drawn, rng: np.random.Generator) -> State | None:
        """A structure of the whole that has this one of the first subproblem."""
        logs = [lead.law.log_probability(first) + np.log(lead.share) for lead in self.leads]
        of_first = float(np.logaddexp.reduce(logs))
        if of_first == -np.inf:
            return None
        used, probability = np.zeros(self.relaxation.n_cells), of_first
        leaves: list[Drawn | None] = [None] * len(self.relaxation.subproblems)
        for k, i in enumerate(self.order):
            drawn: Drawn | None = first
            if k:
                law = self._law(k, used)
                drawn = law.draws(1, rng)[0] if law is not None else None
                if law is None or drawn is None:
                    return None
                probability += law.log_probability(drawn)
            assert drawn is not None
            leaves[i] = drawn
            for view, cells, shape in self.relaxation.slices[i]:
                used[cells] = np.bincount(drawn.cells[view], minlength=int(np.prod(shape)))
        key = tuple(leaf.key for leaf in leaves if leaf is not None)
        if key not in self.known:
            self.known[key] = self._scored(leaves, used)
        return State(first, of_first, key, self.known[key][1] - probability)

    def _law(self, k: int, used: Floats) -> Law | None:
        """Of a subproblem whose cells are decided by those before it; None where there is no such structure."""
        forced, r, i = self.forced[k], self.relaxation, self.order[k]
        value = np.rint((forced.right - forced.known @ used) / forced.coefficient)
        if (value < 0).any():
            return None
        penalty, reward = self.penalty.copy(), r.reward(i, self.penalty)
        self._demand(penalty, forced.cell[value == 0], forced.cell[value > 0], reward)
        law = self.sums.law(i, penalty, 1)
        if law.log_partition == -np.inf:
            return None
        return law.within(self._budgets(k, used))

    def _demand(self, penalty: Floats, without: Ints, with_: Ints, reward: float) -> None:
        penalty[without] = -np.inf
        penalty[with_] += reward

    def _scored(self, leaves: list[Drawn | None], used: Floats) -> tuple[Any, float]:
        """The structure, and its score; -inf if it breaks a row."""
        r = self.relaxation
        residual = self.checks @ used - r.rhs[self.checked]
        off = np.where(r.inequality[self.checked], residual, np.abs(residual))
        if (off > r.slack[self.checked]).any():
            return None, -np.inf
        laws = [None if leaf is None else self.sums.laws[i].structure(leaf) for i, leaf in enumerate(leaves)]
        structure = r.assemble(laws)
        return structure, self.problem.score(structure)
