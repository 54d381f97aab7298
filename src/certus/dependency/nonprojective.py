"""Trees with crossing arcs under higher-order scores: head automata tied to a spanning tree (LR 6, algorithms 8 and 9).

The tree gets the multipliers and a small share of the arc scores, the automata get all other scores less the
multipliers; the subgradient moves the multipliers where the two differ. It starts where the max-marginals of the
automata say that the two nearly agree. One kernel runs the whole loop (``certus.kernels.head_automata.relax``),
decoding again only the automata whose multipliers changed. Where the loop does not prove its best tree optimal, arcs
are removed by their max-marginals, and then the arcs in dispute are branched on, with the multipliers of the parent to
start from.

Differs from LR alg. 9 in the updates, which are printed there with an error; see ``relax`` for the ones used.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.certificates.rounding import of_sum
from certus.checks import Floats, Ints, as_positive_int, one_of
from certus.clock import Clock
from certus.dependency.automata_problem import AutomataDependency
from certus.dependency.head_automata import HeadAutomata, part_tables, shape_of_automata
from certus.dependency.problem import Dependency
from certus.errors import Infeasible, InvalidInput, LimitReached
from certus.relax.proof import Fix, Leaf, Proof, Removed, Split
from certus.relax.system import Entries, Relaxation, Rows
from certus.result import Certificate, Result, Trace, certified
from certus.threads import long_call

Mask = NDArray[np.uint8]

SHARE = 0.001  # of the arc scores, given to the tree so that it breaks ties sensibly (HA)
ROUND = 40  # iterations between two looks at the clock
WINDOW = 80  # iterations of the root over which the gap must shrink by STALL, or arcs are removed and branched on
STALL = 0.1
FACTOR, PATIENCE, SHRINK = 1.5, 5, 0.7  # of Polyak's step
NODE_ITERATIONS = 40
NO_TREE = "every tree over the allowed arcs uses a forbidden part; allow some of them."
TREE, AUTOMATA, ABOVE = 0, 1, 2  # copies of the arcs, in the order of the relaxation's view


def relaxation(problem: "Dependency | AutomataDependency", *, projective: bool = False) -> "Relaxation":
    """The relaxation that ``decode`` solves, for the engine of ``certus.relax`` and for certus.verify.

    Two subproblems, the spanning tree and the head automata, and rows that make their arcs equal. With ``projective``
    the first-order projective parser stands in the tree's place (LR 6.8).
    """
    automata = HeadAutomata.of(problem, SHARE)
    tree = Dependency(_share(problem.arc, SHARE), root=problem.root, projective=projective)
    shape = problem.arc.shape
    cells = np.arange(problem.arc.size)
    ones = np.ones(problem.arc.size)
    views = list(automata.views)
    rows = []
    for view in views:
        entries = (Entries((0, "arcs"), cells, cells, ones), Entries((1, view), cells, cells, -ones))
        rows.append(Rows(view, entries, np.zeros(problem.arc.size), True, shape))
    blocks = ((0, "arcs"), *((1, view) for view in views))
    return Relaxation((tree, automata), (1.0, 1.0), {"arcs": blocks}, tuple(rows), lambda leaves: leaves[0])


def polyak_rule(iterations: int, rounds: int) -> tuple[float, float, int, float, int, int]:
    """Share of the tree, Polyak's factor, patience and shrink, iterations of a round and rounds, for the parser."""
    return (SHARE, FACTOR, PATIENCE, SHRINK, iterations, rounds)


