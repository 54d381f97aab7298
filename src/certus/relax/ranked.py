"""The k best structures of a problem that is decoded by relaxation: one search that stops at the k-th, not the first.

The search of ``certus.relax.search`` leaves out what is no better than the best structure known; here, than the k-th
best. Where a node is solved, its best structure is set apart and the rest of the node falls into smaller ones, in each
of which the first parts of the structure are as they are and the next one is not ([Lawler72]_). All go on from the
multipliers of their parent, whose max-marginals bound them before anything is solved; most are never opened.
"""

import heapq
from abc import abstractmethod
from bisect import insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import inf
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from certus.certificates.enumerated import structure_key
from certus.certificates.rounding import EXACT, WIDTH
from certus.checks import Floats, as_positive_int
from certus.errors import Infeasible, NotSupported
from certus.problem import Problem
from certus.relax.branch import ROOT_WINDOW, Fixed
from certus.relax.fixing import part_bounds
from certus.relax.proof import Fix, Later, Leaf, Multipliers, Proof, Split, Tighter, known_below
from certus.relax.run import CLOSE, Run
from certus.relax.search import Node, Part, Search, Space
from certus.relax.steps import polyak
from certus.relax.system import Block, Fixings, Relaxation
from certus.relax.tightening import Tightening
from certus.result import Result, certified, with_proof_of

S = TypeVar("S")
Y = TypeVar("Y")

ITERATIONS = 500
MULTIPLIED = 32.0  # errors of a rank, which is checked under multipliers that decoding never saw, in those of the best


class Pool(Run[Any]):
    """A run that keeps the k best structures: its score is that of the k-th, and nothing below it is of use."""

    def __init__(self, k: int, key: Callable[[Any], Hashable], scale: float) -> None:
        super().__init__(scale=scale)
        self.k, self.key = k, key
        self.found: list[tuple[float, int, Any]] = []  # score, negated, order of arrival, structure; best first
        self._known: set[Hashable] = set()
        self.inside: Callable[[Any], bool] | None = None  # the node that is being relaxed, if any: what is in it

    def offer(self, structure: Any, score: float) -> None:
        if not score > self.score or (key := self.key(structure)) in self._known:
            return
        self._known.add(key)  # also of those that are dropped again, which score too little by then
        insort(self.found, (-score, len(self._known), structure), key=lambda entry: entry[:2])
        if len(self.found) >= self.k:
            del self.found[self.k :]
            self.structure, self.score = self.found[-1][2], -self.found[-1][0]

    def closes(self, bound: float, error: Callable[[], float], lowest: float = -inf) -> bool:
        if self.structure is not None and abs(bound - self.score) <= CLOSE * (self.scale + abs(self.score)):
            self.allow(error())
        if super().closes(bound, error, lowest):
            return True
        return self.inside is not None and self.best_of(bound, error, self.inside, CLOSE) is not None

    def best_of(
        self, bound: float, error: Callable[[], float], inside: Callable[[Any], bool], close: float = inf
    ) -> Any:
        """The structure that a bound shows to be the best of those inside; None if there is none yet."""
        for negated, _, structure in self.found:
            gap = bound + negated
            if gap > 0 and not (gap <= close * (self.scale + abs(negated)) and gap <= error()):
                continue
            if inside(structure):
                return structure
        return None


class Divisible(Space[S]):
    """A search space from which a structure can be set apart."""

    @abstractmethod
    def within(self, decided: S, structure: Any) -> bool:
        """Whether a structure has all that is decided."""

    @abstractmethod
    def decisions(self, node: Node[S], structure: Any) -> Iterator[tuple[Part, int, float]]:
        """The parts that make out a structure of a node, one after the other: 1 if it uses the part, else 0.

        With each a bound on the structures of the node for which the part is otherwise.
        """

    @abstractmethod
    def pinned(self, node: Node[S]) -> Multipliers:
        """Multipliers under which nothing comes near what was set apart at a node."""

    def alike(self, structure: Any, k: int) -> Iterable[tuple[Any, float]]:
        """The best of the structures that no part tells from this one, and their scores."""
        return ()


