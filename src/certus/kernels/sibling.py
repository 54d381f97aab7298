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

from typing import NamedTuple

import numpy as np
from numba import uint64

from certus.kernels.algebra import LOG, MAX, REAL, plus, times
from certus.kernels.arrays import longest_first
from certus.kernels.compiling import njit
from certus.kernels.eisner import SAFE_EXPONENT, arc_totals, level, split
from certus.kernels.lanes import (
    BAD,
    FEW,
    LANES,
    as_float,
    exponential,
    load_few,
    magnitude,
    spread,
    spread_few,
    store,
    where_larger,
)
from certus.kernels.lanes import load as load_lanes
from certus.kernels.sibling_groups import GROUP, Charts, alike, fill, workspace


class Sentence(NamedTuple):
    """The scores of one item, flat, and its measures."""

    arc: np.ndarray  # (N * N,)
    siblings: np.ndarray  # pairs, for the sweeps; as they were given, (N * N * N,), to read a tree off
    size: int  # N
    width: int  # cells of a row of the charts
    n: int
    single: bool  # root


class Room(NamedTuple):
    """What the sweeps over one sentence fill: pairs, charts, and rows and sums as work."""

    width: int
    pairs: np.ndarray
    inner: Charts
    outer: Charts
    A: np.ndarray
    C: np.ndarray
    sums: np.ndarray  # what the weights of one step of outside have gathered so far, lane by lane


@njit(cache=True, nogil=True)
def room(size):
    """Room for sentences of up to size - 1 words; A, C and sums need no values, all else is to be 0."""
    width = (size + FEW - 1) // FEW * FEW
    cells = size * width
    items, rows = np.zeros((10, cells)), np.zeros((2, width))
    inner = Charts(items[0], items[1], items[2], items[3], items[4])
    outer = Charts(items[5], items[6], items[7], items[8], items[9])
    return Room(width, np.zeros(2 * size * cells), inner, outer, rows[0], rows[1], np.empty(4 * FEW))


@njit(cache=True, nogil=True)
def push(sr, to, t, x):
    """to[t], to[t + 1], ... (+)= the numbers of x."""
    store(to, t, plus(sr, load_few(to, t), x))


@njit(cache=True, nogil=True)
def load(sib, size, n, first, pairs, width):
    """Copy the scores of the parts of n words; returns the bits of the largest magnitude, BAD or more if one is bad.

    sib (N * N * N,) and pairs are seen as int64. Heads left of the modifier go row by row; heads right of it by FEW
    heads at a time, since they are neighbours in pairs.
    """
    zero, one, two, few = uint64(0), uint64(1), uint64(2), uint64(FEW)
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
    for low in range(zero, n + one, few):
        high = min(low + few, n + one)
        whole = high - low == few
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
def hand_back(sentence, total, out):
    """out[h, s, m] <- pairs over a number, in the order of load; other cells are left as they are."""
    _, pairs, size, width, n, single = sentence
    zero, one, two, few = uint64(0), uint64(1), uint64(2), uint64(FEW)
    first, square = uint64(single), size * size
    flat = out.reshape(-1)
    for h in range(n + one):
        for s in range(h, h + one if h < first else n):
            at = (h * size + s) * two * width
            to = h * square + s * size
            for m in range(s + one, n + one):
                flat[to + m] = pairs[at + m] / total
    for low in range(zero, n + one, few):
        high = min(low + few, n + one)
        for s in range(two, high):
            for h in range(max(low, s), high):
                to = h * square + s * size
                for m in range(one, s):
                    row = s if h > s else m
                    flat[to + m] = pairs[((m * size + row) * two + one) * width + h] / total


