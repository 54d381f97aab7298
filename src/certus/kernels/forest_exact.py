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

from certus.kernels.forest_bigram import APPEND, BEGIN, CHAIN, END, HOOK, JOIN, NODE, WORD, grown
from certus.kernels.language_model import first_slot, look_up

BITS = 21  # a word of a left context, plus 1, takes so many bits; three words fill an int64
MASK = (1 << BITS) - 1


@njit(cache=True, nogil=True)
def _held(slots, state, word):
    """Slot of the n-gram (state, word), or -1 if the model must back off for it."""
    n_slots = np.uint64(slots.shape[0] // 3)
    key = (np.int64(state) << 32) | np.int64(word)
    i = first_slot(key, n_slots)
    while True:
        found = slots[np.uint64(3) * i]
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
    slots = lm.slots
    values = lm.values
    unigram = lm.unigram
    unigram_state = lm.unigram_state
    back_off = lm.back_off
    suffix = lm.state_suffix
    length = lm.state_length
    n_words = allowed.shape[0]
    pair = np.full((n_words, n_words), -np.inf)
    back = np.zeros((n_words, n_words))
    state_of = np.empty(n_words, np.int64)
    for v in range(n_words):
        state_of[v] = begin_state if v == BEGIN else np.int64(unigram_state[lm_word[v]])
    state = np.empty(1024, np.int64)
    older = np.empty(1024, np.int64)
    newer = np.empty(1024, np.int64)
    n = 0
    for v in range(n_words):
        for w in range(n_words):
            if not allowed[v, w]:
                continue
            p, s = look_up(slots, values, unigram, unigram_state, back_off, suffix, state_of[v], lm_word[w])
            pair[v, w] = weight * p
            if w != END and length[s] > 1:
                if n == state.shape[0]:
                    state = grown(state)
                    older = grown(older)
                    newer = grown(newer)
                state[n] = s
                older[n] = v
                newer[n] = w
                n += 1
    gram_v = np.empty(4096, np.int64)
    gram_w = np.empty(4096, np.int64)
    gram_t = np.empty(4096, np.int64)
    gram_state = np.empty(4096, np.int64)
    gram_value = np.empty(4096)
    n_grams = 0
    k = 0
    while k < n:  # grows while it is read: contexts of one word more are added behind
        for w in range(n_words):
            if not allowed[newer[k], w]:
                continue
            i = _held(slots, state[k], lm_word[w])
            if i < 0:
                continue
            if n_grams == gram_v.shape[0]:
                gram_v = grown(gram_v)
                gram_w = grown(gram_w)
                gram_t = grown(gram_t)
                gram_state = grown(gram_state)
                gram_value = grown(gram_value)
            gram_t[n_grams] = older[k]
            gram_v[n_grams] = newer[k]
            gram_w[n_grams] = w
            gram_state[n_grams] = state[k]
            gram_value[n_grams] = weight * values[3 * i + 1]
            n_grams += 1
            s = slots[3 * i + 2]
            if w != END and length[s] > 2 and length[s] > length[state[k]]:
                if n == state.shape[0]:
                    state = grown(state)
                    older = grown(older)
                    newer = grown(newer)
                state[n] = s
                older[n] = newer[k]
                newer[n] = w
                n += 1
        k += 1
    raised = np.zeros(back_off.shape[0] if order > 3 else 0)
    known = np.zeros((n_words, n_words), np.bool_)
    for k in range(n):
        cost = 0.0
        s = state[k]
        while length[s] > 1:
            cost += weight * back_off[s]
            s = np.int64(suffix[s])
            if order > 3 and length[s] > 1 and cost > raised[s]:
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
    fill = ptr.copy()
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
    for v in range(n_words):
        top = -1  # the word before v that backs off best
        for t in range(n_words):
            if v != BEGIN and allowed[t, v] and (top < 0 or back[t, v] + u[t, v] > back[top, v] + u[top, v]):
                top = t
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
            start, stop = top, top + 1
            if top >= 0 and mark[top] == w:  # it has an n-gram and need not back off: look for the next
                start, stop = 0, n_words
            for t in range(start, stop):
                if t >= 0 and allowed[t, v] and mark[t] != w and pair[v, w] + back[t, v] + u[t, v] > best:
                    best = pair[v, w] + back[t, v] + u[t, v]
                    chosen[v, w] = t
            q[v, w] = best - u[v, w]
        for t in range(n_words):
            mark[t] = -1


@njit(cache=True, nogil=True)
def move(pairs, n_pairs, chosen, u, gradient, step_scale, excess):
    """One step on the multipliers, from the pairs of the best derivation and what each chose; returns its length.

    The step is step_scale * excess / |subgradient|^2 (Polyak); 0 if the subgradient vanishes. ``gradient`` (W, W) is
    zero before and after.
    """
    norm = 0.0
    for i in range(n_pairs):
        v = pairs[i, 0]
        w = pairs[i, 1]
        if chosen[v, w] >= 0:
            gradient[chosen[v, w], v] += 1.0
        if w != END:
            gradient[v, w] -= 1.0
    cell = np.empty((2 * n_pairs, 2), np.int64)
    value = np.empty(2 * n_pairs)
    n = 0
    for i in range(2 * n_pairs):
        v = pairs[i // 2, 0]
        w = pairs[i // 2, 1]
        if i % 2 == 1:
            w = v
            v = chosen[v, pairs[i // 2, 1]]
        if v >= 0 and w != END and gradient[v, w] != 0.0:
            cell[n, 0] = v
            cell[n, 1] = w
            value[n] = gradient[v, w]
            norm += value[n] * value[n]
            gradient[v, w] = 0.0
            n += 1
    if norm == 0.0:
        return 0.0
    for i in range(n):
        u[cell[i, 0], cell[i, 1]] -= step_scale * excess / norm * value[i]
    return step_scale * excess / norm


@njit(cache=True, nogil=True)
def _left_word(left0, left1, k):
    return (left0 >> (BITS * k)) & MASK if k < 3 else (left1 >> (BITS * (k - 3))) & MASK


@njit(cache=True, nogil=True)
def _step(
    slots,
    values,
    unigram,
    unigram_state,
    back_off,
    suffix,
    weight,
    lm_word,
    full,
    q,
    u,
    left0,
    left1,
    state,
    prev,
    last,
    count,
    score,
    w,
):
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
def _largest(values, start, stop, k):
    """The k-th largest of values[start:stop], 1 <= k <= stop - start (quickselect on a copy)."""
    copy = np.empty(stop - start)
    for i in range(start, stop):
        copy[i - start] = values[i]
    low = 0
    high = stop - start - 1
    while low < high:
        pivot = copy[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while copy[i] > pivot:
                i += 1
            while copy[j] < pivot:
                j -= 1
            if i <= j:
                copy[i], copy[j] = copy[j], copy[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return copy[k - 1]


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
    g_edge_id = g.edge_id
    g_edge_left = g.edge_left
    g_edge_ptr = g.edge_ptr
    g_edge_right = g.edge_right
    g_edge_weight = g.edge_weight
    g_first = g.first
    g_kind = g.kind
    g_last = g.last
    g_left = g.left
    g_offset = g.offset
    g_right = g.right
    g_set_ptr = g.set_ptr
    g_word = g.word
    lm_slots = lm.slots
    values = lm.values
    unigram = lm.unigram
    unigram_state = lm.unigram_state
    back_off = lm.back_off
    suffix = lm.state_suffix
    full = max(order, 2) - 1
    n_pieces = g_kind.shape[0]
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
        kind = g_kind[p]
        first_item = n
        kept_ptr[p + 1] = n_kept
        if kind == HOOK or g_offset[p] == g_offset[p + 1] or status != 0:
            continue
        f0 = g_set_ptr[g_first[p]]
        f1 = g_set_ptr[g_first[p] + 1]
        l0 = g_set_ptr[g_last[p]]
        l1 = g_set_ptr[g_last[p] + 1]
        m = l1 - l0
        for i in range(f0, f1):
            row_of[g_word[i]] = i - f0
        for i in range(l0, l1):
            column_of[g_word[i]] = i - l0
        start = zero
        stop = zero + 1
        if kind == NODE:
            start = g_edge_ptr[g_left[p]]
            stop = g_edge_ptr[g_left[p] + 1]
        for e in range(start, stop):
            # x, then y if there is one, then the word w if there is one
            x = none
            y = none
            w = none
            edge = none
            gain = 0.0
            if kind == NODE:
                x = g_edge_left[e]
                if g_edge_right[e] >= 0:
                    y = g_right[g_edge_right[e]]
                edge = g_edge_id[e]
                gain = g_edge_weight[e]
            elif kind == WORD:
                w = g_left[p]
            elif kind == APPEND:
                x = g_left[p]
                w = g_right[p]
            elif kind == JOIN:
                x = g_left[p]
                y = g_right[g_right[p]]
            elif kind == CHAIN:
                x = g_left[p]
                y = g_right[p]
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
                        if s + q[last, following] + out[g_offset[p] + row * m + column] < least:
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
                            lm_slots,
                            values,
                            unigram,
                            unigram_state,
                            back_off,
                            suffix,
                            weight,
                            lm_word,
                            full,
                            q,
                            u,
                            left0,
                            left1,
                            state,
                            prev,
                            last,
                            count,
                            s,
                            word,
                        )
                    if y >= 0 and n_steps == full:
                        state = item[8 * b + 3]
                        prev = item[8 * b + 4]
                        last = item[8 * b + 5]
                    row = row_of[(left0 & MASK) - 1]
                    column = column_of[last]
                    if row < 0 or column < 0:
                        continue
                    total = s + out[g_offset[p] + row * m + column]
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
                            item = grown(item)
                            score = grown(score)
                            bound = grown(bound)
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
                            way = grown(way)
                            way_score = grown(way_score)
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
        for i in range(f0, f1):
            row_of[g_word[i]] = -1
        for i in range(l0, l1):
            column_of[g_word[i]] = -1
        room = n - first_item
        cut = -np.inf
        if beam > 0 and room > beam:
            room = zero + beam
            cut = _largest(bound, first_item, n, room)
        for i in range(first_item, n):
            if bound[i] >= cut and room > 0:
                if n_kept == kept.shape[0]:
                    kept = grown(kept)
                kept[n_kept] = i
                n_kept += 1
                room -= 1
            elif bound[i] > lost:
                lost = bound[i]
        kept_ptr[p + 1] = n_kept
    return status, lost, item[: 8 * n], score[:n], way[: 4 * n_ways], way_score[:n_ways], tried
