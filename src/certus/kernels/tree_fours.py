"""Elimination of words in fours, where every arc is allowed: what ``matrix_tree.eliminate`` does, in fewer passes.

Fours are counted from the last word of a part; the first of them may have fewer words, and the missing ones stand
before the others without any arc. The pivots of a four only depend on the arcs within it and on the sums of the arcs
into each of its words from outside: the words outside are taken as one. With c[i, j] the arcs within a four and e[j]
these sums, for each word i in turn,

    D_i = e[i] + sum over j > i of c[j, i];  c[j, m] += c[j, i] / D_i c[i, m];  e[m] += e[i] / D_i c[i, m]

and then each row outside, and each column, goes through the same steps by itself. Nothing is subtracted.
"""

from certus.kernels.algebra import U, get, lanes, number, over, plus, plus_product, put, times
from certus.kernels.compiling import njit
from certus.kernels.tree_products import Apart, Cells, Shared, settle, settle_four


@njit(cache=True, nogil=True, inline="always")
def words_kept(size, lo, hi):
    """The words of a block that are not among lo..hi-1, which are its first or its last ones."""
    return (hi, size) if lo == 0 else (0, lo)


@njit(cache=True, nogil=True)
def pass_on(sr, w, block, part, k):
    """Rows and columns of the words k .. k + 3, of those not eliminated yet, as the words before k leave them."""
    size, lo, hi = block.size, part[0], part[1]
    one, step = lanes(sr), U(size) * lanes(sr)
    given, work = U(block.given), U(block.work)
    keep, end = words_kept(size, lo, hi)
    begin, k_cell, k_row = U(lo) * one, U(k) * one, U(k + 1) * step
    above = work + U(lo + 1) * step
    cells = Cells(given + k_cell, work + k_cell, above + k_cell, step, one)
    settle(sr, 4, k - lo, w, cells, w, Shared(work + begin, one))
    for side in range(2):
        first, last = (k, hi) if side == 0 else (keep, end)
        row = U(first + 1) * step
        cells = Cells(given + row + k_cell, work + row + k_cell, work + row + begin, one, step)
        settle_four(sr, last - first, k - lo, w, cells, w, Shared(above + k_cell, step), Apart(one, one, one))
        first = k + 4 if side == 0 else keep
        j = U(first) * one
        cells = Cells(given + k_row + j, work + k_row + j, above + j, step, one)
        settle_four(sr, last - first, k - lo, w, cells, w, Shared(work + k_row + begin, one), Apart(step, step, step))


@njit(cache=True, nogil=True, inline="always")
def _cell(sr, w, there, at):
    return get(sr, w, at) if there else number(sr, sr.zero)


