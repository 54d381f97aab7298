"""A translation forest under scores of adjacent words: the best by first and last word of every piece, both ways.

The sweep is exact for bigram scores q[v, w], and takes time of the order of the tables of the pieces: see
``forest_pieces`` for these and for the array layout.
"""

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.forest_pieces import APPEND, CHAIN, HOOK, JOIN, NODE, WORD


@njit(cache=True, nogil=True, inline="always")
def _locate(word, start, count, place):
    """place[w] <- i if w is word[start + i], i < count; -1 for the other words."""
    for w in range(place.shape[0]):
        place[w] = -1
    for i in range(count):
        place[word[start + i]] = i


@njit(cache=True, nogil=True, inline="always")
def _before_hook(edge_left, edge_right, edge_weight, first, n_first, offset, word, k, stop, table, row_of, n, total):
    """total[i], i < n, <- best score, without the hook, of the edges from k on with the hook of k and with the first
    word that row_of numbers i; returns the edge after them.
    """
    for i in range(n):
        total[i] = -np.inf
    hook = edge_right[k]
    while k < stop and edge_right[k] == hook:
        x = edge_left[k]
        at = offset[x]
        for i in range(first[x], first[x] + n_first[x]):
            row = row_of[word[i]]
            s = table[at] + edge_weight[k]
            at += 1
            if row >= 0 and s > total[row]:
                total[row] = s
        k += 1
    return k


@njit(cache=True, nogil=True, inline="always")
def _hook(q, v, word, start, count, table, at, m, to, o):
    """to[o + j] <- max over i < count of q[v, word[start + i]] + table[at + i m + j], for j < m."""
    for j in range(m):
        to[o + j] = -np.inf
    for i in range(start, start + count):
        t = q[v, word[i]]
        if t > -np.inf:
            for j in range(m):
                s = t + table[at + j]
                if s > to[o + j]:
                    to[o + j] = s
        at += m


@njit(cache=True, nogil=True, inline="always")
def _unhook(q, v, word, start, count, table, at, m, above, o, out, pair_best):
    """The reverse of _hook: out[at + i m + j] and pair_best[v, .] are raised to what above[o + j] allows."""
    for i in range(start, start + count):
        w = word[i]
        t = q[v, w]
        if t > -np.inf:
            best = -np.inf
            for j in range(m):
                s = t + above[o + j]
                if s > out[at + j]:
                    out[at + j] = s
                s += table[at + j]
                if s > best:
                    best = s
            if best > pair_best[v, w]:
                pair_best[v, w] = best
        at += m


