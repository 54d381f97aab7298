"""Labels of arcs folded into the arcs: the best of them, or all of them summed up, for each arc of a padded batch.

    best  arc[h, m] = max_l  label[h, m, l]                         sums  arc[h, m] = log sum_l exp(label[h, m, l])
          share[h, m, l] = exp(label[h, m, l] - arc[h, m])                entropy[h, m] = - sum_l share log share

Scores are (B, N, N, L), of float64 or float32, L >= LANES; the labels of an arc lie side by side and are read LANES at
a time, the last ones with some that were read before, left out by ``skip``. Arcs that no tree has, those of the
padding, into node 0 or from a word to itself, are not read: they get -inf, and shares of 0. So does an arc all of whose
labels are -inf.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit
from certus.kernels.lanes import (
    BAD,
    LANES,
    UNSIGNED,
    added,
    aligned,
    exponential,
    highest,
    larger,
    load,
    magnitude,
    spread,
    store,
    watch,
    where_larger,
)  # fmt: skip


class Folded(NamedTuple):
    """What is made of the labels: arcs (B, N, N); if wanted, entropies of the same shape, else (1, 1, 1), and shares
    (B, N, N, L), else (1, 1, 1, 1).
    """

    arc: np.ndarray
    entropy: np.ndarray
    share: np.ndarray


@njit(cache=True, nogil=True)
def _skipped(labels):
    """LANES numbers for each LANES labels: 0 for a label, 1 for one that was there before."""
    blocks = (labels + LANES - 1) // LANES
    skip = aligned(blocks * LANES)
    for c in range(blocks * LANES):
        again = max(c // LANES * LANES + LANES - labels, 0)
        skip[c] = 1.0 if c % LANES < again else 0.0
    return skip


@njit(cache=True, nogil=True)
def _best_of(label, cell, labels, mask, largest):
    """The best of some labels, and what ``watch`` has seen."""
    high = spread(-np.inf)
    for c in range(0, labels, LANES):
        x = load(label, cell + uint64(min(c, labels - LANES)))
        largest = watch(largest, x, mask)
        high = larger(x, high)
    return highest(high), largest


@njit(cache=True, nogil=True)
def _sums_of(label, cell, labels, skip, top):
    """Sum of exp(x - top) over the labels x, and of (x - top) exp(x - top); top is finite."""
    down, none, lowest, least = spread(-top), spread(0.0), spread(-np.inf), spread(-1e3)
    sums, products = none, none
    for c in range(0, labels, LANES):
        x = load(label, cell + uint64(min(c, labels - LANES))) + down
        e = exponential(where_larger(load(skip, c), none, lowest, x))
        sums = sums + e
        products = products + e * larger(x, least)  # below it e is 0, and x may be -inf
    return added(sums), added(products)


@njit(cache=True, nogil=True)
def _shares_of(label, cell, labels, value, share):
    """share <- exp(x - value) of the labels x."""
    down = spread(-value)
    for c in range(0, labels, LANES):
        at = cell + uint64(min(c, labels - LANES))
        store(share, at, exponential(load(label, at) + down))


@njit(cache=True, nogil=True)
def fold(label, lengths, summed, folded):
    """Fill ``folded``: by sums if ``summed``, else by maxima, which leave entropies and shares as they are.

    Returns the first item with a score that is nan or inf, or -1; what is filled for it is of no use.
    """
    arc, entropy, share = folded
    size, labels = label.shape[1], label.shape[3]
    flat, out = label.reshape(-1), share.reshape(-1)
    with_entropy, with_shares = summed and entropy.shape == arc.shape, summed and share.shape == label.shape
    skip, room = _skipped(labels), aligned(LANES)
    bits = room.view(np.int64)
    for k in range(LANES):
        bits[k] = UNSIGNED
    mask = load(room, 0)
    for b in range(label.shape[0]):
        n = lengths[b]
        largest = spread(0.0)
        for h in range(size):
            for m in range(size):
                cell = uint64(((b * size + h) * size + m) * labels)
                if m == 0 or m == h or h > n or m > n:
                    arc[b, h, m] = -np.inf
                    for c in range(uint64(labels if with_shares else 0)):
                        out[cell + c] = 0.0
                    if with_entropy:
                        entropy[b, h, m] = 0.0
                    continue
                top, largest = _best_of(flat, cell, labels, mask, largest)
                value = top
                if summed and -np.inf < top < np.inf:
                    total, weighted = _sums_of(flat, cell, labels, skip, top)
                    value = top + np.log(total)
                    if with_entropy:
                        entropy[b, h, m] = max(np.log(total) - weighted / total, 0.0)
                elif with_entropy:
                    entropy[b, h, m] = 0.0
                arc[b, h, m] = value
                if with_shares:
                    _shares_of(flat, cell, labels, value if value > -np.inf else 0.0, out)
        store(room, 0, largest)
        for k in range(LANES):
            if magnitude(bits[k]) >= BAD:
                return b
    return -1


@njit(cache=True, nogil=True)
def spread_arcs(arcs, share):
    """share[b, h, m, l] <- arcs[b, h, m] share[b, h, m, l]."""
    cells, flat = arcs.reshape(-1), share.reshape(-1)
    labels = uint64(share.shape[3])
    for cell in range(uint64(cells.shape[0])):
        x = cells[cell]
        for at in range(cell * labels, (cell + uint64(1)) * labels):
            flat[at] = flat[at] * x
