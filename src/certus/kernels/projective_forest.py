"""The hypergraph of all projective trees over the allowed arcs, for every factorization in one sweep.

Items, for spans [i, j] with i falling and j rising (LR 2.2.4; DEP 5.3, 5.4, with grandparent index g as superscript):

    C^g(h, e)      h with all its modifiers on the side of e, the last one's descendants reaching e
    S^h(i, j)      the words between successive modifiers i, j of h: C^h(i, r) and C^h(j, r + 1)
    I^g(h, [s], m) h with modifiers up to m; s, the one next inside, is part of the item only if `track_s`
    J^g(h, m)      I with m known to be outermost; only if `track_s` or grandparents count for outermost modifiers only

    I(h, m) <- C^h(m, h + 1)                    m innermost
    I(h, m) <- I(h, s), S^h(s, m)
    C(h, e) <- I or J(h, m), C^h(m, e)

so a tree has one derivation, whatever scores it has. Without `track_g` items carry no g; with it, g is part of C and
S, and also of I unless `outermost`. First-order trees use the same items: they cost little more than Eisner's.

Slots number the (g, h) of complete spans: with `track_g` the arc ids (and one more for node 0), else the word h.
Edges carry what they score as coordinates (flags, g, h, t, s, m), -1 where an index is unknown, so that this file knows
nothing of scores.
"""

import numpy as np

from certus.kernels.compiling import njit

ATTACH, FINISH, STOP = 1, 2, 4
LEFT, RIGHT = 0, 1


@njit(cache=True, nogil=True)
def put_tail(k, tail_ptr, tail, a, b):
    """The tail of edge k, the next one: (a, b), -1 for none."""
    p = tail_ptr[k]
    if a >= 0:
        tail[p] = a
        p += 1
    if b >= 0:
        tail[p] = b
        p += 1
    tail_ptr[k + 1] = p


@njit(cache=True, nogil=True)
def _put(k, tail_ptr, tail, coord, a, b, flags, g, h, t, s, m):
    """Append edge k with tail (a, b), -1 for none, if there is room; returns k + 1."""
    if k < coord.shape[0]:
        put_tail(k, tail_ptr, tail, a, b)
        coord[k, 0] = flags
        coord[k, 1] = g
        coord[k, 2] = h
        coord[k, 3] = t
        coord[k, 4] = s
        coord[k, 5] = m
    return k + 1


@njit(cache=True, nogil=True)
def close(v, k, first, in_ptr):
    """Make vertex v of the edges first .. k - 1 if there are any; returns (v + 1, v) or (v, -1)."""
    if k == first:
        return v, -1
    if v + 1 < in_ptr.shape[0]:
        in_ptr[v + 1] = k
    return v + 1, v


@njit(cache=True, nogil=True)
def index_arcs(allowed):
    """arc_id (N, N) in order of (h, m), -1 if not allowed; out_ptr, out: modifiers of each h; into_ptr, into: heads."""
    n_nodes = allowed.shape[0]
    arc_id = np.full((n_nodes, n_nodes), -1, dtype=np.int32)
    out_ptr = np.zeros(n_nodes + 1, dtype=np.int32)
    into_ptr = np.zeros(n_nodes + 1, dtype=np.int32)
    count = 0
    for h in range(n_nodes):
        for m in range(1, n_nodes):
            if h != m and allowed[h, m]:
                arc_id[h, m] = count
                count += 1
                into_ptr[m + 1] += 1
        out_ptr[h + 1] = count
    for m in range(n_nodes):
        into_ptr[m + 1] += into_ptr[m]
    out = np.empty(count, dtype=np.int32)
    into = np.empty(count, dtype=np.int32)
    fill = into_ptr.copy()
    for h in range(n_nodes):
        for m in range(n_nodes):
            if arc_id[h, m] >= 0:
                out[arc_id[h, m]] = m
                into[fill[m]] = h
                fill[m] += 1
    return arc_id, out_ptr, out, into_ptr, into


