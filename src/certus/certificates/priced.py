"""The spaces of a normal form when parts score what multipliers make of them, in whole numbers of steps."""

from collections.abc import Sequence
from math import inf, prod
from typing import Any, NoReturn

import numpy as np

from certus.certificates import sweep
from certus.certificates.arborescence_dual import LaminarDual, dual_bound, laminar_dual
from certus.certificates.normal import Closed, Closing, Graph, Referred, Searched, Space, Trees
from certus.certificates.rounding import EPSILON, Floats, in_steps
from certus.checks import Bools, Ints
from certus.errors import InvalidInput, NotSupported

BITS = 52  # of the largest sum, in steps
LOWEST = -(2.0 ** (BITS + 1))  # steps, below any sum that matters


class Priced:
    """The parts under multipliers, in whole numbers of steps."""

    def __init__(
        self,
        spaces: Sequence[tuple[Space, Any]],
        units: Floats,
        constant: float,
        prices: tuple[Floats, float, float],
        above: float,
        closing: Closing | None = None,
    ) -> None:
        self.above, self.constant = above, constant
        self.u, self.reward, self.step = prices
        self.enough = float(np.floor(above / self.step))
        own: dict[int, _PricedGraph | PricedTrees | _PricedReference | _PricedSearch] = {}
        for i, (space, plan) in enumerate(spaces):
            if isinstance(space, Graph):
                own[i] = _PricedGraph(space, plan, units)
            elif isinstance(space, Trees):
                own[i] = PricedTrees(space, units)
            elif isinstance(space, Referred):
                own[i] = _PricedReference(space, units, self.step)
        best = sum(s.best for s in own.values()) + constant
        self.searched = [i for i, (space, _) in enumerate(spaces) if isinstance(space, Searched)]
        if closing is not None and len(closing.witnesses) != len(self.searched):
            raise InvalidInput(
                f"{len(closing.witnesses)} witnesses are given; {len(self.searched)} parts are searched."
            )
        for k, i in enumerate(self.searched if best > -inf else ()):  # what the others leave is known for the last one
            space, last = spaces[i][0], i == self.searched[-1]
            assert isinstance(space, Searched)
            level = self.enough - best if last else None
            if closing is not None and closing.levels and not last:
                level = float(np.floor(closing.levels[k] / self.step))
            witness = None if closing is None else closing.witnesses[k]
            own[i] = _PricedSearch(space, units, self.step, level, witness)
            best += own[i].best
        self.given = closing is not None and bool(closing.levels)
        self.spaces, self.best = [own[i] for i in sorted(own)], best

    def closed(self) -> tuple[Closing, list[Closed]]:
        """What is left of the spaces that are searched, if whatever scores more than ``above`` is made of that.

        Any other structure is one that some space leaves out, and the others add no more than their best to it.
        """
        found = list[_PricedSearch]()
        for i in self.searched if self.best > -inf else ():
            space = self.spaces[i]
            assert isinstance(space, _PricedSearch)
            level = self.enough - (self.best - space.best)
            if space.above > level:
                if self.given:
                    raise InvalidInput("the proof leaves out what may score more than the bound.")
                space = _PricedSearch(space.space, space.units, self.step, level, None)
            found.append(space)
        levels = tuple(space.above * self.step for space in found)
        return Closing(tuple(space.witness for space in found), levels), [space.closed for space in found]

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

    def insist(self, parts: Sequence[Ints]) -> None:
        """Lower the best of graphs to what uses each of these parts, given by space.

        A reward alone does not see that a structure uses one part twice in place of another.
        """
        for mine, space in zip(parts, self.spaces, strict=True):
            if isinstance(space, _PricedGraph):
                space.best = min(space.best, float(space.with_each(mine, inf).min(initial=inf)))
        self.best = sum(space.best for space in self.spaces) + self.constant

    def with_any(self, parts: Ints, space_of: Ints) -> float:
        """The largest dual value with all parts of a row of ``parts`` (K, any) in use, -1 for none.

        What spaces lose by that adds up; within a space it is the most that any of the parts costs.
        """
        own = np.where(parts >= 0, space_of[parts], -1)
        reached = (own >= 0).any(axis=1)  # what no space has is not used
        parts, own = parts[reached], own[reached]
        if not self.best > -inf or not len(parts):
            return -inf
        lost = np.zeros((len(self.spaces), len(parts)))
        for i, space in enumerate(self.spaces):
            row, column = np.nonzero(own == i)
            if len(row):
                best = space.with_each(parts[row, column], self.enough - (self.best - space.best))
                np.maximum.at(lost[i], row, space.best - best)
        total = self.best - lost.sum(axis=0)
        for i, space in enumerate(self.spaces):
            if isinstance(space, PricedTrees):  # where slack shows too little
                for k in np.flatnonzero((total > self.enough) & (own == i).any(axis=1)).tolist():
                    mine = parts[k, own[k] == i]
                    least = min(space.forced(int(p)) for p in mine)
                    lost[i, k] = max(lost[i, k], space.best - least)
                    total[k] = self.best - lost[:, k].sum()
        return float(total.max()) * self.step


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

    def with_each(self, parts: Ints, enough: float) -> Floats:
        """The best derivation that uses each of the parts."""
        best = np.full(self.n_parts, -inf)
        through = sweep.edge_max_marginals(self.plan, self.weight, self.chart)
        np.maximum.at(best, self.graph.part, np.repeat(through, np.diff(self.graph.part_ptr)))
        return best[parts]

    def spelt_out(self, step: float, forced: Bools | None, enough: float) -> None:
        """A graph is swept again."""
        return None


