"""Structures of a problem drawn by the subproblems of its relaxation under multipliers, with what they weigh.

A structure of the first subproblem is drawn, then one of each other that the structure of the whole depends on, from
those that agree with what was drawn before.
"""

from typing import Any, NamedTuple

import numpy as np

from certus.checks import Floats, Ints
from certus.problem import Problem
from certus.relax.laws import Budget, Drawn, Law
from certus.relax.sums import Sums
from certus.relax.system import Relaxation


class State(NamedTuple):
    """A structure drawn: what was chosen first, what tells it from others, and the log of its weight."""

    first: Drawn
    key: tuple[bytes, ...]
    log_weight: float


class Forced(NamedTuple):
    """Rows that give one cell of a subproblem a value: the value is ``(right - known @ used) / coefficient``."""

    cell: Ints
    known: Any
    right: Floats
    coefficient: Floats


class Sampler:
    """Draws structures of a problem by the subproblems of its relaxation under multipliers."""

    def __init__(self, problem: Problem[Any], relaxation: Relaxation, sums: Sums, power: int, u: Floats) -> None:
        self.problem, self.relaxation, self.sums = problem, relaxation, sums
        self.power, self.fixings = power, sums.fixings
        self.penalty = relaxation.penalties(u, self.fixings)
        self.order = relaxation.telling
        self._prepare()
        self.lead = sums.law(self.order[0], self.penalty, power)
        if self.lead.log_partition > -np.inf:
            self.lead.within(self._budgets(0, np.zeros(relaxation.n_cells)))
        self.known: dict[tuple[bytes, ...], tuple[Any, float]] = {}

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
        for cell in self.fixings.ones:
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
        """As many structures, independently; None for a draw that came to nothing."""
        return [self.completed(first, rng) for first in self.lead.draws(count, rng)]

    def completed(self, first: Drawn | None, rng: np.random.Generator) -> State | None:
        """A structure of the whole that has this one of the first subproblem."""
        if first is None:
            return None
        used, probability = np.zeros(self.relaxation.n_cells), first.log_probability
        leaves: list[Drawn | None] = [None] * len(self.relaxation.subproblems)
        for k, i in enumerate(self.order):
            drawn: Drawn | None = first
            if k:
                law = self._law(k, used)
                drawn = law.draws(1, rng)[0] if law is not None else None
                if drawn is None:
                    return None
                probability += drawn.log_probability
            assert drawn is not None
            leaves[i] = drawn
            for view, cells, shape in self.relaxation.slices[i]:
                used[cells] = np.bincount(drawn.cells[view], minlength=int(np.prod(shape)))
        key = tuple(leaf.key for leaf in leaves if leaf is not None)
        if key not in self.known:
            self.known[key] = self._scored(leaves, used)
        return State(first, key, self.known[key][1] - probability)

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
        law.within(self._budgets(k, used))
        return law

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
