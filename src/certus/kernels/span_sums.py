"""Sums over trees of labelled spans, for each sentence of a batch: the logarithm of the sum, and marginals.

Labels are summed out first, so that trees are of spans alone, O(n^2 L + n^3). Of the words i .. j - 1

    several[i, j] = sum over k of row[i, k] item[k, j]       two items or more, side by side
    item[i, j]    = label[i, j] several[i, j]                one constituent
    row[i, j]     = item[i, j], and several[i, j] if trees are of any shape

and a word is an item by its label, or if trees are of any shape without one. Charts are logarithms. Marginals come by
the shares that these sums have in each other, from the whole sentence down: nothing is subtracted.
"""

from math import exp, inf, log
from typing import NamedTuple

import numpy as np

from certus.kernels.algebra import LOG, plus
from certus.kernels.compiling import njit
from certus.kernels.lanes import LANES, aligned, exponential, lane, load, maximum, spread, store


class Charts(NamedTuple):
    """(N, N) each; ``item`` and ``item_share`` have the last word first: item[j, i]."""

    label: np.ndarray
    several: np.ndarray
    row: np.ndarray
    item: np.ndarray
    row_share: np.ndarray
    item_share: np.ndarray


@njit(cache=True, nogil=True)
def _padded(room, count):
    """Fill room[count:] with -inf up to whole lanes; returns where they end."""
    end = -(-count // LANES) * LANES
    for c in range(count, end):
        room[c] = -inf
    return end


@njit(cache=True, nogil=True)
def _weights(room, count, shift):
    """room[:count] <- exp(room - shift), where no number is above shift; returns their sum."""
    end = _padded(room, count)
    down, total = spread(-shift), spread(0.0)
    for c in range(0, end, LANES):
        x = exponential(load(room, c) + down)
        store(room, c, x)
        total = total + x
    value = 0.0
    for k in range(LANES):
        value += lane(total, k)
    return value


@njit(cache=True, nogil=True)
def _log_sum(room, count):
    """Log of the sum of exp(room[:count]), which becomes exp(room - its largest); and the sum of these."""
    end = _padded(room, count)
    top = load(room, 0)
    for c in range(LANES, end, LANES):
        top = maximum(top, load(room, c))
    most = -inf
    for k in range(LANES):
        most = max(most, lane(top, k))
    if most == -inf:
        room[:count] = 0.0
        return -inf, 1.0
    total = _weights(room, count, most)
    return most + log(total), total


@njit(cache=True, nogil=True)
def _fold(span, n, empty, room, label, out):
    """label[i, j] <- log of the sum over labels; out <- the share of each. Returns the least and the greatest score.

    The latter is inf if one is no score. Cells of the label ``empty`` are not read.
    """
    low, high = inf, -inf
    labels = span.shape[2]
    for i in range(n):
        for j in range(i + 1, n + 1):
            for c in range(labels):
                x = span[i, j, c]
                if c == empty:
                    x = -inf
                elif not x < inf:
                    return inf, inf
                elif x > -inf:
                    low, high = min(low, x), max(high, x)
                room[c] = x
            label[i, j], total = _log_sum(room, labels)
            if out.shape[0]:
                for c in range(labels):
                    out[i, j, c] = room[c] / total
    return low, high


@njit(cache=True, nogil=True)
def _inside(n, binary, charts, room):
    for i in range(n):
        own = charts.label[i, i + 1]
        charts.item[i + 1, i] = own if binary or n == 1 else plus(LOG, own, 0.0)
        charts.row[i, i + 1] = charts.item[i + 1, i]
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            j = i + width
            left, right = charts.row[i], charts.item[j]
            for k in range(i + 1, j):
                room[k - i - 1] = left[k] + right[k]
            several, _ = _log_sum(room, width - 1)
            item = charts.label[i, j] + several
            charts.several[i, j], charts.item[j, i] = several, item
            charts.row[i, j] = item if binary else plus(LOG, item, several)


@njit(cache=True, nogil=True)
def _outside(n, binary, charts, room):
    """label <- the probability of a constituent."""
    charts.row_share[:] = 0.0
    charts.item_share[:] = 0.0
    charts.item_share[n, 0] = 1.0
    for width in range(n, 0, -1):
        for i in range(n - width + 1):
            j = i + width
            item, row = charts.item[j, i], charts.row[i, j]
            mass, of_row = charts.item_share[j, i], charts.row_share[i, j]
            if width == 1:
                mass += of_row
                charts.label[i, j] = mass * exp(charts.label[i, j] - item) if mass > 0.0 else 0.0
                continue
            rest = 0.0
            if of_row > 0.0:
                mass += of_row if binary else of_row * exp(item - row)
                rest = 0.0 if binary else of_row * exp(charts.several[i, j] - row)
            charts.label[i, j] = mass
            mass += rest
            if not mass > 0.0:
                continue
            left, right = charts.row[i], charts.item[j]
            for k in range(i + 1, j):
                room[k - i - 1] = left[k] + right[k]
            mass /= _weights(room, width - 1, charts.several[i, j])
            shares, others = charts.row_share[i], charts.item_share[j]
            for k in range(i + 1, j):
                x = mass * room[k - i - 1]
                shares[k] += x
                others[k] += x


@njit(cache=True, nogil=True)
def span_sums(span, lengths, empty, value, extent, out):
    """value[b] <- log of the sum of exp(score) over the trees of each sentence of a batch: span (B, N, N, L).

    Trees are binary if ``empty`` is below 0, else of any shape. extent[b] <- the least and the greatest score that is
    not -inf, the latter inf if one is no score: then nothing else is found. out (B, N, N, L) <- the probability of each
    cell, unless it comes empty; 0 where there is none, or no tree.
    """
    size, labels = span.shape[1], span.shape[3]
    table = np.empty((6, size, size))
    charts = Charts(table[0], table[1], table[2], table[3], table[4], table[5])
    room = aligned(max(size, labels) + LANES)
    nothing = np.empty((0, 1, 1))
    wanted = out.shape[0] > 0
    for b in range(span.shape[0]):
        n = lengths[b]
        own = out[b] if wanted else nothing
        extent[b, 0], extent[b, 1] = _fold(span[b], n, empty, room, charts.label, own)
        value[b] = 0.0
        if extent[b, 1] < inf and n > 0:
            _inside(n, empty < 0, charts, room)
            value[b] = charts.item[n, 0]
            if wanted and value[b] > -inf:
                _outside(n, empty < 0, charts, room)
        if not wanted:
            continue
        for i in range(size):
            for j in range(size):
                some = i < j <= n and extent[b, 1] < inf and value[b] > -inf
                share = charts.label[i, j] if some else 0.0
                for c in range(labels):
                    own[i, j, c] = share * own[i, j, c] if some else 0.0
