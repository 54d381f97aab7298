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
from numba import uint64

from certus.kernels.arrays import longer
from certus.kernels.compiling import njit
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
def meet(lm, phrases, lm_weight, begin, limit):
    """States that may be met at each place, from state ``begin`` at place 0 on, jumps being at most ``limit``.

    Returns (base, state, after, state_end, after_short, pair_place, pair_state): the first five as in Contexts, and
    each (place, state) pair once.
    """
    n, order = phrases.n, phrases.order
    n_phrases = phrases.score.shape[0]
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
    after_short = np.full(256 * n_short, -1, dtype=np.int32)
    expanded = np.full(256 * (n + 1), -1, dtype=np.int32)  # (end, place); 1 once done
    room = 256
    pair_place, pair_state = np.empty(512, dtype=np.int32), np.empty(512, dtype=np.int32)
    # an agenda of (place, state of the model, phrase that led there, end of the state before it)
    agenda = np.empty(4 * (2 * n_phrases + 64), dtype=np.int32)
    agenda[0], agenda[1], agenda[2], agenda[3] = 0, begin, -1, -1
    size = 4
    open_phrases = np.empty(n_phrases, dtype=np.int32)  # those after which the state depends on the one before
    n_open, any_stays = 0, False
    for o in range(n_phrases + 1):
        total, q = 0.0, np.int32(0)
        for k in range(phrases.word_ptr[o], phrases.word_ptr[o + 1]):
            value, q = advance(lm, q, phrases.word[k])
            if k - phrases.word_ptr[o] >= inner:
                total += value
        base[o] = lm_weight * total
        if o == n_phrases:
            break
        base[o] += phrases.score[o]
        if phrases.short[o] == -1:
            place = phrases.span_end[phrases.phrase_span[o]] + 1
            agenda[size], agenda[size + 1], agenda[size + 2], agenda[size + 3] = place, q, o, -1
            size += 4
        else:
            open_phrases[n_open] = o
            n_open += 1
            if phrases.short[o] == STAYS:
                after[o] = STAYS
                any_stays = True

    while size > 0:
        size -= 4
        place, q, o, e = agenda[size], agenda[size + 1], agenda[size + 2], agenda[size + 3]
        k = slot(state_keys, np.int64(q))
        if state_keys[k] == -1:
            state_keys[k], state_number[k] = q, n_states
            if n_states == state.shape[0]:
                state, state_end = longer(state), longer(state_end)
            end = np.int64(cut(lm, q, matters))
            z = slot(end_keys, end)
            if end_keys[z] == -1:
                end_keys[z], end_number[z] = end, n_ends
                if n_ends == room:
                    after_short, expanded = longer(after_short), longer(expanded)
                    for i in range(room * n_short, 2 * room * n_short):
                        after_short[i] = -1
                    for i in range(room * (n + 1), 2 * room * (n + 1)):
                        expanded[i] = -1
                    room *= 2
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
                after_short[e * n_short + phrases.short[o]] = r
        pair = (np.int64(place) << 32) | np.int64(r)
        k = slot(pair_keys, pair)
        if pair_keys[k] != -1:
            continue
        pair_keys[k], pair_number[k] = pair, n_pairs
        if n_pairs == pair_place.shape[0]:
            pair_place, pair_state = longer(pair_place), longer(pair_state)
        pair_place[n_pairs], pair_state[n_pairs] = place, r
        n_pairs += 1
        if 2 * n_pairs > pair_keys.shape[0]:
            pair_keys, pair_number = more_slots(pair_keys, pair_number)
        e = state_end[r]
        again = expanded[e * (n + 1) + place] == 1
        expanded[e * (n + 1) + place] = 1
        if again and not any_stays:
            continue
        while agenda.shape[0] < size + 4 * n_open:
            agenda = longer(agenda)
        for k in range(n_open):
            o = open_phrases[k]
            short = phrases.short[o]
            s = phrases.phrase_span[o]
            i, j = phrases.span_start[s], phrases.span_end[s]
            if abs(i - place) > limit or i <= place - 1 <= j or (again and short != STAYS):
                continue
            following, origin = q, np.int32(-1)
            if short != STAYS:
                origin = e
                known = after_short[e * n_short + short]
                if known >= 0:
                    following = state[known]
                else:
                    a, b = phrases.short_ptr[short], phrases.short_ptr[short + 1]
                    following = run(lm, cut(lm, q, matters), phrases.short_word, a, b)[1]
            agenda[size], agenda[size + 1], agenda[size + 2], agenda[size + 3] = j + 1, following, o, origin
            size += 4
    return (
        base,
        state[:n_states].copy(),
        after,
        state_end[:n_states].copy(),
        after_short[: n_ends * n_short].copy(),
        pair_place[:n_pairs].copy(),
        pair_state[:n_pairs].copy(),
    )


