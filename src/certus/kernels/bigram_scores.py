"""Optimistic scores of pairs of words under an n-gram language model, with multipliers on contexts.

Let c_i be the state of the model after the words x_1 .. x_i, and phi(c_i) any number for it. Whatever phi is (0 for the
begin and the end of a sentence), the language-model score of a string between <s> and </s> is

    sum_i  p(x_i | c_{i-1}) + phi(c_{i-1}) - phi(c_i),

and so at most the sum over i of

    q[x_{i-1}, x_i]  =  max over contexts c that end in x_{i-1} of  p(x_i | c) + phi(c) - phi(c x_i),

c running over the contexts of words that may be adjacent. Here phi(c) = u[v, w] + high[c]: a multiplier for the last
two words of a context, v and w, and one for the context itself if it has three words or more. Under q a forest is
decoded exactly (``forest_bigram``), and the outside scores found there bound every completion in the search for the
best under the model itself (``forest_exact``). Multipliers tighten q: they are lowered where a context is chosen but
not there, and raised where it is there but not chosen.

Log probabilities are multiplied by the weight of the language model. Words are numbered within the forest, 0 is <s>,
1 is </s>; ``lm_word`` gives their numbers in the model, the same for several of them if a forest tells copies of a word
apart. A context here is a state of two words or more, once for each copies of its words, numbered by length; a row is
an n-gram that the model holds, a context and a word after it.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.arrays import longer
from certus.kernels.compiling import njit
from certus.kernels.forest_pieces import BEGIN, END
from certus.kernels.language_model import advance, first_slot

NONE = np.int64(-1)


class Tables(NamedTuple):
    """What a model has for the words of a forest: K contexts and R rows."""

    pair: np.ndarray  # (W, W) log p(w | v)
    at: np.ndarray  # (W, W) the context v, w; -1 if it is none
    state: np.ndarray  # (K,) of each context
    older: np.ndarray  # its last word but one
    newer: np.ndarray  # its last word
    parent: np.ndarray  # the context without its last word, -1 for those of two words
    suffix: np.ndarray  # the context without its first word, likewise
    back: np.ndarray  # what backing off to the suffix costs
    context: np.ndarray  # (R,) of each row
    word: np.ndarray
    value: np.ndarray  # log probability of the word
    following: np.ndarray  # the context after it if that has three words or more, else -1


class Active(NamedTuple):
    """What is left of the tables: pairs of words v, w to be scored by v, rows by pair, contexts by number."""

    pair_ptr: np.ndarray  # (W + 1,) pairs of v
    second: np.ndarray  # (P,) w of each
    before_ptr: np.ndarray  # (W + 1,) words that may stand before v
    before: np.ndarray
    before_at: np.ndarray  # the context of each and v, -1 if it is none
    row_ptr: np.ndarray  # (P + 1,)
    row: np.ndarray
    context: np.ndarray


class _Contexts(NamedTuple):
    """Contexts of two words or more that the forest may have."""

    state: np.ndarray
    older: np.ndarray
    newer: np.ndarray
    parent: np.ndarray
    suffix: np.ndarray


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
def _add(contexts, n, state, older, newer, parent, suffix):
    """The contexts with one more, the n-th; in larger arrays if need be."""
    if n == contexts.state.shape[0]:
        contexts = _Contexts(
            longer(contexts.state),
            longer(contexts.older),
            longer(contexts.newer),
            longer(contexts.parent),
            longer(contexts.suffix),
        )
    contexts.state[n], contexts.older[n], contexts.newer[n] = state, older, newer
    contexts.parent[n], contexts.suffix[n] = parent, suffix
    return contexts


@njit(cache=True, nogil=True, inline="always")
def _pairs(lm, weight, lm_word, allowed, at):
    """(pair, contexts of two words, how many); ``at`` is filled."""
    n_words, n = allowed.shape[0], 0
    pair = np.full(allowed.shape, -np.inf)
    room = np.empty((5, 1024), np.int64)
    contexts = _Contexts(room[0], room[1], room[2], room[3], room[4])
    for v in range(n_words):
        state = np.int32(lm.begin_state) if v == BEGIN else lm.unigram_state[lm_word[v]]
        for w in range(n_words):
            if allowed[v, w]:
                p, s = advance(lm, state, lm_word[w])
                pair[v, w] = weight * p
                if w != END and lm.state_length[s] > 1:
                    contexts = _add(contexts, n, np.int64(s), v, w, NONE, NONE)
                    at[v, w] = n
                    n += 1
    return pair, contexts, n


@njit(cache=True, nogil=True)
def _bigrams(lm, lm_word, allowed):
    """(ptr, word): the words after v, of those allowed, that the model holds in state v are word[ptr[v]:ptr[v + 1]]."""
    n_words = allowed.shape[0]
    ptr, word, n = np.zeros(n_words + 1, np.int64), np.empty(1024, np.int64), 0
    for v in range(n_words):
        state = np.int64(lm.unigram_state[lm_word[v]])
        for w in range(n_words):
            if allowed[v, w] and (state == 0 or _held(lm.slots, state, lm_word[w]) >= 0):
                if n == word.shape[0]:
                    word = longer(word)
                word[n] = w
                n += 1
        ptr[v + 1] = n
    return ptr, word


@njit(cache=True, nogil=True, inline="always")
def _rows(lm, weight, lm_word, allowed, at, contexts, n):
    """(contexts, of any length now, how many; rows (m, 3): context, word, context after it; values).

    Ends of n-grams are n-grams: a context holds no words but those that its suffix holds. What follows a context and a
    word is the two together if the model knows more after them, else what follows the suffix and the word.
    """
    slots, values, length = lm.slots, lm.values, lm.state_length
    ptr, bigram = _bigrams(lm, lm_word, allowed)
    row_ptr = np.zeros(1024, np.int64)  # rows of context k end at row_ptr[k + 1]
    row, value, held = np.empty((4096, 3), np.int64), np.empty(4096), np.empty(4096, np.int64)
    latest, twin = np.full(lm.back_off.shape[0], -1, np.int64), np.empty(1024, np.int64)  # contexts of one state
    m = 0
    k = 0
    while k < n:  # grows while it is read: contexts of one word more are added behind
        state, v, shorter = contexts.state[k], contexts.newer[k], contexts.suffix[k]
        if k + 1 == row_ptr.shape[0]:
            row_ptr, twin = longer(row_ptr), longer(twin)
        twin[k], latest[state] = latest[state], k
        other = twin[k]  # a context whose first word alone is another copy holds the same words
        while other >= 0 and (contexts.newer[other] != v or contexts.suffix[other] != shorter):
            other = twin[other]
        source = other if other >= 0 else shorter
        start, stop = (row_ptr[source], row_ptr[source + 1]) if source >= 0 else (ptr[v], ptr[v + 1])
        for j in range(start, stop):
            w, after = (row[j, 1], row[j, 2]) if source >= 0 else (bigram[j], NONE)
            i = held[j] if other >= 0 else _held(slots, state, lm_word[w])
            if i < 0:
                continue
            if m == value.shape[0]:
                row, value, held = longer(row), longer(value), longer(held)
            held[m] = i
            s = slots[3 * i + 2]
            if other >= 0 and after >= 0 and contexts.parent[after] == other:
                after = contexts.suffix[after]  # of the context that the other one and w make
                after = after if after >= 0 and contexts.parent[after] >= 0 else NONE
            if w != END and length[s] > length[state]:
                contexts = _add(contexts, n, s, v, w, k, after if after >= 0 else at[v, w])
                after = n
                n += 1
            row[m, 0], row[m, 1], row[m, 2] = k, w, after
            value[m] = weight * values[3 * i + 1]
            m += 1
        k += 1
        row_ptr[k] = m
    return contexts, n, row[:m], value[:m]


@njit(cache=True, nogil=True)
def tables(lm, weight, lm_word, allowed):
    """Tables of a model for words numbered ``lm_word`` in it; ``allowed`` (W, W): pairs that can be adjacent."""
    at = np.full(allowed.shape, -1, np.int64)
    pair, contexts, n = _pairs(lm, weight, lm_word, allowed, at)
    contexts, n, row, value = _rows(lm, weight, lm_word, allowed, at, contexts, n)
    back = np.empty(n)
    for k in range(n):
        back[k] = weight * lm.back_off[contexts.state[k]]
    return Tables(
        pair, at, contexts.state[:n].copy(), contexts.older[:n].copy(), contexts.newer[:n].copy(),
        contexts.parent[:n].copy(), contexts.suffix[:n].copy(), back, row[:, 0].copy(), row[:, 1].copy(), value.copy(),
        row[:, 2].copy(),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def select(tables, allowed, pairs):
    """The Active part of tables: ``pairs`` (W, W) to be scored, contexts of the pairs of words that are ``allowed``."""
    n_words, older, newer, parent = allowed.shape[0], tables.older, tables.newer, tables.parent
    pair_ptr, before_ptr = np.zeros(n_words + 1, np.int64), np.zeros(n_words + 1, np.int64)
    number = np.full(allowed.shape, -1, np.int64)
    n_pairs, n_before = 0, 0
    for v in range(n_words):
        for w in range(n_words):
            if pairs[v, w]:
                number[v, w] = n_pairs
                n_pairs += 1
            if allowed[v, w]:
                n_before += 1
                before_ptr[w + 1] += 1
        pair_ptr[v + 1] = n_pairs
    second, before, before_at = np.empty(n_pairs, np.int64), np.empty(n_before, np.int64), np.empty(n_before, np.int64)
    for w in range(n_words):
        before_ptr[w + 1] += before_ptr[w]
    fill = before_ptr.copy()
    for v in range(n_words):
        for w in range(n_words):
            if pairs[v, w]:
                second[number[v, w]] = w
            if allowed[v, w]:
                before[fill[w]], before_at[fill[w]] = v, tables.at[v, w]
                fill[w] += 1
    alive = np.empty(older.shape[0], np.bool_)
    for k in range(older.shape[0]):
        alive[k] = allowed[older[k], newer[k]] and (parent[k] < 0 or alive[parent[k]])
    row_ptr = np.zeros(n_pairs + 1, np.int64)
    for r in range(tables.context.shape[0]):
        k = tables.context[r]
        if alive[k] and number[newer[k], tables.word[r]] >= 0:
            row_ptr[number[newer[k], tables.word[r]] + 1] += 1
    for i in range(n_pairs):
        row_ptr[i + 1] += row_ptr[i]
    fill, row = row_ptr.copy(), np.empty(row_ptr[n_pairs], np.int64)
    for r in range(tables.context.shape[0]):
        k = tables.context[r]
        if alive[k] and number[newer[k], tables.word[r]] >= 0:
            i = number[newer[k], tables.word[r]]
            row[fill[i]] = r
            fill[i] += 1
    return Active(pair_ptr, second, before_ptr, before, before_at, row_ptr, row, np.flatnonzero(alive))


class _Lifts(NamedTuple):
    """Per context: the most that it, or a longer one that backs off to it, brings along; the same but for that one."""

    best: np.ndarray
    via: np.ndarray  # the longer context, -1 for itself
    other: np.ndarray
    via_other: np.ndarray


@njit(cache=True, nogil=True)
def _lifts(tables, active, high):
    n, suffix, back, context = tables.suffix.shape[0], tables.suffix, tables.back, active.context
    best, via, other, via_other = np.empty(n), np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64)
    for i in range(context.shape[0]):
        k = context[i]
        best[k], via[k], other[k], via_other[k] = high[k], -1, -np.inf, -1
    for i in range(context.shape[0] - 1, -1, -1):  # longer ones first
        k = context[i]
        j = suffix[k]
        if j >= 0:
            s = back[k] + best[k]
            if s > best[j]:
                other[j], via_other[j] = best[j], via[j]
                best[j], via[j] = s, k
            elif s > other[j]:
                other[j], via_other[j] = s, k
    return _Lifts(best, via, other, via_other)


@njit(cache=True, nogil=True, inline="always")
def _longest(via, k):
    """The context that brings what k has."""
    while via[k] >= 0:
        k = via[k]
    return k


@njit(cache=True, nogil=True)
def optimistic(tables, active, u, high, q, chosen):
    """q[v, w] <- the score above for the active pairs; chosen (P, 3) <- the word before v, the context and the one

    after w that were taken, -1 for none. Of several contexts that the model backs off from, all but the two best may be
    taken for words that they hold: the bound is valid, and exact up to trigrams.
    """
    # Multipliers u are read column by column: an array of that order is the faster one.
    pair, older, back, value = tables.pair, tables.older, tables.back, tables.value
    context, following = tables.context, tables.following
    pair_ptr, second, before_ptr, before = active.pair_ptr, active.second, active.before_ptr, active.before
    before_at, row_ptr, row = active.before_at, active.row_ptr, active.row
    lift, via, other, via_other = _lifts(tables, active, high)
    n_words = pair.shape[0]
    holds, mark = np.full(lift.shape[0], -1, np.int64), np.full(n_words, -1, np.int64)
    gain = np.empty(n_words)
    for v in range(n_words):
        if pair_ptr[v] == pair_ptr[v + 1]:
            continue
        top, at_top = NONE, NONE  # the word before v that backs off best
        for j in range(before_ptr[v], before_ptr[v + 1]):
            t = before[j]
            k = before_at[j]
            gain[t] = u[t, v] + (back[k] + lift[k] if k >= 0 else 0.0)
            if top < 0 or gain[t] > gain[top]:
                top, at_top = t, j
        for i in range(pair_ptr[v], pair_ptr[v + 1]):
            w = second[i]
            best, taken, c, after = -np.inf, NONE, NONE, NONE
            if v == BEGIN:
                best = pair[v, w]
            for j in range(row_ptr[i], row_ptr[i + 1]):
                holds[context[row[j]]] = i
            for j in range(row_ptr[i], row_ptr[i + 1]):
                r = row[j]
                k = context[r]
                t = older[k]
                mark[t] = i
                held = via[k] >= 0 and holds[via[k]] == i  # the best that backs off to k need not do so for w
                s = value[r] + u[t, v] + (other[k] if held else lift[k])
                if following[r] >= 0:
                    s -= high[following[r]]
                if s > best:
                    best, taken, after = s, t, following[r]
                    c = via_other[k] if held else via[k]
                    c = _longest(via, c) if c >= 0 else k
            start, stop = before_ptr[v], before_ptr[v + 1]
            if top >= 0 and mark[top] != i:  # else it has an n-gram and need not back off: look for the next
                start, stop = at_top, at_top + 1
            for j in range(start, stop):
                t = before[j]
                if mark[t] != i and pair[v, w] + gain[t] > best:
                    best, taken, after = pair[v, w] + gain[t], t, NONE
                    c = _longest(via, before_at[j]) if before_at[j] >= 0 else NONE
            q[v, w] = best - u[v, w]
            chosen[i, 0], chosen[i, 1], chosen[i, 2] = taken, c, after
