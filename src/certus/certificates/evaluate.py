r"""What no structure of a normal form can beat: the Lagrangian at given multipliers, in whole numbers.

For multipliers u of the rows, u <= 0 on "<=" rows, every structure scores at most

    L(u)  =  sum over spaces of max over their structures of  (sum of  s_p + (A' u)_p  over the parts p used)  -  u . b.

All scores are rounded UP to multiples of a power of two, the step, so coarse that no sum of them is rounded in float64,
and the multipliers towards 0, since any will do. So what is computed is the exact value of a problem in
which every part scores at least as much as before: a bound, whoever supplied the multipliers. Scores so low that no
structure that uses them could matter are raised to where they still do not.
"""

from collections.abc import Sequence
from functools import cached_property
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np

from certus.certificates import sweep
from certus.certificates.normal import Closed, Closing, Graph, NormalForm, Referred, Searched, Trees
from certus.certificates.priced import BITS, LOWEST, Priced, PricedTrees, parts_of_known
from certus.certificates.rounding import EPSILON, Floats, in_steps, overflow, step_for
from certus.checks import Bools, Ints

ROUGH = 2.0**8  # what a ceiling may be above that of the scores without multipliers, where that saves a sweep
MANY = 2.0**22  # parts and rows of a structure, for which a step each may be added by rounding


class Cell(NamedTuple):
    """Which structures are left at a place of a proof: those that use none of ``zeros`` and all of ``ones``."""

    zeros: Bools  # (P,)
    ones: tuple[int, ...] = ()


