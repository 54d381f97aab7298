"""N-gram language models with back-off, as automata whose states are contexts."""

import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Floats, as_words, of_kind
from certus.errors import InvalidInput
from certus.io.arpa import BEGIN, END, MAX_ORDERS, UNKNOWN, Arpa, read_arpa
from certus.io.kenlm import is_kenlm, read_kenlm

Int32 = NDArray[np.int32]
LN10 = float(np.log(10.0))
MULTIPLIER, HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
LOAD = 0.6  # share of the slots of the hash table in use


class LmArrays(NamedTuple):
    """A language model for kernels; the head of certus/kernels/language_model.py has the layout.

    All logarithms are natural. Arrays over states: ``back_off``, ``state_suffix`` (the longest proper end that is a
    state), ``state_length`` (words in the context), ``state_parent`` (the context less its last word) and
    ``state_word`` (that word); state 0 has no words and its own number as suffix and parent. The suffix of a state is
    shorter by one word. ``state_extendable`` says whether some longer state ends in the words of a state: if not, what
    stands before them no longer matters. ``begin_state`` is the one after ``<s>``, ``end`` the word ``</s>``.
    """

    order: int
    begin_state: int
    end: int
    slots: NDArray[np.int64]
    values: Floats
    unigram: Floats
    unigram_state: Int32
    back_off: Floats
    state_suffix: Int32
    state_length: Int32
    state_parent: Int32
    state_word: Int32
    state_extendable: NDArray[np.bool_]


