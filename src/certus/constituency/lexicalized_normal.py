"""Lexicalised parsing in normal form: the trees above a score as a graph, from the chart of lexicalized_chart.py.

From the top down, all spans of one width at a time, the items of the chart that are in a tree above the limit, and by
which edges: the best that the rest of a tree adds to an item is known once all larger items are done.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from certus.certificates.assembling import Layers, normal_form
from certus.certificates.normal import Graph, NormalForm
from certus.certificates.ragged import ranges
from certus.checks import Floats, Ints
from certus.constituency.lexicalized_chart import Chart, Scores
from certus.constituency.lexicalized_tables import Tables


class _Layer(NamedTuple):
    """Items and all edges to them; tails are items, -1 for none, parts are numbered as in spell_out."""

    items: Ints
    degree: Ints
    tails: Ints  # (E, 1 or 2)
    parts: Ints  # (E, any)


class _Uses:
    """Which items of a chart trees above the limit use, from the top down, with the edges to them."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        # The most that the rest of a tree adds to each item in use.
        self.done = np.full_like(chart.done, -np.inf)
        self.open = np.full_like(chart.open, -np.inf)  # states 1 and 2; state 0 is the finished half below
        self.whole = np.full_like(chart.whole, -np.inf)
        self.next = np.full_like(chart.next, -np.inf)
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

    def _above(self, score: Floats) -> Ints:
        """Which edges are in a tree above the limit, by the score of the best with each."""
        kept: Ints = np.flatnonzero(score > self.chart.scores.limit)
        return kept

    def _top(self) -> _Layer:
        chart, t = self.chart, self.chart.t
        top = (chart.n - 1) * chart.n // 2
        root = chart.scores.root
        g = self._above(root + chart.whole[top])
        self.whole[top : top + 1, g] = root[g]
        parts = np.stack((self.root + g, self.arc + t.group_word[g] + 1), axis=1)
        return _Layer(np.array([chart.root_item]), np.array([len(g)]), chart.whole_item(top, g)[:, None], parts)

    def _spans(self, width: int) -> Ints:
        first = np.arange(self.chart.n - width)
        spans: Ints = (first + width) * (first + width + 1) // 2 + first
        return spans

    def _modifiers(self, width: int) -> _Layer:
        chart, t, n = self.chart, self.chart.t, self.chart.n
        spans = self._spans(width)
        i, c, q, s = np.nonzero(self.next[spans] > -np.inf)
        rest = self.next[spans[i], c, q, s]
        P, h = chart.context_label[c], t.context_word[c]
        item, g = ranges(t.group_ptr[2 * P + q, i], t.group_ptr[2 * P + q, i + width + 1])
        far = t.distance[h, np.where(h < i, i - 1, np.minimum(i + width + 1, n - 1))].astype(np.int64)
        first, last = (t.context_ptr[P, k].astype(np.int64) for k in (0, n))
        cell = t.attach_ptr[g] + (3 * (last - first) * far + 3 * (c - first) + s)[item]
        added = rest[item] + chart.scores.attach[cell]
        kept = self._above(added + chart.whole[spans[i[item]], g])
        item, g, cell = item[kept], g[kept], cell[kept]
        span = spans[i[item]]
        np.maximum.at(self.whole, (span, g), added[kept])
        arc = (h[item] + 1) * (n + 1) + t.group_word[g] + 1
        parts = np.stack((self.attach + cell, self.arc + arc), axis=1)
        items = chart.next_item(spans[i], c, 3 * q + s)
        return _Layer(items, np.bincount(item, minlength=len(items)), chart.whole_item(span, g)[:, None], parts)

    def _phrases(self, width: int) -> _Layer:
        chart, t = self.chart, self.chart.t
        spans = self._spans(width)
        i, g = np.nonzero(self.whole[spans] > -np.inf)
        pair, places = ranges(chart.group_nodes[g], chart.group_nodes[g + 1])
        v = chart.by_group[places]
        rest = self.whole[spans[i], g][pair] + chart.scores.node[v]
        halves = [chart.done[d, v, i[pair] + d * width] for d in range(2)]
        kept = self._above(rest + halves[0] + halves[1])
        pair, v, rest = pair[kept], v[kept], rest[kept]
        ends = i[pair], i[pair] + width
        for d in range(2):
            np.maximum.at(self.done[d], (v, ends[d]), rest + halves[1 - d][kept])
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
        nodes, end = chart.reaching(d, width, chart.spined)
        for depth in range(int(chart.depth.max(initial=0)), 1, -1):
            used = (chart.depth[nodes] == depth) & (self.done[d, nodes, end] > -np.inf)
            v, e = nodes[used], end[used]
            c, far = t.node_context[v], t.distance[chart.word[v], e]
            rest = self.done[d, v, e][:, None] + chart.scores.stop[c, :, d, far]
            own, s = np.divmod(self._above((rest + chart.open[d, v, e]).reshape(-1)), 3)
            node, at = v[own], e[own]
            self._use_halves(d, node, s, at, rest[own, s])
            part = self.stop + ((c[own] * 3 + s) * 2 + d) * 3 + far[own]
            tails = chart.open_item(d, node, s, at)
            layers.append(
                _Layer(chart.done_item(d, v, e), np.bincount(own, minlength=len(v)), tails[:, None], part[:, None])
            )
        return layers

    def _use_halves(self, d: int, v: Ints, s: Ints, e: Ints, rest: Floats) -> None:
        """Open halves, in whatever state, of trees of which the rest scores so much."""
        first, later = s == 0, s > 0
        np.maximum.at(self.done[d], (self.chart.t.node_below[v[first]], e[first]), rest[first])
        np.maximum.at(self.open[d], (v[later], e[later], s[later]), rest[later])

    def _open(self, d: int, width: int) -> _Layer:
        chart, t = self.chart, self.chart.t
        nodes, end = chart.reaching(d, width, chart.spined)
        own, state = np.nonzero(self.open[d, nodes, end, 1:] > -np.inf)
        v, e, state = nodes[own], end[own], state + 1
        c, q = t.node_context[v].astype(np.int64), 2 - state
        k = chart.word[v][:, None] + (np.arange(width) if d else -np.arange(width))
        span = chart.between(d, k, e[:, None])
        half, modifier = chart.open[d, v[:, None], k], chart.next[span, c[:, None], q[:, None]]
        rest = self.open[d, v, e, state][:, None, None]
        kept = self._above((rest + half + modifier).reshape(-1))
        head, back, s = np.unravel_index(kept, half.shape)
        at, between, node = k[head, back], span[head, back], v[head]
        self._use_halves(d, node, s, at, (rest + modifier).reshape(-1)[kept])
        np.maximum.at(self.next, (between, c[head], q[head], s), (rest + half).reshape(-1)[kept])
        bit = 3 * q[head] + s
        tails = np.stack((chart.open_item(d, node, s, at), chart.next_item(between, c[head], bit)), axis=1)
        items = chart.open_item(d, v, state, e)
        none = np.empty((len(head), 0), dtype=np.int64)
        return _Layer(items, np.bincount(head, minlength=len(v)), tails, none)


