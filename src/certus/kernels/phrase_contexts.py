"""What the language model may remember where a phrase ends, and what each phrase scores after it.

Place p is where the next word of the source would be if there were no jump: 0 at the start, else last + 1. A phrase o
has the words word[word_ptr[o] .. word_ptr[o + 1] - 1]; phrase O is the end of the sentence. With a model of order N its
score after a state q of the model falls into three parts,

    base[o]  +  first[q, head[o]]  +  second[class of q, body[o]],

its own score and the words whose context lies inside it; its first N - 2 words (head), for which q counts; and the word
after those (body), for which only the last word of q, its class, counts. Heads and bodies that phrases share are
scored once. All are weighted already. ``phrases`` is a PhraseArrays (certus/translation/phrases.py).
"""

from typing import NamedTuple

import numpy as np
from numba import njit, uint64

from certus.kernels.language_model import advance, first_slot

ONE, THREE = np.uint64(1), np.uint64(3)
MIX = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(31)
STAYS = -2  # what follows a phrase without words is the state before it


class Contexts(NamedTuple):
    """States that may be met, exact scores after each, and the contexts that a relaxation tells apart at each place.

    Contexts of place p are context_ptr[p] .. context_ptr[p + 1] - 1: states themselves, or classes of states with the
    best score of any member that can be met there.
    """

    base: np.ndarray  # (O + 1,)
    first: np.ndarray  # (Q, H)
    second: np.ndarray  # (C, B)
    state: np.ndarray  # (Q,) states of the language model
    state_class: np.ndarray  # (Q,)
    after: np.ndarray  # (O,) state after the phrase; -1 if it depends, STAYS if it stays
    state_end: np.ndarray  # (Q,) number of the part of the state that matters to what follows a short phrase
    after_short: np.ndarray  # (T, number of short sequences); -1 where never met
    context_ptr: np.ndarray  # (n + 2,)
    context_state: np.ndarray  # (X,) a state that belongs to the context
    context_first: np.ndarray  # (X, H)
    context_of: np.ndarray  # (n + 1, Q) context of a state at a place, counted from context_ptr; -1 if never met there


@njit(cache=True, nogil=True)
def run(lm, state, word, begin, end):
    """(ln p of word[begin:end], the state after) from a state."""
    total = 0.0
    for k in range(begin, end):
        value, state = advance(lm, state, word[k])
        total += value
    return total, state


@njit(cache=True, nogil=True)
def cut(lm, state, length):
    """The state of the last words of a state, as many as ``length`` or fewer."""
    while lm.state_length[state] > length:
        state = lm.state_suffix[state]
    return state


@njit(cache=True, nogil=True)
def slot(keys, key):
    """Where a key is in an open-addressing table, or the free slot for it."""
    mask = uint64(keys.shape[0] - 1)
    mixed = uint64(key) * MIX
    k = ((mixed ^ (mixed >> SHIFT)) >> ONE) & mask
    while keys[k] != key and keys[k] != -1:
        k = (k + ONE) & mask
    return k


@njit(cache=True, nogil=True)
def more_slots(keys, values):
    """The same table with twice the slots."""
    wider = np.full(2 * keys.shape[0], -1, dtype=np.int64)
    moved = np.empty(2 * keys.shape[0], dtype=np.int32)
    for i in range(keys.shape[0]):
        if keys[i] != -1:
            k = slot(wider, keys[i])
            wider[k], moved[k] = keys[i], values[i]
    return wider, moved


