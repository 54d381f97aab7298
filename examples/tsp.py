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
        self.ends = np.triu_indices(self.n, 1)  # of all edges; the first n - 1 are at the first city

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
        first = np.sort(np.argsort(-weights[: self.n - 1], kind="stable")[:2]) + 1
        tree = self._tree(weights)
        edges = [*((0, int(j)) for j in first), *sorted(tree)]
        value = float(weights[first - 1].sum()) + sum(tree.values())
        if len(edges) < self.n or value == -np.inf:
            raise certus.Infeasible("the edges left do not connect the cities.")
        return certus.Solution(tuple(edges), value)

    def _weights(self, penalties: Any) -> np.ndarray:
        weights = -self.distance[self.ends]
        return weights if not penalties else weights + penalties["edges"][self.ends]

    def _tree(self, weights: np.ndarray, worst: np.ndarray | None = None) -> dict[tuple[int, int], float]:
        """Kruskal's algorithm over the other cities: edges with weights; fills in the worst edge between any two."""
        n = self.n
        order = np.argsort(-weights[n - 1 :], kind="stable") + n - 1
        order = order[: np.searchsorted(-weights[order], np.inf)]
        part, members, edges = list(range(n)), [[v] for v in range(n)], dict[tuple[int, int], float]()
        for i, j, weight in zip(*(values[order].tolist() for values in (*self.ends, weights)), strict=True):
            larger, smaller = members[part[i]], members[part[j]]
            if larger is smaller:
                continue
            if len(larger) < len(smaller):
                larger, smaller = smaller, larger
            if worst is not None:
                worst[np.ix_(larger, smaller)] = weight
                worst[np.ix_(smaller, larger)] = weight
            for v in smaller:
                part[v] = part[larger[0]]
            larger += smaller
            edges[i, j] = weight
            if len(edges) == n - 2:
                break
        return edges

    def max_marginals(self, penalties: Any = None) -> dict[str, np.ndarray]:
        """An edge that comes in drives out the worst one on the way between its ends, or the second best at city 0."""
        weights, found = self._weights(penalties), self.solve(penalties)
        worst, best = np.full((self.n, self.n), np.inf), np.full((self.n, self.n), -np.inf)
        self._tree(weights, worst)
        worst[0] = np.sort(weights[: self.n - 1])[-2]
        best[self.ends] = found.value - worst[self.ends] + weights
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
        tour, d = np.array([*tour, 0]), self.distance
        while True:
            between = d[tour][:, tour]
            ways = d[tour[:-1], tour[1:]]
            gain = ways[:, None] + ways - between[:-1, :-1] - between[1:, 1:]
            np.fill_diagonal(gain, 0.0)
            i, j = sorted(divmod(int(gain.argmax()), self.n))
            if gain[i, j] <= 1e-12:
                ends = np.sort(np.stack((tour[:-1], tour[1:]), axis=1), axis=1)
                return tuple(sorted(map(tuple, ends.tolist())))
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
