"""Sums over trees of labelled spans, for each sentence of a batch: the logarithm of the sum, and marginals.

Labels are summed out first, so that trees are of spans alone, O(n^2 L + n^3): what ``span_trees`` says, with sums in
place of maxima. Charts are logarithms, in rows that are laid out as there. Marginals come by the shares that these sums
have in each other, from the whole sentence down: nothing is subtracted.
"""

from math import exp, inf, log
from typing import NamedTuple

import numpy as np

from certus.kernels.algebra import LOG, plus
from certus.kernels.compiling import njit
from certus.kernels.lanes import (
    LANES,
    added,
    aligned,
    exponential,
    highest,
    load,
    maximum,
    spread,
    store,
    where_larger,
)  # fmt: skip
from certus.kernels.span_trees import best_labels, skipped


class Charts(NamedTuple):
    """Rows of so many cells, one after the other, the last LANES of each -inf, or 0; ``item`` and ``item_share`` have
    the last word first.
    """

    across: int
    best: np.ndarray  # score of a label
    label: np.ndarray
    several: np.ndarray
    row: np.ndarray
    item: np.ndarray
    row_share: np.ndarray
    item_share: np.ndarray
    chance: np.ndarray  # of a constituent


@njit(cache=True, nogil=True)
def _fold(span, n, labels, skip, charts):
    """label[i, j] <- log of the sum over labels; ``best`` is known."""
    across, best, label = charts.across, charts.best, charts.label
    none, lowest = spread(0.0), spread(-inf)
    for i in range(n):
        for j in range(i + 1, n + 1):
            here = i * across + j
            top = best[here]
            if top == -inf:
                label[here] = -inf
                continue
            cell = (i * (across - LANES) + j) * labels
            down, total = spread(-top), spread(0.0)
            for c in range(0, labels, LANES):
                x = where_larger(load(skip, c), none, lowest, load(span, cell + min(c, labels - LANES)))
                total = total + exponential(x + down)
            label[here] = top + log(added(total))


@njit(cache=True, nogil=True)
def _inside(n, binary, charts):
    across, label, several = charts.across, charts.label, charts.several
    row, item = charts.row, charts.item
    for i in range(n):
        own = label[i * across + i + 1]
        item[(i + 1) * across + i] = own if binary or n == 1 else plus(LOG, own, 0.0)
        row[i * across + i + 1] = item[(i + 1) * across + i]
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            j = i + width
            left, right = i * across, j * across
            top = spread(-inf)
            for k in range(i + 1, j, LANES):  # what follows in a row of ``item`` is -inf
                top = maximum(top, load(row, left + k) + load(item, right + k))
            both = highest(top)
            if both > -inf:
                down, total = spread(-both), spread(0.0)
                for k in range(i + 1, j, LANES):
                    total = total + exponential((load(row, left + k) + load(item, right + k)) + down)
                both += log(added(total))
            one = label[left + j] + both
            several[left + j], item[right + i] = both, one
            row[left + j] = one if binary else plus(LOG, one, both)


@njit(cache=True, nogil=True)
def _outside(n, binary, charts, room):
    """chance <- the probability of each constituent."""
    across, label, several, chance = charts.across, charts.label, charts.several, charts.chance
    row, item, row_share, item_share = charts.row, charts.item, charts.row_share, charts.item_share
    row_share[:] = 0.0
    item_share[:] = 0.0
    item_share[n * across] = 1.0
    for width in range(n, 0, -1):
        for i in range(n - width + 1):
            j = i + width
            left, right = i * across, j * across
            one, either = item[right + i], row[left + j]
            mass, of_row = item_share[right + i], row_share[left + j]
            if width == 1:
                mass += of_row
                chance[left + j] = mass * exp(label[left + j] - one) if mass > 0.0 else 0.0
                continue
            rest = 0.0
            if of_row > 0.0:
                mass += of_row if binary else of_row * exp(one - either)
                rest = 0.0 if binary else of_row * exp(several[left + j] - either)
            chance[left + j] = mass
            mass += rest
            if not mass > 0.0:
                continue
            down, total = spread(-several[left + j]), spread(0.0)
            for k in range(i + 1, j, LANES):
                x = exponential((load(row, left + k) + load(item, right + k)) + down)
                store(room, k, x)
                total = total + x
            each = spread(mass / added(total))
            for k in range(i + 1, j, LANES):
                x = each * load(room, k)
                store(row_share, left + k, load(row_share, left + k) + x)
                store(item_share, right + k, load(item_share, right + k) + x)


@njit(cache=True, nogil=True)
def _hand_out(span, n, labels, skip, charts, out):
    """out <- the probability of each cell of a sentence, both of them flat."""
    across, best, label, chances = charts.across, charts.best, charts.label, charts.chance
    size, none, lowest = across - LANES, spread(0.0), spread(-inf)
    for i in range(size):
        for j in range(size):
            here, cell = i * across + j, (i * size + j) * labels
            chance = chances[here] if i < j <= n else 0.0
            if not chance > 0.0:
                for c in range(cell, cell + labels):
                    out[c] = 0.0
                continue
            down = spread(-best[here])
            scale = spread(chance * exp(best[here] - label[here]))
            for c in range((labels - 1) // LANES * LANES, -1, -LANES):  # the last has 0 where one before has its own
                at = cell + min(c, labels - LANES)
                x = where_larger(load(skip, c), none, lowest, load(span, at))
                store(out, at, scale * exponential(x + down))


@njit(cache=True, nogil=True)
def span_sums(span, lengths, empty, value, extent, out):
    """value[b] <- log of the sum of exp(score) over the trees of each sentence of a batch: span (B, N, N, L), with
    LANES labels at least.

    Trees are binary if ``empty`` is below 0, else of any shape. extent[b] <- the least and the greatest score that is
    not -inf, the latter inf if one is no score: then nothing else is found. out (B, N, N, L) <- the probability of each
    cell, unless it comes empty; 0 where there is none, or no tree.
    """
    size, labels = span.shape[1], span.shape[3]
    across = size + LANES
    table = np.empty((8, size * across + LANES))
    charts = Charts(across, table[0], table[1], table[2], table[3], table[4], table[5], table[6], table[7])
    skip, room = skipped(labels, empty), aligned(size + 2 * LANES)
    wanted = out.shape[0] > 0
    for b in range(span.shape[0]):
        n, own = lengths[b], span[b].reshape(-1)
        table[:5] = -inf
        extent[b, 0], extent[b, 1] = best_labels(own, n, labels, skip, across, charts.best)
        value[b] = 0.0
        found = n > 0 and extent[b, 1] < inf
        if found:
            _fold(own, n, labels, skip, charts)
            _inside(n, empty < 0, charts)
            value[b] = charts.item[n * across]
            found = value[b] > -inf
        if wanted and found:
            _outside(n, empty < 0, charts, room)
            _hand_out(own, n, labels, skip, charts, out[b].reshape(-1))
        elif wanted:
            out[b] = 0.0