class Ranking(Search[S]):
    """Search for the k best structures. ``undecided`` is the bound on what is left at the end: -inf as a rule."""

    def __init__(self, run: Pool, space: Divisible[S], root: Node[S]) -> None:
        super().__init__(run, space, root)
        self.pool, self.divisible = run, space
        self.undecided = -inf
        self._agenda: list[tuple[float, int, bool, Node[S]]] = []
        self._tree: Proof | None = None

    def rank(self) -> None:
        """Open nodes, best bound first, until none may hold one of the k best."""
        self._add(self.root, relaxed=True)
        while self._agenda:
            _, _, relaxed, node = heapq.heappop(self._agenda)
            if self._closed(node):
                continue
            self.nodes += 1
            if not relaxed:
                self.space.relax(node)
                self._add(node, relaxed=True)
            elif (best := self._solved(node)) is not None:
                for structure, score in self.divisible.alike(best, self.pool.k):
                    self.pool.offer(structure, score)
                self._set_apart(node, best)
            else:
                self._branch(node)

    def _add(self, node: Node[S], *, relaxed: bool) -> None:
        if not self._closed(node):
            heapq.heappush(self._agenda, (-node.bound, next(self._order), relaxed, node))

    def _set_apart(self, node: Node[S], structure: Any) -> None:
        """Split a node along the parts of its best structure; what has all of them is no longer of interest."""
        for part, value, bound in self.divisible.decisions(node, structure):
            same, other = (
                Node(self.space.fixed(node.decided, part, v), node.multipliers, b, node.evidence, node.depth + 1)
                for v, b in ((value, node.bound), (1 - value, min(bound, node.bound)))
            )
            node.split = (part, other, same) if value else (part, same, other)
            self._add(other, relaxed=False)
            node = same
        node.apart = structure

    def _branch(self, node: Node[S]) -> None:
        fixes = len(node.fixes)
        self._tighten(node)
        if len(node.fixes) > fixes:  # it may be solved by that
            self._add(node, relaxed=True)
            return
        part = self.space.part(node)
        if part is not None:
            decided = (self.space.fixed(node.decided, part, value) for value in (0, 1))
            zero, one = (Node(d, node.multipliers, node.bound, node.evidence, node.depth + 1) for d in decided)
            node.split = (part, zero, one)
            self._add(zero, relaxed=False)
            self._add(one, relaxed=False)
        else:
            self.undecided = max(self.undecided, node.bound)

    def _solved(self, node: Node[S]) -> Any:
        """A structure known to be the best of a node; None if there is none yet."""
        return self.pool.best_of(
            node.bound, lambda: self.space.error(node), partial(self.divisible.within, node.decided)
        )

    def leaf(self, node: Node[S]) -> tuple[Proof, float, float]:
        """Nodes that were never opened are proved now: their bounds may stand on more than one set of multipliers."""
        if node.apart is not None:
            ranks = enumerate(structure for _, _, structure in self.pool.found)
            here = tuple(k for k, structure in ranks if self.divisible.within(node.decided, structure))
            return Leaf(self.divisible.pinned(node), here), -inf, 0.0
        if node.bound > -inf:
            node.bound = inf  # what it was may not be that of its multipliers
            self.space.relax(node)
            search = Search(self.run, self.space, node)
            search.climb(exact=True)
            return search.proof(), search.bound, search.error
        return super().leaf(node)

    def witness(self, rank: int) -> Proof:
        """That only those listed before score more than number ``rank`` of the list."""
        if self._tree is None:
            if self.root.split is None and self.root.apart is None:  # others made the list
                self.space.relax(self.root)
                self._tighten(self.root)
                self.rank()
            self._tree = self.proof()
        return known_below(self._tree, rank - 1)