@njit(cache=True, nogil=True)
def inside(sr, sentence, charts, A, C):
    """Fill the charts of a sentence, but for row 0 if it has a single root."""
    arc, pairs, size, width, n, single = sentence
    R, L, IR, IL, S = charts
    first = uint64(single)
    zero, one, two, few = uint64(0), uint64(1), uint64(2), uint64(FEW)
    for x in range(n + one - first):
        i = n - x
        row = i * width
        for q in range(i - i % few, n + one, few):
            for e in range(q, q + few):
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
            c4, right4, done4, between4 = spread_few(c), spread_few(right), spread_few(done), spread_few(between)
            for e in range(j - j % few, n + one, few):  # at e == j, S and R take their last terms c and right
                within = load_few(IL, low + e)
                push(sr, S, row + e, times(sr, c4, load_few(L, low + e)))
                push(sr, R, row + e, times(sr, right4, load_few(R, low + e)))
                push(sr, L, row + e, times(sr, done4, within))
                push(sr, A, e, times(sr, times(sr, right4, load_few(S, low + e)), load_few(pairs, at + e)))
                push(sr, C, e, times(sr, times(sr, between4, within), load_few(pairs, at + width + e)))


@njit(cache=True, nogil=True)
def outside(sr, sentence, charts, outer, dA, dC, sums, keep):
    """The reverse of inside: outer R, L hold what lies outside the goal's items, zero elsewhere; fills IR and IL.

    With ``keep`` pairs <- the totals over the trees that have each pair, as its cells are read for the last time.
    """
    arc, pairs, size, width, n, single = sentence
    R, L, IR, IL, S = charts
    dR, dL, dIR, dIL, dS = outer
    zero, one, two, few = uint64(0), uint64(1), uint64(2), uint64(FEW)
    for i in range(uint64(single), n + one):
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
            c4, right4, done4, between4 = spread_few(c), spread_few(right), spread_few(done), spread_few(between)
            for e in range(j - j % few, n + one, few):  # at e == j, dS[i, j] goes to c and dR[i, j] to right
                to_right, to_left = load_few(pairs, at + e), load_few(pairs, at + width + e)
                push(sr, sums, zero, times(sr, load_few(dS, row + e), load_few(L, low + e)))
                push(sr, sums, few, times(sr, load_few(dR, row + e), load_few(R, low + e)))
                push(sr, sums, two * few, times(sr, load_few(dL, row + e), load_few(IL, low + e)))
                with_right = times(sr, times(sr, load_few(dA, e), load_few(S, low + e)), to_right)
                with_left = times(sr, times(sr, load_few(dC, e), load_few(IL, low + e)), to_left)
                if keep:
                    store(pairs, at + e, times(sr, right4, with_right))
                    store(pairs, at + width + e, times(sr, between4, with_left))
                push(sr, sums, few, with_right)
                push(sr, sums, (two + one) * few, with_left)
                push(sr, dL, low + e, times(sr, c4, load_few(dS, row + e)))
                push(sr, dR, low + e, times(sr, right4, load_few(dR, row + e)))
                push(sr, dIL, low + e, times(sr, done4, load_few(dL, row + e)))
                push(sr, dS, low + e, times(sr, times(sr, right4, load_few(dA, e)), to_right))
                push(sr, dIL, low + e, times(sr, times(sr, between4, load_few(dC, e)), to_left))
            dc, dright, ddone, dbetween = sr.zero, sr.zero, dL[row + j], sr.zero
            for v in range(few):
                dc = plus(sr, dc, sums[v])
                dright = plus(sr, dright, sums[few + v])
                ddone = plus(sr, ddone, sums[two * few + v])
                dbetween = plus(sr, dbetween, sums[(two + one) * few + v])
            dL[row + j] = ddone
            dleft = plus(sr, dIL[row + j], ddone)
            dIL[row + j] = dleft
            dIR[row + j] = dright
            into = times(sr, dright, arc[i * size + j])
            dA[j] = into
            innermost = times(sr, into, pairs[own + j])
            if keep:
                pairs[own + j] = times(sr, innermost, L[row + width + j])
            dL[row + width + j] = plus(sr, dL[row + width + j], innermost)
            dc = plus(sr, dc, dbetween)
            if i > zero:
                into = times(sr, dleft, arc[j * size + i])
                dC[j] = into
                innermost = times(sr, into, pairs[own + width + j])
                if keep:
                    pairs[own + width + j] = times(sr, innermost, c)
                dc = plus(sr, dc, innermost)
            dS[row + j] = plus(sr, dS[row + j], dbetween)
            dR[row + r] = plus(sr, dR[row + r], dc)


