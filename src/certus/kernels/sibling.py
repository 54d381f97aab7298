"""Second-order projective trees: arcs and pairs of successive modifiers (DEP 5.3.2), inside and outside.

The charts of `eisner`, plus S[i, j], the words between successive modifiers i < j of some head:

    S[i, j]  = (+)_r  R[i, r] (x) L[r + 1, j]                                       i <= r < j
    IR[i, j] = arc[i, j] (x) ( sib[i, i, j] (x) L[i + 1, j]  (+)  (+)_s  IR[i, s] (x) S[s, j] (x) sib[i, s, j] )
    IL[i, j] = arc[j, i] (x) ( sib[j, j, i] (x) R[i, j - 1]  (+)  (+)_s  IL[s, j] (x) S[i, s] (x) sib[j, s, i] )

with R and L as before. A holds the sum over s of the current row i before arc[i, j] is known to be final. Rows go from
the last word to the first; node 0 is row 0 unless it has a single modifier. n^3 time, n^2 space besides the scores.
"""

import numpy as np
from numba import njit, uint64

from certus.kernels.eisner import MaxPlus, plus, times


@njit(cache=True, nogil=True)
def inside(sr, arc, sib, size, n, first, R, L, IR, IL, S, A):
    """Fill rows n .. first of the charts from arc (N * N,) and sib (N * N * N,), N = size."""
    zero, one = uint64(0), uint64(1)
    square = size * size
    for x in range(n + one - first):
        i = n - x
        row = i * size
        for e in range(i, n + one):
            R[row + e] = sr.zero
            L[row + e] = sr.zero
            S[row + e] = sr.zero
            A[e] = sr.zero
        R[row + i] = sr.one
        L[row + i] = sr.one
        for r in range(i, n):
            j = r + one
            low = j * size
            c = R[row + r]
            S[row + j] = plus(sr, S[row + j], c)
            innermost = times(sr, sib[i * square + row + j], L[row + size + j])
            right = times(sr, arc[row + j], plus(sr, A[j], innermost))
            left = sr.zero
            if i > zero:
                left = times(sr, sib[j * square + low + i], c)
                at = j * square + i
                for s in range(i + one, j):
                    term = times(sr, times(sr, IL[s * size + j], S[row + s]), sib[at + s * size])
                    left = plus(sr, left, term)
                left = times(sr, arc[low + i], left)
            IR[row + j] = right
            IL[row + j] = left
            R[row + j] = plus(sr, R[row + j], right)
            done = plus(sr, L[row + j], left)
            L[row + j] = done
            at = i * square + low
            for e in range(j + one, n + one):
                S[row + e] = plus(sr, S[row + e], times(sr, c, L[low + e]))
                R[row + e] = plus(sr, R[row + e], times(sr, right, R[low + e]))
                L[row + e] = plus(sr, L[row + e], times(sr, done, IL[low + e]))
                A[e] = plus(sr, A[e], times(sr, times(sr, right, S[low + e]), sib[at + e]))


@njit(cache=True, nogil=True)
def outside(sr, arc, sib, size, n, first, R, L, IR, IL, S, dR, dL, dIR, dIL, dS, dA):
    """The reverse of inside: dR, dL hold what lies outside the goal's items and zero elsewhere; fills dIR, dIL."""
    zero, one = uint64(0), uint64(1)
    square = size * size
    for i in range(first, n + one):
        row = i * size
        for x in range(n - i):
            r = n - one - x
            j = r + one
            low = j * size
            c = R[row + r]
            right = IR[row + j]
            done = L[row + j]
            at = i * square + low
            for e in range(j + one, n + one):
                dIL[low + e] = plus(sr, dIL[low + e], times(sr, dL[row + e], done))
                dR[low + e] = plus(sr, dR[low + e], times(sr, dR[row + e], right))
                dL[low + e] = plus(sr, dL[low + e], times(sr, dS[row + e], c))
                dS[low + e] = plus(sr, dS[low + e], times(sr, times(sr, dA[e], right), sib[at + e]))
            ddone = dL[row + j]
            dright = dR[row + j]
            dc = sr.zero
            for e in range(j + one, n + one):
                ddone = plus(sr, ddone, times(sr, dL[row + e], IL[low + e]))
                dright = plus(sr, dright, times(sr, dR[row + e], R[low + e]))
                dright = plus(sr, dright, times(sr, times(sr, dA[e], S[low + e]), sib[at + e]))
                dc = plus(sr, dc, times(sr, dS[row + e], L[low + e]))
            dL[row + j] = ddone
            dleft = plus(sr, dIL[row + j], ddone)
            dIL[row + j] = dleft
            dIR[row + j] = dright
            into = times(sr, dright, arc[row + j])
            dA[j] = into
            below = row + size + j
            dL[below] = plus(sr, dL[below], times(sr, into, sib[i * square + row + j]))
            if i > zero:
                into = times(sr, dleft, arc[low + i])
                dc = plus(sr, dc, times(sr, into, sib[j * square + low + i]))
                at = j * square + i
                for s in range(i + one, j):
                    term = times(sr, into, sib[at + s * size])
                    cell = s * size + j
                    dS[row + s] = plus(sr, dS[row + s], times(sr, term, IL[cell]))
                    dIL[cell] = plus(sr, dIL[cell], times(sr, term, S[row + s]))
            dR[row + r] = plus(sr, dR[row + r], plus(sr, dc, dS[row + j]))


