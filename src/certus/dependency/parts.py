"""Parts of dependency trees: where their scores are kept, which parts a tree has, and trees one by one.

A part is a tuple of word positions. Its scores come as a dense array (``DenseScores``) or, after pruning, as a list of
the parts that survive (``ListedScores``); both answer the same two questions, so nothing else needs to know which.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus.certificates.rounding import rounded_up
from certus.checks import Floats, Ints, as_scores
from certus.dependency.part_kinds import HIGHER_KINDS
from certus.errors import InvalidInput

LEFT, RIGHT = 0, 1

Index = NDArray[np.integer]
Readable = Callable[..., Any]

# Index letters of each kind of part, and how many sides (2) an index counts instead of words.
LAYOUT = {**{kind.name: kind.axes for kind in HIGHER_KINDS}, "stop": "hds", "null": "ghd"}


class Scores(Protocol):
    """Scores of one kind of part."""

    def at(self, *index: int) -> float:
        """Score of one part."""

    def gather(self, *index: NDArray[np.integer]) -> Floats:
        """Scores of many parts, given by one array per index."""

    def all(self) -> Floats:
        """All scores, in no special shape; cells that are no part may be among them."""

    def at_least(self, least: float, readable: Readable) -> "Scores":
        """The scores, those below ``least`` and of parts that no tree has read as -inf."""

    def rounded_up(self, step: float) -> "Scores":
        """The scores rounded up to multiples of ``step``."""

    def dense(self) -> Floats:
        """All scores as an array."""


class DenseScores:
    """Scores in an array with one axis per index."""

    def __init__(self, array: Floats) -> None:
        self.array = array

    def at(self, *index: int) -> float:
        return float(self.array[index])

    def gather(self, *index: NDArray[np.integer]) -> Floats:
        values: Floats = self.array[index]
        return values

    def all(self) -> Floats:
        return self.array

    def at_least(self, least: float, readable: Readable) -> "DenseScores":
        read = readable(*np.ogrid[tuple(slice(size) for size in self.array.shape)])
        return DenseScores(np.where(read & (self.array >= least), self.array, -np.inf))

    def rounded_up(self, step: float) -> "DenseScores":
        return DenseScores(rounded_up(self.array, step))

    def dense(self) -> Floats:
        return self.array


class ListedScores:
    """Scores of listed parts; every other part scores ``unlisted``. Memory: 16 bytes per part listed."""

    def __init__(self, shape: tuple[int, ...], index: Sequence[Ints], scores: Floats, unlisted: float) -> None:
        keys = np.ravel_multi_index(tuple(index), shape)
        order = np.argsort(keys, kind="stable")
        self.shape, self.unlisted = shape, unlisted
        self.keys: Ints = keys[order]
        self.values: Floats = scores[order]

    def positions(self, *index: NDArray[np.integer]) -> Ints:
        """Place of each part in ``keys`` and ``values``; -1 if it is not listed."""
        wanted = np.ravel_multi_index(tuple(i.astype(np.int64) for i in index), self.shape)
        if not len(self.keys):
            return np.full(len(wanted), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[place] == wanted, place, -1)

    def at(self, *index: int) -> float:
        return float(self.gather(*(np.array([i]) for i in index))[0])

    def gather(self, *index: NDArray[np.integer]) -> Floats:
        place = self.positions(*index)
        if not len(self.values):
            return np.full(len(place), self.unlisted)
        return np.where(place >= 0, self.values[place], self.unlisted)

    def all(self) -> Floats:
        return np.append(self.values, self.unlisted)

    def at_least(self, least: float, readable: Readable) -> "ListedScores":
        index = np.unravel_index(self.keys, self.shape)
        kept = np.where(readable(*index) & (self.values >= least), self.values, -np.inf)
        return ListedScores(self.shape, index, kept, self.unlisted if self.unlisted >= least else -np.inf)

    def rounded_up(self, step: float) -> "ListedScores":
        index = np.unravel_index(self.keys, self.shape)
        unlisted = float(rounded_up(np.array(self.unlisted), step))
        return ListedScores(self.shape, index, rounded_up(self.values, step), unlisted)

    def dense(self) -> Floats:
        check_memory("a dense copy of listed scores", self.shape)
        out = np.full(int(np.prod(self.shape)), self.unlisted)
        out[self.keys] = self.values
        return out.reshape(self.shape)


def shape_of(kind: str, n: int) -> tuple[int, ...]:
    """Shape of the dense array of a kind of part for n words."""
    return tuple(2 if letter == "d" else n + 1 for letter in LAYOUT[kind])


def dense_scores(kind: str, values: ArrayLike, n: int) -> DenseScores:
    """Check a dense array of part scores."""
    shape = shape_of(kind, n)
    if np.shape(values) == shape:
        check_memory(f"{kind} for {n} words as a dense array", shape)
    return DenseScores(as_scores(kind, values, shape))


def listed_scores(kind: str, listed: Sequence[ArrayLike], n: int, unlisted: float) -> ListedScores:
    """Check a list of parts: one array per index, then their scores."""
    letters = LAYOUT[kind]
    shape = shape_of(kind, n)
    index, scores = checked_list(kind, letters, listed, shape)
    return ListedScores(shape, index, scores, unlisted)


def checked_list(
    kind: str, letters: str, listed: Sequence[ArrayLike], shape: tuple[int, ...]
) -> tuple[list[Ints], Floats]:
    """The index arrays and scores of a list of parts; InvalidInput names the first one that cannot be used."""
    if len(listed) != len(letters) + 1:
        raise InvalidInput(f"{kind} has {len(listed)} arrays; expected {', '.join(letters)} and the scores.")
    scores = as_scores(f"scores of {kind}", listed[-1], (None,))
    index = []
    for letter, values, size in zip(letters, listed[:-1], shape, strict=True):
        array = np.asarray(values)
        if array.shape != scores.shape or (array.size and array.dtype.kind not in "iu"):
            raise InvalidInput(f"index {letter} of {kind} is not {len(scores)} whole numbers, one per score.")
        wrong = (array < 0) | (array >= size)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise InvalidInput(f"index {letter} of {kind}[{k}] is {array[k]}; expected 0..{size - 1}.")
        index.append(array.astype(np.int64))
    _check_distinct(kind, letters, index, shape)
    return index, scores


def readable(kind: str, arc: Floats, single: bool) -> Readable:
    """Which parts of a kind trees over the allowed arcs may have, as a function of the indices of parts."""
    allowed = arc > -np.inf

    def beside(h: Index, s: Index, m: Index) -> Any:
        between = ((h < s) & (s < m)) | ((m < s) & (s < h))
        return allowed[h, m] & ((s == h) | (between & allowed[h, s] & ((h > 0) | (not single))))

    def above(g: Index, h: Index, m: Index) -> Any:
        return allowed[g, h] & allowed[h, m] & (g != m)

    def with_both(g: Index, h: Index, s: Index, m: Index) -> Any:
        return above(g, h, m) & beside(h, s, m) & (g != s)

    def three(h: Index, t: Index, s: Index, m: Index) -> Any:
        return beside(h, s, m) & beside(h, t, s) & (s != h)

    def last(h: Index, d: Index, s: Index) -> Any:
        side = (s == h) | (allowed[h, s] & ((s > h) == (d == RIGHT)))
        return side & ((h > 0) | ((d == RIGHT) & ((s > 0) | (len(arc) == 1))))  # some word is a modifier of node 0

    def none(g: Index, h: Index, d: Index) -> Any:
        return allowed[g, h] & (d >= 0)

    tests: dict[str, Readable] = {
        "sibling": beside,
        "grandparent": above,
        "grandsibling": with_both,
        "trisibling": three,
        "stop": last,
        "null": none,
    }
    return tests[kind]


def _check_distinct(kind: str, letters: str, index: Sequence[Ints], shape: tuple[int, ...]) -> None:
    """InvalidInput names a part that is listed twice: decoders would add up both, and scores only one."""
    keys = np.ravel_multi_index(tuple(index), shape)
    if not len(keys) or (np.diff(keys) > 0).all():
        return
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(np.diff(keys[order]) == 0)
    if len(twice):
        first, second = order[twice[0]], order[twice[0] + 1]
        part = ", ".join(f"{letter}={array[first]}" for letter, array in zip(letters, index, strict=True))
        raise InvalidInput(f"{kind} lists the part {part} twice, at {first} and {second}; give each part once.")


def check_memory(what: str, shape: tuple[int, ...], copies: int = 1) -> None:
    """Raise InvalidInput, before anything is allocated, if float64 arrays of this shape cannot fit this machine."""
    need = 8 * copies * float(np.prod([float(size) for size in shape]))
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**34
    if need > 0.8 * have:
        raise InvalidInput(
            f"{what} takes {need / 2**30:.1f} GiB; this machine has {have / 2**30:.1f} GiB. Prune the arcs and give "
            "the parts that survive to certus.Dependency.from_parts: its cost grows with their number."
        )


# -- trees -----------------------------------------------------------------------------------------------------------


def checked_heads(structure: ArrayLike, n: int, *, projective: bool, single: bool) -> Ints:
    """The heads of a tree as an int64 array; InvalidInput says why it is not a tree of this problem."""
    heads = np.asarray(structure)
    if heads.shape != (n + 1,) or heads.dtype.kind not in "iu":
        raise InvalidInput(f"a tree over {n} words is {n + 1} whole numbers, structure[0] = -1; found {structure!r}.")
    head = heads.tolist()
    if head[0] != -1:
        raise InvalidInput(f"structure[0] is {head[0]}; node 0 is the root and has head -1.")
    for m in range(1, n + 1):
        if not 0 <= head[m] <= n or head[m] == m:
            raise InvalidInput(f"structure[{m}] is {head[m]}; the head of word {m} is another node, 0..{n}.")
    roots = head[1:].count(0)
    if single and n and roots != 1:
        raise InvalidInput(f'{roots} words have node 0 as head; with root="single" exactly one does.')
    grounded = [True] + [False] * n
    for m in range(1, n + 1):
        path: list[int] = []
        v = m
        while not grounded[v]:
            if v in path:
                raise InvalidInput(f"words {path[path.index(v) :]} form a cycle; every word must reach node 0.")
            path.append(v)
            v = head[v]
        for v in path:
            grounded[v] = True
    if projective:
        crossing = first_crossing(head)
        if crossing is not None:
            m, v = crossing
            raise InvalidInput(f"arc {head[m]} -> {m} crosses {head[v]} -> {v}; the problem is projective.")
    return heads.astype(np.int64)


def first_crossing(head: Sequence[int]) -> tuple[int, int] | None:
    """Two words whose arcs cross, or None."""
    for m in range(1, len(head)):
        low, high = min(m, head[m]), max(m, head[m])
        for v in range(1, len(head)):
            a, b = min(v, head[v]), max(v, head[v])
            if low < a < high < b:
                return m, v
    return None


def modifiers(head: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """For each node its left and its right modifiers, innermost first."""
    sides: list[tuple[list[int], list[int]]] = [([], []) for _ in head]
    for m in range(len(head) - 1, 0, -1):
        if m < head[m]:
            sides[head[m]][LEFT].append(m)
    for m in range(1, len(head)):
        if m > head[m]:
            sides[head[m]][RIGHT].append(m)
    return sides


def attachments(head: Sequence[int]) -> tuple[Ints, Ints, Ints, Ints, Ints, NDArray[np.bool_]]:
    """(g, h, t, s, m, outermost) of every word m, as arrays: what its higher-order parts are made of.

    g is -1 when h is node 0; s == h when m is innermost, and then t is -1; t == h when s is innermost.
    """
    size = len(head)
    t, s = [-1] * size, [-1] * size
    outermost = [False] * size
    for words, right in ((range(1, size), True), (range(size - 1, 0, -1), False)):
        second, last = [-1] * size, list(range(size))  # of each head's modifiers so far
        for m in words:
            h = head[m]
            if (m > h) is right:
                t[m], s[m] = second[h], last[h]
                second[h], last[h] = last[h], m
        for h, m in enumerate(last):
            outermost[m] |= m != h
    heads, seconds, inner = np.array((head, t, s), dtype=np.int64)
    above = heads[heads[1:]]
    return above, heads[1:], seconds[1:], inner[1:], np.arange(1, size), np.array(outermost)[1:]


def all_heads(allowed: NDArray[np.bool_], *, projective: bool, single: bool) -> Iterator[Ints]:
    """Every tree over the allowed arcs, crossing ones too unless ``projective``; for small n."""
    n = len(allowed) - 1
    choices = [[h for h in range(n + 1) if allowed[h, m] and h != m] for m in range(n + 1)]
    head = [-1] * (n + 1)

    def extend(m: int) -> Iterator[Ints]:
        if m > n:
            if single and n and head.count(0) != 1:
                return
            if not projective or first_crossing(head) is None:
                yield np.array(head, dtype=np.int64)
            return
        for h in choices[m]:
            if single and h == 0 and 0 in head[1:m]:
                continue
            v = h  # the heads of 1..m-1 are set: follow them, to see whether m would close a cycle
            while 0 < v < m:
                v = head[v]
            if v == m:
                continue
            head[m] = h
            yield from extend(m + 1)
        head[m] = -1

    # A cycle is closed by its largest word, which is set last and finds itself when followed.
    return extend(1)
