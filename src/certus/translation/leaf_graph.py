"""Leaves of a translation forest and the paths between them (LR 5.3, SYN 5): what the relaxations on leaves share.

A leaf is a word within a vertex (``TranslationForest.leaf_graph``). A derivation walks from leaf to leaf through the
vertices in between: up out of the left one, across, down to the right one. Each vertex v has two ports, up(v) and
down(v); an edge with head v0 and tail v1 .. vk has the states (LR fig. 5-5, in the form of SYN fig. 2)

    (down v0, down v1),   (up vj, down v(j+1)) for j < k,   (up vk, up v0),

each an arc from port to port. The arcs on a path between two leaves first go up, then across, then down, so the graph
of ports has no cycle. n-grams are chains of leaves v_{n-1} .. v_1 v_0, with a pad before <s> as often as needed.
"""

from functools import cached_property
from itertools import product

import numpy as np

from certus.checks import Bools, Floats, Ints
from certus.errors import NotSupported
from certus.translation.forest import TranslationForest
from certus.translation.language_model import LanguageModel

BEGIN, END = 0, 1  # leaves
MOST_CHAINS = 4_000_000


class Leaves:
    """Leaves 0 .. n_leaves - 1 of a forest, the pad ``n_leaves``, ports, arcs, and scores of chains."""

    def __init__(self, forest: TranslationForest, lm: LanguageModel, lm_weight: float) -> None:
        self.forest, self.lm, self.lm_weight = forest, lm, lm_weight
        self.order = max(lm.order, 2)
        leaves = forest.leaf_graph()
        self.graph = leaves.graph
        self.n_leaves = self.pad = int((leaves.word != -3).sum())
        self.origin = leaves.edge
        ids = lm.word_ids(forest.words)
        self.words = np.array(
            [lm.begin, lm.end, *(int(ids[w]) for w in leaves.word[2 : self.n_leaves])], dtype=np.int64
        )
        self.weights = np.where(self.origin >= 0, np.append(forest.weights, 0.0)[self.origin], 0.0)
        if (self.n_leaves + 1) ** self.order > MOST_CHAINS:
            raise NotSupported(
                f"{self.n_leaves} leaves have more than {MOST_CHAINS} chains of {self.order}; this method is for small "
                'forests. Use method="search".'
            )
        number: dict[tuple[int, int], int] = {}
        self.states: list[list[int]] = []  # per edge of the graph: its arcs
        for e in range(self.graph.n_edges):
            tail = self.graph.tail_of(e).tolist()
            head = int(self.graph.heads[e])
            if not tail and head >= self.n_leaves:
                raise NotSupported("a rule yields nothing; paths between leaves need words in every rule.")
            ports = [self.down(head), *(port for v in tail for port in (self.down(v), self.up(v))), self.up(head)]
            pairs = [(ports[k], ports[k + 1]) for k in range(0, len(ports) - 1, 2)] if tail else []
            self.states.append([number.setdefault(pair, len(number)) for pair in pairs])
        self.source = np.array([a for a, _ in number], dtype=np.int64)
        self.target = np.array([b for _, b in number], dtype=np.int64)
        self.n_arcs = len(number)
        self.arc_of = number
        n = self.graph.n_vertices
        self._ports = [*(self.up(v) for v in range(n)), *(self.down(v) for v in reversed(range(n)))]
        self._into: list[Ints] = [np.flatnonzero(self.target == port) for port in range(2 * n)]

    def down(self, v: int) -> int:
        """The port by which v is entered."""
        return 2 * v

    def up(self, v: int) -> int:
        """The port by which v is left."""
        return 2 * v + 1

    def best_paths(self, u: Floats) -> tuple[Floats, Ints]:
        """Best sums of -u over the arcs from leaf a to leaf b, [a, b], -inf without a path; pads cost nothing.

        Also the last arc on the best path from leaf a to each port, [port, a].
        """
        size = self.n_leaves
        value = np.full((2 * self.graph.n_vertices, size), -np.inf)
        back = np.full(value.shape, -1, dtype=np.int64)
        value[self.up(0) : 2 * size : 2][np.arange(size), np.arange(size)] = 0.0
        for port in self._ports:
            arcs = self._into[port]
            if len(arcs):
                reached = value[self.source[arcs]] - u[arcs, None]
                best = reached.argmax(axis=0)
                value[port] = reached[best, np.arange(size)]
                back[port] = np.where(value[port] > -np.inf, arcs[best], -1)
        paths = np.full((size + 1, size + 1), -np.inf)
        paths[:size, :size] = value[self.down(0) : 2 * size : 2].T
        paths[self.pad, [BEGIN, self.pad]] = 0.0
        return paths, back

    def path(self, back: Ints, a: int, b: int) -> list[int]:
        """Arcs of the best path from leaf a to leaf b; none if a is the pad."""
        arcs: list[int] = []
        port = self.down(b)
        while a != self.pad and port != self.up(a):
            arcs.append(int(back[port, a]))
            port = int(self.source[arcs[-1]])
        return arcs

    @cached_property
    def follows(self) -> Bools:
        """[a, b]: whether there is a path from leaf a to leaf b; every true neighbour is among them."""
        return self.best_paths(np.zeros(self.n_arcs))[0] > -np.inf

    @cached_property
    def scores(self) -> Floats:
        """[v_{n-1}, .., v_1, v_0]: weighted log probability of v_0 after the others; -inf for chains with no paths."""
        n, size = self.order, self.n_leaves + 1
        out = np.full((size,) * n, -np.inf)
        state_of: dict[tuple[int, ...], int] = {}
        known: dict[tuple[int, int], float] = {}
        for context in self.chains(n - 1):
            words = tuple(int(self.words[v]) for v in context if v != self.pad)
            if words not in state_of:
                state = 0
                for w in words:
                    state = self.lm.advance(state, w)[1]
                state_of[words] = state
            state = state_of[words]
            for v in np.flatnonzero(self.follows[context[-1]]).tolist():
                if v == BEGIN or v == self.pad:
                    out[(*context, v)] = 0.0
                    continue
                key = (state, int(self.words[v]))
                if key not in known:
                    known[key] = self.lm_weight * self.lm.advance(*key)[0]
                out[(*context, v)] = known[key]
        return out

    def chains(self, length: int) -> list[tuple[int, ...]]:
        """All chains of leaves and pads that paths connect."""
        chains: list[tuple[int, ...]] = [(v,) for v in range(self.n_leaves + 1)]
        for _ in range(length - 1):
            chains = [(*c, v) for c in chains for v in np.flatnonzero(self.follows[c[-1]]).tolist()]
        return chains

    def walk(self, edges: list[int]) -> tuple[list[int], list[list[int]]]:
        """Leaves of a derivation of the graph, and the arcs of the path to each from the one before, none to <s>."""
        leaves: list[int] = []
        paths: list[list[int]] = []
        rest = iter(edges)
        arcs: list[int] = []
        pending: list[tuple[int, int]] = [(self.graph.root, -1)]  # (vertex, -1), or (-1, arc) between two of them
        while pending:
            v, arc = pending.pop()
            if v < 0:
                arcs.append(arc)
                continue
            e = next(rest)
            if v < self.n_leaves:
                leaves.append(v)
                paths.append(arcs)
                arcs = []
                continue
            states = self.states[e]
            pending.append((-1, states[-1]))
            for k, child in reversed(list(enumerate(self.graph.tail_of(e).tolist()))):
                pending.append((child, -1))
                pending.append((-1, states[k]))
        paths[0] = []
        return leaves, paths


def class_maximum(values: Floats, classes: Ints, n_classes: int, axes: int) -> Floats:
    """Maximum of an array over the members of each class, along each of its first ``axes`` axes."""
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], np.arange(n_classes))
    for axis in range(axes):
        values = np.maximum.reduceat(values.take(order, axis=axis), starts, axis=axis)
    return values


def tuples(n_classes: int, length: int) -> list[tuple[int, ...]]:
    """All tuples of classes, in the order of a flat index."""
    return list(product(range(n_classes), repeat=length))
