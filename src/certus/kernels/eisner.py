"""First-order projective trees: Eisner's algorithm, inside and outside (LR 2.2.4; DEP 5.3.1).

Spans [i, j] are held by their left end i, in flat (N, N) arrays, so that every inner loop runs along a row:

    R[i, e]   i with all its right modifiers, reaching e          L[i, j]   j with all its left modifiers, reaching i
    IR[i, j]  the arc i -> j and what lies between                IL[i, j]  the arc j -> i and what lies between

    B[j]     = (+)_r  R[i, r] (x) L[r + 1, j]                 i <= r < j, shared by both arcs of a span
    IR[i, j] = B[j] (x) arc[i, j],   IL[i, j] = B[j] (x) arc[j, i]
    R[i, e]  = (+)_m  IR[i, m] (x) R[m, e],   L[i, j] = (+)_m  IL[m, j] (x) L[i, m]

Rows go from the last word to the first. What is final is pushed to the rest of its row, and nothing is stored for the
way back: the best split of an item is found again when a tree is read off. Algebras: MAX, LOG, and REAL on exponentials
of scores. Node 0 is row 0; with a single root it is not a row but the choice of one word.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from certus.kernels.algebra import LOG, MAX, REAL, plus, times
from certus.kernels.compiling import njit
from certus.kernels.lanes import BAD, LANES, UNSIGNED, aligned, as_float, load, magnitude, spread, store, watch

SAFE_EXPONENT = 650.0


class Charts(NamedTuple):
    """The items of one sentence, inside or outside, (N * N,) each; B (N,) is work."""

    R: np.ndarray
    L: np.ndarray
    IR: np.ndarray
    IL: np.ndarray
    B: np.ndarray


class Scale(NamedTuple):
    """What the tolerance of a tree depends on besides its score, as certus.certificates.rounding has it."""

    terms: int  # terms of a score for each word, each of at most ``highest``
    highest: float
    width: float  # errors that a tolerance is wide
    share: float  # of the absolute arc scores of a tree, that a tolerance may be
    mask: float  # scores below -mask count as -mask


class Proofs(NamedTuple):
    """What is known of the tree of each item, (B,) each."""

    value: np.ndarray  # by the chart or the contraction
    score: np.ndarray  # from the input
    bound: np.ndarray
    tolerance: np.ndarray
    open_items: np.ndarray  # whether it is not proved


@njit(cache=True, nogil=True)
def room(size):
    """Empty charts for sentences of up to size - 1 words."""
    cells = size * size
    return Charts(np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells), np.empty(size))


@njit(cache=True, nogil=True)
def survey(arc, lengths):
    """Largest magnitude of an arc score (B, N, N), and the item with a bad one (-1 if there is none)."""
    size = arc.shape[1]
    cells, lanes = uint64(size * size), uint64(LANES)
    if cells < lanes:
        return _survey_small(arc, lengths)
    flat = arc.reshape(-1)
    masks, tops = aligned(size * size), np.empty(LANES)  # of the cells of one item that are arcs
    bits, found = masks.view(np.int64), tops.view(np.int64)
    largest = spread(0.0)
    known = -1
    for k in range(lengths.shape[0]):
        n = lengths[k]
        if n != known:
            known = n
            bits[:] = 0
            for h in range(n + 1):
                bits[h * size + 1 : h * size + n + 1] = UNSIGNED
                bits[h * size + h] = 0
        page = uint64(k) * cells
        for cell in range(uint64(0), uint64((n + 1) * size), lanes):
            at = min(cell, cells - lanes)
            largest = watch(largest, load(flat, page + at), load(masks, at))
        store(tops, uint64(0), largest)
        top = found.max()
        if top >= BAD:
            return as_float(top), k
    store(tops, uint64(0), largest)
    return as_float(found.max()), -1


@njit(cache=True, nogil=True)
def _survey_small(arc, lengths):
    """survey for sentences of one word at most."""
    top = 0
    for k in range(lengths.shape[0]):
        if lengths[k] == 1:
            top = max(top, magnitude(np.array([np.float64(arc[k, 0, 1])]).view(np.int64)[0]))
            if top >= BAD:
                return as_float(top), k
    return as_float(top), -1


@njit(cache=True, nogil=True)
def tree_scores(arc, heads, lengths, score):
    """Score of one tree per item from the input, its arcs in order: heads (B, N), score (B,), -inf if head 1 is -1."""
    for k in range(arc.shape[0]):
        total = 0.0
        if lengths[k] > 0 and heads[k, 1] < 0:
            total = -np.inf
        else:
            for m in range(1, lengths[k] + 1):
                total += arc[k, heads[k, m], m]
        score[k] = total


@njit(cache=True, nogil=True)
def inside(sr, arc, size, n, first, charts):
    """Fill rows n .. first of the charts from arc (N * N,), N = size."""
    R, L, IR, IL, B = charts
    one = uint64(1)
    for x in range(n + one - first):
        i = n - x
        row = i * size
        for e in range(i, n + one):
            R[row + e] = sr.zero
            L[row + e] = sr.zero
            B[e] = sr.zero
        R[row + i] = sr.one
        L[row + i] = sr.one
        for r in range(i, n):
            j = r + one
            low = j * size
            c = R[row + r]
            b = plus(sr, B[j], c)
            right = times(sr, b, arc[row + j])
            left = times(sr, b, arc[low + i])
            IR[row + j] = right
            IL[row + j] = left
            R[row + j] = plus(sr, R[row + j], right)
            done = plus(sr, L[row + j], left)
            L[row + j] = done
            for e in range(j + one, n + one):
                B[e] = plus(sr, B[e], times(sr, c, L[low + e]))
                R[row + e] = plus(sr, R[row + e], times(sr, right, R[low + e]))
                L[row + e] = plus(sr, L[row + e], times(sr, done, IL[low + e]))


@njit(cache=True, nogil=True)
def outside(sr, arc, size, n, first, charts, outer):
    """The reverse of inside: outer R, L hold what lies outside the goal's items, zero elsewhere; fills IR and IL."""
    R, L, IR, IL, _ = charts
    dR, dL, dIR, dIL, dB = outer
    one = uint64(1)
    for i in range(first, n + one):
        row = i * size
        for x in range(n - i):
            r = n - one - x
            j = r + one
            low = j * size
            c = R[row + r]
            right = IR[row + j]
            done = L[row + j]
            for e in range(j + one, n + one):
                dIL[low + e] = plus(sr, dIL[low + e], times(sr, dL[row + e], done))
                dR[low + e] = plus(sr, dR[low + e], times(sr, dR[row + e], right))
                dL[low + e] = plus(sr, dL[low + e], times(sr, dB[e], c))
            ddone = dL[row + j]
            dright = dR[row + j]
            dc = sr.zero
            for e in range(j + one, n + one):
                ddone = plus(sr, ddone, times(sr, dL[row + e], IL[low + e]))
                dright = plus(sr, dright, times(sr, dR[row + e], R[low + e]))
                dc = plus(sr, dc, times(sr, dB[e], L[low + e]))
            dL[row + j] = ddone
            dleft = plus(sr, dIL[row + j], ddone)
            dIL[row + j] = dleft
            dIR[row + j] = dright
            b = plus(sr, times(sr, dright, arc[row + j]), times(sr, dleft, arc[low + i]))
            dB[j] = b
            dR[row + r] = plus(sr, dR[row + r], plus(sr, dc, b))


