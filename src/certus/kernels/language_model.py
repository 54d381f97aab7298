"""Back-off language models as deterministic automata.

A state is a context: the longest end of the words so far that the model knows and that matters. State 0 has no words.
In state q, word w has the n-gram (q, w) if the model holds it, else q costs its back-off and the longest proper end of
q that is a state is tried:

    ln p(w | q) = value[q, w]                      if (q, w) is in the model
                  back_off[q] + ln p(w | suffix[q])  otherwise; q = 0 holds every word.

N-grams of two or more words lie in one open-addressing hash table with linear probing. Slot i takes 24 bytes: the key
q << 32 | w in ``slots[3 i]`` (-1 if empty), the natural logarithm of the probability in ``values[3 i + 1]`` and the
state after w in ``slots[3 i + 2]``. ``slots`` (int64) and ``values`` (float64) are two views of the same memory, so
that a hit touches one or two cache lines. Unigrams lie in ``unigram`` (W,) and ``unigram_state`` (W,).
"""

import numpy as np

from certus.kernels.compiling import njit

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)
LANES = 8  # sentences scored at once: their lookups wait for memory together


@njit(cache=True, nogil=True)
def first_slot(key, n_slots):
    """Where a key is looked for first."""
    mixed = np.uint64(key)
    mixed = (mixed ^ (mixed >> HALF)) * MULTIPLIER
    return ((mixed >> HALF) * n_slots) >> HALF


@njit(cache=True, nogil=True)
def look_up(slots, values, unigram, unigram_state, back_off, suffix, state, word):
    """``advance`` on bare arrays: taken out of the tuple in here, each would be reference-counted at every use."""
    n_slots = np.uint64(slots.shape[0] // 3)
    total = 0.0
    q = np.int64(state)
    while q != 0:
        key = (q << 32) | np.int64(word)
        i = first_slot(key, n_slots)
        while True:
            found = slots[np.uint64(3) * i]
            if found == key:
                return total + values[np.uint64(3) * i + np.uint64(1)], np.int32(slots[np.uint64(3) * i + np.uint64(2)])
            if found == -1:
                break
            i += np.uint64(1)
            if i == n_slots:
                i = np.uint64(0)
        total += back_off[np.uint64(q)]
        q = np.int64(suffix[np.uint64(q)])
    return total + unigram[np.uint64(word)], unigram_state[np.uint64(word)]


@njit(cache=True, nogil=True, hot=True)
def advance(lm, state, word):
    """(ln p(word | state), next state). ``lm`` is an LmArrays; state and word are valid ids."""
    return look_up(lm.slots, lm.values, lm.unigram, lm.unigram_state, lm.back_off, lm.state_suffix, state, word)


@njit(cache=True, nogil=True)
def advance_all(lm, state, word, ptr, log_probability):
    """Runs word[ptr[s]:ptr[s + 1]] from state[s] for every s; fills log_probability per word, state with the last."""
    sentence = np.full(LANES, -1, dtype=np.int64)
    at = np.zeros(LANES, dtype=np.int64)
    n, begun, busy = ptr.shape[0] - 1, 0, True
    while busy:
        busy = False
        for lane in range(LANES):
            s = sentence[lane]
            while (s < 0 or at[lane] == ptr[s + 1]) and begun < n:
                s = begun
                sentence[lane], at[lane] = s, ptr[s]
                begun += 1
            if s >= 0 and at[lane] < ptr[s + 1]:
                k = at[lane]
                log_probability[k], state[s] = advance(lm, state[s], word[k])
                at[lane] = k + 1
                busy = True
