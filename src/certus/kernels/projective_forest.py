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

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit

ATTACH, FINISH, STOP = 1, 2, 4
LEFT, RIGHT = 0, 1
NONE = np.int32(-1)  # in place of a vertex, and of its type


class Arcs(NamedTuple):
    """The allowed arcs: their numbers in order of (h, m), -1 if not allowed, and the modifiers and heads of words."""

    number: np.ndarray  # (N, N)
    out_ptr: np.ndarray
    out: np.ndarray  # modifiers of h: out[out_ptr[h] : out_ptr[h + 1]]; places there are the numbers of the arcs
    into_ptr: np.ndarray
    into: np.ndarray  # heads of m


class Factors(NamedTuple):
    """Which trees, and what their items tell apart."""

    single: bool  # root
    track_g: bool
    outermost: bool
    track_s: bool


class Forest(NamedTuple):
    """A hypergraph, and what each of its edges scores."""

    in_ptr: np.ndarray  # (V + 1,)
    tail_ptr: np.ndarray  # (E + 1,)
    tail: np.ndarray  # (2 E,)
    coord: np.ndarray  # (E, 6): flags, g, h, t, s, m


class Items(NamedTuple):
    """Vertices of the items, -1 where there is none."""

    C: np.ndarray  # (2, slots, N): side, slot of (g, h), far end
    S_ptr: np.ndarray
    S: np.ndarray  # S^h(i, j) at S_ptr[h] + (place of i) * degree + (place of j); without g, one (N, N) for all heads
    inc_ptr: np.ndarray
    inc: np.ndarray  # I: per owner, a slot or h, one cell per m, or per (m, s)
    fin_ptr: np.ndarray
    fin: np.ndarray  # J: per slot one cell per m


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


@njit(cache=True, nogil=True, inline="always")
def _put(k, tail_ptr, tail, coord, a, b, part):
    """Append edge k with tail (a, b), -1 for none, if there is room; returns k + 1.

    Called for every edge, so it takes arrays one by one: to take one out of a tuple counts a reference.
    """
    if k < coord.shape[0]:
        put_tail(k, tail_ptr, tail, a, b)
        flags, g, h, t, s, m = part
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
    """The Arcs of a mask (N, N)."""
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
    return Arcs(arc_id, out_ptr, out, into_ptr, into)


@njit(cache=True, nogil=True)
def forest_room(n_vertices, n_edges):
    """A Forest with room for so many vertices and edges."""
    in_ptr, tail_ptr = np.zeros(n_vertices + 1, dtype=np.int32), np.zeros(n_edges + 1, dtype=np.int32)
    return Forest(in_ptr, tail_ptr, np.empty(2 * n_edges, dtype=np.int32), np.empty((n_edges, 6), dtype=np.int16))


@njit(cache=True, nogil=True)
def build(arcs, factors, limit, forest):
    """Fill a forest; returns how many vertices and edges there are.

    Without room for them it only counts, so it is called twice. Stops counting once there are more than `limit` edges.
    The goal is the last vertex; if there is no tree it has no edges.
    """
    n = arcs.number.shape[0] - 1
    items = _no_items(arcs, factors)
    v = 0
    k = 0
    forest.in_ptr[0] = 0
    forest.tail_ptr[0] = 0
    for i in range(n, -1 if not factors.single else 0, -1):
        v, k = _words(arcs, factors, items, forest, i, v, k)
        v, k = _row(arcs, factors, items, forest, i, limit, v, k)
        if k > limit:
            return v, k
    return _goal(arcs, factors, items, forest, v, k)


