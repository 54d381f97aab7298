"""Phrase structure in normal form: the chart of a sentence as a graph, made in numpy.

Where a symbol spans words i to j is kept as bits: for each symbol and start the ends, for each symbol and end the
starts. A rule then builds a span if the ends of its left child and the starts of its right child have a bit in common.
Which items there are is found bottom up; then, top down, which of them trees use, and by which edges.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.certificates.layers import Layers, normal_form
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
    """Symbols of one span, and all edges to them; tails are items, -1 for none."""

    items: Ints
    degree: Ints
    tails: Ints  # (E, 2)
    parts: Ints  # (E, 2)


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
        """Which symbols span what, bottom up."""
        for width in range(1, self.n + 1):
            for i in range(self.n - width + 1):
                j = i + width
                here = self.alive[i, j]
                if width == 1:
                    here[self.words.base[(self.words.position == i) & (self.words.weight > -np.inf)]] = True
                else:
                    here[self.parent[self._splits(i, j, slice(None)).any(axis=1)]] = True
                here[self.top[here[self.base]]] = True
                self.ends[i, here, j // 64] |= np.uint64(1 << j % 64)
                self.starts[j, here, i // 64] |= np.uint64(1 << i % 64)

    def _splits(self, i: int, j: int, rules: "slice | Ints") -> NDArray[np.uint64]:
        """For each of the rules, the places where it may cut words i to j, as bits."""
        both: NDArray[np.uint64] = self.ends[i, self.left[rules]] & self.starts[j, self.right[rules]]
        return both

    def item(self, i: "int | Ints", j: "int | Ints", symbol: NDArray[np.integer]) -> Ints:
        number: Ints = np.asarray((i * (self.n + 1) + j) * self.rules.size, dtype=np.int64) + symbol
        return number

    def edges(self) -> Iterator[_Edges]:
        """The symbols that trees use, from the top down."""
        self.used[0, self.n, self.rules.root] = True
        for width in range(self.n, 0, -1):
            spans = [(i, i + width) for i in range(self.n - width + 1)]
            yield _joined([self._chained(i, j) for i, j in spans])
            yield _joined([self._words(i) if width == 1 else self._ruled(i, j) for i, j in spans])

    def _chained(self, i: int, j: int) -> _Edges:
        used = self.used[i, j]
        c = np.flatnonzero(used[self.top] & self.alive[i, j, self.base])
        used[self.base[c]] = True
        source = self.rules.source_chain[self.chain[c]]
        tails = np.stack((self.item(i, j, self.base[c]), np.full(len(c), -1)), axis=1)
        parts = np.where(source >= 0, self.chain_part + self.chain[c], -1)
        return self._of(i, j, self.top[c], tails, np.stack((parts, np.full(len(c), -1)), axis=1), tops=True)

    def _words(self, i: int) -> _Edges:
        w = self.words
        q = np.flatnonzero((w.position == i) & (w.weight > -np.inf))
        q = q[self.used[i, i + 1, w.base[q]]]
        q = q[np.argsort(w.base[q], kind="stable")]
        parts = np.stack((self.word_part + q, self.cell_part + w.cell[q]), axis=1)
        return self._of(i, i + 1, w.base[q], np.full((len(q), 2), -1), parts, tops=False)

    def _ruled(self, i: int, j: int) -> _Edges:
        r = np.flatnonzero(self.used[i, j, self.parent])
        bits = self._splits(i, j, r)
        some = bits.any(axis=1)
        r, bits = r[some], bits[some]
        k = np.arange(i + 1, j)
        row, place = np.nonzero(bits[:, k // 64] >> (k % 64).astype(np.uint64) & np.uint64(1))
        r, k = r[row], k[place]
        self.used[i, k, self.left[r]] = True
        self.used[k, j, self.right[r]] = True
        tails = np.stack((self.item(i, k, self.left[r]), self.item(k, j, self.right[r])), axis=1)
        parts = np.stack((self.rule[r], np.full(len(r), -1)), axis=1)
        return self._of(i, j, self.parent[r], tails, parts, tops=False)

    def _of(self, i: int, j: int, heads: NDArray[np.integer], tails: Ints, parts: Ints, *, tops: bool) -> _Edges:
        """The edges of the used symbols of a span, tops or bases, sorted by symbol."""
        symbols = np.flatnonzero(self.used[i, j] & self.alive[i, j] & (self.rules.is_top == tops))
        degree = np.bincount(heads, minlength=self.rules.size)[symbols]
        return _Edges(self.item(i, j, symbols), degree, tails, parts)


def _joined(pieces: list[_Edges]) -> _Edges:
    return _Edges(*(np.concatenate(arrays) for arrays in zip(*pieces, strict=True)))


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