@njit(cache=True, nogil=True)
def eliminate_four(sr, w, block, part, four, single, pivots, at):
    """Eliminate the words k .. k + count - 1, four = (k, count), of a block. pivots[at + k] <- D_k."""
    size, lo, hi = block.size, part[0], part[1]
    k, count = four
    one, step = lanes(sr), U(size) * lanes(sr)
    work = U(block.work)
    source = work if k > lo else U(block.given)
    keep, end = words_kept(size, lo, hi)
    a, b, c = count > 3, count > 2, count > 1  # whether the first, second, third word is there
    unit, none = number(sr, sr.one), number(sr, sr.zero)
    first = U(k + count) * one - U(4) * one  # the column of the first word; below 0 if it is missing
    c0, c1, c2, c3 = first, first + one, first + U(2) * one, first + U(3) * one
    # Row r of the four begins at (r + 1) * step, counted as columns are.
    r3 = source + U(k + count) * step
    r2, r1, r0 = r3 - step, r3 - U(2) * step, r3 - U(3) * step
    x01, x02, x03 = _cell(sr, w, a, r0 + c1), _cell(sr, w, a, r0 + c2), _cell(sr, w, a, r0 + c3)
    x10, x12, x13 = _cell(sr, w, a, r1 + c0), _cell(sr, w, b, r1 + c2), _cell(sr, w, b, r1 + c3)
    x20, x21, x23 = _cell(sr, w, a, r2 + c0), _cell(sr, w, b, r2 + c1), _cell(sr, w, c, r2 + c3)
    x30, x31, x32 = _cell(sr, w, a, r3 + c0), _cell(sr, w, b, r3 + c1), _cell(sr, w, c, r3 + c2)
    e0 = unit if not a else (none if single else get(sr, w, source + c0))
    e1 = unit if not b else (none if single else get(sr, w, source + c1))
    e2 = unit if not c else (none if single else get(sr, w, source + c2))
    e3 = none if single else get(sr, w, source + c3)
    for begin, stop in ((k + count, hi), (keep, end)):
        row = source + U(begin + 1) * step
        for _ in range(begin, stop):
            e0 = plus(sr, e0, _cell(sr, w, a, row + c0))
            e1 = plus(sr, e1, _cell(sr, w, b, row + c1))
            e2 = plus(sr, e2, _cell(sr, w, c, row + c2))
            e3 = plus(sr, e3, get(sr, w, row + c3))
            row += step
    d0 = plus(sr, e0, plus(sr, plus(sr, x10, x20), x30))
    i0 = over(sr, unit, d0)
    s10, s20, s30, t = times(sr, x10, i0), times(sr, x20, i0), times(sr, x30, i0), times(sr, e0, i0)
    e1, x21, x31 = plus_product(sr, e1, t, x01), plus_product(sr, x21, s20, x01), plus_product(sr, x31, s30, x01)
    e2, x12, x32 = plus_product(sr, e2, t, x02), plus_product(sr, x12, s10, x02), plus_product(sr, x32, s30, x02)
    e3, x13, x23 = plus_product(sr, e3, t, x03), plus_product(sr, x13, s10, x03), plus_product(sr, x23, s20, x03)
    d1 = plus(sr, e1, plus(sr, x21, x31))
    i1 = over(sr, unit, d1)
    s21, s31, t = times(sr, x21, i1), times(sr, x31, i1), times(sr, e1, i1)
    e2, x32 = plus_product(sr, e2, t, x12), plus_product(sr, x32, s31, x12)
    e3, x23 = plus_product(sr, e3, t, x13), plus_product(sr, x23, s21, x13)
    d2 = plus(sr, e2, x32)
    i2 = over(sr, unit, d2)
    s32 = times(sr, x32, i2)
    d3 = plus_product(sr, e3, times(sr, e2, i2), x23)
    i3 = over(sr, unit, d3)
    pivot = U(at + k + count) * one - U(4) * one
    r3 = work + U(k + count) * step
    r2, r1, r0 = r3 - step, r3 - U(2) * step, r3 - U(3) * step
    if a:
        put(sr, pivots, pivot, d0)
        put(sr, w, r0 + c1, x01)
        put(sr, w, r0 + c2, x02)
        put(sr, w, r0 + c3, x03)
        put(sr, w, r1 + c0, s10)
        put(sr, w, r2 + c0, s20)
        put(sr, w, r3 + c0, s30)
    if b:
        put(sr, pivots, pivot + one, d1)
        put(sr, w, r1 + c2, x12)
        put(sr, w, r1 + c3, x13)
        put(sr, w, r2 + c1, s21)
        put(sr, w, r3 + c1, s31)
    if c:
        put(sr, pivots, pivot + U(2) * one, d2)
        put(sr, w, r2 + c3, x23)
        put(sr, w, r3 + c2, s32)
    put(sr, pivots, pivot + U(3) * one, d3)
    for begin, stop in ((-1, 0), (k + count, hi), (keep, end)):  # the root, then the words outside: their shares
        row = U(begin + 1) * step
        for _ in range(begin, stop):
            s0 = times(sr, _cell(sr, w, a, source + row + c0), i0)
            s1 = times(sr, plus_product(sr, _cell(sr, w, b, source + row + c1), s0, x01), i1)
            x = plus_product(sr, _cell(sr, w, c, source + row + c2), s0, x02)
            s2 = times(sr, plus_product(sr, x, s1, x12), i2)
            x = plus_product(sr, plus_product(sr, get(sr, w, source + row + c3), s0, x03), s1, x13)
            if a:
                put(sr, w, work + row + c0, s0)
            if b:
                put(sr, w, work + row + c1, s1)
            if c:
                put(sr, w, work + row + c2, s2)
            put(sr, w, work + row + c3, times(sr, plus_product(sr, x, s2, x23), i3))
            row += step
    from_work = work - source
    r3 = source + U(k + count) * step
    r2, r1, r0 = r3 - step, r3 - U(2) * step, r3 - U(3) * step
    for begin, stop in ((k + count, hi), (keep, end)):  # the arcs of the four into these
        for j in range(U(begin) * one, U(stop) * one, one):
            y0 = _cell(sr, w, a, r0 + j)
            y1 = plus_product(sr, _cell(sr, w, b, r1 + j), s10, y0)
            y2 = plus_product(sr, plus_product(sr, _cell(sr, w, c, r2 + j), s20, y0), s21, y1)
            y3 = plus_product(sr, plus_product(sr, get(sr, w, r3 + j), s30, y0), s31, y1)
            if a:
                put(sr, w, from_work + r0 + j, y0)
            if b:
                put(sr, w, from_work + r1 + j, y1)
            if c:
                put(sr, w, from_work + r2 + j, y2)
            put(sr, w, from_work + r3 + j, plus_product(sr, y3, s32, y2))


