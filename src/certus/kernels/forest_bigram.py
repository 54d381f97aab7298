"""A translation forest under scores of adjacent words: the best by first and last word of every piece, both ways.

The sweep is exact for bigram scores q[v, w], and takes time of the order of the tables of the pieces: see
``forest_pieces`` for these and for the array layout. ``row_of`` and ``column_of`` (W,) number the first and the last
words of the vertex at hand, -1 for the others.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.arrays import largest
from certus.kernels.compiling import njit
from certus.kernels.forest_pieces import APPEND, CHAIN, HOOK, JOIN, NODE, WORD


class Workspace(NamedTuple):
    """Room for what is known of the words while a vertex is worked at; all (W,)."""

    row_of: np.ndarray
    column_of: np.ndarray
    column: np.ndarray
    before: np.ndarray  # per row: best score without the hook
    after: np.ndarray  # per row: best score of the hook and all outside


@njit(cache=True, nogil=True)
def _workspace(n_words):
    numbers = np.empty((3, n_words), np.int64)
    values = np.empty((2, n_words))
    return Workspace(numbers[0], numbers[1], numbers[2], values[0], values[1])


@njit(cache=True, nogil=True, inline="always")
def _locate(words, place):
    """place[w] <- i if w is words[i]; -1 for the other words."""
    for w in range(place.shape[0]):
        place[w] = -1
    for i in range(words.shape[0]):
        place[words[i]] = i


@njit(cache=True, nogil=True)
def _enter(g, p, work):
    """Number the first and last words of the vertex of piece p."""
    _locate(g.word[g.first[p] : g.first[p] + g.n_first[p]], work.row_of)
    _locate(g.word[g.last[p] : g.last[p] + g.n_last[p]], work.column_of)


@njit(cache=True, nogil=True)
def _before_hook(g, k, stop, table, n, work):
    """work.before[i], i < n, <- best score, without the hook, of the edges from k on with the hook of k and with the
    first word that row_of numbers i; returns the edge after them. Numbers the last words of the hook in work.column.
    """
    first, n_first, offset, word = g.first, g.n_first, g.offset, g.word
    edge_left, edge_right, edge_weight = g.edge_left, g.edge_right, g.edge_weight
    row_of, before = work.row_of, work.before
    for i in range(n):
        before[i] = -np.inf
    hook = edge_right[k]
    for j in range(g.n_last[hook]):
        work.column[j] = work.column_of[word[g.last[hook] + j]]
    while k < stop and edge_right[k] == hook:
        x = edge_left[k]
        at = offset[x]
        for i in range(first[x], first[x] + n_first[x]):
            row = row_of[word[i]]
            s = table[at] + edge_weight[k]
            at += 1
            if row >= 0 and s > before[row]:
                before[row] = s
        k += 1
    return k


@njit(cache=True, nogil=True, inline="always")
def _hook(q_row, words, block, to):
    """to[j] <- max over i of q_row[words[i]] + block[i m + j], for the m entries of ``to``."""
    m = to.shape[0]
    for j in range(m):
        to[j] = -np.inf
    at = 0
    for i in range(words.shape[0]):
        t = q_row[words[i]]
        if t > -np.inf:
            for j in range(m):
                s = t + block[at + j]
                if s > to[j]:
                    to[j] = s
        at += m


@njit(cache=True, nogil=True, inline="always")
def _unhook(q_row, words, column, above, out, best_row):
    """The reverse of _hook for a column of the block: out and best_row[.] are raised to what ``above`` allows."""
    for i in range(words.shape[0]):
        w = words[i]
        s = above + q_row[w]
        if s > out[i]:
            out[i] = s
        s += column[i]
        if s > best_row[w]:
            best_row[w] = s


@njit(cache=True, nogil=True)
def _node(g, p, table, work):
    """The table of a vertex, from those of its edges."""
    first, n_first, last, n_last, offset, word = g.first, g.n_first, g.last, g.n_last, g.offset, g.word
    row_of, column_of, column, before = work.row_of, work.column_of, work.column, work.before
    o, n, m = offset[p], n_first[p], n_last[p]
    for i in range(o, o + n * m):
        table[i] = -np.inf
    _enter(g, p, work)
    k, stop = g.edge_ptr[g.left[p]], g.edge_ptr[g.left[p] + 1]
    while k < stop:
        x, y = g.edge_left[k], g.edge_right[k]
        if y < 0:
            weight, lx, mx = g.edge_weight[k], last[x], n_last[x]
            at = offset[x]
            for i in range(first[x], first[x] + n_first[x]):
                row = row_of[word[i]]
                if row >= 0:
                    for j in range(mx):
                        c = column_of[word[lx + j]]
                        if c >= 0:
                            s = table[at + j] + weight
                            if s > table[o + row * m + c]:
                                table[o + row * m + c] = s
                at += mx
            k += 1
            continue
        k = _before_hook(g, k, stop, table, n, work)
        at, my = offset[y], n_last[y]
        for i in range(n):
            t = before[i]
            if t > -np.inf:
                base = o + i * m
                for j in range(my):
                    c = column[j]
                    if c >= 0:
                        s = t + table[at + j]
                        if s > table[base + c]:
                            table[base + c] = s


@njit(cache=True, nogil=True, inline="always")
def _append(link, block, to):
    """to[i] <- max over j of block[i, j] + link[j], row by row."""
    at = 0
    for i in range(to.shape[0]):
        best = -np.inf
        for j in range(link.shape[0]):
            s = block[at + j] + link[j]
            if s > best:
                best = s
        to[i] = best
        at += link.shape[0]


@njit(cache=True, nogil=True)
def _links(q, befores, words):
    """[r, i]: q[befores[r], words[i]]."""
    links = np.empty((befores.shape[0], words.shape[0]))
    for r in range(befores.shape[0]):
        row = q[befores[r]]
        for i in range(words.shape[0]):
            links[r, i] = row[words[i]]
    return links


@njit(cache=True, nogil=True)
def _chain(a, b, to):
    """to[i, j] <- max over k of a[i, k] + b[k, j]."""
    n, m = to.shape
    for i in range(n):
        row = to[i]
        for j in range(m):
            row[j] = -np.inf
        for k in range(b.shape[0]):
            t = a[i, k]
            if t > -np.inf:
                for j in range(m):
                    s = t + b[k, j]
                    if s > row[j]:
                        row[j] = s


@njit(cache=True, nogil=True)
def _chained(a, links, b, to):
    """to <- a, links and b chained, in the order that takes less time."""
    n, m, k, inner = a.shape[0], b.shape[1], a.shape[1], b.shape[0]
    if n * inner * (k + m) < k * m * (n + inner):
        before = np.empty((n, inner))
        _chain(a, links, before)
        _chain(before, b, to)
    else:
        after = np.empty((k, m))
        _chain(links, b, after)
        _chain(a, after, to)


@njit(cache=True, nogil=True, inline="always")
def _table_of(g, p, values):
    """The table of a piece, (first words, last words)."""
    return values[g.offset[p] : g.offset[p + 1]].reshape(g.n_first[p], g.n_last[p])


@njit(cache=True, nogil=True)
def inside(g, q, table):
    """table <- best score of each (piece, first word, last word) under q[v, w]; the value of the forest stands last."""
    kind, left, right, first, n_first = g.kind, g.left, g.right, g.first, g.n_first
    last, n_last, offset, word = g.last, g.n_last, g.offset, g.word
    work = _workspace(q.shape[0])
    link = np.empty(q.shape[0])
    for p in range(kind.shape[0]):
        o, m = offset[p], n_last[p]
        to = table[o : offset[p + 1]]
        x, y = left[p], right[p]
        if kind[p] == WORD:
            table[o] = 0.0
        elif kind[p] == NODE:
            _node(g, p, table, work)
        elif kind[p] == APPEND:
            mx = n_last[x]
            for j in range(mx):
                link[j] = q[word[last[x] + j], y]
            _append(link[:mx], table[offset[x] :], to)
        elif kind[p] == HOOK:
            _hook(q[x], word[first[y] : first[y] + n_first[y]], table[offset[y] :], to)
        elif kind[p] == JOIN:
            at, by = offset[x], offset[y]
            for i in range(n_first[p]):
                for j in range(m):
                    table[o + i * m + j] = table[at + i] + table[by + j]
        else:
            links = _links(q, word[last[x] : last[x] + n_last[x]], word[first[y] : first[y] + n_first[y]])
            _chained(_table_of(g, x, table), links, _table_of(g, y, table), _table_of(g, p, table))


@njit(cache=True, nogil=True)
def _around_node(g, p, table, out, edge_best, work):
    """Outside scores of what the edges of a vertex are made of, and the best derivation through each of them."""
    first, n_first, last, n_last, offset, word = g.first, g.n_first, g.last, g.n_last, g.offset, g.word
    edge_left, edge_right, edge_weight = g.edge_left, g.edge_right, g.edge_weight
    row_of, column_of, column, before, after = work.row_of, work.column_of, work.column, work.before, work.after
    o, n, m = offset[p], n_first[p], n_last[p]
    _enter(g, p, work)
    k, stop = g.edge_ptr[g.left[p]], g.edge_ptr[g.left[p] + 1]
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
        k = _before_hook(g, k, stop, table, n, work)
        at, my = offset[y], n_last[y]
        for i in range(n):
            t = before[i]
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
            after[i] = best
        for e in range(start, k):
            x = edge_left[e]
            at = offset[x]
            for i in range(first[x], first[x] + n_first[x]):
                row = row_of[word[i]]
                if row >= 0:
                    s = after[row] + edge_weight[e]
                    if s > out[at]:
                        out[at] = s
                    s += table[at]
                    if s > edge_best[e]:
                        edge_best[e] = s
                at += 1


@njit(cache=True, nogil=True)
def _around_chain(g, p, q, table, least, out, pair_best):
    """The same for a chain, column by column of what is above -inf."""
    x, y = g.left[p], g.right[p]
    befores = g.word[g.last[x] : g.last[x] + g.n_last[x]]
    words = g.word[g.first[y] : g.first[y] + g.n_first[y]]
    a, b, above = _table_of(g, x, table), _table_of(g, y, table), _table_of(g, p, out)
    out_a, out_b = _table_of(g, x, out), _table_of(g, y, out)
    links, n_rows = np.empty((0, 0)), befores.shape[0]
    hook, upper = np.empty(n_rows), np.empty(n_rows)
    for j in range(b.shape[1]):
        left = False
        for i in range(a.shape[0]):
            left = left or above[i, j] > -np.inf
        if not left:
            continue
        if not links.size:
            links = _links(q, befores, words).T.copy()
        for r in range(n_rows):
            hook[r] = upper[r] = -np.inf
        for i in range(words.shape[0]):
            t = b[i, j]
            if t > -np.inf:
                for r in range(n_rows):
                    s = t + links[i, r]
                    if s > hook[r]:
                        hook[r] = s
        for i in range(a.shape[0]):
            z = above[i, j]
            if z > -np.inf:
                for r in range(n_rows):
                    s = z + hook[r]
                    if s > out_a[i, r]:
                        out_a[i, r] = s
                for r in range(n_rows):
                    s = z + a[i, r]
                    if s > upper[r]:
                        upper[r] = s
        for r in range(n_rows):
            if upper[r] > -np.inf and not upper[r] + hook[r] < least:
                _unhook(q[befores[r]], words, b[:, j], upper[r], out_b[:, j], pair_best[befores[r]])


@njit(cache=True, nogil=True, inline="always")
def _around_join(left, right, above, out_left, out_right):
    """Raises the outside scores of the two parts of a sum above[i, j] of left[i] and right[j]."""
    m = out_right.shape[0]
    for i in range(out_left.shape[0]):
        for j in range(m):
            z = above[i * m + j]
            s = z + right[j]
            if s > out_left[i]:
                out_left[i] = s
            s = z + left[i]
            if s > out_right[j]:
                out_right[j] = s


@njit(cache=True, nogil=True, inline="always")
def _leave_out(above, block, least):
    """above[i] <- -inf where it does not reach ``least`` with block[i]; returns whether anything is left."""
    left = False
    for i in range(above.shape[0]):
        if above[i] > -np.inf:
            if above[i] + block[i] < least:
                above[i] = -np.inf
            else:
                left = True
    return left


@njit(cache=True, nogil=True)
def outside(g, q, table, least, out, edge_best, pair_best):
    """Best completions, and the best derivation through each part; ``table`` is what ``inside`` filled.

    out (like table) <- best score of everything outside a (piece, first word, last word)
    edge_best (edges of g) <- best derivation that uses the edge
    pair_best (W, W) <- best derivation in which the two words stand side by side

    What is in no derivation of at least ``least`` has less, or -inf: nothing is looked for below it, so that the
    time is that of what is left.
    """
    kind, left, right, first, n_first = g.kind, g.left, g.right, g.first, g.n_first
    last, n_last, offset, word = g.last, g.n_last, g.offset, g.word
    out[:] = -np.inf
    edge_best[:] = -np.inf
    pair_best[:] = -np.inf
    work = _workspace(q.shape[0])
    out[out.shape[0] - 1] = 0.0
    for p in range(kind.shape[0] - 1, -1, -1):
        above = out[offset[p] : offset[p + 1]]
        if not _leave_out(above, table[offset[p] : offset[p + 1]], least):
            continue
        x, y = left[p], right[p]
        if kind[p] == NODE:
            _around_node(g, p, table, out, edge_best, work)
        elif kind[p] == APPEND:
            at, lx, mx = offset[x], last[x], n_last[x]
            for i in range(n_first[p]):
                z = above[i]
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
        elif kind[p] == JOIN:
            a, b = slice(offset[x], offset[x + 1]), slice(offset[y], offset[y + 1])
            _around_join(table[a], table[b], above, out[a], out[b])
        elif kind[p] == HOOK:
            words, block, to = word[first[y] : first[y] + n_first[y]], _table_of(g, y, table), _table_of(g, y, out)
            for j in range(n_last[p]):
                if above[j] > -np.inf:
                    _unhook(q[x], words, block[:, j], above[j], to[:, j], pair_best[x])
        elif kind[p] == CHAIN:
            _around_chain(g, p, q, table, least, out, pair_best)


@njit(cache=True, nogil=True)
def ranked(table, out, least, k):
    """The k-th largest bound of an item, table + out; ``least`` if fewer reach that."""
    count = 0
    for i in range(out.shape[0]):
        count += 1 if out[i] > -np.inf and table[i] + out[i] >= least else 0
    if count < k:
        return least
    found, count = np.empty(count), 0
    for i in range(out.shape[0]):
        if out[i] > -np.inf and table[i] + out[i] >= least:
            found[count] = table[i] + out[i]
            count += 1
    return largest(found, k)


@njit(cache=True, nogil=True)
def _find(word, start, count, w):
    """The i < count for which word[start + i] is w, or -1."""
    for i in range(count):
        if word[start + i] == w:
            return i
    return -1


@njit(cache=True, nogil=True, inline="always")
def _best_edge(g, p, i, j, table):
    """(edge, row of its left piece, column of its right one) of the best of a vertex with first word i, last word j."""
    first, n_first, last, n_last, offset, word = g.first, g.n_first, g.last, g.n_last, g.offset, g.word
    head, end = word[first[p] + i], word[last[p] + j]
    best, k, a, b = -np.inf, -1, 0, 0
    for e in range(g.edge_ptr[g.left[p]], g.edge_ptr[g.left[p] + 1]):
        x, y = g.edge_left[e], g.edge_right[e]
        z = x if y < 0 else y
        c = _find(word, first[x], n_first[x], head)
        d = _find(word, last[z], n_last[z], end)
        if c < 0 or d < 0:
            continue
        if y < 0:
            s = table[offset[x] + c * n_last[x] + d] + g.edge_weight[e]
        else:
            s = table[offset[x] + c] + g.edge_weight[e] + table[offset[y] + d]
        if s > best:
            best, k, a, b = s, e, c, d
    return k, a, b


@njit(cache=True, nogil=True, inline="always")
def _best_link(g, p, i, j, q, table):
    """(last word of the left part, first word of the right part) where the two parts of a piece meet best."""
    x, y, offset = g.left[p], g.right[p], g.offset
    best, a, b = -np.inf, 0, 0
    hook, append = g.kind[p] == HOOK, g.kind[p] == APPEND
    for r in range(1 if hook else g.n_last[x]):
        v = x if hook else g.word[g.last[x] + r]
        before = 0.0 if hook else table[offset[x] + i * g.n_last[x] + r]
        for c in range(1 if append else g.n_first[y]):
            w = y if append else g.word[g.first[y] + c]
            s = before + q[v, w]
            if not append:
                s += table[offset[y] + c * g.n_last[p] + j]
            if s > best:
                best, a, b = s, r, c
    return a, b


@njit(cache=True, nogil=True)
def best_derivation(g, q, table, edges, pairs):
    """(number of edges, of pairs) of a derivation that reaches the value ``inside`` found.

    edges <- its edges in the forest, head before tails, left to right, the top's first; pairs[:, 0], pairs[:, 1] <- the
    words that stand side by side in it. Ties go to the smallest index. The value must not be -inf.
    """
    kind, left, right, first, last, word = g.kind, g.left, g.right, g.first, g.last, g.word
    stack = np.empty((2 * kind.shape[0] + 2, 3), np.int64)  # piece, its first and its last word
    stack[0, 0], stack[0, 1], stack[0, 2] = kind.shape[0] - 1, 0, 0
    depth, n_edges, n_pairs = 1, 0, 0
    while depth > 0:
        depth -= 1
        p, i, j = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        if kind[p] == WORD:
            continue
        x, y, a, b = left[p], right[p], 0, 0
        if kind[p] == NODE:
            k, i, b = _best_edge(g, p, i, j, table)
            edges[n_edges] = g.edge_id[k]
            n_edges += 1
            x, y = g.edge_left[k], g.edge_right[k]
            if y < 0:
                a = b
            j, b = b, 0
        elif kind[p] != JOIN:
            a, b = _best_link(g, p, i, j, q, table)
            pairs[n_pairs, 0] = x if kind[p] == HOOK else word[last[x] + a]
            pairs[n_pairs, 1] = y if kind[p] == APPEND else word[first[y] + b]
            n_pairs += 1
        if kind[p] != APPEND and y >= 0:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = y, b, j
            depth += 1
        if kind[p] != HOOK:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = x, i, a
            depth += 1
    return n_edges, n_pairs


@njit(cache=True, nogil=True)
def surviving(g, table, out, least, alive_first, alive_last):
    """Number of (vertex, first word, last word) in a derivation of at least ``least``; alive_first, alive_last (V, W)

    <- the first and last words of each vertex among them.
    """
    alive_first[:] = False
    alive_last[:] = False
    count = 0
    for p in range(g.kind.shape[0]):
        if g.kind[p] != NODE:
            continue
        v = g.left[p]
        at = g.offset[p]
        for i in range(g.first[p], g.first[p] + g.n_first[p]):
            for j in range(g.last[p], g.last[p] + g.n_last[p]):
                if table[at] + out[at] >= least:
                    count += 1
                    alive_first[v, g.word[i]] = True
                    alive_last[v, g.word[j]] = True
                at += 1
    return count