class Evaluation:
    """A normal form, made ready to be bounded again and again."""

    def __init__(self, form: NormalForm) -> None:
        self.form, self.rounding = form, 0.0  # what has been added to any bound by rounding is less than this
        self._last: tuple[tuple[bytes, float, bytes], Priced] | None = None
        self._ceiling: float | None = None
        self.plans = {i: sweep.levels(space) for i, space in enumerate(form.spaces) if isinstance(space, Graph)}
        self.space_of = np.full(len(form.scores), -1, dtype=np.int64)
        for i, space in enumerate(form.spaces):
            self.space_of[space.part[space.part >= 0]] = i
            if isinstance(space, Trees) and space.labels is not None:
                self.space_of[space.labels[space.labels >= 0]] = i
        self._row_of = np.repeat(np.arange(len(form.rows.rhs)), np.diff(form.rows.ptr))
        self._whole_rows = bool((form.rows.coefficient % 1 == 0).all())
        # How much is rounded for each part; nothing where there is one product, and that with a power of two.
        self._rounded = np.bincount(form.rows.part, minlength=len(form.scores))
        self._plain = self._rounded == 1
        self._plain[form.rows.part[np.abs(np.frexp(form.rows.coefficient)[0]) != 0.5]] = False
        self._rounded[self._plain] = 0

    def everything(self) -> Cell:
        """The cell of all structures."""
        return Cell(np.zeros(len(self.form.scores), dtype=bool))

    def bound(self, u: Floats, above: float, cell: Cell, known: Sequence[Sequence[Any]] = ()) -> float:
        """No structure of the cell scores more than this, other than those known.

        Each of these has a structure of every space: edges of a graph, heads before tails, or heads of a tree. Several
        can be left out only if whatever is mixed of their structures of spaces is one of them, and not of different
        trees. ``above`` is the bound to be shown: more than that need not be told apart.
        """
        priced = self._priced(u, above, cell)
        total = priced.total(known)
        if total > above and cell.ones:
            priced = self._priced(u, above, cell, total - above)
            total = min(total, priced.total(known))
        if total > above and cell.ones:
            priced.insist(self._by_space(np.array(cell.ones)))
            total = min(total, priced.total(known))
        return inf if isnan(total) else total

    def bound_with(self, u: Floats, above: float, cell: Cell, parts: Ints) -> float:
        """No structure of the cell that uses all parts of any row of ``parts`` (K, any; -1 for none) beats this."""
        most = self._priced(u, above, cell).with_any(parts, self.space_of)
        if most > above and cell.ones:
            most = min(most, self._priced(u, above, cell, most - above).with_any(parts, self.space_of))
        return inf if isnan(most) else most

    def spelt_out(
        self, u: Floats, above: float, cell: Cell, *, known: Sequence[Sequence[Any]] = (), parts: Ints | None = None
    ) -> dict[str, Any]:
        """The bound of a cell as a proof file has it: multipliers, the reward of parts required, duals of trees.

        Of structures that use all of a row of ``parts``, if these are given.
        """
        priced = self._priced(u, above, cell)
        found = priced.total(known) if parts is None else priced.with_any(parts, self.space_of)
        if found > above and cell.ones:
            priced = self._priced(u, above, cell, found - above)
            found = found if parts is None else priced.with_any(parts, self.space_of)
        through = list[int]()
        if parts is None and cell.ones and priced.total(known) > above:
            graphs = [i for i, space in enumerate(self.form.spaces) if isinstance(space, Graph)]
            through = [p for p in cell.ones if self.space_of[p] in graphs]
            priced.insist(self._by_space(np.array(through, dtype=np.int64)))
        spaces = []
        for i, space in enumerate(priced.spaces):
            forced: Bools | None = None
            if isinstance(space, PricedTrees) and parts is not None:
                forced = space.loss_with(np.array(sorted(space.asked), dtype=np.int64)) < inf
            elif isinstance(space, PricedTrees) and known:
                forced = space.loss_without(parts_of_known(known)[i]) < inf
            enough = -inf if parts is not None else priced.enough - (priced.best - space.best)
            spaces.append(space.spelt_out(priced.step, forced, enough))
        return {"u": priced.u.tolist(), "reward": priced.reward, "spaces": spaces, "through": through}

    def closed(self, u: Floats, above: float, cell: Cell, closing: Closing | None) -> tuple[Closing, list[Closed]]:
        """What is left above a score of the spaces that are searched: all that structures above ``above`` are made of.

        Closed as ``closing`` says, or as seems best; InvalidInput if that may leave out too much.
        """
        return self._closing(u, above, cell, closing).closed()

    def closing_spelt_out(self, u: Floats, above: float, cell: Cell, closing: Closing) -> dict[str, Any]:
        """How that is shown as a proof file has it: like ``spelt_out``."""
        priced = self._closing(u, above, cell, closing)
        spaces = [space.spelt_out(priced.step, None, inf) for space in priced.spaces]
        return {"u": priced.u.tolist(), "reward": priced.reward, "spaces": spaces}

    def _closing(self, u: Floats, above: float, cell: Cell, closing: Closing | None) -> Priced:
        priced = self._priced(u, above, cell, closing=closing)
        excess = priced.best * priced.step - above
        return self._priced(u, above, cell, excess, closing) if excess > 0.0 and cell.ones else priced

    def at_most_one(self, parts: Ints) -> bool:
        """Whether every structure uses at most one of these parts, all of one space, and that once."""
        used = {int(i) for i in self.space_of[parts] if i >= 0}
        if len(used) > 1:
            return False
        for i in used:
            space = self.form.spaces[i]
            chosen = np.zeros(len(self.form.scores))
            chosen[parts] = 1.0
            if isinstance(space, Referred):
                return False
            if isinstance(space, Searched):
                line = space.line[np.isin(space.part, parts)]
                return bool(line[0] >= 0 and (line == line[0]).all())
            if isinstance(space, Trees):
                into = np.maximum(space.arc_scores(chosen), 0.0).max(axis=0)
                if into.sum() > 1.0:
                    return False
            elif sweep.inside(self.plans[i], sweep.edge_weights(space, chosen))[-1] > 1.0:
                return False
        return True

    def _priced(
        self, u: Floats, above: float, cell: Cell, excess: float = 0.0, closing: Closing | None = None
    ) -> Priced:
        """The parts of a cell under multipliers; what was asked last is kept, as a proof is checked once it is made."""
        if cell.ones or excess or closing is not None:
            return self._priced_anew(u, above, cell, excess, closing)
        asked = u.tobytes(), above, cell.zeros.tobytes()
        if self._last is None or self._last[0] != asked:
            self._last = asked, self._priced_anew(u, above, cell, 0.0, None)
        return self._last[1]

    def _priced_anew(self, u: Floats, above: float, cell: Cell, excess: float, closing: Closing | None) -> Priced:
        """The same.

        Each part that must be used is rewarded by the ``excess`` of the bound without that, and the reward taken off
        again: what lacks such a part is then no better than it has to be.
        """
        rows, scores = self.form.rows, self.form.scores
        u = np.where((np.diff(rows.ptr) > 0) | (rows.rhs != 0.0), u, 0.0)  # rows of nothing bound nothing
        raw = scores + self._onto_parts(u) if len(u) else scores.copy()
        raw[cell.zeros] = -inf
        ceiling = self._near_ceiling(raw) if len(u) else self.ceiling(raw)
        ceiling += float(np.abs(u * rows.rhs).sum() + (np.abs(u) * rows.slack).sum())
        if len(u):
            ceiling = max(ceiling, float(self._onto_parts(np.abs(u), absolute=True).max(initial=0.0)))
        size = (ceiling + max(-above if above > -inf else 0.0, 0.0)) * (1.0 + 1e-6)
        if not size + excess < 1e300:
            raise overflow()
        worth = 1.01 * excess + 1e-9 * size if excess else 0.0
        step = step_for(size + 2.0 * worth * len(cell.ones), BITS)
        self.rounding = max(self.rounding, MANY * step)
        with np.errstate(over="ignore"):  # of scores that are far too low to matter; others are found below
            steps, own = np.trunc(u / step), scores / step
        units = in_steps(scores, step)
        constant = 0.0
        if len(u):
            onto = self._onto_parts(steps)
            units = units + self._rounded_up(onto, self._onto_parts(np.abs(steps), absolute=True))
            if not self._whole_rows:  # what soft constraints cost cancels out: both may be rounded up as one
                both = own + onto
                units = np.where(self._plain, np.minimum(units, np.ceil(np.nextafter(both, inf)) * (both != 0)), units)
            constant = _sum_up(-steps * rows.rhs) + _sum_up(np.abs(steps) * rows.slack)
        if np.isnan(units).any() or isnan(constant):
            raise overflow()
        # No structure uses a part that scores more than all of them: such a score must only not be infinite.
        units = np.where(scores > -inf, np.clip(units, LOWEST, -LOWEST), -inf)
        units[cell.zeros] = -inf
        reward = float(np.ceil(worth / step))
        np.add.at(units, list(cell.ones), reward)
        constant -= reward * len(cell.ones)
        spaces = [(space, self.plans.get(i)) for i, space in enumerate(self.form.spaces)]
        return Priced(spaces, units, constant, (steps * step, reward * step, step), above, closing)

    def _by_space(self, parts: Ints) -> list[Ints]:
        """The parts of each space."""
        return [parts[self.space_of[parts] == i] for i in range(len(self.form.spaces))]

    def _onto_parts(self, u: Floats, *, absolute: bool = False) -> Floats:
        """A' u, or with the absolute values of A."""
        rows = self.form.rows
        coefficient = np.abs(rows.coefficient) if absolute else rows.coefficient
        onto = np.bincount(rows.part, weights=coefficient * u[self._row_of], minlength=len(self.form.scores))
        return onto.astype(np.float64)

    def _rounded_up(self, values: Floats, sizes: Floats) -> Floats:
        """Sums of products rounded up to whole numbers; exact where coefficients are whole."""
        if self._whole_rows and sizes.max(initial=0.0) < 2.0**53:
            return values
        return np.ceil(values + 4.0 * EPSILON * self._rounded * sizes)

    def _near_ceiling(self, raw: Floats) -> float:
        """The same as ``ceiling``, or some times as much where that is known without a sweep."""
        positive = np.maximum(raw, 0.0)
        rough = sum(n * float(positive[own].max(initial=0.0)) for own, n in self._lengths)
        return rough if self._lengths and rough <= ROUGH * self.ceiling(self.form.scores) else self.ceiling(raw)

    @cached_property
    def _lengths(self) -> list[tuple[Ints, float]]:
        """The parts of each space, and the most that a structure uses of them; nothing if some space has no bound."""
        found, ones = list[tuple[Ints, float]](), np.ones(len(self.form.scores))
        for i, space in enumerate(self.form.spaces):
            if isinstance(space, Graph):
                most = float(sweep.inside(self.plans[i], sweep.edge_weights(space, ones))[-1])
            elif isinstance(space, Trees):
                most = 2.0 * len(space.part)
            else:
                return []
            found.append((np.flatnonzero(self.space_of == i), max(most, 0.0)))
        return found

    def ceiling(self, raw: Floats) -> float:
        """The positive scores of no structure add up to more than this, rounding aside; that of the form is kept."""
        if raw is not self.form.scores:
            return self._ceiling_anew(raw)
        if self._ceiling is None:
            self._ceiling = self._ceiling_anew(raw)
        return self._ceiling

    def _ceiling_anew(self, raw: Floats) -> float:
        total, positive = 0.0, np.where(raw > 0.0, raw, np.where(raw > -inf, 0.0, -inf))
        for i, space in enumerate(self.form.spaces):
            if isinstance(space, Graph):
                most = float(sweep.inside(self.plans[i], sweep.edge_weights(space, positive))[-1])
            elif isinstance(space, Referred):
                own = raw[space.part]
                largest = float(np.abs(own[own > -inf]).max(initial=0.0))
                most = space.size + space.length * largest
            elif isinstance(space, Searched):
                most = space.ceiling + _most_of_cells(space, positive[space.part])
            else:
                into = space.arc_scores(positive)[:, 1:]
                most = float(np.maximum(into.max(axis=0, initial=0.0), 0.0).sum())
            total += max(most, 0.0)
        return total


def _most_of_cells(space: Searched, positive: Floats) -> float:
    """No structure gets more by its cells, if they score so much."""
    lined = space.line >= 0
    lines = np.zeros(int(space.line.max(initial=-1)) + 1)
    np.maximum.at(lines, space.line[lined], positive[lined])
    return float(lines.sum() + space.length * max(positive[~lined].max(initial=0.0), 0.0))


def _sum_up(values: Floats) -> float:
    """The sum, or the next whole number above it."""
    total = float(values.sum())
    if (np.floor(values) == values).all() and float(np.abs(values).sum()) < 2.0**53:
        return total
    return float(np.ceil(total + EPSILON * 4.0 * len(values) * np.abs(values).sum()))
