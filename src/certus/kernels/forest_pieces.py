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

WORD, NODE, APPEND, HOOK, JOIN, CHAIN = np.arange(6)  # no literals: a kernel is compiled once for all of them
BEGIN, END = 0, 1


class Pieces(NamedTuple):
    """The arrays described above; ``edge_id`` is the number of each edge in the forest.

    Hot loops take them out before they begin: taken out of the tuple inside, each would be reference-counted there.
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


class _Table(NamedTuple):
    """Pieces found so far, and a hash table of their numbers; first and last are numbers of sets of words."""

    slots: np.ndarray
    kind: np.ndarray
    left: np.ndarray
    right: np.ndarray
    first: np.ndarray
    last: np.ndarray


@njit(cache=True, nogil=True)
def _piece(table, n, kind, left, right, first, last):
    """(number of the piece with this kind, left and right; how many pieces there are). A new one is written at n."""
    slots = table.slots
    mask = np.uint64(slots.shape[0] - 1)
    key = np.uint64(kind) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(left)
    key = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(right)
    key = (key ^ (key >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    i = (key ^ (key >> np.uint64(31))) & mask
    while slots[i] >= 0:
        p = slots[i]
        if table.kind[p] == kind and table.left[p] == left and table.right[p] == right:
            return p, n
        i = (i + np.uint64(1)) & mask
    slots[i] = n
    table.kind[n], table.left[n], table.right[n], table.first[n], table.last[n] = kind, left, right, first, last
    return n, n + 1


@njit(cache=True, nogil=True)
def _cut(forest, e, n_words, node_piece, table, n):
    """(piece, hook or -1, how many pieces there are): what the target side of edge e is made of."""
    token, first, last = forest.token, table.first, table.last
    p, hook, s = np.int64(-1), np.int64(-1), np.int64(-1)
    t, stop = forest.token_ptr[e], forest.token_ptr[e + 1]
    while t < stop:
        # s: a vertex and the words after it, or the words before the first vertex
        w = np.int64(token[t])
        if w < 0:
            s = node_piece[forest.tail[forest.tail_ptr[e] + ~w]]
        else:
            s, n = _piece(table, n, WORD, w, np.int64(0), w, w)
        t += 1
        while t < stop and token[t] >= 0:
            w = np.int64(token[t])
            s, n = _piece(table, n, APPEND, s, w, first[s], w)
            t += 1
        if p < 0:
            p = s
        elif last[p] >= n_words:
            p, n = _piece(table, n, CHAIN, p, s, first[p], last[s])
        else:
            hook, n = _piece(table, n, HOOK, last[p], s, last[p], last[s])
            if t < stop:
                p, n = _piece(table, n, JOIN, p, hook, first[p], last[s])
                hook = np.int64(-1)
    return p, hook, n


@njit(cache=True, nogil=True, inline="always")
def _list_edges(begin, stop, alive, hook, latest, following, listed, k):
    """listed[k:] <- the edges begin .. stop - 1 that are alive, those with one hook together; returns where it ends.

    latest (pieces,) and following (E,) are scratch: the first edge with a hook, the next one with the same hook. Edges
    that latest holds beforehand are below begin.
    """
    for e in range(stop - 1, begin - 1, -1):
        following[e] = -1
        if alive[e] and hook[e] >= 0:
            if latest[hook[e]] > e:
                following[e] = latest[hook[e]]
            latest[hook[e]] = e
    for first in range(begin, stop):
        if alive[first] and (hook[first] < 0 or latest[hook[first]] == first):
            e = np.int64(first)
            while e >= 0:
                listed[k] = e
                k += 1
                e = following[e]
    return k


@njit(cache=True, nogil=True)
def _unite(number, ends, keep, seen, set_ptr, word):
    """Set ``number`` <- the words of the sets ``ends``, each once, those that keep (W,) allows; returns ``word``.

    seen (sets + W,) holds the last set for which each set and word was met.
    """
    filled, n_sets = set_ptr[number], set_ptr.shape[0] - 1
    for s in ends:
        if seen[s] == number:
            continue
        seen[s] = number
        for j in range(set_ptr[s], set_ptr[s + 1]):
            w = word[j]
            if keep[w] and seen[n_sets + w] != number:
                seen[n_sets + w] = number
                if filled == word.shape[0]:
                    word = longer(word)
                word[filled] = w
                filled += 1
    set_ptr[number + 1] = filled
    return word


@njit(cache=True, nogil=True)
def build(forest, alive, keep_first, keep_last):
    """The pieces of the edges alive (E,), with first and last words that keep_first and keep_last (V, W) allow.

    ``forest`` holds the arrays of certus/translation/forest.py, with words numbered within the forest. While it is cut
    the first and last words of a piece are numbered sets: set w < W is {w}, sets W + 2 v and W + 2 v + 1 belong to
    vertex v; set s is word[set_ptr[s]:set_ptr[s + 1]].
    """
    n_vertices, n_words = keep_first.shape
    in_ptr = forest.in_ptr
    most = 2 * forest.token.shape[0] + n_vertices + n_words + 1
    size = 16
    while size < 2 * most:
        size *= 2
    part = np.empty((5, most), np.int64)
    table, n = _Table(np.full(size, -1, np.int64), part[0], part[1], part[2], part[3], part[4]), np.int64(0)
    n_sets = n_words + 2 * n_vertices
    set_ptr = np.zeros(n_sets + 1, np.int64)
    word = np.empty(n_words + 1024, np.int64)
    for w in range(n_words):
        set_ptr[w + 1] = w + 1
        word[w] = w
    seen = np.full(n_sets + n_words, -1, np.int64)
    node_piece = np.full(n_vertices, -1, np.int64)
    n_edges = alive.shape[0]
    edge_ptr = np.zeros(n_vertices + 1, np.int64)
    edge_left, edge_right = np.empty(n_edges, np.int64), np.empty(n_edges, np.int64)
    edge_weight, edge_id = np.empty(n_edges, np.float64), np.empty(n_edges, np.int64)
    piece, hook = np.empty(n_edges, np.int64), np.empty(n_edges, np.int64)
    latest, following = np.full(most, -1, np.int64), np.empty(n_edges, np.int64)
    ends = np.empty((2, n_edges), np.int64)
    for v in range(n_vertices):
        for e in range(in_ptr[v], in_ptr[v + 1]):
            if alive[e]:
                piece[e], hook[e], n = _cut(forest, e, n_words, node_piece, table, n)
        start = edge_ptr[v]
        stop = _list_edges(in_ptr[v], in_ptr[v + 1], alive, hook, latest, following, edge_id, start)
        edge_ptr[v + 1] = stop
        for i in range(start, stop):
            x, y = piece[edge_id[i]], hook[edge_id[i]]
            edge_left[i], edge_right[i], edge_weight[i] = x, y, forest.weight[edge_id[i]]
            ends[0, i], ends[1, i] = table.first[x], table.last[x if y < 0 else y]
        own = n_words + 2 * v
        word = _unite(own, ends[0, start:stop], keep_first[v], seen, set_ptr, word)
        word = _unite(own + 1, ends[1, start:stop], keep_last[v], seen, set_ptr, word)
        node_piece[v], n = _piece(table, n, NODE, np.int64(v), np.int64(0), own, own + 1)
    first, last = table.first[:n], table.last[:n]
    n_first, n_last, offset = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    for p in range(n):
        n_first[p] = set_ptr[first[p] + 1] - set_ptr[first[p]]
        n_last[p] = set_ptr[last[p] + 1] - set_ptr[last[p]]
        first[p], last[p] = set_ptr[first[p]], set_ptr[last[p]]
        offset[p + 1] = offset[p] + n_first[p] * n_last[p]
    stop = edge_ptr[n_vertices]
    return Pieces(
        table.kind[:n], table.left[:n], table.right[:n], first, n_first, last, n_last, offset,
        word[: set_ptr[n_sets]], edge_ptr, edge_left[:stop], edge_right[:stop], edge_weight[:stop], edge_id[:stop],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def adjacent(g, allowed):
    """allowed[v, w] <- True for every pair of words that can stand side by side; the rest is left as it is."""
    first, n_first, last, n_last, word = g.first, g.n_first, g.last, g.n_last, g.word
    for p in range(g.kind.shape[0]):
        x, y = g.left[p], g.right[p]
        if g.kind[p] == APPEND:
            for i in range(last[x], last[x] + n_last[x]):
                allowed[word[i], y] = True
        elif g.kind[p] == HOOK:
            for j in range(first[y], first[y] + n_first[y]):
                allowed[x, word[j]] = True
        elif g.kind[p] == CHAIN:
            for i in range(last[x], last[x] + n_last[x]):
                for j in range(first[y], first[y] + n_first[y]):
                    allowed[word[i], word[j]] = True