def decode(
    problem: "Dependency | AutomataDependency",
    *,
    max_iterations: int = 500,
    time_limit: float | None = None,
    exact: bool = True,
    share: float = SHARE,
    step: str = "polyak",
    lazy: bool = True,
    estimate: bool = True,
) -> Result[Ints]:
    """The best tree, crossing arcs allowed, for scores above arcs; NP-hard in general, fast on sentences.

    Certificate kinds: "dual", whose witness is the multipliers of the arcs (and, where heads of heads are scored, of
    the arcs from above), or "branch and bound", whose witness is a proof tree.

    Parameters
    ----------
    problem : Dependency or AutomataDependency
        A problem with ``projective=False``.
    max_iterations, time_limit, exact
        Iterations of one run of the relaxation; seconds for all; whether to go on to fixing and branching.
    share : float
        Share of the arc scores that the tree gets. Any value gives the same optimum, at different speed.
    step : "polyak" or "per increase"
        (dual - best score) / disagreements, or c / (t + 1) after t increases of the dual.
    lazy : bool
        Decode again only the automata whose multipliers changed. The answer is the same without.
    estimate : bool
        Start from multipliers estimated by max-marginals, instead of zero.

    Raises
    ------
    Infeasible : no tree avoids the forbidden parts.
    LimitReached : the time ran out before any tree was found.
    """
    as_positive_int("max_iterations", max_iterations)
    one_of("step", step, ("polyak", "per increase"))
    if time_limit is not None and not time_limit > 0:
        raise InvalidInput(f"time_limit is {time_limit!r}; expected a positive number of seconds, or None.")
    clock = Clock(time_limit)
    first = None
    if estimate and step == "polyak" and share == SHARE and not isinstance(problem, AutomataDependency):
        first = FirstRound(problem, min(ROUND, max_iterations), lazy)
        if first.closed or (not exact and first.score > -np.inf and first.used == max_iterations):
            return first.result(clock.seconds)
    search = Search(problem, max_iterations, clock, share, step, lazy)
    if first is not None:
        search.take(first)
    elif estimate:
        search.kernels.first_multipliers(search.lattices, search.arc, share, search.root.u[0])
    search.run(exact)
    if search.score == -np.inf:
        if search.out_of_time:
            raise LimitReached(f"no tree found in {time_limit:g} s, nor a proof that there is none: raise time_limit.")
        raise Infeasible(NO_TREE)
    score = problem.score(search.heads)
    return Result(search.heads, score, search.certificate(score), search.trace(), search.info())


class FirstRound:
    """The first iterations for part scores, in one kernel call: most sentences need no more."""

    def __init__(self, problem: "Dependency", iterations: int, lazy: bool) -> None:
        self.problem = problem
        n = problem.n
        by_head, pairs = shape_of_automata(problem)
        self.by_head = by_head
        table, values, keys, unlisted = part_tables(problem)
        self.multipliers = np.zeros((2, n + 1, n + 1))
        self.heads: Ints = np.full(n + 1, -1, dtype=np.int64)
        self.memory = np.zeros(kernels.head_automata.MEMORY)
        self.memory[kernels.head_automata.FACTOR] = FACTOR
        rows = np.zeros((iterations, 4))
        terms = (n + 1) * (1 + len(problem.scores))
        scores = (problem.arc, by_head, pairs, problem.single, table, values, keys, unlisted, terms)
        found = (self.multipliers, self.heads, self.memory, rows)
        arguments = (*scores, SHARE, PATIENCE, SHRINK, int(lazy), *found)
        status, self.used = long_call(iterations * n**3, kernels.head_automata.relax_parts, *arguments)
        if status == kernels.head_automata.INFEASIBLE:
            raise Infeasible(NO_TREE)
        self.closed = status == kernels.head_automata.CLOSED
        self.rows: Floats = rows[: self.used]
        self.score, self.bound = (
            float(self.memory[kernels.head_automata.BEST_PRIMAL]),
            float(self.memory[kernels.head_automata.BEST_DUAL]),
        )
        self.decoded = int(self.memory[kernels.head_automata.DECODED])

    def result(self, seconds: float) -> Result[Ints]:
        score = self.score  # summed up by the kernel from the scores of the parts, not from any dual
        duals = {"arcs": self.multipliers[0]}
        if self.by_head:
            duals["above"] = self.multipliers[1]
        arc, largest, u, u_sum = self.memory[-4:].tolist()
        length = (self.problem.n + 1) * (3 + len(self.problem.scores))
        error = error_of_dual(self.problem.n, length, len(duals), arc, largest, u, u_sum)
        scores = partial(self.problem._terms, self.heads)
        certificate = certified(scores, score, self.bound, error, kind="dual", duals=duals)
        info = info_of(seconds, self.used, 1, 0, self.decoded, self.problem.n)
        return Result(self.heads, score, certificate, trace_of(self.rows), info)


