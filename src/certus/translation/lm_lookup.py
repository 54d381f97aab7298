"""A language model asked about many words at once, in numpy: what proofs of translations are checked by.

``advance`` is ``LanguageModel.advance`` for arrays, to the last digit. ``PairTables`` holds what bounds the score of a
word by the word before it, whatever stood before that: with any number phi for every state of the model,

    q[v, w]  =  max over contexts c that end in v of  p(w | c) + phi(c) - phi(c w),

and the scores of a sentence's words add up to no more than the sum of q over its pairs, since what one word gains by
phi the next one pays. Here phi(c) = u[t, v] + high[c]: multipliers of the last two words, and of contexts of three or
more.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from certus.certificates.ragged import ranges
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
    """Weighted scores of a model over W words: contexts of two words or more, by length, and the words they hold."""

    order: int
    begin: int  # <s> among the words
    pair: Floats  # (W, W) score of w after v alone; -inf where they are not adjacent
    state: Ints  # (K,) of each context
    older: Ints  # its last word but one
    newer: Ints  # its last word
    parent: Ints  # the context without its last word, -1 for those of two words
    suffix: Ints  # the context without its first word, likewise
    back: Floats  # what backing off to the suffix adds
    context: Ints  # (R,) per n-gram: its context, sorted with its word
    word: Ints
    value: Floats
    following: Ints  # the context after it, of three words or more; -1 for none

    def mapped(self, change: Callable[[Floats], Floats]) -> "PairTables":
        """The same with all scores changed by a function of arrays."""
        return self._replace(pair=change(self.pair), back=change(self.back), value=change(self.value))

    def optimistic(self, u: Floats, high: Floats, allowed: Bools) -> Floats:
        """q of the head of the file; ``allowed`` pairs only. ``high`` is per state, 0 for less than three words.

        Where many contexts back off, some may do so for words that they hold: the bound is valid all the same.
        """
        if self.order <= 2:
            return np.where(allowed, self.pair, -np.inf)
        alive, own = self._alive(allowed), high[self.state]
        best, other, via = self._lifts(alive, own)
        rows = alive[self.context]
        context, word, after = (a[rows] for a in (self.context, self.word, self.following))
        v, t = self.newer[context], self.older[context]
        held = self._holds(via[context], word)
        value = self.value[rows] + u[t, v] + np.where(held, other[context], best[context]) - np.append(own, 0.0)[after]
        q = self.pair + self._backed_off(u, allowed, alive, best)
        np.maximum.at(q.reshape(-1), v * len(q) + word, value)
        return np.where(allowed, q - u, -np.inf)

    def _alive(self, allowed: Bools) -> Bools:
        """Contexts of words that may all be adjacent."""
        alive: Bools = allowed[self.older, self.newer]
        for _ in range(self.order - 3):  # contexts of one word more each time
            alive = alive & np.append(alive, True)[self.parent]
        return alive

    def _lifts(self, alive: Bools, own: Floats) -> tuple[Floats, Floats, Ints]:
        """Per context: the most that it, or a longer one that backs off to it, brings along; the same but for

        the longer one that brings most, and which this is, -1 for none.
        """
        best, other, via = own.copy(), np.full(len(own), -np.inf), np.full(len(own), -1)
        depth = np.zeros(len(own), dtype=np.int64)
        for k in range(1, self.order - 2):
            depth += np.where(_chased(self.parent, k) >= 0, 1, 0)
        for length in range(self.order - 3, 0, -1):
            at = np.flatnonzero(alive & (depth == length) & (self.suffix >= 0))
            at = at[np.lexsort((self.back[at] + best[at], self.suffix[at]))]
            end, value = self.suffix[at], self.back[at] + best[at]
            last = np.diff(end, append=-1) != 0
            second = np.roll(last, -1) & ~last if len(last) else last
            other[end[second]] = value[second]
            to, top = end[last], value[last]
            up = top > best[to]
            other[to] = np.where(up, np.maximum(other[to], best[to]), best[to])
            via[to[up]] = at[last][up]
            best[to[up]] = top[up]
        return best, other, via

    def _holds(self, context: Ints, word: Ints) -> Bools:
        """Whether each context, -1 for none, holds the word."""
        keys, wanted = self.context * len(self.pair) + self.word, context * len(self.pair) + word
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        return (context >= 0) & (keys[at] == wanted) if len(keys) else np.zeros(len(word), dtype=bool)

    def _backed_off(self, u: Floats, allowed: Bools, alive: Bools, best: Floats) -> Floats:
        """(W, W) the most that what stands before v adds to w after v alone, of contexts t, v that do not hold w."""
        n = len(self.pair)
        at = np.full((n, n), -1)
        short = np.flatnonzero(alive & (self.parent < 0))
        at[self.older[short], self.newer[short]] = short
        gain = np.where(allowed, u + np.append(self.back + best, 0.0)[at], -np.inf)
        out = np.full((n, n), -np.inf)
        every = np.arange(n)
        open_ = np.ones((n, n), dtype=bool)  # w for which no t was found yet
        for rank in range(FEW):
            t = gain.argmax(axis=0)
            top = gain[t, every]
            v, w = np.nonzero(open_ & allowed & (top > -np.inf)[:, None])
            free = ~self._holds(at[t[v], v], w) if rank < FEW - 1 else np.ones(len(v), dtype=bool)
            out[v[free], w[free]] = top[v[free]]
            open_[v[free], w[free]] = False
            gain[t, every] = -np.inf
        out[self.begin] = np.maximum(out[self.begin], 0.0)  # nothing stands before the sentence
        return out


FEW = 4  # words that back off best: the last of them may hold the word after it


def _chased(parent: Ints, times: int) -> Ints:
    """The parent's parent's .. of each context, -1 for none."""
    at, known = np.arange(len(parent)), np.append(parent, -1)
    for _ in range(times):
        at = known[at]
    return at


class _Contexts:
    """The words themselves, nodes 0 .. W - 1, and the contexts of two or more of them that the model has.

    Words may be copies of one word of the model. Node -1 is the empty context; a word that is no context of the model
    is none here either.
    """

    def __init__(self, lm: LanguageModel, words: Ints, allowed: Bools) -> None:
        a, n = lm.arrays, len(words)
        self.n_words, self.allowed = n, allowed
        self.copies = np.argsort(words, kind="stable")  # the words by their numbers in the model
        self.copy_ptr = np.searchsorted(words[self.copies], np.arange(len(lm.words) + 1))
        self.state = a.unigram_state[words].astype(np.int64)
        self.known = a.state_length[self.state] == 1
        self.newer, self.parent, self.suffix = np.arange(n), np.full(n, -1), np.full(n, -1)
        self._keys, self._nodes = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        by_parent = np.argsort(a.state_parent, kind="stable")
        child_ptr = np.searchsorted(a.state_parent[by_parent], np.arange(lm.n_states + 1))
        last = np.flatnonzero(self.known)
        for _ in range(lm.order - 2):
            row, at = ranges(child_ptr[self.state[last]], child_ptr[self.state[last] + 1])
            state = by_parent[at].astype(np.int64)
            node, again, word = self.followed_by(last[row], a.state_word[state].astype(np.int64))
            last = np.arange(len(self.state), len(self.state) + len(node))
            suffix = self.after(self.suffix[node], word)
            self.state, self.newer = np.append(self.state, state[again]), np.append(self.newer, word)
            self.parent, self.suffix = np.append(self.parent, node), np.append(self.suffix, suffix)
            keys, nodes = np.append(self._keys, node * n + word), np.append(self._nodes, last)
            order = np.argsort(keys)
            self._keys, self._nodes = keys[order], nodes[order]

    def followed_by(self, node: Ints, word: Ints) -> tuple[Ints, Ints, Ints]:
        """(node, row, copy): for each row, a node and a word of the model, the copies that may stand after the node."""
        row, at = ranges(self.copy_ptr[word], self.copy_ptr[word + 1])
        copy = self.copies[at]
        kept = self.allowed[self.newer[node[row]], copy]
        return node[row[kept]], row[kept], copy[kept]

    def after(self, node: Ints, word: Ints) -> Ints:
        """The node of the longest end of each node and the word after it that is one."""
        out, now, left = np.full(len(node), -1), node.copy(), np.arange(len(node))
        while len(left):
            bare = now == -1
            out[left[bare]] = np.where(self.known[word[left[bare]]], word[left[bare]], -1)
            left, now = left[~bare], now[~bare]
            keys = now * self.n_words + word[left]
            at = np.minimum(np.searchsorted(self._keys, keys), max(len(self._keys) - 1, 0))
            hit = self._keys[at] == keys if len(self._keys) else np.zeros(len(left), dtype=bool)
            out[left[hit]] = self._nodes[at[hit]]
            left, now = left[~hit], self.suffix[now[~hit]]
        return out


def pair_tables(lm: LanguageModel, weight: float, words: Ints, allowed: Bools) -> PairTables:
    """The tables for the words numbered ``words`` (W,) in the model, <s> first; ``allowed`` (W, W) may be adjacent.

    Several words may have one number: copies, which are told apart.
    """
    a, n = lm.arrays, len(words)
    v, w = np.nonzero(allowed)
    pair = np.full(allowed.shape, -np.inf)
    pair[v, w] = weight * advance(lm, a.unigram_state[words[v]].astype(np.int64), words[w])[0]
    nodes = _Contexts(lm, words, allowed)
    own = np.arange(n, len(nodes.state))
    keys = a.slots[::3]
    slot = np.flatnonzero((keys >> 32) > 0)
    slot = slot[np.argsort(keys[slot], kind="stable")]
    ptr = np.searchsorted(keys[slot] >> 32, np.arange(lm.n_states + 1))
    row, at = ranges(ptr[nodes.state[own]], ptr[nodes.state[own] + 1])
    node, row, word = nodes.followed_by(own[row], keys[slot[at]] & 0xFFFFFFFF)
    slot = slot[at[row]]
    order = np.lexsort((word, node))
    node, word, slot = node[order], word[order], slot[order]
    following = nodes.after(node, word)
    longer = (following >= n) & (words[word] != lm.end)
    longer[longer] = nodes.parent[following[longer]] >= n
    older = nodes.newer[nodes.parent[own]]
    return PairTables(
        lm.order, 0, pair, nodes.state[own], older, nodes.newer[own], _context(nodes.parent[own], n),
        _context(nodes.suffix[own], n), weight * a.back_off[nodes.state[own]], node - n, word,
        weight * a.values[3 * slot + 1], np.where(longer, following - n, -1),
    )  # fmt: skip


def _context(node: Ints, n_words: int) -> Ints:
    """Numbers of nodes among contexts of two words or more, -1 for those that are none."""
    return np.where(node >= n_words, node - n_words, -1)
