"""The travelling salesman as a problem of your own: 1-trees, a price for each city, and the ladder (Held and Karp).

A 1-tree is a spanning tree over the cities but the first, and two edges at the first. A tour is a 1-tree in which every
city has two edges. The best 1-tree is found greedily; constraints ask for the degrees, and certus does the rest: prices
on the cities, edges that no shorter tour can use removed, branch and bound. The class has the four methods that every
problem needs. Two more make it faster: ``max_marginals`` lets edges be removed, ``propose`` makes a tour of a 1-tree.
"""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import certus
from certus.constraints import exactly
from certus.relax import steps

Edges = tuple[tuple[int, int], ...]


@certus.register
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
        used[tuple(np.array(structure, dtype=int).reshape(-1, 2).T)] = 1.0
        return used

    def solve(self, penalties: Any = None) -> certus.Solution[Edges]:
        weights = self._weights(penalties)
        parent = self._tree(weights)
        ends = np.argsort(-weights[0, 1:], kind="stable")[:2] + 1
        edges = [(min(v, p), max(v, p)) for v, p in enumerate(parent) if v > 1] + [(0, int(j)) for j in ends]
        value = sum(weights[i, j] for i, j in edges)
        if value == -np.inf:
            raise certus.Infeasible("the edges left do not connect the cities.")
        return certus.Solution(tuple(sorted(edges)), float(value))

    def _weights(self, penalties: Any) -> np.ndarray:
        weights = -self.distance + (penalties or {}).get("edges", 0.0)
        weights = np.where(np.triu(np.ones((self.n, self.n), dtype=bool), 1), weights, weights.T)
        np.fill_diagonal(weights, -np.inf)
        return weights

    def _tree(self, weights: np.ndarray, worst: np.ndarray | None = None) -> list[int]:
        """Prim's algorithm over cities 1 .. n - 1: the parent of each; fills in the worst edge between any two."""
        n = self.n
        best, parent, joined = weights[1].copy(), np.ones(n, dtype=int), [1]
        best[:2] = -np.inf
        waiting = np.arange(n) > 1
        for _ in range(n - 2):
            v = int(np.where(waiting, best, -np.inf).argmax())
            v = v if waiting[v] else int(waiting.argmax())  # nothing connects it: the value will say so
            if worst is not None:
                worst[v, joined] = worst[joined, v] = np.minimum(worst[parent[v], joined], best[v])
                joined.append(v)
            waiting[v] = False
            closer = waiting & (weights[v] > best)
            best[closer], parent[closer] = weights[v][closer], v
        return parent.tolist()

    def max_marginals(self, penalties: Any = None) -> dict[str, np.ndarray]:
        """An edge that comes in drives out the worst one on the way between its ends, or the second best at city 0."""
        weights, found = self._weights(penalties), self.solve(penalties)
        worst = np.full(weights.shape, np.inf)
        self._tree(weights, worst)
        worst[0] = np.sort(weights[0, 1:])[-2]
        best = np.where(np.triu(np.ones(worst.shape, dtype=bool), 1), found.value - worst + weights, -np.inf)
        return {"edges": np.where(self.indicator(found.structure, "edges") > 0, found.value, best)}

    def propose(self, structure: Edges) -> Edges:
        """The cities as a walk around the tree meets them, with stretches turned around while that is shorter."""
        near: list[list[int]] = [[] for _ in range(self.n)]
        for i, j in structure:
            near[i].append(j)
            near[j].append(i)
        tour, stack, seen = [], [0], set[int]()
        while stack:
            v = stack.pop()
            if v not in seen:
                seen.add(v)
                tour.append(v)
                stack += sorted(near[v], key=lambda w: -self.distance[v, w])
        tour, d = np.array(tour), self.distance
        while True:
            following = np.roll(tour, -1)
            ways = d[tour, following]
            gain = np.triu(ways[:, None] + ways - d[np.ix_(tour, tour)] - d[np.ix_(following, following)], 2)
            i, j = np.unravel_index(gain.argmax(), gain.shape)
            if gain[i, j] <= 1e-12:
                ends = np.sort(np.stack((tour, following), axis=1), axis=1)
                return tuple(sorted((int(a), int(b)) for a, b in ends))
            tour[i + 1 : j + 1] = tour[i + 1 : j + 1][::-1].copy()


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


def random_cities(n: int, seed: int) -> np.ndarray:
    """Distances of n random points of a square."""
    points = np.random.default_rng(seed).random((n, 2)) * 100
    return np.hypot(*(points[:, None] - points[None]).T)


def main() -> None:
    for n in (10, 20, 30):
        begun = time.perf_counter()
        problem = tours(random_cities(n, seed=n))
        result = problem.decode(time_limit=60.0, step=steps.deflected())  # plain steps zigzag between the cities
        seconds = time.perf_counter() - begun
        checked = certus.verify(problem, result)
        bound, info = -result.certificate.bound, result.info
        print(f"{n} cities: tour of length {-result.score:.3f}, none is shorter than {bound:.3f}; {seconds:.1f} s")
        print(f"  the shortest 1-tree before any prices has length {-result.trace.dual[0]:.3f}")
        print(f"  {result.certificate.kind}, {info['iterations']} iterations, {info['nodes']} nodes; {checked!r}")
        print("  " + " ".join(map(str, in_order(result.structure))))


if __name__ == "__main__":
    main()
