"""Cube pruning: a beam of hypotheses per vertex of a forest, combined best first under a language model (heuristic).

A hypothesis is a translation of a vertex. What the words around it need to know of it is its state: the words at its
beginning whose probability depends on what stands before ("left", at most order - 1), whether these are all that can
depend on it ("closed"), and the language-model state at its end. Left words count as if nothing stood before them
("estimate", a natural logarithm) until an edge sets the hypothesis behind other words.

After words w1..wk from the empty state, no word further on depends on what stands before w1 as soon as no context of
the model is longer and ends in w1..wk: the state has fewer than k words, or is not extendable, or k = order - 1.

Forest arrays are those of certus/translation/forest.py, with the ids of the language model as words. Hypotheses lie in
flat arrays, those of vertex v in range(hyp_ptr[v, 0], hyp_ptr[v, 1]), best first. ``numbers`` (H, 3 + order + K) holds
per hypothesis: right state, number of left words, closed, the left words, the edge, and the K hypotheses of its
tail; ``scores`` (H, 2): score with the estimate in it, and the estimate.
"""

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.language_model import advance

RIGHT, N_LEFT, CLOSED, LEFT = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def evaluate(
    lm, length, extendable, order, lm_weight, begin_state, end_word, token_ptr, token, weight, numbers, scores, row
):
    """Scores the edge and the hypotheses of its tail that stand in row; fills the rest of row, its state.

    ``begin_state`` >= 0 asks for a whole sentence: from that state to ``end_word``. Returns (score, estimate).
    """
    room = order - 1
    e = row[LEFT + room]
    first_tail = LEFT + room + 1
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
                closed = n_left == room or length[q] < n_left or not extendable[q]
        if inner >= 0 and numbers[inner, CLOSED] == 1:
            q = numbers[inner, RIGHT]
    if begin_state >= 0:
        p, q = advance(lm, q, end_word)
        total += p
        q = np.int32(0)
    for x in range(n_left, room):
        row[LEFT + x] = -1
    row[RIGHT], row[N_LEFT], row[CLOSED] = q, n_left, 1 if closed else 0
    return score + lm_weight * total, estimate


