"""Sums over tag sequences scored by tags and pairs of neighbours, one table for all, without logarithms.

Weights are exp(score less the largest of its position, or of the table), and the sums up to a position are scaled to
add up to 1. No pair is forbidden, so each such sum of an allowed tag is at least the least weight of a tag times the
least of a pair: if scores of a position, and of the table, are no more than RANGE apart, nothing is lost. Other
sequences are left to kernels.tagging.

Items go by groups of LANES, one in each lane of every number: cells are (N, T, LANES), flat. What a lane holds beyond
the end of its item is a number, and reaches nothing else.
"""

from math import inf, log
from typing import NamedTuple

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit
from certus.kernels.lanes import (
    BAD,
    LANES,
    UNSIGNED,
    add_product,
    aligned,
    exponential,
    interleave,
    larger,
    load,
    spread,
    store,
    watch,
    where_larger,
)

RANGE = 300.0


class Cells(NamedTuple):
    """What is filled for a group: (N * T * LANES,), (N * LANES,) and (T * LANES,)."""

    weight: np.ndarray  # scores, then weights, then what follows a tag: its weight, over the sum of its position
    alpha: np.ndarray  # share of a tag in the sum up to its position
    mass: np.ndarray  # of a position
    beta: np.ndarray  # weight of what follows each tag of a position
    lasts: np.ndarray  # (N * LANES,) 1 where an item goes on behind a position, else 0
    ends: np.ndarray  # (N * LANES,) 1 where it ends there, else 0


@njit(cache=True, nogil=True)
def _side_by_side(w, starts, count, out):
    """out[c, l] <- w[starts[l] + c] for ``count`` cells of LANES items."""
    lanes, total = uint64(LANES), uint64(count)
    if total < lanes:
        for cell in range(total):
            for lane in range(lanes):
                out[cell * lanes + lane] = w[starts[lane] + cell]
        return
    for cell in range(uint64(0), total, lanes):
        at = min(cell, total - lanes)
        interleave(w, starts, at, out, at * lanes, lanes)


@njit(cache=True, nogil=True)
def _hand_out(w, count, first, value, out):
    """out[first + l] <- w[:, l], ``count`` cells of each lane that is an item, and 0 behind; 0 where value is -inf."""
    lanes, total, gap = uint64(LANES), uint64(count), uint64(out.shape[1])
    to = uint64(first) * gap
    flat, last = out.reshape(-1), min(first + LANES, out.shape[0])
    if last - first == LANES and total >= lanes:
        starts = np.empty(LANES, dtype=np.uint64)
        for k in range(lanes):
            starts[k] = k * lanes
        for cell in range(uint64(0), total, lanes):
            at = min(cell, total - lanes)
            interleave(w, starts, at * lanes, flat, to + at, gap)
    else:
        for lane in range(uint64(last - first)):
            for cell in range(total):
                flat[to + lane * gap + cell] = w[cell * lanes + lane]
    for b in range(first, last):
        for cell in range(0 if value[b] == -inf else count, out.shape[1]):
            out[b, cell] = 0.0


@njit(cache=True, nogil=True)
def _weights(cells, size, n, value):
    """Scores become weights. value (LANES,) <- the sum of what was taken off; nan if scores lie too far apart, or are
    none, -inf if a position has no tag.
    """
    weight = cells.weight
    lanes = uint64(LANES)
    step = uint64(size) * lanes
    room = aligned(LANES)
    bits = room.view(np.int64)
    bits[:] = UNSIGNED
    mask = load(room, uint64(0))
    top, shift, widest = spread(0.0), spread(0.0), spread(0.0)
    down, lowest, highest = spread(-1.0), spread(-inf), spread(inf)
    for i in range(uint64(n)):
        begin = i * step
        high, low = lowest, highest
        for c in range(begin, begin + step, lanes):
            x = load(weight, c)
            top = watch(top, x, mask)
            high = larger(x, high)
            low = where_larger(low, x, where_larger(x, lowest, x, low), low)
        shift = shift + high
        gap = high + down * low
        widest = larger(gap, widest)
        off = down * where_larger(high, lowest, high, spread(0.0))
        for c in range(begin, begin + step, lanes):
            store(weight, c, exponential(load(weight, c) + off))
    store(room, uint64(0), top)
    bad = bits >= BAD
    for lane in range(LANES):
        value[lane] = 0.0
    store(value, uint64(0), where_larger(widest, spread(RANGE), spread(np.nan), shift))
    for lane in range(LANES):
        if bad[lane]:
            value[lane] = np.nan