@njit(cache=True, nogil=True)
def read_off(sentence, charts, right, i, j, heads, stack):
    """Set the heads below one complete item: i reaching right to j, or j reaching left to i. Ties: smallest index."""
    _, sib, size, width, _, _ = sentence
    R, L, IR, IL, S = charts
    zero, one, two = uint64(0), uint64(1), uint64(2)
    square = size * size
    top = one
    stack[0, 0] = uint64(right)
    stack[0, 1] = i
    stack[0, 2] = j
    while top > zero:
        top -= one
        right = stack[top, 0] == one
        i = stack[top, 1]
        j = stack[top, 2]
        if i == j:
            continue
        h = i if right else j
        best = -np.inf
        m = i
        for x in range(j - i):
            k = i + one + x if right else i + x
            score = IR[i * width + k] + R[k * width + j] if right else IL[k * width + j] + L[i * width + k]
            if score > best:
                best = score
                m = k
        stack[top, one if right else two] = m
        top += one
        while True:  # the modifiers of h from m inwards
            heads[m] = h
            pairs = h * square + m
            best = sib[pairs + h * size] + (L[(h + one) * width + m] if right else R[m * width + h - one])
            s = h
            for k in range(min(h, m) + one, max(h, m)):
                score = IR[h * width + k] + S[k * width + m] if right else IL[k * width + h] + S[m * width + k]
                score += sib[pairs + k * size]
                if score > best:
                    best = score
                    s = k
            if s == h:
                break
            top = split(width, R, L, min(s, m), max(s, m), stack, top)
            m = s
        stack[top, 0] = zero if right else one
        stack[top, 1] = h + one if right else m
        stack[top, 2] = m if right else h - one
        top += one


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
def tree_of_charts(sentence, charts, tree, stack, inner):
    """The best tree that the charts hold, into tree (N,); returns its value and its score, -inf if there is none."""
    arc, sib, size, width, n, single = sentence
    R, L = charts.R, charts.L
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
        read_off(sentence, charts, False, one, at, tree, stack)
        read_off(sentence, charts, True, at, n, tree, stack)
    else:
        read_off(sentence, charts, True, uint64(0), n, tree, stack)
    return best, tree_score(arc, sib, np.int64(size), np.int64(n), tree, inner)


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
    order = longest_first(lengths)
    members, tops = np.empty(GROUP, dtype=np.int64), np.zeros(GROUP, dtype=np.int64)
    alone, together = room(0), workspace(0)
    heads[:] = -1
    top = 0
    at = 0
    while at < order.shape[0] and lengths[order[at]] > 0:
        count = alike(lengths, order, at)
        for lane in range(GROUP):
            members[lane] = order[at + min(lane, count - 1)]  # lanes left over repeat the last item
        at += count
        width = size
        if count == 1:
            if alone.width == 0:
                alone = room(arc.shape[1])
            n, width = uint64(lengths[members[0]]), uint64(alone.width)
            raw = sib[members[0]].reshape(cells * arc.shape[1]).view(np.int64)
            tops[0] = load(raw, size, n, first, alone.pairs.view(np.int64), width)
            if tops[0] < BAD:
                sentence = Sentence(arc[members[0]].reshape(cells), alone.pairs, size, width, n, single)
                inside(MAX, sentence, alone.inner, alone.A, alone.C)
        else:
            if together.arcs.shape[0] == 0:
                together = workspace(arc.shape[1])
            fill(arc.reshape(-1), sib.reshape(-1), members, lengths, first, together, tops)
        for lane in range(count):
            k = members[lane]
            top = max(top, tops[lane])
            if top >= BAD:
                return as_float(top), k
            raw = sib[k].reshape(cells * arc.shape[1])
            sentence = Sentence(arc[k].reshape(cells), raw, size, width, uint64(lengths[k]), single)
            charts = lane_charts(alone.inner, 1, lane) if count == 1 else lane_charts(together.charts, GROUP, lane)
            found = tree_of_charts(sentence, charts, heads[k], stack, inner)
            value[k], score[k] = found
    for k in order[at:]:
        value[k] = 0.0
        score[k] = 0.0
    return as_float(top), -1


