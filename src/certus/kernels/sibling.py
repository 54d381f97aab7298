"""Second-order projective trees: arcs and pairs of successive modifiers (DEP 5.3.2), inside and outside.

The charts of `eisner`, plus S[i, j], the words between successive modifiers i < j of some head:

    S[i, j]  = (+)_r  R[i, r] (x) L[r + 1, j]                                       i <= r < j
    IR[i, j] = arc[i, j] (x) ( sib[i, i, j] (x) L[i + 1, j]  (+)  (+)_s  IR[i, s] (x) S[s, j] (x) sib[i, s, j] )
    IL[i, j] = arc[j, i] (x) ( sib[j, j, i] (x) R[i, j - 1]  (+)  (+)_s  IL[s, j] (x) S[i, s] (x) sib[j, s, i] )

with R and L as before. A and C hold the sums over s of the current row i before IR[i, j] and IL[i, j] are final. Rows
go from the last word to the first; node 0 is row 0 unless it has a single modifier. n^3 time.

Every inner loop runs along rows, which are padded to whole lanes (`width` cells). For that the scores of an item are
first copied, and checked on the way, to pairs[i, s, side, e], i <= s < e, flat, (N, N, 2, width):

    side 0   sib[i, s, e], s == i if e is the innermost modifier
    side 1   sib[e, s, i], but sib[e, e, i] at s == i

Cells of a row left of its diagonal and right of its end are zero in the charts, so that lanes may cover them; what they
are in A, C, pairs and in the outside charts does not matter.
"""

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit
from certus.kernels.eisner import SAFE_EXPONENT, arc_totals, level, split
from certus.kernels.hypergraph import Counting, LogPlus, MaxPlus, plus, times
from certus.kernels.lanes import LANES, push, push2, push3
from certus.kernels.sibling_groups import GROUP, fill, workspace
from certus.kernels.wide import BAD, as_float, magnitude

ENOUGH = 3  # items for which a group is faster than one by one


@njit(cache=True, nogil=True)
def load(sib, size, n, first, pairs, width):
    """Copy the scores of the parts of n words; returns the bits of the largest magnitude, BAD or more if one is bad.

    sib (N * N * N,) and pairs are seen as int64. Heads left of the modifier go row by row; heads right of it by LANES
    heads at a time, since they are neighbours in pairs.
    """
    zero, one, two, lanes = uint64(0), uint64(1), uint64(2), uint64(LANES)
    square = size * size
    top = 0
    for h in range(n + one):
        last = h + one if h < first else n  # a single root has only an innermost modifier
        for s in range(h, last):
            at = h * square + s * size
            to = (h * size + s) * two * width
            for m in range(s + one, n + one):
                v = sib[at + m]
                pairs[to + m] = v
                top = max(top, magnitude(v))
    for low in range(zero, n + one, lanes):
        high = min(low + lanes, n + one)
        whole = high - low == lanes
        for s in range(two, high):
            if whole and s < low:
                at = low * square + s * size
                for m in range(one, s):
                    to = ((m * size + s) * two + one) * width + low
                    a = sib[at + m]
                    b = sib[at + square + m]
                    c = sib[at + two * square + m]
                    d = sib[at + (two + one) * square + m]
                    pairs[to] = a
                    pairs[to + one] = b
                    pairs[to + two] = c
                    pairs[to + two + one] = d
                    top = max(max(top, magnitude(a)), max(magnitude(b), max(magnitude(c), magnitude(d))))
            else:
                for h in range(max(low, s + one), high):
                    at = h * square + s * size
                    for m in range(one, s):
                        v = sib[at + m]
                        pairs[((m * size + s) * two + one) * width + h] = v
                        top = max(top, magnitude(v))
    for h in range(two, n + one):
        at = h * square + h * size
        for m in range(one, h):
            v = sib[at + m]
            pairs[((m * size + m) * two + one) * width + h] = v
            top = max(top, magnitude(v))
    return top