@njit(cache=True, nogil=True)
def _no_items(arcs, factors):
    """Room for the items, of which there are none yet."""
    out_ptr, out = arcs.out_ptr, arcs.out
    n = arcs.number.shape[0] - 1
    slots = out.shape[0] + 1 if factors.track_g else n + 1
    by_g = factors.track_g and not factors.outermost
    owners = slots if by_g else n + 1
    S_ptr = np.zeros(n + 2, dtype=np.int64)
    for h in range(n + 1):
        degree = out_ptr[h + 1] - out_ptr[h]
        S_ptr[h + 1] = S_ptr[h] + degree * degree
    inc_ptr = np.zeros(owners + 1, dtype=np.int64)
    fin_ptr = np.zeros(slots + 1, dtype=np.int64)
    for x in range(max(owners, slots)):
        if x < owners:
            h = x
            if by_g:
                h = out[x] if x < out.shape[0] else 0
            degree = out_ptr[h + 1] - out_ptr[h]
            inc_ptr[x + 1] = inc_ptr[x] + (degree * (degree + 1) if factors.track_s else degree)
        if x < slots:
            h = x
            if factors.track_g:
                h = out[x] if x < out.shape[0] else 0
            fin_ptr[x + 1] = fin_ptr[x] + out_ptr[h + 1] - out_ptr[h]
    use_j = factors.track_s or factors.outermost
    return Items(
        np.full((2, slots, n + 1), -1, dtype=np.int32),
        S_ptr,
        np.full(S_ptr[n + 1] if factors.track_g else (n + 1) * (n + 1), -1, dtype=np.int32),
        inc_ptr,
        np.full(inc_ptr[owners], -1, dtype=np.int32),
        fin_ptr,
        np.full(fin_ptr[slots] if use_j else 0, -1, dtype=np.int32),
    )


@njit(cache=True, nogil=True)
def _words(arcs, factors, items, forest, i, v, k):
    """C^g(i, i), on both sides."""
    in_ptr, tail_ptr, tail, coord = forest
    n = arcs.number.shape[0] - 1
    with_g = factors.track_g and i > 0
    first_head = arcs.into_ptr[i]
    for w in range(arcs.into_ptr[i + 1] - first_head if with_g else 1):
        g = np.int64(arcs.into[first_head + w]) if with_g else -1
        slot = i
        if factors.track_g:
            slot = arcs.number[g, i] if i > 0 else arcs.out.shape[0]
        for d in range(2):
            if i == 0 and (d == LEFT or n > 0):
                continue
            first = k
            k = _put(k, tail_ptr, tail, coord, NONE, NONE, (STOP, g, i, d, -1, i))
            v, items.C[d, slot, i] = close(v, k, first, in_ptr)
    return v, k


