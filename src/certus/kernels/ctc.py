"""Sums over the labellings of frames that spell a target, for each item of a batch: [Graves06], forward and backward.

Places 0 .. 2 S of a target of S labels are its labels with a blank before, between and after them. With w[t, p] the
weight of the label of place p at frame t,

    forth[t, p] = w[t, p] (forth[t-1, p] + forth[t-1, p-1] + forth[t-1, p-2])      the last if labels p and p - 2 differ
    back[t, p]  = sum of w[t+1, q] back[t+1, q] over the places q that p goes on to

and a place is used at t with probability forth back / sum of them. Rows of places are plain numbers, over their largest
one; what is below TINY of it is 0. With A, B the largest numbers of a frame, what that leaves out of the sum Z is at
most TINY A B for each place of each frame, and A B is Z over the sum c[t] of forth back in scaled numbers. So nothing
that matters is lost if all c[t] are above LEAST; where one is not, or weights of a frame lie too far apart, the item is
left to others. Rows have two zeros before the first place and zeros to whole lanes after the last.
"""

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.lanes import (
    LANES,
    added,
    aligned,
    exponential,
    highest,
    larger,
    load,
    spread,
    store,
    where_larger,
)  # fmt: skip

TINY, LEAST = 1e-150, 1e-120
BEFORE = 2


@njit(cache=True, nogil=True)
def _weigh(frame, label, places, weight, at):
    """weight[at:] <- exp of scores of places in a frame, over the largest; returns its log, nan if one is no score."""
    top = -np.inf
    for p in range(places):
        x = np.float64(frame[label[p]])
        if not x < np.inf:
            return np.nan
        weight[at + p] = x
        top = max(top, x)
    if top == -np.inf:
        return top
    for p in range(places, (places + LANES - 1) // LANES * LANES):
        weight[at + p] = -np.inf
    down = spread(-top)
    for p in range(0, places, LANES):
        store(weight, at + p, exponential(load(weight, at + p) + down))
    return top


@njit(cache=True, nogil=True)
def _scale(row, at, places):
    """Numbers over the largest one, 0 below TINY; returns it, or 0 where it is too small."""
    high, none, tiny = spread(0.0), spread(0.0), spread(TINY)
    for p in range(0, places, LANES):
        high = larger(load(row, at + p), high)
    top = highest(high)
    if not top >= TINY:
        return 0.0
    inverse = spread(1.0 / top)
    for p in range(0, places, LANES):
        x = load(row, at + p) * inverse
        store(row, at + p, where_larger(x, tiny, x, none))
    return top


@njit(cache=True, nogil=True)
def _forth(weight, skip, width, frames, places, forth):
    """Fill forth; returns the log of what its rows are over, and of the sum at the end; nan if it is too small."""
    total = 0.0
    forth[:] = 0.0
    for t in range(frames):
        at = t * width + BEFORE
        if t == 0:
            for p in range(min(2, places)):
                forth[at + p] = weight[at + p]
        else:
            before = at - width
            for p in range(0, places, LANES):
                x = load(forth, before + p) + load(forth, before + p - 1)
                x = x + load(skip, p) * load(forth, before + p - 2)
                store(forth, at + p, x * load(weight, at + p))
        for p in range(min(places, max(0, places - 2 * (frames - t)))):  # from here there is no way to the end
            forth[at + p] = 0.0
        top = _scale(forth, at, places)
        if top == 0.0:
            return np.nan
        total += np.log(top)
    end = (frames - 1) * width + BEFORE + places
    last = forth[end - 1] + (forth[end - 2] if places > 1 else 0.0)
    return total + np.log(last) if last > LEAST else np.nan


@njit(cache=True, nogil=True)
def _uses(weight, skip, forth, item, slot, out, found, back):
    """out[b, t, label] <- how likely each label is at each frame, if any are ``found``; returns whether no number was
    too small. ``item`` has b, its frames and its places, ``slot`` which label each place has.
    """
    b, frames, places = item
    width, names = weight.shape[0] // max(frames, 1), found.shape[0]
    now, onward = 0, width + LANES
    back[:] = 0.0
    for p in range(max(places - 2, 0), places):
        back[now + BEFORE + p] = 1.0
    step = onward + BEFORE
    for t in range(frames - 1, -1, -1):
        at = t * width + BEFORE
        if t < frames - 1:
            for p in range(0, places, LANES):
                store(back, step + p, load(back, now + BEFORE + p) * load(weight, at + width + p))
            for p in range(0, places, LANES):
                x = load(back, step + p) + load(back, step + p + 1)
                store(back, now + BEFORE + p, x + load(skip, p + 2) * load(back, step + p + 2))
            for p in range(places, (places + LANES - 1) // LANES * LANES):
                back[now + BEFORE + p] = 0.0
            if _scale(back, now + BEFORE, places) == 0.0:
                return False
        both = spread(0.0)
        for p in range(0, places, LANES):
            both = both + load(forth, at + p) * load(back, now + BEFORE + p)
        total = added(both)
        if not total > LEAST:
            return False
        found[:, 1] = 0.0
        for p in range(places if names > 0 else 0):
            found[slot[p], 1] += forth[at + p] * back[now + BEFORE + p]
        for k in range(names):
            out[b, t, np.int64(found[k, 0])] = found[k, 1] / total
    return True


@njit(cache=True, nogil=True)
def ctc_sums(frame, lengths, target, sizes, blank, total, uses):
    """total[b] <- log of the sum over the labellings of frame (B, T, V) that spell target[b, : sizes[b]]; uses, of the
    same shape, <- how likely each label is at each frame, unless it is (0, ...). total[b] is nan where others are to
    find both.
    """
    across = target.shape[1]
    width = BEFORE + (2 * across + 1 + LANES - 1) // LANES * LANES
    room = max(frame.shape[1], 1) * width
    weight, forth, skip = aligned(room), aligned(room + LANES), aligned(width + 2 * LANES)
    back = aligned(2 * (width + LANES) + LANES)
    label, slot = np.empty(2 * across + 1, np.int64), np.empty(2 * across + 1, np.int64)
    wanted = uses.shape[0] == frame.shape[0]
    for b in range(frame.shape[0]):
        frames, places = lengths[b], 2 * sizes[b] + 1
        total[b] = np.nan
        if frames == 0:
            continue
        label[0:places:2] = blank
        for k in range(sizes[b]):
            label[2 * k + 1] = target[b, k]
        skip[:] = 0.0
        names = 0
        for p in range(places):
            if p > 2 and p % 2 == 1 and label[p] != label[p - 2]:
                skip[p] = 1.0
            slot[p] = names
            for q in range(p):
                if label[q] == label[p]:
                    slot[p] = slot[q]
                    break
            names += slot[p] == names
        value = 0.0
        for t in range(frames):
            value += _weigh(frame[b, t], label, places, weight, t * width + BEFORE)
        if not value > -np.inf:
            continue
        value += _forth(weight[: frames * width], skip, width, frames, places, forth)
        if not value > -np.inf:
            continue
        found = np.empty((names if wanted else 0, 2))
        for p in range(places if wanted else 0):
            found[slot[p], 0] = label[p]
        if _uses(weight[: frames * width], skip, forth, (b, frames, places), slot, uses, found, back):
            total[b] = value
