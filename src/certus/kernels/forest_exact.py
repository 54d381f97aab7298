"""An n-gram language model over a translation forest: optimistic bigram scores, and the exact search they bound.

With a multiplier u[v, w] for each pair of adjacent words, the language-model score of a string x_1 .. x_m between <s>
and </s> is, whatever u is (u[., </s>] = 0),

    sum_i  p(x_i | .. x_{i-2} x_{i-1}) + u[x_{i-2}, x_{i-1}] - u[x_{i-1}, x_i],

and so at most the sum over i of

    q[x_{i-1}, x_i]  =  max over t of  ( p(x_i | .. t x_{i-1}) + u[t, x_{i-1}] )  -  u[x_{i-1}, x_i],

t running over the words that may stand before x_{i-1}. Under q the forest is decoded exactly (``forest_bigram``), and
the outside scores found there bound every completion in the search below. u tightens q: it is lowered where the best t
is chosen but not there, and raised where a pair is there but not chosen.

Log probabilities are multiplied by the weight of the language model. Words are numbered within the forest, 0 is <s>,
1 is </s>; ``lm_word`` gives their numbers in the model.
"""

import numpy as np
from numba import njit

from certus.kernels.forest_bigram import APPEND, BEGIN, CHAIN, END, HOOK, JOIN, NODE, WORD
from certus.kernels.language_model import advance, first_slot

BITS = 21  # a word of a left context, plus 1, takes so many bits; three words fill an int64
MASK = (1 << BITS) - 1