@njit(cache=True, nogil=True, inline="always")
def _product(matrix, size, w, at, out):
    """out[k] <- sum over j of w[at + j] matrix[j, k], by columns k of LANES numbers, four at a time."""
    lanes, one, four = uint64(LANES), uint64(1), uint64(4)
    k = uint64(0)
    while k + four <= size:
        x0 = x1 = x2 = x3 = spread(0.0)
        cell, source = k, at
        for _ in range(size):
            y = load(w, source)
            x0 = add_product(x0, y, spread(matrix[cell]))
            x1 = add_product(x1, y, spread(matrix[cell + one]))
            x2 = add_product(x2, y, spread(matrix[cell + uint64(2)]))
            x3 = add_product(x3, y, spread(matrix[cell + uint64(3)]))
            cell += size
            source += lanes
        store(out, k * lanes, x0)
        store(out, (k + one) * lanes, x1)
        store(out, (k + uint64(2)) * lanes, x2)
        store(out, (k + uint64(3)) * lanes, x3)
        k += four
    while k < size:
        x = spread(0.0)
        cell, source = k, at
        for _ in range(size):
            x = add_product(x, load(w, source), spread(matrix[cell]))
            cell += size
            source += lanes
        store(out, k * lanes, x)
        k += one


@njit(cache=True, nogil=True)
def _forward(power, size, n, cells):
    """Fill alpha and mass, power (T * T,)."""
    weight, alpha, mass, beta = cells.weight, cells.alpha, cells.mass, cells.beta
    lanes, tags = uint64(LANES), uint64(size)
    step = tags * lanes
    for t in range(uint64(0), step, lanes):
        store(beta, t, spread(1.0))
    for i in range(uint64(n)):
        begin = i * step
        if i > uint64(0):
            _product(power, tags, alpha, begin - step, beta)
        total = spread(0.0)
        for t in range(uint64(0), step, lanes):
            x = load(beta, t) * load(weight, begin + t)
            store(alpha, begin + t, x)
            total = total + x
        store(mass, i * lanes, total)
        share = spread(1.0) / total
        for c in range(begin, begin + step, lanes):
            store(alpha, c, load(alpha, c) * share)


@njit(cache=True, nogil=True)
def _backward(turned, size, n, cells, tags):
    """tags[i, t] <- the probability of each tag, (N, T, LANES); weights become what follows, 0 at the first positions.

    turned (T * T,) is the table with its second tags first.
    """
    weight, alpha, mass, beta, lasts, ends = cells
    lanes, count = uint64(LANES), uint64(size)
    step = count * lanes
    for t in range(uint64(0), step, lanes):
        store(beta, t, spread(0.0))
    for x in range(uint64(n)):
        i = uint64(n) - uint64(1) - x
        begin = i * step
        goes_on, end, share = load(lasts, i * lanes), load(ends, i * lanes), spread(1.0) / load(mass, i * lanes)
        for t in range(uint64(0), step, lanes):
            rest = add_product(end, load(beta, t), goes_on)
            store(tags, begin + t, load(alpha, begin + t) * rest)
            store(weight, begin + t, load(weight, begin + t) * rest * share)
        if i > uint64(0):
            _product(turned, count, weight, begin, beta)


