"""Exact search in a translation forest under an n-gram language model, bounded by optimistic bigram scores.

``bigram_scores`` tells what q and u are. Words are numbered within the forest, 0 is <s>; ``lm_word`` gives their
numbers in the model.
"""

import numpy as np

from certus.kernels.arrays import largest, longer
from certus.kernels.compiling import njit
from certus.kernels.forest_pieces import APPEND, BEGIN, CHAIN, HOOK, JOIN, NODE, WORD
from certus.kernels.language_model import look_up

BITS = 21  # a word of a left context, plus 1, takes so many bits; three words fill an int64
MASK = (1 << BITS) - 1


@njit(cache=True, nogil=True)
def _left_word(left0, left1, k):
    return (left0 >> (BITS * k)) & MASK if k < 3 else (left1 >> (BITS * (k - 3))) & MASK


@njit(cache=True, nogil=True)
def _step(
    slots, values, unigram, unigram_state, back_off, suffix, weight, lm_word, full, q, u,
    left0, left1, state, prev, last, count, score, w,
):  # fmt: skip
    """An item with the word w after it. Words with too little context before them add q, the others their exact score.

    ``full`` is order - 1: as many words as the model looks at; ``count`` is how many the item has, at most so many.
    """
    if count == 0:
        state = np.int64(0)
    p, following = look_up(slots, values, unigram, unigram_state, back_off, suffix, state, lm_word[w])
    if count < full:
        if count > 0:
            score += q[last, w]
        if count < 3:
            left0 |= (w + 1) << (BITS * count)
        else:
            left1 |= (w + 1) << (BITS * (count - 3))
        count += 1
    else:
        score += weight * p
        if full > 1:
            if prev >= 0:
                score += u[prev, last]
            score -= u[last, w]
    return left0, left1, np.int64(following), last if full > 1 else np.int64(-1), w, count, score


