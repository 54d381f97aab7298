"""Cutting planes: rows that follow from those of a relaxation since uses are whole numbers ([Chvatal73]_).

A sum of rows, each taken so many times and divided by one number, is a row that every structure satisfies. Uses of
parts are whole and not negative: rounding down what it has on the left only lowers that side, whose value is whole
then, so that the right-hand side may be rounded down too. "Used at most once" of single cells counts as a row. A budget
divided by one of its costs gives covers, halves of rows of ones odd cycles and blossoms; who checks knows only sums and
rounding. Everything is calculated in whole numbers or fractions: a cut holds exactly.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor

import numpy as np

from certus.checks import Floats
from certus.errors import InvalidInput
from certus.relax.proof import Cut
from certus.relax.system import Entries, Relaxation, Rows
from certus.schema import MOST

VIOLATED = 0.02  # by a point, for a cut to be of use
FRACTIONAL = 1e-6
DENSE = 1_000_000  # entries of rows, beyond which none are looked for
STARTS = 100  # rows that a search for halves begins at
PRECISE = 1 << 20  # the denominator of what is no whole number
GROWN = 12  # rows that are joined to others in a search for halves


def with_cuts(relaxation: Relaxation, cuts: Sequence[Cut]) -> Relaxation:
    """The relaxation with a row for each cut; InvalidInput if one does not follow from the rows."""
    if not cuts:
        return relaxation
    rows, cells, coefficients, right = list[int](), list[int](), list[float](), list[float]()
    for at, cut in enumerate(cuts):
        left, rhs = rounded(relaxation, cut)
        rows += [at] * len(left)
        cells += left.keys()
        coefficients += left.values()
        right.append(rhs)
    row, cell, by = np.array(rows, dtype=np.int64), np.array(cells, dtype=np.int64), np.array(coefficients)
    entries = []
    for block in relaxation.offsets:
        within = relaxation.cells_in(block)
        mine = (cell >= within.start) & (cell < within.stop)
        if mine.any():
            entries.append(Entries(block, row[mine], cell[mine] - within.start, by[mine].astype(np.float64)))
    return relaxation.with_rows([Rows("cuts", tuple(entries), np.array(right), False, (len(cuts),))])


def rounded(relaxation: Relaxation, cut: Cut) -> tuple[dict[int, int], int]:
    """The coefficients by flat cell and the right-hand side of a cut."""
    matrix, left, right = relaxation.matrix, dict[int, Fraction](), Fraction(0)
    if cut.denominator < 1 or len({row for row, _ in cut.rows}) != len(cut.rows):
        raise InvalidInput("a cut divides by a number below 1, or takes a row twice.")
    for row, times in cut.rows:
        if not 0 <= row < relaxation.n_rows or (relaxation.inequality[row] and times < 0):
            raise InvalidInput(
                f"a cut takes row {row} {times} times; there are {relaxation.n_rows}, or it is a <= row."
            )
        entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
        for cell, a in zip(matrix.indices[entries].tolist(), matrix.data[entries].tolist(), strict=True):
            left[cell] = left.get(cell, Fraction(0)) + times * Fraction(a)
        right += times * Fraction(float(relaxation.rhs[row])) + abs(times) * Fraction(float(relaxation.slack[row]))
    for cell, times in cut.cells:
        if not 0 <= cell < relaxation.n_cells or times < 0:
            raise InvalidInput(f"a cut takes cell {cell} {times} times; there are {relaxation.n_cells}.")
        left[cell] = left.get(cell, Fraction(0)) + times
        right += times
    coefficients = {cell: floor(x / cut.denominator) for cell, x in left.items()}
    if max(map(abs, coefficients.values()), default=0) >= 1 << 53 or abs(right / cut.denominator) >= 1 << 53:
        raise InvalidInput("a cut has numbers that are too large.")
    return {cell: a for cell, a in coefficients.items() if a}, floor(right / cut.denominator)


class Separation:
    """A search for cuts that a point breaks, over the rows of a relaxation; ``once`` says which cells are used once."""

    def __init__(self, relaxation: Relaxation, point: Floats, once: Callable[[int], bool]) -> None:
        self.relaxation, self.point, self.once = relaxation, np.clip(point, 0.0, 1.0), once
        self.rows = relaxation.matrix.toarray()
        self.unused = relaxation.rhs + relaxation.slack - self.rows @ point
        self.unused = np.where(relaxation.inequality, np.maximum(self.unused, 0.0), np.abs(self.unused))

    def cuts(self, most: int) -> list[Cut]:
        """The most violated, of different rows."""
        found: dict[Cut, float] = {}
        for cut, violation in (*self._covers(), *self._halves()):
            if violation > VIOLATED:
                found[cut] = max(violation, found.get(cut, 0.0))
        return sorted(found, key=lambda cut: -found[cut])[:most]

    def _covers(self) -> list[tuple[Cut, float]]:
        """Single <= rows, divided by each of their coefficients."""
        found = list[tuple[Cut, float]]()
        for row in np.flatnonzero(self.relaxation.inequality).tolist():
            own = self.rows[row]
            open_cells = (self.point > 1e-3) & (own > 0)
            for divisor in sorted(set(own[open_cells].tolist())):
                whole = divisor % 1 == 0 and bool((own % 1 == 0).all())
                times, denominator = (1, int(divisor)) if whole else (ceil(PRECISE / divisor), PRECISE)
                if max(denominator, times) <= MOST:
                    found += self._made(((row, times),), denominator)
        return found

    def _halves(self) -> list[tuple[Cut, float]]:
        """Halves of rows of whole numbers, joined one by one as long as that is better."""
        whole = (self.rows % 1 == 0).all(axis=1) & (self.relaxation.rhs % 1 == 0) & (self.relaxation.slack == 0)
        usable = np.flatnonzero(whole & (self.unused < 0.5))
        cost = np.minimum(self.point, 1.0 - self.point)  # of a cell that is left odd
        shared = np.flatnonzero(cost > FRACTIONAL)
        odd, cost = self.rows[np.ix_(usable, shared)] % 2 == 1, cost[shared]
        starts = np.flatnonzero(odd.any(axis=1))[:STARTS]
        found, seen = list[tuple[Cut, float]](), set[bytes]()
        for start in starts.tolist():
            chosen = np.zeros(len(usable), dtype=bool)
            chosen[start] = True
            parity = odd[start].copy()
            for _ in range(GROWN):
                if chosen.tobytes() not in seen:
                    seen.add(chosen.tobytes())
                    found += self._made(tuple((row, 1) for row in usable[chosen].tolist()), 2)
                near = odd[:, parity].any(axis=1) & ~chosen
                if not near.any():
                    break
                change = (odd[near] ^ parity) @ cost + self.unused[usable[near]]
                best = int(np.flatnonzero(near)[change.argmin()])
                chosen[best] = True
                parity ^= odd[best]
        return found

    def _made(self, rows: tuple[tuple[int, int], ...], denominator: int) -> list[tuple[Cut, float]]:
        """The cut, if it is violated, and by how much; cells are rounded up where that loses less: used at most once.

        Where nothing is left of the right-hand side, the cell that loses least goes the other way.
        """
        r, numbers = self.relaxation, [row for row, _ in rows]
        times = np.array([k for _, k in rows], dtype=np.float64)
        left, right = times @ self.rows[numbers], float(times @ (r.rhs[numbers] + r.slack[numbers]))
        rest = left - np.floor(left / denominator) * denominator
        up = (rest > 0) & (rest / denominator + self.point > 1.0)
        needed = np.where(up, denominator - rest, 0.0)
        if denominator == 2 and (right + needed.sum()) % 2 == 0:
            open_cells = np.flatnonzero(rest > 0)
            if not len(open_cells):
                return []
            at = open_cells[np.abs(self.point[open_cells] - 0.5).argmin()]
            up[at] = ~up[at]
            needed = np.where(up, denominator - rest, 0.0)
        cells = np.flatnonzero(needed > 0)
        steps = np.ceil(needed[cells]).astype(np.int64)
        bound = np.floor((right + float(steps.sum())) / denominator + 1e-12)
        taken = left.copy()
        taken[cells] += steps
        violation = float(np.floor(taken / denominator) @ self.point) - bound
        if violation <= VIOLATED or not all(self.once(int(cell)) for cell in cells):
            return []
        return [(Cut(denominator, rows, tuple(zip(cells.tolist(), steps.tolist(), strict=True))), violation)]
