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


class Met(NamedTuple):
    """What may be met: the parts of Contexts that say so, and each (place, state) pair once."""

    base: np.ndarray
    state: np.ndarray
    after: np.ndarray
    state_end: np.ndarray
    after_short: np.ndarray
    pair_place: np.ndarray
    pair_state: np.ndarray


class Scores(NamedTuple):
    """Scores after the states: parts of Contexts."""

    first: np.ndarray
    second: np.ndarray
    state_class: np.ndarray


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


@njit(cache=True, nogil=True, hot=True)
def run(lm, state, word, begin, end):
    """(ln p of word[begin:end], the state after) from a state."""
    total = 0.0
    for k in range(begin, end):
        value, state = advance(lm, state, word[k])
        total += value
    return total, state


@njit(cache=True, nogil=True, hot=True)
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


class Index(NamedTuple):
    """Numbers of keys, 0, 1, 2, .. in the order they came, in a table that is at most half full."""

    keys: np.ndarray
    numbers: np.ndarray


@njit(cache=True, nogil=True, hot=True)
def _find(index, key):
    """The number of a key, or -1."""
    k = slot(index.keys, key)
    return index.numbers[k] if index.keys[k] != -1 else np.int32(-1)


@njit(cache=True, nogil=True, hot=True)
def _add(index, key, n):
    """The index with a new key, numbered n."""
    keys, numbers = index.keys, index.numbers
    if 2 * (n + 1) > keys.shape[0]:
        keys, numbers = more_slots(keys, numbers)
    k = slot(keys, key)
    keys[k], numbers[k] = key, n
    return Index(keys, numbers)


@njit(cache=True, nogil=True)
def _empty_index():
    return Index(np.full(1024, -1, dtype=np.int64), np.empty(1024, dtype=np.int32))


@njit(cache=True, nogil=True)
def _alone(lm, phrases, lm_weight):
    """(base of Contexts, the state after each phrase's words where nothing stands before them)."""
    n_phrases, word_ptr = phrases.score.shape[0], phrases.word_ptr
    inner = max(lm.order - 1, 0)  # words with this index or a higher one have all their context inside the phrase
    base, after = np.zeros(n_phrases + 1), np.zeros(n_phrases + 1, dtype=np.int32)
    for o in range(n_phrases + 1):
        total, q = 0.0, np.int32(0)
        for k in range(word_ptr[o], word_ptr[o + 1]):
            value, q = advance(lm, q, phrases.word[k])
            if k - word_ptr[o] >= inner:
                total += value
        base[o], after[o] = lm_weight * total, q
        if o < n_phrases:
            base[o] += phrases.score[o]
    return base, after


@njit(cache=True, nogil=True)
def _follow(lm, phrases, short, state):
    """The state after a short sequence of words, from a state cut down to the words that matter then."""
    a, b = phrases.short_ptr[short], phrases.short_ptr[short + 1]
    return run(lm, cut(lm, state, max(lm.order - 2, 0)), phrases.short_word, a, b)[1]