@njit(cache=True, nogil=True)
def _held(lm, state, word):
    """Slot of the n-gram (state, word), or -1 if the model must back off for it."""
    n_slots = np.uint64(lm.slots.shape[0] // 3)
    key = (np.int64(state) << 32) | np.int64(word)
    i = first_slot(key, n_slots)
    while True:
        found = lm.slots[np.uint64(3) * i]
        if found == key:
            return np.int64(i)
        if found == -1:
            return np.int64(-1)
        i += np.uint64(1)
        if i == n_slots:
            i = np.uint64(0)


@njit(cache=True, nogil=True)
def tables(lm, begin_state, order, weight, lm_word, allowed):
    """What ``optimistic`` needs of the model for the words of a forest; ``allowed`` (W, W): pairs that can be adjacent.

    Returns pair (W, W), log p(w | v); back (W, W), the most that backing off from a history that ends in t, v to v may
    cost; and the n-grams of three words or more: those that end in v, w are range(ptr[v W + w], ptr[v W + w + 1]),
    with the word before v in ``before`` and their value, raised by what a longer history may add, in ``value``.
    """
    n_words = allowed.shape[0]
    pair = np.full((n_words, n_words), -np.inf)
    back = np.zeros((n_words, n_words))
    state_of = np.empty(n_words, np.int64)
    for v in range(n_words):
        state_of[v] = begin_state if v == BEGIN else np.int64(lm.unigram_state[lm_word[v]])
    size = 1024
    state = np.empty(size, np.int64)
    older = np.empty(size, np.int64)
    newer = np.empty(size, np.int64)
    n = 0
    for v in range(n_words):
        for w in range(n_words):
            if not allowed[v, w]:
                continue
            p, s = advance(lm, np.int32(state_of[v]), lm_word[w])
            pair[v, w] = weight * p
            if w != END and lm.state_length[s] > 1:
                if n == size:
                    size *= 2
                    state = np.concatenate((state, np.empty(n, np.int64)))
                    older = np.concatenate((older, np.empty(n, np.int64)))
                    newer = np.concatenate((newer, np.empty(n, np.int64)))
                state[n] = s
                older[n] = v
                newer[n] = w
                n += 1
    room = 4096
    gram_v = np.empty(room, np.int64)
    gram_w = np.empty(room, np.int64)
    gram_t = np.empty(room, np.int64)
    gram_state = np.empty(room, np.int64)
    gram_value = np.empty(room)
    n_grams = 0
    k = 0
    while k < n:  # grows while it is read: contexts of one word more are added behind
        for w in range(n_words):
            if not allowed[newer[k], w]:
                continue
            i = _held(lm, state[k], lm_word[w])
            if i < 0:
                continue
            if n_grams == room:
                room *= 2
                gram_v = np.concatenate((gram_v, np.empty(n_grams, np.int64)))
                gram_w = np.concatenate((gram_w, np.empty(n_grams, np.int64)))
                gram_t = np.concatenate((gram_t, np.empty(n_grams, np.int64)))
                gram_state = np.concatenate((gram_state, np.empty(n_grams, np.int64)))
                gram_value = np.concatenate((gram_value, np.empty(n_grams)))
            gram_t[n_grams] = older[k]
            gram_v[n_grams] = newer[k]
            gram_w[n_grams] = w
            gram_state[n_grams] = state[k]
            gram_value[n_grams] = weight * lm.values[3 * i + 1]
            n_grams += 1
            s = lm.slots[3 * i + 2]
            if w != END and lm.state_length[s] > 2 and lm.state_length[s] > lm.state_length[state[k]]:
                if n == size:
                    size *= 2
                    state = np.concatenate((state, np.empty(n, np.int64)))
                    older = np.concatenate((older, np.empty(n, np.int64)))
                    newer = np.concatenate((newer, np.empty(n, np.int64)))
                state[n] = s
                older[n] = newer[k]
                newer[n] = w
                n += 1
        k += 1
    raised = np.zeros(lm.back_off.shape[0] if order > 3 else 0)
    known = np.zeros((n_words, n_words), np.bool_)
    for k in range(n):
        cost = 0.0
        s = state[k]
        while lm.state_length[s] > 1:
            cost += weight * lm.back_off[s]
            s = np.int64(lm.state_suffix[s])
            if order > 3 and lm.state_length[s] > 1 and cost > raised[s]:
                raised[s] = cost
        if not known[older[k], newer[k]]:
            known[older[k], newer[k]] = True
            back[older[k], newer[k]] = cost
        elif cost > back[older[k], newer[k]]:
            back[older[k], newer[k]] = cost
    ptr = np.zeros(n_words * n_words + 1, np.int64)
    for i in range(n_grams):
        ptr[gram_v[i] * n_words + gram_w[i] + 1] += 1
    for i in range(n_words * n_words):
        ptr[i + 1] += ptr[i]
    fill = ptr[:-1].copy()
    before = np.empty(n_grams, np.int64)
    value = np.empty(n_grams)
    for i in range(n_grams):
        at = fill[gram_v[i] * n_words + gram_w[i]]
        fill[gram_v[i] * n_words + gram_w[i]] += 1
        before[at] = gram_t[i]
        value[at] = gram_value[i] + (raised[gram_state[i]] if order > 3 else 0.0)
    return pair, back, ptr, before, value


@njit(cache=True, nogil=True)
def optimistic(pair, back, ptr, before, value, order, u, allowed, q, chosen):
    """q[v, w] <- the score above, -inf where the pair is not allowed; chosen[v, w] <- the t taken, -1 after <s>.

    Exact maximum up to trigrams; above, every history may use the best back-off of any longer one.
    """
    n_words = pair.shape[0]
    mark = np.full(n_words, -1, np.int64)
    cost = np.empty(n_words)
    word = np.empty(n_words, np.int64)
    for v in range(n_words):
        n = 0
        if v != BEGIN:
            for t in range(n_words):
                if allowed[t, v]:
                    cost[n] = -(back[t, v] + u[t, v])
                    word[n] = t
                    n += 1
        rank = np.argsort(cost[:n], kind="mergesort")
        for w in range(n_words):
            q[v, w] = -np.inf
            chosen[v, w] = -1
            if not allowed[v, w]:
                continue
            if v == BEGIN:
                q[v, w] = pair[v, w] - u[v, w]
                continue
            best = -np.inf
            for i in range(ptr[v * n_words + w], ptr[v * n_words + w + 1]):
                t = before[i]
                if order <= 3:
                    mark[t] = w
                if allowed[t, v] and value[i] + u[t, v] > best:
                    best = value[i] + u[t, v]
                    chosen[v, w] = t
            for r in range(n):
                t = word[rank[r]]
                if mark[t] != w:
                    if pair[v, w] - cost[rank[r]] > best:
                        best = pair[v, w] - cost[rank[r]]
                        chosen[v, w] = t
                    break
            q[v, w] = best - u[v, w]
        mark[:] = -1


@njit(cache=True, nogil=True)
def move(pairs, n_pairs, chosen, u, step_scale, excess):
    """One step on the multipliers, from the pairs of the best derivation and what each chose; returns its length.

    The step is step_scale * excess / |subgradient|^2 (Polyak); 0 if every choice agrees with what stands there.
    """
    n_words = chosen.shape[0]
    key = np.empty(2 * n_pairs, np.int64)
    sign = np.empty(2 * n_pairs)
    n = 0
    for i in range(n_pairs):
        v = pairs[i, 0]
        w = pairs[i, 1]
        if chosen[v, w] >= 0:
            key[n] = chosen[v, w] * n_words + v
            sign[n] = 1.0
            n += 1
        if w != END:
            key[n] = v * n_words + w
            sign[n] = -1.0
            n += 1
    order = np.argsort(key[:n], kind="mergesort")
    norm = 0.0
    for repeat in range(2):
        i = 0
        while i < n:
            total = 0.0
            k = key[order[i]]
            while i < n and key[order[i]] == k:
                total += sign[order[i]]
                i += 1
            if repeat == 0:
                norm += total * total
            else:
                u[k // n_words, k % n_words] -= step_scale * excess / norm * total
        if norm == 0.0:
            return 0.0
    return step_scale * excess / norm


@njit(cache=True, nogil=True)
def _left_word(left0, left1, k):
    return (left0 >> (BITS * k)) & MASK if k < 3 else (left1 >> (BITS * (k - 3))) & MASK


@njit(cache=True, nogil=True)
def _step(lm, weight, lm_word, full, q, u, left0, left1, state, prev, last, count, score, w):
    """An item with the word w after it. Words with too little context before them add q, the others their exact score.

    ``full`` is order - 1: as many words as the model looks at; ``count`` is how many the item has, at most so many.
    """
    if count < full:
        if count == 0:
            _, state = advance(lm, np.int32(0), lm_word[w])
        else:
            _, state = advance(lm, np.int32(state), lm_word[w])
            score += q[last, w]
        if count < 3:
            left0 |= (w + 1) << (BITS * count)
        else:
            left1 |= (w + 1) << (BITS * (count - 3))
        count += 1
    else:
        p, state = advance(lm, np.int32(state), lm_word[w])
        score += weight * p
        if full > 1:
            if prev >= 0:
                score += u[prev, last]
            score -= u[last, w]
    return left0, left1, np.int64(state), last if full > 1 else np.int64(-1), w, count, score


@njit(cache=True, nogil=True)
def _grown(array, n):
    """The same array with room for twice n."""
    longer = np.empty((2 * n, *array.shape[1:]), array.dtype)
    longer[:n] = array[:n]
    return longer


@njit(cache=True, nogil=True)
def _slot(slots, item, piece, left0, left1, state, prev, last):
    """Slot of the item with this signature, or the empty one where it belongs."""
    mask = np.uint64(slots.shape[0] - 1)
    h = np.uint64(left0) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(left1)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(state)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0x94D049BB133111EB) + np.uint64(prev + 1) * np.uint64(1 << 22)
    h = (h ^ (h >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(last)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(piece)
    i = (h ^ (h >> np.uint64(32))) & mask
    while slots[i] >= 0:
        k = slots[i]
        if (
            item[k, 0] == piece
            and item[k, 1] == left0
            and item[k, 2] == left1
            and item[k, 3] == state
            and item[k, 4] == prev
            and item[k, 5] == last
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

    Returns status (0 done, 1 out of budget), lost (largest bound of an item that the beam dropped), item (n, 8), score
    (n,), way (k, 4), way_score (k,) and the number of combinations. item[i] is piece, two numbers that pack the first
    words, state, last word but one, last word, number of first words, best way; the last item is the top's if there is
    any. way[k] is (item, left part or -1, right part or -1, edge or -1); with ``all_ways`` every way to make an item is
    listed, else only the best. Parts of an item stand before it.
    """
    full = max(order, 2) - 1
    n_pieces = g.kind.shape[0]
    n_words = q.shape[0]
    item = np.empty((1024, 8), np.int64)
    score = np.empty(1024)
    bound = np.empty(1024)
    way = np.empty((1024, 4), np.int64)
    way_score = np.empty(1024)
    slots = np.full(4096, -1, np.int64)
    kept = np.empty(1024, np.int64)  # items of the pieces, piece by piece: what combinations run over
    kept_ptr = np.zeros(n_pieces + 1, np.int64)
    n = 0
    n_ways = 0
    n_kept = 0
    tried = 0
    lost = -np.inf
    row_of = np.empty(n_words, np.int64)
    column_of = np.empty(n_words, np.int64)
    for p in range(n_pieces):
        kind = g.kind[p]
        first_item = n
        kept_ptr[p + 1] = n_kept
        if kind == HOOK or g.offset[p] == g.offset[p + 1]:
            continue
        f0 = g.set_ptr[g.first[p]]
        l0 = g.set_ptr[g.last[p]]
        rows = g.set_ptr[g.first[p] + 1] - f0
        m = g.set_ptr[g.last[p] + 1] - l0
        row_of[:] = -1
        column_of[:] = -1
        for i in range(rows):
            row_of[g.word[f0 + i]] = i
        for j in range(m):
            column_of[g.word[l0 + j]] = j
        start, stop = (g.edge_ptr[g.left[p]], g.edge_ptr[g.left[p] + 1]) if kind == NODE else (0, 1)
        for e in range(start, stop):
            # x, then y if there is one, then the word w if there is one
            x, y, w, edge, gain = -1, -1, -1, -1, 0.0
            if kind == NODE:
                x = g.edge_left[e]
                y = -1 if g.edge_right[e] < 0 else g.right[g.edge_right[e]]
                edge = g.edge_id[e]
                gain = g.edge_weight[e]
            elif kind == WORD:
                w = g.left[p]
            elif kind == APPEND:
                x = g.left[p]
                w = g.right[p]
            elif kind == JOIN:
                x = g.left[p]
                y = g.right[g.right[p]]
            elif kind == CHAIN:
                x = g.left[p]
                y = g.right[p]
            a0, a1 = (0, 1) if x < 0 else (kept_ptr[x], kept_ptr[x + 1])
            b0, b1 = (0, 1) if y < 0 else (kept_ptr[y], kept_ptr[y + 1])
            for ai in range(a0, a1):
                a = -1 if x < 0 else kept[ai]
                for bi in range(b0, b1):
                    tried += 1
                    if tried > budget:
                        return 1, lost, item[:n], score[:n], way[:n_ways], way_score[:n_ways], tried
                    b = -1
                    if a < 0:
                        left0, left1, state, prev, last, count, s = 0, 0, 0, -1, -1, 0, gain
                        if w == BEGIN:
                            left0, state, last, count = BEGIN + 1, np.int64(begin_state), BEGIN, full
                        else:
                            left0, left1, state, prev, last, count, s = _step(
                                lm, weight, lm_word, full, q, u, left0, left1, state, prev, last, count, s, w
                            )
                    else:
                        left0 = item[a, 1]
                        left1 = item[a, 2]
                        state = item[a, 3]
                        prev = item[a, 4]
                        last = item[a, 5]
                        count = item[a, 6]
                        s = score[a] + gain
                        row = row_of[(left0 & MASK) - 1]
                        if row < 0:
                            continue
                        if y >= 0:
                            b = kept[bi]
                            c0 = item[b, 1]
                            c1 = item[b, 2]
                            next_word = (c0 & MASK) - 1
                            column = column_of[item[b, 5]]
                            if column < 0 or not allowed[last, next_word]:
                                continue
                            s += score[b]
                            if s + q[last, next_word] + out[g.offset[p] + row * m + column] < least:
                                continue
                            before = -1
                            for k in range(item[b, 6]):
                                word = _left_word(c0, c1, k) - 1
                                if before >= 0:
                                    s -= q[before, word]
                                before = word
                                left0, left1, state, prev, last, count, s = _step(
                                    lm, weight, lm_word, full, q, u, left0, left1, state, prev, last, count, s, word
                                )
                            if item[b, 6] == full:
                                state = item[b, 3]
                                prev = item[b, 4]
                                last = item[b, 5]
                        elif w >= 0:
                            if not allowed[last, w]:
                                continue
                            left0, left1, state, prev, last, count, s = _step(
                                lm, weight, lm_word, full, q, u, left0, left1, state, prev, last, count, s, w
                            )
                    row = row_of[(left0 & MASK) - 1]
                    column = column_of[last]
                    if row < 0 or column < 0:
                        continue
                    if p == n_pieces - 1:  # nothing follows the top: all its items are one
                        state, prev = np.int64(0), np.int64(-1)
                    total = s + out[g.offset[p] + row * m + column]
                    if not total >= least:
                        continue
                    at = _slot(slots, item, p, left0, left1, state, prev, last)
                    i = slots[at]
                    new = i < 0
                    if new:
                        if n == item.shape[0]:
                            item = _grown(item, n)
                            score = _grown(score, n)
                            bound = _grown(bound, n)
                        if 2 * n > slots.shape[0]:
                            slots = np.full(4 * slots.shape[0], -1, np.int64)
                            for k in range(n):
                                slots[
                                    _slot(
                                        slots,
                                        item,
                                        item[k, 0],
                                        item[k, 1],
                                        item[k, 2],
                                        item[k, 3],
                                        item[k, 4],
                                        item[k, 5],
                                    )
                                ] = k
                            at = _slot(slots, item, p, left0, left1, state, prev, last)
                        i = n
                        n += 1
                        slots[at] = i
                        item[i, 0] = p
                        item[i, 1] = left0
                        item[i, 2] = left1
                        item[i, 3] = state
                        item[i, 4] = prev
                        item[i, 5] = last
                        item[i, 6] = count
                        item[i, 7] = -1
                        score[i] = -np.inf
                    better = s > score[i]
                    if better:
                        score[i] = s
                        bound[i] = total
                    if all_ways or new:
                        if n_ways == way.shape[0]:
                            way = _grown(way, n_ways)
                            way_score = _grown(way_score, n_ways)
                        k = n_ways
                        n_ways += 1
                    else:
                        k = item[i, 7]
                    if better or all_ways:
                        way[k, 0] = i
                        way[k, 1] = a
                        way[k, 2] = b
                        way[k, 3] = edge
                        way_score[k] = s
                    if better:
                        item[i, 7] = k
        if n_kept + n - first_item > kept.shape[0]:
            longer = np.empty(2 * (n_kept + n - first_item), np.int64)
            longer[:n_kept] = kept[:n_kept]
            kept = longer
        cut = -np.inf
        if beam > 0 and n - first_item > beam:
            cut = np.sort(bound[first_item:n])[n - first_item - beam]
        room = beam if beam > 0 else n - first_item
        for i in range(first_item, n):
            if bound[i] >= cut and room > 0:
                kept[n_kept] = i
                n_kept += 1
                room -= 1
            elif bound[i] > lost:
                lost = bound[i]
        kept_ptr[p + 1] = n_kept
    return 0, lost, item[:n], score[:n], way[:n_ways], way_score[:n_ways], tried
