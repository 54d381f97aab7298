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

from typing import NamedTuple

import numpy as np

from certus.kernels.arrays import longer
from certus.kernels.compiling import njit
from certus.kernels.forest_pieces import BEGIN, END
from certus.kernels.language_model import advance, first_slot


class Tables(NamedTuple):
    """What ``optimistic`` needs of a model for the words of a forest.

    The n-grams of three words or more that end in v, w are range(ptr[v W + w], ptr[v W + w + 1]).
    """

    order: int
    pair: np.ndarray  # (W, W) log p(w | v)
    back: np.ndarray  # (W, W) the most that backing off from a history that ends in t, v to v may cost
    ptr: np.ndarray
    before: np.ndarray  # per n-gram: the word before v
    value: np.ndarray  # per n-gram: its log probability, raised by what a longer history may add


class _Contexts(NamedTuple):
    """Contexts of two words or more that the forest may have: their states, and their last two words."""

    state: np.ndarray
    older: np.ndarray
    newer: np.ndarray


@njit(cache=True, nogil=True, inline="always")
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
def _add(contexts, n, state, older, newer):
    """The contexts with one more, the n-th; in larger arrays if need be."""
    if n == contexts.state.shape[0]:
        contexts = _Contexts(longer(contexts.state), longer(contexts.older), longer(contexts.newer))
    contexts.state[n], contexts.older[n], contexts.newer[n] = state, older, newer
    return contexts


@njit(cache=True, nogil=True, inline="always")
def _pairs(lm, weight, lm_word, allowed):
    """(pair, contexts of two words, how many)."""
    n_words, n = allowed.shape[0], 0
    pair = np.full(allowed.shape, -np.inf)
    contexts = _Contexts(np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024, np.int64))
    for v in range(n_words):
        state = np.int32(lm.begin_state) if v == BEGIN else lm.unigram_state[lm_word[v]]
        for w in range(n_words):
            if allowed[v, w]:
                p, s = advance(lm, state, lm_word[w])
                pair[v, w] = weight * p
                if w != END and lm.state_length[s] > 1:
                    contexts = _add(contexts, n, np.int64(s), v, w)
                    n += 1
    return pair, contexts, n


@njit(cache=True, nogil=True, inline="always")
def _ngrams(lm, weight, lm_word, allowed, contexts, n):
    """(contexts, of any length now, how many; n-grams (m, 3): t, v, w; their states before w; their values)."""
    slots, values, length = lm.slots, lm.values, lm.state_length
    words, states, value = np.empty((4096, 3), np.int64), np.empty(4096, np.int64), np.empty(4096)
    m = 0
    k = 0
    while k < n:  # grows while it is read: contexts of one word more are added behind
        state, t, v = contexts.state[k], contexts.older[k], contexts.newer[k]
        for w in range(allowed.shape[0]):
            if not allowed[v, w]:
                continue
            i = _held(slots, state, lm_word[w])
            if i < 0:
                continue
            if m == value.shape[0]:
                words, states, value = longer(words), longer(states), longer(value)
            words[m, 0], words[m, 1], words[m, 2] = t, v, w
            states[m], value[m] = state, weight * values[3 * i + 1]
            m += 1
            s = slots[3 * i + 2]
            if w != END and length[s] > 2 and length[s] > length[state]:
                contexts = _add(contexts, n, s, v, w)
                n += 1
        k += 1
    return contexts, n, words[:m], states[:m], value[:m]


@njit(cache=True, nogil=True)
def tables(lm, weight, lm_word, allowed):
    """Tables of a model for words numbered ``lm_word`` in it; ``allowed`` (W, W): pairs that can be adjacent."""
    n_words, length, back_off, suffix = allowed.shape[0], lm.state_length, lm.back_off, lm.state_suffix
    pair, contexts, n = _pairs(lm, weight, lm_word, allowed)
    contexts, n, words, states, found = _ngrams(lm, weight, lm_word, allowed, contexts, n)
    back = np.zeros((n_words, n_words))
    raised = np.zeros(back_off.shape[0] if lm.order > 3 else 0)  # per state: what a longer one may back off to it for
    known = np.zeros((n_words, n_words), np.bool_)
    for k in range(n):
        cost = 0.0
        s = contexts.state[k]
        t, v = contexts.older[k], contexts.newer[k]
        while length[s] > 1:
            cost += weight * back_off[s]
            s = np.int64(suffix[s])
            if lm.order > 3 and length[s] > 1 and cost > raised[s]:
                raised[s] = cost
        if not known[t, v] or cost > back[t, v]:
            known[t, v] = True
            back[t, v] = cost
    ptr = np.zeros(n_words * n_words + 1, np.int64)
    for i in range(found.shape[0]):
        ptr[words[i, 1] * n_words + words[i, 2] + 1] += 1
    for i in range(n_words * n_words):
        ptr[i + 1] += ptr[i]
    fill = ptr.copy()
    before = np.empty(found.shape[0], np.int64)
    value = np.empty(found.shape[0])
    for i in range(found.shape[0]):
        at = fill[words[i, 1] * n_words + words[i, 2]]
        fill[words[i, 1] * n_words + words[i, 2]] += 1
        before[at] = words[i, 0]
        value[at] = found[i] + (raised[states[i]] if lm.order > 3 else 0.0)
    return Tables(lm.order, pair, back, ptr, before, value)


@njit(cache=True, nogil=True)
def optimistic(tables, u, allowed, q, chosen):
    """q[v, w] <- the score above, -inf where the pair is not allowed; chosen[v, w] <- the t taken, -1 after <s>.

    Exact maximum up to trigrams; above, every history may use the best back-off of any longer one.
    """
    pair, back, ptr, before, value = tables.pair, tables.back, tables.ptr, tables.before, tables.value
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
                if tables.order <= 3:
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