@njit(cache=True, nogil=True, inline="always")
def split(width, R, L, i, j, stack, top):
    """Push the best R[i, r] and L[r + 1, j], of charts with rows of ``width`` cells; returns the new top."""
    one = uint64(1)
    best = -np.inf
    at = i
    for r in range(i, j):
        score = R[i * width + r] + L[(r + one) * width + j]
        if score > best:
            best = score
            at = r
    stack[top, 0] = one
    stack[top, 1] = i
    stack[top, 2] = at
    top += one
    stack[top, 0] = uint64(0)
    stack[top, 1] = at + one
    stack[top, 2] = j
    return top + one


@njit(cache=True, nogil=True)
def read_off(size, charts, right, i, j, heads, stack):
    """Set the heads below one complete item: i reaching right to j, or j reaching left to i. Ties: smallest index."""
    R, L, IR, IL, _ = charts
    one = uint64(1)
    top = uint64(1)
    stack[0, 0] = uint64(right)
    stack[0, 1] = i
    stack[0, 2] = j
    while top > uint64(0):
        top -= one
        right = stack[top, 0] == one
        i = stack[top, 1]
        j = stack[top, 2]
        if i == j:
            continue
        best = -np.inf
        m = i
        for x in range(j - i):
            k = i + one + x if right else i + x
            score = IR[i * size + k] + R[k * size + j] if right else IL[k * size + j] + L[i * size + k]
            if score > best:
                best = score
                m = k
        heads[m] = i if right else j
        stack[top, uint64(1) if right else uint64(2)] = m
        top = split(size, R, L, i if right else m, m if right else j, stack, top + one)


