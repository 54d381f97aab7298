"""Tours of random cities: 1-trees and the ladder, as examples/tsp.py has them, beside an integer program by HiGHS."""

import runpy
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse

from certus.errors import LimitReached
from certus.relax.linear import highs


class Tours(NamedTuple):
    """The two functions of the example that are used here."""

    tours: Callable[[Any], Any]
    random_cities: Callable[[int, int], Any]

    @classmethod
    def of(cls, path: Path) -> "Tours":
        """Of the file of the example."""
        found = runpy.run_path(str(path))
        return cls(found["tours"], found["random_cities"])


def by_highs(distance: Any, seconds: float) -> tuple[float, float, bool]:
    """Length of the tour, seconds taken, and whether it was proved: rows for subtours are added as they are found."""
    n = len(distance)
    pairs = np.array(list(combinations(range(n), 2)))
    ends = sparse.csr_array((np.ones(2 * len(pairs)), (pairs.T.reshape(-1), np.tile(np.arange(len(pairs)), 2))))
    rows, low, high = [ends], [np.full(n, 2.0)], [np.full(n, 2.0)]
    objective = -distance[pairs[:, 0], pairs[:, 1]]
    begun = time.perf_counter()
    while True:
        limits = optimize.LinearConstraint(sparse.vstack(rows), np.concatenate(low), np.concatenate(high))
        left = seconds - (time.perf_counter() - begun)
        try:
            whole = np.ones(len(pairs), dtype=np.int64)
            x, bound = highs(objective, limits, np.ones(len(pairs)), whole, max(left, 0.01))
        except LimitReached:
            return np.inf, time.perf_counter() - begun, False
        used, taken = pairs[x > 0.5], time.perf_counter() - begun
        graph = sparse.coo_array((np.ones(len(used)), used.T), shape=(n, n))
        count, part = sparse.csgraph.connected_components(graph, directed=False)
        if count == 1:
            length = -float(objective @ x)
            return length, taken, abs(length + bound) <= 1e-6 * length
        for k in range(count):
            within = (part[pairs] == k).all(axis=1)
            rows.append(sparse.csr_array(within[None].astype(float)))
            low.append(np.array([-np.inf]))
            high.append(np.array([(part == k).sum() - 1.0]))
        if taken > seconds:
            return np.inf, taken, False
