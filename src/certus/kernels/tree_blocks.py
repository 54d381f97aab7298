"""Batches of arc scores as blocks of weights for sums over trees, and blocks of marginals as batches.

Numbers. Weights are exp(score - largest score into m). They are plain numbers (REAL) while no product can leave the
range of float64, else logarithms (LOG): one source serves both. With every arc allowed, no entry ever falls below
the smallest weight, so a bound on the scores settles it. With forbidden arcs each new entry is looked at.

Groups. Sentences in which every arc is allowed all take the same steps (a part that is eliminated leaves another, so
no word has to become the root), and LANES of them are served at once: the same source again, with numbers of several
lanes (WIDE). Where their lengths differ, words without modifiers, whose one head is the last word, are put before the
shorter ones: they leave every sum as it is. What is computed for such a word once no other is left is nan, and
stays in its own column. A sentence alone is faster by itself (REAL), and one with forbidden arcs goes its own way.

Layout. A block of n words has rows 0 (root), 1..n (words) of n cells, each of as many numbers as a group has sentences.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.algebra import U
from certus.kernels.compiling import njit
from certus.kernels.lanes import LANES, aligned, exponential, interleave, larger, load, spread, store, where_larger

OK, OUT_OF_RANGE, NO_TREE, NO_WORDS = range(4)

MULTI_RANGE = 640.0  # largest difference of scores into one word for REAL: e^-640 is a normal number
SINGLE_RANGE = 200.0  # with a single root entries reach e^(3 * range)


class Sums(NamedTuple):
    """What is known of each sentence of a padded batch, (B,) if not said otherwise."""

    out: np.ndarray  # (B, N, N): probability of each arc, 0 beyond the sentence; (1, 1, 1) if not asked for
    values: np.ndarray  # log of the sum over trees, less shifts; -inf if there is no tree
    shifts: np.ndarray  # sum of the largest scores into the words
    most: np.ndarray  # (B, N): largest score into each word
    forbidden: np.ndarray  # whether some arc is -inf
    status: np.ndarray  # OK, NO_TREE, NO_WORDS, or OUT_OF_RANGE if only logarithms will do


@njit(cache=True, nogil=True)
def _diagonals():
    """1 in lane k of cell k, else 0, for k < LANES."""
    found = aligned(LANES * LANES)
    for i in range(LANES):
        for k in range(LANES):
            found[i * LANES + k] = 1.0 if i == k else 0.0
    return found


@njit(cache=True, nogil=True)
def _extremes(score, page, stride, n, own, high, least):
    """high[m], least[m] <- largest and smallest score into each of n >= LANES words, LANES words at a time."""
    one, words, size = U(LANES), U(n), U(stride)
    zero, lowest, highest = spread(0.0), spread(-np.inf), spread(np.inf)
    for cell in range(U(1), words + U(1), one):
        m = min(cell, words + U(1) - one)  # the last ones once more where they are no whole number of lanes
        top = low = load(score, page + m)
        for h in range(U(1), words + U(1)):
            x = load(score, page + h * size + m)
            if m <= h < m + one:
                loop = load(own, (h - m) * one)
                top = larger(where_larger(loop, zero, lowest, x), top)
                low = where_larger(low, where_larger(loop, zero, highest, x), x, low)
            else:
                top = larger(x, top)
                low = where_larger(low, x, x, low)
        store(high, m, top)
        store(least, m, low)


@njit(cache=True, nogil=True)
def survey(score, stride, lengths, single, sums):
    """Fill all but out for a padded batch: score (B * stride * stride,).

    Status OK says that the numbers themselves may be tried (REAL). values get what tree_sums need not find out: that
    there is no tree, or but one, without an arc.
    """
    _, values, shifts, most, forbidden, status = sums
    least, own = np.empty(stride), _diagonals()
    for b in range(lengths.shape[0]):
        n = lengths[b]
        page = U(b * stride * stride)
        high = most[b]
        if n >= LANES:
            _extremes(score, page, stride, n, own, high, least)
        else:
            for m in range(1, n + 1):
                high[m] = least[m] = score[page + U(m)]
                for h in range(1, n + 1):
                    x = score[page + U(h * stride + m)]
                    if h != m:
                        high[m] = x if x > high[m] else high[m]
                        least[m] = x if x < least[m] else least[m]
        shifts[b] = 0.0
        widest = 0.0
        forbidden[b] = False
        for m in range(1, n + 1):
            shifts[b] += high[m]
            if least[m] == -np.inf:
                forbidden[b] = True
                for h in range(n + 1):
                    x = score[page + U(h * stride + m)]
                    if h != m and x > -np.inf:
                        widest = max(widest, high[m] - x)
            else:
                widest = max(widest, high[m] - least[m])
        status[b] = OK if widest <= (SINGLE_RANGE if single or forbidden[b] else MULTI_RANGE) else OUT_OF_RANGE
        if shifts[b] == -np.inf:
            status[b] = NO_TREE
        if n == 0:
            status[b] = NO_WORDS
        values[b] = 0.0 if n == 0 else -np.inf


@njit(cache=True, nogil=True)
def alike(group, lengths):
    """Whether a group is LANES sentences of one length, and of as many words at least."""
    n = lengths[group[0]]
    return group.shape[0] == LANES and n >= LANES and lengths[group].min() == n


@njit(cache=True, nogil=True)
def _weights_alike(score, stride, n, most, group, out):
    """weights of sentences that are alike, by squares of LANES cells."""
    one, size, words = U(LANES), U(stride), U(n)
    starts = np.empty(LANES, np.uint64)
    high = aligned(n * LANES)
    for lane in range(LANES):
        starts[lane] = U(group[lane]) * size * size + U(1)
        for m in range(n):
            high[m * LANES + lane] = -most[group[lane], m + 1]
    for h in range(words + U(1)):
        row = h * words * one
        for cell in range(U(0), words, one):
            m = min(cell, words - one)
            interleave(score, starts, h * size + m, out, row + m * one, one)
        for m in range(U(0), words * one, one):
            store(out, row + m, exponential(load(out, row + m) + load(high, m)))
        if h > U(0):
            store(out, row + (h - U(1)) * one, spread(0.0))


@njit(cache=True, nogil=True)
def lay_out(score, stride, lengths, most, group, out):
    """out <- block of a group: scores less the largest into the word; -inf on the diagonal. Returns how much is used.

    group (lanes,) names the sentences, a longest one first. The words put before a shorter sentence have one arc, from
    the last word, of score 0.
    """
    width = U(group.shape[0])
    n = lengths[group[0]]
    for h in range(n + 1):
        for lane in range(group.shape[0]):
            b = group[lane]
            extra = n - lengths[b]
            cell = U(h * n) * width + U(lane)
            for _ in range(extra):
                out[cell] = 0.0 if h == n else -np.inf
                cell += width
            unreal = 0 < h <= extra
            row = U(b * stride * stride + (0 if h <= extra else h - extra) * stride)
            for m in range(U(1), U(lengths[b] + 1)):
                out[cell] = -np.inf if unreal else score[row + m] - most[b, m]
                cell += width
            if h > 0:
                out[U(h * n + h - 1) * width + U(lane)] = -np.inf
    return U((n + 1) * n) * width


@njit(cache=True, nogil=True)
def exponentials(w, used):
    """exp of w[:used], and of a few numbers after them, which nothing depends on."""
    for i in range(U(0), U(used), U(LANES)):
        store(w, i, exponential(load(w, i)))


@njit(cache=True, nogil=True)
def weights(score, stride, lengths, most, group, out):
    """out <- exponentials of the block of a group, which lay_out describes. Returns how much is used."""
    if alike(group, lengths):
        n = lengths[group[0]]
        _weights_alike(score, stride, n, most, group, out)
        return U((n + 1) * n * LANES)
    used = lay_out(score, stride, lengths, most, group, out)
    exponentials(out, used)
    return used


@njit(cache=True, nogil=True)
def hand_out_alike(w, chance, total, n, first, out):
    """out[b, h, m] <- w chance total[m] of sentences that are alike, from number ``first`` on, by squares of cells."""
    one, size, words = U(LANES), U(out.shape[1]), U(n)
    flat, page = out.reshape(-1), size * size
    starts, line = np.empty(LANES, np.uint64), aligned(n * LANES)
    for k in range(LANES):
        starts[k] = U(k) * one
    begin = U(first) * page
    for h in range(words + U(1)):
        row = h * words * one
        for m in range(U(0), words * one, one):
            store(line, m, load(w, row + m) * load(chance, row + m) * load(total, m))
        to = begin + h * size + U(1)
        for cell in range(U(0), words, one):
            m = min(cell, words - one)
            interleave(line, starts, m * one, flat, to + m, page)
    for lane in range(one):
        at = begin + lane * page
        for h in range(words + U(1)):
            flat[at + h * size] = 0.0
            for m in range(words + U(1), size):
                flat[at + h * size + m] = 0.0
        for cell in range(at + (words + U(1)) * size, at + page):
            flat[cell] = 0.0


@njit(cache=True, nogil=True)
def hand_out(block, group, lengths, out):
    """out[b, h, m] <- the numbers of each sentence of a group, 0 where there are none."""
    n, width = lengths[group[0]], U(len(group))
    for h in range(out.shape[1]):
        for lane in range(len(group)):
            b = group[lane]
            row = out[b, h]
            row[0] = 0.0
            words = lengths[b] if h <= lengths[b] else 0
            extra = n - lengths[b]
            cell = U((h if h == 0 else h + extra) * n + extra) * width + U(lane)
            for m in range(U(1), U(words + 1)):
                row[m] = block[cell]
                cell += width
            for m in range(words + 1, out.shape[2]):
                row[m] = 0.0
