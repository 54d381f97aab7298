"""Lagrangian relaxation on leaves and the paths between them (LR 5.2 to 5.4, SYN 4 to 6).

Every leaf chooses the chain of leaves before it, with the paths between them (``leaf_graph``), freely; the derivation
does not. Multipliers make the two agree (LR fig. 5-6, for any order n): lambda[j, v] on how often leaf v stands j
places before another, u[j, s] on how often arc s lies on the j-th path. With

    beta(v) = sum_j lambda[j, v],   beta(s) = sum_j u[j, s],
    alpha(v) = max over chains that end in v of  score - sum_j lambda[j, v_j] - sum_j sum of u[j, s] on the j-th path

the best derivation under beta + alpha bounds the optimum. Tightening (LR 5.4): with leaves in classes, the chain of a
leaf must have the classes that the derivation has there. That is a derivation through an automaton whose states are the
classes of the last n - 1 leaves, found by exact intersection; a class for each leaf is the exhaustive dynamic program.
Pairs of leaves that were confused are put into different classes by colouring a graph.

Differs from LR: after </s> come n - 2 leaves that cost nothing and choose chains too, so that the constraints hold for
the last leaves as well; the certificate compares bound and score, so chains that agree only in number prove nothing.
Steps aim at the best derivation known, that of cube pruning to begin with. Tightening leaves out edges that are in no
derivation as good as that one, by the bounds without classes, so that the automaton runs over a small forest; what is
left once only rounding keeps the gap open is spelt out.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
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
from certus.translation.cube_pruning import cube_pruning
from certus.translation.forest import NO_DERIVATION
from certus.translation.leaf_graph import END, Chains, Leaves
from certus.translation.lm_automaton import spell_out

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

WINDOW = 20  # rounds that must close a share of the gap, or the classes are refined
CLOSE = 1e-6  # of the largest score: a gap that only rounding of the multipliers keeps open, closed exactly
FACTOR, PATIENCE, SHRINK = 1.8, 12, 0.75  # steps go beyond the best score, and get smaller late: see steps.polyak
WATCH = 5  # last rounds whose confused leaves are put into different classes
SHRUNK = 0.8  # of the edges: what is left out is forgotten once no more than this is left
MOST_STATES = 20_000_000  # cells of an automaton of classes: states times leaves
MOST_EDGES = 3_000_000  # of a forest through such an automaton


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Best of the relaxation: bound, derivation by edges of the leaf graph, its leaves and paths, what they chose."""

    bound: float
    edges: list[int]
    leaves: list[int]
    paths: list[list[int]]
    chains: list[list[int]]  # per leaf, and per leaf after </s>: pairs of leaves chosen, nearest first


