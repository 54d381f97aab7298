"""The best of a forest under scores of adjacent words, by first and last words, inside and outside, in numpy.

``Tables`` holds for every unit x of a layout (``forest_sides``) the table inside[x] of the best scores of what it
yields, by its first and last words, and outside[x], the best of all around it. ``edge`` and ``pair``
are the best scores of derivations with each edge, and with each pair of adjacent words. What makes one number of many,
``plus``, ``product`` and ``total``, can be that of another algebra, inside.

Scores are whole numbers held in float64, and no sum of them reaches 2^53, so that nothing is ever rounded; -inf is what
cannot be.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from certus.certificates.ragged import ragged
from certus.checks import Bools, Floats, Ints
from certus.translation.forest_sides import Layout, Sides

SMALL = 1 << 12  # cells of a table for which a product is spelt out at once


def product(a: Floats, b: Floats) -> Floats:
    """[i, j]: max over k of a[i, k] + b[k, j]."""
    (n, inner), m = a.shape, b.shape[1]
    if not (n and inner and m):
        return np.full((n, m), -np.inf)
    if n * m <= SMALL:
        best: Floats = np.maximum.reduce(a[:, None, :] + np.ascontiguousarray(b.T), axis=2)
        return best
    a = np.ascontiguousarray(a.T)
    out: Floats = a[0][:, None] + b[0]
    sums = np.empty_like(out)
    for k in range(1, inner):
        np.add(a[k][:, None], b[k], out=sums)
        np.maximum(out, sums, out=out)
    return out


def largest(terms: Floats) -> Floats:
    """The largest of the terms along the last axis."""
    best: Floats = terms.max(axis=-1, initial=-np.inf)
    return best


class Entries(NamedTuple):
    """How edges enter the table of their vertex: for every first word that an edge may have, one entry.

    ``source`` is the place of what the edge's column has for the word, or of a 0 for an edge that starts with it.
    Entries that end in a word go to a cell of the table, ``cell``; those that end in a unit to a cell of ``heads``
    (hooks, first words), and hooks to ``hook_row`` and ``hook_place`` of the rows.
    """

    edge: Ints
    source: Ints
    cell: Ints
    hooked: Bools
    n_hooks: int
    hook_cell: Ints  # per cell of the rows of the hooks: its cell in a table (hooks, last words)
    hook_source: Ints  # and its place among the values of rows


class Tables:
    """See the head of the file. The top is the last vertex; its tables are of one first and one last word."""

    plus: ClassVar[np.ufunc] = np.maximum
    product = staticmethod(product)
    total = staticmethod(largest)

    def __init__(self, sides: Sides, layout: Layout, q: Floats, first: Bools, last: Bools) -> None:
        self.q, self.sides, self.layout = q, sides, layout
        self.first, self.last = ([np.flatnonzero(row) for row in words] for words in (first, last))
        self._columns = _Vectors(layout.columns.ptr, self.first)
        self._rows = _Vectors(layout.rows.ptr, self.last)
        self.interior = np.empty(len(layout.interior_column))
        self.inside: list[Floats] = [np.zeros((0, 0))] * len(layout.order)
        self._entries: dict[int, Entries] = {}
        self.used = (np.diff(layout.columns.ptr) + np.diff(layout.rows.ptr)) > 0  # interior ones are of columns too
        self.cost = sides.weight.copy()
        edge, v, w = layout.pairs
        np.add.at(self.cost, edge, q[v, w])
        for x in layout.order.tolist():
            self._fill(x)
        self.best = float(self.inside[layout.n_vertices - 1].max(initial=-np.inf))

    # -- inside ----------------------------------------------------------------------------------------------------

    def _fill(self, x: int) -> None:
        """The table of a unit, and what edges above need of it."""
        if x < self.layout.n_vertices:
            self.inside[x] = self._vertex(x)
        else:
            a, b = self.layout.parts[x - self.layout.n_vertices].tolist()
            self.inside[x] = self.product(self.inside[a], self.product(self._links(a, b), self.inside[b]))
        if self.used[x]:
            self._serve(x)

    def _serve(self, x: int) -> None:
        """What edges above need of a unit."""
        table, layout = self.inside[x], self.layout
        at, words = self._columns.of(x), layout.columns.of(x)
        columns = self.product(self.q[self.last[x][:, None], words].T, table.T)
        self._columns.value[at] = columns.reshape(-1)
        words = layout.rows.of(x)
        self._rows.value[self._rows.of(x)] = self.product(self.q[words[:, None], self.first[x]], table).reshape(-1)
        i, j = layout.interiors.ptr[x], layout.interiors.ptr[x + 1]
        if i < j:
            before = self.q[layout.interiors.word[i:j][:, None], self.first[x]]
            after = columns[layout.interior_column[i:j] - layout.columns.ptr[x]]
            self.interior[i:j] = self.total(before + after)
            uses = slice(layout.uses_ptr[i], layout.uses_ptr[j])
            found = np.repeat(self.interior[i:j], np.diff(layout.uses_ptr[i : j + 1]))
            np.add.at(self.cost, layout.uses[uses], found)

    def _links(self, a: int, b: int) -> Floats:
        return self.q[self.last[a][:, None], self.first[b]]

    def _vertex(self, v: int) -> Floats:
        first, last = self.first[v], self.last[v]
        table = np.full((len(first), len(last)), -np.inf)
        if not table.size:
            return table
        entries = self._entries[v] = self._enter(v)
        values = self._columns.value[entries.source] + self.cost[entries.edge]
        straight = ~entries.hooked
        self.plus.at(table.reshape(-1), entries.cell[straight], values[straight])
        if entries.n_hooks:
            heads, tails = self._hooks(v, entries, values)
            self.plus(table, self.product(heads.T, tails), out=table)
        for e, z in self._wholes(v):
            at, cells = self._within(v, z)
            table[at] = self.plus(table[at], self.inside[z][cells] + self.cost[e])
        return table

    def _wholes(self, v: int) -> list[tuple[int, int]]:
        """Edges into v that are one unit, and the units."""
        lo, hi = self.sides.in_ptr[v], self.sides.in_ptr[v + 1]
        layout = self.layout
        at = lo + np.flatnonzero((layout.first[lo:hi] < 0) & (layout.column[lo:hi] < 0))
        return list(zip(at.tolist(), (~layout.first[at]).tolist(), strict=True))

    def _within(self, v: int, z: int) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """Cells of v for the words of z that it has, and the cells of z that these are."""
        rows, columns = _places(self.first[v], self.first[z]), _places(self.last[v], self.last[z])
        own_rows, own_columns = np.flatnonzero(rows >= 0), np.flatnonzero(columns >= 0)
        return (rows[own_rows, None], columns[own_columns]), (own_rows[:, None], own_columns)

    def _enter(self, v: int) -> Entries:
        layout, lo, hi = self.layout, self.sides.in_ptr[v], self.sides.in_ptr[v + 1]
        n_words, n_first, n_last = len(self.q), len(self.first[v]), len(self.last[v])
        row_of, column_of = np.full(n_words, -1), np.full(n_words, -1)
        row_of[self.first[v]], column_of[self.last[v]] = np.arange(n_first), np.arange(n_last)
        own = lo + np.flatnonzero((layout.first[lo:hi] >= 0) | (layout.column[lo:hi] >= 0))
        own = own[self.cost[own] > -np.inf]
        entry, within = ragged(self._columns.size[layout.column[own]])
        edge = own[entry]
        source = self._columns.start[layout.column[edge]] + within
        row = row_of[np.where(layout.first[edge] >= 0, layout.first[edge], self._columns.words[source])]
        hooks, hook = np.unique(layout.row[edge], return_inverse=True)
        n_straight = int(len(hooks) > 0 and hooks[0] < 0)
        hooked = layout.row[edge] >= 0
        cell = np.where(hooked, (hook - n_straight) * n_first + row, 0)
        place = column_of[np.maximum(layout.last[edge], -1)]
        cell[~hooked] = (row * n_last + place)[~hooked]
        kept = (row >= 0) & (hooked | (place >= 0))
        hooks = hooks[n_straight:]
        at, within = ragged(self._rows.size[hooks])
        hook_source = self._rows.start[hooks[at]] + within
        place = column_of[self._rows.words[hook_source]]
        there = place >= 0
        return Entries(
            edge[kept], source[kept], cell[kept], hooked[kept], len(hooks), (at * n_last + place)[there],
            hook_source[there],
        )  # fmt: skip

    def _hooks(self, v: int, entries: Entries, values: Floats) -> tuple[Floats, Floats]:
        """(hooks, first words) what stands before each hook; (hooks, last words) what the hooks yield."""
        heads = np.full((entries.n_hooks, len(self.first[v])), -np.inf)
        self.plus.at(heads.reshape(-1), entries.cell[entries.hooked], values[entries.hooked])
        tails = np.full((entries.n_hooks, len(self.last[v])), -np.inf)
        tails.reshape(-1)[entries.hook_cell] = self._rows.value[entries.hook_source]
        return heads, tails

    # -- outside ---------------------------------------------------------------------------------------------------

    def complete(self, limit: float) -> None:
        """Fill ``outside``, ``edge`` and ``pair``; what is in no score above the limit has less, or -inf."""
        layout = self.layout
        self.outside = [np.full(table.shape, -np.inf) for table in self.inside]
        self.around = np.full(len(self.cost), -np.inf)  # per edge
        self.pair = np.full(self.q.shape, -np.inf)
        self.outside[layout.n_vertices - 1][:] = 0.0
        for x in layout.order[::-1].tolist():
            if self.used[x]:
                self._around_uses(x)
            outside = self.outside[x]
            outside[self.inside[x] + outside <= limit] = -np.inf
            left = outside > -np.inf
            if not left.any():
                continue
            if x >= layout.n_vertices:
                self._around_parts(x, np.flatnonzero(left.any(axis=1)), np.flatnonzero(left.any(axis=0)))
            elif x in self._entries:
                self._around_edges(x)
        self.edge = self.cost + self.around
        edge, v, w = layout.pairs
        np.maximum.at(self.pair, (v, w), self.edge[edge])

    def _around_edges(self, v: int) -> None:
        entries, outside = self._entries[v], self.outside[v]
        source, cost = self._columns.value[entries.source], self.cost[entries.edge]
        above = np.empty(len(entries.edge))
        straight = ~entries.hooked
        above[straight] = outside.reshape(-1)[entries.cell[straight]]
        if entries.n_hooks:
            heads, tails = self._hooks(v, entries, source + cost)
            above[entries.hooked] = product(tails, outside.T).reshape(-1)[entries.cell[entries.hooked]]
            behind = product(heads, outside).reshape(-1)[entries.hook_cell]
            around = self._rows.around
            around[entries.hook_source] = np.maximum(around[entries.hook_source], behind)
        np.maximum.at(self.around, entries.edge, above + source)
        np.maximum.at(self._columns.around, entries.source, above + cost)
        for e, z in self._wholes(v):
            at, cells = self._within(v, z)
            part = outside[at]
            self.around[e] = (self.inside[z][cells] + part).max(initial=-np.inf)
            self.outside[z][cells] = np.maximum(self.outside[z][cells], part + self.cost[e])

    def _around_parts(self, x: int, rows: Ints, columns: Ints) -> None:
        """What is around the two parts of a unit, of whose table these rows and columns are left."""
        a, b = self.layout.parts[x - self.layout.n_vertices].tolist()
        links, outside = self._links(a, b), self.outside[x][np.ix_(rows, columns)]
        before, after = self.inside[a][rows], self.inside[b][:, columns]
        self._raise(a, (rows,), product(outside, product(links, after).T))
        above = product(before.T, outside)
        self._raise(b, (slice(None), columns), product(links.T, above))
        self._paired(self.last[a], self.first[b], links + product(above, after.T))

    def _around_uses(self, x: int) -> None:
        layout, first, last = self.layout, self.first[x], self.last[x]
        at, n = self._columns.of(x), layout.columns.ptr[x + 1] - layout.columns.ptr[x]
        columns, around = (a[at].reshape(n, len(first)) for a in (self._columns.value, self._columns.around))
        i, j = layout.interiors.ptr[x], layout.interiors.ptr[x + 1]
        if i < j:
            uses = layout.uses[layout.uses_ptr[i] : layout.uses_ptr[j]]
            through = np.maximum.reduceat((self.cost + self.around)[uses], layout.uses_ptr[i:j] - layout.uses_ptr[i])
            through[through > -np.inf] -= self.interior[i:j][through > -np.inf]
            above = through[:, None]
            words, of = layout.interiors.word[i:j], layout.interior_column[i:j] - layout.columns.ptr[x]
            before = self.q[words[:, None], first]
            starts = np.flatnonzero(np.diff(of, prepend=-1))
            raised = np.maximum.reduceat(before + above, starts, axis=0)
            around[of[starts]] = np.maximum(around[of[starts]], raised)
            np.maximum.at(self.pair, (words[:, None], first[None, :]), before + columns[of] + above)
        words = layout.columns.of(x)
        links = self.q[last[:, None], words]
        self._raise(x, (), product(around.T, links.T))
        self._paired(last, words, links + product(self.inside[x].T, around.T))
        words = layout.rows.of(x)
        around = self._rows.around[self._rows.of(x)].reshape(len(words), len(last))
        links = self.q[words[:, None], first]
        self._raise(x, (), product(links.T, around))
        self._paired(words, first, links + product(around, self.inside[x].T))

    def _raise(self, x: int, cells: tuple[Any, ...], outside: Floats) -> None:
        self.outside[x][cells] = np.maximum(self.outside[x][cells], outside)

    def _paired(self, before: Ints, after: Ints, through: Floats) -> None:
        cells = before[:, None], after
        self.pair[cells] = np.maximum(self.pair[cells], through)


class _Vectors:
    """Vectors over the words of units, side by side in one array; the last one, number -1, is a 0."""

    def __init__(self, ptr: Ints, words: list[Ints]) -> None:
        sizes = np.array([len(w) for w in words])
        unit = np.repeat(np.arange(len(words)), np.diff(ptr))
        self.size = np.append(sizes[unit], 1)
        self.start = np.cumsum(self.size) - self.size
        self._ptr = self.start[ptr]
        self.words = np.concatenate([*(w for x, w in enumerate(words) for _ in range(ptr[x + 1] - ptr[x])), [-1]])
        self.words = self.words.astype(np.int64)
        self.value = np.zeros(len(self.words))
        self.around = np.full(len(self.words), -np.inf)

    def of(self, x: int) -> slice:
        """Where the vectors of a unit stand."""
        return slice(self._ptr[x], self._ptr[x + 1])


def _places(words: Ints, wanted: Ints) -> Ints:
    """Where each wanted word stands among sorted words; -1 where it does not."""
    at = np.minimum(np.searchsorted(words, wanted), max(len(words) - 1, 0))
    return np.where(words[at] == wanted, at, -1) if len(words) else np.full(len(wanted), -1)
