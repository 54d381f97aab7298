"""The ladder: relax; if that does not prove the optimum, remove parts; if that does not, branch on parts in dispute.

Branch and bound is best first, with the relaxation as its bound and the parent's multipliers to start from. Every
bound is valid at every moment, so a search that a limit ends reports an honest gap.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, TypeVar

import numpy as np

from certus.checks import Floats, as_positive_int
from certus.clock import Clock
from certus.errors import Infeasible, InvalidInput, LimitReached
from certus.problem import Problem
from certus.relax.engine import Descent, Engine, Log
from certus.relax.fixing import removable, remove
from certus.relax.proof import Fix, Leaf, Proof, Removed, Split
from certus.relax.steps import StepRule, deflected
from certus.relax.system import Fixings, Relaxation
from certus.result import Certificate, Result, certified

Y = TypeVar("Y")

ROOT_WINDOW = 15  # iterations over which the root must close a share of the gap, or branching begins
NODE_WINDOW = 6
NODE_ITERATIONS = 100
ROUNDS = 3  # of fixing at one node


@dataclass(slots=True)
class Node:
    """A place in the tree: what is fixed there, the best bound so far, and how the search went on."""

    fixings: Fixings
    multipliers: Floats
    bound: float
    average: Floats
    last: Floats
    depth: int = 0
    fixes: list[tuple[Floats, Fixings, tuple[Removed, ...]]] = field(default_factory=list)
    split: "tuple[str, int, Node, Node] | None" = None


def decode(
    problem: Problem[Y],
    *,
    max_iterations: int = 500,
    time_limit: float | None = None,
    exact: bool = True,
    step: StepRule[Any] | None = None,
) -> Result[Y]:
    """Decode any problem through its relaxation. See ``climb`` for the limits."""
    return climb(
        problem, Relaxation.of(problem), max_iterations=max_iterations, time_limit=time_limit, exact=exact, step=step
    )


def climb(
    problem: Problem[Y],
    relaxation: Relaxation,
    *,
    max_iterations: int = 500,
    time_limit: float | None = None,
    exact: bool = True,
    step: StepRule[Any] | None = None,
) -> Result[Y]:
    """Climb the ladder over a relaxation of the problem.

    ``max_iterations`` limits the relaxation before branching, ``time_limit`` (seconds) the whole climb. Without
    ``exact`` the climb ends after the relaxation, unless that has found no structure: then it goes on to the first.

    Raises
    ------
    Infeasible : it is proved that no structure satisfies the rows.
    LimitReached : the time ran out before a structure was found.
    """
    as_positive_int("max_iterations", max_iterations)
    if time_limit is not None and not time_limit > 0:
        raise InvalidInput(f"time_limit is {time_limit!r}; expected a positive number of seconds, or None.")
    clock = Clock()
    easier = relaxation.easier()
    if step is None and easier is not None:
        step = deflected()
    engine = Engine(relaxation, step=step, time_limit=time_limit)
    window = ROOT_WINDOW if exact else None
    origin = np.zeros(relaxation.n_rows)
    rehearsal = None if easier is None else _rehearsed(engine, easier, max_iterations, window, exact)
    if rehearsal is None:
        descent = engine.descend(origin, engine.initial, max_iterations=max_iterations, window=window)
        log = descent.log
    else:
        descent = engine.descend(rehearsal.multipliers, engine.initial, max_iterations=1)
        log = rehearsal.log.followed_by(descent.log)
    root = _node(descent, engine.initial)
    search = Search(engine, root, log)
    search.run(exact)
    if engine.leaves is None:
        if engine.out_of_time:
            raise LimitReached(
                f"no structure found in {time_limit:g} s, nor a proof that there is none: raise time_limit."
            )
        raise Infeasible(
            f"no structure satisfies all the constraints ({_reasons(relaxation)}); proved by branch and bound."
        )
    structure = relaxation.assemble(engine.leaves)
    info = {
        "seconds": clock.seconds,
        "iterations": engine.iterations,
        "solves": engine.solves,
        "nodes": search.nodes,
        "fixed": search.removed,
        "step": repr(engine.rule),
        "averages": _averages(relaxation, (rehearsal or descent).average),
    }
    if rehearsal is not None:
        info["rehearsed"] = len(rehearsal.log.dual)  # rounds over easier subproblems; the proof is over all of them
    score = problem.score(structure) if not relaxation.base else engine.score
    certificate = search.certificate(partial(problem.terms, structure), score)
    return Result(structure, score, certificate, search.log.trace(), info)


def _rehearsed(
    engine: Engine, easier: Relaxation, max_iterations: int, window: int | None, exact: bool
) -> Descent | None:
    """Solve the relaxation over easier subproblems; the engine takes over the structure found. None if there is none.

    If its multipliers are not the last word even there, the search goes on there, for a better structure to start from.
    """
    other = Engine(easier, step=engine.rule)
    other.clock = engine.clock
    try:
        descent = other.descend(np.zeros(easier.n_rows), other.initial, max_iterations=max_iterations, window=window)
    except Infeasible:
        return None
    search = Search(other, _node(descent, other.initial), descent.log)
    if exact:
        search.run(exact)
    engine.adopt(other)
    return descent


class Search:
    """Branch and bound from a root that was relaxed already."""

    def __init__(self, engine: Engine, root: Node, log: Log) -> None:
        self.engine, self.root, self.log = engine, root, log
        self.nodes = 1
        self.removed = 0
        self._order = count()
        self._diving = engine.leaves is None
        self._open: list[tuple[tuple[float, float], int, Node]] = []
        in_rows = {e.block for rows in engine.relaxation.rows for e in rows.entries}
        self._branchable = {v: [b for b in blocks if b in in_rows] for v, blocks in engine.relaxation.views.items()}

    def run(self, exact: bool) -> None:
        """Branch until nothing better than the incumbent is left, or a limit; without ``exact``, until a structure.

        From the open node with the best bound the search plunges along the better child, to find good structures early.
        """
        engine = self.engine
        if self._closed(self.root) or (not exact and engine.leaves is not None):
            return
        self._tighten(self.root)
        self._push(self.root)
        child: Node | None = None
        while (self._open or child) and not engine.out_of_time and (exact or engine.leaves is None):
            if self._diving and engine.leaves is not None:
                self._diving = False
                self._open = [(self._priority(node), order, node) for _, order, node in self._open]
                heapq.heapify(self._open)
            node = child or heapq.heappop(self._open)[2]
            others = (n.bound for _, _, n in (self._open if self._diving else self._open[:1]))
            self.log.add(max([node.bound, engine.score, *others]), engine.score, 0.0, engine.relaxation.n_rows)
            child = None
            part = None if self._closed(node) else self._disputed(node)
            if part is None:
                continue  # nothing better, or nothing left to decide: the bound of this node stands as it is
            zero, one = (self._child(node, *part, value) for value in (0, 1))
            node.split = (*part, zero, one)
            child, other = (one, zero) if one.bound >= zero.bound else (zero, one)
            self._push(other)

    def _priority(self, node: Node) -> tuple[float, float]:
        """Deepest first until there is a structure, then best bound first."""
        return (-float(node.depth), -node.bound) if self._diving else (-node.bound, 0.0)

    def _closed(self, node: Node) -> bool:
        return self.engine.closed(node.bound, node.multipliers, node.fixings)

    def _push(self, node: Node) -> None:
        if not self._closed(node):
            heapq.heappush(self._open, (self._priority(node), next(self._order), node))

    def _child(self, parent: Node, view: str, index: int, value: int) -> Node:
        self.nodes += 1
        fixings = self.engine.relaxation.fix(parent.fixings, view, index, value)
        node = Node(fixings, parent.multipliers, parent.bound, parent.average, parent.last, parent.depth + 1)
        self._descend(node)
        self._tighten(node)
        return node

    def _descend(self, node: Node) -> None:
        """Lower a node's bound from its multipliers on."""
        try:
            descent = self.engine.descend(
                node.multipliers, node.fixings, max_iterations=NODE_ITERATIONS, window=NODE_WINDOW
            )
        except Infeasible:
            node.bound = -np.inf
            return
        node.multipliers, node.bound = descent.multipliers, descent.dual
        node.average, node.last = descent.average, descent.last

    def _tighten(self, node: Node) -> None:
        """Remove parts by reduced costs and relax again, while that helps."""
        for _ in range(ROUNDS):
            if self._closed(node) or self.engine.out_of_time:
                return
            removed = removable(self.engine, node.multipliers, node.fixings)
            if not removed:
                return
            self.removed += sum(len(part.indices) for part in removed)
            node.fixes.append((node.multipliers, node.fixings, removed))
            node.fixings = remove(self.engine, node.fixings, removed)
            self._descend(node)

    def _disputed(self, node: Node) -> tuple[str, int] | None:
        """The part to branch on: the one the averages are least decided about; None when all are fixed."""
        r = self.engine.relaxation
        decided = r.decided(node.fixings)
        doubt = np.minimum(node.average, np.abs(1.0 - node.average))
        doubt = np.where(decided, -1.0, np.where(doubt < 1e-9, 0.0, doubt))
        best: tuple[float, str, int] | None = None
        for view, blocks in self._branchable.items():
            if not blocks:
                continue
            size = int(np.prod(r.shape_of(blocks[0]), dtype=np.int64))
            total = np.full(size, -1.0)
            for block in blocks:
                start = r.offsets[block]
                here = doubt[start : start + size]
                apart = np.abs(node.last[start : start + size] - node.last[r.offsets[blocks[0]] :][:size])
                total = np.maximum(total, np.where(here >= 0, here + 1e-6 * apart, here))
            if size and (best is None or total.max() > best[0]):
                best = (float(total.max()), view, int(total.argmax()))
        return None if best is None or best[0] < 0 else best[1:]

    # -- certificates ----------------------------------------------------------------------------------------------

    def certificate(self, scores: Callable[[], Iterable[float]], score: float) -> Certificate:
        """Of the whole tree: kind "dual" when the root alone makes the bound."""
        r = self.engine.relaxation
        bound, error = -np.inf, 0.0
        stack = [self.root]
        while stack:
            node = stack.pop()
            for multipliers, fixings, removed in node.fixes:
                required = int(any(r.insists(part.view, part.copy) for part in removed))
                error = max(error, r.error(multipliers, fixings, required=required))
            if node.split is not None:
                stack += node.split[2:]
            else:
                bound = max(bound, node.bound)
                error = max(error, r.error(node.multipliers, node.fixings))
        if not self.root.fixes and self.root.split is None:
            return certified(scores, score, bound, error, kind="dual", duals=r.named(self.root.multipliers))
        return certified(scores, score, bound, error, kind="branch and bound", duals=self._proof())

    def _proof(self) -> Proof:
        r = self.engine.relaxation
        built: dict[int, Proof] = {}
        stack = [(self.root, False)]
        while stack:
            node, children_built = stack.pop()
            if node.split is not None and not children_built:
                stack += [(node, True), (node.split[2], False), (node.split[3], False)]
                continue
            proof: Proof
            if node.split is None:
                proof = Leaf(r.named(node.multipliers))
            else:
                view, index, zero, one = node.split
                proof = Split(view, index, built.pop(id(zero)), built.pop(id(one)))
            for multipliers, _, removed in reversed(node.fixes):
                proof = Fix(r.named(multipliers), removed, proof)
            built[id(node)] = proof
        return built[id(self.root)]


def _node(descent: Descent, fixings: Fixings) -> Node:
    return Node(fixings, descent.multipliers, descent.dual, descent.average, descent.last)


def _averages(relaxation: Relaxation, average: Floats) -> Mapping[str, Floats]:
    out = {}
    for view, blocks in relaxation.views.items():
        block = next((b for b in blocks if b in relaxation.offsets), None)
        if block is not None:
            shape, start = relaxation.shape_of(block), relaxation.offsets[block]
            out[view] = average[start : start + int(np.prod(shape, dtype=np.int64))].reshape(shape)
    return out


def _reasons(relaxation: Relaxation) -> str:
    names = [rows.name for rows in relaxation.rows]
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "") if names else "parts required or forbidden"
