"""Source-side parsing with a synchronous grammar, over a trie of source sides (CKY with dotted rules).

Symbols of source sides are numbered: nonterminal a is a, word w is L + w, with L nonterminals. Node q of the trie has
the children ``child[k]`` by ``child_symbol[k]``, k in range(child_ptr[q], child_ptr[q + 1]), sorted by symbol; rules
that end there rewrite the nonterminals node_left[node_left_ptr[q]:node_left_ptr[q + 1]]. Node 0 is the root of ordinary
rules, which cover at most ``max_span`` words; node 1 that of glue rules, which begin at the first word.

An item is a node reached over a span, with the item before it and the vertex it took (-1 for a word). The items of a
span are contiguous, as are its vertices. Spans come by length, so vertices are numbered bottom-up; within a span,
nonterminals come in ``unary_order``, so that unary rules rewrite them upwards.
"""

import numpy as np

from certus.kernels.arrays import longer
from certus.kernels.compiling import njit

NONE = np.int64(-1)


@njit(cache=True, nogil=True, inline="always")
def _find_child(child_ptr, child_symbol, child, q, symbol):
    """The child of node q by a symbol, or -1."""
    lo, hi = child_ptr[q], child_ptr[q + 1]
    while lo < hi:
        mid = (lo + hi) >> 1
        if child_symbol[mid] < symbol:
            lo = mid + 1
        else:
            hi = mid
    if lo < child_ptr[q + 1] and child_symbol[lo] == symbol:
        return child[lo]
    return np.int32(-1)


@njit(cache=True, nogil=True)
def _put(rows, n, a, b, c):
    """The rows, or a longer copy of them, with a, b, c as row n."""
    if n == rows.shape[0]:
        rows = longer(rows)
    rows[n, 0], rows[n, 1], rows[n, 2] = a, b, c
    return rows


@njit(cache=True, nogil=True, inline="always")
def _taken(items, item, v, tail, n):
    """(tail, or a longer copy; where it ends): with the vertices taken up to an item, and v after it, from n on."""
    begin = n
    while item >= 0:  # from right to left; turned round below
        if v >= 0:
            if n == tail.shape[0]:
                tail = longer(tail)
            tail[n] = v
            n += 1
        v, item = items[item, 2], items[item, 1]
    for x in range((n - begin) // 2):
        tail[begin + x], tail[n - 1 - x] = tail[n - 1 - x], tail[begin + x]
    return tail, n


@njit(cache=True, nogil=True)
def parse_source(trie, sentence, copied, copy_label, unary_order, max_span, vertex_at):
    """Every way to apply a source side to a span of the sentence.

    ``sentence`` (n,) word numbers, -1 for one the grammar does not have; ``copied`` (n,) whether a word may be copied
    as ``copy_label``; ``vertex_at`` ((n + 1) (n + 1) L,) is filled with the vertex of nonterminal a over words i..j - 1
    at ((i (n + 1)) + j) L + a, -1 if there is none. Returns matches (node, or -1 for a copy; i; j; tail_ptr; tail: the
    vertices of its nonterminals in the order of the source side) and vertices (label; i; j).
    """
    child_ptr, child_symbol, child = trie.child_ptr, trie.child_symbol, trie.child
    node_left_ptr, node_left = trie.node_left_ptr, trie.node_left
    n, n_labels = sentence.shape[0], unary_order.shape[0]
    width = n + 1
    vertex_at[:] = -1
    # per span: where its items and its vertices begin and end
    item_first, item_last = np.zeros(width * width, dtype=np.int64), np.zeros(width * width, dtype=np.int64)
    vertex_first, vertex_last = np.zeros(width * width, dtype=np.int64), np.zeros(width * width, dtype=np.int64)
    items, n_items = np.empty((1024, 3), dtype=np.int32), 0  # node, item before, vertex taken
    vertices, n_vertices = np.empty((256, 3), dtype=np.int32), 0  # label, i, j
    matches, n_matches = np.empty((1024, 3), dtype=np.int32), 0  # node, i, j
    tail_ptr, tail, n_tail = np.zeros(1025, dtype=np.int32), np.empty(1024, dtype=np.int32), 0
    present = np.zeros(n_labels, dtype=np.bool_)
    for i in range(n):  # the roots stand before word i
        item_first[i * width + i] = n_items
        for root in range(2 if i == 0 else 1):
            items = _put(items, n_items, root, NONE, NONE)
            n_items += 1
        item_last[i * width + i] = n_items
    for length in range(1, n + 1):
        for i in range(n - length + 1 if length <= max_span else 1):
            j = i + length
            span = i * width + j
            item_first[span], vertex_first[span] = n_items, n_vertices
            present[:] = False
            # Steps: the end k of the items to go on from, and the vertex to take, -1 for word j - 1. After all longer
            # items come the unary steps, k = i, which take the vertices of this very span as they are made.
            for k in range(j - 1, i - 1, -1):
                first_v = vertex_first[k * width + j]
                n_steps = n_labels if k == i else vertex_last[k * width + j] - first_v
                for step in range(-1 if k == j - 1 else 0, n_steps):
                    if step < 0:
                        v, symbol = -1, n_labels + sentence[j - 1] if sentence[j - 1] >= 0 else -1
                        if length == 1 and copied[j - 1]:
                            present[copy_label] = True
                            matches = _put(matches, n_matches, NONE, i, j)
                            n_matches += 1
                            if n_matches == tail_ptr.shape[0]:
                                tail_ptr = longer(tail_ptr)
                            tail_ptr[n_matches] = n_tail
                    elif k == i:
                        symbol = unary_order[step]
                        if not present[symbol]:
                            continue
                        v = n_vertices
                        vertex_at[span * n_labels + symbol] = v
                        vertices = _put(vertices, v, np.int64(symbol), i, j)
                        n_vertices += 1
                    else:
                        v = first_v + step
                        symbol = vertices[v, 0]
                    if symbol < 0:
                        continue
                    for item in range(item_first[i * width + k], item_last[i * width + k]):
                        q = _find_child(child_ptr, child_symbol, child, items[item, 0], symbol)
                        if q < 0 or (length > max_span and not trie.node_glue[q]):
                            continue
                        if child_ptr[q + 1] > child_ptr[q]:
                            items = _put(items, n_items, np.int64(q), item, v)
                            n_items += 1
                        if node_left_ptr[q + 1] == node_left_ptr[q]:
                            continue
                        for a in range(node_left_ptr[q], node_left_ptr[q + 1]):
                            present[node_left[a]] = True
                        tail, n_tail = _taken(items, item, v, tail, n_tail)
                        matches = _put(matches, n_matches, np.int64(q), i, j)
                        n_matches += 1
                        if n_matches == tail_ptr.shape[0]:
                            tail_ptr = longer(tail_ptr)
                        tail_ptr[n_matches] = n_tail
            item_last[span], vertex_last[span] = n_items, n_vertices
    return matches[:n_matches], tail_ptr[: n_matches + 1], tail[:n_tail], vertices[:n_vertices]
