"""Lagrangian relaxation on leaves and the paths between them (LR 5.2 to 5.4, SYN 4 to 6), for small forests.

Every leaf chooses the chain of leaves before it, with the paths between them (``leaf_graph``), freely; the derivation
does not. Multipliers make the two agree (LR fig. 5-6, for any order n): lambda[j, v] on how often leaf v stands j
places before another, u[j, s] on how often arc s lies on the j-th path. With

    beta(v) = sum_j lambda[j, v],   beta(s) = sum_j u[j, s],
    alpha(v) = max over chains that end in v of  score - sum_j lambda[j, v_j] - sum_j sum of u[j, s] on the j-th path

the best derivation under beta + alpha bounds the optimum. Tightening (LR 5.4): with leaves in classes, the chain of a
leaf must have the classes that the derivation has there. That is a derivation through an automaton whose states are the
classes of the last n - 1 leaves, found by exact intersection; one class is no tightening, a class for each leaf is the
exhaustive dynamic program, so the method always ends. Pairs of leaves that were confused are put into different classes
by colouring a graph.

Differs from LR: after </s> come n - 2 leaves that cost nothing and choose chains too, so that the constraints hold for
the last leaves as well; the certificate compares bound and score, so chains that agree only in number prove nothing.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from certus.certificates.rounding import of_sum
from certus.checks import Floats, Ints
from certus.errors import NotSupported
from certus.hypergraph import Automaton, sweeps
from certus.hypergraph.automata import intersect
from certus.relax.descent import Descent, Oracle, Round, descend
from certus.relax.run import Run
from certus.relax.steps import StepRule, polyak
from certus.result import Result, certified
from certus.translation.forest import NO_DERIVATION
from certus.translation.leaf_graph import END, Leaves, class_maximum, tuples

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

WINDOW = 4  # rounds that must close a share of the gap, or the classes are refined
CLOSE = 1e-6  # of the largest score: a gap that only rounding of the multipliers keeps open, closed exactly
FACTOR = 1.5  # steps aim beyond the best score, so that choices agree after finitely many
WATCH = 5  # last rounds whose confused leaves are put into different classes


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Best of the relaxation: bound, derivation by edges of the leaf graph, its leaves and paths, what they chose."""

    bound: float
    edges: list[int]
    leaves: list[int]
    paths: list[list[int]]
    chains: list[tuple[int, ...]]  # per leaf, and per leaf after </s>: v_{n-1} .. v_1 chosen
    chosen: list[list[list[int]]]  # likewise: arcs of the paths chosen, [j - 1] from v_j to v_{j-1}