@njit(cache=True, nogil=True)
def best_tree(arc, size, n, single, charts, tree, stack):
    """The best tree that the charts hold, into tree (N,); returns its value, -inf if there is none."""
    R, L = charts.R, charts.L
    one = uint64(1)
    best = -np.inf
    at = one
    if single:
        for m in range(one, n + one):
            score = arc[m] + L[size + m] + R[m * size + n]
            if score > best:
                best = score
                at = m
    else:
        best = R[n]
    if best == -np.inf:
        return best
    if single:
        tree[at] = 0
        read_off(size, charts, False, one, at, tree, stack)
        read_off(size, charts, True, at, n, tree, stack)
    else:
        read_off(size, charts, True, uint64(0), n, tree, stack)
    return best


@njit(cache=True, nogil=True)
def decode(arc, lengths, single, heads, value):
    """Best tree of each item: arc (B, N, N), lengths (B,), heads (B, N) padded with -1, value (B,), -inf if none."""
    size = uint64(arc.shape[1])
    one = uint64(1)
    first = one if single else uint64(0)
    cells = arc.shape[1] * arc.shape[1]
    charts = room(arc.shape[1])
    stack = np.empty((2 * arc.shape[1] + 4, 3), dtype=np.uint64)
    heads[:] = -1
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = 0.0
        if n == uint64(0):
            continue
        scores = arc[k].reshape(cells)
        inside(MAX, scores, size, n, first, charts)
        value[k] = best_tree(scores, size, n, single, charts, heads[k], stack)


@njit(cache=True, nogil=True)
def decode_and_score(arc, lengths, single, heads, value, score):
    """decode, and the scores of its trees, as tree_scores gives them; -inf where there is none."""
    decode(arc, lengths, single, heads, value)
    tree_scores(arc, heads, lengths, score)


@njit(cache=True, nogil=True)
def certify(arc, heads, lengths, scale, proofs):
    """Bounds and tolerances of the trees of a batch, from their values and scores, which are in proofs.

    bound <- the greater of the two; tolerance <- width errors; open_items <- whether the tolerance is more than its
    share of the absolute arc scores of the tree, or less than twice the gap. Returns the first item without tree, or
    -1, and how many are open.
    """
    value, score, bound, tolerance, open_items = proofs
    count = 0
    for k in range(lengths.shape[0]):
        if value[k] == -np.inf:
            return k, count
        size = 0.0
        for m in range(1, lengths[k] + 1):
            x = arc[k, heads[k, m], m]
            size += x if x > 0.0 else min(-x, scale.mask)
        length = float(scale.terms * lengths[k])
        bound[k] = max(value[k], score[k])
        tolerance[k] = scale.width * length * (2.0 * length * max(scale.highest, 0.0) + max(-score[k], 0.0))
        proved = tolerance[k] <= scale.share * size and 2.0 * (bound[k] - score[k]) <= tolerance[k]
        open_items[k] = not proved
        count += open_items[k]
    return -1, count


@njit(cache=True, nogil=True)
def goal(sr, arc, size, n, single, charts):
    """Semiring total over all trees, from charts that are filled."""
    R, L = charts.R, charts.L
    if not single:
        return R[n]
    one = uint64(1)
    total = sr.zero
    for m in range(one, n + one):
        total = plus(sr, total, times(sr, times(sr, arc[m], L[size + m]), R[m * size + n]))
    return total