@njit(cache=True, nogil=True)
def inside(sr, arc, pairs, size, width, n, first, R, L, IR, IL, S, A, C):
    """Fill rows n .. first of the charts (N * width,) from arc (N * N,) and pairs."""
    zero, one, two, lanes = uint64(0), uint64(1), uint64(2), uint64(LANES)
    for x in range(n + one - first):
        i = n - x
        row = i * width
        for q in range(i - i % lanes, n + one, lanes):
            for e in range(q, q + lanes):
                R[row + e] = sr.zero
                L[row + e] = sr.zero
                S[row + e] = sr.zero
                IL[row + e] = sr.zero
                A[e] = sr.zero
                C[e] = sr.zero
        R[row + i] = sr.one
        L[row + i] = sr.one
        own = (i * size + i) * two * width
        for r in range(i, n):
            j = r + one
            low = j * width
            c = R[row + r]
            between = plus(sr, S[row + j], c)
            right = times(sr, arc[i * size + j], plus(sr, A[j], times(sr, pairs[own + j], L[row + width + j])))
            left = sr.zero
            if i > zero:
                left = times(sr, arc[j * size + i], plus(sr, C[j], times(sr, pairs[own + width + j], c)))
            done = plus(sr, L[row + j], left)
            IR[row + j] = right
            IL[row + j] = left
            L[row + j] = done
            at = (i * size + j) * two * width
            for e in range(j - j % lanes, n + one, lanes):  # at e == j, S and R take their last terms c and right
                push(sr, S, row + e, c, L, low + e)
                push(sr, R, row + e, right, R, low + e)
                push(sr, L, row + e, done, IL, low + e)
                push2(sr, A, e, right, S, low + e, pairs, at + e)
                push2(sr, C, e, between, IL, low + e, pairs, at + width + e)


@njit(cache=True, nogil=True)
def outside(sr, arc, pairs, size, width, n, first, R, L, IR, IL, S, dR, dL, dIR, dIL, dS, dA, dC, sums):
    """The reverse of inside: dR, dL hold what lies outside the goal's items and zero elsewhere; fills dIR, dIL.

    sums (4 * LANES,) holds what the weights of one step have gathered so far, lane by lane.
    """
    zero, one, two, lanes = uint64(0), uint64(1), uint64(2), uint64(LANES)
    for i in range(first, n + one):
        row = i * width
        own = (i * size + i) * two * width
        dA[:] = sr.zero
        dC[:] = sr.zero
        for x in range(n - i):
            r = n - one - x
            j = r + one
            low = j * width
            c = R[row + r]
            between = S[row + j]
            right = IR[row + j]
            done = L[row + j]
            at = (i * size + j) * two * width
            sums[:] = sr.zero
            for e in range(j - j % lanes, n + one, lanes):  # at e == j, dS[i, j] goes to c and dR[i, j] to right
                push2(sr, sums, zero, sr.one, dS, row + e, L, low + e)
                push2(sr, sums, lanes, sr.one, dR, row + e, R, low + e)
                push2(sr, sums, two * lanes, sr.one, dL, row + e, IL, low + e)
                push3(sr, sums, lanes, sr.one, dA, e, S, low + e, pairs, at + e)
                push3(sr, sums, (two + one) * lanes, sr.one, dC, e, IL, low + e, pairs, at + width + e)
                push(sr, dL, low + e, c, dS, row + e)
                push(sr, dR, low + e, right, dR, row + e)
                push(sr, dIL, low + e, done, dL, row + e)
                push2(sr, dS, low + e, right, dA, e, pairs, at + e)
                push2(sr, dIL, low + e, between, dC, e, pairs, at + width + e)
            dc, dright, ddone, dbetween = sr.zero, sr.zero, dL[row + j], sr.zero
            for v in range(lanes):
                dc = plus(sr, dc, sums[v])
                dright = plus(sr, dright, sums[lanes + v])
                ddone = plus(sr, ddone, sums[two * lanes + v])
                dbetween = plus(sr, dbetween, sums[(two + one) * lanes + v])
            dL[row + j] = ddone
            dleft = plus(sr, dIL[row + j], ddone)
            dIL[row + j] = dleft
            dIR[row + j] = dright
            into = times(sr, dright, arc[i * size + j])
            dA[j] = into
            dL[row + width + j] = plus(sr, dL[row + width + j], times(sr, into, pairs[own + j]))
            dc = plus(sr, dc, dbetween)
            if i > zero:
                into = times(sr, dleft, arc[j * size + i])
                dC[j] = into
                dc = plus(sr, dc, times(sr, into, pairs[own + width + j]))
            dS[row + j] = plus(sr, dS[row + j], dbetween)
            dR[row + r] = plus(sr, dR[row + r], dc)