class LeafRelaxation(Oracle):
    """The relaxed problem of a forest; "simple" leaves the arcs without multipliers (LR 5.2).

    ``pairs`` are leaves to be told apart, ``partitions`` the number of classes that this needs.
    """

    def __init__(
        self, problem: "ForestTranslation", leaves: Leaves, method: str, pairs: frozenset[tuple[int, int]] = frozenset()
    ) -> None:
        self.problem, self.leaves, self.method, self.pairs = problem, leaves, method, pairs
        self.scale, self.span = problem.extent().size, leaves.order - 1
        self.classify(coloured(leaves.n_leaves, pairs))
        self.partitions = self.rows
        self.last: deque[Relaxed] = deque(maxlen=WATCH)

    def classify(self, colour: Ints) -> None:
        """Classes by colour; the pad has one of its own, which does not count as a row."""
        self.rows = int(colour.max(initial=0)) + 1
        self.classes = np.append(colour, self.rows)

    def ask(self, u: Floats) -> Round:
        y = self.solve(*self.by_kind(u))
        self.last.append(y)
        edges = [int(self.leaves.origin[e]) for e in y.edges if self.leaves.origin[e] >= 0]
        return Round(y.bound, self.subgradient(y), [(edges, self.problem.score(np.array(edges)))])

    def error(self, u: Floats) -> float:
        return self.problem.error()

    def by_kind(self, u: Floats) -> tuple[Floats, Floats]:
        """What concerns leaves and what concerns arcs, per place."""
        size = self.span * self.leaves.n_leaves
        return u[:size].reshape(self.span, -1), u[size:].reshape(self.span, -1)

    def solve(self, leaf: Floats, arc: Floats) -> Relaxed:
        """The best derivation with freely chosen chains under lambda and u of the head of the file.

        Infeasible if the forest has none.
        """
        leaves, span = self.leaves, self.span
        found = [leaves.best_paths(arc[j]) for j in range(span)]
        penalty = np.hstack((leaf, np.zeros((span, 1))))
        # links[j][a, b]: what it takes to have a at place j + 1 and b at place j, places counted back from the word
        links = [paths - penalty[j][:, None] for j, (paths, _) in enumerate(found)]
        total = leaves.scores.copy()
        for j, link in enumerate(links):
            total += link.reshape((1,) * (span - j - 1) + link.shape + (1,) * j)
        ends = [_end(links, i) for i in range(1, span)]
        n_classes = self.rows + 1
        contexts = tuples(n_classes, span)  # of the automaton's states: classes of v_{n-1} .. v_1
        alpha = class_maximum(total, self.classes, n_classes, span).reshape(len(contexts), -1)[:, :-1]
        final = np.zeros(len(contexts))
        for i, end in enumerate(ends, start=1):
            best = class_maximum(end, self.classes, n_classes, end.ndim)
            final += np.array([best[context[i - 1 : span - 1]] for context in contexts])
        state = np.arange(len(contexts))
        automaton = Automaton(
            (state[:, None] * n_classes) % len(contexts) + self.classes[:-1],
            alpha + leaf.sum(axis=0),
            initial=len(contexts) - 1,
            final_weights=final,
        )
        beta = arc.sum(axis=0)
        weights = leaves.weights + np.array([beta[states].sum() for states in leaves.states])
        symbols = np.where(np.arange(leaves.graph.n_edges) < leaves.n_leaves, np.arange(leaves.graph.n_edges), -1)
        graph, weight, edge_map = intersect(leaves.graph, weights, automaton, symbols)
        value, used = sweeps.best(graph, weight)
        edges = [e for e in edge_map[used].tolist() if e >= 0]
        sequence, between = leaves.walk(edges)
        chains: list[tuple[int, ...]] = []
        context: tuple[int, ...] = (self.rows,) * span
        for v in sequence:
            chains.append(self._choice(total[..., v], context))
            context = (*context[1:], int(self.classes[v]))
        for i, end in enumerate(ends, start=1):
            chains.append(self._choice(end, context[i - 1 : span - 1]))
        chosen = []
        for k, chain in enumerate(chains):
            last, first_place = (sequence[k], 1) if k < len(sequence) else (END, k - len(sequence) + 2)
            stops = [last, *reversed(chain)]
            arcs: list[list[int]] = [[] for _ in range(span)]
            for j, (b, a) in enumerate(pairwise(stops), start=first_place):
                arcs[j - 1] = leaves.path(found[j - 1][1], a, b)
            chosen.append(arcs)
        return Relaxed(float(value), edges, sequence, between, chains, chosen)

    def _choice(self, values: Floats, context: tuple[int, ...]) -> tuple[int, ...]:
        """The best chain whose leaves have the classes of the context."""
        members = [np.flatnonzero(self.classes == c) for c in context]
        if not members:
            return ()
        best = np.unravel_index(int(values[np.ix_(*members)].argmax()), [len(m) for m in members])
        return tuple(int(m[k]) for m, k in zip(members, best, strict=True))

    def subgradient(self, y: Relaxed) -> Floats:
        """How often leaves and arcs are there, less how often they are chosen; per place, as multipliers are."""
        out = np.zeros(self.span * (self.leaves.n_leaves + self.leaves.n_arcs))
        leaf, arc = self.by_kind(out)
        for v, path in zip(y.leaves, y.paths, strict=True):
            leaf[:, v] += 1.0
            arc[:, path] += 1.0
        for k, (chain, chosen) in enumerate(zip(y.chains, y.chosen, strict=True)):
            after = max(k - len(y.leaves) + 1, 0)  # places after </s>
            if after:
                leaf[after - 1, END] -= 1.0
            for place, v in enumerate(reversed(chain), start=after + 1):
                if v != self.leaves.pad:
                    leaf[place - 1, v] -= 1.0
            for place, path in enumerate(chosen):
                arc[place, path] -= 1.0
        leaf[-1, END] = 0.0  # no leaf is n - 1 places after </s>
        if self.method == "simple":
            arc[:] = 0.0
        return out

    def confused(self, y: Relaxed) -> set[tuple[int, int]]:
        """Pairs of different leaves, one there and the other chosen."""
        pairs = set()
        for k, chain in enumerate(y.chains):
            at = min(k, len(y.leaves) - 1)  # leaves after </s> choose what stands before it
            for place, v in enumerate(reversed(chain), start=1):
                if at >= place and v != self.leaves.pad and v != y.leaves[at - place]:
                    a, b = sorted((v, y.leaves[at - place]))
                    pairs.add((a, b))
        return pairs


