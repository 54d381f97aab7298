"""Cube pruning: a beam of hypotheses per vertex of a forest, combined best first under a language model (heuristic).

A hypothesis is a translation of a vertex. What the words around it need to know of it is its state: the words at its
beginning whose probability depends on what stands before ("left", at most order - 1), whether these are all that can
depend on it ("closed"), and the language-model state at its end. Left words count as if nothing stood before them
("estimate", a natural logarithm) until an edge sets the hypothesis behind other words.

After words w1..wk from the empty state, no word further on depends on what stands before w1 as soon as no context of the
model is longer and ends in w1..wk: the state has fewer than k words, or is not extendable, or k = order - 1.

Forest arrays are those of certus/translation/forest.py, with the ids of the language model as words. Hypotheses lie in
flat arrays, those of vertex v in range(hyp_ptr[v, 0], hyp_ptr[v, 1]), best first. ``numbers`` (H, 4 + order - 1 + K)
holds per hypothesis: edge, right state, number of left words, closed, the left words, and the K hypotheses of its tail;
``scores`` (H, 2): score with the estimate in it, and the estimate.
"""

import numpy as np
from numba import njit

from certus.kernels.language_model import advance

EDGE, RIGHT, N_LEFT, CLOSED, LEFT = 0, 1, 2, 3, 4


@njit(cache=True, nogil=True)
def evaluate(lm, order, lm_weight, begin_state, end_word, e, tokens, tail_ptr, weight, numbers, scores, row):
    """Scores edge e over the hypotheses row[LEFT + order - 1:] of its tail; fills row with the new hypothesis.

    ``begin_state`` >= 0 asks for a whole sentence: from that state to ``end_word``. Returns (score, estimate).
    """
    token_ptr, token = tokens
    room = order - 1
    first_tail = LEFT + room
    n_left, closed, q = 0, room == 0, np.int32(0)
    if begin_state >= 0:
        closed, q = True, np.int32(begin_state)
    score, estimate, total = weight[e], 0.0, 0.0
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
                closed = n_left == room or lm.state_length[q] < n_left or not lm.state_extendable[q]
        if inner >= 0 and numbers[inner, CLOSED] == 1:
            q = numbers[inner, RIGHT]
    if begin_state >= 0:
        p, q = advance(lm, q, end_word)
        total += p
        q = np.int32(0)
    for x in range(n_left, room):
        row[LEFT + x] = -1
    row[EDGE], row[RIGHT], row[N_LEFT], row[CLOSED] = e, q, n_left, 1 if closed else 0
    return score + lm_weight * total, estimate


@njit(cache=True, nogil=True)
def sift_down(heap, key, size, at):
    """Restores the heap of candidates, best key first, ties to the smaller number, from position ``at`` down."""
    item = heap[at]
    while True:
        c = 2 * at + 1
        if c >= size:
            break
        if c + 1 < size and (
            key[heap[c + 1]] > key[heap[c]] or (key[heap[c + 1]] == key[heap[c]] and heap[c + 1] < heap[c])
        ):
            c += 1
        if key[item] > key[heap[c]] or (key[item] == key[heap[c]] and item < heap[c]):
            break
        heap[at] = heap[c]
        at = c
    heap[at] = item