@njit(cache=True, nogil=True)
def read_off(sib, size, width, R, L, IR, IL, S, right, i, j, heads, stack):
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
                score = IR[i * width + k] + R[k * width + j]
                if score > best:
                    best = score
                    m = k
            stack[top, 0] = one
            stack[top, 1] = m
            stack[top, 2] = j
            top += one
            while True:  # the modifiers of i from m inwards
                heads[m] = i
                best = sib[i * square + i * size + m] + L[(i + one) * width + m]
                s = i
                for k in range(i + one, m):
                    score = IR[i * width + k] + S[k * width + m] + sib[i * square + k * size + m]
                    if score > best:
                        best = score
                        s = k
                if s == i:
                    stack[top, 0] = zero
                    stack[top, 1] = i + one
                    stack[top, 2] = m
                    top += one
                    break
                top = split(width, R, L, s, m, stack, top)
                m = s
        else:
            m = i
            for k in range(i, j):
                score = IL[k * width + j] + L[i * width + k]
                if score > best:
                    best = score
                    m = k
            stack[top, 0] = zero
            stack[top, 1] = i
            stack[top, 2] = m
            top += one
            while True:  # the modifiers of j from m inwards
                heads[m] = j
                best = sib[j * square + j * size + m] + R[m * width + j - one]
                s = j
                for k in range(m + one, j):
                    score = IL[k * width + j] + S[m * width + k] + sib[j * square + k * size + m]
                    if score > best:
                        best = score
                        s = k
                if s == j:
                    stack[top, 0] = one
                    stack[top, 1] = m
                    stack[top, 2] = j - one
                    top += one
                    break
                top = split(width, R, L, m, s, stack, top)
                m = s


@njit(cache=True, nogil=True)
def tree_score(arc, sib, size, n, heads, inner):
    """Score of one tree from the input: its arcs in order, then its siblings, right and left; inner (N,) is work."""
    total = 0.0
    for m in range(1, n + 1):
        total += arc[heads[m] * size + m]
    for h in range(n + 1):
        inner[h] = h  # the modifier found last on one side of each head
    for m in range(1, n + 1):
        h = heads[m]
        if h < m:
            total += sib[(h * size + inner[h]) * size + m]
            inner[h] = m
    for h in range(n + 1):
        inner[h] = h
    for m in range(n, 0, -1):
        h = heads[m]
        if h > m:
            total += sib[(h * size + inner[h]) * size + m]
            inner[h] = m
    return total


@njit(cache=True, nogil=True)
def work(size):
    """Cells of a padded row, room for the pairs of an item, and 10 charts."""
    width = (size + LANES - 1) // LANES * LANES
    return width, np.zeros(2 * size * size * width), np.zeros((10, size * width))


@njit(cache=True, nogil=True)
def best_tree(arc, sib, size, width, n, single, R, L, IR, IL, S, tree, stack, inner):
    """The best tree that the charts hold, into tree (N,); returns its value and its score, -inf if there is none."""
    one = uint64(1)
    best = -np.inf
    at = one
    if single:
        for m in range(one, n + one):
            total = arc[m] + sib[m] + L[width + m] + R[m * width + n]
            if total > best:
                best = total
                at = m
    else:
        best = R[n]
    if best == -np.inf:
        return best, best
    if single:
        tree[at] = 0
        read_off(sib, size, width, R, L, IR, IL, S, False, one, at, tree, stack)
        read_off(sib, size, width, R, L, IR, IL, S, True, at, n, tree, stack)
    else:
        read_off(sib, size, width, R, L, IR, IL, S, True, uint64(0), n, tree, stack)
    return best, tree_score(arc, sib, np.int64(size), np.int64(n), tree, inner)


@njit(cache=True, nogil=True)
def alike(lengths, order, at):
    """How many items from order[at] on make a group: of about the same length, which falls. 1 if none is made."""
    most = lengths[order[at]]
    end = at + 1
    while end < min(at + GROUP, order.shape[0]) and 4 * lengths[order[end]] >= 3 * most:
        end += 1
    return end - at if end - at >= ENOUGH and most >= GROUP else 1


