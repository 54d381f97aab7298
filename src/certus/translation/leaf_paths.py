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

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from certus.certificates.rounding import of_sum
from certus.checks import Floats, Ints
from certus.clock import Clock
from certus.errors import Infeasible, NotSupported
from certus.hypergraph import Automaton, sweeps
from certus.hypergraph.automata import intersect
from certus.relax.run import Log
from certus.relax.steps import StepRule, polyak
from certus.result import Result, certified
from certus.translation.leaf_graph import END, Leaves, class_maximum, tuples
from certus.translation.multipliers import Steps

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

PATIENCE = 12  # iterations within which the gap must come down to GAIN of what it was, or the classes are refined
GAIN = 0.6
CLOSE = 1e-6  # of the largest score: a gap that only rounding of the multipliers keeps open, closed exactly
FACTOR = 1.5  # steps aim beyond the best score, so that choices agree after finitely many
WATCH = 5  # of them in which confused leaves are noted


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Best of the relaxation: bound, derivation by edges of the leaf graph, its leaves and paths, what they chose."""

    bound: float
    edges: list[int]
    leaves: list[int]
    paths: list[list[int]]
    chains: list[tuple[int, ...]]  # per leaf, and per leaf after </s>: v_{n-1} .. v_1 chosen
    chosen: list[list[list[int]]]  # likewise: arcs of the paths chosen, [j - 1] from v_j to v_{j-1}


class LeafRelaxation:
    """The relaxed problem of one forest; ``paths`` False leaves the arcs without multipliers (LR 5.2)."""

    def __init__(self, leaves: Leaves, *, paths: bool) -> None:
        self.leaves = leaves
        self.with_paths = paths
        self.span = leaves.order - 1
        self.u = np.zeros(self.span * (leaves.n_leaves + leaves.n_arcs))  # all multipliers, and two views of them:
        self.leaf, self.arc = self._by_kind(self.u)  # lambda and u of the head of the file
        self.classes = np.append(np.zeros(leaves.n_leaves, dtype=np.int64), 1)  # the pad has a class of its own

    def _by_kind(self, u: Floats) -> tuple[Floats, Floats]:
        """What concerns leaves and what concerns arcs, per place."""
        size = self.span * self.leaves.n_leaves
        return u[:size].reshape(self.span, -1), u[size:].reshape(self.span, -1)

    @property
    def n_partitions(self) -> int:
        """Classes of leaves, the pad's not counted."""
        return int(self.classes[-1])

    def solve(self) -> Relaxed:
        """The best derivation with freely chosen chains; Infeasible if the forest has none."""
        leaves, span = self.leaves, self.span
        found = [leaves.best_paths(self.arc[j]) for j in range(span)]
        penalty = np.hstack((self.leaf, np.zeros((span, 1))))
        # links[j][a, b]: what it takes to have a at place j + 1 and b at place j, places counted back from the word
        links = [paths - penalty[j][:, None] for j, (paths, _) in enumerate(found)]
        total = leaves.scores.copy()
        for j, link in enumerate(links):
            total += link.reshape((1,) * (span - j - 1) + link.shape + (1,) * j)
        ends = [_end(links, i) for i in range(1, span)]
        n_classes = self.n_partitions + 1
        contexts = tuples(n_classes, span)  # of the automaton's states: classes of v_{n-1} .. v_1
        alpha = class_maximum(total, self.classes, n_classes, span).reshape(len(contexts), -1)[:, :-1]
        final = np.zeros(len(contexts))
        for i, end in enumerate(ends, start=1):
            best = class_maximum(end, self.classes, n_classes, end.ndim)
            final += np.array([best[context[i - 1 : span - 1]] for context in contexts])
        state = np.arange(len(contexts))
        automaton = Automaton(
            (state[:, None] * n_classes) % len(contexts) + self.classes[:-1],
            alpha + self.leaf.sum(axis=0),
            initial=len(contexts) - 1,
            final_weights=final,
        )
        arc = self.arc.sum(axis=0)
        weights = leaves.weights + np.array([arc[states].sum() for states in leaves.states])
        symbols = np.where(np.arange(leaves.graph.n_edges) < leaves.n_leaves, np.arange(leaves.graph.n_edges), -1)
        graph, weight, edge_map = intersect(leaves.graph, weights, automaton, symbols)
        value, used = sweeps.best(graph, weight)
        edges = [e for e in edge_map[used].tolist() if e >= 0]
        sequence, between = leaves.walk(edges)
        chains: list[tuple[int, ...]] = []
        context: tuple[int, ...] = (self.n_partitions,) * span
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
        """How often leaves and arcs are there, less how often they are chosen; per place, as ``u`` has them."""
        out = np.zeros(len(self.u))
        leaf, arc = self._by_kind(out)
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
        if not self.with_paths:
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

    def separate(self, pairs: set[tuple[int, int]]) -> None:
        """Give the leaves of each pair different classes; if that changes nothing, give each leaf its own."""
        colour = coloured(self.leaves.n_leaves, pairs)
        if not pairs or (colour == self.classes[:-1]).all():
            colour = np.arange(self.leaves.n_leaves)
        self.classes = np.append(colour, int(colour.max(initial=0)) + 1)


