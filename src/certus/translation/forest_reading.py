"""The part of a translation forest whose words an automaton accepts: a translation forest again.

What a derivation does to an automaton is a function from states to states, and those of a forest are few: a vertex v
becomes a vertex (v, f) for each function f that one of its derivations has, and an edge one for each choice among the
vertices of its tail. Where the words that matter cannot stand, nothing is multiplied. Plain Python, no kernel, in time
of the edges that come out.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from certus.certificates.ragged import offsets
from certus.checks import Floats, Ints
from certus.errors import NotSupported
from certus.hypergraph import Hypergraph
from certus.translation.forest import TranslationForest
from certus.translation.word_reader import REFUSED, WordReader

MOST_EDGES = 20_000_000
IDENTITY = 0


class _Functions:
    """Functions of states, numbered as they come; 0 is the identity, and -1 the one that refuses everything."""

    def __init__(self, reader: WordReader) -> None:
        self.n_states = reader.n_states
        self.number: dict[bytes, int] = {}
        self.values: list[Ints] = []
        self.composed: dict[tuple[int, int], int] = {}
        self.of(np.arange(self.n_states))

    def of(self, values: Ints) -> int:
        if (values < 0).all():
            return REFUSED
        key = values.astype(np.int32).tobytes()
        if key not in self.number:
            self.number[key] = len(self.values)
            self.values.append(values)
        return self.number[key]

    def then(self, f: int, g: int) -> int:
        """First f, then g."""
        if f == IDENTITY or g == REFUSED:
            return g
        if g == IDENTITY or f == REFUSED:
            return f
        found = self.composed.get((f, g))
        if found is None:
            a, b = self.values[f], self.values[g]
            found = self.composed[f, g] = self.of(np.where(a < 0, REFUSED, b[a]))
        return found


class Side(NamedTuple):
    """A target side: the vertices of its tail, and the functions of the words before, between and after them."""

    tail: tuple[int, ...]
    words: tuple[int, ...]


class ReadForest(NamedTuple):
    """The part of a forest that is accepted, and where its edges come from; -1 for those into the new root."""

    forest: TranslationForest
    origin: Ints


class ForestReading:
    """The accepted part of a forest."""

    def __init__(self, forest: TranslationForest, reader: WordReader) -> None:
        self.forest, self.reader = forest, reader.useful
        self.functions = _Functions(self.reader)
        alphabet = [self.functions.of(self.reader.after([word])) for word in forest.words]
        self.sides = _sides(forest, alphabet, self.functions)
        self.number: dict[tuple[int, int], int] = {}  # (vertex, function) -> new vertex
        self.edge: dict[tuple[int, tuple[int, ...]], int] = {}  # (edge, new tail) -> new edge
        self.read = self._made(*self._spelt_out())

    def _spelt_out(self) -> tuple[list[tuple[int, int]], list[list[tuple[int, tuple[int, ...]]]]]:
        """New vertices (v, f), and for each the edges into it with their tails of new vertices."""
        graph, then, weights = self.forest.graph, self.functions.then, self.forest.weights.tolist()
        vertices, entering = list[tuple[int, int]](), list[list[tuple[int, tuple[int, ...]]]]()
        below: list[list[tuple[int, int]]] = [[] for _ in range(graph.root + 1)]  # (function, new vertex)
        total, in_ptr = 0, graph.in_ptr.tolist()
        for v in range(graph.root + 1):
            found: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
            for e in range(in_ptr[v], in_ptr[v + 1]):
                if weights[e] == -np.inf:
                    continue
                tail, words = self.sides[e]
                if not tail:
                    if words[0] != REFUSED:
                        found.setdefault(words[0], []).append((e, ()))
                    continue
                for choice in product(*[below[u] for u in tail]):
                    f = words[0]
                    for (g, _), w in zip(choice, words[1:], strict=True):
                        f = then(then(f, g), w)
                        if f == REFUSED:
                            break
                    if f != REFUSED:
                        found.setdefault(f, []).append((e, tuple([x for _, x in choice])))
            for f, edges in found.items():
                below[v].append((f, len(vertices)))
                vertices.append((v, f))
                entering.append(edges)
                total += len(edges)
            if total > MOST_EDGES:
                raise NotSupported(f"the accepted part of the forest has more than {MOST_EDGES} edges; prune it.")
        return vertices, entering

    def _made(self, vertices: list[tuple[int, int]], entering: list[list[tuple[int, tuple[int, ...]]]]) -> ReadForest:
        """What the new root reaches: its edges come from the vertices of the old one that end in a final state."""
        root, reader = self.forest.graph.root, self.reader
        ends = []
        for x, (v, f) in enumerate(vertices):
            q = int(self.functions.values[f][reader.initial]) if v == root else REFUSED
            if q >= 0 and reader.final[q]:
                ends.append(x)
        used = np.zeros(len(vertices), dtype=bool)
        used[ends] = True
        for x in range(len(vertices) - 1, -1, -1):
            if used[x]:
                for _, tail in entering[x]:
                    for y in tail:
                        used[y] = True
        place = np.cumsum(used) - 1
        origin, tails, degree = list[int](), list[Sequence[int]](), list[int]()
        for x in np.flatnonzero(used).tolist():
            self.number[vertices[x]] = int(place[x])
            degree.append(len(entering[x]))
            for e, tail in entering[x]:
                moved = tuple([int(place[y]) for y in tail])
                self.edge[e, moved] = len(origin)
                origin.append(e)
                tails.append(moved)
        for x in ends:
            self.edge[-1, (int(place[x]),)] = len(origin)
            origin.append(-1)
            tails.append((int(place[x]),))
        degree.append(len(ends))
        return ReadForest(_forest(self.forest, degree, tails, origin), np.array(origin, dtype=np.int64))

    def derivation(self, edges: Sequence[int]) -> list[int] | None:
        """The edges of a derivation of the forest in the accepted part; None if it is not there."""
        then = self.functions.then
        found: list[tuple[int, int, list[int]]] = []  # of what stands to the right: function, vertex, edges
        for e in reversed(edges):
            tail, words = self.sides[e]
            parts = [found.pop() for _ in tail]
            f = words[0]
            for (g, _, _), w in zip(parts, words[1:], strict=True):
                f = then(then(f, g), w)
            new = self.edge.get((e, tuple(x for _, x, _ in parts)))
            vertex = self.number.get((int(self.forest.graph.heads[e]), f))
            if new is None or vertex is None:
                return None
            found.append((f, vertex, [new, *(k for _, _, ks in parts for k in ks)]))
        ((_, vertex, new_edges),) = found
        top = self.edge.get((-1, (vertex,)))
        return None if top is None else [top, *new_edges]


def _sides(forest: TranslationForest, alphabet: list[int], functions: _Functions) -> list[Side]:
    graph, tail, tail_ptr = forest.graph, forest.graph.tail.tolist(), forest.graph.tail_ptr.tolist()
    token, token_ptr, out = forest.token.tolist(), forest.token_ptr.tolist(), list[Side]()
    for e in range(graph.n_edges):
        words, f = list[int](), IDENTITY
        for t in token[token_ptr[e] : token_ptr[e + 1]]:
            if t < 0:
                words.append(f)
                f = IDENTITY
            else:
                f = functions.then(f, alphabet[t])
        out.append(Side(tuple(tail[tail_ptr[e] : tail_ptr[e + 1]]), (*words, f)))
    return out


def _forest(
    forest: TranslationForest, degree: list[int], tails: list[Sequence[int]], origin: list[int]
) -> TranslationForest:
    """The new forest, without features; sides of edges are those of the old ones, of the new root's one unit."""
    graph = Hypergraph(
        offsets(np.array(degree, dtype=np.int64)),
        offsets(np.array([len(t) for t in tails], dtype=np.int64)),
        np.array([x for t in tails for x in t], dtype=np.int64),
        len(degree) - 1,
    )
    token, token_ptr = forest.token, forest.token_ptr
    sides = [token[token_ptr[e] : token_ptr[e + 1]] if e >= 0 else np.array([~0]) for e in origin]
    flat, size = (
        np.concatenate([np.zeros(0, dtype=np.int32), *sides]),
        np.array([len(s) for s in sides], dtype=np.int64),
    )
    weights: Floats = np.append(forest.weights, 0.0)[np.array(origin, dtype=np.int64)]
    return TranslationForest(graph, offsets(size), flat, forest.words, weights)
