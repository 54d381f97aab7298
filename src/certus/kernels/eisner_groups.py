"""The inside charts of `eisner` for LANES sentences at once: numbers of several lanes, one sentence in each.

Items and sums are those of `eisner`, under MAX, with the LANES numbers of a cell side by side. A span is made of spans
within it, so a sentence shorter than the longest of its group has its charts where it would have them alone; what its
lane holds beyond them is never read.
"""

import numpy as np
from numba import uint64

from certus.kernels import eisner
from certus.kernels.algebra import MAX
from certus.kernels.arrays import longest_first
from certus.kernels.compiling import njit
from certus.kernels.eisner import Charts
from certus.kernels.lanes import LANES, aligned, interleave, larger, load, spread, store
from certus.kernels.sibling_groups import alike


@njit(cache=True, nogil=True)
def interleave_arcs(arc, members, size, n, out):
    """out[h, m] <- the arcs of n words of LANES items of a batch (B * N * N,), N >= LANES, side by side."""
    one, lanes = uint64(1), uint64(LANES)
    starts = np.empty(LANES, dtype=np.uint64)
    for lane in range(lanes):
        starts[lane] = uint64(members[lane]) * size * size
    for h in range(n + one):
        for cell in range(one, n + one, lanes):
            at = h * size + min(cell, size - lanes)
            interleave(arc, starts, at, out, at * lanes, lanes)


@njit(cache=True, nogil=True)
def fill(arcs, size, n, first, charts):
    """Fill rows n .. first of the charts of a group, (N * N * LANES,), from its arcs."""
    R, L, IR, IL, B = charts
    one, lanes = uint64(1), uint64(LANES)
    none, nothing = spread(0.0), spread(-np.inf)
    end = (n + one) * lanes
    for x in range(n + one - first):
        i = n - x
        row = i * size * lanes
        for e in range(i * lanes, end, lanes):
            store(R, row + e, nothing)
            store(L, row + e, nothing)
            store(B, e, nothing)
        store(R, row + i * lanes, none)
        store(L, row + i * lanes, none)
        for j in range(i + one, n + one):
            at, low = j * lanes, j * size * lanes
            c = load(R, row + at - lanes)
            b = larger(load(B, at), c)
            right = b + load(arcs, row + at)
            left = b + load(arcs, low + i * lanes)
            done = larger(load(L, row + at), left)
            store(IR, row + at, right)
            store(IL, row + at, left)
            store(R, row + at, larger(load(R, row + at), right))
            store(L, row + at, done)
            for e in range(at + lanes, end, lanes):
                store(B, e, larger(load(B, e), c + load(L, low + e)))
                store(R, row + e, larger(load(R, row + e), right + load(R, low + e)))
                store(L, row + e, larger(load(L, row + e), done + load(IL, low + e)))


@njit(cache=True, nogil=True)
def lane_charts(charts, lanes, lane):
    """The charts of one of ``lanes`` sentences that are interleaved."""
    R, L, IR, IL, B = charts
    return Charts(R[lane::lanes], L[lane::lanes], IR[lane::lanes], IL[lane::lanes], B[lane::lanes])


@njit(cache=True, nogil=True)
def decode(arc, lengths, single, heads, value, score):
    """What eisner.decode_and_score does: items of about the same length go by groups, and no answer depends on that."""
    size, cells, first = uint64(arc.shape[1]), arc.shape[1] * arc.shape[1], uint64(single)
    order, members = longest_first(lengths), np.empty(LANES, dtype=np.int64)
    stack = np.empty((2 * arc.shape[1] + 4, 3), dtype=np.uint64)
    alone, room = eisner.room(0), aligned(0)
    heads[:] = -1
    value[:] = 0.0
    at = 0
    while at < order.shape[0] and lengths[order[at]] > 0:
        count = alike(lengths, order, at)
        for lane in range(LANES):
            members[lane] = order[at + min(lane, count - 1)]  # lanes left over repeat the last item
        at += count
        n = uint64(lengths[members[0]])
        if count == 1:
            if alone.R.shape[0] == 0:
                alone = eisner.room(arc.shape[1])
            charts, lanes = alone, 1
            eisner.inside(MAX, arc[members[0]].reshape(cells), size, n, first, charts)
        else:
            if room.shape[0] == 0:
                room = aligned(6 * cells * LANES)
            rows = room.reshape((6, cells * LANES))
            charts, lanes = Charts(rows[0], rows[1], rows[2], rows[3], rows[4]), LANES
            interleave_arcs(arc.reshape(-1), members, size, n, rows[5])
            fill(rows[5], size, n, first, charts)
        for lane in range(count):
            k = members[lane]
            scores, own = arc[k].reshape(cells), lane_charts(charts, lanes, lane)
            value[k] = eisner.best_tree(scores, size, uint64(lengths[k]), single, own, heads[k], stack)
    eisner.tree_scores(arc, heads, lengths, score)


__all__ = ["decode"]
