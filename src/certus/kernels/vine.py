"""The hypergraph of vine parses: linear in the words for a fixed band b (LR 8.3.3).

Inside the band, Eisner's items over spans [i, j] with j - i <= b: R, L complete, IR, IL incomplete (see `eisner`).
Beyond it

    Q(h)   the words up to h, with h's left modifiers, h still without a head
    W(h)   the words up to h, h with its head and open for modifiers to its right

    Q(h) <- W(h - 1)            no left modifier           W(h) <- Q(h)               an outer head, left or right
    Q(h) <- IL(h, m), Q(m)      m its outermost one        W(h) <- W(g), IR(g, h)     the outermost right modifier of g

On the way to Q(h) and to W(h), h may take an outer modifier to its left and right. W(n) is the goal. With a single root
node 0 has one modifier in the band, or an outer one: then IR(0, m) is without others, and Q(1) asks for the outer one.

The index set of a vine over the allowed arcs: arcs of at most b words, then the outer heads and the outer modifiers
that longer arcs have. ``number`` holds the place of each in the set, -1 for none: of arc (h, m) at [h, m], of the outer
head of m on side d at [N + m, d], of the outer modifier of h at [2 N + h, d], N = n + 1.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT
from certus.kernels.projective_forest import close, put_tail

ARC, OUTER_HEAD, OUTER_MODIFIER = 0, 1, 2


class Graph(NamedTuple):
    """A hypergraph, and (kind, cell) of what each of its edges uses, (-1, -1) for nothing."""

    in_ptr: np.ndarray  # (V + 1,)
    tail_ptr: np.ndarray  # (E + 1,)
    tail: np.ndarray  # (2 E,)
    what: np.ndarray  # (E, 2)


@njit(cache=True, nogil=True)
def room(n_vertices, n_edges):
    """A Graph with room for so many vertices and edges."""
    in_ptr, tail_ptr = np.zeros(n_vertices + 1, dtype=np.int32), np.zeros(n_edges + 1, dtype=np.int32)
    return Graph(in_ptr, tail_ptr, np.empty(2 * n_edges, dtype=np.int32), np.empty((n_edges, 2), dtype=np.int64))


@njit(cache=True, nogil=True)
def _put(k, tail_ptr, tail, what, a, b, kind, cell):
    """Append edge k with tail (a, b), -1 for none, that uses one cell of a view, if there is room."""
    if k < what.shape[0]:
        put_tail(k, tail_ptr, tail, a, b)
        what[k, 0] = kind
        what[k, 1] = cell
    return k + 1


@njit(cache=True, nogil=True)
def build(allowed, outer_head, outer_modifier, band, single, graph):
    """Fill a graph of vine parses; returns how many vertices and edges there are.

    Without room for them it only counts. `allowed` (N, N) is read within the band; `outer_head` and `outer_modifier`
    (N, 2) say which words may have them on which side; `single` is about the root. The goal is the last vertex.
    """
    graph.in_ptr[0] = 0
    graph.tail_ptr[0] = 0
    arc_right, arc_left, v, k = _within_band(allowed, band, single, graph)
    return _beyond_band(arc_right, arc_left, outer_head, outer_modifier, single, graph, v, k)


@njit(cache=True, nogil=True)
def _within_band(allowed, band, single, graph):
    """IR and IL by left end i and distance j - i, (N, band + 1), and the next vertex and edge."""
    n = allowed.shape[0] - 1
    size = n + 1
    width = band + 1
    in_ptr, tail_ptr, tail, what = graph
    right = np.full((size, width), -1, dtype=np.int32)
    left = np.full((size, width), -1, dtype=np.int32)
    arc_right = np.full((size, width), -1, dtype=np.int32)
    arc_left = np.full((size, width), -1, dtype=np.int32)
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
            for r in range(i, i + 1 if single and i == 0 else j):
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
    return arc_right, arc_left, v, k


@njit(cache=True, nogil=True)
def _beyond_band(arc_right, arc_left, outer_head, outer_modifier, single, graph, v, k):
    """Q and W of every word; the last vertex is the goal."""
    size, width = arc_right.shape
    n, band = size - 1, width - 1
    in_ptr, tail_ptr, tail, what = graph
    q = np.full(size, -1, dtype=np.int32)
    w = np.full(size, -1, dtype=np.int32)
    bare = -1  # W(0) without an outer modifier
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
            from_g = bare if single and g == 0 else w[g]
            if from_g >= 0 and arc_right[g, h - g] >= 0:
                k = _put(k, tail_ptr, tail, what, from_g, arc_right[g, h - g], -1, -1)
        v, x = close(v, k, first, in_ptr)
        must = single and h == 0 and n > 0
        if must:
            bare = x
        if x >= 0 and h + band + 1 <= n and outer_modifier[h, 1]:
            first = k
            if not must:
                k = _put(k, tail_ptr, tail, what, x, -1, -1, -1)
            k = _put(k, tail_ptr, tail, what, x, -1, OUTER_MODIFIER, 2 * h + 1)
            v, x = close(v, k, first, in_ptr)
        elif must:
            x = -1
        w[h] = x
    if w[n] < 0:
        if v + 1 < in_ptr.shape[0]:
            in_ptr[v + 1] = k
        v += 1
    return v, k


@njit(cache=True, nogil=True)
def index_set(allowed, band):
    """(number, rows, shorts): the index set, (3 N, max(N, 2)), its rows (P, 5), and how many of them are arcs.

    Rows are parts as kernels.parts has them: arcs, then outer heads in the place of siblings, with the first word
    beyond the band as head, then outer modifiers in the place of grandparents, with that word as modifier.
    """
    size = allowed.shape[0]
    number = np.full((3 * size, max(size, 2)), -1, dtype=np.int32)
    count = 0
    for h in range(size):
        for m in range(1, size):
            if not allowed[h, m]:
                continue
            right = int(h < m)
            if abs(h - m) <= band:
                number[h, m] = count
                count += 1
            else:
                number[size + m, 1 - right] = 0
                number[2 * size + h, right] = 0
    shorts = count
    for v in range(size, 3 * size):
        for d in range(2):
            if number[v, d] == 0:
                number[v, d] = count
                count += 1
    rows = np.full((count, 5), ABSENT, dtype=np.int32)
    for h in range(size):
        for m in range(1, size):
            p = number[h, m]
            if p >= 0:
                rows[p, 0], rows[p, 1], rows[p, 2] = 0, h, m
    for v in range(size):
        for d in range(2):
            border = v + (band + 1 if d else -band - 1)
            p = number[size + v, d]
            if p >= 0:
                rows[p, 0], rows[p, 1], rows[p, 2] = 1, border, v
            p = number[2 * size + v, d]
            if p >= 0:
                rows[p, 0], rows[p, 1], rows[p, 2] = 2, v, border
    return number, rows, shorts


@njit(cache=True, nogil=True)
def parts_graph(number, size, band):
    """(in_ptr, tail_ptr, tail, part_of) of the vine parses over an index set; part_of[e, 0] is what edge e uses, or -1.

    The other four columns are -1: there are no parts of other kinds. Any number of words may be the root.
    """
    allowed = number[:size, :size] >= 0
    outer = number[size:, :2] >= 0
    n_vertices, n_edges = build(allowed, outer[:size], outer[size:], band, False, room(0, 0))
    graph = room(n_vertices, n_edges)
    build(allowed, outer[:size], outer[size:], band, False, graph)
    in_ptr, tail_ptr, tail, what = graph
    part_of = np.full((n_edges, 5), -1, dtype=np.int32)
    for e in range(n_edges):
        kind, cell = what[e, 0], what[e, 1]
        if kind == ARC:
            part_of[e, 0] = number[cell // size, cell % size]
        elif kind >= 0:
            part_of[e, 0] = number[kind * size + cell // 2, cell % 2]
    return in_ptr, tail_ptr, tail[: tail_ptr[n_edges]], part_of


@njit(cache=True, nogil=True)
def onto_arcs(allowed, number, level, out):
    """out[h, m] <- the level of an allowed arc in the index set, of a long one the lower of its two ends; else -inf."""
    size = allowed.shape[0]
    for h in range(size):
        for m in range(size):
            out[h, m] = -np.inf
            if m > 0 and allowed[h, m]:
                right = int(h < m)
                if number[h, m] >= 0:
                    out[h, m] = level[number[h, m]]
                else:
                    out[h, m] = min(level[number[size + m, 1 - right]], level[number[2 * size + h, right]])