class Cells(Fixed, Divisible[Fixings]):
    """The parts of a relaxation that rows speak of. Structures are tuples, one of each subproblem.

    Once all of these parts are decided, the subproblems have nothing to do with one another: what no part tells apart
    are all combinations of their own structures.
    """

    def __init__(self, run: Pool, relaxation: Relaxation) -> None:
        super().__init__(run, relaxation, polyak())
        self.run: Pool = run
        self.unlisted = False  # whether a structure was met that uses a part more than once
        r = relaxation
        self._blocks = {v: [b for b in blocks if b in r.offsets] for v, blocks in r.views.items()}

    def _descend(
        self,
        node: Node[Fixings],
        max_iterations: int,
        window: int | None,
        *,
        log: bool,
        tighter: Tightening | None = None,
    ) -> None:
        """No further than to the best structure of the node, once that is known."""
        self.run.inside = partial(self.within, node.decided)
        try:
            super()._descend(node, max_iterations, window, log=log, tighter=tighter)
        finally:
            self.run.inside = None

    def used(self, leaves: Sequence[Any]) -> Floats:
        """The flat cells that a structure uses."""
        out = np.zeros(self.relaxation.n_cells)
        for i, leaf in enumerate(leaves):
            self.relaxation.cells_used(i, leaf, out)
        return out

    def within(self, decided: Fixings, structure: Any) -> bool:
        used = self.used(structure)
        return not (used[decided.zeros] > 0).any() and bool((used[list(decided.ones)] > 0).all())

    def decisions(self, node: Node[Fixings], structure: Any) -> Iterator[tuple[Part, int, float]]:
        """Used parts first, and of these last what costs least to change, so that least is left to choose there."""
        r, used, decided = self.relaxation, self.used(structure), node.decided
        try:
            bounds = part_bounds(self.subproblems, node.multipliers, decided)
        except Infeasible:
            bounds = {view: np.full(r.shape_of(blocks[0]), -inf) for view, blocks in r.views.items()}
        order: list[tuple[float, Part]] = []
        for view, index, block in self._free(decided, used > 0):
            axis = r.subproblems[block[0]].exclusive.get(block[1])
            order.append((_best_rival(bounds[view], axis, index), (view, index)))
        for bound, part in sorted(order):
            yield part, 1, bound
            decided = self.fixed(decided, part, 1)
        for view, index, block in self._free(decided, used == 0):
            if self._reached(block, index, used):
                yield (view, index), 0, float(bounds[view].flat[index])

    def _free(self, decided: Fixings, which: NDArray[np.bool_]) -> list[tuple[str, int, Block]]:
        """The parts among these cells that are not decided in all copies, and one of the copies."""
        r, found = self.relaxation, list[tuple[str, int, Block]]()
        free = which & ~r.decided(decided)
        for view, blocks in self._blocks.items():
            if blocks:
                somewhere = np.any([free[r.cells_in(b)] for b in blocks], axis=0)
                found += [(view, index, blocks[0]) for index in np.flatnonzero(somewhere).tolist()]
        return found

    def _reached(self, block: Block, index: int, used: Floats) -> bool:
        """Whether any structure may use a part: along an exclusive axis all do, or none, as this one."""
        line = self.relaxation.line(block, index)
        return line is None or bool((used[line] > 0).any())

    def pinned(self, node: Node[Fixings]) -> Multipliers:
        r = self.relaxation
        return r.named(r.pinned(node.multipliers, self.used(node.apart), node.decided))

    def alike(self, structure: Any, k: int) -> Iterable[tuple[Any, float]]:
        r = self.relaxation
        found: list[tuple[float, tuple[Any, ...]]] = [(0.0, ())]
        for i, (weight, problem) in enumerate(zip(r.weights, r.subproblems, strict=True)):
            listed = [(-weight * problem.score(y), y) for y in self._listed(i, structure[i], k)]
            both = ((a + b, (*leaves, y)) for (a, leaves), (b, y) in product(found, listed))
            found = heapq.nsmallest(k, both, key=lambda entry: entry[0])
        return [(leaves, r.score(leaves, self.used(leaves))) for _, leaves in found]

    def _listed(self, i: int, leaf: Any, k: int) -> list[Any]:
        """The k best structures of a subproblem that use the same cells as this one."""
        problem = self.relaxation.subproblems[i]
        used = {view: problem.indicator(leaf, view) for view, _, _ in self.relaxation.slices[i]}
        if problem.told_apart_by and set(problem.told_apart_by) <= used.keys():
            return [leaf]
        self.unlisted |= any(u.max(initial=0.0) > 1 for u in used.values())
        asked = k
        while True:
            found = _masked_kbest(problem, used, asked)
            same = [y for y in found if all(np.array_equal(problem.indicator(y, v), u) for v, u in used.items())]
            if len(same) >= k or len(found) < asked:
                return same[:k]
            asked *= 4


def _best_rival(bounds: Floats, axis: int | None, index: int) -> float:
    """The best bound of a part that may stand in the place of another; inf if none need to."""
    if axis is None:
        return inf
    at: list[Any] = [int(i) for i in np.unravel_index(index, bounds.shape)]
    own, at[axis] = at[axis], slice(None)
    return float(np.delete(bounds[tuple(at)], own).max(initial=-inf))


def _masked_kbest(problem: Problem[Any], used: Mapping[str, Floats], k: int) -> list[Any]:
    """The k best structures of a problem that use none but these parts."""
    try:
        forest = None if problem.searched else problem.forest()
    except NotSupported:  # too large to spell out
        forest = None
    if forest is not None:
        masks = {view: np.where(u > 0, 0.0, -inf) for view, u in used.items()}
        return [problem.from_edges(edges) for edges, _ in forest.kbest(k, masks)]
    for view, u in used.items():
        value = int(view in problem.exclusive)
        for index in np.argwhere((u > 0) == bool(value)).tolist():
            problem = problem.with_fixed(view, tuple(index), value)
    return [r.structure for r in problem.kbest(k)]