def _end(links: list[Floats], i: int) -> Floats:
    """[v_{n-1}, .., v_{i+1}]: what the i-th leaf after </s> gets for its chain; </s> is at place i."""
    value: Floats = links[i][:, END]
    for link in links[i + 1 :]:
        value = link.reshape(link.shape + (1,) * (value.ndim - 1)) + value
    return value


def coloured(n: int, pairs: set[tuple[int, int]]) -> Ints:
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


def decode_by_leaves(
    problem: "ForestTranslation", method: str, max_iterations: int, clock: Clock, rule: StepRule[Any] | None = None
) -> Result[Ints]:
    """Relaxation on leaves: "simple" (LR 5.2), "paths" (LR 5.3) or "partitions" (LR 5.4). See the head of the file.

    ``rule`` is the step rule; Polyak's by default. Certificate kind: "dual"; the bound is checked as that of the other
    methods is. The last multipliers are in ``info``, and the number of classes that tightening needed: once all but
    rounding is closed each leaf gets a class of its own, which does not count.
    """
    if method == "simple" and problem.lm.order > 2:
        raise NotSupported(
            f'the simple algorithm is for bigram models (LR 5.2); this one has order {problem.lm.order}. Use "paths".'
        )
    leaves = Leaves(problem.translation_forest, problem.lm, problem.lm_weight)
    relaxation = LeafRelaxation(leaves, paths=method != "simple")
    extent, error = problem.extent(), problem.error()
    steps = Steps(polyak(FACTOR) if rule is None else rule, extent.size)
    best: list[int] = []
    score, bound, since, gap_then, n_partitions = -np.inf, np.inf, 0, np.inf, 1
    log, pairs, largest = Log(), set[tuple[int, int]](), 0.0
    for _ in range(max_iterations):
        y = relaxation.solve()
        largest = max(largest, float(np.abs(relaxation.u).max(initial=0.0)))
        edges = [int(leaves.origin[e]) for e in y.edges if leaves.origin[e] >= 0]
        value = problem.score(np.array(edges))
        if value > score:
            best, score = edges, value
        bound = min(bound, y.bound)
        since = 0 if bound - score < GAIN * gap_then else since + 1
        gap_then = bound - score if since == 0 else gap_then
        log.add(y.bound, score, 0.0, relaxation.n_partitions)
        if bound - score <= error or clock.out_of_time:
            break
        residual = relaxation.subgradient(y)
        agreed = not residual.any()
        if agreed and method != "partitions":
            break
        if not agreed:
            log.moved(steps.move(relaxation.u, slice(None), residual, y.bound, score))
        if method == "partitions":
            if since > PATIENCE - WATCH or agreed:
                pairs |= relaxation.confused(y)
            if bound - score <= CLOSE * extent.size:
                relaxation.separate(set())
            elif since > PATIENCE or agreed:
                relaxation.separate(pairs)
                n_partitions, since = relaxation.n_partitions, 0
                steps.restart()
    if not best:
        raise Infeasible("the forest has no derivation: every one uses an edge of weight -inf, or there is none.")
    bound, structure = max(bound, score), np.array(best, dtype=np.int64)
    duals = {"pairs": np.empty((0, 3)), "bound": np.array([bound])}
    of_leaves = of_sum(2 * problem.lm.order * extent.length, extent.size + 2.0 * largest)
    error = max(error, of_leaves, problem.dual_error(duals["pairs"]))
    certificate = certified(partial(problem.terms, structure), score, bound, error, kind="dual", duals=duals)
    info = {"partitions": n_partitions, "leaf multipliers": relaxation.leaf, "leaves": leaves.n_leaves}
    return Result(structure, score, certificate, log.trace(), {**info, "seconds": clock.seconds})