@njit(cache=True, nogil=True)
def inside(g, q, table):
    """table <- best score of each (piece, first word, last word) under q[v, w]; the value of the forest stands last."""
    kind, left, right, first, n_first, last, n_last, offset, word = g[:9]
    edge_ptr, edge_left, edge_right, edge_weight, _ = g[9:]
    n_words = q.shape[0]
    row_of = np.empty(n_words, np.int64)
    column_of = np.empty(n_words, np.int64)
    total = np.empty(n_words)
    column = np.empty(n_words, np.int64)
    scratch = np.empty(0)
    for p in range(kind.shape[0]):
        o, n, m = offset[p], n_first[p], n_last[p]
        x, y = left[p], right[p]
        if kind[p] == WORD:
            table[o] = 0.0
        elif kind[p] == NODE:
            for i in range(o, o + n * m):
                table[i] = -np.inf
            _locate(word, first[p], n, row_of)
            _locate(word, last[p], m, column_of)
            k, stop = edge_ptr[x], edge_ptr[x + 1]
            while k < stop:
                x, y = edge_left[k], edge_right[k]
                if y < 0:
                    lx, mx = last[x], n_last[x]
                    at = offset[x]
                    for i in range(first[x], first[x] + n_first[x]):
                        row = row_of[word[i]]
                        if row >= 0:
                            for j in range(mx):
                                c = column_of[word[lx + j]]
                                if c >= 0:
                                    s = table[at + j] + edge_weight[k]
                                    if s > table[o + row * m + c]:
                                        table[o + row * m + c] = s
                        at += mx
                    k += 1
                    continue
                k = _before_hook(
                    edge_left, edge_right, edge_weight, first, n_first, offset, word, k, stop, table, row_of, n, total
                )
                ly, my = last[y], n_last[y]
                at = offset[y]
                for j in range(my):
                    column[j] = column_of[word[ly + j]]
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
        elif kind[p] == APPEND:
            at, lx, mx = offset[x], last[x], n_last[x]
            for j in range(mx):
                total[j] = q[word[lx + j], y]
            for i in range(n):
                best = -np.inf
                for j in range(mx):
                    s = table[at + j] + total[j]
                    if s > best:
                        best = s
                table[o + i] = best
                at += mx
        elif kind[p] == HOOK:
            _hook(q, x, word, first[y], n_first[y], table, offset[y], m, table, o)
        elif kind[p] == JOIN:
            at, to = offset[x], offset[y]
            for i in range(n):
                for j in range(m):
                    table[o + i * m + j] = table[at + i] + table[to + j]
        else:
            at, lx, mx = offset[x], last[x], n_last[x]
            if scratch.shape[0] < mx * m:
                scratch = np.empty(2 * mx * m)
            for r in range(mx):
                _hook(q, word[lx + r], word, first[y], n_first[y], table, offset[y], m, scratch, r * m)
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
    kind, left, right, first, n_first, last, n_last, offset, word = g[:9]
    edge_ptr, edge_left, edge_right, edge_weight, _ = g[9:]
    n_words = q.shape[0]
    out[:] = -np.inf
    edge_best[:] = -np.inf
    pair_best[:] = -np.inf
    row_of = np.empty(n_words, np.int64)
    column_of = np.empty(n_words, np.int64)
    column = np.empty(n_words, np.int64)
    total = np.empty(n_words)
    above = np.empty(n_words)
    scratch = np.empty(0)
    upper = np.empty(0)
    out[out.shape[0] - 1] = 0.0
    for p in range(kind.shape[0] - 1, -1, -1):
        o, n, m = offset[p], n_first[p], n_last[p]
        x, y = left[p], right[p]
        if kind[p] == NODE:
            _locate(word, first[p], n, row_of)
            _locate(word, last[p], m, column_of)
            k, stop = edge_ptr[x], edge_ptr[x + 1]
            while k < stop:
                x, y = edge_left[k], edge_right[k]
                if y < 0:
                    lx, mx = last[x], n_last[x]
                    at = offset[x]
                    for i in range(first[x], first[x] + n_first[x]):
                        row = row_of[word[i]]
                        if row >= 0:
                            for j in range(mx):
                                c = column_of[word[lx + j]]
                                if c >= 0:
                                    s = out[o + row * m + c] + edge_weight[k]
                                    if s > out[at + j]:
                                        out[at + j] = s
                                    s += table[at + j]
                                    if s > edge_best[k]:
                                        edge_best[k] = s
                        at += mx
                    k += 1
                    continue
                start = k
                k = _before_hook(
                    edge_left, edge_right, edge_weight, first, n_first, offset, word, k, stop, table, row_of, n, total
                )
                ly, my = last[y], n_last[y]
                at = offset[y]
                for j in range(my):
                    column[j] = column_of[word[ly + j]]
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
                    x = edge_left[e]
                    at = offset[x]
                    for i in range(first[x], first[x] + n_first[x]):
                        row = row_of[word[i]]
                        if row >= 0:
                            s = above[row] + edge_weight[e]
                            if s > out[at]:
                                out[at] = s
                            s += table[at]
                            if s > edge_best[e]:
                                edge_best[e] = s
                        at += 1
        elif kind[p] == APPEND:
            at, lx, mx = offset[x], last[x], n_last[x]
            for i in range(n):
                z = out[o + i]
                if z > -np.inf:
                    for j in range(mx):
                        v = word[lx + j]
                        s = z + q[v, y]
                        if s > out[at + j]:
                            out[at + j] = s
                        s += table[at + j]
                        if s > pair_best[v, y]:
                            pair_best[v, y] = s
                at += mx
        elif kind[p] == HOOK:
            _unhook(q, x, word, first[y], n_first[y], table, offset[y], m, out, o, out, pair_best)
        elif kind[p] == JOIN:
            at, to = offset[x], offset[y]
            for i in range(n):
                for j in range(m):
                    z = out[o + i * m + j]
                    s = z + table[to + j]
                    if s > out[at + i]:
                        out[at + i] = s
                    s = z + table[at + i]
                    if s > out[to + j]:
                        out[to + j] = s
        elif kind[p] == CHAIN:
            at, lx, mx = offset[x], last[x], n_last[x]
            if scratch.shape[0] < mx * m:
                scratch = np.empty(2 * mx * m)
                upper = np.empty(2 * mx * m)
            for r in range(mx):
                _hook(q, word[lx + r], word, first[y], n_first[y], table, offset[y], m, scratch, r * m)
            for j in range(mx * m):
                upper[j] = -np.inf
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
                v = word[lx + r]
                _unhook(q, v, word, first[y], n_first[y], table, offset[y], m, upper, r * m, out, pair_best)


