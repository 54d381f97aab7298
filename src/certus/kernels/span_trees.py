"""The best tree of labelled spans of each sentence of a batch. O(n^3 + n^2 L).

Only the best label of a span matters, so that trees are of spans alone. Of the words i .. j - 1

    several[i, j] = max over k of row[i, k] + item[k, j]     two items or more, side by side
    item[i, j]    = label[i, j] + several[i, j]              one constituent
    row[i, j]     = item[i, j], or several[i, j] if trees are of any shape

and a word is an item by its label, or if trees are of any shape without one. Which label and which k it was is only
looked for where the best tree has a span. Of equal ones it is the first; an item goes before several.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.lanes import LANES, aligned, highest, lane, larger, load, spread, where_larger


class Charts(NamedTuple):
    """Rows of so many cells, one after the other, the last LANES of each -inf; ``item`` has the last word first."""

    across: int
    label: np.ndarray
    several: np.ndarray
    row: np.ndarray
    item: np.ndarray


class Best(NamedTuple):
    """What is known of each sentence of a batch."""

    value: np.ndarray  # (B,) the best score, -inf if there is no tree
    extent: np.ndarray  # (B, 2) the least and the greatest score that is not -inf, the latter inf if one is no score
    rows: np.ndarray  # (B, M, 3) first word, word after the last, label of the spans: parents first, then left to right
    used: np.ndarray  # (B, M) their scores
    sizes: np.ndarray  # (B,) how many there are


@njit(cache=True, nogil=True)
def skipped(labels, empty):
    """1 for each lane that does not count, of each value that labels are read by, in steps of LANES; else 0.

    The last value is one of LANES labels too: what the one before it has read does not count.
    """
    whole = -(-labels // LANES) * LANES
    skip = aligned(whole)
    for c in range(whole):
        step = c - c % LANES
        label = min(step, labels - LANES) + c % LANES
        skip[c] = 1.0 if label < step or label == empty else 0.0
    return skip


@njit(cache=True, nogil=True)
def best_labels(span, n, labels, skip, across, best):
    """best[i, j] <- the best score of a label of the words i .. j - 1, in rows of ``across`` cells.

    span is that of a sentence, flat, in rows of LANES spans less. Returns the least and the greatest score that is not
    -inf, the latter inf if one is no score.
    """
    none, lowest, most = spread(0.0), spread(-inf), spread(inf)
    fine, least, high = spread(1.0), most, -inf
    for i in range(n):
        for j in range(i + 1, n + 1):
            cell = (i * (across - LANES) + j) * labels
            top = lowest
            for c in range(0, labels, LANES):
                x = where_larger(load(skip, c), none, lowest, load(span, cell + min(c, labels - LANES)))
                fine = where_larger(most, x, fine, none)
                top = larger(x, top)
                finite = where_larger(x, lowest, x, most)
                least = where_larger(least, finite, finite, least)
            best[i * across + j] = highest(top)
            high = max(high, best[i * across + j])
    low = inf
    for k in range(LANES):
        low = min(low, lane(least, k))
        high = high if lane(fine, k) > 0.0 else inf
    return low, high


@njit(cache=True, nogil=True)
def _chart(n, binary, charts):
    across = charts.across
    for i in range(n):
        own = charts.label[i * across + i + 1]
        item = own if binary or n == 1 else max(own, 0.0)
        charts.row[i * across + i + 1] = charts.item[(i + 1) * across + i] = item
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            j = i + width
            left, right = i * across, j * across
            top = spread(-inf)
            for k in range(i + 1, j, LANES):  # what follows in the row is -inf still
                top = larger(load(charts.row, left + k) + load(charts.item, right + k), top)
            several = highest(top)
            item = charts.label[left + j] + several
            charts.several[left + j], charts.item[right + i] = several, item
            charts.row[left + j] = item if binary else max(item, several)


@njit(cache=True, nogil=True)
def _spell(span, n, labels, empty, charts, stack, rows, used):
    """rows and used <- the spans of the best tree and their scores; returns how many."""
    across, binary, count, depth = charts.across, empty < 0, 0, 1
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, 1
    while depth > 0:
        depth -= 1
        i, j, single = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        here = i * across + j
        item = charts.item[j * across + i]
        if single or j == i + 1 or binary or item >= charts.several[here]:
            label = charts.label[here]
            if binary or j > i + 1 or n == 1 or label >= 0.0:
                cell, c = ((i * (across - LANES)) + j) * labels, 0
                while c + 1 < labels and (c == empty or span[cell + c] != label):
                    c += 1
                rows[count, 0], rows[count, 1], rows[count, 2] = i, j, c
                used[count] = label
                count += 1
        if j == i + 1:
            continue
        k = i + 1
        while k + 1 < j and charts.row[i * across + k] + charts.item[j * across + k] != charts.several[here]:
            k += 1
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = k, j, 1
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = i, k, 0
        depth += 2
    return count


@njit(cache=True, nogil=True)
def best_trees(span, lengths, empty, best):
    """The best tree of each sentence of a batch: span (B, N, N, L), with LANES labels at least.

    Trees are binary if ``empty`` is below 0, else of any shape, and that label is not read. Rows of answers are -1, and
    scores used 0, behind the last span; of a sentence in which one is no score nothing else is found.
    """
    size, labels = span.shape[1], span.shape[3]
    across = size + LANES
    table = np.empty((4, size * across + LANES))
    charts = Charts(across, table[0], table[1], table[2], table[3])
    skip, stack = skipped(labels, empty), np.empty((2 * size, 3), np.int64)
    best.rows[:] = -1
    best.used[:] = 0.0
    for b in range(span.shape[0]):
        n, own = lengths[b], span[b].reshape(-1)
        table[:] = -inf
        best.extent[b, 0], best.extent[b, 1] = best_labels(own, n, labels, skip, across, charts.label)
        best.value[b], best.sizes[b] = 0.0, 0
        if n == 0 or best.extent[b, 1] == inf:
            continue
        _chart(n, empty < 0, charts)
        best.value[b] = charts.item[n * across]
        if best.value[b] > -inf:
            best.sizes[b] = _spell(own, n, labels, empty, charts, stack, best.rows[b], best.used[b])