class LeafRelaxation(Oracle):
    """The relaxed problem of a forest; "simple" leaves the arcs without multipliers (LR 5.2).

    ``pairs`` are leaves to be told apart, ``rows`` the number of classes that this needs. Multipliers are those of the
    ``whole`` forest, of which ``leaves`` are what is left.
    """

    def __init__(self, problem: "ForestTranslation", whole: Leaves, method: str) -> None:
        self.problem, self.whole, self.leaves, self.method = problem, whole, whole, method
        self.scale, self.span = problem.extent().size, whole.order - 1
        self.pairs: set[tuple[int, int]] = set()  # numbers of leaves in the whole
        self.last: deque[tuple[Relaxed, Leaves]] = deque(maxlen=WATCH)
        self.colour = np.zeros(whole.n_leaves, dtype=np.int64)
        self.classify()

    def classify(self) -> None:
        """Chains and automaton by the colours of the leaves that are left; beside several classes pads have their own.

        NotSupported if that is too large.
        """
        leaves, span = self.leaves, self.span
        used, own = np.unique(self.colour[leaves.leaf_of], return_inverse=True)
        self.rows = len(used)
        classes = np.append(own, self.rows if self.rows > 1 else 0)
        n_classes = int(classes.max()) + 1
        self.chains = [Chains(leaves, classes, after) for after in range(span)]
        self.contexts = np.unique(self.chains[0].layers[-1].context)
        if self.rows > 1 and len(self.contexts) * leaves.n_leaves > MOST_STATES:
            raise NotSupported(f"{self.rows} classes of {leaves.n_leaves} leaves are too many.")
        last = self.chains[0].layers[-1]
        self.state = np.searchsorted(self.contexts, last.context)  # of the nodes of the last layer
        self.node = {(int(q), int(v)): k for k, (q, v) in enumerate(zip(self.state, last.leaf, strict=True))}
        after = (last.context * n_classes + classes[last.leaf]) % n_classes**span
        self.next = np.minimum(np.searchsorted(self.contexts, after), len(self.contexts) - 1)
        self.next[self.contexts[self.next] != after] = -1
        # of each state, the node of each chain that ends in </s>: its context is that of the leaves before </s>
        self.endings = []
        for after_end in range(1, span):
            wanted = self.contexts % n_classes ** (span - after_end)
            known = self.chains[after_end].layers[-1].context
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            self.endings.append(np.where(known[at] == wanted, at, -1))

    def ask(self, u: Floats) -> Round:
        y = self.solve(*self.by_kind(u))
        self.last.append((y, self.leaves))
        edges = [int(self.leaves.origin[e]) for e in y.edges if self.leaves.origin[e] >= 0]
        return Round(y.bound, self.subgradient(y), [(edges, self.problem.score(np.array(edges)))])

    def error(self, u: Floats) -> float:
        largest = float(np.abs(u).max(initial=0.0))
        extent = self.problem.extent()
        return max(self.problem.error(), of_sum(2 * self.whole.order * extent.length, extent.size + 2.0 * largest))

    def by_kind(self, u: Floats) -> tuple[Floats, Floats]:
        """What concerns leaves and what concerns arcs, per place."""
        size = self.span * self.whole.n_leaves
        return u[:size].reshape(self.span, -1), u[size:].reshape(self.span, -1)

    def solve(self, leaf: Floats, arc: Floats) -> Relaxed:
        """The best derivation with freely chosen chains under lambda and u of the head of the file.

        Infeasible if the forest has none.
        """
        leaves, span = self.leaves, self.span
        own, self._arc = leaf[:, leaves.leaf_of], arc[:, leaves.arc_of]
        padded = np.hstack((own, np.zeros((span, 1))))
        paths = [leaves.path_values(self._arc[j]) for j in range(span)]
        found = [chains.best(padded, paths) for chains in self.chains]
        alpha, beta = found[0][0], own.sum(axis=0)
        self._rules = leaves.weights + leaves.uses @ self._arc.sum(axis=0)
        self._coarse = np.full(leaves.n_leaves, -np.inf)
        np.maximum.at(self._coarse, self.chains[0].layers[-1].leaf, alpha)
        self._coarse += beta
        ends = [values for values, _ in found[1:]]
        self._final = sum((float(values.max()) for values in ends), 0.0)
        if self.rows == 1:
            weights = self._rules.copy()
            weights[: leaves.n_leaves] += self._coarse
            value, used = sweeps.best(leaves.graph, weights)
            edges, value = used.tolist(), float(value) + self._final
        else:
            value, edges = self._through_classes(alpha, beta, ends)
        sequence, between = leaves.walk(edges)
        return Relaxed(float(value), edges, sequence, between, self._choices(sequence, [links for _, links in found]))

    def _through_classes(self, alpha: Floats, beta: Floats, ends: list[Floats]) -> tuple[float, list[int]]:
        """Value and derivation, each leaf with the best chain of the classes that stand before it."""
        leaves, size = self.leaves, len(self.contexts)
        transitions = np.full((size, leaves.n_leaves), -1, dtype=np.int32)
        weights = np.full(transitions.shape, -np.inf)
        at = (self.state, self.chains[0].layers[-1].leaf)
        # </s> leads to any state: what is before it is all that chains after it look at
        following = np.where(at[1] == END, self.state, self.next)
        transitions[at], weights[at] = following, alpha + beta[at[1]]
        final = np.zeros(size)
        for values, ending in zip(ends, self.endings, strict=True):
            final += np.where(ending >= 0, values[ending], -np.inf)
        initial = int(self.state[int(np.flatnonzero(at[1] == 0)[0])])
        automaton = Automaton(transitions, weights, initial=initial, final_weights=final)
        symbols = np.where(np.arange(leaves.graph.n_edges) < leaves.n_leaves, np.arange(leaves.graph.n_edges), -1)
        graph, weight, edge_map = intersect(leaves.graph, self._rules, automaton, symbols, max_edges=MOST_EDGES)
        value, used = sweeps.best(graph, weight)
        return float(value), [e for e in edge_map[used].tolist() if e >= 0]

    def _choices(self, sequence: list[int], links: list[list[Floats]]) -> list[list[int]]:
        """Pairs of leaves that each leaf chose, and each leaf after </s>."""
        state, out = int(self.state[self.chains[0].layers[-1].leaf == 0][0]), []
        for v in sequence:
            node = self.node[state, v]
            out.append(self.chains[0].choice(links[0], node))
            before, state = state, int(self.next[node])
        for k, ending in enumerate(self.endings, start=1):
            out.append(self.chains[k].choice(links[k], int(ending[before])))
        return out

    def subgradient(self, y: Relaxed) -> Floats:
        """How often leaves and arcs are there, less how often they are chosen; per place, as multipliers are."""
        whole, leaves = self.whole, self.leaves
        out = np.zeros(self.span * (whole.n_leaves + whole.n_arcs))
        leaf, arc = self.by_kind(out)
        for v, path in zip(y.leaves, y.paths, strict=True):
            leaf[:, leaves.leaf_of[v]] += 1.0
            arc[:, leaves.arc_of[path]] += 1.0
        for place, a, b in self._chosen(y):
            if a != leaves.pad:
                leaf[place - 1, leaves.leaf_of[a]] -= 1.0
            arc[place - 1, leaves.arc_of[leaves.path(self._arc[place - 1], a, b)]] -= 1.0
        leaf[:, END] = 0.0  # </s> is chosen by the leaves after it as often as it is there
        if self.method == "simple":
            arc[:] = 0.0
        return out

    def _chosen(self, y: Relaxed) -> Iterable[tuple[int, int, int]]:
        """(place, leaf at that place, the one at the next place) of all chains chosen."""
        for k, chain in enumerate(y.chains):
            first = max(k - len(y.leaves) + 1, 0) + 1  # leaves after </s> have it at the place before
            for place, pair in enumerate(chain, start=first):
                yield place, int(self.leaves.pair_from[pair]), int(self.leaves.pair_to[pair])

    def confused(self) -> set[tuple[int, int]]:
        """Pairs of different leaves, one there and the other chosen, in the last rounds; by numbers of the whole."""
        pairs = set()
        for y, leaves in self.last:
            for k, chain in enumerate(y.chains):
                at = min(k, len(y.leaves) - 1)  # leaves after </s> choose what stands before it
                for place, pair in enumerate(chain, start=1):
                    v = int(leaves.pair_from[pair])
                    if at >= place and v != leaves.pad and v != y.leaves[at - place]:
                        a, b = sorted((int(leaves.leaf_of[v]), int(leaves.leaf_of[y.leaves[at - place]])))
                        pairs.add((a, b))
        return pairs

    def leave_out(self, least: float) -> None:
        """Leave out edges that are in no derivation of at least ``least``, by the bounds of the last round."""
        weights = self._rules.copy()
        weights[: self.leaves.n_leaves] += self._coarse
        keep = sweeps.max_marginals(self.leaves.graph, weights) + self._final >= least
        if keep.any() and keep.sum() <= SHRUNK * len(keep):
            self.leaves = self.leaves.part(keep)
            self.classify()


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


