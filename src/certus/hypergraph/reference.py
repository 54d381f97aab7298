"""Best derivations in plain Python, sharing nothing with the kernels, to check certificates by."""

import heapq
from collections.abc import Sequence
from math import inf

import numpy as np

from certus.checks import Floats
from certus.hypergraph.graph import Hypergraph


def best_value(graph: Hypergraph, weights: Floats) -> float:
    """Score of the best derivation; -inf if there is none. Time linear in the graph."""
    values = kbest_values(graph, weights, 1)
    return values[0] if values else -inf


def kbest_values(graph: Hypergraph, weights: Floats, k: int) -> list[float]:
    """Scores of the k best derivations, best first, those that use a -inf edge left out; fewer when there are fewer.

    Bottom-up: each vertex keeps its k best values, each edge combines those of its tail one vertex at a time. Time
    O(tail entries * k log k) beyond the size of the graph.
    """
    tail_ptr, tail, weight = graph.tail_ptr.tolist(), graph.tail.tolist(), np.asarray(weights).tolist()
    chart: list[Sequence[float]] = []
    for v in range(graph.root + 1):
        found: list[float] = []
        for e in graph.edges_into(v):
            values: Sequence[float] = [weight[e]] if weight[e] > -inf else []
            for u in tail[tail_ptr[e] : tail_ptr[e + 1]]:
                values = _largest_sums(values, chart[u], k)
            found.extend(values)
        if k == 1:
            chart.append([max(found)] if found else [])
        else:
            chart.append(heapq.nlargest(k, found))
    return list(chart[graph.root])


def _largest_sums(a: Sequence[float], b: Sequence[float], k: int) -> list[float]:
    """The k largest of all x + y; a and b fall."""
    if not a or not b:
        return []
    if k == 1:
        return [a[0] + b[0]]
    # The i-th of a with the j-th of b is among the k largest only if (i + 1) * (j + 1) <= k.
    return heapq.nlargest(k, (x + y for i, x in enumerate(a) for y in b[: k // (i + 1)]))
