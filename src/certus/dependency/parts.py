"""Parts of dependency trees: where their scores are kept, which parts a tree has, and trees one by one.

A part is a tuple of word positions. Its scores come as a dense array (``DenseScores``) or, after pruning, as a list of
the parts that survive (``ListedScores``); both answer the same two questions, so nothing else needs to know which.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus import checks
from certus.certificates.rounding import range_of, rounded_up
from certus.checks import Floats, Ints, as_numbers, as_scores, scores_and_highest
from certus.dependency.part_kinds import EMPTY, OUTERMOST, Model, Nodes, PartKind
from certus.errors import InvalidInput, NotSupported

Readable = Callable[..., Any]
Reader = Callable[[Nodes], float]
ABSENT = "fgt"  # letters of nodes that a modifier may lack


class Scores(Protocol):
    """Scores of one kind of part."""

    def at(self, *index: int) -> float:
        """Score of one part."""

    def gather(self, *index: NDArray[np.integer]) -> Floats:
        """Scores of many parts, given by one array per index."""

    def all(self) -> Floats:
        """All scores, in no special shape; cells that are no part may be among them."""

    def extremes(self) -> tuple[float, float]:
        """The least and the greatest finite score of all of them, as ``range_of``."""

    def at_least(self, least: float, readable: Readable) -> "Scores":
        """The scores, those below ``least`` and of parts that no tree has read as -inf."""

    def rounded_up(self, step: float) -> "Scores":
        """The scores rounded up to multiples of ``step``."""

    def dense(self) -> Floats:
        """All scores as an array."""


class DenseScores:
    """Scores in an array with one axis per index; ``extremes`` are the least and the greatest, if they are known."""

    def __init__(self, array: Floats, extremes: tuple[float, float] | None = None) -> None:
        self.array, self._extremes = array, extremes

    def at(self, *index: int) -> float:
        return float(self.array[index])

    def gather(self, *index: NDArray[np.integer]) -> Floats:
        values: Floats = self.array[index]
        return values

    def all(self) -> Floats:
        return self.array

    def extremes(self) -> tuple[float, float]:
        return self._extremes or range_of(self.array)

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

    def extremes(self) -> tuple[float, float]:
        return range_of(self.all())

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
        out = np.full(prod(self.shape), self.unlisted)
        out[self.keys] = self.values
        return out.reshape(self.shape)


def dense_scores(kind: PartKind, values: ArrayLike, n: int) -> DenseScores:
    """Check a dense array of part scores."""
    shape = kind.shape(n)
    array = as_numbers(kind.name, values)
    if array.shape == shape:
        check_memory(f"{kind.name} for {n} words as a dense array", shape)
    scores, highest = scores_and_highest(kind.name, array, shape)
    return DenseScores(scores, range_of(scores, highest))


def listed_scores(kind: PartKind, listed: Sequence[ArrayLike], n: int, unlisted: float) -> ListedScores:
    """Check a list of parts: one array per index, then their scores."""
    shape = kind.shape(n)
    return ListedScores(shape, *checked_list(kind, listed, shape), unlisted)


def checked_list(kind: PartKind, listed: Sequence[ArrayLike], shape: tuple[int, ...]) -> tuple[list[Ints], Floats]:
    """The index arrays and scores of a list of parts; InvalidInput names the first one that cannot be used."""
    name, letters = kind.name, kind.axes
    if len(listed) != len(letters) + 1:
        raise InvalidInput(f"{name} has {len(listed)} arrays; expected {', '.join(letters)} and the scores.")
    scores = as_scores(f"scores of {name}", listed[-1], (None,))
    index = []
    for letter, values, size in zip(letters, listed[:-1], shape, strict=True):
        array = np.asarray(values)
        if array.shape != scores.shape or (array.size and array.dtype.kind not in "iu"):
            raise InvalidInput(f"index {letter} of {name} is not {len(scores)} whole numbers, one per score.")
        wrong = (array < 0) | (array >= size)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise InvalidInput(f"index {letter} of {name}[{k}] is {array[k]}; expected 0..{size - 1}.")
        index.append(array.astype(np.int64))
    _check_distinct(kind, index, shape)
    return index, scores


def _check_distinct(kind: PartKind, index: Sequence[Ints], shape: tuple[int, ...]) -> None:
    """InvalidInput names a part that is listed twice: decoders would add up both, and scores only one."""
    keys = np.ravel_multi_index(tuple(index), shape)
    if not len(keys) or (np.diff(keys) > 0).all():
        return
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(np.diff(keys[order]) == 0)
    if len(twice):
        first, second = order[twice[0]], order[twice[0] + 1]
        part = ", ".join(f"{letter}={array[first]}" for letter, array in zip(kind.axes, index, strict=True))
        raise InvalidInput(f"{kind.name} lists the part {part} twice, at {first} and {second}; give each part once.")


PRUNED = (
    "Prune the arcs and give the parts that survive to certus.Dependency.from_parts: its cost grows with their number."
)


def check_memory(what: str, shape: tuple[int, ...], copies: int = 1) -> None:
    """Raise InvalidInput, before anything is allocated, if dense arrays of parts cannot fit this machine."""
    checks.check_memory(what, shape, copies, PRUNED)


# -- trees -----------------------------------------------------------------------------------------------------------


def with_fixed_arc(arc: Floats, index: tuple[int, ...], value: int) -> Floats:
    """The arc scores of the trees that have an arc (``value`` 1), or that do not (0)."""
    n, (h, m) = len(arc) - 1, index
    if not (0 <= h <= n and 0 <= m <= n):
        raise InvalidInput(f"{index} is no arc; expected (h, m) with h in 0..{n}, m in 1..{n}, h != m.")
    if value == 1 and (m == 0 or h == m):
        raise NotSupported(f"no tree has the arc {h} -> {m}, which is required.")
    if value not in (0, 1):
        raise InvalidInput(f"value is {value!r}; a part is fixed to 0 or 1.")
    fixed = arc.copy()
    if value == 1:
        fixed[:, m] = -np.inf
    fixed[h, m] = arc[h, m] if value == 1 else -np.inf
    return fixed


def checked_heads(structure: ArrayLike, n: int, *, projective: bool, single: bool) -> Ints:
    """The heads of a tree as an int64 array; InvalidInput says why it is not a tree of this problem."""
    heads = as_numbers("structure", structure)
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
    heads, words = np.asarray(head)[1:], np.arange(1, len(head))
    low, high = np.minimum(words, heads), np.maximum(words, heads)
    within = (low[:, None] < low) & (low < high[:, None])
    crossing = np.flatnonzero(within & (high[:, None] < high))
    return None if not len(crossing) else (int(crossing[0]) // len(words) + 1, int(crossing[0]) % len(words) + 1)


class TreeParts:
    """The parts of a tree, by kind: one array of nodes for each letter, -1 where there is none."""

    def __init__(self, head: Sequence[int], model: Model) -> None:
        self.places = model.places
        size = len(head)
        t, s = [-1] * size, [-1] * size
        ends: list[list[int]] = []  # of each side the outermost modifier of each head, or the head
        for order, right in ((range(size - 1, 0, -1), False), (range(1, size), True)):
            second, last = [-1] * size, list(range(size))  # of each head's modifiers so far
            for m in order:
                h = head[m]
                if (m > h) is right:
                    t[m], s[m] = second[h], last[h]
                    second[h], last[h] = last[h], m
            ends.append(last)
        heads, seconds, inner = np.array((head, t, s), dtype=np.int64)
        above = heads[1:]
        self.modifiers = {"h": above, "t": seconds[1:], "s": inner[1:], "m": np.arange(1, size)}
        self.ends, self.above = ends, heads

    def of(self, kind: PartKind) -> list[Ints]:
        """The parts of a kind, one array per index."""
        place = self.places.get(kind.name, kind.scored)
        used: NDArray[np.bool_] | None = None  # all of them
        if "m" in kind.axes:
            node = self.modifiers
            if "g" in kind.axes and "g" not in node:
                node["g"] = grand = self.above[node["h"]]
                node["f"] = np.where(grand >= 0, self.above[grand], -1)
            if place == OUTERMOST:
                used = np.array(self.ends)[(node["m"] > node["h"]).astype(np.int64), node["h"]] == node["m"]
        else:
            h, d = np.divmod(np.arange(1, 2 * len(self.above)), 2)  # node 0 has no left side
            node = {"g": self.above[h], "h": h, "d": d, "s": np.array(self.ends)[d, h]}
            used = node["s"] == h if place == EMPTY else None
        index = [node[letter] for letter in kind.axes]
        for letter, nodes in zip(kind.axes, index, strict=True):
            if letter in ABSENT:
                used = nodes >= 0 if used is None else used & (nodes >= 0)
        return index if used is None else [nodes[used] for nodes in index]


def reader(scores: Mapping[str, Scores], kinds: Iterable[PartKind]) -> Reader:
    """The scores of the parts of these kinds at one place of a tree, summed: a function of its nodes by letter."""
    found = [(kind.pick, scores[kind.name].at) for kind in kinds]

    def read(nodes: Nodes) -> float:
        total = 0.0
        for pick, at in found:
            index = pick(nodes)
            if min(index) >= 0:
                total += at(*index)
        return total

    return read


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