def _end(links: list[Floats], i: int) -> Floats:
    """[v_{n-1}, .., v_{i+1}]: what the i-th leaf after </s> gets for its chain; </s> is at place i."""
    value: Floats = links[i][:, END]
    for link in links[i + 1 :]:
        value = link.reshape(link.shape + (1,) * (value.ndim - 1)) + value
    return value


def coloured(n: int, pairs: Iterable[tuple[int, int]]) -> Ints:
    """Few colours for 0 .. n - 1 such that no pair has the same: greedily, those in most pairs first."""
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for a, b in pairs:
        neighbours[a].add(b)
        neighbours[b].add(a)
    colour = np.zeros(n, dtype=np.int64)
    done: set[int] = set()
    for v in sorted(range(n), key=lambda v: (-len(neighbours[v]), v)):
        taken = {int(colour[w]) for w in neighbours[v] if w in done}
        colour[v] = next(c for c in range(n) if c not in taken)
        done.add(v)
    return colour


def _finish(at: Descent[LeafRelaxation]) -> None:
    """Where only rounding keeps a gap open, each leaf gets a class of its own."""
    oracle = at.oracle
    if at.best - at.run.score <= CLOSE * oracle.scale:
        oracle.classify(np.arange(oracle.leaves.n_leaves))


def _separated(at: Descent[LeafRelaxation]) -> tuple[LeafRelaxation, Floats] | None:
    """Tightening (LR 5.4): leaves that were confused in the last rounds go into different classes.

    If that changes nothing each leaf gets a class of its own, and no more can be done.
    """
    before = at.oracle
    problem, leaves = before.problem, before.leaves
    if before.rows == leaves.n_leaves:
        return None
    tighter = LeafRelaxation(problem, leaves, before.method, before.pairs.union(*map(before.confused, before.last)))
    if (tighter.classes == before.classes).all():
        tighter.classify(np.arange(leaves.n_leaves))
        tighter.partitions = tighter.rows
    return tighter, at.best_u


def decode_by_leaves(
    problem: "ForestTranslation",
    method: str,
    *,
    max_iterations: int = 200,
    time_limit: float | None = None,
    step: StepRule[Any] | None = None,
) -> Result[Ints]:
    """Relaxation on leaves: "simple" (LR 5.2), "paths" (LR 5.3) or "partitions" (LR 5.4). See the head of the file.

    ``step`` is the step rule; Polyak's by default. Certificate kind: "dual"; the bound is checked as that of the other
    methods is. The last multipliers are in ``info``, and the number of classes that tightening needed: once all but
    rounding is closed each leaf gets a class of its own, which does not count.
    """
    if method == "simple" and problem.lm.order > 2:
        raise NotSupported(
            f'the simple algorithm is for bigram models (LR 5.2); this one has order {problem.lm.order}. Use "paths".'
        )
    extent = problem.extent()
    run: Run[list[int]] = Run(max_iterations=max_iterations, time_limit=time_limit, scale=extent.size)
    leaves = Leaves(problem.translation_forest, problem.lm, problem.lm_weight)
    u = np.zeros((leaves.order - 1) * (leaves.n_leaves + leaves.n_arcs))
    rule = step or polyak(FACTOR)
    start = (run, LeafRelaxation(problem, leaves, method), u, rule)
    hooks: Any = {"window": WINDOW, "search": _finish, "tighten": _separated} if method == "partitions" else {}
    at = descend(*start, max_iterations=max_iterations, **hooks)
    if run.structure is None:
        run.give_up("derivation", NO_DERIVATION)
    bound, structure = max(at.best, run.score), np.array(run.structure, dtype=np.int64)
    duals = {"pairs": np.empty((0, 3)), "bound": np.array([bound])}
    largest = float(np.abs(at.best_u).max(initial=0.0))
    of_leaves = of_sum(2 * problem.lm.order * extent.length, extent.size + 2.0 * largest)
    error = max(problem.error(), of_leaves, problem.dual_error({"pairs": duals["pairs"]}))
    run.info |= {"step": repr(rule), "partitions": at.oracle.partitions, "leaves": leaves.n_leaves}
    run.info["leaf multipliers"] = at.oracle.by_kind(at.u)[0]
    certificate = certified(partial(problem.terms, structure), run.score, bound, error, kind="dual", duals=duals)
    return run.result(structure, certificate)
