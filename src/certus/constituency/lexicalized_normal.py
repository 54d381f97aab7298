"""Lexicalised parsing in normal form: the chart of kernels/lexicalized.py as a graph, made in numpy.

Which items there are is found bottom up, all spans of one width at a time; then, top down, which of them trees use, and
by which edges. Items are those of the kernel, but that an open half in state 0 is the finished half below it, and that
the halves of a bare tag are nothing at all. States are bits: 1 << s.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.certificates.layers import Layers, normal_form
from certus.certificates.normal import Graph, NormalForm
from certus.checks import Bools, Ints
from certus.constituency.lexicalized_tables import Tables
from certus.errors import NotSupported

MOST_EDGES = 20_000_000


class _Layer(NamedTuple):
    """Items and all edges to them; tails are items, -1 for none, parts are numbered as in Chart.form."""

    items: Ints
    degree: Ints
    tails: Ints  # (E, 1 or 2)
    parts: Ints  # (E, 1 or 2)


class _Columns(NamedTuple):
    """Modifiers over spans of one width: for each (span, context, state), the phrases that may be it.

    Column k has the phrases group[first[k]] .. group[last[k] - 1]; their scores are attach[at[k] + attach_ptr of the
    group].
    """

    span: Ints
    context: Ints
    bit: Ints  # 3 q + s
    at: Ints
    first: Ints
    last: Ints
    group: Ints

    def chosen(self, mask: Bools) -> "_Columns":
        span, context, bit, at, first, last = (array[mask] for array in self[:-1])
        return _Columns(span, context, bit, at, first, last, self.group)

    def spread(self) -> tuple[Ints, Ints]:
        """(column, group) of all phrases of all columns."""
        column, place = _spread(self.first, self.last)
        return column, self.group[place]


class Chart:
    """The items of a sentence and the edges of its graph."""

    def __init__(self, t: Tables) -> None:
        self.t, self.n = t, t.n
        n, nodes, groups, contexts = t.n, len(t.node_score), len(t.group_word), len(t.context_word)
        self.word = np.repeat(np.arange(n), np.diff(t.node_ptr))
        self.depth = np.array([len(spine) for spine in t.node_spine], dtype=np.int64)
        self.ok = t.node_score > -np.inf
        self.label = np.repeat(
            np.arange(len(t.group_ptr)), t.group_ptr[:, n] - t.group_ptr[:, 0]
        )  # 2 label + separator
        self.width = (t.context_ptr[:, n] - t.context_ptr[:, 0]).astype(np.int64)
        self.attached = t.attach > -np.inf
        self.stops = ((t.stop > -np.inf) << np.arange(3)[:, None, None]).sum(axis=1).astype(np.uint8)  # (C, side, far)
        self.by_group = np.argsort(t.node_group, kind="stable")[np.count_nonzero(t.node_group < 0) :]
        self.group_nodes = np.searchsorted(t.node_group[self.by_group], np.arange(groups + 1))
        spans = n * (n + 1) // 2
        self.done = np.zeros((2, nodes, n), dtype=bool)
        self.open = np.zeros((2, nodes, n), dtype=np.uint8)
        self.whole = np.zeros((spans, groups), dtype=bool)
        self.next = np.zeros((spans, contexts), dtype=np.uint8)
        self.done_at, self.open_at = 0, 2 * nodes * n
        self.whole_at = self.open_at + 3 * 2 * nodes * n
        self.next_at = self.whole_at + spans * groups
        self.root_item = self.next_at + 6 * spans * contexts

    # -- names of items --------------------------------------------------------------------------------------------

    def done_item(self, d: int, v: NDArray[np.integer], e: Ints) -> Ints:
        """Finished halves; -1 for those of bare tags."""
        return np.where(self.t.node_context[v] >= 0, (d * len(self.word) + v) * self.n + e, -1)

    def open_item(self, d: int, v: Ints, s: Ints, e: Ints) -> Ints:
        own = self.open_at + ((d * len(self.word) + v) * 3 + s) * self.n + e
        return np.where(s == 0, self.done_item(d, self.t.node_below[v], e), own)

    def whole_item(self, span: Ints | int, g: Ints) -> Ints:
        return self.whole_at + span * len(self.t.group_word) + g

    def next_item(self, span: Ints, c: Ints, bit: Ints) -> Ints:
        return self.next_at + (span * len(self.t.context_word) + c) * 6 + bit

    # -- what can be built -----------------------------------------------------------------------------------------

    def build(self) -> None:
        """Fill the chart bottom up."""
        for width in range(self.n):
            for d in range(2):
                self._halves(d, width)
            self._phrases(width)
            columns = self._columns(width)
            column, g = columns.spread()
            alive = np.zeros(len(columns.at), dtype=bool)
            alive[column[self.attached[columns.at[column] + self.t.attach_ptr[g]]]] = True
            for bit in range(6):
                here = alive & (columns.bit == bit)
                self.next[columns.span[here], columns.context[here]] |= np.uint8(1 << bit)

    def _reaching(self, d: int, width: int, nodes: Ints) -> tuple[Ints, Ints]:
        """Those of the nodes whose halves on side d may have this width, and where these end."""
        end = self.word[nodes] + (width if d else -width)
        fits = (end >= 0) & (end < self.n)
        return nodes[fits], end[fits]

    def _between(self, d: int, k: Ints, e: Ints) -> Ints:
        """The spans of modifiers that take a half from k to e."""
        return e * (e + 1) // 2 + k + 1 if d else (k - 1) * k // 2 + e

    def _halves(self, d: int, width: int) -> None:
        t = self.t
        if width == 0:
            bare = np.flatnonzero(self.ok & (t.node_context < 0))
            self.done[d, bare, self.word[bare]] = True
        v, e = self._reaching(d, width, np.flatnonzero(self.ok & (t.node_context >= 0)))
        c, h = t.node_context[v], self.word[v]
        found = np.zeros(len(v), dtype=np.uint8)
        for back in range(width):
            k = h + back if d else h - back
            found |= self.next[self._between(d, k, e), c] & (self.open[d, v, k] * np.uint8(9))
        state = ((found & 7) > 0) * np.uint8(4) + ((found & 56) > 0) * np.uint8(2)
        stops = self.stops[c, d, t.distance[h, e]]
        for depth in range(2, int(self.depth.max(initial=0)) + 1):
            layer = np.flatnonzero(self.depth[v] == depth)
            own, end = v[layer], e[layer]
            bits = state[layer] | self.done[d, t.node_below[own], end]
            self.open[d, own, end] = bits
            self.done[d, own, end] = (bits & stops[layer]) > 0

    def _phrases(self, width: int) -> None:
        v = self.by_group[self.ok[self.by_group]]
        for back in range(width + 1):
            i = self.word[v] - back
            fits = (i >= 0) & (i + width < self.n)
            node, first, last = v[fits], i[fits], i[fits] + width
            made = self.done[0, node, first] & self.done[1, node, last]
            self.whole[(last * (last + 1) // 2 + first)[made], self.t.node_group[node[made]]] = True

    def _columns(self, width: int) -> _Columns:
        """The modifiers that phrases of this width may be."""
        t, n = self.t, self.n
        first = np.arange(n - width)
        spans = (first + width) * (first + width + 1) // 2 + first
        i, g = np.nonzero(self.whole[spans])
        heads = np.arange(n)
        outside = (heads < i[:, None]) | (heads > i[:, None] + width)
        pair, h = np.nonzero(outside & t.allowed[1:, 1:].T[t.group_word[g]])
        i, g = i[pair], g[pair]
        order = np.lexsort((g, h, self.label[g], i))
        i, g, h = i[order], g[order], h[order]
        row = self.label[g]
        new = np.flatnonzero(
            (np.diff(i, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 0) | (np.diff(h, prepend=-1) != 0)
        )
        i, row, h, last = i[new], row[new], h[new], np.append(new[1:], len(g))
        P = row // 2
        low, high = (t.context_ptr[P, h + k].astype(np.int64) for k in range(2))
        far = t.distance[h, np.where(h < i, i - 1, np.minimum(i + width + 1, n - 1))].astype(np.int64)
        block, own = _spread(3 * low, 3 * high)  # 3 c + s
        at = (3 * self.width[P] * far - 3 * t.context_ptr[P, 0].astype(np.int64))[block] + own
        return _Columns(spans[i][block], own // 3, (3 * (row % 2))[block] + own % 3, at, new[block], last[block], g)


class _Uses:
    """Which items of a chart trees use, from the top down, with the edges to them."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.done = np.zeros_like(chart.done)
        self.open = np.zeros_like(chart.open)  # states 1 and 2; state 0 is the finished half below
        self.whole = np.zeros_like(chart.whole)
        self.next = np.zeros_like(chart.next)
        t, n = chart.t, chart.n
        sizes = (len(t.node_score), len(t.attach), t.stop.size, len(t.root_score), (n + 1) ** 2)
        self.attach, self.stop, self.root, self.arc, self.tag = np.cumsum(sizes).tolist()

    def layers(self) -> Iterator[_Layer]:
        """All layers, the root first."""
        yield self._top()
        for width in range(self.chart.n - 1, -1, -1):
            yield self._modifiers(width)
            yield self._phrases(width)
            halves = [self._done(d, width) for d in range(2)]
            opened = [self._open(d, width) for d in range(2)]
            yield from (layer for layers in halves for layer in layers)
            yield from opened

    def _top(self) -> _Layer:
        chart, t = self.chart, self.chart.t
        top = (chart.n - 1) * chart.n // 2
        m = t.group_word + 1
        g = np.flatnonzero((t.root_score > -np.inf) & chart.whole[top]) if chart.n else np.zeros(0, dtype=np.int64)
        self.whole[top : top + 1, g] = True
        parts = np.stack((self.root + g, self.arc + m[g]), axis=1)
        return _Layer(np.array([chart.root_item]), np.array([len(g)]), chart.whole_item(top, g)[:, None], parts)

    def _modifiers(self, width: int) -> _Layer:
        chart, t = self.chart, self.chart.t
        columns = chart._columns(width)
        columns = columns.chosen(self.next[columns.span, columns.context] >> columns.bit & 1 > 0)
        column, g = columns.spread()
        cell = columns.at[column] + t.attach_ptr[g]
        there = chart.attached[cell]
        column, g, cell = column[there], g[there], cell[there]
        span = columns.span[column]
        self.whole[span, g] = True
        arc = (t.context_word[columns.context[column]] + 1) * (chart.n + 1) + t.group_word[g] + 1
        parts = np.stack((self.attach + cell, self.arc + arc), axis=1)
        items = chart.next_item(columns.span, columns.context, columns.bit)
        degree = np.bincount(column, minlength=len(items))
        return _Layer(items, degree, chart.whole_item(span, g)[:, None], parts)

    def _phrases(self, width: int) -> _Layer:
        chart, t = self.chart, self.chart.t
        first = np.arange(chart.n - width)
        spans = (first + width) * (first + width + 1) // 2 + first
        i, g = np.nonzero(self.whole[spans])
        pair, places = _spread(chart.group_nodes[g], chart.group_nodes[g + 1])
        v = chart.by_group[places]
        made = chart.ok[v] & chart.done[0, v, i[pair]] & chart.done[1, v, i[pair] + width]
        pair, v = pair[made], v[made]
        ends = i[pair], i[pair] + width
        for d in range(2):
            self.done[d, v, ends[d]] = True
        tag = chart.word[v] * len(t.tags) + t.group_tag[t.node_group[v]]
        return _Layer(
            chart.whole_item(spans[i], g),
            np.bincount(pair, minlength=len(g)),
            np.stack([chart.done_item(d, v, ends[d]) for d in range(2)], axis=1),
            np.stack((v, self.tag + tag), axis=1),
        )

    def _done(self, d: int, width: int) -> list[_Layer]:
        chart, t = self.chart, self.chart.t
        layers = []
        nodes, end = chart._reaching(d, width, np.flatnonzero(t.node_context >= 0))
        for depth in range(int(chart.depth.max(initial=0)), 1, -1):
            used = (chart.depth[nodes] == depth) & self.done[d, nodes, end]
            v, e = nodes[used], end[used]
            c, far = t.node_context[v], t.distance[chart.word[v], e]
            own, s = np.nonzero((chart.open[d, v, e] & chart.stops[c, d, far])[:, None] >> np.arange(3) & 1)
            node, at = v[own], e[own]
            self.done[d, t.node_below[node[s == 0]], at[s == 0]] = True
            for state in (1, 2):
                self.open[d, node[s == state], at[s == state]] |= np.uint8(1 << state)
            part = self.stop + ((c[own] * 3 + s) * 2 + d) * 3 + far[own]
            tails = chart.open_item(d, node, s, at)
            layers.append(
                _Layer(chart.done_item(d, v, e), np.bincount(own, minlength=len(v)), tails[:, None], part[:, None])
            )
        return layers

    def _open(self, d: int, width: int) -> _Layer:
        chart, t = self.chart, self.chart.t
        nodes, end = chart._reaching(d, width, np.flatnonzero(t.node_context >= 0))
        own, state = np.nonzero(self.open[d, nodes, end][:, None] >> np.arange(1, 3) & 1)
        v, e, state = nodes[own], end[own], state + 1
        c, q = t.node_context[v].astype(np.int64), 2 - state
        k = chart.word[v][:, None] + (np.arange(width) if d else -np.arange(width))
        span = chart._between(d, k, e[:, None])
        both = chart.open[d, v[:, None], k] & chart.next[span, c[:, None]] >> (3 * q)[:, None]
        head, back, s = np.nonzero(both[:, :, None] >> np.arange(3) & 1)
        at, between, node = k[head, back], span[head, back], v[head]
        self.done[d, t.node_below[node[s == 0]], at[s == 0]] = True
        for open_state in (1, 2):
            self.open[d, node[s == open_state], at[s == open_state]] |= np.uint8(1 << open_state)
        bit = 3 * q[head] + s
        for b in range(6):
            self.next[between[bit == b], c[head[bit == b]]] |= np.uint8(1 << b)
        tails = np.stack((chart.open_item(d, node, s, at), chart.next_item(between, c[head], bit)), axis=1)
        items = chart.open_item(d, v, state, e)
        none = np.empty((len(head), 0), dtype=np.int64)
        return _Layer(items, np.bincount(head, minlength=len(v)), tails, none)