class LanguageModel:
    """An n-gram language model with back-off; a deterministic automaton over words.

    A state is an int: the longest end of the words so far, of at most ``order - 1`` words, that the model knows and
    that matters. Contexts with no n-gram after them and no back-off cost are merged with their ends, so histories share
    a state whenever the n-grams show that all continuations score alike. Memory: 40 bytes an n-gram, 24 a state.

    Parameters
    ----------
    arpa : Arpa
        The n-grams, as ``certus.io.arpa.read_arpa`` gives them. Contexts that are missing (pruned models) are filled in
        with their backed-off probabilities.

    Attributes
    ----------
    order : int
    words : list of str
        The word of each id.
    unknown, begin, end : int
        Ids of ``<unk>``, ``<s>`` and ``</s>``.
    empty_state, begin_state : int
        The state without context, 0, and the one after ``<s>``.
    arrays : LmArrays
        For kernels.

    Examples
    --------
    >>> from certus.io.arpa import Ngrams
    >>> unigrams = Ngrams(np.arange(4, dtype=np.int32)[:, None], np.array([-1, 0, -0.5, -0.25]), np.zeros(4))
    >>> lm = LanguageModel(Arpa(["<unk>", "<s>", "</s>", "dog"], [unigrams]))
    >>> round(lm.score(["dog", "cat"]) / float(np.log(10)), 6)
    -1.75
    """

    def __init__(self, arpa: Arpa) -> None:
        _check(arpa)
        self.order = len(arpa.orders)
        self.words = arpa.words
        self._ids = {word: i for i, word in enumerate(arpa.words)}
        self.unknown, self.begin, self.end = (self._ids[mark] for mark in (UNKNOWN, BEGIN, END))
        self.empty_state = 0
        self.arrays = _automaton(arpa)
        self.begin_state = self.arrays.begin_state

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], *, unknown: float | None = None, words: Iterable[str] | None = None
    ) -> "LanguageModel":
        """Read an ARPA file, plain or .gz; see ``certus.io.arpa.read_arpa`` for ``unknown`` and for the errors.

        With ``words`` the file may also be a binary one of KenLM, of which only what concerns these words is read.
        """
        if words is not None and is_kenlm(path):
            return cls.read_kenlm(path, words)
        return cls(read_arpa(path, unknown=unknown))

    @classmethod
    def read_kenlm(cls, path: str | os.PathLike[str], words: Iterable[str]) -> "LanguageModel":
        """Read from a binary file of KenLM what concerns ``words``; needs the extra ``kenlm``. See certus.io.kenlm."""
        return cls(read_kenlm(path, words))

    def __repr__(self) -> str:
        return f"LanguageModel(order={self.order}, {len(self.words)} words, {self.n_states} states)"

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.arrays.back_off)

    def word_id(self, word: str) -> int:
        """Id of a word; the one of ``<unk>`` for a word that the model does not know."""
        return self._ids.get(word, self.unknown)

    def word_ids(self, words: Iterable[str]) -> Int32:
        """Ids of words."""
        return np.array([self._ids.get(word, self.unknown) for word in words], dtype=np.int32)

    def context(self, state: int) -> list[str]:
        """The words of a state."""
        words: list[str] = []
        while state != 0:
            words.append(self.words[self.arrays.state_word[state]])
            state = int(self.arrays.state_parent[state])
        return words[::-1]

    def advance(self, state: int, word: int) -> tuple[float, int]:
        """(ln p(word | state), next state), in plain Python; kernels have one of their own."""
        lm, total = self.arrays, 0.0
        while state != 0:
            i = _find(lm.slots, (state << 32) | word)
            if i >= 0:
                return total + float(lm.values[3 * i + 1]), int(lm.slots[3 * i + 2])
            total += float(lm.back_off[state])
            state = int(lm.state_suffix[state])
        return total + float(lm.unigram[word]), int(lm.unigram_state[word])

    def advance_each(self, state: NDArray[np.int64], word: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
        """``advance`` of many states, each by its own word, in numpy: the same numbers to the last digit.

        Ends of n-grams are n-grams, so that longer contexts are looked up only where shorter ones are held.
        """
        lm, held, slot = self.arrays, np.zeros(len(state), dtype=np.int64), np.zeros(len(state), dtype=np.int64)
        left = np.arange(len(state))
        for length in range(1, self.order):
            left = left[lm.state_length[state[left]] >= length]
            context = self.cut(state[left], length)
            at = _find_each(lm.slots, (context << 32) | word[left])
            left, context, at = left[at >= 0], context[at >= 0], at[at >= 0]
            held[left], slot[left] = context, at
        total, q = np.zeros(len(state)), state
        while (left := np.flatnonzero(q != held)).size:
            total[left] += lm.back_off[q[left]]
            q = q.copy()
            q[left] = lm.state_suffix[q[left]]
        value = np.where(held > 0, lm.values[3 * slot + 1], lm.unigram[word])
        return total + value, np.where(held > 0, lm.slots[3 * slot + 2], lm.unigram_state[word])

    def cut(self, states: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """The ends of states, of so many words at most."""
        states = states.copy()
        while (long := np.flatnonzero(self.arrays.state_length[states] > most)).size:
            states[long] = self.arrays.state_suffix[states[long]]
        return states

    def score(self, words: Sequence[str], begin: bool = True, end: bool = True) -> float:
        """ln p(words), from the state after ``<s>`` if ``begin``, with ``</s>`` after them if ``end``."""
        return sum(self.terms(words, begin, end))

    def terms(self, words: Sequence[str], begin: bool = True, end: bool = True) -> list[float]:
        """ln p of each word, as ``score`` adds them up; in plain Python."""
        ids = [self.word_id(word) for word in as_words("words", words)] + ([self.end] if end else [])
        state, found = self.begin_state if begin else self.empty_state, list[float]()
        for word in ids:
            value, state = self.advance(state, word)
            found.append(value)
        return found

    def log_probabilities(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """ln p of every word of every sentence and of the ``</s>`` after it; one kernel call for all."""
        ptr = np.concatenate(([0], np.cumsum([len(s) + 1 for s in sentences], dtype=np.int64)))
        ids = [i for s in sentences for i in (*(self.word_id(word) for word in s), self.end)]
        out = np.empty(len(ids))
        state = np.full(len(sentences), self.begin_state, dtype=np.int32)
        kernels.language_model.advance_all(self.arrays, state, np.array(ids, dtype=np.int32), ptr, out)
        return [out[a:b] for a, b in pairwise(ptr.tolist())]


def _check(arpa: Arpa) -> None:
    """Every word is one unigram, and every n-gram is of known words: the tables rely on it."""
    of_kind("arpa", arpa, Arpa, 'what certus.io.arpa reads; for a file call LanguageModel.read("lm.arpa")')
    n_words = len(arpa.words)
    if not 1 <= len(arpa.orders) <= MAX_ORDERS:
        raise InvalidInput(f"a language model has {len(arpa.orders)} orders; expected 1 to {MAX_ORDERS}.")
    if len(set(arpa.words)) < n_words:
        raise InvalidInput("the words of a language model come more than once; expected each once.")
    for mark in (UNKNOWN, BEGIN, END):
        if mark not in arpa.words:
            raise InvalidInput(f"a language model has the word {mark}, which is missing.")
    for order, grams in enumerate(arpa.orders, start=1):
        words = grams.words
        if words.shape != (len(grams.log_probability), order) or len(grams.back_off) != len(words):
            raise InvalidInput(f"the {order}-grams of a language model have shape {words.shape}, unlike their numbers.")
        if words.size and not (int(words.min()) >= 0 and int(words.max()) < n_words):
            raise InvalidInput(f"the {order}-grams of a language model name words that are not 0..{n_words - 1}.")
    if len(arpa.orders[0].words) != n_words:
        raise InvalidInput(f"a language model has {len(arpa.orders[0].words)} 1-grams for {n_words} words.")


def _find(slots: NDArray[np.int64], key: int) -> int:
    """Slot of a key, or -1: what the kernel's table lookup does, in plain Python."""
    n, low = len(slots) // 3, (1 << 64) - 1
    mixed = ((key ^ (key >> 32)) * 0x9E3779B97F4A7C15) & low
    i = ((mixed >> 32) * n) >> 32
    while slots[3 * i] != key:
        if slots[3 * i] == -1:
            return -1
        i = (i + 1) % n
    return i


def _find_each(slots: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """``_find`` of many keys, in numpy."""
    n, mixed = len(slots) // 3, keys.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    at = (((mixed >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).astype(np.int64)
    found = slots[3 * at]
    left = np.flatnonzero((found != keys) & (found != -1))
    while len(left):
        at[left] = (at[left] + 1) % n
        found = slots[3 * at[left]]
        left = left[(found != keys[left]) & (found != -1)]
    return np.where(slots[3 * at] == keys, at, -1)


class _Trie:
    """N-grams as nodes: 0 is empty, 1 + w the unigram w, then order by order; node (parent, word) found by its key."""

    def __init__(self, n_words: int) -> None:
        self.n_words = n_words
        self.keys: list[NDArray[np.int64]] = []  # per order, sorted: parent * n_words + word
        self.first: list[int] = []  # per order: node number of the first key

    def add(self, keys: NDArray[np.int64], first: int) -> None:
        self.keys.append(keys)
        self.first.append(first)

    def find(self, order: int, parent: NDArray[np.int64], word: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nodes of order ``order`` with these parents (of one order less) and words; -1 where there is none."""
        keys = self.keys[order - 1]
        wanted = parent * self.n_words + word
        at = np.searchsorted(keys, wanted)
        at[at == len(keys)] = 0
        hit = keys[at] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
        return np.where(hit, at + self.first[order - 1], -1)


def _automaton(arpa: Arpa) -> LmArrays:
    """The automaton of a model: trie of n-grams, suffix links, minimal states, hash table."""
    grams = _closed(arpa)
    n_words, unit = len(arpa.words), 1.0 if arpa.natural else LN10
    sizes = [1] + [len(words) for words, _, _, _ in grams]
    first = np.cumsum([0, *sizes])
    n_nodes = int(first[-1])
    parent, word, length = (np.zeros(n_nodes, dtype=np.int64) for _ in range(3))
    suffix = np.zeros(n_nodes, dtype=np.int64)
    log_probability, back_off = np.zeros(n_nodes), np.zeros(n_nodes)
    trie = _Trie(n_words)
    for order, (words, value, back, given) in enumerate(grams, start=1):
        above = np.zeros(len(words), dtype=np.int64)
        for k in range(1, order):
            above = trie.find(k, above, words[:, k - 1].astype(np.int64))
        keys = above * n_words + words[:, -1]
        order_of = np.argsort(keys, kind="stable")
        if (np.diff(keys[order_of]) == 0).any():
            raise InvalidInput(f"a language model has one of its {order}-grams twice.")
        trie.add(keys[order_of], int(first[order]))
        nodes = slice(int(first[order]), int(first[order + 1]))
        parent[nodes], word[nodes] = above[order_of], words[order_of, -1]
        length[nodes] = order
        log_probability[nodes], back_off[nodes] = value[order_of] * unit, back[order_of] * unit
        if order > 1:
            shorter = trie.find(order - 1, suffix[parent[nodes]], word[nodes]) if order > 2 else 1 + word[nodes]
            suffix[nodes] = shorter
            backed_off = back_off[parent[nodes]] + log_probability[shorter]
            log_probability[nodes] = np.where(given[order_of], log_probability[nodes], backed_off)

    is_state = back_off != 0.0
    is_state[parent[1:]] = True
    is_state[first[-2] :] = False  # the highest order is no context
    is_state[0] = True
    state_of = _states(is_state, suffix, first)
    longer = slice(int(first[2]) if len(grams) > 1 else n_nodes, n_nodes)
    keys = (state_of[parent[longer]] << 32) | word[longer]
    slots, values = _table(keys, log_probability[longer], state_of[longer])
    states = np.flatnonzero(is_state)
    unigrams = slice(1, 1 + n_words)
    return LmArrays(
        len(grams),
        int(state_of[1 + arpa.words.index(BEGIN)]),
        arpa.words.index(END),
        slots,
        values,
        log_probability[unigrams].copy(),
        state_of[unigrams].astype(np.int32),
        back_off[states],
        state_of[suffix[states]].astype(np.int32),
        length[states].astype(np.int32),
        state_of[parent[states]].astype(np.int32),
        word[states].astype(np.int32),
        np.bincount(state_of[suffix[states[1:]]], minlength=len(states)) > 0,
    )


def _states(is_state: NDArray[np.bool_], suffix: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """The state of each node: its own, or that of its longest end that has one. An end of a state becomes a state."""
    levels = [slice(int(a), int(b)) for a, b in pairwise(first[1:])]
    for nodes in levels[-2:0:-1]:
        is_state[suffix[nodes][is_state[nodes]]] = True
    number = np.cumsum(is_state) - 1
    state_of = np.where(is_state, number, 0)
    for nodes in levels:
        state_of[nodes] = np.where(is_state[nodes], number[nodes], state_of[suffix[nodes]])
    return state_of


def _closed(arpa: Arpa) -> list[tuple[Int32, Floats, Floats, NDArray[np.bool_]]]:
    """Per order: words, log10 probability, log10 back-off, whether given.

    Beginnings and ends of n-grams that the file leaves out (pruned models) are added: they only back off.
    """
    out = [(g.words, g.log_probability, g.back_off, np.ones(len(g.words), dtype=bool)) for g in arpa.orders]
    for k in range(len(out) - 1, 1, -1):
        words, value, back, given = out[k - 1]
        parts = np.concatenate([words, out[k][0][:, :k], out[k][0][:, 1:]])
        _, at = np.unique(_row_ids(parts, len(arpa.words)), return_index=True)  # the first row of each
        missing = at[at >= len(words)]
        if len(missing):
            out[k - 1] = (
                np.concatenate([words, parts[missing]]),
                np.concatenate([value, np.zeros(len(missing))]),
                np.concatenate([back, np.zeros(len(missing))]),
                np.concatenate([given, np.zeros(len(missing), dtype=bool)]),
            )
    return out


def _row_ids(rows: Int32, n_words: int) -> NDArray[np.int64]:
    """Numbers that are equal where rows are."""
    ids = rows[:, 0].astype(np.int64)
    for k in range(1, rows.shape[1]):
        ids = np.unique(ids * n_words + rows[:, k], return_inverse=True)[1]
    return ids


def _table(keys: NDArray[np.int64], value: Floats, state: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
    """The hash table of distinct keys: in the order of their first slots, each takes the next one that is free."""
    n = int(len(keys) / LOAD) + 1
    slots = np.full(3 * n, -1, dtype=np.int64)
    values = slots.view(np.float64)
    first = first_slots(keys, n)
    order = np.argsort(first, kind="stable")
    at = np.maximum.accumulate(first[order] - np.arange(len(keys))) + np.arange(len(keys))
    beyond = int((at >= n).sum())
    if beyond:  # the last ones go on from slot 0
        free = np.ones(n, dtype=bool)
        free[at[: len(at) - beyond]] = False
        at[len(at) - beyond :] = np.flatnonzero(free)[:beyond]
    slots[3 * at], values[3 * at + 1], slots[3 * at + 2] = keys[order], value[order], state[order]
    return slots, values


def first_slots(keys: NDArray[np.int64], n_slots: int) -> NDArray[np.int64]:
    """Where each key is looked for first, as the kernels have it."""
    mixed = keys.astype(np.uint64)
    mixed = (mixed ^ (mixed >> HALF)) * MULTIPLIER
    return (((mixed >> HALF) * np.uint64(n_slots)) >> HALF).astype(np.int64)
