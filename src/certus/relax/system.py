r"""What is relaxed: subproblems, the linear rows that tie their parts, and the bound that any multipliers give.

A relaxation holds subproblems i with weights w_i > 0 and rows A y = b or A y <= b over the cells y of their views.
For any multipliers u, with u <= 0 on the <= rows,

    L(u)  =  sum_i max_{y_i} ( w_i score_i(y_i) + (A' u)_i . y_i )  -  u . b

is at least the score of every structure that satisfies the rows (weak duality, LR 3.1). Dual decomposition is the
case of rows y_1 - y_2 = 0. Signs are those of LR 3: the penalty on a cell is (A' u) and the update u -= step (A y - b).

This module solves nothing and imports no kernel: the engine and certus.verify both stand on it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.certificates.rounding import EPSILON, Extent, absolute_of, of_parts, of_sum
from certus.checks import Floats, Ints, as_penalties, as_scores
from certus.errors import InvalidInput
from certus.problem import Index, Penalties, Problem

if TYPE_CHECKING:
    from scipy import sparse

CHECKED = 1 / 16  # share of the parts of structures that is in use at once, as a rule, where each is used once at most

Block = tuple[int, str]  # subproblem and one of its views
Pieces = tuple[tuple[int, ...], ...]  # of which numbered parts of a problem each further subproblem is made


def row_slack(sizes: Any, right: Any) -> Any:
    """What rounding may account for in a row whose coefficients have this absolute sum: 0.1 + 0.2 is at most 0.3."""
    return 4.0 * EPSILON * (sizes + right)


@dataclass(frozen=True, slots=True)
class Entries:
    """Coefficients of rows over the flat cells of one block."""

    block: Block
    row: Ints
    cell: Ints
    coefficient: Floats


@dataclass(frozen=True, slots=True)
class Rows:
    """A named group of rows. ``shape`` is the shape its multipliers are shown in.

    ``slack``, by how much a structure may miss each row, is by default what rounding accounts for. Rows of soft
    constraints have a ``box``: the least and the greatest of the multipliers that are of use.
    """

    name: str
    entries: tuple[Entries, ...]
    rhs: Floats
    equality: bool
    shape: Index
    slack: Floats | None = None
    box: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Fixings:
    """Parts decided: ``zeros`` marks cells that are forbidden, ``ones`` lists cells that must be used.

    A part whose view is exclusive is required by forbidding its rivals, so ``ones`` holds the others only.
    """

    zeros: NDArray[np.bool_]
    ones: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wider:
    """How a relaxation is made tighter by further subproblems, its pieces, that score nothing but must agree.

    ``relaxation`` is the same with these pieces; the rows that it has already keep their names. ``proposed`` is one
    more, or () for none, given what the first subproblems lose by each cell of their views, and the largest score;
    ``most`` are to be asked for.
    """

    relaxation: "Callable[[Pieces], Relaxation]"
    proposed: Callable[[Sequence[Mapping[str, Floats]], float], tuple[int, ...]]
    most: int

    def then(self, change: "Callable[[Relaxation], Relaxation]") -> "Wider":
        """The same for a relaxation that is changed."""
        return replace(self, relaxation=lambda pieces: change(self.relaxation(pieces)))


class Until(NamedTuple):
    """How long multipliers may be lowered: so many rounds, and seconds, if these are limited."""

    rounds: int
    seconds: float | None = None


class Lowered(NamedTuple):
    """Multipliers that were lowered by other means than steps, a structure met with, and how likely each cell seems.

    ``rows`` is how many of the first rows have multipliers that were moved.
    """

    multipliers: Floats
    structure: Any
    average: Floats  # (cells,) between 0 and 1
    rows: int


@dataclass(frozen=True)
class Relaxation:
    """Subproblems, weights, rows and the views under which users know the cells.

    ``views[name]`` lists the blocks that hold copies of a view; the rows keep the copies equal. ``assemble`` turns
    one structure per subproblem into a structure of the whole, ``leaves`` does the opposite. ``base`` are penalties
    that belong to the scores. ``shown`` are views that proofs may speak of though no row does. Where it is ``led``, any
    leaves are assembled to a structure, whose own leaves then agree. ``excesses`` are views of subproblems that say by
    how much soft constraints are broken, which the rest of a structure decides. ``told_by`` are subproblems whose
    leaves tell the structure, so that None may stand for others where it is assembled; by default see ``telling``.
    ``lower``, if there is one, finds multipliers from given ones on, under fixings, that are as good as a descent's: it
    stops below a target, or after so many rounds of its own or seconds. What it says is believed no more than any
    multipliers.
    """

    subproblems: tuple[Problem[Any], ...]
    weights: tuple[float, ...]
    views: Mapping[str, tuple[Block, ...]]
    rows: tuple[Rows, ...]
    assemble: Callable[[Sequence[Any]], Any]
    leaves: Callable[[Any], Sequence[Any]]
    base: Mapping[Block, Floats] = field(default_factory=dict)
    fixed: tuple[tuple[str, int, int], ...] = ()  # (view, flat index, 0 or 1), decided from the start
    shown: tuple[str, ...] = ()
    led: bool = False
    excesses: tuple[str, ...] = ()
    told_by: tuple[int, ...] = ()
    wider: Wider | None = None
    lower: "Callable[[Relaxation, Floats, Fixings, float, Until], Lowered] | None" = None

    # -- building --------------------------------------------------------------------------------------------------

    @staticmethod
    def of(problem: Problem[Any]) -> "Relaxation":
        """The relaxation a problem describes itself, or the problem as its own only subproblem."""
        described = problem.relaxation()
        return Relaxation.alone(problem) if described is None else described

    @staticmethod
    def alone(problem: Problem[Any]) -> "Relaxation":
        """A problem as its own only subproblem."""
        views = {v: ((0, v),) for v in problem.views}
        return Relaxation(
            (problem,), (1.0,), views, (), lambda leaves: leaves[0], lambda structure: (structure,), shown=tuple(views)
        )

    def with_rows(self, rows: Iterable[Rows], fixed: Iterable[tuple[str, int, int]] = ()) -> "Relaxation":
        """The same with more rows and fixings; names of rows are made unique."""
        named, rows, fixed = list(self.rows), tuple(rows), tuple(fixed)
        for group in rows:
            taken = {r.name for r in named}
            name, k = group.name, 2
            while name in taken:
                name, k = f"{group.name} #{k}", k + 1
            named.append(replace(group, name=name))
        wider = None if self.wider is None else self.wider.then(lambda r: r.with_rows(rows, fixed))
        return replace(self, rows=tuple(named), fixed=(*self.fixed, *fixed), wider=wider)

    def with_pieces(self, pieces: Pieces) -> "Relaxation":
        """The same with further pieces; InvalidInput if it cannot have these."""
        if not pieces:
            return self
        if self.wider is None:
            raise InvalidInput(f"{len(pieces)} pieces are given; the problem is not made of any.")
        return self.wider.relaxation(pieces)

    def penalised(self, penalties: Penalties | None) -> "Relaxation":
        """The same with penalties added to the scores; -inf forbids a part in every copy."""
        given = as_penalties(penalties)
        if not given:
            return self
        base = dict(self.base)
        for view, penalty in given.items():
            if view not in self.views:
                raise InvalidInput(f"no view {view!r} to penalise; there is {', '.join(map(repr, self.views))}.")
            for position, block in enumerate(self.views[view]):
                shape = self.shape_of(block)
                values = as_scores(f"penalty of {view!r}", penalty, shape)
                if position:
                    values = np.where(values == -np.inf, -np.inf, 0.0)
                base[block] = base[block] + values if block in base else values
        wider = None if self.wider is None else self.wider.then(lambda r: r.penalised(given))
        return replace(self, base=base, wider=wider)

    @staticmethod
    def side_by_side(
        sides: "Sequence[Relaxation]", weights: Sequence[float], ties: Mapping[str, Sequence[tuple[int, str]]]
    ) -> "Relaxation":
        """All of them, weighted, tied by rows that keep the copies of each shared view equal to the first one.

        ``ties[name]`` lists the sides that share a view, with what they call it themselves; every other view becomes
        "k.name", after the side it is on. A structure is a tuple of one of each side.
        """
        shifts = np.cumsum([0, *(len(side.subproblems) for side in sides)]).tolist()
        cuts = list(zip(sides, shifts, shifts[1:], strict=False))
        shared = {place: name for name, places in ties.items() for place in places}

        def moved(block: Block, k: int) -> Block:
            return (block[0] + shifts[k], block[1])

        views: dict[str, tuple[Block, ...]] = dict.fromkeys(ties, ())
        rows: list[Rows] = []
        for k, side in enumerate(sides):
            for view, blocks in side.views.items():
                name = shared.get((k, view), f"{k}.{view}")
                views[name] = (*views.get(name, ()), *(moved(block, k) for block in blocks))
            for r in side.rows:
                box = None if r.box is None else (weights[k] * r.box[0], weights[k] * r.box[1])
                entries = tuple(replace(e, block=moved(e.block, k)) for e in r.entries)
                rows.append(replace(r, entries=entries, box=box))
        whole = Relaxation(
            tuple(problem for side in sides for problem in side.subproblems),
            tuple(weight * w for side, weight in zip(sides, weights, strict=True) for w in side.weights),
            views,
            (),
            lambda leaves: tuple(side.assemble(leaves[a:b]) for side, a, b in cuts),
            lambda structure: [leaf for side, y in zip(sides, structure, strict=True) for leaf in side.leaves(y)],
            {moved(b, k): weights[k] * p for k, side in enumerate(sides) for b, p in side.base.items()},
            excesses=tuple(f"{k}.{view}" for k, side in enumerate(sides) for view in side.excesses),
            told_by=tuple(shift + i for side, shift, _ in cuts for i in side.telling),
        )
        for name, places in ties.items():
            first, *others = (moved(sides[k].views[view][0], k) for k, view in places)
            rows += [whole._tie(name, first, other) for other in others]
        fixed = [(shared.get((k, v), f"{k}.{v}"), at, x) for k, side in enumerate(sides) for v, at, x in side.fixed]
        return whole.with_rows(rows, fixed)

    def _tie(self, name: str, a: Block, b: Block) -> Rows:
        """Rows that keep two blocks equal."""
        shape = self.shape_of(a)
        cells = np.arange(prod(shape), dtype=np.int64)
        ones = np.ones(len(cells))
        return Rows(name, (Entries(a, cells, cells, ones), Entries(b, cells, cells, -ones)), 0.0 * ones, True, shape)

    def easier(self) -> "Relaxation | None":
        """The same over easier subproblems, where there are some; multipliers and structures fit both."""
        easier = [problem.easier() for problem in self.subproblems]
        if not any(easier):
            return None
        chosen = tuple(e or problem for e, problem in zip(easier, self.subproblems, strict=True))
        return replace(self, subproblems=chosen, wider=None)

    def shape_of(self, block: Block) -> Index:
        """Shape of a block."""
        return self.subproblems[block[0]].views[block[1]]

    # -- cells -----------------------------------------------------------------------------------------------------

    def cells_in(self, block: Block) -> slice:
        """The flat cells of a block that matters."""
        start = self.offsets[block]
        return slice(start, start + prod(self.shape_of(block)))

    def line(self, block: Block, index: int) -> Ints | None:
        """The flat cells of a block that lie, with one of them, along the axis of which a structure uses one cell.

        None if it has no such axis.
        """
        axis, shape = self.subproblems[block[0]].exclusive.get(block[1]), self.shape_of(block)
        if axis is None:
            return None
        step = prod(shape[axis + 1 :])
        first = index - index // step % shape[axis] * step
        return self.offsets[block] + first + step * np.arange(shape[axis])

    @cached_property
    def offsets(self) -> dict[Block, int]:
        """Where each block that matters starts among the flat cells: those of rows, base penalties and fixings."""
        used = {e.block for r in self.rows for e in r.entries} | set(self.base)
        used |= {block for view, _, _ in self.fixed for block in self.views[view]}
        used |= {block for view in self.shown for block in self.views[view]}
        start, out = 0, {}
        for block in sorted(used):
            out[block] = start
            start += prod(self.shape_of(block))
        return out

    @cached_property
    def slices(self) -> tuple[tuple[tuple[str, slice, Index], ...], ...]:
        """Per subproblem: name, cells and shape of each block that matters."""
        out: list[list[tuple[str, slice, Index]]] = [[] for _ in self.subproblems]
        for i, view in self.offsets:
            out[i].append((view, self.cells_in((i, view)), self.shape_of((i, view))))
        return tuple(tuple(blocks) for blocks in out)

    @cached_property
    def n_cells(self) -> int:
        """Number of flat cells."""
        return sum(s.stop - s.start for blocks in self.slices for _, s, _ in blocks)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(len(r.rhs) for r in self.rows)

    @cached_property
    def matrix(self) -> "sparse.csr_array":
        """A, rows by cells."""
        from scipy import sparse

        row, cell, coefficient, start = [], [], [], 0
        for group in self.rows:
            for e in group.entries:
                row.append(e.row + start)
                cell.append(e.cell + self.offsets[e.block])
                coefficient.append(e.coefficient)
            start += len(group.rhs)
        shape = (self.n_rows, self.n_cells)
        if not row:
            return sparse.csr_array(shape, dtype=np.float64)
        data = (np.concatenate(coefficient), (np.concatenate(row), np.concatenate(cell)))
        return sparse.csr_array(data, shape=shape)

    @cached_property
    def transposed(self) -> "sparse.csr_array":
        """A', cells by rows."""
        return self.matrix.T.tocsr()

    @cached_property
    def rhs(self) -> Floats:
        """b."""
        return np.concatenate([r.rhs for r in self.rows]) if self.rows else np.empty(0)

    @cached_property
    def inequality(self) -> NDArray[np.bool_]:
        """Which rows are <= rows."""
        return np.concatenate([np.full(len(r.rhs), not r.equality) for r in self.rows] or [np.empty(0, dtype=bool)])

    @cached_property
    def slack(self) -> Floats:
        """How far rounding alone may take each row from its right-hand side; 0 where all its numbers are whole."""
        entries = self.matrix.tocoo()
        sizes = np.bincount(entries.row, weights=np.abs(entries.data), minlength=self.n_rows)
        whole = self.rhs % 1 == 0
        whole[entries.row[entries.data % 1 != 0]] = False
        slack: Floats = np.where(whole, 0.0, row_slack(sizes, np.abs(self.rhs)))
        start = 0
        for group in self.rows:
            if group.slack is not None:
                here = slice(start, start + len(group.rhs))
                slack[here] = np.where(whole[here], 0.0, group.slack)
            start += len(group.rhs)
        return slack

    @cached_property
    def box(self) -> tuple[Floats, Floats] | None:
        """The least and the greatest multipliers of use, -inf and inf for rows that are not soft; None if none is."""
        if not self.excesses:
            return None
        boxes = [(-np.inf, np.inf) if r.box is None else r.box for r in self.rows for _ in r.rhs]
        low, high = np.array(boxes).T
        return low, high

    @cached_property
    def measuring(self) -> frozenset[int]:
        """The subproblems that say by how much soft constraints are broken."""
        return frozenset(i for view in self.excesses for i, _ in self.views[view])

    @cached_property
    def telling(self) -> tuple[int, ...]:
        """Subproblems whose leaves tell a structure of the whole."""
        every = range(1 if self.led else len(self.subproblems))
        return self.told_by or tuple(i for i in every if i not in self.measuring)

    def satisfied(self, residual: Floats, *, hard: bool = False) -> bool:
        """True if A y - b satisfies the rows, or those that are ``hard``, but for rounding."""
        fine = np.where(self.inequality, residual, np.abs(residual)) <= self.slack
        if hard and self.box is not None:
            fine |= np.isfinite(self.box[0])
        return bool(fine.all())

    def in_dispute(self, used: Floats, multipliers: Floats) -> NDArray[np.bool_]:
        """Cells of rows that these cells break, or leave slack at a price."""
        residual = self.matrix @ used - self.rhs
        size = np.where(self.inequality & (multipliers == 0.0), residual, np.abs(residual))
        if self.box is not None:  # a soft row costs what its multiplier says, or is in dispute
            low, high = (np.where(np.isfinite(limit), limit, 0.0) for limit in self.box)
            cost = high * np.maximum(-residual, 0.0) - low * np.maximum(residual, 0.0)
            size = np.where(np.isfinite(self.box[0]), np.abs(cost + multipliers * residual), size)
        cells: NDArray[np.bool_] = abs(self.transposed) @ (size > self.slack) > 0
        return cells

    def broken(self, fixings: Fixings) -> tuple[int, float] | None:
        """A row that no structure under the fixings satisfies, and by how much it is too low, or less than 0: too high.

        Where cells are counted more than once, or a part that is alone on its line is not used, that may be wrong.
        """
        above, below = self._signed
        most = ~fixings.zeros
        least = most & self.decided(fixings)
        low, high = self.rhs - (above @ most + below @ least), self.rhs - (above @ least + below @ most)
        off = np.maximum(np.where(self.inequality, 0.0, low), -high)
        if not (off > self.slack).any():
            return None
        row = int(np.argmax(off - self.slack))
        return row, float(low[row] if off[row] == low[row] and not self.inequality[row] else high[row])

    @cached_property
    def _signed(self) -> tuple[Any, Any]:
        """The coefficients above 0, and those below."""
        return self.matrix.maximum(0.0), self.matrix.minimum(0.0)

    @cached_property
    def _base_vector(self) -> Floats:
        vector = np.zeros(self.n_cells)
        for block, values in self.base.items():
            start = self.offsets[block]
            vector[start : start + values.size] = values.ravel()
        return vector

    # -- fixings ---------------------------------------------------------------------------------------------------

    def cells_of(self, view: str, index: int) -> list[int]:
        """The flat cells of all copies of a part that matter here."""
        return [self.offsets[block] + index for block in self.views[view] if block in self.offsets]

    def initial_fixings(self) -> Fixings:
        """The fixings every structure must respect."""
        fixings = Fixings(np.zeros(self.n_cells, dtype=bool))
        for view, index, value in self.fixed:
            fixings = self.fix(fixings, view, index, value)
        return fixings

    def fix(self, fixings: Fixings, view: str, index: int, value: int) -> Fixings:
        """One more part decided, in every copy."""
        zeros, ones = fixings.zeros.copy(), list(fixings.ones)
        for block in self.views[view]:
            if block not in self.offsets:
                continue
            cell, line = self.offsets[block] + index, self.line(block, index)
            if value == 0:
                zeros[cell] = True
            elif line is not None:
                zeros[line[line != cell]] = True
            elif cell not in ones:
                ones.append(cell)
        return Fixings(zeros, tuple(ones))

    def decided(self, fixings: Fixings) -> NDArray[np.bool_]:
        """Cells that are fixed, or whose rivals along an exclusive axis all are."""
        out = fixings.zeros.copy()
        out[list(fixings.ones)] = True
        for i, blocks in enumerate(self.slices):
            for view, cells, shape in blocks:
                axis = self.subproblems[i].exclusive.get(view)
                if axis is not None:
                    zeros = fixings.zeros[cells].reshape(shape)
                    alone = (~zeros).sum(axis=axis, keepdims=True) <= 1
                    out[cells] |= np.broadcast_to(alone, shape).ravel()
        return out

    # -- the Lagrangian --------------------------------------------------------------------------------------------

    def penalties(self, multipliers: Floats, fixings: Fixings) -> Floats:
        """The penalty on every cell: base, A' u, and -inf where forbidden."""
        penalty: Floats = self._base_vector + self.transposed @ multipliers
        penalty[fixings.zeros] = -np.inf
        return penalty

    def question(
        self, i: int, penalty: Floats, ones: Sequence[int], extra: float = 0.0
    ) -> tuple[dict[str, Floats], float]:
        """What to ask subproblem i, and what to add to its weighted answer.

        A cell that must be used is rewarded by more than any two penalised scores can differ, and the reward is taken
        off again: the answer bounds every structure that uses the cell, and is exact when there is one. Where there is
        none, it is as low as the reward is high, to which ``extra`` is added.
        """
        mine = [c for _, cells, _ in self.slices[i] for c in ones if cells.start <= c < cells.stop]
        offset = 0.0
        if mine:
            reward = self.reward(i, penalty) + extra
            penalty = penalty.copy()
            penalty[mine] += reward
            offset = -reward * len(mine)
        w = self.weights[i]
        asked = {view: penalty[cells].reshape(shape) for view, cells, shape in self.slices[i]}
        return (asked if w == 1.0 else {view: p / w for view, p in asked.items()}), offset

    @cached_property
    def _extents(self) -> tuple[Extent, ...]:
        asked = ([view for view, _, _ in blocks] for blocks in self.slices)
        return tuple(p.extent_under(views) for p, views in zip(self.subproblems, asked, strict=True))

    def reward(self, i: int, penalty: Floats) -> float:
        """More than any two penalised scores of a subproblem differ by."""
        extent = self._extents[i]
        largest = self.weights[i] * extent.size + self._largest(i, penalty)
        reward = 2.0 * max(extent.length, 1) * (len(self.slices[i]) + 1) * largest
        return min(reward, 2.5 * self._absolute(i, penalty)) or 1.0

    def _largest(self, i: int, penalty: Floats) -> float:
        largest = 0.0
        for _, cells, _ in self.slices[i]:
            finite = penalty[cells]
            largest = max(largest, float(np.abs(finite[finite > -np.inf]).max(initial=0.0)))
        return largest

    def _absolute(self, i: int, penalty: Floats) -> float:
        """What the absolute scores and penalties of a structure of subproblem i add up to at most; inf if unknown."""
        absolute = self._extents[i].absolute
        if absolute == np.inf or self.weights[i] != 1.0:
            return np.inf
        return absolute + absolute_of(*(penalty[cells] for _, cells, _ in self.slices[i]))

    def insists(self, view: str) -> int:
        """How many copies of a part of a view are required by a reward, not by forbidding its rivals."""
        return sum(inner not in self.subproblems[i].exclusive for i, inner in self.views[view])

    def error(self, multipliers: Floats, fixings: Fixings, *, required: int = 0, extra: float = 0.0) -> float:
        """How far rounding may take the dual value at these multipliers from the truth.

        ``required`` is how many parts are asked for beyond the fixings, ``extra`` as in ``question``.
        """
        penalty = self.penalties(multipliers, fixings)
        total = of_sum(self.n_rows, float(np.abs(multipliers * self.rhs).max(initial=0.0)))
        total += float((np.abs(multipliers) * self.slack).sum())
        return total + min(
            self._error_of_sums(penalty, fixings, required, extra),
            self._error_of_parts(multipliers, penalty, fixings, required, extra),
        )

    def _error_of_sums(self, penalty: Floats, fixings: Fixings, required: int, extra: float) -> float:
        """The same without constants: as many numbers as a structure has at most, all as large as the largest."""
        total = 0.0
        for i in range(len(self.subproblems)):
            extent = self._extents[i]
            size = self.weights[i] * extent.size + self._largest(i, penalty)
            length = extent.length * (1 + len(self.slices[i]))
            ones = sum(s.start <= c < s.stop for _, s, _ in self.slices[i] for c in fixings.ones)
            if i in self.measuring:  # what is priced below 0 is not used; who checks rounds the prices of all digits
                total += EPSILON * length * size
                size = self._most_gained(i, penalty)
            else:
                ones += required
            total += of_sum(length, size)
            if ones:  # rewards are added once for each part, and taken off again
                total += EPSILON * (length + 2 * ones) * ones * (self.reward(i, penalty) + extra)
        return total

    def _error_of_parts(
        self, multipliers: Floats, penalty: Floats, fixings: Fixings, required: int, extra: float
    ) -> float:
        """The same where the absolute numbers of structures of all subproblems have bounds; inf elsewhere.

        Beside roundings of values there are those of penalties; and those of a check, which rounds each score in use up
        to a multiple of at most 2 EPSILON times the sum of all, and has half of the tolerance to be lost.
        """
        absolutes = [self._absolute(i, penalty) for i in range(len(self.subproblems))]
        if max(absolutes, default=np.inf) == np.inf:
            return np.inf
        most, sizes = self._products
        total = EPSILON * (most + 1) * float((np.abs(multipliers) * sizes).sum())
        length = 0
        for i, (extent, absolute) in enumerate(zip(self._extents, absolutes, strict=True)):
            total += of_parts(extent.roundings + len(absolutes) + 4, absolute)
            length += extent.length
            ones = required + sum(s.start <= c < s.stop for _, s, _ in self.slices[i] for c in fixings.ones)
            if ones:  # rewards are added once for each part, and taken off again
                reward = self.reward(i, penalty) + extra
                total += of_parts(extent.roundings + 2 * ones + len(absolutes) + 4, ones * reward)
        return total + EPSILON * CHECKED * length * sum(absolutes)

    @cached_property
    def _products(self) -> tuple[int, Floats]:
        """How many products of a multiplier and a coefficient the penalty on a cell is a sum of, at most.

        And for each row what the absolute values of its coefficients add up to.
        """
        sizes: Floats = abs(self.matrix).sum(axis=1).astype(np.float64)
        return int(np.diff(self.transposed.indptr).max(initial=0)), sizes

    def _most_gained(self, i: int, penalty: Floats) -> float:
        """The highest score of an edge of a subproblem that measures a soft constraint, if any is above 0."""
        (scores,) = self.subproblems[i].all_scores() or ()
        gained = [penalty[cells] + self.weights[i] * scores for _, cells, _ in self.slices[i]]
        return float(np.max(gained, initial=0.0))

    @cached_property
    def lowest(self) -> float:
        """No structure with a finite score scores less than this."""
        total = 0.0
        for i, problem in enumerate(self.subproblems):
            extent = problem.extent()
            base = max(extent.length, 1) * len(self.slices[i]) * self._largest(i, self._base_vector)
            total += base - self.weights[i] * problem.least_score()
        return -total - 1e-9 * (1.0 + total)

    @cached_property
    def scale(self) -> float:
        """Largest absolute score, for step rules; 1 when there is none."""
        known = [i for i in range(len(self.subproblems)) if i not in self.measuring]
        return max((self.weights[i] * self.subproblems[i].extent().size for i in known), default=0.0) or 1.0

    def score(self, leaves: Sequence[Any], used: Floats) -> float:
        """Score of one structure per subproblem, from the input scores and the base penalties."""
        total = 0.0
        for w, problem, y in zip(self.weights, self.subproblems, leaves, strict=True):
            total += w * problem.score(y)
        on = used > 0
        return total + float((self._base_vector[on] * used[on]).sum()) if self.base else total

    def cells_used(self, i: int, structure: Any, out: Floats) -> None:
        """Write the indicators of subproblem i's structure into the flat cells."""
        for view, cells, _ in self.slices[i]:
            out[cells] = self.subproblems[i].indicator(structure, view).ravel()

    def pinned(self, multipliers: Floats, used: Floats, fixings: Fixings) -> Floats:
        """Copies that are tied to parts used, or not, but that no view has, priced so that they stay with these."""
        u = multipliers.copy()
        extents = [(w, p.extent()) for w, p in zip(self.weights, self.subproblems, strict=True)]
        amount = 2.0 * (sum(w * max(e.length, 1) * e.size for w, e in extents) + float(np.abs(u).sum()))
        decided, start = self.decided(fixings), 0
        for group in self.rows:
            if len(group.entries) < 2 or not group.equality or group.rhs.any():
                start += len(group.rhs)
                continue
            first, tied = group.entries[0], group.entries[-1]
            if np.array_equal(first.row, tied.row):
                free = ~decided[self.offsets[tied.block] + tied.cell]
                sign = np.where(used[self.offsets[first.block] + first.cell] > 0, -1.0, 1.0) * first.coefficient
                u[start + first.row[free]] += amount * sign[free]
            start += len(group.rhs)
        return u

    # -- multipliers by name ---------------------------------------------------------------------------------------

    def named(self, multipliers: Floats) -> dict[str, Floats]:
        """Multipliers by group of rows."""
        out, start = {}, 0
        for group in self.rows:
            out[group.name] = multipliers[start : start + len(group.rhs)].reshape(group.shape).copy()
            start += len(group.rhs)
        return out

    def carried(self, named: Mapping[str, Floats]) -> Floats:
        """Multipliers of a relaxation with some of these rows, the first ones of groups, and 0 for the others."""
        start = self.named(np.zeros(self.n_rows))
        for name, own in start.items():
            before = named.get(name, own)
            own.flat[: before.size] = before.flat
        return self.unnamed(start)

    def unnamed(self, named: Any) -> Floats:
        """The vector that ``named`` was made from; InvalidInput if it does not fit the rows or has a wrong sign."""
        if not isinstance(named, Mapping) or set(named) != {r.name for r in self.rows}:
            wanted = ", ".join(repr(r.name) for r in self.rows)
            raise InvalidInput(f"multipliers are not given by constraint; expected arrays for {wanted}.")
        vector = np.empty(self.n_rows)
        start = 0
        for group in self.rows:
            values = as_scores(f"multipliers of {group.name!r}", named[group.name], group.shape)
            vector[start : start + values.size] = values.ravel()
            start += values.size
        if not np.isfinite(vector).all():
            raise InvalidInput("a multiplier is not finite.")
        if (vector[self.inequality] > 0).any():
            raise InvalidInput("a multiplier of a <= row is positive; it must be zero or less to bound anything.")
        return vector