@njit(cache=True, nogil=True)
def decode(arc, sib, lengths, single, heads, value, score):
    """Best tree of each item: heads (B, N) padded with -1, value (B,) from the chart and score (B,) from the input.

    Both are -inf if there is no tree. Returns the largest magnitude of a sibling score and the item where a bad one was
    met, which ends the reading, or -1. Items of about the same length go by groups: no answer depends on that.
    """
    size, first = uint64(arc.shape[1]), uint64(single)
    cells = arc.shape[1] * arc.shape[1]
    stack = np.empty((4 * arc.shape[1] + 4, 3), dtype=np.uint64)
    inner = np.empty(arc.shape[1], dtype=np.int64)
    order = np.argsort(-lengths)
    members, tops = np.empty(GROUP, dtype=np.int64), np.zeros(GROUP, dtype=np.int64)
    padded, pairs, charts = work(0)
    group_charts, arcs, left, rows = workspace(0)
    heads[:] = -1
    top = 0
    at = 0
    while at < order.shape[0] and lengths[order[at]] > 0:
        count = alike(lengths, order, at)
        for lane in range(GROUP):
            members[lane] = order[at + min(lane, count - 1)]  # lanes left over repeat the last item
        at += count
        if count == 1:
            if padded == 0:
                padded, pairs, charts = work(arc.shape[1])
            n, width = uint64(lengths[members[0]]), uint64(padded)
            raw = sib[members[0]].reshape(cells * arc.shape[1]).view(np.int64)
            tops[0] = load(raw, size, n, first, pairs.view(np.int64), width)
            if tops[0] < BAD:
                R, L, IR, IL, S, A, C = charts[0], charts[1], charts[2], charts[3], charts[4], charts[5], charts[6]
                scores = arc[members[0]].reshape(cells)
                inside(MaxPlus(-np.inf, 0.0), scores, pairs, size, width, n, first, R, L, IR, IL, S, A, C)
            held = charts.reshape((10, charts.shape[1], 1))
        else:
            if arcs.shape[0] == 0:
                group_charts, arcs, left, rows = workspace(arc.shape[1])
            width = size
            fill(arc.reshape(-1), sib.reshape(-1), members, lengths, size, first, group_charts, arcs, left, rows, tops)
            held = group_charts.reshape((5, cells, GROUP))
        for lane in range(count):
            k = members[lane]
            top = max(top, tops[lane])
            if top >= BAD:
                return as_float(top), k
            scores, raw = arc[k].reshape(cells), sib[k].reshape(cells * arc.shape[1])
            R, L, IR = held[0, :, lane], held[1, :, lane], held[2, :, lane]
            IL, S = held[3, :, lane], held[4, :, lane]
            n = uint64(lengths[k])
            found = best_tree(scores, raw, size, width, n, single, R, L, IR, IL, S, heads[k], stack, inner)
            value[k], score[k] = found
    for k in order[at:]:
        value[k] = 0.0
        score[k] = 0.0
    return as_float(top), -1


@njit(cache=True, nogil=True)
def goal(sr, arc, pairs, size, width, n, single, R, L):
    """Semiring total over all trees, from charts that are filled."""
    if not single:
        return R[n]
    one = uint64(1)
    total = sr.zero
    for m in range(one, n + one):
        top = times(sr, arc[m], pairs[m])
        total = plus(sr, total, times(sr, times(sr, top, L[width + m]), R[m * width + n]))
    return total


@njit(cache=True, nogil=True)
def totals(sr, arc, pairs, size, width, n, single, with_arcs, charts, out):
    """Semiring total over all trees of one item and, if asked for, over those with each arc, into out (N, N)."""
    one = uint64(1)
    first = one if single else uint64(0)
    R, L, IR, IL, S = charts[0], charts[1], charts[2], charts[3], charts[4]
    dR, dL, dIR, dIL, dS = charts[5], charts[6], charts[7], charts[8], charts[9]
    A, C, sums = np.zeros(width), np.zeros(width), np.empty(4 * LANES)
    inside(sr, arc, pairs, size, width, n, first, R, L, IR, IL, S, A, C)
    value = goal(sr, arc, pairs, size, width, n, single, R, L)
    if not with_arcs:
        return value
    charts[5:] = sr.zero
    out[:] = sr.zero
    if single:
        for m in range(one, n + one):
            top = times(sr, arc[m], pairs[m])
            dL[width + m] = times(sr, top, R[m * width + n])
            dR[m * width + n] = times(sr, top, L[width + m])
            out[0, m] = times(sr, dL[width + m], L[width + m])
    else:
        dR[n] = sr.one
    outside(sr, arc, pairs, size, width, n, first, R, L, IR, IL, S, dR, dL, dIR, dIL, dS, A, C, sums)
    arc_totals(sr, width, n, first, IR, IL, dIR, dIL, out)
    return value


@njit(cache=True, nogil=True)
def max_totals(arc, sib, lengths, single, out, value):
    """Best score of any tree, value (B,), and of a tree with each arc, out (B, N, N); returns as decode does."""
    size = uint64(arc.shape[1])
    cells = arc.shape[1] * arc.shape[1]
    padded, pairs, charts = work(arc.shape[1])
    width = uint64(padded)
    out[:] = -np.inf
    top = 0
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = 0.0
        if n == uint64(0):
            continue
        raw = sib[k].reshape(cells * arc.shape[1]).view(np.int64)
        top = max(top, load(raw, size, n, uint64(single), pairs.view(np.int64), width))
        if top >= BAD:
            return as_float(top), k
        sr = MaxPlus(-np.inf, 0.0)
        value[k] = totals(sr, arc[k].reshape(cells), pairs, size, width, n, single, True, charts, out[k])
    return as_float(top), -1


