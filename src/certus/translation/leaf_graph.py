"""Leaves of a translation forest and the paths between them (LR 5.3, SYN 5): what the relaxations on leaves share.

A leaf is a word within a vertex (``TranslationForest.leaf_graph``). A derivation walks from leaf to leaf through the
vertices in between: up out of the left one, across, down to the right one. Each vertex v has two ports, up(v) and
down(v); an edge with head v0 and tail v1 .. vk has the states (LR fig. 5-5, in the form of SYN fig. 2)

    (down v0, down v1),   (up vj, down v(j+1)) for j < k,   (up vk, up v0),

each an arc from port to port. The arcs on a path between two leaves first go up, then across, then down, so the graph
of ports has no cycle. n-grams are chains of leaves v_{n-1} .. v_1 v_0, with a pad before <s> as often as needed.

Few leaves can follow each other: only those pairs are held, and of chains what the language model tells apart. Chains
run through layers, one for each place before the word: a node of a layer is a leaf, the state of the model after the
chain so far, and the classes of the leaves before it (LR 5.4; one class for all without tightening).
"""

from typing import NamedTuple, Self

import numpy as np

from certus import kernels
from certus.checks import Bools, Floats, Ints
from certus.errors import NotSupported
from certus.hypergraph import Hypergraph, sweeps
from certus.translation.forest import Int32, TranslationForest
from certus.translation.language_model import LanguageModel

BEGIN, END = 0, 1  # leaves
MOST_LINKS = 50_000_000  # between layers; some 60 bytes each