@njit(cache=True, nogil=True)
def read_off(sib, size, n, R, L, IR, IL, S, right, i, j, heads, stack):
    """Set the heads below one complete item: i reaching right to j, or j reaching left to i. Ties: smallest index."""
    zero = uint64(0)
    one = uint64(1)
    square = size * size
    top = one
    stack[0, 0] = uint64(right)
    stack[0, 1] = i
    stack[0, 2] = j
    while top > zero:
        top -= one
        kind = stack[top, 0]
        i = stack[top, 1]
        j = stack[top, 2]
        if i == j:
            continue
        best = -np.inf
        if kind == one:
            m = i
            for k in range(i + one, j + one):
                score = IR[i * size + k] + R[k * size + j]
                if score > best:
                    best = score
                    m = k
            stack[top, 0] = one
            stack[top, 1] = m
            stack[top, 2] = j
            top += one
            while True:  # the modifiers of i from m inwards
                heads[m] = i
                best = sib[i * square + i * size + m] + L[(i + one) * size + m]
                s = i
                for k in range(i + one, m):
                    score = IR[i * size + k] + S[k * size + m] + sib[i * square + k * size + m]
                    if score > best:
                        best = score
                        s = k
                if s == i:
                    stack[top, 0] = zero
                    stack[top, 1] = i + one
                    stack[top, 2] = m
                    top += one
                    break
                top = split(size, R, L, s, m, stack, top)
                m = s
        else:
            m = i
            for k in range(i, j):
                score = IL[k * size + j] + L[i * size + k]
                if score > best:
                    best = score
                    m = k
            stack[top, 0] = zero
            stack[top, 1] = i
            stack[top, 2] = m
            top += one
            while True:  # the modifiers of j from m inwards
                heads[m] = j
                best = sib[j * square + j * size + m] + R[m * size + j - one]
                s = j
                for k in range(m + one, j):
                    score = IL[k * size + j] + S[m * size + k] + sib[j * square + k * size + m]
                    if score > best:
                        best = score
                        s = k
                if s == j:
                    stack[top, 0] = one
                    stack[top, 1] = m
                    stack[top, 2] = j - one
                    top += one
                    break
                top = split(size, R, L, m, s, stack, top)
                m = s


@njit(cache=True, nogil=True)
def split(size, R, L, i, j, stack, top):
    """Push the two halves of S[i, j]; returns the new top."""
    one = uint64(1)
    best = -np.inf
    at = i
    for r in range(i, j):
        score = R[i * size + r] + L[(r + one) * size + j]
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
def decode(arc, sib, lengths, single, heads, value):
    """Best tree of each item: heads (B, N) padded with -1, value (B,), -inf if none."""
    one = uint64(1)
    size = uint64(arc.shape[1])
    first = one if single else uint64(0)
    cells = arc.shape[1] * arc.shape[1]
    R, L, IR, IL, S = np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells)
    A = np.empty(arc.shape[1])
    stack = np.empty((4 * arc.shape[1] + 4, 3), dtype=np.uint64)
    heads[:] = -1
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = 0.0
        if n == uint64(0):
            continue
        scores = arc[k].reshape(cells)
        pairs = sib[k].reshape(cells * arc.shape[1])
        tree = heads[k]
        inside(MaxPlus(-np.inf, 0.0), scores, pairs, size, n, first, R, L, IR, IL, S, A)
        best = -np.inf
        at = one
        if single:
            for m in range(one, n + one):
                score = scores[m] + pairs[m] + L[size + m] + R[m * size + n]
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
            read_off(pairs, size, n, R, L, IR, IL, S, False, one, at, tree, stack)
            read_off(pairs, size, n, R, L, IR, IL, S, True, at, n, tree, stack)
        else:
            read_off(pairs, size, n, R, L, IR, IL, S, True, uint64(0), n, tree, stack)