class LexicalizedGraph(NamedTuple):
    """The normal form of a sentence, and which vertex each item is."""

    form: NormalForm
    graph: Graph  # the one space of the form
    chart: Chart
    items: Ints  # sorted
    vertices: Ints

    def vertex(self, item: int) -> int:
        """The vertex of an item; -1 if no tree uses it."""
        k = int(np.searchsorted(self.items, item))
        return int(self.vertices[k]) if k < len(self.items) and self.items[k] == item else -1


def spell_out(t: Tables) -> LexicalizedGraph:
    """The graph of all trees of a sentence."""
    chart = Chart(t)
    chart.build()
    uses = _Uses(chart)
    found, edges = [], 0
    for layer in uses.layers():
        found.append(layer)
        edges += len(layer.tails)
        if edges > MOST_EDGES:
            raise NotSupported(
                f"the graph of {t.n} words has more than {MOST_EDGES} edges, too many to check. Ask "
                "allowing(arcs) for fewer arcs, or within(width) for the trees that score not much less than the best."
            )
    number = np.full(chart.root_item + 1, -1, dtype=np.int32)
    layers = Layers()
    while found:
        items, degree, tails, parts = found.pop()
        first = layers.add(degree, np.where(tails >= 0, number[tails], -1), parts)
        number[items] = first + np.arange(len(items))
    scores = np.concatenate(
        (t.node_score, t.attach, t.stop.reshape(-1), t.root_score, np.zeros((t.n + 1) ** 2 + t.n * len(t.tags)))
    )
    cells = {"arcs": uses.arc + np.arange((t.n + 1) ** 2), "tags": uses.tag + np.arange(t.n * len(t.tags))}
    items = np.flatnonzero(number >= 0)
    form = normal_form(layers.graph(), scores, cells)
    (graph,) = form.spaces
    assert isinstance(graph, Graph)
    return LexicalizedGraph(form, graph, chart, items, number[items].astype(np.int64))


def _spread(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """The whole numbers from first to before last of each range, and which range each belongs to."""
    sizes = last - first
    row = np.repeat(np.arange(len(sizes)), sizes)
    return row, np.arange(len(row)) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
