"""First-order projective trees: Eisner's algorithm, inside and outside (LR 2.2.4; DEP 5.3.1).

Spans [i, j] are held by their left end i, in flat (N, N) arrays, so that every inner loop runs along a row:

    R[i, e]   i with all its right modifiers, reaching e          L[i, j]   j with all its left modifiers, reaching i
    IR[i, j]  the arc i -> j and what lies between                IL[i, j]  the arc j -> i and what lies between

    B[j]     = (+)_r  R[i, r] (x) L[r + 1, j]                 i <= r < j, shared by both arcs of a span
    IR[i, j] = B[j] (x) arc[i, j],   IL[i, j] = B[j] (x) arc[j, i]
    R[i, e]  = (+)_m  IR[i, m] (x) R[m, e],   L[i, j] = (+)_m  IL[m, j] (x) L[i, m]

Rows go from the last word to the first. What is final is pushed to the rest of its row, and nothing is stored for the
way back: the best split of an item is found again when a tree is read off. Semirings: MaxPlus, LogPlus, and Counting on
exponentials of scores. Node 0 is row 0; with a single root it is not a row but the choice of one word.
"""

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit
from certus.kernels.hypergraph import Counting, LogPlus, MaxPlus, plus, times
from certus.kernels.wide import BAD, as_float, magnitude

SAFE_EXPONENT = 650.0


@njit(cache=True, nogil=True)
def survey(arc, lengths):
    """Largest magnitude of an arc score (B, N, N), and the item with a bad one (-1 if there is none)."""
    top = 0
    for k in range(arc.shape[0]):
        n = lengths[k]
        for h in range(n + 1):
            row = arc[k, h].view(np.int64)
            for m in range(1, h):
                top = max(top, magnitude(row[m]))
            for m in range(h + 1, n + 1):
                top = max(top, magnitude(row[m]))
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
def inside(sr, arc, size, n, first, R, L, IR, IL, B):
    """Fill rows n .. first of the charts from arc (N * N,), N = size."""
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
def outside(sr, arc, size, n, first, R, L, IR, IL, dR, dL, dIR, dIL, dB):
    """The reverse of inside: dR, dL hold what lies outside the goal's items and zero elsewhere; fills dIR, dIL."""
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
def read_off(size, n, R, L, IR, IL, right, i, j, heads, stack):
    """Set the heads below one complete item: i reaching right to j, or j reaching left to i. Ties: smallest index."""
    one = uint64(1)
    top = uint64(1)
    stack[0, 0] = uint64(right)
    stack[0, 1] = i
    stack[0, 2] = j
    while top > uint64(0):
        top -= one
        kind = stack[top, 0]
        i = stack[top, 1]
        j = stack[top, 2]
        if i == j:
            continue
        best = -np.inf
        at = i
        if kind == one:
            for m in range(i + one, j + one):
                score = IR[i * size + m] + R[m * size + j]
                if score > best:
                    best = score
                    at = m
            heads[at] = i
            stack[top, 0] = one
            stack[top, 1] = at
            stack[top, 2] = j
            j = at
        else:
            for m in range(i, j):
                score = IL[m * size + j] + L[i * size + m]
                if score > best:
                    best = score
                    at = m
            heads[at] = j
            stack[top, 0] = uint64(0)
            stack[top, 1] = i
            stack[top, 2] = at
            i = at
        top = split(size, R, L, i, j, stack, top + one)


@njit(cache=True, nogil=True)
def decode(arc, lengths, single, heads, value):
    """Best tree of each item: arc (B, N, N), lengths (B,), heads (B, N) padded with -1, value (B,), -inf if none."""
    size = uint64(arc.shape[1])
    one = uint64(1)
    first = one if single else uint64(0)
    cells = arc.shape[1] * arc.shape[1]
    R, L, IR, IL = np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells)
    B = np.empty(arc.shape[1])
    stack = np.empty((2 * arc.shape[1] + 4, 3), dtype=np.uint64)
    heads[:] = -1
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = 0.0
        if n == uint64(0):
            continue
        scores = arc[k].reshape(cells)
        tree = heads[k]
        inside(MaxPlus(-np.inf, 0.0), scores, size, n, first, R, L, IR, IL, B)
        best = -np.inf
        at = one
        if single:
            for m in range(one, n + one):
                score = scores[m] + L[size + m] + R[m * size + n]
                if score > best:
                    best = score
                    at = m
        else:
            best = R[n]
        value[k] = best
        if best == -np.inf:
            continue
        if single:
            tree[at] = 0
            read_off(size, n, R, L, IR, IL, False, one, at, tree, stack)
            read_off(size, n, R, L, IR, IL, True, at, n, tree, stack)
        else:
            read_off(size, n, R, L, IR, IL, True, uint64(0), n, tree, stack)


@njit(cache=True, nogil=True)
def decode_and_score(arc, lengths, single, heads, value, score):
    """decode, and the scores of its trees, as tree_scores gives them; -inf where there is none."""
    decode(arc, lengths, single, heads, value)
    tree_scores(arc, heads, lengths, score)


