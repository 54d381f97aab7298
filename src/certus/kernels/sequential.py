"""Derivations drawn from the root down, without edges that some row could not be satisfied after.

Layout as in ``certus.kernels.hypergraph``. A budget is one side of a row: of all that is added up for it, the least
that any derivation of v comes to is least[v], and an edge spends how much more than that its derivations come to at the
least. A derivation is within a budget where its edges together spend no more than there is.
"""

from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.kernels.compiling import njit


class Graph(NamedTuple):
    """A hypergraph in flat arrays, with the probability of each edge given its head, 0 where it is forbidden."""

    in_ptr: NDArray[Any]
    tail_ptr: NDArray[Any]
    tail: NDArray[Any]
    conditional: NDArray[Any]
    root: int


@njit(cache=True, nogil=True)
def spending(graph, spend, least):
    """spend[e, s] <- spend[e, s] + sum_{u in tail(e)} least[u, s] - least[v, s] for edges e into v.

    On entry spend (E, S) is what each edge adds to what is added up for a budget; least[v, s] (V, S) is overwritten by
    the smallest sum that a derivation of v comes to. Forbidden edges are left as they are.
    """
    for v in range(least.shape[0]):
        least[v, :] = np.inf
        for e in range(graph.in_ptr[v], graph.in_ptr[v + 1]):
            if graph.conditional[e] == 0.0:
                continue
            for s in range(spend.shape[1]):
                total = spend[e, s]
                for k in range(graph.tail_ptr[e], graph.tail_ptr[e + 1]):
                    total += least[graph.tail[k], s]
                spend[e, s] = total
                least[v, s] = min(least[v, s], total)
        for e in range(graph.in_ptr[v], graph.in_ptr[v + 1]):
            if graph.conditional[e] > 0.0:
                for s in range(spend.shape[1]):
                    spend[e, s] -= least[v, s]


@njit(cache=True, nogil=True)
def walk(graph, spend, budget, rng, given):
    """Edges, head before tails, of one derivation within the budgets, and the log of the probability that it is drawn.

    Each vertex draws its edge by its conditional from those that are within what is left of all budgets. Where there is
    none, the log is -inf and the edges end. The edges ``given``, if there are any, are taken in place of drawn ones.
    """
    left = budget.copy()
    edges = np.empty(max(64, given.shape[0]), dtype=np.int32)
    stack = np.empty(64, dtype=np.int32)
    stack[0] = graph.root
    depth = 1
    n = 0
    probability = 0.0
    while depth > 0:
        depth -= 1
        v = stack[depth]
        total = 0.0
        chosen = -1
        for e in range(graph.in_ptr[v], graph.in_ptr[v + 1]):
            q = graph.conditional[e]
            if q == 0.0:
                continue
            fits = True
            for s in range(left.shape[0]):
                if spend[e, s] > left[s]:
                    fits = False
                    break
            if fits:
                total += q
                if given.shape[0] > 0:
                    if given[n] == e:
                        chosen = e
                elif rng.random() * total < q:  # edge e stands for those before it with the right probability
                    chosen = e
        if chosen < 0:
            return edges[:n].copy(), -np.inf
        probability += log(graph.conditional[chosen] / total)
        for s in range(left.shape[0]):
            left[s] -= spend[chosen, s]
        if n == edges.shape[0]:
            grown = np.empty(2 * n, dtype=np.int32)
            grown[:n] = edges
            edges = grown
        edges[n] = chosen
        n += 1
        size = graph.tail_ptr[chosen + 1] - graph.tail_ptr[chosen]
        while depth + size > stack.shape[0]:
            grown = np.empty(2 * stack.shape[0], dtype=np.int32)
            grown[:depth] = stack[:depth]
            stack = grown
        for k in range(size):
            stack[depth + k] = graph.tail[graph.tail_ptr[chosen + 1] - 1 - k]
        depth += size
    return edges[:n].copy(), probability
