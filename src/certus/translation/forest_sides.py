"""Target sides of a forest laid out for sweeps in numpy over the first and last words of what vertices yield.

A unit is a vertex, or two units side by side: after ``lay_out`` every unit on a target side has a word, or an end of
the side, to its left and to its right. All that an edge needs of a unit is then one of four things, each found once for
all edges that share it:

    interior   a number, for each (unit, word before, word after)
    column     a vector over the first words of a unit at the left end, for each (unit, word after)
    row        a vector over the last words of a unit at the right end, for each (unit, word before)
    whole      the table of the unit that is all of the side
"""

from typing import NamedTuple

import numpy as np

from certus.checks import Bools, Floats, Ints


class Sides(NamedTuple):
    """Edges by their heads, bottom-up, none of them with an empty target side."""

    in_ptr: Ints  # (V + 1,)
    ptr: Ints  # (E + 1,) symbols of edge e are symbol[ptr[e]:ptr[e + 1]]
    symbol: Ints  # a word, or ~vertex
    weight: Floats  # (E,)

    def only(self, alive: Bools) -> "Sides":
        """The same vertices, with the edges alive."""
        size = np.diff(self.ptr)
        in_ptr = np.concatenate(([0], np.cumsum(alive)))[self.in_ptr]
        ptr = np.concatenate(([0], np.cumsum(size[alive])))
        return Sides(in_ptr, ptr, self.symbol[np.repeat(alive, size)], self.weight[alive])


class Shared(NamedTuple):
    """Things of one kind, sorted by unit: those of unit x are ptr[x] .. ptr[x + 1]."""

    ptr: Ints
    word: Ints  # the word beside the unit; for interior ones the word before

    def of(self, x: int) -> Ints:
        """The words beside unit x."""
        return self.word[self.ptr[x] : self.ptr[x + 1]]


class Layout(NamedTuple):
    """What the head of the file describes. Numbers per edge are -1 where there is no such thing."""

    n_vertices: int
    parts: Ints  # (units - V, 2) of the units that are two
    order: Ints  # units, each after all that it is made of
    pairs: tuple[Ints, Ints, Ints]  # edge, word, word: words side by side on a target side
    first: Ints  # per edge: its first word, or ~unit
    last: Ints
    column: Ints  # per edge
    row: Ints
    columns: Shared
    rows: Shared
    interiors: Shared
    interior_column: Ints  # of each interior thing: its unit and word after are those of a column
    uses_ptr: Ints  # per interior thing: the edges that use it are uses[uses_ptr[i]:uses_ptr[i + 1]]
    uses: Ints