@njit(cache=True, nogil=True)
def _pairs(power, size, n, cells, out):
    """out[a, c] <- expected uses of each pair, (T, T, LANES): what leads to a, times what follows with c."""
    weight, alpha = cells.weight, cells.alpha
    lanes, count = uint64(LANES), uint64(size)
    step = count * lanes
    for a in range(count):
        row = a * step
        for c in range(uint64(0), count, uint64(4)):
            c0 = min(c, max(count, uint64(4)) - uint64(4)) * lanes
            c1 = min(c0 + lanes, step - lanes)
            c2 = min(c0 + uint64(2) * lanes, step - lanes)
            c3 = min(c0 + uint64(3) * lanes, step - lanes)
            x0 = x1 = x2 = x3 = spread(0.0)
            begin = step
            for _ in range(1, n):
                y = load(alpha, begin - step + a * lanes)
                x0 = add_product(x0, y, load(weight, begin + c0))
                x1 = add_product(x1, y, load(weight, begin + c1))
                x2 = add_product(x2, y, load(weight, begin + c2))
                x3 = add_product(x3, y, load(weight, begin + c3))
                begin += step
            cell = a * count
            store(out, row + c0, x0 * spread(power[cell + c0 // lanes]))
            store(out, row + c1, x1 * spread(power[cell + c1 // lanes]))
            store(out, row + c2, x2 * spread(power[cell + c2 // lanes]))
            store(out, row + c3, x3 * spread(power[cell + c3 // lanes]))


@njit(cache=True, nogil=True)
def _ready(unary, lengths, group, starts, cells):
    """Have the scores of a group side by side, 0 behind the end of each item; returns how many positions it has."""
    positions, size = unary.shape[1], unary.shape[2]
    n = 0
    for lane in range(LANES):
        starts[lane] = uint64(group[lane] * positions * size)
        n = max(n, lengths[group[lane]])
    _side_by_side(unary.reshape(-1), starts, n * size, cells.weight)
    for lane in range(LANES):
        own = lengths[group[lane]]
        for i in range(n):
            cells.lasts[i * LANES + lane] = 1.0 if i < own - 1 else 0.0
            cells.ends[i * LANES + lane] = 1.0 if i == own - 1 else 0.0
        for c in range(own * size, n * size):
            cells.weight[c * LANES + lane] = 0.0
    return n


@njit(cache=True, nogil=True)
def chain_sums(bigram, unary, lengths, value, tags, pairs):
    """value[b] <- log of the sum of exp(score) over the sequences of each item: unary (B, N, T), bigram (T, T).

    tags (B, N, T) <- the probability of each tag, pairs (B, T, T) <- the expected uses of each pair, unless it comes
    empty; 0 in the padding, and where there is no sequence. Returns False if scores lie too far apart for that, or are
    none: then another way has to be taken.
    """
    items, positions, size = unary.shape
    low, peak = inf, -inf
    for x in bigram.flat:
        low, peak = min(low, x), max(peak, x)
    if not peak - low <= RANGE:
        return False
    power = np.exp(bigram - peak)
    turned, table = power.T.copy().reshape(-1), power.reshape(-1)
    block, line = positions * size * LANES, positions * LANES
    found, uses = aligned(block), aligned(size * size * LANES)
    cells = Cells(aligned(block), aligned(block), aligned(line), aligned(size * LANES), aligned(line), aligned(line))
    shift, group, starts = aligned(LANES), np.empty(LANES, dtype=np.int64), np.empty(LANES, dtype=np.uint64)
    for first in range(0, items, LANES):
        for lane in range(LANES):
            group[lane] = min(first + lane, items - 1)  # lanes left over repeat the last item
        n = _ready(unary, lengths, group, starts, cells)
        _weights(cells, size, n, shift)
        _forward(table, size, n, cells)
        _backward(turned, size, n, cells, found)
        for lane in range(min(LANES, items - first)):
            total, own = shift[lane], lengths[first + lane]
            if total > -inf and own > 0:
                total += peak * (own - 1)
                for i in range(own):
                    total += log(cells.mass[i * LANES + lane])
            if np.isnan(total):
                return False
            value[first + lane] = total
        _hand_out(found, n * size, first, value, tags.reshape(items, positions * size))
        if pairs.shape[0]:
            _pairs(table, size, n, cells, uses)
            _hand_out(uses, size * size, first, value, pairs.reshape(items, size * size))
    return True


__all__ = ["chain_sums"]
