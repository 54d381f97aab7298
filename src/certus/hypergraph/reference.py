"""The best derivation in plain Python, sharing nothing with the kernels, to check certificates by."""

from math import inf

import numpy as np

from certus.checks import Floats
from certus.hypergraph.graph import Hypergraph


def best_value(graph: Hypergraph, weights: Floats) -> float:
    """Score of the best derivation; -inf if there is none. Time linear in the graph."""
    tail_ptr, tail, weight = graph.tail_ptr.tolist(), graph.tail.tolist(), np.asarray(weights).tolist()
    chart: list[float] = []
    for v in range(graph.root + 1):
        best = -inf
        for e in graph.edges_into(v):
            score = weight[e]
            for u in tail[tail_ptr[e] : tail_ptr[e + 1]]:
                score += chart[u]
            best = max(best, score)
        chart.append(best)
    return chart[graph.root]