@njit(cache=True, nogil=True)
def certify(arc, heads, lengths, terms, highest, width, share, mask, value, score, bound, tolerance, open_items):
    """Bounds and tolerances of the trees of a batch, as certus.certificates.rounding has them.

    A score has ``terms`` n terms of at most ``highest``; value and score (B,) are the chart's and the input's.
    bound (B,) <- the greater of the two, tolerance (B,) <- width errors. open_items (B,) <- whether the tolerance is
    more than ``share`` of the absolute arc scores of the tree, those below -mask counted as -mask, or less than twice
    the gap. Returns the first item without tree, or -1, and how many are open.
    """
    count = 0
    for k in range(lengths.shape[0]):
        if value[k] == -np.inf:
            return k, count
        size = 0.0
        for m in range(1, lengths[k] + 1):
            x = arc[k, heads[k, m], m]
            size += x if x > 0.0 else min(-x, mask)
        length = float(terms * lengths[k])
        bound[k] = max(value[k], score[k])
        tolerance[k] = width * length * (2.0 * length * max(highest, 0.0) + max(-score[k], 0.0))
        proved = tolerance[k] <= share * size and 2.0 * (bound[k] - score[k]) <= tolerance[k]
        open_items[k] = not proved
        count += open_items[k]
    return -1, count


@njit(cache=True, nogil=True)
def goal(sr, arc, size, n, single, R, L):
    """Semiring total over all trees, from charts that are filled."""
    if not single:
        return R[n]
    one = uint64(1)
    total = sr.zero
    for m in range(one, n + one):
        total = plus(sr, total, times(sr, times(sr, arc[m], L[size + m]), R[m * size + n]))
    return total


@njit(cache=True, nogil=True)
def arc_totals(sr, width, n, first, IR, IL, dIR, dIL, out):
    """out[h, m] <- total over the trees with the arc, from charts with rows of ``width`` cells."""
    one = uint64(1)
    for i in range(first, n + one):
        for j in range(i + one, n + one):
            out[i, j] = times(sr, IR[i * width + j], dIR[i * width + j])
            if i > uint64(0):
                out[j, i] = times(sr, IL[i * width + j], dIL[i * width + j])


@njit(cache=True, nogil=True)
def totals(sr, arc, size, n, single, with_arcs, charts, out):
    """Semiring total over all trees of one item and, if asked for, over those with each arc, into out (N, N)."""
    one = uint64(1)
    first = one if single else uint64(0)
    R, L, IR, IL = charts[0], charts[1], charts[2], charts[3]
    dR, dL, dIR, dIL = charts[4], charts[5], charts[6], charts[7]
    B = charts[8]
    inside(sr, arc, size, n, first, R, L, IR, IL, B)
    value = goal(sr, arc, size, n, single, R, L)
    if not with_arcs:
        return value
    charts[4:] = sr.zero
    out[:] = sr.zero
    if single:
        for m in range(one, n + one):
            dL[size + m] = times(sr, arc[m], R[m * size + n])
            dR[m * size + n] = times(sr, arc[m], L[size + m])
            out[0, m] = times(sr, dL[size + m], L[size + m])
    else:
        dR[n] = sr.one
    outside(sr, arc, size, n, first, R, L, IR, IL, dR, dL, dIR, dIL, B)
    arc_totals(sr, size, n, first, IR, IL, dIR, dIL, out)
    return value


@njit(cache=True, nogil=True)
def max_totals(arc, lengths, single, out, value):
    """Best score of any tree, value (B,), and of a tree with each arc, out (B, N, N)."""
    size = uint64(arc.shape[1])
    cells = arc.shape[1] * arc.shape[1]
    charts = np.empty((9, cells))
    out[:] = -np.inf
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = 0.0
        if n > uint64(0):
            sr = MaxPlus(-np.inf, 0.0)
            value[k] = totals(sr, arc[k].reshape(cells), size, n, single, True, charts, out[k])


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
    charts = np.empty((9, cells))
    arcs = np.empty(cells)
    out[:] = 0.0
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = 0.0
        if n == uint64(0):
            continue
        arcs[:] = -np.inf
        shift = level(arc[k].reshape(cells), size, n, arcs)
        sr = MaxPlus(-np.inf, 0.0)
        inside(sr, arcs, size, n, first, charts[0], charts[1], charts[2], charts[3], charts[8])
        best = goal(sr, arcs, size, n, single, charts[0], charts[1])
        if best == -np.inf:
            value[k] = -np.inf
            continue
        found = out[k if with_arcs else 0]
        if best > 2.0 * lengths[k] + 45.0 - SAFE_EXPONENT:
            arcs[:] = np.exp(arcs)
            total = totals(Counting(0.0, 1.0), arcs, size, n, single, with_arcs, charts, found)
            value[k] = np.log(total) + shift
            if with_arcs:
                found /= total
        else:
            total = totals(LogPlus(-np.inf, 0.0), arcs, size, n, single, with_arcs, charts, found)
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
