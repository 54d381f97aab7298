"""The normal form of a relaxation: the forms of its subproblems side by side, with rows over their parts.

A proof tree speaks of views and of multipliers by name; here these become parts and rows, and the tree is walked.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf, prod
from typing import Any

import numpy as np

from certus.certificates.enumerated import enumerated_form
from certus.certificates.evaluate import Cell, Evaluation
from certus.certificates.normal import Closed, Closing, Graph, NormalForm, Referred, Rows, Searched, Space, Trees
from certus.certificates.rounding import EPSILON, of_sum
from certus.checks import Floats, Ints
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.problem import Penalties, Problem
from certus.relax.cuts import with_cuts
from certus.relax.proof import Close, Cut, Leaf, Proof, Removed, Split, Tighter
from certus.relax.system import Relaxation


@dataclass(frozen=True)
class RelaxedForm:
    """The normal form of a relaxation; ``part[c]`` is the part of its flat cell c, -1 for one that nothing uses.

    ``required`` are parts that every structure uses: the last rows of the form say so. ``kept`` says which of the
    subproblems are searched, not spelt out; ``closed`` are what is left of these once they are closed above a bound.
    ``cuts`` are how the last rows of the relaxation, so many of them, follow from those before.
    """

    relaxation: Relaxation
    form: NormalForm
    part: Ints
    required: tuple[int, ...] = ()
    kept: tuple[bool, ...] = ()
    closed: tuple[Closed, ...] = ()
    cuts: tuple[Cut, ...] = ()

    @staticmethod
    def of(relaxation: Relaxation, search: Callable[[Problem[Any]], bool] = lambda p: p.searched) -> "RelaxedForm":
        """Of the subproblems' own normal forms, none of which may have rows; ``search`` says which are searched."""
        part, scores, spaces, start = np.full(relaxation.n_cells, -1, dtype=np.int64), [], list[Space](), 0
        kept = tuple(map(search, relaxation.subproblems))
        for i, problem in enumerate(relaxation.subproblems):
            weight = relaxation.weights[i]
            form = _searched_form(problem, weight) if kept[i] else _form_of(problem, weight)
            scores.append(form.scores if weight == 1.0 else weight * form.scores)
            spaces += [_shifted(space, start) for space in form.spaces]
            for view, cells, _ in relaxation.slices[i]:
                own = form.cells[view]
                part[cells] = np.where(own >= 0, own + start, -1)
            start += len(form.scores)
        together = np.concatenate(scores) if scores else np.zeros(0)
        for block, values in relaxation.base.items():
            at = part[relaxation.offsets[block] :][: values.size]
            np.add.at(together, at[at >= 0], values.reshape(-1)[at >= 0])
        rows = _rows(relaxation, part)
        _forbid_unused(together, rows)
        free = RelaxedForm(relaxation, NormalForm(together, tuple(spaces), {}, rows), part, kept=kept)
        return free._with_fixings() if relaxation.fixed else free

    def _with_fixings(self) -> "RelaxedForm":
        """What is decided from the start as scores of -inf, and rows for parts that are required."""
        cell = self.evaluation.everything()
        for view, index, value in self.relaxation.fixed:
            cell = self.fixed(cell, view, index, value)
        scores = np.where(cell.zeros, -inf, self.form.scores)
        more, rows = len(cell.ones), self.form.rows
        ones, parts = np.ones(more), np.array(cell.ones, dtype=np.int64)
        required = Rows(
            np.concatenate((rows.ptr, rows.ptr[-1] + 1 + np.arange(more))),
            np.concatenate((rows.part, parts)),
            np.concatenate((rows.coefficient, -ones)),
            np.concatenate((rows.rhs, -ones)),
            np.concatenate((rows.equality, np.zeros(more, dtype=bool))),
            np.concatenate((rows.slack, np.zeros(more))),
        )
        return replace(self, form=self.form._replace(scores=scores, rows=required), required=cell.ones)

    def parts_in(self, block: tuple[int, str]) -> Ints:
        """The parts of the cells of a view of a subproblem, if any row or proof speaks of it."""
        return self.part[self.relaxation.cells_in(block)]

    @cached_property
    def evaluation(self) -> Evaluation:
        """The form, made ready to be bounded."""
        return Evaluation(self.form)

    def initial(self) -> Cell:
        """All structures."""
        return self.evaluation.everything()._replace(ones=self.required)

    def hopeful(self, above: float) -> Cell:
        """All structures but some that cannot score more than ``above``, as they use a part that scores too little.

        Rows that tie such a part to others forbid these too, which multipliers that know nothing of the part do not.
        """
        low, cell = self.too_low(above), self.initial()
        if not len(low):
            return cell
        left = self.form.scores.copy()
        left[low] = -inf
        _forbid_unused(left, self.form.rows)
        return cell._replace(zeros=cell.zeros | (left == -inf))

    def too_low(self, above: float) -> Ints:
        """Parts that score so little that no structure that uses one scores more than ``above``."""
        scores = self.form.scores
        ceiling = self.evaluation.ceiling(scores)
        least = above - ceiling - 1e-6 * (abs(above) + ceiling) if above < inf else -inf
        left = np.where(scores < least, -inf, scores)
        for space in self.form.spaces:
            if isinstance(space, Trees) and space.labels is not None:  # an arc goes with its labels
                left[space.part[(space.part >= 0) & (space.arc_scores(left) == -inf)]] = -inf
        return np.flatnonzero((left == -inf) & (scores > -inf))

    def multipliers(self, named: Any) -> Floats:
        """Of all rows; those of required parts are 0, as ``Evaluation`` sees to these itself."""
        return np.concatenate((self.relaxation.unnamed(named), np.zeros(len(self.required))))

    def copies(self, view: str, index: int) -> list[int]:
        """The parts of all copies of a cell of a view that have one; InvalidInput if there is no such cell."""
        r = self.relaxation
        if view not in r.views:
            raise InvalidInput(f"the proof speaks of view {view!r}, which the problem does not have.")
        shape = r.shape_of(r.views[view][0])
        if not 0 <= index < prod(shape):
            raise InvalidInput(f"the proof speaks of part {index} of view {view!r}, which has shape {shape}.")
        return [int(self.part[cell]) for cell in r.cells_of(view, index) if self.part[cell] >= 0]

    def fixed(self, cell: Cell, view: str, index: int, value: int) -> Cell:
        """The structures of a cell that use a part (1), or do not (0), in all of its copies, which rows keep equal."""
        copies = self.copies(view, index)
        zeros = cell.zeros.copy()
        if value == 0:
            zeros[copies] = True
            return Cell(zeros, cell.ones)
        if not copies:  # nothing uses the part
            return Cell(np.ones_like(zeros), cell.ones)
        lines = self.rivals(view, index)
        for line in lines:
            zeros[[p for p in line.tolist() if p not in copies]] = True
        alone = set(copies) - {int(p) for line in lines for p in line}
        return Cell(zeros, tuple(sorted(alone.union(cell.ones))))

    def rivals(self, view: str, index: int) -> list[Ints]:
        """For each copy of a part, itself and those of which no structure uses a second one, where there are such."""
        r, lines = self.relaxation, []
        for block in r.views[view]:
            if block not in r.offsets or self.part[r.offsets[block] + index] < 0:
                continue
            line = r.line(block, index)
            if line is None:
                continue
            parts = self.part[line]
            parts = parts[parts >= 0]
            key = parts.tobytes()
            if key not in self._at_most_one:
                self._at_most_one[key] = self.evaluation.at_most_one(parts)
            if self._at_most_one[key]:
                lines.append(parts)
        return lines

    @cached_property
    def _at_most_one(self) -> dict[bytes, bool]:
        return {}

    def without(self, cell: Cell, removed: tuple[Removed, ...]) -> Cell:
        """The structures of a cell that use none of the parts removed."""
        zeros = cell.zeros.copy()
        for part in removed:
            parts = self.parts_of(part)
            zeros[parts[parts >= 0]] = True
        return Cell(zeros, cell.ones)

    def parts_of(self, removed: Removed) -> Ints:
        """(K, copies) the parts that are removed, -1 where there is none, without cells that nothing uses."""
        r, indices = self.relaxation, np.array(removed.indices, dtype=np.int64)
        for index in (indices.min(initial=0), indices.max(initial=0)):
            self.copies(removed.view, int(index))
        found = [self.part[r.offsets[block] + indices] for block in r.views[removed.view] if block in r.offsets]
        parts = np.stack(found, axis=1) if found else np.empty((0, 1), dtype=np.int64)
        return parts[(parts >= 0).any(axis=1)]

    def tightened(self, given: Tighter) -> "RelaxedForm":
        """With pieces and cuts; InvalidInput if a piece is none of this problem, or a cut does not follow from rows."""
        key = given.pieces, given.cuts
        if key not in self._tightened:
            if any(self.kept):
                raise InvalidInput("the proof has pieces or cuts, and a subproblem is searched.")
            wider = RelaxedForm.of(self.relaxation.with_pieces(given.pieces))
            for cell in {cell for cut in given.cuts for cell, _ in cut.cells}:
                if not 0 <= cell < len(wider.part):
                    raise InvalidInput(f"a cut of the proof speaks of cell {cell}; there are {len(wider.part)}.")
                part = wider.part[cell : cell + 1]
                if part[0] >= 0 and not wider.evaluation.at_most_one(part):
                    raise InvalidInput(
                        f"a cut of the proof says that cell {cell} is used once at most; it may be more."
                    )
            cut = RelaxedForm.of(with_cuts(wider.relaxation, given.cuts)) if given.cuts else wider
            self._tightened[key] = replace(cut, cuts=given.cuts)
        return self._tightened[key]

    @cached_property
    def _tightened(self) -> "dict[Any, RelaxedForm]":
        return {}

    @property
    def searched(self) -> bool:
        """Whether some spaces are searched."""
        return any(isinstance(space, Searched) for space in self.form.spaces)

    def close(self, multipliers: Any, above: float, closing: Closing | None = None) -> "tuple[Closing, RelaxedForm]":
        """The form of what structures that score more than ``above`` are made of: graphs in place of what is searched.

        Closed under multipliers, as ``closing`` says or as seems best; how is returned as well.
        """
        u = self.multipliers(multipliers)
        key = u.tobytes(), above
        if key not in self._closings or (closing is not None and self._closings[key][0] is not closing):
            closing, closed = self.evaluation.closed(u, above, self.initial(), closing)
            form = replace(self, form=_spelt_out(self.form, closed), closed=tuple(closed)) if closed else self
            self._closings[key] = closing, form
        return self._closings[key]

    @cached_property
    def _closings(self) -> "dict[tuple[bytes, float], tuple[Closing, RelaxedForm]]":
        return {}

    @property
    def rounding(self) -> float:
        """What has been added to any bound by rounding is less than this."""
        closed = [form.rounding for _, form in self._closings.values() if form is not self]
        return max([self.evaluation.rounding, *closed, *(form.rounding for form in self._tightened.values())])

    def bound(self, proof: Proof | Close | Tighter, above: float, better: Sequence[Any] = ()) -> float:
        """What the proof tree shows that no structure beats, but for the better ones.

        More than ``above`` need not be told apart.
        """
        if isinstance(proof, Tighter):
            return self.tightened(proof).bound(proof.rest, above, better)
        if isinstance(proof, Close):
            form = self.close(proof.multipliers, above, proof.closing)[1]
            return max(above, form.bound(proof.rest, above, better))
        asked = id(proof), above, tuple(map(id, better))
        if asked not in self._bounds:  # what is looked up is kept alive with what was found
            left = [self.structure_if_left(y) for y in better]
            found = self.bound_in(self.hopeful(above), proof, above, left)
            self._bounds[asked] = found, proof, tuple(better)
        return self._bounds[asked][0]

    @cached_property
    def _bounds(self) -> dict[Any, tuple[float, Proof, tuple[Any, ...]]]:
        return {}

    def bound_in(self, cell: Cell, proof: Proof, above: float, better: Sequence[Sequence[Any] | None] = ()) -> float:
        """The same for the structures of a cell."""
        highest = -inf
        stack: list[tuple[Proof, Cell]] = [(proof, cell)]
        while stack and highest <= above:
            node, cell = stack.pop()
            if isinstance(node, Split):
                stack.append((node.zero, self.fixed(cell, node.view, node.index, 0)))
                if self.copies(node.view, node.index):  # else nothing uses the part
                    stack.append((node.one, self.fixed(cell, node.view, node.index, 1)))
                continue
            u = self.multipliers(node.multipliers)
            if isinstance(node, Leaf):
                highest = max(highest, self.evaluation.bound(u, above, cell, self.known(node, better)))
                continue
            for part in node.removed:
                highest = max(highest, self.evaluation.bound_with(u, above, cell, self.parts_of(part)))
            stack.append((node.rest, self.without(cell, node.removed)))
        return highest

    def known(self, leaf: Leaf, better: Sequence[Sequence[Any] | None]) -> list[Sequence[Any]]:
        """Which of the better structures the bound of a leaf need not hold for: all, where that can be shown."""
        chosen: Iterable[int] = leaf.known
        if len(self.form.spaces) == 1 and isinstance(self.form.spaces[0], Graph | Searched):
            chosen = range(len(better))
        for k in chosen:
            if not 0 <= k < len(better):
                raise InvalidInput(f"the proof speaks of structure {k}; {len(better)} come before this one.")
        return [own for own in (better[k] for k in chosen) if own is not None]

    def structure(self, structure: Any) -> tuple[Any, ...]:
        """A structure of the problem as one of every space."""
        found = self.structure_if_left(structure)
        if found is None:
            raise InvalidInput("the structure scores too little to be among those that may beat the bound.")
        return found

    def structure_if_left(self, structure: Any) -> tuple[Any, ...] | None:
        """The same; None for one that was left out when spaces were closed."""
        found, closed = list[Any](), iter(self.closed)
        leaves = self.relaxation.leaves(structure)
        for problem, kept, leaf in zip(self.relaxation.subproblems, self.kept, leaves, strict=True):
            if kept:
                found.append(next(closed).structure(leaf) if self.closed else leaf)
            else:
                found += problem.normal_structure(leaf)
        return None if any(own is None for own in found) else tuple(found)