class LexicalizedGraph(NamedTuple):
    """The normal form of trees above a limit, and which vertex each item is."""

    form: NormalForm
    graph: Graph  # the one space of the form
    chart: Chart
    items: Ints  # sorted
    vertices: Ints

    def vertex(self, item: int) -> int:
        """The vertex of an item; -1 if no tree uses it."""
        k = int(np.searchsorted(self.items, item))
        return int(self.vertices[k]) if k < len(self.items) and self.items[k] == item else -1


def spell_out(t: Tables, scores: Scores) -> LexicalizedGraph:
    """The graph of the trees of a sentence that score more than the limit, perhaps with some others."""
    chart = Chart(t, scores)
    if not chart.best() > scores.limit:
        return _nothing(chart)
    uses = _Uses(chart)
    advice = "Ask allowing(arcs) for fewer arcs, or within(width) for the trees that score not much less than the best."
    layers, number = Layers.from_top(uses.layers(), chart.root_item + 1, advice)
    own = np.concatenate(
        (t.node_score, t.attach, t.stop.reshape(-1), t.root_score, np.zeros((t.n + 1) ** 2 + t.n * len(t.tags)))
    )
    cells = {"arcs": uses.arc + np.arange((t.n + 1) ** 2), "tags": uses.tag + np.arange(t.n * len(t.tags))}
    items = np.flatnonzero(number >= 0)
    form = normal_form(layers.graph(), own, cells)
    (graph,) = form.spaces
    assert isinstance(graph, Graph)
    return LexicalizedGraph(form, graph, chart, items, number[items].astype(np.int64))


def _nothing(chart: Chart) -> LexicalizedGraph:
    """A graph without trees."""
    none = np.zeros(0, dtype=np.int64)
    graph = Graph(np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.int64), none, np.zeros(1, dtype=np.int64), none)
    cells = {"arcs": np.full((chart.n + 1) ** 2, -1), "tags": np.full(chart.n * len(chart.t.tags), -1)}
    return LexicalizedGraph(NormalForm(np.zeros(0), (graph,), cells), graph, chart, none, none)
