"""The k best non-projective trees, one after the other, each proved to be the next.

The space of trees is split as its best trees are found ([Lawler72]_): once the best tree of a part is taken, the rest
of the part falls into at most n smaller ones, in each of which the words before some word j keep their heads and j
takes another. The best tree of every part waits in a heap. No tree appears twice, since the parts are disjoint.
"""

import heapq
from collections.abc import Iterator
from itertools import count

import numpy as np

from certus import kernels
from certus.checks import Floats, Ints
from certus.dependency.arborescence import best_heads


def iterate_trees(arc: Floats, root: str) -> Iterator[tuple[Ints, float]]:
    """All trees in order of falling score, as (heads, score); each next tree costs O(n^3). Checked scores only.

    Work is done only for the trees that are asked for. Raises Infeasible when there is no tree at all.
    """
    n = len(arc) - 1
    heads, value = best_heads(arc, root)
    flat = arc.reshape(-1)
    order = count()  # ties leave the heap in the order in which they were found
    heap = [(-value, next(order), heads, 1, np.zeros(n + 1, dtype=np.bool_))]
    while heap:
        negated, _, heads, fixed, forbidden = heapq.heappop(heap)
        yield heads, -negated
        values = np.empty(n + 1)
        found = np.empty((n + 1, n + 1), dtype=np.int64)
        kernels.arborescence.next_trees(flat, n, root == "single", heads, fixed, forbidden, values, found)
        for j in range(fixed, n + 1):
            if values[j] > -np.inf:
                others = forbidden.copy() if j == fixed else np.zeros(n + 1, dtype=np.bool_)
                others[heads[j]] = True
                heapq.heappush(heap, (-float(values[j]), next(order), found[j].copy(), j, others))
