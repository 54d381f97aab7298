r"""What no structure of a normal form can beat: the Lagrangian at given multipliers, in whole numbers.

For multipliers u of the rows, u <= 0 on "<=" rows, every structure scores at most

    L(u)  =  sum over spaces of max over their structures of  (sum of  s_p + (A' u)_p  over the parts p used)  -  u . b.

All scores are rounded UP to multiples of a power of two, the step, so coarse that no sum of them is rounded in float64,
and the multipliers towards 0, since any will do. So what is computed is the exact value of a problem in
which every part scores at least as much as before: a bound, whoever supplied the multipliers. Scores so low that no
structure that uses them could matter are raised to where they still do not.
"""

from collections.abc import Sequence
from math import ceil, inf, log2, prod
from typing import Any, NamedTuple, NoReturn

import numpy as np

from certus.certificates import sweep
from certus.certificates.arborescence_dual import LaminarDual, dual_bound, laminar_dual
from certus.certificates.normal import Graph, NormalForm, Referred, Searched, Trees
from certus.certificates.rounding import EPSILON, Floats, overflow
from certus.checks import Bools, Ints
from certus.errors import NotSupported

BITS = 52  # of the largest sum, in steps
LOWEST = -(2.0 ** (BITS + 1))  # steps, below any sum that matters


class Cell(NamedTuple):
    """Which structures are left at a place of a proof: those that use none of ``zeros`` and all of ``ones``."""

    zeros: Bools  # (P,)
    ones: tuple[int, ...] = ()


class Evaluation:
    """A normal form, made ready to be bounded again and again."""

    def __init__(self, form: NormalForm) -> None:
        self.form = form
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
        total = self._priced(u, above, cell).total(known)
        if total > above and cell.ones:
            total = min(total, self._priced(u, above, cell, total - above).total(known))
        return total

    def bound_with(self, u: Floats, above: float, cell: Cell, parts: Ints) -> float:
        """No structure of the cell that uses any of these parts scores more than this."""
        most = self._priced(u, above, cell).with_any(parts)
        if most > above and cell.ones:
            most = min(most, self._priced(u, above, cell, most - above).with_any(parts))
        return most

    def spelt_out(
        self, u: Floats, above: float, cell: Cell, *, known: Sequence[Sequence[Any]] = (), parts: Ints | None = None
    ) -> dict[str, Any]:
        """The bound of a cell as a proof file has it: multipliers, the reward of parts required, duals of trees.

        Of structures that use one of ``parts``, if these are given.
        """
        priced = self._priced(u, above, cell)
        found = priced.total(known) if parts is None else priced.with_any(parts)
        if found > above and cell.ones:
            priced = self._priced(u, above, cell, found - above)
        spaces = []
        for i, space in enumerate(priced.spaces):
            forced: Bools | None = None
            if isinstance(space, _PricedTrees) and parts is not None:
                forced = space.loss_with(parts) < inf
            elif isinstance(space, _PricedTrees) and known:
                forced = space.loss_without(parts_of_known(known)[i]) < inf
            rest = priced.best - space.best
            spaces.append(space.spelt_out(priced.step, forced, above / priced.step - rest))
        return {"u": priced.u.tolist(), "reward": priced.reward, "spaces": spaces}

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

    def _priced(self, u: Floats, above: float, cell: Cell, excess: float = 0.0) -> "_Priced":
        """The parts of a cell under multipliers.

        Each part that must be used is rewarded by the ``excess`` of the bound without that, and the reward taken off
        again: what lacks such a part is then no better than it has to be.
        """
        rows, scores = self.form.rows, self.form.scores
        raw = scores + self._onto_parts(u) if len(u) else scores.copy()
        raw[cell.zeros] = -inf
        ceiling = self.ceiling(raw) + float(np.abs(u * rows.rhs).sum() + (np.abs(u) * rows.slack).sum())
        if len(u):
            ceiling = max(ceiling, float(self._onto_parts(np.abs(u), absolute=True).max(initial=0.0)))
        size = (ceiling + max(-above if above > -inf else 0.0, 0.0)) * (1.0 + 1e-6) + 1e-290
        if not size + excess < 1e300:
            raise overflow()
        worth = 1.01 * excess + 1e-9 * size if excess else 0.0
        step = 2.0 ** (ceil(log2(size + 2.0 * worth * len(cell.ones))) - BITS)
        steps = np.trunc(u / step)
        with np.errstate(over="ignore"):  # of scores that are far too low to matter
            own = scores / step
        units = np.ceil(own)
        constant = 0.0
        if len(u):
            onto = self._onto_parts(steps)
            units = units + self._rounded_up(onto, self._onto_parts(np.abs(steps), absolute=True))
            if not self._whole_rows:  # what soft constraints cost cancels out: both may be rounded up as one
                both = own + onto
                units = np.where(self._plain, np.minimum(units, np.ceil(np.nextafter(both, inf)) * (both != 0)), units)
            constant = _sum_up(-steps * rows.rhs) + _sum_up(np.abs(steps) * rows.slack)
        units = np.where(scores > -inf, np.maximum(units, LOWEST), -inf)
        units[cell.zeros] = -inf
        reward = float(np.ceil(worth / step))
        np.add.at(units, list(cell.ones), reward)
        constant -= reward * len(cell.ones)
        return _Priced(self, units, constant, (steps * step, reward * step, step), above)

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

    def ceiling(self, raw: Floats) -> float:
        """The positive scores of no structure add up to more than this, rounding aside."""
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