@njit(cache=True, nogil=True)
def _row(arcs, factors, items, forest, i, limit, v, k):
    """All items over the spans [i, j], j rising. One function: to take an array out of a tuple counts a reference."""
    number, out_ptr, out, into_ptr, into = arcs
    single, track_g, outermost, track_s = factors
    C, S_ptr, S, inc_ptr, inc, fin_ptr, fin = items
    in_ptr, tail_ptr, tail, coord = forest
    by_g, use_j = track_g and not outermost, track_s or outermost
    for j in range(i + 1, number.shape[0]):
        if k > limit:
            return v, k
        if i > 0:  # S^h(i, j)
            for w in range(into_ptr[i], into_ptr[i + 1]):
                h = into[w]
                if number[h, j] < 0 or (i < h and h < j) or (single and h == 0):
                    continue
                a = number[h, i] if track_g else i
                b = number[h, j] if track_g else j
                first = k
                for r in range(i, j):
                    if C[RIGHT, a, r] >= 0 and C[LEFT, b, r + 1] >= 0:
                        k = _put(k, tail_ptr, tail, coord, C[RIGHT, a, r], C[LEFT, b, r + 1], (0, -1, -1, -1, -1, -1))
                cell = np.int64(i * number.shape[0] + j)
                if track_g:
                    start = out_ptr[h]
                    degree = np.int64(out_ptr[h + 1] - start)
                    cell = S_ptr[h] + (number[h, i] - start) * degree + number[h, j] - start
                v, S[cell] = close(v, k, first, in_ptr)
                if not track_g:
                    break
        for d in range(1 if i == 0 else 0, 2):
            h, m = (i, j) if d == RIGHT else (j, i)
            step = 1 if d == RIGHT else -1
            start = out_ptr[h]
            degree = np.int64(out_ptr[h + 1] - start)
            if number[h, m] >= 0:  # I(h, m), once per head g of h if items have one
                place = number[h, m] - start
                inner = C[1 - d, number[h, m] if track_g else m, h + step]
                for w in range(into_ptr[h + 1] - into_ptr[h] if by_g and h > 0 else 1):
                    g = np.int64(into[into_ptr[h] + w]) if by_g and h > 0 else -1
                    if i <= g and g <= j:
                        continue
                    owner = h
                    if by_g:
                        owner = number[g, h] if h > 0 else out.shape[0]
                    base = inc_ptr[owner]
                    first = k
                    if inner >= 0:
                        k = _put(k, tail_ptr, tail, coord, inner, NONE, (ATTACH, g, h, -1, h, m))
                    if track_s:
                        v, inc[base + place * (degree + 1)] = close(v, k, first, in_ptr)
                    for p in range(degree):
                        s = np.int64(out[start + p])
                        if s <= i or s >= j:
                            continue
                        cell = np.int64(min(s, m) * number.shape[0] + max(s, m))
                        if track_g:
                            low = min(p, place)
                            cell = S_ptr[h] + low * degree + (p + place - low)
                        between = S[cell]
                        if between < 0:
                            continue
                        if track_s:
                            first = k
                            for q in range(degree + 1):
                                inside = inc[base + p * (degree + 1) + q]
                                t = h if q == 0 else np.int64(out[start + q - 1])
                                if inside >= 0:
                                    k = _put(k, tail_ptr, tail, coord, inside, between, (ATTACH, g, h, t, s, m))
                            v, inc[base + place * (degree + 1) + p + 1] = close(v, k, first, in_ptr)
                        elif inc[base + p] >= 0:
                            k = _put(k, tail_ptr, tail, coord, inc[base + p], between, (ATTACH, g, h, -1, s, m))
                    if not track_s:
                        v, inc[base + place] = close(v, k, first, in_ptr)
            # J^g(h, m) and C^g(h, e), e = m the far end of [i, j]
            for w in range(into_ptr[h + 1] - into_ptr[h] if track_g and h > 0 else 1):
                g = np.int64(into[into_ptr[h] + w]) if track_g and h > 0 else -1
                if i <= g and g <= j:
                    continue
                slot = h
                if track_g:
                    slot = number[g, h] if h > 0 else out.shape[0]
                base = inc_ptr[h if outermost else slot]
                if use_j and number[h, m] >= 0:
                    place = number[h, m] - start
                    flags = FINISH if outermost and h > 0 else 0
                    first = k
                    if track_s:
                        for q in range(degree + 1):
                            inside = inc[base + place * (degree + 1) + q]
                            s = h if q == 0 else np.int64(out[start + q - 1])
                            if inside >= 0:
                                k = _put(k, tail_ptr, tail, coord, inside, NONE, (flags, g, h, -1, s, m))
                    elif inc[base + place] >= 0:
                        k = _put(k, tail_ptr, tail, coord, inc[base + place], NONE, (flags, g, h, -1, -1, m))
                    v, fin[fin_ptr[slot] + place] = close(v, k, first, in_ptr)
                if h == 0 and j + 1 < number.shape[0]:
                    continue
                first = k
                for p in range(degree):
                    last = np.int64(out[start + p])
                    if last < i or last > j or (last - h) * step < 0:
                        continue
                    inside = fin[fin_ptr[slot] + p] if use_j else inc[base + p]
                    below = C[d, start + p if track_g else last, m]
                    if inside >= 0 and below >= 0:
                        k = _put(k, tail_ptr, tail, coord, inside, below, (STOP, g, h, -1, -1, last))
                v, C[d, slot, m] = close(v, k, first, in_ptr)
    return v, k


@njit(cache=True, nogil=True)
def _goal(arcs, factors, items, forest, v, k):
    """The last vertex: all trees."""
    out_ptr, out = arcs.out_ptr, arcs.out
    in_ptr, tail_ptr, tail, coord = forest
    n = arcs.number.shape[0] - 1
    if n == 0 and factors.single:
        k = _put(k, tail_ptr, tail, coord, NONE, NONE, (STOP, -1, 0, RIGHT, -1, 0))
    elif factors.single:
        for p in range(out_ptr[0], out_ptr[1]):
            m = np.int64(out[p])
            left = items.C[LEFT, p if factors.track_g else m, 1]
            right = items.C[RIGHT, p if factors.track_g else m, n]
            if left >= 0 and right >= 0:
                k = _put(k, tail_ptr, tail, coord, left, right, (ATTACH | STOP, -1, 0, -1, 0, m))
    elif n == 0 or items.C[RIGHT, out.shape[0] if factors.track_g else 0, n] >= 0:
        return v, k
    if v + 1 < in_ptr.shape[0]:
        in_ptr[v + 1] = k
    return v + 1, k