class PricedTrees:
    def __init__(self, trees: Trees, units: Floats) -> None:
        self.trees, self.n_parts = trees, len(units)
        self.weight = trees.arc_scores(units)
        self.label = None if trees.labels is None else np.append(units, -inf)[trees.labels]
        self.dual = laminar_dual(self.weight, trees.single)
        self.best, self.slack = dual_bound(self.weight, trees.single, self.dual)
        self.asked = set[int]()  # parts that slack showed too little of

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

    def with_each(self, parts: Ints, enough: float) -> Floats:
        """The best tree that uses each of the parts, by slack."""
        trees, arcs = self.trees, self.weight > -inf
        best = np.full(self.n_parts, -inf)
        at_most = np.where(arcs, self.best - self.slack, -inf)
        np.maximum.at(best, trees.part[arcs], at_most[arcs])
        if self.label is not None and trees.labels is not None:
            cells = arcs[:, :, None] & (trees.labels >= 0)
            loss = np.where(arcs, self.label.max(axis=2), 0.0)[:, :, None] - self.label
            np.maximum.at(best, trees.labels[cells], (at_most[:, :, None] - loss)[cells])
        return best[parts]

    def forced(self, part: int) -> float:
        """The best tree that uses a part, by trees that have no other arc into the same word."""
        self.asked.add(part)
        return self._with_any(self.loss_with(np.array([part])), -inf)

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

    def with_each(self, parts: Ints, enough: float) -> Floats:
        """Each part is rewarded in turn, so much that what lacks it is not too much, and the reward taken off again."""
        reward = float(np.ceil(1.01 * max(self.best - enough, 0.0)))
        asked = (np.where(self.referred.part == p, self.score + reward, self.score) for p in parts.tolist())
        return np.minimum([self._maximum(score) - reward for score in asked], self.best)

    def spelt_out(self, step: float, forced: Bools | None, enough: float) -> NoReturn:
        raise NotSupported("a problem that has no normal form cannot be written for the standalone checker.")


class _PricedSearch:
    """What is searched for structures of more than ``above`` steps; of None, of a little less than the best has."""

    def __init__(self, space: Searched, units: Floats, step: float, above: float | None, witness: Any) -> None:
        self.space, self.units, self.score = space, units, units[space.part]
        self.above = self._close(step) if above is None else above
        asked = self.above * step, self.score * step
        self.witness = space.make_witness(*asked) if witness is None else witness
        self.closed = space.closed(*asked, self.witness)
        form, (graph,) = self.closed.form, self.closed.form.spaces
        assert isinstance(graph, Graph)
        own = in_steps(form.scores, step)
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

    def with_each(self, parts: Ints, enough: float) -> Floats:
        cell = np.full(int(self.space.part.max()) + 1, -1, dtype=np.int64)
        cell[self.space.part] = self.cell
        left, out = cell[parts] >= 0, np.full(len(parts), self.above)
        out[left] = np.maximum(self.above, self.graph.with_each(cell[parts[left]], enough))
        return out

    def spelt_out(self, step: float, forced: Bools | None, enough: float) -> None:
        """What is left is searched for again."""
        return None


def _dual_to_json(dual: LaminarDual, step: float) -> dict[str, Any]:
    return {
        "alpha": (dual.alpha * step).tolist(),
        "sets": [nodes.tolist() for nodes in dual.sets],
        "beta": (dual.beta * step).tolist(),
        "gamma": dual.gamma * step,
    }