class _Priced:
    """The parts under multipliers, in whole numbers of steps."""

    def __init__(
        self, of: Evaluation, units: Floats, constant: float, prices: tuple[Floats, float, float], above: float
    ) -> None:
        self.of, self.above = of, above
        self.u, self.reward, self.step = prices
        self.enough = float(np.floor(above / self.step))
        spaces: dict[int, _PricedGraph | _PricedTrees | _PricedReference | _PricedSearch] = {}
        for i, space in enumerate(of.form.spaces):
            if isinstance(space, Graph):
                spaces[i] = _PricedGraph(space, of.plans[i], units)
            elif isinstance(space, Trees):
                spaces[i] = _PricedTrees(space, units)
            elif isinstance(space, Referred):
                spaces[i] = _PricedReference(space, units, self.step)
        self.best = sum(s.best for s in spaces.values()) + constant
        searched = [i for i, space in enumerate(of.form.spaces) if isinstance(space, Searched)]
        for i in searched if self.best > -inf else ():  # what the others leave is known for the last one
            space = of.form.spaces[i]
            assert isinstance(space, Searched)
            left = self.enough - self.best if i == searched[-1] else None
            spaces[i] = _PricedSearch(space, units, self.step, left)
            self.best += spaces[i].best
        self.spaces = [spaces[i] for i in sorted(spaces)]

    def total(self, known: Sequence[Sequence[Any]]) -> float:
        """The dual value; of all structures but those known, where that can be told."""
        if not known or not self.best * self.step > self.above:
            return self.best * self.step
        different = parts_of_known(known)
        if prod(map(len, different)) > len({_key(structure) for structure in known}):
            return self.best * self.step  # those known may be mixed into others
        most = -inf
        for space, own in zip(self.spaces, different, strict=True):  # another structure is another one in some space
            most = max(most, self.best - space.best + space.other_than(own))
        return most * self.step

    def with_any(self, parts: Ints) -> float:
        """The largest dual value with one of the parts in use."""
        if not self.best > -inf:
            return -inf
        most = -inf
        for i, space in enumerate(self.spaces):
            mine = parts[self.of.space_of[parts] == i]
            if len(mine):
                rest = self.best - space.best
                most = max(most, rest + space.with_any(mine, self.enough - rest))
        return most * self.step