@njit(cache=True, nogil=True)
def log_totals(arc, sib, lengths, single, with_arcs, out, value):
    """Log of the sum over trees, value (B,), and, if asked for, arc marginals, out (B, N, N), else (1, 1, 1).

    Returns as decode does. Sums are of exponentials, without logarithms, while nothing that matters can underflow: with
    all scores at most 0, trees that underflow are below exp(-700) each and there are fewer than exp(2 n) of them; next
    to a best one that is far above that they are nothing.
    """
    size = uint64(arc.shape[1])
    first = uint64(single)
    cells = arc.shape[1] * arc.shape[1]
    padded, pairs, charts = work(arc.shape[1])
    width = uint64(padded)
    arcs = np.empty(cells)
    A, C = np.empty(padded), np.empty(padded)
    out[:] = 0.0
    top = 0
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = 0.0
        if n == uint64(0):
            continue
        raw = sib[k].reshape(cells * arc.shape[1]).view(np.int64)
        top = max(top, load(raw, size, n, first, pairs.view(np.int64), width))
        if top >= BAD:
            return as_float(top), k
        shift = scale(arc[k].reshape(cells), pairs, size, width, n, first, arcs, A)
        R, L = charts[0], charts[1]
        sr = MaxPlus(-np.inf, 0.0)
        inside(sr, arcs, pairs, size, width, n, first, R, L, charts[2], charts[3], charts[4], A, C)
        best = goal(sr, arcs, pairs, size, width, n, single, R, L)
        if best == -np.inf:
            value[k] = -np.inf
            pairs[:] = 0.0  # what the next item does not overwrite is to be a number, since 0 times it must be 0
            continue
        found = out[k if with_arcs else 0]
        if best > 2.0 * lengths[k] + 45.0 - SAFE_EXPONENT:
            exponentials(arcs, pairs, size, width, n, first)
            total = totals(Counting(0.0, 1.0), arcs, pairs, size, width, n, single, with_arcs, charts, found)
            value[k] = np.log(total) + shift
            if with_arcs:
                found /= total
        else:
            total = totals(LogPlus(-np.inf, 0.0), arcs, pairs, size, width, n, single, with_arcs, charts, found)
            value[k] = total + shift
            if with_arcs:
                found[:] = np.exp(found - total)
            pairs[:] = 0.0
    return as_float(top), -1


@njit(cache=True, nogil=True)
def scale(arc, pairs, size, width, n, first, arcs, best):
    """Scores moved so that none is above 0: the best of sib[h, :, m] goes to arc[h, m], the best of arc[:, m] is taken
    off. Overwrites pairs and arcs (N * N,), best (width,) is work; returns the sum taken off.
    """
    zero, one, two = uint64(0), uint64(1), uint64(2)
    for i in range(n + one):
        last = i + one if i < first else n  # a single root has only an innermost modifier
        for side in range(two if i > zero else one):
            for e in range(i + one, n + one):
                best[e] = -np.inf
            for s in range(i, last):
                at = ((i * size + s) * two + side) * width
                for e in range(s + one, n + one):
                    best[e] = max(best[e], pairs[at + e])
            for e in range(i + one, n + one):
                best[e] = 0.0 if best[e] == -np.inf else best[e]
                cell = i * size + e if side == zero else e * size + i
                arcs[cell] = arc[cell] + best[e]
            for s in range(i, last):
                at = ((i * size + s) * two + side) * width
                for e in range(s + one, n + one):
                    pairs[at + e] -= best[e]
    return level(arcs, size, n, arcs)


@njit(cache=True, nogil=True)
def exponentials(arcs, pairs, size, width, n, first):
    """exp of all scores, in place."""
    zero, one, two = uint64(0), uint64(1), uint64(2)
    for i in range(n + one):
        for e in range(i + one, n + one):
            arcs[i * size + e] = np.exp(arcs[i * size + e])
            if i > zero:
                arcs[e * size + i] = np.exp(arcs[e * size + i])
        for s in range(i, i + one if i < first else n):
            for side in range(two if i > zero else one):
                at = ((i * size + s) * two + side) * width
                for e in range(s + one, n + one):
                    pairs[at + e] = np.exp(pairs[at + e])


__all__ = ["decode", "log_totals", "max_totals"]