@njit(cache=True, nogil=True)
def arc_totals(sr, width, n, first, charts, outer, out):
    """out[h, m] <- total over the trees with the arc, from charts with rows of ``width`` cells."""
    one = uint64(1)
    IR, IL, dIR, dIL = charts.IR, charts.IL, outer.IR, outer.IL
    for i in range(first, n + one):
        for j in range(i + one, n + one):
            out[i, j] = times(sr, IR[i * width + j], dIR[i * width + j])
            if i > uint64(0):
                out[j, i] = times(sr, IL[i * width + j], dIL[i * width + j])


@njit(cache=True, nogil=True)
def totals(sr, arc, size, n, single, charts, outer, out):
    """Semiring total over all trees of one item and, if out (N, N) has room for it, over those with each arc."""
    one = uint64(1)
    first = one if single else uint64(0)
    inside(sr, arc, size, n, first, charts)
    value = goal(sr, arc, size, n, single, charts)
    if uint64(out.shape[0]) <= n:
        return value
    for chart in outer:
        chart[:] = sr.zero
    out[:] = sr.zero
    R, L, dR, dL = charts.R, charts.L, outer.R, outer.L
    if single:
        for m in range(one, n + one):
            dL[size + m] = times(sr, arc[m], R[m * size + n])
            dR[m * size + n] = times(sr, arc[m], L[size + m])
            out[0, m] = times(sr, dL[size + m], L[size + m])
    else:
        dR[n] = sr.one
    outside(sr, arc, size, n, first, charts, outer)
    arc_totals(sr, size, n, first, charts, outer, out)
    return value


@njit(cache=True, nogil=True)
def max_totals(arc, lengths, single, out, value):
    """Best score of any tree, value (B,), and of a tree with each arc, out (B, N, N)."""
    size = uint64(arc.shape[1])
    cells = arc.shape[1] * arc.shape[1]
    charts, outer = room(arc.shape[1]), room(arc.shape[1])
    out[:] = -np.inf
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = 0.0
        if n > uint64(0):
            value[k] = totals(MAX, arc[k].reshape(cells), size, n, single, charts, outer, out[k])


@njit(cache=True, nogil=True)
def log_totals(arc, lengths, single, with_arcs, out, value):
    """Log of the sum over trees, value (B,), and, if asked for, arc marginals, out (B, N, N), else (1, 1, 1).

    Sums are of exponentials, without logarithms, while nothing that matters can underflow: with all scores at most 0,
    trees that underflow are below exp(-700) each and there are fewer than exp(2 n) of them; next to a best one that is
    far above that they are nothing.
    """
    size = uint64(arc.shape[1])
    first = uint64(single)
    cells = arc.shape[1] * arc.shape[1]
    charts, outer = room(arc.shape[1]), room(arc.shape[1])
    arcs = np.empty(cells)
    out[:] = 0.0
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = 0.0
        if n == uint64(0):
            continue
        arcs[:] = -np.inf
        shift = level(arc[k].reshape(cells), size, n, arcs)
        inside(MAX, arcs, size, n, first, charts)
        best = goal(MAX, arcs, size, n, single, charts)
        if best == -np.inf:
            value[k] = -np.inf
            continue
        found = out[k if with_arcs else 0]
        if best > 2.0 * lengths[k] + 45.0 - SAFE_EXPONENT:
            arcs[:] = np.exp(arcs)
            total = totals(REAL, arcs, size, n, single, charts, outer, found)
            value[k] = np.log(total) + shift
            if with_arcs:
                found /= total
        else:
            total = totals(LOG, arcs, size, n, single, charts, outer, found)
            value[k] = total + shift
            if with_arcs:
                found[:] = np.exp(found - total)


@njit(cache=True, nogil=True)
def level(arc, size, n, arcs):
    """arcs <- arc with the best score into each word taken off; returns the sum of what was taken off."""
    one = uint64(1)
    shift = 0.0
    for m in range(one, n + one):
        column = -np.inf
        for h in range(n + one):
            if h != m:
                column = max(column, arc[h * size + m])
        column = 0.0 if column == -np.inf else column
        shift += column
        for h in range(n + one):
            if h != m:
                arcs[h * size + m] = arc[h * size + m] - column
    return shift


__all__ = ["certify", "decode", "decode_and_score", "log_totals", "max_totals", "survey", "tree_scores"]