class Leaves:
    """Leaves 0 .. n_leaves - 1 of a forest, the pad ``n_leaves``, arcs between ports, and which leaves may be adjacent.

    Vertex v of the graph is left by port v and entered by port 2 V - 1 - v. ``leaf_of`` and ``arc_of`` are the numbers
    of leaves and arcs in the whole forest, where these are but a part of it.
    """

    def __init__(self, forest: TranslationForest, lm: LanguageModel, lm_weight: float) -> None:
        leaves = forest.leaf_graph()
        n = int((leaves.word != -3).sum())
        ids = lm.word_ids(forest.words)
        words = [lm.begin, lm.end, *(int(ids[w]) for w in leaves.word[2:n])]
        self.lm, self.lm_weight, self.order = lm, lm_weight, max(lm.order, 2)
        self._fill(leaves.graph, np.array(words, dtype=np.int32), np.asarray(leaves.edge, dtype=np.int64))
        self.weights = np.where(self.origin >= 0, np.append(forest.weights, 0.0)[self.origin], 0.0)
        self.leaf_of, self.arc_of = np.arange(self.n_leaves), np.arange(self.n_arcs)
        if ((np.diff(leaves.graph.tail_ptr) == 0) & (leaves.graph.heads >= n)).any():
            raise NotSupported("a rule yields nothing; paths between leaves need words in every rule.")

    def _fill(self, graph: Hypergraph, words: Ints, origin: Ints) -> None:
        self.graph, self.words, self.origin = graph, words, origin
        self.n_leaves = self.pad = len(words)
        n, tails = graph.n_vertices, np.diff(graph.tail_ptr)
        inner = np.flatnonzero(tails)  # edges with a tail: down head, then down and up of each vertex, up head
        ptr = np.concatenate(([0], np.cumsum(tails[inner] + 1)))
        source, target = np.empty(ptr[-1], dtype=np.int64), np.empty(ptr[-1], dtype=np.int64)
        first = np.zeros(len(source), dtype=bool)
        first[ptr[:-1]] = True
        last = np.roll(first, -1)
        source[first] = 2 * n - 1 - graph.heads[inner]
        source[~first] = target[~last] = graph.tail
        target[~last] = 2 * n - 1 - target[~last]
        target[last] = graph.heads[inner]
        keys, arc = np.unique(source * (2 * n) + target, return_inverse=True)
        self.source, self.target = np.divmod(keys, 2 * n)
        self.n_arcs = len(keys)
        self._out = np.searchsorted(self.source, np.arange(2 * n + 1))
        owner = np.repeat(inner, tails[inner] + 1)
        from scipy import sparse

        self.uses = sparse.csr_array((np.ones(len(arc)), (owner, arc)), shape=(graph.n_edges, self.n_arcs))
        found, self._second = kernels.leaf_paths.reached(self._out, self.target, self.n_leaves)
        # Pairs of leaves that a path leads from and to, by the first leaf; the pad comes before <s> and itself.
        self.pair_to = np.concatenate((self._second, [BEGIN, self.pad]))
        self.pair_ptr = np.append(found, len(self.pair_to))
        self.pair_from = np.repeat(np.arange(self.n_leaves + 1), np.diff(self.pair_ptr))
        self._states = (np.concatenate(([0], np.cumsum(np.where(tails > 0, tails + 1, 0)))), arc)

    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of leaves that may be adjacent."""
        n = int(self.pair_ptr[-2])
        return list(zip(self.pair_from[:n].tolist(), self.pair_to[:n].tolist(), strict=True))

    def path_values(self, u: Floats) -> Floats:
        """Best sums of -u over the arcs from leaf to leaf, for each pair; pads cost nothing."""
        out, ptr = np.zeros(self.pair_ptr[-1]), self.pair_ptr[:-1]
        kernels.leaf_paths.values(self._out, self.target, u, ptr, self._second, out)
        return out

    def path(self, u: Floats, a: int, b: int) -> Ints:
        """Arcs of the best path from leaf a to leaf b; none if a is the pad."""
        if a == self.pad:
            return np.empty(0, dtype=np.int64)
        found: Ints = kernels.leaf_paths.path(self._out, self.target, u, self.source, a, b)
        return found

    def cells(self) -> tuple[Ints, Ints]:
        """(leaf, arc): every arc that lies on a path from a leaf to another."""
        leaf, arc = kernels.leaf_paths.cells(self._out, self.target, self.n_leaves)
        inner = leaf != END
        return leaf[inner], arc[inner]

    def walk(self, edges: list[int]) -> tuple[list[int], list[list[int]]]:
        """Leaves of a derivation of the graph, and the arcs of the path to each from the one before, none to <s>."""
        leaves: list[int] = []
        paths: list[list[int]] = []
        rest = iter(edges)
        arcs: list[int] = []
        ptr, states = self._states
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
            own = states[ptr[e] : ptr[e + 1]].tolist()
            pending.append((-1, own[-1]))
            for k, child in reversed(list(enumerate(self.graph.tail_of(e).tolist()))):
                pending.append((child, -1))
                pending.append((-1, own[k]))
        paths[0] = []
        return leaves, paths

    def part(self, keep: Bools) -> Self:
        """The leaves of the derivations of these edges of the graph; at least one must be left."""
        graph, edges, vertices = sweeps.subgraph(self.graph, keep)
        part = object.__new__(type(self))
        part.lm, part.lm_weight, part.order = self.lm, self.lm_weight, self.order
        leaves = vertices[vertices < self.n_leaves]
        part._fill(graph, self.words[leaves], self.origin[edges])
        part.weights, part.leaf_of = self.weights[edges], self.leaf_of[leaves]
        n, up = self.graph.n_vertices, np.asarray(vertices, dtype=np.int64)
        port = np.concatenate((up, 2 * n - 1 - up[::-1]))
        keys = port[part.source] * (2 * n) + port[part.target]
        part.arc_of = self.arc_of[np.searchsorted(self.source * (2 * n) + self.target, keys)]
        return part


class Layer(NamedTuple):
    """Links from the nodes of one place to those of the next, sorted by the latter: those into k are ptr[k]:ptr[k + 1].

    ``leaf`` and ``context`` are of the nodes that the links lead to; ``source`` is a node of the layer before.
    """

    ptr: Ints
    source: Ints
    pair: Ints
    leaf: Ints
    context: Ints


class Chains:
    """All chains that end in a word, or, ``after`` so many leaves that follow it, in </s>; by layers, furthest first.

    Place p of a chain is p leaves before its end; chains begin at place ``order - 1`` with any leaf, nodes are leaves
    there. Contexts are numbers made of the classes of leaves, furthest first, each below ``n_classes``. The last layer
    leads to the end: its nodes are words in contexts, and ``score`` is what the model gives each link.
    """

    def __init__(self, leaves: Leaves, classes: Ints, after: int = 0) -> None:
        self.leaves, self.after = leaves, after
        span, n_classes = leaves.order - 1, int(classes.max()) + 1
        lm, word = leaves.lm, np.append(leaves.words, 0)
        leaf: Ints = np.arange(leaves.n_leaves + 1)
        context: Ints = np.zeros(len(leaf), dtype=np.int64)
        state: Int32 = np.zeros(len(leaf), dtype=np.int32)
        if not after:
            kernels.language_model.advance_all(lm.arrays, state, word, np.arange(len(leaf) + 1), np.empty(len(leaf)))
            state[leaves.pad] = 0
        self.layers: list[Layer] = []
        starts, degree = leaves.pair_ptr[:-1], np.diff(leaves.pair_ptr)
        for place in range(span, after, -1):
            count = degree[leaf]
            if count.sum() > MOST_LINKS:
                raise NotSupported(
                    f"{leaves.n_leaves} leaves make more than {MOST_LINKS} links of chains of {leaves.order}, which "
                    'take too much memory. Prune the forest, or use method="search".'
                )
            source = np.repeat(np.arange(len(leaf)), count)
            pair = np.arange(len(source)) + np.repeat(starts[leaf] - np.cumsum(count) + count, count)
            to, last = leaves.pair_to[pair], place == after + 1
            if last:
                wanted = (to != leaves.pad) if not after else (to == END)
                source, pair, to = source[wanted], pair[wanted], to[wanted]
            context = context[source] * n_classes + classes[leaf[source]]
            state, value = state[source], np.zeros(len(source))
            if not after:
                kernels.language_model.advance_all(lm.arrays, state, word[to], np.arange(len(to) + 1), value)
                state[to == leaves.pad] = 0
                value[to == BEGIN] = 0.0
            if last:
                state[:] = 0
            order = np.lexsort((pair, state, context, to))
            source, pair, leaf, context, state = source[order], pair[order], to[order], context[order], state[order]
            new = np.ones(len(order), dtype=bool)
            new[1:] = (leaf[1:] != leaf[:-1]) | (context[1:] != context[:-1]) | (state[1:] != state[:-1])
            first = np.flatnonzero(new)
            leaf, context, state = leaf[first], context[first], state[first]
            self.layers.append(Layer(np.append(first, len(order)), source, pair, leaf, context))
            self.score = leaves.lm_weight * value[order]

    def place_of(self, layer: int) -> int:
        """The place that the links of a layer lead from."""
        return self.leaves.order - 1 - layer

    def best(self, leaf: Floats, paths: list[Floats]) -> tuple[Floats, list[Floats]]:
        """The best chain into each node of the last layer, and for ``choice`` the values of the links of all layers.

        ``leaf[p - 1]`` are costs of leaves, and of the pad, at place p, ``paths[p - 1]`` values of pairs whose first
        leaf is there.
        """
        links: list[Floats] = []
        value = -leaf[-1]
        for k, layer in enumerate(self.layers):
            place = self.place_of(k)
            of_links = value[layer.source] + paths[place - 1][layer.pair]
            if k + 1 == len(self.layers):
                of_links += self.score
            links.append(of_links)
            value = np.maximum.reduceat(of_links, layer.ptr[:-1]) if len(of_links) else of_links
            if k + 1 < len(self.layers):
                value = value - leaf[place - 2][layer.leaf]
        return value, links

    def choice(self, links: list[Floats], node: int) -> list[int]:
        """The pairs of leaves of the best chain into a node of the last layer, nearest first."""
        pairs = []
        for layer, values in zip(reversed(self.layers), reversed(links), strict=True):
            link = int(layer.ptr[node]) + int(values[layer.ptr[node] : layer.ptr[node + 1]].argmax())
            pairs.append(int(layer.pair[link]))
            node = int(layer.source[link])
        return pairs
