"""Cube pruning: a beam of hypotheses per vertex of a forest, combined best first under a language model (heuristic).

A hypothesis is a translation of a vertex. What the words around it need to know of it is its state: the words at its
beginning whose probability depends on what stands before ("left", at most order - 1), whether these are all that can
depend on it ("closed"), and the language-model state at its end. Left words count as if nothing stood before them
("estimate", a natural logarithm) until an edge sets the hypothesis behind other words.

After words w1..wk from the empty state, no word further on depends on what stands before w1 as soon as no context of
the model is longer and ends in w1..wk: the state has fewer than k words, or is not extendable, or k = order - 1.

Forest arrays are those of certus/translation/forest.py, with the ids of the language model as words. A row of
numbers, (3 + order + K,), is a hypothesis: right state, number of left words, closed, the left words, the edge, and the
K hypotheses of its tail.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.language_model import advance

RIGHT, N_LEFT, CLOSED, LEFT = 0, 1, 2, 3


class Beams(NamedTuple):
    """Hypotheses of all vertices; those of vertex v are range(ptr[v, 0], ptr[v, 1]), best first."""

    numbers: np.ndarray  # (H, 3 + order + K)
    scores: np.ndarray  # (H, 2) score with the estimate in it, and the estimate
    ptr: np.ndarray  # (V, 2)


class Candidates(NamedTuple):
    """Hypotheses to be of the vertex at hand, a heap of some of them with the best first, and two hash tables."""

    numbers: np.ndarray
    scores: np.ndarray
    heap: np.ndarray
    states: np.ndarray  # hypotheses of the vertex, by state
    seen: np.ndarray  # candidates made from others, by edge and tail


@njit(cache=True, nogil=True)
def evaluate(lm, lm_weight, whole, forest, beams, row):
    """Scores the edge and the hypotheses of its tail that stand in row; fills the rest of row, its state.

    ``whole`` asks for a whole sentence, from <s> to </s>. Returns (score, estimate).
    """
    length, extendable, token_ptr, token = lm.state_length, lm.state_extendable, forest.token_ptr, forest.token
    numbers, scores = beams.numbers, beams.scores
    room = lm.order - 1
    e = row[LEFT + room]
    first_tail = LEFT + room + 1
    n_left, closed, q = 0, room == 0, np.int32(0)
    if whole:
        closed, q = True, np.int32(lm.begin_state)
    score, estimate, total = forest.weight[e], 0.0, 0.0
    tail = 0
    for k in range(token_ptr[e], token_ptr[e + 1]):
        w = token[k]
        first, last, inner = 0, 1, -1
        if w < 0:
            inner = row[first_tail + tail]
            tail += 1
            score += scores[inner, 0]
            last = numbers[inner, N_LEFT]
            if n_left == 0 and not closed:  # the first of all: as it is
                for x in range(last):
                    row[LEFT + x] = numbers[inner, LEFT + x]
                n_left, closed, q = last, numbers[inner, CLOSED] == 1, numbers[inner, RIGHT]
                estimate = scores[inner, 1]
                continue
            total -= scores[inner, 1]
        for x in range(first, last):
            if inner >= 0:
                w = numbers[inner, LEFT + x]
            p, q = advance(lm, q, w)
            total += p
            if not closed:
                row[LEFT + n_left] = w
                n_left += 1
                estimate += p
                closed = n_left == room or length[q] < n_left or not extendable[q]
        if inner >= 0 and numbers[inner, CLOSED] == 1:
            q = numbers[inner, RIGHT]
    if whole:
        p, q = advance(lm, q, lm.end)
        total += p
        q = np.int32(0)
    for x in range(n_left, room):
        row[LEFT + x] = -1
    row[RIGHT], row[N_LEFT], row[CLOSED] = q, n_left, 1 if closed else 0
    return score + lm_weight * total, estimate


@njit(cache=True, nogil=True, inline="always")
def _before(scores, a, b):
    """Whether candidate a comes before candidate b: the better score, then the smaller number."""
    return scores[a, 0] > scores[b, 0] or (scores[a, 0] == scores[b, 0] and a < b)


@njit(cache=True, nogil=True)
def _sift_down(heap, scores, size, at):
    """Restores the heap of candidates from position ``at`` down."""
    item = heap[at]
    while 2 * at + 1 < size:
        c = 2 * at + 1
        if c + 1 < size and _before(scores, heap[c + 1], heap[c]):
            c += 1
        if _before(scores, item, heap[c]):
            break
        heap[at] = heap[c]
        at = c
    heap[at] = item


@njit(cache=True, nogil=True)
def _pop(heap, scores, size):
    """The best candidate of a heap of ``size``, which has one less then."""
    best = heap[0]
    heap[0] = heap[size - 1]
    _sift_down(heap, scores, size - 1, np.int64(0))
    return best


@njit(cache=True, nogil=True)
def _slot(table, rows, row, first, last):
    """Slot of a hash table of row numbers: of the row equal to ``row`` in columns first..last - 1, or an empty one."""
    mask = table.shape[0] - 1
    h = np.int64(0)
    for x in range(first, last):
        h = (h * 1000003 + row[x]) & 0x3FFFFFFFFFF  # below 2^42, so that nothing overflows
    slot = (h ^ (h >> 21)) & mask
    while table[slot] >= 0:
        same = True
        for x in range(first, last):
            if rows[table[slot], x] != row[x]:
                same = False
                break
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@njit(cache=True, nogil=True)
def _first_candidates(forest, v, beams, cand, edge_at):
    """Each edge into v over the best of its tail; returns how many there are."""
    n = 0
    for e in range(forest.in_ptr[v], forest.in_ptr[v + 1]):
        alive = forest.weight[e] > -np.inf
        cand[n, edge_at] = e
        for t in range(cand.shape[1] - edge_at - 1):
            cand[n, edge_at + 1 + t] = -1
            if t < forest.tail_ptr[e + 1] - forest.tail_ptr[e]:
                u = forest.tail[forest.tail_ptr[e] + t]
                alive = alive and beams.ptr[u, 0] < beams.ptr[u, 1]
                cand[n, edge_at + 1 + t] = beams.ptr[u, 0]
        if alive:
            n += 1
    return n


@njit(cache=True, nogil=True)
def _neighbours(forest, c, n, beams, made, edge_at):
    """Adds, from candidate n on, c with the next hypothesis of each vertex of its tail; returns how many there are."""
    cand = made.numbers
    width = cand.shape[1]
    e = cand[c, edge_at]
    for t in range(forest.tail_ptr[e + 1] - forest.tail_ptr[e]):
        at = edge_at + 1 + t
        if cand[c, at] + 1 < beams.ptr[forest.tail[forest.tail_ptr[e] + t], 1]:
            for x in range(edge_at, width):
                cand[n, x] = cand[c, x]
            cand[n, at] += 1
            slot = _slot(made.seen, cand, cand[n], edge_at, width)
            if made.seen[slot] < 0:
                made.seen[slot] = n
                n += 1
    return n


@njit(cache=True, nogil=True)
def _sort(beams, begin, n, made):
    """Sorts the hypotheses begin .. begin + n - 1, best first; candidates are no longer needed and give the room."""
    numbers, scores, cand, cand_score, heap = beams.numbers, beams.scores, made.numbers, made.scores, made.heap
    for x in range(n):
        heap[x] = x
        cand_score[x, 0], cand_score[x, 1] = scores[begin + x, 0], scores[begin + x, 1]
        for y in range(numbers.shape[1]):
            cand[x, y] = numbers[begin + x, y]
    for at in range(n // 2 - 1, -1, -1):
        _sift_down(heap, cand_score, n, at)
    for k in range(n):
        c = _pop(heap, cand_score, n - k)
        scores[begin + k, 0], scores[begin + k, 1] = cand_score[c, 0], cand_score[c, 1]
        for y in range(numbers.shape[1]):
            numbers[begin + k, y] = cand[c, y]


@njit(cache=True, nogil=True)
def _beam(lm, lm_weight, forest, v, whole, beams, made, pops):
    """Fills the beam of vertex v, from beams.ptr[v, 0] on; returns how many hypotheses it has."""
    numbers, scores, cand, cand_score, heap = beams.numbers, beams.scores, made.numbers, made.scores, made.heap
    begin, edge_at, tries = beams.ptr[v, 0], LEFT + lm.order - 1, 2 * pops
    made.states[:] = -1
    made.seen[:] = -1
    n_cand = _first_candidates(forest, v, beams, cand, edge_at)
    n, size, scored, tried = 0, 0, 0, 0
    while True:
        for c in range(scored, n_cand):  # score what is new, and push it
            cand_score[c, 0], cand_score[c, 1] = evaluate(lm, lm_weight, whole, forest, beams, cand[c])
            at = size
            size += 1
            while at > 0 and cand_score[heap[(at - 1) // 2], 0] < cand_score[c, 0]:
                heap[at] = heap[(at - 1) // 2]
                at = (at - 1) // 2
            heap[at] = c
        scored = n_cand
        if size == 0 or tried == tries or n == pops:
            return n
        c = _pop(heap, cand_score, size)
        size -= 1
        tried += 1
        slot = _slot(made.states, numbers, cand[c], np.int64(0), edge_at)
        new = made.states[slot] < 0
        if new:
            made.states[slot] = begin + n
            n += 1
        h = made.states[slot]
        if new or cand_score[c, 0] > scores[h, 0]:
            scores[h, 0], scores[h, 1] = cand_score[c, 0], cand_score[c, 1]
            for x in range(numbers.shape[1]):
                numbers[h, x] = cand[c, x]
        n_cand = _neighbours(forest, c, n_cand, beams, made, edge_at)


@njit(cache=True, nogil=True)
def cube_prune(lm, lm_weight, forest, root, pops):
    """Fills a beam of at most ``pops`` hypotheses per vertex up to the root; returns the Beams.

    A candidate popped whose state is in the beam already is merged with it and not counted, up to as many again.
    The root's beam has whole sentences, the best one first; it is empty if there is none.
    """
    in_ptr, tail_ptr = forest.in_ptr, forest.tail_ptr
    arity, most_edges = 0, 0
    for e in range(forest.weight.shape[0]):
        arity = max(arity, tail_ptr[e + 1] - tail_ptr[e])
    for v in range(in_ptr.shape[0] - 1):
        most_edges = max(most_edges, in_ptr[v + 1] - in_ptr[v])
    width = LEFT + lm.order + arity
    most = (root + 1) * pops  # only what is used takes memory
    beams = Beams(
        np.empty((most, width), dtype=np.int32), np.empty((most, 2)), np.zeros((in_ptr.shape[0] - 1, 2), dtype=np.int64)
    )
    room = max(pops, most_edges + 2 * pops * arity) + 1  # candidates of a vertex
    slots = 16
    while slots < 2 * max(pops, 2 * pops * arity):
        slots *= 2
    made = Candidates(
        np.empty((room, width), dtype=np.int32), np.empty((room, 2)), np.empty(room, dtype=np.int64),
        np.empty(slots, dtype=np.int64), np.empty(slots, dtype=np.int64),
    )  # fmt: skip
    n = 0
    for v in range(root + 1):
        beams.ptr[v, 0] = n
        size = _beam(lm, lm_weight, forest, v, v == root, beams, made, pops)
        _sort(beams, n, size, made)
        n += size
        beams.ptr[v, 1] = n
    return beams