@njit(cache=True, nogil=True)
def sift_down(heap, key, size, at):
    """Restores the heap of candidates, best key first, ties to the smaller number, from position ``at`` down."""
    item = heap[at]
    while 2 * at + 1 < size:
        c = 2 * at + 1
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
def slot_of(table, mask, rows, row, first, last):
    """Slot of a hash table of row numbers: of the row equal to ``row`` in columns first..last - 1, or an empty one."""
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
def cube_prune(
    lm, order, lm_weight, begin_state, end_word, in_ptr, tail_ptr, tail, token_ptr, token, weight, root, pops
):
    """Fills a beam of at most ``pops`` hypotheses per vertex; returns (numbers, scores, hyp_ptr).

    A candidate popped whose state is in the beam already is merged with it and not counted, up to as many again.
    The root's beam has whole sentences, the best one first; it is empty if there is none.
    """
    n_vertices = in_ptr.shape[0] - 1
    length, extendable = lm.state_length, lm.state_extendable
    arity, largest = 0, 0
    for e in range(weight.shape[0]):
        arity = max(arity, tail_ptr[e + 1] - tail_ptr[e])
    for v in range(n_vertices):
        largest = max(largest, in_ptr[v + 1] - in_ptr[v])
    edge_at = LEFT + order - 1
    first_tail = edge_at + 1
    width = first_tail + arity

    numbers = np.empty(((root + 1) * pops, width), dtype=np.int32)  # only what is used takes memory
    scores = np.empty(((root + 1) * pops, 2), dtype=np.float64)
    n_hyps = 0
    hyp_ptr = np.zeros((n_vertices, 2), dtype=np.int64)

    tries = 2 * pops  # pops, with those that are not counted
    room = max(pops, largest + tries * arity) + 1  # candidates of a vertex
    cand = np.empty((room, width), dtype=np.int32)  # hypotheses to be
    cand_score = np.empty((room, 2), dtype=np.float64)
    key = np.empty(room, dtype=np.float64)
    heap = np.empty(room, dtype=np.int64)
    bits = 4
    while (1 << bits) < 2 * max(pops, tries * arity):
        bits += 1
    mask = (1 << bits) - 1
    states = np.empty(1 << bits, dtype=np.int64)  # hash table of the hypotheses of a vertex, by state
    seen = np.empty(1 << bits, dtype=np.int64)  # hash table of the candidates made from others, by edge and tail

    for v in range(root + 1):
        goal = begin_state if v == root else -1
        states[:] = -1
        seen[:] = -1
        n_cand, size, begin = 0, 0, n_hyps
        for e in range(in_ptr[v], in_ptr[v + 1]):  # each edge over the best of its tail
            alive = weight[e] > -np.inf
            cand[n_cand, edge_at] = e
            for t in range(arity):
                cand[n_cand, first_tail + t] = -1
                if t < tail_ptr[e + 1] - tail_ptr[e]:
                    u = tail[tail_ptr[e] + t]
                    alive = alive and hyp_ptr[u, 0] < hyp_ptr[u, 1]
                    cand[n_cand, first_tail + t] = hyp_ptr[u, 0]
            if alive:
                n_cand += 1

        scored, tried = 0, 0
        while True:
            for c in range(scored, n_cand):  # score what is new, and push it
                score, estimate = evaluate(
                    lm,
                    length,
                    extendable,
                    order,
                    lm_weight,
                    goal,
                    end_word,
                    token_ptr,
                    token,
                    weight,
                    numbers,
                    scores,
                    cand[c],
                )
                cand_score[c, 0], cand_score[c, 1], key[c] = score, estimate, score
                at = size
                size += 1
                while at > 0 and key[heap[(at - 1) // 2]] < score:
                    heap[at] = heap[(at - 1) // 2]
                    at = (at - 1) // 2
                heap[at] = c
            scored = n_cand
            if size == 0 or tried == tries or n_hyps - begin == pops:
                break
            c = heap[0]
            size -= 1
            tried += 1
            heap[0] = heap[size]
            sift_down(heap, key, size, 0)

            slot = slot_of(states, mask, numbers, cand[c], 0, edge_at)
            if states[slot] < 0:
                states[slot] = n_hyps
                scores[n_hyps, 0] = -np.inf
                n_hyps += 1
            h = states[slot]
            if cand_score[c, 0] > scores[h, 0]:
                scores[h, 0], scores[h, 1] = cand_score[c, 0], cand_score[c, 1]
                for x in range(width):
                    numbers[h, x] = cand[c, x]

            e = cand[c, edge_at]
            for t in range(tail_ptr[e + 1] - tail_ptr[e]):  # the next hypothesis of each tail vertex
                if cand[c, first_tail + t] + 1 < hyp_ptr[tail[tail_ptr[e] + t], 1]:
                    for x in range(edge_at, width):
                        cand[n_cand, x] = cand[c, x]
                    cand[n_cand, first_tail + t] += 1
                    slot = slot_of(seen, mask, cand, cand[n_cand], edge_at, width)
                    if seen[slot] < 0:
                        seen[slot] = n_cand
                        n_cand += 1

        # Sort the beam, best first: the candidates are no longer needed and give the room.
        size = n_hyps - begin
        for x in range(size):
            key[x], heap[x] = scores[begin + x, 0], x
            cand_score[x, 0], cand_score[x, 1] = scores[begin + x, 0], scores[begin + x, 1]
            for y in range(width):
                cand[x, y] = numbers[begin + x, y]
        for at in range(size // 2 - 1, -1, -1):
            sift_down(heap, key, size, at)
        for h in range(begin, n_hyps):
            c = heap[0]
            size -= 1
            heap[0] = heap[size]
            sift_down(heap, key, size, 0)
            scores[h, 0], scores[h, 1] = cand_score[c, 0], cand_score[c, 1]
            for y in range(width):
                numbers[h, y] = cand[c, y]
        hyp_ptr[v, 0], hyp_ptr[v, 1] = begin, n_hyps
    return numbers, scores, hyp_ptr