def _form_of(problem: Problem[Any], weight: float) -> NormalForm:
    """A problem's own normal form; else its own reference, weighted; else all structures; else its own ``solve``."""
    try:
        return problem.normal_form()
    except NotSupported:
        if problem.searched:
            raise
    if problem.reference_maximum() is not None:
        return _referred_form(problem, weight, problem.reference_maximum, "reference_maximum")
    try:
        return enumerated_form(problem)
    except NotSupported:
        return _referred_form(problem, weight, partial(_solved, problem), "solve")


def _solved(problem: Problem[Any], penalties: Penalties | None = None) -> float:
    try:
        return problem.solve(penalties).value
    except Infeasible:
        return -inf


def _referred_form(
    problem: Problem[Any], weight: float, ask: Callable[[Penalties], float | None], by: str
) -> NormalForm:
    """A problem that is believed what it says of its best value, by the method of this name."""
    sizes = [prod(shape) for shape in problem.views.values()]
    starts = np.cumsum([0, *sizes]).tolist()

    def maximum(scores: Floats) -> tuple[float, float]:
        cut = zip(problem.views.items(), starts, sizes, strict=False)
        penalties = {view: scores[start : start + size].reshape(shape) / weight for (view, shape), start, size in cut}
        value = ask(penalties)
        extent = problem.extent()
        largest = weight * extent.size + float(np.abs(scores[scores > -inf]).max(initial=0.0))
        length = extent.length * (1 + len(sizes)) + 2 * (weight != 1.0)
        return -inf if value is None else weight * value, of_sum(length, largest)

    cells = {
        view: np.arange(start, start + size) for view, start, size in zip(problem.views, starts, sizes, strict=False)
    }
    extent = problem.extent()
    size = weight * extent.length * extent.size
    named = f"{type(problem).__name__}.{by}"
    referred = Referred(np.arange(starts[-1]), extent.length * len(sizes), size, maximum, named)
    return NormalForm(np.zeros(starts[-1]), (referred,), cells)