def parts_of_known(known: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """For every space the different structures there of those known."""
    return [list({_key(own): own for own in here}.values()) for here in zip(*known, strict=True)]


def _key(structure: Any) -> Any:
    """A structure of a space, or of all, to be told from others by."""
    return tuple(map(_key, structure)) if isinstance(structure, list | tuple | np.ndarray) else structure


class _PricedGraph:
    def __init__(self, graph: Graph, plan: Any, units: Floats) -> None:
        self.graph, self.plan, self.n_parts = graph, plan, len(units)
        self.weight = sweep.edge_weights(graph, units)
        self.chart = sweep.inside(plan, self.weight)
        self.best = float(self.chart[-1])

    def other_than(self, known: Sequence[Sequence[int]]) -> float:
        return sweep.best_excluding(self.graph, self.plan, self.weight, self.chart, known)

    def with_any(self, parts: Ints, enough: float) -> float:
        through = sweep.edge_max_marginals(self.plan, self.weight, self.chart)
        chosen = np.zeros(self.n_parts, dtype=bool)
        chosen[parts] = True
        used = np.repeat(np.arange(len(self.weight)), np.diff(self.graph.part_ptr))[chosen[self.graph.part]]
        return float(through[used].max(initial=-inf))

    def spelt_out(self, step: float, forced: Bools | None, enough: float) -> None:
        """A graph is swept again."""
        return None


class _PricedTrees:
    def __init__(self, trees: Trees, units: Floats) -> None:
        self.trees = trees
        self.weight = trees.arc_scores(units)
        self.label = None if trees.labels is None else np.append(units, -inf)[trees.labels]
        self.dual = laminar_dual(self.weight, trees.single)
        self.best, self.slack = dual_bound(self.weight, trees.single, self.dual)

    def loss_without(self, known: Sequence[Sequence[Any]]) -> Floats:
        """What arcs lose in trees other than one, which have another arc somewhere or another label; inf if no arc.

        Nothing where more than one is left out.
        """
        if len(known) > 1:
            return np.where(self.weight > -inf, 0.0, inf)
        (tree,) = known
        heads, labels = (tree, None) if self.label is None else tree
        words, loss = np.arange(1, len(heads)), np.where(self.weight > -inf, 0.0, inf)
        loss[list(heads[1:]), words] = inf
        if labels is not None and self.label is not None:
            rest = self.label.copy()
            rest[list(heads[1:]), words, list(labels[1:])] = -inf
            loss[list(heads[1:]), words] = self._loss_to(rest)[list(heads[1:]), words]
        return loss

    def loss_with(self, parts: Ints) -> Floats:
        """What arcs lose by using one of these parts; inf where they do not."""
        loss = np.where(np.isin(self.trees.part, parts), 0.0, inf)
        if self.label is not None and self.trees.labels is not None:
            loss = np.minimum(loss, self._loss_to(np.where(np.isin(self.trees.labels, parts), self.label, -inf)))
        return loss

    def _loss_to(self, label: Floats) -> Floats:
        """What arcs lose if labels score only so much."""
        assert self.label is not None
        best = np.where(self.weight > -inf, self.label.max(axis=2), 0.0)
        loss: Floats = best - label.max(axis=2)
        return loss

    def other_than(self, known: Sequence[Sequence[Any]]) -> float:
        return self._with_any(self.loss_without(known), -inf)

    def with_any(self, parts: Ints, enough: float) -> float:
        return self._with_any(self.loss_with(parts), enough)

    def _with_any(self, loss: Floats, enough: float) -> float:
        """By slack; where that shows too little, by trees that have no other arc into the same word."""
        arcs = (loss < inf) & (self.weight > -inf)
        at_most = np.full(loss.shape, -inf)
        at_most[arcs] = self.best - self.slack[arcs] - loss[arcs]
        most = float(at_most[at_most <= enough].max(initial=-inf))
        falling = np.argwhere(at_most > enough)[np.argsort(-at_most[at_most > enough], kind="stable")]
        for h, m in falling.tolist():
            if at_most[h, m] <= most:
                break
            weight = self._only(h, m)
            weight[h, m] -= loss[h, m]
            most = max(most, dual_bound(weight, self.trees.single, laminar_dual(weight, self.trees.single))[0])
        return most

    def _only(self, h: int, m: int) -> Floats:
        """The weights without other arcs into m."""
        only = self.weight.copy()
        only[:, m] = -inf
        only[h, m] = self.weight[h, m]
        return only

    def spelt_out(self, step: float, forced: Bools | None, enough: float) -> dict[str, Any]:
        """The dual numbers, and for those of the arcs given that they show too little of, numbers of their own."""
        out = _dual_to_json(self.dual, step)
        if forced is not None:
            out["forced"] = [
                [h, m, _dual_to_json(laminar_dual(self._only(h, m), self.trees.single), step)]
                for h, m in np.argwhere(forced & (self.weight > -inf) & (self.best - self.slack > enough)).tolist()
            ]
        return out


class _PricedReference:
    def __init__(self, referred: Referred, units: Floats, step: float) -> None:
        self.referred, self.step, self.score = referred, step, units[referred.part]
        self.best = self._maximum(self.score)

    def _maximum(self, score: Floats) -> float:
        value, error = self.referred.maximum(score * self.step)
        return float(np.ceil((value + error) / self.step * (1.0 + EPSILON))) if value > -inf else -inf

    def other_than(self, known: Sequence[Sequence[Any]]) -> float:
        return self.best

    def with_any(self, parts: Ints, enough: float) -> float:
        """Each part is rewarded in turn, so much that what lacks it is not too much, and the reward taken off again."""
        most, reward = -inf, float(np.ceil(1.01 * max(self.best - enough, 0.0)))
        for p in parts.tolist():
            asked = np.where(self.referred.part == p, self.score + reward, self.score)
            most = max(most, self._maximum(asked) - reward)
        return most

    def spelt_out(self, step: float, forced: Bools | None, enough: float) -> NoReturn:
        raise NotSupported("a problem that has no normal form cannot be written for the standalone checker.")


class _PricedSearch:
    """What is searched for structures of more than ``above`` steps; of None, of a little less than the best has."""

    def __init__(self, space: Searched, units: Floats, step: float, above: float | None) -> None:
        self.space, self.score = space, units[space.part]
        self.above = self._close(step) if above is None else above
        self.closed = space.closed(self.above * step, self.score * step)
        form, (graph,) = self.closed.form, self.closed.form.spaces
        assert isinstance(graph, Graph)
        own = np.ceil(form.scores / step)
        own = np.where(own > -inf, np.maximum(own, LOWEST), -inf)
        self.cell = np.concatenate([form.cells[view] for view in space.views])
        own[self.cell[self.cell >= 0]] += self.score[self.cell >= 0]
        self.graph = _PricedGraph(graph, sweep.levels(graph), own)
        self.best = max(self.above, self.graph.best)

    def _close(self, step: float) -> float:
        value = self.space.solved(self.score * step) / step
        return float(np.floor(value - 1e-9 * abs(value)))

    def other_than(self, known: Sequence[Any]) -> float:
        edges = [e for e in map(self.closed.structure, known) if e is not None]
        return max(self.above, self.graph.other_than(edges))

    def with_any(self, parts: Ints, enough: float) -> float:
        cell = self.cell[np.isin(self.space.part, parts)]
        return max(self.above, self.graph.with_any(cell[cell >= 0], enough))

    def spelt_out(self, step: float, forced: Bools | None, enough: float) -> NoReturn:
        raise NotSupported("a problem that is searched cannot be written for the standalone checker.")


def _most_of_cells(space: Searched, positive: Floats) -> float:
    """No structure gets more by its cells, if they score so much."""
    lined = space.line >= 0
    lines = np.zeros(int(space.line.max(initial=-1)) + 1)
    np.maximum.at(lines, space.line[lined], positive[lined])
    return float(lines.sum() + space.length * max(positive[~lined].max(initial=0.0), 0.0))


def _dual_to_json(dual: LaminarDual, step: float) -> dict[str, Any]:
    return {
        "alpha": (dual.alpha * step).tolist(),
        "sets": [nodes.tolist() for nodes in dual.sets],
        "beta": (dual.beta * step).tolist(),
        "gamma": dual.gamma * step,
    }


def _sum_up(values: Floats) -> float:
    """The sum, or the next whole number above it."""
    total = float(values.sum())
    if (values % 1 == 0).all() and float(np.abs(values).sum()) < 2.0**53:
        return total
    return float(np.ceil(total + EPSILON * 4.0 * len(values) * np.abs(values).sum()))
