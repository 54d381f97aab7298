"""Projective trees with grandparents; max only: Models 0 and 1 (DEP 5.4.1, 5.4.2), Model 2, Carreras (5.4.3, 5.3.3).

Complete and sibling spans carry the head g of their head (of both modifiers, for S), in flat (N, N, N) arrays by left
end i as in `sibling`, [i, j, g] in Model 1 and [g, i, j] in Model 2:

    R[g, i, e]   i with its right modifiers, reaching e         L[g, i, j]   j with its left modifiers, reaching i
    S[h, i, j]  = max_r  R[h, i, r] + L[h, r + 1, j]

Model 1 (grandparent and grandsibling parts for all modifiers; Model 0 is the case without siblings):

    I[g, h, m]  = arc[h, m] + gp[g, h, m] + max_s  I[g, h, s] + S[h, s, m] + sib[h, s, m] + gs[g, h, s, m]
    R[g, i, e]  = max_m  I[g, i, m] + R[i, m, e]

Model 2 (trisiblings; grandparent and grandsibling parts for outermost modifiers):

    I[h, s, m]  = arc[h, m] + sib[h, s, m] + S[h, s, m] + max_t  I[h, t, s] + tri[h, t, s, m]
    J[g, h, m]  = gp[g, h, m] + max_s  I[h, s, m] + gs[g, h, s, m]
    R[g, i, e]  = max_m  J[g, i, m] + R[i, m, e]

s == h, with L[h, h + 1, m] or R[h, m, h - 1] in place of S and no I, when m is innermost. g lies outside the span.
Node 0 has no head: its items are at g = 0. An array that is not given has size 0. n^4 time, n^3 space besides scores.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit


class Scores(NamedTuple):
    """Flat arrays of the scores of parts; of size 0 where there are none."""

    arc: np.ndarray
    sib: np.ndarray
    gp: np.ndarray
    gs: np.ndarray
    tri: np.ndarray


class Charts(NamedTuple):
    """Flat (N, N, N) arrays. In Model 2, IR holds J and IL holds I."""

    R: np.ndarray
    L: np.ndarray
    S: np.ndarray
    IR: np.ndarray
    IL: np.ndarray


class Rows(NamedTuple):
    """Work of Model 1 for one row i."""

    T: np.ndarray  # (N * N,): T[s, j] = S^i(s, j) + sib[i, s, j]; row i for the innermost modifier
    A: np.ndarray
    V: np.ndarray
    arc_to: np.ndarray  # (N * N,): arc_to[h, g] is 0 if the arc g -> h is allowed, else -inf


@njit(cache=True, nogil=True)
def _complete_row(size, g, i, far, inc, R, L, S):
    """R[g, i, :] from inc[g, i, :], and S[g, i, :], up to far."""
    one = uint64(1)
    base = (g * size + i) * size
    plane = g * size * size
    for m in range(i + one, far + one):
        v = inc[base + m]
        if v == -np.inf:
            continue
        below = (i * size + m) * size
        for e in range(m, far + one):
            score = v + R[below + e]
            R[base + e] = score if score > R[base + e] else R[base + e]
    for r in range(i, far):
        c = R[base + r]
        low = plane + (r + one) * size
        for j in range(r + one, far + one):
            score = c + L[low + j]
            S[base + j] = score if score > S[base + j] else S[base + j]


@njit(cache=True, nogil=True)
def inside_all(scores, charts, size, n, single):
    """Model 1. All charts start at -inf and are [i, j, g]: loops along g are long, and so pay for being vectorised.

    IR[i, m, g] is for i -> m, IL[j, m, g] for j -> m. Cells with g inside the span hold what no other cell reads.
    """
    zero, one = uint64(0), uint64(1)
    square = size * size
    arc, R, L, arc_to = scores.arc, charts.R, charts.L, np.empty(square)
    for g in range(size):
        for h in range(size):
            arc_to[h * size + g] = 0.0 if arc[g * size + h] > -np.inf or h == zero else -np.inf
            R[(h * size + h) * size + g] = arc_to[h * size + g]
            L[(h * size + h) * size + g] = arc_to[h * size + g]
    rows = Rows(np.empty(square), np.empty(size), np.empty(size), arc_to)
    for x in range(n if single else n + one):
        i = n - x
        _between_all(scores, charts, rows, size, n, i)
        _right_all(scores, charts, rows, size, n, i)
        if i > zero:
            _left_all(scores, charts, rows, size, n, i)


@njit(cache=True, nogil=True)
def _between_all(scores, charts, rows, size, n, i):
    """Row i of T."""
    one = uint64(1)
    T, L, S, sib = rows.T, charts.L, charts.S, scores.sib
    for j in range(i + one, n + one):
        T[i * size + j] = L[((i + one) * size + j) * size + i]
    for s in range(i + one, n):
        for j in range(s + one, n + one):
            T[s * size + j] = S[(s * size + j) * size + i]
    if sib.size > 0:
        for s in range(i, n):
            for j in range(s + one, n + one):
                T[s * size + j] += sib[(i * size + s) * size + j]


@njit(cache=True, nogil=True)
def _right_all(scores, charts, rows, size, n, i):
    """IR[i, :, :], R[i, :, :] and S[i, :, :] of Model 1."""
    zero, one = uint64(0), uint64(1)
    arc, _, gp, gs, _ = scores
    R, L, S, IR, _ = charts
    T, A, V, arc_to = rows
    has_gp = gp.size > 0
    if gs.size > 0 and i > zero:
        for g in range(zero, n + one):
            if g == i or arc[g * size + i] == -np.inf:
                continue
            far = n if g < i else g - one
            base = (g * size + i) * size
            at = (base + i) * size
            for j in range(i + one, far + one):
                A[j] = T[i * size + j] + gs[at + j]
            for s in range(i + one, far + one):
                v = A[s] + arc[i * size + s]
                if has_gp:
                    v += gp[base + s]
                IR[(i * size + s) * size + g] = v
                low = s * size
                at = (base + s) * size
                for j in range(s + one, far + one):
                    score = v + T[low + j] + gs[at + j]
                    A[j] = score if score > A[j] else A[j]
    else:
        for m in range(i + one, n + one):
            at = (i * size + m) * size
            for g in range(size):
                V[g] = T[i * size + m]
            for s in range(i + one, m):
                v = T[s * size + m]
                row = (i * size + s) * size
                for g in range(size):
                    score = v + IR[row + g]
                    V[g] = score if score > V[g] else V[g]
            for g in range(size):
                grand = gp[(g * size + i) * size + m] if has_gp and i > zero else 0.0
                IR[at + g] = V[g] + arc[i * size + m] + grand
    for e in range(i + one, n + one):
        for g in range(size):
            V[g] = -np.inf
        for m in range(i + one, e + one):
            v = R[(m * size + e) * size + i]
            row = (i * size + m) * size
            for g in range(size):
                score = v + IR[row + g]
                V[g] = score if score > V[g] else V[g]
        at = (i * size + e) * size
        for g in range(size):
            R[at + g] = V[g] + arc_to[i * size + g]
    if i == zero:
        return
    for j in range(i + one, n + one):
        for g in range(size):
            V[g] = -np.inf
        for r in range(i, j):
            left = (i * size + r) * size
            right = ((r + one) * size + j) * size
            for g in range(size):
                score = R[left + g] + L[right + g]
                V[g] = score if score > V[g] else V[g]
        at = (i * size + j) * size
        for g in range(size):
            S[at + g] = V[g]


@njit(cache=True, nogil=True)
def _left_all(scores, charts, rows, size, n, i):
    """IL[:, i, :] and L[i, :, :] of Model 1."""
    zero, one = uint64(0), uint64(1)
    arc, sib, gp, gs, _ = scores
    R, L, S, _, IL = charts
    V, arc_to = rows.V, rows.arc_to
    has_sib, has_gp, has_gs = sib.size > 0, gp.size > 0, gs.size > 0
    cube = size * size * size
    for j in range(i + one, n + one):
        v = R[(i * size + j - one) * size + j] + (sib[(j * size + j) * size + i] if has_sib else 0.0)
        for g in range(size):
            V[g] = v
        if has_gs:
            for g in range(size):
                V[g] += gs[((g * size + j) * size + j) * size + i]
        for s in range(i + one, j):
            v = S[(i * size + s) * size + j] + (sib[(j * size + s) * size + i] if has_sib else 0.0)
            row = (j * size + s) * size
            if has_gs:
                for side in range(2):
                    cell = row + i if side == 0 else (j + one) * cube + row + i
                    for g in range(zero if side == 0 else j + one, i if side == 0 else n + one):
                        score = IL[row + g] + v + gs[cell]
                        V[g] = score if score > V[g] else V[g]
                        cell += cube
            else:
                for g in range(size):
                    score = v + IL[row + g]
                    V[g] = score if score > V[g] else V[g]
        at = (j * size + i) * size
        for g in range(size):
            IL[at + g] = V[g] + arc[j * size + i] + (gp[(g * size + j) * size + i] if has_gp else 0.0)
        for g in range(size):
            V[g] = -np.inf
        for m in range(i, j):
            v = L[(i * size + m) * size + j]
            row = (j * size + m) * size
            for g in range(size):
                score = v + IL[row + g]
                V[g] = score if score > V[g] else V[g]
        at = (i * size + j) * size
        for g in range(size):
            L[at + g] = V[g] + arc_to[j * size + g]


@njit(cache=True, nogil=True)
def inside_outermost(scores, charts, size, n, single):
    """Model 2. R, L, S, I start at -inf. I is [h, s, m]; J is [g, h, m]."""
    zero, one = uint64(0), uint64(1)
    R, L, W, best = charts.R, charts.L, np.empty(size), np.empty(size)
    for g in range(size):
        for i in range(size):
            R[(g * size + i) * size + i] = 0.0
            L[(g * size + i) * size + i] = 0.0
    for x in range(n if single else n + one):
        i = n - x
        _right_modifiers(scores, charts, size, n, i, W, best)
        _right_outermost(scores, charts, size, n, i, best)
        if i > zero:
            _left_outermost(scores, charts, size, n, i)


@njit(cache=True, nogil=True, inline="always")
def _right_modifiers(scores, charts, size, n, i, W, best):
    """I[i, :, :] of Model 2, and best[m], the largest I[i, :, m]."""
    one = uint64(1)
    arc, sib, _, _, tri = scores
    L, S, inc = charts.L, charts.S, charts.IL
    has_sib, has_tri = sib.size > 0, tri.size > 0
    base = (i * size + i) * size
    for j in range(i + one, n + one):
        inc[base + j] = L[base + size + j] + arc[i * size + j] + (sib[base + j] if has_sib else 0.0)
        best[j] = inc[base + j]
    for s in range(i + one, n + one):
        row = (i * size + s) * size
        if has_tri:
            for j in range(s + one, n + one):
                W[j] = -np.inf
            for t in range(i, s):
                v = inc[(i * size + t) * size + s]
                at = ((i * size + t) * size + s) * size
                for j in range(s + one, n + one):
                    score = v + tri[at + j]
                    W[j] = score if score > W[j] else W[j]
        else:
            for j in range(s + one, n + one):
                W[j] = best[s]
        for j in range(s + one, n + one):
            score = W[j] + S[row + j] + arc[i * size + j] + (sib[row + j] if has_sib else 0.0)
            inc[row + j] = score
            best[j] = score if score > best[j] else best[j]


@njit(cache=True, nogil=True, inline="always")
def _right_outermost(scores, charts, size, n, i, best):
    """J[:, i, :], R[:, i, :] and S[:, i, :] of Model 2 to the right of i."""
    zero, one = uint64(0), uint64(1)
    arc, _, gp, gs, _ = scores
    has_gp, has_gs = gp.size > 0, gs.size > 0
    R, L, S, J, inc = charts
    for g in range(zero, n + one):
        if i == zero:
            if g > zero:
                break
        elif g == i or arc[g * size + i] == -np.inf:
            continue
        far = n if g <= i else g - one
        row = (g * size + i) * size
        for m in range(i + one, far + one):
            J[row + m] = best[m]
        if i > zero:
            if has_gs:
                for m in range(i + one, far + one):
                    J[row + m] = -np.inf
                for s in range(i, far):
                    at = (row + s) * size
                    for m in range(s + one, far + one):
                        score = inc[(i * size + s) * size + m] + gs[at + m]
                        J[row + m] = score if score > J[row + m] else J[row + m]
            if has_gp:
                for m in range(i + one, far + one):
                    J[row + m] += gp[row + m]
        _complete_row(size, g, i, far, J, R, L, S)


@njit(cache=True, nogil=True, inline="always")
def _left_outermost(scores, charts, size, n, i):
    """I[:, :, i], J[:, :, i] and L[:, i, :] of Model 2."""
    zero, one = uint64(0), uint64(1)
    arc, sib, gp, gs, tri = scores
    R, L, S, J, inc = charts
    has_sib, has_gp, has_gs, has_tri = sib.size > 0, gp.size > 0, gs.size > 0, tri.size > 0
    for j in range(i + one, n + one):
        at = (j * size + i) * size
        top = R[at + j - one] + arc[j * size + i] + (sib[(j * size + j) * size + i] if has_sib else 0.0)
        inc[(j * size + j) * size + i] = top
        for s in range(i + one, j):
            v = -np.inf
            for t in range(s + one, j + one):
                score = inc[(j * size + t) * size + s]
                if has_tri:
                    score += tri[((j * size + t) * size + s) * size + i]
                v = score if score > v else v
            v += S[at + s] + arc[j * size + i] + (sib[(j * size + s) * size + i] if has_sib else 0.0)
            inc[(j * size + s) * size + i] = v
            top = v if v > top else top
        for g in range(zero, n + one):
            if (i <= g and g <= j) or arc[g * size + j] == -np.inf:
                continue
            v = top
            if has_gs:
                v = -np.inf
                for s in range(i + one, j + one):
                    score = inc[(j * size + s) * size + i] + gs[((g * size + j) * size + s) * size + i]
                    v = score if score > v else v
            if has_gp:
                v += gp[(g * size + j) * size + i]
            row = (g * size + j) * size
            J[row + i] = v
            v = -np.inf
            for m in range(i, j):
                score = J[row + m] + L[at + m]
                v = score if score > v else v
            L[(g * size + i) * size + j] = v


@njit(cache=True, nogil=True)
def _cell(outermost, size, g, i, j):
    """Place of span [i, j] under g in the charts of Model 2 (outermost) or Model 1."""
    return (g * size + i) * size + j if outermost else (i * size + j) * size + g


@njit(cache=True, nogil=True)
def _push(stack, top, right, g, i, j):
    stack[top, 0] = right
    stack[top, 1] = g
    stack[top, 2] = i
    stack[top, 3] = j
    return top + 1


@njit(cache=True, nogil=True)
def _split(outermost, size, charts, h, span, stack, top):
    """Push the two halves of S[h, i, j]."""
    i, j = span
    R, L = charts.R, charts.L
    best = -np.inf
    at = i
    for r in range(i, j):
        score = R[_cell(outermost, size, h, i, r)] + L[_cell(outermost, size, h, r + 1, j)]
        if score > best:
            best = score
            at = r
    top = _push(stack, top, 1, h, i, at)
    return _push(stack, top, 0, h, at + 1, j)


@njit(cache=True, nogil=True)
def read_off(outermost, scores, charts, stack, top, heads):
    """Set the heads below the complete items on the stack, rows (right, g, i, j). Ties: smallest index."""
    size = heads.shape[0]
    R, L, _, J, IL = charts
    while top > 0:
        top -= 1
        right, g, i, j = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        if i == j:
            continue
        best = -np.inf
        m = -1
        for x in range(j - i):  # the outermost modifier
            k = i + 1 + x if right else i + x
            if right:
                score = J[_cell(outermost, size, g, i, k)] + R[_cell(outermost, size, i, k, j)]
            else:
                score = L[_cell(outermost, size, j, i, k)]
                score += J[(g * size + j) * size + k] if outermost else IL[(j * size + k) * size + g]
            if score > best:
                best = score
                m = k
        h = i if right else j
        top = _push(stack, top, right, h, m, j) if right else _push(stack, top, right, h, i, m)
        top = _modifiers(outermost, scores, charts, (g, h, m), stack, top, heads)


@njit(cache=True, nogil=True)
def _modifiers(outermost, scores, charts, arcs, stack, top, heads):
    """Set the modifiers of h, whose head is g, from m inwards, and push what lies between; returns the new top."""
    size = heads.shape[0]
    g, h, m = arcs
    _, sib, _, gs, tri = scores
    R, L, S, IR, IL = charts
    right = m > h
    outer = -1  # the modifier outside m, whose trisibling part is still to be scored
    while True:
        heads[m] = h
        best = -np.inf
        s = h
        for x in range(abs(m - h)):
            k = h + x if right else h - x
            if outermost:
                score = IL[(h * size + k) * size + m]
                if outer >= 0 and tri.size > 0:
                    score += tri[((h * size + k) * size + m) * size + outer]
                if outer < 0 and gs.size > 0 and h > 0:
                    score += gs[((g * size + h) * size + k) * size + m]
            else:
                if k == h:
                    score = R[(m * size + h - 1) * size + h] if m < h else L[((h + 1) * size + m) * size + h]
                else:
                    score = S[(min(k, m) * size + max(k, m)) * size + h]
                    score += IR[(h * size + k) * size + g] if right else IL[(h * size + k) * size + g]
                if sib.size > 0:
                    score += sib[(h * size + k) * size + m]
                if gs.size > 0 and h > 0:
                    score += gs[((g * size + h) * size + k) * size + m]
            if score > best:
                best = score
                s = k
        if s == h:
            return _push(stack, top, 0, h, h + 1, m) if right else _push(stack, top, 1, h, m, h - 1)
        top = _split(outermost, size, charts, h, (min(s, m), max(s, m)), stack, top)
        outer = m
        m = s


@njit(cache=True, nogil=True)
def decode(scores, n, single, outermost, heads):
    """Best tree of one sentence from flat arrays; heads (N,) filled, value returned, -inf if there is none."""
    nodes = heads.shape[0]
    size = uint64(nodes)
    cube = nodes * nodes * nodes
    heads[:] = -1
    if n == 0:
        return 0.0
    R, L, S = np.full(cube, -np.inf), np.full(cube, -np.inf), np.full(cube, -np.inf)
    charts = Charts(R, L, S, np.full(cube, -np.inf), np.full(cube, -np.inf))
    if outermost:
        inside_outermost(scores, charts, size, uint64(n), single)
    else:
        inside_all(scores, charts, size, uint64(n), single)
    stack = np.empty((4 * nodes + 4, 4), dtype=np.int64)
    top = 0
    best = -np.inf
    arc, sib = scores.arc, scores.sib
    if single:
        at = 0
        for m in range(1, n + 1):
            score = arc[m] + L[_cell(outermost, nodes, 0, 1, m)] + R[_cell(outermost, nodes, 0, m, n)]
            if sib.size > 0:
                score += sib[m]
            if score > best:
                best = score
                at = m
        if at > 0:
            heads[at] = 0
            top = _push(stack, top, 0, 0, 1, at)
            top = _push(stack, top, 1, 0, at, n)
    else:
        best = R[_cell(outermost, nodes, 0, 0, n)]
        top = _push(stack, top, 1, 0, 0, n)
    if best > -np.inf:
        read_off(outermost, scores, charts, stack, top, heads)
    return best