def _searched_form(problem: Problem[Any], weight: float) -> NormalForm:
    """A problem that is searched under penalties, all of its scores times ``weight``: one space, and only cells."""
    if not weight > 0.0:
        raise NotSupported(f"the weight of a problem that is searched is {weight:g}; only positive ones are checked.")
    sizes = [prod(shape) for shape in problem.views.values()]
    starts, extent = np.cumsum([0, *sizes]), problem.extent()
    cells = dict(zip(problem.views, np.split(np.arange(starts[-1]), starts[1:-1]), strict=True))
    line = np.full(starts[-1], -1, dtype=np.int64)
    for view, axis in problem.exclusive.items():
        number = np.delete(np.indices(problem.views[view]), axis, axis=0)
        shape = tuple(size for k, size in enumerate(problem.views[view]) if k != axis)
        line[cells[view]] = line.max(initial=-1) + 1 + np.ravel_multi_index(tuple(number), shape).reshape(-1)

    def penalties(scores: Floats) -> Penalties:
        if weight != 1.0:
            scores = np.where(np.isfinite(scores) & (scores != 0.0), np.nextafter(scores / weight, inf), scores)
        return {view: scores[at].reshape(problem.views[view]) for view, at in cells.items()}

    def least(above: float) -> float:
        if weight == 1.0:
            return above
        return above / weight - of_sum(extent.length, extent.size) - EPSILON * abs(above / weight)  # of products

    def make_witness(above: float, scores: Floats) -> Any:
        return problem.make_witness(least(above), penalties(scores))

    def closed(above: float, scores: Floats, witness: Any) -> Closed:
        found = problem.closed_form(least(above), witness, penalties(scores))
        return found if weight == 1.0 else found._replace(form=found.form._replace(scores=weight * found.form.scores))

    def solved(scores: Floats) -> float:
        try:
            return weight * problem.solve(penalties(scores)).value
        except Infeasible:
            return -inf

    ceiling, length = max(weight * extent.ceiling, 0.0), extent.length
    space = Searched(np.arange(starts[-1]), tuple(cells), line, ceiling, length, closed, make_witness, solved)
    return NormalForm(np.zeros(starts[-1]), (space,), cells)


