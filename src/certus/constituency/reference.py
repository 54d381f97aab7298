"""Best score of a sentence by CKY in numpy alone, to check certificates by."""

import numpy as np

from certus.constituency.indexed import Indexed


def best_value(indexed: Indexed, cells: list[tuple[int, int, float]], n: int) -> float:
    """Score of the best derivation of n words; -inf if there is none.

    ``cells`` lists word items as (position, base, weight). Spans from short to long; for one span and split, all
    rules at once, which are sorted by parent so that a maximum per parent is one call.
    """
    if n == 0:
        return -np.inf
    order = indexed.by_parent
    left, right, weight = indexed.left[order], indexed.right[order], indexed.weight[order]
    parents, starts = np.unique(indexed.parent[order], return_index=True)
    tops, chain_starts = np.unique(indexed.chain_top, return_index=True)
    chart = np.full((n, n + 1, indexed.size), -np.inf)
    for position, base, score in cells:
        chart[position, position + 1, base] = max(score, chart[position, position + 1, base])
    for width in range(1, n + 1):
        for i in range(n - width + 1):
            j = i + width
            cell = chart[i, j]
            if len(parents):
                for k in range(i + 1, j):
                    scores = chart[i, k][left] + chart[k, j][right] + weight
                    cell[parents] = np.maximum(cell[parents], np.maximum.reduceat(scores, starts))
            if len(tops):
                scores = cell[indexed.chain_base] + indexed.chain_weight
                cell[tops] = np.maximum(cell[tops], np.maximum.reduceat(scores, chain_starts))
    return float(chart[0, n, indexed.root])
