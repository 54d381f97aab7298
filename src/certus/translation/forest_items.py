"""Items of a forest under the whole language model, of those derivations only that may score more than a limit.

An item is a vertex with the first and the last words of what it yields, as many as the model looks at (``span``), or
all of them if there are fewer. Words that have so many words before them have their scores; the others wait. A way to
make an item is an edge with an item for each of its vertices. Items are left out if their best way and the bound on
all around them, from ``forest_tables``, do not exceed the limit together.

Scores are whole numbers held in float64, as in ``forest_tables``.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from certus.certificates.ragged import ragged
from certus.checks import Bools, Floats, Ints
from certus.errors import InvalidInput
from certus.translation.forest_sides import Sides
from certus.translation.forest_tables import Tables

MOST_WAYS = 5_000_000


class Bounds(NamedTuple):
    """What bounds items: tables under q = optimistic scores with multipliers u; the limit they must exceed."""

    tables: Tables
    u: Floats
    allowed: Bools
    limit: float


class Ways(NamedTuple):
    """Ways to make items, by their items, bottom-up. ``top`` is the item of the last vertex, -1 if it has none."""

    head: Ints  # item
    edge: Ints
    tail: list[Ints]  # per place on target sides: the item there, -1 for none
    term: list[Ints]  # per place: the word that got its score there, as a row of ``grams``; -1 for none
    grams: Ints  # (n, span + 1) last words and the word that follows them; -1 before the sentence
    top: int


class _Partial(NamedTuple):
    """Beginnings of target sides with an item for every vertex so far."""

    edge: Ints
    left: Ints  # (n, span) first words, -1 after them
    right: Ints  # (n, span) last words, -1 before them
    seen: Ints  # how many first words there are
    score: Floats
    tail: list[Ints]
    term: list[Ints]

    def take(self, at: Ints) -> "_Partial":
        arrays = (self.edge[at], self.left[at], self.right[at], self.seen[at], self.score[at])
        return _Partial(*arrays, [a[at] for a in self.tail], [a[at] for a in self.term])


class Items:
    """All items and ways of ``sides``. ``score_of(grams)`` scores words after others, rounded up.

    Items 0 .. W - 1 are the words themselves, item W is the word ``begin`` at the start of the last vertex, before
    which nothing stands.
    """

    def __init__(self, sides: Sides, span: int, begin: int, bounds: Bounds, score_of: Callable[[Ints], Floats]) -> None:
        self.sides, self.span, self.bounds, self.score_of = sides, span, bounds, score_of
        n_words, n_vertices = len(bounds.u), len(sides.in_ptr) - 1
        words = np.append(np.arange(n_words), begin)
        self.left, self.right = np.full((n_words + 1, span), -1), np.full((n_words + 1, span), -1)
        self.left[:, 0] = self.right[:, -1] = words
        self.count, self.score = np.ones(n_words + 1, dtype=np.int64), np.zeros(n_words + 1)
        self.count[n_words] = span
        self.first = np.zeros(n_vertices + 1, dtype=np.int64)  # item of each vertex; those of v end where v + 1's begin
        self.first[0] = n_words + 1
        self._tried, self._n_grams = 0, 0
        found = []
        for v in range(n_vertices):
            if sides.in_ptr[v] < sides.in_ptr[v + 1]:
                found.append(self._vertex(v, top=v == n_vertices - 1))
            self.first[v + 1] = len(self.count)
        self.ways = self._joined(found)

    def _vertex(self, v: int, *, top: bool) -> Ways:
        partial, grams = self._partials(v)
        grams, number = _distinct(grams, len(self.bounds.u))
        gain = np.append(self.score_of(grams)[number], 0.0)
        partial = partial._replace(
            score=partial.score + sum(gain[term] for term in partial.term),
            term=[np.append(number + self._n_grams, -1)[term] for term in partial.term],
        )
        self._n_grams += len(grams)
        bound = partial.score if top else self._bound(v, partial)
        partial = partial.take(np.flatnonzero(bound > self.bounds.limit))
        rows = np.hstack((partial.left, partial.right))
        number = np.zeros(len(rows), dtype=np.int64)
        if not top:
            rows, number = _distinct(rows, len(self.bounds.u))
        rows = rows[:1] if top else rows
        order = np.argsort(number, kind="stable")
        partial, number = partial.take(order), number[order]
        score = np.full(len(rows), -np.inf)
        np.maximum.at(score, number, partial.score)
        head = len(self.count) + number
        self.left = np.concatenate((self.left, rows[:, : self.span]))
        self.right = np.concatenate((self.right, rows[:, self.span :]))
        count = np.zeros(len(rows), dtype=np.int64)
        count[number] = partial.seen
        self.count, self.score = np.append(self.count, count), np.append(self.score, score)
        return Ways(head, partial.edge, partial.tail, partial.term, grams, -1)

    def _bound(self, v: int, y: _Partial) -> Floats:
        """The most that a derivation with one of these may score."""
        tables, u = self.bounds.tables, self.bounds.u
        total = y.score.copy()
        for k in range(1, self.span):
            there = y.seen > k
            total[there] += tables.q[y.left[there, k - 1], y.left[there, k]]
        if self.span > 1:
            full = y.seen == self.span
            total[full] += u[y.left[full, -2], y.left[full, -1]] - u[y.right[full, -2], y.right[full, -1]]
        row_of, column_of = np.full(len(u), -1), np.full(len(u), -1)
        row_of[tables.first[v]] = np.arange(len(tables.first[v]))
        column_of[tables.last[v]] = np.arange(len(tables.last[v]))
        row, column = row_of[y.left[:, 0]], column_of[y.right[:, -1]]
        there = (row >= 0) & (column >= 0)
        out = np.full(len(total), -np.inf)
        out[there] = total[there] + tables.outside[v][row[there], column[there]]
        return out

    def _partials(self, v: int) -> tuple[_Partial, Ints]:
        """All combinations of items along the edges of v, and the grams that their terms are rows of."""
        edges = np.arange(self.sides.in_ptr[v], self.sides.in_ptr[v + 1])
        nothing = np.full((len(edges), self.span), -1)
        partial = _Partial(
            edges, nothing, nothing, np.zeros(len(edges), dtype=np.int64), self.sides.weight[edges], [], []
        )
        grams = [np.empty((0, self.span + 1), dtype=np.int64)]
        for k in range(int(np.diff(self.sides.ptr)[edges].max())):
            place = self.sides.ptr[partial.edge] + k
            there = place < self.sides.ptr[partial.edge + 1]
            symbol = self.sides.symbol[np.where(there, place, 0)]
            vertex = np.maximum(~symbol, 0)
            size = np.where(there & (symbol < 0), self.first[vertex + 1] - self.first[vertex], 1)
            at, within = ragged(size)
            self._count(len(at))
            item = np.where(symbol[at] < 0, self.first[vertex[at]] + within, symbol[at])
            item = np.where(there[at], item, -1)
            if k == 0 and v == len(self.first) - 2:
                item[:] = len(self.bounds.u)
            elif k:
                fits = self.bounds.allowed[partial.right[at, -1], self.left[item, 0]] | (item < 0)
                at, item = at[fits], item[fits]
            partial = partial.take(at)
            partial.tail.append(np.where(item > len(self.bounds.u), item, -1))
            partial = self._follow(partial, item, grams) if k else self._start(partial, item)
        return partial, np.concatenate(grams)

    def _count(self, more: int) -> None:
        self._tried += more
        if self._tried > MOST_WAYS:
            raise InvalidInput(f"the multipliers prove too little: more than {MOST_WAYS} combinations are left.")

    def _start(self, y: _Partial, item: Ints) -> _Partial:
        return y._replace(
            left=self.left[item], right=self.right[item], seen=self.count[item], score=y.score + self.score[item]
        )

    def _follow(self, y: _Partial, item: Ints, grams: list[Ints]) -> _Partial:
        """Each partial with an item after it, -1 for none."""
        there = item >= 0
        left, right, count, span = y.left.copy(), y.right.copy(), y.seen.copy(), self.span
        for j in range(span):
            word = self.left[item, j]
            at = np.flatnonzero(there & (word >= 0))
            full = at[count[at] == span]
            term = np.full(len(item), -1)
            term[full] = sum(map(len, grams)) + np.arange(len(full))
            grams.append(np.column_stack((right[full], word[full])))
            y.term.append(term)
            more = at[count[at] < span]
            left[more, count[more]] = word[more]
            count[more] += 1
            right[at, :-1], right[at, -1] = right[at, 1:], word[at]
        whole = np.flatnonzero(there & (self.count[item] == span))
        right[whole] = self.right[item[whole]]
        score = y.score + np.where(there, self.score[item], 0.0)
        return y._replace(left=left, right=right, seen=count, score=score)

    def _joined(self, found: list[Ways]) -> Ways:
        """The ways of all vertices."""
        none = np.zeros(0, dtype=np.int64)
        return Ways(
            np.concatenate([none, *(w.head for w in found)]),
            np.concatenate([none, *(w.edge for w in found)]),
            _padded([w.tail for w in found], [len(w.head) for w in found]),
            _padded([w.term for w in found], [len(w.head) for w in found]),
            np.concatenate([np.empty((0, self.span + 1), dtype=np.int64), *(w.grams for w in found)]),
            len(self.count) - 1 if self.first[-2] < self.first[-1] else -1,
        )


def _padded(columns: list[list[Ints]], sizes: list[int]) -> list[Ints]:
    """The columns of several tables of these lengths, one table below the other; -1 where one has fewer columns."""
    most = max(map(len, columns), default=0)
    return [
        np.concatenate([c[k] if k < len(c) else np.full(n, -1) for c, n in zip(columns, sizes, strict=True)])
        for k in range(most)
    ]


def _distinct(rows: Ints, base: int) -> tuple[Ints, Ints]:
    """The different rows of numbers -1 .. base - 1, and which of them each row is."""
    key, size = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T:
        if size * (base + 1) >= 2**62:
            key, size = np.unique(key, return_inverse=True)[1], len(key) + 1
        key, size = key * (base + 1) + column + 1, size * (base + 1)
    _, at, number = np.unique(key, return_index=True, return_inverse=True)
    return rows[at], number