def _spelt_out(form: NormalForm, closed: Sequence[Closed]) -> NormalForm:
    """The form with what is left of the spaces that are searched: graphs, whose edges use the parts of cells as well.

    A cell that nothing is left of is used by no structure.
    """
    scores, spaces, left = [form.scores.copy()], list[Space](), iter(closed)
    start = len(form.scores)
    for space in form.spaces:
        if not isinstance(space, Searched):
            spaces.append(space)
            continue
        found = next(left).form
        (graph,) = found.spaces
        assert isinstance(graph, Graph)
        cell = np.concatenate([found.cells[view] for view in space.views])
        scores[0][space.part[cell < 0]] = -inf
        part_of = np.full(len(found.scores), -1, dtype=np.int64)
        part_of[cell[cell >= 0]] = space.part[cell >= 0]
        own = part_of[graph.part]
        places = np.concatenate(([0], np.cumsum(1 + (own >= 0))))
        parts = np.insert(graph.part + start, np.flatnonzero(own >= 0), own[own >= 0])
        spaces.append(graph._replace(part_ptr=places[graph.part_ptr], part=parts))
        scores.append(found.scores)
        start += len(found.scores)
    together = np.concatenate(scores)
    _forbid_unused(together, form.rows)
    return form._replace(scores=together, spaces=tuple(spaces))


