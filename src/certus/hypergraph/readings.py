"""Constraints on the sequence that a derivation is read as: what it contains, in which order, how often.

    tagging.subject_to(contains(["DET", "NOUN"]), avoids(["VERB", "VERB"]))

The sequence of a tagging or of a tree of phrases is that of its tags, word by word, named or numbered. That of a
derivation of a hypergraph is of symbols that the user gives its edges, the symbol of an edge after those of its tails.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from certus.checks import Ints
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph.accepted import Accepted
from certus.hypergraph.automata import Automaton
from certus.problem import Problem

Y = TypeVar("Y")
Symbols = Sequence[Hashable]


@dataclass(frozen=True, slots=True, repr=False)
class Reading:
    """A constraint that an automaton reads: made for the alphabet of a problem, once that is known.

    ``mentioned`` are the symbols it speaks of; ``build`` takes their numbers and the size of the alphabet.
    """

    name: str
    mentioned: tuple[Hashable, ...]
    build: Callable[[list[int], int], Automaton]
    view: str | None = None
    symbols: tuple[Hashable, ...] | None = None

    def __repr__(self) -> str:
        return self.name

    def named(self, name: str) -> "Reading":
        """The same under another name."""
        return replace(self, name=name)

    def over(self, words: Sequence[str]) -> tuple[tuple[str, ...], Automaton]:
        """The alphabet and the automaton for sequences of words: of these, and of those that the constraint names."""
        if self.symbols is not None or self.view is not None:
            raise InvalidInput(f"{self.name}: translations are read as their words; leave symbols and view out.")
        numbers: dict[Hashable, int] = {word: k for k, word in enumerate(words)}
        for symbol in self.mentioned:
            if not isinstance(symbol, str):
                raise InvalidInput(f"{self.name}: {symbol!r} is no word; translations are read as words.")
        mentioned = [numbers.setdefault(symbol, len(numbers)) for symbol in self.mentioned]
        return tuple(map(str, numbers)), self.build(mentioned, len(numbers))

    def restricted(self, problem: Problem[Y]) -> Problem[Y]:
        """The problem restricted to the structures whose sequence is accepted."""
        own = problem.read_by(self)
        if own is not None:
            return own
        if not problem.has_sequence:
            raise NotSupported(f"{type(problem).__name__} has no sequence that {self.name} could read.")
        view = next(iter(problem.views)) if self.view is None else self.view
        shape = problem.checked_view(view)
        if self.symbols is None and len(shape) != 2:
            raise InvalidInput(f"{self.name}: say what is read: symbols=[...], one for each part of {view!r}.")
        cell, numbers = self._listed(view, shape) if self.symbols is not None else _tags(problem, view, shape)
        mentioned = []
        for symbol in self.mentioned:
            if symbol not in numbers and self.symbols is None:
                raise InvalidInput(f"{self.name}: {symbol!r} is none of the {shape[-1]} symbols of {view!r}.")
            mentioned.append(numbers.setdefault(symbol, len(numbers)))
        size = 1 + max([*numbers.values(), -1])
        return Accepted(problem, self.build(mentioned, size), view, cell)

    def _listed(self, view: str, shape: tuple[int, ...]) -> tuple[Ints, dict[Hashable, int]]:
        """The number of the symbol of each cell, and all numbers."""
        given = self.symbols or ()
        if len(given) != int(np.prod(shape, dtype=np.int64)):
            raise InvalidInput(f"{self.name}: there are {len(given)} symbols; view {view!r} has shape {shape}.")
        numbers: dict[Hashable, int] = {}
        cell = [-1 if s is None else numbers.setdefault(s, len(numbers)) for s in given]
        return np.array(cell, dtype=np.int64), numbers


def _tags(problem: Problem[Any], view: str, shape: tuple[int, ...]) -> tuple[Ints, dict[Hashable, int]]:
    """Cells along the last axis of a view are symbols, by number and, if they are tags, by name."""
    numbers: dict[Hashable, int] = {t: t for t in range(shape[-1])}
    if view == "tags" and problem.tags is not None:
        numbers |= {name: t for t, name in enumerate(problem.tags)}
    return np.tile(np.arange(shape[-1]), shape[0]), numbers


def contains(phrase: Symbols, *, view: str | None = None, symbols: Symbols | None = None) -> Reading:
    """The symbols of the phrase stand somewhere, one directly after the other.

    ``symbols`` are those of the parts of the view, None for parts that are not read; for tags they are known. The view
    is the first of the problem's unless it is named.
    """
    given = _phrase("contains", phrase)
    return _reading(f"contains({list(phrase)})", given, _searching, view, symbols)


def avoids(phrase: Symbols, *, view: str | None = None, symbols: Symbols | None = None) -> Reading:
    """The symbols of the phrase stand nowhere one directly after the other."""

    def build(numbers: list[int], size: int) -> Automaton:
        found = len(numbers)
        table = np.asarray(_searching(numbers, size).transitions)
        return Automaton(np.where(table == found, -1, table), finals=range(found))

    return _reading(f"avoids({list(phrase)})", _phrase("avoids", phrase), build, view, symbols)


def starts_with(phrase: Symbols, *, view: str | None = None, symbols: Symbols | None = None) -> Reading:
    """The sequence begins with the symbols of the phrase; none at all are allowed: then anything does."""

    def build(numbers: list[int], size: int) -> Automaton:
        table = np.full((len(numbers) + 1, size), -1)
        table[np.arange(len(numbers)), numbers] = np.arange(1, len(numbers) + 1)
        table[-1] = len(numbers)
        return Automaton(table, finals=[len(numbers)])

    if isinstance(phrase, str):
        raise InvalidInput(f"starts_with({phrase!r}): expected a list of symbols.")
    return _reading(f"starts_with({list(phrase)})", tuple(phrase), build, view, symbols)


def in_order(*order: Hashable, view: str | None = None, symbols: Symbols | None = None) -> Reading:
    """Of these symbols, which need not stand there at all, none stands after one that is named later."""

    def build(numbers: list[int], size: int) -> Automaton:
        table = np.tile(np.arange(len(numbers) + 1)[:, None], (1, size))  # states: the latest one so far
        for k, symbol in enumerate(numbers, start=1):
            table[:, symbol] = np.where(np.arange(len(table)) > k, -1, k)
        return Automaton(table)

    if len(set(order)) != len(order) or not order:
        raise InvalidInput(f"in_order{order!r}: expected different symbols, and one at least.")
    return _reading(f"in_order({', '.join(map(repr, order))})", order, build, view, symbols)


def count(
    of: Symbols, least: int = 0, most: int | None = None, *, view: str | None = None, symbols: Symbols | None = None
) -> Reading:
    """So many of these symbols stand there: ``least`` or more, and no more than ``most`` if that is given."""
    name = f"count({list(of)}, {least}, {most})"
    return _reading(name, tuple(of), _counting(name, least, most), view, symbols)


def length(
    least: int = 0, most: int | None = None, *, view: str | None = None, symbols: Symbols | None = None
) -> Reading:
    """The sequence has so many symbols: ``least`` or more, and no more than ``most`` if that is given."""
    counting = _counting(f"length({least}, {most})", least, most)
    return _reading(f"length({least}, {most})", (), lambda _, size: counting(list(range(size)), size), view, symbols)


def accepted(automaton: Automaton, *, view: str | None = None, symbols: Symbols | None = None) -> Reading:
    """The automaton accepts the sequence; symbols that it does not have are refused. It has no weights."""
    names = tuple(range(automaton.n_symbols)) if automaton.symbols is None else automaton.symbols

    def build(numbers: list[int], size: int) -> Automaton:
        table = np.full((automaton.n_states, size), -1)
        weights = np.zeros(table.shape)
        table[:, numbers], weights[:, numbers] = automaton.transitions, automaton.weights
        return Automaton(table, weights, initial=automaton.initial, final_weights=automaton.final_weights)

    return _reading(f"accepted({automaton!r})", names, build, view, symbols)


def _reading(
    name: str,
    mentioned: tuple[Hashable, ...],
    build: Callable[[list[int], int], Automaton],
    view: str | None,
    symbols: Symbols | None,
) -> Reading:
    return Reading(name, mentioned, build, view, None if symbols is None else tuple(symbols))


def _phrase(word: str, phrase: Symbols) -> tuple[Hashable, ...]:
    if isinstance(phrase, str) or not len(phrase):
        raise InvalidInput(f"{word}({phrase!r}): expected a list of symbols, one at least.")
    return tuple(phrase)


def _searching(numbers: list[int], size: int) -> Automaton:
    """States: how much of the phrase stands at the end so far; the last state, all of it somewhere, is final."""
    found = len(numbers)
    table = np.zeros((found + 1, size), dtype=np.int64)
    table[found] = found
    for k in range(found):
        for s in range(size):
            seen = [*numbers[:k], s]
            table[k, s] = next(j for j in range(k + 1, -1, -1) if j == 0 or seen[-j:] == numbers[:j])
    return Automaton(table, finals=[found])


def _counting(name: str, least: int, most: int | None) -> Callable[[list[int], int], Automaton]:
    for k in (least, *(() if most is None else (most,))):
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 0:
            raise InvalidInput(f"{name}: {k!r} is no number of symbols; expected a whole number of at least 0.")
    top = least if most is None else most

    def build(numbers: list[int], size: int) -> Automaton:
        table = np.tile(np.arange(top + 1)[:, None], (1, size))
        table[:-1, numbers] += 1
        if most is not None:
            table[-1, numbers] = -1
        return Automaton(table, finals=range(least, top + 1))

    return build