def kbest(problem: Problem[Y], k: int) -> list[Result[Y]]:
    """The k best structures of any problem, through its relaxation, from where decoding ends."""
    k = as_positive_int("k", k)
    best = problem.decode()
    if k == 1:
        return [best]
    ranking = _ranking(problem, k, [best])
    ranking.rank()
    return listed(problem, ranking, best, ranking.space.relaxation.assemble)


def _ranking(problem: Problem[Any], k: int, known: Sequence[Result[Any]]) -> "CellRanking":
    """The ranking of a problem before it begins; ``known`` are structures to begin with, the best one first."""
    relaxation = Relaxation.of(problem)
    pool = Pool(k, lambda leaves: structure_key(problem, relaxation.assemble(leaves)), relaxation.scale)
    for result in known:
        pool.offer(tuple(relaxation.leaves(result.structure)), result.score)
    space = Cells(pool, relaxation)
    u = first_multipliers(relaxation, known[0])
    return CellRanking(pool, space, space.root(u, ITERATIONS, ROOT_WINDOW))


class CellRanking(Ranking[Fixings]):
    """The ranking of a problem through its relaxation."""

    def __init__(self, run: Pool, space: Cells, root: Node[Fixings]) -> None:
        super().__init__(run, space, root)
        self.space: Cells = space

    def rank(self) -> None:
        super().rank()
        if self.space.unlisted:
            self.undecided = inf


def witnessed(problem: Problem[Y], results: list[Result[Y]], best: Result[Y]) -> list[Result[Y]]:
    """A list that was made by other means, with witnesses of the ranks; ``best``, that of decoding, has multipliers."""
    made: list[CellRanking] = []

    def witness(rank: int) -> Proof:
        if not made:
            made.append(_ranking(problem, len(results), [best, *results]))
        return made[0].witness(rank)

    later = (Later(partial(witness, rank)) for rank in range(2, len(results) + 1))
    others = (
        replace(r, certificate=replace(r.certificate, witness=w)) for r, w in zip(results[1:], later, strict=True)
    )
    return [*results[:1], *others]


def multipliers_in(duals: Any) -> Multipliers | None:
    """Multipliers to start from: those of a proof, of one of its leaves if it branches; None if it has none."""
    while isinstance(duals, Split | Fix | Tighter):
        duals = duals.one if isinstance(duals, Split) else duals.multipliers if isinstance(duals, Fix) else duals.rest
    named: Multipliers | None = duals.multipliers if isinstance(duals, Leaf) else duals
    return named


def first_multipliers(relaxation: Relaxation, best: Result[Any]) -> Floats:
    """Those of the best structure, to start from; zeros if its proof is over other rows.

    Without scores below its floor a constraint may not be broken, and decide what was in dispute.
    """
    named = multipliers_in(best.certificate.duals)
    names = {rows.name for rows in relaxation.rows}
    if named is None or not names <= set(named):
        return np.zeros(relaxation.n_rows)
    return relaxation.unnamed({name: named[name] for name in names})  # but for those of cuts and further pieces


def listed(
    problem: Problem[Y], ranking: Ranking[Any], best: Result[Y], structure_of: Callable[[Any], Y]
) -> list[Result[Y]]:
    """What a ranking found, as results; ``best`` is that of decoding, whose proof the first one has."""
    pool = ranking.pool
    least, out = max(pool.error, best.certificate.tolerance / WIDTH, problem.error()), list[Result[Y]]()
    for rank, (negated, _, found) in enumerate(pool.found, start=1):
        structure, score = structure_of(found), -negated
        error = min(MULTIPLIED * least, max(least, EXACT * abs(score) / WIDTH))  # no more than a proof may have
        scores, bound = partial(problem.terms, structure), max(score, ranking.undecided)
        certificate = certified(scores, score, bound, error, kind="branch and bound", rank=rank)
        certificate = replace(certificate, witness=Later(partial(ranking.witness, rank)))
        out.append(Result(structure, score, certificate, info={"nodes": ranking.nodes}))
    first = out[0] if out[0].score > best.score else best  # by rounding
    return [with_proof_of(first, best, problem.terms(first.structure)) if first is not best else best, *out[1:]]