@njit(cache=True, nogil=True)
def head_and_body_scores(lm, phrases, lm_weight, state):
    """(first, second, state_class) of Contexts.

    Where the model holds no n-gram of a state and a head's first word, the score is that after the state's longest
    end, and the back-off; so states are taken by length, and their ends with them.
    """
    order, n_states = phrases.order, state.shape[0]
    n_heads, n_bodies = phrases.head_ptr.shape[0] - 1, phrases.body_word.shape[0]
    keys, number = np.full(1024, -1, dtype=np.int64), np.empty(1024, dtype=np.int32)
    row_state = np.empty(1024, dtype=np.int32)
    n_rows = 0
    for r in range(n_states + 1):  # the states, then the empty one; the ends of all after them
        q = state[r] if r < n_states else np.int32(0)
        k = slot(keys, np.int64(q))
        if keys[k] != -1:
            continue
        if n_rows == row_state.shape[0]:
            row_state = longer(row_state)
        keys[k], number[k], row_state[n_rows] = q, n_rows, q
        n_rows += 1
        if 2 * n_rows > keys.shape[0]:
            keys, number = more_slots(keys, number)
    r = 0
    while r < n_rows:
        q = lm.state_suffix[row_state[r]]
        k = slot(keys, np.int64(q))
        if keys[k] == -1:
            if n_rows == row_state.shape[0]:
                row_state = longer(row_state)
            keys[k], number[k], row_state[n_rows] = q, n_rows, q
            n_rows += 1
            if 2 * n_rows > keys.shape[0]:
                keys, number = more_slots(keys, number)
        r += 1
    empty = number[slot(keys, np.int64(0))]
    first = np.zeros((n_rows, n_heads))
    reach = np.empty((n_rows, n_heads), dtype=np.int32)  # the state after the head
    holds = np.zeros((n_rows, n_heads), dtype=np.bool_)  # there is an n-gram of the state and the head's first word
    n_slots = uint64(lm.slots.shape[0] // 3)
    for length in range(max(order, 1)):
        for r in range(n_rows):
            q = np.int64(row_state[r])
            if lm.state_length[q] != length:
                continue
            end = number[slot(keys, np.int64(lm.state_suffix[q]))]
            for h in range(n_heads):
                a, b = phrases.head_ptr[h], phrases.head_ptr[h + 1]
                if a == b:
                    reach[r, h] = q
                    continue
                word = np.int64(phrases.head_word[a])
                total, following = lm.unigram[word], lm.unigram_state[word]
                held = q == 0
                if not held and holds[end, h]:  # the end of an n-gram is an n-gram
                    key = (q << 32) | word
                    k = first_slot(key, n_slots)
                    while lm.slots[THREE * k] != key and lm.slots[THREE * k] != -1:
                        k += ONE
                        if k == n_slots:
                            k = uint64(0)
                    held = lm.slots[THREE * k] == key
                    if held:
                        total, following = lm.values[THREE * k + ONE], np.int32(lm.slots[THREE * k + ONE + ONE])
                if held:
                    rest, following = run(lm, following, phrases.head_word, a + 1, b)
                    first[r, h], reach[r, h] = lm_weight * (total + rest), following
                    holds[r, h] = True
                else:
                    first[r, h], reach[r, h] = lm_weight * lm.back_off[q] + first[end, h], reach[end, h]

    state_class = np.empty(n_states, dtype=np.int32)
    class_number = np.full(n_rows, -1, dtype=np.int32)
    class_row = np.empty(n_rows + 1, dtype=np.int32)
    class_number[empty], class_row[0] = 0, empty
    n_classes = 1
    for r in range(n_states):
        row = number[slot(keys, np.int64(cut(lm, state[r], 1)))]
        if class_number[row] < 0:
            class_number[row], class_row[n_classes] = n_classes, row
            n_classes += 1
        state_class[r] = class_number[row]
    second = np.zeros((n_classes, n_bodies + 1))  # the last column is for phrases that are heads
    for c in range(n_classes):
        for k in range(n_bodies):
            q = reach[class_row[c], phrases.body_head[k]]
            if c > 0 and q == reach[empty, phrases.body_head[k]]:
                second[c, k] = second[0, k]
            else:
                second[c, k] = lm_weight * advance(lm, q, phrases.body_word[k])[0]
    return first[:n_states].copy(), second, state_class


@njit(cache=True, nogil=True)
def places(n, pair_place, pair_state, state_class, n_classes, first, exact):
    """(context_ptr, context_state, context_first, context_of) of Contexts.

    With ``exact`` every state is a context; without, states with the same last word are one.
    """
    n_pairs, n_heads = pair_place.shape[0], first.shape[1]
    context_ptr = np.zeros(n + 2, dtype=np.int32)
    context_of = np.full((n + 1, first.shape[0]), -1, dtype=np.int32)
    context_state = np.empty(n_pairs, dtype=np.int32)
    context_first = np.empty((n_pairs, n_heads))
    seen = np.full(n_classes, -1, dtype=np.int32)  # context of a class at the current place
    n_contexts = 0
    for p in range(n + 1):
        context_ptr[p] = n_contexts
        for k in range(n_pairs):
            if pair_place[k] != p:
                continue
            r = pair_state[k]
            c = state_class[r]
            if exact or seen[c] < context_ptr[p]:
                seen[c] = n_contexts
                context_state[n_contexts] = r
                for h in range(n_heads):
                    context_first[n_contexts, h] = first[r, h]
                n_contexts += 1
            else:
                for h in range(n_heads):
                    context_first[seen[c], h] = max(context_first[seen[c], h], first[r, h])
            context_of[p, r] = seen[c] - context_ptr[p]
    context_ptr[n + 1] = n_contexts
    return context_ptr, context_state[:n_contexts].copy(), context_first[:n_contexts].copy(), context_of
