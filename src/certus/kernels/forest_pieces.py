"""A translation forest cut into pieces of target sides, for sweeps over first and last words.

Target sides are cut into pieces that many edges share. A piece yields a stretch of words, and its table holds the best
score of such a stretch for each (first word, last word), row-major, at ``table[offset[p]:]``:

    WORD   the word left[p]                                                      1 x 1
    NODE   whatever vertex left[p] of the forest yields                          |first| x |last|
    APPEND piece left[p], then the word right[p]                                 |first| x 1
    HOOK   the word left[p], then piece right[p]; the word is not counted        1 x |last|
    JOIN   piece left[p], which ends in a word, and a hook on that word          |first| x |last|
    CHAIN  piece left[p], then piece right[p]                                    |first| x |last|

Its first words are word[first[p]], word[first[p] + 1], .. n_first[p] of them, and its last words likewise; pieces share
these lists. An edge k into vertex v (edge_ptr[v] <= k < edge_ptr[v + 1]) yields a piece edge_left[k], or that piece
joined with the hook edge_right[k] if it is not -1: the outer sum is taken straight into the table of v. Edges with one
hook stand together. Hooks keep every step at the size of one table (the hook trick).

Word 0 is <s>, word 1 is </s>. The last vertex is the top: <s>, root, </s>. Pieces are numbered bottom-up.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.arrays import longer
from certus.kernels.compiling import njit

WORD, NODE, APPEND, HOOK, JOIN, CHAIN = 0, 1, 2, 3, 4, 5
BEGIN, END = 0, 1


class Pieces(NamedTuple):
    """The arrays described above; ``edge_id`` is the number of each edge in the forest.

    Kernels take them all out at once: taken out of the tuple in a loop, each would be reference-counted there.
    """

    kind: np.ndarray
    left: np.ndarray
    right: np.ndarray
    first: np.ndarray
    n_first: np.ndarray
    last: np.ndarray
    n_last: np.ndarray
    offset: np.ndarray
    word: np.ndarray
    edge_ptr: np.ndarray
    edge_left: np.ndarray
    edge_right: np.ndarray
    edge_weight: np.ndarray
    edge_id: np.ndarray


@njit(cache=True, nogil=True)
def _piece(part, slots, n, kind, left, right, first, last):
    """(number of the piece with this kind, left and right; how many pieces there are). A new one is written at n."""
    mask = np.uint64(slots.shape[0] - 1)
    key = np.uint64(kind) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(left)
    key = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(right)
    key = (key ^ (key >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    i = (key ^ (key >> np.uint64(31))) & mask
    while slots[i] >= 0:
        p = slots[i]
        if part[0, p] == kind and part[1, p] == left and part[2, p] == right:
            return p, n
        i = (i + np.uint64(1)) & mask
    slots[i] = n
    part[0, n], part[1, n], part[2, n], part[3, n], part[4, n] = kind, left, right, first, last
    return n, n + 1


@njit(cache=True, nogil=True)
def build(in_ptr, tail_ptr, tail, token_ptr, token, weight, alive, keep_first, keep_last):
    """Pieces of the edges that are alive; first and last words of v are cut to keep_first[v], keep_last[v] (V, W).

    ``token`` holds words, or ~j for the j-th vertex of the tail; no target side is empty.

    While they are gathered, first and last words are sets: set s holds word[set_ptr[s]:set_ptr[s + 1]]; set w < W is
    {w}, sets W + 2 v and W + 2 v + 1 belong to vertex v.
    """
    n_vertices, n_words = keep_first.shape
    none = np.int64(-1)
    most = 2 * token.shape[0] + n_vertices + n_words + 1
    size = 16
    while size < 2 * most:
        size *= 2
    slots = np.full(size, -1, np.int64)
    part = np.empty((5, most), np.int64)
    kind, left, right, first, last = part[0], part[1], part[2], part[3], part[4]
    n = np.int64(0)
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
            p = none
            hook = none
            s = none  # the piece of the last vertex and the words after it, or of the words before the first
            t = token_ptr[e]
            stop = token_ptr[e + 1]
            while t < stop:
                if token[t] < 0:
                    s = node_piece[tail[tail_ptr[e] + ~token[t]]]
                else:
                    w = np.int64(token[t])
                    s, n = _piece(part, slots, n, WORD, w, np.int64(0), w, w)
                t += 1
                while t < stop and token[t] >= 0:
                    w = np.int64(token[t])
                    s, n = _piece(part, slots, n, APPEND, s, w, first[s], w)
                    t += 1
                if p < 0:
                    p = s
                elif last[p] >= n_words:
                    p, n = _piece(part, slots, n, CHAIN, p, s, first[p], last[s])
                else:
                    hook, n = _piece(part, slots, n, HOOK, last[p], s, last[p], last[s])
                    if t < stop:
                        p, n = _piece(part, slots, n, JOIN, p, hook, first[p], last[s])
                        hook = none
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
            i = np.int64(e)
            while i >= 0:
                edge_left[k] = piece_of[i]
                edge_right[k] = hook_of[e]
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
                            word = longer(word)
                        word[filled] = w
                        filled += 1
            set_ptr[new_set + 1] = filled
        node_piece[v], n = _piece(part, slots, n, NODE, np.int64(v), np.int64(0), n_words + 2 * v, n_words + 2 * v + 1)
    n_first = np.empty(n, np.int64)
    n_last = np.empty(n, np.int64)
    offset = np.zeros(n + 1, np.int64)
    for p in range(n):
        n_first[p] = set_ptr[first[p] + 1] - set_ptr[first[p]]
        n_last[p] = set_ptr[last[p] + 1] - set_ptr[last[p]]
        first[p] = set_ptr[first[p]]
        last[p] = set_ptr[last[p]]
        offset[p + 1] = offset[p] + n_first[p] * n_last[p]
    return Pieces(
        kind[:n], left[:n], right[:n], first[:n], n_first, last[:n], n_last, offset, word[:filled],
        edge_ptr, edge_left, edge_right, edge_weight, edge_id,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def adjacent(g, allowed):
    """allowed[v, w] <- True for every pair of words that can stand side by side; the rest is left as it is."""
    kind, left, right, first, n_first, last, n_last, _, word = g[:9]
    for p in range(kind.shape[0]):
        x, y = left[p], right[p]
        if kind[p] == APPEND:
            for i in range(last[x], last[x] + n_last[x]):
                allowed[word[i], y] = True
        elif kind[p] == HOOK:
            for j in range(first[y], first[y] + n_first[y]):
                allowed[x, word[j]] = True
        elif kind[p] == CHAIN:
            for i in range(last[x], last[x] + n_last[x]):
                for j in range(first[y], first[y] + n_first[y]):
                    allowed[word[i], word[j]] = True