@njit(cache=True, nogil=True)
def cube_prune(
    lm, order, lm_weight, begin_state, end_word, in_ptr, tail_ptr, tail, token_ptr, token, weight, root, pops
):
    """Fills a beam of at most ``pops`` hypotheses per vertex; returns (numbers, scores, hyp_ptr).

    A candidate popped whose state is in the beam already is merged with it and not counted, up to as many again.
    The root's beam has whole sentences, the best one first; it is empty if there is none.
    """
    n_vertices = in_ptr.shape[0] - 1
    n_edges = weight.shape[0]
    arity = 0
    for e in range(n_edges):
        arity = max(arity, tail_ptr[e + 1] - tail_ptr[e])
    largest = 0
    for v in range(n_vertices):
        largest = max(largest, in_ptr[v + 1] - in_ptr[v])
    width = LEFT + order - 1 + arity
    first_tail = LEFT + order - 1
    tokens = (token_ptr, token)

    numbers = np.empty((1024, width), dtype=np.int32)
    scores = np.empty((1024, 2), dtype=np.float64)
    n_hyps = 0
    hyp_ptr = np.zeros((n_vertices, 2), dtype=np.int64)

    tries = 2 * pops  # pops, with those that are not counted
    room = largest + tries * arity + 1  # candidates of a vertex
    cand = np.empty((room, 1 + arity), dtype=np.int32)  # edge, ranks
    key = np.empty(room, dtype=np.float64)
    heap = np.empty(room, dtype=np.int64)
    row = np.zeros(width, dtype=np.int32)
    bits = 4
    while (1 << bits) < 2 * max(pops, tries * arity):
        bits += 1
    mask = (1 << bits) - 1
    states = np.empty(1 << bits, dtype=np.int64)  # hash table of the hypotheses of a vertex, by state
    seen = np.empty(1 << bits, dtype=np.int64)  # hash table of successors already candidates

    for v in range(root + 1):
        goal = begin_state if v == root else -1
        states[:] = -1
        seen[:] = -1
        n_cand = 0
        for e in range(in_ptr[v], in_ptr[v + 1]):
            alive = weight[e] > -np.inf
            for t in range(tail_ptr[e], tail_ptr[e + 1]):
                u = tail[t]
                if hyp_ptr[u, 0] == hyp_ptr[u, 1]:
                    alive = False
                    break
                row[first_tail + t - tail_ptr[e]] = hyp_ptr[u, 0]
            if not alive:
                continue
            cand[n_cand, 0] = e
            cand[n_cand, 1:] = 0
            key[n_cand], _ = evaluate(
                lm, order, lm_weight, goal, end_word, e, tokens, tail_ptr, weight, numbers, scores, row
            )
            heap[n_cand] = n_cand
            n_cand += 1
        size = n_cand
        for at in range(size // 2 - 1, -1, -1):
            sift_down(heap, key, size, at)

        begin = n_hyps
        for _ in range(tries):
            if size == 0 or n_hyps - begin == pops:
                break
            c = heap[0]
            size -= 1
            heap[0] = heap[size]
            if size > 0:
                sift_down(heap, key, size, 0)
            e = cand[c, 0]
            n_tail = tail_ptr[e + 1] - tail_ptr[e]
            for t in range(n_tail):
                row[first_tail + t] = hyp_ptr[tail[tail_ptr[e] + t], 0] + cand[c, 1 + t]
            for t in range(n_tail, arity):
                row[first_tail + t] = -1
            score, estimate = evaluate(
                lm, order, lm_weight, goal, end_word, e, tokens, tail_ptr, weight, numbers, scores, row
            )
            h = np.int64(row[RIGHT])
            for x in range(N_LEFT, first_tail):
                h = h * 1000003 + row[x]
            h = (h ^ (h >> 17)) * 2654435761
            slot = (h ^ (h >> 29)) & mask
            while states[slot] >= 0:
                other, same = states[slot], True
                for x in range(RIGHT, first_tail):
                    if numbers[other, x] != row[x]:
                        same = False
                        break
                if same:
                    break
                slot = (slot + 1) & mask
            if states[slot] < 0 or score > scores[states[slot], 0]:
                if states[slot] < 0:
                    if n_hyps == numbers.shape[0]:
                        numbers = np.concatenate((numbers, np.empty_like(numbers)))
                        scores = np.concatenate((scores, np.empty_like(scores)))
                    states[slot] = n_hyps
                    n_hyps += 1
                numbers[states[slot]] = row
                scores[states[slot], 0], scores[states[slot], 1] = score, estimate
            for t in range(n_tail):  # the next hypothesis of each tail vertex
                u = tail[tail_ptr[e] + t]
                if hyp_ptr[u, 0] + cand[c, 1 + t] + 1 >= hyp_ptr[u, 1]:
                    continue
                for x in range(1 + arity):
                    cand[n_cand, x] = cand[c, x]
                cand[n_cand, 1 + t] += 1
                h = np.int64(0)
                for x in range(1 + arity):
                    h = h * 1000003 + cand[n_cand, x]
                h = (h ^ (h >> 17)) * 2654435761
                slot = (h ^ (h >> 29)) & mask
                fresh = True
                while seen[slot] >= 0:
                    same = True
                    for x in range(1 + arity):
                        if cand[seen[slot], x] != cand[n_cand, x]:
                            same = False
                            break
                    if same:
                        fresh = False
                        break
                    slot = (slot + 1) & mask
                if not fresh:
                    continue
                seen[slot] = n_cand
                for x in range(n_tail):
                    row[first_tail + x] = hyp_ptr[tail[tail_ptr[e] + x], 0] + cand[n_cand, 1 + x]
                key[n_cand], _ = evaluate(
                    lm, order, lm_weight, goal, end_word, e, tokens, tail_ptr, weight, numbers, scores, row
                )
                at = size
                size += 1
                heap[at] = n_cand
                while at > 0:  # up
                    above = (at - 1) // 2
                    if key[heap[above]] >= key[heap[at]]:
                        break
                    heap[above], heap[at] = heap[at], heap[above]
                    at = above
                n_cand += 1

        found = np.argsort(-scores[begin:n_hyps, 0], kind="mergesort")
        beam, values = numbers[begin:n_hyps].copy(), scores[begin:n_hyps].copy()
        for x in range(found.shape[0]):
            numbers[begin + x] = beam[found[x]]
            scores[begin + x] = values[found[x]]
        hyp_ptr[v, 0], hyp_ptr[v, 1] = begin, n_hyps
    return numbers[:n_hyps].copy(), scores[:n_hyps].copy(), hyp_ptr