@njit(cache=True, nogil=True)
def lane_charts(charts, lanes, lane):
    """The charts of one of ``lanes`` sentences that are interleaved."""
    R, L, IR, IL, S = charts
    shape = (R.shape[0] // lanes, lanes)
    return Charts(
        R.reshape(shape)[:, lane],
        L.reshape(shape)[:, lane],
        IR.reshape(shape)[:, lane],
        IL.reshape(shape)[:, lane],
        S.reshape(shape)[:, lane],
    )


@njit(cache=True, nogil=True)
def goal(sr, sentence, charts):
    """Semiring total over all trees, from charts that are filled."""
    arc, pairs, _, width, n, single = sentence
    R, L = charts.R, charts.L
    if not single:
        return R[n]
    one = uint64(1)
    total = sr.zero
    for m in range(one, n + one):
        top = times(sr, arc[m], pairs[m])
        total = plus(sr, total, times(sr, times(sr, top, L[width + m]), R[m * width + n]))
    return total


@njit(cache=True, nogil=True)
def totals(sr, sentence, room, out, keep):
    """Semiring total over all trees of one item and, if out (N, N) has room for it, over those with each arc; then,
    with ``keep``, over those with each pair of siblings, in place of its score.
    """
    arc, pairs, _, width, n, single = sentence
    charts, outer, A, C = room.inner, room.outer, room.A, room.C
    one = uint64(1)
    A[:] = 0.0  # what lanes cover beyond a row is to be a number
    C[:] = 0.0
    inside(sr, sentence, charts, A, C)
    value = goal(sr, sentence, charts)
    if uint64(out.shape[0]) <= n:
        return value
    for chart in outer:
        chart[:] = sr.zero
    out[:] = sr.zero
    R, L, dR, dL = charts.R, charts.L, outer.R, outer.L
    if single:
        for m in range(one, n + one):
            top = times(sr, arc[m], pairs[m])
            dL[width + m] = times(sr, top, R[m * width + n])
            dR[m * width + n] = times(sr, top, L[width + m])
            out[0, m] = times(sr, dL[width + m], L[width + m])
            if keep:
                pairs[m] = out[0, m]
    else:
        dR[n] = sr.one
    outside(sr, sentence, charts, outer, A, C, room.sums, keep)
    arc_totals(sr, width, n, uint64(single), charts, outer, out)
    return value


@njit(cache=True, nogil=True)
def max_totals(arc, sib, lengths, single, out, value):
    """Best score of any tree, value (B,), and of a tree with each arc, out (B, N, N); returns as decode does."""
    size = uint64(arc.shape[1])
    cells = arc.shape[1] * arc.shape[1]
    own = room(arc.shape[1])
    width = uint64(own.width)
    out[:] = -np.inf
    top = 0
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = 0.0
        if n == uint64(0):
            continue
        raw = sib[k].reshape(cells * arc.shape[1]).view(np.int64)
        top = max(top, load(raw, size, n, uint64(single), own.pairs.view(np.int64), width))
        if top >= BAD:
            return as_float(top), k
        sentence = Sentence(arc[k].reshape(cells), own.pairs, size, width, n, single)
        value[k] = totals(MAX, sentence, own, out[k], False)
    return as_float(top), -1


@njit(cache=True, nogil=True)
def log_totals(arc, sib, lengths, single, out, siblings, value):
    """Log of the sum over trees, value (B,), and, if asked for, marginals of arcs, out (B, N, N), else (1, 1, 1), and
    then of pairs of siblings too, siblings (B, N, N, N), else (1, 1, 1, 1).

    Returns as decode does. Sums are of exponentials, without logarithms, while nothing that matters can underflow: with
    all scores at most 0, trees that underflow are below exp(-700) each and there are fewer than exp(2 n) of them; next
    to a best one that is far above that they are nothing.
    """
    size = uint64(arc.shape[1])
    cells = arc.shape[1] * arc.shape[1]
    own = room(arc.shape[1])
    width = uint64(own.width)
    with_arcs, with_siblings = out.shape[1] == arc.shape[1], siblings.shape[1] == arc.shape[1]
    arcs = np.empty(cells)
    out[:] = 0.0
    siblings[:] = 0.0
    top = 0
    for k in range(arc.shape[0]):
        n = uint64(lengths[k])
        value[k] = 0.0
        if n == uint64(0):
            continue
        raw = sib[k].reshape(cells * arc.shape[1]).view(np.int64)
        top = max(top, load(raw, size, n, uint64(single), own.pairs.view(np.int64), width))
        if top >= BAD:
            return as_float(top), k
        sentence = Sentence(arcs, own.pairs, size, width, n, single)
        shift = scale(arc[k].reshape(cells), sentence, own.A)
        inside(MAX, sentence, own.inner, own.A, own.C)
        best = goal(MAX, sentence, own.inner)
        if best == -np.inf:
            value[k] = -np.inf
            own.pairs[:] = 0.0  # what the next item does not overwrite is to be a number, since 0 times it must be 0
            continue
        found = out[k if with_arcs else 0]
        if best > 2.0 * lengths[k] + 45.0 - SAFE_EXPONENT:
            exponentials(sentence)
            total = totals(REAL, sentence, own, found, with_siblings)
            value[k] = np.log(total) + shift
            if with_arcs:
                found /= total
            if with_siblings:
                hand_back(sentence, total, siblings[k])
        else:
            total = totals(LOG, sentence, own, found, with_siblings)
            value[k] = total + shift
            if with_arcs:
                found[:] = np.exp(found - total)
            if with_siblings:
                own.pairs[:] = np.exp(own.pairs - total)
                hand_back(sentence, 1.0, siblings[k])
            own.pairs[:] = 0.0
    return as_float(top), -1


@njit(cache=True, nogil=True)
def scale(arc, sentence, best):
    """Scores moved so that none is above 0: the best of sib[h, :, m] goes to arc[h, m], the best of arc[:, m] is taken
    off. The sentence gets arc (N * N,), and its pairs are changed; best (width,) is work. Returns the sum taken off.
    """
    arcs, pairs, size, width, n, single = sentence
    first = uint64(single)
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
def exponentials(sentence):
    """exp of all scores, in place."""
    arcs, pairs, size, width, n, single = sentence
    first = uint64(single)
    zero, one, two = uint64(0), uint64(1), uint64(2)
    place, end = np.arange(np.float64(size + uint64(LANES))), spread(np.float64(n) + 0.5)
    for i in range(n + one):
        for e in range(i + one, n + one):
            arcs[i * size + e] = np.exp(arcs[i * size + e])
            if i > zero:
                arcs[e * size + i] = np.exp(arcs[e * size + i])
        for s in range(i, i + one if i < first else n):
            for side in range(two if i > zero else one):
                at = ((i * size + s) * two + side) * width
                for e in range(s + one, n + one, uint64(LANES)):  # the last ones reach into what follows, and leave it
                    x = load_lanes(pairs, at + e)
                    store(pairs, at + e, where_larger(end, load_lanes(place, e), exponential(x), x))


__all__ = ["decode", "log_totals", "max_totals"]
