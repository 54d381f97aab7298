"""Automata that read translations: what ``contains``, ``length`` and their like become once the words are known."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from certus.checks import Bools, Ints
from certus.errors import InvalidInput
from certus.hypergraph.automata import Automaton
from certus.hypergraph.readings import Reading
from certus.schema import MOST, Field

REFUSED = -1
MOST_STATES = 20_000  # of several constraints together


class WordReader:
    """A deterministic automaton without weights over named words; a word that it does not have is refused.

    ``step[q, w]`` is the state after word w, -1 where it is refused.
    """

    def __init__(self, words: Sequence[str], step: Ints, initial: int, final: Bools) -> None:
        self.words, self.step, self.initial, self.final = tuple(words), step, int(initial), final
        self.number = {word: k for k, word in enumerate(self.words)}
        if step.shape != (len(final), len(self.words)) or len(self.number) < len(self.words):
            raise InvalidInput(f"an automaton of {len(final)} states has steps for {len(self.words)} different words.")

    @classmethod
    def of(cls, reading: Reading, words: Iterable[str]) -> "WordReader":
        """The automaton of a constraint, for translations of some words."""
        alphabet, a = reading.over(sorted(set(words)))
        return cls.of_automaton(alphabet, a)

    @classmethod
    def of_automaton(cls, words: Sequence[str], a: Automaton) -> "WordReader":
        """An automaton whose symbols are these words; InvalidInput if it has weights."""
        arcs = a.weights[(a.transitions >= 0) & (a.weights > -np.inf)]
        if arcs.any() or a.final_weights[a.final_weights > -np.inf].any():
            raise InvalidInput("the automaton has weights; a constraint has none.")
        step = np.where(a.weights > -np.inf, a.transitions, REFUSED).astype(np.int64)
        return cls(words, step, a.initial, a.final_weights > -np.inf)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.final)

    def accepts(self, words: Iterable[str]) -> bool:
        """Whether a translation is accepted."""
        q = self.initial
        for word in words:
            k = self.number.get(word, REFUSED)
            q = int(self.step[q, k]) if k >= 0 else REFUSED
            if q < 0:
                return False
        return bool(self.final[q])

    def after(self, words: Sequence[str]) -> Ints:
        """(Q,): the state that words lead to from each state, -1 if they are refused."""
        q = np.arange(self.n_states)
        for word in words:
            k = self.number.get(word, REFUSED)
            q = np.where(q < 0, REFUSED, self.step[q, k]) if k >= 0 else np.full(self.n_states, REFUSED)
        return q

    def joined(self, other: "WordReader") -> "WordReader":
        """The automaton of what both accept; of its states those that are reached and from which some final one is."""
        words = sorted({*self.words, *other.words})
        mine, theirs = self._over(words), other._over(words)
        number = {(self.initial, other.initial): 0}
        pairs, rows = [(self.initial, other.initial)], []
        for p, q in pairs:
            a, b = mine[p], theirs[q]
            row = []
            for pair in zip(a.tolist(), b.tolist(), strict=True):
                if min(pair) < 0:
                    row.append(REFUSED)
                    continue
                if pair not in number:
                    number[pair] = len(number)
                    pairs.append(pair)
                row.append(number[pair])
            rows.append(row)
            if len(pairs) > MOST_STATES:
                raise InvalidInput(f"the constraints together have more than {MOST_STATES} states; give fewer.")
        final = np.array([self.final[p] and other.final[q] for p, q in pairs], dtype=bool)
        step = np.array(rows, dtype=np.int64).reshape(len(pairs), len(words))
        return WordReader(words, step, 0, final)

    def _over(self, words: Sequence[str]) -> Ints:
        at = [self.number.get(word, len(self.words)) for word in words]
        return np.column_stack((self.step, np.full(self.n_states, REFUSED)))[:, at]

    @cached_property
    def useful(self) -> "WordReader":
        """The same with steps to states from which no final one is reached refused."""
        good = self.final.copy()
        while True:
            more = good | np.where(self.step >= 0, good[self.step], False).any(axis=1)
            if (more == good).all():
                break
            good = more
        step = np.where((self.step >= 0) & good[self.step], self.step, REFUSED)
        return WordReader(self.words, step, self.initial, self.final)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "words": list(self.words),
            "states": self.n_states,
            "steps": self.step.ravel().tolist(),
            "initial": self.initial,
            "finals": np.flatnonzero(self.final).tolist(),
        }

    @classmethod
    def from_json(cls, given: Field) -> "WordReader":
        """What ``to_json`` described; InvalidInput if it is none."""
        words, states = given["words"].texts(), given["states"].whole(1, MOST)
        steps = given["steps"].wholes(REFUSED, states - 1)
        if len(steps) != states * len(words):
            given["steps"].fail(f"{states} times {len(words)} states")
        final = np.zeros(states, dtype=bool)
        final[given["finals"].wholes(0, states - 1)] = True
        initial = given["initial"].whole(0, states - 1)
        return given.made(lambda: cls(words, steps.reshape(states, len(words)).astype(np.int64), initial, final))