@njit(cache=True, nogil=True)
def contexts(lm, phrases, lm_weight, begin, limit, exact):
    """Contexts of a sentence from state ``begin`` on, jumps being at most ``limit``.

    With ``exact`` every state is a context; without, states with the same last word are one.
    """
    n, order = phrases.n, phrases.order
    n_phrases = phrases.score.shape[0]
    n_spans = phrases.span_start.shape[0]
    n_short = phrases.short_ptr.shape[0] - 1
    inner = max(order - 1, 0)  # words with this index or a higher one have all their context inside the phrase
    matters = max(order - 2, 0)  # words of a state that matter to what follows a short phrase
    base = np.zeros(n_phrases + 1)
    after = np.full(n_phrases, -1, dtype=np.int32)
    # states, the parts of them that matter, and (place, state) pairs, each numbered through a table
    state_keys, state_number = np.full(512, -1, dtype=np.int64), np.empty(512, dtype=np.int32)
    end_keys, end_number = np.full(512, -1, dtype=np.int64), np.empty(512, dtype=np.int32)
    pair_keys, pair_number = np.full(1024, -1, dtype=np.int64), np.empty(1024, dtype=np.int32)
    n_states, n_ends, n_pairs = 0, 0, 0
    state, state_end = np.empty(256, dtype=np.int32), np.empty(256, dtype=np.int32)
    after_short = np.full((256, n_short), -1, dtype=np.int32)
    expanded = np.zeros((256, n + 1), dtype=np.bool_)  # end, place
    pair_place, pair_state = np.empty(512, dtype=np.int32), np.empty(512, dtype=np.int32)
    # an agenda of (place, state of the model, phrase that led there, end of the state before it)
    agenda = np.empty((2 * n_phrases + 64, 4), dtype=np.int32)
    agenda[0, 0], agenda[0, 1], agenda[0, 2], agenda[0, 3] = 0, begin, -1, -1
    size = 1
    for o in range(n_phrases + 1):
        total, q = 0.0, np.int32(0)
        for k in range(phrases.word_ptr[o], phrases.word_ptr[o + 1]):
            value, q = advance(lm, q, phrases.word[k])
            if k - phrases.word_ptr[o] >= inner:
                total += value
        base[o] = lm_weight * total
        if o < n_phrases:
            base[o] += phrases.score[o]
            if phrases.short[o] == -1:
                place = phrases.span_end[phrases.phrase_span[o]] + 1
                agenda[size, 0], agenda[size, 1], agenda[size, 2], agenda[size, 3] = place, q, o, -1
                size += 1
            elif phrases.short[o] == STAYS:
                after[o] = STAYS

    while size > 0:
        size -= 1
        place, q, o, e = agenda[size, 0], agenda[size, 1], agenda[size, 2], agenda[size, 3]
        k = slot(state_keys, np.int64(q))
        if state_keys[k] == -1:
            state_keys[k], state_number[k] = q, n_states
            if n_states == state.shape[0]:
                state, state_end = np.concatenate((state, state)), np.concatenate((state_end, state_end))
            end = np.int64(cut(lm, q, matters))
            z = slot(end_keys, end)
            if end_keys[z] == -1:
                end_keys[z], end_number[z] = end, n_ends
                if n_ends == after_short.shape[0]:
                    after_short = np.concatenate((after_short, np.full_like(after_short, -1)))
                    expanded = np.concatenate((expanded, np.zeros_like(expanded)))
                n_ends += 1
            state[n_states], state_end[n_states] = q, end_number[z]
            n_states += 1
            if 2 * n_ends > end_keys.shape[0]:
                end_keys, end_number = more_slots(end_keys, end_number)
            if 2 * n_states > state_keys.shape[0]:
                state_keys, state_number = more_slots(state_keys, state_number)
                k = slot(state_keys, np.int64(q))
        r = state_number[k]
        if o >= 0:
            if phrases.short[o] == -1:
                after[o] = r
            elif e >= 0:
                after_short[e, phrases.short[o]] = r
        pair = (np.int64(place) << 32) | np.int64(r)
        k = slot(pair_keys, pair)
        if pair_keys[k] != -1:
            continue
        pair_keys[k], pair_number[k] = pair, n_pairs
        if n_pairs == pair_place.shape[0]:
            pair_place, pair_state = np.concatenate((pair_place, pair_place)), np.concatenate((pair_state, pair_state))
        pair_place[n_pairs], pair_state[n_pairs] = place, r
        n_pairs += 1
        if 2 * n_pairs > pair_keys.shape[0]:
            pair_keys, pair_number = more_slots(pair_keys, pair_number)
        e = state_end[r]
        again = expanded[e, place]
        expanded[e, place] = True
        if agenda.shape[0] < size + n_phrases:
            agenda = np.concatenate((agenda, np.empty((agenda.shape[0] + n_phrases, 4), dtype=np.int32)))
        for s in range(n_spans):
            i, j = phrases.span_start[s], phrases.span_end[s]
            if abs(i - place) > limit or i <= place - 1 <= j:
                continue
            for o in range(phrases.phrase_ptr[s], phrases.phrase_ptr[s + 1]):
                short = phrases.short[o]
                if short == STAYS:
                    agenda[size, 0], agenda[size, 1], agenda[size, 2], agenda[size, 3] = j + 1, q, o, -1
                    size += 1
                elif short >= 0 and not again:
                    following = q
                    if after_short[e, short] >= 0:
                        following = state[after_short[e, short]]
                    else:
                        a, b = phrases.short_ptr[short], phrases.short_ptr[short + 1]
                        following = run(lm, cut(lm, q, matters), phrases.short_word, a, b)[1]
                    agenda[size, 0], agenda[size, 1], agenda[size, 2], agenda[size, 3] = j + 1, following, o, e
                    size += 1

    # The ends of states are rows too: where no n-gram of the model begins with a state and a word, the row of its
    # longest end counts, less the back-off.
    row_state = np.empty(4 * n_states + 4, dtype=np.int32)
    row_state[:n_states] = state[:n_states]
    n_rows = n_states
    for r in range(n_states):
        q = lm.state_suffix[state[r]]
        while True:
            k = slot(state_keys, np.int64(q))
            if state_keys[k] != -1:
                break
            state_keys[k], state_number[k] = q, n_rows
            if n_rows == row_state.shape[0]:
                row_state = np.concatenate((row_state, row_state))
            row_state[n_rows] = q
            n_rows += 1
            if 2 * n_rows > state_keys.shape[0]:
                state_keys, state_number = more_slots(state_keys, state_number)
            q = lm.state_suffix[q]
    n_heads = phrases.head_ptr.shape[0] - 1
    first = np.zeros((n_rows, n_heads))
    holds = np.zeros((n_rows, n_heads), dtype=np.bool_)  # the model has an n-gram of the state and the head's first word
    n_slots = uint64(lm.slots.shape[0] // 3)
    for length in range(order):
        for r in range(n_rows):
            q = np.int64(row_state[r])
            if lm.state_length[q] != length:
                continue
            end = state_number[slot(state_keys, np.int64(lm.state_suffix[q]))]
            for h in range(n_heads):
                a, b = phrases.head_ptr[h], phrases.head_ptr[h + 1]
                if a == b:
                    continue
                if q == 0:
                    total, after_word = lm.unigram[phrases.head_word[a]], lm.unigram_state[phrases.head_word[a]]
                    holds[r, h] = True
                elif not holds[end, h]:  # the end of an n-gram is an n-gram
                    first[r, h] = lm_weight * lm.back_off[q] + first[end, h]
                    continue
                else:
                    key = (q << 32) | np.int64(phrases.head_word[a])
                    k = first_slot(key, n_slots)
                    while lm.slots[THREE * k] != key and lm.slots[THREE * k] != -1:
                        k += ONE
                        if k == n_slots:
                            k = uint64(0)
                    if lm.slots[THREE * k] == -1:
                        first[r, h] = lm_weight * lm.back_off[q] + first[end, h]
                        continue
                    holds[r, h] = True
                    total, after_word = lm.values[THREE * k + ONE], np.int32(lm.slots[THREE * k + ONE + ONE])
                first[r, h] = lm_weight * (total + run(lm, after_word, phrases.head_word, a + 1, b)[0])
    first = first[:n_states].copy()
    state, state_end = state[:n_states].copy(), state_end[:n_states].copy()

    # classes: the last word of a state
    state_class = np.empty(n_states, dtype=np.int32)
    class_state = np.empty(n_states, dtype=np.int32)
    state_keys[:] = -1
    n_classes = 0
    for r in range(n_states):
        c = cut(lm, state[r], 1)
        k = slot(state_keys, np.int64(c))
        if state_keys[k] == -1:
            state_keys[k], state_number[k] = c, n_classes
            class_state[n_classes] = c
            n_classes += 1
        state_class[r] = state_number[k]
    n_bodies = phrases.body_word.shape[0]
    second = np.zeros((n_classes, n_bodies + 1))  # the last column is for phrases that are heads
    after_head = np.empty(n_heads, dtype=np.int32)
    for c in range(n_classes):
        for h in range(n_heads):
            a, b = phrases.head_ptr[h], phrases.head_ptr[h + 1]
            after_head[h] = run(lm, class_state[c], phrases.head_word, a, b)[1]
        for k in range(n_bodies):
            value, _ = advance(lm, after_head[phrases.body_head[k]], phrases.body_word[k])
            second[c, k] = lm_weight * value

    # contexts: pairs by place, states or classes
    context_ptr = np.zeros(n + 2, dtype=np.int32)
    context_of = np.full((n + 1, n_states), -1, dtype=np.int32)
    by_place = np.argsort(pair_place[:n_pairs], kind="mergesort")
    context_state = np.empty(n_pairs, dtype=np.int32)
    context_first = np.empty((n_pairs, n_heads))
    seen = np.full(n_classes, -1, dtype=np.int32)  # context of a class at the current place
    n_contexts = 0
    k = 0
    for p in range(n + 1):
        context_ptr[p] = n_contexts
        while k < n_pairs and pair_place[by_place[k]] == p:
            r = pair_state[by_place[k]]
            c = state_class[r]
            if exact or seen[c] < context_ptr[p]:
                seen[c] = n_contexts
                context_state[n_contexts] = r
                context_first[n_contexts] = first[r]
                n_contexts += 1
            else:
                for h in range(n_heads):
                    context_first[seen[c], h] = max(context_first[seen[c], h], first[r, h])
            context_of[p, r] = (n_contexts - 1 if exact else seen[c]) - context_ptr[p]
            k += 1
    context_ptr[n + 1] = n_contexts
    return Contexts(
        base,
        first,
        second,
        state,
        state_class,
        after,
        state_end,
        after_short,
        context_ptr,
        context_state[:n_contexts].copy(),
        context_first[:n_contexts].copy(),
        context_of,
    )
