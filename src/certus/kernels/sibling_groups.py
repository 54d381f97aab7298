"""The inside charts of `sibling` for LANES sentences at once: numbers of several lanes, one sentence in each.

Rows, sums and layouts are those of `sibling`, unpadded, with the LANES numbers of a cell side by side. A span is made
of spans within it, so a sentence shorter than the longest of its group has its charts where it would have them alone;
what its lane holds beyond them is never read.

The scores of pairs are interleaved as they are needed: those with the head on the left for one (i, s) at a time, those
with the head on the right for LANES rows i at a time, left[i - low, s, e] = sib[e, s, i], and sib[e, e, i] at s == i.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit
from certus.kernels.lanes import LANES, UNSIGNED, aligned, fetch, interleave, larger, load, spread, store, watch

GROUP = LANES
ENOUGH = 3  # items for which a group is faster than one by one


class Charts(NamedTuple):
    """The items of one sentence, inside or outside, in rows of ``width`` cells, or of a group, (N * N * LANES,)."""

    R: np.ndarray
    L: np.ndarray
    IR: np.ndarray
    IL: np.ndarray
    S: np.ndarray


class Rows(NamedTuple):
    """Work of one row, (N * LANES,) each."""

    A: np.ndarray
    C: np.ndarray
    near: np.ndarray
    innermost: np.ndarray
    masks: np.ndarray


class Workspace(NamedTuple):
    """What is filled for a group: its charts, its arcs, the pairs with heads on the right, and rows."""

    size: int
    charts: Charts
    arcs: np.ndarray
    left: np.ndarray
    rows: Rows


@njit(cache=True, nogil=True)
def alike(lengths, order, at):
    """How many items from order[at] on make a group: of about the same length, which falls. 1 if none is made."""
    most = lengths[order[at]]
    end = at + 1
    while end < min(at + GROUP, order.shape[0]) and 4 * lengths[order[end]] >= 3 * most:
        end += 1
    return end - at if end - at >= ENOUGH and most >= GROUP else 1


@njit(cache=True, nogil=True)
def workspace(size):
    """Room for groups of sentences of up to size - 1 words."""
    cells, width = size * size * LANES, size * LANES
    items, row = aligned(5 * cells).reshape((5, cells)), aligned(5 * width).reshape((5, width))
    charts = Charts(items[0], items[1], items[2], items[3], items[4])
    rows = Rows(row[0], row[1], row[2], row[3], row[4])
    return Workspace(size, charts, aligned(cells), aligned(LANES * cells), rows)


@njit(cache=True, nogil=True)
def interleave_row(w, starts, row, size, span, out, to):
    """Cells of row w[row * size :], size >= LANES, of each sentence: those of the span (first, last), and some more."""
    lanes = uint64(LANES)
    first, last = span
    for cell in range(first, last + uint64(1), lanes):
        at = row * size + min(cell, size - lanes)
        fetch(w, starts, at - size * size)  # what is read a while later
        interleave(w, starts, at, out, to + min(cell, size - lanes) * lanes, lanes)


@njit(cache=True, nogil=True)
def turn_over(sib, starts, size, n, low, left):
    """Fill left for rows low .. low + LANES - 1 <= N - 1."""
    one, lanes = uint64(1), uint64(LANES)
    square = size * size
    for e in range(low + one, n + one):
        for s in range(low + one, e):
            at = (e * size + s) * size + low
            fetch(sib, starts, at + square)
            fetch(sib, starts, at + square + lanes - one)
            interleave(sib, starts, at, left, (s * size + e) * lanes, square * lanes)
        interleave(sib, starts, (e * size + e) * size + low, left, (low * size + e) * lanes, (square + size) * lanes)


@njit(cache=True, nogil=True)
def fill(arc, sib, members, lengths, first, space, tops):
    """Fill the charts of a group: members (LANES,) of the batch, one of the longest first.

    arc (B * N * N,), sib (B * N * N * N,), N >= LANES. tops (LANES,) <- bits of the largest magnitude of the scores of
    pairs of each sentence, BAD or more if one is bad.
    """
    zero, one, lanes = uint64(0), uint64(1), uint64(LANES)
    size = uint64(space.size)
    square = size * size
    n = uint64(lengths[members[0]])
    R, L, IR, IL, S = space.charts
    A, C, near, innermost, masks = space.rows
    arcs, left = space.arcs, space.left
    starts = np.empty(LANES, dtype=np.uint64)
    _begin(arc, members, lengths, n, space, starts)
    largest, none, nothing = spread(0.0), spread(0.0), spread(-np.inf)
    low = n + one
    for x in range(n + one - first):
        i = n - x
        row = i * size * lanes
        if i < low:
            low = min(i - i % lanes, size - lanes)
            turn_over(sib, starts, size, n, low, left)
        here = (i - low) * square * lanes
        for e in range(i, n + one):
            store(R, row + e * lanes, nothing)
            store(L, row + e * lanes, nothing)
            store(S, row + e * lanes, nothing)
            store(A, e * lanes, nothing)
            store(C, e * lanes, nothing)
        store(R, row + i * lanes, none)
        store(L, row + i * lanes, none)
        interleave_row(sib, starts, i * size + i, size, (i + one, n), innermost, zero)
        for j in range(i + one, n + one):
            at = j * lanes
            below = j * size * lanes
            mask = load(masks, at)
            c = load(R, row + at - lanes)
            between = larger(load(S, row + at), c)
            pair = load(innermost, at)
            largest = watch(largest, pair, mask)
            right = load(arcs, row + at) + larger(load(A, at), pair + load(L, row + size * lanes + at))
            to_left = nothing
            if i > zero:
                pair = load(left, here + row + at)
                largest = watch(largest, pair, mask)
                to_left = load(arcs, below + i * lanes) + larger(load(C, at), pair + c)
            done = larger(load(L, row + at), to_left)
            store(IR, row + at, right)
            store(IL, row + at, to_left)
            store(L, row + at, done)
            store(S, row + at, between)
            store(R, row + at, larger(load(R, row + at), right))
            interleave_row(sib, starts, i * size + j, size, (j + one, n), near, zero)
            for e in range((j + one) * lanes, (n + one) * lanes, lanes):
                mask = load(masks, e)
                within = load(IL, below + e)
                store(S, row + e, larger(load(S, row + e), c + load(L, below + e)))
                store(R, row + e, larger(load(R, row + e), right + load(R, below + e)))
                store(L, row + e, larger(load(L, row + e), done + within))
                pair = load(near, e)
                largest = watch(largest, pair, mask)
                store(A, e, larger(load(A, e), right + load(S, below + e) + pair))
                if i > zero:
                    pair = load(left, here + below + e)
                    largest = watch(largest, pair, mask)
                    store(C, e, larger(load(C, e), between + within + pair))
    if first > zero:
        interleave_row(sib, starts, zero, size, (one, n), innermost, zero)
        for e in range(lanes, (n + one) * lanes, lanes):
            largest = watch(largest, load(innermost, e), load(masks, e))
    store(A, zero, largest)
    found = A.view(np.int64)
    for lane in range(lanes):
        tops[lane] = found[lane]


@njit(cache=True, nogil=True)
def _begin(arc, members, lengths, n, space, starts):
    """Interleave the arcs of a group, mask what is no word; starts (LANES,) <- where the pairs of its members begin."""
    one, lanes, size = uint64(1), uint64(LANES), uint64(space.size)
    bits = space.rows.masks.view(np.int64)
    for lane in range(lanes):
        starts[lane] = uint64(members[lane]) * size * size
        for e in range(size):
            bits[e * lanes + lane] = UNSIGNED if e <= uint64(lengths[members[lane]]) else 0
    for h in range(n + one):
        interleave_row(arc, starts, h, size, (one, n), space.arcs, h * size * lanes)
    for lane in range(lanes):
        starts[lane] *= size
