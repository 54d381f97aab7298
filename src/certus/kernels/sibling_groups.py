"""The inside charts of `sibling` for LANES sentences at once: numbers of several lanes, one sentence in each.

Rows, sums and layouts are those of `sibling`, unpadded, with the LANES numbers of a cell side by side. A span is made
of spans within it, so a sentence shorter than the longest of its group has its charts where it would have them alone;
what its lane holds beyond them is never read.

The scores of pairs are interleaved as they are needed: those with the head on the left for one (i, s) at a time, those
with the head on the right for LANES rows i at a time, left[i - low, s, e] = sib[e, s, i], and sib[e, e, i] at s == i.
"""

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit
from certus.kernels.wide import LANES, UNSIGNED, aligned, fetch, interleave, larger, load, spread, store, watch

GROUP = LANES


@njit(cache=True, nogil=True)
def workspace(size):
    """Room for five charts, for the arcs, for left, and for five rows."""
    cells = size * size * LANES
    charts = aligned(5 * cells).reshape((5, cells))
    return charts, aligned(cells), aligned(LANES * cells), aligned(5 * size * LANES).reshape((5, size * LANES))


@njit(cache=True, nogil=True)
def interleave_row(w, starts, at, size, first, n, out, to, ahead):
    """Cells first .. n of the row of ``size`` >= LANES cells at w[at:] of each sentence, and perhaps a few more."""
    lanes = uint64(LANES)
    for cell in range(first, n + uint64(1), lanes):
        m = min(cell, size - lanes)
        fetch(w, starts, at + m - ahead)
        interleave(w, starts, at + m, out, to + m * lanes, lanes)


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
def fill(arc, sib, members, lengths, size, first, charts, arcs, left, rows, tops):
    """Fill the charts R, L, IR, IL, S of a group: members (LANES,) of the batch, one of the longest first.

    arc (B * N * N,), sib (B * N * N * N,), N = size >= LANES. tops (LANES,) <- bits of the largest magnitude of the
    scores of pairs of each sentence, BAD or more if one is bad.
    """
    zero, one, lanes = uint64(0), uint64(1), uint64(LANES)
    square = size * size
    n = uint64(lengths[members[0]])
    R, L, IR, IL, S = charts[0], charts[1], charts[2], charts[3], charts[4]
    A, C, near, innermost, masks = rows[0], rows[1], rows[2], rows[3], rows[4]
    starts = np.empty(LANES, dtype=np.uint64)
    bits = masks.view(np.int64)
    for lane in range(lanes):
        starts[lane] = uint64(members[lane]) * square
        for e in range(size):
            bits[e * lanes + lane] = UNSIGNED if e <= uint64(lengths[members[lane]]) else 0
    for h in range(n + one):
        interleave_row(arc, starts, h * size, size, one, n, arcs, h * size * lanes, zero)
    for lane in range(lanes):
        starts[lane] *= size
    worst, none, nothing = spread(0.0), spread(0.0), spread(-np.inf)
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
        interleave_row(sib, starts, (i * size + i) * size, size, i + one, n, innermost, zero, square)
        for j in range(i + one, n + one):
            at = j * lanes
            below = j * size * lanes
            mask = load(masks, at)
            c = load(R, row + at - lanes)
            between = larger(load(S, row + at), c)
            pair = load(innermost, at)
            worst = watch(worst, pair, mask)
            right = load(arcs, row + at) + larger(load(A, at), pair + load(L, row + size * lanes + at))
            to_left = nothing
            if i > zero:
                pair = load(left, here + row + at)
                worst = watch(worst, pair, mask)
                to_left = load(arcs, below + i * lanes) + larger(load(C, at), pair + c)
            done = larger(load(L, row + at), to_left)
            store(IR, row + at, right)
            store(IL, row + at, to_left)
            store(L, row + at, done)
            store(S, row + at, between)
            store(R, row + at, larger(load(R, row + at), right))
            interleave_row(sib, starts, (i * size + j) * size, size, j + one, n, near, zero, square)
            for e in range((j + one) * lanes, (n + one) * lanes, lanes):
                mask = load(masks, e)
                within = load(IL, below + e)
                store(S, row + e, larger(load(S, row + e), c + load(L, below + e)))
                store(R, row + e, larger(load(R, row + e), right + load(R, below + e)))
                store(L, row + e, larger(load(L, row + e), done + within))
                pair = load(near, e)
                worst = watch(worst, pair, mask)
                store(A, e, larger(load(A, e), right + load(S, below + e) + pair))
                if i > zero:
                    pair = load(left, here + below + e)
                    worst = watch(worst, pair, mask)
                    store(C, e, larger(load(C, e), between + within + pair))
    store(A, zero, worst)
    if first > zero:
        interleave_row(sib, starts, zero, size, one, n, innermost, zero, square)
        for e in range(lanes, (n + one) * lanes, lanes):
            store(A, zero, watch(load(A, zero), load(innermost, e), load(masks, e)))
    found = A.view(np.int64)
    for lane in range(lanes):
        tops[lane] = found[lane]
