"""The travelling salesman by Held and Karp: relax tours to 1-trees and price the degrees (LR 3.4, fig. 3-1).

A 1-tree is a spanning tree over the cities but the first, and two edges at the first. A tour is a 1-tree in which every
city has degree 2. The best 1-tree is found greedily; a price on every city drives the degrees to 2. The engine needs no
more of a new problem than ``solve``, ``indicator``, ``score`` and a plain reference.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

import certus
from certus.certificates.rounding import Extent, extent_of
from certus.constraints import exactly

Edges = tuple[tuple[int, int], ...]


class OneTrees(certus.Problem[Edges]):
    """1-trees of minimal length, scored by minus their length. The view "edges" (n, n) has the cells i < j."""

    name = "one-trees"

    def __init__(self, distance: Any) -> None:
        self.distance = np.asarray(distance, dtype=np.float64)
        self.n = len(self.distance)

    @property
    def views(self) -> Mapping[str, tuple[int, ...]]:
        return {"edges": (self.n, self.n)}

    def terms(self, structure: Edges) -> list[float]:
        return [-float(self.distance[i, j]) for i, j in structure]

    def indicator(self, structure: Edges, view: str) -> np.ndarray:
        used = np.zeros((self.n, self.n))
        for i, j in structure:
            used[i, j] = 1.0
        return used

    def extent(self) -> Extent:
        return extent_of(self.n, -self.distance)

    def _weights(self, penalties: Any) -> np.ndarray:
        weights = -self.distance + (penalties or {}).get("edges", 0.0)
        upper = np.triu(np.ones((self.n, self.n), dtype=bool), 1)
        return np.where(upper, weights, weights.T)

    def solve(self, penalties: Any = None) -> certus.Solution[Edges]:
        """Prim's algorithm over cities 1 .. n - 1, then the two best edges at city 0."""
        weights = self._weights(penalties)
        best, link = weights[1].copy(), np.ones(self.n, dtype=int)
        best[:2] = -np.inf
        waiting = np.ones(self.n, dtype=bool)
        waiting[:2] = False
        edges, value = [], 0.0
        for _ in range(self.n - 2):
            v = int(np.where(waiting, best, -np.inf).argmax())
            if not waiting[v] or best[v] == -np.inf:
                raise certus.Infeasible("the edges left do not connect the cities.")
            edges.append((min(v, int(link[v])), max(v, int(link[v]))))
            value += best[v]
            waiting[v] = False
            closer = waiting & (weights[v] > best)
            best[closer], link[closer] = weights[v][closer], v
        for j in sorted(range(1, self.n), key=lambda j: -weights[0, j])[:2]:
            edges.append((0, j))
            value += weights[0, j]
        if value == -np.inf:
            raise certus.Infeasible("city 0 has fewer than two edges left.")
        return certus.Solution(tuple(sorted(edges)), float(value))

    def reference_maximum(self, penalties: Any = None) -> float:
        """Kruskal's algorithm, to check Prim's by."""
        weights = self._weights(penalties)
        group = list(range(self.n))
        total = sum(sorted(weights[0, 1:].tolist(), reverse=True)[:2])
        pairs = combinations(range(1, self.n), 2)
        for w, i, j in sorted(((float(weights[i, j]), i, j) for i, j in pairs), reverse=True):
            if group[i] != group[j]:
                total += w
                group = [group[i] if g == group[j] else g for g in group]
        return total

    def all_structures(self) -> Iterator[Edges]:
        for tree in combinations(combinations(range(1, self.n), 2), self.n - 2):
            group = list(range(self.n))
            for i, j in tree:
                group = [group[i] if g == group[j] else g for g in group]
            if len(set(group[1:])) == 1:
                for a, b in combinations(range(1, self.n), 2):
                    yield tuple(sorted((*tree, (0, a), (0, b))))

    def decode(self, **limits: Any) -> certus.Result[Edges]:
        solution = self.solve()
        return self.proved(solution.structure, solution.value, kind="combinatorial")


def tours(distance: Any) -> certus.Problem[Edges]:
    """The 1-trees in which every city has degree 2."""
    n = len(distance)
    incident = [[(min(v, w), max(v, w)) for w in range(n) if w != v] for v in range(n)]
    degrees = [exactly(2, "edges", cells).named(f"degree of city {v}") for v, cells in enumerate(incident)]
    return OneTrees(distance).subject_to(*degrees)


def in_order(edges: Edges) -> list[int]:
    """The cities in the order of a tour."""
    left, tour = list(edges), [0]
    while left:
        edge = next(e for e in left if tour[-1] in e)
        left.remove(edge)
        tour.append(edge[0] + edge[1] - tour[-1])
    return tour[:-1]


def main() -> None:
    rng = np.random.default_rng(4)
    for n in (8, 15, 25):
        points = rng.random((n, 2)) * 100
        distance = np.hypot(*(points[:, None] - points[None]).T)
        problem = tours(distance)
        result = problem.decode(time_limit=60.0)
        certus.verify(problem, result)
        print(f"{n} cities: tour of length {-result.score:.3f}, none is shorter than {-result.certificate.bound:.3f}")
        print(f"  the shortest 1-tree before any prices has length {-result.trace.dual[0]:.3f}")
        print(f"  {result.certificate.kind}, {result.info['iterations']} iterations, {result.info['nodes']} nodes")
        print("  " + " ".join(map(str, in_order(result.structure))))


if __name__ == "__main__":
    main()