@njit(cache=True, nogil=True)
def build(
    arc_id, out_ptr, out, into_ptr, into, single, track_g, outermost, track_s, limit, in_ptr, tail_ptr, tail, coord
):
    """Fill in_ptr (V + 1,), tail_ptr (E + 1,), tail (2 E,), coord (E, 6); returns (V, E).

    With arrays too small it only counts, so it is called twice. Stops counting once E exceeds `limit`. The goal is the
    last vertex; if there is no tree it has no edges.
    """
    n = arc_id.shape[0] - 1
    arcs = out.shape[0]
    slots = arcs + 1 if track_g else n + 1
    by_g = track_g and not outermost
    use_j = track_s or outermost
    comp = np.full((2, slots, n + 1), -1, dtype=np.int32)
    # S^h(i, j) at sib_ptr[h] + (place of i) * degree + (place of j); without g one table for all heads.
    sib_ptr = np.zeros(n + 2, dtype=np.int64)
    for h in range(n + 1):
        degree = out_ptr[h + 1] - out_ptr[h]
        sib_ptr[h + 1] = sib_ptr[h] + degree * degree
    sib = np.full(sib_ptr[n + 1] if track_g else (n + 1) * (n + 1), -1, dtype=np.int32)
    owners = slots if by_g else n + 1
    inc_ptr = np.zeros(owners + 1, dtype=np.int64)  # I: per owner one cell per m, or per (m, s)
    fin_ptr = np.zeros(slots + 1, dtype=np.int64)  # J: per slot one cell per m
    for x in range(max(owners, slots)):
        if x < owners:
            h = x
            if by_g:
                h = out[x] if x < arcs else 0
            degree = out_ptr[h + 1] - out_ptr[h]
            inc_ptr[x + 1] = inc_ptr[x] + (degree * (degree + 1) if track_s else degree)
        if x < slots:
            h = x
            if track_g:
                h = out[x] if x < arcs else 0
            fin_ptr[x + 1] = fin_ptr[x] + out_ptr[h + 1] - out_ptr[h]
    inc = np.full(inc_ptr[owners], -1, dtype=np.int32)
    fin = np.full(fin_ptr[slots] if use_j else 0, -1, dtype=np.int32)

    v = 0
    k = 0
    goal = -1
    in_ptr[0] = 0
    tail_ptr[0] = 0
    for i in range(n, -1 if not single else 0, -1):
        ways = into_ptr[i + 1] - into_ptr[i] if track_g and i > 0 else 1
        for w in range(ways):
            g = into[into_ptr[i] + w] if track_g and i > 0 else -1
            slot = i
            if track_g:
                slot = arc_id[g, i] if i > 0 else arcs
            for d in range(2):
                if i == 0 and (d == LEFT or n > 0):
                    continue
                first = k
                k = _put(k, tail_ptr, tail, coord, -1, -1, STOP, g, i, d, -1, i)
                v, comp[d, slot, i] = close(v, k, first, in_ptr)
        for j in range(i + 1, n + 1):
            if k > limit:
                return v, k
            # S^h(i, j)
            if i > 0:
                for w in range(into_ptr[i + 1] - into_ptr[i]):
                    h = into[into_ptr[i] + w]
                    if arc_id[h, j] < 0 or (i < h and h < j) or (single and h == 0):
                        continue
                    a = arc_id[h, i] if track_g else i
                    b = arc_id[h, j] if track_g else j
                    first = k
                    for r in range(i, j):
                        if comp[RIGHT, a, r] >= 0 and comp[LEFT, b, r + 1] >= 0:
                            k = _put(
                                k, tail_ptr, tail, coord,
                                comp[RIGHT, a, r], comp[LEFT, b, r + 1], 0, -1, -1, -1, -1, -1,
                            )  # fmt: skip
                    cell = np.int64(i * (n + 1) + j)
                    if track_g:
                        start = out_ptr[h]
                        degree = np.int64(out_ptr[h + 1] - start)
                        cell = sib_ptr[h] + (arc_id[h, i] - start) * degree + arc_id[h, j] - start
                    v, sib[cell] = close(v, k, first, in_ptr)
                    if not track_g:
                        break
            for d in range(2):
                h = i if d == RIGHT else j
                m = j if d == RIGHT else i
                step = 1 if d == RIGHT else -1
                if m == 0:
                    continue
                start = out_ptr[h]
                degree = np.int64(out_ptr[h + 1] - start)
                # I(h, m), once per head g of h if items have one
                if arc_id[h, m] >= 0:
                    place = arc_id[h, m] - start
                    inner = comp[1 - d, arc_id[h, m] if track_g else m, h + step]
                    ways = into_ptr[h + 1] - into_ptr[h] if by_g and h > 0 else 1
                    for w in range(ways):
                        g = into[into_ptr[h] + w] if by_g and h > 0 else -1
                        if i <= g and g <= j:
                            continue
                        owner = h
                        if by_g:
                            owner = arc_id[g, h] if h > 0 else arcs
                        base = inc_ptr[owner]
                        first = k
                        if inner >= 0:
                            k = _put(k, tail_ptr, tail, coord, inner, -1, ATTACH, g, h, -1, h, m)
                        if track_s:
                            v, inc[base + place * (degree + 1)] = close(v, k, first, in_ptr)
                        for p in range(degree):
                            s = out[start + p]
                            if s <= i or s >= j:
                                continue
                            cell = np.int64(min(s, m) * (n + 1) + max(s, m))
                            if track_g:
                                low = min(p, place)
                                cell = sib_ptr[h] + low * degree + (p + place - low)
                            between = sib[cell]
                            if between < 0:
                                continue
                            if track_s:
                                first = k
                                for q in range(degree + 1):
                                    inside = inc[base + p * (degree + 1) + q]
                                    t = h if q == 0 else out[start + q - 1]
                                    if inside >= 0:
                                        k = _put(k, tail_ptr, tail, coord, inside, between, ATTACH, g, h, t, s, m)
                                v, inc[base + place * (degree + 1) + p + 1] = close(v, k, first, in_ptr)
                            elif inc[base + p] >= 0:
                                k = _put(k, tail_ptr, tail, coord, inc[base + p], between, ATTACH, g, h, -1, s, m)
                        if not track_s:
                            v, inc[base + place] = close(v, k, first, in_ptr)
                # J^g(h, m) and C^g(h, e), e the far end of [i, j]
                ways = into_ptr[h + 1] - into_ptr[h] if track_g and h > 0 else 1
                for w in range(ways):
                    g = into[into_ptr[h] + w] if track_g and h > 0 else -1
                    if i <= g and g <= j:
                        continue
                    slot = h
                    if track_g:
                        slot = arc_id[g, h] if h > 0 else arcs
                    owner = slot if by_g else h
                    if use_j and arc_id[h, m] >= 0:
                        place = arc_id[h, m] - start
                        flags = FINISH if outermost and h > 0 else 0
                        first = k
                        if track_s:
                            for q in range(degree + 1):
                                inside = inc[inc_ptr[owner] + place * (degree + 1) + q]
                                s = h if q == 0 else out[start + q - 1]
                                if inside >= 0:
                                    k = _put(k, tail_ptr, tail, coord, inside, -1, flags, g, h, -1, s, m)
                        elif inc[inc_ptr[owner] + place] >= 0:
                            inside = inc[inc_ptr[owner] + place]
                            k = _put(k, tail_ptr, tail, coord, inside, -1, flags, g, h, -1, -1, m)
                        v, fin[fin_ptr[slot] + place] = close(v, k, first, in_ptr)
                    if h == 0 and j < n:
                        continue
                    first = k
                    for p in range(degree):
                        last = out[start + p]
                        if last < i or last > j or (last - h) * step < 0:
                            continue
                        inside = fin[fin_ptr[slot] + p] if use_j else inc[inc_ptr[owner] + p]
                        below = comp[d, start + p if track_g else last, m]
                        if inside >= 0 and below >= 0:
                            k = _put(k, tail_ptr, tail, coord, inside, below, STOP, g, h, -1, -1, last)
                    v, comp[d, slot, m] = close(v, k, first, in_ptr)
    first = k
    if n == 0:
        if single:
            k = _put(k, tail_ptr, tail, coord, -1, -1, STOP, -1, 0, RIGHT, -1, 0)
        else:
            goal = 0
    elif single:
        for p in range(out_ptr[0], out_ptr[1]):
            m = out[p]
            left = comp[LEFT, p if track_g else m, 1]
            right = comp[RIGHT, p if track_g else m, n]
            if left >= 0 and right >= 0:
                k = _put(k, tail_ptr, tail, coord, left, right, ATTACH | STOP, -1, 0, -1, 0, m)
    elif comp[RIGHT, arcs if track_g else 0, n] >= 0:
        goal = comp[RIGHT, arcs if track_g else 0, n]
    if goal < 0:
        if v + 1 < in_ptr.shape[0]:
            in_ptr[v + 1] = k
        v += 1
    return v, k
