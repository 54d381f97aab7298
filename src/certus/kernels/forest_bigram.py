"""A translation forest under scores of adjacent words: tables by first and last word, factored as hooks.

Target sides are cut into pieces that many edges share. A piece yields a stretch of words, and its table holds the best
score of such a stretch for each (first word, last word), row-major, at ``table[offset[p]:]``:

    WORD   the word left[p]                                                      1 x 1
    NODE   whatever vertex left[p] of the forest yields                          |first| x |last|
    APPEND piece left[p], then the word right[p]                                 |first| x 1
    HOOK   the word left[p], then piece right[p]; the word is not counted        1 x |last|
    JOIN   piece left[p], which ends in a word, and a hook on that word          |first| x |last|
    CHAIN  piece left[p], then piece right[p]                                    |first| x |last|

First and last words of p are the sets first[p] and last[p]: set s holds word[set_ptr[s]:set_ptr[s + 1]]; set w < W is
{w}, sets W + 2 v and W + 2 v + 1 belong to vertex v. An edge k into vertex v (edge_ptr[v] <= k < edge_ptr[v + 1])
yields a piece edge_left[k], or that piece joined with the hook edge_right[k] if it is not -1: the outer sum is taken
straight into the table of v. Edges with one hook stand together. Hooks keep every step at the size of one table, so the
whole sweep is exact for bigram scores q[v, w] and takes time of the order of the tables (the hook trick).

Word 0 is <s>, word 1 is </s>. The last vertex is the top: <s>, root, </s>. Pieces are numbered bottom-up.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

WORD, NODE, APPEND, HOOK, JOIN, CHAIN = 0, 1, 2, 3, 4, 5
BEGIN, END = 0, 1


class Pieces(NamedTuple):
    """The arrays described above; ``edge_id`` is the number of each edge in the forest."""

    kind: np.ndarray
    left: np.ndarray
    right: np.ndarray
    first: np.ndarray
    last: np.ndarray
    offset: np.ndarray
    set_ptr: np.ndarray
    word: np.ndarray
    edge_ptr: np.ndarray
    edge_left: np.ndarray
    edge_right: np.ndarray
    edge_weight: np.ndarray
    edge_id: np.ndarray


@njit(cache=True, nogil=True)
def _piece(kind, left, right, kinds, lefts, rights, slots, n):
    """(number, is new) of the piece with these parts; a new one is written at n."""
    mask = np.uint64(slots.shape[0] - 1)
    key = np.uint64(kind) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(left)
    key = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(right)
    key = (key ^ (key >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    i = (key ^ (key >> np.uint64(31))) & mask
    while slots[i] >= 0:
        p = slots[i]
        if kinds[p] == kind and lefts[p] == left and rights[p] == right:
            return p, False
        i = (i + np.uint64(1)) & mask
    slots[i] = n
    kinds[n] = kind
    lefts[n] = left
    rights[n] = right
    return n, True


@njit(cache=True, nogil=True)
def grown(array):
    """The same one-dimensional array with room for twice as much."""
    longer = np.empty(2 * array.shape[0], array.dtype)
    for i in range(array.shape[0]):
        longer[i] = array[i]
    return longer


@njit(cache=True, nogil=True)
def build(in_ptr, tail_ptr, tail, token_ptr, token, weight, alive, keep_first, keep_last):
    """Pieces of the edges that are alive; first and last words of v are cut to keep_first[v], keep_last[v] (V, W).

    ``token`` holds words, or ~j for the j-th vertex of the tail; no target side is empty. Returns the fields of Pieces.
    """
    n_vertices, n_words = keep_first.shape
    zero = np.int64(0)
    most = 2 * token.shape[0] + n_vertices + n_words + 1
    size = 16
    while size < 2 * most:
        size *= 2
    slots = np.full(size, -1, np.int64)
    kind = np.empty(most, np.int64)
    left = np.empty(most, np.int64)
    right = np.empty(most, np.int64)
    first = np.empty(most, np.int64)
    last = np.empty(most, np.int64)
    n = zero
    n_sets = n_words + 2 * n_vertices
    set_ptr = np.zeros(n_sets + 1, np.int64)
    word = np.empty(n_words + 1024, np.int64)
    for w in range(n_words):
        set_ptr[w + 1] = w + 1
        word[w] = w
    filled = n_words
    node_piece = np.full(n_vertices, -1, np.int64)
    n_alive = 0
    for e in range(alive.shape[0]):
        n_alive += alive[e]
    edge_ptr = np.zeros(n_vertices + 1, np.int64)
    edge_left = np.empty(n_alive, np.int64)
    edge_right = np.empty(n_alive, np.int64)
    edge_weight = np.empty(n_alive, np.float64)
    edge_id = np.empty(n_alive, np.int64)
    hook_of = np.empty(alive.shape[0], np.int64)
    piece_of = np.empty(alive.shape[0], np.int64)
    following = np.empty(alive.shape[0], np.int64)  # next edge into the same vertex with the same hook
    latest = np.full(most, -1, np.int64)  # last edge with a hook, so far
    set_seen = np.full(n_sets, -1, np.int64)
    word_seen = np.full(n_words, -1, np.int64)
    k = 0
    for v in range(n_vertices):
        for e in range(in_ptr[v], in_ptr[v + 1]):
            if not alive[e]:
                continue
            t = token_ptr[e]
            stop = token_ptr[e + 1]
            p = np.int64(-1)
            while t < stop and token[t] >= 0:
                w = token[t]
                f = w
                if p < 0:
                    p, new = _piece(zero + WORD, w, zero, kind, left, right, slots, n)
                else:
                    f = first[p]
                    p, new = _piece(zero + APPEND, p, w, kind, left, right, slots, n)
                if new:
                    first[n] = f
                    last[n] = w
                    n += 1
                t += 1
            hook = np.int64(-1)
            while t < stop:
                s = node_piece[tail[tail_ptr[e] + ~token[t]]]
                t += 1
                while t < stop and token[t] >= 0:
                    w = token[t]
                    f = first[s]
                    s, new = _piece(zero + APPEND, s, w, kind, left, right, slots, n)
                    if new:
                        first[n] = f
                        last[n] = w
                        n += 1
                    t += 1
                if p < 0:
                    p = s
                    continue
                f = first[p]
                g = last[s]
                end = last[p]
                if end < n_words:
                    hook, new = _piece(zero + HOOK, end, s, kind, left, right, slots, n)
                    if new:
                        first[n] = end
                        last[n] = g
                        n += 1
                    if t >= stop:
                        break
                    p, new = _piece(zero + JOIN, p, hook, kind, left, right, slots, n)
                    hook = np.int64(-1)
                else:
                    p, new = _piece(zero + CHAIN, p, s, kind, left, right, slots, n)
                if new:
                    first[n] = f
                    last[n] = g
                    n += 1
            piece_of[e] = p
            hook_of[e] = hook
            following[e] = -1
            if hook >= 0:
                if latest[hook] >= in_ptr[v]:
                    following[latest[hook]] = e
                    hook_of[e] = -2  # not the first with its hook
                latest[hook] = e
        start = k
        for e in range(in_ptr[v], in_ptr[v + 1]):
            if not alive[e] or hook_of[e] == -2:
                continue
            hook = hook_of[e]
            i = np.int64(e)
            while i >= 0:
                edge_left[k] = piece_of[i]
                edge_right[k] = hook
                edge_weight[k] = weight[i]
                edge_id[k] = i
                k += 1
                i = following[i]
        edge_ptr[v + 1] = k
        for side in range(2):
            new_set = n_words + 2 * v + side
            for i in range(start, k):
                if side == 0:
                    s = first[edge_left[i]]
                else:
                    s = last[edge_left[i] if edge_right[i] < 0 else edge_right[i]]
                if set_seen[s] == new_set:
                    continue
                set_seen[s] = new_set
                for j in range(set_ptr[s], set_ptr[s + 1]):
                    w = word[j]
                    kept = keep_first[v, w] if side == 0 else keep_last[v, w]
                    if kept and word_seen[w] != new_set:
                        word_seen[w] = new_set
                        if filled == word.shape[0]:
                            word = grown(word)
                        word[filled] = w
                        filled += 1
            set_ptr[new_set + 1] = filled
        kind[n] = NODE
        left[n] = v
        right[n] = 0
        first[n] = n_words + 2 * v
        last[n] = n_words + 2 * v + 1
        node_piece[v] = n
        n += 1
    offset = np.zeros(n + 1, np.int64)
    for p in range(n):
        rows = set_ptr[first[p] + 1] - set_ptr[first[p]]
        columns = set_ptr[last[p] + 1] - set_ptr[last[p]]
        offset[p + 1] = offset[p] + rows * columns
    edges = (edge_ptr, edge_left, edge_right, edge_weight, edge_id)
    return kind[:n], left[:n], right[:n], first[:n], last[:n], offset, set_ptr, word[:filled], *edges


@njit(cache=True, nogil=True)
def adjacent(g, allowed):
    """allowed[v, w] <- True for every pair of words that can stand side by side; the rest is left as it is."""
    g_first = g.first
    g_kind = g.kind
    g_last = g.last
    g_left = g.left
    g_right = g.right
    g_set_ptr = g.set_ptr
    g_word = g.word
    for p in range(g_kind.shape[0]):
        if g_kind[p] == APPEND:
            s = g_last[g_left[p]]
            for j in range(g_set_ptr[s], g_set_ptr[s + 1]):
                allowed[g_word[j], g_right[p]] = True
        elif g_kind[p] == HOOK:
            s = g_first[g_right[p]]
            for j in range(g_set_ptr[s], g_set_ptr[s + 1]):
                allowed[g_left[p], g_word[j]] = True
        elif g_kind[p] == CHAIN:
            a = g_last[g_left[p]]
            b = g_first[g_right[p]]
            for i in range(g_set_ptr[a], g_set_ptr[a + 1]):
                for j in range(g_set_ptr[b], g_set_ptr[b + 1]):
                    allowed[g_word[i], g_word[j]] = True


@njit(cache=True, nogil=True)
def inside(g, q, table):
    """table <- best score of each (piece, first word, last word) under q[v, w]; the value of the forest stands last."""
    g_edge_left = g.edge_left
    g_edge_ptr = g.edge_ptr
    g_edge_right = g.edge_right
    g_edge_weight = g.edge_weight
    g_first = g.first
    g_kind = g.kind
    g_last = g.last
    g_left = g.left
    g_offset = g.offset
    g_right = g.right
    g_set_ptr = g.set_ptr
    g_word = g.word
    n_words = q.shape[0]
    row_of = np.empty(n_words, np.int64)
    column_of = np.empty(n_words, np.int64)
    total = np.empty(n_words)
    column = np.empty(n_words, np.int64)
    scratch = np.empty(0)
    for p in range(g_kind.shape[0]):
        o = g_offset[p]
        f0 = g_set_ptr[g_first[p]]
        l0 = g_set_ptr[g_last[p]]
        n = g_set_ptr[g_first[p] + 1] - f0
        m = g_set_ptr[g_last[p] + 1] - l0
        kind = g_kind[p]
        if kind == WORD:
            table[o] = 0.0
        elif kind == NODE:
            for i in range(o, o + n * m):
                table[i] = -np.inf
            for i in range(n_words):
                row_of[i] = -1
                column_of[i] = -1
            for i in range(n):
                row_of[g_word[f0 + i]] = i
            for j in range(m):
                column_of[g_word[l0 + j]] = j
            k = g_edge_ptr[g_left[p]]
            stop = g_edge_ptr[g_left[p] + 1]
            while k < stop:
                y = g_edge_right[k]
                if y < 0:
                    x = g_edge_left[k]
                    fx = g_set_ptr[g_first[x]]
                    lx = g_set_ptr[g_last[x]]
                    mx = g_set_ptr[g_last[x] + 1] - lx
                    at = g_offset[x]
                    for i in range(fx, g_set_ptr[g_first[x] + 1]):
                        row = row_of[g_word[i]]
                        if row >= 0:
                            for j in range(mx):
                                c = column_of[g_word[lx + j]]
                                if c >= 0:
                                    s = table[at + j] + g_edge_weight[k]
                                    if s > table[o + row * m + c]:
                                        table[o + row * m + c] = s
                        at += mx
                    k += 1
                    continue
                for i in range(n):
                    total[i] = -np.inf
                while k < stop and g_edge_right[k] == y:
                    x = g_edge_left[k]
                    at = g_offset[x]
                    for i in range(g_set_ptr[g_first[x]], g_set_ptr[g_first[x] + 1]):
                        row = row_of[g_word[i]]
                        s = table[at] + g_edge_weight[k]
                        at += 1
                        if row >= 0 and s > total[row]:
                            total[row] = s
                    k += 1
                ly = g_set_ptr[g_last[y]]
                my = g_set_ptr[g_last[y] + 1] - ly
                at = g_offset[y]
                for j in range(my):
                    column[j] = column_of[g_word[ly + j]]
                for i in range(n):
                    t = total[i]
                    if t > -np.inf:
                        base = o + i * m
                        for j in range(my):
                            c = column[j]
                            if c >= 0:
                                s = t + table[at + j]
                                if s > table[base + c]:
                                    table[base + c] = s
        elif kind == APPEND:
            x = g_left[p]
            w = g_right[p]
            at = g_offset[x]
            lx = g_set_ptr[g_last[x]]
            mx = g_set_ptr[g_last[x] + 1] - lx
            for j in range(mx):
                total[j] = q[g_word[lx + j], w]
            for i in range(n):
                best = -np.inf
                for j in range(mx):
                    s = table[at + j] + total[j]
                    if s > best:
                        best = s
                table[o + i] = best
                at += mx
        elif kind == HOOK:
            x = g_right[p]
            at = g_offset[x]
            for j in range(m):
                table[o + j] = -np.inf
            for i in range(g_set_ptr[g_first[x]], g_set_ptr[g_first[x] + 1]):
                t = q[g_left[p], g_word[i]]
                if t > -np.inf:
                    for j in range(m):
                        s = t + table[at + j]
                        if s > table[o + j]:
                            table[o + j] = s
                at += m
        elif kind == JOIN:
            at = g_offset[g_left[p]]
            to = g_offset[g_right[p]]
            for i in range(n):
                for j in range(m):
                    table[o + i * m + j] = table[at + i] + table[to + j]
        else:
            x = g_left[p]
            y = g_right[p]
            lx = g_set_ptr[g_last[x]]
            mx = g_set_ptr[g_last[x] + 1] - lx
            fy = g_set_ptr[g_first[y]]
            ny = g_set_ptr[g_first[y] + 1] - fy
            if scratch.shape[0] < mx * m:
                scratch = np.empty(2 * mx * m)
            for r in range(mx):
                for j in range(m):
                    scratch[r * m + j] = -np.inf
                at = g_offset[y]
                for c in range(ny):
                    t = q[g_word[lx + r], g_word[fy + c]]
                    if t > -np.inf:
                        for j in range(m):
                            s = t + table[at + j]
                            if s > scratch[r * m + j]:
                                scratch[r * m + j] = s
                    at += m
            at = g_offset[x]
            for i in range(n):
                base = o + i * m
                for j in range(m):
                    table[base + j] = -np.inf
                for r in range(mx):
                    t = table[at]
                    at += 1
                    if t > -np.inf:
                        for j in range(m):
                            s = t + scratch[r * m + j]
                            if s > table[base + j]:
                                table[base + j] = s


@njit(cache=True, nogil=True)
def outside(g, q, table, out, edge_best, pair_best):
    """Best completions, and the best derivation through each part; ``table`` is what ``inside`` filled.

    out (like table) <- best score of everything outside a (piece, first word, last word)
    edge_best (edges of g) <- best derivation that uses the edge
    pair_best (W, W) <- best derivation in which the two words stand side by side
    """
    g_edge_left = g.edge_left
    g_edge_ptr = g.edge_ptr
    g_edge_right = g.edge_right
    g_edge_weight = g.edge_weight
    g_first = g.first
    g_kind = g.kind
    g_last = g.last
    g_left = g.left
    g_offset = g.offset
    g_right = g.right
    g_set_ptr = g.set_ptr
    g_word = g.word
    n_words = q.shape[0]
    for i in range(out.shape[0]):
        out[i] = -np.inf
    for i in range(edge_best.shape[0]):
        edge_best[i] = -np.inf
    for i in range(n_words):
        for j in range(n_words):
            pair_best[i, j] = -np.inf
    row_of = np.empty(n_words, np.int64)
    column_of = np.empty(n_words, np.int64)
    column = np.empty(n_words, np.int64)
    total = np.empty(n_words)
    above = np.empty(n_words)
    scratch = np.empty(0)
    upper = np.empty(0)
    out[out.shape[0] - 1] = 0.0
    for p in range(g_kind.shape[0] - 1, -1, -1):
        o = g_offset[p]
        f0 = g_set_ptr[g_first[p]]
        l0 = g_set_ptr[g_last[p]]
        n = g_set_ptr[g_first[p] + 1] - f0
        m = g_set_ptr[g_last[p] + 1] - l0
        kind = g_kind[p]
        if kind == NODE:
            for i in range(n_words):
                row_of[i] = -1
                column_of[i] = -1
            for i in range(n):
                row_of[g_word[f0 + i]] = i
            for j in range(m):
                column_of[g_word[l0 + j]] = j
            k = g_edge_ptr[g_left[p]]
            stop = g_edge_ptr[g_left[p] + 1]
            while k < stop:
                y = g_edge_right[k]
                if y < 0:
                    x = g_edge_left[k]
                    lx = g_set_ptr[g_last[x]]
                    mx = g_set_ptr[g_last[x] + 1] - lx
                    at = g_offset[x]
                    for i in range(g_set_ptr[g_first[x]], g_set_ptr[g_first[x] + 1]):
                        row = row_of[g_word[i]]
                        if row >= 0:
                            for j in range(mx):
                                c = column_of[g_word[lx + j]]
                                if c >= 0:
                                    s = out[o + row * m + c] + g_edge_weight[k]
                                    if s > out[at + j]:
                                        out[at + j] = s
                                    s += table[at + j]
                                    if s > edge_best[k]:
                                        edge_best[k] = s
                        at += mx
                    k += 1
                    continue
                start = k
                for i in range(n):
                    total[i] = -np.inf
                while k < stop and g_edge_right[k] == y:
                    x = g_edge_left[k]
                    at = g_offset[x]
                    for i in range(g_set_ptr[g_first[x]], g_set_ptr[g_first[x] + 1]):
                        row = row_of[g_word[i]]
                        s = table[at] + g_edge_weight[k]
                        at += 1
                        if row >= 0 and s > total[row]:
                            total[row] = s
                    k += 1
                ly = g_set_ptr[g_last[y]]
                my = g_set_ptr[g_last[y] + 1] - ly
                at = g_offset[y]
                for j in range(my):
                    column[j] = column_of[g_word[ly + j]]
                for i in range(n):
                    t = total[i]
                    best = -np.inf
                    if t > -np.inf:
                        base = o + i * m
                        for j in range(my):
                            c = column[j]
                            if c >= 0:
                                z = out[base + c]
                                s = z + table[at + j]
                                if s > best:
                                    best = s
                                z += t
                                if z > out[at + j]:
                                    out[at + j] = z
                    above[i] = best
                for e in range(start, k):
                    x = g_edge_left[e]
                    at = g_offset[x]
                    for i in range(g_set_ptr[g_first[x]], g_set_ptr[g_first[x] + 1]):
                        row = row_of[g_word[i]]
                        if row >= 0:
                            s = above[row] + g_edge_weight[e]
                            if s > out[at]:
                                out[at] = s
                            s += table[at]
                            if s > edge_best[e]:
                                edge_best[e] = s
                        at += 1
        elif kind == APPEND:
            x = g_left[p]
            w = g_right[p]
            at = g_offset[x]
            lx = g_set_ptr[g_last[x]]
            mx = g_set_ptr[g_last[x] + 1] - lx
            for i in range(n):
                z = out[o + i]
                if z > -np.inf:
                    for j in range(mx):
                        s = z + q[g_word[lx + j], w]
                        if s > out[at + j]:
                            out[at + j] = s
                        s += table[at + j]
                        if s > pair_best[g_word[lx + j], w]:
                            pair_best[g_word[lx + j], w] = s
                at += mx
        elif kind == HOOK:
            x = g_right[p]
            at = g_offset[x]
            for i in range(g_set_ptr[g_first[x]], g_set_ptr[g_first[x] + 1]):
                t = q[g_left[p], g_word[i]]
                if t > -np.inf:
                    best = -np.inf
                    for j in range(m):
                        s = t + out[o + j]
                        if s > out[at + j]:
                            out[at + j] = s
                        s += table[at + j]
                        if s > best:
                            best = s
                    if best > pair_best[g_left[p], g_word[i]]:
                        pair_best[g_left[p], g_word[i]] = best
                at += m
        elif kind == JOIN:
            at = g_offset[g_left[p]]
            to = g_offset[g_right[p]]
            for i in range(n):
                for j in range(m):
                    z = out[o + i * m + j]
                    s = z + table[to + j]
                    if s > out[at + i]:
                        out[at + i] = s
                    s = z + table[at + i]
                    if s > out[to + j]:
                        out[to + j] = s
        elif kind == CHAIN:
            x = g_left[p]
            y = g_right[p]
            lx = g_set_ptr[g_last[x]]
            mx = g_set_ptr[g_last[x] + 1] - lx
            fy = g_set_ptr[g_first[y]]
            ny = g_set_ptr[g_first[y] + 1] - fy
            if scratch.shape[0] < mx * m:
                scratch = np.empty(2 * mx * m)
                upper = np.empty(2 * mx * m)
            for r in range(mx):
                for j in range(m):
                    scratch[r * m + j] = -np.inf
                    upper[r * m + j] = -np.inf
                at = g_offset[y]
                for c in range(ny):
                    t = q[g_word[lx + r], g_word[fy + c]]
                    if t > -np.inf:
                        for j in range(m):
                            s = t + table[at + j]
                            if s > scratch[r * m + j]:
                                scratch[r * m + j] = s
                    at += m
            at = g_offset[x]
            for i in range(n):
                base = o + i * m
                for r in range(mx):
                    t = table[at]
                    if t > -np.inf:
                        best = -np.inf
                        for j in range(m):
                            z = out[base + j]
                            s = z + scratch[r * m + j]
                            if s > best:
                                best = s
                            z += t
                            if z > upper[r * m + j]:
                                upper[r * m + j] = z
                        if best > out[at]:
                            out[at] = best
                    at += 1
            for r in range(mx):
                at = g_offset[y]
                for c in range(ny):
                    v = g_word[lx + r]
                    w = g_word[fy + c]
                    t = q[v, w]
                    if t > -np.inf:
                        best = -np.inf
                        for j in range(m):
                            s = t + upper[r * m + j]
                            if s > out[at + j]:
                                out[at + j] = s
                            s += table[at + j]
                            if s > best:
                                best = s
                        if best > pair_best[v, w]:
                            pair_best[v, w] = best
                    at += m


@njit(cache=True, nogil=True)
def best_derivation(g, q, table, edges, pairs):
    """(number of edges, of pairs) of a derivation that reaches the value ``inside`` found.

    edges <- its edges in the forest, head before tails, left to right, the top's first; pairs[:, 0], pairs[:, 1] <- the
    words that stand side by side in it. Ties go to the smallest index. The value must not be -inf.
    """
    g_edge_id = g.edge_id
    g_edge_left = g.edge_left
    g_edge_ptr = g.edge_ptr
    g_edge_right = g.edge_right
    g_edge_weight = g.edge_weight
    g_first = g.first
    g_kind = g.kind
    g_last = g.last
    g_left = g.left
    g_offset = g.offset
    g_right = g.right
    g_set_ptr = g.set_ptr
    g_word = g.word
    stack = np.empty((2 * g_kind.shape[0] + 2, 3), np.int64)
    stack[0, 0] = g_kind.shape[0] - 1
    stack[0, 1] = 0
    stack[0, 2] = 0
    depth = 1
    n_edges = 0
    n_pairs = 0
    while depth > 0:
        depth -= 1
        p = stack[depth, 0]
        i = stack[depth, 1]
        j = stack[depth, 2]
        m = g_set_ptr[g_last[p] + 1] - g_set_ptr[g_last[p]]
        kind = g_kind[p]
        if kind == WORD:
            continue
        best = -np.inf
        a = 0
        b = 0
        if kind == NODE:
            head = g_word[g_set_ptr[g_first[p]] + i]
            end = g_word[g_set_ptr[g_last[p]] + j]
            k = -1
            for e in range(g_edge_ptr[g_left[p]], g_edge_ptr[g_left[p] + 1]):
                x = g_edge_left[e]
                y = g_edge_right[e]
                z = x if y < 0 else y
                c = -1
                for s in range(g_set_ptr[g_first[x]], g_set_ptr[g_first[x] + 1]):
                    if g_word[s] == head:
                        c = s - g_set_ptr[g_first[x]]
                d = -1
                for s in range(g_set_ptr[g_last[z]], g_set_ptr[g_last[z] + 1]):
                    if g_word[s] == end:
                        d = s - g_set_ptr[g_last[z]]
                if c < 0 or d < 0:
                    continue
                if y < 0:
                    width = g_set_ptr[g_last[x] + 1] - g_set_ptr[g_last[x]]
                    s = table[g_offset[x] + c * width + d] + g_edge_weight[e]
                else:
                    s = table[g_offset[x] + c] + g_edge_weight[e] + table[g_offset[y] + d]
                if s > best:
                    best = s
                    k = e
                    a = c
                    b = d
            edges[n_edges] = g_edge_id[k]
            n_edges += 1
            if g_edge_right[k] >= 0:
                stack[depth, 0] = g_edge_right[k]
                stack[depth, 1] = 0
                stack[depth, 2] = b
                depth += 1
                b = 0
            stack[depth, 0] = g_edge_left[k]
            stack[depth, 1] = a
            stack[depth, 2] = b
            depth += 1
        elif kind == APPEND:
            x = g_left[p]
            lx = g_set_ptr[g_last[x]]
            mx = g_set_ptr[g_last[x] + 1] - lx
            for r in range(mx):
                s = table[g_offset[x] + i * mx + r] + q[g_word[lx + r], g_right[p]]
                if s > best:
                    best = s
                    a = r
            pairs[n_pairs, 0] = g_word[lx + a]
            pairs[n_pairs, 1] = g_right[p]
            n_pairs += 1
            stack[depth, 0] = x
            stack[depth, 1] = i
            stack[depth, 2] = a
            depth += 1
        elif kind == HOOK:
            x = g_right[p]
            fx = g_set_ptr[g_first[x]]
            for c in range(g_set_ptr[g_first[x] + 1] - fx):
                s = table[g_offset[x] + c * m + j] + q[g_left[p], g_word[fx + c]]
                if s > best:
                    best = s
                    a = c
            pairs[n_pairs, 0] = g_left[p]
            pairs[n_pairs, 1] = g_word[fx + a]
            n_pairs += 1
            stack[depth, 0] = x
            stack[depth, 1] = a
            stack[depth, 2] = j
            depth += 1
        else:
            x = g_left[p]
            y = g_right[p]
            if kind == CHAIN:
                lx = g_set_ptr[g_last[x]]
                mx = g_set_ptr[g_last[x] + 1] - lx
                fy = g_set_ptr[g_first[y]]
                for r in range(mx):
                    for c in range(g_set_ptr[g_first[y] + 1] - fy):
                        t = table[g_offset[x] + i * mx + r] + q[g_word[lx + r], g_word[fy + c]]
                        s = t + table[g_offset[y] + c * m + j]
                        if s > best:
                            best = s
                            a = r
                            b = c
                pairs[n_pairs, 0] = g_word[lx + a]
                pairs[n_pairs, 1] = g_word[fy + b]
                n_pairs += 1
            stack[depth, 0] = y
            stack[depth, 1] = b
            stack[depth, 2] = j
            depth += 1
            stack[depth, 0] = x
            stack[depth, 1] = i
            stack[depth, 2] = a
            depth += 1
    return n_edges, n_pairs


@njit(cache=True, nogil=True)
def surviving(g, table, out, least, alive_first, alive_last):
    """Number of (vertex, first word, last word) in a derivation of at least ``least``; alive_first, alive_last (V, W)

    <- the first and last words of each vertex among them.
    """
    g_first = g.first
    g_kind = g.kind
    g_last = g.last
    g_left = g.left
    g_offset = g.offset
    g_set_ptr = g.set_ptr
    g_word = g.word
    for v in range(alive_first.shape[0]):
        for w in range(alive_first.shape[1]):
            alive_first[v, w] = False
            alive_last[v, w] = False
    count = 0
    for p in range(g_kind.shape[0]):
        if g_kind[p] != NODE:
            continue
        v = g_left[p]
        f0 = g_set_ptr[g_first[p]]
        l0 = g_set_ptr[g_last[p]]
        m = g_set_ptr[g_last[p] + 1] - l0
        for i in range(g_set_ptr[g_first[p] + 1] - f0):
            for j in range(m):
                at = g_offset[p] + i * m + j
                if table[at] + out[at] >= least:
                    count += 1
                    alive_first[v, g_word[f0 + i]] = True
                    alive_last[v, g_word[l0 + j]] = True
    return count
