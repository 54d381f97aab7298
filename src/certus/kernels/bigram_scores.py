"""Optimistic scores of pairs of words under an n-gram language model, with multipliers.

With a multiplier u[v, w] for each pair of adjacent words, the language-model score of a string x_1 .. x_m between <s>
and </s> is, whatever u is (u[., </s>] = 0),

    sum_i  p(x_i | .. x_{i-2} x_{i-1}) + u[x_{i-2}, x_{i-1}] - u[x_{i-1}, x_i],

and so at most the sum over i of

    q[x_{i-1}, x_i]  =  max over t of  ( p(x_i | .. t x_{i-1}) + u[t, x_{i-1}] )  -  u[x_{i-1}, x_i],

t running over the words that may stand before x_{i-1}. Under q a forest is decoded exactly (``forest_bigram``), and
the outside scores found there bound every completion in the search for the best under the model itself
(``forest_exact``). u tightens q: it is lowered where the best t is chosen but not there, and raised where a pair is
there but not chosen.

Log probabilities are multiplied by the weight of the language model. Words are numbered within the forest, 0 is <s>,
1 is </s>; ``lm_word`` gives their numbers in the model.
"""

import numpy as np

from certus.kernels.arrays import longer
from certus.kernels.compiling import njit
from certus.kernels.forest_pieces import BEGIN, END
from certus.kernels.language_model import first_slot, look_up


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
                    state = longer(state)
                    older = longer(older)
                    newer = longer(newer)
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
                gram_v = longer(gram_v)
                gram_w = longer(gram_w)
                gram_t = longer(gram_t)
                gram_state = longer(gram_state)
                gram_value = longer(gram_value)
            gram_t[n_grams] = older[k]
            gram_v[n_grams] = newer[k]
            gram_w[n_grams] = w
            gram_state[n_grams] = state[k]
            gram_value[n_grams] = weight * values[3 * i + 1]
            n_grams += 1
            s = slots[3 * i + 2]
            if w != END and length[s] > 2 and length[s] > length[state[k]]:
                if n == state.shape[0]:
                    state = longer(state)
                    older = longer(older)
                    newer = longer(newer)
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