@njit(cache=True, nogil=True)
def each_of_four(sr, w, given, single, place, chance, pivots):
    """What matrix_tree._each_last does for a block of four words, without a trip to memory: two go, two are left, and
    the reverse. place is (start, n): the block begins at word ``start`` of n. Rounds as the longer way does.
    """
    start, n = place
    one, unit, none = lanes(sr), number(sr, sr.one), number(sr, sr.zero)
    step = U(4) * one
    for p in range(0, 3, 2):
        r = 2 - p
        to_p, to_q, to_r, to_s = U(p) * one, U(p + 1) * one, U(r) * one, U(r + 1) * one
        of_p, of_r = given + U(p + 1) * step, given + U(r + 1) * step
        of_q, of_s = of_p + step, of_r + step
        root_p, root_q = get(sr, w, given + to_p), get(sr, w, given + to_q)
        root_r, root_s = get(sr, w, given + to_r), get(sr, w, given + to_s)
        pq, pr, ps = get(sr, w, of_p + to_q), get(sr, w, of_p + to_r), get(sr, w, of_p + to_s)
        qp, qr, qs = get(sr, w, of_q + to_p), get(sr, w, of_q + to_r), get(sr, w, of_q + to_s)
        rp, rq, rs = get(sr, w, of_r + to_p), get(sr, w, of_r + to_q), get(sr, w, of_r + to_s)
        sp, sq, sr_ = get(sr, w, of_s + to_p), get(sr, w, of_s + to_q), get(sr, w, of_s + to_r)
        into_p = plus(sr, plus(sr, none if single else root_p, rp), sp)
        into_q = plus(sr, plus(sr, none if single else root_q, rq), sq)
        pivot_p = plus(sr, into_p, qp)
        over_p = over(sr, unit, pivot_p)
        qp = times(sr, qp, over_p)
        pivot_q = plus_product(sr, into_q, times(sr, into_p, over_p), pq)
        over_q = over(sr, unit, pivot_q)
        root_p, rp, sp = times(sr, root_p, over_p), times(sr, rp, over_p), times(sr, sp, over_p)
        root_q = times(sr, plus_product(sr, root_q, root_p, pq), over_q)
        rq, sq = times(sr, plus_product(sr, rq, rp, pq), over_q), times(sr, plus_product(sr, sq, sp, pq), over_q)
        qr, qs = plus_product(sr, qr, qp, pr), plus_product(sr, qs, qp, ps)
        root_r = plus_product(sr, plus_product(sr, root_r, root_p, pr), root_q, qr)
        root_s = plus_product(sr, plus_product(sr, root_s, root_p, ps), root_q, qs)
        rs = plus_product(sr, plus_product(sr, rs, rp, ps), rq, qs)
        sr_ = plus_product(sr, plus_product(sr, sr_, sp, pr), sq, qr)
        into_r = sr_ if single else plus(sr, root_r, sr_)
        into_s = rs if single else plus(sr, root_s, rs)
        from_r, from_s = times(sr, root_r, over(sr, unit, into_r)), times(sr, root_s, over(sr, unit, into_s))
        if p == 0 and start + U(4) == n:
            at = (n + start) * one
            put(sr, pivots, at, pivot_p)
            put(sr, pivots, at + one, pivot_q)
            put(sr, pivots, at + U(2) * one, into_r)
            put(sr, pivots, at + U(3) * one, plus_product(sr, root_s, from_r, rs))
        across = n * one
        column = (start + U(r)) * one
        put(sr, chance, column, unit)
        put(sr, chance, column + one, unit)
        q_r, q_s = plus_product(sr, root_q, sq, from_s), plus_product(sr, root_q, rq, from_r)
        row = (start + U(p + 1)) * across + column
        put(sr, chance, row, plus_product(sr, plus_product(sr, root_p, sp, from_s), qp, q_r))
        put(sr, chance, row + one, plus_product(sr, plus_product(sr, root_p, rp, from_r), qp, q_s))
        put(sr, chance, row + across, q_r)
        put(sr, chance, row + across + one, q_s)
        row = (start + U(r + 1)) * across + column
        put(sr, chance, row, none)
        put(sr, chance, row + one, from_r)
        put(sr, chance, row + across, from_s)
        put(sr, chance, row + across + one, none)