def _shifted(space: Space, start: int) -> Space:
    """The space with its parts numbered from ``start`` on."""
    if isinstance(space, Trees):
        labels = None if space.labels is None else np.where(space.labels >= 0, space.labels + start, -1)
        return space._replace(part=np.where(space.part >= 0, space.part + start, -1), labels=labels)
    return space._replace(part=space.part + start)


def _forbid_unused(scores: Floats, rows: Rows) -> None:
    """Set the scores of parts to -inf of which rows say that no structure uses them: rows "= 0", and ties to such."""
    size, first = np.diff(rows.ptr), rows.ptr[:-1]
    zero = rows.equality & (rows.rhs == 0.0)
    alone = first[zero & (size == 1)]
    scores[rows.part[alone[rows.coefficient[alone] != 0.0]]] = -inf
    pairs = first[zero & (size == 2)]
    pairs = pairs[(rows.coefficient[pairs] == -rows.coefficient[pairs + 1]) & (rows.coefficient[pairs] != 0.0)]
    a, b = rows.part[pairs], rows.part[pairs + 1]
    while len(apart := np.flatnonzero((scores[a] == -inf) != (scores[b] == -inf))):
        scores[a[apart]] = scores[b[apart]] = -inf


def _rows(relaxation: Relaxation, part: Ints) -> Rows:
    """The rows of a relaxation over parts; cells that nothing uses are left out."""
    row, column, coefficient, start = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], [np.zeros(0)], 0
    for group in relaxation.rows:
        for e in group.entries:
            parts = part[e.cell + relaxation.offsets[e.block]]
            row.append(e.row[parts >= 0] + start)
            column.append(parts[parts >= 0])
            coefficient.append(e.coefficient[parts >= 0])
        start += len(group.rhs)
    rows, values = np.concatenate(row), np.concatenate(coefficient)
    order = np.argsort(rows, kind="stable")
    ptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=relaxation.n_rows)))).astype(np.int64)
    parts = np.concatenate(column)[order]
    return Rows(ptr, parts, values[order], relaxation.rhs, ~relaxation.inequality, relaxation.slack)