@dataclass(slots=True)
class Node:
    """A place in the tree of branch and bound. ``gone`` arcs are forbidden in all copies, ``ones`` are required."""

    gone: Mask
    ones: tuple[int, ...]
    u: Floats  # multipliers of "arcs" and "above", (2, arcs)
    bound: float
    dispute: Floats
    fixes: "list[tuple[Node, Mask]]" = field(default_factory=list)  # the node before, and what was removed, by copy
    split: "tuple[int, Node, Node] | None" = None


class Search:
    """A problem being decoded: the incumbent, the nodes and the trace."""

    def __init__(
        self,
        problem: "Dependency | AutomataDependency",
        max_iterations: int,
        clock: Clock,
        share: float,
        step: str,
        lazy: bool,
    ) -> None:
        self.problem, self.kernels, self.restrict = problem, kernels.head_automata, kernels.head_lattices.restrict
        self.clock = clock
        self.max_iterations = max_iterations
        self.automata = HeadAutomata.of(problem, 0.0)
        self.lattices = self.automata.lattices
        self.cells = (self.lattices.arc_head, self.lattices.arc_mod)
        self.arc: Floats = problem.arc[self.cells]
        self.share, self.lazy = share, lazy
        self.rule = kernels.head_automata.POLYAK if step == "polyak" else kernels.head_automata.HARMONIC
        self.scale = max(problem.extent().size, 1e-300)
        self.error = problem.error()
        self.heads: Ints = np.full(problem.n + 1, -1, dtype=np.int64)
        self.score = -np.inf
        self.rows: list[Floats] = []
        self.decoded = 0
        self.nodes = 1
        self.removed = 0
        size = len(self.arc)
        gone: Mask = np.zeros(size, dtype=np.uint8)
        self.root = Node(gone, (), np.zeros((2, size)), np.inf, np.zeros(size))

    def take(self, first: FirstRound) -> None:
        """Go on from the first round: its tree, its bound and the multipliers that prove it."""
        if first.score > -np.inf:
            self.score, self.heads = first.score, first.heads
        self.root.u, self.root.bound = first.multipliers[:, *self.cells], first.bound
        self.rows, self.decoded = [first.rows], first.decoded
        self.max_iterations -= first.used

    @property
    def out_of_time(self) -> bool:
        return self.clock.out_of_time

    # -- one node --------------------------------------------------------------------------------------------------

    def kept(self, node: Node) -> Mask:
        """1 for the arcs that a tree of this node may use: not gone, and no rival of a required one."""
        keep: Mask = 1 - node.gone
        for a in node.ones:
            keep[(self.lattices.arc_mod == self.lattices.arc_mod[a]) & (np.arange(len(keep)) != a)] = 0
        return keep

    def descend(self, node: Node, iterations: int, window: int | None) -> None:
        """Lower the bound of a node from its multipliers on, until it is closed, stalls, or reaches a limit."""
        k = self.kernels
        whole = node is self.root and not node.gone.any()
        lattices = self.lattices if whole else self.restrict(self.lattices, self.kept(node), True)
        u, best = node.u.copy(), node.u.copy()
        memory = np.zeros(k.MEMORY)
        memory[k.BEST_DUAL] = memory[k.LAST_DUAL] = np.inf
        memory[k.BEST_PRIMAL] = self.score
        memory[k.FACTOR] = FACTOR
        dispute = np.zeros(len(self.arc))
        heads = self.heads.copy()
        mark, since, done = np.inf, 0, 0
        while done < iterations:
            rows = np.zeros((min(ROUND, iterations - done), 4))
            status, used = long_call(
                len(rows) * self.problem.n**3,
                k.relax,
                lattices,
                self.arc,
                self.share,
                self.problem.single,
                u[0],
                u[1],
                best[0],
                best[1],
                heads,
                dispute,
                self.error,
                self.rule,
                self.scale,
                PATIENCE,
                SHRINK,
                int(self.lazy),
                memory,
                rows,
            )
            self.rows.append(rows[:used])
            done += used
            if status != k.LIMIT:
                break
            since += used
            if window is not None and since >= window:
                target = memory[k.BEST_PRIMAL]
                if np.isfinite(mark - target) and memory[k.BEST_DUAL] > mark - STALL * (mark - target):
                    break
                mark, since = memory[k.BEST_DUAL], 0
            if self.out_of_time:
                break
        self.decoded += int(memory[k.DECODED])
        if memory[k.BEST_PRIMAL] > self.score:
            self.score, self.heads = float(memory[k.BEST_PRIMAL]), heads
        if status == k.INFEASIBLE:
            node.bound = -np.inf
        elif memory[k.BEST_DUAL] < node.bound:
            node.bound, node.u = float(memory[k.BEST_DUAL]), best
        node.dispute = dispute

    def closed(self, node: Node) -> bool:
        """True if nothing better than the incumbent is left at a node."""
        return node.bound == -np.inf or node.bound - self.score <= self.error

    def tighten(self, node: Node) -> None:
        """Remove the arcs whose max-marginal at the node's multipliers is not above the incumbent, and relax again."""
        while not self.closed(node) and self.score > -np.inf and not self.out_of_time:
            by_copy = self.removable(node)
            if not by_copy.any():
                return
            before = Node(node.gone, node.ones, node.u, node.bound, node.dispute)
            node.fixes.append((before, by_copy))
            node.gone = node.gone | (by_copy > 0).astype(np.uint8)
            fresh = int(np.count_nonzero(by_copy))
            self.removed += fresh
            self.descend(node, NODE_ITERATIONS, None)
            if fresh * 20 < np.count_nonzero(self.kept(node)):
                return

    def removable(self, node: Node) -> Mask:
        """0 for an arc that stays, else 1 + the copy whose max-marginal proves that it may go."""
        keep = self.kept(node)
        lattices = self.restrict(self.lattices, 1 - node.gone, False)
        u = self.witness(node)
        value, above = (1.0 - self.share) * self.arc - u[0], -u[1]
        through, through_up = np.zeros(len(self.arc)), np.zeros(len(self.arc))
        total = self.kernels.head_max_marginals(lattices, value, above, through, through_up)
        n = self.problem.n
        tree = np.full((n + 1, n + 1), -np.inf)
        allowed = keep == 1
        tree[self.cells[0][allowed], self.cells[1][allowed]] = (self.share * self.arc + u[0] + u[1])[allowed]
        best = np.empty((n + 1, n + 1))
        kernels.arborescence.max_marginals(tree.reshape(-1), n + 1, n, self.problem.single, best)
        dual = total + float(best.max(initial=-np.inf))
        out: Mask = np.zeros(len(self.arc), dtype=np.uint8)
        for copy, bound in ((ABOVE, dual + through_up), (AUTOMATA, dual + through), (TREE, total + best[self.cells])):
            if copy != ABOVE or self.automata.by_head:
                out[(bound <= self.score) & allowed] = 1 + copy
        return out

    # -- the search ------------------------------------------------------------------------------------------------

    def run(self, exact: bool) -> None:
        """Relax, remove, branch: until proved, or a limit."""
        root = self.root
        if self.max_iterations:
            self.descend(root, self.max_iterations, WINDOW if exact else None)
        if self.closed(root) or (not exact and self.score > -np.inf):
            return
        self.tighten(root)
        order = count()
        waiting = [(-root.bound, next(order), root)]
        while waiting and not self.out_of_time and (exact or self.score == -np.inf):
            _, _, node = heapq.heappop(waiting)
            if self.closed(node):
                continue
            arc = self.disputed(node)
            if arc is None:
                continue  # one tree is left: the bound of this node is its score, rounding aside
            zero, one = self.child(node, arc, 0), self.child(node, arc, 1)
            node.split = (arc, zero, one)
            for child in (zero, one):
                if not self.closed(child):
                    heapq.heappush(waiting, (-child.bound, next(order), child))

    def disputed(self, node: Node) -> int | None:
        """The arc that tree and automata differed on most often; None when every word has one head left."""
        keep = self.kept(node)
        heads = np.bincount(self.lattices.arc_mod[keep == 1], minlength=self.problem.n + 1)
        open_arcs = (keep == 1) & (heads[self.lattices.arc_mod] > 1)
        if not open_arcs.any():
            return None
        return int(np.argmax(np.where(open_arcs, node.dispute, -1.0)))

    def child(self, parent: Node, arc: int, value: int) -> Node:
        self.nodes += 1
        gone, ones = parent.gone, parent.ones
        if value == 0:
            gone = gone.copy()
            gone[arc] = 1
        else:
            ones = (*ones, arc)
        node = Node(gone, ones, parent.u, parent.bound, parent.dispute)
        if not self.out_of_time:
            self.descend(node, min(NODE_ITERATIONS, max(1, self.max_iterations)), None)
            self.tighten(node)
        return node

    # -- witnesses -------------------------------------------------------------------------------------------------

    def witness(self, node: Node) -> Floats:
        """Multipliers that prove the node's bound when arcs are only forbidden, not required, in the automata.

        The search drops the rivals of a required arc from the automata and makes them take a word's only arc. The
        same is said by multipliers: the tree cannot use the first and must use the second, so moving their scores by
        any amount costs it nothing or what the automata gain.
        """
        keep = self.kept(node)
        mods = self.lattices.arc_mod
        heads = np.bincount(mods[keep == 1], minlength=self.problem.n + 1)
        forced = (keep == 1) & (heads[mods] == 1)
        rival = (keep == 0) & (node.gone == 0)
        if not forced.any() and not rival.any():
            return node.u
        target = max(node.bound, self.score) + self.error
        best, lowest, amount = node.u, np.inf, self.scale
        while lowest > target and amount < self.scale * 1e6:
            u = node.u.copy()
            u[:, rival] += amount
            u[0, forced] -= amount
            bound = self.evaluate(u, node)
            if bound < lowest:
                best, lowest = u, bound
            amount *= 2.0
        return best

    def evaluate(self, u: Floats, node: Node) -> float:
        """The dual value at multipliers u when the arcs that are gone are forbidden and rivals are left to the tree."""
        lattices = self.restrict(self.lattices, 1 - node.gone, False)
        size, n = len(self.arc), self.problem.n
        used, column = np.zeros(size, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
        value = (1.0 - self.share) * self.arc - u[0]
        total = float(self.kernels.best_choices(lattices, value, -u[1], used, column))
        tree = np.full((n + 1, n + 1), -np.inf)
        allowed = self.kept(node) == 1
        tree[self.cells[0][allowed], self.cells[1][allowed]] = (self.share * self.arc + u[0] + u[1])[allowed]
        floats, ints = kernels.arborescence.work_sizes(n)
        work = np.empty(floats), np.empty(ints, dtype=np.int64)
        heads = np.empty(n + 1, dtype=np.int64)
        return total + float(
            kernels.arborescence.best_heads(tree.reshape(-1), n + 1, n, self.problem.single, heads, *work)
        )

    def named(self, u: Floats) -> dict[str, Floats]:
        """Multipliers by view, for the share of the arc scores that ``relaxation`` gives the tree."""
        shape = self.problem.arc.shape
        out = {"arcs": np.zeros(shape)}
        out["arcs"][self.cells] = u[0] + (self.share - SHARE) * self.arc
        if self.automata.by_head:
            out["above"] = np.zeros(shape)
            out["above"][self.cells] = u[1]
        return out

    def error_of(self, u: Floats, gone: Mask) -> float:
        """How far rounding may take the dual value at multipliers u; as ``Relaxation.error``."""
        if gone.any():
            u = u * (1 - gone)
        if self.share != SHARE:
            u = u + np.stack([(self.share - SHARE) * self.arc, np.zeros(len(self.arc))]) * (1 - gone)
        sizes = (np.abs(values).max(initial=0.0) for values in (u, u[0] + u[1]))
        arc, largest = float(np.abs(self.arc).max(initial=0.0)), self.problem.extent().size
        length, views = self.automata.extent().length, len(self.automata.views)
        return error_of_dual(self.problem.n, length, views, arc, largest, *map(float, sizes))

    def certificate(self, score: float) -> Certificate:
        """Of the whole tree: kind "dual" when the root alone makes the bound."""
        root = self.root
        scores = partial(self.problem.terms, self.heads)
        if not root.fixes and root.split is None:
            error = self.error_of(root.u, root.gone)
            return certified(scores, score, root.bound, error, kind="dual", duals=self.named(root.u))
        bound, error = score, self.error
        built: dict[int, Proof] = {}
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if node.split is not None and not ready:
                stack += [(node, True), (node.split[1], False), (node.split[2], False)]
                continue
            proof: Proof
            if node.split is None:
                u = self.witness(node)
                bound = max(bound, self.evaluate(u, node))
                error = max(error, self.error_of(u, node.gone))
                proof = Leaf(self.named(u))
            else:
                arc, zero, one = node.split
                proof = Split("arcs", self.flat(arc), built.pop(id(zero)), built.pop(id(one)))
            for before, by_copy in reversed(node.fixes):
                u = self.witness(before)
                error = max(error, self.error_of(u, before.gone))
                proof = Fix(self.named(u), self.parts(by_copy), proof)
            built[id(node)] = proof
        return certified(scores, score, bound, error, kind="branch and bound", duals=built[id(root)])

    def flat(self, arc: int) -> int:
        """Index of an arc among the cells of the view."""
        return int(self.cells[0][arc]) * (self.problem.n + 1) + int(self.cells[1][arc])

    def parts(self, by_copy: Mask) -> tuple[Removed, ...]:
        """Arcs removed, by the copy that proves it."""
        copies = ((c, np.flatnonzero(by_copy == 1 + c)) for c in (ABOVE, AUTOMATA, TREE))
        return tuple(Removed("arcs", c, tuple(self.flat(int(a)) for a in arcs)) for c, arcs in copies if len(arcs))

    def trace(self) -> Trace:
        return trace_of(np.concatenate(self.rows) if self.rows else np.zeros((0, 4)))

    def info(self) -> Mapping[str, Any]:
        iterations = sum(len(rows) for rows in self.rows)
        return info_of(self.clock.seconds, iterations, self.nodes, self.removed, self.decoded, self.problem.n)


def error_of_dual(n: int, length: int, views: int, arc: float, largest: float, u: float, u_sum: float) -> float:
    """How far rounding may take a dual value; from the largest arc score, score, multiplier and sum of multipliers.

    As ``Relaxation.error``: that of the tree and that of the automata, whose choices add up ``length`` scores.
    """
    return of_sum(2 * (n + 1), SHARE * arc + u_sum) + of_sum(length * (1 + views), largest + u)


def trace_of(rows: Floats) -> Trace:
    return Trace(rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy(), rows[:, 3].astype(np.int64))


def info_of(seconds: float, iterations: int, nodes: int, fixed: int, decoded: int, n: int) -> Mapping[str, Any]:
    """What a result says of the run; "decoded" is the share of the automata decoded per iteration."""
    share = decoded / max(1, iterations * 2 * (n + 1))
    return {"seconds": seconds, "iterations": iterations, "nodes": nodes, "fixed": fixed, "decoded": share}


def _share(arc: Floats, share: float) -> Floats:
    """That share of the arc scores, -inf where there is no arc."""
    return np.where(arc > -np.inf, share * arc, -np.inf)
