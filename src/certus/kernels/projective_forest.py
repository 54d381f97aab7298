"""The hypergraph of all projective trees over the allowed arcs, for every factorization in one sweep.

Items, for spans [i, j] with i falling and j rising (LR 2.2.4; DEP 5.3, 5.4, with grandparent index g as superscript):

    C^g(h, e)      h with all its modifiers on the side of e, the last one's descendants reaching e
    S^h(i, j)      the words between successive modifiers i, j of h: C^h(i, r) and C^h(j, r + 1)
    I^g(h, [s], m) h with modifiers up to m; s, the one next inside, is part of the item only if `track_s`
    J^g(h, m)      I with m known to be outermost; only if `track_s` or grandparents count for outermost modifiers only

    I(h, m) <- C^h(m, h + 1)                    m innermost
    I(h, m) <- I(h, s), S^h(s, m)
    C(h, e) <- I or J(h, m), C^h(m, e)

so a tree has one derivation, whatever scores it has. Without ancestors items carry no g; with one, g is part of C and
S, and also of I if `head_at_modifiers`; with two, so is the head f of g: C^{fg}(h, e), S^{gh}(i, j). First-order trees
use the same items: they cost little more than Eisner's.

A word with the ancestors that its items tell apart is a context; the contexts of a word's modifiers depend on its own
context less the farthest ancestor, its group. Edges carry what they score as coordinates (flags, g, h, t, s, m, f), -1
where an index is unknown, so that this file knows nothing of scores.
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
    ancestors: int  # 0, 1 or 2
    head_at_modifiers: bool
    outermost: bool  # some parts are scored where a modifier is known to be outermost
    track_s: bool


class Contexts(NamedTuple):
    """Words with some of their ancestors, in order of the words; the first is node 0."""

    ptr: np.ndarray  # (N + 1,) those of word h are ptr[h] .. ptr[h + 1] - 1
    word: np.ndarray
    above: np.ndarray  # (X, 2): head, and head of the head; -1 where it is not told, or not there
    group: np.ndarray  # (X,)
    group_ptr: np.ndarray  # (N + 1,) the groups of word h
    group_above: np.ndarray  # the head of h in each group
    child_ptr: np.ndarray  # by group
    child: np.ndarray  # contexts of the modifiers of a group's word, in the order of Arcs.out; -1 if there is none


class Forest(NamedTuple):
    """A hypergraph, and what each of its edges scores."""

    in_ptr: np.ndarray  # (V + 1,)
    tail_ptr: np.ndarray  # (E + 1,)
    tail: np.ndarray  # (2 E,)
    coord: np.ndarray  # (E, 7): flags, g, h, t, s, m, f


class Items(NamedTuple):
    """Vertices of the items, -1 where there is none."""

    C: np.ndarray  # (2, contexts, N): side, context, far end
    S_ptr: np.ndarray
    S: np.ndarray  # S(i, j) at S_ptr[group] + (place of i) * degree + (place of j); without g, one (N, N) for all heads
    inc_ptr: np.ndarray
    inc: np.ndarray  # I: per owner, a context or h, one cell per m, or per (m, s)
    fin_ptr: np.ndarray
    fin: np.ndarray  # J: per context one cell per m


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
        flags, g, h, t, s, m, f = part
        coord[k, 0] = flags
        coord[k, 1] = g
        coord[k, 2] = h
        coord[k, 3] = t
        coord[k, 4] = s
        coord[k, 5] = m
        coord[k, 6] = f
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
    return Forest(in_ptr, tail_ptr, np.empty(2 * n_edges, dtype=np.int32), np.empty((n_edges, 7), dtype=np.int16))


@njit(cache=True, nogil=True)
def words_alone(arcs):
    """The Contexts of words without ancestors."""
    size = arcs.number.shape[0]
    words = np.arange(size + 1).astype(np.int32)
    above = np.full((size, 2), -1, dtype=np.int32)
    return Contexts(words, words[:-1], above, words[:-1], words, above[:, 0].copy(), arcs.out_ptr, arcs.out)


@njit(cache=True, nogil=True)
def with_ancestor(arcs, known):
    """Contexts with one more ancestor than those known, which are their groups.

    Those that no projective tree has are left out: a word's ancestors do not stand between it and its head.
    """
    number, out_ptr, _, into_ptr, into = arcs
    size, groups = number.shape[0], known.word.shape[0]
    child_ptr = np.zeros(groups + 1, dtype=np.int32)
    for y in range(groups):
        child_ptr[y + 1] = child_ptr[y] + out_ptr[known.word[y] + 1] - out_ptr[known.word[y]]
    child = np.full(child_ptr[groups], -1, dtype=np.int32)
    ptr = np.zeros(size + 1, dtype=np.int32)
    word, group = np.zeros(child.shape[0] + 1, dtype=np.int32), np.zeros(child.shape[0] + 1, dtype=np.int32)
    above = np.full((child.shape[0] + 1, 2), -1, dtype=np.int32)
    x = 1
    for m in range(1, size):
        ptr[m] = x
        for w in range(into_ptr[m], into_ptr[m + 1]):
            h = into[w]
            place = number[h, m] - out_ptr[h]
            for y in range(known.ptr[h], known.ptr[h + 1]):
                f = known.above[y, 0]
                if f == m or (min(h, m) < f and f < max(h, m)):
                    continue
                word[x], above[x, 0], above[x, 1] = m, h, f
                group[x] = known.child[known.child_ptr[known.group[y]] + place]
                child[child_ptr[y] + place] = x
                x += 1
    ptr[size] = x
    head = known.above[:, 0].copy()
    return Contexts(ptr, word[:x].copy(), above[:x].copy(), group[:x].copy(), known.ptr, head, child_ptr, child)


@njit(cache=True, nogil=True)
def contexts_of(arcs, ancestors):
    """The Contexts with so many ancestors."""
    contexts = words_alone(arcs)
    for _ in range(ancestors):
        contexts = with_ancestor(arcs, contexts)
    return contexts


@njit(cache=True, nogil=True)
def build(arcs, factors, limit, forest):
    """Fill a forest; returns how many vertices and edges there are.

    Without room for them it only counts, so it is called twice. Stops counting once there are more than `limit` edges.
    The goal is the last vertex; if there is no tree it has no edges.
    """
    n = arcs.number.shape[0] - 1
    contexts = contexts_of(arcs, factors.ancestors)
    items = _no_items(arcs, contexts, factors)
    v = 0
    k = 0
    forest.in_ptr[0] = 0
    forest.tail_ptr[0] = 0
    for i in range(n, -1 if not factors.single else 0, -1):
        v, k = _words(contexts, items, forest, i, v, k)
        v, k = _row(arcs, contexts, factors, items, forest, i, v, k)
        if k > limit:
            return v, k
    return _goal(arcs, contexts, factors, items, forest, v, k)


@njit(cache=True, nogil=True)
def _no_items(arcs, contexts, factors):
    """Room for the items, of which there are none yet."""
    out_ptr = arcs.out_ptr
    size, slots = arcs.number.shape[0], contexts.word.shape[0]
    groups = contexts.child_ptr.shape[0] - 1
    S_ptr = np.zeros(groups + 1, dtype=np.int64)
    for h in range(size):
        degree = np.int64(out_ptr[h + 1] - out_ptr[h])
        for y in range(contexts.group_ptr[h], contexts.group_ptr[h + 1]):
            S_ptr[y + 1] = S_ptr[y] + degree * degree
    owners = slots if factors.head_at_modifiers else size
    inc_ptr = np.zeros(owners + 1, dtype=np.int64)
    fin_ptr = np.zeros(slots + 1, dtype=np.int64)
    for x in range(slots):
        fin_ptr[x + 1] = fin_ptr[x] + out_ptr[contexts.word[x] + 1] - out_ptr[contexts.word[x]]
    for x in range(owners):
        h = contexts.word[x] if factors.head_at_modifiers else x
        degree = np.int64(out_ptr[h + 1] - out_ptr[h])
        inc_ptr[x + 1] = inc_ptr[x] + (degree * (degree + 1) if factors.track_s else degree)
    return Items(
        np.full((2, slots, size), -1, dtype=np.int32),
        S_ptr,
        np.full(S_ptr[groups] if factors.ancestors > 0 else size * size, -1, dtype=np.int32),
        inc_ptr,
        np.full(inc_ptr[owners], -1, dtype=np.int32),
        fin_ptr,
        np.full(fin_ptr[slots] if factors.track_s or factors.outermost else 0, -1, dtype=np.int32),
    )


@njit(cache=True, nogil=True)
def _words(contexts, items, forest, i, v, k):
    """C^g(i, i), on both sides."""
    in_ptr, tail_ptr, tail, coord = forest
    n = contexts.ptr.shape[0] - 2
    for x in range(contexts.ptr[i], contexts.ptr[i + 1]):
        g, f = np.int64(contexts.above[x, 0]), np.int64(contexts.above[x, 1])
        for d in range(2):
            if i == 0 and (d == LEFT or n > 0):
                continue
            first = k
            k = _put(k, tail_ptr, tail, coord, NONE, NONE, (STOP, g, i, d, -1, i, f))
            v, items.C[d, x, i] = close(v, k, first, in_ptr)
    return v, k


@njit(cache=True, nogil=True)
def _row(arcs, contexts, factors, items, forest, i, v, k):
    """All items over the spans [i, j], j rising. One function: to take an array out of a tuple counts a reference."""
    number, out_ptr, out, into_ptr, into = arcs
    ptr, _, above, group, group_ptr, group_above, child_ptr, child = contexts
    single, ancestors, by_g, outermost, track_s = factors
    C, S_ptr, S, inc_ptr, inc, fin_ptr, fin = items
    in_ptr, tail_ptr, tail, coord = forest
    use_j, track_g = track_s or outermost, ancestors > 0
    for j in range(i + 1, number.shape[0]):
        if i > 0:  # S(i, j)
            for w in range(into_ptr[i], into_ptr[i + 1]):
                h = into[w]
                if number[h, j] < 0 or (i < h and h < j) or (single and h == 0):
                    continue
                start = out_ptr[h]
                degree = np.int64(out_ptr[h + 1] - start)
                place_i, place_j = number[h, i] - start, number[h, j] - start
                for y in range(group_ptr[h], group_ptr[h + 1]):
                    if i <= group_above[y] and group_above[y] <= j:
                        continue
                    a, b = child[child_ptr[y] + place_i], child[child_ptr[y] + place_j]
                    if a < 0 or b < 0:
                        continue
                    first = k
                    for r in range(i, j):
                        left, right = C[RIGHT, a, r], C[LEFT, b, r + 1]
                        if left >= 0 and right >= 0:
                            k = _put(k, tail_ptr, tail, coord, left, right, (0, -1, -1, -1, -1, -1, -1))
                    cell = S_ptr[y] + place_i * degree + place_j if track_g else np.int64(i * number.shape[0] + j)
                    v, S[cell] = close(v, k, first, in_ptr)
                if not track_g:
                    break
        for d in range(1 if i == 0 else 0, 2):
            h, m = (i, j) if d == RIGHT else (j, i)
            step = 1 if d == RIGHT else -1
            start = out_ptr[h]
            degree = np.int64(out_ptr[h + 1] - start)
            if number[h, m] >= 0:  # I(h, m), once per context of h if items have one
                place = number[h, m] - start
                for owner in range(ptr[h] if by_g else h, ptr[h + 1] if by_g else h + 1):
                    g, f = (np.int64(above[owner, 0]), np.int64(above[owner, 1])) if by_g else (-1, -1)
                    if (i <= g and g <= j) or (i <= f and f <= j):
                        continue
                    y = group[owner] if by_g else h
                    own = child[child_ptr[y] + place]
                    base = inc_ptr[owner]
                    first = k
                    if own >= 0 and C[1 - d, own, h + step] >= 0:
                        inner = C[1 - d, own, h + step]
                        k = _put(k, tail_ptr, tail, coord, inner, NONE, (ATTACH, g, h, -1, h, m, f))
                    if track_s:
                        v, inc[base + place * (degree + 1)] = close(v, k, first, in_ptr)
                    for p in range(degree):
                        s = np.int64(out[start + p])
                        if s <= i or s >= j:
                            continue
                        cell = np.int64(min(s, m) * number.shape[0] + max(s, m))
                        if track_g:
                            low = min(p, place)
                            cell = S_ptr[y] + low * degree + (p + place - low)
                        between = S[cell]
                        if between < 0:
                            continue
                        if track_s:
                            first = k
                            for q in range(degree + 1):
                                inside = inc[base + p * (degree + 1) + q]
                                t = h if q == 0 else np.int64(out[start + q - 1])
                                if inside >= 0:
                                    k = _put(k, tail_ptr, tail, coord, inside, between, (ATTACH, g, h, t, s, m, f))
                            v, inc[base + place * (degree + 1) + p + 1] = close(v, k, first, in_ptr)
                        elif inc[base + p] >= 0:
                            k = _put(k, tail_ptr, tail, coord, inc[base + p], between, (ATTACH, g, h, -1, s, m, f))
                    if not track_s:
                        v, inc[base + place] = close(v, k, first, in_ptr)
            # J^g(h, m) and C^g(h, e), e = m the far end of [i, j]
            for x in range(ptr[h], ptr[h + 1]):
                g, f = np.int64(above[x, 0]), np.int64(above[x, 1])
                if (i <= g and g <= j) or (i <= f and f <= j):
                    continue
                base = inc_ptr[x if by_g else h]
                if use_j and number[h, m] >= 0:
                    place = number[h, m] - start
                    flags = FINISH if outermost and h > 0 else 0
                    first = k
                    if track_s:
                        for q in range(degree + 1):
                            inside = inc[base + place * (degree + 1) + q]
                            s = h if q == 0 else np.int64(out[start + q - 1])
                            if inside >= 0:
                                k = _put(k, tail_ptr, tail, coord, inside, NONE, (flags, g, h, -1, s, m, f))
                    elif inc[base + place] >= 0:
                        k = _put(k, tail_ptr, tail, coord, inc[base + place], NONE, (flags, g, h, -1, -1, m, f))
                    v, fin[fin_ptr[x] + place] = close(v, k, first, in_ptr)
                if h == 0 and j + 1 < number.shape[0]:
                    continue
                first = k
                for p in range(degree):
                    last = np.int64(out[start + p])
                    if last < i or last > j or (last - h) * step < 0:
                        continue
                    inside = fin[fin_ptr[x] + p] if use_j else inc[base + p]
                    own = child[child_ptr[group[x]] + p]
                    if inside >= 0 and own >= 0 and C[d, own, m] >= 0:
                        k = _put(k, tail_ptr, tail, coord, inside, C[d, own, m], (STOP, g, h, -1, -1, last, f))
                v, C[d, x, m] = close(v, k, first, in_ptr)
    return v, k


@njit(cache=True, nogil=True)
def _goal(arcs, contexts, factors, items, forest, v, k):
    """The last vertex: all trees."""
    out_ptr, out = arcs.out_ptr, arcs.out
    in_ptr, tail_ptr, tail, coord = forest
    n = arcs.number.shape[0] - 1
    if n == 0 and factors.single:
        k = _put(k, tail_ptr, tail, coord, NONE, NONE, (STOP, -1, 0, RIGHT, -1, 0, -1))
    elif factors.single:
        for p in range(out_ptr[0], out_ptr[1]):
            m = np.int64(out[p])
            own = contexts.child[contexts.child_ptr[contexts.group[0]] + p]
            left, right = items.C[LEFT, own, 1], items.C[RIGHT, own, n]
            if left >= 0 and right >= 0:
                k = _put(k, tail_ptr, tail, coord, left, right, (ATTACH | STOP, -1, 0, -1, 0, m, -1))
    elif n == 0 or items.C[RIGHT, 0, n] >= 0:
        return v, k
    if v + 1 < in_ptr.shape[0]:
        in_ptr[v + 1] = k
    return v + 1, k
