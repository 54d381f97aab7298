"""SparseMAP: the few structures whose average is the best compromise between scores and evenness over a view.

Solves  max over distributions p over structures y of  sum p_y s(y) - 1/2 |sum p_y a(y)|^2,  for scores s and the parts
a(y) of one view that structures use [Niculae18]. An active set of structures has its best weights by linear
equations; a structure that would raise the value is found by decoding scores that are shifted by -u, with u the sum of
p_y a(y), and is added, until there is none. What decoding proves, a bound on what any structure scores under the shift,
makes the duality gap

    bound + |u|^2 - sum p_y s(y)

an upper bound on what is missing, whether or not decoding proved its structure best.
"""

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from certus.checks import Bools, Floats, Ints

TINY = 1e-12  # a weight that is none


class Atom(NamedTuple):
    """A structure: what tells it from others, its score, the flat parts of the view that it uses, in order."""

    key: Hashable
    score: float
    parts: Ints

    def common(self, other: "Atom") -> int:
        """How many parts both use."""
        end, begin = (np.searchsorted(self.parts, other.parts, side) for side in ("right", "left"))
        return int((end - begin).sum())


# For items and what their views are shifted by, (k, D): the best structure of each and a bound on shifted scores.
Oracle = Callable[[Ints, Floats], list[tuple[Atom, float]]]


class ActiveSet:
    """The structures of one item that have a weight, the best among themselves; its view has ``size`` parts."""

    def __init__(self, first: Atom, size: int) -> None:
        self.atoms, self.weight, self.gap, self.size = [first], np.ones(1), np.inf, size
        self.overlap = np.array([[float(first.common(first))]])  # (K, K) how many parts two of them share

    @property
    def mean(self) -> Floats:
        """u, (D,)."""
        parts = np.concatenate([atom.parts for atom in self.atoms])
        weight = np.repeat(self.weight, [len(atom.parts) for atom in self.atoms])
        found: Floats = np.bincount(parts, weights=weight, minlength=self.size).astype(np.float64, copy=False)
        return found

    def offer(self, atom: Atom, bound: float, tolerance: float) -> bool:
        """Take a structure that decoding found; False if it would not raise the value."""
        shared = np.array([float(atom.common(other)) for other in (*self.atoms, atom)])
        level = float(self.weight @ [a.score for a in self.atoms] - self.weight @ self.overlap @ self.weight)
        self.gap = max(bound - level, 0.0)
        worth = atom.score - float(self.weight @ shared[:-1]) - level
        scale = 1.0 + max(abs(a.score) for a in (*self.atoms, atom))
        if worth <= tolerance * scale or atom.key in {a.key for a in self.atoms}:
            return False
        self.atoms.append(atom)
        self.weight = np.append(self.weight, 0.0)
        grown = np.zeros((len(shared), len(shared)))
        grown[:-1, :-1] = self.overlap
        grown[-1] = grown[:, -1] = shared
        self.overlap = grown
        self._settle(scale)
        return True

    def _settle(self, scale: float) -> None:
        """The best weights of the structures: towards those that the equations say, and none below 0."""
        while True:
            score = np.array([a.score for a in self.atoms])
            weight, consistent = solved(self.overlap, score, scale)
            if consistent:
                step = weight - self.weight
            else:  # some can be exchanged for others with the same mean and a better score: as much as there is
                fixed = self.overlap + 1.0
                step = score - np.linalg.pinv(fixed, hermitian=True) @ (fixed @ score)
            down = step < -TINY
            room = np.where(down, self.weight / np.where(down, -step, 1.0), np.inf)
            most = float(room.min())
            if consistent and most >= 1.0:
                self.weight = np.maximum(weight, 0.0)
                self._keep(self.weight > TINY)
                return
            self.weight = np.maximum(self.weight + most * step, 0.0)
            self._keep(np.arange(len(room)) != int(room.argmin()))

    def _keep(self, kept: Bools) -> None:
        self.atoms = [atom for atom, k in zip(self.atoms, kept, strict=True) if k]
        self.weight = self.weight[kept] / self.weight[kept].sum()
        self.overlap = self.overlap[np.ix_(kept, kept)]


def system(overlap: Floats) -> Floats:
    """(K + 1, K + 1) the equations of best weights: all worth the same, together 1."""
    return np.block([[overlap, np.ones((len(overlap), 1))], [np.ones(len(overlap)), np.zeros(1)]])


def solved(overlap: Floats, score: Floats, scale: float) -> tuple[Floats, bool]:
    """Weights that solve the equations, and whether some do; they may be below 0."""
    matrix, right = system(overlap), np.append(score, 1.0)
    found = np.linalg.pinv(matrix, hermitian=True) @ right
    return found[:-1], bool(np.abs(matrix @ found - right).max() <= 1e-9 * scale)


def active_sets(oracle: Oracle, items: int, size: int, max_iterations: int, tolerance: float) -> list[ActiveSet]:
    """The active sets of all items over a view of so many parts."""
    opened = np.arange(items)
    sets = [ActiveSet(atom, size) for atom, _ in oracle(opened, np.zeros((items, size)))]
    for _ in range(max_iterations):
        if not len(opened):
            break
        found = oracle(opened, np.stack([-sets[b].mean for b in opened]))
        still = [sets[b].offer(*answer, tolerance) for b, answer in zip(opened, found, strict=True)]
        opened = opened[np.array(still, dtype=bool)]
    return sets
