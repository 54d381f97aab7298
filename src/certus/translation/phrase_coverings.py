"""Bounds on what completes a partial translation: best completions over a lattice that forgets some of the coverage.

What a proof is checked by: numpy, no kernel. A node of the lattice keeps the place where the last phrase ended and of
the coverage either all, as the first uncovered word and a window of bits from there on, or the number of words covered
and which of the tracked words are among them. In the latter case multipliers price the words; any will do. Every way to
cover the sentence is a path through the nodes, so that the best path from a node, in a context of its place, bounds all
completions.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.checks import Bools, Ints
from certus.errors import InvalidInput
from certus.translation.phrase_tables import Options, Places, Scores

Bits = NDArray[np.uint64]
ONE = np.uint64(1)
MOST_NODES = 100_000
AT_ONCE = 1 << 21  # cells of the largest temporary array


class Limits(NamedTuple):
    """How far phrases may jump: ``PhraseTranslation`` says what limit and window are."""

    n: int
    limit: int
    window: bool


class Lattice(NamedTuple):
    """Nodes by rising number of words covered, then place; the edges that leave node x are edge_ptr[x] and on."""

    full: bool
    group: list[tuple[int, int, int, int]]  # words covered, place, first node, node after the last
    edge_ptr: Ints  # (X + 1,)
    edge_span: Ints
    edge_to: Ints


def mask(length: Ints) -> Bits:
    """As many ones."""
    return (ONE << length.astype(np.uint64)) - ONE


def covered(g: Ints, window: Bits, start: Ints, length: Ints) -> tuple[Ints, Bits]:
    """(first uncovered word, window) once ``length`` words from ``start`` on are covered; bit k is word g + k."""
    window = window | (mask(length) << (start - g).astype(np.uint64))
    ones = np.bitwise_count((~window & (window + ONE)) - ONE)
    return g + ones, window >> ones.astype(np.uint64)


def free(limits: Limits, g: Ints, window: Bits, start: Ints, length: Ints) -> Bools:
    """Whether words may be covered next, jumps aside: they are free, and the first gap stays in reach."""
    after = start >= g
    shift = np.where(after, start - g, 0).astype(np.uint64)
    may: Bools = after & ((window >> shift) & mask(length) == 0)
    if limits.window:
        may &= (start == g) | (start + length - g <= limits.limit)
    return may


class _Tracked:
    """Nodes that keep the number of words covered and some of the words."""

    def __init__(self, limits: Limits, options: Options, tracked: Ints) -> None:
        self.limits, self.tracked = limits, tracked
        bit = np.zeros(limits.n + 1, dtype=np.uint64)
        bit[tracked] = ONE << np.arange(len(tracked), dtype=np.uint64)
        sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(bit, dtype=np.uint64)))
        self.bits = sums[options.end + 1] - sums[options.start]
        self.everything = sums[-1]
        self.start, self.length = options.start, options.end - options.start + 1

    def edges(self, count: int, bits: Bits, place: Ints) -> Bools:
        """(M, S): which spans may follow nodes with ``count`` words covered."""
        n, limit, window = self.limits
        end = self.start + self.length
        fits: Bools = (count + self.length <= n) & (bits[:, None] & self.bits == 0)
        fits &= (place[:, None] <= self.start) | (place[:, None] > end)
        fits &= (count + self.length < n) | (bits[:, None] | self.bits == self.everything)
        if window:  # the first uncovered word is at least ``low`` and at most ``high``
            low, high = max(0, count - max(limit - 1, 0)), np.full(len(bits), count)
            for k in reversed(np.flatnonzero(self.tracked < count).tolist()):
                high = np.where(bits >> np.uint64(k) & ONE, high, self.tracked[k])
            fits &= (self.start >= low) & ((self.start <= high[:, None]) | (end - high[:, None] <= limit))
        return fits


def build(limits: Limits, options: Options, tracked: Ints | None) -> Lattice:
    """The lattice that tracks these words, rising, at most 64; all of the coverage if None."""
    n, start, length = limits.n, options.start, options.end - options.start + 1
    counted = None if tracked is None else _Tracked(limits, options, tracked)
    waiting: list[list[tuple[Ints, Bits, Ints, Ints]]] = [[] for _ in range(n + 1)]
    zero = np.zeros(1, dtype=np.int64)
    waiting[0].append((zero, zero.astype(np.uint64), zero, zero))
    group, spans, degree, n_nodes = [], [], [], 0
    to = zero.copy()  # of the edge into the start, then of all others
    for count, found in enumerate(waiting):
        if not found:
            continue
        a, w, place, edge = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.lexsort((w, a, place))
        a, w, place = a[order], w[order], place[order]
        new = np.ones(len(a), dtype=bool)
        new[1:] = (np.diff(a) != 0) | (w[1:] != w[:-1]) | (np.diff(place) != 0)
        to[edge[order]] = n_nodes + np.cumsum(new) - 1
        a, w, place = a[new], w[new], place[new]
        bounds = [*np.flatnonzero(np.diff(place, prepend=-1)).tolist(), len(place)]
        group += [(count, int(place[x]), n_nodes + x, n_nodes + y) for x, y in pairwise(bounds)]
        n_nodes += len(a)
        if n_nodes > MOST_NODES:
            raise InvalidInput(f"the witness asks for more than {MOST_NODES} coverages; expected multipliers instead.")
        for x in range(0, len(a), step := max(1, AT_ONCE // max(len(start), 1))):
            some = slice(x, x + step)
            near = np.abs(start - place[some, None]) <= limits.limit
            if counted is None:
                near &= free(limits, a[some, None], w[some, None], start, length)
            else:
                near &= counted.edges(count, w[some], place[some])
            node, span = np.nonzero(near)
            degree.append(near.sum(axis=1))
            spans.append(span)
            if counted is None:
                a2, w2 = covered(a[some][node], w[some][node], start[span], length[span])
            else:
                a2, w2 = count + length[span], w[some][node] | counted.bits[span]
            number = len(to) + np.arange(len(span))
            reached = count + length[span]
            for size in np.unique(reached).tolist():
                at = reached == size
                waiting[size].append((a2[at], w2[at], options.end[span[at]] + 1, number[at]))
            to = np.append(to, np.zeros(len(span), dtype=np.int64))
    ptr = np.concatenate((zero, np.cumsum(np.concatenate(degree))))
    return Lattice(counted is None, group, ptr, np.concatenate(spans), to[1:])


class Bounds(NamedTuple):
    """value[ptr[x] + c]: no completion from node x in context c of its place adds more."""

    ptr: Ints
    value: Scores


def sweep(
    n: int, options: Options, lattice: Lattice, places: Places, floor: float, total: Callable[[Scores], Scores]
) -> Bounds:
    """All completions over the lattice, made one number by ``total`` along the last axis; ``floor`` is that of none."""
    sizes = np.concatenate([np.full(b - a, places.size[p]) for _, p, a, b in lattice.group])
    ptr = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
    value = np.full(int(ptr[-1]) + int(places.size.max()), floor)  # the end stands for no node
    nowhere = int(ptr[-1])
    for count, p, first, stop in reversed(lattice.group):
        size = int(places.size[p])
        if count == n:
            value[ptr[first] : ptr[stop]] = np.tile(places.end[p], stop - first)
            continue
        for a in range(first, stop, step := max(1, AT_ONCE // max(places.value[p].size, 1))):
            b = min(stop, a + step)
            edges = slice(lattice.edge_ptr[a], lattice.edge_ptr[b])
            origin = np.repeat(np.arange(b - a), np.diff(lattice.edge_ptr[a : b + 1]))
            into = np.full((b - a, len(options.start)), nowhere)
            into[origin, lattice.edge_span[edges]] = ptr[lattice.edge_to[edges]]
            span = options.span[places.near[p]]
            used = np.zeros(len(options.start), dtype=bool)
            used[lattice.edge_span[edges]] = True
            columns = np.flatnonzero(used[span])
            if not len(columns):
                continue
            at: slice | Ints = slice(None) if 4 * len(columns) > 3 * len(span) else columns  # or not worth a copy
            terms = value[into[:, None, span[at]] + places.then[p][:, at]] + places.value[p][:, at]
            value[ptr[a] : ptr[b]] = total(terms).reshape((b - a) * size)
    return Bounds(ptr, value)