def _shrink(at: Descent[LeafRelaxation]) -> None:
    """Edges that are of no use are left out; where only rounding keeps a gap open, the rest is spelt out."""
    oracle, run = at.oracle, at.run
    error = oracle.error(at.u)
    run.allow(error)
    oracle.leave_out(run.score - error)
    if at.best - run.score <= CLOSE * oracle.scale:
        _spelt_out(at)


def _spelt_out(at: Descent[LeafRelaxation]) -> None:
    """The exhaustive dynamic program of what is left, which proves the best."""
    oracle = at.oracle
    forest, leaves = oracle.problem.translation_forest, oracle.leaves
    kept = np.zeros(len(forest.weights), dtype=bool)
    kept[leaves.origin[leaves.origin >= 0]] = True
    rest = forest.with_weights(np.where(kept, forest.weights, -np.inf))
    try:
        graph, weights, origin = spell_out(rest, leaves.lm, leaves.lm_weight, MOST_EDGES)
    except NotSupported:
        return
    edges = origin[sweeps.best(graph, weights)[1]]
    at.run.offer(edges[edges >= 0].tolist(), oracle.problem.score(edges[edges >= 0]))
    at.run.proof = "dynamic program"


def _separated(at: Descent[LeafRelaxation]) -> tuple[LeafRelaxation, Floats] | None:
    """Tightening (LR 5.4): leaves that were confused in the last rounds go into different classes.

    If none were, steps begin anew from the best multipliers; None, the end, if the classes are too many.
    """
    oracle = at.oracle
    pairs = oracle.pairs | oracle.confused()
    if pairs == oracle.pairs:
        if at.norm2 == 0.0:
            return None
        at.restart(oracle, at.best_u)
        return oracle, at.best_u
    left = set(oracle.leaves.leaf_of.tolist())
    oracle.pairs, before = {pair for pair in pairs if left.issuperset(pair)}, oracle.colour
    oracle.colour = coloured(oracle.whole.n_leaves, oracle.pairs)
    try:
        oracle.classify()
        oracle.solve(*oracle.by_kind(at.best_u))
    except NotSupported:
        oracle.colour = before
        oracle.classify()
        return None
    at.restart(oracle, at.best_u)
    return oracle, at.best_u


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
    methods is. The last multipliers are in ``info``, and "partitions", the number of classes that the leaves were in.
    """
    if method == "simple" and problem.lm.order > 2:
        raise NotSupported(
            f'the simple algorithm is for bigram models (LR 5.2); this one has order {problem.lm.order}. Use "paths".'
        )
    extent = problem.extent()
    run: Run[list[int]] = Run(max_iterations=max_iterations, time_limit=time_limit, scale=extent.size)
    leaves = Leaves(problem.translation_forest, problem.lm, problem.lm_weight)
    u = np.zeros((leaves.order - 1) * (leaves.n_leaves + leaves.n_arcs))
    rule = step or polyak(FACTOR, patience=PATIENCE, shrink=SHRINK)
    start = (run, LeafRelaxation(problem, leaves, method), u, rule)
    if method != "simple":  # nothing should return less than cube pruning
        edges = cube_pruning(problem.translation_forest, problem.lm, problem.lm_weight).edges
        run.offer(edges, problem.score(np.array(edges)))
    hooks: Any = {"window": WINDOW, "search": _shrink, "tighten": _separated} if method == "partitions" else {}
    at = descend(*start, max_iterations=max_iterations, **hooks)
    if run.structure is None:
        run.give_up("derivation", NO_DERIVATION)
    bound, structure = run.score if run.proof else max(at.best, run.score), np.array(run.structure, dtype=np.int64)
    duals = {"pairs": np.empty((0, 3)), "bound": np.array([bound])}
    error = max(at.oracle.error(at.best_u), run.error, problem.dual_error({"pairs": duals["pairs"]}))
    run.info |= {"step": repr(rule), "partitions": int(at.oracle.colour.max()) + 1, "leaves": leaves.n_leaves}
    run.info["leaf multipliers"] = at.oracle.by_kind(at.u)[0]
    certificate = certified(partial(problem.terms, structure), run.score, bound, error, kind="dual", duals=duals)
    return run.result(structure, certificate)
