"""Phrase structure in normal form: the chart of a sentence as a graph, made in numpy.

Where a symbol spans words i to j is kept as bits: for each symbol and start the ends, for each symbol and end the
starts. A rule then builds a span if the ends of its left child and the starts of its right child have a bit in common.
Which items there are is found bottom up; then, top down, which of them trees use, and by which edges.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.certificates.assembling import Layers, normal_form
from certus.certificates.normal import Graph, NormalForm
from certus.checks import Floats, Ints
from certus.constituency.indexed import Indexed


class Items(NamedTuple):
    """Words of a sentence under their tags: position, base of the symbol, weight and flat cell of the view "tags"."""

    position: Ints
    base: NDArray[np.int32]
    weight: Floats
    cell: Ints


class _Edges(NamedTuple):
    """Symbols of spans of one width, and all edges to them; tails are items; -1 where there is no part."""

    items: Ints
    degree: Ints
    tails: Ints  # (E, any)
    parts: Ints  # (E, any)


class ParseGraph(NamedTuple):
    """The normal form of a sentence; its one space; the vertices of items; the parts of chains."""

    form: NormalForm
    graph: Graph
    number: NDArray[np.int32]  # (i, j, symbol) -> vertex, -1 for none
    chains: Ints

    def edge(self, v: int, tails: Sequence[int], part: int | None = None) -> int:
        """The edge into v with these tails, and this part (-1 for none) if it is given; -1 if there is none."""
        g = self.graph
        first, last = int(g.in_ptr[v]), int(g.in_ptr[v + 1])
        table = g.tail[g.tail_ptr[first] : g.tail_ptr[last]].reshape(last - first, -1)
        found = np.arange(first, last)
        if table.shape[1] == len(tails):
            found = found[(table == np.array(tails, dtype=np.int64)).all(axis=1)]
            for e in found.tolist():
                own = g.part[g.part_ptr[e] : g.part_ptr[e + 1]].tolist()
                if part is None or own == ([part] if part >= 0 else []):
                    return int(e)
        return -1


class _Chart:
    def __init__(self, n: int, rules: Indexed, words: Items, tags: int) -> None:
        self.n, self.rules, self.words = n, rules, words
        order = rules.by_parent[rules.weight[rules.by_parent] > -np.inf]
        self.rule, self.parent, self.left, self.right = (
            order,
            rules.parent[order],
            rules.left[order],
            rules.right[order],
        )
        self.chain = np.flatnonzero(rules.chain_weight > -np.inf)
        self.top, self.base = rules.chain_top[self.chain], rules.chain_base[self.chain]
        self.alive = np.zeros((n + 1, n + 1, rules.size), dtype=bool)
        shape = (n + 1, rules.size, n // 64 + 1)
        self.ends, self.starts = np.zeros(shape, dtype=np.uint64), np.zeros(shape, dtype=np.uint64)
        self.used = np.zeros_like(self.alive)
        sizes = (len(rules.weight), len(rules.chain_weight), len(words.weight))
        self.chain_part, self.word_part, self.cell_part = np.cumsum(sizes).tolist()  # rules come first

    def build(self) -> None:
        """Which symbols span what, bottom up: all spans of a width at once."""
        for width in range(1, self.n + 1):
            i = np.arange(self.n - width + 1)
            here = np.zeros((len(i), self.rules.size), dtype=bool)
            if width == 1:
                known = self.words.weight > -np.inf
                here[self.words.position[known], self.words.base[known]] = True
            else:
                for at in i.tolist():  # few rules cut a span: one by one they stay in the cache
                    cut = self.ends[at, self.left] & self.starts[at + width, self.right]
                    here[at, self.parent[cut.any(axis=1)]] = True
            row, chain = np.nonzero(here[:, self.base])
            here[row, self.top[chain]] = True
            self.alive[i, i + width] = here
            row, symbol = np.nonzero(here)
            start, end = i[row], i[row] + width
            self.ends[start, symbol, end // 64] |= np.uint64(1) << (end % 64).astype(np.uint64)
            self.starts[end, symbol, start // 64] |= np.uint64(1) << (start % 64).astype(np.uint64)

    def item(self, i: Ints, j: Ints, symbol: NDArray[np.integer]) -> Ints:
        number: Ints = (i * (self.n + 1) + j) * self.rules.size + symbol
        return number

    def edges(self) -> Iterator[_Edges]:
        """The symbols that trees use, from the top down."""
        self.used[0, self.n, self.rules.root] = True
        for width in range(self.n, 0, -1):
            yield self._chained(width)
            yield self._words() if width == 1 else self._ruled(width)

    def _spans(self, width: int) -> tuple[Ints, NDArray[np.bool_], NDArray[np.bool_]]:
        """Where spans of a width start; which symbols are used there, and which there are."""
        i = np.arange(self.n - width + 1)
        return i, self.used[i, i + width], self.alive[i, i + width]

    def _chained(self, width: int) -> _Edges:
        starts, used, alive = self._spans(width)
        row, c = np.nonzero(used[:, self.top] & alive[:, self.base])
        i = starts[row]
        self.used[i, i + width, self.base[c]] = True
        source = self.rules.source_chain[self.chain[c]]
        parts = np.where(source >= 0, self.chain_part + self.chain[c], -1)[:, None]
        return self._of(width, row, self.top[c], self.item(i, i + width, self.base[c])[:, None], parts, tops=True)

    def _words(self) -> _Edges:
        w = self.words
        q = np.flatnonzero((w.weight > -np.inf) & self.used[w.position, w.position + 1, w.base])
        q = q[np.lexsort((w.base[q], w.position[q]))]
        parts = np.stack((self.word_part + q, self.cell_part + w.cell[q]), axis=1)
        return self._of(1, w.position[q], w.base[q], np.empty((len(q), 0), dtype=np.int64), parts, tops=False)

    def _ruled(self, width: int) -> _Edges:
        starts, used, _ = self._spans(width)
        row, r = np.nonzero(used[:, self.parent])
        cut = self.ends[starts[row], self.left[r]] & self.starts[starts[row] + width, self.right[r]]
        some = cut.any(axis=1)
        row, r, cut = row[some], r[some], cut[some]
        k = starts[row, None] + np.arange(1, width)
        word = cut if cut.shape[1] == 1 else np.take_along_axis(cut, k // 64, axis=1)
        at, place = np.nonzero(word >> (k % 64).astype(np.uint64) & np.uint64(1))
        row, r, k = row[at], r[at], k[at, place]
        i = starts[row]
        self.used[i, k, self.left[r]] = True
        self.used[k, i + width, self.right[r]] = True
        tails = np.empty((len(r), 2), dtype=np.int64)
        tails[:, 0] = self.item(i, k, self.left[r])
        tails[:, 1] = self.item(k, i + width, self.right[r])
        return self._of(width, row, self.parent[r], tails, self.rule[r].astype(np.int64)[:, None], tops=False)

    def _of(self, width: int, row: Ints, heads: NDArray[np.integer], tails: Ints, parts: Ints, *, tops: bool) -> _Edges:
        """The edges of the used symbols of all spans of a width, tops or bases, sorted by span and symbol."""
        starts, used, alive = self._spans(width)
        span, symbol = np.nonzero(used & alive & (self.rules.is_top == tops))
        size = self.rules.size
        degree = np.bincount(row * size + heads, minlength=len(starts) * size)[span * size + symbol]
        return _Edges(self.item(starts[span], starts[span] + width, symbol), degree, tails, parts)


def parse_graph(n: int, rules: Indexed, words: Items, tags: int) -> ParseGraph:
    """The graph of all trees of n words."""
    chart = _Chart(n, rules, words, tags)
    chart.build()
    found = chart.edges() if n and chart.alive[0, n, rules.root] else ()
    advice = "Split the sentence, or use a grammar with fewer symbols (smaller horizontal, vertical)."
    layers, number = Layers.from_top(found, chart.alive.size, advice)
    if not layers.vertices:
        layers.add(np.zeros(1, dtype=np.int64), np.empty((0, 0), dtype=np.int64), np.empty((0, 0), dtype=np.int64))
    scores = np.concatenate((rules.weight, rules.chain_weight, words.weight, np.zeros(n * tags)))
    chains = chart.chain_part + np.arange(len(rules.chain_weight))
    cells = {"tags": chart.cell_part + np.arange(n * tags), "chains": chains}
    form = normal_form(layers.graph(), scores, cells)
    (graph,) = form.spaces
    assert isinstance(graph, Graph)
    kept = form._replace(cells={"tags": form.cells["tags"]})
    return ParseGraph(kept, graph, number.reshape(chart.alive.shape), form.cells["chains"])
