"""Clusters: small cycles of variables whose labels the pieces of a factor graph cannot agree on (after [Sontag08]_).

Under any multipliers, a piece loses by using some cells of its tables at once no less than by the dearest one of them.
What all pieces lose by the labels of a cluster adds up: the least of this over its labels is what the bound falls by
once some piece holds the cluster, at least. Differs from [Sontag08]_: what pieces lose takes the place of messages, and
clusters go together into pieces as large as their width allows.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from certus.checks import Bools, Floats, Ints
from certus.factors.elimination import Scope

MOST_CYCLES = 20_000  # of each length that are looked at
MOST_LABELS = 1 << 12  # of a cluster, all together
CELLS = 1 << 22  # that are looked at at once
LEAST = 1e-6  # of the scores: what the bound must fall by for a cluster to be of use

Pair = tuple[int, int]


class Clusters:
    """The triangles and the squares of a graph: of pairs of variables that are in a table together."""

    def __init__(self, scopes: Sequence[Scope]) -> None:
        self.scopes = scopes
        self.tables: dict[Pair, list[int]] = {}
        for k, scope in enumerate(scopes):
            for pair in combinations(sorted(scope), 2):
                self.tables.setdefault(pair, []).append(k)
        self._number = {pair: at for at, pair in enumerate(self.tables)}
        self._near: dict[int, set[int]] = {}
        for i, j in self.tables:
            self._near.setdefault(i, set()).add(j)
            self._near.setdefault(j, set()).add(i)

    @cached_property
    def cycles(self) -> tuple[list[Scope], list[Scope]]:
        """Triangles and squares, or as many as are looked at. No pair of a square is across."""
        triangles, squares = list[Scope](), list[Scope]()
        for i, j in self.tables:
            if len(triangles) < MOST_CYCLES:
                triangles += [(i, j, k) for k in sorted(self._near[i] & self._near[j]) if k > j]
        for i, near in self._near.items():
            for j, m in combinations(sorted(v for v in near if v > i), 2):
                if len(squares) < MOST_CYCLES and m not in self._near[j]:
                    across = sorted(k for k in self._near[j] & self._near[m] if k > i and k not in near)
                    squares += [(i, j, k, m) for k in across]
        return triangles, squares

    def loosest(self, lost: Floats, scale: float) -> list[list[int]]:
        """The tables of each cluster that some piece should hold, most useful first.

        ``lost`` (P, E, K, K) is what each piece loses by labels of each pair.
        """
        gain, tables = list[float](), list[list[int]]()
        for cycles in self.cycles:
            labels = lost.shape[-1] ** len(cycles[0]) if cycles else MOST_LABELS + 1
            if labels > MOST_LABELS:
                continue
            for at in range(0, len(cycles), CELLS // labels):
                gain += self._gains(cycles[at : at + CELLS // labels], lost).tolist()
            tables += map(self._around, cycles)
        order = np.argsort(-np.array(gain), kind="stable").tolist()
        return [tables[at] for at in order if gain[at] > LEAST * scale]

    def _around(self, cycle: Scope) -> list[int]:
        """The tables of the pairs of a cycle."""
        both = zip(cycle, (*cycle[1:], cycle[0]), strict=True)
        return sorted({k for i, j in both for k in self.tables[min(i, j), max(i, j)]})

    def _gains(self, cycles: Sequence[Scope], lost: Floats) -> Floats:
        """What the bound falls by, at least, once a piece holds each of these cycles, all of one length."""
        length, size = len(cycles[0]), lost.shape[-1]
        order, total = np.array(cycles, dtype=np.int64), np.zeros((len(cycles), *(size,) * length))
        ends = [(a, (a + 1) % length) for a in range(length)]
        sides = [self._sides(order[:, a], order[:, b]) for a, b in ends]
        for own in lost:
            worst = np.zeros_like(total)
            for (a, b), (pair, turned) in zip(ends, sides, strict=True):
                cells = np.where(turned[:, None, None] != (a > b), own[pair].transpose(0, 2, 1), own[pair])
                shape = [len(cycles), *(size if axis in (a, b) else 1 for axis in range(length))]
                np.maximum(worst, cells.reshape(shape), out=worst)
            total += worst
        least: Floats = total.reshape(len(cycles), -1).min(axis=1)
        return least

    def _sides(self, first: Ints, second: Ints) -> tuple[Ints, Bools]:
        """The numbers of pairs of variables, and whether these are in them the other way round."""
        low, high = np.minimum(first, second).tolist(), np.maximum(first, second).tolist()
        return np.array([self._number[both] for both in zip(low, high, strict=True)], dtype=np.int64), first > second

    def lost(self, labels: Floats, tables: Sequence[Floats | None]) -> Floats:
        """(E, K, K): what is lost at least by labels of each pair, given what is by labels, and by cells of tables."""
        size = labels.shape[1]
        ends = np.array(list(self.tables), dtype=np.int64).reshape(-1, 2)
        found = np.maximum(labels[ends[:, 0]][:, :, None], labels[ends[:, 1]][:, None, :])
        for at, (pair, own) in enumerate(self.tables.items()):
            for k in own:
                cells, scope = tables[k], self.scopes[k]
                if cells is not None:
                    others = tuple(axis for axis, v in enumerate(scope) if v not in pair)
                    near = cells.reshape((size,) * len(scope)).min(axis=others)
                    turned = scope.index(pair[0]) > scope.index(pair[1])
                    np.maximum(found[at], near.T if turned else near, out=found[at])
        return found