def lay_out(sides: Sides, n_words: int) -> Layout:
    """The layout of target sides over words 0 .. n_words - 1."""
    n_vertices = len(sides.in_ptr) - 1
    edge, symbol, parts = _paired(np.repeat(np.arange(len(sides.weight)), np.diff(sides.ptr)), sides.symbol, n_vertices)
    n_units = n_vertices + len(parts)
    start, end = np.diff(edge, prepend=-1) != 0, np.diff(edge, append=-1) != 0
    before, after = np.where(start, -1, np.roll(symbol, 1)), np.where(end, -1, np.roll(symbol, -1))
    variable = symbol < 0
    words = np.flatnonzero(~variable & (after >= 0))
    lefts, rights = np.flatnonzero(variable & ~end), np.flatnonzero(variable & end & ~start)
    unit = ~symbol
    keys, at = np.unique(unit[lefts] * n_words + after[lefts], return_inverse=True)
    column_at = np.full(len(symbol), -1)
    column_at[lefts] = at
    row_keys, at = np.unique(unit[rights] * n_words + before[rights], return_inverse=True)
    row_at = np.full(len(symbol), -1)
    row_at[rights] = at
    middle = np.flatnonzero(variable & ~start & ~end)
    inner_keys, at = np.unique(column_at[middle] * n_words + before[middle], return_inverse=True)
    interior_column = inner_keys // n_words
    uses_ptr = np.concatenate(([0], np.cumsum(np.bincount(at, minlength=len(inner_keys)))))
    reach = np.arange(n_units)  # the highest vertex that a unit is made of
    for k, (a, b) in enumerate(parts.tolist(), start=n_vertices):
        reach[k] = max(reach[a], reach[b])
    return Layout(
        n_vertices,
        parts,
        np.lexsort((np.arange(n_units), reach)),
        (edge[words], symbol[words], after[words]),
        symbol[start],
        symbol[end],
        column_at[start],
        row_at[end],
        _shared(keys, n_words, n_units),
        _shared(row_keys, n_words, n_units),
        Shared(_ptr(keys[interior_column] // n_words, n_units), inner_keys % n_words),
        interior_column,
        uses_ptr,
        edge[middle][np.argsort(at, kind="stable")],
    )


def ends(layout: Layout, in_ptr: Ints, first: Bools, last: Bools) -> tuple[Bools, Bools]:
    """First and last words of the units (units, W), of those that ``first`` and ``last`` (V, W) allow a vertex."""
    found = []
    for allowed, symbol, side in ((first, layout.first, 0), (last, layout.last, 1)):
        words = np.zeros((len(layout.order), allowed.shape[1]), dtype=bool)
        for x in layout.order.tolist():
            if x >= layout.n_vertices:
                words[x] = words[layout.parts[x - layout.n_vertices, side]]
            elif in_ptr[x] < in_ptr[x + 1]:
                own = symbol[in_ptr[x] : in_ptr[x + 1]]
                words[x, own[own >= 0]] = True
                words[x] |= words[np.unique(~own[own < 0])].any(axis=0)
                words[x] &= allowed[x]
        found.append(words)
    return found[0], found[1]


def all_ends(layout: Layout, in_ptr: Ints, n_words: int) -> tuple[Bools, Bools]:
    """The same with all words allowed."""
    every = np.ones((len(in_ptr) - 1, n_words), dtype=bool)
    return ends(layout, in_ptr, every, every)


def adjacent(layout: Layout, first: Bools, last: Bools) -> Bools:
    """Pairs of words (W, W) that can stand side by side, given the first and last words of the units."""
    found = np.zeros((first.shape[1],) * 2, dtype=bool)
    firsts, lasts = ([np.flatnonzero(row) for row in words] for words in (first, last))
    for x in range(len(first)):
        found[lasts[x][:, None], layout.columns.of(x)] = True
        for shared in (layout.rows, layout.interiors):
            found[shared.of(x)[:, None], firsts[x]] = True
    for a, b in layout.parts.tolist():
        found[lasts[a][:, None], firsts[b]] = True
    found[layout.pairs[1], layout.pairs[2]] = True
    return found


def _paired(edge: Ints, symbol: Ints, n_units: int) -> tuple[Ints, Ints, Ints]:
    """(edge and symbol of each place, the parts of new units): no two units are side by side any more."""
    parts = [np.empty((0, 2), dtype=np.int64)]
    while True:
        beside = (symbol[:-1] < 0) & (symbol[1:] < 0) & (edge[:-1] == edge[1:])
        beside[1:] &= ~beside[:-1]
        at = np.flatnonzero(beside)
        if not len(at):
            return edge, symbol, np.concatenate(parts)
        new, number = np.unique(np.column_stack((~symbol[at], ~symbol[at + 1])), axis=0, return_inverse=True)
        symbol = symbol.copy()
        symbol[at] = ~(n_units + number.reshape(-1))
        edge, symbol = np.delete(edge, at + 1), np.delete(symbol, at + 1)
        parts.append(new)
        n_units += len(new)


def _ptr(unit: Ints, n_units: int) -> Ints:
    return np.searchsorted(unit, np.arange(n_units + 1))


def _shared(keys: Ints, n_words: int, n_units: int) -> Shared:
    return Shared(_ptr(keys // n_words, n_units), keys % n_words)