@njit(cache=True, nogil=True)
def _slot(slots, item, piece, left0, left1, state, prev, last):
    """Slot of the item with this signature, or the empty one where it belongs."""
    mask = np.uint64(slots.shape[0] - 1)
    h = np.uint64(left0) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(left1)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(state)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0x94D049BB133111EB) + np.uint64(prev + 1)
    h = (h ^ (h >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(last)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(piece)
    i = (h ^ (h >> np.uint64(32))) & mask
    while slots[i] >= 0:
        k = 8 * slots[i]
        if (
            item[k] == piece
            and item[k + 1] == left0
            and item[k + 2] == left1
            and item[k + 3] == state
            and item[k + 4] == prev
            and item[k + 5] == last
        ):
            break
        i = (i + np.uint64(1)) & mask
    return i


@njit(cache=True, nogil=True)
def search(g, out, q, u, allowed, lm, begin_state, order, weight, lm_word, least, beam, budget, all_ways):
    """Exact items of the pieces, bottom-up, without those whose best completion is below ``least``.

    An item is a piece with its first words, the state of the model after its last, and its last two words; it scores
    its best derivation, the first words by q. ``out`` bounds every completion. With a ``beam`` above 0 only so many
    items of a piece are kept, the best by score + completion. Stops after ``budget`` combinations.

    Returns status (0 done, 1 out of budget), lost (largest bound of an item that the beam dropped), item (8 n,), score
    (n,), way (4 k,), way_score (k,) and the number of combinations. item[8 i:] is piece, two numbers that pack the
    first words, state, last word but one, last word, number of first words, best way; the last item is the top's if
    there is any. way[4 k:] is (item, left part or -1, right part or -1, edge or -1); with ``all_ways`` every way to
    make an item is listed, else only the best. Parts of an item stand before it.
    """
    kind, left, right, first, n_first, last_at, n_last, offset, words = g[:9]
    edge_ptr, edge_left, edge_right, edge_weight, edge_id = g[9:]
    lm_slots = lm.slots
    values = lm.values
    unigram = lm.unigram
    unigram_state = lm.unigram_state
    back_off = lm.back_off
    suffix = lm.state_suffix
    full = max(order, 2) - 1
    n_pieces = kind.shape[0]
    n_words = q.shape[0]
    none = np.int64(-1)
    zero = np.int64(0)
    item = np.empty(8 * 1024, np.int64)
    score = np.empty(1024)
    bound = np.empty(1024)
    way = np.empty(4 * 1024, np.int64)
    way_score = np.empty(1024)
    slots = np.full(4096, -1, np.int64)
    kept = np.empty(1024, np.int64)  # items of the pieces, piece by piece: what combinations run over
    kept_ptr = np.zeros(n_pieces + 1, np.int64)
    n = zero
    n_ways = zero
    n_kept = zero
    tried = 0
    status = 0
    lost = -np.inf
    row_of = np.full(n_words, -1, np.int64)
    column_of = np.full(n_words, -1, np.int64)
    for p in range(n_pieces):
        first_item = n
        kept_ptr[p + 1] = n_kept
        if kind[p] == HOOK or offset[p] == offset[p + 1] or status != 0:
            continue
        m = n_last[p]
        for i in range(n_first[p]):
            row_of[words[first[p] + i]] = i
        for i in range(m):
            column_of[words[last_at[p] + i]] = i
        start = zero
        stop = zero + 1
        if kind[p] == NODE:
            start = edge_ptr[left[p]]
            stop = edge_ptr[left[p] + 1]
        for e in range(start, stop):
            # x, then y if there is one, then the word w if there is one
            x = none
            y = none
            w = none
            edge = none
            gain = 0.0
            if kind[p] == NODE:
                x = edge_left[e]
                if edge_right[e] >= 0:
                    y = right[edge_right[e]]
                edge = edge_id[e]
                gain = edge_weight[e]
            elif kind[p] == WORD:
                w = left[p]
            elif kind[p] == APPEND:
                x = left[p]
                w = right[p]
            elif kind[p] == JOIN:
                x = left[p]
                y = right[right[p]]
            elif kind[p] == CHAIN:
                x = left[p]
                y = right[p]
            a0 = zero
            a1 = zero + 1
            b0 = zero
            b1 = zero + 1
            if x >= 0:
                a0 = kept_ptr[x]
                a1 = kept_ptr[x + 1]
            if y >= 0:
                b0 = kept_ptr[y]
                b1 = kept_ptr[y + 1]
            for ai in range(a0, a1):
                tried += b1 - b0
                if tried > budget:
                    status = 1
                    break
                for bi in range(b0, b1):
                    a = none
                    b = none
                    n_steps = zero  # words to be added one by one: those that begin y, or w
                    c0 = zero
                    c1 = zero
                    left0 = zero
                    left1 = zero
                    state = zero
                    prev = none
                    last = none
                    count = zero
                    s = gain
                    if x >= 0:
                        a = kept[ai]
                        left0 = item[8 * a + 1]
                        left1 = item[8 * a + 2]
                        state = item[8 * a + 3]
                        prev = item[8 * a + 4]
                        last = item[8 * a + 5]
                        count = item[8 * a + 6]
                        s += score[a]
                    if y >= 0:
                        b = kept[bi]
                        c0 = item[8 * b + 1]
                        c1 = item[8 * b + 2]
                        n_steps = item[8 * b + 6]
                        row = row_of[(left0 & MASK) - 1]
                        column = column_of[item[8 * b + 5]]
                        following = (c0 & MASK) - 1
                        if row < 0 or column < 0 or not allowed[last, following]:
                            continue
                        s += score[b]
                        if s + q[last, following] + out[offset[p] + row * m + column] < least:
                            continue
                    elif w == BEGIN:
                        left0 = zero + BEGIN + 1
                        state = np.int64(begin_state)
                        last = zero + BEGIN
                        count = zero + full
                    elif w >= 0:
                        if last >= 0 and not allowed[last, w]:
                            continue
                        c0 = w + 1
                        n_steps = zero + 1
                    before = none
                    for k in range(n_steps):
                        word = _left_word(c0, c1, k) - 1
                        if before >= 0:  # y has scored its first words by q; now they get what they are worth
                            s -= q[before, word]
                        before = word
                        left0, left1, state, prev, last, count, s = _step(
                            lm_slots, values, unigram, unigram_state, back_off, suffix, weight, lm_word, full, q, u,
                            left0, left1, state, prev, last, count, s, word,
                        )  # fmt: skip
                    if y >= 0 and n_steps == full:
                        state = item[8 * b + 3]
                        prev = item[8 * b + 4]
                        last = item[8 * b + 5]
                    row = row_of[(left0 & MASK) - 1]
                    column = column_of[last]
                    if row < 0 or column < 0:
                        continue
                    total = s + out[offset[p] + row * m + column]
                    if not total >= least:
                        continue
                    if p == n_pieces - 1:  # nothing follows the top: all its items are one
                        state = zero
                        prev = none
                    if 2 * n >= slots.shape[0]:
                        slots = np.full(4 * slots.shape[0], -1, np.int64)
                        for k in range(n):
                            j = 8 * k
                            at = _slot(
                                slots, item, item[j], item[j + 1], item[j + 2], item[j + 3], item[j + 4], item[j + 5]
                            )
                            slots[at] = k
                    at = _slot(slots, item, np.int64(p), left0, left1, state, prev, last)
                    i = slots[at]
                    new = i < 0
                    if new:
                        if n == score.shape[0]:
                            item = longer(item)
                            score = longer(score)
                            bound = longer(bound)
                        i = n
                        n += 1
                        slots[at] = i
                        item[8 * i] = p
                        item[8 * i + 1] = left0
                        item[8 * i + 2] = left1
                        item[8 * i + 3] = state
                        item[8 * i + 4] = prev
                        item[8 * i + 5] = last
                        item[8 * i + 6] = count
                        item[8 * i + 7] = -1
                        score[i] = -np.inf
                    k = item[8 * i + 7]
                    if all_ways or new:
                        if n_ways == way_score.shape[0]:
                            way = longer(way)
                            way_score = longer(way_score)
                        k = n_ways
                        n_ways += 1
                    if all_ways or s > score[i]:
                        way[4 * k] = i
                        way[4 * k + 1] = a
                        way[4 * k + 2] = b
                        way[4 * k + 3] = edge
                        way_score[k] = s
                    if s > score[i]:
                        score[i] = s
                        bound[i] = total
                        item[8 * i + 7] = k
            if status != 0:
                break
        for i in range(n_first[p]):
            row_of[words[first[p] + i]] = -1
        for i in range(m):
            column_of[words[last_at[p] + i]] = -1
        room = n - first_item
        cut = -np.inf
        if beam > 0 and room > beam:
            room = zero + beam
            cut = largest(bound[first_item:n], room)
        for i in range(first_item, n):
            if bound[i] >= cut and room > 0:
                if n_kept == kept.shape[0]:
                    kept = longer(kept)
                kept[n_kept] = i
                n_kept += 1
                room -= 1
            elif bound[i] > lost:
                lost = bound[i]
        kept_ptr[p + 1] = n_kept
    return status, lost, item[: 8 * n], score[:n], way[: 4 * n_ways], way_score[:n_ways], tried
