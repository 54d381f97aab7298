"""The derivation of a lexicalised tree in the graph of its sentence's normal form."""

from collections.abc import Callable, Sequence

import numpy as np

from certus.constituency.lexicalize import Spines
from certus.constituency.lexicalized_normal import LexicalizedGraph

Found = tuple[int, list[Callable[[], "Found"]]] | None  # an edge and how to go on, left to right; None if it has none


def edges_of(graph: LexicalizedGraph, parts: Spines, node: Sequence[int]) -> list[int] | None:
    """The edges of a tree, head before tails; None if it uses a forbidden part. ``node[m]`` is the node of word m."""
    tree = _Tree(graph, parts, node)
    edges, agenda = list[int](), [tree.root]
    while agenda:
        found = agenda.pop()()
        if found is None:
            return None
        edges.append(found[0])
        agenda.extend(reversed(found[1]))
    return edges


class _Tree:
    """A tree, seen as items of the chart. Words count from 1, as in Spines; the chart counts from 0."""

    def __init__(self, graph: LexicalizedGraph, parts: Spines, node: Sequence[int]) -> None:
        self.graph, self.chart, self.node, self.head = graph, graph.chart, node, parts.head
        n = graph.chart.n
        self.ends = [list(range(n + 1)), list(range(n + 1))]  # first and last word below each
        for w in range(1, n + 1):
            m = w
            while m:
                self.ends[0][m], self.ends[1][m] = min(self.ends[0][m], w), max(self.ends[1][m], w)
                m = parts.head[m]
        self.path: list[list[int]] = []  # nodes of each word from the bare tag up
        for v in node:
            path = [v]
            while v >= 0 and graph.chart.t.node_below[path[-1]] >= 0:
                path.append(int(graph.chart.t.node_below[path[-1]]))
            self.path.append(path[::-1])
        self.modifiers: dict[tuple[int, int, int], list[int]] = {}  # head, level, side -> from the inside out
        for d, words in enumerate((range(n, 0, -1), range(1, n + 1))):
            for m in words:
                h = parts.head[m]
                if h and d == int(m > h):
                    self.modifiers.setdefault((h, parts.level[m], d), []).append(m)

    def group(self, m: int) -> int:
        return int(self.chart.t.node_group[self.node[m]])

    def span(self, m: int) -> int:
        i, j = self.ends[0][m] - 1, self.ends[1][m] - 1
        return j * (j + 1) // 2 + i

    def whole(self, m: int) -> int:
        return self.chart.whole_at + self.span(m) * len(self.chart.t.group_word) + self.group(m)

    def state(self, h: int, k: int, d: int, r: int) -> int:
        """After r modifiers on a level."""
        return 0 if r == 0 else 2 - int(self.chart.label[self.group(self.modifiers[h, k, d][r - 1])]) % 2

    def end(self, h: int, k: int, d: int, r: int) -> int:
        """Where the half of word h ends after r modifiers on level k."""
        while r == 0:
            if k == 0:
                return h - 1
            k -= 1
            r = len(self.modifiers.get((h, k, d), ()))
        return self.ends[d][self.modifiers[h, k, d][r - 1]] - 1

    def half(self, h: int, k: int, d: int, r: int) -> int:
        """The open half with r modifiers on level k; -1 for none."""
        at = (d, np.array([self.path[h][k]]), np.array([self.state(h, k, d, r)]), np.array([self.end(h, k, d, r)]))
        return int(self.chart.open_item(*at)[0])

    def finished(self, h: int, k: int, d: int) -> int:
        r = len(self.modifiers.get((h, k, d), ()))
        return int(self.chart.done_item(d, np.array([self.path[h][k]]), np.array([self.end(h, k, d, r)]))[0])

    # -- edges: each method finds that of one item -----------------------------------------------------------------

    def root(self) -> Found:
        m = self.head.index(0, 1)
        return self._edge(self.chart.root_item, [self.whole(m)], [lambda: self._phrase(m)])

    def _phrase(self, m: int) -> Found:
        k = len(self.path[m]) - 1
        if k == 0:
            return self._edge(self.whole(m), [], [])
        tails = [self.finished(m, k, d) for d in range(2)]
        return self._edge(self.whole(m), tails, [lambda: self._finished(m, k, 0), lambda: self._finished(m, k, 1)])

    def _finished(self, h: int, k: int, d: int) -> Found:
        r = len(self.modifiers.get((h, k, d), ()))
        return self._edge(self.finished(h, k, d), [self.half(h, k, d, r)], self._inner(h, k, d, r))

    def _inner(self, h: int, k: int, d: int, r: int) -> "list[Callable[[], Found]]":
        """How to go on with an open half."""
        if r > 0:
            return [lambda: self._half(h, k, d, r)]
        return [lambda: self._finished(h, k - 1, d)] if k > 1 else []

    def _half(self, h: int, k: int, d: int, r: int) -> Found:
        m = self.modifiers[h, k, d][r - 1]
        c, q = int(self.chart.t.node_context[self.path[h][k]]), int(self.chart.label[self.group(m)]) % 2
        bit = 3 * q + self.state(h, k, d, r - 1)
        item = self.chart.next_at + (self.span(m) * len(self.chart.t.context_word) + c) * 6 + bit
        modifier = [lambda: self._edge(item, [self.whole(m)], [lambda: self._phrase(m)])]
        tails = [self.half(h, k, d, r - 1), item]
        return self._edge(self.half(h, k, d, r), tails, self._inner(h, k, d, r - 1) + modifier)

    def _edge(self, item: int, tails: list[int], then: "list[Callable[[], Found]]") -> Found:
        """The edge from the tails to an item."""
        space = self.graph.graph
        v, wanted = self.graph.vertex(item), [self.graph.vertex(tail) for tail in tails if tail >= 0]
        if v < 0 or -1 in wanted:
            return None
        for e in range(int(space.in_ptr[v]), int(space.in_ptr[v + 1])):
            if space.tail[space.tail_ptr[e] : space.tail_ptr[e + 1]].tolist() == wanted:
                return e, then
        return None
