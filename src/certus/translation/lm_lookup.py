"""A language model asked about many words at once, in numpy: what proofs of translations are checked by.

``advance`` is ``LanguageModel.advance`` for arrays, to the last digit. ``PairTables`` holds what bounds the score of a
word by the word before it, whatever stood before that: with a multiplier u[t, v] for every pair of adjacent words,

    q[v, w]  =  max over t of  ( most that w may score after .. t v  +  u[t, v] )  -  u[v, w],

and the scores of a sentence's words, whatever u is, add up to no more than the sum of q over its pairs, since what one
word gains by u the next one pays.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from certus.checks import Bools, Floats, Ints
from certus.translation.language_model import LanguageModel, first_slots


def advance(lm: LanguageModel, state: Ints, word: Ints) -> tuple[Floats, Ints]:
    """(ln p(word | state), next state) of each pair, added up in the order of ``LanguageModel.advance``."""
    a = lm.arrays
    total, following = np.zeros(len(state)), np.zeros(len(state), dtype=np.int64)
    left, now = np.arange(len(state)), state
    while len(left):
        slot = _find(a.slots, (now << 32) | word[left])
        bare, hit = now == 0, slot >= 0
        hit &= ~bare
        total[left[hit]] += a.values[3 * slot[hit] + 1]
        following[left[hit]] = a.slots[3 * slot[hit] + 2]
        total[left[bare]] += a.unigram[word[left[bare]]]
        following[left[bare]] = a.unigram_state[word[left[bare]]]
        more = ~(bare | hit)
        left, now = left[more], now[more]
        total[left] += a.back_off[now]
        now = a.state_suffix[now].astype(np.int64)
    return total, following


def _find(slots: Ints, key: Ints) -> Ints:
    """Slot of each key in the hash table, -1 for those that it does not hold."""
    n = len(slots) // 3
    at = first_slots(key, n)
    found = np.full(len(key), -1, dtype=np.int64)
    left = np.arange(len(key))
    while len(left):
        held = slots[3 * at]
        hit = held == key[left]
        found[left[hit]] = at[hit]
        on = ~hit & (held != -1)
        left, at = left[on], (at[on] + 1) % n
    return found


class PairTables(NamedTuple):
    """Bounds of a model's weighted scores over W words, from contexts that pairs of words may be part of."""

    order: int
    begin: int  # <s> among the words
    pair: Floats  # (W, W) score of w after v alone; -inf where they are not adjacent
    back: Floats  # (W, W) the most that a history that ends in t, v adds when the model backs off to v
    older: Ints  # per n-gram of three words or more: its last three words ...
    before: Ints
    word: Ints
    value: Floats  # ... and the most that the last one scores by it, after whatever stands before

    def mapped(self, change: Callable[[Floats], Floats]) -> "PairTables":
        """The same with all scores changed by a function of arrays."""
        return self._replace(pair=change(self.pair), back=change(self.back), value=change(self.value))

    def optimistic(self, u: Floats, allowed: Bools) -> Floats:
        """q of the head of the file; ``allowed`` pairs only."""
        if self.order <= 2:
            return np.where(allowed, self.pair, -np.inf)
        top = np.where(allowed, self.back + u, -np.inf).max(axis=0, initial=-np.inf)
        top[self.begin] = max(top[self.begin], 0.0)  # nothing stands before the sentence
        q = self.pair + top[:, None]
        kept = allowed[self.older, self.before]
        at = self.before[kept] * len(q) + self.word[kept]
        np.maximum.at(q.reshape(-1), at, self.value[kept] + u[self.older[kept], self.before[kept]])
        return np.where(allowed, q - u, -np.inf)


def pair_tables(lm: LanguageModel, weight: float, words: Ints, allowed: Bools) -> PairTables:
    """The tables for the words numbered ``words`` (W,) in the model, each once; ``allowed`` (W, W) may be adjacent."""
    a, n_words = lm.arrays, len(words)
    v, w = np.nonzero(allowed)
    pair = np.full(allowed.shape, -np.inf)
    pair[v, w] = weight * advance(lm, a.unigram_state[words[v]].astype(np.int64), words[w])[0]
    number = np.full(len(lm.words), -1, dtype=np.int64)
    number[words] = np.arange(n_words)
    known = np.zeros(lm.n_states, dtype=bool)  # contexts of these words
    known[0] = True
    cost, raised = np.zeros(lm.n_states), np.zeros(lm.n_states)
    back = np.full(allowed.shape, -np.inf)
    last, older = number[a.state_word], number[a.state_word[a.state_parent]]
    for length in range(1, lm.order):
        at = np.flatnonzero(a.state_length == length)
        at = at[known[a.state_parent[at]] & (last[at] >= 0)]
        known[at] = True
        if length == 1:
            continue
        own, end = weight * a.back_off[at], a.state_suffix[at]
        cost[at] = own + cost[end]
        np.maximum.at(back, (older[at], last[at]), cost[at])
        for _ in range(length - 2):
            np.maximum.at(raised, end, own)
            own, end = own + weight * a.back_off[end], a.state_suffix[end]
    back[back == -np.inf] = 0.0
    keys = a.slots[::3]
    slot = np.flatnonzero((keys >> 32) > 0)
    context, word = keys[slot] >> 32, number[keys[slot] & 0xFFFFFFFF]
    kept = (word >= 0) & known[context] & (a.state_length[context] > 1)
    slot, context, word = slot[kept], context[kept], word[kept]
    value = weight * a.values[3 * slot + 1] + raised[context]
    begin = int(number[lm.begin])
    return PairTables(lm.order, begin, pair, back, older[context], last[context], word, value)