@njit(cache=True, nogil=True)
def arc_totals(sr, arc, sib, lengths, single, with_arcs, out, value):
    """Semiring total over all trees, value (B,), and, if asked for, over those with each arc, out (B, N, N)."""
    one = uint64(1)
    size = uint64(arc.shape[1])
    first = one if single else uint64(0)
    cells = arc.shape[1] * arc.shape[1]
    R, L, IR, IL, S = np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells)
    dR, dL, dIR, dIL, dS = np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells), np.empty(cells)
    A, dA = np.empty(arc.shape[1]), np.empty(arc.shape[1])
    out[:] = sr.zero
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = sr.one
        if n == uint64(0):
            continue
        scores = arc[k].reshape(cells)
        pairs = sib[k].reshape(cells * arc.shape[1])
        inside(sr, scores, pairs, size, n, first, R, L, IR, IL, S, A)
        dR[:] = sr.zero
        dL[:] = sr.zero
        dIL[:] = sr.zero
        dS[:] = sr.zero
        dA[:] = sr.zero
        if single:
            value[k] = sr.zero
            for m in range(one, n + one):
                top = times(sr, scores[m], pairs[m])
                dL[size + m] = times(sr, top, R[m * size + n])
                dR[m * size + n] = times(sr, top, L[size + m])
                value[k] = plus(sr, value[k], times(sr, dL[size + m], L[size + m]))
                if with_arcs:
                    out[k, 0, m] = times(sr, dL[size + m], L[size + m])
        else:
            dR[n] = sr.one
            value[k] = R[n]
        if not with_arcs:
            continue
        outside(sr, scores, pairs, size, n, first, R, L, IR, IL, S, dR, dL, dIR, dIL, dS, dA)
        for i in range(first, n + one):
            for j in range(i + one, n + one):
                out[k, i, j] = times(sr, IR[i * size + j], dIR[i * size + j])
                if i > uint64(0):
                    out[k, j, i] = times(sr, IL[i * size + j], dIL[i * size + j])


@njit(cache=True, nogil=True)
def scale(arc, sib, lengths, arc_out, sib_out, shift):
    """Scores moved so that none is above 0: the best of sib[h, :, m] goes to arc[h, m], the best of arc[:, m] to shift.

    Reads and writes only cells that are parts of the lengths[k] words of item k; shift (B,) is the sum taken off.
    """
    for k in range(arc.shape[0]):
        n = lengths[k]
        shift[k] = 0.0
        for m in range(1, n + 1):
            column = -np.inf
            for h in range(n + 1):
                if h == m:
                    continue
                step = 1 if h < m else -1
                top = -np.inf
                for s in range(h, m, step):
                    top = max(top, sib[k, h, s, m])
                top = 0.0 if top == -np.inf else top
                for s in range(h, m, step):
                    sib_out[k, h, s, m] = sib[k, h, s, m] - top
                arc_out[k, h, m] = arc[k, h, m] + top
                column = max(column, arc_out[k, h, m])
            column = 0.0 if column == -np.inf else column
            for h in range(n + 1):
                arc_out[k, h, m] -= column
            shift[k] += column


@njit(cache=True, nogil=True)
def exponentials(sib, lengths, out):
    """out <- exp(sib), for the cells that are parts."""
    for k in range(sib.shape[0]):
        n = lengths[k]
        for h in range(n + 1):
            for s in range(n + 1):
                for m in range(1, n + 1):
                    if (h <= s < m) or (m < s <= h):
                        out[k, h, s, m] = np.exp(sib[k, h, s, m])


@njit(cache=True, nogil=True)
def survey(sib, lengths):
    """Largest absolute finite score of a part, and the item with a part that is nan or inf (-1 if there is none)."""
    largest = 0.0
    for k in range(sib.shape[0]):
        n = lengths[k]
        for h in range(n + 1):
            for s in range(n + 1):
                for side in range(2):  # modifiers right of s, and left of it
                    if (s < h and side == 0) or (s > h and side == 1):
                        continue
                    for m in range(s + 1 if side == 0 else 1, n + 1 if side == 0 else s):
                        v = sib[k, h, s, m]
                        if not abs(v) <= largest:
                            if not v < np.inf:
                                return largest, k
                            if v > -np.inf:
                                largest = abs(v)
    return largest, -1


@njit(cache=True, nogil=True)
def tree_scores(sib, heads, lengths, score):
    """Add to score (B,) the sibling scores of one tree per item, heads (B, N)."""
    inner = np.empty(sib.shape[1], dtype=np.int64)  # the modifier found last on one side of each head
    for k in range(sib.shape[0]):
        n = lengths[k]
        for h in range(n + 1):
            inner[h] = h
        for m in range(1, n + 1):
            h = heads[k, m]
            if h < m:
                score[k] += sib[k, h, inner[h], m]
                inner[h] = m
        for h in range(n + 1):
            inner[h] = h
        for m in range(n, 0, -1):
            h = heads[k, m]
            if h > m:
                score[k] += sib[k, h, inner[h], m]
                inner[h] = m


__all__ = ["arc_totals", "decode", "exponentials", "scale", "survey", "tree_scores"]
