"""Items of a forest under the whole language model, of those derivations only that may score more than a limit.

An item is a vertex with the first words of what it yields, the state of the model after its last word, and that word.
It is closed once no word further on depends on what stands before it: it has as many first words as the model looks at
(``span``), or no context of the model is longer and ends in those it has. Words after a closed beginning have their
scores; the others wait. A way to make an item is an edge with an item for each of its vertices. Items are left out if
their best way and the bound on all around them, from ``forest_tables``, do not exceed the limit together.

Scores are whole numbers held in float64, as in ``forest_tables``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from certus.certificates.ragged import ragged
from certus.checks import Bools, Floats, Ints
from certus.errors import InvalidInput
from certus.translation.forest_sides import Sides
from certus.translation.forest_tables import Tables
from certus.translation.language_model import LanguageModel
from certus.translation.lm_lookup import advance

MOST_WAYS = 5_000_000
MOST_COMBINATIONS = 100_000_000  # looked at
AT_ONCE = 1_000_000


class Bounds(NamedTuple):
    """What bounds items: tables under q = optimistic scores with multipliers u and high of states; the limit."""

    tables: Tables
    u: Floats  # (W, W) by the last two words
    high: Floats  # per state of the model
    allowed: Bools
    limit: float


class Model(NamedTuple):
    """The language model over the words of the tables; ``score_of(terms)`` scores words after states, rounded up."""

    lm: LanguageModel
    words: Ints
    begin: int  # <s> among them
    score_of: Callable[[Ints], Floats]

    @property
    def span(self) -> int:
        return max(self.lm.order - 1, 1)

    def after(self, state: Ints, word: Ints) -> Ints:
        """The states after words."""
        return advance(self.lm, state, self.words[word])[1]

    def closes(self, state: Ints, count: Ints) -> Bools:
        """Whether nothing before so many words, which the state is after, matters to what follows."""
        a = self.lm.arrays
        unknown = (a.state_length[state] < count) | ~a.state_extendable[state]
        closed: Bools = (count == self.span) | ((count > 1) & unknown)
        return closed


class Ways(NamedTuple):
    """Ways to make items, by their items, bottom-up. ``top`` is the item of the last vertex, -1 if it has none."""

    head: Ints  # item
    edge: Ints
    tail: list[Ints]  # per place on target sides: the item there, -1 for none
    term: list[Ints]  # per place: the word that got its score there, as a row of ``terms``; -1 for none
    terms: Ints  # (n, 2) a state and the word that follows it
    top: int


class _Ends(NamedTuple):
    """What is known of stretches of words: of items, or of beginnings of target sides."""

    left: Ints  # (n, span) first words, -1 after them
    seen: Ints  # how many first words there are
    closed: Bools
    state: Ints
    before_last: Ints  # -1 for none
    last: Ints
    score: Floats
    lead: Floats  # optimistic scores of the first words; phi after them if it is closed

    def take(self, at: Ints | Bools) -> "_Ends":
        arrays: Any = self
        return _Ends(*(a[at] for a in arrays))

    def joined(self, other: "_Ends") -> "_Ends":
        pairs: Any = zip(self, other, strict=True)
        return _Ends(*map(np.concatenate, pairs))


class _Partial(NamedTuple):
    """Beginnings of target sides with an item for every vertex so far."""

    edge: Ints
    ends: _Ends
    tail: list[Ints]
    term: list[Ints]

    def take(self, at: Ints) -> "_Partial":
        return _Partial(self.edge[at], self.ends.take(at), [a[at] for a in self.tail], [a[at] for a in self.term])


class Items:
    """All items and ways of ``sides``.

    Items 0 .. W - 1 are the words themselves, item W is the word ``begin`` at the start of the last vertex, before
    which nothing stands.
    """

    def __init__(self, sides: Sides, model: Model, bounds: Bounds) -> None:
        self.sides, self.model, self.bounds = sides, model, bounds
        n_vertices, lm = len(sides.in_ptr) - 1, model.lm
        self.n_words = n = len(bounds.allowed)
        words = np.append(np.arange(n), model.begin)
        left = np.full((n + 1, model.span), -1)
        left[:, 0] = words
        state = np.append(model.after(np.zeros(n, dtype=np.int64), np.arange(n)), lm.begin_state)
        closed = np.full(n + 1, model.span == 1)
        closed[n] = True
        none, zero = np.full(n + 1, -1), np.zeros(n + 1)
        self.items = _Ends(left, np.ones(n + 1, dtype=np.int64), closed, state, none, words, zero, zero)
        self.to_pay = zero  # phi of the state after each item that is closed
        self.first = np.zeros(n_vertices + 1, dtype=np.int64)  # item of each vertex; those of v end where v + 1's begin
        self.first[0] = n + 1
        self._tried, self._made, self._n_terms = 0, 0, 0
        self._rest()
        found = []
        for v in range(n_vertices):
            if sides.in_ptr[v] < sides.in_ptr[v + 1]:
                found.append(self._vertex(v, top=v == n_vertices - 1))
            self.first[v + 1] = len(self.items.seen)
        self.ways = self._joined(found)

    def _rest(self) -> None:
        """Per place of a target side: whether words alone follow; their optimistic scores after the first; the ends."""
        ptr, symbol, q = self.sides.ptr, self.sides.symbol, self.bounds.tables.q
        size = len(symbol)
        self._bare = np.ones(size + 1, dtype=bool)
        self._gain, self._next, self._final = np.zeros(size + 1), np.full(size + 1, -1), np.full(size + 1, -1)
        ends = np.zeros(size + 1, dtype=bool)
        ends[ptr] = True
        for i in range(size - 1, -1, -1):
            if ends[i + 1]:
                continue  # nothing follows
            after = int(symbol[i + 1])
            self._bare[i] = after >= 0 and self._bare[i + 1]
            if self._bare[i]:
                self._next[i] = after
                self._final[i] = self._final[i + 1] if self._final[i + 1] >= 0 else after
                self._gain[i] = self._gain[i + 1] + (q[after, self._next[i + 1]] if self._next[i + 1] >= 0 else 0.0)

    def _vertex(self, v: int, *, top: bool) -> Ways:
        partial, terms = self._partials(v)
        keys, number = np.unique(terms[:, 0] * self.n_words + terms[:, 1], return_inverse=True)
        terms = np.column_stack((keys // self.n_words, keys % self.n_words))
        term, ends = [np.append(number + self._n_terms, -1)[column] for column in partial.term], partial.ends
        partial = partial._replace(term=term)
        self._n_terms += len(terms)
        to_pay = np.where(ends.closed, self._phi(ends.state, ends.before_last, ends.last), 0.0)
        bound = ends.score if top else ends.score + ends.lead - to_pay + self._around(v, ends.left[:, 0], ends.last)
        kept = np.flatnonzero(bound > self.bounds.limit)
        partial, to_pay = partial.take(kept), to_pay[kept]
        ends = partial.ends
        number = np.zeros(len(kept), dtype=np.int64)
        if not top:
            base = max(self.n_words, self.model.lm.n_states)
            number = _distinct(np.column_stack((ends.left, ends.state, ends.last)), base)
        order = np.lexsort((-ends.score, number))  # the best of each item first
        partial, to_pay, number = partial.take(order), to_pay[order], number[order]
        best = np.flatnonzero(np.diff(number, prepend=-1))
        head = len(self.items.seen) + number
        self.items, self.to_pay = self.items.joined(partial.ends.take(best)), np.append(self.to_pay, to_pay[best])
        return Ways(head, partial.edge, partial.tail, partial.term, terms, -1)

    def _around(self, v: int, first: Ints, last: Ints) -> Floats:
        """The best of all outside a vertex with these first and last words."""
        tables = self.bounds.tables
        row_of, column_of = np.full(self.n_words + 1, -1), np.full(self.n_words + 1, -1)
        row_of[tables.first[v]] = np.arange(len(tables.first[v]))
        column_of[tables.last[v]] = np.arange(len(tables.last[v]))
        row, column = row_of[first], column_of[last]
        out = np.full(len(first), -np.inf)
        there = (row >= 0) & (column >= 0)
        out[there] = tables.outside[v][row[there], column[there]]
        return out

    def _partials(self, v: int) -> tuple[_Partial, Ints]:
        """All combinations of items along the edges of v, and what their terms are rows of."""
        edges, top = np.arange(self.sides.in_ptr[v], self.sides.in_ptr[v + 1]), v == len(self.first) - 2
        terms = [np.empty((0, 2), dtype=np.int64)]
        partial = _Partial(edges, self.items.take(np.zeros(len(edges), dtype=np.int64)), [], [])
        partial = partial._replace(ends=partial.ends._replace(score=self.sides.weight[edges]))
        for k in range(int(np.diff(self.sides.ptr)[edges].max())):
            at, item = self._combinations(v, partial, k, top=top)
            partial = partial.take(at)
            partial.tail.append(np.where(item > self.n_words, item, -1))
            if k:
                partial = self._follow(partial, item, terms)
            else:
                ends = self.items.take(item)
                partial = partial._replace(ends=ends._replace(score=ends.score + partial.ends.score))
        return partial, np.concatenate(terms)

    def _combinations(self, v: int, partial: _Partial, k: int, *, top: bool) -> tuple[Ints, Ints]:
        """(partials, the item at place k of each, -1 for none) of what may score more than the limit."""
        place = self.sides.ptr[partial.edge] + k
        there = place < self.sides.ptr[partial.edge + 1]
        symbol = self.sides.symbol[np.where(there, place, 0)]
        vertex = np.maximum(~symbol, 0)
        size = np.where(there & (symbol < 0), self.first[vertex + 1] - self.first[vertex], 1)
        self._tried += int(size.sum())
        if self._tried > MOST_COMBINATIONS:
            raise InvalidInput(
                f"the multipliers prove too little: more than {MOST_COMBINATIONS} combinations are left."
            )
        group = np.cumsum(size) // AT_ONCE
        none = np.zeros(0, dtype=np.int64)
        found = [(none, none)]
        for start in np.flatnonzero(np.diff(group, prepend=-1)).tolist():
            stop = int(np.searchsorted(group, group[start], side="right"))
            at, within = ragged(size[start:stop])
            at += start
            item = np.where(symbol[at] < 0, self.first[vertex[at]] + within, symbol[at])
            item = np.where(there[at], item, -1)
            if k == 0 and top:
                item[:] = self.n_words
            elif k:
                fits = self.bounds.allowed[partial.ends.last[at], self.items.left[item, 0]] | (item < 0)
                at, item = at[fits], item[fits]
            if not top:
                fits = self._may_exceed(v, partial, at, item, place[at], first=k == 0)
                at, item = at[fits], item[fits]
            found.append((at, item))
            self._made += len(at)
            if self._made > MOST_WAYS:
                raise InvalidInput(f"the multipliers prove too little: more than {MOST_WAYS} combinations are left.")
        return np.concatenate([at for at, _ in found]), np.concatenate([item for _, item in found])

    def _may_exceed(self, v: int, partial: _Partial, at: Ints, item: Ints, place: Ints, *, first: bool) -> Bools:
        """Whether partials with an item after them may score more than the limit; True where vertices follow."""
        out = np.ones(len(at), dtype=bool)
        rows = np.flatnonzero((item > self.n_words) & self._bare[np.minimum(place, len(self._bare) - 1)])
        if not len(rows):
            return out
        at, item, place = at[rows], item[rows], place[rows]
        items, ends, q = self.items, partial.ends, self.bounds.tables.q
        total = ends.score[at] + items.score[item] + items.lead[item] - self.to_pay[item] + self._gain[place]
        following, last = self._next[place], items.last[item]
        total += np.where(following >= 0, q[last, following], 0.0)
        begin = items.left[item, 0]
        if not first:
            pay = np.where(ends.closed, self._phi(ends.state, ends.before_last, ends.last), 0.0)
            total += (ends.lead - pay)[at] + q[ends.last[at], begin]
            begin = ends.left[at, 0]
        total += self._around(v, begin, np.where(following >= 0, self._final[place], last))
        out[rows] = total > self.bounds.limit
        return out

    def _follow(self, y: _Partial, item: Ints, terms: list[Ints]) -> _Partial:
        """Each partial with an item after it, -1 for none."""
        there, items, bounds = item >= 0, self.items, self.bounds
        old = y.ends
        left, count, closed, state = old.left.copy(), old.seen.copy(), old.closed.copy(), old.state.copy()
        before_last, last, score, lead = old.before_last.copy(), old.last.copy(), old.score.copy(), old.lead.copy()
        for j in range(self.model.span):
            word = items.left[item, j]
            at = np.flatnonzero(there & (word >= 0))
            keys, number = np.unique(state[at] * self.n_words + word[at], return_inverse=True)
            steps = np.column_stack((keys // self.n_words, keys % self.n_words))
            term, full = np.full(len(item), -1), closed[at]
            term[at[full]] = sum(map(len, terms)) + number[full]
            terms.append(steps)
            y.term.append(term)
            score[at[full]] += self.model.score_of(steps)[number[full]]
            state[at] = self.model.after(steps[:, 0], steps[:, 1])[number]
            before_last[at], last[at] = last[at], word[at]
            more = at[~full]
            left[more, count[more]] = word[more]
            count[more] += 1
            lead[more] += bounds.tables.q[before_last[more], word[more]]
            closed[more] = self.model.closes(state[more], count[more])
            ready = more[closed[more]]
            lead[ready] += self._phi(state[ready], before_last[ready], last[ready])
        whole = np.flatnonzero(there & items.closed[item])
        state[whole], last[whole] = items.state[item[whole]], items.last[item[whole]]
        longer = whole[items.before_last[item[whole]] >= 0]
        before_last[longer] = items.before_last[item[longer]]
        score += np.where(there, items.score[item], 0.0)
        return y._replace(ends=_Ends(left, count, closed, state, before_last, last, score, lead))

    def _phi(self, state: Ints, before_last: Ints, last: Ints) -> Floats:
        """What multipliers say of states after two words; nothing where no word stands before the last."""
        return np.where(before_last >= 0, self.bounds.u[before_last, last] + self.bounds.high[state], 0.0)

    def _joined(self, found: list[Ways]) -> Ways:
        """The ways of all vertices."""
        none = np.zeros(0, dtype=np.int64)
        return Ways(
            np.concatenate([none, *(w.head for w in found)]),
            np.concatenate([none, *(w.edge for w in found)]),
            _padded([w.tail for w in found], [len(w.head) for w in found]),
            _padded([w.term for w in found], [len(w.head) for w in found]),
            np.concatenate([np.empty((0, 2), dtype=np.int64), *(w.terms for w in found)]),
            len(self.items.seen) - 1 if self.first[-2] < self.first[-1] else -1,
        )


def _padded(columns: list[list[Ints]], sizes: list[int]) -> list[Ints]:
    """The columns of several tables of these lengths, one table below the other; -1 where one has fewer columns."""
    most = max(map(len, columns), default=0)
    return [
        np.concatenate([c[k] if k < len(c) else np.full(n, -1) for c, n in zip(columns, sizes, strict=True)])
        for k in range(most)
    ]


def _distinct(rows: Ints, base: int) -> Ints:
    """Which of the different rows of numbers -1 .. base - 1 each row is."""
    key, size = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T:
        if size * (base + 1) >= 2**62:
            key, size = np.unique(key, return_inverse=True)[1], len(key) + 1
        key, size = key * (base + 1) + column + 1, size * (base + 1)
    number: Ints = np.unique(key, return_inverse=True)[1]
    return number