@njit(cache=True, nogil=True)
def meet(lm, phrases, lm_weight, limit):
    """States that may be met at each place, from <s> at place 0 on, jumps being at most ``limit``: a Met."""
    n, n_phrases, short = phrases.n, phrases.score.shape[0], phrases.short
    base, alone = _alone(lm, phrases, lm_weight)
    # the states, and the parts of them that matter to what follows a short phrase
    states, ends = _empty_index(), _empty_index()
    n_states, n_ends, n_pairs = np.int64(0), np.int64(0), np.int64(0)
    state, state_end = np.empty(256, dtype=np.int32), np.empty(256, dtype=np.int32)
    after = np.full(n_phrases, -1, dtype=np.int32)
    after_short = np.empty((256, phrases.short_ptr.shape[0] - 1), dtype=np.int32)  # (end, short sequence)
    expanded = np.empty((256, n + 1), dtype=np.int32)  # (end, place); 1 once done
    pair_place, pair_state = np.empty(512, dtype=np.int32), np.empty(512, dtype=np.int32)
    seen = np.empty((256, n + 1), dtype=np.bool_)  # (state, place): is a pair
    # (place, state of the model, phrase that led there or -1, end of the state before it or -1)
    agenda = np.empty((2 * n_phrases + 64, 4), dtype=np.int32)
    agenda[0, 0], agenda[0, 1], agenda[0, 2], agenda[0, 3] = 0, lm.begin_state, -1, -1
    size = 1
    following = np.empty((n_phrases, 4), dtype=np.int32)  # (phrase, its start, end, short sequence): the state after
    # these depends on the one before
    n_following, any_stays = 0, False
    for o in range(n_phrases):
        if short[o] == -1:
            place = phrases.span_end[phrases.phrase_span[o]] + 1
            agenda[size, 0], agenda[size, 1], agenda[size, 2], agenda[size, 3] = place, alone[o], o, -1
            size += 1
        else:
            s = phrases.phrase_span[o]
            following[n_following, 0], following[n_following, 3] = o, short[o]
            following[n_following, 1], following[n_following, 2] = phrases.span_start[s], phrases.span_end[s]
            n_following += 1
            if short[o] == STAYS:
                after[o] = STAYS
                any_stays = True
    while size > 0:
        size -= 1
        place, q, o, e = agenda[size, 0], agenda[size, 1], agenda[size, 2], agenda[size, 3]
        r = np.int64(_find(states, np.int64(q)))
        if r < 0:
            end = cut(lm, q, max(lm.order - 2, 0))
            z = np.int64(_find(ends, np.int64(end)))
            if z < 0:
                z = n_ends
                ends = _add(ends, np.int64(end), z)
                if n_ends == expanded.shape[0]:
                    after_short, expanded = longer(after_short), longer(expanded)
                for i in range(after_short.shape[1]):
                    after_short[z, i] = -1
                for i in range(n + 1):
                    expanded[z, i] = 0
                n_ends += 1
            r = n_states
            states = _add(states, np.int64(q), r)
            if n_states == state.shape[0]:
                state, state_end, seen = longer(state), longer(state_end), longer(seen)
            state[r], state_end[r] = q, z
            seen[r, :] = False
            n_states += 1
        if o >= 0 and short[o] == -1:
            after[o] = r
        elif e >= 0:
            after_short[e, short[o]] = r
        if seen[r, place]:
            continue
        seen[r, place] = True
        if n_pairs == pair_place.shape[0]:
            pair_place, pair_state = longer(pair_place), longer(pair_state)
        pair_place[n_pairs], pair_state[n_pairs] = place, r
        n_pairs += 1
        e = state_end[r]
        again = expanded[e, place] == 1
        expanded[e, place] = 1
        if again and not any_stays:
            continue
        while agenda.shape[0] < size + n_following:
            agenda = longer(agenda)
        for k in range(n_following):
            o, i, j, z = following[k, 0], following[k, 1], following[k, 2], following[k, 3]
            stays = z == STAYS
            if abs(i - place) > limit or i <= place - 1 <= j or (again and not stays):
                continue
            known, origin = (np.int32(r), np.int32(-1)) if stays else (after_short[e, z], e)
            if known >= 0 and seen[known, j + 1]:
                continue
            then = state[known] if known >= 0 else _follow(lm, phrases, z, q)
            agenda[size, 0], agenda[size, 1], agenda[size, 2], agenda[size, 3] = j + 1, then, o, origin
            size += 1
    return Met(
        base, state[:n_states], after, state_end[:n_states], after_short[: max(n_ends, 1)],
        pair_place[:n_pairs], pair_state[:n_pairs],
    )  # fmt: skip


@njit(cache=True, nogil=True, inline="always")
def _with_ends(lm, state):
    """(index, states): the states, the empty one, and the ends of all."""
    index = _empty_index()
    rows = np.empty(1024, dtype=np.int32)
    n, r = np.int64(0), 0
    while r <= state.shape[0] or r - state.shape[0] - 1 < n:
        if r < state.shape[0]:
            q = state[r]
        elif r == state.shape[0]:
            q = np.int32(0)
        else:
            q = lm.state_suffix[rows[r - state.shape[0] - 1]]
        r += 1
        if _find(index, np.int64(q)) < 0:
            index = _add(index, np.int64(q), n)
            if n == rows.shape[0]:
                rows = longer(rows)
            rows[n] = q
            n += 1
    return index, rows[:n]


