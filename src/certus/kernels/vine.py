"""The hypergraph of vine parses: linear in the words for a fixed band b (LR 8.3.3).

Inside the band, Eisner's items over spans [i, j] with j - i <= b: R, L complete, IR, IL incomplete (see `eisner`).
Beyond it

    Q(h)   the words up to h, with h's left modifiers, h still without a head
    W(h)   the words up to h, h with its head and open for modifiers to its right

    Q(h) <- W(h - 1)            no left modifier           W(h) <- Q(h)               an outer head, left or right
    Q(h) <- IL(h, m), Q(m)      m its outermost one        W(h) <- W(g), IR(g, h)     the outermost right modifier of g

On the way to Q(h) and to W(h), h may take an outer modifier to its left and right. W(n) is the goal.
"""

import numpy as np
from numba import njit

from certus.kernels.projective_forest import close, put_tail

ARC, OUTER_HEAD, OUTER_MODIFIER = 0, 1, 2


@njit(cache=True, nogil=True)
def _put(k, tail_ptr, tail, what, a, b, kind, cell):
    """Append edge k with tail (a, b), -1 for none, that uses one cell of a view, if there is room."""
    if k < what.shape[0]:
        put_tail(k, tail_ptr, tail, a, b)
        what[k, 0] = kind
        what[k, 1] = cell
    return k + 1


@njit(cache=True, nogil=True)
def build(allowed, outer_head, outer_modifier, band, in_ptr, tail_ptr, tail, what):
    """Fill in_ptr (V + 1,), tail_ptr (E + 1,), tail (2 E,), what (E, 2) = (kind, cell) or -1; returns (V, E).

    With arrays too small it only counts. `allowed` (N, N) is read within the band; `outer_head` and `outer_modifier`
    (N, 2) say which words may have them on which side. The goal is the last vertex.
    """
    n = allowed.shape[0] - 1
    size = n + 1
    width = band + 1
    # charts by left end i and distance j - i
    right = np.full((size, width), -1, dtype=np.int32)
    left = np.full((size, width), -1, dtype=np.int32)
    arc_right = np.full((size, width), -1, dtype=np.int32)
    arc_left = np.full((size, width), -1, dtype=np.int32)
    in_ptr[0] = 0
    tail_ptr[0] = 0
    v = 0
    k = 0
    for i in range(n, -1, -1):
        first = k
        k = _put(k, tail_ptr, tail, what, -1, -1, -1, -1)
        v, base = close(v, k, first, in_ptr)
        right[i, 0] = base
        left[i, 0] = base
        for j in range(i + 1, min(i + band, n) + 1):
            first = k
            for r in range(i, j):
                if right[i, r - i] >= 0 and left[r + 1, j - r - 1] >= 0:
                    k = _put(k, tail_ptr, tail, what, right[i, r - i], left[r + 1, j - r - 1], -1, -1)
            v, between = close(v, k, first, in_ptr)
            if between >= 0 and allowed[i, j]:
                first = k
                k = _put(k, tail_ptr, tail, what, between, -1, ARC, i * size + j)
                v, arc_right[i, j - i] = close(v, k, first, in_ptr)
            if between >= 0 and i > 0 and allowed[j, i]:
                first = k
                k = _put(k, tail_ptr, tail, what, between, -1, ARC, j * size + i)
                v, arc_left[i, j - i] = close(v, k, first, in_ptr)
            first = k
            for m in range(i + 1, j + 1):
                if arc_right[i, m - i] >= 0 and right[m, j - m] >= 0:
                    k = _put(k, tail_ptr, tail, what, arc_right[i, m - i], right[m, j - m], -1, -1)
            v, right[i, j - i] = close(v, k, first, in_ptr)
            first = k
            for m in range(i, j):
                if arc_left[m, j - m] >= 0 and left[i, m - i] >= 0:
                    k = _put(k, tail_ptr, tail, what, arc_left[m, j - m], left[i, m - i], -1, -1)
            v, left[i, j - i] = close(v, k, first, in_ptr)
    q = np.full(size, -1, dtype=np.int32)
    w = np.full(size, -1, dtype=np.int32)
    for h in range(size):
        if h > 0:
            first = k
            if w[h - 1] >= 0:
                k = _put(k, tail_ptr, tail, what, w[h - 1], -1, -1, -1)
            for m in range(max(1, h - band), h):
                if arc_left[m, h - m] >= 0 and q[m] >= 0:
                    k = _put(k, tail_ptr, tail, what, arc_left[m, h - m], q[m], -1, -1)
            v, x = close(v, k, first, in_ptr)
            if x >= 0 and h - band - 1 >= 1 and outer_modifier[h, 0]:
                first = k
                k = _put(k, tail_ptr, tail, what, x, -1, -1, -1)
                k = _put(k, tail_ptr, tail, what, x, -1, OUTER_MODIFIER, 2 * h)
                v, x = close(v, k, first, in_ptr)
            q[h] = x
        first = k
        if h == 0:
            k = _put(k, tail_ptr, tail, what, -1, -1, -1, -1)
        elif q[h] >= 0:
            if h - band - 1 >= 0 and outer_head[h, 0]:
                k = _put(k, tail_ptr, tail, what, q[h], -1, OUTER_HEAD, 2 * h)
            if h + band + 1 <= n and outer_head[h, 1]:
                k = _put(k, tail_ptr, tail, what, q[h], -1, OUTER_HEAD, 2 * h + 1)
        for g in range(max(0, h - band), h):
            if w[g] >= 0 and arc_right[g, h - g] >= 0:
                k = _put(k, tail_ptr, tail, what, w[g], arc_right[g, h - g], -1, -1)
        v, x = close(v, k, first, in_ptr)
        if x >= 0 and h + band + 1 <= n and outer_modifier[h, 1]:
            first = k
            k = _put(k, tail_ptr, tail, what, x, -1, -1, -1)
            k = _put(k, tail_ptr, tail, what, x, -1, OUTER_MODIFIER, 2 * h + 1)
            v, x = close(v, k, first, in_ptr)
        w[h] = x
    if w[n] < 0:
        if v + 1 < in_ptr.shape[0]:
            in_ptr[v + 1] = k
        v += 1
    return v, k