@njit(cache=True, nogil=True)
def _push(stack, depth, piece, i, j):
    """Puts a piece with its first and last word on the stack; returns the new depth."""
    stack[depth, 0], stack[depth, 1], stack[depth, 2] = piece, i, j
    return depth + 1


@njit(cache=True, nogil=True)
def _find(word, start, count, w):
    """The i < count for which word[start + i] is w, or -1."""
    for i in range(count):
        if word[start + i] == w:
            return i
    return -1


@njit(cache=True, nogil=True)
def best_derivation(g, q, table, edges, pairs):
    """(number of edges, of pairs) of a derivation that reaches the value ``inside`` found.

    edges <- its edges in the forest, head before tails, left to right, the top's first; pairs[:, 0], pairs[:, 1] <- the
    words that stand side by side in it. Ties go to the smallest index. The value must not be -inf.
    """
    kind, left, right, first, n_first, last, n_last, offset, word = g[:9]
    edge_ptr, edge_left, edge_right, edge_weight, edge_id = g[9:]
    stack = np.empty((2 * kind.shape[0] + 2, 3), np.int64)
    depth = _push(stack, 0, kind.shape[0] - 1, 0, 0)
    n_edges = 0
    n_pairs = 0
    while depth > 0:
        depth -= 1
        p, i, j = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        x, y, m = left[p], right[p], n_last[p]
        best = -np.inf
        a = 0
        b = 0
        if kind[p] == NODE:
            head = word[first[p] + i]
            end = word[last[p] + j]
            k = -1
            for e in range(edge_ptr[left[p]], edge_ptr[left[p] + 1]):
                x, y = edge_left[e], edge_right[e]
                z = x if y < 0 else y
                c = _find(word, first[x], n_first[x], head)
                d = _find(word, last[z], n_last[z], end)
                if c < 0 or d < 0:
                    continue
                if y < 0:
                    s = table[offset[x] + c * n_last[x] + d] + edge_weight[e]
                else:
                    s = table[offset[x] + c] + edge_weight[e] + table[offset[y] + d]
                if s > best:
                    best = s
                    k = e
                    a = c
                    b = d
            edges[n_edges] = edge_id[k]
            n_edges += 1
            if edge_right[k] >= 0:
                depth = _push(stack, depth, edge_right[k], 0, b)
                b = 0
            depth = _push(stack, depth, edge_left[k], a, b)
        elif kind[p] == APPEND:
            for r in range(n_last[x]):
                s = table[offset[x] + i * n_last[x] + r] + q[word[last[x] + r], y]
                if s > best:
                    best = s
                    a = r
            pairs[n_pairs, 0], pairs[n_pairs, 1] = word[last[x] + a], y
            n_pairs += 1
            depth = _push(stack, depth, x, i, a)
        elif kind[p] == HOOK:
            for c in range(n_first[y]):
                s = table[offset[y] + c * m + j] + q[x, word[first[y] + c]]
                if s > best:
                    best = s
                    a = c
            pairs[n_pairs, 0], pairs[n_pairs, 1] = x, word[first[y] + a]
            n_pairs += 1
            depth = _push(stack, depth, y, a, j)
        elif kind[p] != WORD:
            if kind[p] == CHAIN:
                for r in range(n_last[x]):
                    for c in range(n_first[y]):
                        t = table[offset[x] + i * n_last[x] + r] + q[word[last[x] + r], word[first[y] + c]]
                        s = t + table[offset[y] + c * m + j]
                        if s > best:
                            best = s
                            a = r
                            b = c
                pairs[n_pairs, 0], pairs[n_pairs, 1] = word[last[x] + a], word[first[y] + b]
                n_pairs += 1
            depth = _push(stack, depth, y, b, j)
            depth = _push(stack, depth, x, i, a)
    return n_edges, n_pairs


@njit(cache=True, nogil=True)
def surviving(g, table, out, least, alive_first, alive_last):
    """Number of (vertex, first word, last word) in a derivation of at least ``least``; alive_first, alive_last (V, W)

    <- the first and last words of each vertex among them.
    """
    kind, left, _, first, n_first, last, n_last, offset, word = g[:9]
    alive_first[:] = False
    alive_last[:] = False
    count = 0
    for p in range(kind.shape[0]):
        if kind[p] != NODE:
            continue
        v = left[p]
        at = offset[p]
        for i in range(first[p], first[p] + n_first[p]):
            for j in range(last[p], last[p] + n_last[p]):
                if table[at] + out[at] >= least:
                    count += 1
                    alive_first[v, word[i]] = True
                    alive_last[v, word[j]] = True
                at += 1
    return count