@njit(cache=True, nogil=True, inline="always")
def _head_scores(lm, phrases, lm_weight, index, rows):
    """(first, reach): score of each head after each state of ``rows``, and the state after it.

    Where the model holds no n-gram of a state and a head's first word, the score is that after the state's longest
    end, and the back-off; so states are taken by length.
    """
    head_ptr, head_word, slots, values, back_off = phrases.head_ptr, phrases.head_word, lm.slots, lm.values, lm.back_off
    unigram, unigram_state, n_heads = lm.unigram, lm.unigram_state, phrases.head_ptr.shape[0] - 1
    first = np.zeros((rows.shape[0], n_heads))
    reach = np.empty((rows.shape[0], n_heads), dtype=np.int32)
    holds = np.zeros((rows.shape[0], n_heads), dtype=np.bool_)  # there is an n-gram of the state and the first word,
    # or there are no words
    n_slots = uint64(slots.shape[0] // 3)
    for length in range(max(lm.order, 1)):
        for r in range(rows.shape[0]):
            q = np.int64(rows[r])
            if lm.state_length[q] != length:
                continue
            end = _find(index, np.int64(lm.state_suffix[q]))
            if q != 0:
                backed_off, first_at_end, reach_at_end = lm_weight * back_off[q], first[end], reach[end]
                for h in range(n_heads):
                    first[r, h] = backed_off + first_at_end[h]
                    reach[r, h] = reach_at_end[h]
            for h in range(n_heads):
                if q != 0 and not holds[end, h]:  # the end of an n-gram is an n-gram
                    continue
                a, b = head_ptr[h], head_ptr[h + 1]
                if a == b:
                    first[r, h], reach[r, h], holds[r, h] = 0.0, q, True
                    continue
                word = np.int64(head_word[a])
                if q == 0:
                    total, following = unigram[word], unigram_state[word]
                else:
                    key = (q << 32) | word
                    k = first_slot(key, n_slots)
                    while slots[THREE * k] != key and slots[THREE * k] != -1:
                        k += ONE
                        if k == n_slots:
                            k = uint64(0)
                    if slots[THREE * k] == -1:
                        continue
                    total, following = values[THREE * k + ONE], np.int32(slots[THREE * k + ONE + ONE])
                rest, following = run(lm, following, head_word, a + 1, b)
                first[r, h], reach[r, h] = lm_weight * (total + rest), following
                holds[r, h] = True
    return first, reach


@njit(cache=True, nogil=True)
def head_and_body_scores(lm, phrases, lm_weight, state):
    """Scores of heads and bodies after the states."""
    body_head, body_word, n_states = phrases.body_head, phrases.body_word, state.shape[0]
    n_bodies = body_word.shape[0]
    index, rows = _with_ends(lm, state)
    first, reach = _head_scores(lm, phrases, lm_weight, index, rows)
    empty = _find(index, np.int64(0))
    state_class = np.empty(n_states, dtype=np.int32)
    class_number = np.full(rows.shape[0], -1, dtype=np.int32)
    class_row = np.empty(rows.shape[0] + 1, dtype=np.int32)
    class_number[empty], class_row[0] = 0, empty
    n_classes = 1
    for r in range(n_states):
        row = _find(index, np.int64(cut(lm, state[r], 1)))
        if class_number[row] < 0:
            class_number[row], class_row[n_classes] = n_classes, row
            n_classes += 1
        state_class[r] = class_number[row]
    second = np.zeros((n_classes, n_bodies + 1))  # the last column is for phrases that are heads
    for c in range(n_classes):
        for k in range(n_bodies):
            q = reach[class_row[c], body_head[k]]
            if c > 0 and q == reach[empty, body_head[k]]:
                second[c, k] = second[0, k]
            else:
                second[c, k] = lm_weight * advance(lm, q, body_word[k])[0]
    return Scores(first[:n_states], second, state_class)


@njit(cache=True, nogil=True)
def contexts(n, met, scores, exact):
    """The Contexts of n + 1 places. With ``exact`` every state is one; without, states with the same last word are."""
    first, pair_place, pair_state, state_class = scores.first, met.pair_place, met.pair_state, scores.state_class
    n_pairs, n_heads = pair_place.shape[0], first.shape[1]
    ptr = np.zeros(n + 2, dtype=np.int32)
    of = np.full((n + 1, first.shape[0]), -1, dtype=np.int32)
    state = np.empty(n_pairs, dtype=np.int32)
    best = np.empty((n_pairs, n_heads))
    seen = np.full(scores.second.shape[0], -1, dtype=np.int32)  # context of a class at the current place
    m = 0
    for p in range(n + 1):
        ptr[p] = m
        for k in range(n_pairs):
            if pair_place[k] != p:
                continue
            r = pair_state[k]
            c = state_class[r]
            if exact or seen[c] < ptr[p]:
                seen[c] = m
                state[m] = r
                for h in range(n_heads):
                    best[m, h] = first[r, h]
                m += 1
            else:
                for h in range(n_heads):
                    best[seen[c], h] = max(best[seen[c], h], first[r, h])
            of[p, r] = seen[c] - ptr[p]
    ptr[n + 1] = m
    return Contexts(
        met.base, first, scores.second, met.state, scores.state_class, met.after, met.state_end, met.after_short,
        ptr, state[:m], best[:m], of,
    )  # fmt: skip
